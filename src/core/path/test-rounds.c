/* test-rounds.c - what a round sends, and when; when rounds begin; and how ports are guessed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "path/paths.h"
#include "test/support/path_solo.h"

#define MSEC NSEC_PER_MSEC
#define SEC  NSEC_PER_SEC

/* ---- rounds ---------------------------------------------------------------------------------- */

/** What a round sends to one pair, and when after its beginning. */
struct step {
    int at_ms;
    uint8_t hops;
};

static void assert_steps(
    const struct solo *w, nsec_t begun_at, const struct step *steps, unsigned n_steps)
{
    assert_int_equal(w->n_sent, n_steps);
    for (unsigned i = 0; i < n_steps; i++) {
        assert_int_equal((w->sent[i].at - begun_at) / MSEC, steps[i].at_ms);
        assert_int_equal(w->sent[i].hops, steps[i].hops);
        assert_int_equal(w->sent[i].f.kind, PATH_FRAME_PING);
    }
}

#define ASSERT_STEPS(w, ...)                                                                       \
    assert_steps(w, SOLO_T0, (const struct step[]){__VA_ARGS__},                                   \
        sizeof((const struct step[]){__VA_ARGS__}) / sizeof(struct step))

static void test_a_round_pings_a_host_address_in_steps(void **state)
{
    struct solo *w = solo_start(true);

    solo_tell_side(w, CANDIDATE_HOST, NULL);
    solo_run(w, 4699 * MSEC);
    ASSERT_STEPS(w, {0, 0}, {150, 0}, {450, 0}, {750, 0}, {1200, 0}, {2200, 0}, {3700, 0});
    assert_int_equal(paths_counters(w->paths)->rounds, 1);
    assert_non_null(strstr(solo_view(w).why, "are being tried"));
    solo_run(w, 1 * MSEC);
    assert_non_null(strstr(solo_view(w).why, "no path to b answers (1 tried)"));
    solo_stop(w);
}

/* The openers' time to live grows, and the longer ones wait until the peer may know our address. */
static void test_a_round_opens_the_nats_first(void **state)
{
    struct solo *w = solo_start(true);

    solo_tell_self(w, NULL);
    solo_tell_side(w, CANDIDATE_REFLEXIVE, NULL);
    solo_run(w, 10 * SEC);
    ASSERT_STEPS(w, {0, 2}, {150, 2}, {450, 3}, {1000, 4}, {1000, 5}, {1000, 6}, {1000, 7},
        {1000, 8}, {1150, 0}, {1600, 0}, {2600, 0}, {4100, 0});
    solo_stop(w);
}

static void test_addresses_that_are_long_known_need_no_wait(void **state)
{
    struct solo *w = solo_start(true);

    solo_tell_self(w, NULL);
    solo_run(w, 900 * MSEC);
    solo_tell_side(w, CANDIDATE_REFLEXIVE, NULL);
    solo_run(w, 10 * SEC);
    assert_steps(w, SOLO_T0 + 900 * MSEC,
        (const struct step[]){{0, 2}, {150, 2}, {450, 3}, {600, 4}, {600, 5}, {600, 6}, {600, 7},
            {600, 8}, {750, 0}, {1200, 0}, {2200, 0}, {3700, 0}},
        12);
    solo_stop(w);
}

/* Nobody knows an address of ours, so nobody has opened a NAT for us: we do not knock at one. */
static void test_a_node_without_addresses_only_opens(void **state)
{
    struct solo *w = solo_start(true);

    solo_tell_side(w, CANDIDATE_REFLEXIVE, NULL);
    solo_run(w, 10 * SEC);
    ASSERT_STEPS(w, {0, 2}, {150, 2});
    solo_stop(w);
}

/* IPv6 is not translated, and who was heard a moment ago has opened its NAT. */
static void test_openers_only_where_they_are_needed(void **state)
{
    struct solo *w = solo_start(true);
    struct path_frame heard;

    w->host = solo_endpoint("[2001:db8::2]:51820");
    solo_tell_side(w, CANDIDATE_REFLEXIVE, NULL);
    solo_run(w, 4 * SEC);
    ASSERT_STEPS(w, {0, 0}, {150, 0}, {450, 0}, {750, 0}, {1200, 0}, {2200, 0}, {3700, 0});
    solo_stop(w);
    for (unsigned i = 0; i < 2; i++) {
        w = solo_start_proven(true);
        solo_run(w, 4700 * MSEC - 20 * MSEC);
        heard = solo_next_frame(w, i == 0 ? PATH_FRAME_PING : PATH_FRAME_PROBE);
        solo_deliver(w, &heard);
        solo_run(w, 9 * SEC);
        w->n_sent = 0;
        solo_tell_side(w, CANDIDATE_REFLEXIVE, NULL);
        paths_on_network_change(w->paths, w->now);
        solo_run(w, 0);
        assert_int_equal(w->n_sent, 1);
        assert_int_equal(w->sent[0].hops, 0);
        solo_stop(w);
    }
}

/* That a peer is told of again, with the same policy, is no reason to begin anew. */
static void test_a_peer_that_is_told_of_again(void **state)
{
    struct solo *w = solo_start(true);
    struct path_peer peer = solo_view(w).peer;

    solo_tell_side(w, CANDIDATE_HOST, NULL);
    solo_run(w, 5 * SEC);
    assert_int_equal(paths_counters(w->paths)->rounds, 1);
    peer.is_relay = true;
    assert_int_equal(paths_put_peer(w->paths, &peer, w->now), 0);
    assert_int_equal(paths_counters(w->paths)->rounds, 1);
    assert_true(solo_view(w).peer.is_relay);
    /* Another policy is one. */
    peer.policy = PATH_POLICY_DIRECT;
    assert_int_equal(paths_put_peer(w->paths, &peer, w->now), 0);
    assert_int_equal(paths_counters(w->paths)->rounds, 2);
    solo_stop(w);
}

/* Four answers say enough of a pair. */
static void test_a_round_asks_for_four_answers(void **state)
{
    struct solo *w = solo_start_proven(false);
    unsigned n_answered = 1;

    while (w->now < SOLO_T0 + 5 * SEC) {
        unsigned n_sent = w->n_sent;

        solo_run(w, 20 * MSEC);
        if (w->n_sent > n_sent) {
            solo_answer(w, solo_last_of(w, PATH_FRAME_PING), 0);
            n_answered++;
        }
    }
    assert_int_equal(n_answered, 4);
    solo_stop(w);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Begins of the first rounds, the one at once included. */
static void note_rounds(struct solo *w, nsec_t *begun_at, unsigned n_rounds)
{
    for (unsigned n = 0; n < n_rounds;) {
        uint64_t before = paths_counters(w->paths)->rounds;
        nsec_t due = paths_due(w->paths);

        assert_true(due != NSEC_NEVER);
        solo_run(w, nsec_max(due - w->now, 0));
        w->n_sent = 0;
        if (paths_counters(w->paths)->rounds > before)
            begun_at[n++] = w->now;
    }
}

static void test_an_idle_edge_skips_more_and_more_slots(void **state)
{
    struct solo *w = solo_start(true);
    nsec_t at[6];

    solo_tell_side(w, CANDIDATE_HOST, NULL);
    note_rounds(w, at, 6);
    assert_in_range(at[0] - SOLO_T0, 1, 60 * SEC);
    assert_true(at[1] - at[0] == 60 * SEC || at[1] - at[0] == 120 * SEC);
    assert_true((at[2] - at[1]) % (120 * SEC) == 0 && at[2] - at[1] <= 240 * SEC);
    assert_true((at[3] - at[2]) % (240 * SEC) == 0 && at[3] - at[2] <= 480 * SEC);
    assert_int_equal(at[4] - at[3], 480 * SEC);
    assert_int_equal(at[5] - at[4], 480 * SEC);
    /* Those of the clock that the two share: another one shifts them. */
    paths_set_clock(w->paths, 7 * SEC, w->now);
    note_rounds(w, at, 1);
    assert_int_equal(at[0] - at[5], 473 * SEC);
    /* But not by what is mere jitter. */
    paths_set_clock(w->paths, 7 * SEC + 99 * MSEC, w->now);
    note_rounds(w, at + 1, 1);
    assert_int_equal(at[1] - at[0], 480 * SEC);
    paths_set_clock(w->paths, 7 * SEC - 99 * MSEC, w->now);
    note_rounds(w, at, 1);
    assert_int_equal(at[0] - at[1], 480 * SEC);
    paths_set_clock(w->paths, 7 * SEC - 100 * MSEC, w->now);
    note_rounds(w, at + 1, 1);
    assert_int_equal(at[1] - at[0], 480 * SEC + 100 * MSEC);
    solo_stop(w);
}

static void test_without_a_relay_slots_come_often(void **state)
{
    struct solo *w = solo_start(true);
    nsec_t at[7];

    solo_tell_side(w, CANDIDATE_HOST, NULL);
    solo_run(w, 5 * SEC);
    paths_on_relay(w->paths, false, w->now);
    note_rounds(w, at, 6);
    assert_true(at[0] - w->now <= 5 * SEC);
    for (unsigned i = 3; i < 6; i++)
        assert_int_equal(at[i] - at[i - 1], 20 * SEC);
    solo_stop(w);
}

static void test_an_edge_with_traffic_uses_each_slot(void **state)
{
    struct solo *w = solo_start(true);
    uint64_t n_rounds;

    solo_tell_side(w, CANDIDATE_HOST, NULL);
    for (unsigned i = 0; i < 20; i++) {
        paths_on_traffic(w->paths, &w->key, i, i, w->now);
        solo_run(w, 60 * SEC);
        w->n_sent = 0;
    }
    n_rounds = paths_counters(w->paths)->rounds;
    for (unsigned i = 20; i < 30; i++) {
        /* Short pauses: it is still in use. */
        paths_on_traffic(w->paths, &w->key, i, i, w->now);
        paths_on_traffic(w->paths, &w->key, i, i, w->now + SEC);
        solo_run(w, 60 * SEC);
        w->n_sent = 0;
    }
    /* Data that begins to flow is a reason of its own. */
    assert_in_range(paths_counters(w->paths)->rounds - n_rounds, 10, 20);
    solo_stop(w);
}

/* ---- guessing ports -------------------------------------------------------------------------- */

static const struct behavior easy = {.mapping = BEHAVIOR_ENDPOINT_INDEPENDENT, .is_natted = true};
static const struct behavior hard = {.mapping = BEHAVIOR_PORT_DEPENDENT, .is_natted = true};

static unsigned count_on_socket(const struct solo *w, uint32_t socket)
{
    unsigned n = 0;

    for (unsigned i = 0; i < w->n_sent; i++)
        n += w->sent[i].socket == socket;
    return n;
}

/* A node behind a symmetric NAT whose first round is over: it has asked for its first sockets. */
static struct solo *start_hard(void)
{
    struct solo *w = solo_start(true);

    solo_tell_self(w, &hard);
    solo_tell_side(w, CANDIDATE_REFLEXIVE, &easy);
    solo_run(w, 5099 * MSEC);
    assert_int_equal(w->n_opened, 0);
    w->n_sent = 0;
    solo_run(w, 1 * MSEC);
    return w;
}

/* The caller opens all that were asked for since the last time, but those that it cannot. */
static void open_sockets(struct solo *w, unsigned *n_done, uint32_t except)
{
    for (; *n_done < w->n_opened; (*n_done)++)
        paths_on_socket(w->paths, w->opened[*n_done], w->opened[*n_done] != except);
    solo_take_actions(w);
}

static void test_the_hard_side_opens_sockets_and_pings_from_each(void **state)
{
    struct solo *w = start_hard();
    nsec_t begun_at = w->now;
    unsigned n_done = 0;

    assert_int_equal(w->n_opened, 16);
    while (w->now < begun_at + 9 * SEC) {
        open_sockets(w, &n_done, 0);
        solo_run(w, 10 * MSEC);
    }
    assert_int_equal(w->n_opened, 256);
    for (unsigned i = 0; i < 256; i++) {
        assert_int_equal(w->opened[i], i + 1);
        assert_int_equal(w->opened_at[i], begun_at + i / 16 * 60 * MSEC);
        assert_int_equal(count_on_socket(w, i + 1), 2);
    }
    for (unsigned i = 0; i < w->n_sent; i++)
        assert_true(endpoint_equal(&w->sent[i].to, &w->host));
    assert_int_equal(w->n_sent, 512);
    assert_int_equal(paths_counters(w->paths)->guesses, 512);
    assert_int_equal(solo_view(w).n_guesses, 512);
    assert_int_equal(paths_counters(w->paths)->sockets_opened, 256);
    /* The mappings are kept until the other end is through. */
    assert_int_equal(w->n_all_closed, 0);
    solo_run(w, begun_at + 10 * SEC - w->now);
    for (unsigned i = 1; i <= 256; i++)
        assert_int_equal(w->n_closed[i], 1);
    solo_stop(w);
}

static void test_a_socket_that_cannot_be_opened_is_left_out(void **state)
{
    struct solo *w = start_hard();
    nsec_t begun_at = w->now;
    unsigned n_done = 0;

    while (w->now < begun_at + 9 * SEC) {
        open_sockets(w, &n_done, 200);
        solo_run(w, 10 * MSEC);
    }
    assert_int_equal(w->n_opened, 256);
    for (unsigned i = 1; i <= 256; i++)
        assert_int_equal(count_on_socket(w, i) > 0, i != 200);
    assert_int_equal(w->n_sent, 510);
    solo_run(w, begun_at + 10 * SEC - w->now);
    for (unsigned i = 1; i <= 256; i++)
        assert_int_equal(w->n_closed[i], i != 200);
    /* One that was opened too late is closed at once; one that was not opened is not. */
    paths_on_socket(w->paths, 200, false);
    solo_take_actions(w);
    assert_int_equal(w->n_closed[200], 0);
    paths_on_socket(w->paths, 200, true);
    solo_take_actions(w);
    assert_int_equal(w->n_closed[200], 1);
    solo_stop(w);
}

/* What comes by a socket that was not asked for yet is not read, nor is it kept open. */
static void test_sockets_that_were_not_asked_for(void **state)
{
    struct solo *w = start_hard();
    struct path_frame ping = solo_next_frame(w, PATH_FRAME_PING);

    assert_int_equal(w->n_opened, 16);
    solo_deliver_held(w, &ping, &w->host, 17, PATH_FRAME_MIN, 0);
    assert_int_equal(paths_counters(w->paths)->frames_received, 0);
    solo_deliver_held(w, &ping, &w->host, 16, PATH_FRAME_MIN, 0);
    assert_int_equal(paths_counters(w->paths)->frames_received, 1);
    paths_on_socket(w->paths, 17, true);
    paths_on_socket(w->paths, 16, true);
    solo_take_actions(w);
    assert_int_equal(w->n_closed[17], 1);
    assert_int_equal(w->n_closed[16], 0);
    solo_stop(w);
}

static void test_the_socket_that_is_answered_is_kept(void **state)
{
    struct solo *w = start_hard();
    unsigned n_done = 0;
    unsigned n_received;
    struct path_frame f;

    open_sockets(w, &n_done, 0);
    solo_run(w, 60 * MSEC);
    assert_int_equal(count_on_socket(w, 7), 1);
    /* The peer's guess arrives there, and both pings that ask back are answered. */
    f = solo_next_frame(w, PATH_FRAME_PING);
    solo_deliver_held(w, &f, &w->host, 7, PATH_FRAME_MIN, 0);
    assert_int_equal(count_on_socket(w, 7), 3);
    for (unsigned i = 0; i < 2; i++) {
        solo_answer_after(w, 20 * MSEC);
        solo_run(w, 0);
    }
    assert_int_equal(solo_last_of(w, PATH_FRAME_PONG)->socket, 7);
    solo_run(w, 100 * MSEC);
    assert_int_equal(solo_last_of(w, PATH_FRAME_NOMINATE)->socket, 7);
    f = solo_next_frame(w, PATH_FRAME_ACCEPT);
    f.transaction = solo_last_of(w, PATH_FRAME_NOMINATE)->f.transaction;
    solo_deliver_held(w, &f, &w->host, 7, PATH_FRAME_MIN, 0);
    assert_int_equal(w->use.path, PATH_KIND_DIRECT);
    assert_int_equal(w->use.socket, 7);
    /* All others are closed, and those that were asked for and are opened only now. */
    for (uint32_t i = 1; i <= n_done; i++)
        assert_int_equal(w->n_closed[i], i == 7 ? 0 : 1);
    assert_true(n_done < w->n_opened);
    open_sockets(w, &n_done, 0);
    for (uint32_t i = 1; i <= n_done; i++)
        assert_int_equal(w->n_closed[i], i == 7 ? 0 : 1);
    /* What comes to a socket that is none of the edge's is not read. */
    n_received = (unsigned)paths_counters(w->paths)->frames_received;
    f = solo_next_frame(w, PATH_FRAME_PING);
    solo_deliver_held(w, &f, &w->host, 8, PATH_FRAME_MIN, 0);
    assert_int_equal(paths_counters(w->paths)->frames_received, n_received);
    solo_deliver_held(w, &f, &w->host, 7, PATH_FRAME_MIN, 0);
    assert_int_equal(paths_counters(w->paths)->frames_received, n_received + 1);
    /* The caller ends: the peer hears of it, twice, and the socket is closed. */
    paths_leave_sockets(w->paths, w->now);
    solo_take_actions(w);
    assert_int_equal(solo_count_of(w, PATH_FRAME_LEAVE), 2);
    assert_int_equal(solo_last_of(w, PATH_FRAME_LEAVE)->socket, 7);
    assert_int_equal(solo_last_of(w, PATH_FRAME_LEAVE)->f.flags, 0);
    assert_int_equal(w->use.path, PATH_KIND_RELAY);
    assert_int_equal(w->n_closed[7], 1);
    solo_stop(w);
}

static void test_the_easy_side_pings_ports(void **state)
{
    static bool is_guessed[65536];
    struct solo *w = solo_start(true);
    nsec_t begun_at;

    memset(is_guessed, 0, sizeof(is_guessed));
    solo_tell_self(w, &easy);
    solo_tell_side(w, CANDIDATE_REFLEXIVE, &hard);
    solo_run(w, 5099 * MSEC);
    w->n_sent = 0;
    solo_run(w, 1 * MSEC);
    begun_at = w->now;
    assert_int_equal(w->n_sent, 8);
    solo_run(w, 9900 * MSEC);
    assert_int_equal(w->n_sent, 1024);
    for (unsigned i = 0; i < 1024; i++) {
        const struct solo_sent *s = &w->sent[i];

        assert_int_equal(s->at, begun_at + i / 8 * 60 * MSEC);
        assert_true(ip_addr_equal(&s->to.addr, &w->host.addr));
        assert_int_equal(s->socket, PATH_SOCKET_MAIN);
        assert_in_range(s->to.port, 1024, 65535);
        assert_false(is_guessed[s->to.port]);
        is_guessed[s->to.port] = true;
    }
    assert_int_equal(paths_counters(w->paths)->guesses, 1024);
    assert_int_equal(w->n_opened, 0);
    solo_stop(w);
}

/* Both ends have to do their share, and one of the NATs has to be guessed at. */
static void test_ports_are_not_guessed_in_vain(void **state)
{
    static const struct behavior blocked = {
        .mapping = BEHAVIOR_PORT_DEPENDENT, .is_natted = true, .is_blocked = true};
    static const struct behavior easy_blocked = {.is_natted = true, .is_blocked = true};
    static const struct {
        const struct behavior *self, *peer;
    } cases[] = {{&hard, &hard}, {&easy, &easy}, {&blocked, &easy}, {&hard, &easy_blocked},
        {&easy, &blocked}, {&easy_blocked, &hard}};
    struct path_side side = {.generation = 2, .nat = easy};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct solo *w = solo_start(true);

        solo_tell_self(w, cases[i].self);
        solo_tell_side(w, CANDIDATE_REFLEXIVE, cases[i].peer);
        solo_run(w, 30 * SEC);
        assert_int_equal(w->n_opened, 0);
        assert_int_equal(paths_counters(w->paths)->guesses, 0);
        solo_stop(w);
    }
    /* The peer cannot, or nothing is known of where its NAT is. */
    for (unsigned i = 0; i < 2; i++) {
        struct solo *w = solo_start(true);

        if (i == 1) {
            side.can_guess = true;
            w->host = solo_endpoint("192.168.1.2:51820");
        }
        side.candidates.n = 0;
        assert_true(candidates_add(
            &side.candidates, i == 0 ? CANDIDATE_REFLEXIVE : CANDIDATE_HOST, &w->host));
        solo_tell_self(w, &hard);
        paths_set_peer_side(w->paths, &w->key, &side, w->now);
        solo_run(w, 30 * SEC);
        assert_int_equal(w->n_opened, 0);
        solo_stop(w);
    }
}

/* After a failure at each eighth slot, then at each 16th, and so on, up to each 256th. */
static void test_guessing_is_repeated_less_and_less_often(void **state)
{
    struct solo *w = start_hard();
    nsec_t at[9] = {w->now};
    unsigned n = 1;

    while (n < 9) {
        solo_run(w, nsec_max(paths_due(w->paths) - w->now, MSEC));
        if (w->n_opened > 0 && w->now - at[n - 1] > 20 * SEC)
            at[n++] = w->now;
        w->n_sent = w->n_opened = 0;
    }
    for (unsigned i = 2; i < 7; i++) {
        assert_in_range(at[i] - at[i - 1], 120 * SEC, (480 * SEC << (i - 1)) + 120 * SEC);
        assert_int_equal((at[i] - at[i - 1]) % (480 * SEC << (i - 2)), 0);
    }
    assert_int_equal(at[7] - at[6], 256 * 60 * SEC);
    assert_int_equal(at[8] - at[7], 256 * 60 * SEC);
    solo_stop(w);
}

/* A NAT that counts: the ports after the last one that was seen, four times in a round. */
static void test_the_next_ports_of_a_counting_nat_are_pinged(void **state)
{
    static const struct behavior counting = {
        .mapping = BEHAVIOR_PORT_DEPENDENT, .is_natted = true, .port_step = 2, .last_port = 5000};
    static const int times_ms[] = {0, 150, 750, 1200};
    struct solo *w = solo_start(true);
    unsigned n = 0;

    solo_tell_side(w, CANDIDATE_REFLEXIVE, &counting);
    solo_run(w, 3 * SEC);
    for (unsigned i = 0; i < w->n_sent; i++) {
        const struct solo_sent *s = &w->sent[i];

        if (endpoint_equal(&s->to, &w->host))
            continue;
        assert_int_equal((s->at - SOLO_T0) / MSEC, times_ms[n / 24]);
        assert_int_equal(s->to.port, 5002 + 2 * (n % 24));
        assert_true(ip_addr_equal(&s->to.addr, &w->host.addr));
        n++;
    }
    assert_int_equal(n, 4 * 24);
    solo_stop(w);
}

/* Its own newest port is asked for before the peer guesses it, once in a minute. */
static void test_a_counting_nat_has_its_port_asked_for(void **state)
{
    struct behavior own = {
        .mapping = BEHAVIOR_PORT_DEPENDENT, .is_natted = true, .port_step = 1, .last_port = 7};
    struct solo *w = solo_start(true);

    solo_tell_self(w, &own);
    solo_tell_side(w, CANDIDATE_HOST, &easy);
    solo_run(w, 0);
    assert_int_equal(w->n_fresh, 1);
    solo_run(w, 30 * SEC);
    w->n_fresh = 0;
    paths_on_network_change(w->paths, w->now);
    solo_take_actions(w);
    assert_int_equal(w->n_fresh, w->now - SOLO_T0 >= 60 * SEC);
    solo_stop(w);
    own.port_step = 0;
    w = solo_start(true);
    solo_tell_self(w, &own);
    solo_tell_side(w, CANDIDATE_HOST, &easy);
    solo_run(w, 0);
    assert_int_equal(w->n_fresh, 0);
    solo_stop(w);
}

/* A frame of a peer without a direct path begins a round: at once the first time, and then after
 * five seconds, which each round in vain doubles, four times at most. */
static void test_a_peer_that_speaks_begins_a_round(void **state)
{
    static const nsec_t pauses[] = {10 * SEC, 20 * SEC, 40 * SEC, 80 * SEC, 80 * SEC};
    struct solo *w = solo_start(true);
    struct path_frame ping = solo_next_frame(w, PATH_FRAME_PING);

    solo_deliver(w, &ping);
    assert_int_equal(paths_counters(w->paths)->rounds, 1);
    for (unsigned i = 0; i < sizeof(pauses) / sizeof(*pauses); i++) {
        solo_run(w, pauses[i] - 1);
        ping = solo_next_frame(w, PATH_FRAME_PING);
        solo_deliver(w, &ping);
        assert_int_equal(paths_counters(w->paths)->rounds, i + 1);
        solo_run(w, 1);
        ping = solo_next_frame(w, PATH_FRAME_PING);
        solo_deliver(w, &ping);
        assert_int_equal(paths_counters(w->paths)->rounds, i + 2);
    }
    solo_stop(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_round_pings_a_host_address_in_steps),
        cmocka_unit_test(test_a_round_opens_the_nats_first),
        cmocka_unit_test(test_addresses_that_are_long_known_need_no_wait),
        cmocka_unit_test(test_a_node_without_addresses_only_opens),
        cmocka_unit_test(test_openers_only_where_they_are_needed),
        cmocka_unit_test(test_a_peer_that_is_told_of_again),
        cmocka_unit_test(test_a_round_asks_for_four_answers),
        cmocka_unit_test(test_an_idle_edge_skips_more_and_more_slots),
        cmocka_unit_test(test_without_a_relay_slots_come_often),
        cmocka_unit_test(test_an_edge_with_traffic_uses_each_slot),
        cmocka_unit_test(test_the_hard_side_opens_sockets_and_pings_from_each),
        cmocka_unit_test(test_a_socket_that_cannot_be_opened_is_left_out),
        cmocka_unit_test(test_sockets_that_were_not_asked_for),
        cmocka_unit_test(test_the_socket_that_is_answered_is_kept),
        cmocka_unit_test(test_the_easy_side_pings_ports),
        cmocka_unit_test(test_ports_are_not_guessed_in_vain),
        cmocka_unit_test(test_guessing_is_repeated_less_and_less_often),
        cmocka_unit_test(test_the_next_ports_of_a_counting_nat_are_pinged),
        cmocka_unit_test(test_a_counting_nat_has_its_port_asked_for),
        cmocka_unit_test(test_a_peer_that_speaks_begins_a_round),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
