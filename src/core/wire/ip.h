/*
 * ip.h - what the data plane needs of inner IP and TCP/UDP headers.
 *
 * Spec: RFC 791, RFC 8200; ECN through a tunnel RFC 6040; checksums RFC 1071
 * and 1624.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

#define IP_PROTO_ICMP   1
#define IP_PROTO_TCP    6
#define IP_PROTO_UDP    17
#define IP_PROTO_ICMPV6 58

#define IP_V4_HEADER_MIN 20
#define IP_V6_HEADER     40

/** One inner packet's header, decoded. */
struct ip_info {
    struct ip_addr src;
    struct ip_addr dst;
    uint8_t version;  /* 4 or 6 */
    uint8_t tos;      /* DSCP in the upper six bits, ECN in the lower two */
    uint8_t proto;    /* IP_PROTO_; v6: the first next-header, extensions are not walked */
    bool is_fragment; /* not a whole datagram: has no ports of its own */
    uint16_t l4_off;  /* where the payload of IP starts */
    uint32_t len;     /* the packet's own length: at most what ip_parse() was given */
};

/* Outcomes of ip_parse(). */
#define IP_E_NOT_IP 1 /* the first nibble is neither 4 nor 6: DROP_NOT_IP */
#define IP_E_LENGTH 2 /* a length field contradicts the bytes at hand: DROP_INNER_LENGTH */

/**
 * ip_parse() - read an inner header
 * @p:		@len bytes; may be followed by padding, which @ret->len does not count
 *
 * Threads: any.
 *
 * Return: 0, IP_E_NOT_IP or IP_E_LENGTH; @ret is untouched on failure.
 */
int ip_parse(const void *p, size_t len, struct ip_info *ret);

/** ip_v4_may_fragment() - is DF clear in the IPv4 packet @p? (RFC 791 3.1) */
static inline bool ip_v4_may_fragment(const uint8_t *p)
{
    return (p[6] & 0x40) == 0;
}

#define IP_V6_MTU_MIN 1280 /* RFC 8200 section 5: every link carries this */

/* ECN: the two low bits of the TOS or traffic class (RFC 3168). */
#define IP_ECN_MASK    3
#define IP_DSCP_MASK   0xfc
#define IP_ECN_NOT_ECT 0
#define IP_ECN_ECT1    1
#define IP_ECN_ECT0    2
#define IP_ECN_CE      3

/** ip_ecn_encapsulate() - the outer TOS for an inner one: ECN only; CE becomes ECT(0); no DSCP. */
uint8_t ip_ecn_encapsulate(uint8_t inner_tos);

/**
 * ip_ecn_decapsulate() - carry congestion marks of the outer header into the inner
 * @p:		the inner packet, already checked by ip_parse(); changed in place
 * @outer_tos:	of the datagram that brought it
 *
 * RFC 6040 section 4.2 as the Linux kernel applies it to WireGuard: a packet
 * that is not ECN-capable passes unchanged even under an outer CE.
 */
void ip_ecn_decapsulate(void *p, uint8_t outer_tos);

/**
 * ip_sum_add() - add bytes to a checksum in progress
 * @sum:	what was summed so far; 0 at first
 * @p:		@len bytes; only the last piece may have an odd length
 *
 * Return: a partial sum for ip_sum_add() or ip_sum_fold().
 */
uint64_t ip_sum_add(uint64_t sum, const void *p, size_t len);

/** ip_sum_fold() - to 16 bits, not complemented, in host order of the network value. */
uint16_t ip_sum_fold(uint64_t sum);

/** ip_sum_pseudo() - the pseudo header of TCP and UDP for @l4_len bytes of @proto. */
uint64_t ip_sum_pseudo(
    const struct ip_addr *src, const struct ip_addr *dst, uint8_t proto, uint32_t l4_len);

/** ip_v4_set_checksum() - compute and store the header's checksum; @header_len bytes. */
void ip_v4_set_checksum(void *p, size_t header_len);

/*
 * ICMP echo: a ping that any machine's kernel answers, with something of ours in it.
 *
 * Spec: RFC 792 (types 8 and 0) and RFC 4443 section 4 (types 128 and 129).
 */

/** Bytes of a request, and of its answer; without the IP header. */
#define ECHO_LEN 20

/** What goes out and comes back unchanged. */
struct echo {
    uint16_t id;     /* of who asks */
    uint16_t seq;    /* of the ping */
    uint32_t index;  /* of who is asked, among those whom we ask */
    uint64_t cookie; /* of this run; random, so that nobody answers what he was not asked */
};

/** echo_encode() - a request. The checksum of IPv6, which covers addresses, is the kernel's. */
void echo_encode(const struct echo *e, bool v4, uint8_t out[static ECHO_LEN]);

/**
 * echo_decode() - an answer
 * @p:		@len bytes, from ICMP's type on; more than ECHO_LEN are not looked at
 *
 * Return: false if it is something else, or, over IPv4, its checksum is wrong.
 */
bool echo_decode(struct echo *ret, bool v4, const uint8_t *p, size_t len);
