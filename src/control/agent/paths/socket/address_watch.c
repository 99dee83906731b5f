/* address_watch.c - see address_watch.h. */
#include "agent/paths/socket/address_watch.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/err.h"
#include "base/htab.h"
#include "net/netlink/net_watch.h"
#include "net/netlink/rtnl.h"
#include "uapi/uapi_server.h"

#define DIGEST_SEED 0x9e3779b97f4a7c15u

/* ---- a look --------------------------------------------------------------------------------- */

/* Most other networks of this machine that are known. */
#define OVERLAYS_MAX 64

struct look {
    unsigned overlay;              /* our own interface; 0: it is not there */
    unsigned others[OVERLAYS_MAX]; /* interfaces of other overlays */
    unsigned n_others;
    const struct candidate_blocks *blocks;
    struct addresses found;
};

/* Does somebody run a WireGuard in user space there, such as another agent of ours? */
static bool is_served(const char *interface)
{
    char path[sizeof(UAPI_SOCKET_DIR) + IFNAMSIZ + sizeof("/.sock")];

    (void)snprintf(path, sizeof(path), "%s/%s.sock", UAPI_SOCKET_DIR, interface);
    return access(path, F_OK) == 0;
}

/* What has an address in a WireGuard of this machine is reached through that, whichever network's
 * it is: a path there would lead through another overlay. Other tunnels may be the only way. */
static int take_link(const struct rtnl_link *link, void *ctx)
{
    struct look *look = ctx;

    if (look->n_others < OVERLAYS_MAX &&
        (strcmp(link->kind, "wireguard") == 0 ||
            (strcmp(link->kind, "tun") == 0 && is_served(link->name))))
        look->others[look->n_others++] = link->ifindex;
    return 0;
}

static bool is_overlay(const struct look *look, unsigned ifindex)
{
    bool found = ifindex == look->overlay;

    for (unsigned i = 0; i < look->n_others && !found; i++)
        found = look->others[i] == ifindex;
    return found;
}

static int take_address(const struct rtnl_entry *entry, void *ctx)
{
    struct look *look = ctx;
    struct addresses *found = &look->found;
    /* The port does not matter here, but one is needed. */
    struct endpoint ep = {.addr = entry->prefix.addr, .port = 1};

    if (is_overlay(look, entry->ifindex) || found->n >= ADDRESSES_MAX ||
        ip_addr_is_link_local(&ep.addr) || !candidate_is_possible(&ep) ||
        candidate_blocks_have(look->blocks, &ep.addr))
        return 0;
    found->items[found->n++] = ep.addr;
    found->digest = hash_bytes(found->digest, &ep.addr, sizeof(ep.addr));
    return 0;
}

/* Does it lead a block of the overlay, or a part of one, elsewhere, or the whole block into it? */
static bool concerns_overlay(const struct look *look, const struct rtnl_entry *entry)
{
    for (unsigned i = 0; i < look->blocks->n; i++)
        if (ip_prefix_equal(&entry->prefix, &look->blocks->items[i]))
            return true;
    return entry->ifindex != look->overlay &&
           candidate_blocks_have(look->blocks, &entry->prefix.addr);
}

/* A WireGuard that takes everything, or half of it, is this machine's way out, and no network. */
#define BLOCK_LEN_MIN 7

static int take_other_block(const struct rtnl_entry *entry, void *ctx)
{
    struct look *look = ctx;

    if (entry->ifindex != look->overlay && is_overlay(look, entry->ifindex) &&
        entry->prefix.len >= BLOCK_LEN_MIN && !ip_addr_is_link_local(&entry->prefix.addr))
        (void)candidate_blocks_add(&look->found.others, &entry->prefix);
    return 0;
}

/* Where a part of a block leads to no overlay it is reached as ever. */
static int take_outside(const struct rtnl_entry *entry, void *ctx)
{
    struct look *look = ctx;

    if (!is_overlay(look, entry->ifindex))
        candidate_blocks_exclude(&look->found.others, &entry->prefix);
    return 0;
}

/* Only default routes count, because others come and go with containers; and those that lead to the
 * overlay, which somebody may have taken from it. */
static int take_route(const struct rtnl_entry *entry, void *ctx)
{
    struct look *look = ctx;
    struct addresses *found = &look->found;

    if (concerns_overlay(look, entry)) {
        found->block_routes =
            hash_bytes(found->block_routes, &entry->ifindex, sizeof(entry->ifindex));
        found->block_routes =
            hash_bytes(found->block_routes, &entry->prefix, sizeof(entry->prefix));
    }

    if (entry->ifindex != look->overlay && entry->prefix.len == 0)
        look->found.digest =
            hash_bytes(look->found.digest, &entry->ifindex, sizeof(entry->ifindex));
    return 0;
}

int address_watch_look(struct address_watch *aw, const char *interface,
    const struct candidate_blocks *blocks, struct addresses *ret)
{
    struct look look = {
        .blocks = blocks, .found = {.digest = DIGEST_SEED, .block_routes = DIGEST_SEED}};
    struct rtnl_link link;
    int r = rtnl_find_link(&aw->nl, interface, &link);

    if (r == 0)
        look.overlay = link.ifindex;
    if (r >= 0)
        r = rtnl_each_link(&aw->nl, take_link, &look);
    if (r >= 0)
        r = rtnl_each_address(&aw->nl, 0, take_address, &look);
    if (r >= 0)
        r = rtnl_each_route(&aw->nl, 0, take_route, &look);
    if (r >= 0 && look.n_others > 0)
        r = rtnl_each_route(&aw->nl, 0, take_other_block, &look);
    if (r >= 0 && look.found.others.n > 0)
        r = rtnl_each_route(&aw->nl, 0, take_outside, &look);
    if (r >= 0)
        *ret = look.found;
    return r < 0 ? r : 0;
}

/* ---- changes -------------------------------------------------------------------------------- */

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct address_watch *aw = poll->data;

    if (net_watch_read(aw->fd))
        aw->fn(aw->ctx);
}

int address_watch_start(
    struct address_watch *aw, struct uv_loop_s *loop, address_watch_fn fn, void *ctx, struct err *e)
{
    int r = netlink_open(&aw->nl, NETLINK_ROUTE);

    aw->fn = fn;
    aw->ctx = ctx;
    if (r == 0)
        r = aw->fd = net_watch_open();
    if (r >= 0 && !(aw->poll = calloc(1, sizeof(*aw->poll))))
        r = -ENOMEM;
    if (r < 0)
        return err_set(e, r, "this machine's addresses cannot be watched: %s", strerror(-r));
    (void)uv_poll_init(loop, aw->poll, aw->fd);
    aw->poll->data = aw;
    (void)uv_poll_start(aw->poll, UV_READABLE, on_readable);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

void address_watch_stop(struct address_watch *aw)
{
    if (aw->poll)
        uv_close((uv_handle_t *)aw->poll, on_closed);
    aw->poll = NULL;
    if (aw->fd >= 0)
        (void)close(aw->fd);
    aw->fd = -1;
    netlink_close(&aw->nl);
}
