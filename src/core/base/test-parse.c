/* test-parse.c - bounds and refusals of the text parsers, and what the errors say. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/parse.h"

static void test_u64(void **state)
{
    struct err e = ERR_NULL;
    uint64_t v = 77;

    assert_int_equal(parse_u64(&v, "65535", 1, 65535, "port", &e), 0);
    assert_int_equal(v, 65535);
    assert_true(parse_u64(&v, "65536", 1, 65535, "port", &e) < 0);
    assert_string_equal(e.text, "port \"65536\" is not a number from 1 to 65535");
    assert_true(parse_u64(&v, "", 0, 9, "n", &e) < 0);
    assert_true(parse_u64(&v, " 1", 0, 9, "n", &e) < 0);
    assert_true(parse_u64(&v, "-1", 0, 9, "n", &e) < 0);
    assert_true(parse_u64(&v, "8x", 0, 9, "n", &e) < 0);
    assert_true(parse_u64(&v, "10x", 0, 9, "n", &e) < 0);
    assert_true(parse_u64(&v, "18446744073709551616", 0, UINT64_MAX, "n", &e) < 0);
    assert_int_equal(v, 65535);
    assert_int_equal(parse_u64(&v, "1", 1, 65535, "port", &e), 0);
    assert_int_equal(v, 1);
    assert_true(parse_u64(&v, "0", 1, 65535, "port", &e) < 0);
    assert_int_equal(parse_u64(&v, "18446744073709551615", 0, UINT64_MAX, "n", &e), 0);
    assert_true(v == UINT64_MAX);
}

static void test_duration(void **state)
{
    static const struct {
        const char *in;
        int64_t seconds; /* -1: refused */
    } cases[] = {{"90", 90}, {"90s", 90}, {"15m", 900}, {"1h", 3600}, {"7d", 604800}, {"8d", -1},
        {"", -1}, {"h", -1}, {"1w", -1}, {"99999999999999999999s", -1},
        {"9223372036854775807d", -1}, {"9223372036854775807s", -1}, {"9", -1}, {"10", 10}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;
        nsec_t d = -1;
        int r =
            parse_duration(&d, cases[i].in, 10 * NSEC_PER_SEC, 604800 * NSEC_PER_SEC, "ttl", &e);

        assert_int_equal(r == 0, cases[i].seconds >= 0);
        if (r == 0)
            assert_int_equal(d, cases[i].seconds * NSEC_PER_SEC);
    }
}

static void test_decimal(void **state)
{
    static const struct {
        const char *text;
        double value;
        const char *rest;
    } cases[] = {
        {"70B", 70, "B"},
        {"2.5e3", 2500, ""},
        {"0", 0, ""},
        {"9", 9, ""},
        {"1X", 0, "1X"},
        {"/1", 0, "/1"},
        {":1", 0, ":1"},
        {"0x10", 0, "0x10"},
        {"-1", 0, "-1"},
        {" 1", 0, " 1"},
        {"inf", 0, "inf"},
        {"", 0, ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *end;

        assert_true(parse_decimal(cases[i].text, &end) == cases[i].value);
        assert_string_equal(end, cases[i].rest);
    }
}

static void test_word(void **state)
{
    static const char *const words[] = {"auto", "direct", "relay"};

    for (size_t i = 0; i < 3; i++)
        assert_int_equal(parse_word(words[i], words, 3), i);
    assert_int_equal(parse_word("relay", words, 2), 2);
    assert_int_equal(parse_word("rela", words, 3), 3);
    assert_int_equal(parse_word("", words, 3), 3);
    assert_int_equal(parse_word(NULL, words, 3), 3);
    assert_int_equal(parse_word("auto", words, 0), 0);
}

static void test_name(void **state)
{
    static const char *const good[] = {"a", "gpu-0", "0", "a-b-c"};
    static const char *const bad[] = {"", "-a", "a-", "A", "a.b", "a b", "ä", "a/b"};
    char longest[NAME_MAX_LEN + 2];

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        assert_int_equal(parse_name(good[i], "name", NULL), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_true(parse_name(bad[i], "name", NULL) < 0);
    memset(longest, 'a', sizeof(longest) - 1);
    longest[NAME_MAX_LEN + 1] = '\0';
    assert_true(parse_name(longest, "name", NULL) < 0);
    longest[NAME_MAX_LEN] = '\0';
    assert_int_equal(parse_name(longest, "name", NULL), 0);
}

static void test_err_is_printable(void **state)
{
    struct err e = ERR_NULL;

    assert_int_equal(err_set(&e, -22, "bad \"%s\"", "\033[31mred\n"), -22);
    assert_string_equal(e.text, "bad \"?[31mred?\"");
    assert_int_equal(err_prefix(&e, "token"), -22);
    assert_string_equal(e.text, "token: bad \"?[31mred?\"");
    /* Cut within a character it is still what JSON takes. */
    assert_int_equal(err_set(&e, -22, "\"%.3s\"", "a\xc3\xa9\xc3\xa9"), -22);
    assert_string_equal(e.text, "\"a\xc3\xa9\"");
    assert_int_equal(err_set(&e, -22, "\"%.4s\"", "a\xc3\xa9\xc3\xa9"), -22);
    assert_string_equal(e.text, "\"a\xc3\xa9?\"");
}

static void test_rate(void **state)
{
    static const struct {
        const char *in;
        uint64_t bits; /* 0: refused */
    } cases[] = {{"10Gbit", 10000000000}, {"2.5Gbit", 2500000000}, {"500Mbit", 500000000},
        {"64kbit", 64000}, {"1000", 1000}, {"1", 1}, {"1000Tbit", 1000000000000000},
        {"1000.000000000001Tbit", 0}, {"0.0625Gbit", 62500000}, {"1.09kbit", 1090},
        {"18446744073709551615.5kbit", 0}, {"1./bit", 0}, {"1.:bit", 0}, {"9bit", 9},
        {"1Tbit", 1000000000000}, {"0.5kbit", 500}, {"100Mbit/s", 100000000}, {"1000/s", 0},
        {"1Mbit/", 0}, {"1Mbit/sec", 0}, {"", 0}, {"0", 0}, {"Gbit", 0}, {"10gbit", 0},
        {"10 Gbit", 0}, {"-1", 0}, {"1.Gbi", 0}, {"99999999Tbit", 0},
        {"184467440737095516160Gbit", 0}, {"18446744.9Tbit", 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;
        uint64_t bits = 0;
        int r = parse_rate(&bits, cases[i].in, "--expect", &e);

        print_message("case %zu: \"%s\"\n", i, cases[i].in);
        assert_int_equal(r, cases[i].bits ? 0 : -EINVAL);
        assert_int_equal(bits, cases[i].bits);
        if (r < 0)
            assert_non_null(strstr(e.text, "10Gbit"));
    }
}

/* Every character that a name may have, and what lies beside each range. */
static void test_characters_of_a_name(void **state)
{
    for (int c = 1; c < 256; c++) {
        char text[4] = {'x', (char)c, 'x', '\0'};
        bool is_good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';

        assert_int_equal(parse_name(text, "name", NULL), is_good ? 0 : -EINVAL);
    }
}

static void test_durations_for_people(void **state)
{
    static const struct {
        int64_t s;
        const char *text;
    } cases[] = {{0, "0 s"}, {59, "59 s"}, {60, "1 min 0 s"}, {3599, "59 min 59 s"},
        {3600, "1 h 0 min"}, {86399, "23 h 59 min"}, {86400, "1 d 0 h"}, {180000, "2 d 2 h"}};
    char buf[32];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_string_equal(format_duration(cases[i].s * NSEC_PER_SEC, buf), cases[i].text);
    assert_string_equal(format_duration(2 * NSEC_PER_SEC - 1, buf), "1 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u64),
        cmocka_unit_test(test_duration),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_decimal),
        cmocka_unit_test(test_word),
        cmocka_unit_test(test_name),
        cmocka_unit_test(test_err_is_printable),
        cmocka_unit_test(test_characters_of_a_name),
        cmocka_unit_test(test_durations_for_people),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
