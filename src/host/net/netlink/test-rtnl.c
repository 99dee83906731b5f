/*
 * test-rtnl.c - links, addresses and routes, in a network namespace of its own.
 *
 * Without the right to make one the tests are skipped, and say so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "net/netlink/rtnl.h"
#include "test/support/emulated.h"
#include "test/support/netns.h"

static struct rtnl_link add_link(struct netlink *nl, const char *name)
{
    struct rtnl_link link;

    assert_int_equal(rtnl_add_link(nl, name, "bridge"), 0);
    assert_int_equal(rtnl_find_link(nl, name, &link), 0);
    return link;
}

static void test_link(void **state)
{
    struct netlink *nl = netns_need(state);
    struct rtnl_link link;

    assert_int_equal(rtnl_find_link(nl, "weft0", &link), RTNL_E_ABSENT);
    link = add_link(nl, "weft0");
    assert_string_equal(link.name, "weft0");
    assert_string_equal(link.kind, "bridge");
    assert_false(link.up);
    assert_int_equal(rtnl_add_link(nl, "weft0", "bridge"), -EEXIST);

    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 1420), 0);
    assert_int_equal(rtnl_find_link(nl, "weft0", &link), 0);
    assert_true(link.up);
    assert_int_equal(link.mtu, 1420);
    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 0), 0);
    assert_int_equal(rtnl_find_link(nl, "weft0", &link), 0);
    assert_int_equal(link.mtu, 1420);

    assert_int_equal(rtnl_set_segments(nl, link.ifindex, 45), 0);
    assert_true(rtnl_set_segments(nl, link.ifindex, UINT32_MAX) < 0);

    assert_int_equal(rtnl_remove_link(nl, link.ifindex), 0);
    assert_int_equal(rtnl_remove_link(nl, link.ifindex), 0);
    assert_int_equal(rtnl_find_link(nl, "weft0", &link), RTNL_E_ABSENT);
    assert_true(rtnl_add_link(nl, "weft0", "no-such-kind") < 0);
}

/* Counts the entries that equal @wanted. */
struct count {
    struct ip_prefix wanted;
    unsigned n;
};

static int count_entry(const struct rtnl_entry *entry, void *ctx)
{
    struct count *c = ctx;

    c->n += ip_prefix_equal(&entry->prefix, &c->wanted);
    return 0;
}

static unsigned count_addresses(struct netlink *nl, unsigned ifindex, const char *text)
{
    struct count c = {.wanted = netns_prefix(text)};

    assert_int_equal(rtnl_each_address(nl, ifindex, count_entry, &c), 0);
    return c.n;
}

static unsigned count_routes(struct netlink *nl, unsigned ifindex, const char *text)
{
    struct count c = {.wanted = netns_prefix(text)};

    assert_int_equal(rtnl_each_route(nl, ifindex, false, count_entry, &c), 0);
    return c.n;
}

static void test_addresses_and_routes(void **state)
{
    static const char *const addresses[] = {"10.42.0.2/16", "fd5a::2/64"};
    static const char *const routes[] = {"10.43.0.0/16", "fd5b::/64"};
    struct netlink *nl = netns_need(state);
    struct rtnl_link link = add_link(nl, "weft0");

    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 0), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct ip_prefix a = netns_prefix(addresses[i]);
        struct ip_prefix dst = netns_prefix(routes[i]);
        char text[IP_PREFIX_TEXT_MAX];

        for (unsigned again = 0; again < 2; again++) {
            assert_int_equal(rtnl_add_address(nl, link.ifindex, &a, false), 0);
            assert_int_equal(count_addresses(nl, link.ifindex, addresses[i]), 1);
            assert_int_equal(rtnl_add_route(nl, link.ifindex, &dst, NULL), 0);
            assert_int_equal(count_routes(nl, link.ifindex, routes[i]), 1);
        }
        assert_int_equal(count_addresses(nl, link.ifindex + 1, addresses[i]), 0);
        /* The address brings the route of its block. */
        dst = ip_prefix_mask(&a);
        assert_int_equal(count_routes(nl, 0, ip_prefix_format(&dst, text)), 1);
        dst = netns_prefix(routes[i]);
        for (unsigned again = 0; again < 2; again++) {
            assert_int_equal(rtnl_remove_route(nl, link.ifindex, &dst, NULL), 0);
            assert_int_equal(rtnl_remove_address(nl, link.ifindex, &a), 0);
        }
        assert_int_equal(count_addresses(nl, 0, addresses[i]), 0);
        assert_int_equal(count_routes(nl, 0, routes[i]), 0);
    }
}

/* The same block behind two interfaces, as two networks of one hub may have it. */
static void test_route_behind(void **state)
{
    static const char *const blocks[] = {"10.42.0.0/16", "fd5a::/64"};
    struct netlink *nl = netns_need(state);
    struct rtnl_link first = add_link(nl, "weft0");
    struct rtnl_link second = add_link(nl, "weft1");
    unsigned own[2] = {first.ifindex, second.ifindex};
    const struct rtnl_route behind = {.metric = 2000};

    assert_int_equal(rtnl_set_link(nl, first.ifindex, true, 0), 0);
    assert_int_equal(rtnl_set_link(nl, second.ifindex, true, 0), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct ip_prefix dst = netns_prefix(blocks[i]);
        struct err e = ERR_NULL;

        assert_int_equal(rtnl_add_route(nl, first.ifindex, &dst, NULL), 0);
        assert_int_equal(rtnl_add_route(nl, second.ifindex, &dst, &behind), 0);
        assert_int_equal(count_routes(nl, first.ifindex, blocks[i]), 1);
        assert_int_equal(count_routes(nl, second.ifindex, blocks[i]), 1);
        assert_int_equal(rtnl_check_free(nl, &dst, own, 1, &e), -EADDRINUSE);
        assert_int_equal(rtnl_check_free(nl, &dst, own, 2, &e), 0);
    }
}

static void test_source_check(void **state)
{
    struct netlink *nl = netns_need(state);
    struct rtnl_link link = add_link(nl, "weft0");
    FILE *f;

    assert_int_equal(rtnl_accept_own(nl, link.ifindex), 0);
    f = fopen("/proc/sys/net/ipv4/conf/weft0/rp_filter", "r");
    assert_non_null(f);
    assert_int_equal(fgetc(f), '2');
    (void)fclose(f);
}

static void test_check_free(void **state)
{
    static const struct {
        const char *block;
        const char *says; /* NULL: free */
    } cases[] = {
        {"10.42.0.0/16", NULL},
        {"192.168.0.0/16",
            "the block 192.168.0.0/16 collides with the address 192.168.7.1/24 of lan0"},
        {"192.168.7.128/25",
            "the block 192.168.7.128/25 collides with the route 192.168.7.0/24 of lan0"},
        {"172.16.5.0/24", "the block 172.16.5.0/24 collides with the route 172.16.0.0/12 of lan0"},
        {"fd11::/64", "the block fd11::/64 collides with the address fd11::1/64 of lan0"},
        {"fd12::/64", NULL}, {"10.99.0.0/16", NULL}, /* our own interface has it */
    };
    struct netlink *nl = netns_need(state);
    struct rtnl_link lan = add_link(nl, "lan0");
    struct rtnl_link own = add_link(nl, "weft0");
    const char *const lan_addresses[] = {"192.168.7.1/24", "fd11::1/64"};
    const char *const lan_routes[] = {"172.16.0.0/12", "0.0.0.0/0", "::/0", "128.0.0.0/1"};
    struct ip_prefix p = netns_prefix("10.99.0.1/16");

    assert_int_equal(rtnl_set_link(nl, lan.ifindex, true, 0), 0);
    assert_int_equal(rtnl_set_link(nl, own.ifindex, true, 0), 0);
    assert_int_equal(rtnl_add_address(nl, own.ifindex, &p, false), 0);
    for (size_t i = 0; i < sizeof(lan_addresses) / sizeof(*lan_addresses); i++) {
        p = netns_prefix(lan_addresses[i]);
        assert_int_equal(rtnl_add_address(nl, lan.ifindex, &p, false), 0);
    }
    for (size_t i = 0; i < sizeof(lan_routes) / sizeof(*lan_routes); i++) {
        p = netns_prefix(lan_routes[i]);
        assert_int_equal(rtnl_add_route(nl, lan.ifindex, &p, NULL), 0);
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;
        int r;

        p = netns_prefix(cases[i].block);
        r = rtnl_check_free(nl, &p, &own.ifindex, 1, &e);
        assert_int_equal(r, cases[i].says ? -EADDRINUSE : 0);
        assert_string_equal(e.text, cases[i].says ? cases[i].says : "");
    }
}

static void test_source(void **state)
{
    struct netlink *nl = netns_need(state);
    struct rtnl_link link = add_link(nl, "lan0");
    struct ip_prefix a = netns_prefix("192.168.7.1/24");
    struct ip_prefix far = netns_prefix("192.168.7.200");
    struct ip_addr source;

    assert_int_equal(rtnl_source_for(nl, &far.addr, &source), RTNL_E_ABSENT);
    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 0), 0);
    assert_int_equal(rtnl_add_address(nl, link.ifindex, &a, false), 0);
    assert_int_equal(rtnl_source_for(nl, &far.addr, &source), 0);
    assert_true(ip_addr_equal(&source, &a.addr));
}

/* Two uplinks: by which one packets leave is a matter of the routes, and of rules. */
static void test_way_out(void **state)
{
    struct netlink *nl = netns_need(state);
    struct rtnl_link links[2] = {add_link(nl, "lan0"), add_link(nl, "lan1")};
    struct ip_prefix own[2] = {netns_prefix("192.168.7.1/24"), netns_prefix("192.168.8.1/24")};
    struct ip_prefix far = netns_prefix("203.0.113.0/24");
    struct rtnl_flow flow = {.to = {.addr = netns_prefix("203.0.113.5").addr, .port = 51820},
        .from = own[0].addr,
        .from_port = 51820,
        .fwmark = 7};
    unsigned ifindex = 0;

    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rtnl_set_link(nl, links[i].ifindex, true, 0), 0);
        assert_int_equal(rtnl_add_address(nl, links[i].ifindex, &own[i], false), 0);
    }
    assert_int_equal(rtnl_way_out(nl, &flow, &ifindex), RTNL_E_ABSENT);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rtnl_add_route(nl, links[i].ifindex, &far, NULL), 0);
        assert_int_equal(rtnl_way_out(nl, &flow, &ifindex), 0);
        assert_int_equal(ifindex, links[i].ifindex);
        assert_int_equal(rtnl_remove_route(nl, links[i].ifindex, &far, NULL), 0);
    }
}

/* What this machine sends from one address of its own takes a table of its own. */
static void test_rule_of_a_source(void **state)
{
    struct netlink *nl = netns_need(state);
    struct rtnl_link links[2] = {add_link(nl, "lan0"), add_link(nl, "lan1")};
    struct ip_prefix own[2] = {netns_prefix("192.168.7.1/24"), netns_prefix("192.168.8.1/24")};
    struct ip_prefix far = netns_prefix("203.0.113.0/24");
    struct rtnl_rule rule = {.table = rtnl_table_of("lan1"), .from = own[1].addr, .priority = 5186};
    struct rtnl_rule other = rule;
    const struct rtnl_route route = {.table = rule.table, .protocol = RTNL_PEER_ROUTES};
    unsigned ifindex = 0;

    if (emulated_lacks("rules of routing"))
        skip();
    for (unsigned i = 0; i < 2; i++) {
        struct rtnl_flow flow = {.to = {.addr = netns_prefix("203.0.113.5").addr, .port = 1},
            .from = own[i].addr,
            .from_port = 1};

        assert_int_equal(rtnl_set_link(nl, links[i].ifindex, true, 0), 0);
        assert_int_equal(rtnl_add_address(nl, links[i].ifindex, &own[i], false), 0);
        if (i == 0) {
            assert_int_equal(rtnl_add_route(nl, links[i].ifindex, &far, NULL), 0);
        } else {
            assert_int_equal(rtnl_find_rule(nl, true, &rule), RTNL_E_ABSENT);
            assert_int_equal(rtnl_set_route(nl, links[i].ifindex, &far, &route), 0);
            assert_int_equal(rtnl_add_rule(nl, true, &rule), 0);
            assert_int_equal(rtnl_add_rule(nl, true, &rule), 0);
            assert_int_equal(rtnl_find_rule(nl, true, &rule), 0);
        }
        assert_int_equal(rtnl_way_out(nl, &flow, &ifindex), 0);
        assert_int_equal(ifindex, links[i].ifindex);
        assert_int_equal(rtnl_find_address(nl, &own[i].addr, &ifindex), 0);
        assert_int_equal(ifindex, links[i].ifindex);
        assert_int_equal(rtnl_accept_own(nl, links[i].ifindex), 0);
    }
    other.from = own[0].addr;
    assert_int_equal(rtnl_find_rule(nl, true, &other), RTNL_E_ABSENT);
    assert_int_equal(rtnl_find_address(nl, &far.addr, &ifindex), RTNL_E_ABSENT);
    assert_int_equal(rtnl_remove_rule(nl, true, &rule), 0);
    assert_int_equal(rtnl_remove_rule(nl, true, &rule), 0);
    assert_int_equal(rtnl_find_rule(nl, true, &rule), RTNL_E_ABSENT);
    assert_true(rtnl_is_own_table(rule.table));
}

/** A route of the interface, as the walk finds it. */
struct found {
    struct ip_prefix prefix;
    struct rtnl_entry entry;
    unsigned n;
};

static int find_route(const struct rtnl_entry *entry, void *ctx)
{
    struct found *f = ctx;

    if (ip_prefix_equal(&entry->prefix, &f->prefix)) {
        f->entry = *entry;
        f->n++;
    }
    return 0;
}

static struct found walk_for(struct netlink *nl, unsigned ifindex, const char *text)
{
    struct found f = {.prefix = netns_prefix(text)};

    assert_int_equal(rtnl_each_route(nl, ifindex, false, find_route, &f), 0);
    return f;
}

static void test_route_metrics(void **state)
{
    static const char *const blocks[] = {"10.42.0.0/16", "fd5a::/64"};
    static const char *const addresses[] = {"10.42.0.1/16", "fd5a::1/64"};
    static const char *const hosts[] = {"10.42.0.9/32", "fd5a::9/128"};
    static const struct rtnl_route base = {.metrics = {.mtu = 1408}},
                                   more = {.metrics = {8928, 8800}, .protocol = RTNL_PEER_ROUTES},
                                   less = {.metrics = {1280, 8800}, .protocol = RTNL_PEER_ROUTES};
    struct netlink *nl = netns_need(state);
    struct rtnl_link link = add_link(nl, "weft0");

    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 9000), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct ip_prefix address = netns_prefix(addresses[i]), block = netns_prefix(blocks[i]),
                         host = netns_prefix(hosts[i]);
        struct found f;

        assert_int_equal(rtnl_add_address(nl, link.ifindex, &address, true), 0);
        assert_int_equal(walk_for(nl, link.ifindex, blocks[i]).n, 0);
        assert_int_equal(rtnl_set_route(nl, link.ifindex, &block, &base), 0);
        assert_int_equal(rtnl_set_route(nl, link.ifindex, &host, &more), 0);
        /* Another value replaces the route; it does not come beside it. */
        assert_int_equal(rtnl_set_route(nl, link.ifindex, &host, &less), 0);
        f = walk_for(nl, link.ifindex, blocks[i]);
        assert_int_equal(f.n, 1);
        assert_int_equal(f.entry.metrics.mtu, 1408);
        assert_int_equal(f.entry.metrics.advmss, 0);
        assert_int_not_equal(f.entry.protocol, RTNL_PEER_ROUTES);
        f = walk_for(nl, link.ifindex, hosts[i]);
        assert_int_equal(f.n, 1);
        assert_int_equal(f.entry.metrics.mtu, 1280);
        assert_int_equal(f.entry.metrics.advmss, 8800);
        assert_int_equal(f.entry.protocol, RTNL_PEER_ROUTES);
        /* It goes whatever its metrics are. */
        assert_int_equal(rtnl_remove_route(nl, link.ifindex, &host, &more), 0);
        assert_int_equal(rtnl_remove_route(nl, link.ifindex, &host, &more), 0);
        assert_int_equal(walk_for(nl, link.ifindex, hosts[i]).n, 0);
        /* Somebody else's is left alone. */
        assert_int_equal(rtnl_remove_route(nl, link.ifindex, &block, &less), 0);
        assert_int_equal(walk_for(nl, link.ifindex, blocks[i]).n, 1);
    }
}

static void test_largest_mtu(void **state)
{
    struct netlink *nl = netns_need(state);
    struct rtnl_link own = add_link(nl, "weft0");
    struct rtnl_link lan = add_link(nl, "lan0");
    struct rtnl_link down = add_link(nl, "lan1");
    unsigned mtu = 1;

    assert_int_equal(rtnl_set_link(nl, own.ifindex, true, 9100), 0);
    assert_int_equal(rtnl_set_link(nl, down.ifindex, false, 9050), 0);
    assert_int_equal(rtnl_largest_mtu(nl, own.ifindex, &mtu), 0);
    assert_int_equal(mtu, 0);
    assert_int_equal(rtnl_set_link(nl, lan.ifindex, true, 9000), 0);
    assert_int_equal(rtnl_largest_mtu(nl, own.ifindex, &mtu), 0);
    assert_int_equal(mtu, 9000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_link, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_addresses_and_routes, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_route_behind, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_source_check, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_check_free, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_source, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_way_out, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_rule_of_a_source, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_route_metrics, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_largest_mtu, netns_enter, netns_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
