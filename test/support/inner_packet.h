/*
 * inner_packet.h - small inner packets of every kind, as somebody else would write them: headers
 * that are right, or broken on purpose. Checksums are zero.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Flags of TCP. */
#define INNER_FIN 0x01
#define INNER_SYN 0x02
#define INNER_RST 0x04
#define INNER_ACK 0x10

/** What it is made of; zeroes are fine, but for the addresses. */
struct inner_packet {
    const char *src; /* of one family both */
    const char *dst;
    uint8_t protocol;      /* 1, 6, 17, 58, or another one */
    uint16_t from_port;    /* TCP, UDP */
    uint16_t to_port;      /* TCP, UDP */
    uint8_t flags;         /* TCP */
    uint8_t type;          /* ICMP */
    uint16_t id;           /* ICMP echo */
    bool is_fragment;      /* with what follows; IPv6 gets a fragment header */
    bool has_more;         /* others follow */
    uint16_t offset;       /* bytes, a multiple of 8; from 8 on the payload is zeroes */
    uint32_t datagram;     /* its identification */
    unsigned n_extended;   /* IPv6: so many destination options before the payload */
    unsigned payload;      /* bytes behind the header of TCP, UDP, ICMP */
    unsigned cut;          /* bytes that are missing at the end, as the length fields say */
    const uint8_t *quoted; /* ICMP error: @n_quoted bytes of the packet it is about, as payload */
    size_t n_quoted;
};

#define INNER_PACKET_MAX 512

/** inner_packet_make() - write it; returns its bytes. */
size_t inner_packet_make(const struct inner_packet *of, uint8_t ret[static INNER_PACKET_MAX]);
