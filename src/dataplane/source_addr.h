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
 *     it leaves by another one, and the peer's once was as it should be
 *         peer->left: from that place on nothing but the endpoint is learned, and an
 *         empty packet tells the peer at once where we are now
 *     it leaves by another one, and always did
 *         a machine with several uplinks and one default route, which some networks
 *         let answer all the same: nothing is changed
 */
#pragma once

#include "base/clock.h"
#include "dataplane/loop.h"
#include "net/netlink.h"

struct peer;
struct port;

/** What a port has for it. Guarded by the port's lock. */
struct source_addr {
    int fd;                  /* owns: news of routes; -1: none can be had */
    struct loop_event event; /* of fd */
    struct netlink nl;       /* for questions */
    nsec_t due;              /* of the next look at all peers; NSEC_NEVER: nothing is new */
    nsec_t looked_at;        /* when the last one was; 0: never */
};

#define SOURCE_ADDR_NULL                                                                           \
    {                                                                                              \
        .fd = -1, .due = NSEC_NEVER                                                                \
    }

/** source_addr_init() - hear of changes in the caller's namespace. 0 or negative errno. */
int source_addr_init(struct port *p);

/** source_addr_deinit() - when the control thread has ended; idempotent. */
void source_addr_deinit(struct port *p);

/** source_addr_tick() - when it is due: look at all peers. Under the lock. */
void source_addr_tick(struct port *p, nsec_t now);

/** source_addr_check() - @peer speaks from or to another place than before. Under the lock. */
void source_addr_check(struct peer *peer, nsec_t now);
