/*
 * source_addr.h - from which of our addresses a peer is answered, when routes change.
 *
 * Theory of operation. A peer is answered from the address that its last packet came
 * to, because it, and what stands before it, may take no other. When the route to it
 * moves to another interface that address leads nowhere any more. The kernel's
 * WireGuard looks at the route of each packet; here the control thread asks for it
 * when a peer's place changes, and again for every peer after the kernel has told of a
 * change, so that no packet costs a system call:
 *
 *     the route leaves by the interface that the peer's packet came by
 *         peer->follows_route: from now on its source is held to that
 *     it leaves by another one, and follows_route was set before
 *         peer->left is that path: from packets that still come by it only the endpoint is
 *         learned, and an empty packet tells the peer at once where we are now
 *     it leaves by another one, and always did
 *         nothing is changed: a machine with several uplinks and one default route, whose
 *         answers some networks let through
 */
#pragma once

#include "base/clock.h"

struct peer;
struct port;
struct source_addr;

/** source_addr_new() - a port's part, which hears of nothing yet. 0 or -ENOMEM. */
int source_addr_new(struct source_addr **ret, struct port *p);

/** source_addr_free() - after source_addr_stop(); NULL is fine. Returns NULL. */
struct source_addr *source_addr_free(struct source_addr *s);

/** source_addr_start() - hear of changes in the caller's namespace. Under the lock. 0 or negative
 * errno. */
int source_addr_start(struct source_addr *s);

/** source_addr_stop() - hear of them no more: when the control thread has ended. Idempotent. */
void source_addr_stop(struct source_addr *s);

/** source_addr_tick() - check all peers, if that is due at @now. Under the lock. Returns when it
 * is due next; NSEC_NEVER: nothing is new. */
nsec_t source_addr_tick(struct source_addr *s, nsec_t now);

/** source_addr_check() - ask for the route to @peer, which speaks from or to another place than
 * before. Under the lock. */
void source_addr_check(struct peer *peer, nsec_t now);
