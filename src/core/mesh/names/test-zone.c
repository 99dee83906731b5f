/* test-zone.c - each kind of question, and whose it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "mesh/names/zone.h"

static const char lines[] = "10.77.0.2\tgpu-1.default.weft gpu-1 a1\n"
                            "fd5a:1::2\tgpu-1.default.weft gpu-1 a1\n"
                            "10.77.0.3\tminio.default.weft\n"
                            "10.77.0.1\thub.default.weft hub rendezvous.default.weft\n";

static struct zone make(const char *text)
{
    struct ip_prefix blocks[2];
    struct zone z;

    assert_int_equal(ip_prefix_parse(&blocks[0], "10.77.0.0/16", NULL), 0);
    assert_int_equal(ip_prefix_parse(&blocks[1], "fd5a:1::/64", NULL), 0);
    assert_int_equal(zone_make(&z, "default", blocks, text), 0);
    return z;
}

/* "-": not this zone's; "NAME": no such name; "": nothing of that type; else what is answered. */
static void ask(const struct zone *z, const char *name, uint16_t type, char out[static 256])
{
    struct dns_query q = {.type = type, .class = 1};
    struct zone_answer a;
    char text[IP_ADDR_TEXT_MAX];
    size_t at = 0;

    (void)snprintf(q.name, sizeof(q.name), "%s", name);
    (void)snprintf(out, 256, "-");
    if (!zone_answer(z, &q, &a))
        return;
    assert_true(a.dns.is_authoritative);
    out[0] = '\0';
    for (size_t i = 0; i < a.dns.n_addresses; i++)
        at += (size_t)snprintf(out + at, 256 - at, "%s%s", at > 0 ? " " : "",
            ip_addr_format(&a.dns.addresses[i], text));
    if (a.dns.target)
        (void)snprintf(out + at, 256 - at, "%s", a.dns.target);
    if (a.dns.rcode == DNS_NO_SUCH_NAME)
        (void)snprintf(out, 256, "NAME");
    /* What has no record says for how long that may be remembered. */
    if (out[0] == '\0' || strcmp(out, "NAME") == 0)
        assert_string_equal(a.dns.zone, "default.weft");
    else
        assert_null(a.dns.zone);
}

static void test_questions(void **state)
{
    static const struct {
        const char *name;
        uint16_t type;
        const char *answer;
    } cases[] = {
        /* 1 */ {"gpu-1.default.weft", DNS_TYPE_A, "10.77.0.2"},
        /* 2 */ {"gpu-1.default.weft", DNS_TYPE_AAAA, "fd5a:1::2"},
        /* 3 */ {"gpu-1", DNS_TYPE_ANY, "10.77.0.2 fd5a:1::2"},
        /* 4 */ {"a1", DNS_TYPE_A, "10.77.0.2"},
        /* 5: IPv4 only */ {"minio.default.weft", DNS_TYPE_AAAA, ""},
        /* 6: a bare name that is reserved is no name of ours */ {"minio", DNS_TYPE_A, "-"},
        /* 7 */ {"gpu-9.default.weft", DNS_TYPE_A, "NAME"},
        /* 8 */ {"x.gpu-1.default.weft", DNS_TYPE_A, "NAME"},
        /* 9 */ {"default.weft", DNS_TYPE_A, ""},
        /* 10 */ {"default.weft", DNS_TYPE_SOA, ""},
        /* 11 */ {"other.weft", DNS_TYPE_A, "-"},
        /* 12 */ {"xdefault.weft", DNS_TYPE_A, "-"},
        /* 13 */ {"example.com", DNS_TYPE_A, "-"},
        /* 14 */ {"", DNS_TYPE_A, "-"},
        /* 15 */ {"2.0.77.10.in-addr.arpa", DNS_TYPE_PTR, "gpu-1.default.weft"},
        /* 16 */ {"2.0.77.10.in-addr.arpa", DNS_TYPE_A, ""},
        /* 17 */ {"9.0.77.10.in-addr.arpa", DNS_TYPE_PTR, "NAME"},
        /* 18 */ {"2.0.78.10.in-addr.arpa", DNS_TYPE_PTR, "-"},
        /* 19 */
        {"2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.a.5.d.f.ip6.arpa", DNS_TYPE_PTR,
            "gpu-1.default.weft"},
        /* 20 */ {"rendezvous.default.weft", DNS_TYPE_A, "10.77.0.1"},
        /* 21 */ {"1.0.77.10.in-addr.arpa", DNS_TYPE_PTR, "hub.default.weft"},
        /* 22: the first of all records */ {"a1", DNS_TYPE_ANY, "10.77.0.2 fd5a:1::2"},
        /* 23: the last */ {"rendezvous.default.weft", DNS_TYPE_ANY, "10.77.0.1"},
        /* 24 */ {"2.0.77.10.in-addr.arpa", DNS_TYPE_ANY, "gpu-1.default.weft"},
        /* 25 */ {"9.0.77.10.in-addr.arpa", DNS_TYPE_A, "NAME"},
        /* 26 */ {"gpu-1.default.weft", DNS_TYPE_PTR, ""},
        /* 27 */ {".default.weft", DNS_TYPE_A, "NAME"},
    };
    struct zone z = make(lines);
    char answer[256];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("case %zu\n", i + 1);
        ask(&z, cases[i].name, cases[i].type, answer);
        assert_string_equal(answer, cases[i].answer);
    }
    zone_deinit(&z);
    zone_deinit(&z);
}

/* Before the names are known nothing is answered, and what is no line is passed over. */
static void test_empty(void **state)
{
    struct zone none = ZONE_NULL;
    struct zone z = make("# a remark\n\n10.77.0.2\nx y\n10.77.0.3\ta b");
    char answer[256];

    ask(&none, "default.weft", DNS_TYPE_A, answer);
    assert_string_equal(answer, "-");
    ask(&z, "y", DNS_TYPE_A, answer);
    assert_string_equal(answer, "-");
    ask(&z, "b", DNS_TYPE_A, answer);
    assert_string_equal(answer, "10.77.0.3");
    zone_deinit(&z);
}

/* A network without lines still answers for its names and its addresses: there are none. */
static void test_no_lines(void **state)
{
    struct zone z = make("");
    char answer[256];

    ask(&z, "gpu-1.default.weft", DNS_TYPE_A, answer);
    assert_string_equal(answer, "NAME");
    ask(&z, "2.0.77.10.in-addr.arpa", DNS_TYPE_PTR, answer);
    assert_string_equal(answer, "NAME");
    ask(&z, "gpu-1", DNS_TYPE_A, answer);
    assert_string_equal(answer, "-");
    zone_deinit(&z);
}

/* As many addresses of a name are told as an answer has room for, the smallest first. */
static void test_many_addresses(void **state)
{
    struct dns_query q = {.name = "many", .type = DNS_TYPE_A, .class = 1};
    struct zone_answer a;
    struct zone z;
    char text[64 * (DNS_ADDRESSES_MAX + 2)] = "";

    for (unsigned i = 0; i <= DNS_ADDRESSES_MAX; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "10.77.0.%u\tmany\n",
            1 + DNS_ADDRESSES_MAX - i);
    z = make(text);
    assert_true(zone_answer(&z, &q, &a));
    assert_int_equal(a.dns.n_addresses, DNS_ADDRESSES_MAX);
    for (unsigned i = 0; i < DNS_ADDRESSES_MAX; i++)
        assert_int_equal(a.dns.addresses[i].b[15], 1 + i);
    zone_deinit(&z);
}

/* Another class than the Internet's is somebody else's. */
static void test_class(void **state)
{
    struct dns_query q = {.name = "gpu-1", .type = DNS_TYPE_A, .class = 3};
    struct zone z = make(lines);
    struct zone_answer a;

    assert_false(zone_answer(&z, &q, &a));
    q.class = 255;
    assert_true(zone_answer(&z, &q, &a));
    zone_deinit(&z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_questions),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_no_lines),
        cmocka_unit_test(test_many_addresses),
        cmocka_unit_test(test_class),
    };

    return cmocka_run_group_tests_name("zone", tests, NULL, NULL);
}
