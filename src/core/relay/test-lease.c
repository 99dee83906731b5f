/* test-lease.c - the table of leases by itself: its room, and the order in which leases end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "relay/router_internal.h"

#define MAX 5

static struct lease_table table;
static struct lease_party parties[3];

static int begin(void **state)
{
    lease_table_init(&table, 7, MAX);
    for (uint32_t i = 0; i < 3; i++) {
        parties[i] = (struct lease_party){.id = i + 1};
        list_init(&parties[i].sends);
        list_init(&parties[i].receives);
    }
    return 0;
}

static int end(void **state)
{
    lease_table_deinit(&table);
    return 0;
}

static struct lease *add(
    unsigned from, unsigned to, uint32_t index, enum lease_state state, nsec_t until)
{
    return lease_add(
        &table, &parties[from], &parties[to], &parties[from], index, state, until, until - 1);
}

static void test_a_lease_is_written_down(void **state)
{
    struct lease *l = add(0, 1, 10, LEASE_STATE_PENDING, 100);

    assert_int_equal(table.by_key.seed, 7);
    assert_int_equal(table.max, MAX);
    assert_int_equal(table.n, 1);
    assert_int_equal(parties[0].n_owned, 1);
    assert_int_equal(parties[1].n_owned, 0);
    assert_ptr_equal(l->from, &parties[0]);
    assert_ptr_equal(l->to, &parties[1]);
    assert_ptr_equal(l->owner, &parties[0]);
    assert_int_equal(l->index, 10);
    assert_int_equal(l->state, LEASE_STATE_PENDING);
    assert_int_equal(l->until, 100);
    assert_ptr_equal(list_first(&table.pending, struct lease, by_age), l);
    assert_true(list_is_empty(&table.established));
    assert_ptr_equal(list_first(&parties[0].sends, struct lease, by_sender), l);
    assert_ptr_equal(list_first(&parties[1].receives, struct lease, by_receiver), l);
    assert_ptr_equal(lease_find(&table, &parties[0], 10, 99), l);
    assert_null(lease_find(&table, &parties[0], 10, 100));
    assert_null(lease_find(&table, &parties[0], 11, 99));
    assert_null(lease_find(&table, &parties[1], 10, 99));
    lease_establish(&table, l, 200);
    assert_int_equal(l->state, LEASE_STATE_ESTABLISHED);
    assert_int_equal(l->until, 200);
    assert_true(list_is_empty(&table.pending));
    assert_ptr_equal(list_first(&table.established, struct lease, by_age), l);
    /* One whose time is over gives way to another of the same index. */
    l = lease_add(
        &table, &parties[0], &parties[2], &parties[2], 10, LEASE_STATE_ESTABLISHED, 300, 200);
    assert_int_equal(table.n, 1);
    assert_int_equal(parties[0].n_owned, 0);
    assert_int_equal(parties[2].n_owned, 1);
    assert_true(list_is_empty(&parties[1].receives));
    assert_ptr_equal(lease_find(&table, &parties[0], 10, 299), l);
    lease_remove_all(&table, &parties[2]);
    assert_int_equal(table.n, 0);
    assert_int_equal(parties[2].n_owned, 0);
    assert_int_equal(l->state, LEASE_STATE_FREE);
}

static void test_room(void **state)
{
    for (unsigned round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < MAX; i++)
            assert_non_null(add(0, 1, i, LEASE_STATE_ESTABLISHED, 100));
        assert_int_equal(table.cap, MAX);
        assert_null(add(0, 1, MAX, LEASE_STATE_ESTABLISHED, 100));
        assert_int_equal(table.n, MAX);
        lease_remove_between(&table, &parties[1], &parties[0]);
        assert_int_equal(table.n, 0);
        assert_int_equal(parties[0].n_owned, 0);
    }
}

/* Between two nodes both ways, and of others none. */
static void test_leases_between_two(void **state)
{
    (void)add(0, 1, 1, LEASE_STATE_ESTABLISHED, 100);
    (void)add(1, 0, 2, LEASE_STATE_ESTABLISHED, 100);
    (void)add(0, 2, 3, LEASE_STATE_ESTABLISHED, 100);
    (void)add(2, 1, 4, LEASE_STATE_ESTABLISHED, 100);
    lease_remove_between(&table, &parties[0], &parties[1]);
    assert_int_equal(table.n, 2);
    assert_non_null(lease_find(&table, &parties[0], 3, 99));
    assert_non_null(lease_find(&table, &parties[2], 4, 99));
    lease_remove_all(&table, &parties[1]);
    assert_int_equal(table.n, 1);
    assert_non_null(lease_find(&table, &parties[0], 3, 99));
}

/* So many at a time, those that only were asked for first, and none before its time. */
static void test_what_expires(void **state)
{
    static const struct {
        nsec_t now;
        unsigned max;
        unsigned left;
    } steps[] = {
        {99, 9, 5}, {100, 1, 4}, {100, 0, 4}, {100, 2, 2}, {100, 9, 1}, {199, 9, 1}, {200, 9, 0}};

    (void)add(0, 1, 1, LEASE_STATE_ESTABLISHED, 100);
    (void)add(0, 1, 2, LEASE_STATE_PENDING, 100);
    (void)add(0, 1, 3, LEASE_STATE_PENDING, 100);
    (void)add(0, 1, 4, LEASE_STATE_ESTABLISHED, 100);
    (void)add(0, 1, 5, LEASE_STATE_ESTABLISHED, 200);
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        lease_expire(&table, steps[i].now, steps[i].max);
        assert_int_equal(table.n, steps[i].left);
        if (i == 1)
            assert_non_null(lease_find(&table, &parties[0], 3, 99));
        if (i == 3)
            assert_non_null(lease_find(&table, &parties[0], 4, 99));
    }
    assert_int_equal(parties[0].n_owned, 0);
}

#define LEASE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(test_a_lease_is_written_down),
        LEASE_TEST(test_room),
        LEASE_TEST(test_leases_between_two),
        LEASE_TEST(test_what_expires),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
