/*
 * test-parts.c - candidates, what STUN answers say of a NAT, what a pong is taken for, and when a
 * chosen pair is asked and given up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "path/behavior.h"
#include "path/candidate.h"
#include "path/path_internal.h"
#include "path/path_pair_internal.h"

static struct endpoint ep(const char *text)
{
    struct endpoint e;

    assert_int_equal(endpoint_parse(&e, text, NULL), 0);
    return e;
}

static bool add(struct candidates *c, enum candidate_kind kind, const char *text)
{
    struct endpoint e = ep(text);

    return candidates_add(c, kind, &e);
}

static void test_order_and_duplicates(void **state)
{
    struct candidates c = {.n = 0};
    struct candidates same;

    assert_true(add(&c, CANDIDATE_REFLEXIVE, "203.0.113.1:1000"));
    assert_true(add(&c, CANDIDATE_HOST, "192.168.1.2:51820"));
    assert_true(add(&c, CANDIDATE_GIVEN, "203.0.113.9:51820"));
    assert_true(add(&c, CANDIDATE_HOST, "[2001:db8::2]:51820"));
    assert_false(add(&c, CANDIDATE_REFLEXIVE, "192.168.1.2:51820"));
    same = c;
    assert_true(candidates_equal(&c, &same));
    /* A node without a NAT: a server sees its host address. The earlier kind is kept. */
    assert_true(add(&c, CANDIDATE_HOST, "203.0.113.1:1000"));
    assert_false(candidates_equal(&c, &same));
    assert_int_equal(c.n, 4);
    assert_int_equal(c.items[2].kind, CANDIDATE_HOST);
    assert_int_equal(c.items[3].kind, CANDIDATE_GIVEN);
}

static void test_a_full_set_keeps_the_better(void **state)
{
    struct candidates c = {.n = 0};
    char text[64];

    for (unsigned i = 0; i < CANDIDATES_MAX; i++) {
        (void)snprintf(text, sizeof(text), "203.0.113.1:%u", i + 1);
        assert_true(add(&c, CANDIDATE_REFLEXIVE, text));
    }
    assert_false(add(&c, CANDIDATE_REFLEXIVE, "203.0.113.2:1"));
    assert_true(add(&c, CANDIDATE_HOST, "10.0.0.1:1"));
    assert_int_equal(c.n, CANDIDATES_MAX);
    assert_int_equal(c.items[0].kind, CANDIDATE_HOST);
}

static void test_impossible_endpoints(void **state)
{
    static const char *const bad[] = {"127.0.0.1:1", "0.1.2.3:1", "224.0.0.1:1",
        "255.255.255.255:1", "[::1]:1", "[ff02::1]:1", "[fe80::1]:1", "[::]:1"};
    struct candidates c = {.n = 0};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(add(&c, CANDIDATE_HOST, bad[i]));
    assert_true(add(&c, CANDIDATE_HOST, "169.254.7.7:1"));
}

static void test_private_addresses(void **state)
{
    static const struct {
        const char *text;
        bool private;
    } cases[] = {{"10.1.2.3:1", true}, {"172.16.0.1:1", true}, {"172.32.0.1:1", false},
        {"192.168.0.1:1", true}, {"192.169.0.1:1", false}, {"100.64.0.1:1", true},
        {"100.128.0.1:1", false}, {"[fd00::1]:1", true}, {"[2001:db8::1]:1", false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct endpoint e = ep(cases[i].text);

        assert_int_equal(candidate_is_private(&e.addr), cases[i].private);
    }
}

static void test_names(void **state)
{
    assert_int_equal(candidate_kind_parse("reflexive"), CANDIDATE_REFLEXIVE);
    assert_int_equal(candidate_kind_parse("heard"), CANDIDATE_NONE);
    assert_int_equal(candidate_kind_parse(""), CANDIDATE_NONE);
    for (int r = 1; r < BEHAVIOR_RULE_N; r++)
        assert_int_equal(behavior_rule_parse(behavior_rule_names[r]), (enum behavior_rule)r);
}

/* ---- the NAT -------------------------------------------------------------------------------- */

struct answer {
    const char *server;
    const char *mapped;
};

static struct behavior survey(const struct answer *answers, size_t n)
{
    struct behavior_survey s = BEHAVIOR_SURVEY_NULL;
    struct endpoint own = ep("192.168.1.2:51820");

    for (size_t i = 0; i < n; i++) {
        struct endpoint server = ep(answers[i].server);
        struct endpoint mapped = ep(answers[i].mapped);

        behavior_survey_add(&s, &server, &mapped, (nsec_t)i);
    }
    return behavior_of(&s, &own, 1);
}

#define SURVEY(...)                                                                                \
    survey((const struct answer[]){__VA_ARGS__},                                                   \
        sizeof((const struct answer[]){__VA_ARGS__}) / sizeof(struct answer))

#define S1  "198.51.100.1:3478"
#define S1B "198.51.100.1:3479"
#define S2  "198.51.100.2:3478"

static void test_mapping(void **state)
{
    assert_int_equal(SURVEY({S1, "203.0.113.1:5"}).mapping, BEHAVIOR_UNKNOWN);
    assert_int_equal(
        SURVEY({S1, "203.0.113.1:5"}, {S1B, "203.0.113.1:5"}).mapping, BEHAVIOR_UNKNOWN);
    assert_int_equal(SURVEY({S1, "203.0.113.1:5"}, {S2, "203.0.113.1:5"}).mapping,
        BEHAVIOR_ENDPOINT_INDEPENDENT);
    assert_int_equal(
        SURVEY({S1, "203.0.113.1:5"}, {S2, "203.0.113.1:6"}).mapping, BEHAVIOR_ADDRESS_DEPENDENT);
    assert_int_equal(
        SURVEY({S1, "203.0.113.1:5"}, {S1B, "203.0.113.1:6"}).mapping, BEHAVIOR_PORT_DEPENDENT);
    assert_int_equal(
        SURVEY({S1, "203.0.113.1:5"}, {S1B, "203.0.113.1:5"}, {S2, "203.0.113.1:6"}).mapping,
        BEHAVIOR_ADDRESS_DEPENDENT);
    assert_int_equal(
        SURVEY({S1, "203.0.113.1:5"}, {S2, "203.0.113.1:6"}, {S1B, "203.0.113.1:7"}).mapping,
        BEHAVIOR_PORT_DEPENDENT);
}

static void test_no_nat(void **state)
{
    struct behavior b = SURVEY({S1, "192.168.1.2:51820"});

    assert_false(b.is_natted);
    assert_int_equal(b.mapping, BEHAVIOR_ENDPOINT_INDEPENDENT);
    assert_true(SURVEY({S1, "203.0.113.1:5"}).is_natted);
}

static void test_steps(void **state)
{
    struct behavior b =
        SURVEY({S1, "203.0.113.1:5000"}, {S2, "203.0.113.1:5002"}, {S1B, "203.0.113.1:5004"});

    assert_int_equal(b.port_step, 2);
    assert_int_equal(b.last_port, 5004);
    assert_int_equal(behavior_predict(&b, 0), 5006);
    assert_int_equal(behavior_predict(&b, 2), 5010);
    assert_int_equal(behavior_predict(&b, BEHAVIOR_GUESSES), 0);
    /* Somebody else's mapping came between. */
    b = SURVEY({S1, "203.0.113.1:5000"}, {S2, "203.0.113.1:5001"}, {S1B, "203.0.113.1:5004"});
    assert_int_equal(b.port_step, 1);
    b = SURVEY({S1, "203.0.113.1:5000"}, {S2, "203.0.113.1:51234"}, {S1B, "203.0.113.1:2000"});
    assert_int_equal(b.port_step, 0);
    assert_int_equal(behavior_predict(&b, 0), 0);
    b = SURVEY({S1, "203.0.113.1:65534"}, {S1B, "203.0.113.1:65535"});
    assert_int_equal(behavior_predict(&b, 0), 0);
}

/* The peer may put into its pong what it likes: no time is reckoned from that. */
static void test_pongs(void **state)
{
    const nsec_t sent = 5 * NSEC_PER_SEC;
    const nsec_t at = sent + 7 * NSEC_PER_MSEC;
    struct path_pair pair = {.id = 1};
    struct path_frame pong = {.transaction = 3, .held_us = 2000};
    const uint64_t others[] = {0, (uint64_t)sent - 1, (uint64_t)INT64_MIN, UINT64_MAX};

    path__pair_on_ping(&pair, 3, sent);
    for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++) {
        pong.clock = others[i];
        assert_false(path__pair_on_pong(&pair, &pong, at, at));
    }
    assert_int_equal(pair.rtt, 0);
    pong.clock = (uint64_t)sent;
    assert_true(path__pair_on_pong(&pair, &pong, at, at));
    assert_int_equal(pair.rtt, 5 * NSEC_PER_MSEC);
    assert_false(path__pair_on_pong(&pair, &pong, at, at));
    /* One that says that it was held for longer than it was away has taken no time. */
    path__pair_on_ping(&pair, 4, sent);
    pair.n_samples = 0;
    pong.transaction = 4;
    pong.held_us = UINT32_MAX;
    assert_true(path__pair_on_pong(&pair, &pong, at, at));
    assert_int_equal(pair.rtt, NSEC_PER_USEC);
}

/* One that takes @rtt, answered at @at. */
static void pass_round_trip(struct path_pair *pair, nsec_t rtt, nsec_t at)
{
    const struct path_frame pong = {
        .transaction = pair->n_pings + 1, .clock = (uint64_t)(at - rtt)};

    path__pair_on_ping(pair, pong.transaction, at - rtt);
    assert_true(path__pair_on_pong(pair, &pong, at, at));
}

static void test_the_least_round_trip(void **state)
{
    const nsec_t minute = 60 * NSEC_PER_SEC;
    struct path_pair pair = {.id = 1};
    nsec_t at = minute;

    assert_int_equal(path__least(&pair.least), 0);
    pass_round_trip(&pair, 300 * NSEC_PER_USEC, at);
    /* A busy time: what is smoothed is longer, what is least is not. */
    for (unsigned i = 0; i < 9; i++)
        pass_round_trip(&pair, 4 * NSEC_PER_MSEC, at += minute);
    assert_true(pair.rtt > 3 * NSEC_PER_MSEC);
    assert_int_equal(path__least(&pair.least), 300 * NSEC_PER_USEC);
    /* For ten minutes more. */
    for (unsigned i = 0; i < 10; i++) {
        pass_round_trip(&pair, 4 * NSEC_PER_MSEC, at += minute);
        assert_int_equal(path__least(&pair.least), 300 * NSEC_PER_USEC);
    }
    pass_round_trip(&pair, 5 * NSEC_PER_MSEC, at += minute);
    assert_int_equal(path__least(&pair.least), 4 * NSEC_PER_MSEC);
    /* Nothing was measured for so long that both halves are over. */
    pass_round_trip(&pair, 7 * NSEC_PER_MSEC, at += 20 * minute);
    assert_int_equal(path__least(&pair.least), 7 * NSEC_PER_MSEC);
    /* After a failure it may be another way. */
    path__pair_on_death(&pair);
    pass_round_trip(&pair, 9 * NSEC_PER_MSEC, at += NSEC_PER_SEC);
    assert_int_equal(path__least(&pair.least), 9 * NSEC_PER_MSEC);
}

/* ---- liveness ------------------------------------------------------------------------------- */

#define MS  NSEC_PER_MSEC
#define SEC NSEC_PER_SEC
#define T0  (100 * NSEC_PER_SEC)

static void test_liveness_asks_as_often_as_it_has_to(void **state)
{
    /* What is known of the edge, and how long nothing need be heard before this end pings. */
    static const struct {
        struct path_liveness_facts facts;
        nsec_t quiet;
    } cases[] = {
        {{.begins = true}, 10000 * MS},
        {{.begins = false}, 11000 * MS},
        {{.begins = true, .is_active = true}, 500 * MS},
        {{.begins = false, .is_active = true}, 700 * MS},
        {{.begins = true, .keepalive_here = 25000 * MS}, 10000 * MS},
        {{.begins = true, .keepalive_here = 25000 * MS, .keepalive_there = 20000 * MS}, 20000 * MS},
        {{.begins = true, .keepalive_there = 1000 * MS}, 2000 * MS},
        {{.begins = false, .is_active = true, .is_relay = true}, 300 * MS},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct path_liveness_facts *facts = &cases[i].facts;
        struct path_liveness l;

        path_liveness_start(&l, facts, T0);
        assert_int_equal(l.next_at, T0 + cases[i].quiet);
        assert_int_equal(
            path_liveness_tick(&l, facts, T0 + cases[i].quiet - 1), PATH_LIVENESS_WAIT);
        assert_int_equal(path_liveness_tick(&l, facts, T0 + cases[i].quiet), PATH_LIVENESS_PING);
    }
}

/* Ticks that ask until one says that the pair is dead; returns how long that took. */
static nsec_t time_to_death(const struct path_liveness_facts *facts, unsigned *ret_pings)
{
    struct path_liveness l;
    nsec_t begun_at;

    path_liveness_start(&l, facts, T0);
    begun_at = l.next_at;
    for (*ret_pings = 0; *ret_pings < 100; (*ret_pings)++)
        if (path_liveness_tick(&l, facts, l.next_at) == PATH_LIVENESS_DEAD)
            return l.next_at - begun_at;
    return NSEC_NEVER;
}

static void test_liveness_dies_in_time(void **state)
{
    struct path_liveness_facts facts = {.begins = true, .rtt = 20 * MS};
    unsigned n;

    assert_int_equal(time_to_death(&facts, &n), 1400 * MS);
    assert_int_equal(n, 7);
    facts.rtt = 300 * MS;
    assert_true(time_to_death(&facts, &n) >= 1300 * MS + 3 * facts.rtt);
    assert_true(n >= 4);
    facts = (struct path_liveness_facts){.is_relay = true, .rtt = 20 * MS};
    assert_int_equal(time_to_death(&facts, &n), 800 * MS);
    assert_int_equal(n, 4);
}

/* What a busy machine itself is late by is not time that the peer did not answer. */
static void test_liveness_of_a_late_machine(void **state)
{
    struct path_liveness_facts facts = {.begins = true, .rtt = 20 * MS};
    struct path_liveness l;
    unsigned n = 0;

    path_liveness_start(&l, &facts, T0);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(path_liveness_tick(&l, &facts, l.next_at + 900 * MS), PATH_LIVENESS_PING);
    /* The answers that came meanwhile are read after this. */
    assert_int_equal(path_liveness_tick(&l, &facts, l.next_at + 900 * MS), PATH_LIVENESS_PING);
    path_liveness_on_alive(&l, &facts, l.next_at);
    assert_int_equal(l.n_unanswered, 0);
    /* A machine that is always late finds out as well. */
    while (path_liveness_tick(&l, &facts, l.next_at + 900 * MS) == PATH_LIVENESS_PING)
        assert_true(++n < 10);
}

/* The peer's agent answers no more, while its engine goes on: what came by the pair since the first
 * ping without an answer keeps it, for as long as more comes and for a minute at most. */
static void test_liveness_of_a_peer_that_is_busy(void **state)
{
    struct path_liveness_facts facts = {.begins = true, .is_active = true, .rtt = 20 * MS};
    nsec_t died_at[3] = {0};
    struct path_liveness l;

    for (unsigned i = 0; i < 3; i++) {
        nsec_t looked_at = T0;

        path_liveness_start(&l, &facts, T0);
        /* Nothing comes; it comes for ten seconds; for ever. */
        for (nsec_t now = T0; died_at[i] == 0; now += 10 * MS) {
            if (path_liveness_tick(&l, &facts, now) == PATH_LIVENESS_DEAD)
                died_at[i] = now - T0;
            if (!path_liveness_wants_look(&l, &facts) || now - looked_at < 300 * MS)
                continue;
            if (i == 2 || (i == 1 && now - T0 < 10 * SEC))
                path_liveness_on_received(&l, looked_at, now);
            looked_at = now;
        }
    }
    assert_in_range(died_at[0], 1 * SEC, 2500 * MS);
    assert_in_range(died_at[1], 11 * SEC, 12500 * MS);
    assert_in_range(died_at[2], 60 * SEC, 62 * SEC);
    /* What may have come before the first ping without an answer shows nothing. */
    path_liveness_start(&l, &facts, T0);
    assert_int_equal(path_liveness_tick(&l, &facts, T0 + 600 * MS), PATH_LIVENESS_PING);
    path_liveness_on_received(&l, T0, T0 + 700 * MS);
    assert_int_equal(l.received_at, 0);
}

static void test_liveness_events(void **state)
{
    struct path_liveness_facts facts = {.begins = true};
    struct path_liveness l;

    path_liveness_start(&l, &facts, T0);
    path_liveness_suspect(&l, T0 + MS);
    assert_int_equal(path_liveness_tick(&l, &facts, T0 + MS), PATH_LIVENESS_PING);
    /* Pings are under way: nothing hastens them. */
    path_liveness_suspect(&l, T0 + 2 * MS);
    path_liveness_on_data(&l, &facts, T0 + 2 * MS);
    assert_int_equal(l.next_at, T0 + 201 * MS);
    path_liveness_on_alive(&l, &facts, T0 + 3 * MS);
    assert_int_equal(l.next_at, T0 + 10003 * MS);
    path_liveness_on_data(&l, &facts, T0 + 4 * MS);
    assert_int_equal(l.next_at, T0 + 4 * MS);
    path_liveness_stop(&l);
    path_liveness_suspect(&l, T0 + 5 * MS);
    path_liveness_on_data(&l, &facts, T0 + 5 * MS);
    assert_int_equal(path_liveness_tick(&l, &facts, T0 + 3600000 * MS), PATH_LIVENESS_WAIT);
}

static void test_two_ends_have_to_agree(void **state)
{
    struct path_liveness_facts facts = {.begins = true};
    struct path_liveness l;

    path_liveness_start(&l, &facts, T0);
    /* Just after a switch they may differ. */
    assert_false(path_liveness_on_agreement(&l, false, false, T0 + 999 * MS));
    assert_false(path_liveness_on_agreement(&l, false, false, T0 + 1000 * MS));
    assert_false(path_liveness_on_agreement(&l, true, false, T0 + 1100 * MS));
    assert_false(path_liveness_on_agreement(&l, false, false, T0 + 1200 * MS));
    assert_false(path_liveness_on_agreement(&l, false, true, T0 + 1300 * MS));
    assert_true(path_liveness_on_agreement(&l, false, false, T0 + 1400 * MS));
    path_liveness_on_nominate(&l, T0 + 1500 * MS);
    assert_false(path_liveness_on_agreement(&l, false, false, T0 + 2499 * MS));
    assert_int_equal(l.n_disagreed, 0);
}

static void test_traffic_begins_once(void **state)
{
    struct path_traffic t = {.has_counts = false};

    /* The first counts are of the past. */
    assert_false(path_traffic_count(&t, 7, 9, T0));
    assert_false(path_traffic_is_active(&t, T0));
    assert_true(path_traffic_count(&t, 7, 10, T0 + MS));
    assert_false(path_traffic_count(&t, 8, 10, T0 + 2 * MS));
    assert_true(path_traffic_is_active(&t, T0 + 5001 * MS));
    assert_false(path_traffic_is_active(&t, T0 + 5002 * MS));
    assert_false(path_traffic_count(&t, 8, 10, T0 + 6000 * MS));
    assert_true(path_traffic_count(&t, 9, 10, T0 + 7000 * MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least_round_trip),
        cmocka_unit_test(test_liveness_asks_as_often_as_it_has_to),
        cmocka_unit_test(test_liveness_dies_in_time),
        cmocka_unit_test(test_liveness_of_a_late_machine),
        cmocka_unit_test(test_liveness_of_a_peer_that_is_busy),
        cmocka_unit_test(test_liveness_events),
        cmocka_unit_test(test_two_ends_have_to_agree),
        cmocka_unit_test(test_traffic_begins_once),
        cmocka_unit_test(test_order_and_duplicates),
        cmocka_unit_test(test_a_full_set_keeps_the_better),
        cmocka_unit_test(test_impossible_endpoints),
        cmocka_unit_test(test_private_addresses),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_mapping),
        cmocka_unit_test(test_no_nat),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_pongs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
