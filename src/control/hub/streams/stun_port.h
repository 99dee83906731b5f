/*
 * stun_port.h - STUN on a second UDP port, the number of the API's TCP port.
 *
 * A node that is seen with two different ports by two ports of one hub is
 * behind a NAT that maps by destination (RFC 4787 section 4.1), which decides
 * which paths are worth trying. Nothing else is served here; a hub whose
 * firewall lets only its WireGuard port through works as well, and its nodes
 * then do not know their NAT's kind. An answer goes to where its request came
 * from and nowhere else: RESPONSE-PORT is refused (420), and served on the
 * WireGuard port.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdint.h>

struct err;
struct stun_port;
struct uv_loop_s;

/**
 * stun_port_new() - answer on UDP @port
 * @seed:	random, unknown to strangers
 *
 * Return: 0, or negative errno with words: -EADDRINUSE.
 */
int stun_port_new(
    struct stun_port **ret, struct uv_loop_s *loop, uint16_t port, uint64_t seed, struct err *e);

/** stun_port_free() - its handles close in the loop's next turns. NULL is fine. Always NULL. */
struct stun_port *stun_port_free(struct stun_port *sp);
