/* bench_text.c - a benchmark as JSON and for people; see bench.h. */

#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "train/survey/bench.h"

#define PAIRS_SHOWN 40 /* with more pairs the table would be too long to read */

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *encode_raw(const struct preflight_pair *p, const struct bench_pair *more)
{
    json_t *json;
    int cost;

    if (!more->has_raw)
        return more->raw_why[0] ? json_pack("{s:s}", "why", more->raw_why) : json_null();
    json = json_pack("{s:s, s:o, s:o}", "via", more->raw_one.via, "oneStream",
        preflight_encode_rates(true, &more->raw_one), "streams",
        preflight_encode_rates(true, &more->raw_many));
    if (json && bench_cost(&p->one, &more->raw_one, &cost))
        (void)json_object_set_new(json, "oneStreamCostPercent", json_integer(cost));
    if (json && bench_cost(&p->many, &more->raw_many, &cost))
        (void)json_object_set_new(json, "streamsCostPercent", json_integer(cost));
    return json;
}

/* Both ways of a burst, the first from the pair's first node; null: none was measured. */
static json_t *encode_both(const struct burst b[static 2])
{
    uint32_t rtt_us = b[0].rtt_median_us > 0 ? b[0].rtt_median_us : b[1].rtt_median_us;

    if (b[0].bits_per_s == 0 && b[1].bits_per_s == 0)
        return json_null();
    return json_pack("{s:I, s:I, s:I}", "outBitsPerSecond", (json_int_t)b[0].bits_per_s,
        "inBitsPerSecond", (json_int_t)b[1].bits_per_s, "rttMedianUs", (json_int_t)rtt_us);
}

static json_t *encode_bursts(const struct bench_pair *more)
{
    const struct burst *any = more->bursts[0].bits_per_s > 0 ? &more->bursts[0] : &more->bursts[1];
    const struct burst *raw =
        more->raw_bursts[0].bits_per_s > 0 ? &more->raw_bursts[0] : &more->raw_bursts[1];
    json_t *json;
    int cost;

    if (any->bits_per_s == 0)
        return json_null();
    json = json_pack("{s:I, s:o, s:o, s:o, s:s, s:s}", "datagramBytes", (json_int_t)any->size,
        "tunnel", encode_both(more->bursts), "raw", encode_both(more->raw_bursts), "tls",
        encode_both(more->tls_bursts), "via", raw->via, "why", more->burst_why);
    if (json && bench_burst_cost(more, &cost))
        (void)json_object_set_new(json, "costPercent", json_integer(cost));
    if (json && bench_tls_cost(more, &cost))
        (void)json_object_set_new(json, "tlsCostPercent", json_integer(cost));
    return json;
}

static json_t *encode_pair(const struct bench *b, size_t index)
{
    const struct preflight_pair *p = &b->pairs[index];
    const struct bench_pair *more = &b->more[index];
    const struct idle_test *l = &p->idle[0];

    return json_pack("{s:[s,s], s:s, s:i, s:i, s:i, s:b, s:[s,s], s:o, s:o, s:o, s:o, s:o}",
        "nodes", b->nodes[p->a].name, b->nodes[p->b].name, "path", l->path, "rttMinUs",
        (int)l->rtt_min_us, "rttMedianUs", (int)l->rtt_median_us, "rttP99Us", (int)l->rtt_p99_us,
        "tcpRestarts", (int)preflight_restarts(p, &b->nodes[p->a], &b->nodes[p->b]), "congestion",
        p->idle[0].congestion, p->idle[1].congestion, "oneStream",
        preflight_encode_rates(p->has_bulk, &p->one), "streams",
        preflight_encode_rates(p->has_bulk, &p->many), "bothWays",
        preflight_encode_rates(more->has_both, &more->both), "underlay", encode_raw(p, more),
        "bursts", encode_bursts(more));
}

static json_t *encode_allreduce(const struct bench *b, enum order_algorithm i)
{
    const struct bench_allreduce *a = &b->allreduce[i];

    if (a->bytes == 0)
        return json_null();
    return json_pack("{s:b, s:I, s:i, s:I, s:I, s:I, s:s}", "done", (int)a->is_done, "bytes",
        (json_int_t)a->bytes, "repeats", (int)a->repeats, "elapsedNs", (json_int_t)a->elapsed,
        "algBitsPerSecond", (json_int_t)bench_algbw(a), "busBitsPerSecond",
        (json_int_t)bench_busbw(a, b->n_nodes), "why", a->why);
}

json_t *bench_encode(const struct bench *b)
{
    json_t *pairs = json_array();
    json_t *nodes = json_array();

    for (size_t i = 0; i < b->n_pairs; i++)
        (void)json_array_append_new(pairs, encode_pair(b, i));
    for (size_t i = 0; i < b->n_nodes; i++)
        (void)json_array_append_new(nodes, json_string(b->nodes[i].name));
    return json_pack("{s:o, s:o, s:i, s:I, s:{s:o, s:o}, s:o, s:o}", "nodes", nodes, "pairs", pairs,
        "streamsPerTransfer", (int)b->streams, "expectBitsPerSecond", (json_int_t)b->expect_bps,
        "allReduce", "ring", encode_allreduce(b, ORDER_RING), "tree",
        encode_allreduce(b, ORDER_TREE), "sweep", sweep_encode(&b->sweep), "summary",
        bench_summarise(b));
}

/* ---- for people ---------------------------------------------------------------------------- */

/* Or "-" for what was not measured. Returns @buf, or that. */
static const char *format_known(uint64_t bits_per_s, char buf[static 32])
{
    return bits_per_s > 0 ? bench_format_rate(bits_per_s, buf) : "-";
}

static void add_rate(struct str *out, uint64_t bits_per_s)
{
    char text[32];

    str_addf(out, " %13s", format_known(bits_per_s, text));
}

static void add_line(
    struct str *out, const char *what, const struct bulk *overlay, const struct bulk *raw)
{
    int cost;

    str_addf(out, "  %-22s", what);
    add_rate(out, overlay->out.bits_per_s);
    add_rate(out, overlay->in.bits_per_s);
    if (raw) {
        add_rate(out, raw->out.bits_per_s);
        add_rate(out, raw->in.bits_per_s);
        if (bench_cost(overlay, raw, &cost))
            str_addf(out, "  %d %%", cost);
    }
    str_add(out, "\n");
}

static bool has_bursts(const struct bench_pair *more)
{
    return more->bursts[0].bits_per_s > 0 || more->bursts[1].bits_per_s > 0;
}

/* What the tunnel does to datagrams, beside what the line does to the same. */
static void format_bursts(const struct bench_pair *more, struct str *out)
{
    const struct burst *with = more->bursts;
    const struct burst *raw = more->raw_bursts;
    bool has_raw = raw[0].bits_per_s > 0 || raw[1].bits_per_s > 0;
    char there[32];
    char back[32];
    int cost;

    if (!has_bursts(more))
        return;
    str_addf(out, "  %-22s", "UDP, bursts");
    add_rate(out, with[0].bits_per_s);
    add_rate(out, with[1].bits_per_s);
    if (has_raw) {
        add_rate(out, raw[0].bits_per_s);
        add_rate(out, raw[1].bits_per_s);
        if (bench_burst_cost(more, &cost))
            str_addf(out, "  %d %%", cost);
    }
    str_add(out, "\n");
    if (has_raw && with[0].rtt_median_us > 0 && raw[0].rtt_median_us > 0)
        str_addf(out, "  RTT of datagrams: %.3f ms in the tunnel, %.3f ms beside it\n",
            with[0].rtt_median_us / 1000.0, raw[0].rtt_median_us / 1000.0);
    if (bench_tls_cost(more, &cost))
        str_addf(out, "  with TLS in the tunnel: %s there, %s back, %d %% less\n",
            format_known(more->tls_bursts[0].bits_per_s, there),
            format_known(more->tls_bursts[1].bits_per_s, back), cost);
    if (more->burst_why[0] != '\0')
        str_addf(out, "  bursts beside the tunnel were not measured: %s\n", more->burst_why);
}

/* The report on a network of two members, with a line for each kind of transfer. */
static void format_pair(const struct bench *b, struct str *out)
{
    const struct preflight_pair *p = &b->pairs[0];
    const struct bench_pair *more = &b->more[0];
    const struct idle_test *l = &p->idle[0];
    bool has_raw = more->has_raw || more->raw_bursts[0].bits_per_s > 0;
    char many[32];

    if (bench_has_latency(p))
        str_addf(out, "%s and %s, path %s: RTT %.3f ms, p99 %.3f ms\n", b->nodes[p->a].name,
            b->nodes[p->b].name, l->path[0] ? l->path : "none", l->rtt_median_us / 1000.0,
            l->rtt_p99_us / 1000.0);
    if (!p->has_bulk && !has_bursts(more))
        return;
    (void)snprintf(many, sizeof(many), "TCP, %u streams", b->streams);
    str_addf(out, "  %-22s %13s %13s%s\n", "", "there", "back",
        has_raw ? "     raw there      raw back  cost" : "");
    if (p->has_bulk) {
        add_line(out, "TCP, one stream", &p->one, more->has_raw ? &more->raw_one : NULL);
        add_line(out, many, &p->many, more->has_raw ? &more->raw_many : NULL);
    }
    if (more->has_both)
        add_line(out, "both ways at once", &more->both, NULL);
    format_bursts(more, out);
    if (more->has_raw)
        str_addf(out, "  the underlay was reached at %s\n", more->raw_one.via);
    else if (more->raw_why[0] != '\0')
        str_addf(out, "  the underlay was not measured: %s\n", more->raw_why);
}

/* Why a pair's throughput was not measured, though both members could be asked. */
static const char *why_unmeasured(const struct preflight_pair *p)
{
    for (unsigned way = 0; way < 2; way++)
        if (p->has_idle[way] && p->idle[way].why[0] != '\0')
            return p->idle[way].why;
    return "no result came in time";
}

/* A line with the reason for each member that could not be asked, and for each pair of the others
 * whose throughput was not measured. */
static void format_unmeasured(const struct bench *b, struct str *out)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n_nodes; i++) {
        const struct preflight_node *node = &b->nodes[i];

        if (node->why[0] != '\0')
            str_addf(out, "%s was not measured: %s%s\n", node->name,
                node->no_path[0] ? "no way leads to it: " : "",
                node->no_path[0] ? node->no_path : node->why);
    }
    for (size_t i = 0; i < b->n_pairs; i++) {
        const struct preflight_pair *p = &b->pairs[i];
        const struct preflight_node *first = &b->nodes[p->a];
        const struct preflight_node *second = &b->nodes[p->b];

        if (p->has_bulk || has_bursts(&b->more[i]) || first->why[0] != '\0' ||
            second->why[0] != '\0')
            continue;
        if (n++ < PAIRS_SHOWN)
            str_addf(out, "%s and %s were not measured: %s\n", first->name, second->name,
                why_unmeasured(p));
    }
    if (n > PAIRS_SHOWN)
        str_addf(out, "%zu more pairs were not measured\n", n - PAIRS_SHOWN);
}

/* A matrix of rates in Mbit/s, each from the member of its row to the member of its column. */
static void format_matrix(const struct bench *b, struct str *out)
{
    str_addf(out, "Mbit/s, from a row to a column, the better of one stream and %u\n\n%-14s",
        b->streams, "");
    for (size_t to = 0; to < b->n_nodes; to++)
        str_addf(out, " %8.8s", b->nodes[to].name);
    str_add(out, "\n");
    for (size_t from = 0; from < b->n_nodes; from++) {
        str_addf(out, "%-14s", b->nodes[from].name);
        for (size_t to = 0; to < b->n_nodes; to++) {
            uint64_t rate = bench_rate(b, from, to);

            if (from == to || rate == 0)
                str_addf(out, " %8s", from == to ? "" : "-");
            else
                str_addf(out, " %8.1f", (double)rate / 1e6);
        }
        str_add(out, "\n");
    }
}

static void add_number(struct str *out, bool is_there, double v)
{
    if (is_there)
        str_addf(out, " %9.1f", v);
    else
        str_addf(out, " %9s", "-");
}

static void add_ms(struct str *out, bool is_there, uint32_t us)
{
    if (is_there)
        str_addf(out, " %8.2f", us / 1000.0);
    else
        str_addf(out, " %8s", "-");
}

/*
 * A table with a line for each pair: path, latency, and the rates of one stream on the overlay and
 * on the underlay. A large network has none.
 */
static void format_pairs(const struct bench *b, struct str *out)
{
    if (b->n_pairs > PAIRS_SHOWN)
        return;
    str_addf(out, "\n%-14s %-14s %-7s %8s %8s %9s %9s %9s %9s  %s\n", "", "", "PATH", "RTT ms",
        "P99 ms", "THERE", "BACK", "RAW", "RAW BACK", "COST");
    for (size_t i = 0; i < b->n_pairs; i++) {
        const struct preflight_pair *p = &b->pairs[i];
        const struct bench_pair *more = &b->more[i];
        const struct idle_test *l = &p->idle[0];
        int cost;

        str_addf(out, "%-14s %-14s %-7s", b->nodes[p->a].name, b->nodes[p->b].name,
            l->path[0] ? l->path : "-");
        add_ms(out, bench_has_latency(p), l->rtt_median_us);
        add_ms(out, bench_has_latency(p), l->rtt_p99_us);
        add_number(out, p->has_bulk, (double)p->one.out.bits_per_s / 1e6);
        add_number(out, p->has_bulk, (double)p->one.in.bits_per_s / 1e6);
        add_number(out, more->has_raw, (double)more->raw_one.out.bits_per_s / 1e6);
        add_number(out, more->has_raw, (double)more->raw_one.in.bits_per_s / 1e6);
        if (more->has_raw && bench_cost(&p->one, &more->raw_one, &cost))
            str_addf(out, "  %d %%", cost);
        str_add(out, "\n");
    }
}

static void format_allreduce(const struct bench *b, enum order_algorithm i, struct str *out)
{
    const struct bench_allreduce *a = &b->allreduce[i];
    char alg[32];
    char bus[32];

    if (a->bytes == 0)
        return;
    if (!a->is_done) {
        str_addf(out, "all-reduce, %s: not done: %s\n", order_algorithm_names[i], a->why);
        return;
    }
    str_addf(out, "all-reduce, %s, %.0f MiB, %zu members: %.1f ms, algbw %s, busbw %s\n",
        order_algorithm_names[i], (double)a->bytes / (1 << 20), b->n_nodes,
        (double)a->elapsed / NSEC_PER_MSEC, bench_format_rate(bench_algbw(a), alg),
        bench_format_rate(bench_busbw(a, b->n_nodes), bus));
}

static void format_failures(const struct bench *b, struct str *out)
{
    char expect[32];
    char rate[32];

    for (size_t from = 0; from < b->n_nodes; from++)
        for (size_t to = 0; to < b->n_nodes; to++)
            if (from != to && bench_rate(b, from, to) < b->expect_bps)
                str_addf(out, "fail: %s to %s: %s, and %s is expected\n", b->nodes[from].name,
                    b->nodes[to].name, bench_format_rate(bench_rate(b, from, to), rate),
                    bench_format_rate(b->expect_bps, expect));
    if (bench_failures(b) == 0)
        str_addf(
            out, "pass: every direction reaches %s\n", bench_format_rate(b->expect_bps, expect));
}

void bench_format(const struct bench *b, struct str *out)
{
    if (b->n_nodes == 2)
        format_pair(b, out);
    else
        format_matrix(b, out);
    if (b->n_nodes > 2)
        format_pairs(b, out);
    if (out->len > 0)
        str_add(out, "\n");
    format_unmeasured(b, out);
    for (unsigned i = 0; i < ORDER_ALGORITHM_N; i++)
        format_allreduce(b, (enum order_algorithm)i, out);
    sweep_format(&b->sweep, out);
    if (b->expect_bps > 0)
        format_failures(b, out);
    str_addf(out, "%zu members, %zu pair%s, %.1f s\n", b->n_nodes, b->n_pairs,
        b->n_pairs == 1 ? "" : "s", (double)b->elapsed / NSEC_PER_SEC);
}

/* ==== the matrix as a picture ================================================================ */

#define CELL       56  /* side of a square, pixels */
#define LABEL      110 /* space left of the squares for the names, pixels */
#define HEAD       70  /* space above the squares, pixels */
#define FOOT       40  /* space below the squares, pixels */
#define TEXT_NODES 32  /* with more members the squares have no figures */

struct colour {
    unsigned r, g, b;
};

static const struct colour slow = {0xfd, 0xf3, 0xd8};
static const struct colour fast = {0x0b, 0x3c, 0x6f};

/* The slowest and the fastest rate that was measured, in bits per second. */
struct scale {
    uint64_t min;
    uint64_t max;
};

static struct scale find_scale(const struct bench *b)
{
    struct scale s = {.min = UINT64_MAX};

    for (size_t from = 0; from < b->n_nodes; from++)
        for (size_t to = 0; to < b->n_nodes; to++) {
            uint64_t rate = bench_rate(b, from, to);

            if (rate == 0)
                continue;
            s.min = rate < s.min ? rate : s.min;
            s.max = rate > s.max ? rate : s.max;
        }
    return s;
}

/* Returns where a rate is on the logarithmic scale: 0 for the slowest, 1 for the fastest, and 1 if
 * all rates are the same. */
static double place(const struct scale *s, uint64_t rate)
{
    if (s->max <= s->min)
        return 1;
    return log((double)rate / (double)s->min) / log((double)s->max / (double)s->min);
}

static struct colour mix(double t)
{
    return (struct colour){
        .r = (unsigned)lround(slow.r + t * ((double)fast.r - slow.r)),
        .g = (unsigned)lround(slow.g + t * ((double)fast.g - slow.g)),
        .b = (unsigned)lround(slow.b + t * ((double)fast.b - slow.b)),
    };
}

static void draw_names(const struct bench *b, struct str *out)
{
    for (size_t i = 0; i < b->n_nodes; i++) {
        size_t middle = i * CELL + CELL / 2;

        str_addf(out,
            "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">%.16s</text>\n"
            "<text x=\"%zu\" y=\"%d\" text-anchor=\"middle\">%.8s</text>\n",
            LABEL - 8, HEAD + middle + 4, b->nodes[i].name, LABEL + middle, HEAD - 8,
            b->nodes[i].name);
    }
}

static void draw_square(
    const struct bench *b, const struct scale *s, size_t from, size_t to, struct str *out)
{
    uint64_t rate = bench_rate(b, from, to);
    size_t x = LABEL + to * CELL;
    size_t y = HEAD + from * CELL;
    double t = rate > 0 ? place(s, rate) : 0;
    struct colour c = mix(t);
    bool is_bad = b->expect_bps > 0 && rate < b->expect_bps;
    char text[32];

    str_addf(out, "<rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\" ", x + 1, y + 1, CELL - 2,
        CELL - 2);
    if (rate > 0)
        str_addf(out, "fill=\"#%02x%02x%02x\"", c.r, c.g, c.b);
    else
        str_add(out, "fill=\"none\" stroke-dasharray=\"4\"");
    str_addf(
        out, " stroke=\"%s\" stroke-width=\"%d\">", is_bad ? "#c0152f" : "#bbbbbb", is_bad ? 3 : 1);
    str_addf(out, "<title>%s to %s: %s</title></rect>\n", b->nodes[from].name, b->nodes[to].name,
        rate > 0 ? bench_format_rate(rate, text) : "not measured");
    if (rate > 0 && b->n_nodes <= TEXT_NODES)
        str_addf(out, "<text x=\"%zu\" y=\"%zu\" text-anchor=\"middle\" fill=\"%s\">%.*f</text>\n",
            x + CELL / 2, y + CELL / 2 + 4, t > 0.5 ? "#ffffff" : "#222222",
            rate < 10000000 ? 1 : 0, (double)rate / 1e6);
}

void heatmap_draw(const struct bench *b, struct str *out)
{
    struct scale s = find_scale(b);
    size_t side = b->n_nodes * CELL;
    char slowest[32];
    char fastest[32];

    str_addf(out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
        "<text x=\"10\" y=\"24\" font-size=\"15\">%s: Mbit/s, from a row to a column</text>\n",
        LABEL + side + 20, HEAD + side + FOOT, b->network);
    draw_names(b, out);
    for (size_t from = 0; from < b->n_nodes; from++)
        for (size_t to = 0; to < b->n_nodes; to++)
            if (from != to)
                draw_square(b, &s, from, to, out);
    if (s.max > 0)
        str_addf(out, "<text x=\"%d\" y=\"%zu\">slowest %s, fastest %s</text>\n", LABEL,
            HEAD + side + 24, bench_format_rate(s.min, slowest), bench_format_rate(s.max, fastest));
    str_add(out, "</svg>\n");
}
