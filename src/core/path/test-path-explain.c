/* test-path-explain.c - what a node says of a path that is not direct, and when it complains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"
#include "test/support/path_couple.h"

#define SEC NSEC_PER_SEC

/** What is said when nothing else is known. */
#define DROPPED(n)                                                                                 \
    "no path to b answers (" n " tried), so something drops UDP between the two: let in UDP "      \
    "51820 at a or b"

static struct couple couple;

/* The end that hears the other, and gets no answer, can say so; the one that is deaf cannot. */
static void test_one_way_break_is_named(void **state)
{
    struct couple *c = &couple;
    struct path_view views[2];

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    c->nodes[0].is_deaf = true;
    couple_run_with_traffic(c, 200 * SEC);
    couple_assert_relayed(c);
    for (unsigned i = 0; i < 2; i++)
        assert_true(paths_view(c->nodes[i].paths, &c->nodes[1 - i].key, &views[i], c->now));
    assert_non_null(strstr(views[1].why, "arrives here, but it does not hear this node"));
    assert_null(strstr(views[0].why, "arrives here"));
    c->nodes[1].is_deaf = true;
    couple_run_with_traffic(c, 200 * SEC);
    assert_true(paths_view(c->nodes[1].paths, &c->nodes[0].key, &views[1], c->now));
    assert_null(strstr(views[1].why, "arrives here"));
    couple_stop(c);
}

static void test_mesh_complains_about_the_relay(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_DIRECT);
    c->nodes[1].is_deaf = true;
    couple_tell(c);
    couple_run(c, 29 * SEC);
    assert_int_equal(c->nodes[0].n_events, 0);
    assert_false(couple_view(c, 0).is_alarm);
    couple_run(c, 2 * SEC);
    assert_int_equal(c->nodes[0].n_events, 1);
    assert_string_equal(
        c->nodes[0].event, "b: no direct path, though only direct paths are wanted: " DROPPED("1"));
    assert_true(c->nodes[0].is_warned);
    assert_true(couple_view(c, 0).is_alarm);
    /* Once, and once more when it is over. */
    couple_run(c, 300 * SEC);
    assert_int_equal(c->nodes[0].n_events, 1);
    c->nodes[1].is_deaf = false;
    couple_run(c, 600 * SEC);
    couple_assert_direct(c);
    assert_string_equal(c->nodes[0].event, "b: direct, as it should be: the alarm is over");
    assert_false(c->nodes[0].is_warned);
    assert_false(couple_view(c, 0).is_alarm);
    couple_stop(c);
}

/* ---- each reason ----------------------------------------------------------------------------- */

#define T0 (1000 * SEC)

static struct endpoint ep(const char *text)
{
    struct endpoint e;

    assert_int_equal(endpoint_parse(&e, text, NULL), 0);
    return e;
}

/** An edge from a to b on which a round has failed, and its one pair. */
struct edge {
    struct paths owner;
    struct path pp;
    struct path_pair pairs[2];
};

static struct edge edge;

/* Each node has one address, and the pair with the peer's was asked in vain. */
static struct edge *silent_edge(void)
{
    struct edge *e = &edge;
    struct endpoint own = ep("198.51.100.1:51820");
    struct endpoint remote = ep("203.0.113.2:51820");

    memset(e, 0, sizeof(*e));
    e->owner.name[0] = 'a';
    assert_true(candidates_add(&e->owner.self.candidates, CANDIDATE_HOST, &own));
    e->pp.owner = &e->owner;
    e->pp.peer.name[0] = 'b';
    e->pp.nominates = true;
    e->pp.has_side = true;
    assert_true(candidates_add(&e->pp.side.candidates, CANDIDATE_HOST, &remote));
    e->pp.checks.n_failed = 1;
    e->pp.checks.begun_at = T0 - 10 * SEC;
    e->pairs[0] = (struct path_pair){.id = 1, .tried_at = T0 - 10 * SEC};
    e->pairs[0].remote = e->pp.side.candidates.items[0];
    e->pp.pairs.items = e->pairs;
    e->pp.pairs.n = 1;
    return e;
}

static void assert_why(const struct edge *e, const char *words)
{
    char why[PATH_TEXT_MAX];

    path__explain(&e->pp, why, T0);
    assert_string_equal(why, words);
}

#define SYMMETRIC(one, other, guessed, ports)                                                      \
    "the NAT of " one " is symmetric and that of " other " lets in only what it sent to" guessed   \
    ": open " ports
#define GUESSED ", and guessing its ports was in vain so far"

static void test_reasons_of_nats(void **state)
{
    /* What the two say of their NATs, and what a says of why they are not direct. */
    static const struct {
        struct behavior nat[2];
        const char *why;
        bool is_guessed;
    } cases[] = {
        {{{.is_natted = true, .mapping = BEHAVIOR_PORT_DEPENDENT},
             {.is_natted = true, .mapping = BEHAVIOR_ADDRESS_DEPENDENT}},
            "both NATs are symmetric: open UDP 51820 at a or b, or give one of them a forwarded "
            "port"},
        {{{.is_natted = true, .mapping = BEHAVIOR_PORT_DEPENDENT}, {.is_natted = true}},
            SYMMETRIC("a", "b", "", "UDP 51820 at a or b")},
        {{{.is_natted = true, .mapping = BEHAVIOR_PORT_DEPENDENT},
             {.is_natted = true, .filtering = BEHAVIOR_PORT_DEPENDENT}},
            SYMMETRIC("a", "b", GUESSED, "UDP 51820 at a or b"), true},
        {{{.is_natted = true}, {.is_natted = true, .mapping = BEHAVIOR_PORT_DEPENDENT}},
            SYMMETRIC("b", "a", "", "UDP 51820 at a or b")},
        /* One that filters by the address, or not at all, or that is none lets the peer in. */
        {{{.is_natted = true, .mapping = BEHAVIOR_PORT_DEPENDENT},
             {.is_natted = true, .filtering = BEHAVIOR_ADDRESS_DEPENDENT}},
            DROPPED("1")},
        {{{.is_natted = true, .filtering = BEHAVIOR_ENDPOINT_INDEPENDENT},
             {.is_natted = true, .mapping = BEHAVIOR_PORT_DEPENDENT}},
            DROPPED("1")},
        {{{.is_natted = true, .mapping = BEHAVIOR_PORT_DEPENDENT}, {.is_natted = false}},
            DROPPED("1")},
        {{{.is_natted = true}, {.is_natted = true}}, DROPPED("1")},
        {{{.is_blocked = true}, {.is_natted = true}}, "UDP is blocked at a: allow UDP out of it"},
        {{{.is_natted = true}, {.is_blocked = true}}, "UDP is blocked at b: allow UDP out of it"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct edge *e = silent_edge();

        e->owner.self.nat = cases[i].nat[0];
        e->pp.side.nat = cases[i].nat[1];
        e->pp.guess.n_tried = cases[i].is_guessed;
        assert_why(e, cases[i].why);
    }
}

/* Of which port a reason speaks: of each node's first address, if that is one of its own. */
static void test_reasons_name_the_ports(void **state)
{
    struct edge *e = silent_edge();

    e->pp.side.candidates.items[0].endpoint.port = 40001;
    assert_why(e,
        "no path to b answers (1 tried), so something drops UDP between the two: let in UDP 51820 "
        "at a, or UDP 40001 at b");
    e->pp.side.candidates.items[0].kind = CANDIDATE_GIVEN;
    assert_why(e, DROPPED("1"));
    /* A node that reports no address may be reached all the same, once it speaks. */
    e->owner.self.candidates.items[0].endpoint.port = 40001;
    e->owner.self.candidates.n = 0;
    assert_why(e, DROPPED("1"));
}

static void test_reasons_of_families(void **state)
{
#define ONLY(v_a, v_b)                                                                             \
    "a has IPv" v_a " addresses only and b IPv" v_b ": give either an address of the other kind"
    static const char v4[] = "198.51.100.1:51820", v6[] = "[2001:db8::1]:51820";
    static const struct {
        const char *own[2];
        const char *theirs[2];
        const char *why;
    } cases[] = {
        {{v4}, {v6}, ONLY("4", "6")},
        {{v6}, {v4}, ONLY("6", "4")},
        {{v4, v6}, {v6}, DROPPED("1")},
        {{v6, v4}, {v4}, DROPPED("1")},
        {{v6}, {v4, v6}, DROPPED("1")},
        {{v6}, {v6}, DROPPED("1")},
        {{NULL}, {v6}, DROPPED("1")},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct edge *e = silent_edge();

        e->owner.self.candidates.n = e->pp.side.candidates.n = 0;
        for (unsigned k = 0; k < 2; k++) {
            struct endpoint own = ep(cases[i].own[k] ? cases[i].own[k] : v4);
            struct endpoint theirs = ep(cases[i].theirs[k] ? cases[i].theirs[k] : v4);

            if (cases[i].own[k])
                (void)candidates_add(&e->owner.self.candidates, CANDIDATE_HOST, &own);
            if (cases[i].theirs[k])
                (void)candidates_add(&e->pp.side.candidates, CANDIDATE_HOST, &theirs);
        }
        assert_why(e, cases[i].why);
    }
}

/* The other end chooses, and a pair that has answered in this round is one that it could choose. */
static void test_the_other_end_has_chosen_otherwise(void **state)
{
    static const char declined[] =
        "the direct path works, but b finds that the relay is faster or loses less";
    struct edge *e = silent_edge();

    e->pp.pairs.n = 2;
    e->pairs[1] = (struct path_pair){.id = 2, .valid_at = e->pp.checks.begun_at};
    assert_why(e, DROPPED("2"));
    e->pp.nominates = false;
    assert_why(e, declined);
    /* Before any NAT. */
    e->owner.self.nat = e->pp.side.nat = (struct behavior){.mapping = BEHAVIOR_PORT_DEPENDENT};
    assert_why(e, declined);
    e->owner.self.nat = e->pp.side.nat = (struct behavior){.is_natted = false};
    e->pairs[1].valid_at--;
    assert_why(e, DROPPED("2"));
    /* No round has begun yet. */
    e->pp.checks.begun_at = 0;
    assert_why(e, DROPPED("2"));
}

/* The peer was heard since the round began, and did not answer what was asked in it. */
static void test_packets_pass_in_one_direction_only(void **state)
{
    static const struct {
        nsec_t heard, tried, valid; /* ns after the round has begun */
        bool is_one_way;
    } cases[] = {{1, 0, -1, true}, {0, 0, -1, false}, {1, -1, -1, false}, {1, 0, 0, false},
        {5 * SEC, 5 * SEC, -SEC, true}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct edge *e = silent_edge();
        nsec_t begun_at = e->pp.checks.begun_at;

        e->pairs[0].remote.endpoint.port = 4000;
        e->pairs[0].contact.heard_at = begun_at + cases[i].heard;
        e->pairs[0].tried_at = begun_at + cases[i].tried;
        e->pairs[0].valid_at = begun_at + cases[i].valid;
        assert_why(e, cases[i].is_one_way
                          ? "what b sends from 203.0.113.2:4000 arrives here, but it does not "
                            "hear this node: let UDP 4000 in there, or out here"
                          : DROPPED("1"));
        /* There was no round. */
        e->pp.checks.begun_at = 0;
        e->pairs[0].valid_at = -1;
        assert_why(e, DROPPED("1"));
    }
}

/* The direct path that was worse than the relay is so for as long as it answers. */
static void test_what_was_worse_has_to_be_known(void **state)
{
    static const char worse[] = "the direct path works, but the relay is faster or loses less";
    static const struct {
        nsec_t begun, valid; /* ns before now; valid 0: never */
        bool is_known;
    } cases[] = {{30 * SEC, 30 * SEC, true}, {30 * SEC, 30 * SEC + 1, false},
        {1 * SEC, 25 * SEC - 1, true}, {1 * SEC, 25 * SEC, false}, {T0, T0, false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct edge *e = silent_edge();

        e->pp.checks.begun_at = T0 - cases[i].begun;
        e->pairs[0].valid_at = T0 - cases[i].valid;
        assert_why(e, DROPPED("1"));
        e->pp.choice.is_worse = true;
        assert_why(e, cases[i].is_known ? worse : DROPPED("1"));
        /* Any pair will do. */
        e->pairs[1] = e->pairs[0];
        e->pairs[0].valid_at = 0;
        e->pp.pairs.n = 2;
        if (cases[i].is_known)
            assert_why(e, worse);
    }
}

/* The first of these that holds is said. */
static void test_reasons_before_those_of_silence(void **state)
{
    static const char trying[] = "the ways to b are being tried";
    struct edge *e = silent_edge();

    e->pp.checks.n_failed = 0;
    assert_why(e, trying);
    e->pp.checks.n_failed = 1;
    e->pp.choice.sent.pair = 1;
    assert_why(e, trying);
    e->pp.choice.died_at = T0 - 60 * SEC;
    assert_why(e, trying);
    e->pp.choice.died_at = T0 - 60 * SEC + 1;
    assert_why(e, "the direct path stopped answering 59 s ago; it is tried again");
    e->pp.choice.is_worse = true;
    e->pairs[0].valid_at = T0;
    assert_why(e, "the direct path works, but the relay is faster or loses less");
    e->pp.side.candidates.n = 0;
    assert_why(e, "b knows no address of its own");
    e->pp.has_side = false;
    assert_why(e, "b has told no addresses: it runs no weft agent, or has just come");
    e->pp.choice.pair = 1;
    assert_why(e, "");
    e->pp.peer.policy = PATH_POLICY_RELAY;
    assert_why(e, "the edge's path or the network's topology says relay: set it to auto");
    e->pp.peer.policy = PATH_POLICY_OFF;
    assert_why(e, "the edge is off: set its path to auto");
}

/* ---- what a node reports --------------------------------------------------------------------- */

/* Every field but the generation is compared, and of the relays as many as there are. */
static void test_reports_that_tell_the_same(void **state)
{
    const struct path_side base = {.generation = 1,
        .candidates = {.n = 1},
        .nat = {.mapping = BEHAVIOR_PORT_DEPENDENT},
        .keepalive = 20 * SEC,
        .relay_run = 7,
        .relays = {{.key = {{1}}, .rtt = 5}, {.key = {{2}}, .rtt = 6}, {.key = {{3}}}},
        .n_relays = 2};
    struct path_side others[18];
    unsigned n = 0;

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        others[i] = base;
    others[n++].candidates.items[0].endpoint.port = 1;
    others[n++].nat.mapping = BEHAVIOR_ADDRESS_DEPENDENT;
    others[n++].nat.filtering = BEHAVIOR_PORT_DEPENDENT;
    others[n++].nat.is_natted = true;
    others[n++].nat.is_blocked = true;
    others[n++].nat.port_step = 1;
    others[n++].nat.last_port = 1;
    others[n++].keepalive = 21 * SEC;
    others[n++].can_guess = true;
    others[n++].relay_run = 8;
    others[n++].n_relays = 1;
    others[n++].n_relays = 3;
    others[n++].relays[0].key.b[0] = 9;
    others[n++].relays[1].key.b[0] = 9;
    others[n++].relays[1].rtt = 9;
    others[n++].relays[0].rtt = 9;
    others[n++].relays[1].is_stream = true;
    others[n++].relays[1].mtu = 1400;
    assert_int_equal(n, sizeof(others) / sizeof(*others));
    for (unsigned i = 0; i < n; i++)
        if (path_side_equal(&base, &others[i]) || path_side_equal(&others[i], &base))
            fail_msg("difference %u is not seen", i);
    others[0] = base;
    others[0].generation = 2;
    others[0].relays[2].rtt = 9;
    assert_true(path_side_equal(&base, &others[0]));
}

/* An event is one line that begins with the peer's name; what is too long is cut. */
static void test_events_name_the_peer(void **state)
{
    struct edge *e = silent_edge();
    char longer[2 * PATH_TEXT_MAX];
    struct path_action a;

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    path__event(&e->pp, true, "%d of %s", 2, "three");
    path__event(&e->pp, false, "%s", longer);
    assert_true(paths_next(&e->owner, &a));
    assert_int_equal(a.kind, PATH_ACTION_EVENT);
    assert_true(a.is_warning);
    assert_string_equal(a.name, "b");
    assert_string_equal(a.text, "b: 2 of three");
    assert_true(paths_next(&e->owner, &a));
    assert_false(a.is_warning);
    assert_int_equal(strlen(a.text), PATH_TEXT_MAX - 1);
    assert_memory_equal(a.text, "b: xxx", 6);
    assert_false(paths_next(&e->owner, &a));
    paths__queue_deinit(&e->owner);
}

static void test_a_relay_that_is_full(void **state)
{
    struct edge *e = silent_edge();

    e->pp.relay.avoids = true;
    assert_why(e, "a nearer relay is full; " DROPPED("1"));
    e->pp.relay.is_asked = true;
    assert_why(e, "its relay is full, and there is no other one yet; " DROPPED("1"));
    e->pp.peer.policy = PATH_POLICY_OFF;
    assert_why(e, "the edge is off: set its path to auto");
    e->pp.peer.policy = PATH_POLICY_AUTO;
    e->pp.choice.pair = 1;
    assert_why(e, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_way_break_is_named),
        cmocka_unit_test(test_mesh_complains_about_the_relay),
        cmocka_unit_test(test_reasons_of_nats),
        cmocka_unit_test(test_reasons_name_the_ports),
        cmocka_unit_test(test_reasons_of_families),
        cmocka_unit_test(test_the_other_end_has_chosen_otherwise),
        cmocka_unit_test(test_packets_pass_in_one_direction_only),
        cmocka_unit_test(test_what_was_worse_has_to_be_known),
        cmocka_unit_test(test_reasons_before_those_of_silence),
        cmocka_unit_test(test_a_relay_that_is_full),
        cmocka_unit_test(test_reports_that_tell_the_same),
        cmocka_unit_test(test_events_name_the_peer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
