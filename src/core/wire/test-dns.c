/* test-dns.c - questions as dig(1) sends them, answers byte for byte, and all that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "wire/dns.h"

struct msg {
    uint8_t b[DNS_ANSWER_MAX];
    size_t len;
};

static struct msg msg(const char *hex)
{
    struct msg m = {.len = strlen(hex) / 2};

    assert_true(m.len <= sizeof(m.b) && hex_decode(hex, m.b, m.len));
    return m;
}

/* gPu-2.Default.weft, and the question of its IPv4 address. */
#define NAME                                                                                       \
    "054750752d32"                                                                                 \
    "0744656661756c74"                                                                             \
    "0477656674"                                                                                   \
    "00"
#define QUESTION                                                                                   \
    NAME "0001"                                                                                    \
         "0001"
#define HEADER                                                                                     \
    "beef"                                                                                         \
    "0100"                                                                                         \
    "0001"                                                                                         \
    "0000"                                                                                         \
    "0000"
/* dig's EDNS: 1,232 bytes, a cookie. */
#define EDNS "0000291000000000000000"

static void test_question(void **state)
{
    struct msg m = msg(HEADER "0000" QUESTION);
    struct dns_query q;

    assert_int_equal(dns_decode_query(&q, m.b, m.len), 0);
    assert_int_equal(q.id, 0xbeef);
    assert_true(q.wants_recursion);
    assert_string_equal(q.name, "gpu-2.default.weft");
    assert_int_equal(q.type, DNS_TYPE_A);
    assert_int_equal(q.class, 1);
    assert_int_equal(q.question_len, m.len - DNS_HEADER_LEN);
    assert_int_equal(q.udp_len, DNS_UDP_LEN);
    assert_false(q.has_edns);
}

static void test_edns(void **state)
{
    struct msg m = msg(HEADER "0001" QUESTION EDNS);
    struct dns_query q;

    assert_int_equal(dns_decode_query(&q, m.b, m.len), 0);
    assert_true(q.has_edns);
    assert_int_equal(q.udp_len, 1232);
}

static void test_refused(void **state)
{
    static const struct {
        const char *hex;
        int e;
    } cases[] = {
        /* 1 */ {"", DNS_E_OTHER},
        /* 2 */ {"beef01000001", DNS_E_OTHER},
        /* 3: an answer */
        {"beef8100000100000000"
         "0000" QUESTION,
            DNS_E_OTHER},
        /* 4: an update */
        {"beef2800000100000000"
         "0000" QUESTION,
            DNS_E_UNSUPPORTED},
        /* 5: no question */
        {"beef0100000000000000"
         "0000",
            DNS_E_MALFORMED},
        /* 6: two */
        {"beef0100000200000000"
         "0000" QUESTION QUESTION,
            DNS_E_MALFORMED},
        /* 7: an answer in it */
        {"beef0100000100010000"
         "0000" QUESTION,
            DNS_E_MALFORMED},
        /* 8: no end */
        {HEADER "0000"
                "0547",
            DNS_E_MALFORMED},
        /* 9: a pointer */
        {HEADER "0000"
                "c00c00010001",
            DNS_E_MALFORMED},
        /* 10: no class */ {HEADER "0000" NAME "0001", DNS_E_MALFORMED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct msg m = msg(cases[i].hex);
        struct dns_query q;

        print_message("case %zu\n", i + 1);
        assert_int_equal(dns_decode_query(&q, m.b, m.len), cases[i].e);
    }
}

/* Who sends an update, as some DHCP clients do, takes an answer to it alone for one. */
static void test_answer_to_another_kind(void **state)
{
    struct dns_answer a = {.rcode = DNS_NOT_IMPLEMENTED};
    struct msg m = msg("beef2900000100000000"
                       "0000" QUESTION);
    struct msg wanted = msg("beefa984"
                            "00000000"
                            "00000000");
    uint8_t out[DNS_ANSWER_MAX];
    struct dns_query q;

    assert_int_equal(dns_decode_query(&q, m.b, m.len), DNS_E_UNSUPPORTED);
    assert_int_equal(dns_encode_answer(&q, m.b, &a, out), wanted.len);
    assert_memory_equal(out, wanted.b, wanted.len);
}

/* 255 bytes are the longest name, 256 are none. */
static void test_longest_name(void **state)
{
    for (uint8_t last = 61; last <= 62; last++) {
        struct msg m = msg(HEADER "0000");
        struct dns_query q;

        for (unsigned label = 0; label < 4; label++) {
            uint8_t n = label < 3 ? 63 : last;

            m.b[m.len++] = n;
            memset(m.b + m.len, 'a', n);
            m.len += n;
        }
        memcpy(m.b + m.len, "\0\0\1\0\1", 5);
        m.len += 5;
        assert_int_equal(dns_decode_query(&q, m.b, m.len), last == 61 ? 0 : DNS_E_MALFORMED);
        if (last == 61)
            assert_int_equal(strlen(q.name), 253);
    }
}

static void check_answer(const struct dns_answer *a, const char *query, const char *answer)
{
    struct msg m = msg(query);
    struct msg want = msg(answer);
    uint8_t out[DNS_ANSWER_MAX];
    struct dns_query q;

    assert_int_equal(dns_decode_query(&q, m.b, m.len), 0);
    assert_int_equal(dns_encode_answer(&q, m.b, a, out), want.len);
    assert_memory_equal(out, want.b, want.len);
}

static void test_answers(void **state)
{
    static const uint8_t v4[4] = {10, 77, 0, 3};
    static const uint8_t v6[16] = {0xfd, 0x5a, [15] = 3};
    struct ip_addr addresses[] = {ip_addr_v4(v4), ip_addr_v6(v6)};

    check_answer(
        &(struct dns_answer){.is_authoritative = true, .addresses = addresses, .n_addresses = 2},
        HEADER "0000" QUESTION,
        "beef"
        "8580"
        "0001"
        "0002"
        "0000"
        "0000" QUESTION "c00c"
        "0001"
        "0001"
        "00000005"
        "0004"
        "0a4d0003"
        "c00c"
        "001c"
        "0001"
        "00000005"
        "0010"
        "fd5a0000000000000000000000000003");
    check_answer(&(struct dns_answer){.is_authoritative = true, .target = "a.weft"},
        HEADER "0001" QUESTION EDNS,
        "beef"
        "8580"
        "0001"
        "0001"
        "0000"
        "0001" QUESTION "c00c"
        "000c"
        "0001"
        "00000005"
        "0008"
        "0161"
        "0477656674"
        "00"
        "00"
        "0029"
        "04d0"
        "00000000"
        "0000");
    check_answer(
        &(struct dns_answer){.rcode = DNS_NO_SUCH_NAME, .is_authoritative = true, .zone = "weft"},
        HEADER "0000" QUESTION,
        "beef"
        "8583"
        "0001"
        "0000"
        "0001"
        "0000" QUESTION "0477656674"
        "00"
        "0006"
        "0001"
        "00000005"
        "0020"
        "0477656674"
        "00"
        "0477656674"
        "00"
        "00000001"
        "00000e10"
        "00000258"
        "00015180"
        "00000005");
    check_answer(&(struct dns_answer){.rcode = DNS_REFUSED}, HEADER "0000" QUESTION,
        "beef"
        "8185"
        "0001"
        "0000"
        "0000"
        "0000" QUESTION);
}

static void test_truncate(void **state)
{
    struct msg m = msg(HEADER "0000" QUESTION);
    uint8_t answer[600] = {0};
    struct dns_query q;

    assert_int_equal(dns_decode_query(&q, m.b, m.len), 0);
    memcpy(answer, m.b, m.len);
    assert_int_equal(dns_truncate(answer, 512, &q, q.udp_len), 512);
    assert_int_equal(answer[2] & 2, 0);
    answer[7] = 9;
    assert_int_equal(dns_truncate(answer, 513, &q, q.udp_len), m.len);
    assert_int_equal(answer[2] & 2, 2);
    assert_int_equal(answer[7], 0);
}

static void test_reverse(void **state)
{
    static const struct {
        const char *name;
        const char *address; /* "": none */
    } cases[] = {
        /* 1 */ {"3.0.77.10.in-addr.arpa", "10.77.0.3"},
        /* 2 */ {"256.0.77.10.in-addr.arpa", ""},
        /* 3 */ {"03.0.77.10.in-addr.arpa", ""},
        /* 4 */ {"0.77.10.in-addr.arpa", ""},
        /* 5 */ {"1.3.0.77.10.in-addr.arpa", ""},
        /* 6 */ {"3.0.77.10.in-addr.arpa.x", ""},
        /* 7 */
        {"3.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.a.5.d.f.ip6.arpa", "fd5a::3"},
        /* 8 */ {"3.0.0.0.a.5.d.f.ip6.arpa", ""},
        /* 9 */
        {"3.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.g.5.d.f.ip6.arpa", ""},
        /* 10 */ {"gpu-1.default.weft", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[IP_ADDR_TEXT_MAX] = "";
        struct ip_addr a;

        print_message("case %zu\n", i + 1);
        if (dns_parse_reverse(&a, cases[i].name))
            (void)ip_addr_format(&a, text);
        assert_string_equal(text, cases[i].address);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_question),
        cmocka_unit_test(test_edns),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_answer_to_another_kind),
        cmocka_unit_test(test_longest_name),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_reverse),
    };

    return cmocka_run_group_tests_name("dns", tests, NULL, NULL);
}
