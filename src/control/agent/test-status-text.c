/* test-status-text.c - the status as people read it, of JSON that an agent may have given. */
#include "agent/status_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"

static void expect(
    void (*format)(const json_t *json, struct str *out), const char *json, const char *expected)
{
    json_error_t error;
    json_t *parsed = json_loads(json, 0, &error);
    struct str out = STR_NULL;

    if (!parsed)
        fail_msg("%s: %s", error.text, json);
    format(parsed, &out);
    assert_string_equal(str_text(&out), expected);
    str_deinit(&out);
    json_decref(parsed);
}

/* Only what follows from @json beside what an empty status says. */
static void expect_line(const char *json, const char *line)
{
    json_t *parsed = json_loads(json, 0, NULL);
    struct str out = STR_NULL;

    assert_non_null(parsed);
    status_text_format(parsed, &out);
    if (!strstr(str_text(&out), line))
        fail_msg("no \"%s\" in \"%s\"", line, str_text(&out));
    str_deinit(&out);
    json_decref(parsed);
}

static void expect_no(const char *json, const char *words)
{
    json_t *parsed = json_loads(json, 0, NULL);
    struct str out = STR_NULL;

    assert_non_null(parsed);
    status_text_format(parsed, &out);
    if (strstr(str_text(&out), words))
        fail_msg("\"%s\" in \"%s\"", words, str_text(&out));
    str_deinit(&out);
    json_decref(parsed);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static void test_paths_of_which_none_was_tried(void **state)
{
    expect(status_text_format_paths,
        "{\"name\":\"n3\",\"path\":\"relay\",\"sinceSeconds\":5,\"framesSent\":7,"
        "\"guessesSent\":2,\"self\":{\"mapping\":\"endpoint-independent\",\"natted\":true},"
        "\"peer\":{\"mapping\":\"unknown\",\"blocked\":true}}",
        "n3 is reached by relay for 5 s, RTT -\n"
        "here: endpoint-independent mapping, behind a NAT\n"
        "there: unknown mapping, no NAT seen, UDP blocked\n"
        "7 path frames were sent, 2 of them guesses at ports\n"
        "\n"
        "nothing has been tried yet\n");
}

static void test_paths_with_all_that_was_tried(void **state)
{
    expect(status_text_format_paths,
        "{\"name\":\"n3\",\"path\":\"direct\",\"sinceSeconds\":65,\"rttMs\":1.25,"
        "\"why\":\"it is so\",\"rateBitsPerSecond\":20000000,\"framesSent\":9,\"guessesSent\":0,"
        "\"candidates\":["
        "{\"endpoint\":\"192.0.2.3:1\",\"type\":\"host\",\"ownSocket\":true,"
        "\"verdict\":\"chosen\",\"rttMs\":1.25,\"pings\":4,\"pongs\":3,\"triedSecondsAgo\":2},"
        "{}],"
        "\"relays\":[{\"name\":\"hub\",\"verdict\":\"silent\",\"rttMs\":5,\"peerRttMs\":6},"
        "{\"name\":\"r2\",\"verdict\":\"chosen\"}]}",
        "n3 is reached by direct for 65 s, RTT 1.2 ms\n"
        "it is so\n"
        "what is sent to it is kept to 20Mbit\n"
        "here: unknown mapping, no NAT seen\n"
        "there: unknown mapping, no NAT seen\n"
        "9 path frames were sent, 0 of them guesses at ports\n"
        "\n"
        "ENDPOINT     FOUND             VERDICT  RTT     ANSWERED  TRIED\n"
        "192.0.2.3:1  host, own socket  chosen   1.2 ms  3/4       2 s ago\n"
        "?            ?                 ?        -       0/0       never\n"
        "\n"
        "RELAY  VERDICT            RTT HERE  RTT THERE\n"
        "hub    not reached there  5.0 ms    6.0 ms\n"
        "r2     chosen             -         -\n");
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void test_jobs_that_run_here(void **state)
{
    expect_line(
        "{\"jobs\":[{\"job\":\"train\",\"nodes\":[\"a\",\"b\"]}]}", "job train, of 2 nodes\n");
    expect_line("{\"jobs\":[{\"job\":\"train\",\"nodes\":[\"a\"]}]}", "job train, of 1 node\n");
    expect_line("{\"jobs\":[{\"job\":\"train\",\"nodes\":[]}]}", "job train\n");
    expect_line("{\"jobs\":[{}]}", "job ?\n");
}

static void test_what_nccl_took(void **state)
{
    expect_line("{\"jobs\":[{\"job\":\"t\",\"nccl\":{\"verdict\":\"wanted\",\"text\":\"NCCL uses "
                "weft0\"}}]}",
        "job t; NCCL uses weft0\n");
    expect_line("{\"jobs\":[{\"job\":\"t\",\"nccl\":{\"verdict\":\"other\",\"text\":\"NCCL uses "
                "eth0\"}}]}",
        "job t; look at this: NCCL uses eth0\n");
    /* Half of it says nothing. */
    expect_line("{\"jobs\":[{\"job\":\"t\",\"nccl\":{\"verdict\":\"other\"}}]}", "job t\n");
    expect_line("{\"jobs\":[{\"job\":\"t\",\"nccl\":{\"text\":\"x\"}}]}", "job t\n");
}

static void test_the_budget_of_a_job(void **state)
{
    expect_line("{\"jobs\":[{\"job\":\"t\",\"budget\":{\"level\":\"spent\",\"share\":1.5}}]}",
        "job t; budget: ");
    expect_no("{\"jobs\":[{\"job\":\"t\",\"budget\":null}]}", "budget");
}

/* ---- alarms ---------------------------------------------------------------------------------- */

static void test_peers_without_the_path_that_is_wanted(void **state)
{
    expect_line("{\"peers\":[{\"name\":\"a\",\"alarm\":true},{\"name\":\"b\"},"
                "{\"name\":\"c\",\"alarm\":true}]}",
        "ALARM: no direct path to a, c, though only direct paths are wanted\n");
    expect_no("{\"peers\":[{\"name\":\"b\"}]}", "ALARM");
}

/* Of many some are named. */
static void test_many_alarms(void **state)
{
    struct str json = STR_NULL;

    str_add(&json, "{\"peers\":[");
    for (unsigned i = 0; i < 200; i++)
        str_addf(&json, "%s{\"name\":\"n%u\",\"alarm\":true}", i ? "," : "", i);
    str_add(&json, "]}");
    expect_line(str_text(&json), " more, though only direct paths are wanted\n");
    expect_line(str_text(&json), "ALARM: no direct path to n0, n1, n2");
    str_deinit(&json);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_of_which_none_was_tried),
        cmocka_unit_test(test_paths_with_all_that_was_tried),
        cmocka_unit_test(test_jobs_that_run_here),
        cmocka_unit_test(test_what_nccl_took),
        cmocka_unit_test(test_the_budget_of_a_job),
        cmocka_unit_test(test_peers_without_the_path_that_is_wanted),
        cmocka_unit_test(test_many_alarms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
