/* test-job-report.c - what a script says of itself, and what is no report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "health/job_report.h"

static int decode(struct job_report *ret, const char *text, struct err *e)
{
    return job_report_decode(ret, text, strlen(text), e);
}

static void test_what_is_said(void **state)
{
    struct job_report r;

    assert_int_equal(decode(&r, "{\"rank\":3,\"step\":120,\"commSeconds\":31.25}", NULL), 0);
    assert_int_equal(r.rank, 3);
    assert_int_equal(r.step, 120);
    assert_int_equal(r.comm_ms, 31250);
    assert_int_equal(decode(&r, "{\"step\":0,\"commSeconds\":2,\"loss\":0.5}", NULL), 0);
    assert_int_equal(r.rank, 0);
    assert_int_equal(r.step, 0);
    assert_int_equal(r.comm_ms, 2000);
    assert_int_equal(decode(&r, "{\"step\":7}", NULL), 0);
    assert_int_equal(r.comm_ms, 0);
}

static void check_refused(const char *text, const char *words)
{
    struct job_report r = {.rank = 77};
    struct err e = ERR_NULL;

    assert_true(decode(&r, text, &e) < 0);
    if (!strstr(err_text(&e), words))
        fail_msg("\"%s\" is not in \"%s\"", words, err_text(&e));
    assert_int_equal(r.rank, 77);
}

static void test_what_is_refused(void **state)
{
    char text[JOB_REPORT_MAX + 64];

    check_refused("", "report: is not a JSON object");
    check_refused("[1]", "report: is not a JSON object");
    check_refused("{\"rank\":1}", "\"step\" is missing");
    check_refused("{\"step\":-1}", "\"step\"");
    check_refused("{\"step\":1.5}", "\"step\"");
    check_refused("{\"step\":1,\"rank\":1000001}", "\"rank\"");
    check_refused("{\"step\":1,\"commSeconds\":-0.5}", "\"commSeconds\" is not a number");
    check_refused("{\"step\":1,\"commSeconds\":1e10}", "from 0 to 1e9");
    check_refused("{\"step\":1,\"commSeconds\":NaN}", "report: is not a JSON object");
    (void)snprintf(text, sizeof(text), "{\"step\":1,\"x\":\"%*s\"}", JOB_REPORT_MAX, "x");
    check_refused(text, "report: is not a JSON object");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_what_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
