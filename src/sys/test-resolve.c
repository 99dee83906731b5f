/* test-resolve.c - the forms in which a person may write where a hub is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/err.h"
#include "sys/resolve.h"

static void test_forms(void **state)
{
    static const struct {
        const char *in;
        const char *out; /* NULL: refused */
    } cases[] = {
        {"203.0.113.10", "203.0.113.10:51820"},
        {"203.0.113.10:7", "203.0.113.10:7"},
        {"2001:db8::10", "[2001:db8::10]:51820"},
        {"[2001:db8::10]:7", "[2001:db8::10]:7"},
        {"", NULL},
        {":7", NULL},
        {"203.0.113.10:0", NULL},
        {"203.0.113.10:65536", NULL},
        {"203.0.113.10:x", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;
        struct endpoint ep[4];
        char text[ENDPOINT_TEXT_MAX];
        unsigned n = 0;
        int r = resolve_host(cases[i].in, 51820, ep, 4, &n, &e);

        assert_int_equal(r == 0, cases[i].out != NULL);
        if (r != 0) {
            assert_true(e.text[0] != '\0');
            continue;
        }
        assert_int_equal(n, 1);
        assert_string_equal(endpoint_format(&ep[0], text), cases[i].out);
    }
}

static void test_name(void **state)
{
    struct err e = ERR_NULL;
    struct endpoint ep[4];
    unsigned n = 0;

    assert_int_equal(resolve_host("localhost:9", 51820, ep, 4, &n, &e), 0);
    assert_true(n >= 1);
    assert_int_equal(ep[0].port, 9);
    assert_true(resolve_host("no-such-host.invalid", 51820, ep, 4, &n, &e) < 0);
    assert_non_null(strstr(e.text, "no-such-host.invalid"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
