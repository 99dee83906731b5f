/*
 * gro.h - merging neighbours of one inner flow into superpackets.
 *
 * What was decrypted from one receive call is mostly a few TCP or UDP flows
 * cut to size by the other end. Packets that continue each other are handed to
 * the kernel as one frame, which costs it (and us) one packet's work. Nothing
 * is copied: a frame is a list of pieces that lie where they were decrypted.
 *
 * Order within a flow is always kept: a packet joins only the latest frame of
 * its flow, and frames are written in the order in which they were begun.
 * Checksums are verified before a merge, since the merged frame tells the
 * kernel to trust them.
 *
 * Pure: no I/O. The reference of the merging rules is in test-gro.c.
 */
#pragma once

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/ip.h"

/** Packets in one frame, frames in one collection. */
#define GRO_PACKETS_MAX 64
#define GRO_FRAMES_MAX  32

/** Room that must lie before each packet, for the note to the kernel. */
#define GRO_HEADROOM ((uint32_t)sizeof(struct virtio_net_hdr))

/** One frame for the interface: the note and the first packet, then payloads. */
struct gro_frame {
    struct iovec iov[GRO_PACKETS_MAX]; /* [0] starts at the note */
    uint32_t n;                        /* pieces used: packets merged */
    uint32_t len;                      /* bytes of the inner packet that they make */
    uint32_t header_len;               /* IP and TCP or UDP header, before the payload */
    uint32_t next_seq;                 /* TCP: of the packet that would continue it */
    uint16_t seg;                      /* payload of each but the last */
    uint16_t l4_off;                   /* of the TCP or UDP header */
    uint8_t proto;                     /* TCP or UDP; 0: cannot be merged with anything */
    bool is_open;                      /* may grow */
    bool is_verified;                  /* the first packet's checksum was right */
};

/** What is being collected. One per receiving worker and device. */
struct gro {
    struct gro_frame frames[GRO_FRAMES_MAX]; /* in the order of their first packets */
    uint32_t n; /* frames used; 0 forgets them all, and at GRO_FRAMES_MAX it is full */
    bool tcp;   /* TCP may be merged (OFFLOAD_TSO) */
    bool udp;   /* UDP may be merged (OFFLOAD_USO) */
};

/** gro_init() - empty; @tcp, @udp: what the interface takes merged. */
void gro_init(struct gro *g, bool tcp, bool udp);

/**
 * gro_add() - add a packet
 * @p:		borrowed until the frames are forgotten, with GRO_HEADROOM bytes before it, all
 * writable
 * @ip:		from ip_parse() of @p
 *
 * The collection must not be full: the frames are taken out before.
 */
void gro_add(struct gro *g, uint8_t *p, const struct ip_info *ip);

/** gro_finish() - write the notes and the merged headers: the frames' pieces are then final. */
void gro_finish(struct gro *g);
