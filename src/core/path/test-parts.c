/*
 * test-parts.c - what STUN answers say of a NAT, what a pong is taken for, and when a chosen pair
 * is asked and given up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/behavior.h"
#include "path/path_internal.h"
#include "path/path_pair_internal.h"

static struct endpoint ep(const char *text)
{
    struct endpoint e;

    assert_int_equal(endpoint_parse(&e, text, NULL), 0);
    return e;
}

static void test_names_of_rules(void **state)
{
    static const char *const names[BEHAVIOR_RULE_N] = {
        "unknown", "endpoint-independent", "address-dependent", "address-and-port-dependent"};

    for (int r = 0; r < BEHAVIOR_RULE_N; r++) {
        assert_string_equal(behavior_rule_names[r], names[r]);
        assert_int_equal(behavior_rule_parse(names[r]), (enum behavior_rule)r);
    }
    assert_int_equal(behavior_rule_parse("symmetric"), BEHAVIOR_UNKNOWN);
}

/* ---- the NAT -------------------------------------------------------------------------------- */

struct answer {
    const char *server;
    const char *mapped;
};

static struct behavior survey(const struct answer *answers, size_t n)
{
    struct behavior_survey s = {0};
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
#define S3  "198.51.100.3:3478"

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
    /* What was seen to depend on something does so, also where two others look alike. */
    assert_int_equal(
        SURVEY({S1, "203.0.113.1:5"}, {S2, "203.0.113.1:6"}, {S3, "203.0.113.1:6"}).mapping,
        BEHAVIOR_ADDRESS_DEPENDENT);
    assert_int_equal(
        SURVEY({S1, "203.0.113.1:5"}, {S1B, "203.0.113.1:6"}, {S2, "203.0.113.1:6"}).mapping,
        BEHAVIOR_PORT_DEPENDENT);
    assert_int_equal(
        SURVEY({S1, "203.0.113.1:5"}, {S1B, "203.0.113.1:6"}, {S2, "203.0.113.1:7"}).mapping,
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

static void test_steps_go_one_way_and_are_small(void **state)
{
    static const struct {
        const char *mapped[3];
        int step;
    } cases[] = {
        {{"203.0.113.1:5000", "203.0.113.1:4998", "203.0.113.1:4997"}, -1},
        {{"203.0.113.1:5000", "203.0.113.1:5001", "203.0.113.1:4999"}, 0},
        {{"203.0.113.1:5000", "203.0.113.1:4999", "203.0.113.1:5001"}, 0},
        {{"203.0.113.1:5000", "203.0.113.1:5000", "203.0.113.1:5003"}, 3},
        {{"203.0.113.1:5000", "203.0.113.1:5032", "203.0.113.1:5064"}, 32},
        {{"203.0.113.1:5000", "203.0.113.1:5033", "203.0.113.1:5066"}, 0},
        {{"203.0.113.1:5000", "203.0.113.1:5002", "203.0.113.1:5035"}, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(
            SURVEY({S1, cases[i].mapped[0]}, {S2, cases[i].mapped[1]}, {S1B, cases[i].mapped[2]})
                .port_step,
            cases[i].step);
    /* A NAT whose mapping is the same for all has no next one, whatever its port was before. */
    assert_int_equal(SURVEY({S1, "203.0.113.1:5"}, {S2, "203.0.113.1:5"}).port_step, 0);
}

static void test_predictions_are_ports_that_nats_give_out(void **state)
{
    static const struct {
        struct behavior nat;
        unsigned i;
        uint16_t port;
    } cases[] = {
        {{.port_step = 1, .last_port = 65534}, 0, 65535},
        {{.port_step = 1, .last_port = 65534}, 1, 0},
        {{.port_step = -1, .last_port = 1025}, 0, 1024},
        {{.port_step = -1, .last_port = 1025}, 1, 0},
        {{.port_step = 2, .last_port = 0}, 0, 0},
        {{.port_step = 0, .last_port = 5000}, 0, 0},
        {{.port_step = 1, .last_port = 5000}, BEHAVIOR_GUESSES - 1, 5000 + BEHAVIOR_GUESSES},
        {{.port_step = 1, .last_port = 5000}, BEHAVIOR_GUESSES, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(behavior_predict(&cases[i].nat, cases[i].i), cases[i].port);
}

/* Another answer of a server takes the place of its earlier one, as the newest. */
static void test_a_survey_has_one_answer_of_each_server(void **state)
{
    struct behavior_survey s = {0};
    struct endpoint mapped = ep("203.0.113.1:5000");
    struct endpoint servers[BEHAVIOR_SAMPLES_MAX + 1];

    for (unsigned i = 0; i <= BEHAVIOR_SAMPLES_MAX; i++) {
        servers[i] = ep("198.51.100.1:3478");
        servers[i].port = (uint16_t)(i + 1);
    }
    for (unsigned i = 0; i < 3; i++)
        behavior_survey_add(&s, &servers[i], &mapped, i);
    mapped.port = 5001;
    behavior_survey_add(&s, &servers[1], &mapped, 3);
    assert_int_equal(s.n, 3);
    assert_true(endpoint_equal(&s.samples[0].server, &servers[0]));
    assert_true(endpoint_equal(&s.samples[1].server, &servers[2]));
    assert_true(endpoint_equal(&s.samples[2].server, &servers[1]));
    assert_true(endpoint_equal(&s.samples[2].mapped, &mapped));
    assert_int_equal(s.samples[2].at, 3);
    /* The oldest one makes room, and it alone. */
    for (unsigned i = 3; i <= BEHAVIOR_SAMPLES_MAX; i++)
        behavior_survey_add(&s, &servers[i], &mapped, i + 1);
    assert_int_equal(s.n, BEHAVIOR_SAMPLES_MAX);
    assert_true(endpoint_equal(&s.samples[0].server, &servers[2]));
    for (unsigned i = 2; i < BEHAVIOR_SAMPLES_MAX; i++)
        assert_true(endpoint_equal(&s.samples[i].server, &servers[i + 1]));
}

/* It is the newest answer over IPv4 that says whether there is a NAT, at any of our addresses. */
static void test_a_nat_is_where_none_of_our_addresses_is_seen(void **state)
{
    struct behavior_survey s = {0};
    struct endpoint own[3] = {
        ep("192.168.1.2:51820"), ep("203.0.113.1:51820"), ep("[2001:db8::1]:51820")};
    struct endpoint servers[2] = {ep(S1), ep("[2001:db8::7]:3478")};
    struct behavior b;

    behavior_survey_add(&s, &servers[1], &own[2], 1);
    b = behavior_of(&s, own, 3);
    assert_false(b.is_natted);
    assert_int_equal(b.mapping, BEHAVIOR_UNKNOWN);
    assert_int_equal(b.last_port, 0);
    behavior_survey_add(&s, &servers[0], &own[1], 2);
    b = behavior_of(&s, own, 3);
    assert_false(b.is_natted);
    assert_int_equal(b.mapping, BEHAVIOR_ENDPOINT_INDEPENDENT);
    assert_int_equal(b.last_port, 51820);
    assert_true(behavior_of(&s, own, 1).is_natted);
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
        {{.begins = true, .keepalive_here = 100 * SEC, .keepalive_there = 90 * SEC}, 60 * SEC},
        {{.begins = false, .keepalive_here = 20 * SEC, .keepalive_there = 30 * SEC}, 21 * SEC},
        {{.begins = false, .is_relay = true}, 11 * SEC},
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
    l = (struct path_liveness){.next_at = NSEC_NEVER};
    path_liveness_suspect(&l, T0 + 5 * MS);
    path_liveness_on_data(&l, &facts, T0 + 5 * MS);
    assert_int_equal(path_liveness_tick(&l, &facts, T0 + 3600000 * MS), PATH_LIVENESS_WAIT);
}

/* What the engine has received keeps an unanswered pair for a second and a half. */
static void test_what_is_received_counts_for_so_long(void **state)
{
    static const struct {
        nsec_t after; /* the tick comes so much after something was received */
        enum path_liveness_step step;
    } cases[] = {{1499 * MS, PATH_LIVENESS_PING}, {1500 * MS, PATH_LIVENESS_DEAD}};
    struct path_liveness_facts facts = {.begins = true, .is_active = true, .rtt = 20 * MS};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        nsec_t now = T0 + 500 * MS;
        struct path_liveness l;

        path_liveness_start(&l, &facts, T0);
        for (unsigned n = 0; n < 4; n++) {
            assert_int_equal(path_liveness_wants_look(&l, &facts), n >= 2);
            assert_int_equal(path_liveness_tick(&l, &facts, now), PATH_LIVENESS_PING);
            assert_int_equal(l.next_at, now + 200 * MS);
            now = l.next_at;
        }
        facts.is_active = false;
        assert_false(path_liveness_wants_look(&l, &facts));
        facts.is_active = true;
        /* Since the first ping without an answer, and so after it. */
        path_liveness_on_received(&l, T0 + 500 * MS, now);
        l.next_at = now + cases[i].after;
        assert_int_equal(path_liveness_tick(&l, &facts, l.next_at), cases[i].step);
    }
}

/* Each is what it is from the very moment on. */
static void test_a_tick_is_late_from_50_ms_on(void **state)
{
    struct path_liveness_facts facts = {.begins = true, .rtt = 20 * MS};

    for (unsigned late = 49; late <= 50; late++) {
        struct path_liveness l = {
            .next_at = T0, .unanswered_since = T0 - 1400 * MS, .n_unanswered = 4};

        assert_int_equal(path_liveness_tick(&l, &facts, T0 + late * MS),
            late < 50 ? PATH_LIVENESS_DEAD : PATH_LIVENESS_PING);
        assert_int_equal(l.unanswered_since, T0 - 1400 * MS + (late < 50 ? 0 : 50 * MS));
    }
    for (unsigned n = 3; n <= 4; n++) {
        struct path_liveness l = {
            .next_at = T0, .unanswered_since = T0 - 1400 * MS, .n_unanswered = n};

        assert_int_equal(
            path_liveness_tick(&l, &facts, T0), n < 4 ? PATH_LIVENESS_PING : PATH_LIVENESS_DEAD);
    }
    /* Patience: 1.3 s and three round trips. */
    for (unsigned early = 0; early <= 1; early++) {
        struct path_liveness l = {
            .next_at = T0, .unanswered_since = T0 - 1360 * MS + early, .n_unanswered = 4};

        assert_int_equal(
            path_liveness_tick(&l, &facts, T0), early ? PATH_LIVENESS_PING : PATH_LIVENESS_DEAD);
    }
}

/* The one that does not ping first waits a little for the other's ping. */
static void test_data_hastens_the_ping_and_never_delays_it(void **state)
{
    struct path_liveness_facts facts = {.begins = false};
    struct path_liveness l;

    path_liveness_start(&l, &facts, T0);
    path_liveness_on_data(&l, &facts, T0 + MS);
    assert_int_equal(l.next_at, T0 + 201 * MS);
    path_liveness_on_data(&l, &facts, T0 + 2 * MS);
    assert_int_equal(l.next_at, T0 + 201 * MS);
    /* What was received before the first unanswered ping is of no account, and is forgotten. */
    path_liveness_on_received(&l, T0 + 3 * MS, T0 + 3 * MS);
    assert_int_equal(l.received_at, 0);
    assert_int_equal(path_liveness_tick(&l, &facts, T0 + 201 * MS), PATH_LIVENESS_PING);
    assert_int_equal(l.unanswered_since, T0 + 201 * MS);
    path_liveness_on_received(&l, T0 + 200 * MS, T0 + 300 * MS);
    assert_int_equal(l.received_at, 0);
    path_liveness_on_received(&l, T0 + 201 * MS, T0 + 300 * MS);
    assert_int_equal(l.received_at, T0 + 300 * MS);
    path_liveness_on_alive(&l, &facts, T0 + 400 * MS);
    assert_int_equal(l.unanswered_since, 0);
    assert_int_equal(l.n_unanswered, 0);
}

/* Unanswered pings are repeated after one and a half round trips, of 200 to 500 ms. */
static void test_pings_are_repeated_by_the_round_trip(void **state)
{
    static const nsec_t cases[][2] = {
        {20, 200}, {134, 201}, {300, 450}, {334, 500}, {2000, 500}}; /* rtt, pause, in ms */

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct path_liveness_facts facts = {.begins = true, .rtt = cases[i][0] * MS};
        struct path_liveness l;

        path_liveness_start(&l, &facts, T0);
        assert_int_equal(path_liveness_tick(&l, &facts, T0 + 10 * SEC), PATH_LIVENESS_PING);
        assert_int_equal(l.next_at, T0 + 10 * SEC + cases[i][1] * MS);
    }
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
    assert_int_equal(l.n_disagreed, 0);
    assert_false(path_liveness_on_agreement(&l, false, false, T0 + 1450 * MS));
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
        cmocka_unit_test(test_names_of_rules),
        cmocka_unit_test(test_mapping),
        cmocka_unit_test(test_no_nat),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_steps_go_one_way_and_are_small),
        cmocka_unit_test(test_predictions_are_ports_that_nats_give_out),
        cmocka_unit_test(test_a_survey_has_one_answer_of_each_server),
        cmocka_unit_test(test_a_nat_is_where_none_of_our_addresses_is_seen),
        cmocka_unit_test(test_pongs),
        cmocka_unit_test(test_the_least_round_trip),
        cmocka_unit_test(test_liveness_asks_as_often_as_it_has_to),
        cmocka_unit_test(test_liveness_dies_in_time),
        cmocka_unit_test(test_liveness_of_a_late_machine),
        cmocka_unit_test(test_liveness_of_a_peer_that_is_busy),
        cmocka_unit_test(test_liveness_events),
        cmocka_unit_test(test_what_is_received_counts_for_so_long),
        cmocka_unit_test(test_a_tick_is_late_from_50_ms_on),
        cmocka_unit_test(test_data_hastens_the_ping_and_never_delays_it),
        cmocka_unit_test(test_pings_are_repeated_by_the_round_trip),
        cmocka_unit_test(test_two_ends_have_to_agree),
        cmocka_unit_test(test_traffic_begins_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
