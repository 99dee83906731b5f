/* test-access-counts.c - what is read of the packet filter, and what of it a hub is told, and when.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rules/access_counts.h"
#include "base/err.h"
#include "base/metrics.h"
#include "mesh/object/rule.h"
#include "mesh/snapshot/snapshot.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

struct fixture {
    struct snapshot s;
    struct access_counts c;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    json_t *json = json_pack("{s:s, s:{s:s, s:s}, s:{s:[s], s:[s], s:[s]}}", "kind", "Rule",
        "metadata", "name", "ssh", "network", "default", "spec", "from", "members", "to", "members",
        "allow", "tcp/22");
    struct object o = OBJECT_NULL;

    f->s = sample_snapshot(4, 2);
    assert_int_equal(object_decode(&o, json, OBJECT_STRICT, NULL), 0);
    sample_put(&f->s, o);
    json_decref(json);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    access_counts_deinit(&f->c);
    snapshot_deinit(&f->s);
    free(f);
    return 0;
}

/* A reading: @passed by the rule, @refused in all, and @elements, of which each is
 * {"elem": {"val": {"concat": [...]}, "counter": {"packets": N}}}. */
static void reads(struct fixture *f, int passed, int refused, const char *elements, nsec_t now)
{
    json_t *list = json_pack(
        "[{s:{s:s, s:o}}]", "set", "name", "ports_4", "elem", json_loads(elements, 0, NULL));

    assert_non_null(list);
    access_counts_begin(&f->c);
    access_counts_take_refused(&f->c, (uint64_t)refused);
    access_counts_take_passed(&f->c, "ssh", (uint64_t)passed);
    access_counts_take_sets(&f->c, list, &f->s, now);
    access_counts_end(&f->c);
    json_decref(list);
}

#define ELEMENT(from, to, protocol, port, packets)                                                 \
    "{\"elem\": {\"val\": {\"concat\": [\"" from "\", \"" to "\", " #protocol ", " #port           \
    "]}, \"counter\": {\"packets\": " #packets "}}}"

static const struct access_count *find(const struct access_report *r, const char *rule)
{
    for (unsigned i = 0; i < r->n_rules; i++)
        if (strcmp(r->rules[i].rule, rule) == 0)
            return &r->rules[i];
    fail_msg("nothing of the rule \"%s\"", rule);
    return NULL;
}

static void test_what_is_told(void **state)
{
    struct fixture *f = *state;
    const char *self = f->s.self;
    struct access_report r;
    uint64_t seq = 0;

    assert_false(access_counts_report(&f->c, &f->s, 0, SEC, &r, &seq));
    /* 10.42.0.2 is this node, .3 the other member, and 10.9.9.9 is nobody. */
    reads(f, 4, 9,
        "[" ELEMENT("10.42.0.3", "10.42.0.2", 6, 2300, 5) ", " ELEMENT(
            "10.9.9.9", "10.42.0.2", 17, 53, 4) "]",
        SEC);
    assert_true(access_counts_report(&f->c, &f->s, 0, SEC, &r, &seq));
    assert_int_equal(find(&r, "ssh")->passed, 4);
    assert_int_equal(find(&r, "ssh")->refused, 5);
    assert_int_equal(find(&r, "")->refused, 4);
    assert_int_equal(r.n_refused, 2);
    assert_string_equal(r.refused[0].to, self);
    assert_string_equal(r.refused[0].service, "tcp/2300");
    assert_int_equal(r.refused[0].packets, 5);
    assert_string_equal(r.refused[1].from, "10.9.9.9");
    assert_string_equal(r.refused[1].service, "udp/53");
    /* All of it is known up to there, and nothing is told twice. */
    assert_int_equal(seq, f->c.seq);
    assert_false(access_counts_report(&f->c, &f->s, seq, SEC, &r, &seq));
}

static void test_each_kind_is_told_now_and_then(void **state)
{
    struct fixture *f = *state;
    struct access_report r;
    uint64_t seq = 0;

    reads(f, 0, 5, "[" ELEMENT("10.42.0.3", "10.42.0.2", 6, 2300, 5) "]", SEC);
    assert_true(access_counts_report(&f->c, &f->s, 0, SEC, &r, &seq));
    reads(f, 0, 8, "[" ELEMENT("10.42.0.3", "10.42.0.2", 6, 2300, 8) "]", 2 * SEC);
    assert_true(access_counts_report(&f->c, &f->s, seq, 2 * SEC, &r, &seq));
    assert_int_equal(r.n_refused, 0);
    assert_int_equal(find(&r, "ssh")->refused, 8);
    reads(f, 0, 9, "[" ELEMENT("10.42.0.3", "10.42.0.2", 6, 2300, 9) "]", 602 * SEC);
    assert_true(access_counts_report(&f->c, &f->s, seq, 602 * SEC, &r, &seq));
    assert_int_equal(r.n_refused, 1);
    /* What was held back is told of with it. */
    assert_int_equal(r.refused[0].packets, 4);
    /* Another hub is told of what is not old. */
    assert_true(access_counts_report(&f->c, &f->s, 0, 700 * SEC, &r, &seq));
    assert_int_equal(r.n_refused, 1);
    assert_true(access_counts_report(&f->c, &f->s, 0, 1300 * SEC, &r, &seq));
    assert_int_equal(r.n_refused, 0);
}

static void test_a_table_that_is_put_again(void **state)
{
    struct fixture *f = *state;
    struct access_report r;
    uint64_t seq = 0;

    reads(f, 4, 5, "[" ELEMENT("10.42.0.3", "10.42.0.2", 6, 2300, 5) "]", SEC);
    access_counts_restart(&f->c);
    reads(f, 6, 7, "[" ELEMENT("10.42.0.3", "10.42.0.2", 6, 2300, 7) "]", 2 * SEC);
    /* And one of which nobody has said that it was. */
    reads(f, 1, 2, "[" ELEMENT("10.42.0.3", "10.42.0.2", 6, 2300, 2) "]", 3 * SEC);
    assert_true(access_counts_report(&f->c, &f->s, 0, 3 * SEC, &r, &seq));
    assert_int_equal(find(&r, "ssh")->passed, 4 + 6 + 1);
    assert_int_equal(find(&r, "ssh")->refused, 5 + 7 + 2);
}

/* Of a rule that is removed only its counter is read. */
static void test_a_rule_that_comes_back(void **state)
{
    struct fixture *f = *state;
    struct access_report r;
    uint64_t seq = 0;

    reads(f, 4, 5, "[" ELEMENT("10.42.0.3", "10.42.0.2", 6, 2300, 5) "]", SEC);
    access_counts_begin(&f->c);
    access_counts_take_passed(&f->c, "ssh", 6);
    access_counts_end(&f->c);
    /* It has let nothing in since. */
    access_counts_begin(&f->c);
    access_counts_take_passed(&f->c, "ssh", 0);
    access_counts_end(&f->c);
    reads(f, 7, 6, "[" ELEMENT("10.42.0.3", "10.42.0.2", 6, 2300, 6) "]", 2 * SEC);
    assert_true(access_counts_report(&f->c, &f->s, 0, 2 * SEC, &r, &seq));
    assert_int_equal(find(&r, "ssh")->passed, 6 + 7);
    assert_int_equal(find(&r, "ssh")->refused, 6);
}

static void test_a_set_that_is_full(void **state)
{
    struct fixture *f = *state;
    struct access_report r;
    uint64_t seq = 0;

    reads(f, 0, 50, "[" ELEMENT("10.42.0.3", "10.42.0.2", 6, 2300, 5) "]", SEC);
    assert_true(access_counts_report(&f->c, &f->s, 0, SEC, &r, &seq));
    assert_int_equal(find(&r, "ssh")->refused, 5);
    assert_int_equal(find(&r, "")->refused, 45);
    /* A set that is read behind the counter may have more than it. */
    reads(f, 0, 50, "[" ELEMENT("10.42.0.3", "10.42.0.2", 6, 2300, 7) "]", 2 * SEC);
    reads(f, 0, 52, "[" ELEMENT("10.42.0.3", "10.42.0.2", 6, 2300, 7) "]", 3 * SEC);
    assert_true(access_counts_report(&f->c, &f->s, 0, 3 * SEC, &r, &seq));
    assert_int_equal(find(&r, "ssh")->refused, 7);
    assert_int_equal(find(&r, "")->refused, 45);
}

static void test_more_than_fits_into_a_report(void **state)
{
    struct fixture *f = *state;
    struct access_report r;
    uint64_t seq = 0;
    unsigned n = 0;
    json_t *elements = json_array();

    for (int i = 0; i < ACCESS_SET_MAX; i++)
        json_array_append_new(
            elements, json_pack("{s:{s:{s:[s, s, i, i]}, s:{s:i}}}", "elem", "val", "concat",
                          "10.42.0.3", "10.42.0.2", 6, 1000 + i, "counter", "packets", 1));
    for (unsigned k = 0; k < 2; k++) {
        char *text = json_dumps(elements, 0);

        reads(f, 0, ACCESS_SET_MAX, text, (k + 1) * SEC);
        free(text);
    }
    assert_int_equal(f->c.n_kinds, ACCESS_SET_MAX);
    while (access_counts_report(&f->c, &f->s, seq, 2 * SEC, &r, &seq)) {
        assert_true(r.n_refused <= ACCESS_REFUSED_MAX);
        n += r.n_refused;
    }
    assert_int_equal(n, ACCESS_SET_MAX);
    json_decref(elements);
}

static void test_figures(void **state)
{
    struct fixture *f = *state;
    struct metrics m = METRICS_NULL;
    char *text;

    reads(f, 4, 5, "[" ELEMENT("10.42.0.3", "10.42.0.2", 6, 2300, 5) "]", SEC);
    access_counts_add_metrics(&f->c, &m);
    text = metrics_take(&m);
    assert_non_null(strstr(text, "weft_agent_rule_passed_total{rule=\"ssh\"} 4\n"));
    assert_non_null(strstr(text, "weft_agent_rule_refused_total{rule=\"ssh\"} 5\n"));
    free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_told),
        TEST(test_each_kind_is_told_now_and_then),
        TEST(test_a_table_that_is_put_again),
        TEST(test_a_rule_that_comes_back),
        TEST(test_a_set_that_is_full),
        TEST(test_more_than_fits_into_a_report),
        TEST(test_figures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
