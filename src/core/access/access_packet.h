/*
 * access_packet.h - what of an inner packet the network's rules go by.
 *
 * Of a packet that is whole: its ends, its protocol, and which connection it belongs to. Of a
 * datagram in fragments only the first one has ports; the others belong to it. An ICMP error
 * belongs to the connection of the packet that it quotes.
 *
 * What nobody can judge is broken, and is never let pass: a header that is cut off, a first
 * fragment without the whole TCP or UDP header (RFC 1858 section 3), and one that would overwrite
 * it (RFC 3128 section 2).
 *
 * Pure.
 *
 * Spec: RFC 791, 792, 768, 9293; RFC 8200 section 4, RFC 4302 2, RFC 4443 2.1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "wire/ip.h"

/** Which way a packet goes, as the node sees it. */
enum access_way {
    ACCESS_OUT,
    ACCESS_IN,
    ACCESS_WAY_N,
};

/** A connection, as the node sees it: the same from both ways. No byte of it is padding. */
struct access_key {
    struct ip_addr local;
    struct ip_addr remote;
    uint16_t local_port;  /* of TCP and UDP; of an ICMP echo its identifier; else 0 */
    uint16_t remote_port; /* of TCP and UDP; of an ICMP echo an ACCESS_ASKED_BY; else 0 */
    uint8_t protocol;     /* of IP */
    uint8_t zero[3];
};

/** Of an echo: whose question it is. Both ends may use the same identifier. */
#define ACCESS_ASKED_BY_US   1
#define ACCESS_ASKED_BY_THEM 2

enum access_packet_kind {
    ACCESS_PACKET_WHOLE,
    ACCESS_PACKET_FIRST,     /* fragment of a datagram */
    ACCESS_PACKET_FOLLOWING, /* fragment: without ports */
    ACCESS_PACKET_BROKEN,
};

struct access_packet {
    enum access_packet_kind kind;
    enum access_way way;
    struct access_key key;     /* without ports where there are none */
    struct access_key related; /* of the packet that an ICMP error quotes; protocol 0: none */
    uint32_t fragment_id;      /* of a fragment */
    uint16_t port;             /* that TCP and UDP are addressed to */
    bool is_connected;         /* it may be part of a connection, or begin one */
    bool is_icmp;              /* of either version */
    bool begins;               /* TCP: it opens a connection (SYN alone), whatever was before */
    bool ends;                 /* TCP: FIN */
    bool resets;               /* TCP: RST */
};

/**
 * access_packet_read() - @p, of which @len bytes are there
 * @ip:		from ip_parse() of it
 */
void access_packet_read(struct access_packet *ret, const uint8_t *p, size_t len,
    const struct ip_info *ip, enum access_way way);
