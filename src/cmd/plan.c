/* plan.c - weft plan: where do the parts of a training job go, and how often do islands meet? */
#include "plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/measure.h"
#include "cmd/options.h"
#include "cmd/price_table.h"
#include "train/survey/bench.h"

#define PINGS          50
#define MATRIX_MS      300
#define STREAMS        4
#define MATRIX_BYTES   (8ull << 30)
#define ASK_TIMEOUT_MS 10000
#define FILE_MAX       (64u << 20) /* bytes; a matrix of 256 nodes has 30,000 pairs */
#define SYNC_BYTES_MAX 1e12

static struct {
    const char *socket;
    const char *nodes;
    struct option_list matrices;
    const char *islands;
    const char *params;
    const char *active;
    const char *dtype;
    const char *gpu;
    const char *transport;
    const char *prices;
    const char *sync_bytes;
    uint64_t gpus;
    uint64_t batch;
    uint64_t seq;
    uint64_t layers;
    uint64_t hidden;
    uint64_t experts;
    uint64_t share;
    uint64_t efficiency;
    uint64_t fabric_bps;
    bool one_by_one;
    bool force;
    bool json;
} arg;

static const struct option options[] = {
    {"--params", "N", option_text, &arg.params, NULL, "weights of the model, such as 70B",
        .is_required = true},
    {"--dtype", "WORD", option_word, &arg.dtype, "bf16",
        "of weights and gradients: fp32, bf16, fp16", .words = "fp32, bf16, fp16"},
    {"--gpu", "NAME", option_text, &arg.gpu, "h100",
        "a100, a100-40, h100, h200, b200, l40s, rtx4090 or mi300x"},
    {"--gpus", "N", option_u64, &arg.gpus, "8", "of each node", .min = 1, .max = 64},
    {"--batch", "N", option_u64, &arg.batch, NULL,
        "sequences of a step on all GPUs together (default: by the weights)", .min = 1,
        .max = 1000000},
    {"--seq", "N", option_u64, &arg.seq, "4096", "tokens of a sequence", .min = 1,
        .max = 100000000},
    {"--layers", "N", option_u64, &arg.layers, NULL, "of the model (default: by the weights)",
        .min = 1, .max = 10000},
    {"--hidden", "N", option_u64, &arg.hidden, NULL, "its width (default: by the weights)",
        .min = 1, .max = 1000000},
    {"--experts", "N", option_u64, &arg.experts, "0", "of each layer; 0: it has none", .max = 4096},
    {"--active", "N", option_text, &arg.active, NULL,
        "weights that one token meets, for a model with experts"},
    {"--share", "PERCENT", option_u64, &arg.share, "10",
        "of the time that communication between islands may take", .min = 1, .max = 90},
    {"--efficiency", "PERCENT", option_u64, &arg.efficiency, "40",
        "of the GPUs' operations that the job reaches", .min = 1, .max = 100},
    {"--fabric", "RATE", option_rate, &arg.fabric_bps, NULL,
        "of a node inside its island, such as 400Gbit (default: as measured)"},
    {"--transport", "WORD", option_word, &arg.transport, "nccl",
        "who carries the bytes: nccl, gloo", .words = "nccl, gloo"},
    {"--matrix", "FILE", option_append, &arg.matrices, NULL,
        "what weft bench --json or weft preflight --json has printed, instead of measuring; of "
        "several, the later ones count",
        .many = true},
    {"--islands", "NAMES", option_text, &arg.islands, NULL,
        "who shares a fabric, as a,b/c,d (default: as declared, or within 2 ms)"},
    {"--price-table", "FILE", option_text, &arg.prices, NULL,
        "what bytes, lines and GPUs cost (default: the network's, else examples)"},
    {"--sync-bytes", "SIZES", option_text, &arg.sync_bytes, NULL,
        "say how long vectors of so many bytes take, too, as 1M,64M,2G"},
    {"--nodes", "NAMES", option_text, &arg.nodes, NULL,
        "measure these members and this one, as a,b,c; with --matrix: plan for these alone "
        "(default: all)"},
    {"--one-by-one", NULL, option_flag, &arg.one_by_one, NULL,
        "measure the throughput of one pair at a time, where pairs share a line"},
    {"--force", NULL, option_flag, &arg.force, NULL, "measure although something uses the network"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--socket", "PATH", option_socket, &arg.socket, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "plan",
    .summary =
        "Say where the parts of a training job go, how often its islands meet, and the cost.",
    .options = options,
    .notes =
        "Without --matrix it measures the members first, as weft preflight does. Exit status: 0,\n"
        "3 when the model does not fit or no interval is long enough, 1 when nothing was found "
        "out.",
};

/* ---- what is asked for --------------------------------------------------------------------- */

/* A size: digits, perhaps a fraction, perhaps K, M or G, and then perhaps B. @p goes behind it. */
static double read_size(const char **p)
{
    static const char units[] = "KMG";
    char *end;
    double value = parse_decimal(*p, &end);
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;

    for (long k = unit ? unit - units : -1; k >= 0; k--)
        value *= 1000;
    end += unit ? 1 : 0;
    *p = end + (*end == 'B' ? 1 : 0);
    return value;
}

static int read_sizes(struct plan_options *w, struct err *e)
{
    for (const char *p = arg.sync_bytes; p && *p != '\0';) {
        double size = read_size(&p);

        if (!(size >= 1 && size <= SYNC_BYTES_MAX) || (*p != '\0' && *p != ',') ||
            (*p == ',' && p[1] == '\0') || w->n_syncs == PLAN_SYNCS_MAX)
            return err_set(e, -EINVAL,
                "--sync-bytes \"%.80s\" is no list of at most %d sizes from 1 B to 1000 GB, such "
                "as "
                "1M,64M",
                arg.sync_bytes, PLAN_SYNCS_MAX);
        w->sync_bytes[w->n_syncs++] = size;
        p += *p == ',';
    }
    return 0;
}

static int read_options(struct plan_options *ret, struct err *e)
{
    struct plan_options w = {
        .model = {.layers = (double)arg.layers,
            .hidden = (double)arg.hidden,
            .seq = (double)arg.seq,
            .batch = (double)arg.batch,
            .experts = (unsigned)arg.experts,
            .dtype = (enum model_dtype)parse_word(arg.dtype, model_dtype_names, MODEL_DTYPE_N)},
        .gpu = model_gpu_find(arg.gpu),
        .gpus = (unsigned)arg.gpus,
        .share = (double)arg.share / 100,
        .efficiency = (double)arg.efficiency / 100,
        .fabric_bps = (double)arg.fabric_bps,
        .transport =
            (enum sync_transport)parse_word(arg.transport, sync_transport_names, SYNC_TRANSPORT_N)};
    int r = model_parse_weights(&w.model.params, arg.params, "--params", e);

    if (r == 0 && arg.active)
        r = model_parse_weights(&w.model.active, arg.active, "--active", e);
    if (r == 0 && arg.active && arg.experts == 0)
        r = err_set(e, -EINVAL,
            "--active \"%.40s\" is for a model with experts: --experts says how many", arg.active);
    if (r == 0 && w.model.active > w.model.params)
        r = err_set(e, -EINVAL, "--active \"%.40s\" is more than --params \"%.40s\"", arg.active,
            arg.params);
    if (r == 0)
        r = read_sizes(&w, e);
    if (r == 0 && !w.gpu)
        r = err_set(e, -EINVAL, "--gpu \"%.40s\" is none of %s", arg.gpu, model_gpu_names());
    if (r == 0)
        *ret = w;
    return r;
}

/* The table of the network that this node is in, if it has one. A plan of what was measured
 * elsewhere is made where no agent runs, so no answer is no mistake. */
static int ask_prices(struct prices *ret, bool *ret_given, struct err *e)
{
    json_auto_t *snapshot = NULL;
    struct err unused = ERR_NULL;
    const json_t *table;
    int r = 0;

    if (agent_ask(arg.socket, "GET", "/v1/snapshot", ASK_TIMEOUT_MS, &snapshot, &unused) != 0)
        return 0;
    table =
        json_object_get(json_object_get(json_object_get(snapshot, "network"), "spec"), "prices");
    if (table)
        r = prices_decode(ret, table, OBJECT_STRICT, e);
    *ret_given = table != NULL;
    return r;
}

/* ---- what was measured --------------------------------------------------------------------- */

static int read_matrix(struct matrix *m, const char *path, struct err *e)
{
    struct matrix next = MATRIX_NULL;
    json_auto_t *json = NULL;
    int r = json_file_read(&json, path, FILE_MAX, e);

    if (r == 0 && (r = matrix_decode(&next, json, e)) < 0)
        (void)err_prefix(e, "%.200s", path);
    if (r == 0 && m->n > 0) {
        r = matrix_replace(m, &next, e);
        matrix_deinit(&next);
        return r;
    }
    if (r == 0)
        *m = next;
    return r;
}

/* Takes the islands that were declared from the agent's status. */
static int ask_islands(struct matrix *m, struct err *e)
{
    json_auto_t *status = NULL;
    const json_t *peer;
    size_t i;
    int r = agent_ask(arg.socket, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, e);

    if (r == 0)
        matrix_declare(m, json_object_get(status, "self"));
    json_array_foreach(json_object_get(status, "peers"), i, peer)
        matrix_declare(m, peer);
    return r;
}

/* The pairs one way and the other, then both ways at once. */
static int survey_all(struct measure *measure, struct matrix *m, struct err *e)
{
    _cleanup_(freep) struct bench_pair *more = calloc(measure->survey.n_pairs + 1, sizeof(*more));
    struct bench_allreduce none[ORDER_ALGORITHM_N] = {0};
    int r = more ? survey_run(&measure->survey, &measure->plan) : -ENOMEM;

    if (r == 0 && measure->survey.skipped_bulk)
        return err_set(e, -EBUSY,
            "something uses the network, so nothing was measured; --force measures all the same");
    if (r == 0)
        r = bench_run(&measure->survey, &measure->plan, false, 0, more, none);
    if (r == 0)
        r = bench_matrix(&measure->survey, more, m);
    return r == 0 ? 0 : err_set(e, r, "no memory for %zu members", measure->members.n);
}

static int measure_matrix(struct matrix *m, struct err *e)
{
    struct measure measure = {.members = MEMBERS_NULL, .survey = SURVEY_NULL};
    int r;

    measure.plan = (struct survey_plan){.pings = PINGS,
        .ms = MATRIX_MS,
        .streams = STREAMS,
        .bytes = MATRIX_BYTES,
        .force = arg.force,
        .alone = arg.one_by_one};
    r = measure_open(&measure, "plan", arg.socket, arg.nodes);
    if (r == CMD_OK)
        r = survey_all(&measure, m, e);
    measure_close(&measure);
    return r == CMD_OK ? ask_islands(m, e) : r;
}

static int get_matrix(struct matrix *m, struct err *e)
{
    int r = 0;

    if (arg.matrices.n == 0)
        r = measure_matrix(m, e);
    for (size_t i = 0; r == 0 && i < arg.matrices.n; i++)
        r = read_matrix(m, arg.matrices.items[i], e);
    if (r == 0 && arg.matrices.n > 0 && arg.nodes)
        r = matrix_pick(m, arg.nodes, e);
    if (r == 0 && arg.islands)
        r = matrix_set_islands(m, arg.islands, e);
    if (r == 0)
        (void)matrix_find_islands(m);
    return r;
}

/* ---- the plan ------------------------------------------------------------------------------ */

static int print_plan(const struct plan *p)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    int status;

    if (!arg.json)
        plan_format(p, &out);
    status = admin_print("plan", arg.json, arg.json ? plan_encode(p) : NULL, &out);
    return status == CMD_OK && !plan_is_good(p) ? CMD_VERDICT_NO : status;
}

int cmd_plan(int argc, char **argv)
{
    static struct prices prices;
    _cleanup_(matrix_deinit) struct matrix m = MATRIX_NULL;
    _cleanup_(plan_deinit) struct plan plan = PLAN_NULL;
    struct err e = ERR_NULL;
    struct plan_options opt;
    int status;
    int r;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (read_options(&opt, &e) < 0)
        return cmd_refuse("plan", "%s", err_text(&e));
    prices_default(&prices);
    opt.prices_given = arg.prices != NULL;
    if (arg.prices)
        r = price_table_read(&prices, NULL, arg.prices, &e);
    else
        r = ask_prices(&prices, &opt.prices_given, &e);
    opt.prices = &prices;
    if (r == 0)
        r = get_matrix(&m, &e);
    option_list_deinit(&arg.matrices);
    if (r == 0)
        r = plan_make(&plan, &m, &opt, &e);
    if (r != 0 && e.text[0] == '\0')
        return CMD_FAILED; /* the measuring has said why */
    return r == 0 ? print_plan(&plan) : cmd_fail("plan", "%s", err_text(&e));
}
