/*
 * test-port-map.c - when a router is asked again, what is told of its answers, and that nobody
 * waits for one.
 *
 * The router of a network namespace of its own is the test, which speaks NAT-PMP. Real ones are
 * asked in test/lab/paths/test_port_map.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/paths/socket/local_candidates.h"
#include "net/netlink/rtnl.h"
#include "test/support/nat_pmp.h"
#include "test/support/netns.h"

#define SEC NSEC_PER_SEC

struct pause {
    enum port_mapping_kind kind;
    nsec_t lifetime;
    nsec_t pause;
};

static void test_pauses(void **state)
{
    static const struct pause pauses[] = {
        {PORT_MAPPING_NONE, 0, 600 * SEC},
        /* At half of the lifetime, but soon enough to see that the router was restarted. */
        {PORT_MAPPING_NAT_PMP, 7200 * SEC, 30 * SEC},
        {PORT_MAPPING_NAT_PMP, 4 * SEC, 30 * SEC},
        {PORT_MAPPING_NAT_PMP, 0, 30 * SEC},
        {PORT_MAPPING_UPNP, 3600 * SEC, 600 * SEC},
        {PORT_MAPPING_UPNP, 120 * SEC, 60 * SEC},
        {PORT_MAPPING_UPNP, NSEC_NEVER, 600 * SEC},
    };

    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        struct port_mapping pm = {.kind = pauses[i].kind, .lifetime = pauses[i].lifetime};

        assert_int_equal(port_map_pause_after(&pm), pauses[i].pause);
    }
}

static void on_mapping(void *ctx, const struct port_mapping *pm)
{
    fail();
}

/* With nothing asked for there is nothing to give back, and the end comes at once. */
static void test_it_ends(void **state)
{
    uv_loop_t loop;
    struct port_map *pm = NULL;

    assert_int_equal(uv_loop_init(&loop), 0);
    for (int give_back = 0; give_back < 2; give_back++) {
        assert_int_equal(port_map_new(&pm, &loop, on_mapping, NULL, NULL), 0);
        /* It alone does not keep the loop running. */
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        pm = port_map_free(pm, give_back);
        assert_null(pm);
        (void)uv_run(&loop, UV_RUN_DEFAULT);
    }
    assert_null(port_map_free(NULL, true));
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- a router ------------------------------------------------------------------------------- */

static struct router {
    struct netlink *nl;
    uv_loop_t loop;
    uv_timer_t turn; /* keeps the loop running */
    struct port_map *map;
    struct nat_pmp pmp;
    unsigned n_told;
    struct port_mapping told; /* the last one */
} router;

static void on_router_mapping(void *ctx, const struct port_mapping *pm)
{
    assert_ptr_equal(ctx, &router);
    router.n_told++;
    router.told = *pm;
}

static void on_turn(uv_timer_t *timer)
{
}

static void make_network(void)
{
    const struct ip_prefix own = netns_prefix("192.0.2.5/24");
    unsigned lo = netns_raise_loopback(router.nl);
    struct rtnl_link link;

    assert_int_equal(rtnl_add_link(router.nl, "lan", "bridge"), 0);
    assert_int_equal(rtnl_find_link(router.nl, "lan", &link), 0);
    assert_int_equal(rtnl_set_link(router.nl, link.ifindex, true, 0), 0);
    assert_int_equal(rtnl_add_address(router.nl, link.ifindex, &own, false), 0);
    nat_pmp_start(&router.pmp, router.nl, lo);
}

static void begin_router(void **state)
{
    memset(&router, 0, sizeof(router));
    router.nl = netns_need(state);
    make_network();
    assert_int_equal(uv_loop_init(&router.loop), 0);
    assert_int_equal(uv_timer_init(&router.loop, &router.turn), 0);
    assert_int_equal(uv_timer_start(&router.turn, on_turn, 2, 2), 0);
    assert_int_equal(port_map_new(&router.map, &router.loop, on_router_mapping, &router, NULL), 0);
}

static void end_router(bool give_back)
{
    router.map = port_map_free(router.map, give_back);
    uv_close((uv_handle_t *)&router.turn, NULL);
    (void)uv_run(&router.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&router.loop), 0);
}

/* Until the router was asked so often, and what it said has come to the loop. */
static void run_until_granted(unsigned n_granted, unsigned n_told)
{
    for (unsigned i = 0; i < 5000 && (router.pmp.n_granted < n_granted || router.n_told < n_told);
         i++) {
        nat_pmp_answer(&router.pmp);
        (void)uv_run(&router.loop, UV_RUN_ONCE);
    }
    assert_int_equal(router.pmp.n_granted, n_granted);
    assert_int_equal(router.n_told, n_told);
}

/* It is told once, and again when it has changed. */
static void test_what_a_router_grants(void **state)
{
    struct endpoint external;

    begin_router(state);
    assert_int_equal(endpoint_parse(&external, "203.0.113.60:6000", NULL), 0);
    port_map_ask(router.map, 51820);
    run_until_granted(1, 1);
    assert_int_equal(router.pmp.asked, 51820);
    assert_int_equal(router.told.kind, PORT_MAPPING_NAT_PMP);
    assert_true(endpoint_equal(&router.told.external, &external));
    assert_int_equal(router.told.internal_port, 51820);
    /* The same port again is asked for by the external one that it has, and is no news. */
    port_map_ask(router.map, 51820);
    run_until_granted(2, 1);
    assert_int_equal(router.pmp.suggested, 6000);
    router.pmp.external = 6001;
    port_map_ask(router.map, 51820);
    run_until_granted(3, 2);
    assert_int_equal(router.told.external.port, 6001);
    /* Another port begins anew. */
    router.pmp.external = 6002;
    port_map_ask(router.map, 4000);
    run_until_granted(4, 3);
    assert_int_equal(router.pmp.asked, 4000);
    assert_int_not_equal(router.pmp.suggested, 6001);
    /* At the end of the process alone the mapping stays. */
    end_router(false);
    nat_pmp_answer(&router.pmp);
    assert_int_equal(router.pmp.n_granted, 4);
    nat_pmp_stop(&router.pmp);
}

static void test_a_mapping_is_given_back(void **state)
{
    begin_router(state);
    port_map_ask(router.map, 51820);
    run_until_granted(1, 1);
    assert_true(router.pmp.lifetime > 0);
    end_router(true);
    nat_pmp_answer(&router.pmp);
    assert_int_equal(router.pmp.n_granted, 2);
    assert_int_equal(router.pmp.asked, 51820);
    assert_int_equal(router.pmp.lifetime, 0);
    nat_pmp_stop(&router.pmp);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_it_ends),
        cmocka_unit_test_setup_teardown(test_what_a_router_grants, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_a_mapping_is_given_back, netns_enter, netns_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
