/* test-node-daily.c - who is measured when, and what of it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/node_daily.h"
#include "agent/paths/edge/reach.h"
#include "base/err.h"
#include "mesh/snapshot/snapshot.h"
#include "test/support/sample_mesh.h"

#define SEC  NSEC_PER_SEC
#define HOUR (3600 * SEC)

/* n2 of six, the first of which is the hub; all others are reached directly. */
static struct world {
    struct snapshot snapshot;
    struct reach_peer paths[4];
    struct reach reach;
    struct node_daily_facts facts;
    struct node_daily nd;
} w;

static int enter(void **state)
{
    w = (struct world){.snapshot = sample_snapshot(6, 2)};
    for (unsigned i = 0; i < 4; i++) {
        w.paths[i].kind = PATH_KIND_DIRECT;
        (void)snprintf(w.paths[i].node, sizeof(w.paths[i].node), "n%u", i + 3);
    }
    w.reach = (struct reach){.items = w.paths, .n = 4};
    w.facts = (struct node_daily_facts){
        .snapshot = &w.snapshot, .reach = &w.reach, .now = 100 * SEC, .day = 20786};
    node_daily_init(&w.nd, 0, w.facts.now);
    return 0;
}

static int leave(void **state)
{
    snapshot_deinit(&w.snapshot);
    return 0;
}

/* Who is measured in the next @time, "n3 n4"; looked at each ten seconds. */
static const char *measured_in(nsec_t time)
{
    static char names[256];
    size_t len = 0;

    names[0] = '\0';
    for (nsec_t end = w.facts.now + time; w.facts.now < end; w.facts.now += 10 * SEC) {
        const char *name = node_daily_next(&w.nd, &w.facts);

        if (name)
            len += (size_t)snprintf(
                names + len, sizeof(names) - len, "%s%s", len > 0 ? " " : "", name);
    }
    return names;
}

static void take(const char *name, int32_t day)
{
    json_t *body = json_pack("{s:s, s:[i,i,i,i,i,i,i]}", "peer", name, "sample", (int)day, 900, 800,
        1000, 1000, 412, 301);
    struct err e = ERR_NULL;

    if (node_daily_take(&w.nd, &w.snapshot, body, &e) != 0)
        fail_msg("%s", err_text(&e));
    json_decref(body);
}

static void test_one_after_the_other(void **state)
{
    struct node_daily off = {.n = 0};

    assert_null(node_daily_next(&off, &w.facts));
    assert_string_equal(measured_in(HOUR / 2), "");
    assert_string_equal(measured_in(HOUR), "n3 n4 n5 n6");
    /* What failed is tried again, and what was measured not before the next day. */
    take("n3", 20786);
    take("n5", 20786);
    assert_string_equal(measured_in(2 * HOUR), "n4 n6");
    w.facts.day++;
    take("n4", 20787);
    assert_string_equal(measured_in(2 * HOUR), "n3 n5 n6");
}

/* One end of a pair measures; what a relay passes on, a silent peer and a stock WireGuard nobody.
 */
static void test_who_is_not_measured(void **state)
{
    struct object stock = sample_node(6);

    w.facts.is_busy = true;
    assert_string_equal(measured_in(2 * HOUR), "");
    w.facts.is_busy = false;
    w.paths[0].kind = PATH_KIND_RELAY;
    w.paths[1].silent_since = 7;
    w.paths[2].kind = PATH_KIND_LAN;
    stock.node.stock = true;
    sample_put(&w.snapshot, stock);
    assert_string_equal(measured_in(HOUR), "n5");
    (void)snprintf(w.paths[2].node, sizeof(w.paths[2].node), "n1");
    w.nd.n = 0;
    assert_string_equal(measured_in(HOUR), "");
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *body;
        const char *words;
    } rows[] = {
        {"{}", "\"sample\" is missing"},
        {"{\"sample\":[1,0,0,0,0,0,0]}", "\"peer\" is missing"},
        {"{\"peer\":\"n3\",\"sample\":[1,0,0,0,0,0]}", "no array of 7 or 9 numbers"},
        {"{\"peer\":\"n2\",\"sample\":[1,0,0,0,0,0,0]}", "\"n2\" is no other node"},
        {"{\"peer\":\"n9\",\"sample\":[1,0,0,0,0,0,0]}", "\"n9\" is no other node"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        json_t *body = json_loads(rows[i].body, 0, NULL);
        struct err e = ERR_NULL;

        assert_int_equal(node_daily_take(&w.nd, &w.snapshot, body, &e), -EINVAL);
        if (!strstr(e.text, rows[i].words))
            fail_msg("%s: %s", rows[i].body, e.text);
        json_decref(body);
    }
    assert_int_equal(w.nd.seq, 0);
}

static void told_is(uint64_t since, const char *expected, uint64_t seq)
{
    uint64_t last = 77;
    json_t *json = node_daily_encode(&w.nd, since, &last);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    assert_string_equal(text ? text : "", expected);
    assert_int_equal(last, seq);
    free(text);
    json_decref(json);
}

static void test_what_is_told(void **state)
{
    told_is(0, "", 0);
    take("n4", 20786);
    take("n3", 20786);
    told_is(0,
        "{\"n3\":[[20786,900,800,1000,1000,412,301,0,0]],"
        "\"n4\":[[20786,900,800,1000,1000,412,301,0,0]]}",
        2);
    told_is(1, "{\"n3\":[[20786,900,800,1000,1000,412,301,0,0]]}", 2);
    told_is(2, "", 2);
    take("n4", 20787);
    told_is(2, "{\"n4\":[[20787,900,800,1000,1000,412,301,0,0]]}", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_after_the_other, enter, leave),
        cmocka_unit_test_setup_teardown(test_who_is_not_measured, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_refused, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_told, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
