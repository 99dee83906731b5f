/* test-resolver-asker.c - who is a stranger to the node's name server, in a network namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/rtnetlink.h>

#include "agent/resolver.h"
#include "base/err.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "net/tun/offload.h"
#include "net/tun/tun.h"
#include "test/support/netns.h"

/* @kind: NULL: the link is there already. Return: its number. */
static unsigned add_link(
    struct netlink *nl, const char *name, const char *kind, const char *address)
{
    struct ip_prefix own = netns_prefix(address);
    struct rtnl_link link;

    if (kind)
        assert_int_equal(rtnl_add_link(nl, name, kind), 0);
    assert_int_equal(rtnl_find_link(nl, name, &link), 0);
    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 0), 0);
    assert_int_equal(rtnl_add_address(nl, link.ifindex, &own, false), 0);
    return link.ifindex;
}

/* An overlay's; skips the test where there are no such devices. */
static void open_tun(struct tun *t, const char *name)
{
    struct offloads offloads = offloads_all();
    struct err e = ERR_NULL;

    if (tun_open(t, name, 1, &offloads, &e) != 0)
        skip();
}

static enum resolver_asker who_is(struct netlink *nl, const char *asker, const char *asked)
{
    struct endpoint from;
    struct ip_addr at;

    assert_int_equal(endpoint_parse(&from, asker, NULL), 0);
    assert_int_equal(ip_addr_parse(&at, asked, NULL), 0);
    return resolver_asker_find(nl, &from, &at);
}

static bool is_local(struct netlink *nl, const char *asker, const char *asked)
{
    return who_is(nl, asker, asked) != RESOLVER_ASKER_STRANGER;
}

/* Makes the link a port of the bridge. */
static void add_port(struct netlink *nl, unsigned bridge, const char *name)
{
    struct netlink_message rq;
    struct ifinfomsg *ifi = netlink_start(&rq, RTM_NEWLINK, NLM_F_ACK, sizeof(*ifi));
    struct rtnl_link link;

    assert_int_equal(rtnl_find_link(nl, name, &link), 0);
    ifi->ifi_index = (int)link.ifindex;
    mnl_attr_put_u32(rq.nlh, IFLA_MASTER, bridge);
    assert_int_equal(netlink_request(nl, rq.nlh, NULL, NULL), 0);
}

static void test_who_is_local(void **state)
{
    struct netlink *nl = netns_need(state);
    struct ip_prefix all = netns_prefix("0.0.0.0/0");
    struct tun overlay = TUN_NULL;
    struct tun other = TUN_NULL;
    unsigned wan;

    open_tun(&overlay, "weft0");
    open_tun(&other, "vpn0");
    (void)netns_raise_loopback(nl);
    (void)add_link(nl, "weft0", NULL, "10.77.0.2/16");
    (void)add_link(nl, "docker0", "bridge", "172.17.0.1/16");
    (void)add_link(nl, "cali1", "veth", "172.18.0.1/24");
    wan = add_link(nl, "br0", "bridge", "203.0.113.11/24");
    (void)add_link(nl, "vpn0", NULL, "10.99.0.1/16");
    assert_int_equal(rtnl_add_route(nl, wan, &all, NULL), 0);

    /* This machine, from whichever of its addresses, and its containers. */
    assert_int_equal(who_is(nl, "10.77.0.2:4000", "10.77.0.2"), RESOLVER_ASKER_MACHINE);
    assert_int_equal(who_is(nl, "172.17.0.1:4000", "10.77.0.2"), RESOLVER_ASKER_MACHINE);
    assert_int_equal(who_is(nl, "127.0.1.9:4000", "10.77.0.2"), RESOLVER_ASKER_MACHINE);
    assert_int_equal(who_is(nl, "172.17.0.9:4000", "10.77.0.2"), RESOLVER_ASKER_CONTAINER);
    assert_int_equal(who_is(nl, "172.18.0.2:4000", "10.77.0.2"), RESOLVER_ASKER_CONTAINER);
    /* A neighbour, though by a bridge; the Internet; another overlay. */
    assert_false(is_local(nl, "203.0.113.12:4000", "10.77.0.2"));
    assert_false(is_local(nl, "198.51.100.7:4000", "10.77.0.2"));
    assert_false(is_local(nl, "10.99.0.7:4000", "10.77.0.2"));
    /* Where nothing leads out, nobody is there but these. */
    assert_int_equal(rtnl_remove_route(nl, wan, &all, NULL), 0);
    assert_true(is_local(nl, "172.17.0.9:4000", "10.77.0.2"));
    assert_false(is_local(nl, "198.51.100.7:4000", "10.77.0.2"));
    tun_close(&overlay);
    tun_close(&other);
}

static void test_over_ipv6(void **state)
{
    struct netlink *nl = netns_need(state);
    struct tun overlay = TUN_NULL;
    struct tun other = TUN_NULL;

    open_tun(&overlay, "weft0");
    open_tun(&other, "vpn0");
    (void)netns_raise_loopback(nl);
    (void)add_link(nl, "weft0", NULL, "fd77::2/48");
    (void)add_link(nl, "docker0", "bridge", "fd17::1/64");
    (void)add_link(nl, "vpn0", NULL, "fd99::1/64");
    assert_true(is_local(nl, "[fd77::2]:4000", "fd77::2"));
    assert_true(is_local(nl, "[fd17::1]:4000", "fd77::2"));
    assert_true(is_local(nl, "[fd17::9]:4000", "fd77::2"));
    assert_false(is_local(nl, "[fd99::7]:4000", "fd77::2"));
    assert_false(is_local(nl, "[2001:db8:7::1]:4000", "fd77::2"));
    tun_close(&overlay);
    tun_close(&other);
}

/* A second LAN, by a bridge that the default route has nothing to do with. */
static void test_bridge_that_leads_elsewhere(void **state)
{
    struct netlink *nl = netns_need(state);
    struct tun overlay = TUN_NULL;
    unsigned bridge;

    open_tun(&overlay, "weft0");
    (void)add_link(nl, "weft0", NULL, "10.77.0.2/16");
    (void)add_link(nl, "cali1", "veth", "172.18.0.1/24");
    bridge = add_link(nl, "br1", "bridge", "172.30.0.1/24");
    add_port(nl, bridge, "cali1");
    assert_true(is_local(nl, "172.30.0.9:4000", "10.77.0.2"));
    /* No kind that a container has stands for all that lead out: hardware cannot be made here. */
    if (rtnl_add_link(nl, "card", "ifb") == 0) {
        assert_true(is_local(nl, "172.30.0.9:4000", "10.77.0.2"));
        add_port(nl, bridge, "card");
        assert_false(is_local(nl, "172.30.0.9:4000", "10.77.0.2"));
    }
    tun_close(&overlay);
}

static void test_ports(void **state)
{
    static const char *const elsewhere[] = {
        "", "vlan", "bond", "team", "vxlan", "geneve", "gretap", "macvlan"};

    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
        assert_false(resolver_asker_is_port_inside(elsewhere[i]));
    assert_true(resolver_asker_is_port_inside("veth"));
    assert_true(resolver_asker_is_port_inside("netkit"));
    assert_true(resolver_asker_is_port_inside("tun"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_is_local, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_over_ipv6, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_bridge_that_leads_elsewhere, netns_enter, netns_leave),
        cmocka_unit_test(test_ports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
