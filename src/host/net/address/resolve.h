/*
 * resolve.h - from what a person writes to addresses: host names, and this machine's own.
 */
#pragma once

#include <stdint.h>

#include "base/addr.h"

struct err;

/**
 * resolve_host() - "HOST", "HOST:PORT", "1.2.3.4", "[v6]:PORT" or "v6" to endpoints
 * @dflt_port:	when the text has none
 * @ret:	room for @cap
 * @ret_n:	how many there are, at least 1, in the resolver's order
 *
 * Blocks for as long as the resolver does, if it is a name.
 *
 * Return: 0 or negative errno with words.
 */
int resolve_host(const char *text, uint16_t dflt_port, struct endpoint *ret, unsigned cap,
    unsigned *ret_n, struct err *e);

/**
 * resolve_check() - could @text be given to resolve_host()? No name is looked up.
 * @ret:	the address when it is one; none when it is a name
 *
 * Return: 0, or -EINVAL with words.
 */
int resolve_check(const char *text, struct ip_addr *ret, struct err *e);

/**
 * resolve_own() - the addresses from which this machine speaks to the rest of the world
 * @ret:	room for both: v4 first, as far as there is a default route
 *
 * Nothing is sent: the kernel is asked which source it would choose.
 *
 * Return: how many, 0 to 2.
 */
unsigned resolve_own(struct ip_addr ret[static 2]);
