/* test-reports-kept.c - what is kept of a node's reports, which events they make, and when a record
 * of them is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "health/node.h"
#include "hub/watch/reports.h"
#include "store/store_backend.h"
#include "test/support/audience.h"
#include "test/support/store_now.h"

#define WALL 1800000000

static struct reports reports;
static nsec_t now;
static int64_t wall_s;

static int enter(void **state)
{
    int r = audience_enter(state);

    assert_int_equal(reports_flush(&audience_hub.hub->reports, NSEC_PER_SEC, NULL), 0);
    reports_init(&reports, audience_network()->model);
    now = 1000 * NSEC_PER_SEC;
    wall_s = WALL;
    return r;
}

static int leave(void **state)
{
    reports_deinit(&reports);
    return audience_leave(state);
}

static struct reported_node *reported(const char *name)
{
    return audience_node(name)->reported;
}

/* A report with ' for ". */
static enum reports_result say(const char *name, const char *text)
{
    struct report rp = REPORT_NULL;
    struct err e = ERR_NULL;
    char copy[512];
    json_t *json;

    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json = json_loads(copy, 0, NULL);
    assert_non_null(json);
    if (report_decode(&rp, json, wall_s, &e) != 0)
        fail_msg("%s", err_text(&e));
    json_decref(json);
    return reports_take(&reports, audience_node(name), &rp, wall_s);
}

/* All that has happened, a line each, and no more; they are forgotten then. */
static void expect_events(const char *expected)
{
    json_t *list = edge_events_encode(&reports.events, "default");
    struct str s = STR_NULL;
    const json_t *ev;
    size_t i;
    char *text;

    json_array_foreach(list, i, ev)
        str_addf(&s, "%s %s: %s at %" PRId64 "\n", json_string_value(json_object_get(ev, "type")),
            json_string_value(json_object_get(ev, "object")),
            json_string_value(json_object_get(ev, "text")),
            (int64_t)json_integer_value(json_object_get(ev, "time")) - WALL);
    str_add(&s, "");
    text = str_take(&s, NULL);
    assert_string_equal(text ? text : "", expected);
    free(text);
    json_decref(list);
    edge_events_deinit(&reports.events);
}

static void flush(void)
{
    struct err e = ERR_NULL;

    assert_int_equal(reports_flush(&reports, now, &e), 0);
    assert_true(list_is_empty(&reports.unsaved));
}

/* Is a record of @name to be written? All are, then. */
static bool is_to_write(const char *name)
{
    bool is_it = reported(name)->is_unsaved;

    flush();
    return is_it;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static void test_each_fact_is_worth_a_record(void **state)
{
    static const struct {
        const char *report;
        enum reports_result result;
    } cases[] = {
        {"{}", REPORTS_TAKEN}, /* that it was heard at all */
        {"{'node':{'engine':'e'}}", REPORTS_TAKEN},
        {"{'node':{'engine':'e','version':'v'}}", REPORTS_TAKEN},
        {"{'node':{'engine':'e','version':'v','routes':['10.9.0.0/24']}}", REPORTS_TAKEN},
        {"{'node':{'hostname':'h'}}", REPORTS_UPDATES},
        {"{'node':{'hostname':'h','machine':{'host':'m'},'aead':{'a':1}}}", REPORTS_UPDATES},
        {"{'applied':{'revision':7,'error':'no tun'}}", REPORTS_TAKEN},
        {"{'applied':{'revision':7}}", REPORTS_TAKEN},
        {"{'edges':{'b':{}}}", REPORTS_TAKEN},
        {"{'edges':{'b':{'path':'relay'}}}", REPORTS_TAKEN},
        {"{'edges':{'b':{'path':'relay','alarm':true}}}", REPORTS_TAKEN},
        {"{'edges':{'b':{'path':'relay','error':'x'}}}", REPORTS_TAKEN},
        {"{'edges':{'b':{'path':'relay','endpoint':'192.0.2.1:1'}}}", REPORTS_TAKEN},
        {"{'edges':{'b':{'path':'relay','peerKey':"
         "'BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc='}}}",
            REPORTS_TAKEN},
        {"{'edges':{}}", REPORTS_TAKEN},
        {"{'owner':'probe/a','edges':{'b':{'tunnel':'silent'}}}", REPORTS_TAKEN},
        {"{'owner':'probe/a','edges':{'b':{'tunnel':'silent','underlay':'silent'}}}",
            REPORTS_TAKEN},
        {"{'owner':'probe/a','edges':{}}", REPORTS_TAKEN},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        if (say("a", cases[i].report) != cases[i].result)
            fail_msg("%s", cases[i].report);
        if (!is_to_write("a"))
            fail_msg("%s is not written", cases[i].report);
        /* It is no news the second time. */
        assert_int_equal(say("a", cases[i].report), REPORTS_TAKEN);
        if (is_to_write("a"))
            fail_msg("%s is written twice", cases[i].report);
    }
}

static void test_what_is_held(void **state)
{
    struct reported_node *a = reported("a");

    wall_s += 5;
    (void)say("a", "{'owner':'probe/a','run':5,'number':1,'begins':true,'edges':{'b':{}}}");
    assert_int_equal(a->heard.probed.n, 1);
    assert_false(a->heard.report.has_edges);
    assert_false(a->heard.has_reported);
    assert_int_equal(a->reported_at, 0);
    assert_int_equal(a->said[EDGE_OWNER_PROBE].last, 1);
    assert_int_equal(a->said[EDGE_OWNER_AGENT].last, 0);
    (void)say("a", "{'node':{'engine':'e','machine':{'host':'m'}},'edges':{'b':{},'c':{}},"
                   "'applied':{'revision':9,'error':'x'}}");
    assert_true(a->heard.report.has_edges);
    assert_true(a->heard.has_reported);
    assert_int_equal(a->reported_at, WALL + 5);
    assert_int_equal(a->heard_here_at, WALL + 5);
    assert_string_equal(a->heard.report.engine, "e");
    assert_string_equal(a->heard.report.machine.host, "m");
    assert_true(a->heard.report.has_applied);
    assert_int_equal(a->heard.report.applied, 9);
    assert_int_equal(reports.n_parts, 3);
    (void)say("a", "{'edges':{}}");
    assert_int_equal(reports.n_parts, 1);
    assert_string_equal(a->heard.report.engine, "e");
    assert_string_equal(a->heard.report.error, "x");
    /* Of edges so many are kept in all. */
    reports.n_parts = REPORTS_PARTS_MAX - 2;
    (void)say("b", "{'edges':{'a':{}}}");
    (void)say("b", "{'edges':{'a':{},'c':{}}}");
    assert_int_equal(reports.n_parts, REPORTS_PARTS_MAX);
    assert_int_equal(reports.n_parts_left_out, 0);
    (void)say("c", "{'edges':{'a':{}}}");
    assert_int_equal(reports.n_parts_left_out, 1);
    assert_int_equal(reported("c")->heard.report.edges.n, 0);
    /* What is missing between two reports has the writer begin anew, and nothing is taken of it. */
    assert_int_equal(
        say("a", "{'owner':'probe/a','run':5,'number':3,'edges':{'b':null}}"), REPORTS_AGAIN);
    assert_int_equal(a->heard.probed.n, 1);
}

static void test_whose_part_it_is(void **state)
{
    struct report rp = REPORT_NULL;
    struct err e = ERR_NULL;

    assert_true(reports_owns(audience_node("a"), &rp, &e));
    (void)snprintf(rp.owner_node, sizeof(rp.owner_node), "a");
    rp.edges.owner = EDGE_OWNER_PROBE;
    assert_true(reports_owns(audience_node("a"), &rp, &e));
    assert_false(reports_owns(audience_node("b"), &rp, &e));
    assert_int_equal(e.code, -EPERM);
    assert_string_equal(
        e.text, "\"probe/a\" is written by node \"a\" and by nobody else, and this is \"b\"");
}

/* ---- events ---------------------------------------------------------------------------------- */

static void test_events_of_paths(void **state)
{
    (void)say("a", "{'edges':{'b':{'path':'none'},'c':{'path':'lan'}}}");
    expect_events("");
    wall_s++;
    (void)say("a", "{'edges':{'b':{'path':'relay'},'c':{'path':'none'}}}");
    expect_events("FellBack a--c: a went from lan to none on its way to c at 1\n");
    assert_int_equal(
        edge_parts_find(&reported("a")->heard.report.edges, "c")->said.fell_at, wall_s);
    wall_s++;
    (void)say("a", "{'edges':{'b':{'path':'none'},'c':{'path':'relay'}}}");
    expect_events("NoPath a--b: a has no path to b any more at 2\n");
    assert_int_equal(
        edge_parts_find(&reported("a")->heard.report.edges, "c")->said.fell_at, wall_s - 1);
    (void)say("a", "{'edges':{'b':{'path':'direct'},'c':{'path':'direct'}}}");
    expect_events("DirectAgain a--c: a reaches c directly again at 2\n");
    assert_int_equal(edge_parts_find(&reported("a")->heard.report.edges, "c")->said.fell_at, 0);
    (void)say("a", "{'edges':{'b':{},'c':{'path':'lan'}}}");
    assert_int_equal(edge_parts_find(&reported("a")->heard.report.edges, "b")->said.fell_at, 0);
    (void)say("a", "{'edges':{'b':{'path':'none'}}}");
    expect_events("");
}

static void test_events_of_probes(void **state)
{
    (void)say("a", "{'owner':'probe/a','edges':{'b':{'tunnel':'silent'}}}");
    expect_events("Unreached a--b: b does not answer a through the tunnel at 0\n");
    (void)say("a", "{'owner':'probe/a','edges':{'b':{'tunnel':'unknown'}}}");
    (void)say("a", "{'owner':'probe/a','edges':{'b':{'tunnel':'reached'}}}");
    expect_events("");
    (void)say("a", "{'owner':'probe/a','edges':{'b':{'tunnel':'silent'}}}");
    (void)say("a", "{'owner':'probe/a','edges':{'b':{'tunnel':'reached'}}}");
    expect_events("Unreached a--b: b does not answer a through the tunnel at 0\n"
                  "ReachedAgain a--b: b answers a again at 0\n");
}

/* Two runs in turn are two machines; once one of them is not heard any more, that is over. */
static void test_events_of_copies(void **state)
{
    char why[COPIES_TEXT_MAX];
    char expected[COPIES_TEXT_MAX + 64];

    for (unsigned i = 0; i < 4; i++)
        (void)say("a", i % 2 == 0 ? "{'run':5,'number':1,'begins':true}"
                                  : "{'run':6,'number':1,'begins':true}");
    assert_int_equal(reports.events.counts[EDGE_EVENT_COPIED], 1);
    assert_true(reported("a")->had_copies);
    copies_explain(&reported("a")->copies, why);
    (void)snprintf(expected, sizeof(expected), "NodeCopied a: %s at 0\n", why);
    expect_events(expected);
    reports_look(&reports, now, wall_s);
    wall_s += COPIES_FORGET_S;
    now += COPIES_FORGET_S * NSEC_PER_SEC;
    reports_look(&reports, now, wall_s);
    assert_false(reported("a")->had_copies);
    expect_events("NodeCopiedNoMore a: it is one machine again at 600\n");
    /* A probe's runs are its own. */
    for (unsigned i = 0; i < 4; i++)
        (void)say("b", i % 2 == 0 ? "{'owner':'probe/b','run':5,'number':1,'begins':true}"
                                  : "{'owner':'probe/b','run':6,'number':1,'begins':true}");
    assert_int_equal(reports.events.counts[EDGE_EVENT_COPIED], 0);
}

static void look_after(unsigned seconds)
{
    now += seconds * NSEC_PER_SEC;
    wall_s += seconds;
    reports_look(&reports, now, wall_s);
}

/* Of agents, and not of stock WireGuards; so much after the hub has started, and after the node was
 * seen; once. */
static void test_agents_that_apply_nothing(void **state)
{
    audience_node("a")->spec.stock = false;
    audience_node("b")->spec.stock = false;
    reports_look(&reports, now, wall_s);
    assert_int_equal(reports.started_at, WALL);
    look_after(EDGE_SILENT_AFTER - 1);
    reported("a")->heard.last_seen_at = wall_s - EDGE_SILENT_AFTER + 10;
    (void)say("b", "{'applied':{'revision':0}}");
    expect_events("");
    look_after(8);
    expect_events("");
    look_after(2);
    expect_events("NeverApplied a: its agent has never been heard at 99\n");
    /* One that is heard counts from when it was, however often it is seen. */
    look_after(40);
    (void)say("b", "{'applied':{'revision':0}}");
    look_after(46);
    reported("b")->heard.last_seen_at = wall_s;
    expect_events("");
    look_after(2);
    expect_events("NeverApplied b: its agent has applied nothing yet at 187\n");
    assert_true(reported("b")->was_unapplied);
    (void)say("b", "{'applied':{'revision':1}}");
    look_after(10);
    assert_false(reported("b")->was_unapplied);
    (void)say("b", "{'applied':{'revision':0}}");
    look_after(2);
    look_after(44);
    (void)say("b", "{'applied':{'revision':0}}");
    look_after(44);
    expect_events("");
    look_after(2);
    expect_events("NeverApplied b: its agent has applied nothing yet at 289\n");
    assert_int_equal(reports.started_at, WALL);
}

static void test_silent_agents(void **state)
{
    audience_node("a")->spec.stock = false;
    reports_look(&reports, now, wall_s);
    (void)say("a", "{'applied':{'revision':1},'edges':{'b':{}}}");
    (void)say("a", "{'owner':'probe/a','edges':{'b':{},'c':{}}}");
    reports.n_parts = 7;
    look_after(9);
    assert_int_equal(reports.n_parts, 7);
    look_after(EDGE_SILENT_AFTER - 10);
    assert_int_equal(reports.n_parts, 3);
    expect_events("");
    look_after(1);
    expect_events("");
    look_after(9);
    expect_events("AgentSilent a: its agent has not been heard for 90 s at 99\n");
    (void)say("a", "{}");
    look_after(10);
    expect_events("AgentHeard a: its agent is heard again at 109\n");
    /* What was heard before this hub began counts from its beginning. */
    reported("a")->reported_at = reported("a")->heard_here_at = WALL - 1000;
    reports.started_at = wall_s - EDGE_SILENT_AFTER + 11;
    look_after(10);
    expect_events("");
    look_after(10);
    expect_events("AgentSilent a: its agent has not been heard for 90 s at 129\n");
}

/* By five seconds the clock was set; by less it just runs differently. */
static void test_steps_of_the_clock(void **state)
{
    static const int64_t steps[] = {4, -4, 5, -5};

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        bool is_step = steps[i] >= 5 || steps[i] <= -5;
        int64_t before;

        reports_look(&reports, now, wall_s);
        (void)say("a", "{}");
        reported("b")->reported_at = reported("a")->reported_at;
        reported("b")->heard_here_at = 0;
        before = wall_s;
        reports.started_at = before;
        wall_s += steps[i];
        look_after(100);
        assert_int_equal(reports.started_at, before + (is_step ? steps[i] : 0));
        /* Set back by so little, it may have come when the clock was set already. */
        assert_int_equal(reported("a")->reported_at, before + (steps[i] >= 5 ? steps[i] : 0));
        assert_int_equal(reported("a")->heard_here_at, reported("a")->reported_at);
        /* What the store says was noted by another clock. */
        assert_int_equal(reported("b")->reported_at, before);
    }
}

/* ---- records --------------------------------------------------------------------------------- */

static int take_value(void *ctx, const struct store_item *item)
{
    char **ret = ctx;

    free(*ret);
    *ret = strdup(item->value);
    return 0;
}

static void expect_stored(const char *name, struct report_record *ret)
{
    struct err e = ERR_NULL;
    char *text = NULL;
    char key[64];

    (void)snprintf(key, sizeof(key), "report/default/%s", name);
    assert_int_equal(
        store_now_list(audience_hub.hub->store, key, take_value, &text, NULL, NULL), 0);
    assert_non_null(text);
    *ret = (struct report_record){0};
    if (record_report_decode(ret, text, &e) != 0)
        fail_msg("%s", err_text(&e));
    free(text);
}

static void test_what_is_written(void **state)
{
    struct report_record r;

    (void)say("a", "{'node':{'engine':'e','hostname':'h'}}");
    reports_seen(&reports, audience_node("a"), now, wall_s);
    flush();
    expect_stored("a", &r);
    assert_int_equal(r.last_seen_at, WALL);
    assert_true(r.has_reported);
    assert_int_equal(r.by, audience_network()->model->boot);
    assert_string_equal(r.report.engine, "e");
    assert_string_equal(r.report.hostname, "h");
    report_record_deinit(&r);
    /* Nothing is written of who leaves. */
    for (unsigned i = 0; i < 3; i++) {
        (void)say("a", i == 0   ? "{'node':{'engine':'f'}}"
                       : i == 1 ? "{'node':{'engine':'g'}}"
                                : "{'node':{'engine':'h'}}");
        audience_node("a")->served->leaving = i == 0 ? "it leaves" : NULL;
        audience_node("a")->is_expired = i == 1;
        audience_network()->leaving = i == 2 ? "it leaves" : NULL;
        flush();
        expect_stored("a", &r);
        assert_string_equal(r.report.engine, "e");
        report_record_deinit(&r);
    }
    audience_node("a")->is_expired = false;
    audience_network()->leaving = NULL;
}

static void test_when_last_seen_is_written(void **state)
{
    struct model_node *a = audience_node("a");

    a->reported->stored_at = wall_s;
    a->reported->only_enrolled_at = 5;
    reports_seen(&reports, a, now, wall_s + 59);
    assert_false(a->reported->is_unsaved);
    assert_int_equal(a->reported->seen_at, now);
    assert_int_equal(a->reported->heard.last_seen_at, wall_s + 59);
    assert_int_equal(a->reported->only_enrolled_at, 0);
    reports_seen(&reports, a, now, wall_s);
    assert_false(a->reported->is_unsaved);
    /* The clock was set back. */
    reports_seen(&reports, a, now, wall_s - 1);
    assert_true(is_to_write("a"));
    a->reported->stored_at = wall_s;
    /* What another hub has not written is written here. */
    a->reported->is_unwritten = true;
    reports_seen(&reports, a, now, wall_s + 1);
    assert_true(is_to_write("a"));
    assert_false(a->reported->is_unwritten);
}

/* A large network has them written more rarely: a second later for each hundred nodes. */
static void test_a_large_network(void **state)
{
    struct model_node *a = audience_node("a");
    char name[8];

    for (unsigned i = 0; i < 96; i++) {
        (void)snprintf(name, sizeof(name), "%c%c", (int)('d' + i % 20), (int)('a' + i / 20));
        audience_add(name);
    }
    assert_int_equal(audience_network()->nodes.n, 100);
    a->reported->stored_at = wall_s;
    reports_seen(&reports, a, now, wall_s + 60);
    assert_false(a->reported->is_unsaved);
    reports_seen(&reports, a, now, wall_s + 61);
    assert_true(a->reported->is_unsaved);
}

/* Of several hubs the one writes whose the node's watch is; or any, when nobody has for a while. */
static void test_a_record_of_several_hubs(void **state)
{
    struct store *store = audience_hub.hub->store;
    struct model_node *a = audience_node("a");
    struct stream *s;

    store->is_shared = true;
    a->reported->stored_at = a->reported->heard.last_seen_at = wall_s;
    (void)say("a", "{'node':{'engine':'f'}}");
    assert_true(is_to_write("a"));
    assert_true(a->reported->is_unwritten);
    reports_seen(&reports, a, now, wall_s + 59);
    assert_false(a->reported->is_unsaved);
    reports_seen(&reports, a, now, wall_s + 119);
    assert_true(is_to_write("a"));
    assert_true(a->reported->is_unwritten);
    reports_seen(&reports, a, now, wall_s + 120);
    assert_true(is_to_write("a"));
    assert_false(a->reported->is_unwritten);
    a->reported->is_unwritten = true;
    a->reported->stored_at = wall_s;
    s = audience_open("a");
    reports_seen(&reports, a, now, wall_s + 1);
    assert_true(is_to_write("a"));
    assert_false(a->reported->is_unwritten);
    audience_end(s);
    store->is_shared = false;
}

static void test_enrolment(void **state)
{
    struct model_node *a = audience_node("a");
    struct subnets asked = SUBNETS_NULL;

    assert_int_equal(subnets_parse(&asked, "10.9.0.0/24", NULL), 0);
    a->reported->stored_at = wall_s;
    a->reported->only_enrolled_at = 0;
    reports_enrolled(&reports, a, false, "e", &asked, now, wall_s + 60);
    assert_int_equal(a->reported->only_enrolled_at, 0);
    assert_string_equal(a->reported->heard.report.engine, "e");
    assert_int_equal(a->reported->heard.report.routes.n, 1);
    assert_int_equal(a->reported->heard.last_seen_at, wall_s + 60);
    assert_true(is_to_write("a"));
    reports_enrolled(&reports, a, true, "e", &asked, now, wall_s + 60);
    assert_int_equal(a->reported->only_enrolled_at, now);
}

/* ---- a store that fails ---------------------------------------------------------------------- */

static bool is_full;
static const struct store_ops *usual;

static void submit(struct store *s, struct store_job *job)
{
    if (!is_full) {
        usual->submit(s, job);
        return;
    }
    job->r = err_set(&job->e, -ENOSPC, "no space left");
    store__finish(s, job);
}

/* What was not written is tried again, and its error is told once. */
static void test_a_store_that_refuses(void **state)
{
    struct store *s = audience_hub.hub->store;
    struct store_ops ops = *s->ops;
    struct err e = ERR_NULL;

    ops.submit = submit;
    usual = s->ops;
    s->ops = &ops;
    is_full = true;
    (void)say("a", "{'node':{'engine':'e'}}");
    reports.flushed_at = now - REPORTS_FLUSH + 1;
    assert_int_equal(reports_tick(&reports, now, &e), 0);
    assert_true(reported("a")->is_unsaved);
    reports.flushed_at--;
    assert_int_equal(reports_tick(&reports, now, &e), 0);
    assert_int_equal(reports.flushed_at, now);
    assert_int_equal(reports.n_flushes, 1);
    assert_false(reported("a")->is_unsaved);
    (void)say("b", "{'node':{'engine':'e'}}");
    now += REPORTS_FLUSH;
    assert_int_equal(reports_tick(&reports, now, &e), 0);
    assert_true(reported("b")->is_unsaved);
    store_wait(s);
    assert_int_equal(reports.n_flushes, 0);
    assert_true(reported("a")->is_unsaved);
    assert_int_equal(reports_tick(&reports, now, &e), -EIO);
    assert_string_equal(err_text(&e), "no space left");
    assert_int_equal(reports_flush(&reports, now, &e), -EIO);
    assert_string_equal(err_text(&e), "no space left");
    is_full = false;
    assert_int_equal(reports_tick(&reports, now, &e), -EIO);
    assert_int_equal(reports_tick(&reports, now, &e), 0);
    store_wait(s);
    assert_false(reported("a")->is_unsaved);
    assert_int_equal(reports_tick(&reports, now + REPORTS_FLUSH, &e), 0);
    s->ops = usual;
}

/* Of more than fit a commit, all are written, in two; and of a node that has gone meanwhile nothing
 * is written again. */
static void test_more_than_one_commit(void **state)
{
    struct store *s = audience_hub.hub->store;
    struct store_ops ops = *s->ops;
    struct report_record r;
    struct err e = ERR_NULL;
    char name[8];

    for (unsigned i = 0; i < 256; i++) {
        (void)snprintf(name, sizeof(name), "%c%c", (int)('d' + i % 16), (int)('a' + i / 16));
        audience_add(name);
        (void)say(name, "{'node':{'engine':'e'}}");
    }
    (void)say("a", "{'node':{'engine':'e'}}");
    ops.submit = submit;
    usual = s->ops;
    s->ops = &ops;
    is_full = true;
    assert_int_equal(reports_tick(&reports, now, &e), 0);
    assert_int_equal(reports.n_flushes, 2);
    assert_true(list_is_empty(&reports.unsaved));
    is_full = false;
    s->ops = usual;
    audience_remove("da");
    store_wait(s);
    assert_int_equal(reports.n_flushes, 0);
    assert_true(reported("ea")->is_unsaved && reported("a")->is_unsaved);
    reports.failure = (struct err)ERR_NULL;
    flush();
    expect_stored("ea", &r);
    assert_string_equal(r.report.engine, "e");
    report_record_deinit(&r);
    expect_stored("a", &r);
    assert_string_equal(r.report.engine, "e");
    report_record_deinit(&r);
}

/* It is tried with the hub's own record, where nothing else is on its way. */
static void test_a_store_is_tried(void **state)
{
    struct reported_node *own = reported(audience_network()->model->self);

    reports.n_flushes = 1;
    reports_try_store(&reports);
    assert_false(own->is_unsaved);
    reports.n_flushes = 0;
    (void)say("a", "{'node':{'engine':'e'}}");
    reports_try_store(&reports);
    assert_false(own->is_unsaved);
    flush();
    reports_try_store(&reports);
    assert_true(own->is_unsaved);
    flush();
    /* Without a network there is none. */
    reports_init(&reports, &(struct model){.self = "hub"});
    reports_try_store(&reports);
    assert_true(list_is_empty(&reports.unsaved));
}

/* ---- as administrators see it ---------------------------------------------------------------- */

static void expect_node(const char *name, const char *expected)
{
    json_t *json = reports_of_node(audience_node(name));
    char *text = json_dumps(json, JSON_COMPACT);

    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

static void test_status_of_a_node(void **state)
{
    audience_node("a")->spec.stock = false;
    reported("a")->heard.last_seen_at = 0;
    (void)say("a", "{'node':{'engine':'e','version':'v','hostname':'h','routes':['10.9.0.0/24'],"
                   "'candidates':[{'type':'host','endpoint':'192.0.2.1:1'}],"
                   "'paths':{'natted':true},'aead':{'aes256gcm':7},'fabric':{'kind':'efa'},"
                   "'uplink':{'state':'found','from':'found','bitsPerSecond':20000000}}}");
    expect_node("a",
        "{\"lastSeen\":0,\"engine\":\"e\",\"version\":\"v\",\"hostname\":\"h\","
        "\"candidates\":[{\"type\":\"host\",\"endpoint\":\"192.0.2.1:1\"}],"
        "\"paths\":{\"natted\":true},\"aead\":{\"aes256gcm\":7},\"fabric\":{\"kind\":\"efa\"},"
        "\"routes\":[\"10.9.0.0/24\"],\"uplink\":{\"state\":\"found\",\"from\":\"found\","
        "\"bitsPerSecond\":20000000}}");
    reported("b")->heard.last_seen_at = 7;
    expect_node("b", "{\"lastSeen\":7,\"engine\":\"stock\",\"version\":\"\",\"candidates\":[]}");
}

/* ---- who is present -------------------------------------------------------------------------- */

/* Give the node's record a lease of that many seconds. */
static void lease(const char *name, uint32_t seconds)
{
    char key[64];
    char *text = NULL;
    struct store_op op = {.kind = STORE_OP_PUT, .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;

    (void)snprintf(key, sizeof(key), "node/default/%s", name);
    assert_int_equal(
        store_now_list(audience_hub.hub->store, key, take_value, &text, NULL, NULL), 0);
    op.key = key;
    op.value = text;
    op.ttl_seconds = seconds;
    assert_int_equal(store_now_commit(audience_hub.hub->store, &op, 1, now, NULL, NULL, &e), 0);
    free(text);
}

/* Heard in the last twenty seconds, here; or elsewhere, in three times the usual time. */
static void test_leases_of_ephemeral_nodes(void **state)
{
    struct store *store = audience_hub.hub->store;
    struct model_node *a = audience_node("a");
    const nsec_t ttl = 1000 * NSEC_PER_SEC;

    lease("a", 1000);
    a = audience_node("a");
    a->spec.ephemeral = true;
    a->reported->stored_at = wall_s;
    assert_int_equal(store_due(store), now + ttl);
    a->reported->seen_at = now;
    now += 20 * NSEC_PER_SEC;
    presence_tick(&reports, now, wall_s);
    assert_int_equal(store_due(store), now + ttl - 20 * NSEC_PER_SEC);
    a->reported->seen_at++;
    now += 10 * NSEC_PER_SEC - 1;
    presence_tick(&reports, now, wall_s);
    assert_int_equal(store_due(store), now + ttl - 30 * NSEC_PER_SEC + 1);
    now++;
    a->reported->seen_at = now - 20 * NSEC_PER_SEC + 1;
    a->reported->heard.last_seen_at = wall_s - 100;
    presence_tick(&reports, now, wall_s);
    assert_int_equal(store_due(store), now + ttl);
    /* The moment in which it was heard, by the clock. */
    assert_int_equal(a->reported->heard.last_seen_at, wall_s - 19);
    store->is_shared = true;
    now += 30 * NSEC_PER_SEC;
    presence_tick(&reports, now, a->reported->stored_at + 179);
    assert_int_equal(store_due(store), now + ttl);
    now += 10 * NSEC_PER_SEC;
    presence_tick(&reports, now, a->reported->stored_at + 180);
    assert_int_equal(store_due(store), now + ttl - 10 * NSEC_PER_SEC);
    store->is_shared = false;
    now += 10 * NSEC_PER_SEC;
    presence_tick(&reports, now, a->reported->stored_at + 1);
    assert_int_equal(store_due(store), now + ttl - 20 * NSEC_PER_SEC);
}

/* No lease is kept of a node that is to stay, nor of a hub, even when they are heard. */
static void test_leases_of_others(void **state)
{
    struct store *store = audience_hub.hub->store;
    const char *const names[] = {"a", audience_network()->model->self};

    for (uint32_t i = 0; i < 2; i++) {
        nsec_t due = now + (1000 - 500 * i) * NSEC_PER_SEC;

        lease(names[i], 1000 - 500 * i);
        assert_int_equal(store_due(store), due);
        audience_node(names[i])->spec.ephemeral = i == 1;
        now += 10 * NSEC_PER_SEC;
        audience_node(names[i])->reported->seen_at = now - NSEC_PER_SEC;
        presence_tick(&reports, now, wall_s);
        assert_int_equal(store_due(store), due);
    }
}

/* Rounding may make it a second more; two are news. */
static void test_when_it_was_seen_is_noted(void **state)
{
    struct model_node *a = audience_node("a");

    a->reported->seen_at = now;
    a->reported->heard.last_seen_at = wall_s - 1;
    now += 10 * NSEC_PER_SEC;
    presence_tick(&reports, now, wall_s + 10);
    assert_int_equal(a->reported->heard.last_seen_at, wall_s - 1);
    now += 10 * NSEC_PER_SEC;
    a->reported->seen_at = now;
    a->reported->heard.last_seen_at = wall_s - 2;
    presence_tick(&reports, now, wall_s);
    assert_int_equal(a->reported->heard.last_seen_at, wall_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_fact_is_worth_a_record, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_held, enter, leave),
        cmocka_unit_test_setup_teardown(test_whose_part_it_is, enter, leave),
        cmocka_unit_test_setup_teardown(test_events_of_paths, enter, leave),
        cmocka_unit_test_setup_teardown(test_events_of_probes, enter, leave),
        cmocka_unit_test_setup_teardown(test_events_of_copies, enter, leave),
        cmocka_unit_test_setup_teardown(test_agents_that_apply_nothing, enter, leave),
        cmocka_unit_test_setup_teardown(test_silent_agents, enter, leave),
        cmocka_unit_test_setup_teardown(test_steps_of_the_clock, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_written, enter, leave),
        cmocka_unit_test_setup_teardown(test_when_last_seen_is_written, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_large_network, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_record_of_several_hubs, enter, leave),
        cmocka_unit_test_setup_teardown(test_enrolment, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_store_that_refuses, enter, leave),
        cmocka_unit_test_setup_teardown(test_more_than_one_commit, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_store_is_tried, enter, leave),
        cmocka_unit_test_setup_teardown(test_status_of_a_node, enter, leave),
        cmocka_unit_test_setup_teardown(test_leases_of_ephemeral_nodes, enter, leave),
        cmocka_unit_test_setup_teardown(test_leases_of_others, enter, leave),
        cmocka_unit_test_setup_teardown(test_when_it_was_seen_is_noted, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
