/* test-index.c - the index table, against a list of what was taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "shared/index.h"

#define MANY 5000

/* Peers are only pointers to the table. */
static struct peer *nth_peer(size_t i)
{
    return (struct peer *)(uintptr_t)(16 * (i + 1));
}

static void test_grow(void **state)
{
    static uint32_t index[MANY];
    static struct keypair kp[MANY];
    struct index_table t;
    uint64_t seed = 1;
    struct rng rng = rng_seeded(&seed);

    assert_int_equal(index_init(&t), 0);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(index_take(&t, nth_peer(i), &rng, &index[i]), 0);
        kp[i].local_index = index[i];
        /* A handshake has no keypair yet. */
        assert_null(index_find(&t, index[i]));
        if (i % 2 == 0)
            index_publish(&t, &kp[i]);
    }
    for (size_t i = 0; i < MANY; i++) {
        assert_ptr_equal(index_peer(&t, index[i]), nth_peer(i));
        assert_ptr_equal(index_find(&t, index[i]), i % 2 == 0 ? &kp[i] : NULL);
        /* The same slot by its low bits, but another index. */
        assert_null(index_find(&t, index[i] ^ 0x80000000));
        assert_null(index_peer(&t, index[i] ^ 0x80000000));
    }
    index_reclaim(&t);
    for (size_t i = 0; i < MANY; i += 3)
        index_release(&t, index[i]);
    for (size_t i = 0; i < MANY; i++) {
        assert_ptr_equal(index_peer(&t, index[i]), i % 3 == 0 ? NULL : nth_peer(i));
        if (i % 3 == 0)
            assert_null(index_find(&t, index[i]));
    }
    /* Released twice, or never taken: nothing happens. */
    index_release(&t, index[0]);
    assert_int_equal(t.n, MANY - (MANY + 2) / 3);
    index_deinit(&t);
}

/* A port that found no memory for its table is freed like another one. */
static void test_never_made(void **state)
{
    struct index_table t = {0};

    index_reclaim(&t);
    index_deinit(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_never_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
