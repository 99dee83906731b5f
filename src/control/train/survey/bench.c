/* bench.c - see bench.h: the figures that are calculated from the measurements. */
#include "train/survey/bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "train/job/rounds.h"

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

static int compare_rates(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

json_t *bench_summarise(const struct bench *b)
{
    uint64_t *rates = calloc(b->n_nodes * b->n_nodes + 1, sizeof(*rates));
    json_t *json = NULL;
    size_t n = 0;

    for (size_t from = 0; rates && from < b->n_nodes; from++)
        for (size_t to = 0; to < b->n_nodes; to++)
            if (bench_rate(b, from, to) > 0)
                rates[n++] = bench_rate(b, from, to);
    if (rates) {
        qsort(rates, n, sizeof(*rates), compare_rates);
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
    free(rates);
    return json;
}
