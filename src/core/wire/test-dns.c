/* test-dns.c - questions as dig(1) sends them, answers byte for byte, and all that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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
        /* 11: an authority in it */
        {"beef0100000100000001"
         "0000" QUESTION,
            DNS_E_MALFORMED},
        /* 12: no bytes of a label */ {HEADER "0000", DNS_E_MALFORMED},
        /* 13: a label of 64 */
        {HEADER "0000"
                "40",
            DNS_E_MALFORMED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct msg m = msg(cases[i].hex);
        struct dns_query q;

        print_message("case %zu\n", i + 1);
        assert_int_equal(dns_decode_query(&q, m.b, m.len), cases[i].e);
    }
}

/* A name is in lower case, and a byte that is no letter of it is seen as a question mark. */
static void test_letters(void **state)
{
    for (int c = 0; c < 256; c++) {
        struct msg m = msg(HEADER "0000"
                                  "01"
                                  "2a"
                                  "00"
                                  "0001"
                                  "0001");
        char expected = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c > ' ' && c < 0x7f ? c : '?');
        struct dns_query q;

        m.b[DNS_HEADER_LEN + 1] = (uint8_t)c;
        assert_int_equal(dns_decode_query(&q, m.b, m.len), 0);
        assert_int_equal(q.name[0], c == '.' ? '?' : expected);
        assert_int_equal(q.name[1], '\0');
    }
}

/* What else a query says: how long an answer may be, and whether others may be asked. */
static void test_what_follows_the_question(void **state)
{
    static const struct {
        const char *flags;
        const char *n_more;
        const char *more;
        bool has_edns;
        uint16_t udp_len;
    } cases[] = {
        {"0100", "0000", "0000290400", false, 512},
        {"0100", "0001", "0000290000", true, 512},
        {"0100", "0001", "0000290200", true, 512},
        {"0000", "0001", "0000290201", true, 513},
        {"0100", "0001", "00002904cf", true, 1231},
        {"0100", "0002", "00002904d0", true, 1232},
        {"0100", "0001", "000029ffff", true, 1232},
        {"0100", "0001", "0000280400", false, 512},
        {"0100", "0001", "0100290400", false, 512},
        {"0100", "0001", "00002904", false, 512},
        {"0100", "0001", "", false, 512},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char hex[256];
        struct dns_query q;
        struct msg m;

        (void)snprintf(hex, sizeof(hex), "beef%s000100000000%s" QUESTION "%s", cases[i].flags,
            cases[i].n_more, cases[i].more);
        m = msg(hex);
        assert_int_equal(dns_decode_query(&q, m.b, m.len), 0);
        assert_int_equal(q.has_edns, cases[i].has_edns);
        assert_int_equal(q.udp_len, cases[i].udp_len);
        assert_int_equal(q.wants_recursion, cases[i].flags[1] == '1');
        assert_int_equal(q.opcode, 0);
        assert_int_equal(q.question_len, strlen(QUESTION) / 2);
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

/* A name has labels of 1 to 63 bytes, and an answer so many addresses. */
static void test_what_an_answer_can_hold(void **state)
{
    static const uint8_t v4[4] = {10, 77, 0, 3};
    struct ip_addr addresses[DNS_ADDRESSES_MAX + 1];
    struct msg m = msg(HEADER "0000" QUESTION);
    struct dns_answer a = {.addresses = addresses};
    uint8_t out[DNS_ANSWER_MAX];
    struct dns_query q;
    char name[80];

    assert_int_equal(dns_decode_query(&q, m.b, m.len), 0);
    for (size_t n = 0; n <= DNS_ADDRESSES_MAX + 1; n++) {
        size_t most = n < DNS_ADDRESSES_MAX ? n : DNS_ADDRESSES_MAX;

        if (n <= DNS_ADDRESSES_MAX)
            addresses[n] = ip_addr_v4(v4);
        a.n_addresses = n;
        assert_int_equal(dns_encode_answer(&q, m.b, &a, out), m.len + 16 * most);
        assert_int_equal(out[6] << 8 | out[7], most);
    }
    a.n_addresses = 0;
    a.target = name;
    for (int len = 0; len <= 64; len++) {
        (void)snprintf(name, sizeof(name), "a.%.*s.b", len,
            "0123456789012345678901234567890123456789012345678901234567890123");
        assert_int_equal(dns_encode_answer(&q, m.b, &a, out),
            len == 0 || len == 64 ? 0 : m.len + 12 + 2 + (size_t)len + 1 + 2 + 1);
    }
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
    /* The question alone is the least that is sent; what is shorter is no answer to it. */
    answer[2] = 0;
    assert_int_equal(dns_truncate(answer, m.len - 1, &q, 12), m.len - 1);
    assert_int_equal(answer[2], 0);
    assert_int_equal(dns_truncate(answer, m.len, &q, 12), m.len);
    assert_int_equal(answer[2], 2);
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
        /* 11 */
        {"f.9.a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.a.5.d.f.ip6.arpa", "fd5a::a9f"},
        /* 12 */
        {"3-0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.a.5.d.f.ip6.arpa", ""},
        /* 13 */
        {"/.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.a.5.d.f.ip6.arpa", ""},
        /* 14 */
        {":.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.a.5.d.f.ip6.arpa", ""},
        /* 15 */
        {"`.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.a.5.d.f.ip6.arpa", ""},
        /* 16 */
        {"3.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.a.5.d.f.ip6.arpb", ""},
        /* 17 */ {".in-addr.arpa", ""},
        /* 18 */ {"in-addr.arpa", ""},
        /* 19 */ {"3.0.77.10in-addr.arpa", ""},
        /* 20 */ {"", ""},
        /* 21 */ {"0.0.0.0.in-addr.arpa", "0.0.0.0"},
        /* 22 */ {"::3.in-addr.arpa", ""},
        /* 23 */ {"x.0.0.0.in-addr.arpa", ""},
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
        cmocka_unit_test(test_letters),
        cmocka_unit_test(test_what_follows_the_question),
        cmocka_unit_test(test_answer_to_another_kind),
        cmocka_unit_test(test_longest_name),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_what_an_answer_can_hold),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_reverse),
    };

    return cmocka_run_group_tests_name("dns", tests, NULL, NULL);
}
