/*
 * test-address-watch.c - which of a machine's addresses count, and which changes are heard of.
 *
 * The machine is a network namespace: "lan" is its network, "weft0" the overlay's interface, and
 * "weft-t%d" a WireGuard in user space, which another overlay has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <poll.h>
#include <uv.h>

#include "agent/paths/socket/local_candidates.h"
#include "net/netlink/rtnl.h"
#include "net/tun/offload.h"
#include "net/tun/tun.h"
#include "test/support/netns.h"
#include "uapi/uapi.h"

static struct world {
    struct netlink *nl;
    uv_loop_t loop;
    struct address_watch watch;
    struct candidate_blocks blocks;
    unsigned lan;
    unsigned own;
    unsigned n_changes;
} w;

static void on_change(void *ctx)
{
    assert_ptr_equal(ctx, &w);
    w.n_changes++;
}

static unsigned add_bridge(const char *name)
{
    struct rtnl_link link;

    assert_int_equal(rtnl_add_link(w.nl, name, "bridge"), 0);
    assert_int_equal(rtnl_find_link(w.nl, name, &link), 0);
    assert_int_equal(rtnl_set_link(w.nl, link.ifindex, true, 0), 0);
    return link.ifindex;
}

static void add_address(unsigned ifindex, const char *text)
{
    struct ip_prefix prefix = netns_prefix(text);

    assert_int_equal(rtnl_add_address(w.nl, ifindex, &prefix, false), 0);
}

static void add_route(unsigned ifindex, const char *text)
{
    struct ip_prefix prefix = netns_prefix(text);

    assert_int_equal(rtnl_add_route(w.nl, ifindex, &prefix, NULL), 0);
}

static void remove_route(unsigned ifindex, const char *text)
{
    struct ip_prefix prefix = netns_prefix(text);

    assert_int_equal(rtnl_remove_route(w.nl, ifindex, &prefix, NULL), 0);
}

static void begin(void **state)
{
    w = (struct world){.nl = netns_need(state), .watch = ADDRESS_WATCH_NULL};
    w.blocks.items[0] = netns_prefix("10.42.0.0/16");
    w.blocks.items[1] = netns_prefix("fd5a:1::/64");
    w.blocks.n = 2;
    (void)netns_raise_loopback(w.nl);
    w.lan = add_bridge("lan");
    w.own = add_bridge("weft0");
    add_address(w.lan, "192.0.2.5/24");
    add_address(w.own, "10.42.0.2/16");
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(address_watch_start(&w.watch, &w.loop, on_change, &w, NULL), 0);
}

static void end(void)
{
    address_watch_stop(&w.watch);
    address_watch_stop(&w.watch);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w.loop), 0);
}

static struct addresses look(void)
{
    struct addresses found;

    assert_int_equal(address_watch_look(&w.watch, "weft0", &w.blocks, &found), 0);
    return found;
}

static void assert_addresses(const struct addresses *found, const char *const *texts, unsigned n)
{
    assert_int_equal(found->n, n);
    for (unsigned i = 0; i < n; i++) {
        char text[IP_ADDR_TEXT_MAX];

        assert_string_equal(ip_addr_format(&found->items[i], text), texts[i]);
    }
}

/* Neither loopback, nor what is of one link alone, nor the overlay's, whoever has it. */
static void test_which_addresses_count(void **state)
{
    static const char *const first[] = {"192.0.2.5"};
    static const char *const more[] = {"192.0.2.5", "198.51.100.7"};
    struct addresses before, found;

    begin(state);
    add_address(w.lan, "169.254.1.1/16");
    add_address(w.lan, "10.42.3.3/32");
    add_address(w.own, "198.51.100.9/32");
    before = look();
    assert_addresses(&before, first, 1);
    found = look();
    assert_true(found.digest == before.digest && found.block_routes == before.block_routes);
    add_address(w.lan, "198.51.100.7/32");
    found = look();
    assert_addresses(&found, more, 2);
    assert_true(found.digest != before.digest);
    assert_int_equal(found.others.n, 0);
    /* Without the overlay's interface its address is an address like others. */
    assert_int_equal(address_watch_look(&w.watch, "weft-none", &w.blocks, &found), 0);
    assert_int_equal(found.n, 3);
    end();
}

static void test_most_addresses(void **state)
{
    char text[32];

    begin(state);
    for (unsigned i = 2; i <= ADDRESSES_MAX; i++) {
        assert_int_equal(look().n, i - 1);
        (void)snprintf(text, sizeof(text), "198.51.100.%u/32", i);
        add_address(w.lan, text);
    }
    assert_int_equal(look().n, ADDRESSES_MAX);
    add_address(w.lan, "198.51.100.99/32");
    assert_int_equal(look().n, ADDRESSES_MAX);
    end();
}

/* The network is another one with another default route; not with any other route, nor with one of
 * the overlay. */
static void test_which_routes_make_another_network(void **state)
{
    uint64_t before;

    begin(state);
    before = look().digest;
    add_route(w.lan, "198.18.0.0/15");
    add_route(w.own, "0.0.0.0/0");
    assert_true(look().digest == before);
    remove_route(w.own, "0.0.0.0/0");
    add_route(w.lan, "0.0.0.0/0");
    assert_true(look().digest != before);
    remove_route(w.lan, "0.0.0.0/0");
    assert_true(look().digest == before);
    end();
}

static void test_which_routes_are_the_overlays(void **state)
{
    uint64_t whole;

    begin(state);
    whole = look().block_routes;
    /* Routes elsewhere, and a part of the block that the overlay has itself. */
    add_route(w.lan, "198.18.0.0/15");
    add_route(w.own, "10.42.8.0/24");
    assert_true(look().block_routes == whole);
    add_route(w.lan, "10.42.9.0/24");
    assert_true(look().block_routes != whole);
    remove_route(w.lan, "10.42.9.0/24");
    assert_true(look().block_routes == whole);
    /* The route of the whole block is gone. */
    remove_route(w.own, "10.42.0.0/16");
    assert_true(look().block_routes != whole);
    end();
}

/* ---- another overlay of this machine -------------------------------------------------------- */

static void make_tun(struct tun *tun, char name[static IF_NAMESIZE])
{
    struct offloads offloads = offloads_all();
    struct rtnl_link link;

    (void)snprintf(name, IF_NAMESIZE, "weft-t%d", (int)getpid());
    if (tun_open(tun, name, 1, &offloads, NULL) < 0) {
        end();
        skip();
    }
    assert_int_equal(rtnl_find_link(w.nl, name, &link), 0);
    assert_int_equal(rtnl_set_link(w.nl, link.ifindex, true, 0), 0);
    add_address(link.ifindex, "10.77.0.2/32");
    add_route(link.ifindex, "10.77.0.0/16");
    add_route(link.ifindex, "172.0.0.0/7");
    add_route(link.ifindex, "64.0.0.0/6");
    add_route(link.ifindex, "169.254.7.0/24");
    add_route(w.lan, "10.77.5.0/24");
}

/* As the data plane that serves it: a socket of its name. */
static void serve(const char *name, char path[static 96])
{
    int fd;

    (void)snprintf(path, 96, "%s/%s.sock", UAPI_SOCKET_DIR, name);
    (void)mkdir(UAPI_SOCKET_DIR, 0755);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
}

static void test_another_overlay(void **state)
{
    static const char *const both[] = {"192.0.2.5", "10.77.0.2"};
    const struct ip_prefix block = netns_prefix("10.77.0.0/16");
    const struct ip_prefix large = netns_prefix("172.0.0.0/7");
    const struct ip_prefix own = netns_prefix("10.77.0.2/32");
    const struct ip_prefix part = netns_prefix("10.77.5.0/24");
    char name[IF_NAMESIZE], path[96];
    struct addresses found;
    bool has_large = false, has_block = false;
    struct tun tun;

    begin(state);
    make_tun(&tun, name);
    /* A tunnel of nobody's may be the only way out. */
    found = look();
    assert_addresses(&found, both, 2);
    assert_int_equal(found.others.n, 0);
    assert_int_equal(found.others.n_outside, 0);
    serve(name, path);
    found = look();
    (void)unlink(path);
    assert_addresses(&found, both, 1);
    /* Its blocks, but nothing of half a world's size, nor of one link alone. */
    assert_int_equal(found.others.n, 2);
    for (unsigned i = 0; i < 2; i++) {
        has_block |= ip_prefix_equal(&found.others.items[i], &block);
        has_large |= ip_prefix_equal(&found.others.items[i], &large);
    }
    assert_true(has_block && has_large);
    assert_true(candidate_blocks_have(&found.others, &own.addr));
    assert_false(candidate_blocks_have(&found.others, &part.addr));
    tun_close(&tun);
    end();
}

static void test_changes_are_heard_of(void **state)
{
    begin(state);
    for (unsigned i = 0; i < 10; i++)
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    w.n_changes = 0;
    (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    assert_int_equal(w.n_changes, 0);
    add_address(w.lan, "198.51.100.7/32");
    for (unsigned i = 0; i < 500 && w.n_changes == 0; i++) {
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
        (void)poll(NULL, 0, 10);
    }
    assert_true(w.n_changes > 0);
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_which_addresses_count, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_most_addresses, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_which_routes_make_another_network, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_which_routes_are_the_overlays, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_another_overlay, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_changes_are_heard_of, netns_enter, netns_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
