/* test-bench.c - bus bandwidth, cost, verdicts, the picture (golden), and the history. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"
#include "os/file.h"
#include "train/names/members.h"
#include "train/survey/bench.h"

#define NODES 4
#define PAIRS (NODES * (NODES - 1) / 2)

/* Four members; every direction has another rate, and one pair was not measured. */
struct sample {
    struct preflight_node nodes[NODES];
    struct preflight_pair pairs[PAIRS];
    struct bench_pair more[PAIRS];
    struct bench bench;
};

static void make_sample(struct sample *s)
{
    *s = (struct sample){.bench = {.n_nodes = NODES,
                             .n_pairs = PAIRS,
                             .streams = 4,
                             .network = "default",
                             .elapsed = 5 * NSEC_PER_SEC,
                             .measured_at = 1790000000 * NSEC_PER_SEC}};
    s->bench.nodes = s->nodes;
    s->bench.pairs = s->pairs;
    s->bench.more = s->more;
    for (size_t b = 0; b < NODES; b++) {
        (void)snprintf(s->nodes[b].name, sizeof(s->nodes[b].name), "gpu-%zu", b + 1);
        for (size_t a = 0; a < b; a++) {
            struct preflight_pair *p = &s->pairs[rounds_index(NODES, a, b)];

            *p = (struct preflight_pair){.a = a, .b = b, .has_bulk = a != 0 || b != 3};
            p->one.out.bits_per_s = (a + 1) * 1000000000;
            p->one.in.bits_per_s = (b + 1) * 5000000;
            p->many.out.bits_per_s = (a + 1) * 2000000000;
            p->many.in.bits_per_s = (b + 1) * 1000000;
        }
    }
}

static void test_busbw(void **state)
{
    /* 1 GB among 8 in 0.1 s: algbw 80 Gbit/s, and 1.75 times that on the links. */
    struct bench_allreduce a = {.is_done = true, .bytes = 1000000000, .elapsed = NSEC_PER_SEC / 10};

    assert_int_equal(bench_algbw(&a), 80000000000);
    assert_int_equal(bench_busbw(&a, 8), 140000000000);
    assert_int_equal(bench_busbw(&a, 2), 80000000000);
    assert_int_equal(bench_busbw(&a, 1), 0);
    a.is_done = false;
    assert_int_equal(bench_busbw(&a, 8), 0);
}

static void test_rates_have_directions(void **state)
{
    struct sample s;

    make_sample(&s);
    assert_int_equal(bench_rate(&s.bench, 0, 1), 2000000000);
    assert_int_equal(bench_rate(&s.bench, 1, 0), 10000000);
    assert_int_equal(bench_rate(&s.bench, 2, 3), 6000000000);
    assert_int_equal(bench_rate(&s.bench, 0, 3), 0);
    assert_int_equal(bench_rate(&s.bench, 2, 2), 0);
}

static void test_cost(void **state)
{
    struct bulk overlay = {.out = {.bits_per_s = 900}, .in = {.bits_per_s = 700}};
    struct bulk raw = {.out = {.bits_per_s = 1000}, .in = {.bits_per_s = 1000}};
    int cost = 0;

    assert_true(bench_cost(&overlay, &raw, &cost));
    assert_int_equal(cost, 20);
    assert_true(bench_cost(&raw, &overlay, &cost));
    assert_int_equal(cost, -25);
    raw = (struct bulk){.via = ""};
    assert_false(bench_cost(&overlay, &raw, &cost));
}

/* Only ways that were measured both times are compared; where a NAT is in between it is said. */
static void test_bursts(void **state)
{
    struct bench_pair *more;
    struct str out = STR_NULL;
    struct sample s;
    int cost = 0;
    json_t *bursts;
    json_t *json;

    make_sample(&s);
    s.bench.n_nodes = 2;
    s.bench.n_pairs = 1;
    more = &s.more[0];
    assert_false(bench_burst_cost(more, &cost));
    json = bench_encode(&s.bench);
    assert_true(
        json_is_null(json_object_get(json_array_get(json_object_get(json, "pairs"), 0), "bursts")));
    json_decref(json);
    more->bursts[0] = (struct burst){.bits_per_s = 900000000, .rtt_median_us = 412, .size = 1392};
    more->bursts[1] = (struct burst){.bits_per_s = 100000000, .size = 1392};
    (void)snprintf(more->burst_why, sizeof(more->burst_why), "a NAT is in the way");
    bench_format(&s.bench, &out);
    assert_non_null(strstr(str_text(&out), "UDP, bursts"));
    assert_non_null(strstr(
        str_text(&out), "bursts beside the tunnel were not measured: a NAT is in the way\n"));
    assert_null(strstr(str_text(&out), "raw there"));
    str_deinit(&out);
    more->burst_why[0] = '\0';
    more->raw_bursts[0] = (struct burst){
        .bits_per_s = 1000000000, .rtt_median_us = 301, .size = 1392, .via = "203.0.113.2"};
    assert_true(bench_burst_cost(more, &cost));
    assert_int_equal(cost, 10);
    bench_format(&s.bench, &out);
    assert_non_null(strstr(str_text(&out), "1.00 Gbit/s             -  10 %\n"));
    assert_non_null(
        strstr(str_text(&out), "RTT of datagrams: 0.412 ms in the tunnel, 0.301 ms beside it\n"));
    assert_non_null(strstr(str_text(&out), "raw there"));
    assert_null(strstr(str_text(&out), "TLS"));
    str_deinit(&out);
    json = bench_encode(&s.bench);
    bursts = json_object_get(json_array_get(json_object_get(json, "pairs"), 0), "bursts");
    assert_int_equal(json_integer_value(json_object_get(bursts, "costPercent")), 10);
    assert_true(json_is_null(json_object_get(bursts, "tls")));
    assert_null(json_object_get(bursts, "tlsCostPercent"));
    json_decref(json);
}

/* What TLS costs is of what the tunnel carries without it, of the ways that have both. */
static void test_bursts_in_tls(void **state)
{
    struct bench_pair *more;
    struct str out = STR_NULL;
    struct sample s;
    json_t *bursts;
    json_t *json;
    int cost;

    make_sample(&s);
    s.bench.n_nodes = 2;
    s.bench.n_pairs = 1;
    more = &s.more[0];
    more->bursts[0] = (struct burst){.bits_per_s = 900000000, .size = 1392};
    more->bursts[1] = (struct burst){.bits_per_s = 100000000, .size = 1392};
    assert_false(bench_tls_cost(more, &cost));
    more->tls_bursts[0] = (struct burst){.bits_per_s = 600000000, .size = 1392};
    assert_true(bench_tls_cost(more, &cost));
    assert_int_equal(cost, 33);
    more->tls_bursts[1] = (struct burst){.bits_per_s = 100000000, .size = 1392};
    assert_true(bench_tls_cost(more, &cost));
    assert_int_equal(cost, 30);
    bench_format(&s.bench, &out);
    assert_non_null(strstr(str_text(&out),
        "  with TLS in the tunnel: 600 Mbit/s there, 100 Mbit/s back, 30 % less\n"));
    str_deinit(&out);
    json = bench_encode(&s.bench);
    bursts = json_object_get(json_array_get(json_object_get(json, "pairs"), 0), "bursts");
    assert_int_equal(json_integer_value(json_object_get(bursts, "tlsCostPercent")), 30);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(bursts, "tls"), "outBitsPerSecond")),
        600000000);
    json_decref(json);
}

/* A sample has bursts alone, and no complaint that no throughput was measured. */
static void test_sample(void **state)
{
    struct bench_pair *more;
    struct str out = STR_NULL;
    struct daily_sample day;
    struct sample s;

    make_sample(&s);
    s.bench.n_nodes = 2;
    s.bench.n_pairs = 1;
    s.pairs[0].has_bulk = false;
    more = &s.more[0];
    more->bursts[0] = (struct burst){.bits_per_s = 900000999};
    more->bursts[1] = (struct burst){.bits_per_s = UINT64_MAX, .rtt_median_us = 412};
    more->raw_bursts[0] = (struct burst){.bits_per_s = 1000000000, .rtt_median_us = 301};
    more->tls_bursts[1] = (struct burst){.bits_per_s = 700000000, .rtt_median_us = 419};
    bench_format(&s.bench, &out);
    assert_non_null(strstr(str_text(&out), "UDP, bursts"));
    assert_null(strstr(str_text(&out), "TCP"));
    assert_null(strstr(str_text(&out), "not measured"));
    str_deinit(&out);
    day = bench_daily(more, 20786);
    assert_int_equal(day.day, 20786);
    assert_int_equal(day.tunnel_kbit[0], 900000);
    assert_int_equal(day.tunnel_kbit[1], DAILY_KBIT_MAX);
    assert_int_equal(day.raw_kbit[0], 1000000);
    assert_int_equal(day.raw_kbit[1], 0);
    assert_int_equal(day.tls_kbit[0], 0);
    assert_int_equal(day.tls_kbit[1], 700000);
    assert_int_equal(day.tunnel_rtt_us, 412);
    assert_int_equal(day.raw_rtt_us, 301);
}

static void test_expectation(void **state)
{
    struct sample s;
    struct str out = STR_NULL;

    make_sample(&s);
    assert_int_equal(bench_failures(&s.bench), 0);
    /* What was not measured, both ways, does not reach anything; and six ways back are slow. */
    s.bench.expect_bps = 1;
    assert_int_equal(bench_failures(&s.bench), 2);
    s.bench.expect_bps = 20000001;
    assert_int_equal(bench_failures(&s.bench), 7);
    bench_format(&s.bench, &out);
    assert_non_null(strstr(str_text(&out), "fail: gpu-2 to gpu-1: 10.00 Mbit/s"));
    str_deinit(&out);
}

/* What was not measured has no figures, and the reason is said once for each member. */
static void test_nothing_measured(void **state)
{
    static const struct preflight_pair none = {.has_bulk = false};
    struct sample s;
    struct str out = STR_NULL;
    const char *text;

    make_sample(&s);
    assert_false(bench_is_empty(&s.bench));
    for (size_t i = 0; i < PAIRS; i++) {
        size_t a = s.pairs[i].a;
        size_t b = s.pairs[i].b;

        s.pairs[i] = none;
        s.pairs[i].a = a;
        s.pairs[i].b = b;
    }
    (void)snprintf(s.nodes[2].why, sizeof(s.nodes[2].why), "it does not answer");
    s.pairs[0].has_idle[0] = true;
    (void)snprintf(s.pairs[0].idle[0].why, sizeof(s.pairs[0].idle[0].why), "no ping is answered");
    assert_true(bench_is_empty(&s.bench));
    bench_format(&s.bench, &out);
    text = str_text(&out);
    assert_null(strstr(text, "0.00"));
    assert_non_null(strstr(text, "\ngpu-3 was not measured: it does not answer\n"));
    assert_null(strstr(strstr(text, "gpu-3 was not") + 1, "gpu-3 was not"));
    assert_non_null(strstr(text, "\ngpu-1 and gpu-2 were not measured: no ping is answered\n"));
    str_deinit(&out);

    s.pairs[0].idle[0].back = 1;
    assert_false(bench_is_empty(&s.bench));
    s.pairs[0].idle[0].back = 0;
    s.bench.allreduce[ORDER_TREE].is_done = true;
    assert_false(bench_is_empty(&s.bench));
}

/* Of two members alone there is no table, and the reason all the same. */
static void test_pair_not_measured(void **state)
{
    struct sample s;
    struct str out = STR_NULL;

    make_sample(&s);
    s.bench.n_nodes = 2;
    s.bench.n_pairs = 1;
    s.pairs[0].has_bulk = false;
    (void)snprintf(s.nodes[1].why, sizeof(s.nodes[1].why), "it does not answer");
    bench_format(&s.bench, &out);
    assert_ptr_equal(
        strstr(str_text(&out), "gpu-2 was not measured: it does not answer\n"), str_text(&out));
    assert_null(strstr(str_text(&out), "RTT"));
    str_deinit(&out);
}

static void test_format_rate(void **state)
{
    char text[32];

    assert_string_equal(bench_format_rate(9410000000, text), "9.41 Gbit/s");
    assert_string_equal(bench_format_rate(123000000000, text), "123 Gbit/s");
    assert_string_equal(bench_format_rate(1500000, text), "1.50 Mbit/s");
    assert_string_equal(bench_format_rate(999, text), "999 bit/s");
}

/* The picture is kept; GOLDEN_REWRITE=1 writes it anew. */
static void test_heatmap(void **state)
{
    const char *root = getenv("WEFT_SOURCE_ROOT");
    struct sample s;
    struct str out = STR_NULL;
    char path[4096];
    char *kept = NULL;

    make_sample(&s);
    s.bench.expect_bps = 12000000;
    heatmap_draw(&s.bench, &out);
    (void)snprintf(path, sizeof(path), "%s/test/golden/bench-heatmap.svg", root ? root : ".");
    if (getenv("GOLDEN_REWRITE"))
        assert_int_equal(statefile_replace(path, str_text(&out), out.len, 0644, NULL), 0);
    assert_int_equal(statefile_read(path, 1 << 20, &kept, NULL, NULL), 0);
    assert_string_equal(str_text(&out), kept);
    free(kept);
    str_deinit(&out);
}

static void test_json(void **state)
{
    struct sample s;
    json_t *json;
    json_t *summary;

    make_sample(&s);
    s.bench.allreduce[ORDER_RING] = (struct bench_allreduce){
        .is_done = true, .bytes = 1000000, .repeats = 3, .elapsed = NSEC_PER_MSEC};
    json = bench_encode(&s.bench);
    assert_int_equal(json_array_size(json_object_get(json, "pairs")), PAIRS);
    summary = json_object_get(json, "summary");
    assert_int_equal(
        json_integer_value(json_object_get(summary, "ringBusBitsPerSecond")), 12000000000);
    assert_int_equal(
        json_integer_value(json_object_get(summary, "slowestBitsPerSecond")), 10000000);
    assert_int_equal(
        json_integer_value(json_object_get(summary, "fastestBitsPerSecond")), 6000000000);
    assert_true(json_is_null(json_object_get(json_object_get(json, "allReduce"), "tree")));
    json_decref(json);
}

/* It is kept, survives a line that was cut short, and does not grow for ever. */
static void test_history(void **state)
{
    char dir[] = "/tmp/weft-bench-XXXXXX";
    char path[64];
    struct sample s;
    struct str out = STR_NULL;
    json_t *summary;
    json_t *history = NULL;
    char *big;
    char *text = NULL;
    size_t len;

    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/bench.jsonl", dir);
    make_sample(&s);
    summary = bench_summarise(&s.bench);
    assert_int_equal(statefile_replace(path, "{\"time\": 12", 11, 0600, NULL), 0);
    assert_int_equal(bench_history_add(dir, summary, NULL), 0);
    assert_int_equal(bench_history_add(dir, summary, NULL), 0);
    assert_int_equal(bench_history_encode(dir, &history, NULL), 0);
    assert_int_equal(json_array_size(json_object_get(history, "runs")), 2);
    json_decref(history);
    assert_int_equal(bench_history_format(dir, &out, NULL), 0);
    assert_non_null(strstr(str_text(&out), "2026-09-21"));
    assert_non_null(strstr(str_text(&out), "6.00 Gbit/s"));
    big = malloc(BENCH_HISTORY_MAX);
    assert_non_null(big);
    memset(big, '\n', BENCH_HISTORY_MAX);
    assert_int_equal(statefile_replace(path, big, BENCH_HISTORY_MAX, 0600, NULL), 0);
    assert_int_equal(bench_history_add(dir, summary, NULL), 0);
    assert_int_equal(statefile_read(path, BENCH_HISTORY_MAX, &text, &len, NULL), 0);
    assert_in_range(len, BENCH_HISTORY_MAX / 2, BENCH_HISTORY_MAX / 2 + 1000);
    free(big);
    free(text);
    json_decref(summary);
    str_deinit(&out);
    (void)unlink(path);
    (void)rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_busbw),
        cmocka_unit_test(test_rates_have_directions),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_bursts_in_tls),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_expectation),
        cmocka_unit_test(test_nothing_measured),
        cmocka_unit_test(test_pair_not_measured),
        cmocka_unit_test(test_format_rate),
        cmocka_unit_test(test_heatmap),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_history),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
