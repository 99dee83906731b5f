/* test-str.c - growing text, against the same text made at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"

static void test_growth(void **state)
{
    struct str s = STR_NULL;
    char expected[3000] = "";
    size_t len = 0;
    char *text;

    for (unsigned i = 0; i < 300; i++) {
        char piece[16];

        (void)snprintf(piece, sizeof(piece), "<%u>", i);
        (void)snprintf(
            expected + strlen(expected), sizeof(expected) - strlen(expected), "%s", piece);
        if (i % 2 == 0)
            str_add(&s, piece);
        else
            str_addf(&s, "<%u>", i);
        assert_string_equal(str_text(&s), expected);
    }
    text = str_take(&s, &len);
    assert_string_equal(text, expected);
    assert_int_equal(len, strlen(expected));
    assert_string_equal(str_text(&s), "");
    free(text);
}

/* Lengths around each doubling: the zero must fit as well. */
static void test_edges(void **state)
{
    for (size_t len = 0; len < 300; len++) {
        struct str s = STR_NULL;
        char bytes[300];

        memset(bytes, 'x', sizeof(bytes));
        str_add_bytes(&s, bytes, len);
        assert_int_equal(strlen(str_text(&s)), len);
        str_addf(&s, "%.*s", (int)(299 - len), bytes);
        assert_int_equal(strlen(str_text(&s)), 299);
        str_deinit(&s);
        str_deinit(&s);
    }
}

static void test_empty(void **state)
{
    struct str s = STR_NULL;
    size_t len = 7;
    char *text;

    /* Nothing from nowhere: what only a sanitizer complains about. */
    str_add_bytes(&s, NULL, 0);
    text = str_take(&s, &len);
    assert_string_equal(text, "");
    assert_int_equal(len, 0);
    free(text);
    text = str_take(&s, NULL);
    assert_string_equal(text, "");
    free(text);
    assert_string_equal(str_text(&s), "");
    str_addf(&s, "%s", "");
    assert_non_null(s.text);
    assert_false(s.failed);
    str_deinit(&s);
}

static void test_failure_is_remembered(void **state)
{
    struct str s = STR_NULL;

    str_add(&s, "kept");
    s.failed = true;
    str_add(&s, "lost");
    str_addf(&s, "%s", "lost");
    assert_string_equal(str_text(&s), "kept");
    assert_null(str_take(&s, NULL));
    /* It is as new. */
    assert_false(s.failed);
    str_add(&s, "new");
    assert_string_equal(str_text(&s), "new");
    str_deinit(&s);
    assert_null(s.text);
    assert_int_equal(s.len, 0);
    assert_int_equal(s.cap, 0);
}

/* A character that has no bytes in this locale. */
static void test_what_cannot_be_written(void **state)
{
    struct str s = STR_NULL;

    str_add(&s, "kept");
    str_addf(&s, "%ls", L"\x20ac");
    assert_true(s.failed);
    assert_string_equal(str_text(&s), "kept");
    assert_null(str_take(&s, NULL));
    str_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_failure_is_remembered),
        cmocka_unit_test(test_what_cannot_be_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
