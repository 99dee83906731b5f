/* test-matrix.c - what is read from measurements, islands, and price tables. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "plan/matrix.h"
#include "mesh/object/prices.h"

/* Two nodes near each other and one far away, as `weft bench --json` prints them. */
#define PAIR(a, b, rtt, out, in)                                                                   \
    "{\"nodes\":[\"" a "\",\"" b "\"],\"path\":\"direct\",\"rttMinUs\":1,\"rttMedianUs\":" #rtt    \
    ",\"oneStream\":{\"outBitsPerSecond\":" #out ",\"inBitsPerSecond\":" #in "},\"streams\":null}"
static const char sample[] = "{\"nodes\":[\"a\",\"b\",\"c\"],\"pairs\":[" PAIR("a", "b", 300, 9000,
    8000) "," PAIR("c", "a", 50000, 700, 600) ",{\"nodes\":[\"b\",\"c\"],\"oneStream\":null}]}";

static int decode(struct matrix *m, const char *text, struct err *e)
{
    json_t *json = json_loads(text, 0, NULL);
    int r;

    assert_non_null(json);
    r = matrix_decode(m, json, e);
    json_decref(json);
    return r;
}

static void test_bench(void **state)
{
    struct matrix m = MATRIX_NULL;

    assert_int_equal(decode(&m, sample, NULL), 0);
    assert_int_equal(m.n, 3);
    assert_true(matrix_link(&m, 0, 1)->rtt == 0.0003);
    assert_true(matrix_link(&m, 0, 1)->one_bps == 9000);
    assert_true(matrix_link(&m, 1, 0)->one_bps == 8000);
    /* The pair was given the other way round, and several streams were not measured. */
    assert_true(matrix_link(&m, 0, 2)->one_bps == 600);
    assert_true(matrix_link(&m, 2, 0)->many_bps == 700);
    assert_true(matrix_is_measured(&m, 0, 2));
    assert_false(matrix_is_measured(&m, 1, 2));
    matrix_deinit(&m);
    matrix_deinit(&m);
}

/* `weft preflight` has objects as nodes, and the round trip in each way. */
static void test_preflight(void **state)
{
    struct matrix m = MATRIX_NULL;

    assert_int_equal(
        decode(&m,
            "{\"nodes\":[{\"name\":\"a\",\"island\":\"x\"},{\"name\":\"b\"}],\"pairs\":[{\"nodes\":"
            "[\"a\",\"b\"],\"ways\":[{\"rttMedianUs\":2000,\"sent\":50,\"heard\":40},"
            "null],\"oneStream\":{\"outBitsPerSecond\":5,\"inBitsPerSecond\":6},\"streams\":"
            "{\"outBitsPerSecond\":10,\"inBitsPerSecond\":3}}]}",
            NULL),
        0);
    assert_string_equal(m.nodes[0].island, "x");
    assert_true(matrix_link(&m, 1, 0)->rtt == 0.002);
    assert_true(matrix_link(&m, 0, 1)->many_bps == 10);
    assert_true(matrix_link(&m, 1, 0)->many_bps == 6);
    matrix_deinit(&m);
}

#define TWO(fields) "{\"nodes\":[\"a\",\"b\"],\"pairs\":[{\"nodes\":[\"a\",\"b\"]," fields "}]}"

/* Each direction has the congestion control of its sender. */
static void test_congestion(void **state)
{
    static const struct {
        const char *text;
        double out;
        double in;
    } cases[] = {
        {TWO("\"congestion\":[\"bbr\",\"cubic\"]"), 1, 0.7},
        {TWO("\"congestion\":[\"reno\",\"bbr2\"]"), 0.5, 1},
        /* CUBIC where tcp_slow_start_after_idle is off. */
        {TWO("\"tcpRestarts\":false,\"congestion\":[\"cubic\",\"cubic\"]"), 0.7, 0.7},
        /* Not known, and a file of an earlier version. */
        {TWO("\"tcpRestarts\":false,\"congestion\":[\"\",\"reno\"]"), 1, 0.5},
        {TWO("\"tcpRestarts\":false"), 1, 1},
        {TWO("\"rttMedianUs\":1"), 0.7, 0.7},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct matrix m = MATRIX_NULL;

        assert_int_equal(decode(&m, cases[i].text, NULL), 0);
        if (matrix_link(&m, 0, 1)->kept != cases[i].out ||
            matrix_link(&m, 1, 0)->kept != cases[i].in)
            fail_msg(
                "case %zu: %g and %g", i, matrix_link(&m, 0, 1)->kept, matrix_link(&m, 1, 0)->kept);
        matrix_deinit(&m);
    }
}

static void test_pick(void **state)
{
    struct matrix m = MATRIX_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(decode(&m, sample, NULL), 0);
    assert_true(matrix_pick(&m, "a,d", &e) < 0);
    assert_non_null(strstr(e.text, "\"d\" is no node"));
    assert_true(matrix_pick(&m, "a,a", &e) < 0);
    assert_true(matrix_pick(&m, "c", &e) < 0);
    assert_non_null(strstr(e.text, "two nodes at least"));
    assert_int_equal(matrix_pick(&m, "c,a", NULL), 0);
    assert_int_equal(m.n, 2);
    assert_string_equal(m.nodes[1].name, "c");
    assert_true(matrix_link(&m, 1, 0)->one_bps == 700 && matrix_link(&m, 0, 1)->one_bps == 600);
    matrix_deinit(&m);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"{\"nodes\":[\"a\"],\"pairs\":[]}", "nodes"},
        {"{\"nodes\":[\"a\",\"a\"],\"pairs\":[{}]}", "twice"},
        {"{\"nodes\":[\"a\",\"B!\"],\"pairs\":[{}]}", "B!"},
        {"{\"nodes\":[\"a\",\"b\"],\"pairs\":[{\"nodes\":[\"a\",\"c\"]}]}", "\"c\" is no node"},
        {"{\"nodes\":[\"a\",\"b\"],\"pairs\":[{\"nodes\":[\"a\",\"a\"]}]}", "both of its nodes"},
        {"{\"nodes\":[\"a\",\"b\"],\"pairs\":[{\"nodes\":[\"a\",\"b\"],\"rttMedianUs\":-1}]}",
            "rttMedianUs"},
        {"{\"nodes\":[\"a\",\"b\"],\"pairs\":[{\"nodes\":[\"a\",\"b\"],\"streams\":"
         "{\"outBitsPerSecond\":1}}]}",
            "inBitsPerSecond"},
        /* What is printed later may not turn a terminal's lines around. */
        {"{\"nodes\":[{\"name\":\"a\",\"island\":\"\\u202ex\"},{\"name\":\"b\"}],\"pairs\":[{}]}",
            "is not a name"},
        {TWO("\"congestion\":[\"bbr\"]"), "congestion"},
        {TWO("\"congestion\":[\"bbr\",1]"), "no list of two names"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct matrix m = MATRIX_NULL;
        struct err e = ERR_NULL;

        assert_true(decode(&m, cases[i].text, &e) < 0);
        if (!strstr(e.text, cases[i].said))
            fail_msg("case %zu: \"%s\" does not say %s", i, e.text, cases[i].said);
        assert_null(m.nodes);
    }
}

static void test_islands(void **state)
{
    struct matrix m = MATRIX_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(decode(&m, sample, NULL), 0);
    assert_int_equal(matrix_set_islands(&m, "c,b", &e), 0);
    assert_string_equal(m.nodes[1].island, "c");
    /* a is near b, but b's island was declared. */
    assert_int_equal(matrix_find_islands(&m), 1);
    assert_string_equal(m.nodes[0].island, "a");
    assert_true(matrix_set_islands(&m, "a,d", &e) < 0);
    assert_non_null(strstr(e.text, "\"d\" is no node"));
    assert_true(matrix_set_islands(&m, "a/a", &e) < 0);
    assert_non_null(strstr(e.text, "twice"));
    matrix_deinit(&m);

    assert_int_equal(decode(&m, sample, NULL), 0);
    assert_int_equal(matrix_find_islands(&m), 3);
    assert_string_equal(m.nodes[1].island, "a");
    assert_string_equal(m.nodes[2].island, "c");
    assert_int_equal(matrix_find_islands(&m), 0);
    matrix_deinit(&m);
}

/* A later measurement of one pair counts, and the others stay. */
static void test_replace(void **state)
{
    struct matrix m = MATRIX_NULL;
    struct matrix next = MATRIX_NULL;
    struct err e = ERR_NULL;
    json_t *node = json_pack("{s:s, s:s}", "name", "c", "island", "far");

    assert_int_equal(decode(&m, sample, NULL), 0);
    assert_int_equal(
        decode(
            &next, "{\"nodes\":[\"c\",\"a\"],\"pairs\":[" PAIR("c", "a", 40000, 70, 60) "]}", NULL),
        0);
    assert_int_equal(matrix_replace(&m, &next, &e), 0);
    assert_true(matrix_link(&m, 2, 0)->one_bps == 70 && matrix_link(&m, 0, 2)->rtt == 0.04);
    assert_true(matrix_link(&m, 0, 1)->one_bps == 9000);
    memcpy(next.nodes[0].name, "x", 2);
    assert_true(matrix_replace(&m, &next, &e) < 0);
    assert_non_null(strstr(e.text, "\"x\" is no node"));
    matrix_declare(&m, node);
    matrix_declare(&m, NULL);
    assert_string_equal(m.nodes[2].island, "far");
    json_decref(node);
    matrix_deinit(&next);
    matrix_deinit(&m);
}

/* ---- prices -------------------------------------------------------------------------------- */

static const char whole_table[] =
    "{\"currency\":\"EUR\",\"islands\":[{\"name\":\"a\",\"egressPerGB\":0.09,\"natPerGB\":0.045,"
    "\"natPerHour\":0.5,\"zones\":2,\"crossZonePerGB\":0.01,\"gpuPerHour\":2.0}],\"lines\":["
    "{\"name\":\"port\",\"perMonth\":1000.0,\"perGB\":0.02,\"bitsPerSecond\":10000000000.0}],"
    "\"onePlace\":{\"name\":\"here\",\"gpuPerHour\":3.0}}";

static int decode_prices(struct prices *p, const char *text, struct err *e)
{
    json_t *json = json_loads(text, 0, NULL);
    int r;

    assert_non_null(json);
    r = prices_decode(p, json, OBJECT_STRICT, e);
    json_decref(json);
    return r;
}

static void test_prices(void **state)
{
    struct prices p;

    assert_int_equal(
        decode_prices(&p,
            "{\"currency\":\"EUR\",\"islands\":[{\"name\":\"a\",\"egressPerGB\":0.09,"
            "\"natPerGB\":\"0.045\"},{\"gpuPerHour\":2}],\"lines\":[{\"name\":\"port\","
            "\"perMonth\":1000,\"perGB\":0.02,\"bitsPerSecond\":1e10}],"
            "\"onePlace\":{\"name\":\"here\",\"gpuPerHour\":3}}",
            NULL),
        0);
    assert_true(fabs(prices_per_gb(&p, "a") - 0.135) < 1e-9);
    assert_true(prices_of(&p, "b")->gpu_hour == 2);
    assert_true(prices_per_gb(&p, "b") == 0);
    /* 1000 a month are earned by 7 cents a GB. */
    assert_true(fabs(prices_break_even(&p.lines[0], 0.09) - 1000 / 0.07) < 1e-6);
    assert_true(isinf(prices_break_even(&p.lines[0], 0.02)));
}

static void test_prices_refused(void **state)
{
    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"{\"islands\":[]}", "islands"},
        {"{\"islands\":[{\"egressPerGB\":-1}]}", "egressPerGB"},
        {"{\"islands\":[{\"egressPerGB\":\"1 cent\"}]}", "egressPerGB"},
        {"{\"islands\":[{\"egressPerGB\":\"0x1\"}]}", "egressPerGB"},
        {"{\"islands\":[{\"egressPerGB\":true}]}", "egressPerGB"},
        {"{\"islands\":[{\"egress\":1}]}", "egress"},
        {"{\"islands\":[{},{}]}", "twice"},
        {"{\"islands\":[{}],\"lines\":[{\"name\":\"x\"}]}", "perMonth"},
        {"{\"islands\":[{}],\"onePlace\":{\"name\":\"\"}}", "name"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct prices p;
        struct err e = ERR_NULL;

        assert_true(decode_prices(&p, cases[i].text, &e) < 0);
        if (!strstr(e.text, cases[i].said))
            fail_msg("case %zu: \"%s\" does not say %s", i, e.text, cases[i].said);
    }
}

/* A price of 0 is one that is said; what is not said does not come back as 0. */
static void test_prices_not_said(void **state)
{
    static const char table[] =
        "{\"currency\":\"EUR\",\"islands\":[{\"egressPerGB\":0.0,\"zones\":1},"
        "{\"name\":\"b\",\"natPerGB\":0.5,\"zones\":2,\"crossZonePerGB\":0.0}]}";
    json_t *whole = json_loads(table, 0, NULL);
    json_t *encoded;
    struct prices p;

    assert_int_equal(decode_prices(&p, table, NULL), 0);
    assert_true(p.islands[0].egress == 0 && isnan(p.islands[0].cross_zone));
    assert_true(isnan(p.islands[1].egress) && p.islands[1].cross_zone == 0);
    assert_true(prices_per_gb(&p, "b") == 0.5);
    encoded = prices_encode(&p);
    assert_true(json_equal(encoded, whole));
    json_decref(encoded);
    json_decref(whole);
    /* Of what has no row, and without a table, nothing is said. */
    p.n_islands = 0;
    assert_true(isnan(prices_of(&p, "b")->egress) && isnan(prices_of(&p, "b")->cross_zone));
    assert_true(isnan(prices_of(NULL, "b")->egress));
    assert_null(prices_find(NULL, "b"));
}

/* Allocations until the one that fails, once. */
static size_t n_until;

static void *failing_malloc(size_t size)
{
    return n_until > 0 && --n_until == 0 ? NULL : malloc(size);
}

/* A table is encoded as a whole, or not at all: without one price it would be another table. */
static void test_prices_without_memory(void **state)
{
    json_t *whole = json_loads(whole_table, 0, NULL);
    bool has_failed = true;
    struct prices p;

    assert_int_equal(decode_prices(&p, whole_table, NULL), 0);
    for (size_t n = 1; has_failed; n++) {
        json_t *encoded;

        n_until = n;
        json_set_alloc_funcs(failing_malloc, free);
        encoded = prices_encode(&p);
        json_set_alloc_funcs(malloc, free);
        has_failed = n_until == 0;
        if (encoded ? !json_equal(encoded, whole) : !has_failed)
            fail_msg("without allocation %zu, a part of the table", n);
        json_decref(encoded);
    }
    json_decref(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench),
        cmocka_unit_test(test_preflight),
        cmocka_unit_test(test_congestion),
        cmocka_unit_test(test_pick),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_islands),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_prices),
        cmocka_unit_test(test_prices_refused),
        cmocka_unit_test(test_prices_not_said),
        cmocka_unit_test(test_prices_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
