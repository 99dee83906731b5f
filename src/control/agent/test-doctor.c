/* test-doctor.c - what is found on the spot, with an agent and without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/doctor.h"
#include "base/text.h"
#include "os/file.h"
#include "test/support/said_agent.h"

static char dir[32];

static int enter(void **state)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/weft-doctor.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int leave(void **state)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "%s/node.json", dir);
    (void)unlink(path);
    return rmdir(dir);
}

/* Its codes and subjects, in their order; those of this machine's disk are none of ours. */
static void expect_codes(const struct doctor_report *report, const char *expected)
{
    char text[512] = "";
    size_t len = 0;
    const json_t *item;
    size_t i;

    json_array_foreach(report->findings, i, item) {
        const char *code = json_string_value(json_object_get(item, "code"));

        if (strcmp(code, "WEFT-STATE-002") != 0)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %s;", code,
                json_string_value(json_object_get(item, "subject")));
    }
    assert_string_equal(text, expected);
}

/* What the agent finds, the gravest first; what is no finding is passed over. */
static void test_an_agent_that_answers(void **state)
{
    struct said_agent a = {
        .answers = {{200, "{\"self\":{\"name\":\"n1\",\"network\":\"default\"},\"findings\":["
                          "{\"code\":\"A\",\"severity\":\"note\",\"subject\":\"n1\"},"
                          "{\"code\":\"B\",\"severity\":\"critical\",\"subject\":\"n1--b\"},"
                          "7,{},{\"code\":\"C\",\"severity\":\"newer\",\"subject\":\"hub\"},"
                          "{\"code\":\"A\",\"severity\":\"note\",\"subject\":\"n1\"}]}"}}};
    struct doctor_options opt = {.state_dir = dir};
    struct doctor_report report;
    struct str out = STR_NULL;
    json_t *json;

    said_agent_start(&a);
    opt.socket = a.path;
    assert_int_equal(doctor_examine(&opt, &report), 0);
    said_agent_end(&a);
    expect_codes(&report, "B n1--b;C hub;A n1;");
    assert_int_equal(doctor_worst(&report), 2);
    json = doctor_encode(&report);
    assert_string_equal(json_string_value(json_object_get(json, "node")), "n1");
    assert_string_equal(json_string_value(json_object_get(json, "worst")), "critical");
    assert_true(json_is_true(json_object_get(json, "agentAnswers")));
    json_decref(json);
    doctor_format(&report, &out);
    assert_memory_equal(str_text(&out), "n1 in the network default: ", 27);
    assert_non_null(
        strstr(str_text(&out), " findings\n\nFINDINGS\ncritical  B  n1--b, for 0 s: ?"));
    str_deinit(&out);
    doctor_report_deinit(&report);
}

static void test_nothing_is_found(void **state)
{
    struct doctor_report report = {.node = "n1", .network = "default", .findings = json_array()};
    struct str out = STR_NULL;
    json_t *json = doctor_encode(&report);

    assert_int_equal(doctor_worst(&report), 0);
    assert_string_equal(json_string_value(json_object_get(json, "worst")), "none");
    assert_false(json_is_true(json_object_get(json, "agentAnswers")));
    doctor_format(&report, &out);
    assert_string_equal(str_text(&out), "n1 in the network default: nothing is found\n");
    str_deinit(&out);
    json_decref(json);
    doctor_report_deinit(&report);
    doctor_report_deinit(&report);
}

static void test_no_agent_and_no_state(void **state)
{
    struct doctor_options opt = {.socket = "/nonexistent/agent.sock", .state_dir = dir};
    struct doctor_report report;
    const char *text;

    assert_int_equal(doctor_examine(&opt, &report), 0);
    expect_codes(&report, "WEFT-NODE-005 this-machine;");
    assert_int_equal(doctor_worst(&report), 2);
    text = json_string_value(json_object_get(json_array_get(report.findings, 0), "text"));
    assert_non_null(strstr(text, "there is no agent on /nonexistent/agent.sock"));
    doctor_report_deinit(&report);
}

static void test_a_state_that_cannot_be_read(void **state)
{
    struct doctor_options opt = {.socket = "/nonexistent/agent.sock", .state_dir = dir};
    struct doctor_report report;
    char path[64];

    (void)snprintf(path, sizeof(path), "%s/node.json", dir);
    assert_int_equal(statefile_replace(path, "x", 1, 0600, NULL), 0);
    assert_int_equal(doctor_examine(&opt, &report), 0);
    expect_codes(&report, "WEFT-NODE-005 this-machine;WEFT-STATE-001 this-machine;");
    doctor_report_deinit(&report);
}

/* What the hub on this machine finds of this node: its own pairs alone, and nothing twice. */
static void test_a_hub_on_this_machine(void **state)
{
    /* One socket stands for both: the agent is asked first. */
    struct said_agent both = {
        .answers = {{200, "{\"self\":{\"name\":\"n1\",\"network\":\"default\"},"
                          "\"findings\":[{\"code\":\"P\",\"severity\":\"critical\","
                          "\"about\":\"pair\",\"subject\":\"n1--b\"}]}"},
            {200,
                "{\"findings\":["
                "{\"code\":\"Q\",\"severity\":\"critical\",\"about\":\"pair\",\"subject\":\"n1--"
                "b\"},"
                "{\"code\":\"R\",\"severity\":\"critical\",\"about\":\"pair\",\"subject\":\"n1--"
                "c\"},"
                "{\"code\":\"S\",\"severity\":\"warning\",\"about\":\"node\",\"subject\":\"n1\"},"
                "{\"code\":\"S\",\"severity\":\"warning\",\"about\":\"node\",\"subject\":\"n11\"},"
                "{\"code\":\"S\",\"severity\":\"warning\",\"about\":\"node\",\"subject\":\"an1\"},"
                "{\"code\":\"S\",\"severity\":\"warning\",\"about\":\"pair\",\"subject\":\"b--c\"},"
                "{\"code\":\"T\",\"severity\":\"note\",\"about\":\"way\",\"subject\":\"b>n1\"},"
                "{\"code\":\"T\",\"severity\":\"note\",\"about\":\"rank\","
                "\"subject\":\"train/n1\"}]}"}}};
    struct doctor_options opt = {.state_dir = dir};
    struct doctor_report report;

    said_agent_start(&both);
    opt.socket = opt.hub_socket = both.path;
    assert_int_equal(doctor_examine(&opt, &report), 0);
    said_agent_end(&both);
    assert_memory_equal(both.requests[1], "GET /v1/networks/default/findings ", 34);
    expect_codes(&report, "P n1--b;R n1--c;S n1;T b>n1;T train/n1;");
    doctor_report_deinit(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_agent_that_answers, enter, leave),
        cmocka_unit_test(test_nothing_is_found),
        cmocka_unit_test_setup_teardown(test_no_agent_and_no_state, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_state_that_cannot_be_read, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_hub_on_this_machine, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
