/*
 * test-reconcile.c - passes over an interface and an engine that somebody changes in between.
 *
 * The interface is a bridge in a network namespace of its own; the engine keeps what it is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/reconcile/reconcile.h"
#include "base/err.h"
#include "net/netlink/rtnl.h"
#include "net/tun/offload.h"
#include "net/tun/tun.h"
#include "test/support/netlink_writes.h"
#include "test/support/netns.h"
#include "test/support/sample_engine.h"
#include "test/support/sample_mesh.h"
#include "wire/path.h"

static const struct x25519_secret secret = {.b = {5, [31] = 0x40}};

/* The node n2 of four. */
struct world {
    struct netlink *nl;
    struct sample_engine engine;
    struct reconcile rc;
    struct snapshot snapshot;
    unsigned ifindex;
};

static unsigned add_link(struct netlink *nl, const char *name)
{
    struct rtnl_link link;

    assert_int_equal(rtnl_add_link(nl, name, "bridge"), 0);
    assert_int_equal(rtnl_find_link(nl, name, &link), 0);
    return link.ifindex;
}

/* One that no process serves; 0: this machine has no such devices. */
static unsigned add_tun(struct netlink *nl, const char *name)
{
    struct offloads offloads = offloads_all();
    struct tun t = TUN_NULL;
    struct rtnl_link link;

    if (tun_open(&t, name, 1, &offloads, NULL) != 0)
        return 0;
    assert_int_equal(tun_set_persistent(&t, true), 0);
    tun_close(&t);
    assert_int_equal(rtnl_find_link(nl, name, &link), 0);
    return link.ifindex;
}

static struct world *make_world(void **state, enum engine_kind kind)
{
    static struct world w;
    struct netlink *nl = netns_need(state);
    struct object self = sample_node(2);

    w = (struct world){.nl = nl, .ifindex = add_link(nl, "weft0")};
    sample_engine_init(&w.engine, kind);
    assert_int_equal(
        reconcile_init(&w.rc, "weft0", ENGINE_KIND_KERNEL, SUBNETS_ACCEPT_PRIVATE, NULL), 0);
    w.rc.engine = &w.engine.engine;
    w.snapshot = sample_snapshot(4, 2);
    assert_true(x25519_derive_public(&secret, &self.node.key));
    sample_put(&w.snapshot, self);
    return &w;
}

static void end_world(struct world *w)
{
    reconcile_deinit(&w->rc);
    sample_engine_deinit(&w->engine);
    snapshot_deinit(&w->snapshot);
}

/* A pass that has to succeed; the number of changes. */
static size_t pass(struct world *w)
{
    struct render_input in = {.snapshot = &w->snapshot, .link_mtu = 1440};
    struct reconcile_result result;
    struct err e = ERR_NULL;

    if (reconcile_run(&w->rc, &in, &secret, &result, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_false(result.opened);
    return result.n_changes;
}

/* The addresses of the interface that are not link-local, each followed by a space. */
struct addresses {
    char text[512];
};

static int add_address(const struct rtnl_entry *entry, void *ctx)
{
    struct addresses *a = ctx;
    char text[IP_PREFIX_TEXT_MAX];
    size_t len = strlen(a->text);

    if (!ip_addr_is_link_local(&entry->prefix.addr))
        (void)snprintf(
            a->text + len, sizeof(a->text) - len, "%s ", ip_prefix_format(&entry->prefix, text));
    return 0;
}

static void assert_interface_is_whole(struct world *w)
{
    struct addresses a = {""};
    struct rtnl_link link;

    assert_int_equal(rtnl_each_address(w->nl, w->ifindex, add_address, &a), 0);
    assert_non_null(strstr(a.text, "10.42.0.2/"));
    assert_null(strstr(a.text, "10.99."));
    assert_int_equal(rtnl_find_link(w->nl, "weft0", &link), 0);
    assert_true(link.up);
    assert_int_equal(link.mtu, 1440);
}

static void test_second_pass_touches_nothing(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);

    assert_true(pass(w) > 0);
    assert_int_equal(w->engine.config.n_peers, 3);
    assert_true(x25519_public_equal(&w->engine.config.public, &snapshot_self(&w->snapshot)->key));
    assert_interface_is_whole(w);
    assert_int_equal(w->engine.n_applied, 1);
    assert_true(netlink_writes_take() > 0);
    assert_int_equal(pass(w), 0);
    assert_int_equal(w->engine.n_applied, 1);
    assert_int_equal(netlink_writes_take(), 0);
    end_world(w);
}

/* Behind n4 is a subnet. */
static void put_router(struct world *w)
{
    struct object router = sample_node(4);

    router.node.routes = calloc(1, sizeof(*router.node.routes));
    assert_non_null(router.node.routes);
    router.node.routes->items[router.node.routes->n++] = netns_prefix("10.77.0.0/24");
    sample_put(&w->snapshot, router);
}

/* A measured path gives its peer an MTU and so two routes; a subnet behind a node gives a rule. */
static void test_pass_writes_what_differs_and_nothing_else(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct render_path paths[] = {{.node = "n3", .mtu = 1360}, {.node = "n4", .mtu = 1400}};
    struct render_input in = {
        .snapshot = &w->snapshot, .paths = paths, .n_paths = 2, .link_mtu = 1440};
    struct reconcile_result result;

    assert_int_equal(endpoint_parse(&paths[0].endpoint, "198.51.100.3:51820", NULL), 0);
    assert_int_equal(endpoint_parse(&paths[1].endpoint, "198.51.100.4:51820", NULL), 0);
    put_router(w);
    for (unsigned i = 0; i < 3; i++) {
        (void)netlink_writes_take();
        assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, NULL), 0);
    }
    assert_int_equal(netlink_writes_take(), 0);
    assert_int_equal(w->engine.n_applied, 1);
    /* Another endpoint: the engine is told of that peer, and the kernel of nothing. */
    paths[0].endpoint.port++;
    assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, NULL), 0);
    assert_int_equal(w->engine.n_applied, 2);
    assert_int_equal(w->engine.n_touched, 1);
    assert_int_equal(result.n_changes, 1);
    assert_int_equal(netlink_writes_take(), 0);
    /* Another MTU: that peer's two routes as well. */
    paths[0].mtu = 1300;
    assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, NULL), 0);
    assert_int_equal(w->engine.n_applied, 3);
    assert_int_equal(w->engine.n_touched, 1);
    assert_int_equal(netlink_writes_take(), 2);
    end_world(w);
}

/* The kernel keeps no MTU of a peer: what it was told is what it has. One in user space is asked.
 */
static void test_mtu_that_the_engine_does_not_keep(void **state)
{
    static const enum engine_kind kinds[] = {ENGINE_KIND_KERNEL, ENGINE_KIND_USERSPACE};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct world *w = make_world(state, kinds[i]);
        struct render_path path = {.node = "n3", .mtu = 1360};
        struct render_input in = {
            .snapshot = &w->snapshot, .paths = &path, .n_paths = 1, .link_mtu = 1440};
        struct x25519_public n3 = sample_key(3);
        struct reconcile_result result;

        assert_int_equal(endpoint_parse(&path.endpoint, "198.51.100.3:51820", NULL), 0);
        for (unsigned again = 0; again < 2; again++) {
            assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, NULL), 0);
            assert_int_equal(sample_engine_find(&w->engine, &n3)->mtu, again ? 0 : 1360);
            sample_engine_find(&w->engine, &n3)->mtu = 0;
            if (kinds[i] == ENGINE_KIND_USERSPACE)
                break;
        }
        assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, NULL), 0);
        assert_int_equal(result.n_changes, kinds[i] == ENGINE_KIND_USERSPACE);
        assert_int_equal(w->engine.n_touched, kinds[i] == ENGINE_KIND_USERSPACE ? 1 : 3);
        assert_int_equal(rtnl_remove_link(w->nl, w->ifindex), 0);
        end_world(w);
    }
}

static int fail_to_check_rates(struct engine *engine, struct err *e)
{
    return err_set(e, -EIO, "the process does not answer");
}

/* Whether it keeps them is asked only where there are any. */
static void test_rates_of_which_nothing_is_known(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct render_input in = {.snapshot = &w->snapshot, .link_mtu = 1440};
    struct engine_ops ops = *w->engine.engine.ops;
    struct reconcile_result result;
    struct err e = ERR_NULL;

    ops.check_rates = fail_to_check_rates;
    w->engine.engine.ops = &ops;
    assert_true(pass(w) > 0);
    w->snapshot.network.shows_dscp = true;
    assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, &e), -EIO);
    assert_string_equal(e.text, "the process does not answer");
    assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, NULL), -EIO);
    assert_int_equal(w->engine.n_applied, 1);
    assert_false(w->engine.config.shows_dscp);
    end_world(w);
}

static struct object rated_self(const struct world *w, uint64_t all)
{
    struct object self = sample_node(2);

    self.node.key = snapshot_self(&w->snapshot)->key;
    self.node.rates = calloc(1, sizeof(*self.node.rates));
    assert_non_null(self.node.rates);
    self.node.rates->all = all;
    return self;
}

static struct object rated_edge(uint64_t rate)
{
    struct object edge = sample_edge(2, 3, EDGE_PATH_AUTO);

    edge.edge.rate = rate;
    return edge;
}

/* The rate of an edge touches that peer, one of the node no peer, and neither the kernel. */
static void test_rates(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct x25519_public n3 = sample_key(3);

    assert_true(pass(w) > 0);
    (void)netlink_writes_take();
    sample_put(&w->snapshot, rated_edge(20000000));
    assert_int_equal(pass(w), 1);
    assert_int_equal(w->engine.n_touched, 1);
    assert_true(sample_engine_find(&w->engine, &n3)->rate == 20000000);
    sample_put(&w->snapshot, rated_self(w, 100000000));
    assert_int_equal(pass(w), 1);
    assert_int_equal(w->engine.n_touched, 0);
    assert_true(w->engine.config.rates.all == 100000000);
    assert_int_equal(pass(w), 0);
    sample_put(&w->snapshot, rated_edge(0));
    assert_int_equal(pass(w), 1);
    assert_true(sample_engine_find(&w->engine, &n3)->rate == 0);
    assert_int_equal(w->engine.n_applied, 4);
    assert_int_equal(netlink_writes_take(), 0);
    assert_string_equal(w->rc.rates_why, "");
    end_world(w);
}

/* One that was found is kept where the object has none, and missed nowhere. */
static void test_a_rate_that_is_found(void **state)
{
    static const enum engine_kind kinds[] = {ENGINE_KIND_KERNEL, ENGINE_KIND_USERSPACE};
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);

    w->rc.found_rate = 19000000;
    assert_true(pass(w) > 0);
    assert_true(w->engine.config.rates.all == 19000000);
    assert_int_equal(pass(w), 0);
    sample_put(&w->snapshot, rated_self(w, 100000000));
    assert_int_equal(pass(w), 1);
    assert_true(w->engine.config.rates.all == 100000000);
    sample_put(&w->snapshot, rated_self(w, 0));
    assert_int_equal(pass(w), 1);
    assert_true(w->engine.config.rates.all == 19000000);
    w->rc.found_rate = 0;
    assert_int_equal(pass(w), 1);
    assert_false(wg_config_has_rates(&w->engine.config));
    end_world(w);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        w = make_world(state, kinds[i]);
        w->engine.is_old = true;
        w->rc.found_rate = 19000000;
        assert_true(pass(w) > 0);
        assert_false(wg_config_has_rates(&w->engine.config));
        assert_string_equal(w->rc.rates_why, "");
        assert_int_equal(pass(w), 0);
        assert_int_equal(rtnl_remove_link(w->nl, w->ifindex), 0);
        end_world(w);
    }
}

/* All else holds, it is said why the rates do not, and no pass tries it again. */
static void test_rates_that_the_engine_does_not_keep(void **state)
{
    static const enum engine_kind kinds[] = {ENGINE_KIND_KERNEL, ENGINE_KIND_USERSPACE};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct world *w = make_world(state, kinds[i]);

        w->engine.is_old = true;
        sample_put(&w->snapshot, rated_edge(20000000));
        assert_true(pass(w) > 0);
        assert_int_equal(w->engine.config.n_peers, 3);
        assert_false(wg_config_has_rates(&w->engine.config));
        assert_string_equal(
            w->rc.rates_why, kinds[i] == ENGINE_KIND_KERNEL
                                 ? "the kernel's WireGuard keeps no rates and shows no DSCP; with "
                                   "\"weft join --engine userspace\" it is done"
                                 : "it is an older version");
        assert_int_equal(pass(w), 0);
        assert_int_equal(w->engine.n_applied, 1);
        sample_put(&w->snapshot, rated_edge(0));
        assert_int_equal(pass(w), 0);
        assert_string_equal(w->rc.rates_why, "");
        w->snapshot.network.shows_dscp = true;
        assert_int_equal(pass(w), 0);
        assert_true(w->rc.rates_why[0] != '\0' && !w->engine.config.shows_dscp);
        w->snapshot.network.shows_dscp = false;
        assert_int_equal(rtnl_remove_link(w->nl, w->ifindex), 0);
        end_world(w);
    }
}

/* What cannot be had is not tried in each pass. */
static void test_machine_without_v6(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    FILE *f = fopen("/proc/sys/net/ipv6/conf/weft0/disable_ipv6", "we");

    if (!f || fputs("1", f) < 0 || fclose(f) != 0)
        skip();
    (void)pass(w);
    assert_true(w->rc.lacks_v6);
    (void)netlink_writes_take();
    assert_int_equal(pass(w), 0);
    assert_int_equal(netlink_writes_take(), 0);
    end_world(w);
}

static void test_interface_that_was_changed_by_hand(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct ip_prefix foreign = netns_prefix("10.99.0.1/24");
    struct ip_prefix own;

    (void)pass(w);
    own = w->rc.applied.addresses[0];
    assert_int_equal(rtnl_remove_address(w->nl, w->ifindex, &own), 0);
    assert_int_equal(rtnl_add_address(w->nl, w->ifindex, &foreign, false), 0);
    assert_int_equal(rtnl_set_link(w->nl, w->ifindex, false, 1300), 0);
    assert_true(pass(w) >= 3);
    assert_interface_is_whole(w);
    assert_int_equal(pass(w), 0);
    /* None of it is the engine's business. */
    assert_int_equal(w->engine.n_applied, 1);
    end_world(w);
}

static int find_route(const struct rtnl_entry *entry, void *ctx)
{
    struct rtnl_entry *sought = ctx;

    if (ip_prefix_equal(&entry->prefix, &sought->prefix))
        sought->protocol = entry->protocol;
    return 0;
}

static bool has_route(struct world *w, const struct ip_prefix *to)
{
    struct rtnl_entry sought = {.prefix = *to};

    assert_int_equal(rtnl_each_route(w->nl, w->ifindex, false, find_route, &sought), 0);
    return sought.protocol != 0;
}

/* An earlier agent has made routes to what a hub gave it; they go, and the network's stay. */
static void test_routes_to_other_blocks(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct ip_prefix others[] = {netns_prefix("8.0.0.0/8"), netns_prefix("2001:db8::/32")};

    (void)pass(w);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(rtnl_set_route(w->nl, w->ifindex, &others[i], NULL), 0);
        assert_true(has_route(w, &others[i]));
    }
    assert_int_equal(pass(w), 2);
    for (size_t i = 0; i < 2; i++)
        assert_false(has_route(w, &others[i]));
    assert_true(has_route(w, &w->rc.applied.routes[0]));
    assert_int_equal(pass(w), 0);
    end_world(w);
}

static void test_engine_that_was_changed_by_hand(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);

    (void)pass(w);
    wg_peer_deinit(&w->engine.config.peers[--w->engine.config.n_peers]);
    assert_int_equal(pass(w), 1);
    assert_int_equal(w->engine.config.n_peers, 3);
    end_world(w);
}

static struct reconcile_result pass_result(struct world *w)
{
    struct render_input in = {.snapshot = &w->snapshot, .link_mtu = 1440};
    struct reconcile_result result;

    assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, NULL), 0);
    return result;
}

/* A peer that somebody has added by hand is removed and counted; one that has left the network is
 * removed alone. */
static void test_foreign_peer(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct wg_peer foreign = {.key = {.b = {0xfe, 0xed}}};
    struct x25519_public key = foreign.key;
    struct wg_peer again = foreign;

    /* What is there when the agent starts may be an earlier agent's. */
    assert_int_equal(wg_config_add(&w->engine.config, &foreign), 0);
    assert_int_equal(pass_result(w).n_foreign, 0);
    assert_null(sample_engine_find(&w->engine, &key));
    assert_int_equal(wg_config_add(&w->engine.config, &again), 0);
    assert_int_equal(pass_result(w).n_foreign, 1);
    assert_null(sample_engine_find(&w->engine, &key));
    assert_int_equal(w->engine.config.n_peers, 3);
    assert_int_equal(w->engine.n_touched, 1);
    assert_int_equal(w->rc.n_foreign, 1);
    assert_true(x25519_public_equal(&w->rc.foreign, &key));
    assert_int_equal(snapshot_delete(&w->snapshot, &node_kind, "n4", NULL), 0);
    assert_int_equal(pass_result(w).n_foreign, 0);
    assert_int_equal(w->engine.config.n_peers, 2);
    assert_int_equal(w->rc.n_foreign, 1);
    end_world(w);
}

/* An agent that was killed may have told the engine of a node after it had kept its last snapshot.
 * Its successor lets that peer's session be until it has heard who is in the network. */
static void test_peer_that_only_the_engine_knows(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct render_input in = {.snapshot = &w->snapshot, .link_mtu = 1440};
    struct endpoint at = {.addr = netns_prefix("192.0.2.9/32").addr, .port = 9};
    struct wg_peer added = {.key = {.b = {0xfe, 0xed}}, .endpoint = at};
    struct x25519_public key = added.key;

    struct wg_peer second = {.key = {.b = {0x01}}};

    assert_int_equal(wg_config_add(&w->engine.config, &added), 0);
    assert_int_equal(wg_config_add(&w->engine.config, &second), 0);
    reconcile_assume(&w->rc, &in);
    assert_true(pass(w) > 0);
    assert_int_equal(w->engine.config.n_peers, 5);
    assert_int_equal(w->engine.n_touched, 3);
    assert_int_equal(w->rc.applied.n_peers, 5);
    assert_int_equal(pass(w), 0);
    assert_int_equal(sample_engine_find(&w->engine, &key)->endpoint.port, 9);

    w->rc.keeps_unknown = false;
    assert_int_equal(pass_result(w).n_foreign, 0);
    assert_null(sample_engine_find(&w->engine, &key));
    assert_int_equal(w->engine.config.n_peers, 3);
    end_world(w);
}

/* An interface of our name that is no WireGuard: neither a pass nor a node that leaves touches it.
 */
static void test_foreign_interface(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_KERNEL);
    struct render_input in = {.snapshot = &w->snapshot};
    struct ip_prefix own = netns_prefix("10.99.0.1/24");
    struct reconcile_result result;
    struct rtnl_link link;
    struct err e = ERR_NULL;

    assert_int_equal(rtnl_add_address(w->nl, w->ifindex, &own, false), 0);
    reconcile_assume(&w->rc, &in);
    w->rc.engine = NULL;
    (void)netlink_writes_take();
    assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, &e), -EEXIST);
    assert_string_equal(e.text,
        "an interface weft0 that is no WireGuard but of the kind \"bridge\" was made by somebody "
        "else: it is left alone; remove it, or join anew with --interface");
    assert_int_equal(reconcile_take_down(&w->rc, NULL), 0);
    assert_int_equal(netlink_writes_take(), 0);
    assert_int_equal(rtnl_find_link(w->nl, "weft0", &link), 0);
    assert_int_equal(link.ifindex, w->ifindex);
    assert_false(link.up);
    end_world(w);
}

static struct wg_peer *hub_of(struct world *w)
{
    struct x25519_public key = sample_key(1);

    return sample_engine_find(&w->engine, &key);
}

/* WireGuard follows a peer that moves, and nobody interferes; but for one that seems led astray. */
static void test_endpoint_that_was_learned(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct endpoint learned = {.addr = {{[10] = 0xff, 0xff, 198, 51, 100, 9}}, .port = 7};
    struct x25519_public n3 = sample_key(3);
    struct endpoint applied;

    /* Nor before the first pass. */
    assert_false(reconcile_resend_endpoint(&w->rc, &n3, &learned));
    (void)pass(w);
    applied = hub_of(w)->endpoint;
    assert_false(endpoint_is_none(&applied));
    assert_false(reconcile_resend_endpoint(&w->rc, &hub_of(w)->key, &applied));
    /* Nothing is to be told of one that is not known. */
    assert_false(reconcile_resend_endpoint(&w->rc, &(struct x25519_public){{9}}, &learned));
    hub_of(w)->endpoint = learned;
    assert_int_equal(pass(w), 0);
    assert_true(endpoint_equal(&hub_of(w)->endpoint, &learned));
    assert_true(reconcile_resend_endpoint(&w->rc, &hub_of(w)->key, &learned));
    /* That is so already. */
    assert_false(reconcile_resend_endpoint(&w->rc, &hub_of(w)->key, &learned));
    assert_int_equal(pass(w), 1);
    assert_true(endpoint_equal(&hub_of(w)->endpoint, &applied));
    end_world(w);
}

/* An agent that is started anew does not take a learned endpoint for one that it has to tell. */
static void test_what_an_earlier_agent_applied(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct render_input in = {.snapshot = &w->snapshot, .link_mtu = 1440};
    struct endpoint learned = {.addr = {{[10] = 0xff, 0xff, 198, 51, 100, 9}}, .port = 7};

    (void)pass(w);
    hub_of(w)->endpoint = learned;
    for (unsigned assumes = 0; assumes < 2; assumes++) {
        w->rc.engine = NULL;
        reconcile_deinit(&w->rc);
        assert_int_equal(
            reconcile_init(&w->rc, "weft0", ENGINE_KIND_KERNEL, SUBNETS_ACCEPT_PRIVATE, NULL), 0);
        w->rc.engine = &w->engine.engine;
        hub_of(w)->endpoint = learned;
        if (assumes)
            reconcile_assume(&w->rc, &in);
        assert_int_equal(pass(w), assumes ? 0 : 1);
        assert_int_equal(endpoint_equal(&hub_of(w)->endpoint, &learned), assumes);
    }
    end_world(w);
}

/* WireGuard chooses its own address again for an endpoint that it is told anew: once for all. */
static void test_network_of_the_machine_changed(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);

    struct endpoint learned = {.addr = {{[10] = 0xff, 0xff, 198, 51, 100, 9}}, .port = 7};

    (void)pass(w);
    w->rc.tells_all = true;
    assert_int_equal(pass(w), 3);
    assert_int_equal(w->engine.n_applied, 2);
    assert_int_equal(pass(w), 0);
    /* One that was learned stays. */
    hub_of(w)->endpoint = learned;
    w->rc.tells_all = true;
    assert_int_equal(pass(w), 2);
    assert_true(endpoint_equal(&hub_of(w)->endpoint, &learned));
    assert_false(w->rc.tells_all);
    end_world(w);
}

static void test_engine_that_is_gone(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct render_input in = {.snapshot = &w->snapshot};
    struct wg_config have = WG_CONFIG_NULL;
    struct x25519_public key = sample_key(1);
    struct reconcile_result result;
    struct err e = ERR_NULL;

    (void)pass(w);
    assert_int_equal(reconcile_handshake(&w->rc, &key, &e), 0);
    assert_int_equal(w->engine.n_handshakes, 1);
    assert_int_equal(reconcile_observe(&w->rc, &have, &e), 0);
    assert_int_equal(have.n_peers, 3);
    wg_config_deinit(&have);
    w->engine.is_gone = true;
    assert_int_equal(reconcile_observe(&w->rc, &have, &e), ENGINE_E_GONE);
    /* A bridge is no WireGuard interface, so no other engine is to be had. */
    assert_true(reconcile_run(&w->rc, &in, &secret, &result, &e) < 0);
    assert_string_not_equal(e.text, "");
    assert_true(w->engine.is_closed);
    assert_null(w->rc.engine);
    assert_int_equal(reconcile_observe(&w->rc, &have, &e), ENGINE_E_GONE);
    assert_string_equal(e.text, "the engine of weft0 is not open");
    e = (struct err)ERR_NULL;
    assert_int_equal(reconcile_handshake(&w->rc, &key, &e), ENGINE_E_GONE);
    assert_string_equal(e.text, "the engine of weft0 is not open");
    end_world(w);
}

static void test_interface_that_is_gone(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct render_input in = {.snapshot = &w->snapshot};
    struct reconcile_result result;
    struct err e = ERR_NULL;

    (void)pass(w);
    assert_int_equal(rtnl_remove_link(w->nl, w->ifindex), 0);
    assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, &e), -ENODEV);
    assert_string_equal(e.text, "the interface weft0 is gone");
    end_world(w);
}

static void test_taken_down(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct rtnl_link link;

    struct rtnl_rule rule = {
        .table = rtnl_table_of("weft0"), .mark = RTNL_OUTER_MARK, .priority = 5187};

    assert_int_equal(w->rc.has_applied, false);
    put_router(w);
    (void)pass(w);
    assert_int_equal(rtnl_find_rule(w->nl, true, &rule), 0);
    for (unsigned again = 0; again < 2; again++) {
        assert_int_equal(rtnl_find_rule(w->nl, true, &rule), again ? RTNL_E_ABSENT : 0);
        assert_int_equal(reconcile_take_down(&w->rc, NULL), 0);
        assert_int_equal(rtnl_find_link(w->nl, "weft0", &link), RTNL_E_ABSENT);
        assert_null(w->rc.engine);
        assert_true(w->engine.is_closed);
    }
    end_world(w);
}

/* By an agent that does not know what an earlier one has set up. */
static void test_taken_down_unseen(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct rtnl_link link;

    w->rc.engine = NULL;
    assert_int_equal(reconcile_take_down(&w->rc, NULL), 0);
    assert_int_equal(rtnl_find_link(w->nl, "weft0", &link), RTNL_E_ABSENT);
    end_world(w);
}

/* The process hands the interface over; where it cannot, all is taken down and made anew. */
static void test_retired(void **state)
{
    static const struct {
        enum engine_kind kind;
        bool hands_over;
        int result;
        bool stays;
    } cases[] = {
        {ENGINE_KIND_USERSPACE, true, 0, true},
        {ENGINE_KIND_USERSPACE, false, 0, false},
        {ENGINE_KIND_KERNEL, false, ENGINE_E_UNSUPPORTED, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct world *w = make_world(state, cases[i].kind);
        struct rtnl_link link;
        struct err e = ERR_NULL;

        (void)pass(w);
        w->engine.cannot_retire = !cases[i].hands_over;
        assert_int_equal(reconcile_retire_engine(&w->rc, &e), cases[i].result);
        assert_int_equal(w->engine.is_closed, cases[i].result == 0);
        assert_int_equal(rtnl_find_link(w->nl, "weft0", &link), cases[i].stays ? 0 : RTNL_E_ABSENT);
        assert_int_equal(reconcile_take_down(&w->rc, NULL), 0);
        end_world(w);
    }
}

static int retire_late(struct engine *engine, struct err *e)
{
    return err_set(e, ENGINE_E_GONE, "the engine is gone");
}

/* One that has ended by itself, and none at all. */
static void test_nothing_to_retire(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct engine_ops ops = *w->engine.engine.ops;

    (void)pass(w);
    ops.retire = retire_late;
    w->engine.engine.ops = &ops;
    assert_int_equal(reconcile_retire_engine(&w->rc, NULL), 0);
    assert_true(w->engine.is_closed);
    assert_null(w->rc.engine);
    assert_int_equal(reconcile_retire_engine(&w->rc, NULL), 0);
    end_world(w);
}

/* An interface that the agent itself took away is not told of as one that somebody deleted. */
static void test_who_took_the_interface(void **state)
{
    for (unsigned by_agent = 0; by_agent < 2; by_agent++) {
        struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
        struct render_input in = {.snapshot = &w->snapshot};
        struct reconcile_result result;
        unsigned before = w->ifindex;

        (void)pass(w);
        w->engine.cannot_retire = true;
        if (by_agent)
            assert_int_equal(reconcile_retire_engine(&w->rc, NULL), 0);
        else
            assert_int_equal(rtnl_remove_link(w->nl, w->ifindex), 0);
        w->ifindex = add_tun(w->nl, "weft0");
        if (w->ifindex == 0)
            skip();
        assert_int_not_equal(w->ifindex, before);
        w->rc.engine = &w->engine.engine;
        assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, NULL), 0);
        assert_int_equal(result.was_gone, !by_agent);
        assert_int_equal(reconcile_take_down(&w->rc, NULL), 0);
        end_world(w);
    }
}

/* The engine answers, and its interface is nowhere: another engine is to be begun. */
static void test_engine_without_its_interface(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct render_input in = {.snapshot = &w->snapshot};
    struct reconcile_result result;

    (void)pass(w);
    assert_int_equal(rtnl_remove_link(w->nl, w->ifindex), 0);
    assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, NULL), -ENODEV);
    assert_non_null(w->rc.engine);
    assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, NULL), -ENODEV);
    assert_null(w->rc.engine);
    end_world(w);
}

/* Somebody else's interface of that name is not set up, though an engine is open. */
static void test_name_that_was_taken(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    struct render_input in = {.snapshot = &w->snapshot};
    struct addresses a = {""};
    struct reconcile_result result;
    struct err e = ERR_NULL;
    unsigned other;

    (void)pass(w);
    assert_int_equal(rtnl_remove_link(w->nl, w->ifindex), 0);
    other = add_link(w->nl, "weft0");
    assert_int_equal(reconcile_run(&w->rc, &in, &secret, &result, &e), -EEXIST);
    assert_non_null(strstr(err_text(&e), "was made by somebody else"));
    assert_int_equal(rtnl_each_address(w->nl, other, add_address, &a), 0);
    assert_string_equal(a.text, "");
    end_world(w);
}

static void test_links_of_the_machine(void **state)
{
    struct world *w = make_world(state, ENGINE_KIND_USERSPACE);
    unsigned lan = add_link(w->nl, "lan0");

    (void)pass(w);
    assert_int_equal(rtnl_set_link(w->nl, lan, true, 1400), 0);
    /* Less IPv4's header, UDP's, that of a data message, and its tag. */
    assert_int_equal(reconcile_see_links(&w->rc), 1400 - 20 - 8 - 32);
    /* Of more no path is measured. */
    assert_int_equal(rtnl_set_link(w->nl, lan, true, 20000), 0);
    assert_int_equal(reconcile_see_links(&w->rc), PATH_FRAME_MAX - 32);
    assert_int_equal(rtnl_set_link(w->nl, lan, false, 0), 0);
    assert_int_equal(reconcile_see_links(&w->rc), 0);
    end_world(w);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, netns_enter, netns_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_second_pass_touches_nothing),
        TEST(test_pass_writes_what_differs_and_nothing_else),
        TEST(test_mtu_that_the_engine_does_not_keep),
        TEST(test_rates_of_which_nothing_is_known),
        TEST(test_rates),
        TEST(test_a_rate_that_is_found),
        TEST(test_rates_that_the_engine_does_not_keep),
        TEST(test_machine_without_v6),
        TEST(test_interface_that_was_changed_by_hand),
        TEST(test_routes_to_other_blocks),
        TEST(test_engine_that_was_changed_by_hand),
        TEST(test_foreign_peer),
        TEST(test_peer_that_only_the_engine_knows),
        TEST(test_foreign_interface),
        TEST(test_endpoint_that_was_learned),
        TEST(test_what_an_earlier_agent_applied),
        TEST(test_network_of_the_machine_changed),
        TEST(test_engine_that_is_gone),
        TEST(test_interface_that_is_gone),
        TEST(test_taken_down),
        TEST(test_taken_down_unseen),
        TEST(test_retired),
        TEST(test_nothing_to_retire),
        TEST(test_who_took_the_interface),
        TEST(test_engine_without_its_interface),
        TEST(test_name_that_was_taken),
        TEST(test_links_of_the_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
