/* test-audit-rings.c - whose entry goes when the log is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "hub/audit/audit.h"

static void add(struct keys *r, const char *network, uint64_t number)
{
    char id[AUDIT_ID_MAX];

    audit_rings_add(r, network, audit_id(id, number, 0));
}

static void assert_takes(struct keys *r, uint64_t number)
{
    char expected[AUDIT_ID_MAX];
    char id[AUDIT_ID_MAX];

    assert_true(audit_rings_take(r, id));
    assert_string_equal(id, audit_id(expected, number, 0));
}

static void test_who_has_the_most_loses(void **state)
{
    struct keys r = KEYS_NULL;
    char id[AUDIT_ID_MAX];

    assert_false(audit_rings_take(&r, id));
    for (uint64_t i = 1; i <= 3; i++)
        add(&r, "quiet", i);
    for (uint64_t i = 10; i < 110; i++)
        add(&r, "loud", i);
    add(&r, "", 200);
    /* 97 of it go before anything of another one, oldest first. */
    for (uint64_t i = 10; i < 107; i++)
        assert_takes(&r, i);
    assert_int_equal(r.n, 3);
    /* Then they are equal, and share. */
    assert_takes(&r, 107);
    assert_takes(&r, 1);
    audit_rings_deinit(&r);
    assert_int_equal(r.n, 0);
}

static void test_removed_from_the_front(void **state)
{
    struct keys r = KEYS_NULL;
    char id[AUDIT_ID_MAX];

    for (uint64_t i = 1; i <= 40; i++)
        add(&r, "a", i);
    /* The ring goes around. */
    audit_rings_remove(&r, "a", audit_id(id, 30, 0));
    for (uint64_t i = 41; i <= 70; i++)
        add(&r, "a", i);
    audit_rings_remove(&r, "b", id);
    audit_rings_remove(&r, "a", "what is this");
    audit_rings_add(&r, "a", "what is this");
    for (uint64_t i = 31; i <= 70; i++)
        assert_takes(&r, i);
    /* A network without entries is forgotten. */
    assert_int_equal(r.n, 0);
    audit_rings_deinit(&r);
}

/* A ring that has gone around is in its order when it grows, at each size. */
static void test_grows_when_it_has_gone_around(void **state)
{
    struct keys r = KEYS_NULL;
    uint64_t next = 1;
    uint64_t oldest = 1;

    for (unsigned size = 16; size <= 64; size *= 2) {
        while (next - oldest < size)
            add(&r, "a", next++);
        for (unsigned i = 0; i < 5; i++)
            assert_takes(&r, oldest++);
        for (unsigned i = 0; i < 6; i++)
            add(&r, "a", next++);
    }
    while (oldest < next)
        assert_takes(&r, oldest++);
    assert_int_equal(r.n, 0);
    audit_rings_deinit(&r);
}

/* An entry is removed with those before it, and with none behind. */
static void test_removes_up_to(void **state)
{
    struct keys r = KEYS_NULL;
    char id[AUDIT_ID_MAX];

    for (uint64_t i = 1; i <= 3; i++) {
        add(&r, "a", i);
        add(&r, "b", 10 + i);
    }
    audit_rings_remove(&r, "a", audit_id(id, 2, 0));
    audit_rings_remove(&r, "a", audit_id(id, 2, 1));
    assert_takes(&r, 11);
    assert_takes(&r, 12);
    /* Of two that have as many the first by its name loses. */
    assert_takes(&r, 3);
    assert_int_equal(r.n, 1);
    audit_rings_remove(&r, "b", audit_id(id, 99, 0));
    assert_int_equal(r.n, 0);
    assert_false(audit_rings_take(&r, id));
    add(&r, "a", 1);
    audit_rings_deinit(&r);
    audit_rings_deinit(&r);
    assert_false(audit_rings_take(&r, id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_has_the_most_loses),
        cmocka_unit_test(test_removed_from_the_front),
        cmocka_unit_test(test_grows_when_it_has_gone_around),
        cmocka_unit_test(test_removes_up_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
