/*
 * overlay_network.c - one network's interface on the hub; see overlay_internal.h.
 *
 * The interface has the network's first addresses and a route for its blocks. It
 * serves these two addresses and nothing else: a packet that a node sends
 * through its session with the hub to any other address ends here, whatever
 * the machine's forwarding is, so nothing that one node sends can reach
 * another in the hub's plaintext.
 *
 * Blocks may overlap. Then both interfaces have, say, 10.42.0.1/16, and the
 * kernel picks the way of a packet by the metric of the routes: the network that
 * came first wins. Sockets that are bound to an interface (the API's)
 * are not concerned, but what the kernel answers by itself, an echo reply for
 * one, would go to a stranger in the other network. So the later network is
 * shadowed: its interface serves the API's port alone, whose listening socket
 * is bound and answers even for connections that it does not know. It also
 * needs a loose reverse-path check, because packets come in by another
 * interface than the one that the kernel would use.
 *
 * What the hub itself says has to arrive on any line: of its packets, and of what its TCP asks of
 * the members', none is larger than every path is taken to carry. A member that measures its way to
 * the hub (probe_answers.h) has routes of its own, with what that way carries.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/engine.h"
#include "filter/relay.h"
#include "hub/overlay/device_engine.h"
#include "hub/overlay/overlay_internal.h"
#include "mesh/config/diff.h"
#include "mesh/render/render.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "os/fd_cleanup.h"
#include "os/log.h"
#include "port/device.h"
#include "port/port.h"
#include "relay/router.h"
#include "uapi/uapi_server.h"
#include "wire/ip.h"

/* The metrics of the networks' routes begin here: after all routes that somebody made by hand, and
 * before the "unreachable" ones of IPv6. */
#define METRIC_BASE 20000

/* The rules of the hub's own packets are looked at after the local table's (0), and before those of
 * an agent on this machine. */
#define RULE_PRIORITY 5186

#define TCP_HEADER 20

/* ---- the device ----------------------------------------------------------------------------- */

static const struct ip_prefix *block_of(const struct overlay_network *net, bool v4)
{
    return v4 ? &net->hub->spec.cidr4 : &net->hub->spec.cidr6;
}

/* Has a network whose block overlaps come before it? */
static bool is_shadowed(const struct overlay_network *net, bool v4)
{
    const struct overlay_network *each;

    list_foreach(each, &net->overlay->networks, siblings) {
        if (each == net)
            return false;
        if (ip_prefix_overlaps(block_of(each, v4), block_of(net, v4)))
            return true;
    }
    return false;
}

static void set_accept(struct overlay_network *net)
{
    uint16_t api = net->overlay->api_port;
    struct device_accept accept = {.at = {{net->hub->address4, is_shadowed(net, true) ? api : 0},
                                       {net->hub->address6, is_shadowed(net, false) ? api : 0}}};

    device_set_accept(net->device, &accept);
}

/* ---- listeners: with the port's lock held; see device.h ---- */

static void on_session(void *ctx, const struct x25519_public *peer, const struct udp_path *path)
{
    overlay__note_path(ctx, peer, path, clock_now());
}

static void on_path(void *ctx, const struct x25519_public *peer, const struct udp_path *path)
{
    overlay__note_path(ctx, peer, path, 0);
}

static bool is_index_taken(void *ctx, const struct x25519_public *peer, uint32_t index)
{
    return overlay__is_leased(ctx, peer, index, clock_now());
}

static int open_device(struct overlay_network *net, struct err *e)
{
    struct device_options opt = {
        .name = net->hub->interface, .tun_fd = -1, .mtu = net->hub->spec.mtu};
    struct device_listener listener = {
        .on_session = on_session, .on_path = on_path, .is_index_taken = is_index_taken, .ctx = net};
    struct diff key = {.set_key = true};
    int r = device_new(&net->device, net->overlay->port, &opt, e);

    if (r < 0)
        return r;
    device_set_listener(net->device, &listener);
    set_accept(net);
    r = device_engine_new(&net->engine, net->device);
    if (r < 0)
        return err_set(e, r, "no memory for a network");
    return engine_apply(net->engine, &key, &net->hub->secret, e);
}

/* Open the socket by which wg(8) shows the interface. Nothing else depends on it. */
static void open_uapi(struct overlay_network *net)
{
    char path[sizeof(UAPI_SOCKET_DIR) + 32];
    struct err e = ERR_NULL;

    (void)snprintf(path, sizeof(path), "%s/%s.sock", UAPI_SOCKET_DIR, device_name(net->device));
    if (uapi_server_new(&net->uapi, net->device, path, -1, &e) < 0)
        log_info("%s: not shown by wg: %s", device_name(net->device), err_text(&e));
}

/* ---- the interface -------------------------------------------------------------------------- */

/** The search for a member of a network on this machine. */
struct member_walk {
    const struct overlay_network *net;
    unsigned ifindex; /* of its interface; 0: there is none */
};

static int find_member(const struct rtnl_entry *entry, void *ctx)
{
    struct member_walk *w = ctx;
    struct hub_node *node = NULL;

    if (!ip_prefix_has(block_of(w->net, ip_addr_is_v4(&entry->prefix.addr)), &entry->prefix.addr))
        return 0;
    while ((node = hub_next_node(w->net->hub, node)))
        if (!node->spec.hub && (ip_addr_equal(&node->spec.address4, &entry->prefix.addr) ||
                                   ip_addr_equal(&node->spec.address6, &entry->prefix.addr)))
            w->ifindex = entry->ifindex;
    return 0;
}

int overlay__check_block(struct overlay *o, const struct overlay_network *net,
    const struct ip_prefix *block, struct err *e)
{
    struct member_walk member = {.net = net};
    const struct overlay_network *each;
    _cleanup_(freep) unsigned *own = NULL;
    size_t n = 2;

    list_foreach(each, &o->networks, siblings)
        n++;
    own = calloc(n, sizeof(*own));
    if (!own)
        return err_set(e, -ENOMEM, "no memory for a network");
    n = 0;
    list_foreach(each, &o->networks, siblings)
        own[n++] = each->ifindex;
    /* If the addresses cannot be read, the check below says so. */
    if (net && rtnl_each_address(&o->nl, 0, find_member, &member) == 0 && member.ifindex != 0)
        own[n++] = member.ifindex;
    return rtnl_check_free_but(&o->nl, block, own, n, e);
}

/*
 * A new network's blocks must be free. One that has members must come up whatever else has taken
 * its block meanwhile, or a restart would take the whole hub away from everybody.
 */
static int check_blocks(struct overlay_network *net, struct err *e)
{
    struct overlay *o = net->overlay;
    int r = overlay__check_block(o, net, &net->hub->spec.cidr4, e);

    if (r == 0)
        r = overlay__check_block(o, net, &net->hub->spec.cidr6, e);
    if (r != -EADDRINUSE || net->hub->n_nodes <= 1)
        return r;
    log_warning(
        "network %s: %s; members may not reach the hub", net->hub->spec.meta.name, err_text(e));
    return 0;
}

/* Turn IPv6 on, which may be off for new interfaces. If that fails, adding the address says so. */
static void turn_on_ipv6(const struct overlay_network *net)
{
    _cleanup_(closep) int fd = -1;
    char path[80];

    (void)snprintf(
        path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6", device_name(net->device));
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "0", 1) < 0)
        log_debug("%s: cannot be written: %s", path, strerror(errno));
}

/* Of the routes to the network's blocks. */
static struct rtnl_metrics metrics_of(bool v4)
{
    return (struct rtnl_metrics){
        .mtu = v4 ? RENDER_MTU_SAFE : IP_V6_MTU_MIN, /* IPv6 that is too large is cut (v6_cut.h). */
        .advmss = RENDER_MTU_SAFE - (v4 ? IP_V4_HEADER_MIN : IP_V6_HEADER) - TCP_HEADER};
}

/* What the hub sends from its own address of the network. */
static struct rtnl_rule rule_of(const struct overlay_network *net, bool v4)
{
    return (struct rtnl_rule){.table = rtnl_table_of(device_name(net->device)),
        .from = v4 ? net->hub->address4 : net->hub->address6,
        .priority = RULE_PRIORITY};
}

/* The hub's own packets leave by its own interface, also where the machine is a member too, whose
 * interface everything else takes. Without rules in this kernel that is all that is missing. */
static void add_own_way(struct overlay_network *net, bool v4, const struct rtnl_metrics *metrics)
{
    const struct rtnl_rule rule = rule_of(net, v4);
    struct netlink *nl = &net->overlay->nl;
    int r = rtnl_set_table_route(nl, net->ifindex, rule.table, block_of(net, v4), metrics);

    if (r == 0)
        r = rtnl_add_rule(nl, v4, &rule);
    if (r < 0)
        log_info("%s: a member on this machine would answer for the hub: no routing rule: %s",
            device_name(net->device), strerror(-r));
}

static void remove_rules(struct overlay_network *net)
{
    for (int v4 = 0; net->device && v4 <= 1; v4++) {
        const struct rtnl_rule rule = rule_of(net, v4);

        if (net->has_rule[v4])
            (void)rtnl_remove_rule(&net->overlay->nl, v4, &rule);
    }
}

void overlay__set_route(
    const struct overlay_network *net, const struct ip_addr *address, uint16_t mtu)
{
    bool v4 = ip_addr_is_v4(address);
    struct ip_prefix to = {.addr = *address, .len = v4 ? 32 : 128};
    /* The member knows itself how long its packets to the hub may be. */
    struct rtnl_metrics metrics = {.mtu = !v4 && mtu < IP_V6_MTU_MIN ? IP_V6_MTU_MIN : mtu,
        .advmss = net->hub->spec.mtu - (v4 ? IP_V4_HEADER_MIN : IP_V6_HEADER) - TCP_HEADER};
    const struct rtnl_rule rule = rule_of(net, v4);
    struct netlink *nl = &net->overlay->nl;
    char text[IP_ADDR_TEXT_MAX];
    int r = mtu != 0 ? rtnl_set_table_route(nl, net->ifindex, rule.table, &to, &metrics)
                     : rtnl_remove_table_route(nl, net->ifindex, rule.table, &to);

    /* As where the machine has no IPv6; the route to the block has the least. */
    if (r < 0)
        log_debug("%s: no route to %s: %s", device_name(net->device), ip_addr_format(address, text),
            strerror(-r));
}

static int add_address(struct overlay_network *net, const struct ip_addr *address)
{
    struct netlink *nl = &net->overlay->nl;
    bool v4 = ip_addr_is_v4(address);
    bool shadowed = is_shadowed(net, v4);
    const struct ip_prefix *block = block_of(net, v4);
    struct ip_prefix own = {.addr = *address, .len = block->len};
    struct rtnl_metrics metrics = metrics_of(v4);
    int r;

    if (shadowed)
        own.len = v4 ? 32 : 128;
    r = shadowed ? rtnl_add_address(nl, net->ifindex, &own)
                 : rtnl_add_bare_address(nl, net->ifindex, &own);
    if (r == 0)
        r = rtnl_add_route_behind(nl, net->ifindex, block, METRIC_BASE + net->rank, &metrics);
    if (r == 0 && !shadowed) {
        net->has_rule[v4] = true;
        add_own_way(net, v4, &metrics);
    }
    return r;
}

static int set_up_interface(struct overlay_network *net, struct err *e)
{
    const struct hub_network *hub = net->hub;
    const char *name = device_name(net->device);
    struct rtnl_link link;
    int r = rtnl_find_link(&net->overlay->nl, name, &link);

    if (r != 0)
        return err_set(e, r < 0 ? r : -ENODEV, "interface %s has gone", name);
    net->ifindex = link.ifindex;
    turn_on_ipv6(net);
    r = rtnl_accept_own(&net->overlay->nl, net->ifindex);
    if (r < 0)
        return err_set(e, r, "cannot loosen the source check of %s: %s", name, strerror(-r));
    r = rtnl_set_link(&net->overlay->nl, net->ifindex, true, 0);
    if (r < 0)
        return err_set(e, r, "cannot bring interface %s up: %s", name, strerror(-r));
    r = add_address(net, &hub->address4);
    if (r < 0)
        return err_set(e, r, "cannot give interface %s its address: %s", name, strerror(-r));
    r = add_address(net, &hub->address6);
    if (r < 0)
        log_info("%s: members reach the hub by IPv4 only: this machine has no IPv6 (%s)", name,
            strerror(-r));
    return 0;
}

/* ---- life ----------------------------------------------------------------------------------- */

int overlay__network_new(
    struct overlay_network **ret, struct overlay *o, struct hub_network *hub, struct err *e)
{
    struct overlay_network *net = calloc(1, sizeof(*net));
    int r;

    if (!net)
        return err_set(e, -ENOMEM, "no memory for a network");
    net->overlay = o;
    net->hub = hub;
    net->rank = o->next_rank++;
    htab_init(&net->by_key, hash_u64(o->seed, net->rank));
    list_add_tail(&o->networks, &net->siblings);
    r = check_blocks(net, e);
    if (r == 0)
        r = open_device(net, e);
    if (r == 0)
        r = set_up_interface(net, e);
    if (r == 0) {
        r = router_network_add(&net->router, relay_router(o->relay), &hub->public);
        if (r < 0)
            (void)err_set(e, r, "no memory for a network");
    }
    if (r < 0) {
        (void)overlay__network_free(net);
        return r;
    }
    open_uapi(net);
    *ret = net;
    return 0;
}

struct overlay_network *overlay__network_free(struct overlay_network *net)
{
    struct overlay *o;
    struct overlay_network *each;

    if (!net)
        return NULL;
    o = net->overlay;
    list_remove(&net->siblings);
    remove_rules(net);
    if (net->router)
        router_network_remove(relay_router(o->relay), net->router);
    net->uapi = uapi_server_free(net->uapi);
    net->engine = engine_close(net->engine);
    net->device = device_free(net->device);
    htab_deinit(&net->by_key);
    free(net);
    /* Another network may have been in its shadow. */
    list_foreach(each, &o->networks, siblings)
        set_accept(each);
    return NULL;
}
