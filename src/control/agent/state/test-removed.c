/* test-removed.c - what is kept of a node that its hub has removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/state/state.h"
#include "base/err.h"

static char dir[64];

static int enter(void **state)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/weft-removed-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int leave(void **state)
{
    return removed_forget(dir, NULL) == 0 ? rmdir(dir) : -1;
}

static void test_absent(void **state)
{
    struct removed rm;

    assert_int_equal(removed_read(&rm, dir, NULL), STATE_E_ABSENT);
    assert_int_equal(removed_forget(dir, NULL), 0);
}

/* A reason of @n characters of two bytes each, after @before. */
static void make_reason(char buf[static 1024], const char *before, unsigned n)
{
    size_t len = strlen(before);

    memcpy(buf, before, len);
    for (unsigned i = 0; i < n; i++, len += 2)
        memcpy(buf + len, "\xc3\xa9", 2);
    buf[len] = '\0';
}

static void check_kept(const char *reason, size_t len)
{
    struct removed rm = {.node = "n2", .network = "default", .socket_path = "/run/a.sock", .at = 7};
    struct removed got;
    struct err e = ERR_NULL;
    char text[REMOVED_TEXT_MAX];

    removed_set_reason(&rm, reason);
    if (removed_write(&rm, dir, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(removed_read(&got, dir, NULL), 0);
    assert_int_equal(strlen(got.reason), len);
    assert_memory_equal(got.reason, reason, len);
    assert_non_null(strstr(removed_explain(&got, text), "1970-01-01 00:00:07 UTC"));
}

/* Half a character would not be JSON, and nothing would be kept at all. */
static void test_cut_between_characters(void **state)
{
    char reason[1024];

    check_kept("", 0);
    check_kept("gone", 4);
    make_reason(reason, "", 127);
    check_kept(reason, 254);
    make_reason(reason, "", 128);
    check_kept(reason, 254);
    make_reason(reason, "x", 300);
    check_kept(reason, REMOVED_REASON_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_absent, enter, leave),
        cmocka_unit_test_setup_teardown(test_cut_between_characters, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
