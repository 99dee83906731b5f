/* test-removed.c - what is kept of a node that its hub has removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <jansson.h>
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
    char words[REMOVED_TEXT_MAX];

    removed_set_reason(&rm, reason);
    if (removed_write(&rm, dir, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(removed_read(&got, dir, NULL), 0);
    assert_int_equal(strlen(got.reason), len);
    assert_memory_equal(got.reason, reason, len);
    assert_string_equal(got.node, "n2");
    assert_string_equal(got.network, "default");
    assert_string_equal(got.socket_path, "/run/a.sock");
    assert_int_equal(got.at, 7);
    (void)snprintf(words, sizeof(words),
        "this node, \"n2\", was removed from the network default by its hub on "
        "1970-01-01 00:00:07 UTC%s%s",
        len > 0 ? ": " : "", got.reason);
    assert_string_equal(removed_explain(&got, text), words);
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

/* A time that no calendar has is left out. */
static void test_a_time_without_a_date(void **state)
{
    const struct removed rm = {.node = "n2", .network = "default", .at = INT64_MAX};
    char text[REMOVED_TEXT_MAX];

    assert_string_equal(removed_explain(&rm, text),
        "this node, \"n2\", was removed from the network default by its hub");
}

static void test_a_damaged_file(void **state)
{
    static const char whole[] = "{\"node\": \"n2\", \"network\": \"default\", \"reason\": \"\", "
                                "\"socket\": \"/a\", \"at\": 0}";
    static const char *const fields[] = {"node", "network", "reason", "socket", "at"};
    struct removed rm = {.node = "untouched"};
    struct err e = ERR_NULL;
    char path[96];

    (void)snprintf(path, sizeof(path), "%s/removed.json", dir);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        json_t *json = json_loads(whole, 0, NULL);

        (void)json_object_del(json, fields[i]);
        assert_int_equal(json_dump_file(json, path, 0), 0);
        json_decref(json);
        assert_int_equal(removed_read(&rm, dir, &e), -EINVAL);
        if (!strstr(err_text(&e), path) || !strstr(err_text(&e), fields[i]))
            fail_msg("%s", err_text(&e));
        assert_string_equal(rm.node, "untouched");
    }
    assert_int_equal(removed_write(&rm, "/proc/weft", &e), -ENOENT);
    /* What is not UTF-8 is no JSON. */
    (void)snprintf(rm.reason, sizeof(rm.reason), "\xff");
    assert_int_equal(removed_write(&rm, dir, &e), -ENOMEM);
    assert_non_null(strstr(err_text(&e), "/removed.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_absent, enter, leave),
        cmocka_unit_test_setup_teardown(test_cut_between_characters, enter, leave),
        cmocka_unit_test(test_a_time_without_a_date),
        cmocka_unit_test_setup_teardown(test_a_damaged_file, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
