/* test-proxy.c - what is a proxy, and what the environment says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/client.h"
#include "base/err.h"

static void test_check(void **state)
{
    static const char *const good[] = {"http://proxy.example:3128", "https://10.0.0.1:8080",
        "proxy:3128", "http://me:se%40cret@[fd00::1]:3128", "HTTP://proxy:1/"};
    static const char *const bad[] = {"", "http://", "http://proxy", "socks5://proxy:1080",
        "http://proxy:99999", "http://pro xy:1", "http://me:geheim@proxy", "http://proxy:1\r\n"};
    struct err e = ERR_NULL;

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        assert_int_equal(proxy_check(good[i], NULL), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (proxy_check(bad[i], &e) != -EINVAL)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_null(strstr(err_text(&e), "geheim"));
    }
    assert_int_equal(proxy_check("socks5://me:geheim@proxy:1080", &e), -EINVAL);
    assert_string_equal(err_text(&e), "the proxy's scheme \"socks5\" is neither http nor https");
}

static void test_name(void **state)
{
    char buf[PROXY_TEXT_MAX];

    assert_string_equal(proxy_name("http://me:secret@proxy:3128/", buf), "proxy:3128");
    assert_string_equal(proxy_name("proxy:3128", buf), "proxy:3128");
}

static void test_excepted(void **state)
{
    static const struct {
        const char *list;
        const char *address;
        bool expected;
    } rows[] = {
        {"", "hub.example:8443", false},
        {"*", "hub.example:8443", true},
        {"hub.example", "hub.example:8443", true},
        {"localhost, .example", "hub.example:8443", true},
        {"example", "hub.EXAMPLE:8443", true},
        {"ample", "hub.example:8443", false},
        {"hub.example.org", "hub.example:8443", false},
        {"192.0.2.1", "192.0.2.1:8443", true},
        {"192.0.2.1", "192.0.2.10:8443", false},
        {"10.0.0.0/8,192.0.2.0/24", "192.0.2.10:8443", true},
        {"2001:db8::/32", "[2001:db8::7]:8443", true},
        {"2.10", "192.0.2.10:8443", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (proxy_is_excepted(rows[i].list, rows[i].address) != rows[i].expected)
            fail_msg("row %zu: %s in %s", i, rows[i].address, rows[i].list);
}

static void test_environment(void **state)
{
    char buf[PROXY_TEXT_MAX] = "";
    struct err e = ERR_NULL;

    (void)unsetenv("https_proxy");
    (void)unsetenv("HTTPS_PROXY");
    (void)unsetenv("no_proxy");
    (void)unsetenv("NO_PROXY");
    assert_int_equal(proxy_from_environment("hub:8443", buf, &e), PROXY_E_NONE);
    (void)setenv("HTTPS_PROXY", "http://upper:1", 1);
    assert_int_equal(proxy_from_environment("hub:8443", buf, &e), 0);
    assert_string_equal(buf, "http://upper:1");
    (void)setenv("https_proxy", "http://lower:1", 1);
    assert_int_equal(proxy_from_environment("hub:8443", buf, &e), 0);
    assert_string_equal(buf, "http://lower:1");
    (void)setenv("no_proxy", "hub", 1);
    assert_int_equal(proxy_from_environment("hub:8443", buf, &e), PROXY_E_NONE);
    (void)unsetenv("no_proxy");
    (void)setenv("https_proxy", "gopher://lower:1", 1);
    assert_int_equal(proxy_from_environment("hub:8443", buf, &e), -EINVAL);
    assert_non_null(strstr(err_text(&e), "https_proxy"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_name),
        cmocka_unit_test(test_excepted),
        cmocka_unit_test(test_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
