/* test-local-candidates.c - what a node tells of its addresses and its NAT, and whom it asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/paths/socket/local_candidates.h"
#include "base/secret.h"
#include "test/support/sample_mesh.h"
#include "wire/stun.h"

#define SEC  NSEC_PER_SEC
#define T0   (1000 * SEC)
#define PORT 51820

/* Two endpoints of the hub, at WireGuard's port and at the API's. */
#define SERVERS 4

struct world {
    struct local_candidates lc;
    struct snapshot snapshot;
    uint64_t seed;
    struct rng rng;
};

static struct endpoint endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

static const struct endpoint *given(void)
{
    static struct endpoint items[2];

    items[0] = endpoint("203.0.113.50:4000");
    items[1] = endpoint("203.0.113.51:1");
    items[1].port = 0;
    return items;
}

static int set_up(void **state)
{
    static struct world w;
    struct ip_addr own = endpoint("192.168.1.2:1").addr;

    w = (struct world){.snapshot = sample_snapshot(3, 2), .seed = 1};
    w.rng = rng_seeded(&w.seed);
    w.lc = (struct local_candidates){.given = given(), .n_given = 2};
    local_candidates_set_servers(&w.lc, &w.snapshot, T0);
    local_candidates_set_addresses(&w.lc, &own, 1, PORT, T0);
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    snapshot_deinit(&w->snapshot);
    return 0;
}

/* Answers all requests that are due; servers see the node at that address, port by port. */
static unsigned answer_all(struct world *w, const char *seen, int port_step, nsec_t now)
{
    struct endpoint mapped = endpoint(seen);
    struct local_request requests[STUN_CLIENT_SERVERS_MAX];
    unsigned n = 0;

    while (stun_client_next(&w->lc.stun, now, &w->rng, &requests[n].to, requests[n].bytes))
        n++;
    for (unsigned i = 0; i < n; i++) {
        uint8_t out[STUN_ANSWER_MAX];
        struct stun_request req;
        size_t len;

        assert_int_equal(stun_decode_request(&req, requests[i].bytes, STUN_REQUEST_SIZE), 0);
        len = stun_encode_answer(&req, &mapped, out);
        assert_true(
            local_candidates_on_answer(&w->lc, out, len, &requests[i].to, now + NSEC_PER_MSEC));
        mapped.port = (uint16_t)(mapped.port + port_step);
    }
    return n;
}

static struct path_side filled(const struct world *w)
{
    struct path_side side = {.generation = 5};

    local_candidates_fill(&w->lc, &side);
    assert_int_equal(side.generation, 5);
    return side;
}

static bool has(const struct path_side *side, enum candidate_kind kind, const char *text)
{
    struct endpoint ep = endpoint(text);
    const struct candidate *c = candidates_find(&side->candidates, &ep);

    return c && c->kind == kind;
}

static void test_each_kind_of_candidate(void **state)
{
    struct world *w = *state;
    struct port_mapping pm = {
        .kind = PORT_MAPPING_NAT_PMP, .external = endpoint("203.0.113.60:6000")};
    struct endpoint hub = endpoint("203.0.113.10:51820");
    struct path_side side = filled(w);

    assert_int_equal(side.candidates.n, 3);
    assert_true(has(&side, CANDIDATE_HOST, "192.168.1.2:51820"));
    assert_true(has(&side, CANDIDATE_GIVEN, "203.0.113.50:4000"));
    assert_true(has(&side, CANDIDATE_GIVEN, "203.0.113.51:51820"));
    w->lc.mapping = pm;
    assert_int_equal(answer_all(w, "203.0.113.70:7000", 0, T0), SERVERS);
    side = filled(w);
    assert_true(has(&side, CANDIDATE_MAPPED, "203.0.113.60:6000"));
    assert_true(has(&side, CANDIDATE_REFLEXIVE, "203.0.113.70:7000"));
    assert_true(side.nat.is_natted);
    assert_true(side.can_guess);
    assert_int_equal(local_candidates_hub_rtt(&w->lc, &hub, T0), NSEC_PER_MSEC);
    /* One that was not heard for long is not known to be as good any more. */
    assert_int_equal(
        local_candidates_hub_rtt(&w->lc, &hub, T0 + NSEC_PER_MSEC + 90 * SEC - 1), NSEC_PER_MSEC);
    assert_int_equal(local_candidates_hub_rtt(&w->lc, &hub, T0 + NSEC_PER_MSEC + 90 * SEC), 0);
}

/* Both endpoints of a hub, at WireGuard's port and at the API's; of all hubs, as far as there is
 * room. */
static void test_who_is_asked(void **state)
{
    static const char *const texts[SERVERS] = {
        "203.0.113.10:51820", "203.0.113.10:8443", "[2001:db8::10]:51820", "[2001:db8::10]:8443"};
    struct world *w = *state;
    struct endpoint ep;

    assert_int_equal(w->lc.stun.n_views, SERVERS);
    for (unsigned i = 0; i < SERVERS; i++) {
        ep = endpoint(texts[i]);
        assert_true(endpoint_equal(&w->lc.stun.views[i].server, &ep));
    }
    for (unsigned n = 1; n <= 4; n++) {
        struct object hub = sample_node(1);

        hub.node.key = sample_key(20 + n);
        hub.node.meta.name[0] = (char)('p' + n);
        hub.node.address4.b[15] = hub.node.address6.b[15] = (uint8_t)(20 + n);
        for (unsigned k = 0; k < 2; k++)
            hub.node.hub->endpoints[k].addr.b[15] = (uint8_t)(20 + n);
        sample_put(&w->snapshot, hub);
        local_candidates_set_servers(&w->lc, &w->snapshot, T0);
        assert_int_equal(w->lc.stun.n_views, n < 4 ? SERVERS * (n + 1) : STUN_CLIENT_SERVERS_MAX);
    }
}

/* The hub's own where it is known, else the least of all; of those that are measured. */
static void test_the_round_trip_to_the_hub(void **state)
{
    struct world *w = *state;
    const struct endpoint other = endpoint("203.0.113.99:1");
    struct stun_view *v = w->lc.stun.views;
    struct ip_addr outside;

    assert_int_equal(local_candidates_hub_rtt(&w->lc, &other, T0), 0);
    for (unsigned i = 0; i < SERVERS; i++) {
        v[i].heard_at = T0;
        v[i].rtt = (nsec_t)(50 - 10 * i) * NSEC_PER_MSEC;
        v[i].mapped = endpoint("203.0.113.70:7000");
        v[i].mapped.addr.b[15] = (uint8_t)(70 + i);
    }
    v[3].rtt = 60 * NSEC_PER_MSEC;
    assert_int_equal(local_candidates_hub_rtt(&w->lc, &v[1].server, T0), 40 * NSEC_PER_MSEC);
    assert_int_equal(local_candidates_hub_rtt(&w->lc, &other, T0), 30 * NSEC_PER_MSEC);
    v[2].lost = 1;
    assert_int_equal(local_candidates_hub_rtt(&w->lc, &v[2].server, T0), 30 * NSEC_PER_MSEC);
    /* One that loses requests shows nothing. */
    v[2].lost = 3;
    assert_int_equal(local_candidates_hub_rtt(&w->lc, &v[2].server, T0), 0);
    assert_int_equal(local_candidates_hub_rtt(&w->lc, &other, T0), 40 * NSEC_PER_MSEC);
    /* A measured one is never 0. */
    v[1].rtt = 0;
    assert_int_equal(local_candidates_hub_rtt(&w->lc, &v[1].server, T0), 1);
    assert_int_equal(local_candidates_hub_rtt(&w->lc, &other, T0), 1);
    /* Where each of them sees this node. */
    outside = local_candidates_outside(&w->lc, &v[2].server);
    assert_true(ip_addr_equal(&outside, &v[2].mapped.addr));
    v[2].heard_at = 0;
    outside = local_candidates_outside(&w->lc, &v[2].server);
    assert_true(ip_addr_is_none(&outside));
    outside = local_candidates_outside(&w->lc, &other);
    assert_true(ip_addr_is_none(&outside));
}

static void test_as_many_addresses_as_there_is_room_for(void **state)
{
    struct world *w = *state;
    struct ip_addr own[CANDIDATES_MAX + 1];

    for (unsigned i = 0; i < CANDIDATES_MAX + 1; i++) {
        own[i] = endpoint("192.168.1.2:1").addr;
        own[i].b[15] = (uint8_t)(2 + i);
    }
    local_candidates_set_addresses(&w->lc, own, CANDIDATES_MAX + 1, PORT, T0);
    assert_int_equal(w->lc.n_own, CANDIDATES_MAX);
    assert_int_equal(w->lc.own[CANDIDATES_MAX - 1].port, PORT);
    assert_true(ip_addr_equal(&w->lc.own[CANDIDATES_MAX - 1].addr, &own[CANDIDATES_MAX - 1]));
    assert_int_equal(filled(w).candidates.n, CANDIDATES_MAX);
}

/* Whoever names an address of the overlay: no path to this node may lead through it. */
static void test_nothing_of_the_overlay_is_told(void **state)
{
    struct world *w = *state;
    struct ip_addr own[2] = {endpoint("192.168.1.2:1").addr, endpoint("10.77.0.4:1").addr};
    struct candidate_blocks blocks = {.n = 1};
    struct path_side side;

    assert_int_equal(ip_prefix_parse(&blocks.items[0], "10.77.0.0/16", NULL), 0);
    w->lc.blocks = blocks;
    local_candidates_set_addresses(&w->lc, own, 2, PORT, T0);
    assert_int_equal(answer_all(w, "10.77.0.4:51820", 0, T0), SERVERS);
    side = filled(w);
    assert_true(has(&side, CANDIDATE_HOST, "192.168.1.2:51820"));
    assert_true(has(&side, CANDIDATE_GIVEN, "203.0.113.50:4000"));
    assert_int_equal(side.candidates.n, 3);
}

static void test_another_network_voids_what_servers_told(void **state)
{
    struct world *w = *state;
    struct ip_addr own = endpoint("10.0.0.2:1").addr;
    struct endpoint server = endpoint("203.0.113.10:51820");
    struct endpoint seen = endpoint("203.0.113.70:1");
    struct ip_addr outside;
    struct path_side side;

    assert_int_equal(answer_all(w, "203.0.113.70:7000", 0, T0), SERVERS);
    outside = local_candidates_outside(&w->lc, &server);
    assert_true(ip_addr_equal(&outside, &seen.addr));
    assert_int_equal(stun_client_due(&w->lc.stun), T0 + NSEC_PER_MSEC + 30 * SEC);
    local_candidates_set_addresses(&w->lc, &own, 1, PORT + 1, T0 + SEC);
    side = filled(w);
    assert_true(has(&side, CANDIDATE_HOST, "10.0.0.2:51821"));
    assert_false(has(&side, CANDIDATE_REFLEXIVE, "203.0.113.70:7000"));
    assert_false(side.nat.is_natted);
    assert_int_equal(local_candidates_hub_rtt(&w->lc, &server, T0 + SEC), 0);
    assert_int_equal(stun_client_due(&w->lc.stun), T0 + SEC);
    assert_int_equal(answer_all(w, "203.0.113.71:7000", 0, T0 + SEC), SERVERS);
}

static void test_what_others_found_is_told(void **state)
{
    struct world *w = *state;

    w->lc.is_blocked = true;
    w->lc.keepalive = 20 * SEC;
    assert_true(filled(w).nat.is_blocked);
    assert_int_equal(filled(w).keepalive, 20 * SEC);
}

/* Only where the NAT counts is its newest port asked for, from another socket. */
static void test_a_counting_nat(void **state)
{
    struct world *w = *state;
    struct endpoint mapped = endpoint("203.0.113.70:7010");
    struct endpoint stranger = endpoint("203.0.113.99:1");
    struct local_request rq;
    struct stun_transaction before;
    uint8_t out[STUN_ANSWER_MAX];
    struct stun_request req;
    size_t len;

    assert_int_equal(answer_all(w, "203.0.113.70:7000", 0, T0), SERVERS);
    assert_false(local_candidates_begin_fresh(&w->lc, &w->rng, &rq));
    stun_client_restart(&w->lc.stun, T0 + SEC);
    assert_int_equal(answer_all(w, "203.0.113.70:7001", 2, T0 + SEC), SERVERS);
    assert_int_equal(filled(w).nat.port_step, 2);
    assert_int_equal(filled(w).nat.last_port, 7001 + 2 * (SERVERS - 1));
    /* The first IPv4 server that has answered. */
    w->lc.stun.views[0].heard_at = 0;
    assert_true(local_candidates_begin_fresh(&w->lc, &w->rng, &rq));
    assert_true(endpoint_equal(&rq.to, &w->lc.stun.views[1].server));
    assert_int_equal(stun_decode_request(&req, rq.bytes, STUN_REQUEST_SIZE), 0);
    assert_memory_equal(&req.id, &w->lc.fresh.id, sizeof(req.id));
    before = req.id;
    assert_true(local_candidates_begin_fresh(&w->lc, &w->rng, &rq));
    assert_int_equal(stun_decode_request(&req, rq.bytes, STUN_REQUEST_SIZE), 0);
    assert_memory_not_equal(&req.id, &before, sizeof(req.id));
    /* Neither an answer to another request, nor a part of the right one. */
    len = stun_encode_answer(&(struct stun_request){.id = before}, &mapped, out);
    assert_false(local_candidates_on_fresh(&w->lc, out, len, &rq.to));
    len = stun_encode_answer(&req, &mapped, out);
    assert_false(local_candidates_on_fresh(&w->lc, out, len - 1, &rq.to));
    assert_int_equal(filled(w).nat.last_port, 7001 + 2 * (SERVERS - 1));
    len = stun_encode_answer(&req, &mapped, out);
    assert_false(local_candidates_on_fresh(&w->lc, out, len, &stranger));
    assert_true(local_candidates_on_fresh(&w->lc, out, len, &rq.to));
    assert_int_equal(filled(w).nat.last_port, 7010);
    /* It answers once. */
    assert_false(local_candidates_on_fresh(&w->lc, out, len, &rq.to));
    /* Another mapping to a server that was asked before is newer. */
    stun_client_restart(&w->lc.stun, T0 + 2 * SEC);
    assert_int_equal(answer_all(w, "203.0.113.70:7020", 2, T0 + 2 * SEC), SERVERS);
    assert_int_equal(filled(w).nat.last_port, 7020 + 2 * (SERVERS - 1));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_kind_of_candidate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_another_network_voids_what_servers_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_of_the_overlay_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_is_asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_round_trip_to_the_hub, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_as_many_addresses_as_there_is_room_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_others_found_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_counting_nat, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
