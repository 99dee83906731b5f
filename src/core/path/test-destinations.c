/*
 * test-destinations.c - the queue of what is to be sent and its budgets, and what members can make
 * this node send to somebody who is no member.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "path/path_internal.h"
#include "path/paths_internal.h"

#define SEC NSEC_PER_SEC
#define T0  (1000 * SEC)

static struct destinations budget;

static struct ip_addr address(const char *text)
{
    struct ip_addr a;

    assert_int_equal(ip_addr_parse(&a, text, NULL), 0);
    return a;
}

/* How many frames go through if one is tried each millisecond. */
static unsigned count(const struct ip_addr *to, bool is_guess, nsec_t from, nsec_t until)
{
    unsigned n = 0;

    for (nsec_t now = from; now < until; now += NSEC_PER_MSEC)
        n += destinations_take(&budget, to, 1, is_guess, now);
    return n;
}

static void test_so_many_at_once_and_then_so_many_a_second(void **state)
{
    struct ip_addr to = address("198.51.100.7");

    budget = (struct destinations){.seed = 1};
    assert_in_range(count(&to, false, T0, T0 + SEC), 512, 516);
    assert_in_range(count(&to, false, T0 + SEC, T0 + 101 * SEC), 396, 404);
    /* It comes back, and no more than that. */
    assert_in_range(count(&to, false, T0 + 3600 * SEC, T0 + 3601 * SEC), 512, 516);
}

static void test_guesses_and_who_has_answered_are_cheap(void **state)
{
    struct ip_addr to = address("198.51.100.7");

    budget = (struct destinations){.seed = 1};
    assert_in_range(count(&to, true, T0, T0 + 5 * SEC), 4096, 4096 + 170);
    destinations_on_answer(&budget, &to, T0 + 5 * SEC);
    assert_in_range(count(&to, false, T0 + 5 * SEC, T0 + 10 * SEC), 4096, 4096 + 170);
    /* That was too long ago. */
    assert_in_range(count(&to, false, T0 + 1000 * SEC, T0 + 1001 * SEC), 512, 516);
}

static void test_a_host_has_all_of_its_network_of_64_bits(void **state)
{
    struct ip_addr one = address("2001:db8::1"), two = address("2001:db8::2:0:0:1");
    struct ip_addr other = address("2001:db8:0:1::1");

    budget = (struct destinations){.seed = 1};
    (void)count(&one, false, T0, T0 + SEC);
    assert_in_range(count(&two, false, T0 + SEC, T0 + 2 * SEC), 0, 5);
    assert_in_range(count(&other, false, T0 + SEC, T0 + 2 * SEC), 512, 516);
}

/* Whoever names more addresses than there are places has nobody forgotten. */
static void test_a_full_table_forgets_nobody(void **state)
{
    struct ip_addr to = address("198.51.100.7");
    unsigned n = 0;

    budget = (struct destinations){.seed = 1};
    (void)count(&to, false, T0, T0 + SEC);
    for (uint32_t i = 0; i < 100000; i++) {
        struct ip_addr other = address("203.0.113.0");

        other.b[13] = (uint8_t)(i >> 16);
        other.b[14] = (uint8_t)(i >> 8);
        other.b[15] = (uint8_t)i;
        n += destinations_take(&budget, &other, 400, false, T0 + SEC);
    }
    assert_true(n <= DESTINATIONS_SETS * (DESTINATIONS_ASSOCIATIVITY + 1));
    assert_in_range(count(&to, false, T0 + SEC, T0 + 2 * SEC), 3, 5);
}

/* To the nanosecond: 512 frames, and 31.25 ms for an eighth of one to come back. */
static void test_the_budget_of_an_address_is_exact(void **state)
{
    const nsec_t eighth = SEC / 32;
    struct ip_addr to = address("198.51.100.7");

    for (unsigned is_guess = 0; is_guess < 2; is_guess++) {
        unsigned each = is_guess ? 1 : 8;

        budget = (struct destinations){.seed = 1};
        assert_false(destinations_take(&budget, &to, 512 * 8 / each + 1, is_guess, T0));
        assert_true(destinations_take(&budget, &to, 512 * 8 / each, is_guess, T0));
        assert_false(destinations_take(&budget, &to, 1, is_guess, T0 + each * eighth - 1));
        assert_true(destinations_take(&budget, &to, 1, is_guess, T0 + each * eighth));
        assert_false(destinations_take(&budget, &to, 1, is_guess, T0 + each * eighth));
    }
    /* For ten minutes after an answer a frame costs an eighth. */
    for (unsigned late = 0; late < 2; late++) {
        budget = (struct destinations){.seed = 1};
        destinations_on_answer(&budget, &to, T0);
        assert_int_equal(
            destinations_take(&budget, &to, 4096, false, T0 + 600 * SEC - 1 + late), !late);
        assert_int_equal(destinations_take(&budget, &to, 512, false, T0 + 600 * SEC), late);
    }
}

/* Of the addresses with whole budgets it is the one that answered longest ago which goes. */
static void test_who_gives_its_place_to_another(void **state)
{
    struct ip_addr addrs[DESTINATIONS_ASSOCIATIVITY + 1];
    struct ip_addr a = address("198.51.0.0");
    unsigned n = 0;

    /* Only such as are in one set are of interest here. */
    budget = (struct destinations){.seed = 1};
    for (uint32_t i = 0; n <= DESTINATIONS_ASSOCIATIVITY; i++) {
        a.b[14] = (uint8_t)(i >> 8);
        a.b[15] = (uint8_t)i;
        if (hash_bytes(budget.seed, a.b, sizeof(a.b)) % DESTINATIONS_SETS == 0)
            addrs[n++] = a;
    }
    for (unsigned i = 0; i < DESTINATIONS_ASSOCIATIVITY; i++)
        destinations_on_answer(&budget, &addrs[i], T0 + (i == 1 ? 0 : 1 + (nsec_t)i));
    assert_true(destinations_take(&budget, &addrs[DESTINATIONS_ASSOCIATIVITY], 1, false, T0 + SEC));
    for (unsigned i = 0; i < DESTINATIONS_ASSOCIATIVITY; i++) {
        const struct destination *place = &budget.places[0][i];

        assert_true(ip_addr_equal(&place->addr, &addrs[i == 1 ? DESTINATIONS_ASSOCIATIVITY : i]));
        assert_int_equal(place->answered_at, i == 1 ? 0 : T0 + 1 + (nsec_t)i);
    }
    /* All have spent something: the others of the set share one budget. */
    for (unsigned i = 0; i < DESTINATIONS_ASSOCIATIVITY; i++)
        if (i != 1)
            assert_true(destinations_take(&budget, &addrs[i], 1, false, T0 + SEC));
    assert_true(destinations_take(&budget, &addrs[1], 512, false, T0 + SEC));
    assert_false(destinations_take(&budget, &addrs[1], 1, false, T0 + SEC));
    destinations_on_answer(&budget, &addrs[1], T0 + SEC);
    assert_false(destinations_take(&budget, &addrs[1], 1, false, T0 + SEC));
    /* A place is free from the moment on at which its budget is whole. */
    assert_int_equal(budget.places[0][0].rate.full_at, T0 + SEC + SEC / 32);
    assert_false(destinations_take(&budget, &addrs[1], 1, false, T0 + SEC + SEC / 32 - 1));
    assert_true(destinations_take(&budget, &addrs[1], 512, false, T0 + SEC + SEC / 32));
}

/* ---- what a node sends and opens in all ------------------------------------------------------ */

static struct paths node;

static void test_frames_in_all(void **state)
{
    struct endpoint to = {.addr = address("198.51.100.7"), .port = 1};

    node = (struct paths){.budget = {.begin = {.interval = SEC / 10, .burst = SEC},
                              .answer = {.interval = SEC / 10, .burst = SEC},
                              .mappings = {.interval = SEC, .burst = 100 * SEC},
                              .to = {.seed = 1}}};
    /* Unasked frames wait, and are counted when they do. */
    assert_int_equal(paths__reserve(&node, 10, T0), T0);
    assert_int_equal(paths__reserve(&node, 5, T0), T0);
    assert_int_equal(node.counters.over_budget, 0);
    assert_int_equal(paths__reserve(&node, 7, T0), T0 + SEC / 2);
    assert_int_equal(node.counters.over_budget, 7);
    assert_int_equal(paths__reserve(&node, 0, T0 + SEC), T0 + SEC + SEC / 5);
    /* Answers do not wait: they are left out. */
    for (unsigned i = 0; i < 11; i++)
        assert_true(paths__may_answer(&node, T0));
    assert_int_equal(node.counters.over_budget, 7);
    assert_false(paths__may_answer(&node, T0));
    assert_int_equal(node.counters.over_budget, 8);
    assert_false(paths__may_answer(&node, T0 + SEC / 10 - 1));
    assert_true(paths__may_answer(&node, T0 + SEC / 10));
    /* Mappings, all or none; what was not made is given back. */
    assert_false(paths__may_map(&node, 101, T0));
    assert_true(paths__may_map(&node, 60, T0));
    assert_false(paths__may_map(&node, 41, T0));
    assert_true(paths__may_map(&node, 40, T0));
    assert_false(paths__may_map(&node, 1, T0 + SEC - 1));
    paths__unmap(&node, 30);
    assert_false(paths__may_map(&node, 31, T0));
    assert_true(paths__may_map(&node, 30, T0));
    /* To one address. */
    assert_int_equal(node.counters.over_budget, 9);
    assert_true(paths__may_send(&node, &to, 512, false, T0));
    assert_false(paths__may_send(&node, &to, 3, false, T0));
    assert_int_equal(node.counters.over_budget, 12);
    assert_false(paths__may_send(&node, &to, 1, true, T0 + SEC / 32 - 1));
    assert_true(paths__may_send(&node, &to, 1, true, T0 + SEC / 32));
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* Actions come out in the order in which they went in, however often the ring was turned and
 * however far it has grown. */
static void test_actions_keep_their_order(void **state)
{
    struct path_action a;
    uint32_t in = 0, out = 0;

    node = (struct paths){.session = 1};
    assert_false(paths_next(&node, &a));
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < 100; i++)
            paths__add(&node, NULL, PATH_ACTION_OPEN)->action.socket = ++in;
        for (unsigned i = 0; i < 70; i++) {
            assert_true(paths_next(&node, &a));
            assert_int_equal(a.kind, PATH_ACTION_OPEN);
            assert_int_equal(a.socket, ++out);
            assert_string_equal(a.name, "");
            assert_null(a.text);
        }
    }
    assert_int_equal(node.queue.n, 150);
    while (paths_next(&node, &a))
        assert_int_equal(a.socket, ++out);
    assert_int_equal(out, in);
    assert_int_equal(node.queue.n, 0);
    paths__queue_deinit(&node);
}

/* Of an edge that goes only its sockets are left to be closed; what is another's stays. */
static void test_what_an_edge_leaves_behind(void **state)
{
    static const struct x25519_public key = {{7}}, none = {{0}};
    struct path one = {.owner = &node, .peer = {.key = key, .name = "b"}};
    struct path other = {.owner = &node, .peer = {.name = "c"}};
    struct path_action a;

    node = (struct paths){.session = 1};
    for (unsigned i = 0; i < 40; i++) {
        paths__add(&node, NULL, PATH_ACTION_LOOK);
        assert_true(paths_next(&node, &a));
    }
    for (unsigned i = 0; i < 20; i++) {
        paths__add(&node, &one, PATH_ACTION_USE);
        paths__add(&node, &one, PATH_ACTION_CLOSE)->action.socket = i;
        paths__add(&node, &other, PATH_ACTION_USE)->action.socket = i;
    }
    assert_int_equal(node.queue.cap, 64);
    paths__forget(&node, &one);
    for (unsigned i = 0; i < 20; i++) {
        assert_true(paths_next(&node, &a));
        assert_int_equal(a.kind, PATH_ACTION_CLOSE);
        assert_int_equal(a.socket, i);
        assert_true(x25519_public_equal(&a.peer, &key));
        assert_string_equal(a.name, "");
        assert_true(paths_next(&node, &a));
        assert_int_equal(a.kind, PATH_ACTION_USE);
        assert_int_equal(a.socket, i);
        assert_true(x25519_public_equal(&a.peer, &none));
        assert_string_equal(a.name, "c");
    }
    assert_false(paths_next(&node, &a));
    paths__queue_deinit(&node);
}

/* There is a limit for frames alone, and what is beyond it is counted. */
static void test_a_caller_that_takes_nothing(void **state)
{
    node = (struct paths){.session = 1};
    for (unsigned i = 0; i < 16384; i++)
        assert_non_null(paths__add(&node, NULL, i % 2 ? PATH_ACTION_SEND : PATH_ACTION_CLOSE));
    assert_int_equal(node.counters.over_budget, 0);
    assert_null(paths__add(&node, NULL, PATH_ACTION_SEND));
    assert_int_equal(node.counters.over_budget, 1);
    assert_int_equal(node.queue.n, 16384);
    assert_non_null(paths__add(&node, NULL, PATH_ACTION_CLOSE));
    assert_int_equal(node.queue.n, 16385);
    paths__queue_deinit(&node);
}

/* ---- a node and members that name somebody else --------------------------------------------- */

#define LIARS_MAX 16

struct victim {
    uint64_t seed;
    struct paths *paths;
    struct x25519_public liars[LIARS_MAX];
    unsigned n_liars;
    struct ip_addr addr;
    unsigned n_frames; /* sent to it */
};

static void new_victim(struct victim *v, unsigned n_liars)
{
    struct paths_options opt = {.name = "a", .rng = rng_seeded(&v->seed)};
    struct x25519_secret secret;

    *v = (struct victim){.seed = 7, .n_liars = n_liars, .addr = address("198.51.100.7")};
    x25519_secret_make(&opt.secret, &opt.rng);
    assert_int_equal(paths_new(&v->paths, &opt, T0), 0);
    for (unsigned i = 0; i < n_liars; i++) {
        struct path_peer peer = {.name = "liar"};

        x25519_secret_make(&secret, &opt.rng);
        assert_true(x25519_derive_public(&secret, &peer.key));
        assert_int_equal(paths_put_peer(v->paths, &peer, T0), 0);
        v->liars[i] = peer.key;
    }
}

/* Each liar reports 32 ports of the victim's anew. */
static void lie(struct victim *v, uint64_t generation, nsec_t now)
{
    for (unsigned i = 0; i < v->n_liars; i++) {
        struct path_side side = {.generation = generation, .can_guess = true};

        for (unsigned k = 0; k < CANDIDATES_MAX; k++) {
            struct endpoint ep = {
                .addr = v->addr, .port = (uint16_t)(1 + generation * 1000 + 32 * i + k)};

            (void)candidates_add(
                &side.candidates, k % 2 ? CANDIDATE_HOST : CANDIDATE_REFLEXIVE, &ep);
        }
        /* Its NAT is said to be one whose ports have to be guessed. */
        side.nat = (struct behavior){.is_natted = true,
            .mapping = BEHAVIOR_PORT_DEPENDENT,
            .filtering = BEHAVIOR_PORT_DEPENDENT};
        paths_set_peer_side(v->paths, &v->liars[i], &side, now);
    }
}

static void take_actions(struct victim *v, nsec_t now)
{
    struct path_action action;

    paths_tick(v->paths, now);
    while (paths_next(v->paths, &action))
        if (action.kind == PATH_ACTION_SEND && ip_addr_equal(&action.remote.addr, &v->addr))
            v->n_frames++;
}

/* Frames to somebody who never answers, in each of the ten minutes. */
static void run_lies(struct victim *v, unsigned n_frames[static 10])
{
    uint64_t generation = 0;

    for (nsec_t now = T0; now < T0 + 600 * SEC; now += 50 * NSEC_PER_MSEC) {
        unsigned minute = (unsigned)((now - T0) / (60 * SEC));
        unsigned before = v->n_frames;

        if ((now - T0) % SEC == 0) {
            lie(v, ++generation, now);
            for (unsigned i = 0; i < v->n_liars; i++)
                paths_on_traffic(v->paths, &v->liars[i], generation, generation, now);
        }
        take_actions(v, now);
        n_frames[minute] += v->n_frames - before;
    }
}

static void test_nobody_is_flooded_for_what_members_say(void **state)
{
    for (unsigned n_liars = 1; n_liars <= LIARS_MAX; n_liars *= 4) {
        unsigned n_frames[10] = {0};
        struct victim v;

        new_victim(&v, n_liars);
        run_lies(&v, n_frames);
        /* The rounds and one set of guesses; then four a second, and guesses within their own
         * limit. */
        assert_in_range(n_frames[0], 1, 512 + 60 * 4 + 1024);
        for (unsigned i = 1; i < 10; i++)
            assert_in_range(n_frames[i], 0, 60 * 4 + 60 * 9);
        assert_in_range(v.n_frames, 1, 512 + 600 * 4 + 1024 * 6);
        v.paths = paths_free(v.paths);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_so_many_at_once_and_then_so_many_a_second),
        cmocka_unit_test(test_guesses_and_who_has_answered_are_cheap),
        cmocka_unit_test(test_a_host_has_all_of_its_network_of_64_bits),
        cmocka_unit_test(test_a_full_table_forgets_nobody),
        cmocka_unit_test(test_the_budget_of_an_address_is_exact),
        cmocka_unit_test(test_who_gives_its_place_to_another),
        cmocka_unit_test(test_frames_in_all),
        cmocka_unit_test(test_actions_keep_their_order),
        cmocka_unit_test(test_what_an_edge_leaves_behind),
        cmocka_unit_test(test_a_caller_that_takes_nothing),
        cmocka_unit_test(test_nobody_is_flooded_for_what_members_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
