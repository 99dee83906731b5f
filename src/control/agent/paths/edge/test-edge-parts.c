/*
 * test-edge-parts.c - what follows for one edge from the path that was chosen: when a handshake is
 * begun, where WireGuard sends, and what the path carries.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/paths/edge/edge_mtu.h"
#include "agent/paths/edge/peer_table.h"
#include "mesh/render/render.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC
#define T0  (1000 * SEC)

static struct endpoint endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

/* ---- handshakes ----------------------------------------------------------------------------- */

static void test_the_smaller_key_begins(void **state)
{
    struct edge_handshake first = EDGE_HANDSHAKE_NULL;
    struct edge_handshake second = EDGE_HANDSHAKE_NULL;

    assert_int_equal(first.due_at, NSEC_NEVER);
    edge_handshake_want(&first, true, EDGE_HANDSHAKE_TURN, T0);
    edge_handshake_want(&second, false, EDGE_HANDSHAKE_TURN, T0);
    assert_true(edge_handshake_take(&first, T0));
    assert_false(edge_handshake_take(&second, T0));
    assert_false(edge_handshake_take(&second, T0 + SEC - 1));
    assert_true(edge_handshake_take(&second, T0 + SEC));
    /* What does not come about is begun again. */
    assert_false(edge_handshake_take(&first, T0 + SEC - 1));
    assert_true(edge_handshake_take(&first, T0 + SEC));
}

static void test_a_later_handshake_is_the_answer(void **state)
{
    struct edge_handshake h = EDGE_HANDSHAKE_NULL;

    edge_handshake_want(&h, true, 0, T0);
    edge_handshake_on_seen(&h, T0);
    assert_int_not_equal(h.due_at, NSEC_NEVER);
    edge_handshake_on_seen(&h, T0 + 1);
    assert_int_equal(h.due_at, NSEC_NEVER);
    /* The edge has moved: what was seen is of before. */
    h.wanted_at = T0 + 2;
    assert_false(edge_handshake_is_answer(&h, T0 + 1));
    assert_true(edge_handshake_has_session(&h, T0 + 180 * SEC));
    assert_false(edge_handshake_has_session(&h, T0 + 1 + 180 * SEC));
    /* Not a session of when the machine was started. */
    edge_handshake_on_seen(&h, 0);
    assert_false(edge_handshake_has_session(&h, SEC));
}

static void test_hastening(void **state)
{
    struct edge_handshake h = EDGE_HANDSHAKE_NULL;

    edge_handshake_want(&h, false, EDGE_HANDSHAKE_TURN, T0);
    assert_true(edge_handshake_hasten(&h, T0));
    assert_int_equal(h.due_at, T0);
    /* One that is due already stays so. */
    assert_true(edge_handshake_hasten(&h, T0 + SEC));
    assert_int_equal(h.due_at, T0);
    assert_true(edge_handshake_take(&h, T0));
    /* Where none is wanted none is begun. */
    h.due_at = NSEC_NEVER;
    assert_false(edge_handshake_hasten(&h, T0));
    assert_true(h.due_at == NSEC_NEVER);
}

/* ---- routes --------------------------------------------------------------------------------- */

static void test_routes(void **state)
{
    const struct x25519_public relay = {.b = {7}};
    const struct x25519_public other = {.b = {8}};
    struct endpoint at = endpoint("198.51.100.3:51820");
    struct endpoint moved = endpoint("198.51.100.3:51821");
    struct edge_route r = EDGE_ROUTE_NULL;
    struct render_path out;

    /* Render knows where the hub is, but not what the way through it carries. */
    assert_false(edge_route_render(&r, "n3", 0, true, &out));
    assert_true(edge_route_render(&r, "n3", 1400, true, &out));
    assert_true(endpoint_is_none(&out.endpoint));
    assert_int_equal(out.mtu, 1400);
    assert_false(out.is_standby);
    assert_false(edge_route_use_hub(&r));
    r = (struct edge_route){.kind = EDGE_ROUTE_DIRECT, .endpoint = at, .keepalive = 25 * SEC};
    assert_true(edge_route_render(&r, "n3", 1400, true, &out));
    assert_string_equal(out.node, "n3");
    assert_string_equal(out.via, "");
    assert_true(endpoint_equal(&out.endpoint, &at));
    assert_int_equal(out.keepalive, 25);
    assert_int_equal(out.mtu, 1400);
    assert_true(out.is_standby);
    assert_true(edge_route_render(&r, "n3", 0, false, &out));
    assert_int_equal(out.mtu, 0);
    assert_false(out.is_standby);
    r.is_applied = true;
    assert_true(edge_route_use_relay(&r, &relay, "n4", &at));
    assert_false(r.is_applied);
    /* What the direct path needed does not hold for a relay. */
    assert_true(edge_route_render(&r, "n3", 1200, true, &out));
    assert_string_equal(out.via, "n4");
    assert_int_equal(out.keepalive, 0);
    assert_int_equal(out.mtu, 1200);
    assert_false(out.is_standby);
    r.is_applied = true;
    assert_false(edge_route_use_relay(&r, &relay, "n4", &at));
    assert_false(edge_route_goes_via(&r, &other));
    assert_true(edge_route_goes_via(&r, &relay));
    assert_false(edge_route_use_relay(&r, &relay, "n4", &moved));
    assert_true(endpoint_equal(&r.endpoint, &moved));
    assert_true(r.is_applied);
    assert_true(edge_route_use_hub(&r));
    assert_false(edge_route_goes_via(&r, &relay));
}

/* ---- what a path carries -------------------------------------------------------------------- */

/* Answers every probe of at most @most bytes of UDP payload, until nothing more is to be done. */
static unsigned answer_probes(struct pmtu_driver *pd, uint16_t most, nsec_t *now)
{
    static uint64_t id;
    unsigned n_uses = 0;

    for (unsigned turn = 0; turn < 100; turn++) {
        enum pmtu_action step;
        struct pmtu_probe probe;
        uint64_t fits[PMTU_DRIVER_PROBES];
        uint16_t payload;
        unsigned n = 0;

        while ((step = pmtu_driver_next(pd, &probe, &payload, *now)) != PMTU_ACTION_NONE) {
            n_uses += step == PMTU_ACTION_SET ? 1 : 0;
            if (step != PMTU_ACTION_PROBE)
                continue;
            pmtu_driver_on_sent(pd, &probe, ++id);
            if (payload <= most)
                fits[n++] = id;
        }
        *now += 10 * MS;
        for (unsigned i = 0; i < n; i++)
            assert_true(pmtu_driver_on_fits(pd, fits[i], false, *now));
        if (n == 0 && pmtu_due(&pd->pmtu) == NSEC_NEVER)
            return n_uses;
        if (n == 0)
            *now = nsec_max(*now, pmtu_due(&pd->pmtu));
    }
    fail_msg("the search does not end");
    return 0;
}

static void test_what_a_path_carries(void **state)
{
    const struct pmtu_driver_limits limits = {.network_mtu = 1280, .link_mtu = 1420};
    struct endpoint at = endpoint("198.51.100.3:51820");
    struct pmtu_driver *pd = calloc(1, sizeof(struct pmtu_driver));
    struct pmtu_probe probe;
    uint16_t payload;
    nsec_t now = T0;

    assert_non_null(pd);
    assert_true(pmtu_driver_on_path(pd, &at, &limits, now));
    assert_false(pmtu_driver_on_path(pd, &at, &limits, now));
    /* No larger packet is trusted to it before one was answered. */
    assert_int_equal(pmtu_driver_next(pd, &probe, &payload, now), PMTU_ACTION_SET);
    assert_int_equal(pd->mtu, 1200 - 60);
    assert_true(answer_probes(pd, 1500, &now) > 0);
    /* 1420 of inner packets are 1480 with IPv4, UDP and WireGuard around them. */
    assert_int_equal(pd->mtu, 1420);
    assert_int_equal(pmtu_driver_settled(pd), 1480);
    assert_int_equal(pmtu_driver_settled(pd), 0);
    assert_false(pmtu_driver_on_fits(pd, 0xdead, false, now));
    pmtu_driver_on_path_lost(pd);
    assert_int_equal(pd->mtu, 0);
    assert_int_equal(pmtu_due(&pd->pmtu), NSEC_NEVER);
    /* The same place again is a path anew, and a smaller one now. */
    assert_true(pmtu_driver_on_path(pd, &at, &limits, now));
    (void)answer_probes(pd, 1400 - 28, &now);
    assert_int_equal(pmtu_driver_settled(pd), 1400);
    assert_int_equal(pd->mtu, 1340);
    free(pd);
}

/* What the machine's links carry, or, where that is not known, what gives the network's MTU. */
static void test_the_most_that_a_path_may_carry(void **state)
{
    static const struct {
        uint16_t network_mtu, link_mtu;
        const char *remote;
        uint16_t ceiling;
    } cases[] = {
        {1380, 0, "198.51.100.3:51820", 1440},
        {1380, 0, "[2001:db8::3]:51820", 1460},
        {1380, 1420, "198.51.100.3:51820", 1480},
        {1380, 1420, "[2001:db8::3]:51820", 1480},
        /* No less than every path carries, and no more than a packet may have. */
        {1380, 1000, "198.51.100.3:51820", 1200},
        {1380, UINT16_MAX, "198.51.100.3:51820", UINT16_MAX},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct pmtu_driver_limits limits = {
            .network_mtu = cases[i].network_mtu, .link_mtu = cases[i].link_mtu};
        const struct pmtu_driver_limits none = {.network_mtu = 1140};
        struct endpoint at = endpoint(cases[i].remote);
        struct pmtu_driver pd = {.mtu = 0};
        struct pmtu_probe probe;
        uint16_t payload;

        /* Nothing was sent yet, so that there is no answer to it. */
        assert_false(pmtu_driver_on_fits(&pd, 0, true, T0));
        assert_true(pmtu_driver_on_path(&pd, &at, &limits, T0));
        assert_true(endpoint_equal(&pd.remote, &at));
        assert_int_equal(pd.pmtu.bounds.ceiling, cases[i].ceiling);
        assert_int_equal(pmtu_driver_next(&pd, &probe, &payload, T0), PMTU_ACTION_SET);
        assert_int_equal(pd.mtu, 1200 - (ip_addr_is_v4(&at.addr) ? 60 : 80));
        assert_int_equal(pmtu_driver_next(&pd, &probe, &payload, T0), PMTU_ACTION_PROBE);
        assert_int_equal(payload, 1200 - (ip_addr_is_v4(&at.addr) ? 28 : 48));
        pmtu_driver_set_limits(&pd, &none, T0);
        assert_int_equal(pd.pmtu.bounds.ceiling, ip_addr_is_v4(&at.addr) ? 1200 : 1220);
    }
}

/* Each answer says anew whether the way back carries as much. */
static void test_answers_to_probes(void **state)
{
    const struct pmtu_driver_limits limits = {.network_mtu = 1280, .link_mtu = 1420};
    struct endpoint at = endpoint("198.51.100.3:51820");
    struct pmtu_driver pd = {.mtu = 0};
    struct pmtu_probe probe;
    uint16_t payload;

    assert_true(pmtu_driver_on_path(&pd, &at, &limits, T0));
    assert_int_equal(pmtu_driver_next(&pd, &probe, &payload, T0), PMTU_ACTION_SET);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(pmtu_driver_next(&pd, &probe, &payload, T0), PMTU_ACTION_PROBE);
        pmtu_driver_on_sent(&pd, &probe, 100 + i);
        assert_true(pmtu_driver_on_fits(&pd, 100 + i, i != 1, T0 + MS));
        assert_int_equal(pd.is_both, i != 1);
        assert_int_equal(pd.pmtu.low, probe.size);
        assert_false(pmtu_driver_on_fits(&pd, 100 + i, i == 1, T0 + MS));
        assert_int_equal(pd.is_both, i != 1);
    }
    /* Of so many the oldest is forgotten. */
    for (unsigned i = 0; i <= PMTU_DRIVER_PROBES; i++)
        pmtu_driver_on_sent(&pd, &probe, 200 + i);
    assert_false(pmtu_driver_on_fits(&pd, 200, true, T0 + MS));
    assert_true(pmtu_driver_on_fits(&pd, 201, true, T0 + MS));
    assert_true(pmtu_driver_on_fits(&pd, 200 + PMTU_DRIVER_PROBES, true, T0 + MS));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_smaller_key_begins),
        cmocka_unit_test(test_a_later_handshake_is_the_answer),
        cmocka_unit_test(test_hastening),
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_what_a_path_carries),
        cmocka_unit_test(test_the_most_that_a_path_may_carry),
        cmocka_unit_test(test_answers_to_probes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
