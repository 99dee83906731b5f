/* test-addr.c - parsing, formatting and prefix arithmetic, a line per case. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/addr.h"
#include "base/err.h"

static struct ip_prefix prefix(const char *text)
{
    struct err e = ERR_NULL;
    struct ip_prefix p;

    assert_int_equal(ip_prefix_parse(&p, text, &e), 0);
    return p;
}

static void test_endpoint(void **state)
{
    static const struct {
        const char *in;
        const char *out; /* NULL: refused */
    } cases[] = {
        {"1.2.3.4:5", "1.2.3.4:5"},
        {"[fd00::1]:51820", "[fd00::1]:51820"},
        {"[fe80::1%4]:9", "[fe80::1%4]:9"},
        {"[1.2.3.4]:5", "1.2.3.4:5"},
        {"[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%4294967295]:65535",
            "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535"},
        {"[]:5", NULL},
        {"[fe80::1%4294967296]:9", NULL},
        {"1.2.3.4", NULL},
        {"1.2.3.4:0", NULL},
        {"1.2.3.4:65536", NULL},
        {"fd00::1:51820", NULL},
        {"[fe80::1%x]:9", NULL},
        {"hub.example:51820", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;
        struct endpoint ep;
        char buf[ENDPOINT_TEXT_MAX];
        int r = endpoint_parse(&ep, cases[i].in, &e);

        assert_int_equal(r == 0, cases[i].out != NULL);
        if (r == 0)
            assert_string_equal(endpoint_format(&ep, buf), cases[i].out);
        else
            assert_true(strlen(e.text) > 0);
    }
}

/* What a text is not, or which part of it is wrong. */
static void test_what_is_said_of_a_wrong_address(void **state)
{
#define LONGEST "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255"
    static const struct {
        const char *endpoint; /* or else a prefix */
        const char *prefix;
        const char *says;
    } cases[] = {
        {"1.2.3.4", NULL, "\"1.2.3.4\" is not ADDRESS:PORT"},
        {"[]:5", NULL, "\"\" is not an IPv4 or IPv6 address"},
        {"[:5", NULL, "\"[\" is not an IPv4 or IPv6 address"},
        {"(::1]:5", NULL, "\"(::1]:5\": an IPv6 address needs brackets, [ADDRESS]:PORT"},
        {"[::1):5", NULL, "\"[::1):5\": an IPv6 address needs brackets, [ADDRESS]:PORT"},
        {"fd00::1:51820", NULL,
            "\"fd00::1:51820\": an IPv6 address needs brackets, [ADDRESS]:PORT"},
        {"[fe80::1%x]:9", NULL, "interface index \"x\" is not a number from 0 to 4294967295"},
        {"1.2.3.4:0", NULL, "port \"0\" is not a number from 1 to 65535"},
        {"1.2.3.4:65536", NULL, "port \"65536\" is not a number from 1 to 65535"},
        {"[" LONGEST "%42949672950]:5", NULL,
            "interface index \"42949672950\" is not a number from 0 to 4294967295"},
        {"[" LONGEST "%429496729500]:5", NULL,
            "\"[" LONGEST "%429496729500]:5\" is not ADDRESS:PORT"},
        {NULL, "10.0.0.0/33", "prefix length \"33\" is not a number from 0 to 32"},
        {NULL, "fd00::/129", "prefix length \"129\" is not a number from 0 to 128"},
        {NULL, "10.0.0.0/", "prefix length \"\" is not a number from 0 to 32"},
        {NULL, "hub/8", "\"hub\" is not an IPv4 or IPv6 address"},
        {NULL, LONGEST "/", "prefix length \"\" is not a number from 0 to 128"},
        {NULL, LONGEST "0/8", "\"" LONGEST "0/8\" is not ADDRESS/LENGTH"},
        {NULL, LONGEST "0", "\"" LONGEST "0\" is not ADDRESS/LENGTH"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct endpoint ep = {.port = 7};
        struct ip_prefix p = {.len = 7};
        struct err e = ERR_NULL;

        assert_int_equal(cases[i].endpoint ? endpoint_parse(&ep, cases[i].endpoint, &e)
                                           : ip_prefix_parse(&p, cases[i].prefix, &e),
            -EINVAL);
        assert_string_equal(e.text, cases[i].says);
        assert_int_equal(ep.port, 7);
        assert_int_equal(p.len, 7);
    }
}

static struct ip_addr address(const char *text)
{
    struct ip_addr a;

    assert_int_equal(ip_addr_parse(&a, text, NULL), 0);
    return a;
}

static void test_link_local(void **state)
{
    static const struct {
        const char *text;
        bool is_link_local;
    } rows[] = {
        {"169.254.0.1", true},
        {"169.254.255.255", true},
        {"169.253.0.1", false},
        {"168.254.0.1", false},
        {"10.0.0.1", false},
        {"fe80::1", true},
        {"febf::1", true},
        {"fec0::1", false},
        {"ff80::1", false},
        {"fd00::1", false},
        {"::", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct ip_addr a = address(rows[i].text);

        assert_int_equal(ip_addr_is_link_local(&a), rows[i].is_link_local);
    }
}

/* Two are equal in every part or are not. */
static void test_equal(void **state)
{
    static const char *const endpoints[] = {
        "[fe80::1%4]:9", "[fe80::1%4]:8", "[fe80::1%5]:9", "[fe80::2%4]:9"};
    static const char *const prefixes[] = {"10.0.0.0/8", "10.0.0.0/16", "11.0.0.0/8"};

    for (size_t i = 0; i < sizeof(endpoints) / sizeof(*endpoints); i++)
        for (size_t j = 0; j < sizeof(endpoints) / sizeof(*endpoints); j++) {
            struct endpoint a;
            struct endpoint b;

            assert_int_equal(endpoint_parse(&a, endpoints[i], NULL), 0);
            assert_int_equal(endpoint_parse(&b, endpoints[j], NULL), 0);
            assert_int_equal(endpoint_equal(&a, &b), i == j);
        }
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
        for (size_t j = 0; j < sizeof(prefixes) / sizeof(*prefixes); j++) {
            struct ip_prefix a = prefix(prefixes[i]);
            struct ip_prefix b = prefix(prefixes[j]);

            assert_int_equal(ip_prefix_equal(&a, &b), i == j);
        }
}

static void test_prefix_mask(void **state)
{
    static const struct {
        const char *in;
        const char *net;
    } cases[] = {
        {"10.42.3.77/16", "10.42.0.0/16"},
        {"10.42.3.77/25", "10.42.3.0/25"},
        {"10.42.3.77/0", "0.0.0.0/0"},
        {"10.42.3.77", "10.42.3.77/32"},
        {"fd12:3456::ff/64", "fd12:3456::/64"},
        {"fd12:3456::ff/127", "fd12:3456::fe/127"},
        {"::1/0", "::/0"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ip_prefix p = prefix(cases[i].in);
        struct ip_prefix net = ip_prefix_mask(&p);
        char buf[IP_PREFIX_TEXT_MAX];

        assert_string_equal(ip_prefix_format(&net, buf), cases[i].net);
    }
}

static void test_overlap(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        bool overlaps;
    } cases[] = {
        {"10.0.0.0/8", "10.42.0.0/16", true},
        {"10.42.0.0/16", "10.43.0.0/16", false},
        {"0.0.0.0/0", "192.168.1.0/24", true},
        {"::/0", "10.0.0.0/8", false},
        {"fd00::/8", "fd12::/48", true},
        {"10.42.0.0/16", "10.42.0.0/16", true},
        {"10.42.0.1/32", "10.42.0.2/32", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ip_prefix a = prefix(cases[i].a);
        struct ip_prefix b = prefix(cases[i].b);

        assert_int_equal(ip_prefix_overlaps(&a, &b), cases[i].overlaps);
        assert_int_equal(ip_prefix_overlaps(&b, &a), cases[i].overlaps);
    }
}

static void test_nth(void **state)
{
    struct ip_prefix p4 = prefix("10.42.0.0/30");
    struct ip_prefix p6 = prefix("fd00::/64");
    char buf[IP_ADDR_TEXT_MAX];
    struct ip_addr a;

    assert_int_equal(ip_prefix_size(&p4), 4);
    assert_true(ip_prefix_nth(&p4, 3, &a));
    assert_string_equal(ip_addr_format(&a, buf), "10.42.0.3");
    assert_false(ip_prefix_nth(&p4, 4, &a));
    assert_true(ip_prefix_nth(&p6, 0x10001, &a));
    assert_string_equal(ip_addr_format(&a, buf), "fd00::1:1");
    /* It begins where the prefix does, whichever address names it. */
    p6 = prefix("fd00::1:2:3:ffff/120");
    assert_int_equal(ip_prefix_size(&p6), 256);
    assert_true(ip_prefix_nth(&p6, 255, &a));
    assert_string_equal(ip_addr_format(&a, buf), "fd00::1:2:3:ffff");
    assert_true(ip_prefix_nth(&p6, 0, &a));
    assert_string_equal(ip_addr_format(&a, buf), "fd00::1:2:3:ff00");
    assert_false(ip_prefix_nth(&p6, 256, &a));
}

/* Addresses in a prefix, as far as 64 bits count them. */
static void test_size(void **state)
{
    static const struct {
        const char *text;
        uint64_t size;
    } cases[] = {{"10.0.0.1/32", 1}, {"10.0.0.0/8", 1 << 24}, {"0.0.0.0/0", UINT64_C(1) << 32},
        {"fd00::1/128", 1}, {"fd00::/65", UINT64_C(1) << 63}, {"fd00::/64", UINT64_MAX},
        {"::/0", UINT64_MAX}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ip_prefix p = prefix(cases[i].text);

        assert_true(ip_prefix_size(&p) == cases[i].size);
    }
}

/* What stands for a host: its address, or of IPv6 the network of 64 bits. */
static void test_blocks_of_hosts(void **state)
{
    static const struct {
        const char *text, *block;
        bool is_v4;
    } cases[] = {{"192.0.2.255", "192.0.2.255", true},
        {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::", false}, {"::1", "::", false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ip_addr a = address(cases[i].text);
        struct ip_addr block = ip_addr_block(&a);
        char buf[IP_ADDR_TEXT_MAX];

        assert_int_equal(ip_addr_is_v4(&a), cases[i].is_v4);
        assert_false(ip_addr_is_none(&a));
        assert_string_equal(ip_addr_format(&block, buf), cases[i].block);
    }
    assert_true(ip_addr_is_none(&(struct ip_addr){{0}}));
    assert_string_equal(
        endpoint_format(&(struct endpoint){.port = 0}, (char[ENDPOINT_TEXT_MAX]){0}), "(none)");
}

static void test_host_port(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"hub", "\"hub\" is not HOST:PORT"},
        {":1", "\":1\" is not HOST:PORT"},
        {"hub:0", "port \"0\" is not a number from 1 to 65535"},
        {"hub:65536", "port \"65536\" is not a number from 1 to 65535"},
        {"a/b:1", "\"a/b:1\" is not HOST:PORT"},
        {"a@b:1", "\"a@b:1\" is not HOST:PORT"},
        {"[::1:8443", "\"[::1:8443\": an IPv6 address needs brackets, [ADDRESS]:PORT"},
    };

    assert_int_equal(host_port_check("hub.example.org:8443", NULL), 0);
    assert_int_equal(host_port_check("10.0.0.1:1", NULL), 0);
    assert_int_equal(host_port_check("[::1]:8443", NULL), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct err e = ERR_NULL;

        assert_int_equal(host_port_check(bad[i].text, &e), -EINVAL);
        assert_string_equal(e.text, bad[i].says);
    }
}

static void test_host_without_port(void **state)
{
    static const struct {
        const char *text;
        const char *complete; /* NULL: refused */
    } rows[] = {
        {"hub.example.org", "hub.example.org:8443"},
        {"hub.example.org:9443", "hub.example.org:9443"},
        {"10.0.0.1", "10.0.0.1:8443"},
        {"fd00::1", "[fd00::1]:8443"},
        {"[fd00::1]", "[fd00::1]:8443"},
        {"[fd00::1]:1", "[fd00::1]:1"},
        {"", NULL},
        {"hub:", NULL},
        {"hub:0", NULL},
        {"https://hub", NULL},
        {"[fd00::1", NULL},
    };
    char long_name[2 * HOST_PORT_MAX];
    char complete[HOST_PORT_MAX + 1];
    struct err e = ERR_NULL;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        int r = host_port_complete(complete, rows[i].text, 8443, NULL);

        assert_int_equal(r, rows[i].complete ? 0 : -EINVAL);
        if (rows[i].complete)
            assert_string_equal(complete, rows[i].complete);
    }
    memset(long_name, 'a', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    assert_int_equal(host_port_complete(complete, long_name, 8443, &e), -EINVAL);
    assert_non_null(strstr(e.text, "aaa\" is longer than a name may be"));
}

/* Every character that a host's name may have, and what lies beside each range. */
static void test_characters_of_a_host(void **state)
{
    for (int c = 1; c < 256; c++) {
        char text[] = {'x', (char)c, 'x', ':', '1', '\0'};
        bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '_';

        assert_int_equal(host_port_check(text, NULL), is_good ? 0 : -EINVAL);
    }
}

/* A text of the greatest length is one, and one that its port makes longer is none. */
static void test_the_longest_host_and_port(void **state)
{
    char complete[HOST_PORT_MAX + 1];
    char text[HOST_PORT_MAX + 2];

    for (size_t len = HOST_PORT_MAX - 6; len <= HOST_PORT_MAX; len++) {
        memset(text, 'a', len);
        text[len] = '\0';
        assert_int_equal(host_port_complete(complete, text, 8443, NULL),
            len + strlen(":8443") <= HOST_PORT_MAX ? 0 : -EINVAL);
        if (len + strlen(":8443") > HOST_PORT_MAX)
            continue;
        assert_memory_equal(complete, text, len);
        assert_string_equal(complete + len, ":8443");
    }
    memset(text, 'a', sizeof(text));
    memcpy(text + HOST_PORT_MAX - 2, ":1", 3);
    assert_int_equal(host_port_check(text, NULL), 0);
    assert_int_equal(host_port_complete(complete, text, 8443, NULL), 0);
    assert_string_equal(complete, text);
    memset(text, 'a', sizeof(text));
    memcpy(text + HOST_PORT_MAX - 1, ":1", 3);
    assert_int_equal(host_port_check(text, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endpoint),
        cmocka_unit_test(test_what_is_said_of_a_wrong_address),
        cmocka_unit_test(test_link_local),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_prefix_mask),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_nth),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_blocks_of_hosts),
        cmocka_unit_test(test_host_port),
        cmocka_unit_test(test_host_without_port),
        cmocka_unit_test(test_characters_of_a_host),
        cmocka_unit_test(test_the_longest_host_and_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
