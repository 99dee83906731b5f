/* kernel.c - the engine that is the kernel's own WireGuard: see engine.h. */
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "engine/frames.h"
#include "mesh/config/diff.h"
#include "mesh/config/wg_config.h"
#include "net/netlink/genl_wg.h"
#include "net/netlink/rtnl.h"
#include "net/socket/raw_udp.h"
#include "os/clock.h"

#define LINK_KIND "wireguard"

/* ---- path frames, by raw sockets (net/socket/raw_udp.h) -------------------------------------- */

struct frames_raw {
    struct engine_frames frames;
    struct raw_udp udp;
};

static int raw_send(struct engine_frames *ef, const struct engine_frame *frame)
{
    struct frames_raw *fr = (struct frames_raw *)ef;
    struct raw_udp_packet to = {.remote = frame->remote,
        .local = frame->local,
        .dont_fragment = frame->dont_fragment,
        .hops = frame->hops};
    int r = raw_udp_send(&fr->udp, &to, frame->data, frame->len);

    /* As through `weft wg`'s frame socket: what does not go out is a lost frame, and no more. */
    return r < 0 && r != -EMSGSIZE ? 0 : r;
}

static int raw_receive(struct engine_frames *ef, struct engine_frame *ret)
{
    struct frames_raw *fr = (struct frames_raw *)ef;
    struct raw_udp_packet packet;
    int r = raw_udp_receive(&fr->udp, &packet, ret->data, sizeof(ret->data), &ret->len);

    if (r == RAW_UDP_E_EMPTY)
        return ENGINE_FRAMES_E_EMPTY;
    if (r < 0)
        return r;
    ret->remote = packet.remote;
    ret->local = packet.local;
    ret->ifindex = packet.ifindex;
    ret->received_at = clock_now();
    ret->dont_fragment = false;
    ret->hops = 0;
    return 0;
}

static void raw_close(struct engine_frames *ef)
{
    struct frames_raw *fr = (struct frames_raw *)ef;

    raw_udp_close(&fr->udp);
    free(fr);
}

static const struct engine_frames_ops raw_ops = {
    .send = raw_send,
    .receive = raw_receive,
    .close = raw_close,
};

static int kernel_open_frames(
    struct engine *engine, struct engine_frames **ret, uint16_t port, struct err *e)
{
    struct frames_raw *fr = calloc(1, sizeof(*fr));
    int r;

    if (!fr)
        return -ENOMEM;
    r = raw_udp_open(&fr->udp, port);
    if (r < 0) {
        free(fr);
        return err_set(e, r, "raw sockets beside UDP port %u do not open: %s", port, strerror(-r));
    }
    fr->frames = (struct engine_frames){.ops = &raw_ops, .fd = fr->udp.poll_fd};
    *ret = &fr->frames;
    return 0;
}

/* ---- the engine ------------------------------------------------------------------------------ */

struct kernel {
    struct engine engine;
    struct genl_wg genl;
    struct rtnl_link link; /* as it was when opened; a new one of the name has a new index */
};

static int kernel_fail(const struct kernel *k, int r, struct err *e)
{
    if (r == -ENODEV)
        return err_set(e, ENGINE_E_GONE, "the interface %s is gone", k->link.name);
    return err_set(e, r, "the kernel's WireGuard refuses %s: %s", k->link.name, strerror(-r));
}

static int kernel_get(struct engine *engine, struct wg_config *ret, struct err *e)
{
    struct kernel *k = (struct kernel *)engine;
    int r = genl_wg_get(&k->genl, k->link.ifindex, ret);

    return r < 0 ? kernel_fail(k, r, e) : 0;
}

static int kernel_apply(
    struct engine *engine, const struct diff *d, const struct x25519_secret *secret, struct err *e)
{
    struct kernel *k = (struct kernel *)engine;
    int r = genl_wg_apply(&k->genl, k->link.ifindex, d, secret);

    return r < 0 ? kernel_fail(k, r, e) : 0;
}

/* One change, which it carries out peer by peer without letting anything in between. */
static int add_again(struct kernel *k, const struct wg_peer *peer)
{
    struct wg_peer gone = {.key = peer->key};
    struct diff_peer changes[] = {
        {.op = DIFF_OP_REMOVE, .peer = gone},
        {.op = DIFF_OP_ADD,
            .peer = *peer,
            .set_psk = true,
            .set_endpoint = !endpoint_is_none(&peer->endpoint),
            .set_keepalive = true,
            .set_allowed = true},
    };
    struct diff d = {.peers = changes, .n_peers = 2};
    int r;

    /* A keepalive that is turned on is sent at once, and needs a session. */
    if (changes[1].peer.keepalive == 0)
        changes[1].peer.keepalive = UINT16_MAX;
    r = genl_wg_apply(&k->genl, k->link.ifindex, &d, NULL);
    if (r < 0 || peer->keepalive != 0)
        return r;
    changes[1].op = DIFF_OP_UPDATE;
    changes[1].set_psk = changes[1].set_endpoint = changes[1].set_allowed = false;
    changes[1].peer.keepalive = 0;
    d = (struct diff){.peers = &changes[1], .n_peers = 1};
    return genl_wg_apply(&k->genl, k->link.ifindex, &d, NULL);
}

static int kernel_handshake(struct engine *engine, const struct x25519_public *peer, struct err *e)
{
    struct kernel *k = (struct kernel *)engine;
    struct wg_config have = WG_CONFIG_NULL;
    const struct wg_peer *found;
    int r = kernel_get(engine, &have, e);

    if (r == 0)
        r = wg_config_sort(&have, e);
    if (r == 0) {
        found = wg_config_find(&have, peer);
        r = found ? add_again(k, found) : -ENOENT;
        r = r < 0 ? kernel_fail(k, r, e) : 0;
    }
    wg_config_deinit(&have);
    return r;
}

static int kernel_offloads(struct engine *engine, struct offloads *ret, struct err *e)
{
    return ENGINE_E_UNSUPPORTED;
}

static int kernel_check_rates(struct engine *engine, struct err *e)
{
    return err_set(e, ENGINE_E_UNSUPPORTED,
        "the kernel's WireGuard keeps no rates and shows no DSCP; with \"weft join --engine "
        "userspace\" it is done");
}

static int kernel_check_next_keys(struct engine *engine, struct err *e)
{
    return err_set(e, ENGINE_E_UNSUPPORTED,
        "the kernel's WireGuard has one key at a time; with \"weft join --engine userspace\" a "
        "node "
        "answers under two");
}

static int kernel_retire(struct engine *engine, struct err *e)
{
    return err_set(e, ENGINE_E_UNSUPPORTED, "the kernel engine is not a process");
}

static void kernel_close(struct engine *engine)
{
    struct kernel *k = (struct kernel *)engine;

    netlink_close(&k->genl.nl);
    free(k);
}

static const struct engine_ops kernel_ops = {
    .kind = ENGINE_KIND_KERNEL,
    .get = kernel_get,
    .apply = kernel_apply,
    .handshake = kernel_handshake,
    .offloads = kernel_offloads,
    .check_rates = kernel_check_rates,
    .check_next_keys = kernel_check_next_keys,
    .retire = kernel_retire,
    .open_frames = kernel_open_frames,
    .close = kernel_close,
};

/* The link of that name, made if there is none. Making it also loads the kernel's module. */
static int provide_link(
    struct netlink *nl, const char *interface, struct rtnl_link *ret, struct err *e)
{
    int r = rtnl_find_link(nl, interface, ret);

    if (r == RTNL_E_ABSENT) {
        r = rtnl_add_link(nl, interface, LINK_KIND);
        if (r == -EOPNOTSUPP)
            return err_set(e, ENGINE_E_UNSUPPORTED, "this kernel has no WireGuard");
        if (r == 0)
            r = rtnl_find_link(nl, interface, ret);
    }
    if (r != 0)
        return err_set(e, r < 0 ? r : -ENODEV, "the interface %s cannot be made: %s", interface,
            r < 0 ? strerror(-r) : "it is gone again");
    if (strcmp(ret->kind, LINK_KIND) != 0)
        return err_set(e, ENGINE_E_UNSUPPORTED,
            "the interface %s exists and is not the kernel's WireGuard", interface);
    return 0;
}

int engine_kernel_open(struct engine **ret, const char *interface, struct err *e)
{
    struct kernel *k = calloc(1, sizeof(*k));
    struct netlink nl;
    int r;

    if (!k)
        return -ENOMEM;
    r = netlink_open(&nl, NETLINK_ROUTE);
    if (r == 0) {
        r = provide_link(&nl, interface, &k->link, e);
        netlink_close(&nl);
    }
    if (r == 0) {
        r = genl_wg_open(&k->genl);
        if (r == GENL_WG_E_UNSUPPORTED)
            r = err_set(e, ENGINE_E_UNSUPPORTED, "this kernel's WireGuard cannot be configured");
    }
    if (r != 0) {
        free(k);
        return r;
    }
    k->engine.ops = &kernel_ops;
    *ret = &k->engine;
    return 0;
}

int engine_kernel_check(const char *interface, struct err *e)
{
    struct rtnl_link link = {.ifindex = 0};
    struct genl_wg genl;
    struct netlink nl;
    int r = netlink_open(&nl, NETLINK_ROUTE);

    if (r != 0)
        return err_set(e, r, "the kernel's netlink cannot be opened: %s", strerror(-r));
    r = provide_link(&nl, interface, &link, e);
    if (r == 0) {
        r = genl_wg_open(&genl);
        if (r == 0)
            netlink_close(&genl.nl);
        else
            (void)err_set(e, r, "this kernel's WireGuard cannot be configured");
        (void)rtnl_remove_link(&nl, link.ifindex);
    }
    netlink_close(&nl);
    return r;
}
