/*
 * test-relay-lines.c - how the lines of relays are: what is found, told and explained of them. A
 * whole hub in this process; the test is the relays.
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
#include "hub/watch/edge_view.h"
#include "hub/watch/reports.h"
#include "hub/watch/view.h"
#include "mesh/object/node_status.h"
#include "test/support/audience.h"

#define WALL 1800000000

static struct reports reports;
static nsec_t now;
static int64_t wall_s;

static int enter(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    int r = audience_enter(state);

    assert_int_equal(reports_flush(&audience_hub.hub->reports, NSEC_PER_SEC, NULL), 0);
    reports_init(&reports, audience_network()->model);
    now = 1000 * NSEC_PER_SEC;
    wall_s = WALL;
    for (unsigned i = 0; i < 3; i++)
        audience_node(names[i])->spec.stock = false;
    audience_node("c")->spec.relay = true;
    return r;
}

static int leave(void **state)
{
    reports_deinit(&reports);
    return audience_leave(state);
}

static void pass(unsigned seconds)
{
    for (; seconds > 0; seconds--) {
        now += NSEC_PER_SEC;
        wall_s++;
        reports_look(&reports, now, wall_s);
    }
}

/* The line of a relay between a and b, which sends so much. */
static struct relay_line_report line_of(enum relay_line_level level, bool is_away)
{
    struct relay_line_report line = {
        .level = level, .rate = 9600000, .capacity = 10000000, .n_pairs = 1};
    struct relay_reported_pair *pair = &line.pairs[0];

    pair->pair.keys[0] = audience_node("a")->spec.key;
    pair->pair.keys[1] = audience_node("b")->spec.key;
    pair->pair.rate = 5000000;
    pair->is_away = is_away;
    line.notice.is_closed = level == RELAY_LINE_FULL;
    if (is_away)
        line.notice.away[line.notice.n_away++] =
            path_pair_tag(&pair->pair.keys[0], &pair->pair.keys[1]);
    return line;
}

/* c, or another node, reports that. NULL: nothing of a line. */
static void say(const char *name, const struct relay_line_report *line)
{
    struct report rp = REPORT_NULL;
    json_t *json = json_pack("{s:{s:s, s:o*}, s:{s:i}}", "node", "engine", "userspace", "relayLine",
        line ? relay_line_encode(line) : NULL, "applied", "revision", 3);
    struct err e = ERR_NULL;

    if (report_decode(&rp, json, wall_s, &e) != 0)
        fail_msg("%s", err_text(&e));
    json_decref(json);
    (void)reports_take(&reports, audience_node(name), &rp, wall_s);
}

/* "CODE SUBJECT" of the one thing that is found; "": nothing. */
static void expect_found(const char *expected)
{
    const struct findings *found = health_of(&reports.health, "default");
    char text[FINDING_SUBJECT_MAX + 32] = "";

    assert_in_range(found->n, 0, 1);
    if (found->n > 0)
        (void)snprintf(text, sizeof(text), "%s %s", finding_kinds[found->items[0]->code].code,
            found->items[0]->subject);
    assert_string_equal(text, expected);
}

static void expect_last(const char *type, const char *text)
{
    json_t *list = edge_events_encode(&reports.events, "default");
    const json_t *last = json_array_get(list, json_array_size(list) - 1);

    assert_string_equal(json_string_value(json_object_get(last, "type")), type);
    assert_string_equal(json_string_value(json_object_get(last, "object")), "a--b");
    assert_string_equal(json_string_value(json_object_get(last, "text")), text);
    json_decref(list);
}

static void expect_why(const char *why)
{
    struct edge_pair pair;
    json_t *status;

    assert_true(edge_pair_find(&pair, audience_network(), "a--b"));
    status = edge_view_status(&pair, wall_s);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(status, "hub"), "why")), why);
    json_decref(status);
}

#define QUIET "the two have not spoken to each other yet"
#define WHY_C "the line of c is full, and has asked the pair to go another way"

static void test_a_relay_that_is_full(void **state)
{
    struct relay_line_report line = line_of(RELAY_LINE_FULL, true);

    say("a", NULL);
    say("b", NULL);
    say("c", NULL);
    pass(HEALTH_SETTLES_S + 2);
    expect_found("");
    expect_why(QUIET);
    say("c", &line);
    assert_int_equal(reports.events.counts[EDGE_EVENT_ASKED_AWAY], 1);
    expect_last("AskedAway", "the line of c is full (9.6 of 10.0 Mbit/s), and the pair is asked to "
                             "go directly or through another relay");
    pass(4);
    expect_found("WEFT-RELAY-002 c");
    expect_why(WHY_C);
    /* It says the same again, and that is no event. */
    say("c", &line);
    assert_int_equal(reports.events.counts[EDGE_EVENT_ASKED_AWAY], 1);
    /* The pair has gone, and may not come back yet. */
    line = line_of(RELAY_LINE_OPEN, true);
    say("c", &line);
    pass(4);
    expect_found("");
    expect_why(WHY_C);
    line = line_of(RELAY_LINE_NEAR, false);
    say("c", &line);
    assert_int_equal(reports.events.counts[EDGE_EVENT_LET_BACK], 1);
    expect_last("LetBack", "the line of c carries more again, and the pair may come back to it");
    expect_why(QUIET);
    pass(4);
    expect_found("WEFT-RELAY-001 c");
    say("c", NULL);
    pass(4);
    expect_found("");
}

/* Who is not admitted as a relay is not believed, and of one that is silent nothing is shown. */
static void test_whose_word_counts(void **state)
{
    struct relay_line_report line = line_of(RELAY_LINE_FULL, true);

    audience_node("c")->spec.relay = false;
    say("a", NULL);
    say("b", NULL);
    say("c", &line);
    pass(HEALTH_SETTLES_S + 2);
    expect_found("");
    expect_why(QUIET);
    audience_node("c")->spec.relay = true;
    pass(2);
    expect_found("WEFT-RELAY-002 c");
    for (unsigned i = 0; i < 100; i += 10) {
        pass(10);
        say("a", NULL);
        say("b", NULL);
    }
    expect_found("WEFT-NODE-002 c");
}

/* ---- this hub's own -------------------------------------------------------------------------- */

static bool take(const struct relay_line *line)
{
    return hub_line_take(line, audience_network(), &reports.events, wall_s);
}

static void expect_view(const char *part, unsigned n)
{
    char *text = view_snapshot_text(audience_node("a"));

    assert_non_null(text);
    assert_int_equal(audience_count(text, part), n);
    free(text);
}

static void test_the_line_of_this_hub(void **state)
{
    struct relay_line line = {.rate = 9600000};
    const struct relay_line_report *said;

    say("a", NULL);
    say("b", NULL);
    /* There is no relay, or nobody has said what its line carries. */
    assert_false(take(NULL));
    assert_false(hub_line_is_busy(NULL));
    /* What an earlier run has told is taken back all the same, once. */
    assert_true(take(&line));
    assert_false(take(&line));
    line.capacity = 10000000;
    assert_false(take(&line));
    assert_false(hub_line_is_busy(&line));
    expect_view("relayLine", 0);
    /* It is full, and asks a and b to go. */
    line.level = RELAY_LINE_FULL;
    line.is_closed = true;
    line.away[0].keys[0] = audience_node("a")->spec.key;
    line.away[0].keys[1] = audience_node("b")->spec.key;
    line.n_away = 1;
    assert_true(take(&line));
    watched_node_changed(audience_network()->own->watched);
    assert_false(take(&line));
    said = audience_network()->own->reported->heard.report.line;
    assert_non_null(said);
    assert_int_equal(said->notice.n_away, 1);
    expect_last("AskedAway", "the line of hub is full (9.6 of 10.0 Mbit/s), and the pair is asked "
                             "to go directly or through another relay");
    expect_view("\"relayLine\":{\"closed\":true,\"away\":[\"", 1);
    expect_why("the line of hub is full, and has asked the pair to go another way");
    assert_true(hub_line_is_busy(&line));
    reports.line = &line;
    store_lag_tick(&reports, now, wall_s);
    expect_found("WEFT-HUB-005 hub");
    /* What is of other networks is not said here. */
    line.away[0].keys[1].b[0] ^= 1;
    assert_true(take(&line));
    said = audience_network()->own->reported->heard.report.line;
    assert_int_equal(said->notice.n_away, 0);
    assert_true(said->notice.is_closed);
    line.level = RELAY_LINE_OPEN;
    line.is_closed = false;
    assert_true(take(&line));
    store_lag_tick(&reports, now, wall_s);
    expect_found("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_relay_that_is_full, enter, leave),
        cmocka_unit_test_setup_teardown(test_whose_word_counts, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_line_of_this_hub, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
