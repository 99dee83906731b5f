/* test-sysctl.c - settings of the kernel that are the network namespace's own. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "os/sysctl.h"
#include "test/support/netns.h"

/* This program has a network namespace of its own. */
static bool is_alone;

static void test_read(void **state)
{
    char value[64] = "as it was";

    assert_int_equal(sysctl_read("net.ipv4.tcp_rmem", value, sizeof(value)), 0);
    /* Three numbers, one blank between two, and nothing behind them. */
    assert_null(strpbrk(value, "\t\n"));
    assert_non_null(strchr(value, ' '));
    assert_int_equal(strspn(value, "0123456789 "), strlen(value));
    assert_in_range(value[strlen(value) - 1], '0', '9');
    (void)snprintf(value, sizeof(value), "as it was");
    assert_int_equal(sysctl_read("net.ipv4.no_such_setting", value, sizeof(value)), -ENOENT);
    assert_int_equal(sysctl_read("net.ipv4.tcp_rmem", value, 4), -EFBIG);
    assert_string_equal(value, "as it was");
}

static void test_names(void **state)
{
    char longest[256];
    struct err e = ERR_NULL;

    memset(longest, 'a', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(sysctl_check(longest), -ENAMETOOLONG);
    assert_int_equal(sysctl_check("../../etc/passwd"), -ENAMETOOLONG);
    assert_int_equal(sysctl_write("net/ipv4/tcp_rmem", "1", &e), -ENAMETOOLONG);
    assert_non_null(strstr(e.text, "is no setting of the kernel"));
}

static void test_write(void **state)
{
    char before[64];
    char after[64];
    struct err e = ERR_NULL;

    if (!is_alone || sysctl_check("net.ipv4.tcp_mtu_probing") != 0)
        skip();
    assert_int_equal(sysctl_read("net.ipv4.tcp_mtu_probing", before, sizeof(before)), 0);
    assert_int_equal(sysctl_write("net.ipv4.tcp_mtu_probing", "2", &e), 0);
    assert_int_equal(sysctl_read("net.ipv4.tcp_mtu_probing", after, sizeof(after)), 0);
    assert_string_equal(after, "2");
    assert_true(sysctl_write("net.ipv4.tcp_mtu_probing", "a word", &e) < 0);
    assert_non_null(strstr(e.text, "net.ipv4.tcp_mtu_probing cannot be set to a word: "));
    assert_int_equal(sysctl_write("net.ipv4.tcp_mtu_probing", before, &e), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_write),
    };

    static void *namespace;

    if (netns_enter(&namespace) != 0)
        return 1;
    is_alone = namespace != NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
