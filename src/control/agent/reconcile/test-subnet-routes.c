/*
 * test-subnet-routes.c - which subnets of others are used, and what a node forwards to its own.
 *
 * What asks the kernel runs in a network namespace of its own; without the right to make one it is
 * skipped, and says so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/reconcile/filter_rules.h"
#include "agent/reconcile/routes.h"
#include "base/err.h"
#include "base/text.h"
#include "mesh/object/subnets.h"
#include "mesh/render/render.h"
#include "net/netlink/rtnl.h"
#include "test/support/emulated.h"
#include "test/support/netlink_writes.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"

/* ---- what is in the way ---------------------------------------------------------------------- */

static void test_in_the_way(void **state)
{
    static const struct {
        const char *used;
        uint32_t table;
        bool is_on_link;
        const char *to;
        bool is_in_the_way;
    } cases[] = {
        {"10.9.0.0/24", RT_TABLE_MAIN, true, "10.9.0.0/24", true},   /* our own LAN */
        {"10.9.0.0/24", RT_TABLE_MAIN, false, "10.9.0.0/24", true},  /* another way to it */
        {"10.9.0.64/26", RT_TABLE_MAIN, false, "10.9.0.0/24", true}, /* to a part of it */
        {"10.9.0.5/32", RT_TABLE_LOCAL, true, "10.9.0.0/24", true},  /* an address of ours */
        {"10.9.0.0/16", RT_TABLE_MAIN, true, "10.9.0.0/24", true},   /* a LAN that it lies in */
        {"10.0.0.0/8", RT_TABLE_MAIN, false, "10.9.0.0/24", false},  /* behind a router */
        {"0.0.0.0/0", RT_TABLE_MAIN, false, "10.9.0.0/24", false},   /* the way out */
        {"0.0.0.0/0", RT_TABLE_MAIN, true, "10.9.0.0/24", false},    /* the same, by PPP */
        {"0.0.0.0/1", RT_TABLE_MAIN, true, "10.9.0.0/24", false},    /* the same, by a VPN */
        {"10.8.0.0/24", RT_TABLE_MAIN, true, "10.9.0.0/24", false},  /* something else */
        {"10.9.0.0/24", 100, true, "10.9.0.0/24", false},            /* somebody's own table */
        {"10.9.0.0/24", 0x57000001, true, "10.9.0.0/24", true},      /* another network's node */
        {"fd09::/64", RT_TABLE_MAIN, true, "fd09::/48", true},
        {"fd09::/48", RT_TABLE_MAIN, false, "fd09::/64", false},
        {"::/0", RT_TABLE_MAIN, false, "fd09::/64", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct rtnl_entry used = {.prefix = netns_prefix(cases[i].used),
            .table = cases[i].table,
            .is_on_link = cases[i].is_on_link};
        struct ip_prefix to = netns_prefix(cases[i].to);

        if (subnet_routes_is_in_the_way(&used, &to) != cases[i].is_in_the_way)
            fail_msg("case %zu: %s against %s", i, cases[i].used, cases[i].to);
    }
    assert_int_not_equal(rtnl_table_of("weft0"), rtnl_table_of("weft1"));
    assert_int_equal(rtnl_table_of("weft0") >> 24, 0x57);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static unsigned add_link(struct netlink *nl, const char *name, const char *address)
{
    struct ip_prefix a = netns_prefix(address);
    struct rtnl_link link;

    assert_int_equal(rtnl_add_link(nl, name, "bridge"), 0);
    assert_int_equal(rtnl_find_link(nl, name, &link), 0);
    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 0), 0);
    assert_int_equal(rtnl_add_address(nl, link.ifindex, &a, false), 0);
    return link.ifindex;
}

static void put_routes(struct snapshot *s, unsigned n, const char *routes)
{
    struct object o = sample_node(n);

    o.node.routes = calloc(1, sizeof(*o.node.routes));
    assert_non_null(o.node.routes);
    assert_int_equal(subnets_parse(o.node.routes, routes, NULL), 0);
    sample_put(s, o);
}

/** What is in our table. */
struct seen {
    char text[512];
    uint32_t mtu; /* of the last one */
};

static int see(const struct rtnl_entry *entry, void *ctx)
{
    struct seen *seen = ctx;
    char text[IP_PREFIX_TEXT_MAX];

    if (entry->table != rtnl_table_of("weft0"))
        return 0;
    (void)snprintf(seen->text + strlen(seen->text), sizeof(seen->text) - strlen(seen->text), "%s ",
        ip_prefix_format(&entry->prefix, text));
    seen->mtu = entry->metrics.mtu;
    return 0;
}

static enum subnets_accept accepts;

/* One pass; what is in our table afterwards. */
static struct seen pass(struct subnet_routes *sr, struct netlink *nl, const struct snapshot *s,
    unsigned ifindex, const struct render_path *path, uint32_t *ret_mark)
{
    _cleanup_(wg_config_deinit) struct wg_config want = WG_CONFIG_NULL;
    struct render_input in = {
        .snapshot = s, .paths = path, .n_paths = path ? 1 : 0, .link_mtu = 1440};
    struct err e = ERR_NULL;
    struct seen seen = {.mtu = 0};

    assert_int_equal(render_config(&want, &in, &e), 0);
    assert_int_equal(subnet_routes_plan(sr, nl, ifindex, accepts, s, &want), 0);
    assert_int_equal(subnet_routes_apply(sr, nl, ifindex, "weft0", &want, false), 0);
    assert_int_equal(rtnl_each_route(nl, ifindex, true, see, &seen), 0);
    *ret_mark = want.fwmark;
    return seen;
}

static unsigned way_to(struct netlink *nl, const char *to, uint32_t mark)
{
    struct rtnl_flow flow = {.to = {.addr = netns_prefix(to).addr, .port = 1},
        .from = netns_prefix("192.168.7.1").addr,
        .from_port = 1,
        .fwmark = mark};
    unsigned ifindex = 0;

    (void)rtnl_way_out(nl, &flow, &ifindex);
    return ifindex;
}

static void test_kernel(void **state)
{
    struct netlink *nl = netns_need(state);
    struct snapshot s = sample_snapshot(4, 2);
    struct subnet_routes sr = {0};
    struct render_path path = {.node = "n3", .mtu = 1296};
    struct ip_prefix out = netns_prefix("10.0.0.0/8");
    struct seen seen;
    unsigned lan;
    unsigned own;
    uint32_t mark;

    if (emulated_lacks("rules of routing"))
        skip();
    lan = add_link(nl, "lan0", "192.168.7.1/24");
    own = add_link(nl, "weft0", "10.42.0.2/16");
    assert_int_equal(rtnl_add_route(nl, lan, &out, NULL), 0);

    /* A wider block on our own line is in the way of everything in it. */
    put_routes(&s, 3, "10.9.0.0/24,172.20.0.0/16,192.168.7.128/25");
    seen = pass(&sr, nl, &s, own, NULL, &mark);
    assert_string_equal(seen.text, "172.20.0.0/16 ");
    assert_int_equal(mark, RTNL_OUTER_MARK);
    assert_int_equal(sr.n, 3);
    assert_string_equal(sr.items[0].why, "this machine reaches 10.0.0.0/8 by lan0 itself");
    assert_string_equal(sr.items[1].why, "");
    assert_string_equal(sr.items[2].why, "this machine reaches 192.168.7.0/24 by lan0 itself");
    assert_int_equal(way_to(nl, "172.20.0.1", 0), own);
    assert_int_equal(way_to(nl, "172.20.0.1", RTNL_OUTER_MARK), 0);
    assert_int_equal(way_to(nl, "10.9.0.1", 0), lan);

    /* As soon as it is not, they are used; a measured path's MTU is theirs, too. */
    assert_int_equal(rtnl_remove_route(nl, lan, &out, NULL), 0);
    assert_int_equal(endpoint_parse(&path.endpoint, "198.51.100.7:1", NULL), 0);
    seen = pass(&sr, nl, &s, own, &path, &mark);
    assert_string_equal(seen.text, "10.9.0.0/24 172.20.0.0/16 ");
    assert_int_equal(seen.mtu, 1296);

    /* One that goes is taken away, and with the last one all that there was. */
    put_routes(&s, 3, "172.20.0.0/16,fd09::/64,198.51.100.0/24");
    seen = pass(&sr, nl, &s, own, NULL, &mark);
    assert_string_equal(seen.text, "172.20.0.0/16 fd09::/64 ");
    assert_string_equal(sr.items[1].why, "this machine joined to use private subnets, not this one "
                                         "(weft join --accept-routes)");
    put_routes(&s, 3, "198.51.100.0/24,203.0.113.0/24");
    accepts = SUBNETS_ACCEPT_ALL;
    seen = pass(&sr, nl, &s, own, NULL, &mark);
    accepts = SUBNETS_ACCEPT_PRIVATE;
    assert_string_equal(seen.text, "198.51.100.0/24 ");
    assert_string_equal(sr.items[1].why, "the hub is reached at 203.0.113.10:51820, inside it");
    sample_put(&s, sample_node(3));
    seen = pass(&sr, nl, &s, own, NULL, &mark);
    assert_string_equal(seen.text, "");
    assert_int_equal(mark, 0);
    assert_true(sr.is_clean);
    assert_int_equal(way_to(nl, "172.20.0.1", 0), 0);
    for (unsigned again = 0; again < 2; again++)
        assert_int_equal(subnet_routes_remove(nl, "weft0"), 0);
    subnet_routes_deinit(&sr);
    snapshot_deinit(&s);
}

/* An agent that is started anew finds its own routes, and does not take them for another's. */
static void test_again(void **state)
{
    struct netlink *nl = netns_need(state);
    struct snapshot s = sample_snapshot(3, 2);
    unsigned own;
    uint32_t mark;

    if (emulated_lacks("rules of routing"))
        skip();
    own = add_link(nl, "weft0", "10.42.0.2/16");
    put_routes(&s, 3, "10.9.0.0/24");
    for (unsigned run = 0; run < 2; run++) {
        struct subnet_routes sr = {0};

        assert_string_equal(pass(&sr, nl, &s, own, NULL, &mark).text, "10.9.0.0/24 ");
        subnet_routes_deinit(&sr);
    }
    /* What an earlier one has left goes, though nobody speaks of it any more. */
    sample_put(&s, sample_node(3));
    for (unsigned run = 0; run < 2; run++) {
        struct subnet_routes sr = {0};

        assert_string_equal(pass(&sr, nl, &s, own, NULL, &mark).text, "");
        assert_true(sr.is_clean);
        subnet_routes_deinit(&sr);
    }
    snapshot_deinit(&s);
}

/* ---- which are used -------------------------------------------------------------------------- */

/* The blocks that packets of that node may come from, as far as they lie behind it. */
static void format_allowed(const struct wg_config *c, unsigned n, char buf[static 256])
{
    const struct x25519_public key = sample_key(n);
    const struct wg_peer *p = wg_config_find(c, &key);
    char text[IP_PREFIX_TEXT_MAX];

    buf[0] = '\0';
    for (size_t i = 0; i < p->n_allowed; i++)
        if (p->allowed[i].len != 32 && p->allowed[i].len != 128)
            (void)snprintf(buf + strlen(buf), 256 - strlen(buf), "%s ",
                ip_prefix_format(&p->allowed[i], text));
}

/* What is not accepted is not taken from that node either. */
static void test_what_is_accepted(void **state)
{
    static const struct {
        enum subnets_accept accepts;
        const char *allowed;
        const char *why[3];
    } cases[] = {
        {SUBNETS_ACCEPT_ALL, "10.9.0.0/24 198.51.100.0/24 fd09::/64 ", {"", "", ""}},
        {SUBNETS_ACCEPT_PRIVATE, "10.9.0.0/24 fd09::/64 ",
            {"",
                "this machine joined to use private subnets, not this one (weft join "
                "--accept-routes)",
                ""}},
        {SUBNETS_ACCEPT_NONE, "",
            {"this machine joined to use no subnets, not this one (weft join --accept-routes)",
                "this machine joined to use no subnets, not this one (weft join --accept-routes)",
                "this machine joined to use no subnets, not this one (weft join "
                "--accept-routes)"}},
    };
    struct netlink *nl = netns_need(state);
    struct snapshot s = sample_snapshot(4, 2);

    put_routes(&s, 3, "10.9.0.0/24,198.51.100.0/24,fd09::/64");
    /* Those behind this node are no matter of it. */
    put_routes(&s, 2, "10.7.0.0/24");
    sample_put(&s, sample_edge(2, 3, EDGE_PATH_RELAY));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct wg_config want = WG_CONFIG_NULL;
        struct render_input in = {.snapshot = &s, .link_mtu = 1440};
        struct subnet_routes sr = {.is_clean = i % 2};
        char text[256];

        assert_int_equal(render_config(&want, &in, NULL), 0);
        assert_int_equal(subnet_routes_plan(&sr, nl, 0, cases[i].accepts, &s, &want), 0);
        assert_int_equal(sr.n, 3);
        assert_int_equal(sr.is_clean, i % 2);
        for (unsigned k = 0; k < 3; k++) {
            assert_string_equal(sr.items[k].why, cases[i].why[k]);
            assert_string_equal(sr.items[k].node, "n3");
        }
        format_allowed(&want, 3, text);
        assert_string_equal(text, cases[i].allowed);
        assert_int_equal(
            want.fwmark, cases[i].accepts == SUBNETS_ACCEPT_NONE ? 0 : RTNL_OUTER_MARK);
        wg_config_deinit(&want);
        subnet_routes_deinit(&sr);
    }
    snapshot_deinit(&s);
}

/* A node to which nothing is sent, and a subnet in which the hub is. */
static void test_what_is_behind_nobody(void **state)
{
    struct netlink *nl = netns_need(state);
    struct snapshot s = sample_snapshot(4, 2);
    struct wg_config want = WG_CONFIG_NULL;
    struct render_input in = {.snapshot = &s, .link_mtu = 1440};
    struct subnet_routes sr = {.n = 0};

    put_routes(&s, 3, "10.9.0.0/24");
    sample_put(&s, sample_edge(2, 3, EDGE_PATH_OFF));
    put_routes(&s, 4, "10.8.0.0/24");
    assert_int_equal(render_config(&want, &in, NULL), 0);
    assert_int_equal(subnet_routes_plan(&sr, nl, 0, SUBNETS_ACCEPT_PRIVATE, &s, &want), 0);
    assert_int_equal(sr.n, 2);
    assert_string_equal(sr.items[0].why, "no packets go to that node from here");
    assert_string_equal(sr.items[1].why, "");
    assert_string_equal(sr.items[1].node, "n4");
    assert_true(x25519_public_equal(&sr.items[1].key, &snapshot_find_node(&s, "n4")->key));
    wg_config_deinit(&want);
    subnet_routes_deinit(&sr);
    snapshot_deinit(&s);
}

/* Two nodes that are the way to the same: packets go to the first. */
static void test_the_same_subnet_behind_two_nodes(void **state)
{
    struct netlink *nl = netns_need(state);
    struct snapshot s = sample_snapshot(4, 2);
    struct wg_config want = WG_CONFIG_NULL;
    struct render_input in = {.snapshot = &s, .link_mtu = 1440};
    struct subnet_routes sr = {.n = 0};

    put_routes(&s, 3, "10.9.0.0/24");
    put_routes(&s, 4, "10.9.0.0/24");
    assert_int_equal(render_config(&want, &in, NULL), 0);
    wg_config_find(&want, &snapshot_find_node(&s, "n4")->key)->n_allowed = 2;
    assert_int_equal(subnet_routes_plan(&sr, nl, 0, SUBNETS_ACCEPT_PRIVATE, &s, &want), 0);
    assert_int_equal(sr.n, 2);
    assert_string_equal(sr.items[0].why, "");
    assert_string_equal(sr.items[1].why, "no packets go to that node from here");
    wg_config_deinit(&want);
    subnet_routes_deinit(&sr);
    snapshot_deinit(&s);
}

/* Those of IPv4 are used all the same. */
static void test_machine_without_v6(void **state)
{
    struct netlink *nl = netns_need(state);
    struct snapshot s = sample_snapshot(3, 2);
    struct wg_config want = WG_CONFIG_NULL;
    struct render_input in = {.snapshot = &s, .link_mtu = 1440};
    struct subnet_routes sr = {.n = 0};
    struct seen seen = {.mtu = 0};
    struct rtnl_rule rule = {
        .table = rtnl_table_of("weft0"), .mark = RTNL_OUTER_MARK, .priority = 5187};
    unsigned own;

    if (emulated_lacks("rules of routing"))
        skip();
    own = add_link(nl, "weft0", "10.42.0.2/16");
    put_routes(&s, 3, "10.9.0.0/24,fd09::/64,198.51.100.0/24");
    assert_int_equal(render_config(&want, &in, NULL), 0);
    assert_int_equal(subnet_routes_plan(&sr, nl, own, SUBNETS_ACCEPT_PRIVATE, &s, &want), 0);
    assert_int_equal(subnet_routes_apply(&sr, nl, own, "weft0", &want, true), 0);
    assert_string_equal(sr.items[0].why, "");
    assert_int_equal(strncmp(sr.items[1].why, "this machine joined", 19), 0);
    assert_string_equal(sr.items[2].why, "this machine has no IPv6");
    assert_int_equal(rtnl_each_route(nl, own, true, see, &seen), 0);
    assert_string_equal(seen.text, "10.9.0.0/24 ");
    /* What all paths carry, since none is measured. */
    assert_int_equal(seen.mtu, want.route_mtu);
    assert_int_equal(rtnl_find_rule(nl, true, &rule), 0);
    assert_int_equal(rtnl_find_rule(nl, false, &rule), RTNL_E_ABSENT);
    assert_false(sr.is_clean);
    assert_int_equal(subnet_routes_remove(nl, "weft0"), 0);
    assert_int_equal(rtnl_find_rule(nl, true, &rule), RTNL_E_ABSENT);
    wg_config_deinit(&want);
    subnet_routes_deinit(&sr);
    snapshot_deinit(&s);
}

/* A route that says something else than the peer's is set anew, and one that nobody has is removed.
 */
static void test_table_that_was_changed_by_hand(void **state)
{
    struct netlink *nl = netns_need(state);
    struct snapshot s = sample_snapshot(3, 2);
    struct subnet_routes sr = {.n = 0};
    struct rtnl_route route = {
        .table = rtnl_table_of("weft0"), .protocol = RTNL_PEER_ROUTES, .metrics = {.mtu = 1290}};
    struct ip_prefix ours = netns_prefix("10.9.0.0/24");
    struct ip_prefix other = netns_prefix("10.10.0.0/24");
    struct seen seen;
    unsigned own;
    uint32_t mark;

    if (emulated_lacks("rules of routing"))
        skip();
    own = add_link(nl, "weft0", "10.42.0.2/16");
    put_routes(&s, 3, "10.9.0.0/24");
    seen = pass(&sr, nl, &s, own, NULL, &mark);
    assert_int_equal(rtnl_set_route(nl, own, &ours, &route), 0);
    assert_int_equal(rtnl_set_route(nl, own, &other, &route), 0);
    assert_string_equal(pass(&sr, nl, &s, own, NULL, &mark).text, "10.9.0.0/24 ");
    assert_int_equal(pass(&sr, nl, &s, own, NULL, &mark).mtu, seen.mtu);
    (void)netlink_writes_take();
    (void)pass(&sr, nl, &s, own, NULL, &mark);
    assert_int_equal(netlink_writes_take(), 0);
    route.metrics = (struct rtnl_metrics){.mtu = seen.mtu, .advmss = 500};
    assert_int_equal(rtnl_set_route(nl, own, &ours, &route), 0);
    (void)netlink_writes_take();
    (void)pass(&sr, nl, &s, own, NULL, &mark);
    assert_int_equal(netlink_writes_take(), 1);
    subnet_routes_deinit(&sr);
    snapshot_deinit(&s);
}

/* ---- the guard ------------------------------------------------------------------------------- */

static void check_guard(const char *routes, bool masquerades, const char *wanted)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct subnets s = SUBNETS_NULL;

    if (routes)
        assert_int_equal(subnets_parse(&s, routes, NULL), 0);
    route_guard_format(&out, "weft0", &s, masquerades);
    assert_string_equal(str_text(&out), wanted);
}

#define FORWARD                                                                                    \
    "chain forward {\ntype filter hook forward priority filter; policy accept;\n"                  \
    "iifname \"weft0\" ct state established,related accept\n"                                      \
    "iifname \"weft0\" ct status dnat accept\n"

static void test_guard(void **state)
{
    check_guard(NULL, true, FORWARD "iifname \"weft0\" drop\n}\n");
    check_guard("10.8.0.0/24,10.9.0.0/24,fd09::/64", false,
        FORWARD "iifname \"weft0\" ip daddr { 10.8.0.0/24, 10.9.0.0/24 } accept\n"
                "iifname \"weft0\" ip6 daddr { fd09::/64 } accept\n"
                "iifname \"weft0\" drop\n}\n");
    check_guard("10.9.0.0/24", true,
        FORWARD "iifname \"weft0\" ip daddr { 10.9.0.0/24 } accept\n"
                "iifname \"weft0\" drop\n}\n"
                "chain postrouting {\ntype nat hook postrouting priority srcnat;\n"
                "iifname \"weft0\" ip daddr { 10.9.0.0/24 } masquerade\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_the_way),
        cmocka_unit_test_setup_teardown(test_kernel, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_again, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_what_is_accepted, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_what_is_behind_nobody, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_the_same_subnet_behind_two_nodes, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_machine_without_v6, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_table_that_was_changed_by_hand, netns_enter, netns_leave),
        cmocka_unit_test(test_guard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
