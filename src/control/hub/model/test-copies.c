/* test-copies.c - what is a copied node, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hub/model/copies.h"

enum said { SAID_NOTHING, SAID_HERE, SAID_ELSEWHERE };

static struct copies copies;
static int64_t wall_s;

static int enter(void **state)
{
    (void)state;
    copies = (struct copies){.n = 0};
    wall_s = 1800000000;
    return 0;
}

/* Run @run reports a minute after the last one; its machine is called by its number. */
static void hear(uint64_t run, enum said said)
{
    char candidates[64];
    struct report report = {.run = run,
        .has_node = true,
        .machine = {.has_origin = said != SAID_NOTHING, .is_origin = said == SAID_HERE},
        .candidates = candidates};

    (void)snprintf(
        candidates, sizeof(candidates), "[{\"endpoint\": \"203.0.113.%u:5\"}]", (unsigned)run);
    (void)snprintf(report.machine.host, sizeof(report.machine.host), "m%u", (unsigned)run);
    copies_hear(&copies, &report, wall_s);
    wall_s += 60;
}

/* -1: nothing is said of a copy; 1: the agent of @run is the copy. */
static int is_copy(uint64_t run)
{
    json_auto_t *json = copies_answer(&copies, run);

    return json ? json_is_true(json_object_get(json, "isCopy")) : -1;
}

/* A restart of the agent or of the machine, and a new container: each is a new run. */
static void test_restarts_are_no_copy(void **state)
{
    (void)state;
    for (uint64_t run = 1; run <= 20; run++) {
        hear(run, SAID_HERE);
        hear(run, run % 2 ? SAID_HERE : SAID_ELSEWHERE);
        assert_false(copies_are_there(&copies));
        assert_int_equal(is_copy(run), -1);
    }
    assert_true(copies.n <= COPIES_RUNS_MAX);
}

/* A machine that moves to another line has the same run, with another address. */
static void test_roaming_is_no_copy(void **state)
{
    struct report report = {.run = 1, .has_node = true};
    char at[2][48] = {
        "[{\"endpoint\": \"203.0.113.1:5\"}]", "[{\"endpoint\": \"198.51.100.1:5\"}]"};

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        report.candidates = at[i % 2];
        copies_hear(&copies, &report, wall_s++);
    }
    assert_false(copies_are_there(&copies));
    assert_int_equal(copies.n, 1);
}

/* The last report of a run may come late, behind the first of the next. */
static void test_a_late_report_is_no_copy(void **state)
{
    (void)state;
    hear(1, SAID_HERE);
    hear(2, SAID_HERE);
    hear(1, SAID_HERE);
    hear(2, SAID_HERE);
    assert_true(copies_are_there(&copies));
    enter(NULL);
    hear(1, SAID_HERE);
    hear(2, SAID_HERE);
    hear(1, SAID_HERE);
    assert_false(copies_are_there(&copies));
}

static void test_an_older_agent_says_no_run(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        hear(0, SAID_NOTHING);
        hear(1, SAID_NOTHING);
    }
    assert_false(copies_are_there(&copies));
}

static void alternate(enum said first, enum said second)
{
    hear(1, first);
    hear(2, second);
    hear(1, first);
    hear(2, second);
}

static void test_the_copy_is_named(void **state)
{
    char why[COPIES_TEXT_MAX];

    (void)state;
    alternate(SAID_HERE, SAID_ELSEWHERE);
    assert_int_equal(is_copy(1), 0);
    assert_int_equal(is_copy(2), 1);
    copies_explain(&copies, why);
    assert_non_null(strstr(why, "m2 at 203.0.113.2:5 is a copy of m1 at 203.0.113.1:5"));
    hear(1, SAID_HERE);
    copies_explain(&copies, why);
    assert_non_null(strstr(why, "m2 at 203.0.113.2:5 is a copy of m1 at 203.0.113.1:5"));
}

#define WAY                                                                                        \
    "\\\"weft agent --take-down\\\", remove /var/lib/weft/node, then \\\"weft join\\\" with a "    \
    "token; "                                                                                      \
    "not \\\"weft leave\\\", which removes the node itself"

/* @json: taken. */
static void expect_json(json_t *json, const char *expected)
{
    char *text = json_dumps(json, JSON_COMPACT);

    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

/* What the two machines are told, and what people see. */
static void test_what_is_said_of_a_copy(void **state)
{
    (void)state;
    alternate(SAID_HERE, SAID_ELSEWHERE);
    /* One that was forgotten is none. */
    copies.runs[2] = copies.runs[1];
    copies.runs[2].run = 9;
    assert_null(copies_answer(&copies, 9));
    expect_json(copies_answer(&copies, 1), "{\"why\":\"another machine (m2 at 203.0.113.2:5) uses "
                                           "this node's key as well, and that one "
                                           "is the copy; there: " WAY "\",\"isCopy\":false}");
    expect_json(copies_answer(&copies, 2),
        "{\"why\":\"another machine (m1 at 203.0.113.1:5) uses this node's key as well, and this "
        "machine is the copy; here: " WAY "\",\"isCopy\":true}");
    assert_null(copies_answer(&copies, 3));
    expect_json(copies_encode(&copies, wall_s),
        "{\"why\":\"two machines are this node, and m2 at 203.0.113.2:5 is a copy of m1 at "
        "203.0.113.1:5; on the copy: " WAY "\",\"machines\":["
        "{\"host\":\"m2\",\"address\":\"203.0.113.2:5\",\"heardSecondsAgo\":60,\"isCopy\":true},"
        "{\"host\":\"m1\",\"address\":\"203.0.113.1:5\",\"heardSecondsAgo\":120,\"isCopy\":false}]"
        "}");
    /* By a clock that was set back nothing was heard in the future. */
    copies.runs[0].machine.host[0] = '\0';
    copies.runs[0].at[0] = '\0';
    copies.runs[0].machine.has_origin = false;
    copies.runs[1].machine.has_origin = false;
    expect_json(copies_encode(&copies, wall_s - 60),
        "{\"why\":\"two machines are this node, a machine without a name and m1 at 203.0.113.1:5, "
        "and "
        "it is not known which is the copy; on that one: " WAY "\",\"machines\":["
        "{\"host\":\"\",\"address\":\"\",\"heardSecondsAgo\":0},"
        "{\"host\":\"m1\",\"address\":\"203.0.113.1:5\",\"heardSecondsAgo\":60}]}");
    expect_json(copies_answer(&copies, 1),
        "{\"why\":\"another machine (a machine without a name) uses this node's key as well, and "
        "it is "
        "not known which is the copy; on that one: " WAY "\",\"isCopy\":false}");
}

/* One that was not heard for so long is forgotten, and the other is alone again. */
static void test_when_it_is_forgotten(void **state)
{
    int64_t first;

    (void)state;
    alternate(SAID_HERE, SAID_ELSEWHERE);
    first = copies.runs[1].heard_at;
    copies_forget(&copies, first + COPIES_FORGET_S - 1);
    assert_int_equal(copies.n, 2);
    copies_forget(&copies, first + COPIES_FORGET_S);
    assert_int_equal(copies.n, 1);
    assert_int_equal(copies.runs[0].run, 2);
    assert_false(copies.runs[0].came_back);
    copies_forget(&copies, first - 10);
    assert_int_equal(copies.runs[0].heard_at, first - 10);
}

/* A report that says nothing of the node says nothing of its machine; the last one is first. */
static void test_what_is_kept_of_a_run(void **state)
{
    struct report report = {.run = 7};

    (void)state;
    hear(1, SAID_HERE);
    hear(2, SAID_HERE);
    hear(3, SAID_HERE);
    report.machine.host[0] = 'x';
    copies_hear(&copies, &report, wall_s);
    report.run = 1;
    copies_hear(&copies, &report, wall_s);
    assert_int_equal(copies.n, 4);
    assert_int_equal(copies.runs[0].run, 1);
    assert_true(copies.runs[0].came_back);
    assert_string_equal(copies.runs[0].machine.host, "m1");
    assert_string_equal(copies.runs[0].at, "203.0.113.1:5");
    assert_int_equal(copies.runs[1].run, 7);
    assert_string_equal(copies.runs[1].machine.host, "");
    assert_false(copies.runs[1].came_back);
    assert_int_equal(copies.runs[2].run, 3);
    assert_int_equal(copies.runs[3].run, 2);
    /* It says where it is no more. */
    report.has_node = true;
    report.candidates = NULL;
    copies_hear(&copies, &report, wall_s);
    assert_string_equal(copies.runs[0].at, "");
    assert_string_equal(copies.runs[0].machine.host, "x");
    assert_int_equal(copies.runs[0].heard_at, wall_s);
}

static void test_it_is_not_known_which_is_the_copy(void **state)
{
    static const enum said both[] = {SAID_NOTHING, SAID_HERE, SAID_ELSEWHERE};
    char why[COPIES_TEXT_MAX];

    for (size_t i = 0; i < 3; i++) {
        enter(state);
        alternate(both[i], both[i]);
        assert_true(copies_are_there(&copies));
        assert_int_equal(is_copy(1), 0);
        assert_int_equal(is_copy(2), 0);
        copies_explain(&copies, why);
        assert_non_null(strstr(why, "it is not known which is the copy"));
    }
}

/* Also with names and addresses as long as they may be, the way out is said to its end. */
static void test_long_names_fit(void **state)
{
    char why[COPIES_TEXT_MAX];

    (void)state;
    alternate(SAID_HERE, SAID_HERE);
    for (unsigned i = 0; i < copies.n; i++) {
        memset(copies.runs[i].machine.host, 'h', REQUEST_WORD_MAX);
        memset(copies.runs[i].at, '1', sizeof(copies.runs[i].at) - 1);
    }
    copies_explain(&copies, why);
    assert_non_null(strstr(why, "which removes the node itself"));
}

static void test_two_copies_of_one(void **state)
{
    char why[COPIES_TEXT_MAX];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        hear(1, SAID_HERE);
        hear(2, SAID_ELSEWHERE);
        hear(3, SAID_ELSEWHERE);
    }
    assert_int_equal(is_copy(1), 0);
    assert_int_equal(is_copy(2), 1);
    assert_int_equal(is_copy(3), 1);
    copies_explain(&copies, why);
    assert_non_null(strstr(why, "m3 at 203.0.113.3:5 is a copy of m1 at 203.0.113.1:5"));
    /* Where none is known to be the original, those are named that were heard last. */
    enter(NULL);
    for (unsigned i = 0; i < 6; i++)
        hear(1 + i % 3, SAID_NOTHING);
    copies_explain(&copies, why);
    assert_non_null(strstr(why, "this node, m3 at 203.0.113.3:5 and m2 at 203.0.113.2:5, and"));
}

static void test_a_copy_that_ends_is_forgotten(void **state)
{
    (void)state;
    alternate(SAID_HERE, SAID_ELSEWHERE);
    for (unsigned i = 0; i < 9; i++) {
        hear(1, SAID_HERE);
        assert_true(copies_are_there(&copies));
    }
    hear(1, SAID_HERE);
    hear(1, SAID_HERE);
    assert_false(copies_are_there(&copies));
    assert_int_equal(is_copy(1), -1);
    assert_null(copies_encode(&copies, wall_s));
}

static void test_a_clock_that_is_set_back(void **state)
{
    (void)state;
    alternate(SAID_HERE, SAID_ELSEWHERE);
    wall_s -= 86400;
    for (unsigned i = 0; i < 12; i++)
        hear(1, SAID_HERE);
    assert_false(copies_are_there(&copies));
}

/* Of twelve runs that report five times a second, at random. */
static uint64_t choose_run(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return 1 + (*seed >> 16) % 12;
}

/* Whoever makes up runs does not have copies begin and end as often as he reports. */
static void test_runs_that_are_made_up(void **state)
{
    static const uint64_t pattern[] = {1, 2, 1, 2, 3, 4, 5, 6};
    char why[COPIES_TEXT_MAX];
    uint32_t seed = 1;

    (void)state;
    for (unsigned is_random = 0; is_random < 2; is_random++) {
        unsigned n_changes = 0;
        bool had_copies = false;

        enter(NULL);
        for (unsigned i = 0; i < 5 * COPIES_FORGET_S; i++) {
            struct report report = {
                .run = is_random ? choose_run(&seed) : i / 8 * 10 + pattern[i % 8]};

            copies_hear(&copies, &report, wall_s + i / 5);
            n_changes += copies_are_there(&copies) != had_copies;
            had_copies = copies_are_there(&copies);
            copies_explain(&copies, why);
            assert_int_equal(why[0] != '\0', had_copies);
        }
        assert_int_equal(n_changes, 1);
    }
}

/* A machine of which new runs begin all the time, as containers do, does not hide a copy. */
static void test_restarts_do_not_hide_a_copy(void **state)
{
    (void)state;
    alternate(SAID_HERE, SAID_ELSEWHERE);
    for (uint64_t run = 10; run < 15; run++)
        hear(run, SAID_HERE);
    assert_true(copies_are_there(&copies));
    assert_int_equal(is_copy(2), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_restarts_are_no_copy, enter),
        cmocka_unit_test_setup(test_roaming_is_no_copy, enter),
        cmocka_unit_test_setup(test_a_late_report_is_no_copy, enter),
        cmocka_unit_test_setup(test_an_older_agent_says_no_run, enter),
        cmocka_unit_test_setup(test_the_copy_is_named, enter),
        cmocka_unit_test_setup(test_what_is_said_of_a_copy, enter),
        cmocka_unit_test_setup(test_when_it_is_forgotten, enter),
        cmocka_unit_test_setup(test_what_is_kept_of_a_run, enter),
        cmocka_unit_test_setup(test_it_is_not_known_which_is_the_copy, enter),
        cmocka_unit_test_setup(test_long_names_fit, enter),
        cmocka_unit_test_setup(test_two_copies_of_one, enter),
        cmocka_unit_test_setup(test_a_copy_that_ends_is_forgotten, enter),
        cmocka_unit_test_setup(test_a_clock_that_is_set_back, enter),
        cmocka_unit_test_setup(test_runs_that_are_made_up, enter),
        cmocka_unit_test_setup(test_restarts_do_not_hide_a_copy, enter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
