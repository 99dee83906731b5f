/* plan.c - see plan.h. */
#include "plan/plan.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* Bits of a weight that such a fragment sends. */
#define PLAN_FRAGMENT_BITS 4
/* Share of a step in which gradients can be sent while others are computed: the backward pass (Li
 * et al., "PyTorch Distributed", VLDB 2020, section 3.2.3). */
#define PLAN_OVERLAP (2.0 / 3)
/* Share of the weights that top-k sends. Much less has islands that meet a few dozen times learn
 * less (make bench PARTS=hierarchical). */
#define PLAN_TOPK_SHARE 0.2

#define PIPELINE_MAX 64u
#define SEQUENCE_MAX 64u

/* Bytes of fp32 weights that a machine compresses in a second; memory of a GPU is faster. */
#define COMPRESS_RATE 1e11

const char *const plan_kind_names[PLAN_KIND_N] = {"ring", "tree", "hierarchical"};
const char *const plan_form_names[PLAN_FORM_N] = {"fp32", "bf16", "int8", "topk"};

void plan_deinit(struct plan *p)
{
    free(p->islands);
    free(p->members);
    free(p->ring);
    free(p->parent);
    free(p->leaders);
    free(p->edges);
    *p = (struct plan)PLAN_NULL;
}

bool plan_is_good(const struct plan *p)
{
    return p->inside.fits && (p->is_synchronous || isfinite(p->exchange[p->form].interval));
}

/* ==== the bytes and the money, a day and an edge ============================================= */

#define DAY   86400.0
#define MONTH 30.0 /* days */
#define GB    1e9

static bool is_inside(const struct matrix *m, size_t a, size_t b)
{
    return strcmp(m->nodes[a].island, m->nodes[b].island) == 0;
}

static double gradient_bytes(const struct plan *p)
{
    return p->opt.model.params * model_dtype_bytes(p->opt.model.dtype);
}

static const char *island_of(const struct plan *p, size_t node)
{
    return p->matrix->nodes[node].island;
}

static void count_edges(struct plan *p)
{
    const struct plan_exchange *x = &p->exchange[p->form];
    double n = (double)p->n_islands;
    double bytes = p->is_synchronous ? 2 * (n - 1) / n * gradient_bytes(p) : x->bytes;
    double interval = p->is_synchronous ? 1 : x->interval;
    double open = p->is_synchronous
                      ? p->inside.step * p->average_share[p->best] / (1 - p->average_share[p->best])
                      : x->seconds / interval;

    p->steps_per_day = DAY / (p->inside.step + open);
    for (size_t i = 0; p->n_islands > 1 && i < p->n_islands; i++) {
        struct plan_edge *e = &p->edges[p->n_edges++];
        double price;

        e->from = p->leaders[i];
        e->to = p->leaders[(i + 1) % p->n_islands];
        price = prices_per_gb(p->opt.prices, island_of(p, e->from));
        e->bytes_per_day = bytes * p->steps_per_day / interval;
        e->money_per_day = e->bytes_per_day / GB * price;
        p->traffic_money += e->money_per_day;
    }
}

/* What one ring of all nodes, in each step, would cost for as many steps. */
static double flat_money(const struct plan *p)
{
    size_t n = p->matrix->n;
    double bytes = 2 * (double)(n - 1) / (double)n * gradient_bytes(p);
    double money = 0;

    for (size_t i = 0; i < n; i++)
        if (!is_inside(p->matrix, p->ring[i], p->ring[(i + 1) % n]))
            money += bytes / GB * prices_per_gb(p->opt.prices, island_of(p, p->ring[i]));
    return money * p->steps_per_day;
}

/*
 * A ring inside an island that has nodes in several zones passes from one zone to the next as often
 * as there are zones. However the model is cut, all gradients together pass each such place, and
 * with FSDP the weights as well (ZeRO, arXiv:1910.02054, section 7).
 */
static void count_zones(struct plan *p)
{
    for (size_t k = 0; k < p->n_islands; k++) {
        const struct plan_island *i = &p->islands[k];
        const struct prices_island *price = prices_of(p->opt.prices, i->name);
        double n = (double)i->n;
        double zones = fmin(price->zones, n);
        double bytes = 2 * (n - 1) / n * gradient_bytes(p) * (p->inside.cut.sharded ? 1.5 : 1);

        p->nat_money += price->nat_hour * 24;
        if (zones < 2)
            continue;
        p->zone_bytes += zones * bytes * p->steps_per_day;
        p->zone_money += zones * bytes * p->steps_per_day / GB * fmax(price->cross_zone, 0);
    }
}

/* The edges, and what a day costs. Everything else is there by now. */
static void count_money(struct plan *p)
{
    const struct prices *prices = p->opt.prices;
    double gpus = (double)p->matrix->n * p->opt.gpus;
    double gb = 0;
    double dearest = 0;

    count_edges(p);
    count_zones(p);
    for (size_t i = 0; i < p->matrix->n; i++)
        p->gpu_money += prices_of(prices, island_of(p, i))->gpu_hour * 24 * p->opt.gpus;
    p->flat_money = flat_money(p);
    /* In one place no exchange is waited for, so fewer hours give as many tokens. */
    if (prices->one_place[0] != '\0')
        p->one_place_money =
            prices->one_place_gpu_hour * 24 * gpus * p->steps_per_day * p->inside.step / DAY;
    for (size_t i = 0; i < p->n_edges; i++) {
        gb += p->edges[i].bytes_per_day * MONTH / GB;
        dearest = fmax(dearest, prices_per_gb(prices, island_of(p, p->edges[i].from)));
    }
    for (size_t i = 0; i < prices->n_lines; i++) {
        p->lines[i].break_even_gb = prices_break_even(&prices->lines[i], dearest);
        p->lines[i].money_per_month = prices->lines[i].month + gb * prices->lines[i].gb;
    }
}

/* ---- islands ------------------------------------------------------------------------------- */

static struct plan_island *find_island(struct plan *p, const char *name)
{
    for (size_t i = 0; i < p->n_islands; i++)
        if (strcmp(p->islands[i].name, name) == 0)
            return &p->islands[i];
    return NULL;
}

/* Lists the islands in the order of their first nodes, and the nodes island by island. */
static void list_islands(struct plan *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->matrix->n; i++)
        if (!find_island(p, p->matrix->nodes[i].island))
            memcpy(p->islands[p->n_islands++].name, p->matrix->nodes[i].island, NAME_MAX_LEN + 1);
    for (size_t k = 0; k < p->n_islands; k++) {
        p->islands[k].first = n;
        for (size_t i = 0; i < p->matrix->n; i++)
            if (strcmp(p->matrix->nodes[i].island, p->islands[k].name) == 0)
                p->members[n++] = i;
        p->islands[k].n = n - p->islands[k].first;
    }
}

/* The node with the best rate to its worst neighbour outside leads. */
static size_t choose_leader(const struct plan *p, const struct plan_island *island)
{
    size_t leader = p->members[island->first];
    double best = -1;

    for (size_t k = 0; k < island->n; k++) {
        size_t node = p->members[island->first + k];
        double worst = INFINITY;

        for (size_t i = 0; i < p->matrix->n; i++)
            if (!is_inside(p->matrix, node, i))
                worst = fmin(worst, matrix_link(p->matrix, node, i)->one_bps);
        if (worst > best) {
            best = worst;
            leader = node;
        }
    }
    return leader;
}

/* Puts @nodes in the order of the best ring for @bytes. */
static int order_nodes(const struct plan *p, size_t *nodes, size_t n, double bytes)
{
    _cleanup_(freep) double *costs = calloc(n * n + 1, sizeof(*costs));
    _cleanup_(freep) size_t *order = calloc(n + 1, sizeof(*order));
    _cleanup_(freep) size_t *old = calloc(n + 1, sizeof(*old));

    if (!costs || !order || !old)
        return -ENOMEM;
    memcpy(old, nodes, n * sizeof(*old));
    sync_costs(p->matrix, nodes, n, bytes / (double)n, p->opt.transport, costs);
    ring_order(costs, n, order);
    for (size_t i = 0; i < n; i++)
        nodes[i] = old[order[i]];
    return 0;
}

/* @all: the nodes as they are numbered. */
static int make_tree(struct plan *p, const size_t *all, double bytes)
{
    size_t n = p->matrix->n;
    _cleanup_(freep) double *costs = calloc(n * n + 1, sizeof(*costs));

    if (!costs)
        return -ENOMEM;
    sync_costs(p->matrix, all, n, bytes, p->opt.transport, costs);
    ring_tree(costs, n, p->parent);
    return 0;
}

/* Islands, their rings and leaders, and the ring and tree of all nodes. */
static int group(struct plan *p)
{
    double bytes = gradient_bytes(p);
    int r;

    list_islands(p);
    for (size_t i = 0; i < p->matrix->n; i++)
        p->ring[i] = i;
    r = make_tree(p, p->ring, bytes);
    for (size_t k = 0; r == 0 && k < p->n_islands; k++) {
        struct plan_island *island = &p->islands[k];

        island->leader = choose_leader(p, island);
        p->leaders[k] = island->leader;
        r = order_nodes(p, p->members + island->first, island->n, bytes);
    }
    if (r == 0)
        r = order_nodes(p, p->leaders, p->n_islands, bytes);
    return r == 0 ? order_nodes(p, p->ring, p->matrix->n, bytes) : r;
}

/* ---- inside an island ---------------------------------------------------------------------- */

/* Bytes per second between two machines of an island, as given or as the slowest was measured. */
static double fabric(const struct plan *p)
{
    double least = INFINITY;

    if (p->opt.fabric_bps > 0)
        return p->opt.fabric_bps / 8;
    for (size_t a = 0; a < p->matrix->n; a++)
        for (size_t b = 0; b < p->matrix->n; b++)
            if (a != b && is_inside(p->matrix, a, b))
                least = fmin(least, sync_rate(p->matrix, a, b, p->opt.transport));
    return isfinite(least) ? least : p->opt.gpu->link;
}

/* Can all islands be cut so? Fills in the degrees of data. */
static bool divides(const struct plan *p, struct model_cut *c)
{
    unsigned group = c->tensor * c->pipeline * c->sequence;
    unsigned gpus = p->opt.gpus;

    c->replicas = 0;
    c->data = 0;
    for (size_t k = 0; k < p->n_islands; k++) {
        unsigned have = (unsigned)p->islands[k].n * gpus;

        if (have % group != 0)
            return false;
        c->replicas += have / group;
        if (c->data == 0 || have / group < c->data)
            c->data = have / group;
    }
    if (gpus % c->tensor != 0 || c->replicas > p->opt.model.batch)
        return false;
    return c->data % c->expert == 0 && (c->expert == 1 || p->opt.model.experts % c->expert == 0);
}

static void assess(const struct plan *p, struct plan_inside *c)
{
    const struct plan_options *opt = &p->opt;
    double speed = opt->gpu->flops * opt->efficiency * (double)p->matrix->n * opt->gpus;
    const struct model_waits *w = &c->waits;

    c->memory = model_memory(&opt->model, &c->cut);
    c->fits = c->memory.total <= opt->gpu->memory;
    c->work = model_flops(&opt->model, &c->cut) / speed;
    c->waits = model_waits(&opt->model, &c->cut, opt->gpu, opt->gpus, fabric(p), c->work);
    c->step = c->work + (w->tensor + w->bubble + w->stages + w->data + w->sequence + w->expert);
}

/* What fits comes before what does not; then the faster step; else the smaller memory. */
static bool is_better(const struct plan_inside *a, const struct plan_inside *b)
{
    if (a->fits != b->fits)
        return a->fits;
    return a->fits ? a->step < b->step : a->memory.total < b->memory.total;
}

/* Keeps the better one in p->inside. */
static void try_cut(struct plan *p, struct model_cut cut)
{
    if (!divides(p, &cut))
        return;
    for (unsigned way = 0; way < 4; way++) {
        struct plan_inside c = {.cut = cut};

        c.cut.sharded = way & 1;
        c.cut.recompute = way & 2;
        assess(p, &c);
        if (p->inside.step <= 0 || is_better(&c, &p->inside))
            p->inside = c;
    }
}

/* Tries all degrees. Pipelines are looked at up to PIPELINE_MAX stages, and one layer a stage. */
static void cut_model(struct plan *p)
{
    unsigned experts = p->opt.model.experts > 1 ? p->opt.model.experts : 1;
    size_t least = SIZE_MAX; /* nodes of the smallest island */
    struct model_cut c;
    unsigned most;

    for (size_t k = 0; k < p->n_islands; k++)
        least = p->islands[k].n < least ? p->islands[k].n : least;
    most = (unsigned)least * p->opt.gpus;
    for (c.tensor = 1; c.tensor <= p->opt.gpus; c.tensor *= 2)
        for (c.sequence = 1; c.sequence <= SEQUENCE_MAX && c.tensor * c.sequence <= most;
             c.sequence *= 2)
            for (c.pipeline = 1;
                 c.pipeline <= PIPELINE_MAX && c.tensor * c.sequence * c.pipeline <= most &&
                 c.pipeline <= p->opt.model.layers;
                 c.pipeline++)
                for (c.expert = 1; c.expert <= experts && c.expert <= most; c.expert *= 2)
                    try_cut(p, c);
    if (p->inside.step <= 0) {
        /* Not even one replica a machine: fewer sequences than machines. The batch is too small. */
        p->inside.cut = (struct model_cut){1, 1, 1, 1, most, 1, true, true};
        assess(p, &p->inside);
        p->inside.fits = false;
        p->lacks_batch = true;
    }
    c = p->inside.cut;
    for (size_t k = 0; k < p->n_islands; k++)
        p->islands[k].data =
            (unsigned)p->islands[k].n * p->opt.gpus / (c.tensor * c.pipeline * c.sequence);
}

/* ---- between islands ----------------------------------------------------------------------- */

/* The slowest over all islands of a ring, or of a broadcast, inside it. */
static double inside(const struct plan *p, double bytes, bool is_ring)
{
    double slowest = 0;

    for (size_t k = 0; k < p->n_islands; k++) {
        const struct plan_island *i = &p->islands[k];
        const size_t *nodes = p->members + i->first;
        double s;

        if (p->opt.fabric_bps > 0)
            s = i->n < 2 ? 0 : (is_ring ? 2 : 1) * bytes * 8 / p->opt.fabric_bps;
        else
            s = is_ring ? sync_ring(p->matrix, nodes, i->n, bytes, p->opt.transport)
                        : sync_broadcast(p->matrix, nodes, i->n, bytes, p->opt.transport);
        slowest = fmax(slowest, s);
    }
    return slowest;
}

/* Seconds in which all nodes average @bytes, in each way. */
static void time_kinds(const struct plan *p, double bytes, double ret[static PLAN_KIND_N])
{
    enum sync_transport t = p->opt.transport;

    ret[PLAN_RING] = sync_ring(p->matrix, p->ring, p->matrix->n, bytes, t);
    ret[PLAN_TREE] = sync_tree(p->matrix, p->parent, bytes, t);
    ret[PLAN_HIERARCHICAL] = inside(p, bytes, true) + inside(p, bytes, false) +
                             sync_ring(p->matrix, p->leaders, p->n_islands, bytes, t);
}

static void time_each_step(struct plan *p)
{
    double hidden = PLAN_OVERLAP * p->inside.step;

    time_kinds(p, gradient_bytes(p), p->average_s);
    p->best = PLAN_RING;
    for (unsigned k = 0; k < PLAN_KIND_N; k++) {
        double open = fmax(0, p->average_s[k] - hidden);

        p->average_share[k] = isinf(open) ? 1 : open / (open + p->inside.step);
        if (p->average_s[k] < p->average_s[p->best])
            p->best = (enum plan_kind)k;
    }
    p->is_synchronous = p->n_islands == 1 || p->average_share[p->best] <= p->opt.share;
}

/* Bytes of a weight on the wire. A scale of four bytes stands for 256 weights of int8; top-k sends
 * a bit for each weight, which says whether it is one of the largest, and those as int8. */
#define INT8_BYTES (1 + 4 / 256.0)

static double form_bytes(enum plan_form f)
{
    static const double bytes[PLAN_FORM_N] = {
        4, 2, INT8_BYTES, 1 / 8.0 + PLAN_TOPK_SHARE * INT8_BYTES};

    return bytes[f];
}

/* Compressed vectors cannot be added on the way: each leader gets those of all others. Gloo cannot
 * add bf16 either. */
static bool is_gathered(const struct plan *p, enum plan_form f)
{
    return f == PLAN_INT8 || f == PLAN_TOPK || (f == PLAN_BF16 && p->opt.transport == SYNC_GLOO);
}

/* Bytes that each leader sends, for a vector that takes @bytes in that form. */
static double leader_bytes(const struct plan *p, enum plan_form f, double bytes)
{
    double n = (double)p->n_islands;

    return is_gathered(p, f) ? (n - 1) * bytes : 2 * (n - 1) / n * bytes;
}

/* Seconds between the leaders, after a pause, for a vector that takes @bytes in that form. */
static double between(const struct plan *p, enum plan_form f, double bytes)
{
    enum sync_transport t = p->opt.transport;
    double sent = leader_bytes(p, f, bytes);
    size_t n = p->n_islands;
    double restart = 0;

    if (n < 2)
        return 0;
    for (size_t i = 0; i < n; i++)
        restart =
            fmax(restart, sync_restart(p->matrix, p->leaders[i], p->leaders[(i + 1) % n], sent, t));
    return restart + (is_gathered(p, f) ? sync_gather(p->matrix, p->leaders, n, bytes, t)
                                        : sync_ring(p->matrix, p->leaders, n, bytes, t));
}

/* Seconds of a whole exchange of so many weights: packed, between the leaders, and back to all. */
static double time_exchange(const struct plan *p, enum plan_form f, double weights)
{
    double pack = f == PLAN_FP32 ? 0 : weights * 4 / COMPRESS_RATE;

    return between(p, f, weights * form_bytes(f)) + inside(p, weights * 4, false) + pack;
}

static void time_exchanges(struct plan *p)
{
    double weights = p->opt.model.params;
    double share = p->opt.share;

    for (unsigned f = 0; f < PLAN_FORM_N; f++) {
        struct plan_exchange *x = &p->exchange[f];

        x->bytes = leader_bytes(p, (enum plan_form)f, weights * form_bytes((enum plan_form)f));
        x->seconds = time_exchange(p, (enum plan_form)f, weights);
        x->interval = fmax(1, ceil(x->seconds * (1 - share) / (share * p->inside.step)));
        x->share = x->seconds / (x->seconds + x->interval * p->inside.step);
        x->pays = f != PLAN_FP32 && x->seconds < p->exchange[PLAN_FP32].seconds;
    }
    /* The least lossy form whose interval is known to be good, else that with the least one. */
    p->form = PLAN_FP32;
    for (unsigned f = 1; f < PLAN_FORM_N && p->exchange[p->form].interval > PLAN_INTERVAL_GOOD; f++)
        if (p->exchange[f].interval < p->exchange[p->form].interval)
            p->form = (enum plan_form)f;
}

/* Streaming DiLoCo: fragments are exchanged one after the other while the islands go on. The link
 * must carry all of them in the time of the interval. */
static void time_stream(struct plan *p)
{
    double bytes = p->opt.model.params * PLAN_FRAGMENT_BITS / 8;
    double n = fmax(1, ceil(p->opt.model.layers / PLAN_FRAGMENT_LAYERS));

    p->fragments = n;
    p->fragment_s =
        between(p, PLAN_INT8, bytes / n) + inside(p, p->opt.model.params * 4 / n, false);
    p->fragment_steps = ceil(p->fragment_s / p->inside.step);
    p->stream_interval = fmax(n, ceil(n * p->fragment_s / p->inside.step));
}

static void find_slowest(struct plan *p)
{
    double slowest = INFINITY;

    for (size_t a = 0; a < p->matrix->n; a++)
        for (size_t b = 0; b < p->matrix->n; b++) {
            double rate = matrix_link(p->matrix, a, b)->one_bps;

            if (!is_inside(p->matrix, a, b) && rate > 0 && rate < slowest) {
                slowest = rate;
                p->slow[0] = a;
                p->slow[1] = b;
            }
        }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int check_links(const struct plan *p, struct err *e)
{
    for (size_t i = 0; p->n_islands > 1 && i < p->n_islands; i++) {
        size_t a = p->leaders[i];
        size_t b = p->leaders[(i + 1) % p->n_islands];

        if (!matrix_is_measured(p->matrix, a, b))
            return err_set(e, -EINVAL,
                "%s and %s lead the islands %s and %s, and nothing was measured between them",
                p->matrix->nodes[a].name, p->matrix->nodes[b].name, island_of(p, a),
                island_of(p, b));
    }
    return 0;
}

int plan_make(
    struct plan *ret, const struct matrix *m, const struct plan_options *opt, struct err *e)
{
    struct plan p = {.matrix = m,
        .opt = *opt,
        .islands = calloc(m->n + 1, sizeof(*p.islands)),
        .members = calloc(m->n + 1, sizeof(*p.members)),
        .ring = calloc(m->n + 1, sizeof(*p.ring)),
        .parent = calloc(m->n + 1, sizeof(*p.parent)),
        .leaders = calloc(m->n + 1, sizeof(*p.leaders)),
        .edges = calloc(m->n + 1, sizeof(*p.edges))};
    int r = p.islands && p.members && p.ring && p.parent && p.leaders && p.edges ? 0 : -ENOMEM;

    if (r == 0) {
        model_guess(&p.opt.model);
        r = group(&p);
    }
    if (r == 0)
        r = check_links(&p, e);
    if (r != 0) {
        plan_deinit(&p);
        return r;
    }
    cut_model(&p);
    time_each_step(&p);
    time_exchanges(&p);
    time_stream(&p);
    for (size_t i = 0; i < opt->n_syncs; i++) {
        time_kinds(&p, opt->sync_bytes[i], p.syncs[i].kinds);
        for (unsigned f = 0; f < PLAN_FORM_N; f++)
            p.syncs[i].exchange[f] = time_exchange(&p, (enum plan_form)f, opt->sync_bytes[i] / 4);
    }
    find_slowest(&p);
    count_money(&p);
    *ret = p;
    return 0;
}
