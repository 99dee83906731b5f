/*
 * test-health.c - what is found of a network, when, and when it is over. A whole hub in this
 * process, without a data half; the test is the clock and the agents.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "health/node.h"
#include "hub/watch/edge_view.h"
#include "hub/watch/reports.h"
#include "test/support/audience.h"

#define WALL 1800000000

static struct reports reports;
static nsec_t now;
static int64_t wall_s;

/* Time goes on, second by second. */
static void pass(unsigned seconds)
{
    for (; seconds > 0; seconds--) {
        now += NSEC_PER_SEC;
        wall_s++;
        reports_look(&reports, now, wall_s);
    }
}

/* A report with ' for ". */
static void say(const char *name, const char *text)
{
    struct report rp = REPORT_NULL;
    struct err e = ERR_NULL;
    char copy[512];
    json_t *json;

    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json = json_loads(copy, 0, NULL);
    if (!json || report_decode(&rp, json, wall_s, &e) != 0)
        fail_msg("%s: %s", text, err_text(&e));
    json_decref(json);
    (void)reports_take(&reports, audience_node(name), &rp, wall_s);
}

static void say_probe(const char *name, const char *peer, const char *part)
{
    char text[512];

    (void)snprintf(text, sizeof(text), "{'owner':'probe/%s','everySeconds':10,'edges':{'%s':{%s}}}",
        name, peer, part);
    say(name, text);
}

/* All three are there, and have applied what they were told. */
static int enter(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    int r = audience_enter(state);

    assert_int_equal(reports_flush(&audience_hub.hub->reports, NSEC_PER_SEC, NULL), 0);
    reports_init(&reports, audience_network()->model);
    now = 1000 * NSEC_PER_SEC;
    wall_s = WALL;
    for (unsigned i = 0; i < 3; i++) {
        audience_node(names[i])->spec.stock = false;
        say(names[i], "{'applied':{'revision':3}}");
    }
    pass(HEALTH_SETTLES_S + 2);
    for (unsigned i = 0; i < 3; i++)
        say(names[i], "{'applied':{'revision':3}}");
    return r;
}

static int leave(void **state)
{
    reports_deinit(&reports);
    return audience_leave(state);
}

/* All that is found, "CODE SUBJECT; ...", in the order of the subjects. */
static void expect_found(const char *expected)
{
    const struct findings *found = health_of(&reports.health, "default");
    struct str s = STR_NULL;
    char *text;

    str_add(&s, "");
    for (size_t i = 0; i < found->n; i++)
        str_addf(&s, "%s%s %s", i > 0 ? "; " : "", finding_kinds[found->items[i]->code].code,
            found->items[i]->subject);
    text = str_take(&s, NULL);
    assert_string_equal(text ? text : "", expected);
    free(text);
}

/* The events that are no others' since the last call, "TYPE CODE OBJECT; ...". */
static void expect_events(const char *expected)
{
    json_t *list = edge_events_encode(&reports.events, "default");
    struct str s = STR_NULL;
    const json_t *ev;
    char *text;
    size_t i;

    str_add(&s, "");
    json_array_foreach(list, i, ev) {
        const char *code = json_string_value(json_object_get(ev, "code"));

        if (code)
            str_addf(&s, "%s %s %s; ", json_string_value(json_object_get(ev, "type")), code,
                json_string_value(json_object_get(ev, "object")));
    }
    text = str_take(&s, NULL);
    assert_string_equal(text ? text : "", expected);
    free(text);
    json_decref(list);
    edge_events_deinit(&reports.events);
}

/* Its machine acknowledges nothing from now on. */
static void lose(const char *name)
{
    audience_node(name)->watched->lost_at = now;
}

static void hear(const char *name)
{
    audience_node(name)->watched->lost_at = 0;
    say(name, "{}");
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static void test_a_machine_that_is_down(void **state)
{
    pass(20);
    expect_found("");
    lose("b");
    pass(NODE_LOST_AFTER - 1);
    expect_found("");
    pass(2);
    expect_found("WEFT-NODE-001 b");
    assert_true(audience_node("b")->reported->is_down);
    expect_events("Found WEFT-NODE-001 b; ");
    /* That it is not heard follows from that, and so does what others say of it. */
    for (unsigned i = 0; i < 9; i++) {
        say("a", "{'applied':{'revision':3},'edges':{'b':{'path':'none'}}}");
        say("c", "{'applied':{'revision':3}}");
        say_probe("a", "b", "'tunnel':'silent'");
        pass(10);
    }
    expect_found("WEFT-NODE-001 b");
    expect_events("");
    hear("b");
    say("a", "{'applied':{'revision':3},'edges':{'b':{'path':'direct'}}}");
    say_probe("a", "b", "'tunnel':'reached'");
    pass(2);
    expect_found("");
    expect_events("Gone WEFT-NODE-001 b; ");
}

/* Somebody whose probe still reports reaches it: it is the way to the hub that is cut. */
static void test_a_machine_that_others_reach(void **state)
{
    for (unsigned i = 0; i < 9; i++) {
        say_probe("a", "b", "'tunnel':'reached'");
        say("a", "{}");
        say("c", "{}");
        if (i == 0)
            lose("b");
        pass(10);
    }
    pass(2);
    expect_found("WEFT-NODE-006 b");
    /* Until the probe falls silent, too. */
    pass(10);
    say("a", "{}");
    say("c", "{}");
    pass(20);
    expect_found("WEFT-PROBE-001 a; WEFT-NODE-001 b");
}

/* Without a data half it is not known whether it has a session. */
static void test_an_agent_that_is_silent(void **state)
{
    for (unsigned i = 0; i < 10; i++) {
        say("a", "{}");
        say("c", "{}");
        pass(10);
    }
    expect_found("WEFT-NODE-002 b");
    assert_int_equal(reports.events.counts[EDGE_EVENT_SILENT], 1);
    expect_events("");
    say("b", "{}");
    pass(2);
    expect_found("");
    assert_int_equal(reports.events.counts[EDGE_EVENT_HEARD], 1);
}

static void test_an_agent_that_cannot_apply(void **state)
{
    say("a", "{'applied':{'revision':4,'error':'no tun'},'edges':{'b':{'path':'none'}}}");
    pass(2);
    expect_found("WEFT-APPLY-001 a");
    say("a", "{'applied':{'revision':4}}");
    pass(2);
    expect_found("");
}

static void test_a_probe_that_is_silent(void **state)
{
    struct edge_pair pair = {.nodes = {audience_node("a"), audience_node("b")}};
    json_t *json;
    const json_t *part;

    say_probe("a", "b", "'tunnel':'reached','tunnelRttMs':38.3");
    pass(13);
    say("a", "{}");
    pass(11);
    expect_found("");
    pass(2);
    expect_found("WEFT-PROBE-001 a");
    expect_events("Found WEFT-PROBE-001 a; ");
    /* What it said is not shown any more. */
    json = edge_view_status(&pair, wall_s);
    part = json_object_get(json, "probe/a");
    assert_string_equal(json_string_value(json_object_get(part, "tunnel")), "unknown");
    assert_null(json_object_get(part, "tunnelRttMs"));
    assert_true(json_is_true(json_object_get(part, "stale")));
    json_decref(json);
    say_probe("a", "b", "'tunnel':'reached','tunnelRttMs':38.3");
    pass(2);
    expect_found("");
    expect_events("Gone WEFT-PROBE-001 a; ");
    json = edge_view_status(&pair, wall_s);
    part = json_object_get(json, "probe/a");
    assert_non_null(json_object_get(part, "tunnelRttMs"));
    assert_null(json_object_get(part, "stale"));
    json_decref(json);
}

/* One of an older version says nothing for as long as nothing differs. */
static void test_a_probe_of_an_older_version(void **state)
{
    say("a", "{'owner':'probe/a','edges':{'b':{'tunnel':'reached'}}}");
    for (unsigned i = 0; i < 10; i++) {
        say("a", "{}");
        say("b", "{}");
        say("c", "{}");
        pass(30);
    }
    expect_found("");
    assert_false(audience_node("a")->reported->is_probe_silent);
}

/* Of a machine that is down nothing of what it said, and nobody reaches it. */
static void test_what_is_shown_of_one_that_is_down(void **state)
{
    struct edge_pair pair = {.nodes = {audience_node("a"), audience_node("b")}};
    json_t *json;

    say_probe(
        "a", "b", "'tunnel':'reached','tunnelRttMs':3,'underlay':'reached','underlayHeard':true");
    say_probe("b", "a", "'tunnel':'reached','tunnelRttMs':3,'underlay':'reached'");
    audience_node("b")->reported->is_down = true;
    json = edge_view_status(&pair, wall_s);
    for (unsigned i = 0; i < 2; i++) {
        const json_t *part = json_object_get(json, i == 0 ? "probe/a" : "probe/b");

        assert_string_equal(json_string_value(json_object_get(part, "tunnel")), "unknown");
        assert_string_equal(json_string_value(json_object_get(part, "underlay")), "unknown");
        assert_null(json_object_get(part, "tunnelRttMs"));
        assert_null(json_object_get(part, "underlayHeard"));
    }
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(json, "hub"), "state")), "agent-silent");
    json_decref(json);
}

/* ---- pairs ---------------------------------------------------------------------------------- */

/* Whatever could follow from a machine that goes down waits until both were heard after it. */
static void test_what_waits(void **state)
{
    say("a", "{'edges':{'b':{'path':'direct'}}}");
    pass(5);
    say("a", "{'edges':{'b':{'path':'relay'}}}");
    pass(5);
    expect_found("");
    say("b", "{}");
    pass(2);
    expect_found("WEFT-PATH-003 a--b");
    say("a", "{'edges':{'b':{'path':'lan'}}}");
    expect_found("");
    /* This time the machine was going down. */
    say("a", "{'edges':{'b':{'path':'relay'}}}");
    pass(1);
    lose("b");
    pass(NODE_LOST_AFTER + 2);
    expect_found("WEFT-NODE-001 b");
}

static void test_an_edge_that_cannot_be_applied(void **state)
{
    say("a", "{'edges':{'b':{'path':'relay','error':'no room'}}}");
    expect_found("WEFT-APPLY-002 a--b");
    say("a", "{'edges':{'b':{'path':'relay'}}}");
    expect_found("");
    say("a", "{'edges':{'b':{'path':'relay','error':'no room'}}}");
    say("a", "{'edges':{}}");
    pass(12);
    expect_found("");
}

static void test_one_way(void **state)
{
    say_probe("a", "b", "'tunnel':'reached','underlay':'silent'");
    pass(1);
    say_probe("b", "a", "'tunnel':'reached','underlay':'silent','underlayHeard':true");
    expect_found("");
    say("a", "{}");
    pass(2);
    expect_found("WEFT-ONEWAY-001 b>a");
    expect_events("Found WEFT-ONEWAY-001 b>a; ");
    say_probe("a", "b", "'tunnel':'reached','underlay':'reached','underlayHeard':true");
    expect_found("");
    say_probe("b", "a", "'tunnel':'reached','underlay':'silent'");
    say_probe("a", "b", "'tunnel':'reached','underlay':'silent','underlayHeard':true");
    pass(2);
    expect_found("WEFT-ONEWAY-001 a>b");
}

/* What is much worse than usual is found beside a limit that does not tell it. */
static void test_more_loss_than_usual(void **state)
{
#define LOSS "'lossIn':{'packets':60000,'seconds':58,'periods':6,"

    say("b", "{'edges':{'a':{'path':'direct'," LOSS "'lost':120,'usualPpm':2000}}}}");
    expect_found("WEFT-LOSS-001 a>b");
    say("b",
        "{'edges':{'a':{'path':'direct'," LOSS "'lost':420,'usualPpm':2000,'isWorse':true}}}}");
    expect_found("WEFT-LOSS-001 a>b; WEFT-LOSS-003 a>b");
    say("b", "{'edges':{'a':{'path':'direct'," LOSS "'lost':120,'usualPpm':2000}}}}");
    expect_found("WEFT-LOSS-001 a>b");
    expect_events("Found WEFT-LOSS-001 a>b; Found WEFT-LOSS-003 a>b; Gone WEFT-LOSS-003 a>b; ");
    say("b", "{'edges':{'a':{'path':'direct'," LOSS "'lost':420,'usualPpm':100,'isWorse':true}}}}");
    expect_found("WEFT-LOSS-001 a>b");
}

static void test_an_unreached_one(void **state)
{
    say_probe("a", "b", "'tunnel':'silent'");
    say("b", "{}");
    pass(2);
    expect_found("WEFT-PATH-001 a--b");
    /* A node is gone, and what was found of it. */
    audience_remove("b");
    health_look_again(&reports.health, audience_network());
    pass(12);
    expect_found("");
}

/* By what is asked for: it is found when it is written, and when the hub is started anew. */
static void test_a_pinned_key(void **state)
{
    static const char body[] =
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\"},\"spec\":{\"nodes\":[\"a\",\"b\"],"
        "\"publicKeys\":{\"b\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=\"}}}";
    const json_t *found;
    json_t *json;

    assert_int_equal(sample_hub_ask(&audience_hub, API_ACCESS_ADMIN, NULL, "PUT",
                         "/v1/networks/default/objects/MeshEdge/a--b", body, NULL),
        200);
    /* The hub's own. */
    json = sample_hub_insist(&audience_hub, "GET", "/v1/networks/default/findings", NULL, 200);
    assert_int_equal(json_integer_value(json_object_get(json, "leftOut")), 0);
    found = json_array_get(json_object_get(json, "findings"), 0);
    assert_string_equal(json_string_value(json_object_get(found, "code")), "WEFT-KEY-001");
    assert_string_equal(json_string_value(json_object_get(found, "subject")), "a--b");
    assert_string_equal(json_string_value(json_object_get(found, "text")),
        "another public key is pinned for b than it has, so the two do not talk.");
    json_decref(json);
    /* One that begins finds it as well. */
    health_look_again(&reports.health, audience_network());
    pass(12);
    expect_found("WEFT-KEY-001 a--b");
    expect_events("Found WEFT-KEY-001 a--b; ");
    assert_int_equal(sample_hub_ask(&audience_hub, API_ACCESS_ADMIN, NULL, "DELETE",
                         "/v1/networks/default/objects/MeshEdge/a--b", NULL, NULL),
        204);
    assert_int_equal(health_of(&audience_hub.hub->reports.health, "default")->n, 0);
    health_look_again(&reports.health, audience_network());
    pass(12);
    expect_found("");
}

/* What was said while something else was wrong is not found when that is over. */
static void test_what_is_old(void **state)
{
    say("a", "{'applied':{'revision':4,'error':'no tun'},'edges':{'b':{'path':'none'}}}");
    pass(2);
    expect_found("WEFT-APPLY-001 a");
    say("a", "{'applied':{'revision':4}}");
    say("b", "{}");
    pass(HEALTH_SETTLES_S - 2);
    expect_found("");
    say("b", "{}");
    pass(6);
    expect_found("WEFT-PATH-002 a--b");
    /* What is found already stays. */
    health_edge_changed(&reports.health, audience_node("a"), audience_node("b"), wall_s);
    expect_found("WEFT-PATH-002 a--b");
    say("a", "{'edges':{'b':{'path':'lan'}}}");
    say("a", "{'edges':{'b':{'path':'none'}}}");
    say("b", "{}");
    pass(4);
    expect_found("");
    pass(HEALTH_SETTLES_S);
    expect_found("WEFT-PATH-002 a--b");
}

/* Nor what was said of a node that had never applied anything, before a pass has seen that it has.
 */
static void test_what_is_of_before_it_applied(void **state)
{
    for (unsigned i = 0; i < 10; i++) {
        say("a", "{'applied':{'revision':3}}");
        say("b", "{'applied':{'revision':0}}");
        say("c", "{'applied':{'revision':3}}");
        say_probe("a", "b", "'tunnel':'silent'");
        pass(10);
    }
    expect_found("WEFT-NODE-003 b");
    say("b", "{'applied':{'revision':3},'edges':{'a':{'path':'lan'}}}");
    expect_found("WEFT-NODE-003 b");
    pass(2);
    expect_found("");
}

/* A network that is gone takes what was found of it along. */
static void test_it_is_forgotten(void **state)
{
    say("a", "{'edges':{'b':{'path':'relay','error':'no room'}}}");
    expect_found("WEFT-APPLY-002 a--b");
    health_forget(&reports.health, "default");
    expect_found("");
    health_forget(&reports.health, "default");
    health_forget(&reports.health, "other");
}

/* What others look at: a job may be called like a node. */
static void test_what_others_find(void **state)
{
    struct findings *found = health_begin(&reports.health, "default", FINDING_OF_BUDGET, "a");

    assert_non_null(found);
    (void)findings_add(found, FINDING_BUDGET_SPENT, "a", wall_s, "It is spent.");
    health_end(&reports.health, "default", "a", wall_s);
    say("a", "{'applied':{'revision':4,'error':'no tun'}}");
    pass(2);
    expect_found("WEFT-APPLY-001 a; WEFT-COST-002 a");
    (void)health_begin(&reports.health, "default", FINDING_OF_BUDGET, "a");
    health_end(&reports.health, "default", "a", wall_s);
    expect_found("WEFT-APPLY-001 a");
    expect_events("");
}

/* What an agent finds itself is found of its node, as long as it says so and is heard. */
static void test_what_an_agent_finds(void **state)
{
    static const char clock_off[] =
        "{'findings':[{'code':'WEFT-CLOCK-001','forSeconds':30,'text':'12 s off','fix':'set it'}]}";
    const struct finding *f;

    say("a", clock_off);
    pass(2);
    expect_found("WEFT-CLOCK-001 a");
    f = findings_find(health_of(&reports.health, "default"), FINDING_CLOCK_OFF, "a");
    assert_int_equal(f->since, wall_s - 32);
    assert_string_equal(f->text, "12 s off");
    assert_string_equal(f->fix, "set it");
    expect_events("Found WEFT-CLOCK-001 a; ");
    /* Who says nothing of it has not changed its mind. */
    say("a", "{'applied':{'revision':4}}");
    pass(2);
    expect_found("WEFT-CLOCK-001 a");
    say("a", "{'findings':[]}");
    pass(2);
    expect_found("");
    expect_events("Gone WEFT-CLOCK-001 a; ");
    say("a", clock_off);
    pass(2);
    lose("a");
    pass(NODE_LOST_AFTER + 2);
    expect_found("WEFT-NODE-001 a");
}

/* Others fall silent before the hub knows that a machine is down. */
static void test_what_an_agent_finds_of_a_pair(void **state)
{
    static const char silent[] = "{'findings':[{'code':'WEFT-PEER-001','peer':'b','text':'x'},"
                                 "{'code':'WEFT-PEER-001','peer':'none','text':'x'}]}";

    /* b was not heard since. */
    pass(1);
    say("a", silent);
    pass(2 * HEALTH_PAIRS_EACH / NSEC_PER_SEC);
    expect_found("");
    say("b", "{}");
    pass(4);
    expect_found("WEFT-PEER-001 a--b");
    say("a", "{'findings':[]}");
    pass(2 + HEALTH_PAIRS_EACH / NSEC_PER_SEC);
    expect_found("");
    lose("b");
    say("a", silent);
    pass(NODE_LOST_AFTER + 2 + HEALTH_PAIRS_EACH / NSEC_PER_SEC);
    expect_found("WEFT-NODE-001 b");
}

/* One end may be busy, which the other one does not know. */
static void test_longer_round_trips(void **state)
{
    pass(1);
    say("b", "{}");
    pass(4);
    say("a", "{'findings':[{'code':'WEFT-RTT-001','peer':'b','text':'x'}]}");
    pass(4 + HEALTH_PAIRS_EACH / NSEC_PER_SEC);
    expect_found("");
    say("b", "{'findings':[{'code':'WEFT-RTT-001','peer':'a','text':'y'}]}");
    say("a", "{}");
    pass(4 + HEALTH_PAIRS_EACH / NSEC_PER_SEC);
    expect_found("WEFT-RTT-001 a--b");
    say("a", "{'findings':[]}");
    pass(2 + HEALTH_PAIRS_EACH / NSEC_PER_SEC);
    expect_found("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_machine_that_is_down, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_machine_that_others_reach, enter, leave),
        cmocka_unit_test_setup_teardown(test_an_agent_that_is_silent, enter, leave),
        cmocka_unit_test_setup_teardown(test_an_agent_that_cannot_apply, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_probe_that_is_silent, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_probe_of_an_older_version, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_shown_of_one_that_is_down, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_waits, enter, leave),
        cmocka_unit_test_setup_teardown(test_an_edge_that_cannot_be_applied, enter, leave),
        cmocka_unit_test_setup_teardown(test_one_way, enter, leave),
        cmocka_unit_test_setup_teardown(test_an_unreached_one, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_pinned_key, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_old, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_of_before_it_applied, enter, leave),
        cmocka_unit_test_setup_teardown(test_it_is_forgotten, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_others_find, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_an_agent_finds, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_an_agent_finds_of_a_pair, enter, leave),
        cmocka_unit_test_setup_teardown(test_longer_round_trips, enter, leave),
        cmocka_unit_test_setup_teardown(test_more_loss_than_usual, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
