/*
 * echo.h - ICMP echo: a ping that any machine's kernel answers, with something of ours in it.
 *
 * Spec: RFC 792 (types 8 and 0) and RFC 4443 section 4 (types 128 and 129).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
