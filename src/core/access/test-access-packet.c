/* test-access-packet.c - what is read of packets of every kind, also of those that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "access/access_packet.h"
#include "base/secret.h"
#include "test/support/inner_packet.h"

#define V4 .src = "10.42.0.3", .dst = "10.42.0.2"
#define V6 .src = "fd00::3", .dst = "fd00::2"

static struct access_packet read_from(const uint8_t *p, size_t len, enum access_way way)
{
    struct access_packet ret;
    struct ip_info ip;

    assert_int_equal(ip_parse(p, len, &ip), 0);
    access_packet_read(&ret, p, len, &ip, way);
    return ret;
}

static struct access_packet take(const struct inner_packet *of, enum access_way way)
{
    uint8_t p[INNER_PACKET_MAX];

    return read_from(p, inner_packet_make(of, p), way);
}

static void test_ports(void **state)
{
    static const uint8_t protocols[] = {6, 17};

    for (unsigned i = 0; i < 4; i++) {
        const struct inner_packet v4 = {
            V4, .protocol = protocols[i / 2], .from_port = 40000, .to_port = 22};
        const struct inner_packet v6 = {
            V6, .protocol = protocols[i / 2], .from_port = 40000, .to_port = 22, .n_extended = 2};
        struct access_packet in = take(i % 2 ? &v6 : &v4, ACCESS_IN);
        struct access_packet out = take(i % 2 ? &v6 : &v4, ACCESS_OUT);

        assert_int_equal(in.kind, ACCESS_PACKET_WHOLE);
        assert_true(in.is_connected);
        assert_int_equal(in.key.protocol, protocols[i / 2]);
        assert_int_equal(in.port, 22);
        assert_int_equal(in.key.local_port, 22);
        assert_int_equal(in.key.remote_port, 40000);
        assert_int_equal(in.key.remote.b[15], 3);
        assert_int_equal(out.port, 22);
        assert_int_equal(out.key.local_port, 40000);
        assert_int_equal(out.key.local.b[15], 3);
    }
}

static void test_both_ways_are_one_connection(void **state)
{
    struct access_packet in = take(
        &(struct inner_packet){V4, .protocol = 6, .from_port = 40000, .to_port = 22}, ACCESS_IN);
    struct access_packet out = take(&(struct inner_packet){.src = "10.42.0.2",
                                        .dst = "10.42.0.3",
                                        .protocol = 6,
                                        .from_port = 22,
                                        .to_port = 40000},
        ACCESS_OUT);

    assert_memory_equal(&in.key, &out.key, sizeof(in.key));
}

static void test_flags(void **state)
{
    static const struct {
        uint8_t flags;
        bool begins, ends, resets;
    } cases[] = {
        {INNER_SYN, true, false, false},
        {INNER_SYN | INNER_ACK, false, false, false},
        {INNER_ACK, false, false, false},
        {INNER_ACK | INNER_FIN, false, true, false},
        {INNER_RST, false, false, true},
        {INNER_SYN | INNER_RST, false, false, true},
        {INNER_SYN | INNER_FIN, true, true, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct access_packet p =
            take(&(struct inner_packet){V4, .protocol = 6, .flags = cases[i].flags}, ACCESS_IN);

        assert_int_equal(p.begins, cases[i].begins);
        assert_int_equal(p.ends, cases[i].ends);
        assert_int_equal(p.resets, cases[i].resets);
    }
}

/* A question and its answer are one, and those of the other end with the same identifier are not.
 */
static void test_echoes(void **state)
{
    const struct inner_packet asks4 = {V4, .protocol = 1, .type = 8, .id = 7};
    const struct inner_packet answers4 = {
        .src = "10.42.0.2", .dst = "10.42.0.3", .protocol = 1, .type = 0, .id = 7};
    const struct inner_packet asks_too4 = {
        .src = "10.42.0.2", .dst = "10.42.0.3", .protocol = 1, .type = 8, .id = 7};
    const struct inner_packet asks6 = {V6, .protocol = 58, .type = 128, .id = 7};
    const struct inner_packet answers6 = {
        .src = "fd00::2", .dst = "fd00::3", .protocol = 58, .type = 129, .id = 7};
    struct access_packet asked = take(&asks4, ACCESS_IN);
    struct access_packet answered = take(&answers4, ACCESS_OUT);
    struct access_packet other = take(&asks_too4, ACCESS_OUT);

    assert_true(asked.is_icmp && asked.is_connected);
    assert_memory_equal(&asked.key, &answered.key, sizeof(asked.key));
    assert_memory_not_equal(&asked.key, &other.key, sizeof(asked.key));
    asked = take(&asks6, ACCESS_IN);
    answered = take(&answers6, ACCESS_OUT);
    assert_memory_equal(&asked.key, &answered.key, sizeof(asked.key));
    /* Another message is part of no connection, and neither is ICMP of the other family. */
    assert_false(
        take(&(struct inner_packet){V4, .protocol = 1, .type = 13}, ACCESS_IN).is_connected);
    assert_int_equal(take(&(struct inner_packet){V4, .protocol = 58}, ACCESS_IN).key.local_port, 0);
}

/* An error that comes in is about what went out. */
static void test_errors(void **state)
{
    const struct inner_packet sent[] = {
        {.src = "10.42.0.2", .dst = "10.42.0.3", .protocol = 17, .from_port = 5, .to_port = 53},
        {.src = "fd00::2", .dst = "fd00::3", .protocol = 6, .from_port = 5, .to_port = 53},
        {.src = "10.42.0.2", .dst = "10.42.0.3", .protocol = 1, .type = 8, .id = 9},
    };

    for (size_t i = 0; i < 3; i++) {
        uint8_t quoted[INNER_PACKET_MAX];
        bool v6 = i == 1;
        struct inner_packet about = {.src = v6 ? "fd00::9" : "10.42.0.9",
            .dst = v6 ? "fd00::2" : "10.42.0.2",
            .protocol = v6 ? 58 : 1,
            .type = v6 ? 1 : 3,
            .quoted = quoted,
            .n_quoted = inner_packet_make(&sent[i], quoted)};
        struct access_packet was = take(&sent[i], ACCESS_OUT);
        struct access_packet p = take(&about, ACCESS_IN);

        assert_false(p.is_connected);
        assert_memory_equal(&p.related, &was.key, sizeof(was.key));
        /* Eight bytes behind the header are enough, and less are not. */
        about.n_quoted = (v6 ? 40 : 20) + 8;
        assert_int_not_equal(take(&about, ACCESS_IN).related.protocol, 0);
        about.n_quoted--;
        assert_int_equal(take(&about, ACCESS_IN).related.protocol, 0);
        /* An answer quotes nothing. */
        about.type = v6 ? 129 : 0;
        about.n_quoted = 48;
        assert_int_equal(take(&about, ACCESS_IN).related.protocol, 0);
    }
}

static void test_fragments(void **state)
{
    for (unsigned v6 = 0; v6 < 2; v6++) {
        struct inner_packet of = {.src = v6 ? "fd00::3" : "10.42.0.3",
            .dst = v6 ? "fd00::2" : "10.42.0.2",
            .protocol = 6,
            .to_port = 22,
            .is_fragment = true,
            .has_more = true,
            .datagram = 77,
            .payload = 64};
        struct access_packet p = take(&of, ACCESS_IN);

        assert_int_equal(p.kind, ACCESS_PACKET_FIRST);
        assert_int_equal(p.port, 22);
        assert_int_equal(p.fragment_id, 77);
        of.offset = 1280;
        p = take(&of, ACCESS_IN);
        assert_int_equal(p.kind, ACCESS_PACKET_FOLLOWING);
        assert_int_equal(p.fragment_id, 77);
        assert_int_equal(p.key.local_port, 0);
        assert_false(p.is_connected);
        of.has_more = false;
        assert_int_equal(take(&of, ACCESS_IN).kind, ACCESS_PACKET_FOLLOWING);
        /* One that would write over the header of TCP. */
        of.offset = 8;
        assert_int_equal(take(&of, ACCESS_IN).kind, ACCESS_PACKET_BROKEN);
        of.offset = 16;
        assert_int_equal(take(&of, ACCESS_IN).kind, ACCESS_PACKET_BROKEN);
        of.offset = 24;
        assert_int_equal(take(&of, ACCESS_IN).kind, ACCESS_PACKET_FOLLOWING);
        of.protocol = 17;
        of.offset = 8;
        assert_int_equal(take(&of, ACCESS_IN).kind, ACCESS_PACKET_FOLLOWING);
        /* The first one with a part of the header. */
        of = (struct inner_packet){.src = of.src,
            .dst = of.dst,
            .protocol = 6,
            .is_fragment = true,
            .has_more = true,
            .cut = 4};
        assert_int_equal(take(&of, ACCESS_IN).kind, ACCESS_PACKET_BROKEN);
        /* A datagram in one fragment is whole (RFC 6946). */
        of.cut = 0;
        of.has_more = false;
        assert_int_equal(take(&of, ACCESS_IN).kind, ACCESS_PACKET_WHOLE);
    }
}

static void test_what_is_cut_off(void **state)
{
    static const uint8_t protocols[] = {6, 17, 1, 58};

    for (unsigned i = 0; i < 4; i++) {
        struct inner_packet of = {V4, .protocol = protocols[i], .cut = 1};

        if (protocols[i] == 58)
            of = (struct inner_packet){V6, .protocol = 58, .cut = 1};
        assert_int_equal(take(&of, ACCESS_IN).kind, ACCESS_PACKET_BROKEN);
        of.cut = 0;
        assert_int_equal(take(&of, ACCESS_IN).kind, ACCESS_PACKET_WHOLE);
    }
    /* Of another protocol nothing is needed. */
    assert_int_equal(take(&(struct inner_packet){V4, .protocol = 47, .cut = 8}, ACCESS_IN).kind,
        ACCESS_PACKET_WHOLE);
    assert_int_equal(
        take(&(struct inner_packet){V6, .protocol = 6, .n_extended = 9}, ACCESS_IN).kind,
        ACCESS_PACKET_BROKEN);
    assert_int_equal(take(&(struct inner_packet){V6, .protocol = 60, .cut = 8}, ACCESS_IN).kind,
        ACCESS_PACKET_BROKEN);
}

/* Bytes at random, in memory that ends where they end: nothing behind it is read. */
static void test_any_bytes(void **state)
{
    uint64_t seed = 1;
    struct rng rng = rng_seeded(&seed);
    unsigned n_read = 0;

    for (unsigned i = 0; i < 200000; i++) {
        uint8_t bytes[96];
        size_t len = 20 + rng_u32(&rng) % (sizeof(bytes) - 20);
        struct access_packet ret;
        struct ip_info ip;
        uint8_t *p;

        for (size_t k = 0; k < sizeof(bytes); k += 4) {
            uint32_t v = rng_u32(&rng);

            memcpy(bytes + k, &v, 4);
        }
        bytes[0] = i % 2 ? 0x45 : 0x60;
        bytes[i % 2 ? 2 : 4] = 0;
        bytes[i % 2 ? 3 : 5] = (uint8_t)(i % 2 ? len : len > 40 ? len - 40 : 0);
        bytes[6] = (const uint8_t[]){0, 43, 44, 51, 60, 6, 58}[rng_u32(&rng) % 7];
        p = malloc(len);
        assert_non_null(p);
        memcpy(p, bytes, len);
        if (ip_parse(p, len, &ip) == 0) {
            access_packet_read(&ret, p, len, &ip, i / 2 % 2 ? ACCESS_IN : ACCESS_OUT);
            n_read++;
        }
        free(p);
    }
    assert_true(n_read > 100000);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_both_ways_are_one_connection),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_echoes),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_what_is_cut_off),
        cmocka_unit_test(test_any_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
