/*
 * gso.h - cutting the kernel's superpackets into packets that fit the wire.
 *
 * The interface hands out up to 64 KiB of one TCP or UDP flow as a single
 * packet, with a note (the virtio-net header) about how to cut it and which
 * checksums are still missing. A frame without anything to cut takes the same
 * way: it is cut into one.
 *
 * Pure: no I/O, no state. What goes the other way is gro.h.
 */
#pragma once

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/ip.h"

/* Since Linux 6.2; the headers of Debian 12 are older. */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/** How to cut one frame; made and checked once, then asked for each packet. */
struct gso_plan {
    uint32_t n;          /* packets that it becomes, at least 1 */
    uint32_t payload;    /* bytes to be shared out; whole packet where nothing is cut */
    uint32_t header_len; /* repeated before each share: IP and TCP or UDP; 0 for one packet */
    uint16_t seg;        /* bytes of each share but the last */
    uint16_t l4_off;     /* of the TCP or UDP header */
    uint16_t csum_off;   /* of the checksum field from there */
    uint8_t proto;       /* IP_PROTO_TCP or IP_PROTO_UDP where something is cut */
    bool fill_csum;      /* one packet whose checksum is missing */
};

/**
 * gso_plan_make() - check a frame's note against its packet
 * @note:	as the kernel wrote it
 * @p:		the packet, @ip->len bytes
 * @ip:		from ip_parse() of @p
 *
 * Return: false when they contradict each other (DROP_OFFLOAD_INVALID); @ret is untouched then.
 */
bool gso_plan_make(struct gso_plan *ret, const struct virtio_net_hdr *note, const uint8_t *p,
    const struct ip_info *ip);

/** gso_len() - bytes of packet number @i < @plan->n. */
static inline uint32_t gso_len(const struct gso_plan *plan, uint32_t i)
{
    if (i + 1 < plan->n)
        return plan->header_len + plan->seg;
    return plan->header_len + plan->payload - i * plan->seg;
}

/**
 * gso_cut() - write packet number @i
 * @p:		the frame's packet
 * @dst:	gso_len() bytes, not overlapping @p
 *
 * Lengths, IPv4 identification, sequence numbers, flags and all checksums are
 * those that the kernel's own segmentation would give.
 */
void gso_cut(const struct gso_plan *plan, const uint8_t *p, const struct ip_info *ip, uint32_t i,
    uint8_t *dst);
