/* bench.c - see bench.h: the figures that are calculated from the measurements. */
#include "train/survey/bench.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/file.h"
#include "plan/matrix.h"
#include "train/names/members.h"

#define SWEEP_LEAST 8ull         /* bytes of the first size */
#define SWEEP_MOST  (1ull << 30) /* bytes of the last one */

uint64_t bench_algbw(const struct bench_allreduce *a)
{
    return a->is_done && a->elapsed > 0 ? (uint64_t)((double)a->bytes * 8e9 / (double)a->elapsed)
                                        : 0;
}

uint64_t bench_busbw(const struct bench_allreduce *a, size_t n_nodes)
{
    return n_nodes < 2
               ? 0
               : (uint64_t)((double)bench_algbw(a) * 2.0 * (double)(n_nodes - 1) / (double)n_nodes);
}

uint64_t bench_rate(const struct bench *b, size_t from, size_t to)
{
    const struct preflight_pair *p;
    uint64_t one, many;

    if (from == to)
        return 0;
    p = &b->pairs[rounds_index(b->n_nodes, from < to ? from : to, from < to ? to : from)];
    if (!p->has_bulk)
        return 0;
    one = from < to ? p->one.out.bits_per_s : p->one.in.bits_per_s;
    many = from < to ? p->many.out.bits_per_s : p->many.in.bits_per_s;
    return one > many ? one : many;
}

bool bench_cost(const struct bulk *overlay, const struct bulk *raw, int *ret)
{
    double with = (double)(overlay->out.bits_per_s + overlay->in.bits_per_s);
    double without = (double)(raw->out.bits_per_s + raw->in.bits_per_s);

    if (with <= 0 || without <= 0)
        return false;
    *ret = (int)(100.0 * (without - with) / without);
    return true;
}

/* By how much less was carried, of the ways that were measured both times. */
static bool compare_bursts(
    const struct burst less[static 2], const struct burst more[static 2], int *ret)
{
    double with = 0;
    double without = 0;

    for (unsigned way = 0; way < 2; way++) {
        if (less[way].bits_per_s == 0 || more[way].bits_per_s == 0)
            continue;
        with += (double)less[way].bits_per_s;
        without += (double)more[way].bits_per_s;
    }
    if (without <= 0)
        return false;
    *ret = (int)(100.0 * (without - with) / without);
    return true;
}

bool bench_burst_cost(const struct bench_pair *p, int *ret)
{
    return compare_bursts(p->bursts, p->raw_bursts, ret);
}

bool bench_tls_cost(const struct bench_pair *p, int *ret)
{
    return compare_bursts(p->tls_bursts, p->bursts, ret);
}

bool bench_has_latency(const struct preflight_pair *p)
{
    return p->has_idle[0] && p->idle[0].back > 0;
}

bool bench_is_empty(const struct bench *b)
{
    for (size_t i = 0; i < b->n_pairs; i++)
        if (bench_has_latency(&b->pairs[i]) || b->pairs[i].has_bulk)
            return false;
    for (unsigned i = 0; i < ORDER_ALGORITHM_N; i++)
        if (b->allreduce[i].is_done || b->allreduce[i].is_wrong)
            return false;
    return b->sweep.n_sizes == 0 && !b->sweep.is_wrong;
}

size_t bench_failures(const struct bench *b)
{
    size_t n = 0;

    for (size_t from = 0; from < b->n_nodes; from++)
        for (size_t to = 0; to < b->n_nodes; to++)
            n += from != to && b->expect_bps > 0 && bench_rate(b, from, to) < b->expect_bps;
    return n;
}

const char *bench_format_rate(uint64_t bits_per_s, char buf[static 32])
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}};

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        double v = (double)bits_per_s / units[i].unit;

        if (v < 1)
            continue;
        (void)snprintf(buf, 32, v < 100 ? "%.2f %s" : "%.0f %s", v, units[i].name);
        return buf;
    }
    (void)snprintf(buf, 32, "%llu bit/s", (unsigned long long)bits_per_s);
    return buf;
}

json_t *bench_summarise(const struct bench *b)
{
    _cleanup_(freep) uint64_t *rates = calloc(b->n_nodes * b->n_nodes + 1, sizeof(*rates));
    json_t *json = NULL;
    size_t n = 0;

    for (size_t from = 0; rates && from < b->n_nodes; from++)
        for (size_t to = 0; to < b->n_nodes; to++)
            if (bench_rate(b, from, to) > 0)
                rates[n++] = bench_rate(b, from, to);
    if (rates) {
        qsort(rates, n, sizeof(*rates), preflight_compare_rates);
        json = json_pack("{s:I, s:s, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I}", "time",
            (json_int_t)(b->measured_at / NSEC_PER_SEC), "network", b->network, "members",
            (json_int_t)b->n_nodes, "seconds", (double)b->elapsed / NSEC_PER_SEC,
            "slowestBitsPerSecond", (json_int_t)(n > 0 ? rates[0] : 0), "medianBitsPerSecond",
            (json_int_t)(n > 0 ? rates[n / 2] : 0), "fastestBitsPerSecond",
            (json_int_t)(n > 0 ? rates[n - 1] : 0), "ringBusBitsPerSecond",
            (json_int_t)bench_busbw(&b->allreduce[ORDER_RING], b->n_nodes), "treeBusBitsPerSecond",
            (json_int_t)bench_busbw(&b->allreduce[ORDER_TREE], b->n_nodes), "failures",
            (json_int_t)bench_failures(b));
    }
    return json;
}

/* ==== summaries of earlier benchmarks ======================================================== */

#define FILE_NAME "bench.jsonl"

static int make_path(const char *state_dir, char path[static PATH_MAX], struct err *e)
{
    if ((size_t)snprintf(path, PATH_MAX, "%s/%s", state_dir, FILE_NAME) >= PATH_MAX)
        return err_set(e, -ENAMETOOLONG, "the path \"%.40s...\" is too long", state_dir);
    return 0;
}

/* Reads the whole file; *@ret is "" when there is no file. The caller frees it. */
static int read_all(const char *path, char **ret, struct err *e)
{
    int r = statefile_read(path, 2 * BENCH_HISTORY_MAX, ret, NULL, e);

    if (r != STATEFILE_E_ABSENT)
        return r;
    *ret = calloc(1, 1);
    return *ret ? 0 : -ENOMEM;
}

/* Returns the part of the text that is kept: all of it or, when the file has grown too long, the
 * newer half from its first whole line on. */
static const char *kept_part(const char *text)
{
    size_t len = strlen(text);
    const char *line;

    if (len < BENCH_HISTORY_MAX)
        return text;
    line = strchr(text + len / 2, '\n');
    return line ? line + 1 : text + len;
}

int bench_history_add(const char *state_dir, const json_t *summary, struct err *e)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    _cleanup_(freep) char *line = json_dumps(summary, JSON_COMPACT);
    _cleanup_(freep) char *text = NULL;
    char path[PATH_MAX];
    int r = make_path(state_dir, path, e);

    if (r == 0)
        r = read_all(path, &text, e);
    if (r < 0)
        return r;
    str_add(&out, kept_part(text));
    if (out.len > 0 && out.text[out.len - 1] != '\n')
        str_add(&out, "\n");
    str_add(&out, line ? line : "");
    str_add(&out, "\n");
    if (!line || out.failed)
        return err_set(e, -ENOMEM, "no memory for the history");
    return statefile_replace(path, str_text(&out), out.len, 0600, e);
}

int bench_history_encode(const char *state_dir, json_t **ret, struct err *e)
{
    _cleanup_(freep) char *text = NULL;
    char path[PATH_MAX];
    json_t *runs;
    int r = make_path(state_dir, path, e);

    if (r == 0)
        r = read_all(path, &text, e);
    if (r < 0)
        return r;
    runs = json_array();
    for (const char *line = text; runs && *line != '\0';) {
        size_t len = strcspn(line, "\n");
        json_t *run = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);

        /* A damaged line is left out, so that the runs on the other lines can still be seen. */
        if (json_is_object(run))
            (void)json_array_append(runs, run);
        json_decref(run);
        line += len + (line[len] == '\n');
    }
    *ret = json_pack("{s:o}", "runs", runs);
    return *ret ? 0 : err_set(e, -ENOMEM, "no memory for the history");
}

static uint64_t number_of(const json_t *run, const char *field)
{
    json_int_t v = json_integer_value(json_object_get(run, field));

    return v < 0 ? 0 : (uint64_t)v;
}

static void format_run(const json_t *run, struct str *out)
{
    static const char *const rates[] = {"slowestBitsPerSecond", "medianBitsPerSecond",
        "fastestBitsPerSecond", "ringBusBitsPerSecond", "treeBusBitsPerSecond"};
    const char *network = json_string_value(json_object_get(run, "network"));
    time_t when = (time_t)number_of(run, "time");
    struct tm tm = {0};
    char text[32] = "";

    if (gmtime_r(&when, &tm))
        (void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
    str_addf(out, "%-20s %-12.12s %7llu", text, network ? network : "?",
        (unsigned long long)number_of(run, "members"));
    for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
        str_addf(out, " %13s",
            number_of(run, rates[i]) > 0 ? bench_format_rate(number_of(run, rates[i]), text) : "-");
    str_add(out, "\n");
}

int bench_history_format(const char *state_dir, struct str *out, struct err *e)
{
    json_auto_t *history = NULL;
    const json_t *run;
    size_t i;
    int r = bench_history_encode(state_dir, &history, e);

    if (r < 0)
        return r;
    str_addf(out, "%-20s %-12s %7s %13s %13s %13s %13s %13s\n", "UTC", "NETWORK", "MEMBERS",
        "SLOWEST", "MEDIAN", "FASTEST", "RING BUSBW", "TREE BUSBW");
    json_array_foreach(json_object_get(history, "runs"), i, run)
        format_run(run, out);
    return 0;
}

/* ==== the measuring ========================================================================== */

#define ASK_TIME        (5 * NSEC_PER_SEC) /* to wait for answers, besides the measuring */
#define ALLREDUCE_TIME  NSEC_PER_SEC       /* the repeats together should take about so long */
#define ALLREDUCE_LIMIT 20000              /* ms; the repeats together take no longer */
#define REPEATS_MAX     50

/* What bench_run() works with. */
struct bench_work {
    struct survey *s;               /* borrowed */
    const struct survey_plan *plan; /* borrowed */
    struct bench_pair *more;        /* borrowed; by pair; the results go there */
    bool many;                      /* of the underlay: several streams, and not one */
    bool is_sample;                 /* of bursts: short ones */
    bool *has_port;                 /* owns; by member: has it opened a port on the underlay? */
    bool *measured;                 /* owns; by pair: was there a result in this round? */
    struct order *orders;           /* owns; by pair; of this round */
    struct bulk *results;           /* owns; by pair; of this round */
    struct burst *bursts;           /* owns; the same of bursts */
};

/* ---- rounds -------------------------------------------------------------------------------- */

/* Fills in the order of one pair, unless that pair is not to be measured. */
typedef void (*order_fn)(struct bench_work *w, size_t pair, enum order_direction way);

/* Takes in the result of one pair. */
typedef void (*take_fn)(struct bench_work *w, size_t pair);

/* Measures all pairs in one direction, round by round. */
static void ask_all(struct bench_work *w, enum order_direction way, order_fn order, take_fn take)
{
    _cleanup_(freep) struct rounds_pair *pairs = calloc(w->s->n_nodes / 2 + 1, sizeof(*pairs));

    for (size_t round = 0; pairs && round < survey_rounds(w->s, w->plan); round++) {
        size_t n = survey_round(w->s, w->plan, round, pairs);

        memset(w->orders, 0, w->s->n_pairs * sizeof(*w->orders));
        for (size_t i = 0; i < n; i++)
            order(w, rounds_index(w->s->n_nodes, pairs[i].a, pairs[i].b), way);
        survey_ask_bulk(w->s, w->orders, w->results, w->measured);
        for (size_t i = 0; i < w->s->n_pairs; i++)
            if (w->measured[i])
                take(w, i);
    }
}

static void order_overlay(struct bench_work *w, size_t pair, enum order_direction way)
{
    const struct preflight_pair *p = &w->s->pairs[pair];

    if (p->has_bulk)
        w->orders[pair] = survey_bulk_order(w->plan, p, w->plan->streams, way);
}

static void take_both(struct bench_work *w, size_t pair)
{
    w->more[pair].both = w->results[pair];
    w->more[pair].has_both = w->results[pair].why[0] == '\0';
}

/* ---- the underlay -------------------------------------------------------------------------- */

static void order_raw(struct bench_work *w, size_t pair, enum order_direction way)
{
    const struct preflight_pair *p = &w->s->pairs[pair];

    if (!p->has_bulk || !w->has_port[p->b] || (w->many && !w->more[pair].has_raw))
        return;
    w->orders[pair] = survey_bulk_order(w->plan, p, w->many ? w->plan->streams : 1, way);
    w->orders[pair].underlay = true;
}

static void take_raw(struct bench_work *w, size_t pair)
{
    struct bench_pair *more = &w->more[pair];
    struct bulk *to = w->many ? &more->raw_many : &more->raw_one;
    const struct bulk *result = &w->results[pair];

    if (result->why[0] != '\0') {
        memcpy(more->raw_why, result->why, sizeof(more->raw_why));
        return;
    }
    more->has_raw = true;
    if (result->out.bits_per_s > 0)
        to->out = result->out;
    if (result->in.bits_per_s > 0)
        to->in = result->in;
    memcpy(to->via, result->via, sizeof(to->via));
}

/* Has each member open a port on the underlay, which stays open during this session. */
static void open_ports(struct bench_work *w)
{
    static const struct order ask = {.kind = ORDER_UNDERLAY};
    _cleanup_(freep) const struct order **orders = calloc(w->s->n_nodes + 1, sizeof(*orders));

    for (size_t i = 0; orders && i < w->s->n_nodes; i++)
        orders[i] = coordinator_has(&w->s->coordinator, i) ? &ask : NULL;
    if (orders)
        coordinator_ask(&w->s->coordinator, orders, clock_now() + ASK_TIME);
    for (size_t i = 0; i < w->s->n_nodes; i++) {
        const json_t *answer = w->s->coordinator.items[i].answer;

        w->has_port[i] = json_is_integer(json_object_get(answer, "port"));
    }
}

/* ---- bursts -------------------------------------------------------------------------------- */

/* Long enough for a rate, and short enough for others on the line. */
#define BURST_MS    100
#define BURST_BYTES (64u << 20)
/* The same of a sample, which nobody is waiting for. */
#define SAMPLE_MS    50
#define SAMPLE_BYTES (1u << 20)

enum burst_kind {
    BURST_TUNNEL,
    BURST_RAW, /* beside it */
    BURST_TLS, /* in the tunnel, encrypted first */
    BURST_KIND_N,
};

static void take_burst(struct bench_work *w, size_t pair, bool from_b, enum burst_kind kind)
{
    struct bench_pair *more = &w->more[pair];
    struct burst *to[] = {[BURST_TUNNEL] = &more->bursts[from_b],
        [BURST_RAW] = &more->raw_bursts[from_b],
        [BURST_TLS] = &more->tls_bursts[from_b]};
    const struct burst *b = &w->bursts[pair];

    if (b->why[0] == '\0')
        *to[kind] = *b;
    else if (kind == BURST_RAW)
        memcpy(more->burst_why, b->why, sizeof(more->burst_why));
}

/* Of pairs whose throughput was measured, or of a sample, both ways, one way after the other. */
static void ask_bursts(struct bench_work *w, enum burst_kind kind)
{
    _cleanup_(freep) struct rounds_pair *pairs = calloc(w->s->n_nodes / 2 + 1, sizeof(*pairs));

    for (size_t i = 0; pairs && i < 2 * survey_rounds(w->s, w->plan); i++) {
        size_t n = survey_round(w->s, w->plan, i / 2, pairs);
        bool from_b = i % 2 == 1;

        memset(w->orders, 0, w->s->n_pairs * sizeof(*w->orders));
        for (size_t k = 0; k < n; k++) {
            size_t pair = rounds_index(w->s->n_nodes, pairs[k].a, pairs[k].b);

            if (w->is_sample || w->s->pairs[pair].has_bulk)
                w->orders[pair] = (struct order){.kind = ORDER_BURST,
                    .ms = w->is_sample ? SAMPLE_MS : BURST_MS,
                    .bytes = w->is_sample ? SAMPLE_BYTES : BURST_BYTES,
                    .underlay = kind == BURST_RAW,
                    .tls = kind == BURST_TLS};
        }
        survey_ask_bursts(w->s, w->orders, from_b, w->bursts, w->measured);
        for (size_t pair = 0; pair < w->s->n_pairs; pair++)
            if (w->measured[pair])
                take_burst(w, pair, from_b, kind);
    }
}

/* ---- all-reduce ---------------------------------------------------------------------------- */

/*
 * Has all members take part in one all-reduce at the same time. The time is that of the slowest
 * member, and if any member fails, the whole all-reduce counts as failed.
 */
static void allreduce_once(struct survey *s, const struct ip_addr *addrs, size_t n,
    const size_t *members, const struct order *like, struct bench_allreduce *ret)
{
    _cleanup_(freep) struct order *own = calloc(s->n_nodes + 1, sizeof(*own));
    _cleanup_(freep) const struct order **orders = calloc(s->n_nodes + 1, sizeof(*orders));

    ret->is_done = false;
    if (!own || !orders)
        return;
    for (size_t rank = 0; rank < n; rank++) {
        struct order *o = &own[members[rank]];

        *o = *like;
        o->addrs = (struct ip_addr *)addrs;
        o->n_addrs = n;
        o->rank = (uint32_t)rank;
        orders[members[rank]] = o;
    }
    coordinator_ask(
        &s->coordinator, orders, clock_now() + ALLREDUCE_LIMIT * NSEC_PER_MSEC + ASK_TIME);
    ret->elapsed = 0;
    ret->is_done = true;
    for (size_t rank = 0; rank < n && ret->is_done; rank++) {
        const struct coordinator_link *k = &s->coordinator.items[members[rank]];
        struct allreduce rd = {0};
        bool has_ended =
            k->answer && allreduce_decode(&rd, k->answer, NULL) == 0 && rd.why[0] == '\0';

        ret->is_done = has_ended && rd.correct;
        ret->is_wrong = has_ended && !rd.correct;
        if (!ret->is_done)
            (void)snprintf(ret->why, sizeof(ret->why), "%.60s: %.90s", s->nodes[members[rank]].name,
                rd.why[0]   ? rd.why
                : k->answer ? "its sums are wrong"
                            : k->why);
        ret->repeats = rd.repeats;
        ret->elapsed = rd.elapsed > ret->elapsed ? rd.elapsed : ret->elapsed;
    }
}

/* Runs the all-reduce once to see how long it takes, and then repeats it as often as fits into
 * ALLREDUCE_TIME, at least once and at most REPEATS_MAX times. */
static void measure_allreduce(
    struct survey *s, uint64_t bytes, enum order_algorithm algorithm, struct bench_allreduce *ret)
{
    _cleanup_(freep) struct ip_addr *addrs = calloc(s->n_nodes + 1, sizeof(*addrs));
    _cleanup_(freep) size_t *members = calloc(s->n_nodes + 1, sizeof(*members));
    struct order like = {.kind = ORDER_ALLREDUCE,
        .bytes = bytes,
        .repeats = 1,
        .ms = ALLREDUCE_LIMIT,
        .algorithm = algorithm};
    nsec_t fits;
    size_t n = 0;

    ret->bytes = bytes;
    for (size_t i = 0; addrs && members && i < s->n_nodes; i++) {
        if (!coordinator_has(&s->coordinator, i))
            continue;
        addrs[n] = s->nodes[i].address;
        members[n++] = i;
    }
    if (n < s->n_nodes) {
        (void)snprintf(ret->why, sizeof(ret->why), "%zu of %zu members are there", n, s->n_nodes);
        return;
    }
    allreduce_once(s, addrs, n, members, &like, ret);
    if (!ret->is_done || ret->elapsed <= 0)
        return;
    fits = ALLREDUCE_TIME / ret->elapsed;
    like.repeats = (uint32_t)nsec_max(nsec_min(fits, REPEATS_MAX), 1);
    allreduce_once(s, addrs, n, members, &like, ret);
}

/* ---- a sweep ------------------------------------------------------------------------------- */

/* Factor from one size of a sweep to the next: ten sizes. */
#define SWEEP_FACTOR 8

/* A size that would take longer is left out, s: the smaller ones have shown the rate by then. */
#define SWEEP_LIMIT_S 5

void bench_sweep(struct survey *s, struct sweep *ret)
{
    nsec_t first = 0;
    nsec_t next;

    ret->is_done = true;
    for (uint64_t bytes = SWEEP_LEAST; bytes <= SWEEP_MOST; bytes *= SWEEP_FACTOR) {
        struct bench_allreduce a = {.bytes = 0};
        struct nccl_tests_size *size = &ret->sizes[ret->n_sizes];

        measure_allreduce(s, bytes, ORDER_RING, &a);
        if (!a.is_done) {
            (void)snprintf(ret->why, sizeof(ret->why), "%s", a.why);
            ret->is_wrong = a.is_wrong;
            return;
        }
        *size = (struct nccl_tests_size){.bytes = bytes,
            .us = (double)a.elapsed / 1000,
            .algbw = (double)bench_algbw(&a) / 8e9,
            .busbw = (double)bench_busbw(&a, s->n_nodes) / 8e9};
        ret->n_sizes++;
        /* What the first one takes is latency; the rest grows with the bytes. */
        first = first > 0 ? first : a.elapsed;
        next = first + (a.elapsed - first) * SWEEP_FACTOR;
        if (bytes < SWEEP_MOST && next > SWEEP_LIMIT_S * NSEC_PER_SEC) {
            (void)snprintf(
                ret->why, sizeof(ret->why), "it would take more than %d s", SWEEP_LIMIT_S);
            return;
        }
    }
}

/* ---- all of it ----------------------------------------------------------------------------- */

int bench_run(struct survey *s, const struct survey_plan *plan, bool underlay,
    uint64_t allreduce_bytes, struct bench_pair *more,
    struct bench_allreduce allreduce[static ORDER_ALGORITHM_N])
{
    struct bench_work w = {.s = s,
        .plan = plan,
        .more = more,
        .has_port = calloc(s->n_nodes + 1, sizeof(*w.has_port)),
        .measured = calloc(s->n_pairs + 1, sizeof(*w.measured)),
        .orders = calloc(s->n_pairs + 1, sizeof(*w.orders)),
        .results = calloc(s->n_pairs + 1, sizeof(*w.results)),
        .bursts = calloc(s->n_pairs + 1, sizeof(*w.bursts))};
    int r = w.has_port && w.measured && w.orders && w.results && w.bursts ? 0 : -ENOMEM;

    if (r == 0) {
        ask_all(&w, ORDER_BOTH, order_overlay, take_both);
        if (underlay)
            open_ports(&w);
        for (unsigned i = 0; underlay && i < (plan->streams > 1 ? 4 : 2); i++) {
            w.many = i >= 2;
            ask_all(&w, i % 2 == 0 ? ORDER_OUT : ORDER_IN, order_raw, take_raw);
        }
        for (unsigned i = 0; underlay && i < BURST_KIND_N; i++)
            ask_bursts(&w, (enum burst_kind)i);
        for (unsigned i = 0; allreduce_bytes > 0 && i < ORDER_ALGORITHM_N; i++)
            measure_allreduce(s, allreduce_bytes, (enum order_algorithm)i, &allreduce[i]);
    }
    free(w.has_port);
    free(w.measured);
    free(w.orders);
    free(w.results);
    free(w.bursts);
    return r;
}

int bench_sample(struct survey *s, const struct survey_plan *plan, struct bench_pair *more)
{
    struct bench_work w = {.s = s,
        .plan = plan,
        .more = more,
        .is_sample = true,
        .measured = calloc(s->n_pairs + 1, sizeof(*w.measured)),
        .orders = calloc(s->n_pairs + 1, sizeof(*w.orders)),
        .bursts = calloc(s->n_pairs + 1, sizeof(*w.bursts))};
    int r = w.measured && w.orders && w.bursts ? 0 : -ENOMEM;

    for (unsigned i = 0; r == 0 && i < BURST_KIND_N; i++)
        ask_bursts(&w, (enum burst_kind)i);
    free(w.measured);
    free(w.orders);
    free(w.bursts);
    return r;
}

int bench_trains(struct survey *s, uint64_t known, struct bench_trains *ret)
{
    _cleanup_(freep) bool *measured = calloc(s->n_pairs + 1, sizeof(*measured));
    _cleanup_(freep) struct order *orders = calloc(s->n_pairs + 1, sizeof(*orders));
    _cleanup_(freep) struct burst *bursts = calloc(s->n_pairs + 1, sizeof(*bursts));
    struct train_step step;

    *ret = (struct bench_trains){.why = ""};
    if (!measured || !orders || !bursts)
        return -ENOMEM;
    train_plan_begin(&ret->plan, known);
    while (ret->why[0] == '\0' && train_plan_next(&ret->plan, &step)) {
        orders[0] = (struct order){.kind = ORDER_BURST,
            .ms = step.ms,
            .bytes = step.bytes,
            .underlay = true,
            .is_paced = true,
            .bits_per_s = step.bits_per_s,
            .at_once = step.at_once};
        survey_ask_bursts(s, orders, false, bursts, measured);
        if (!measured[0])
            (void)snprintf(ret->why, sizeof(ret->why), "%.150s",
                s->nodes[1].why[0] ? s->nodes[1].why : "it does not take part any more");
        else if (bursts[0].why[0])
            memcpy(ret->why, bursts[0].why, sizeof(ret->why));
        else
            train_plan_take(&ret->plan, &bursts[0].train);
    }
    if (ret->why[0] == '\0' && ret->plan.bits_per_s == 0)
        (void)snprintf(ret->why, sizeof(ret->why),
            "no train came evenly, or its agent is of an earlier version");
    return 0;
}

static uint32_t kbit(const struct burst *b)
{
    uint64_t rate = b->bits_per_s / 1000;

    return rate < DAILY_KBIT_MAX ? (uint32_t)rate : DAILY_KBIT_MAX;
}

static uint32_t rtt_of(const struct burst b[static 2])
{
    return b[0].rtt_median_us > 0 ? b[0].rtt_median_us : b[1].rtt_median_us;
}

struct daily_sample bench_daily(const struct bench_pair *p, int32_t day)
{
    return (struct daily_sample){.day = day,
        .tunnel_kbit = {kbit(&p->bursts[0]), kbit(&p->bursts[1])},
        .raw_kbit = {kbit(&p->raw_bursts[0]), kbit(&p->raw_bursts[1])},
        .tls_kbit = {kbit(&p->tls_bursts[0]), kbit(&p->tls_bursts[1])},
        .tunnel_rtt_us = rtt_of(p->bursts),
        .raw_rtt_us = rtt_of(p->raw_bursts)};
}

int bench_matrix(const struct survey *s, const struct bench_pair *more, struct matrix *ret)
{
    struct matrix m = MATRIX_NULL;
    int r = survey_matrix(s, &m);

    for (size_t i = 0; r == 0 && i < s->n_pairs; i++) {
        const struct preflight_pair *p = &s->pairs[i];

        if (!more[i].has_both)
            continue;
        m.links[p->a * m.n + p->b].both_bps = (double)more[i].both.out.bits_per_s;
        m.links[p->b * m.n + p->a].both_bps = (double)more[i].both.in.bits_per_s;
    }
    if (r == 0)
        *ret = m;
    return r;
}
