/*
 * test-port-map.c - when a router is asked again, what is told of its answers, and that nobody
 * waits for one.
 *
 * The router of a network namespace of its own is the test, which speaks NAT-PMP (RFC 6886). Real
 * ones are asked in test/lab/paths/test_port_map.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <net/route.h>
#include <netinet/in.h>
#include <uv.h>

#include "agent/paths/socket/local_candidates.h"
#include "net/netlink/rtnl.h"
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
        pm = port_map_free(pm, give_back);
        assert_null(pm);
        (void)uv_run(&loop, UV_RUN_DEFAULT);
    }
    assert_null(port_map_free(NULL, true));
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- a router ------------------------------------------------------------------------------- */

#define NAT_PMP_PORT 5351

static struct router {
    struct netlink *nl;
    uv_loop_t loop;
    uv_timer_t turn; /* keeps the loop running */
    struct port_map *map;
    int fd;
    uint16_t external;  /* the port that it grants */
    unsigned n_granted; /* requests for a mapping */
    uint16_t asked;     /* internal port of the last one */
    uint16_t suggested; /* external port of the last one */
    uint32_t lifetime;  /* of the last one; 0: the mapping is to end */
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

/* The kernel takes no gateway that is this machine itself, so the address comes after the route. */
static void make_network(void)
{
    const struct ip_prefix own = netns_prefix("192.0.2.5/24");
    const struct ip_prefix gateway = netns_prefix("192.0.2.1/32");
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(NAT_PMP_PORT)};
    struct rtentry route = {.rt_flags = RTF_UP | RTF_GATEWAY, .rt_dev = (char[]){"lan"}};
    unsigned lo = netns_raise_loopback(router.nl);
    struct rtnl_link link;

    assert_int_equal(rtnl_add_link(router.nl, "lan", "bridge"), 0);
    assert_int_equal(rtnl_find_link(router.nl, "lan", &link), 0);
    assert_int_equal(rtnl_set_link(router.nl, link.ifindex, true, 0), 0);
    assert_int_equal(rtnl_add_address(router.nl, link.ifindex, &own, false), 0);
    memcpy(&at.sin_addr, gateway.addr.b + 12, sizeof(at.sin_addr));
    memcpy(&route.rt_gateway, &at, sizeof(at));
    route.rt_dst.sa_family = route.rt_genmask.sa_family = AF_INET;
    router.fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(router.fd >= 0);
    assert_int_equal(ioctl(router.fd, SIOCADDRT, &route), 0);
    assert_int_equal(rtnl_add_address(router.nl, lo, &gateway, false), 0);
    assert_int_equal(bind(router.fd, (struct sockaddr *)&at, sizeof(at)), 0);
}

static void begin_router(void **state)
{
    memset(&router, 0, sizeof(router));
    router.nl = netns_need(state);
    router.external = 6000;
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

static void put_be32(uint8_t *at, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* RFC 6886 section 3.2: its public address; 3.3: a mapping of UDP. */
static void answer_one(void)
{
    static const uint8_t public_address[4] = {203, 0, 113, 60};
    struct sockaddr_in from;
    socklen_t from_len = sizeof(from);
    uint8_t rq[64];
    uint8_t out[16] = {0};
    ssize_t n = recvfrom(router.fd, rq, sizeof(rq), 0, (struct sockaddr *)&from, &from_len);
    size_t len = 12;

    if (n < 2 || rq[1] > 1)
        return;
    out[1] = (uint8_t)(128 + rq[1]);
    put_be32(out + 4, 100);
    if (rq[1] == 0) {
        memcpy(out + 8, public_address, sizeof(public_address));
    } else {
        assert_int_equal(n, 12);
        router.n_granted++;
        router.asked = (uint16_t)(rq[4] << 8 | rq[5]);
        router.suggested = (uint16_t)(rq[6] << 8 | rq[7]);
        router.lifetime =
            (uint32_t)rq[8] << 24 | (uint32_t)rq[9] << 16 | (uint32_t)rq[10] << 8 | rq[11];
        memcpy(out + 8, rq + 4, 2);
        out[10] = (uint8_t)(router.external >> 8);
        out[11] = (uint8_t)router.external;
        put_be32(out + 12, router.lifetime);
        len = 16;
    }
    (void)sendto(router.fd, out, len, 0, (struct sockaddr *)&from, from_len);
}

/* Until the router was asked so often, and what it said has come to the loop. */
static void run_until_granted(unsigned n_granted, unsigned n_told)
{
    for (unsigned i = 0; i < 5000 && (router.n_granted < n_granted || router.n_told < n_told);
         i++) {
        answer_one();
        (void)uv_run(&router.loop, UV_RUN_ONCE);
    }
    assert_int_equal(router.n_granted, n_granted);
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
    assert_int_equal(router.asked, 51820);
    assert_int_equal(router.told.kind, PORT_MAPPING_NAT_PMP);
    assert_true(endpoint_equal(&router.told.external, &external));
    assert_int_equal(router.told.internal_port, 51820);
    /* The same port again is asked for by the external one that it has, and is no news. */
    port_map_ask(router.map, 51820);
    run_until_granted(2, 1);
    assert_int_equal(router.suggested, 6000);
    router.external = 6001;
    port_map_ask(router.map, 51820);
    run_until_granted(3, 2);
    assert_int_equal(router.told.external.port, 6001);
    /* Another port begins anew. */
    router.external = 6002;
    port_map_ask(router.map, 4000);
    run_until_granted(4, 3);
    assert_int_equal(router.asked, 4000);
    assert_int_not_equal(router.suggested, 6001);
    /* At the end of the process alone the mapping stays. */
    end_router(false);
    answer_one();
    assert_int_equal(router.n_granted, 4);
    (void)close(router.fd);
}

static void test_a_mapping_is_given_back(void **state)
{
    begin_router(state);
    port_map_ask(router.map, 51820);
    run_until_granted(1, 1);
    assert_true(router.lifetime > 0);
    end_router(true);
    answer_one();
    assert_int_equal(router.n_granted, 2);
    assert_int_equal(router.asked, 51820);
    assert_int_equal(router.lifetime, 0);
    (void)close(router.fd);
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
