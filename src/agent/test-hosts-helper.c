/* test-hosts-helper.c - what the helper writes for the agent, and what it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/hosts_helper.h"
#include "base/err.h"
#include "sys/statefile.h"

#define OWNER "default/n1/5f02a1b3"

static char folder[64];
static char path[80];

static int set_up(void **state)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/weft-hosts-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(path, sizeof(path), "%s/hosts", folder);
    return statefile_replace(path, "127.0.0.1 localhost\n", 20, 0644, NULL);
}

static int tear_down(void **state)
{
    (void)unlink(path);
    return rmdir(folder);
}

static struct hosts_helper *start(void)
{
    struct hosts_rules rules = {.network = "default", .node = "n1"};
    struct hosts_helper *h = NULL;
    struct err e = ERR_NULL;

    assert_int_equal(ip_prefix_parse(&rules.cidr4, "10.42.0.0/16", NULL), 0);
    assert_int_equal(ip_prefix_parse(&rules.cidr6, "fd5a:1::/64", NULL), 0);
    if (hosts_helper_start(&h, path, &rules, &e) != 0)
        fail_msg("%s", err_text(&e));
    return h;
}

static void assert_file(const char *text)
{
    char *have = NULL;

    assert_int_equal(statefile_read(path, 65536, &have, NULL, NULL), 0);
    assert_string_equal(have, text);
    free(have);
}

static void test_puts_and_takes_away(void **state)
{
    struct hosts_helper *h = start();
    bool changed = false;

    assert_int_equal(
        hosts_helper_put(h, OWNER, "10.42.0.2\tn1.default.weft n1\n", &changed, NULL), 0);
    assert_true(changed);
    assert_file("127.0.0.1 localhost\n# weft begin " OWNER "\n10.42.0.2\tn1.default.weft n1\n"
                "# weft end " OWNER "\n");
    assert_int_equal(
        hosts_helper_put(h, OWNER, "10.42.0.2\tn1.default.weft n1\n", &changed, NULL), 0);
    assert_false(changed);
    assert_int_equal(hosts_helper_put(h, OWNER, NULL, &changed, NULL), 0);
    assert_file("127.0.0.1 localhost\n");
    assert_null(hosts_helper_free(h));
}

static void test_refuses(void **state)
{
    struct hosts_helper *h = start();
    struct err e = ERR_NULL;
    bool changed;

    assert_int_equal(hosts_helper_put(h, OWNER, "192.0.2.1\texample.org\n", &changed, &e), -EINVAL);
    assert_string_equal(err_text(&e), "line 1: \"192.0.2.1\" is no address of the network");
    assert_int_equal(
        hosts_helper_put(h, "default/n2/5f02a1b3", "10.42.0.2\tn1\n", &changed, NULL), -EINVAL);
    assert_file("127.0.0.1 localhost\n");
    /* It lives, and does what it may. */
    assert_int_equal(hosts_helper_put(h, OWNER, "10.42.0.2\tn1\n", &changed, NULL), 0);
    assert_null(hosts_helper_free(h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_puts_and_takes_away, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refuses, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
