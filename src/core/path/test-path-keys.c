/* test-path-keys.c - the keys of both ends change, and their path stays as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <cmocka.h>

#include "path/paths.h"
#include "test/support/path_couple.h"

#define SEC NSEC_PER_SEC

/* Long enough for some pings of a path that is in use, and for one that is dead to be left. */
#define STEP (5 * SEC)

struct key {
    struct x25519_secret secret;
    struct x25519_public public;
};

static struct key make_key(uint64_t seed)
{
    struct rng rng = rng_seeded(&seed);
    struct key k;

    x25519_secret_make(&k.secret, &rng);
    assert_true(x25519_derive_public(&k.secret, &k.public));
    return k;
}

static struct couple *start(void)
{
    struct couple *c = malloc(sizeof(*c));

    assert_non_null(c);
    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run_with_traffic(c, STEP);
    couple_assert_direct(c);
    return c;
}

static void stop(struct couple *c)
{
    couple_stop(c);
    free(c);
}

/* Nothing has happened to the path, with data and without. */
static void expect_calm(struct couple *c)
{
    unsigned n_uses[2] = {c->nodes[0].n_uses, c->nodes[1].n_uses};
    uint64_t n_received[2] = {paths_counters(c->nodes[0].paths)->frames_received,
        paths_counters(c->nodes[1].paths)->frames_received};

    couple_run_with_traffic(c, STEP);
    couple_run(c, 30 * SEC);
    couple_assert_direct(c);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(c->nodes[i].n_uses, n_uses[i]);
        assert_true(paths_counters(c->nodes[i].paths)->frames_received > n_received[i]);
        assert_int_equal(paths_counters(c->nodes[i].paths)->refused_seal, 0);
    }
}

static void own(struct couple *c, unsigned i, const struct key *key, const struct key *other)
{
    assert_int_equal(
        paths_set_own_keys(c->nodes[i].paths, &key->secret, other ? &other->secret : NULL, c->now),
        0);
}

/* Of node @i, at the other one. */
static void theirs(struct couple *c, unsigned i, const struct key *key, const struct key *other)
{
    assert_int_equal(paths_set_peer_keys(c->nodes[1 - i].paths, &c->nodes[i].key, &key->public,
                         other ? &other->public : NULL, c->now),
        0);
    c->nodes[i].key = key->public;
}

static struct key first_key(const struct couple *c, unsigned i)
{
    return (struct key){.secret = c->nodes[i].secret, .public = c->nodes[i].key};
}

/* One end after the other, and again; the new key is smaller than the other end's, or greater. */
static void test_one_end(void **state)
{
    struct couple *c = start();

    for (unsigned i = 0; i < 2; i++) {
        struct key before = first_key(c, i);

        for (unsigned k = 0; k < 3; k++) {
            struct key next = make_key(100 + 10 * i + k);

            own(c, i, &before, &next);
            expect_calm(c);
            theirs(c, i, &before, &next);
            expect_calm(c);
            own(c, i, &next, &before);
            expect_calm(c);
            theirs(c, i, &next, NULL);
            expect_calm(c);
            own(c, i, &next, NULL);
            expect_calm(c);
            before = next;
        }
    }
    stop(c);
}

static void test_both_ends_at_once(void **state)
{
    struct couple *c = start();
    struct key before[2] = {first_key(c, 0), first_key(c, 1)};
    struct key next[2] = {make_key(200), make_key(201)};

    for (unsigned i = 0; i < 2; i++)
        own(c, i, &before[i], &next[i]);
    for (unsigned i = 0; i < 2; i++)
        theirs(c, i, &before[i], &next[i]);
    expect_calm(c);
    for (unsigned i = 0; i < 2; i++) {
        own(c, i, &next[i], &before[i]);
        expect_calm(c);
    }
    for (unsigned i = 0; i < 2; i++) {
        theirs(c, i, &next[i], NULL);
        expect_calm(c);
    }
    for (unsigned i = 0; i < 2; i++)
        own(c, i, &next[i], NULL);
    expect_calm(c);
    stop(c);
}

/* The old key is good for nothing any more. */
static void test_what_is_over(void **state)
{
    struct couple *c = start();
    struct key before = first_key(c, 0);
    struct key next = make_key(300);

    own(c, 0, &before, &next);
    theirs(c, 0, &next, NULL);
    couple_run_with_traffic(c, STEP);
    assert_true(paths_counters(c->nodes[1].paths)->refused_tag > 0);
    stop(c);
}

static void test_keys_that_may_not_be(void **state)
{
    static const struct x25519_public none = {{0}};
    struct couple *c = start();
    struct paths *p = c->nodes[1].paths;
    struct key a = make_key(400);
    struct key b = make_key(401);
    struct path_peer peer = {.key = a.public, .name = "c"};

    assert_int_equal(paths_put_peer(p, &peer, c->now), 0);
    /* Another edge's, our own, and none. */
    assert_int_equal(paths_set_peer_keys(p, &c->nodes[0].key, &a.public, NULL, c->now), -EINVAL);
    assert_int_equal(
        paths_set_peer_keys(p, &c->nodes[0].key, &c->nodes[0].key, &a.public, c->now), -EINVAL);
    assert_int_equal(
        paths_set_peer_keys(p, &c->nodes[0].key, &c->nodes[1].key, NULL, c->now), -EINVAL);
    assert_int_equal(paths_set_peer_keys(p, &c->nodes[0].key, &none, NULL, c->now), -EINVAL);
    /* Nobody's. */
    assert_int_equal(paths_set_peer_keys(p, &b.public, &none, NULL, c->now), 0);
    stop(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_end),
        cmocka_unit_test(test_both_ends_at_once),
        cmocka_unit_test(test_what_is_over),
        cmocka_unit_test(test_keys_that_may_not_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
