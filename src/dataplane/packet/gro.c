/* gro.c - see gro.h. */
#include "packet/gro.h"

#include <string.h>

#include "base/bytes.h"
#include "packet/gso.h"

#define TCP_HEADER_MIN 20
#define UDP_HEADER     8

#define TCP_OFF_SEQ    4
#define TCP_OFF_ACK    8
#define TCP_OFF_LENGTH 12
#define TCP_OFF_FLAGS  13
#define TCP_OFF_WINDOW 14
#define TCP_OFF_CSUM   16
#define UDP_OFF_LENGTH 4
#define UDP_OFF_CSUM   6

#define TCP_FLAG_PSH 0x08
#define TCP_FLAG_ACK 0x10

/* A frame with its headers must still fit the IP length field. */
#define FRAME_LEN_MAX 65535

/** What decides whether a packet continues a frame. */
struct candidate {
    uint8_t *p;               /* the packet */
    const struct ip_info *ip; /* its header */
    uint32_t header_len;      /* IP and TCP or UDP */
    uint32_t payload;         /* bytes after that */
    uint32_t seq;             /* TCP only */
};

void gro_init(struct gro *g, bool tcp, bool udp)
{
    g->n = 0;
    g->tcp = tcp;
    g->udp = udp;
}

/* TCP without options that matter to merging: data, with no flag but ACK and PSH. */
static bool is_plain_tcp(struct candidate *c)
{
    const uint8_t *tcp = c->p + c->ip->l4_off;
    uint32_t len;

    if (c->ip->len < (uint32_t)c->ip->l4_off + TCP_HEADER_MIN)
        return false;
    len = (uint32_t)(tcp[TCP_OFF_LENGTH] >> 4) * 4;
    if (len < TCP_HEADER_MIN || c->ip->l4_off + len >= c->ip->len ||
        (tcp[TCP_OFF_FLAGS] & ~TCP_FLAG_PSH) != TCP_FLAG_ACK)
        return false;
    c->header_len = c->ip->l4_off + len;
    c->seq = be32_load(tcp + TCP_OFF_SEQ);
    return true;
}

/* UDP whose length field agrees, and that has a checksum at all (RFC 768: zero means none). */
static bool is_plain_udp(struct candidate *c)
{
    const uint8_t *udp = c->p + c->ip->l4_off;

    if (c->ip->len <= (uint32_t)c->ip->l4_off + UDP_HEADER)
        return false;
    c->header_len = c->ip->l4_off + UDP_HEADER;
    return be16_load(udp + UDP_OFF_LENGTH) == c->ip->len - c->ip->l4_off &&
           be16_load(udp + UDP_OFF_CSUM) != 0;
}

/* May this packet be part of a superpacket at all? */
static bool is_mergeable(const struct gro *g, struct candidate *c)
{
    const struct ip_info *ip = c->ip;
    bool ok = false;

    if (ip->is_fragment || ip->l4_off != (ip->version == 4 ? IP_V4_HEADER_MIN : IP_V6_HEADER))
        return false;
    if (ip->proto == IP_PROTO_TCP && g->tcp)
        ok = is_plain_tcp(c);
    else if (ip->proto == IP_PROTO_UDP && g->udp)
        ok = is_plain_udp(c);
    if (ok)
        c->payload = ip->len - c->header_len;
    return ok;
}

static uint8_t *frame_packet(const struct gro_frame *f)
{
    return (uint8_t *)f->iov[0].iov_base + GRO_HEADROOM;
}

/* Same addresses and ports. @p has at least four bytes at @l4_off. */
static bool is_same_flow(const struct gro_frame *f, const struct candidate *c)
{
    const uint8_t *a = frame_packet(f), *b = c->p;

    if (f->proto != c->ip->proto || f->l4_off != c->ip->l4_off ||
        memcmp(a + f->l4_off, b + f->l4_off, 4) != 0)
        return false;
    return c->ip->version == 4 ? memcmp(a + 12, b + 12, 8) == 0 : memcmp(a + 8, b + 8, 32) == 0;
}

/* IP headers that one header can stand for: same TOS, TTL and DF; same class and flow label. */
static bool is_same_ip(const uint8_t *a, const uint8_t *b, uint8_t version)
{
    if (version == 4)
        return a[1] == b[1] && a[6] == b[6] && a[8] == b[8];
    return memcmp(a, b, 4) == 0 && a[7] == b[7];
}

/* The same acknowledgement, window and options, as the kernel's own GRO demands. */
static bool is_same_tcp(const uint8_t *a, const uint8_t *b, uint32_t len)
{
    return memcmp(a + TCP_OFF_ACK, b + TCP_OFF_ACK, 5) == 0 &&
           memcmp(a + TCP_OFF_WINDOW, b + TCP_OFF_WINDOW, 2) == 0 &&
           memcmp(a + TCP_HEADER_MIN, b + TCP_HEADER_MIN, len - TCP_HEADER_MIN) == 0;
}

static bool has_good_csum(const uint8_t *p, const struct ip_info *ip)
{
    uint32_t len = ip->len - ip->l4_off;
    uint64_t sum = ip_sum_pseudo(&ip->src, &ip->dst, ip->proto, len);

    return ip_sum_fold(ip_sum_add(sum, p + ip->l4_off, len)) == 0xffff;
}

static bool continues(struct gro_frame *f, const struct candidate *c)
{
    const uint8_t *a = frame_packet(f);

    if (!f->is_open || f->n == GRO_PACKETS_MAX || f->header_len != c->header_len ||
        c->payload > f->seg || f->len + c->payload > FRAME_LEN_MAX ||
        !is_same_ip(a, c->p, c->ip->version))
        return false;
    if (f->proto == IP_PROTO_TCP &&
        (f->next_seq != c->seq ||
            !is_same_tcp(a + f->l4_off, c->p + f->l4_off, f->header_len - f->l4_off)))
        return false;
    if (!has_good_csum(c->p, c->ip))
        return false;
    /* The frame's first packet is verified when a second one wants to join, not before. */
    if (!f->is_verified) {
        struct ip_info first = *c->ip; /* the same addresses and protocol */

        first.len = f->len;
        f->is_verified = has_good_csum(a, &first);
    }
    return f->is_verified;
}

static void join(struct gro_frame *f, const struct candidate *c)
{
    f->iov[f->n++] = (struct iovec){c->p + c->header_len, c->payload};
    f->len += c->payload;
    f->next_seq += c->payload;
    if (c->payload < f->seg)
        f->is_open = false;
    if (f->proto == IP_PROTO_TCP && (c->p[f->l4_off + TCP_OFF_FLAGS] & TCP_FLAG_PSH)) {
        frame_packet(f)[f->l4_off + TCP_OFF_FLAGS] |= TCP_FLAG_PSH;
        f->is_open = false;
    }
}

static void begin(struct gro *g, const struct candidate *c, bool mergeable)
{
    struct gro_frame *f = &g->frames[g->n++];

    f->iov[0] = (struct iovec){c->p - GRO_HEADROOM, GRO_HEADROOM + c->ip->len};
    f->n = 1;
    f->len = c->ip->len;
    f->l4_off = c->ip->l4_off;
    f->proto = 0;
    f->is_open = f->is_verified = false;
    if (!mergeable)
        return;
    f->proto = c->ip->proto;
    f->header_len = c->header_len;
    f->seg = (uint16_t)c->payload;
    f->next_seq = c->seq + c->payload;
    f->is_open = f->proto != IP_PROTO_TCP || !(c->p[f->l4_off + TCP_OFF_FLAGS] & TCP_FLAG_PSH);
}

/* The latest frame that later packets of this flow could still join; NULL: none. */
static struct gro_frame *find_open(struct gro *g, const struct candidate *c)
{
    for (uint32_t i = g->n; i-- > 0;)
        if (g->frames[i].is_open && is_same_flow(&g->frames[i], c))
            return &g->frames[i];
    return NULL;
}

void gro_add(struct gro *g, uint8_t *p, const struct ip_info *ip)
{
    struct candidate c = {.p = p, .ip = ip};
    struct gro_frame *f;

    if (!is_mergeable(g, &c)) {
        /* It may belong to an open frame's flow (a FIN, say) and must not be overtaken. */
        for (uint32_t i = 0; i < g->n; i++)
            g->frames[i].is_open = false;
        begin(g, &c, false);
        return;
    }
    f = find_open(g, &c);
    if (f && continues(f, &c)) {
        join(f, &c);
        return;
    }
    if (f)
        f->is_open = false;
    begin(g, &c, true);
}

/* Headers of a frame of several packets: whole lengths, and the sum of the pseudo header where
 * the kernel will complete it. */
static void finish_merged(struct gro_frame *f, struct virtio_net_hdr *note)
{
    uint8_t *p = frame_packet(f);
    uint8_t *l4 = p + f->l4_off;
    uint32_t l4_len = f->len - f->l4_off;
    bool v6 = p[0] >> 4 == 6;
    struct ip_addr src = v6 ? ip_addr_v6(p + 8) : ip_addr_v4(p + 12);
    struct ip_addr dst = v6 ? ip_addr_v6(p + 24) : ip_addr_v4(p + 16);

    *note = (struct virtio_net_hdr){
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
        .hdr_len = (uint16_t)f->header_len,
        .gso_size = f->seg,
        .csum_start = f->l4_off,
        .csum_offset = f->proto == IP_PROTO_TCP ? TCP_OFF_CSUM : UDP_OFF_CSUM,
    };
    if (f->proto == IP_PROTO_UDP) {
        note->gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
        be16_store(l4 + UDP_OFF_LENGTH, (uint16_t)l4_len);
    } else {
        note->gso_type = v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
    }
    if (v6) {
        be16_store(p + 4, (uint16_t)(f->len - IP_V6_HEADER));
    } else {
        be16_store(p + 2, (uint16_t)f->len);
        ip_v4_set_checksum(p, f->l4_off);
    }
    be16_store(l4 + note->csum_offset, ip_sum_fold(ip_sum_pseudo(&src, &dst, f->proto, l4_len)));
}

void gro_finish(struct gro *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        struct gro_frame *f = &g->frames[i];
        struct virtio_net_hdr note = {0};

        if (f->n > 1)
            finish_merged(f, &note);
        memcpy(f->iov[0].iov_base, &note, sizeof(note));
    }
}
