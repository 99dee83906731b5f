/* test-fitness.c - which findings fail a machine, checks in a row, and how many are drained at
 * once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "health/fitness.h"

/* A check of node "a" by these findings. */
static struct fitness take(const char *findings)
{
    json_t *json = json_loads(findings, 0, NULL);
    struct fitness f;

    assert_non_null(json);
    fitness_take(&f, json, "a");
    json_decref(json);
    return f;
}

#define FOUND(code, severity, about, subject)                                                      \
    "{\"code\":\"" code "\",\"severity\":\"" severity "\",\"about\":\"" about                      \
    "\",\"subject\":\"" subject "\",\"text\":\"it is so.\"}"

/* ---- findings ----------------------------------------------------------------------------------
 */

static void test_all_is_well(void **state)
{
    struct fitness f = take("[]");

    for (unsigned i = 0; i < FITNESS_PART_N; i++) {
        assert_true(f.parts[i] == FITNESS_OK || (i == FITNESS_GPU && f.parts[i] == FITNESS_UNSEEN));
        assert_string_equal(f.texts[i], "");
    }
    assert_int_equal(fitness_worst(&f), FITNESS_OK);
    assert_string_equal(f.codes, "");
    assert_string_equal(f.reason, "");
}

static void test_what_fails_which_part(void **state)
{
    static const struct {
        const char *code;
        const char *severity;
        enum fitness_part part;
        enum fitness_verdict verdict;
    } cases[] = {
        {"WEFT-FABRIC-001", "critical", FITNESS_FABRIC, FITNESS_FAILED},
        {"WEFT-FABRIC-003", "warning", FITNESS_FABRIC, FITNESS_FAILED},
        {"WEFT-NIC-001", "warning", FITNESS_NIC, FITNESS_WARNED},
        {"WEFT-NIC-002", "warning", FITNESS_NIC, FITNESS_FAILED},
        {"WEFT-GPU-007", "critical", FITNESS_GPU, FITNESS_FAILED},
        {"WEFT-GPU-007", "warning", FITNESS_GPU, FITNESS_WARNED},
        {"WEFT-DISK-001", "warning", FITNESS_DISK, FITNESS_WARNED},
        {"WEFT-DISK-002", "critical", FITNESS_DISK, FITNESS_FAILED},
        {"WEFT-STATE-002", "warning", FITNESS_DISK, FITNESS_FAILED},
        {"WEFT-CLOCK-001", "warning", FITNESS_CLOCK, FITNESS_FAILED},
        {"WEFT-APPLY-001", "critical", FITNESS_OVERLAY, FITNESS_FAILED},
        {"WEFT-NODE-005", "critical", FITNESS_OVERLAY, FITNESS_FAILED},
        {"WEFT-LINE-001", "critical", FITNESS_OVERLAY, FITNESS_WARNED},
        {"WEFT-UDP-001", "warning", FITNESS_OVERLAY, FITNESS_WARNED},
        {"WEFT-CLOCK-001 -x", "critical", FITNESS_CLOCK, FITNESS_OK},
        {"WEFT-CLOCK-001", "newer", FITNESS_CLOCK, FITNESS_OK},
        {"WEFT-CLOCK-001", "note", FITNESS_CLOCK, FITNESS_OK},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        bool has_failed = cases[i].verdict == FITNESS_FAILED;
        struct fitness f;
        char text[256];

        (void)snprintf(text, sizeof(text),
            "[{\"code\":\"%s\",\"severity\":\"%s\",\"about\":\"node\",\"subject\":\"a\","
            "\"text\":\"it is so.\"}]",
            cases[i].code, cases[i].severity);
        f = take(text);
        if (f.parts[cases[i].part] != cases[i].verdict)
            fail_msg("%s %s: %s", cases[i].code, cases[i].severity,
                fitness_verdict_names[f.parts[cases[i].part]]);
        assert_int_equal(fitness_worst(&f), cases[i].verdict);
        assert_string_equal(f.codes, has_failed ? cases[i].code : "");
        (void)snprintf(text, sizeof(text), "%s: it is so", cases[i].code);
        assert_string_equal(f.reason, has_failed ? text : "");
    }
}

/* Neither a peer nor a hub that is away fails this machine, nor what is another one's. */
static void test_what_is_not_its_own(void **state)
{
    struct fitness f = take("[7,{}," FOUND("WEFT-HUB-003", "critical", "hub", "hub") "," FOUND(
        "WEFT-PEER-001", "critical", "pair", "a--b") "," FOUND("WEFT-DISK-002", "critical", "node",
        "b") "," FOUND("WEFT-HEALTH-002", "warning", "node", "a") "," FOUND("WEFT-DISK-002",
        "critical", "job", "a") "]");

    assert_int_equal(fitness_worst(&f), FITNESS_OK);
    assert_string_equal(f.codes, "");
}

/* The worst of each part is shown, and all that has failed is named. */
static void test_several(void **state)
{
    char many[8192] = "[";
    size_t len = 1;
    struct fitness f =
        take("[" FOUND("WEFT-DISK-001", "warning", "node", "a") "," FOUND("WEFT-DISK-002",
            "critical", "node", "a") "," FOUND("WEFT-CLOCK-001", "warning", "node", "a") "]");

    assert_string_equal(f.texts[FITNESS_DISK], "WEFT-DISK-002: it is so.");
    assert_string_equal(f.codes, "WEFT-DISK-002,WEFT-CLOCK-001");
    assert_string_equal(f.reason, "WEFT-DISK-002: it is so");
    /* More than have room. */
    for (unsigned i = 0; i < 40; i++)
        len += (size_t)snprintf(many + len, sizeof(many) - len, "%s%s", i > 0 ? "," : "",
            FOUND("WEFT-FABRIC-001", "critical", "node", "a"));
    (void)snprintf(many + len, sizeof(many) - len, "]");
    f = take(many);
    assert_true(strlen(f.codes) < sizeof(f.codes));
    assert_string_equal(f.codes + strlen(f.codes) - 15, "WEFT-FABRIC-001");
}

/* A long sentence is cut between characters. */
static void test_a_long_reason(void **state)
{
    json_t *finding = json_pack("{s:s, s:s, s:s, s:s}", "code", "WEFT-DISK-002", "severity",
        "critical", "about", "node", "subject", "a");
    json_t *list = json_pack("[O]", finding);
    char text[FINDING_TEXT_MAX];
    struct fitness f;

    for (size_t i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    text[sizeof(text) - 2] = '\0';
    assert_int_equal(json_object_set_new(finding, "text", json_string(text)), 0);
    fitness_take(&f, list, "a");
    assert_true(strlen(f.reason) >= sizeof(f.reason) - 2);
    assert_null(strchr(f.reason, '?'));
    json_decref(finding);
    json_decref(list);
}

static void test_which_codes_count(void **state)
{
    assert_true(fitness_counts("WEFT-DISK-002"));
    assert_false(fitness_counts("WEFT-DISK-001"));
    assert_false(fitness_counts("WEFT-NODE-001"));
    assert_false(fitness_counts("WEFT-LINE-001"));
    assert_false(fitness_counts("WEFT-HEALTH-001"));
    assert_false(fitness_counts("WEFT-DISK-999"));
}

/* ---- checks in a row ---------------------------------------------------------------------------
 */

static void count(struct fitness_count *c, bool has_failed, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fitness_count_check(c, has_failed);
}

static void test_three_in_a_row(void **state)
{
    struct fitness_count c = {.n_failed = 0};

    assert_int_equal(fitness_step(&c, false), FITNESS_REST);
    count(&c, true, 2);
    assert_int_equal(fitness_step(&c, false), FITNESS_REST);
    count(&c, false, 1);
    count(&c, true, 2);
    assert_int_equal(fitness_step(&c, false), FITNESS_REST);
    count(&c, true, 1);
    assert_int_equal(fitness_step(&c, false), FITNESS_DRAIN);
    assert_int_equal(fitness_step(&c, true), FITNESS_DRAIN);
    /* It is back after three, and the hub hears at once that it fails no more. */
    c.is_reported = true;
    count(&c, false, 1);
    assert_int_equal(fitness_step(&c, true), FITNESS_REPORT);
    c.is_reported = false;
    assert_int_equal(fitness_step(&c, true), FITNESS_REST);
    count(&c, false, 1);
    assert_int_equal(fitness_step(&c, true), FITNESS_REST);
    count(&c, false, 1);
    assert_int_equal(fitness_step(&c, true), FITNESS_UNDRAIN);
    assert_int_equal(fitness_step(&c, false), FITNESS_REST);
    /* What the hook has done is undone, whatever the network says. */
    c.is_hooked = true;
    assert_int_equal(fitness_step(&c, false), FITNESS_UNDRAIN);
}

static void test_counts_are_kept(void **state)
{
    static const char *const wrong[] = {"{}", "[]", "{\"failed\":-1,\"passed\":0}",
        "{\"failed\":0,\"passed\":4294967296}", "{\"failed\":\"1\",\"passed\":0}"};
    struct fitness_count c = {.n_failed = UINT32_MAX, .n_passed = 1, .is_hooked = true};
    struct fitness_count back = {.n_failed = 0};
    json_t *json = fitness_count_encode(&c);

    assert_true(fitness_count_decode(&back, json));
    json_decref(json);
    assert_true(back.n_failed == UINT32_MAX);
    assert_int_equal(back.n_passed, 1);
    assert_true(back.is_hooked);
    assert_false(back.is_reported);
    fitness_count_check(&back, true);
    assert_true(back.n_failed == UINT32_MAX);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        json = json_loads(wrong[i], 0, NULL);
        assert_false(fitness_count_decode(&back, json));
        json_decref(json);
    }
    assert_false(fitness_count_decode(&back, NULL));
    assert_true(back.is_hooked);
}

/* ---- how many at once --------------------------------------------------------------------------
 */

static void test_share(void **state)
{
    static const struct {
        unsigned percent;
        size_t n_nodes;
        size_t n_drained;
        bool allows;
    } cases[] = {
        {0, 1000, 0, false},
        {100, 1, 0, true},
        {100, 1, 1, false},
        {33, 3, 0, false},
        {34, 3, 0, true},
        {34, 3, 1, false},
        {10, 10, 0, true},
        {10, 19, 1, false},
        {10, 20, 1, true},
        {1, 10000, 99, true},
        {1, 10000, 100, false},
        {50, 0, 0, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (fitness_share_allows(cases[i].percent, cases[i].n_nodes, cases[i].n_drained) !=
            cases[i].allows)
            fail_msg("case %zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_well),
        cmocka_unit_test(test_what_fails_which_part),
        cmocka_unit_test(test_what_is_not_its_own),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_a_long_reason),
        cmocka_unit_test(test_which_codes_count),
        cmocka_unit_test(test_three_in_a_row),
        cmocka_unit_test(test_counts_are_kept),
        cmocka_unit_test(test_share),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
