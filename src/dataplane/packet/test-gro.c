/*
 * test-gro.c - merging, table and reference.
 *
 * The reference needs no second merger: whatever is merged must, cut up again by
 * gso.h, be the packets that went in, flow by flow in the same order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "packet/gro.h"
#include "packet/gso.h"
#include "test/support/packets.h"

#define ACK 0x10
#define PSH 0x08
#define FIN 0x01

#define PACKETS_MAX 200
#define ROOM        2048

/** Packets going in, each with the room before it that gro.h asks for. */
struct input {
    uint8_t buf[PACKETS_MAX][GRO_HEADROOM + ROOM];
    uint8_t copy[PACKETS_MAX][ROOM]; /* as it was: merging changes headers in place */
    uint32_t len[PACKETS_MAX];
    unsigned n;
};

static struct gro gro;
static struct input in;

static void begin(bool tcp, bool udp)
{
    gro_init(&gro, tcp, udp);
    in.n = 0;
}

static void add_last(void)
{
    uint8_t *p = in.buf[in.n] + GRO_HEADROOM;
    struct ip_info ip;

    memcpy(in.copy[in.n], p, in.len[in.n]);
    assert_int_equal(ip_parse(p, in.len[in.n], &ip), 0);
    in.n++;
    assert_false(gro.n == GRO_FRAMES_MAX);
    gro_add(&gro, p, &ip);
}

static void add(struct test_flow *f, uint32_t payload, uint8_t flags)
{
    in.len[in.n] = test_packet(f, payload, flags, in.buf[in.n] + GRO_HEADROOM);
    add_last();
}

/* A frame as the kernel would get it. */
static uint32_t flatten(const struct gro_frame *f, uint8_t *ret)
{
    uint32_t len = 0;

    for (uint32_t i = 0; i < f->n; i++) {
        memcpy(ret + len, f->iov[i].iov_base, f->iov[i].iov_len);
        len += (uint32_t)f->iov[i].iov_len;
    }
    return len;
}

/* Same but for the IPv4 identification and the header checksum that follows from it. */
static bool is_same_packet(const uint8_t *a, const uint8_t *b, uint32_t len)
{
    uint8_t x[ROOM], y[ROOM];

    memcpy(x, a, len);
    memcpy(y, b, len);
    if (x[0] >> 4 == 4) {
        memset(x + 4, 0, 2);
        memset(y + 4, 0, 2);
        memset(x + 10, 0, 2);
        memset(y + 10, 0, 2);
    }
    return memcmp(x, y, len) == 0;
}

static bool is_same_flow(const uint8_t *a, const uint8_t *b)
{
    uint32_t ip = a[0] >> 4 == 6 ? 40 : 20;

    return a[0] >> 4 == b[0] >> 4 && a[ip == 40 ? 6 : 9] == b[ip == 40 ? 6 : 9] &&
           memcmp(a + ip, b + ip, 4) == 0 &&
           memcmp(a + (ip == 40 ? 8 : 12), b + (ip == 40 ? 8 : 12), ip == 40 ? 32 : 8) == 0;
}

/* The oldest packet of this flow that has not come out yet must be this one. */
static void expect_next(bool taken[static PACKETS_MAX], const uint8_t *p, uint32_t len)
{
    for (unsigned i = 0; i < in.n; i++) {
        if (taken[i] || !is_same_flow(in.copy[i], p))
            continue;
        assert_int_equal(in.len[i], len);
        assert_true(is_same_packet(in.copy[i], p, len));
        taken[i] = true;
        return;
    }
    fail_msg("a packet came out that did not go in");
}

/* Takes everything out and compares with what went in. */
static void check_out(bool good_csums)
{
    static uint8_t flat[GRO_HEADROOM + TEST_PACKET_MAX], cut[TEST_PACKET_MAX];
    bool taken[PACKETS_MAX] = {false};
    unsigned n_out = 0;

    gro_finish(&gro);
    for (uint32_t i = 0; i < gro.n; i++) {
        uint32_t len = flatten(&gro.frames[i], flat) - GRO_HEADROOM;
        struct virtio_net_hdr note;
        struct gso_plan plan;
        struct ip_info ip;

        memcpy(&note, flat, sizeof(note));
        assert_int_equal(len, gro.frames[i].len);
        assert_int_equal(ip_parse(flat + GRO_HEADROOM, len, &ip), 0);
        assert_int_equal(ip.len, len);
        assert_true(gso_plan_make(&plan, &note, flat + GRO_HEADROOM, &ip));
        assert_int_equal(plan.n, gro.frames[i].n);
        for (uint32_t k = 0; k < plan.n; k++, n_out++) {
            gso_cut(&plan, flat + GRO_HEADROOM, &ip, k, cut);
            if (good_csums)
                test_check(cut, gso_len(&plan, k));
            expect_next(taken, cut, gso_len(&plan, k));
        }
    }
    assert_int_equal(n_out, in.n);
    gro.n = 0;
}

/* ---- table: how many frames come of it ---- */

#define EXPECT_FRAMES(n_frames)                                                                    \
    do {                                                                                           \
        assert_int_equal(gro.n, n_frames);                                                         \
        check_out(true);                                                                           \
        begin(true, true);                                                                         \
    } while (0)

static void test_tcp(void **state)
{
    struct test_flow f = {.port = 40000, .timestamps = true, .seq = 0xffffff00};
    struct test_flow g = {.port = 40001}, h = {.port = 40000, .v6 = true};

    begin(true, true);
    /* 1: a burst, ended by a short one. */
    for (int i = 0; i < 10; i++)
        add(&f, 1368, ACK);
    add(&f, 500, ACK);
    EXPECT_FRAMES(1);
    /* 2: nothing joins after a short one, or after PSH. */
    add(&f, 1368, ACK);
    add(&f, 500, ACK);
    add(&f, 500, ACK);
    add(&f, 500, ACK | PSH);
    add(&f, 500, ACK);
    EXPECT_FRAMES(3);
    /* 3: a longer one begins anew. */
    add(&f, 500, ACK);
    add(&f, 501, ACK);
    EXPECT_FRAMES(2);
    /* 4: a gap in the sequence. */
    add(&f, 1000, ACK);
    f.seq += 1000;
    add(&f, 1000, ACK);
    EXPECT_FRAMES(2);
    /* 5: flows that take turns are kept apart, and each merges. */
    for (int i = 0; i < 5; i++) {
        add(&f, 1000, ACK);
        add(&g, 1100, ACK);
        add(&h, 1200, ACK);
    }
    EXPECT_FRAMES(3);
    /* 6: acknowledgements without data are never merged, nor overtaken. */
    add(&f, 1000, ACK);
    add(&f, 0, ACK);
    add(&f, 1000, ACK);
    EXPECT_FRAMES(3);
    /* 7: FIN, another acknowledgement number, another TOS. */
    add(&f, 1000, ACK);
    add(&f, 1000, ACK | FIN);
    f.ack++;
    add(&f, 1000, ACK);
    f.ack++;
    add(&f, 1000, ACK);
    f.tos = 1;
    add(&f, 1000, ACK);
    EXPECT_FRAMES(5);
}

static void test_udp(void **state)
{
    struct test_flow f = {.udp = true, .port = 9}, g = {.udp = true, .v6 = true, .port = 9};

    begin(true, true);
    for (int i = 0; i < 8; i++)
        add(&f, 1200, 0);
    add(&f, 7, 0);
    add(&g, 100, 0);
    add(&g, 100, 0);
    EXPECT_FRAMES(2);
    add(&f, 100, 0);
    add(&f, 200, 0);
    EXPECT_FRAMES(2);
}

static void test_limits(void **state)
{
    struct test_flow f = {.port = 1};

    begin(true, true);
    for (int i = 0; i < GRO_PACKETS_MAX + 1; i++)
        add(&f, 100, ACK);
    EXPECT_FRAMES(2);
    /* 65,535 bytes: 40 of headers and 33 times 1900; the 35th would be too long. */
    for (int i = 0; i < 36; i++)
        add(&f, 1900, ACK);
    EXPECT_FRAMES(2);
}

static void test_off(void **state)
{
    struct test_flow f = {.port = 1}, g = {.udp = true, .port = 1};

    begin(false, true);
    add(&f, 100, ACK);
    add(&f, 100, ACK);
    add(&g, 100, 0);
    add(&g, 100, 0);
    assert_int_equal(gro.n, 3);
    check_out(true);
    begin(true, false);
    add(&g, 100, 0);
    add(&g, 100, 0);
    add(&f, 100, ACK);
    add(&f, 100, ACK);
    assert_int_equal(gro.n, 3);
    check_out(true);
}

/* A packet that was damaged before it was encrypted must arrive as damaged as it was. */
static void test_bad_csum(void **state)
{
    for (int bad = 0; bad < 3; bad++) {
        struct test_flow f = {.port = 1};

        begin(true, true);
        for (int i = 0; i < 3; i++) {
            in.len[in.n] = test_packet(&f, 1000, ACK, in.buf[in.n] + GRO_HEADROOM);
            if (i == bad)
                in.buf[in.n][GRO_HEADROOM + 500] ^= 1;
            add_last();
        }
        assert_in_range(gro.n, 2, 3);
        check_out(false);
    }
}

/* UDP without a checksum cannot be told from damage: it stays alone. */
static void test_no_csum(void **state)
{
    struct test_flow f = {.udp = true, .port = 1};

    begin(true, true);
    for (int i = 0; i < 3; i++) {
        in.len[in.n] = test_packet(&f, 1000, 0, in.buf[in.n] + GRO_HEADROOM);
        memset(in.buf[in.n] + GRO_HEADROOM + 26, 0, 2);
        add_last();
    }
    assert_int_equal(gro.n, 3);
    check_out(false);
}

/* ---- reference ---- */

static void random_packet(const struct rng *rng, struct test_flow flows[static 6])
{
    struct test_flow *f = &flows[rng_u32(rng) % 6];
    uint32_t dice = rng_u32(rng) % 100;
    uint32_t payload = dice < 60 ? 1300 : dice < 70 ? 1 + rng_u32(rng) % 1300 : dice < 75 ? 0 : 700;
    uint8_t flags = ACK;

    dice = rng_u32(rng) % 100;
    if (dice < 5)
        flags |= PSH;
    else if (dice < 7)
        flags |= FIN;
    else if (dice < 9)
        f->seq += 1;
    else if (dice < 11)
        f->ack += 1;
    else if (dice < 13)
        f->tos ^= 2;
    else if (dice < 15)
        f->seq -= 500;
    in.len[in.n] = test_packet(f, payload, flags, in.buf[in.n] + GRO_HEADROOM);
    if (rng_u32(rng) % 50 == 0 && payload > 0)
        in.buf[in.n][GRO_HEADROOM + in.len[in.n] - 1] ^= 1;
    add_last();
}

static void test_reference(void **state)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        uint64_t s = seed;
        struct rng rng = rng_seeded(&s);
        struct test_flow flows[6] = {{.port = 1, .timestamps = true}, {.port = 2, .v6 = true},
            {.port = 1, .udp = true}, {.port = 1, .udp = true, .v6 = true}, {.port = 2},
            {.port = 1, .host = 9, .v6 = true}};
        unsigned n = 1 + rng_u32(&rng) % GRO_FRAMES_MAX;

        begin(rng_u32(&rng) % 8 > 0, rng_u32(&rng) % 8 > 0);
        for (unsigned i = 0; i < n * 4 && in.n < PACKETS_MAX && gro.n < GRO_FRAMES_MAX; i++)
            random_packet(&rng, flows);
        check_out(false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_udp),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_bad_csum),
        cmocka_unit_test(test_no_csum),
        cmocka_unit_test(test_reference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
