/* test-http-exchange.c - what comes back, in whatever pieces: its bounds, and its lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "http/http_exchange.h"

/* The lines that were given out, each with a '|' behind it. */
struct lines {
    char text[64];
    size_t len;
    unsigned n;
    unsigned wanted; /* so many, and no more */
};

static bool on_line(void *ctx, const char *line, size_t len)
{
    struct lines *l = ctx;

    assert_int_equal(strlen(line), len);
    l->len += (size_t)snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s|", line);
    return ++l->n < l->wanted;
}

static void begin(struct http_exchange *x, size_t max)
{
    assert_true(http_exchange_init(x, "GET", "http://127.0.0.1:1/", max));
}

static void test_an_answer_is_bounded(void **state)
{
    struct http_exchange x;

    begin(&x, 5);
    assert_true(http_exchange_take(&x, "abc", 3));
    assert_true(http_exchange_take(&x, "", 0));
    assert_true(http_exchange_take(&x, "de", 2));
    assert_string_equal(str_text(&x.got), "abcde");
    assert_false(x.is_too_long);
    assert_false(http_exchange_take(&x, "f", 1));
    assert_true(x.is_too_long);
    assert_string_equal(str_text(&x.got), "abcde");
    http_exchange_deinit(&x);
    http_exchange_deinit(&x);
}

/* It is not taken for one that is too long. */
static void test_no_memory_for_an_answer(void **state)
{
    struct http_exchange x;

    begin(&x, 5);
    x.got.failed = true;
    assert_false(http_exchange_take(&x, "abc", 3));
    assert_false(x.is_too_long);
    assert_string_equal(http_exchange_reason(&x, CURLE_WRITE_ERROR), "no memory for the answer");
    http_exchange_deinit(&x);
}

/* However the bytes are cut, the lines are the same; what has no end yet is kept. */
static void test_lines_in_pieces(void **state)
{
    static const char text[] = "one\n\nthree\nrest";

    for (size_t piece = 1; piece <= sizeof(text) - 1; piece++) {
        struct lines l = {.wanted = 10};
        struct http_exchange x;

        begin(&x, 5);
        for (size_t at = 0; at < sizeof(text) - 1; at += piece) {
            size_t left = sizeof(text) - 1 - at;

            assert_true(
                http_exchange_take_lines(&x, text + at, left < piece ? left : piece, on_line, &l));
        }
        assert_string_equal(l.text, "one||three|");
        assert_string_equal(str_text(&x.got), "rest");
        http_exchange_deinit(&x);
    }
}

/* A line that is too long ends the stream, whether its end has come or not. */
static void test_a_line_is_bounded(void **state)
{
    static const char *const texts[] = {"ok\n123456\nok\n", "ok\n123456"};

    for (size_t i = 0; i < 2; i++) {
        struct lines l = {.wanted = 10};
        struct http_exchange x;

        begin(&x, 5);
        assert_false(http_exchange_take_lines(&x, texts[i], strlen(texts[i]), on_line, &l));
        assert_true(x.is_too_long);
        assert_string_equal(l.text, "ok|");
        http_exchange_deinit(&x);
    }
}

static void test_no_more_lines_are_wanted(void **state)
{
    struct lines l = {.wanted = 2};
    struct http_exchange x;

    begin(&x, 5);
    assert_false(http_exchange_take_lines(&x, "a\nb\nc\n", 6, on_line, &l));
    assert_false(x.is_too_long);
    assert_string_equal(l.text, "a|b|");
    http_exchange_deinit(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_is_bounded),
        cmocka_unit_test(test_no_memory_for_an_answer),
        cmocka_unit_test(test_lines_in_pieces),
        cmocka_unit_test(test_a_line_is_bounded),
        cmocka_unit_test(test_no_more_lines_are_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
