/*
 * address_watch.h - this machine's addresses, and word of every change of its network.
 *
 * Addresses of our own overlay and of any other WireGuard of this machine, the kernel's or one that
 * is served in user space, are left out, and so are those that cannot be a candidate.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "net/netlink/netlink.h"
#include "path/candidate.h"

struct err;
struct uv_loop_s;
struct uv_poll_s;

/** Most host candidates: half of all, so that others have room. */
#define ADDRESSES_MAX (CANDIDATES_MAX / 2)

/** What one look has found. */
struct addresses {
    struct ip_addr items[ADDRESSES_MAX];
    unsigned n;
    uint64_t
        digest; /* of the addresses and of the interfaces of default routes; never 0 by design */
    uint64_t block_routes;          /* digest of the routes that lead to the overlay's blocks */
    struct candidate_blocks others; /* that lead into other overlays of this machine */
};

/** address_watch_fn - something has changed, perhaps one of many changes at once; from the loop. */
typedef void (*address_watch_fn)(void *ctx);

struct address_watch {
    address_watch_fn fn;
    void *ctx; /* pins */
    struct netlink nl;
    struct uv_poll_s *poll; /* owns until it is closed; NULL: not started */
    int fd;                 /* owns; -1: changes are not heard of */
};

#define ADDRESS_WATCH_NULL                                                                         \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/** address_watch_start() - hear of changes. @ctx: pinned. 0 or negative errno with words. */
int address_watch_start(struct address_watch *aw, struct uv_loop_s *loop, address_watch_fn fn,
    void *ctx, struct err *e);

/** address_watch_stop() - its handle closes in the loop's next turns. Idempotent, fine on NULL. */
void address_watch_stop(struct address_watch *aw);

/**
 * address_watch_look() - which addresses there are now
 * @interface:	our own, whose addresses and routes do not count; it may be absent
 * @blocks:	of the overlay; addresses in them do not count, whatever their interface is called
 *
 * Return: 0; negative errno when the kernel gave no whole answer, most often because something
 * changed meanwhile: look again a little later.
 */
int address_watch_look(struct address_watch *aw, const char *interface,
    const struct candidate_blocks *blocks, struct addresses *ret);
