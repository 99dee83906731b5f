/* test-text.c - RFC 4648 vectors, every byte value, and refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/secret.h"
#include "base/text.h"

static void test_base64_vectors(void **state)
{
    /* RFC 4648 section 10. */
    static const struct {
        const char *plain;
        const char *b64;
    } cases[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        size_t len = strlen(cases[i].plain);
        char text[16];
        char back[16];

        base64_encode(cases[i].plain, len, text);
        assert_string_equal(text, cases[i].b64);
        assert_true(base64_decode(text, back, len));
        assert_memory_equal(back, cases[i].plain, len);
    }
}

static void test_base64_refusals(void **state)
{
    uint8_t out[8];

    assert_false(base64_decode("Zg=", out, 1));
    assert_false(base64_decode("Zg==x", out, 1));
    assert_false(base64_decode("Zh==", out, 1)); /* spare bits set */
    assert_false(base64_decode("Z-==", out, 1));
    assert_false(base64_decode("Zm9v", out, 2));
    assert_false(base64_decode("ZgA=", out, 1));
    assert_false(base64_decode("Zg=A", out, 1));
    assert_false(base64_decode("Zg==", out, 2));
    assert_false(hex_decode("abc", out, 1));
    assert_false(hex_decode("a", out, 1));
}

static void test_round_trips(void **state)
{
    uint64_t seed = 7;
    struct rng rng = rng_seeded(&seed);

    for (size_t len = 0; len < 70; len++) {
        uint8_t b[70];
        uint8_t back[70];
        char text[2 * sizeof(b) + 1];
        size_t n;

        rng_fill(&rng, b, len);
        hex_encode(b, len, text);
        assert_true(hex_decode(text, back, len));
        assert_memory_equal(back, b, len);
        base64_encode(b, len, text);
        assert_true(base64_decode(text, back, len));
        assert_memory_equal(back, b, len);
        base64url_encode(b, len, text);
        assert_null(strpbrk(text, "+/="));
        assert_true(base64url_decode(text, strlen(text), back, sizeof(back), &n));
        assert_int_equal(n, len);
        assert_memory_equal(back, b, len);
    }
}

static void test_every_character(void **state)
{
    for (int c = 1; c < 256; c++) {
        char text[3] = {(char)c, 'A', 0};
        uint8_t out[1];
        bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');

        assert_int_equal(hex_decode(text, out, 1), is_hex);
    }
}

/* What a terminal obeys, and what looks like it. */
static void test_control_characters(void **state)
{
    static const struct {
        const char *text;
        const char *plain;
    } cases[] = {
        {"", ""},
        {"gpu-1 ~", "gpu-1 ~"},
        {"\x1b[2J", "?[2J"},
        {"a\x7f\tb\n", "a??b?"},
        {"\xc2\x9b"
         "31m",
            "??31m"},
        {"\xc2\x80\xc2\x9f\xc2\xa0", "????\xc2\xa0"},
        {"\xc3\xa9", "\xc3\xa9"},
        /* No UTF-8: cut, a byte that some terminals obey, overlong, a surrogate, too high. */
        {"\xc3\xa9\xc2", "\xc3\xa9?"},
        {"\x9b"
         "2J",
            "?2J"},
        {"\xc0\xaf", "??"},
        {"\xed\xa0\x80", "???"},
        {"\xf4\x90\x80\x80", "????"},
        {"\xe2\x82\xac\xf0\x9f\x98\x80", "\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xe2\x82", "??"},
        {"a\xc3", "a?"},
        /* The first and the last of each form, and what lies beside them. */
        {"\xc2\xa0\xdf\xbf", "\xc2\xa0\xdf\xbf"},
        {"\xe0\xa0\x80\xe0\xbf\xbf", "\xe0\xa0\x80\xe0\xbf\xbf"},
        {"\xed\x80\x80\xed\x9f\xbf", "\xed\x80\x80\xed\x9f\xbf"},
        {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
        {"\xe0\x9f\xbf", "???"},
        {"\xf0\x8f\x80\x80", "????"},
        {"\xc2\xc0", "??"},
        {"\xe2\x82\xc0", "???"},
        {"\xf5\x80\x80\x80", "????"},
        {"\xff", "?"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char buf[32];

        (void)snprintf(buf, sizeof(buf), "%s", cases[i].text);
        assert_int_equal(
            text_is_plain(buf, strlen(buf)), strcmp(cases[i].text, cases[i].plain) == 0);
        text_make_plain(buf, '?');
        assert_string_equal(buf, cases[i].plain);
    }
}

static void test_cut(void **state)
{
    static const char text[] = "a\xc3\xa9\xe2\x82\xac";

    assert_int_equal(text_cut(text, 6, 9), 6);
    assert_int_equal(text_cut(text, 6, 6), 6);
    assert_int_equal(text_cut(text, 6, 5), 3);
    assert_int_equal(text_cut(text, 6, 3), 3);
    assert_int_equal(text_cut(text, 6, 2), 1);
    assert_int_equal(text_cut(text, 6, 0), 0);
    /* Only what continues a character is cut off before it. */
    assert_int_equal(text_cut("\x80\x80\x80", 3, 2), 0);
}

static void test_part(void **state)
{
    char part[4] = "";
    const char *rest = text_part("abc,,d", ',', part, sizeof(part));

    assert_string_equal(part, "abc");
    assert_string_equal(rest, ",d");
    /* No part is none, and neither is one that does not fit. */
    assert_null(text_part(rest, ',', part, sizeof(part)));
    assert_null(text_part("abcd", ',', part, sizeof(part)));
    assert_null(text_part("", ',', part, sizeof(part)));
    assert_null(text_part(NULL, ',', part, sizeof(part)));
    assert_string_equal(part, "abc");
    rest = text_part(rest + 1, ',', part, sizeof(part));
    assert_string_equal(part, "d");
    assert_string_equal(rest, "");
}

static void test_base64url_refusals(void **state)
{
    static const struct {
        const char *text;
        size_t cap;
        bool is_taken;
    } cases[] = {{"Zm9v", 3, true}, {"Zm9v", 2, false}, {"Zm8", 2, true}, {"Zm8", 1, false},
        {"Zg", 1, true}, {"Z", 8, false}, {"Zm9vZ", 8, false}, {"Zh", 8, false}, {"Zg==", 8, false},
        {"Zm+v", 8, false}, {"Zm-v", 8, true}, {"", 0, true}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint8_t out[8];
        size_t len = 99;

        assert_int_equal(
            base64url_decode(cases[i].text, strlen(cases[i].text), out, cases[i].cap, &len),
            cases[i].is_taken);
        assert_int_equal(len, cases[i].is_taken ? strlen(cases[i].text) * 3 / 4 : 99);
    }
}

/* Each column is as wide as its widest cell, the last one as each cell is; whole rows alone. */
static void test_table(void **state)
{
    struct table t = {.n_columns = 3};
    struct str out = STR_NULL;

    table_format(&t, &out);
    assert_string_equal(str_text(&out), "");
    table_add(&t, "NAME");
    table_add(&t, "%s", "N");
    table_add(&t, "LAST");
    table_add(&t, "%s", "gpu-10");
    table_add(&t, "%d", 12);
    table_add(&t, "a longer one");
    table_add(&t, "x");
    table_format(&t, &out);
    assert_string_equal(str_text(&out), "NAME    N   LAST\n"
                                        "gpu-10  12  a longer one\n");
    table_deinit(&t);
    str_deinit(&out);
}

/* There is no end of rows. */
static void test_a_long_table(void **state)
{
    struct table t = {.n_columns = 2};
    struct str out = STR_NULL;
    const char *line;

    for (unsigned i = 0; i < 1000; i++) {
        table_add(&t, "%u", i);
        table_add(&t, "%u", 2 * i);
    }
    table_format(&t, &out);
    line = str_text(&out);
    for (unsigned i = 0; i < 1000; i++) {
        char expected[32];

        (void)snprintf(expected, sizeof(expected), "%-3u  %u\n", i, 2 * i);
        assert_memory_equal(line, expected, strlen(expected));
        line += strlen(expected);
    }
    assert_string_equal(line, "");
    /* A table that had no memory says so of the text, too. */
    t.failed = true;
    table_format(&t, &out);
    assert_true(out.failed);
    table_deinit(&t);
    str_deinit(&out);
}

/* A character that has no bytes in this locale: the cell is none, and the table says so. */
static void test_a_cell_that_cannot_be_written(void **state)
{
    struct table t = {.n_columns = 1};
    struct str out = STR_NULL;

    table_add(&t, "%s", "a");
    assert_false(t.failed);
    table_add(&t, "%ls", L"\x20ac");
    assert_true(t.failed);
    assert_int_equal(t.n, 1);
    table_format(&t, &out);
    assert_true(out.failed);
    table_deinit(&t);
    assert_int_equal(t.n, 0);
    assert_int_equal(t.n_columns, 1);
    assert_false(t.failed);
    str_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64_vectors),
        cmocka_unit_test(test_base64_refusals),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_part),
        cmocka_unit_test(test_base64url_refusals),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_a_long_table),
        cmocka_unit_test(test_a_cell_that_cannot_be_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
