/* test-hosts.c - the block of a network in a hosts file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "mesh/hosts.h"
#include "mesh/sample.h"

#define OTHERS "127.0.0.1\tlocalhost\n::1 ip6-localhost\n"
#define BLOCK  "10.42.0.2\tn2.default.weft n2\n"
#define WHOLE  "# weft begin default/n2\n" BLOCK "# weft end default/n2\n"

static void check(const char *old, const char *block, const char *expected)
{
    struct str out = STR_NULL;

    hosts_replace(&out, old, strlen(old), "default/n2", block);
    assert_string_equal(str_text(&out), expected);
    str_deinit(&out);
}

static void test_block(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    char owner[HOSTS_OWNER_MAX];
    struct str out = STR_NULL;

    hosts_add_block(&out, &s, true);
    assert_string_equal(str_text(&out),
        "10.42.0.1\thub.default.weft hub\nfd5a:1::1\thub.default.weft hub\n"
        "10.42.0.2\tn2.default.weft n2\nfd5a:1::2\tn2.default.weft n2\n"
        "10.42.0.3\tn3.default.weft n3\nfd5a:1::3\tn3.default.weft n3\n");
    str_deinit(&out);
    hosts_add_block(&out, &s, false);
    assert_null(strstr(str_text(&out), "fd5a"));
    assert_string_equal(hosts_owner(&s, owner), "default/n2");
    str_deinit(&out);
    snapshot_deinit(&s);
}

static void test_replace(void **state)
{
    check(OTHERS, BLOCK, OTHERS WHOLE);
    check("", BLOCK, WHOLE);
    check("1.2.3.4 no-newline", BLOCK, "1.2.3.4 no-newline\n" WHOLE);
    check(OTHERS "# weft begin default/n2\n# weft end default/n2\nmore\n", BLOCK,
        OTHERS WHOLE "more\n");
    check(OTHERS WHOLE "more\n", NULL, OTHERS "more\n");
    check(OTHERS, NULL, OTHERS);
    /* Another node's block, and another network's. */
    check("# weft begin default/n22\nx\n", NULL, "# weft begin default/n22\nx\n");
    check("# weft begin other/n2\nx\n# weft end other/n2\n", BLOCK,
        "# weft begin other/n2\nx\n# weft end other/n2\n" WHOLE);
}

/* Somebody's editor has damaged it: what is not ours stays. */
static void test_damaged(void **state)
{
    check(
        "# weft begin default/n2\n" BLOCK "192.168.1.1 mine\n", BLOCK, WHOLE "192.168.1.1 mine\n");
    check("# weft begin default/n2\n" BLOCK, NULL, "");
    check("# weft begin default/n2\n1.1.1.1 mine\n" BLOCK "# weft end default/n2\nmore\n", BLOCK,
        WHOLE "1.1.1.1 mine\nmore\n");
    check(WHOLE "middle\n" WHOLE, BLOCK, WHOLE "middle\n");
    check("# weft end default/n2\n", NULL, "# weft end default/n2\n");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
