/* test-traffic.c - rates from text and back, and the classes' names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/traffic.h"

static void test_rate(void **state)
{
    static const struct {
        const char *in;
        uint64_t bits;
        const char *out;
    } cases[] = {
        {"100kbit", 100000, "100kbit"},
        {"100Mbit/s", 100000000, "100Mbit"},
        {"2500Mbit", 2500000000, "2.5Gbit"},
        {"1.25Mbit", 1250000, "1.25Mbit"},
        {"1000Gbit", 1000000000000, "1000Gbit"},
        {"1000001", 1000001, "1000.001kbit"},
        {"1.002003Gbit", 1002003000, "1002.003Mbit"},
        {"200000", 200000, "200kbit"},
        {"1Gbit", 1000000000, "1Gbit"},
        {"1Mbit", 1000000, "1Mbit"},
        {"10.5Gbit", 10500000000, "10.5Gbit"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[TRAFFIC_RATE_TEXT_MAX];
        uint64_t bits = 0;
        uint64_t again = 0;

        assert_int_equal(traffic_rate_parse(&bits, cases[i].in, "rate", NULL), 0);
        assert_true(bits == cases[i].bits);
        assert_string_equal(traffic_rate_format(bits, text), cases[i].out);
        assert_int_equal(traffic_rate_parse(&again, text, "rate", NULL), 0);
        assert_true(again == bits);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *in;
        const char *says;
    } cases[] = {
        {"99kbit", "rate \"99kbit\" is not from 100kbit to 1000Gbit"},
        {"1001Gbit", "rate \"1001Gbit\" is not from 100kbit to 1000Gbit"},
        {"fast", "rate \"fast\" is not a rate in bits per second, such as 10Gbit, 2.5Gbit or "
                 "500Mbit"},
        {"0", "rate \"0\" is not a rate in bits per second, such as 10Gbit, 2.5Gbit or 500Mbit"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;
        uint64_t bits = 7;

        assert_int_equal(traffic_rate_parse(&bits, cases[i].in, "rate", &e), -EINVAL);
        assert_string_equal(err_text(&e), cases[i].says);
        assert_true(bits == 7);
    }
}

static void test_rates_below_what_is_allowed(void **state)
{
    char text[TRAFFIC_RATE_TEXT_MAX];

    assert_string_equal(traffic_rate_format(0, text), "0bit");
    assert_string_equal(traffic_rate_format(999, text), "999bit");
    assert_string_equal(traffic_rate_format(1000, text), "1kbit");
    assert_true(traffic_rate_is_allowed(0));
    assert_false(traffic_rate_is_allowed(99999));
    assert_true(traffic_rate_is_allowed(100000));
    assert_true(traffic_rate_is_allowed(1000000000000));
    assert_false(traffic_rate_is_allowed(1000000000001));
}

static void test_bytes(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {999, "999 B"},
        {1000, "1.00 kB"},
        {21300000, "21.30 MB"},
        {1000000000, "1.00 GB"},
        {UINT64_C(2500000000000), "2.50 TB"},
        {UINT64_C(1000000000000000), "1.00 PB"},
        {UINT64_MAX, "18446.74 PB"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[TRAFFIC_BYTES_TEXT_MAX];

        assert_string_equal(traffic_bytes_format(cases[i].bytes, text), cases[i].text);
    }
}

static void test_any_rate(void **state)
{
    struct traffic_rates r = {.all = 0};

    assert_false(traffic_rates_any(&r));
    r.all = 1;
    assert_true(traffic_rates_any(&r));
    for (unsigned i = 0; i < TRAFFIC_CLASS_N; i++) {
        r = (struct traffic_rates){.all = 0};
        r.classes[i] = 1;
        assert_true(traffic_rates_any(&r));
    }
}

static void test_classes(void **state)
{
    enum traffic_class class;

    for (unsigned i = 0; i < TRAFFIC_CLASS_N; i++) {
        const char *name = traffic_class_names[i];

        assert_true(traffic_class_parse(&class, name, strlen(name)));
        assert_int_equal(class, i);
    }
    assert_false(traffic_class_parse(&class, "bul", 3));
    assert_false(traffic_class_parse(&class, "", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_rates_below_what_is_allowed),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_any_rate),
        cmocka_unit_test(test_classes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
