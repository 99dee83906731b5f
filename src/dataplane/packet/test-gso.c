/* test-gso.c - cutting superpackets, against packets that were made one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "packet/gso.h"
#include "test/support/packets.h"

#define ACK 0x10
#define PSH 0x08
#define FIN 0x01
#define CWR 0x80

static struct virtio_net_hdr note_for(const struct test_flow *f, uint16_t seg)
{
    uint16_t ip = f->v6 ? 40 : 20;

    return (struct virtio_net_hdr){
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
        .gso_type = f->udp  ? VIRTIO_NET_HDR_GSO_UDP_L4
                    : f->v6 ? VIRTIO_NET_HDR_GSO_TCPV6
                            : VIRTIO_NET_HDR_GSO_TCPV4,
        .gso_size = seg,
        .csum_start = ip,
        .csum_offset = f->udp ? 6 : 16,
    };
}

/* The kernel's form: the checksum field holds the sum of the pseudo header. Nobody may rely on
 * what is in it, so it is garbage here. */
static void spoil_csum(const struct test_flow *f, uint8_t *p)
{
    p[(f->v6 ? 40 : 20) + (f->udp ? 6 : 16)] ^= 0x5a;
}

/* Cuts @total bytes of @f into @seg each and compares with packets made one by one. */
static void check_cut(struct test_flow f, uint32_t total, uint16_t seg, uint8_t flags)
{
    uint8_t *frame = malloc(TEST_PACKET_MAX), *want = malloc(TEST_PACKET_MAX),
            *got = malloc(TEST_PACKET_MAX);
    struct test_flow one = f;
    struct virtio_net_hdr note = note_for(&f, seg);
    uint32_t len = test_packet(&f, total, flags, frame);
    struct gso_plan plan;
    struct ip_info ip;

    spoil_csum(&f, frame);
    assert_int_equal(ip_parse(frame, len, &ip), 0);
    assert_true(gso_plan_make(&plan, &note, frame, &ip));
    assert_int_equal(plan.n, (total + seg - 1) / seg);
    for (uint32_t i = 0; i < plan.n; i++) {
        uint32_t part = i + 1 < plan.n ? seg : total - i * seg;
        uint8_t part_flags = flags;
        uint32_t want_len;

        if (i > 0)
            part_flags &= (uint8_t)~CWR;
        if (i + 1 < plan.n)
            part_flags &= (uint8_t) ~(PSH | FIN);
        want_len = test_packet(&one, part, part_flags, want);
        assert_int_equal(gso_len(&plan, i), want_len);
        memset(got, 0xee, want_len);
        gso_cut(&plan, frame, &ip, i, got);
        assert_memory_equal(got, want, want_len);
        test_check(got, want_len);
    }
    free(frame);
    free(want);
    free(got);
}

static void test_cut_tcp(void **state)
{
    struct test_flow f = {.port = 40000, .id = 0xfffe, .seq = 0xfffff000, .ack = 7, .tos = 3};

    check_cut(f, 5000, 1380, ACK | PSH | FIN | CWR);
    check_cut(f, 1380 * 2, 1380, ACK | PSH);
    check_cut(f, 1381, 1380, ACK);
    check_cut(f, 1, 1380, ACK | FIN);
    f.timestamps = true;
    check_cut(f, 65000, 1368, ACK | PSH);
    f.v6 = true;
    check_cut(f, 65000, 1348, ACK | CWR);
    f.timestamps = false;
    check_cut(f, 300, 1, ACK);
}

static void test_cut_udp(void **state)
{
    struct test_flow f = {.udp = true, .port = 1234, .id = 5};

    check_cut(f, 10 * 1200, 1200, 0);
    check_cut(f, 10 * 1200 + 7, 1200, 0);
    f.v6 = true;
    check_cut(f, 65000, 1232, 0);
    /* Every payload, so that a checksum of zero comes along, too. */
    for (uint32_t seed = 0; seed < 3000; seed++) {
        f.seq = seed * 977;
        check_cut(f, 5, 2, 0);
    }
}

/* Not cut: only the checksum is completed, from the pseudo header's sum that is in the field. */
static void test_single(void **state)
{
    struct test_flow f = {.port = 40000};
    struct virtio_net_hdr note = {
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 20, .csum_offset = 16};
    uint8_t want[200], frame[200], got[200];
    struct gso_plan plan;
    struct ip_info ip;
    uint32_t len = test_packet(&f, 100, ACK, want);
    uint16_t pseudo;

    memcpy(frame, want, len);
    assert_int_equal(ip_parse(frame, len, &ip), 0);
    pseudo = ip_sum_fold(ip_sum_pseudo(&ip.src, &ip.dst, 6, len - 20));
    frame[36] = (uint8_t)(pseudo >> 8);
    frame[37] = (uint8_t)pseudo;
    assert_true(gso_plan_make(&plan, &note, frame, &ip));
    assert_int_equal(plan.n, 1);
    gso_cut(&plan, frame, &ip, 0, got);
    assert_memory_equal(got, want, len);

    /* Complete already: nothing is touched. */
    note.flags = 0;
    assert_true(gso_plan_make(&plan, &note, want, &ip));
    gso_cut(&plan, want, &ip, 0, got);
    assert_memory_equal(got, want, len);
}

/* Notes that contradict the packet. */
static void test_refused(void **state)
{
    static const struct {
        struct virtio_net_hdr note;
        const char *why;
    } cases[] = {
        {{.gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .csum_start = 20, .csum_offset = 16}, "size 0"},
        {{.gso_type = VIRTIO_NET_HDR_GSO_TCPV6, .gso_size = 50, .csum_start = 20}, "family"},
        {{.gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .gso_size = 50, .csum_start = 19}, "into IP"},
        {{.gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .gso_size = 50, .csum_start = 110}, "TCP cut"},
        {{.gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .gso_size = 50, .csum_start = 60000}, "beyond"},
        {{.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4, .gso_size = 50, .csum_start = 112}, "no data"},
        {{.gso_type = VIRTIO_NET_HDR_GSO_UDP, .gso_size = 50, .csum_start = 20}, "UFO"},
        {{.gso_type = 77, .gso_size = 50, .csum_start = 20}, "unknown kind"},
        {{.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 119, .csum_offset = 0}, "sum beyond"},
        {{.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 2, .csum_offset = 0}, "sum in IP"},
        {{.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 60000, .csum_offset = 60000}, "far"},
    };
    struct test_flow f = {.port = 1};
    uint8_t frame[200];
    struct gso_plan plan;
    struct ip_info ip;
    uint32_t len = test_packet(&f, 80, ACK, frame);

    assert_int_equal(len, 120);
    assert_int_equal(ip_parse(frame, len, &ip), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (gso_plan_make(&plan, &cases[i].note, frame, &ip))
            fail_msg("case \"%s\" was taken", cases[i].why);
    /* A TCP header length that is impossible. */
    frame[32] = 0x40;
    assert_false(gso_plan_make(&plan,
        &(struct virtio_net_hdr){
            .gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .gso_size = 50, .csum_start = 20},
        frame, &ip));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_tcp),
        cmocka_unit_test(test_cut_udp),
        cmocka_unit_test(test_single),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
