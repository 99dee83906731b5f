/*
 * icmp.h - inner packets that have nowhere to go or do not fit.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Telling an inner sender that its packet has nowhere to go, or does not fit. */

/** Longest message that icmp_make() writes. */
#define ICMP_MESSAGE_MAX 1280

/** Why a packet is not sent. */
enum icmp_why {
    ICMP_NO_ROUTE, /* "host unreachable" (RFC 792), "address unreachable" (RFC 4443 3.1) */
    ICMP_TOO_BIG,  /* "fragmentation needed" (RFC 1191), only for a packet that may not be
                      fragmented; "packet too big" (RFC 4443 3.2) */
    ICMP_REFUSED,  /* "administratively prohibited" (RFC 1812 5.2.7.1, RFC 4443 3.1) */
};

/**
 * icmp_make() - tell the sender of @p why it goes nowhere
 * @p:		the inner packet, @len bytes, already checked by ip_parse()
 * @mtu:	of ICMP_TOO_BIG what would fit, for IPv6 at least 1280; else 0
 * @ret:	the message; it comes from the address that could not be reached, since a
 *		data plane knows no address of its own
 *
 * Return: its length; 0 when @p must not be answered (RFC 1122 3.2.2, RFC 4443 2.4 e): an error
 * message itself, a later fragment, multicast, or an unusable source.
 */
size_t icmp_make(const uint8_t *p, size_t len, enum icmp_why why, uint16_t mtu,
    uint8_t ret[static ICMP_MESSAGE_MAX]);

/*
 * Cutting an IPv6 packet for a path that carries less than 1280 bytes.
 *
 * No sender of IPv6 may be told that less than 1280 fits (RFC 8200 section 5): what lies
 * below has to fragment. The tunnel's sender does so inside, so that whoever passes
 * the datagrams on, a relay for one, has nothing to put together, and the other end's kernel,
 * a stock WireGuard's as well, makes the packet whole.
 *
 * Pure: no I/O, no state.
 */

/** Bytes that each piece has more than its share of the payload, at most: the headers. */
#define V6_CUT_HEADERS 48

/**
 * v6_cut_count() - into how many pieces of at most @mtu bytes a packet is cut
 * @p:		an IPv6 packet of @len bytes, already checked by ip_parse()
 * @mtu:	at least 576
 *
 * Return: 1 when it fits, when its sender may be told that it does not (@mtu is IP_V6_MTU_MIN or
 * more), or when it has extension headers that each piece would have to repeat: it is then sent as
 * it is.
 */
unsigned v6_cut_count(const uint8_t *p, uint32_t len, uint16_t mtu);

/**
 * v6_cut() - write piece number @i of @n, which is more than 1
 * @id:		of all pieces of this packet, and of no other one between these addresses for long;
 *		a packet that is a fragment itself keeps its own
 * @dst:	room for its share of @len, and V6_CUT_HEADERS
 *
 * The pieces have the same length, but for the last.
 *
 * Return: its bytes.
 */
uint32_t v6_cut(const uint8_t *p, uint32_t len, uint32_t id, unsigned i, unsigned n, uint8_t *dst);
