/*
 * icmp.h - telling an inner sender that its packet has nowhere to go, or does not fit.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/rate.h"

/** Longest message that icmp_make_unreachable() writes. */
#define ICMP_MESSAGE_MAX 1280

/**
 * icmp_make_unreachable() - "host unreachable" for @p (RFC 792, RFC 4443)
 * @p:		the inner packet, @len bytes, already checked by ip_parse()
 * @ret:	the message; it comes from the address that could not be reached, since a
 *		data plane knows no address of its own
 *
 * Return: its length; 0 when @p must not be answered (RFC 1122 3.2.2, RFC 4443 2.4 e): an error
 * message itself, a later fragment, multicast, or an unusable source.
 */
size_t icmp_make_unreachable(const uint8_t *p, size_t len, uint8_t ret[static ICMP_MESSAGE_MAX]);

/**
 * icmp_make_too_big() - "fragmentation needed" (RFC 1191), or "packet too big" (RFC 4443 3.2)
 * @mtu:	what would fit; for IPv6 at least 1280
 *
 * As icmp_make_unreachable(). Of an IPv4 packet only when it may not be fragmented.
 */
size_t icmp_make_too_big(
    const uint8_t *p, size_t len, uint16_t mtu, uint8_t ret[static ICMP_MESSAGE_MAX]);

/**
 * icmp_send_unreachable() - icmp_make_unreachable() for @p, written to an interface
 * @rate:	of the calling thread: 100 at once, 100 a second; when it is used up nothing is sent
 * @fd:		a TUN queue
 */
void icmp_send_unreachable(struct rate *rate, int fd, const uint8_t *p, size_t len, nsec_t now);

/** icmp_send_too_big() - the same with icmp_make_too_big(). */
void icmp_send_too_big(
    struct rate *rate, int fd, const uint8_t *p, size_t len, uint16_t mtu, nsec_t now);
