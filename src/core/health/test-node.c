/* test-node.c - what is found of a node, and what is not found because something else explains it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "health/node.h"

/* One that is well. */
static const struct node_facts well = {.name = "a",
    .copies = "",
    .silent_for = 30,
    .unapplied_for = -1,
    .probe_for = 5,
    .probe_every = 10,
    .there_for = 5,
    .sending_for = -1,
    .session = NODE_SESSION_LIVE,
    .has_agent = true};

/* All that is found, "CODE CODE"; @ret_text: the text of the first. */
static void expect(const struct node_facts *f, const char *expected, char *ret_text)
{
    struct findings set = {.n = 0};
    char is[128] = "";

    findings_look(&set, f->name);
    node_find(f, &set, 1000);
    findings_done(&set, f->name, NULL, NULL);
    for (size_t i = 0; i < set.n; i++) {
        size_t len = strlen(is);

        (void)snprintf(is + len, sizeof(is) - len, "%s%s", i > 0 ? " " : "",
            finding_kinds[set.items[i]->code].code);
        assert_string_equal(set.items[i]->subject, "a");
    }
    if (ret_text)
        (void)snprintf(ret_text, FINDING_TEXT_MAX, "%s", set.n > 0 ? set.items[0]->text : "");
    findings_deinit(&set);
    assert_string_equal(is, expected);
}

static void test_one_that_is_well(void **state)
{
    struct node_facts f = well;

    expect(&f, "", NULL);
    f.session = NODE_SESSION_NONE;
    expect(&f, "", NULL);
    f.lost_for = NODE_LOST_AFTER - 1;
    expect(&f, "", NULL);
    f = well;
    f.silent_for = EDGE_SILENT_AFTER - 1;
    expect(&f, "", NULL);
}

/* Who still sends is not down: it is the way to it that is cut. */
static void test_one_that_gets_nothing(void **state)
{
    struct node_facts f = well;
    struct findings set = {.n = 0};

    f.lost_for = NODE_DEAF_AFTER + 2;
    expect(&f, "WEFT-NODE-001", NULL);
    f.sending_for = 0;
    expect(&f, "", NULL);
    f.sending_for = NODE_DEAF_AFTER - 1;
    node_find_way(&f, &set, "hub>a", 1000);
    assert_int_equal(set.n, 0);
    f.sending_for = NODE_DEAF_AFTER;
    expect(&f, "", NULL);
    node_find_way(&f, &set, "hub>a", 1000);
    assert_int_equal(set.n, 1);
    assert_non_null(findings_find(&set, FINDING_WAY_DEAF, "hub>a"));
    assert_string_equal(set.items[0]->text, "a has acknowledged nothing that the hub has sent it "
                                            "for 12 s, while packets of a arrive at the hub.");
    findings_deinit(&set);
    f.has_agent = false;
    node_find_way(&f, &set, "hub>a", 1000);
    assert_int_equal(set.n, 0);
    /* For that long nothing of it is acknowledged, and now it does not send either. */
    f = well;
    f.lost_for = f.silent_for = EDGE_SILENT_AFTER;
    f.sending_for = 20;
    f.session = NODE_SESSION_NONE;
    expect(&f, "WEFT-NODE-001", NULL);
}

/* A NAT that forgets sooner than the network says hello; of 0 s that is never. */
static void test_a_keepalive_that_does_not_hold(void **state)
{
    static const struct {
        int64_t forgets_s;
        int64_t keepalive_s;
        bool is_found;
    } rows[] = {{30, 0, true}, {30, 30, true}, {30, 29, false}, {0, 0, false}, {0, 60, false}};
    char text[FINDING_TEXT_MAX];
    struct node_facts f = well;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        f.nat_forgets_s = rows[i].forgets_s;
        f.keepalive_s = rows[i].keepalive_s;
        expect(&f, rows[i].is_found ? "WEFT-NAT-001" : "", text);
    }
    f = well;
    f.nat_forgets_s = 28;
    expect(&f, "WEFT-NAT-001", text);
    assert_string_equal(text, "The NAT of a forgets a silent UDP mapping after about 28 s, and the "
                              "network's keepalive is 0 s: nobody reaches it until it speaks.");
    /* Of one that is down nothing else is said. */
    f.lost_for = NODE_LOST_AFTER;
    expect(&f, "WEFT-NODE-001", NULL);
}

/* It is down when nothing reaches it: nothing that follows is found beside it. */
static void test_one_that_is_down(void **state)
{
    struct node_facts f = well;
    char text[FINDING_TEXT_MAX];

    f.lost_for = NODE_LOST_AFTER;
    f.error = "no tun";
    f.probe_for = 400;
    f.unapplied_for = 400;
    f.silent_for = 61;
    expect(&f, "WEFT-NODE-001", text);
    assert_string_equal(text,
        "a has acknowledged nothing that the hub has sent it for 6 s, its agent was last heard 61 "
        "s ago, and no probe that reports reaches it.");
    f.lost_for = 0;
    f.silent_for = 95;
    f.session = NODE_SESSION_NONE;
    expect(&f, "WEFT-NODE-001", text);
    assert_string_equal(text, "The agent of a was last heard 95 s ago, it has no session with the "
                              "hub, and no probe that reports reaches it.");
    /* What is not known is not held against it, and what was never there is not down. */
    f.session = NODE_SESSION_UNKNOWN;
    assert_false(node_is_down(&f));
    f.session = NODE_SESSION_NONE;
    f.silent_for = -1;
    assert_false(node_is_down(&f));
    f.silent_for = 95;
    f.has_agent = false;
    assert_false(node_is_down(&f));
    f.has_agent = true;
    f.reached_by = "b";
    assert_false(node_is_down(&f));
    f.reached_by = NULL;
    f.copies = "two of them";
    expect(&f, "WEFT-NODE-001 WEFT-NODE-004", NULL);
}

static void test_an_agent_that_is_silent(void **state)
{
    struct node_facts f = well;
    char text[FINDING_TEXT_MAX];

    f.silent_for = EDGE_SILENT_AFTER;
    f.error = "what it said before";
    expect(&f, "WEFT-NODE-002", text);
    assert_string_equal(text, "The agent of a has not been heard for 90 s, while its WireGuard "
                              "still has a session with the hub.");
    f.session = NODE_SESSION_UNKNOWN;
    expect(&f, "WEFT-NODE-002", text);
    assert_string_equal(text, "The agent of a has not been heard for 90 s.");
}

/* Others reach it: it is between it and the hub that nothing passes. */
static void test_one_that_the_hub_alone_misses(void **state)
{
    struct node_facts f = well;
    char text[FINDING_TEXT_MAX];

    f.reached_by = "b";
    f.lost_for = NODE_APART_AFTER - 1;
    expect(&f, "", NULL);
    f.lost_for = NODE_APART_AFTER;
    f.error = "what it said before";
    expect(&f, "WEFT-NODE-006", text);
    assert_string_equal(text, "a has acknowledged nothing that the hub has sent it for 12 s, and "
                              "nothing of it arrives here, while the probe of b reaches it.");
    f.sending_for = 0;
    f.error = NULL;
    expect(&f, "", NULL);
    f = well;
    f.reached_by = "b";
    f.silent_for = EDGE_SILENT_AFTER;
    expect(&f, "WEFT-NODE-002", NULL);
    f.session = NODE_SESSION_NONE;
    expect(&f, "WEFT-NODE-006", text);
    assert_non_null(strstr(text, "for 90 s, and its WireGuard has no session with the hub, while "
                                 "the probe of b reaches it."));
    f.has_agent = false;
    expect(&f, "", NULL);
}

static void test_an_agent_that_cannot(void **state)
{
    struct node_facts f = well;
    char text[FINDING_TEXT_MAX];

    f.error = "no tun";
    expect(&f, "WEFT-APPLY-001", text);
    assert_string_equal(text, "The agent of a cannot apply what the network says: no tun.");
    f = well;
    f.unapplied_for = EDGE_SILENT_AFTER - 1;
    expect(&f, "", NULL);
    f.unapplied_for++;
    expect(&f, "WEFT-NODE-003", text);
    assert_string_equal(text, "The agent of a has applied nothing yet.");
    f.silent_for = -1;
    expect(&f, "WEFT-NODE-003", text);
    assert_string_equal(text, "The agent of a has never been heard.");
}

/* Its probe alone is silent only if its machine was there after a report was missing. */
static void test_a_probe_that_is_silent(void **state)
{
    struct node_facts f = well;
    char text[FINDING_TEXT_MAX];

    assert_int_equal(node_probe_limit(10), 25);
    f.probe_for = 24;
    expect(&f, "", NULL);
    f.probe_for = 25;
    expect(&f, "WEFT-PROBE-001", text);
    assert_string_equal(text, "The probe of a has not been heard for 25 s, and said that it "
                              "reports each 10 s: what it said is not counted any more.");
    f.there_for = 13;
    expect(&f, "WEFT-PROBE-001", NULL);
    f.there_for = 14;
    expect(&f, "", NULL);
    f.there_for = -1;
    expect(&f, "WEFT-PROBE-001", NULL);
    /* One of an older version does not say how often it reports; and there may be none. */
    f.probe_every = 0;
    f.probe_for = 4000;
    expect(&f, "", NULL);
    f = well;
    f.probe_for = -1;
    expect(&f, "", NULL);
}

/* What it has said of its health counts while it is there; that it is drained stays. */
static void test_one_that_is_drained(void **state)
{
    struct node_facts f = well;
    char text[FINDING_TEXT_MAX];

    f.unfit = "WEFT-DISK-002 the disk is full";
    f.n_failed = 4;
    expect(&f, "WEFT-HEALTH-001", text);
    assert_string_equal(
        text, "a has failed its health check 4 times in a row: WEFT-DISK-002 the disk is full.");
    f.drained = f.unfit;
    f.hook = "no scontrol";
    expect(&f, "WEFT-HEALTH-001 WEFT-HEALTH-002", NULL);
    f.unfit = NULL;
    expect(&f, "WEFT-HEALTH-002", text);
    assert_string_equal(text,
        "a is to be drained, and its scheduler could not be told: no scontrol. It is drained "
        "because: WEFT-DISK-002 the disk is full.");
    f.hook = NULL;
    expect(&f, "WEFT-HEALTH-002", text);
    assert_string_equal(text, "a is drained: WEFT-DISK-002 the disk is full.");
    f.unfit = f.drained;
    f.lost_for = NODE_LOST_AFTER;
    expect(&f, "WEFT-NODE-001 WEFT-HEALTH-002", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_that_is_well),
        cmocka_unit_test(test_one_that_gets_nothing),
        cmocka_unit_test(test_a_keepalive_that_does_not_hold),
        cmocka_unit_test(test_one_that_is_down),
        cmocka_unit_test(test_an_agent_that_is_silent),
        cmocka_unit_test(test_one_that_the_hub_alone_misses),
        cmocka_unit_test(test_an_agent_that_cannot),
        cmocka_unit_test(test_a_probe_that_is_silent),
        cmocka_unit_test(test_one_that_is_drained),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
