/* test-roster.c - blocks of nodes: none is lost or twice, and a change costs one block's text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/server/stream.h"
#include "base/secret.h"
#include "hub/model/roster.h"

#define N (5 * ROSTER_BLOCK_NODES)

/* Blocks; and in @ret_n the nodes that are in them. */
static unsigned count(const struct roster *r, unsigned *ret_n)
{
    const struct roster_block *b;
    const struct list *l;
    unsigned blocks = 0;

    *ret_n = 0;
    list_foreach(b, &r->blocks, link) {
        unsigned n = 0;

        for (l = b->places.next; l != &b->places; l = l->next)
            n++;
        assert_int_equal(n, b->n);
        assert_in_range(n, 1, ROSTER_BLOCK_NODES);
        *ret_n += n;
        blocks++;
    }
    return blocks;
}

static unsigned make_texts(struct roster *r)
{
    struct roster_block *b;
    unsigned made = 0;

    list_foreach(b, &r->blocks, link) {
        if (b->text)
            continue;
        b->text = line_new_part("x", 1);
        made++;
    }
    return made;
}

static void test_random_nodes(void **state)
{
    static struct roster_place places[N];
    uint64_t seed = 1;
    struct rng rng = rng_seeded(&seed);
    struct roster r;
    unsigned have = 0;
    unsigned n;

    roster_init(&r);
    for (unsigned i = 0; i < N; i++)
        list_init(&places[i].link);
    for (unsigned step = 0; step < 20 * N; step++) {
        struct roster_place *p = &places[rng_u32(&rng) % N];

        if (p->block) {
            roster_remove(&r, p);
            have--;
        } else {
            assert_int_equal(roster_add(&r, p), 0);
            have++;
        }
        (void)count(&r, &n);
        assert_int_equal(n, have);
    }
    for (unsigned i = 0; i < N; i++)
        roster_remove(&r, &places[i]);
    assert_true(list_is_empty(&r.blocks));
    roster_deinit(&r);
}

static void test_a_change_costs_one_text(void **state)
{
    static struct roster_place places[N];
    struct roster r;
    unsigned n;

    roster_init(&r);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(roster_add(&r, &places[i]), 0);
    assert_int_equal(count(&r, &n), N / ROSTER_BLOCK_NODES);
    assert_int_equal(make_texts(&r), N / ROSTER_BLOCK_NODES);
    roster_forget(&places[7]);
    roster_forget(&places[7]);
    assert_int_equal(make_texts(&r), 1);
    roster_remove(&r, &places[N - 1]);
    roster_forget(&places[N - 1]);
    assert_int_equal(make_texts(&r), 1);
    /* The room that it has left is taken before another block begins. */
    assert_int_equal(roster_add(&r, &places[N - 1]), 0);
    assert_int_equal(make_texts(&r), 1);
    assert_int_equal(count(&r, &n), N / ROSTER_BLOCK_NODES);
    roster_deinit(&r);
    roster_deinit(&r);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_nodes),
        cmocka_unit_test(test_a_change_costs_one_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
