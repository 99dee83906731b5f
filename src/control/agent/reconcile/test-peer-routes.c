/* test-peer-routes.c - routes to single peers, with the MTUs of their paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "agent/reconcile/routes.h"
#include "mesh/config/wg_config.h"
#include "test/support/netns.h"

/* ---- metrics --------------------------------------------------------------------------------- */

static void test_metrics(void **state)
{
    static const struct {
        uint16_t link_mtu;
        uint16_t mtu;
        uint16_t mss_mtu;
        bool is_v4;
        struct rtnl_metrics expected;
    } cases[] = {
        /* An interface of 1400 bytes, whose links carry as much. */
        {0, 1300, 0, true, {1300, 1360}},
        {0, 1300, 0, false, {1300, 1340}},
        {1400, 1300, 0, true, {1300, 1360}},
        {1410, 1300, 0, true, {1300, 1360}},
        {1390, 1300, 0, true, {1300, 1350}},
        /* The other end cannot know. */
        {0, 1300, 1300, true, {1300, 1260}},
        {0, 1300, 1300, false, {1300, 1240}},
        {0, 1300, 1500, true, {1300, 1360}},
        {1390, 1300, 1395, true, {1300, 1350}},
        /* With less than 1280 there would be no IPv6 at all. */
        {0, 1279, 0, true, {1279, 1360}},
        {0, 1279, 0, false, {1280, 1340}},
        {0, 1281, 0, false, {1281, 1340}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct wg_config c = {.mtu = 1400, .link_mtu = cases[i].link_mtu};
        struct rtnl_metrics m =
            peer_routes_metrics(&c, cases[i].mtu, cases[i].mss_mtu, cases[i].is_v4);

        if (m.mtu != cases[i].expected.mtu || m.advmss != cases[i].expected.advmss)
            fail_msg("case %zu: MTU %u, MSS %u", i, m.mtu, m.advmss);
    }
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* Three peers; what is sent to the network is sent with 1280 bytes. */
static struct ip_prefix allowed[3][4];
static struct wg_peer peers[3];
static struct wg_config config;

static int enter(void **state)
{
    static const char *const texts[3][4] = {
        {"10.42.0.9/32", "fd5a:1::9/128", "10.77.0.0/24", "fd77::/64"},
        {"10.42.0.4/32", "fd5a:1::4/128"},
        {"10.42.0.5/32", "fd5a:1::5/128"},
    };

    for (unsigned i = 0; i < 3; i++) {
        peers[i] = (struct wg_peer){.allowed = allowed[i]};
        for (unsigned k = 0; k < 4 && texts[i][k]; k++)
            allowed[i][peers[i].n_allowed++] = netns_prefix(texts[i][k]);
    }
    config = (struct wg_config){.mtu = 1400, .route_mtu = 1280, .peers = peers, .n_peers = 3};
    return 0;
}

static void assert_plan(bool lacks_v6, const char *expected)
{
    struct peer_routes pr = {.n = 0};
    char text[IP_PREFIX_TEXT_MAX];
    char all[512] = "";

    assert_int_equal(peer_routes_plan(&pr, &config, lacks_v6), 0);
    for (size_t i = 0; i < pr.n; i++) {
        (void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s %u/%u ",
            ip_prefix_format(&pr.wanted[i].to, text), pr.wanted[i].metrics.mtu,
            pr.wanted[i].metrics.advmss);
        assert_false(pr.wanted[i].found);
    }
    assert_string_equal(all, expected);
    assert_int_equal(pr.n_extra, 0);
    peer_routes_deinit(&pr);
    assert_null(pr.wanted);
    assert_int_equal(pr.n, 0);
}

/* Only to those of which the network's route says something else; and not to what is behind. */
static void test_which_peers_have_routes(void **state)
{
    assert_plan(false, "");
    peers[0].mtu = 1360;
    peers[1].mtu = 1280;
    assert_plan(false, "10.42.0.9/32 1360/1360 fd5a:1::9/128 1360/1340 ");
    assert_plan(true, "10.42.0.9/32 1360/1360 ");
    /* Sorted by where they lead. */
    peers[1].mss_mtu = 1300;
    assert_plan(false, "10.42.0.4/32 1280/1260 10.42.0.9/32 1360/1360 "
                       "fd5a:1::4/128 1280/1240 fd5a:1::9/128 1360/1340 ");
    peers[1].mtu = 0;
    assert_plan(true, "10.42.0.9/32 1360/1360 ");
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static struct rtnl_entry entry(const char *to, uint8_t protocol, uint32_t mtu, uint32_t advmss)
{
    return (struct rtnl_entry){.prefix = netns_prefix(to),
        .protocol = protocol,
        .metrics = {.mtu = mtu, .advmss = advmss}};
}

static void test_which_routes_are_as_they_should_be(void **state)
{
    struct peer_routes pr = {.n = 0};
    struct rtnl_entry e;
    char text[32];

    peers[0].mtu = 1360;
    assert_int_equal(peer_routes_plan(&pr, &config, false), 0);
    e = entry("10.42.0.9/32", RTPROT_STATIC, 1360, 1360);
    assert_int_equal(peer_routes_take(&pr, &e), 0);
    assert_false(pr.wanted[0].found);
    e = entry("10.42.0.9/32", RTNL_PEER_ROUTES, 1361, 1360);
    assert_int_equal(peer_routes_take(&pr, &e), 0);
    assert_false(pr.wanted[0].found);
    e = entry("10.42.0.9/32", RTNL_PEER_ROUTES, 1360, 1361);
    assert_int_equal(peer_routes_take(&pr, &e), 0);
    assert_false(pr.wanted[0].found);
    e = entry("10.42.0.9/32", RTNL_PEER_ROUTES, 1360, 1360);
    assert_int_equal(peer_routes_take(&pr, &e), 0);
    assert_true(pr.wanted[0].found);
    assert_false(pr.wanted[1].found);
    assert_int_equal(pr.n_extra, 0);
    /* Those of ours that nobody wants, however many; of others none. */
    for (unsigned i = 0; i < 40; i++) {
        (void)snprintf(text, sizeof(text), "10.42.1.%u/32", i);
        e = entry(text, i % 2 ? RTNL_PEER_ROUTES : RTPROT_STATIC, 1280, 0);
        assert_int_equal(peer_routes_take(&pr, &e), 0);
    }
    assert_int_equal(pr.n_extra, 20);
    for (unsigned i = 0; i < 20; i++) {
        (void)snprintf(text, sizeof(text), "10.42.1.%u/32", 2 * i + 1);
        assert_string_equal(ip_prefix_format(&pr.extra[i], (char[IP_PREFIX_TEXT_MAX]){0}), text);
    }
    peer_routes_deinit(&pr);
    assert_null(pr.extra);
}

static int take(const struct rtnl_entry *e, void *ctx)
{
    return peer_routes_take(ctx, e);
}

/* One pass: the routes that were missing or other, and those that were too many. */
static void pass(struct netlink *nl, unsigned ifindex, size_t n_missing, size_t n_extra)
{
    struct peer_routes pr = {.n = 0};

    assert_int_equal(peer_routes_plan(&pr, &config, false), 0);
    assert_int_equal(rtnl_each_route(nl, ifindex, false, take, &pr), 0);
    for (size_t i = 0; i < pr.n; i++)
        n_missing -= !pr.wanted[i].found;
    assert_int_equal(n_missing, 0);
    assert_int_equal(pr.n_extra, n_extra);
    assert_int_equal(peer_routes_apply(&pr, nl, ifindex), 0);
    peer_routes_deinit(&pr);
}

static void test_kernel(void **state)
{
    struct ip_prefix own = netns_prefix("10.42.0.2/16");
    struct ip_prefix own6 = netns_prefix("fd5a:1::2/64");
    struct netlink *nl;
    struct rtnl_link link;

    if (netns_enter(state) != 0)
        fail();
    nl = netns_need(state);
    assert_int_equal(rtnl_add_link(nl, "weft0", "bridge"), 0);
    assert_int_equal(rtnl_find_link(nl, "weft0", &link), 0);
    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 0), 0);
    assert_int_equal(rtnl_add_address(nl, link.ifindex, &own, false), 0);
    assert_int_equal(rtnl_add_address(nl, link.ifindex, &own6, false), 0);
    peers[0].mtu = 1360;
    peers[1].mtu = 1300;
    pass(nl, link.ifindex, 4, 0);
    pass(nl, link.ifindex, 0, 0);
    peers[0].mtu = 1340;
    peers[1].mtu = 0;
    pass(nl, link.ifindex, 2, 2);
    pass(nl, link.ifindex, 0, 0);
    peers[0].mtu = 0;
    pass(nl, link.ifindex, 0, 2);
    pass(nl, link.ifindex, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metrics),
        cmocka_unit_test_setup(test_which_peers_have_routes, enter),
        cmocka_unit_test_setup(test_which_routes_are_as_they_should_be, enter),
        cmocka_unit_test_setup_teardown(test_kernel, enter, netns_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
