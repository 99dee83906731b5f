/* model.c - see model.h. */
#include "plan/model.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"

#define GB 1e9

/* Weights of a model, see model_parse_weights(). */
#define WEIGHTS_MIN 1000
#define WEIGHTS_MAX 1e15

/* Largest share of a machine's memory that may be planned with, as bytes that stay free. */
#define RESERVE_SHARE 0.1
#define RESERVE_BYTES (1.5 * GB)

/* Dense bf16 and one direction of the link, from the makers' data sheets. */
static const struct model_gpu gpus[] = {
    {"a100", 80 * GB, 312e12, 300 * GB, "NVIDIA A100 SXM 80 GB"},
    {"a100-40", 40 * GB, 312e12, 300 * GB, "NVIDIA A100 SXM 40 GB"},
    {"h100", 80 * GB, 989e12, 450 * GB, "NVIDIA H100 SXM"},
    {"h200", 141 * GB, 989e12, 450 * GB, "NVIDIA H200 SXM"},
    {"b200", 180 * GB, 2250e12, 900 * GB, "NVIDIA B200 SXM"},
    {"l40s", 48 * GB, 362e12, 32 * GB, "NVIDIA L40S, PCIe 4"},
    {"rtx4090", 24 * GB, 165e12, 32 * GB, "NVIDIA GeForce RTX 4090, PCIe 4"},
    {"mi300x", 192 * GB, 1307e12, 448 * GB, "AMD Instinct MI300X"},
};
#define N_GPUS (sizeof(gpus) / sizeof(*gpus))

const char *const model_dtype_names[MODEL_DTYPE_N] = {"fp32", "bf16", "fp16"};

double model_dtype_bytes(enum model_dtype d)
{
    return d == MODEL_FP32 ? 4 : 2;
}

const struct model_gpu *model_gpu_find(const char *name)
{
    for (size_t i = 0; i < N_GPUS; i++)
        if (strcmp(gpus[i].name, name) == 0)
            return &gpus[i];
    return NULL;
}

const char *model_gpu_names(void)
{
    return "a100, a100-40, h100, h200, b200, l40s, rtx4090, mi300x";
}

void model_guess(struct model *m)
{
    if (m->layers <= 0 && m->hidden > 0)
        m->layers = fmax(1, round(m->params / (12 * m->hidden * m->hidden)));
    if (m->layers <= 0)
        m->layers = fmax(1, round(cbrt(m->params / (12 * 100 * 100))));
    if (m->hidden <= 0)
        m->hidden = fmax(1, ceil(sqrt(m->params / (12 * m->layers)) / 64)) * 64;
    if (m->seq <= 0)
        m->seq = 4096;
    if (m->batch <= 0)
        m->batch = fmax(1, round(fmin(4e6, m->params / 5000) / m->seq));
    if (m->experts > 0 && m->chosen == 0)
        m->chosen = m->experts < 2 ? m->experts : 2;
    if (m->active <= 0)
        m->active = m->params;
}

struct model_memory model_memory(const struct model *m, const struct model_cut *c)
{
    /* Weights of all experts together, when some tokens do not meet all weights. */
    double experts = m->experts <= m->chosen || m->active >= m->params
                         ? 0
                         : (m->params - m->active) * m->experts / (m->experts - m->chosen);
    double weights = ((m->params - experts) + experts / c->expert) / c->tensor / c->pipeline;
    double tokens = m->seq / c->sequence;
    double layer = 34 * tokens * m->hidden / c->tensor;
    double width = model_dtype_bytes(m->dtype);
    struct model_memory r;

    if (c->sharded)
        r.states =
            weights * 16 / (c->data * c->sequence) + 2 * width * weights * c->pipeline / m->layers;
    else
        r.states = weights * (2 * width + (16 - 2 * width) / (c->data * c->sequence));
    r.activations =
        c->recompute ? 2 * tokens * m->hidden * m->layers / c->tensor + layer : layer * m->layers;
    r.reserve = RESERVE_BYTES + RESERVE_SHARE * (r.states + r.activations);
    r.total = r.states + r.activations + r.reserve;
    return r;
}

double model_flops(const struct model *m, const struct model_cut *c)
{
    double token = 6 * m->active + 12 * m->layers * m->hidden * m->seq;

    return token * m->seq * m->batch * (c->recompute ? 4.0 / 3 : 1);
}

/* Bytes that each of @n passes on in an all-reduce of @bytes by a ring. */
static double reduced(double bytes, double n)
{
    return 2 * (n - 1) / n * bytes;
}

struct model_waits model_waits(const struct model *m, const struct model_cut *c,
    const struct model_gpu *gpu, unsigned per_node, double fabric, double work)
{
    double sequences = fmax(1, m->batch / c->replicas); /* of a replica, one at a time */
    double tokens = m->seq / c->sequence;
    double layers = m->layers / c->pipeline;
    double block = tokens * m->hidden * 2; /* bytes of one layer's activations */
    double inside = gpu->link;
    double group = c->tensor * c->sequence; /* neighbours first: these are in one machine */
    double across = per_node > 1 ? fmin(inside, fabric / per_node) : fabric;
    double weights = m->params / c->tensor / c->pipeline * model_dtype_bytes(m->dtype);
    unsigned shards = c->data * c->sequence;
    struct model_waits r = {0};

    r.tensor = 4 * reduced(block, c->tensor) * layers * sequences / inside;
    r.bubble = work * (c->pipeline - 1) / sequences;
    if (c->pipeline > 1)
        r.stages = 2 * block * sequences / (group * c->pipeline <= per_node ? inside : across);
    r.sequence = 3 * 2 * block * (c->sequence - 1) * layers * sequences /
                 (group <= per_node ? inside : across);
    r.data = reduced(weights, shards) * (c->sharded ? 1.5 : 1) /
             (group * c->pipeline * c->data <= per_node ? inside : across);
    if (c->expert > 1)
        r.expert = 4 * m->chosen * block * (c->expert - 1) / c->expert * layers * sequences /
                   (group * c->expert <= per_node ? inside : across);
    return r;
}

/* Digits, perhaps a fraction, perhaps K, M, B or T. */
int model_parse_weights(double *ret, const char *text, const char *what, struct err *e)
{
    static const char units[] = "KMBT";
    char *end;
    double value;
    const char *unit;

    errno = 0;
    value = parse_decimal(text, &end);
    if (value > 0 && *end != '\0' && end[1] == '\0' && (unit = strchr(units, *end))) {
        for (long k = unit - units; k >= 0; k--)
            value *= 1000;
        end++;
    }
    if (!(value >= WEIGHTS_MIN && value <= WEIGHTS_MAX) || errno != 0 || *end != '\0')
        return err_set(e, -EINVAL,
            "%s \"%.40s\" is no number of weights from 1K to 1000T, such as 70B or 7e9", what,
            text);
    *ret = value;
    return 0;
}
