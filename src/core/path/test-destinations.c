/* test-destinations.c - what members can make this node send to somebody who is no member. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "path/paths_internal.h"
#include "path/paths.h"

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
        cmocka_unit_test(test_nobody_is_flooded_for_what_members_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
