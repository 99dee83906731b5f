/* gso.c - see gso.h. */
#include "packet/gso.h"

#include <string.h>

#include "base/bytes.h"

#define TCP_HEADER_MIN 20
#define UDP_HEADER     8

#define TCP_OFF_SEQ    4
#define TCP_OFF_LENGTH 12 /* in the upper four bits, in words */
#define TCP_OFF_FLAGS  13
#define TCP_OFF_CSUM   16
#define UDP_OFF_LENGTH 4
#define UDP_OFF_CSUM   6

#define TCP_FLAG_FIN 0x01
#define TCP_FLAG_PSH 0x08
#define TCP_FLAG_CWR 0x80

/* Nothing to cut, but perhaps a checksum to complete. */
static bool plan_single(
    struct gso_plan *ret, const struct virtio_net_hdr *note, const struct ip_info *ip)
{
    struct gso_plan plan = {.n = 1, .payload = ip->len};

    if (note->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
        if (note->csum_start < ip->l4_off ||
            (uint32_t)note->csum_start + note->csum_offset + 2 > ip->len)
            return false;
        plan.fill_csum = true;
        plan.l4_off = note->csum_start;
        plan.csum_off = note->csum_offset;
    }
    *ret = plan;
    return true;
}

/* The length of the TCP or UDP header at @l4, of which @left bytes are there; 0: impossible. */
static uint32_t l4_header_len(uint8_t proto, const uint8_t *l4, uint32_t left)
{
    uint32_t len;

    if (proto == IP_PROTO_UDP)
        return left >= UDP_HEADER ? UDP_HEADER : 0;
    if (left < TCP_HEADER_MIN)
        return 0;
    len = (uint32_t)(l4[TCP_OFF_LENGTH] >> 4) * 4;
    return len >= TCP_HEADER_MIN && len <= left ? len : 0;
}

bool gso_plan_make(struct gso_plan *ret, const struct virtio_net_hdr *note, const uint8_t *p,
    const struct ip_info *ip)
{
    uint8_t type = note->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
    bool is_udp = type == VIRTIO_NET_HDR_GSO_UDP_L4;
    uint8_t version = type == VIRTIO_NET_HDR_GSO_TCPV4   ? 4
                      : type == VIRTIO_NET_HDR_GSO_TCPV6 ? 6
                                                         : ip->version;
    struct gso_plan plan = {.seg = note->gso_size, .l4_off = note->csum_start};
    uint32_t l4_header;

    if (type == VIRTIO_NET_HDR_GSO_NONE)
        return plan_single(ret, note, ip);
    if ((!is_udp && type != VIRTIO_NET_HDR_GSO_TCPV4 && type != VIRTIO_NET_HDR_GSO_TCPV6) ||
        version != ip->version || plan.seg == 0 || plan.l4_off < ip->l4_off ||
        plan.l4_off >= ip->len || ip->is_fragment)
        return false;
    plan.proto = is_udp ? IP_PROTO_UDP : IP_PROTO_TCP;
    plan.csum_off = is_udp ? UDP_OFF_CSUM : TCP_OFF_CSUM;
    l4_header = l4_header_len(plan.proto, p + plan.l4_off, ip->len - plan.l4_off);
    if (l4_header == 0 || plan.l4_off + l4_header >= ip->len)
        return false;
    plan.header_len = plan.l4_off + l4_header;
    plan.payload = ip->len - plan.header_len;
    plan.n = (plan.payload + plan.seg - 1) / plan.seg;
    *ret = plan;
    return true;
}

/* The field holds the pseudo header's sum; add the rest and complement (RFC 1071). */
static void complete_csum(const struct gso_plan *plan, uint8_t *dst, uint32_t len)
{
    uint16_t sum = (uint16_t)~ip_sum_fold(ip_sum_add(0, dst + plan->l4_off, len - plan->l4_off));

    /* RFC 768: a UDP checksum that comes out as zero is sent as all ones. */
    if (sum == 0 && plan->csum_off == UDP_OFF_CSUM)
        sum = 0xffff;
    be16_store(dst + plan->l4_off + plan->csum_off, sum);
}

void gso_cut(const struct gso_plan *plan, const uint8_t *p, const struct ip_info *ip, uint32_t i,
    uint8_t *dst)
{
    uint32_t len = gso_len(plan, i);
    uint32_t l4_len = len - plan->l4_off;
    uint8_t *l4 = dst + plan->l4_off;

    memcpy(dst, p, plan->header_len);
    memcpy(dst + plan->header_len, p + plan->header_len + i * plan->seg, len - plan->header_len);
    if (plan->n == 1 && plan->header_len == 0) {
        if (plan->fill_csum)
            complete_csum(plan, dst, len);
        return;
    }
    if (ip->version == 6) {
        be16_store(dst + 4, (uint16_t)(len - IP_V6_HEADER));
    } else {
        be16_store(dst + 2, (uint16_t)len);
        be16_store(dst + 4, (uint16_t)(be16_load(dst + 4) + i));
        ip_v4_set_checksum(dst, ip->l4_off);
    }
    if (plan->proto == IP_PROTO_TCP) {
        be32_store(l4 + TCP_OFF_SEQ, be32_load(l4 + TCP_OFF_SEQ) + i * plan->seg);
        /* RFC 3168: congestion window reduced is said once, with the first. */
        if (i > 0)
            l4[TCP_OFF_FLAGS] &= (uint8_t)~TCP_FLAG_CWR;
        if (i + 1 < plan->n)
            l4[TCP_OFF_FLAGS] &= (uint8_t) ~(TCP_FLAG_FIN | TCP_FLAG_PSH);
    } else {
        be16_store(l4 + UDP_OFF_LENGTH, (uint16_t)l4_len);
    }
    be16_store(
        l4 + plan->csum_off, ip_sum_fold(ip_sum_pseudo(&ip->src, &ip->dst, plan->proto, l4_len)));
    complete_csum(plan, dst, len);
}
