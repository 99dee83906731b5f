/* reconcile.c - see reconcile.h. */
#include "agent/reconcile/reconcile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/reconcile/filter_rules.h"
#include "base/err.h"
#include "mesh/config/diff.h"
#include "net/netlink/rtnl.h"
#include "net/socket/socket.h"
#include "os/file.h"
#include "wire/ip.h"
#include "wire/path.h"
#include "wire/wg.h"

/* Somebody else's. */
#define OWNERSHIP_E_FOREIGN 1

static const char advice[] = "it is left alone; remove it, or join anew with --interface";

/* ---- whose it is: by its addresses ----------------------------------------------------------- */

struct address_walk {
    const struct wg_config *want;
    const struct wg_config *applied; /* NULL: not known */
    bool has_any;
    bool has_ours;
    struct ip_prefix other; /* the last that is not ours */
};

static bool has_address(const struct wg_config *c, const struct ip_addr *a)
{
    for (unsigned i = 0; c && i < c->n_addresses; i++)
        if (ip_addr_equal(&c->addresses[i].addr, a))
            return true;
    return false;
}

static int take_address(const struct rtnl_entry *entry, void *ctx)
{
    struct address_walk *w = ctx;
    const struct ip_addr *a = &entry->prefix.addr;

    if (ip_addr_is_link_local(a))
        return 0;
    w->has_any = true;
    if (has_address(w->want, a) || has_address(w->applied, a))
        w->has_ours = true;
    else
        w->other = entry->prefix;
    return 0;
}

static int check_addresses(struct netlink *nl, const struct rtnl_link *link,
    const struct wg_config *want, const struct wg_config *applied, struct err *e)
{
    struct address_walk w = {.want = want, .applied = applied};
    char text[IP_PREFIX_TEXT_MAX];
    int r = rtnl_each_address(nl, link->ifindex, take_address, &w);

    if (r < 0)
        return err_set(e, r, "the addresses of %s cannot be read: %s", link->name, strerror(-r));
    if (w.has_ours || !w.has_any)
        return 0;
    return err_set(e, OWNERSHIP_E_FOREIGN,
        "an interface %s with the address %s was made by somebody else: %s", link->name,
        ip_prefix_format(&w.other, text), advice);
}

/* ---- whose it is: by its key ----------------------------------------------------------------- */

/* The key that the interface has; none: it has none. The interface is there, and so is the process
 * that serves it, so opening the engine makes nothing. */
static int read_key(
    enum engine_kind kind, const char *interface, struct x25519_public *ret, struct err *e)
{
    struct wg_config have = WG_CONFIG_NULL;
    char why[ENGINE_WHY_MAX];
    struct engine *engine;
    int r = engine_open(&engine, kind, interface, NULL, why, e);

    if (r != 0)
        return r < 0 ? r : -1;
    r = engine_get(engine, &have, e);
    if (r == 0)
        *ret = have.public;
    wg_config_deinit(&have);
    (void)engine_close(engine);
    return r < 0 ? r : -r;
}

bool ownership_is_of_key(
    struct netlink *nl, const char *interface, const struct x25519_public *key, unsigned *ret)
{
    struct x25519_public have = {{0}};
    struct rtnl_link link;
    enum engine_kind kind;

    if (strlen(interface) >= sizeof(link.name) || rtnl_find_link(nl, interface, &link) != 0 ||
        !(strcmp(link.kind, "wireguard") == 0 ||
            (strcmp(link.kind, "tun") == 0 && engine_userspace_is_served(link.name))))
        return false;
    kind = strcmp(link.kind, "tun") == 0 ? ENGINE_KIND_USERSPACE : ENGINE_KIND_KERNEL;
    if (read_key(kind, link.name, &have, NULL) != 0 || x25519_public_is_none(&have) ||
        !x25519_public_equal(&have, key))
        return false;
    *ret = link.ifindex;
    return true;
}

/*
 * Whose is it? Changes nothing.
 *
 * @want: what it should be: its key and its addresses are ours. @applied: what it was told to be
 * last; NULL: that is not known.
 *
 * Return: 0: ours, or there is none; OWNERSHIP_E_FOREIGN with words; or negative errno with words.
 */
static int ownership_check(struct netlink *nl, const char *interface, const struct wg_config *want,
    const struct wg_config *applied, struct err *e)
{
    struct x25519_public key = {{0}};
    char text[X25519_BASE64_MAX];
    struct rtnl_link link;
    bool is_tun;
    int r = rtnl_find_link(nl, interface, &link);

    if (r == RTNL_E_ABSENT)
        return 0;
    if (r < 0)
        return err_set(e, r, "the interface %s cannot be looked at: %s", interface, strerror(-r));
    is_tun = strcmp(link.kind, "tun") == 0;
    if (!is_tun && strcmp(link.kind, "wireguard") != 0)
        return err_set(e, OWNERSHIP_E_FOREIGN,
            "an interface %s that is no WireGuard but of the kind \"%s\" was made by somebody "
            "else: %s",
            interface, link.kind, advice);
    if (!is_tun || engine_userspace_is_served(interface))
        r = read_key(is_tun ? ENGINE_KIND_USERSPACE : ENGINE_KIND_KERNEL, interface, &key, e);
    if (r < 0)
        return r;
    if (x25519_public_is_none(&key))
        return check_addresses(nl, &link, want, applied, e);
    if (x25519_public_equal(&key, &want->public) ||
        (applied && x25519_public_equal(&key, &applied->public)))
        return 0;
    return err_set(e, OWNERSHIP_E_FOREIGN,
        "an interface %s with the public key %s, which is not this node's, was made by somebody "
        "else: %s",
        interface, x25519_public_format(&key, text), advice);
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Bytes around an inner packet: the headers of IPv4, UDP and a data message, and its tag. */
#define OVERHEAD_LEAST (IP_V4_HEADER_MIN + 8 + WG_DATA_OVERHEAD)

/* The largest packet that a path is measured with: the largest path frame with its headers. */
#define LINK_MAX (PATH_FRAME_MAX + IP_V4_HEADER_MIN + 8)

int reconcile_init(struct reconcile *rc, const char *interface, enum engine_kind wanted,
    enum subnets_accept accepts, struct err *e)
{
    int r;

    *rc = (struct reconcile)RECONCILE_NULL;
    rc->interface = interface;
    rc->wanted = wanted;
    rc->accepts = accepts;
    r = netlink_open(&rc->nl, NETLINK_ROUTE);
    if (r < 0)
        return err_set(e, r, "the kernel's netlink cannot be opened: %s", strerror(-r));
    return 0;
}

void reconcile_deinit(struct reconcile *rc)
{
    rc->engine = engine_close(rc->engine);
    netlink_close(&rc->nl);
    wg_config_deinit(&rc->applied);
    subnet_routes_deinit(&rc->subnets);
    rc->has_applied = false;
}

/* Keeps @c, which is taken, as what the engine was told last. */
static void remember(struct reconcile *rc, struct wg_config *c)
{
    wg_config_deinit(&rc->applied);
    rc->applied = *c;
    *c = (struct wg_config)WG_CONFIG_NULL;
    rc->has_applied = true;
}

void reconcile_assume(struct reconcile *rc, const struct render_input *in)
{
    struct wg_config c = WG_CONFIG_NULL;

    if (render_config(&c, in, NULL) == 0)
        remember(rc, &c);
    rc->keeps_unknown = true;
}

/* ---- peers ----------------------------------------------------------------------------------- */

/* Is it the interface that this process has set up, and no other one of its name? */
static bool is_known(const struct reconcile *rc)
{
    return rc->ifindex != 0 && if_nametoindex(rc->interface) == rc->ifindex;
}

/* Opens an engine if there is none, and asks what it has. One that is gone is opened once more. */
static int provide_engine(struct reconcile *rc, const struct wg_config *want,
    struct wg_config *ret_have, struct reconcile_result *res, struct err *e)
{
    int r = ENGINE_E_GONE;

    if (rc->engine) {
        r = engine_get(rc->engine, ret_have, e);
        if (r != ENGINE_E_GONE)
            return r;
        rc->engine = engine_close(rc->engine);
    }
    if (is_known(rc))
        r = 0;
    else
        r = ownership_check(&rc->nl, rc->interface, want, rc->has_applied ? &rc->applied : NULL, e);
    if (r == OWNERSHIP_E_FOREIGN)
        return -EEXIST;
    if (r == 0) {
        r = engine_open(&rc->engine, rc->wanted, rc->interface, rc->timestamps, rc->why, e);
        if (r == 0)
            res->opened = rc->has_opened = true;
        else if (r > 0)
            r = -EOPNOTSUPP;
    }
    if (r == 0)
        r = engine_get(rc->engine, ret_have, e);
    if (r > 0)
        r = -EIO;
    if (r < 0)
        rc->engine = engine_close(rc->engine);
    else
        /* By its number it is found again, also if it is renamed before it has an address. */
        rc->ifindex = if_nametoindex(rc->interface);
    return r;
}

/* The kernel's engine keeps no MTU of a peer, so what it was told counts as what it has. */
static void adopt_mtus(const struct reconcile *rc, struct wg_config *have)
{
    if (rc->engine->ops->kind != ENGINE_KIND_KERNEL || !rc->has_applied)
        return;
    for (size_t i = 0; i < have->n_peers; i++) {
        const struct wg_peer *applied = wg_config_find(&rc->applied, &have->peers[i].key);

        have->peers[i].mtu = applied ? applied->mtu : 0;
    }
}

/* Without what the engine cannot keep the rest holds all the same. */
static int check_rates(struct reconcile *rc, struct wg_config *want, struct err *e)
{
    struct err why = ERR_NULL;
    bool is_asked = wg_config_has_rates(want) || want->shows_dscp;
    int r = is_asked ? rc->engine->ops->check_rates(rc->engine, &why) : 0;

    if (r != 0 && r != ENGINE_E_UNSUPPORTED) {
        if (e)
            *e = why;
        return r;
    }
    (void)snprintf(rc->rates_why, sizeof(rc->rates_why), "%s", r != 0 ? err_text(&why) : "");
    if (r != 0)
        wg_config_clear_rates(want);
    /* Nobody has asked for that one, so nobody misses it. */
    if (r == 0 && want->rates.all == 0 && rc->found_rate != 0 &&
        rc->engine->ops->check_rates(rc->engine, NULL) == 0)
        want->rates.all = rc->found_rate;
    return 0;
}

/* Has @want include the peers of @have that it lacks, but for their endpoints, which are the
 * engine's. */
static int add_unknown(struct wg_config *want, const struct wg_config *have, struct err *e)
{
    size_t n_wanted = want->n_peers;
    int r = 0;

    for (size_t i = 0; r == 0 && i < have->n_peers; i++) {
        const struct wg_config known = {.peers = want->peers, .n_peers = n_wanted};
        struct wg_peer kept = WG_PEER_NULL;

        if (wg_config_find(&known, &have->peers[i].key))
            continue;
        r = wg_peer_copy(&kept, &have->peers[i]);
        kept.endpoint = (struct endpoint){0};
        if (r == 0)
            r = wg_config_add(want, &kept);
    }
    return r == 0 ? wg_config_sort(want, e) : r;
}

static int reconcile_peers(struct reconcile *rc, struct wg_config *want,
    const struct x25519_secret *secret, struct reconcile_result *res, struct err *e)
{
    struct wg_config have = WG_CONFIG_NULL;
    struct diff d = DIFF_NULL;
    int r = provide_engine(rc, want, &have, res, e);

    if (r == 0) {
        rc->port_errno = have.listen_errno;
        r = check_rates(rc, want, e);
    }
    if (r == 0)
        adopt_mtus(rc, &have);
    if (r == 0 && rc->keeps_unknown)
        r = add_unknown(want, &have, e);
    if (r == 0 && rc->tells_all) {
        /* Takes each endpoint that is as wanted out of @have, so that the engine is told it again.
         */
        for (size_t i = 0; i < have.n_peers; i++) {
            const struct wg_peer *wanted = wg_config_find(want, &have.peers[i].key);

            if (wanted && endpoint_equal(&have.peers[i].endpoint, &wanted->endpoint))
                have.peers[i].endpoint = (struct endpoint){0};
        }
    }
    if (r == 0)
        r = diff_make(&d, &have, want, rc->has_applied ? &rc->applied : NULL);
    if (r == 0)
        r = engine_apply(rc->engine, &d, secret, e);
    if (r == 0) {
        /* Counts the peers that are removed and that the engine was never told: somebody else has
         * added them. What an earlier agent had told it is known as of its last file only, to which
         * it may have added peers since; so until the first pass is done nobody is accused. */
        for (size_t i = 0; rc->has_passed && i < d.n_peers; i++) {
            const struct x25519_public *key = &d.peers[i].peer.key;

            if (d.peers[i].op != DIFF_OP_REMOVE || wg_config_find(&rc->applied, key))
                continue;
            rc->foreign = *key;
            rc->n_foreign++;
            res->n_foreign++;
        }
        res->n_changes += d.n_peers + d.set_key + d.set_listen_port + d.set_fwmark + d.set_relay +
                          d.set_shows_dscp + diff_count_rates(&d);
        remember(rc, want);
        rc->has_passed = true;
        rc->tells_all = false;
    }
    diff_deinit(&d);
    wg_config_deinit(&have);
    return r > 0 ? -EIO : r;
}

/* ---- the interface --------------------------------------------------------------------------- */

/** Addresses of the interface, against those that it should have. */
struct comparison {
    const struct ip_prefix *wanted;
    unsigned n_wanted;
    bool found[WG_CONFIG_ADDRESSES_MAX];             /* of @wanted */
    struct ip_prefix extra[WG_CONFIG_ADDRESSES_MAX]; /* addresses to be removed */
    unsigned n_extra;
};

static int compare_entry(const struct rtnl_entry *entry, void *ctx)
{
    struct comparison *c = ctx;

    for (unsigned i = 0; i < c->n_wanted; i++)
        if (ip_prefix_equal(&entry->prefix, &c->wanted[i])) {
            c->found[i] = true;
            return 0;
        }
    /* The kernel gives link-local addresses by itself. What does not fit waits for the next run. */
    if (!ip_addr_is_link_local(&entry->prefix.addr) && c->n_extra < WG_CONFIG_ADDRESSES_MAX)
        c->extra[c->n_extra++] = entry->prefix;
    return 0;
}

int interface_setting(const char *interface, bool v4, const char *name)
{
    _cleanup_(closep) int fd = -1;
    char path[96];
    char value;

    (void)snprintf(path, sizeof(path), "/proc/sys/net/ipv%c/conf/%.*s/%s", v4 ? '4' : '6',
        IFNAMSIZ - 1, interface, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 || read(fd, &value, 1) != 1 ? -1 : value != '0';
}

/* Is IPv6 switched off on the interface, or is this kernel without it? Then an address is not even
 * tried: each pass would try it anew. Where /proc says nothing it is tried. */
static bool refuses_v6(const char *interface)
{
    int is_off = interface_setting(interface, false, "disable_ipv6");

    if (is_off >= 0)
        return is_off;
    return access("/proc/sys/net/ipv4", F_OK) == 0 && access("/proc/sys/net/ipv6", F_OK) != 0;
}

static int reconcile_addresses(
    struct reconcile *rc, const struct wg_config *want, struct reconcile_result *res)
{
    struct comparison c = {.wanted = want->addresses, .n_wanted = want->n_addresses};
    int r = rtnl_each_address(&rc->nl, rc->ifindex, compare_entry, &c);

    /* Removals come first: an address that is there with another prefix length could not be added.
     */
    for (unsigned i = 0; r == 0 && i < c.n_extra; i++, res->n_changes++)
        r = rtnl_remove_address(&rc->nl, rc->ifindex, &c.extra[i]);
    rc->lacks_v6 = false;
    for (unsigned i = 0; r == 0 && i < c.n_wanted; i++) {
        if (c.found[i])
            continue;
        if (!ip_addr_is_v4(&c.wanted[i].addr) && refuses_v6(rc->interface)) {
            rc->lacks_v6 = true;
            continue;
        }
        r = rtnl_add_address(&rc->nl, rc->ifindex, &c.wanted[i], true);
        /* Does that error mean that this machine has IPv6 switched off, or not built in? The
         * overlay's IPv4 works all the same. */
        if (!ip_addr_is_v4(&c.wanted[i].addr) &&
            (r == -EACCES || r == -EPERM || r == -EOPNOTSUPP || r == -EAFNOSUPPORT)) {
            rc->lacks_v6 = true;
            r = 0;
            continue;
        }
        res->n_changes++;
    }
    return r;
}

/** The kernel's routes through the interface against those that should be there. */
struct route_walk {
    const struct wg_config *want;
    bool found[WG_CONFIG_ADDRESSES_MAX]; /* of the routes to its blocks */
    bool there[WG_CONFIG_ADDRESSES_MAX]; /* the same, though perhaps with other metrics */
    struct peer_routes peers;            /* owns */
    struct ip_prefix outside[WG_CONFIG_ADDRESSES_MAX]; /* to other blocks */
    unsigned n_outside;
};

static void route_walk_deinit(struct route_walk *w)
{
    peer_routes_deinit(&w->peers);
}

static struct rtnl_metrics block_metrics(const struct wg_config *want, const struct ip_prefix *to)
{
    if (!want->route_mtu)
        return (struct rtnl_metrics){0};
    return peer_routes_metrics(want, want->route_mtu, 0, ip_addr_is_v4(&to->addr));
}

/* Does it lead to a block that the network does not have? An earlier version made routes to any
 * block that a hub gave it. What an administrator adds has another mark, if ip(8) is not told. */
static bool is_outside(const struct rtnl_entry *entry, const struct wg_config *want)
{
    if (entry->protocol != RTPROT_STATIC)
        return false;
    for (unsigned i = 0; i < want->n_routes; i++)
        if (entry->prefix.len >= want->routes[i].len &&
            ip_prefix_has(&want->routes[i], &entry->prefix.addr))
            return false;
    return true;
}

static int compare_route(const struct rtnl_entry *entry, void *ctx)
{
    struct route_walk *w = ctx;

    /* What does not fit waits for the next run. */
    if (is_outside(entry, w->want) && w->n_outside < WG_CONFIG_ADDRESSES_MAX)
        w->outside[w->n_outside++] = entry->prefix;

    for (unsigned i = 0; i < w->want->n_routes; i++) {
        const struct ip_prefix *to = &w->want->routes[i];
        struct rtnl_metrics wanted = block_metrics(w->want, to);

        if (ip_prefix_equal(&entry->prefix, to))
            w->there[i] = true;
        if (ip_prefix_equal(&entry->prefix, to) && entry->metrics.mtu == wanted.mtu &&
            entry->metrics.advmss == wanted.advmss)
            w->found[i] = true;
    }
    return peer_routes_take(&w->peers, entry);
}

/* Other routes through the interface were made by somebody else, and stay. The kernel's routes are
 * read once for both kinds of ours: for a thousand peers that is the larger part of a pass. */
static int reconcile_routes(
    struct reconcile *rc, const struct wg_config *want, struct reconcile_result *res)
{
    _cleanup_(route_walk_deinit) struct route_walk w = {.want = want};
    int r = peer_routes_plan(&w.peers, want, rc->lacks_v6);

    if (r == 0)
        r = rtnl_each_route(&rc->nl, rc->ifindex, false, compare_route, &w);

    for (unsigned i = 0; r == 0 && i < want->n_routes; i++) {
        struct rtnl_route route = {.metrics = block_metrics(want, &want->routes[i])};

        if (w.found[i] || (!ip_addr_is_v4(&want->routes[i].addr) && rc->lacks_v6))
            continue;
        if (!w.there[i] && rc->is_whole) {
            /* An earlier pass had set it. */
            res->lost_route = true;
            res->route = want->routes[i];
        }
        r = rtnl_set_route(&rc->nl, rc->ifindex, &want->routes[i], &route);
        res->n_changes++;
    }
    for (unsigned i = 0; r == 0 && i < w.n_outside; i++, res->n_changes++)
        r = rtnl_remove_route(&rc->nl, rc->ifindex, &w.outside[i], NULL);
    if (r == 0)
        r = peer_routes_apply(&w.peers, &rc->nl, rc->ifindex);
    if (r == 0)
        r = subnet_routes_apply(
            &rc->subnets, &rc->nl, rc->ifindex, rc->interface, want, rc->lacks_v6);
    return r;
}

static int reconcile_interface(
    struct reconcile *rc, const struct wg_config *want, struct reconcile_result *res, struct err *e)
{
    struct rtnl_link link;
    int r = rtnl_find_link(&rc->nl, rc->interface, &link);

    if (r == RTNL_E_ABSENT)
        return err_set(e, -ENODEV, "the interface %s is gone", rc->interface);
    /* Where the engine's has gone, somebody else may have made one of its name. */
    if (r == 0 && rc->ifindex != 0 && link.ifindex != rc->ifindex && !res->opened &&
        ownership_check(&rc->nl, rc->interface, want, NULL, e) == OWNERSHIP_E_FOREIGN)
        return -EEXIST;
    if (r == 0) {
        res->was_gone = rc->was_whole && (link.ifindex != rc->ifindex || res->opened);
        res->was_down = rc->is_whole && link.ifindex == rc->ifindex && !link.up;
        /* A new interface, or one that was down, has no routes, and nobody has taken them. */
        rc->is_whole = rc->is_whole && link.up && link.ifindex == rc->ifindex && !res->opened &&
                       res->renamed[0] == '\0';
        rc->ifindex = link.ifindex;
        r = reconcile_addresses(rc, want, res);
    }
    if (r == 0 && (!link.up || link.mtu != want->mtu)) {
        r = rtnl_set_link(&rc->nl, link.ifindex, true, want->mtu);
        res->n_changes++;
    }
    if (r == 0)
        r = reconcile_routes(rc, want, res);
    rc->is_whole = r == 0;
    rc->was_whole = rc->was_whole || r == 0;
    if (r < 0)
        return err_set(e, r, "the interface %s cannot be set up: %s", rc->interface, strerror(-r));
    return 0;
}

/* ---- its name -------------------------------------------------------------------------------- */

/** The search for an interface that has our addresses. */
struct name_walk {
    const struct wg_config *want;
    unsigned ifindex; /* of the interface that has one of them; 0: none has */
};

static int find_own_address(const struct rtnl_entry *entry, void *ctx)
{
    struct name_walk *w = ctx;

    for (unsigned i = 0; i < w->want->n_addresses; i++)
        if (ip_addr_equal(&entry->prefix.addr, &w->want->addresses[i].addr))
            w->ifindex = entry->ifindex;
    return 0;
}

/* The kind of thing that an engine makes? Anything else with our address is somebody else's. */
static bool is_tunnel(struct netlink *nl, const char *name)
{
    struct rtnl_link link;

    return rtnl_find_link(nl, name, &link) == 0 &&
           (strcmp(link.kind, "tun") == 0 || strcmp(link.kind, "wireguard") == 0);
}

/* Gives the interface its name back if it was renamed: it is known by its index, and after a start
 * by this node's address. What runs it, and every rule of the packet filter, goes by the name. */
static int reconcile_name(
    struct reconcile *rc, const struct wg_config *want, struct reconcile_result *res, struct err *e)
{
    struct name_walk w = {.want = want, .ifindex = rc->ifindex};
    char now[IFNAMSIZ] = "";
    int r = 0;

    if (if_nametoindex(rc->interface) != 0 && is_known(rc))
        return 0;
    if (!if_indextoname(w.ifindex, now)) {
        w.ifindex = 0;
        r = rtnl_each_address(&rc->nl, 0, find_own_address, &w);
    }
    if (r < 0 || !if_indextoname(w.ifindex, now) || strcmp(now, rc->interface) == 0 ||
        !is_tunnel(&rc->nl, now))
        return 0;
    r = rtnl_rename_link(&rc->nl, w.ifindex, rc->interface);
    if (r == -EBUSY) {
        r = rtnl_set_link(&rc->nl, w.ifindex, false, 0);
        if (r == 0)
            r = rtnl_rename_link(&rc->nl, w.ifindex, rc->interface);
    }
    if (r < 0)
        return err_set(e, r, "the interface %s was renamed to %s, and cannot be named back: %s",
            rc->interface, now, r == -EEXIST ? "another one has its name now" : strerror(-r));
    memcpy(res->renamed, now, sizeof(now));
    res->n_changes++;
    return 0;
}

/* ---- a hub on this machine ------------------------------------------------------------------- */

/* Then packets of the hub come in by our interface from an address of this machine. The hub does
 * the same on its own interface. */
static int reconcile_own_hub(struct reconcile *rc, const struct snapshot *s, struct err *e)
{
    unsigned at = 0;
    int r = RTNL_E_ABSENT;

    for (size_t i = 0; r == RTNL_E_ABSENT && i < s->nodes.n; i++)
        if (s->nodes.items[i]->node.hub)
            r = rtnl_find_address(&rc->nl, &s->nodes.items[i]->node.address4, &at);
    rc->has_own_hub = r == 0 && at != rc->ifindex;
    if (rc->has_own_hub && rc->accepts_own_on != rc->ifindex) {
        r = rtnl_accept_own(&rc->nl, rc->ifindex);
        rc->accepts_own_on = r == 0 ? rc->ifindex : 0;
    }
    if (r < 0)
        return err_set(
            e, r, "the hub on this machine cannot be met on %s: %s", rc->interface, strerror(-r));
    return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Is the port of WireGuard another program's, as when that began first after a restart of the
 * machine? Who has it may have ended meanwhile. A kernel's engine is told by netlink that its port
 * is taken, one in user space says it when it is asked, and has all the rest then. */
static int check_port(const struct reconcile *rc, int r, uint16_t port, struct err *e)
{
    struct err who = ERR_NULL;

    if (r == 0 && rc->port_errno == EADDRINUSE && port != 0)
        r = -EADDRINUSE;
    if (r != -EADDRINUSE)
        return r;
    if (port == 0 || udp_owner_check(port, &who) != UDP_OWNER_E_TAKEN)
        return err_set(e, r, "UDP port %u was in use (EADDRINUSE)", port);
    return err_set(e, r,
        "%s; end it, or have it use another port: this node takes %u as soon as it is free",
        err_text(&who), port);
}

int reconcile_run(struct reconcile *rc, const struct render_input *in,
    const struct x25519_secret *secret, struct reconcile_result *ret, struct err *e)
{
    struct reconcile_result res = {0};
    struct wg_config want = WG_CONFIG_NULL;
    int r = render_config(&want, in, e);
    bool is_lost;

    if (r == 0)
        r = reconcile_name(rc, &want, &res, e);
    if (r == 0) {
        r = subnet_routes_plan(
            &rc->subnets, &rc->nl, if_nametoindex(rc->interface), rc->accepts, in->snapshot, &want);
        if (r < 0)
            (void)err_set(e, r, "the routes of this machine cannot be read: %s", strerror(-r));
    }
    /* The peers come first, so that the interface has them when it comes up. */
    if (r == 0)
        r = reconcile_peers(rc, &want, secret, &res, e);
    if (r == 0)
        r = reconcile_interface(rc, &rc->applied, &res, e);
    /* An engine whose interface is found neither by its name, nor by its number, nor by its
     * addresses, twice in a row, ends, so that the next pass begins another one. */
    is_lost = r == -ENODEV && rc->engine;
    if (is_lost && rc->has_lost)
        (void)reconcile_retire_engine(rc, NULL);
    rc->has_lost = is_lost && !rc->has_lost;
    if (r == 0)
        r = reconcile_own_hub(rc, in->snapshot, e);
    r = check_port(rc, r, in->listen_port, e);
    wg_config_deinit(&want);
    if (r == 0) {
        *ret = res;
        ret->opened = rc->has_opened;
        rc->has_opened = false;
    }
    return r;
}

int reconcile_observe(struct reconcile *rc, struct wg_config *ret, struct err *e)
{
    if (!rc->engine)
        return err_set(e, ENGINE_E_GONE, "the engine of %s is not open", rc->interface);
    return engine_get(rc->engine, ret, e);
}

int reconcile_handshake(struct reconcile *rc, const struct x25519_public *peer, struct err *e)
{
    if (!rc->engine)
        return err_set(e, ENGINE_E_GONE, "the engine of %s is not open", rc->interface);
    return rc->engine->ops->handshake(rc->engine, peer, e);
}

bool reconcile_resend_endpoint(
    struct reconcile *rc, const struct x25519_public *peer, const struct endpoint *at)
{
    struct wg_peer *applied = rc->has_applied ? wg_config_find(&rc->applied, peer) : NULL;

    if (!applied || endpoint_is_none(&applied->endpoint) || endpoint_equal(&applied->endpoint, at))
        return false;
    /* Without an endpoint here the next pass finds that the wanted one is still to be told. */
    applied->endpoint = (struct endpoint){0};
    return true;
}

uint16_t reconcile_see_links(struct reconcile *rc)
{
    unsigned mtu = 0;

    /* Without an answer the interface gets the network's MTU. */
    (void)rtnl_largest_mtu(&rc->nl, rc->ifindex, &mtu);
    if (mtu > LINK_MAX)
        mtu = LINK_MAX;
    return mtu > OVERHEAD_LEAST ? (uint16_t)(mtu - OVERHEAD_LEAST) : 0;
}

int reconcile_take_down(struct reconcile *rc, struct err *e)
{
    struct rtnl_link link;
    int r = 0;

    if (!rc->engine && rc->has_applied && !is_known(rc))
        r = ownership_check(&rc->nl, rc->interface, &rc->applied, NULL, NULL);
    if (r == OWNERSHIP_E_FOREIGN)
        return 0;
    rc->engine = engine_close(rc->engine);
    /* Where there is no packet filter there is nothing to remove. */
    filter_rules_remove(rc->interface);
    (void)subnet_routes_remove(&rc->nl, rc->interface);
    r = rtnl_find_link(&rc->nl, rc->interface, &link);
    if (r == RTNL_E_ABSENT)
        return 0;
    if (r == 0)
        r = rtnl_remove_link(&rc->nl, link.ifindex);
    if (r < 0)
        return err_set(e, r, "the interface %s cannot be removed: %s", rc->interface, strerror(-r));
    return 0;
}

int reconcile_retire_engine(struct reconcile *rc, struct err *e)
{
    int r = rc->engine ? rc->engine->ops->retire(rc->engine, e) : 0;

    if (r == ENGINE_E_UNSUPPORTED && rc->engine->ops->kind == ENGINE_KIND_USERSPACE)
        r = reconcile_take_down(rc, e);
    if (r == ENGINE_E_GONE)
        r = 0;
    if (r == 0) {
        rc->engine = engine_close(rc->engine);
        /* What the next run finds gone was ended here, and by nobody else. */
        rc->was_whole = false;
    }
    return r;
}
