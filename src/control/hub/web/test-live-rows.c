/* test-live-rows.c - what changes is read by who knows the rest, once, and as it is now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "hub/web/live_rows.h"

static struct live_rows rows;

static int enter(void **state)
{
    live_rows_init(&rows, 10);
    return 0;
}

static int leave(void **state)
{
    live_rows_deinit(&rows);
    return 0;
}

/* All rows are made anew, as "KEY=TEXT" each. */
static bool make(uint64_t revision, const char *const *all, size_t n)
{
    live_rows_begin(&rows, revision);
    for (size_t i = 0; i < n; i++) {
        char key[32];
        const char *middle = strchr(all[i], '=');

        (void)snprintf(key, sizeof(key), "%.*s", (int)(middle - all[i]), all[i]);
        live_rows_put(&rows, key, strdup(middle + 1));
    }
    return live_rows_end(&rows);
}

#define MAKE(revision, ...)                                                                        \
    make(revision, (const char *const[]){__VA_ARGS__},                                             \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void expect(uint64_t since, const char *expected)
{
    struct str s = STR_NULL;
    char *text;

    live_rows_read(&rows, since, &s);
    text = str_take(&s, NULL);
    assert_string_equal(text, expected);
    free(text);
}

static void test_what_has_changed(void **state)
{
    assert_true(MAKE(11, "a=1", "b=2"));
    expect(0, "{\"all\":true,\"rows\":{\"b\":2,\"a\":1}}");
    expect(11, "{\"rows\":{}}");
    assert_false(MAKE(12, "a=1", "b=2"));
    assert_int_equal(rows.revision, 11);
    assert_true(MAKE(12, "a=3", "b=2"));
    expect(11, "{\"rows\":{\"a\":3}}");
    /* However often it has changed, it is there once, as it is now. */
    assert_true(MAKE(13, "a=4", "b=2", "c=5"));
    expect(11, "{\"rows\":{\"c\":5,\"a\":4}}");
    expect(12, "{\"rows\":{\"c\":5,\"a\":4}}");
    expect(13, "{\"rows\":{}}");
}

static void test_what_is_gone(void **state)
{
    assert_true(MAKE(11, "a=1", "b=2", "c=3"));
    assert_true(MAKE(12, "b=2"));
    expect(11, "{\"rows\":{\"c\":null,\"a\":null}}");
    expect(0, "{\"all\":true,\"rows\":{\"b\":2}}");
    assert_int_equal(rows.n_gone, 2);
    /* It comes again. */
    assert_true(MAKE(13, "b=2", "a=9"));
    expect(11, "{\"rows\":{\"a\":9,\"c\":null}}");
    assert_int_equal(rows.n_gone, 1);
    live_rows_begin(&rows, 14);
    assert_true(live_rows_end(&rows));
    expect(13, "{\"rows\":{\"a\":null,\"b\":null}}");
}

/* Who knows something of another time is told all. */
static void test_what_is_not_known(void **state)
{
    assert_true(MAKE(11, "a=1"));
    expect(9, "{\"all\":true,\"rows\":{\"a\":1}}");
    expect(12, "{\"all\":true,\"rows\":{\"a\":1}}");
}

static void test_keys_that_are_none(void **state)
{
    assert_true(MAKE(11, "a\"=1", "a\\=1", "a\n=1", "b=2"));
    expect(0, "{\"all\":true,\"rows\":{\"b\":2}}");
    live_rows_begin(&rows, 12);
    live_rows_put(&rows, "b", NULL);
    assert_true(live_rows_end(&rows));
    expect(11, "{\"rows\":{\"b\":null}}");
}

/* Of those that are gone only the latest are kept, and who is behind them is told all. */
static void test_too_many(void **state)
{
    char key[32];

    for (uint64_t round = 0; round < 3; round++) {
        live_rows_begin(&rows, 11 + round);
        for (unsigned i = 0; i < LIVE_GONE_MAX; i++) {
            (void)snprintf(key, sizeof(key), "r%u-%u", (unsigned)round, i);
            live_rows_put(&rows, key, strdup("1"));
        }
        assert_true(live_rows_end(&rows));
    }
    assert_true(rows.n_gone <= LIVE_GONE_MAX);
    assert_int_equal(rows.forgotten, 12);
    assert_true(rows.rows.n <= 2 * LIVE_GONE_MAX);
    live_rows_begin(&rows, 20);
    for (unsigned i = 0; i < LIVE_ROWS_MAX + 10; i++) {
        (void)snprintf(key, sizeof(key), "s-%u", i);
        live_rows_put(&rows, key, strdup("1"));
    }
    assert_true(live_rows_end(&rows));
    assert_true(rows.rows.n - rows.n_gone <= LIVE_ROWS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_has_changed, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_gone, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_not_known, enter, leave),
        cmocka_unit_test_setup_teardown(test_keys_that_are_none, enter, leave),
        cmocka_unit_test_setup_teardown(test_too_many, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
