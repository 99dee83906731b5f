/*
 * test-history.c - what has changed since a revision, against a plain list of all changes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "hub/model/history.h"

#define NAMES 40
#define STEPS 2000

/* By number: even ones are nodes, odd ones edges. */
static const struct object_kind *kind_of(unsigned number)
{
    return number % 2 ? &mesh_edge_kind : &node_kind;
}

static void add(struct history *h, unsigned number, uint64_t revision)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "n%u", number / 2);
    history_add(h, kind_of(number), name, revision);
}

static bool is_in(const struct history *h, uint64_t since, unsigned number)
{
    const struct history_change *c = history_since(h, since);
    char name[16];
    unsigned n = 0;

    (void)snprintf(name, sizeof(name), "n%u", number / 2);
    for (; c; c = history_next(h, c))
        n += c->kind == kind_of(number) && strcmp(c->name, name) == 0;
    assert_true(n <= 1);
    return n == 1;
}

/* A history that forgets nothing has each name that has changed since, once, and no other. */
static void test_twin(void **state)
{
    uint64_t last[NAMES] = {0};
    uint64_t seed = 5;
    struct rng rng = rng_seeded(&seed);
    uint64_t revision = 1;
    struct history h;

    history_init(&h, rng_u64(&rng));
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned number = rng_u32(&rng) % NAMES;
        uint64_t since;

        revision += rng_u32(&rng) % 3 == 0;
        add(&h, number, revision);
        last[number] = revision;
        since = 1 + rng_u64(&rng) % (revision + 1);
        assert_true(history_holds(&h, since));
        number = rng_u32(&rng) % NAMES;
        assert_int_equal(is_in(&h, since, number), last[number] != 0 && last[number] >= since);
    }
    assert_true(h.n <= NAMES);
    history_deinit(&h);
    assert_int_equal(h.n, 0);
}

/* What is forgotten cannot be asked for, nor what else has its revision. */
static void test_bounded(void **state)
{
    struct history h;

    history_init(&h, 7);
    for (unsigned i = 0; i < 2 * HISTORY_MAX; i += 2)
        add(&h, i, 10 + i / 8);
    assert_int_equal(h.n, HISTORY_MAX);
    assert_true(history_holds(&h, 1));
    /* One that is there already takes no room. */
    add(&h, 0, 5000);
    assert_true(history_holds(&h, 1));
    add(&h, 2 * HISTORY_MAX, 5001);
    assert_int_equal(h.n, HISTORY_MAX);
    assert_false(history_holds(&h, 10));
    assert_true(history_holds(&h, 11));
    assert_false(is_in(&h, 1, 2));
    assert_true(is_in(&h, 1, 0));
    assert_null(history_since(&h, 5002));
    history_deinit(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twin),
        cmocka_unit_test(test_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
