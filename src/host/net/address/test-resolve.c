/* test-resolve.c - the forms in which a person may write where a hub is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <string.h>

#include "base/err.h"
#include "net/address/resolve.h"

static void test_forms(void **state)
{
    static const struct {
        const char *in;
        const char *out; /* NULL: refused */
        const char *why;
    } cases[] = {
        {"203.0.113.10", "203.0.113.10:51820"},
        {"203.0.113.10:7", "203.0.113.10:7"},
        {"2001:db8::10", "[2001:db8::10]:51820"},
        {"[2001:db8::10]:7", "[2001:db8::10]:7"},
        {"", NULL, "\"\" is not HOST or HOST:PORT"},
        {":7", NULL, "\":7\" is not HOST or HOST:PORT"},
        {"203.0.113.10:0", NULL, "port \"0\" is not a number from 1 to 65535"},
        {"203.0.113.10:65536", NULL, "port \"65536\" is not a number from 1 to 65535"},
        {"203.0.113.10:x", NULL, "port \"x\" is not a number from 1 to 65535"},
        {"203.0.113.256:7", NULL,
            "\"203.0.113.256\" is not an IPv4 address, which is four numbers from 0 to 255"},
        {"203.0.113", NULL,
            "\"203.0.113\" is not an IPv4 address, which is four numbers from 0 to 255"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;
        struct endpoint ep[4];
        char text[ENDPOINT_TEXT_MAX];
        unsigned n = 0;
        int r = resolve_host(cases[i].in, 51820, ep, 4, &n, &e);

        assert_int_equal(r == 0, cases[i].out != NULL);
        if (r != 0) {
            assert_string_equal(err_text(&e), cases[i].why);
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

/* In a thread: what leads somewhere, what does not, and a task that nobody waits for. */
static void test_task(void **state)
{
    static const char texts[][HOST_PORT_MAX + 1] = {"192.0.2.1:7", "no-such-host.invalid:1"};
    struct resolve_answer answers[RESOLVE_TASK_TEXTS];
    struct resolve_task *t = NULL;
    struct err e = ERR_NULL;
    unsigned n;

    assert_int_equal(resolve_task_start(&t, texts, 2, 0, &e), 0);
    while ((n = resolve_task_take(t, answers)) == 0)
        (void)poll(NULL, 0, 1);
    assert_int_equal(n, 2);
    assert_string_equal(answers[0].text, "192.0.2.1:7");
    assert_int_equal(answers[0].n, 1);
    assert_int_equal(answers[0].endpoints[0].port, 7);
    assert_int_equal(answers[1].n, 0);
    assert_non_null(strstr(answers[1].why.text, "no-such-host.invalid"));
    assert_null(resolve_task_free(t));
    assert_int_equal(resolve_task_start(&t, texts, 2, 0, &e), 0);
    assert_null(resolve_task_free(t));
    assert_null(resolve_task_free(NULL));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_name),
        cmocka_unit_test(test_task),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
