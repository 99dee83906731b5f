/* test-metadata.c - asking a cloud's metadata service, played at its address in a network namespace
 * of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "fabric/metadata.h"
#include "net/netlink/rtnl.h"
#include "test/support/canned_server.h"
#include "test/support/netns.h"

#define UNKNOWN CANNED_STATUS("404 Not Found")

#define TIMEOUT_MS 5000

/* One byte longer than an answer may be. */
static char too_long[sizeof(CANNED_OK) + 512];

static void begin(void **state, struct canned_server *s, const char *const *answers, size_t n)
{
    struct ip_prefix service = netns_prefix("169.254.169.254/32");
    struct netlink *nl = netns_need(state);
    unsigned loopback = netns_raise_loopback(nl);

    assert_int_equal(rtnl_add_address(nl, loopback, &service, false), 0);
    canned_server_start_at(s, "169.254.169.254", 80, answers, n);
}

/* A token first, and then value by value with it. What the service does not know is left out, of
 * several lines the first counts. */
static void test_aws_is_asked_with_a_token(void **state)
{
    static const char *const answers[] = {
        CANNED_OK "tok", CANNED_OK "p5.48xlarge\nmore", UNKNOWN "<html>", CANNED_OK "group"};
    struct metadata_answers got;
    struct canned_server s;

    begin(state, &s, answers, 4);
    assert_int_equal(metadata_fetch(&got, METADATA_CLOUD_AWS, TIMEOUT_MS, NULL), 0);
    canned_server_join(&s);
    assert_string_equal(got.text, "instance-type p5.48xlarge\ngroup-name group\n");
    assert_string_equal(s.asked, "PUT /latest/api/token|GET /latest/meta-data/instance-type|"
                                 "GET /latest/meta-data/placement/availability-zone-id|"
                                 "GET /latest/meta-data/placement/group-name|");
    assert_non_null(strstr(s.got, "\r\nX-aws-ec2-metadata-token: tok\r\n"));
}

/* What is no success is no value, whatever its body says, and the words say what came. */
static void test_no_success_is_no_value(void **state)
{
    static const struct {
        const char *answer;
        const char *words;
    } rows[] = {
        {CANNED_STATUS("302 Found\r\nLocation: http://169.254.169.254/x") "moved", "answers 302"},
        {CANNED_STATUS("500 Internal Server Error") "a sentence", "answers 500"},
        {too_long, "longer than 511 bytes"},
        {NULL, "Empty reply"},
    };
    const char *answers[sizeof(rows) / sizeof(*rows)];
    struct canned_server s;

    memset(too_long, 'x', sizeof(too_long) - 1);
    memcpy(too_long, CANNED_OK, sizeof(CANNED_OK) - 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        answers[i] = rows[i].answer;
    begin(state, &s, answers, sizeof(rows) / sizeof(*rows));
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct metadata_answers got;
        struct err e = ERR_NULL;

        assert_int_equal(metadata_fetch(&got, METADATA_CLOUD_GCE, TIMEOUT_MS, &e), -EIO);
        assert_string_equal(got.text, "");
        if (!strstr(err_text(&e), rows[i].words))
            fail_msg("\"%s\" does not say \"%s\"", err_text(&e), rows[i].words);
    }
    canned_server_join(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aws_is_asked_with_a_token, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_no_success_is_no_value, netns_enter, netns_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
