/*
 * test-interface-owner.c - whose an interface is, what becomes of one that was renamed, and what
 * else of the machine a pass looks at.
 *
 * In a network namespace; the engine keeps what it is told. Where an interface is to be served by a
 * data plane, a thread of the test answers at its socket with a key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/reconcile/reconcile.h"
#include "base/err.h"
#include "base/text.h"
#include "net/netlink/rtnl.h"
#include "net/socket/unix_socket.h"
#include "net/tun/offload.h"
#include "net/tun/tun.h"
#include "test/support/netlink_writes.h"
#include "test/support/netns.h"
#include "test/support/sample_engine.h"
#include "test/support/sample_mesh.h"
#include "uapi/uapi.h"

static const struct x25519_secret secret = {.b = {5, [31] = 0x40}};

/* The node n2 of four. */
static struct world {
    struct netlink *nl;
    char interface[16]; /* that nobody else on this machine has: sockets have its name */
    struct sample_engine engine;
    struct reconcile rc;
    struct snapshot snapshot;
    struct reconcile_result result;
    struct err e;
} w;

static int enter(void **state)
{
    struct object self = sample_node(2);

    if (netns_enter(state) != 0)
        return -1;
    if (!*state)
        return 0;
    memset(&w, 0, sizeof(w));
    w.nl = *state;
    (void)snprintf(w.interface, sizeof(w.interface), "wt%u", (unsigned)getpid() % 1000000);
    sample_engine_init(&w.engine, ENGINE_KIND_USERSPACE);
    w.snapshot = sample_snapshot(4, 2);
    assert_true(x25519_derive_public(&secret, &self.node.key));
    sample_put(&w.snapshot, self);
    return reconcile_init(&w.rc, w.interface, ENGINE_KIND_KERNEL, SUBNETS_ACCEPT_PRIVATE, NULL);
}

static int leave(void **state)
{
    if (!*state)
        return 0;
    reconcile_deinit(&w.rc);
    sample_engine_deinit(&w.engine);
    snapshot_deinit(&w.snapshot);
    return netns_leave(state);
}

/* One that no process serves. */
static unsigned add_tun(const char *name)
{
    struct offloads offloads = offloads_all();
    struct tun t = TUN_NULL;
    struct rtnl_link link;

    if (tun_open(&t, name, 1, &offloads, NULL) != 0)
        skip();
    assert_int_equal(tun_set_persistent(&t, true), 0);
    tun_close(&t);
    assert_int_equal(rtnl_find_link(w.nl, name, &link), 0);
    return link.ifindex;
}

static unsigned add_bridge(const char *name)
{
    struct rtnl_link link;

    assert_int_equal(rtnl_add_link(w.nl, name, "bridge"), 0);
    assert_int_equal(rtnl_find_link(w.nl, name, &link), 0);
    return link.ifindex;
}

static void add_address(unsigned ifindex, const char *text)
{
    struct ip_prefix p = netns_prefix(text);

    assert_int_equal(rtnl_add_address(w.nl, ifindex, &p, false), 0);
}

static int pass_with_port(uint16_t port)
{
    struct render_input in = {.snapshot = &w.snapshot, .link_mtu = 1440, .listen_port = port};

    w.e = (struct err)ERR_NULL;
    memset(&w.result, 0, sizeof(w.result));
    return reconcile_run(&w.rc, &in, &secret, &w.result, &w.e);
}

static int pass(void)
{
    return pass_with_port(0);
}

static void pass_well(void)
{
    if (pass() != 0)
        fail_msg("%s", err_text(&w.e));
}

static bool is_called(unsigned ifindex, const char *name)
{
    struct rtnl_link link;

    return rtnl_find_link(w.nl, name, &link) == 0 && link.ifindex == ifindex;
}

/* An interface that a pass has set up; its number. */
static unsigned begin(void)
{
    unsigned ifindex = add_bridge(w.interface);

    w.rc.engine = &w.engine.engine;
    pass_well();
    assert_string_equal(w.e.text, "");
    return ifindex;
}

/* ---- what somebody has changed --------------------------------------------------------------- */

/* A pass that finds @n_changes, of which nothing is worth telling. */
static void pass_that_changes(size_t n_changes)
{
    pass_well();
    assert_int_equal(w.result.n_changes, n_changes);
    assert_false(w.result.was_gone || w.result.was_down || w.result.lost_route || w.result.opened);
    assert_string_equal(w.result.renamed, "");
    assert_int_equal(w.result.n_foreign, 0);
}

/* A key and three peers; two addresses; the interface, which is set up; and two routes. */
static void test_all_changes_are_counted(void **state)
{
    (void)netns_need(state);
    (void)add_bridge(w.interface);
    w.rc.engine = &w.engine.engine;
    pass_that_changes(1 + 3 + 2 + 1 + 2);
    pass_that_changes(0);
    assert_int_equal(pass_with_port(51820), 0);
    assert_int_equal(w.result.n_changes, 1);
    w.snapshot.network.shows_dscp = true;
    pass_that_changes(1);
    w.engine.config.fwmark = 7;
    pass_that_changes(1);
    w.engine.config.is_relay = true;
    pass_that_changes(1);
}

/* An engine that begins is told of with the first pass that succeeds. */
static void test_an_engine_that_was_opened(void **state)
{
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = begin();
    w.rc.has_opened = true;
    assert_int_equal(rtnl_remove_link(w.nl, ifindex), 0);
    assert_int_equal(pass(), -ENODEV);
    assert_false(w.result.opened);
    (void)add_tun(w.interface);
    pass_well();
    assert_true(w.result.opened);
    pass_well();
    assert_false(w.result.opened);
}

static void test_an_interface_that_was_set_down(void **state)
{
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = begin();
    assert_int_equal(rtnl_set_link(w.nl, ifindex, false, 0), 0);
    pass_well();
    assert_true(w.result.was_down);
    assert_false(w.result.was_gone);
    /* Its routes have gone with that, and nobody has taken them. */
    assert_false(w.result.lost_route);
    pass_that_changes(0);
    /* And one of which only the MTU is another. */
    assert_int_equal(rtnl_set_link(w.nl, ifindex, true, 1300), 0);
    pass_that_changes(1);
    pass_that_changes(0);
}

static void test_a_route_that_was_removed(void **state)
{
    struct rtnl_route other = {.metrics = {.mtu = 1280}};
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = begin();
    for (unsigned i = 0; i < w.rc.applied.n_routes; i++) {
        const struct ip_prefix to = w.rc.applied.routes[i];

        assert_int_equal(rtnl_remove_route(w.nl, ifindex, &to, NULL), 0);
        pass_well();
        assert_true(w.result.lost_route);
        assert_true(ip_prefix_equal(&w.result.route, &to));
        assert_int_equal(w.result.n_changes, 1);
        assert_false(w.result.was_down || w.result.was_gone);
        /* One that says something else is there all the same. */
        other.metrics = (struct rtnl_metrics){.mtu = 1280};
        assert_int_equal(rtnl_set_route(w.nl, ifindex, &to, &other), 0);
        pass_that_changes(1);
        other.metrics = (struct rtnl_metrics){.mtu = w.rc.applied.route_mtu, .advmss = 500};
        assert_int_equal(rtnl_set_route(w.nl, ifindex, &to, &other), 0);
        pass_that_changes(1);
        pass_that_changes(0);
    }
    /* What a pass had not set is not lost. */
    w.rc.is_whole = false;
    assert_int_equal(rtnl_remove_route(w.nl, ifindex, &w.rc.applied.routes[0], NULL), 0);
    pass_that_changes(1);
    assert_true(w.rc.is_whole);
}

static bool is_route_there;

static int look_for_route(const struct rtnl_entry *entry, void *ctx)
{
    is_route_there = is_route_there || ip_prefix_equal(&entry->prefix, ctx);
    return 0;
}

static bool has_route(unsigned ifindex, const char *text)
{
    struct ip_prefix to = netns_prefix(text);

    is_route_there = false;
    assert_int_equal(rtnl_each_route(w.nl, ifindex, false, look_for_route, &to), 0);
    return is_route_there;
}

/* Of routes of an earlier version those go that lead beyond the network; of others none. */
static void test_which_routes_are_removed(void **state)
{
    static const char *const routes[] = {
        "10.42.128.0/17", "10.42.0.0/15", "8.0.0.0/8", "9.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8"};
    struct rtnl_route by_hand = {.protocol = RTPROT_BOOT};
    struct ip_prefix other = netns_prefix("13.0.0.0/8");
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = begin();
    assert_int_equal(rtnl_set_route(w.nl, ifindex, &other, &by_hand), 0);
    for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
        struct ip_prefix to = netns_prefix(routes[i]);

        assert_int_equal(rtnl_set_route(w.nl, ifindex, &to, NULL), 0);
    }
    /* A pass removes four of them. */
    pass_that_changes(4);
    pass_that_changes(1);
    pass_that_changes(0);
    assert_true(has_route(ifindex, "10.42.128.0/17"));
    assert_true(has_route(ifindex, "13.0.0.0/8"));
    for (size_t i = 1; i < sizeof(routes) / sizeof(*routes); i++)
        assert_false(has_route(ifindex, routes[i]));
}

/* Four of others go in a pass; the kernel's own stay; one of ours with another block is replaced.
 */
static void test_which_addresses_are_removed(void **state)
{
    static const char *const others[] = {
        "10.99.0.1/24", "10.99.1.1/24", "10.99.2.1/24", "10.99.3.1/24", "10.99.4.1/24"};
    struct ip_prefix own;
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = begin();
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        add_address(ifindex, others[i]);
    pass_that_changes(4);
    pass_that_changes(1);
    add_address(ifindex, "fe80::7/64");
    pass_that_changes(0);
    own = w.rc.applied.addresses[1];
    assert_int_equal(rtnl_remove_address(w.nl, ifindex, &own), 0);
    own.len = 96;
    assert_int_equal(rtnl_add_address(w.nl, ifindex, &own, true), 0);
    pass_that_changes(2);
    pass_that_changes(0);
}

/* Only one that is missed twice in a row is begun anew. */
static void test_an_interface_that_is_missed_now_and_then(void **state)
{
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = add_tun(w.interface);
    w.rc.engine = &w.engine.engine;
    for (unsigned i = 0; i < 2; i++) {
        pass_well();
        assert_int_equal(w.result.was_gone, i > 0);
        assert_false(w.result.was_down || w.result.lost_route);
        assert_int_equal(rtnl_remove_link(w.nl, ifindex), 0);
        assert_int_equal(pass(), -ENODEV);
        assert_non_null(w.rc.engine);
        ifindex = add_tun(w.interface);
    }
    pass_well();
    assert_int_equal(rtnl_remove_link(w.nl, ifindex), 0);
    assert_int_equal(pass(), -ENODEV);
    assert_int_equal(pass(), -ENODEV);
    assert_null(w.rc.engine);
    assert_false(w.rc.has_lost);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void test_an_interface_that_was_renamed(void **state)
{
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = add_tun(w.interface);
    w.rc.engine = &w.engine.engine;
    pass_well();
    assert_string_equal(w.result.renamed, "");
    assert_int_equal(rtnl_set_link(w.nl, ifindex, false, 0), 0);
    assert_int_equal(rtnl_rename_link(w.nl, ifindex, "other"), 0);
    pass_well();
    assert_string_equal(w.result.renamed, "other");
    assert_true(is_called(ifindex, w.interface));
    /* It was down, and its routes have gone with that; nobody has taken them. */
    assert_false(w.result.was_gone || w.result.lost_route);
    pass_that_changes(0);
    /* One that is up. */
    assert_int_equal(rtnl_rename_link(w.nl, ifindex, "other"), 0);
    pass_well();
    assert_string_equal(w.result.renamed, "other");
    assert_int_equal(w.result.n_changes, 1);
    assert_false(w.result.was_gone || w.result.was_down || w.result.lost_route);
    pass_that_changes(0);
    /* It is known by its number, though it has lost its addresses. */
    for (unsigned i = 0; i < 2; i++) {
        const struct ip_prefix own = w.rc.applied.addresses[i];

        assert_int_equal(rtnl_remove_address(w.nl, ifindex, &own), 0);
    }
    assert_int_equal(rtnl_rename_link(w.nl, ifindex, "other"), 0);
    pass_well();
    assert_string_equal(w.result.renamed, "other");
    assert_true(is_called(ifindex, w.interface));
}

/* Its engine has made another one, which has another name. */
static void test_another_one_with_our_address(void **state)
{
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = add_tun(w.interface);
    w.rc.engine = &w.engine.engine;
    pass_well();
    assert_int_equal(rtnl_remove_link(w.nl, ifindex), 0);
    (void)add_tun("another");
    ifindex = add_tun("other");
    add_address(ifindex, "10.42.0.2/16");
    pass_well();
    assert_string_equal(w.result.renamed, "other");
    assert_true(is_called(ifindex, w.interface));
}

/* By an agent that has just begun: it knows the interface by the node's address. */
static void test_one_that_was_renamed_before_the_start(void **state)
{
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = add_tun("other");
    add_address(ifindex, "10.42.0.2/16");
    w.rc.engine = &w.engine.engine;
    pass_well();
    assert_string_equal(w.result.renamed, "other");
    assert_true(is_called(ifindex, w.interface));
}

/* What has that address and is no tunnel was made by somebody else. */
static void test_an_address_on_another_interface(void **state)
{
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = add_bridge("lan0");
    add_address(ifindex, "10.42.0.2/16");
    w.rc.engine = &w.engine.engine;
    (void)add_tun(w.interface);
    pass_well();
    assert_string_equal(w.result.renamed, "");
    assert_true(is_called(ifindex, "lan0"));
}

static void test_a_name_that_another_one_has_now(void **state)
{
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = add_tun(w.interface);
    w.rc.engine = &w.engine.engine;
    pass_well();
    assert_int_equal(rtnl_set_link(w.nl, ifindex, false, 0), 0);
    assert_int_equal(rtnl_rename_link(w.nl, ifindex, "other"), 0);
    (void)add_bridge(w.interface);
    assert_int_equal(pass(), -EEXIST);
    assert_non_null(strstr(w.e.text, " was renamed to other, and cannot be named back: another one "
                                     "has its name now"));
    assert_true(is_called(ifindex, "other"));
}

/* ---- whose it is, without a key -------------------------------------------------------------- */

static void test_a_tunnel_with_an_address_of_others(void **state)
{
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = add_tun(w.interface);
    add_address(ifindex, "10.99.0.1/24");
    assert_int_equal(pass(), -EEXIST);
    assert_non_null(strstr(w.e.text, " with the address 10.99.0.1/24 was made by somebody else: it "
                                     "is left alone; remove it, or join anew with --interface"));
}

/* Then it is another reason why a kernel's engine cannot be had. */
static void is_taken_for_ours(void)
{
    (void)pass();
    if (strstr(w.e.text, "somebody else"))
        fail_msg("%s", err_text(&w.e));
}

static void test_a_tunnel_with_our_address(void **state)
{
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = add_tun(w.interface);
    add_address(ifindex, "10.99.0.1/24");
    add_address(ifindex, "10.42.0.2/16");
    is_taken_for_ours();
}

/* Those that the kernel gives by itself do not count. */
static void test_a_tunnel_without_addresses(void **state)
{
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = add_tun(w.interface);
    is_taken_for_ours();
    add_address(ifindex, "fe80::7/64");
    is_taken_for_ours();
}

/* The hub has given this node another address while its agent was away. */
static void test_a_tunnel_with_the_address_of_before(void **state)
{
    struct render_input before = {.snapshot = &w.snapshot};
    struct object self = sample_node(2);
    unsigned ifindex;

    (void)netns_need(state);
    ifindex = add_tun(w.interface);
    add_address(ifindex, "10.42.0.2/16");
    reconcile_assume(&w.rc, &before);
    self.node.key = snapshot_self(&w.snapshot)->key;
    self.node.address4.b[15] = 99;
    sample_put(&w.snapshot, self);
    is_taken_for_ours();
}

/* ---- whose it is, by its key ----------------------------------------------------------------- */

/* What a data plane says, of that secret; until it was asked @n times. */
struct data_plane {
    pthread_t thread;
    int fd;
    unsigned n;
    char path[64];
    char answer[256];
};

static void *serve(void *arg)
{
    struct data_plane *d = arg;

    for (unsigned i = 0; i < d->n; i++) {
        int fd = accept(d->fd, NULL, NULL);
        char request[256];
        ssize_t n = read(fd, request, sizeof(request));

        if (n > 0)
            (void)!write(fd, d->answer, strlen(d->answer));
        (void)close(fd);
    }
    return NULL;
}

static void start_data_plane_that_says(struct data_plane *d, const char *answer, unsigned n)
{
    d->n = n;
    (void)snprintf(d->path, sizeof(d->path), "%s/%s.sock", UAPI_SOCKET_DIR, w.interface);
    (void)snprintf(d->answer, sizeof(d->answer), "%s", answer);
    d->fd = unix_socket_listen(d->path, SOCK_STREAM, 0600);
    assert_true(d->fd >= 0);
    assert_int_equal(fcntl(d->fd, F_SETFL, 0), 0);
    assert_int_equal(pthread_create(&d->thread, NULL, serve, d), 0);
}

static void start_data_plane(struct data_plane *d, const struct x25519_secret *of, unsigned n)
{
    char hex[2 * sizeof(of->b) + 1];
    char answer[sizeof(d->answer)];

    hex_encode(of->b, sizeof(of->b), hex);
    (void)snprintf(answer, sizeof(answer), "private_key=%s\nlisten_port=7\nerrno=0\n\n", hex);
    start_data_plane_that_says(d, answer, n);
}

static void end_data_plane(struct data_plane *d)
{
    (void)shutdown(d->fd, SHUT_RDWR);
    assert_int_equal(pthread_join(d->thread, NULL), 0);
    (void)close(d->fd);
    (void)unlink(d->path);
}

static void test_a_tunnel_with_the_key_of_another(void **state)
{
    const struct x25519_secret other = {.b = {9, [31] = 0x40}};
    struct data_plane d;

    (void)netns_need(state);
    (void)add_tun(w.interface);
    start_data_plane(&d, &other, 20);
    assert_int_equal(pass(), -EEXIST);
    assert_non_null(strstr(w.e.text, " with the public key "));
    assert_non_null(strstr(w.e.text, ", which is not this node's, was made by somebody else: "));
    end_data_plane(&d);
}

static void test_a_tunnel_with_our_key(void **state)
{
    struct data_plane d;

    (void)netns_need(state);
    (void)add_tun(w.interface);
    start_data_plane(&d, &secret, 20);
    is_taken_for_ours();
    end_data_plane(&d);
}

/* Before the hub was told of another key. */
static void test_a_tunnel_with_the_key_of_before(void **state)
{
    const struct x25519_secret old = {.b = {9, [31] = 0x40}};
    struct render_input before = {.snapshot = &w.snapshot};
    struct object self = sample_node(2);
    struct x25519_public ours;
    struct data_plane d;

    (void)netns_need(state);
    ours = snapshot_self(&w.snapshot)->key;
    assert_true(x25519_derive_public(&old, &self.node.key));
    sample_put(&w.snapshot, self);
    reconcile_assume(&w.rc, &before);
    self = sample_node(2);
    self.node.key = ours;
    sample_put(&w.snapshot, self);
    (void)add_tun(w.interface);
    start_data_plane(&d, &old, 20);
    is_taken_for_ours();
    end_data_plane(&d);
}

/* Where it does not say what it has, its addresses are not looked at. */
static void test_a_tunnel_that_does_not_answer(void **state)
{
    struct data_plane d;
    unsigned ifindex;
    int r;

    (void)netns_need(state);
    ifindex = add_tun(w.interface);
    add_address(ifindex, "10.99.0.1/24");
    start_data_plane_that_says(&d, "errno=5\n\n", 20);
    r = pass();
    assert_true(r < 0 && r != -EEXIST);
    assert_null(strstr(w.e.text, "somebody else"));
    end_data_plane(&d);
}

static void test_which_interface_has_a_key(void **state)
{
    const struct x25519_secret other = {.b = {9, [31] = 0x40}};
    struct x25519_public ours;
    struct x25519_public theirs;
    struct data_plane d;
    unsigned ifindex;
    unsigned found = 0;

    (void)netns_need(state);
    assert_true(x25519_derive_public(&secret, &ours));
    assert_true(x25519_derive_public(&other, &theirs));
    /* There is none, or it is none of WireGuard's, or nobody serves it. */
    assert_false(ownership_is_of_key(w.nl, w.interface, &ours, &found));
    (void)add_bridge("lan0");
    assert_false(ownership_is_of_key(w.nl, "lan0", &ours, &found));
    ifindex = add_tun(w.interface);
    assert_false(ownership_is_of_key(w.nl, w.interface, &ours, &found));
    assert_false(ownership_is_of_key(w.nl, "a-name-that-is-too-long", &ours, &found));
    start_data_plane(&d, &secret, 20);
    assert_false(ownership_is_of_key(w.nl, w.interface, &theirs, &found));
    assert_int_equal(found, 0);
    assert_true(ownership_is_of_key(w.nl, w.interface, &ours, &found));
    assert_int_equal(found, ifindex);
    end_data_plane(&d);
    /* One without a key has that of nobody. */
    start_data_plane_that_says(&d, "listen_port=7\nerrno=0\n\n", 20);
    found = 0;
    assert_false(ownership_is_of_key(w.nl, w.interface, &(struct x25519_public){{0}}, &found));
    assert_int_equal(found, 0);
    end_data_plane(&d);
}

/* ---- a hub on this machine ------------------------------------------------------------------- */

/* Its packets come in by our interface from an address of this machine. */
static void test_a_hub_on_this_machine(void **state)
{
    unsigned hub;

    (void)netns_need(state);
    (void)add_bridge(w.interface);
    w.rc.engine = &w.engine.engine;
    pass_well();
    assert_false(w.rc.has_own_hub);
    assert_int_equal(interface_setting(w.interface, true, "accept_local"), 0);
    hub = add_bridge("weft-hub");
    add_address(hub, "10.42.0.1/16");
    pass_well();
    assert_true(w.rc.has_own_hub);
    assert_int_equal(interface_setting(w.interface, true, "accept_local"), 1);
    /* That is done once. */
    (void)netlink_writes_take();
    pass_well();
    assert_int_equal(netlink_writes_take(), 0);
    assert_int_equal(rtnl_remove_link(w.nl, hub), 0);
    pass_well();
    assert_false(w.rc.has_own_hub);
}

static void test_settings_of_an_interface(void **state)
{
    (void)netns_need(state);
    (void)add_bridge("lan0");
    assert_int_equal(interface_setting("lan0", true, "accept_local"), 0);
    assert_int_equal(interface_setting("lan0", true, "nothing"), -1);
    assert_int_equal(interface_setting("gone", true, "accept_local"), -1);
}

/* ---- the port of WireGuard ------------------------------------------------------------------- */

static const struct engine_ops *ops_before;
static unsigned listen_errno;

/* As an engine in user space, which says it when it is asked. */
static int get_with_errno(struct engine *engine, struct wg_config *ret, struct err *e)
{
    int r = ops_before->get(engine, ret, e);

    ret->listen_errno = listen_errno;
    return r;
}

static void test_a_port_that_another_program_has(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(40125)};
    struct engine_ops ops;
    int fd;

    (void)netns_need(state);
    (void)add_bridge(w.interface);
    w.rc.engine = &w.engine.engine;
    ops_before = w.engine.engine.ops;
    ops = *ops_before;
    ops.get = get_with_errno;
    w.engine.engine.ops = &ops;
    listen_errno = EADDRINUSE;
    assert_int_equal(pass_with_port(40125), -EADDRINUSE);
    assert_string_equal(w.e.text, "UDP port 40125 was in use (EADDRINUSE)");
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(pass_with_port(40125), -EADDRINUSE);
    assert_non_null(strstr(w.e.text, "; end it, or have it use another port: this node takes 40125 "
                                     "as soon as it is free"));
    (void)close(fd);
    /* Any other port will do where none was asked for. */
    assert_int_equal(pass_with_port(0), 0);
    listen_errno = 0;
    assert_int_equal(pass_with_port(40125), 0);
    w.engine.engine.ops = ops_before;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_changes_are_counted),
        TEST(test_an_engine_that_was_opened),
        TEST(test_an_interface_that_was_set_down),
        TEST(test_a_route_that_was_removed),
        TEST(test_which_routes_are_removed),
        TEST(test_which_addresses_are_removed),
        TEST(test_an_interface_that_is_missed_now_and_then),
        TEST(test_an_interface_that_was_renamed),
        TEST(test_another_one_with_our_address),
        TEST(test_one_that_was_renamed_before_the_start),
        TEST(test_an_address_on_another_interface),
        TEST(test_a_name_that_another_one_has_now),
        TEST(test_a_tunnel_with_an_address_of_others),
        TEST(test_a_tunnel_with_our_address),
        TEST(test_a_tunnel_without_addresses),
        TEST(test_a_tunnel_with_the_address_of_before),
        TEST(test_a_tunnel_with_the_key_of_another),
        TEST(test_a_tunnel_with_our_key),
        TEST(test_a_tunnel_with_the_key_of_before),
        TEST(test_a_tunnel_that_does_not_answer),
        TEST(test_which_interface_has_a_key),
        TEST(test_a_hub_on_this_machine),
        TEST(test_settings_of_an_interface),
        TEST(test_a_port_that_another_program_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
