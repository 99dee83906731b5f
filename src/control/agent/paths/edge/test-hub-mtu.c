/* test-hub-mtu.c - what the way to a hub carries, by a hub of the test's own and its clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/paths/edge/edge_mtu.h"
#include "agent/paths/edge/peer_table.h"
#include "agent/reconcile/observe.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC
#define T0  (1000 * SEC)

/* Around an inner packet: IPv4, UDP, WireGuard; and what of that is not payload of UDP. */
#define OVERHEAD 60
#define HEADERS  28

struct world {
    struct hub_mtus m;
    struct x25519_public hub;
    struct path_keys keys; /* the hub's */
    struct observation seen;
    bool has_session;
    uint64_t seed;
    nsec_t now;
    nsec_t wall;       /* the hub's clock; 0: not known */
    uint16_t carries;  /* whole packets; longer ones are lost */
    uint16_t link_mtu; /* of this machine's links */
    bool is_cut;       /* the hub's answers are short, as those of one that knows no better */
    uint16_t reported; /* what the last frame said */
    uint64_t sequence;
    unsigned n_frames;
    size_t len;
    uint8_t answer[PATH_FRAME_MAX]; /* the last one */
};

static const struct peer_traffic nothing = {.rx_bytes = 0};

static int set_up(void **state)
{
    static struct world w;
    struct x25519_secret secrets[2];
    struct x25519_public own;
    struct rng rng;

    w = (struct world){.seed = 9, .now = T0, .wall = 7 * SEC, .carries = 1500, .link_mtu = 1440};
    rng = rng_seeded(&w.seed);
    x25519_secret_make(&secrets[0], &rng);
    x25519_secret_make(&secrets[1], &rng);
    assert_true(x25519_derive_public(&secrets[0], &own));
    assert_true(x25519_derive_public(&secrets[1], &w.hub));
    assert_true(path_keys_derive(&w.keys, &secrets[1], &w.hub, &own));
    hub_mtus_init(&w.m, &secrets[0], &own, &rng);
    w.has_session = true;
    assert_int_equal(endpoint_parse(&w.seen.endpoint, "198.51.100.1:51820", NULL), 0);
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    hub_mtus_deinit(&w->m);
    secret_wipe(&w->keys, sizeof(w->keys));
    return 0;
}

/* The hub has got that frame, and its answer arrives. */
static void answer(struct world *w, struct hub_mtu_frame *frame)
{
    struct path_frame probe;
    struct path_frame ack = {.kind = PATH_FRAME_PROBE_ACK, .session = 5};
    struct xchacha_nonce nonce = {{3}};

    assert_true(path_frame_open(&w->keys, frame->bytes, frame->len, &probe));
    assert_int_equal(probe.kind, PATH_FRAME_PROBE);
    assert_true(probe.flags & PATH_FRAME_WHOLE);
    assert_true(probe.sequence > w->sequence);
    w->sequence = probe.sequence;
    w->reported = probe.size;
    ack.transaction = probe.transaction;
    ack.echo = probe.session;
    ack.size = (uint16_t)frame->len;
    w->len = w->is_cut ? PATH_FRAME_MIN : frame->len;
    assert_true(path_frame_seal(&w->keys, &ack, &nonce, w->len, w->answer));
    {
        uint8_t copy[PATH_FRAME_MAX];

        memcpy(copy, w->answer, w->len);
        assert_true(hub_mtus_on_frame(&w->m, copy, w->len, w->now));
    }
}

/* For that long, with data all the time. */
static void run(struct world *w, nsec_t time)
{
    const struct pmtu_driver_limits limits = {.network_mtu = 1420, .link_mtu = w->link_mtu};
    struct hub_mtu_frame frame;
    nsec_t end = w->now + time;
    bool is_new;

    for (; w->now < end; w->now += 50 * MS) {
        w->seen.facts.rx_bytes += 100;
        w->seen.facts.tx_bytes += 100;
        w->seen.handshake_at = w->has_session ? w->now : 0;
        (void)hub_mtus_look(&w->m, &w->hub, &w->seen, &nothing, &limits, w->now);
        while (hub_mtus_next(&w->m, &frame, &is_new, w->wall, w->now)) {
            w->n_frames++;
            assert_true(endpoint_equal(&frame.to, &w->seen.endpoint));
            if (frame.len + HEADERS <= w->carries)
                answer(w, &frame);
        }
    }
}

static void test_it_is_found_and_told(void **state)
{
    struct world *w = *state;

    run(w, 3 * SEC);
    assert_int_equal(hub_mtus_of(&w->m, &w->hub), 1440);
    assert_int_equal(w->reported, 1440);
    w->carries = 1400;
    run(w, 10 * SEC);
    assert_int_equal(hub_mtus_of(&w->m, &w->hub), 1400 - OVERHEAD);
    assert_int_equal(w->reported, 1400 - OVERHEAD);
    w->carries = 1500;
    run(w, 120 * SEC);
    assert_int_equal(hub_mtus_of(&w->m, &w->hub), 1440);
    assert_int_equal(w->reported, 1440);
}

/* Until the hub's clock is known frames have small numbers and say nothing, so that no number which
 * the own clock would give stays greater than those that come. */
static void test_it_is_told_by_the_hubs_clock(void **state)
{
    struct world *w = *state;

    w->wall = 0;
    run(w, 3 * SEC);
    assert_int_equal(hub_mtus_of(&w->m, &w->hub), 1440);
    assert_int_equal(w->reported, 0);
    assert_true(w->sequence < SEC);
    w->wall = 7 * SEC;
    run(w, 50 * MS);
    assert_int_equal(w->reported, 1440);
    assert_true(w->sequence >= 7 * SEC);
}

/* A hub that knows nothing of this, and one that answers in short: nothing is known. */
static void test_a_hub_that_does_not_measure(void **state)
{
    struct world *w = *state;

    w->carries = 0;
    run(w, 30 * SEC);
    assert_int_equal(hub_mtus_of(&w->m, &w->hub), 0);
    assert_in_range(w->n_frames, 1, 200);
    w->carries = 1500;
    w->is_cut = true;
    run(w, 70 * SEC);
    assert_int_equal(hub_mtus_of(&w->m, &w->hub), 0);
}

static void test_old_and_foreign_answers_change_nothing(void **state)
{
    struct world *w = *state;
    uint8_t copy[PATH_FRAME_MAX];

    run(w, 3 * SEC);
    w->answer[w->len - 1] ^= 1;
    memcpy(copy, w->answer, w->len);
    assert_true(hub_mtus_on_frame(&w->m, copy, w->len, w->now));
    w->answer[w->len - 1] ^= 1;
    /* The tag of somebody else. */
    memcpy(copy, w->answer, w->len);
    copy[4] ^= 1;
    assert_false(hub_mtus_on_frame(&w->m, copy, w->len, w->now));
    /* The line has a hole now, and somebody repeats each answer that he has kept. */
    w->carries = 1300;
    for (unsigned i = 0; i < 100; i++) {
        memcpy(copy, w->answer, w->len);
        assert_true(hub_mtus_on_frame(&w->m, copy, w->len, w->now));
        run(w, 100 * MS);
    }
    assert_in_range(hub_mtus_of(&w->m, &w->hub), 1300 - OVERHEAD - 8, 1300 - OVERHEAD);
}

/* The hub's answers, and to this run of the agent. */
static void test_what_is_no_answer(void **state)
{
    static const struct {
        enum path_frame_kind kind;
        uint64_t echo; /* beside the run's number */
        bool counts;
    } cases[] = {
        {PATH_FRAME_PONG, 0, false},
        {PATH_FRAME_PROBE_ACK, 1, false},
        {PATH_FRAME_PROBE_ACK, 0, true},
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct pmtu_driver_limits limits = {.network_mtu = 1420, .link_mtu = w->link_mtu};
        struct path_frame reply = {.kind = cases[i].kind, .session = 5};
        struct xchacha_nonce nonce = {{3}};
        struct hub_mtu_frame frame;
        struct path_frame probe;
        bool is_new = false;

        w->seen.handshake_at = w->now;
        (void)hub_mtus_look(&w->m, &w->hub, &w->seen, &nothing, &limits, w->now);
        assert_true(hub_mtus_next(&w->m, &frame, &is_new, w->wall, w->now));
        assert_int_equal(is_new, i == 0);
        assert_true(path_frame_open(&w->keys, frame.bytes, frame.len, &probe));
        reply.transaction = probe.transaction;
        reply.echo = probe.session ^ cases[i].echo;
        reply.size = (uint16_t)frame.len;
        assert_true(path_frame_seal(&w->keys, &reply, &nonce, frame.len, frame.bytes));
        assert_true(hub_mtus_on_frame(&w->m, frame.bytes, frame.len, w->now));
        assert_int_equal(w->m.items[0]->pmtu.pmtu.low != 0, cases[i].counts);
    }
}

/* Up to the longest frame that there is. */
static void test_links_that_carry_much(void **state)
{
    struct world *w = *state;

    w->carries = UINT16_MAX;
    w->link_mtu = PATH_FRAME_MAX + HEADERS - OVERHEAD;
    run(w, 3 * SEC);
    assert_int_equal(hub_mtus_of(&w->m, &w->hub), w->link_mtu);
    w->link_mtu++;
    run(w, 200 * SEC);
    assert_in_range(hub_mtus_of(&w->m, &w->hub), 8000, w->link_mtu - 1);
    /* Of less than before. */
    w->link_mtu = 1300;
    run(w, 3 * SEC);
    assert_int_equal(hub_mtus_of(&w->m, &w->hub), 1300);
}

static void test_as_many_ways_as_there_may_be(void **state)
{
    const struct pmtu_driver_limits limits = {.network_mtu = 1420};
    struct world *w = *state;
    struct x25519_public keys[HUB_MTU_MAX + 1];

    w->seen.handshake_at = w->now;
    for (unsigned i = 0; i <= HUB_MTU_MAX; i++) {
        keys[i] = w->hub;
        keys[i].b[0] = (uint8_t)(w->hub.b[0] + i);
        assert_false(hub_mtus_look(&w->m, &keys[i], &w->seen, &nothing, &limits, w->now));
    }
    assert_int_equal(w->m.n, HUB_MTU_MAX);
    hub_mtus_keep(&w->m, keys + 1, 2);
    assert_int_equal(w->m.n, 2);
    for (unsigned i = 0; i < 2; i++)
        assert_true(x25519_public_equal(&w->m.items[i]->key, &keys[1]) ||
                    x25519_public_equal(&w->m.items[i]->key, &keys[2]));
    /* At the end nothing is left, not even the secret. */
    hub_mtus_deinit(&w->m);
    assert_int_equal(w->m.n, 0);
    assert_memory_equal(&w->m.secret, &(struct x25519_secret){{0}}, sizeof(w->m.secret));
}

/* A way is another one when a session is there, and none without an endpoint. */
static void test_a_hub_that_moves(void **state)
{
    const struct pmtu_driver_limits limits = {.network_mtu = 1420, .link_mtu = 1440};
    struct world *w = *state;
    const struct endpoint before = w->seen.endpoint;
    const struct pmtu_driver *way;

    run(w, 3 * SEC);
    way = &w->m.items[0]->pmtu;
    w->seen.endpoint.port++;
    w->seen.handshake_at = 0;
    assert_false(hub_mtus_look(&w->m, &w->hub, &w->seen, &nothing, &limits, w->now));
    assert_true(endpoint_equal(&way->remote, &before));
    w->seen.handshake_at = w->now;
    assert_false(hub_mtus_look(&w->m, &w->hub, &w->seen, &nothing, &limits, w->now));
    assert_true(endpoint_equal(&way->remote, &w->seen.endpoint));
    w->seen.endpoint = (struct endpoint){.port = 0};
    assert_true(hub_mtus_look(&w->m, &w->hub, &w->seen, &nothing, &limits, w->now));
    assert_true(endpoint_is_none(&way->remote));
    assert_false(hub_mtus_look(&w->m, &w->hub, &w->seen, &nothing, &limits, w->now));
    assert_int_equal(hub_mtus_due(&w->m), NSEC_NEVER);
}

static void test_nothing_without_a_session(void **state)
{
    struct world *w = *state;

    w->has_session = false;
    run(w, 10 * SEC);
    assert_int_equal(w->n_frames, 0);
    w->has_session = true;
    run(w, 3 * SEC);
    assert_int_equal(hub_mtus_of(&w->m, &w->hub), 1440);
    hub_mtus_keep(&w->m, &w->hub, 1);
    assert_int_equal(hub_mtus_of(&w->m, &w->hub), 1440);
    hub_mtus_keep(&w->m, NULL, 0);
    assert_int_equal(hub_mtus_of(&w->m, &w->hub), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_it_is_found_and_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_it_is_told_by_the_hubs_clock, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_hub_that_does_not_measure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_old_and_foreign_answers_change_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_without_a_session, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_no_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_links_that_carry_much, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_as_many_ways_as_there_may_be, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_hub_that_moves, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
