/* test-audit-refusals.c - how the audit log gathers who was refused, and what bounds that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/audit/audit.h"
#include "store/store.h"
#include "test/support/audit_log.h"
#include "test/support/sample_late.h"

static void test_refusals_are_gathered(void **state)
{
    struct audit_log *f = *state;

    audit_log_act(f, "stranger", 1);
    for (int i = 0; i < 1000; i++)
        audit_refused(&f->audit, "GET /v1/networks", "", 401, "it needs a token \xff\n", f->now);
    audit_log_act(f, "admin:eyes", 2);
    audit_refused(&f->audit, "DELETE /v1/networks/{network}", "a", 403, "no", f->now);
    audit_log_is(f, "");
    audit_log_tick(f, 9 * NSEC_PER_SEC);
    audit_log_act(f, "stranger", 1);
    audit_refused(&f->audit, "GET /v1/networks", "", 401, "a token, \x1f ~\x7f", f->now);
    audit_log_tick(f, NSEC_PER_SEC - 1);
    audit_log_is(f, "");
    audit_log_tick(f, 1);
    audit_log_is(f, "stranger !401 x1001; admin:eyes !403 x1; ");
    audit_log_entry_is(f, 0,
        "{\"id\":\"0000000000000001-000\",\"answer\":\"refused\",\"time\":1790000009,"
        "\"actor\":\"stranger\",\"from\":\"198.51.100.1\",\"operation\":\"GET /v1/networks\","
        "\"status\":401,\"why\":\"a token, ? ~?\",\"count\":1001,\"firstTime\":1790000000}");
    audit_log_entry_is(f, 1,
        "{\"id\":\"0000000000000001-001\",\"answer\":\"refused\",\"time\":1790000000,"
        "\"actor\":\"admin:eyes\",\"from\":\"198.51.100.2\","
        "\"operation\":\"DELETE /v1/networks/{network}\",\"network\":\"a\",\"status\":403,"
        "\"why\":\"no\",\"count\":1,\"firstTime\":1790000000}");
    assert_int_equal(f->audit.n[AUDIT_REFUSAL], 2);
    assert_int_equal(f->audit.n_written[AUDIT_REFUSAL], 2);
    audit_log_act(f, "admin:eyes", 2);
    audit_refused(&f->audit, "GET /v1/networks", "", 401, "again", f->now);
    assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
    store_wait(f->store);
    audit_log_is(f, "stranger !401 x1001; admin:eyes !403 x1; admin:eyes !401 x1; ");
}

/* Refusals are told apart by the source, the caller, the call, the network and the answer. */
static void test_refusals_that_differ(void **state)
{
    struct audit_log *f = *state;
    char why[AUDIT_WHY_MAX + 2];

    audit_log_act(f, "stranger", 1);
    audit_refused(&f->audit, "GET /a", "", 401, "no", f->now);
    audit_refused(&f->audit, "GET /b", "", 401, "no", f->now);
    audit_refused(&f->audit, "GET /a", "a", 401, "no", f->now);
    audit_refused(&f->audit, "GET /a", "", 403, "no", f->now);
    audit_log_act(f, "stranger", 2);
    audit_refused(&f->audit, "GET /a", "", 401, "no", f->now);
    audit_log_act(f, "admin:ci", 1);
    audit_refused(&f->audit, "GET /a", "", 401, "no", f->now);
    assert_int_equal(f->audit.n_pending, 6);
    /* The last one of them is alike, and a sentence that is too long is cut. */
    memset(why, 'y', sizeof(why));
    why[AUDIT_WHY_MAX + 1] = '\0';
    audit_refused(&f->audit, "GET /a", "", 401, why, f->now);
    assert_int_equal(f->audit.n_pending, 6);
    assert_int_equal(f->audit.pending[5].count, 2);
    assert_int_equal(strlen(f->audit.pending[5].why), AUDIT_WHY_MAX);
    assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
    store_wait(f->store);
    audit_log_is(f, "stranger !401 x1; stranger !401 x1; stranger !401 x1; stranger !403 x1; "
                    "stranger !401 x1; admin:ci !401 x2; ");
}

/* As many different ones as can be told apart, from 198.51.100.@first on. */
static void refuse_all(struct audit_log *f, unsigned first)
{
    for (unsigned i = 0; i < AUDIT_PENDING_MAX; i++) {
        audit_log_act(f, "stranger", (uint8_t)(first + i));
        audit_refused(&f->audit, "GET /a", "", 401, "no", f->now);
    }
}

/* What finds no place among those that are told apart has one entry together. */
static void test_more_than_are_told_apart(void **state)
{
    struct audit_log *f = *state;

    refuse_all(f, 0);
    assert_int_equal(f->audit.n_lost, 0);
    audit_log_wall += 3;
    audit_log_act(f, "admin:ci", 99);
    audit_refused(&f->audit, "GET /a", "", 401, "no", f->now);
    audit_log_wall += 3;
    audit_refused(&f->audit, "GET /b", "", 401, "no", f->now);
    assert_int_equal(f->audit.n_pending, AUDIT_PENDING_MAX);
    assert_int_equal(f->audit.n_lost, 2);
    audit_log_wall += 3;
    assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
    assert_true(f->audit.is_writing);
    assert_int_equal(f->audit.n_pending, 0);
    assert_int_equal(f->audit.n_lost, 0);
    store_wait(f->store);
    assert_false(f->audit.is_writing);
    audit_log_entry_is(f, AUDIT_PENDING_MAX,
        "{\"id\":\"0000000000000001-020\",\"answer\":\"refused\",\"time\":1790000009,"
        "\"actor\":\"stranger\",\"operation\":\"several\",\"status\":429,"
        "\"why\":\"refused in other ways or from other addresses, more than are told apart\","
        "\"count\":2,\"firstTime\":1790000003}");
    assert_int_equal(f->audit.n[AUDIT_REFUSAL], AUDIT_PENDING_MAX + 1);
}

/* The budget: what was written is paid for, six seconds each, and what waits needs room for one
 * more than there are. */
static void test_the_budget_of_refusals(void **state)
{
    struct audit_log *f = *state;

    refuse_all(f, 0);
    assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
    store_wait(f->store);
    refuse_all(f, 100);
    /* Of 64 entries 32 are spent, and the first one comes back after six seconds. */
    f->audit.write_at = f->now;
    f->now += AUDIT_REFUSALS_EACH - 1;
    audit_log_tick(f, 0);
    assert_int_equal(f->audit.n_pending, AUDIT_PENDING_MAX);
    assert_int_equal(f->audit.write_at, f->now + 10 * NSEC_PER_SEC);
    f->now += 1;
    f->audit.write_at = f->now;
    audit_log_tick(f, 0);
    assert_int_equal(f->audit.n_pending, 0);
    assert_int_equal(f->audit.n[AUDIT_REFUSAL], 2 * AUDIT_PENDING_MAX);
    /* While some are on their way, no others are written. */
    refuse_all(f, 150);
    f->audit.is_writing = true;
    assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
    assert_int_equal(f->audit.n_pending, AUDIT_PENDING_MAX);
    f->audit.is_writing = false;
    assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
    assert_int_equal(f->audit.n_pending, 0);
    store_wait(f->store);
}

/* Refusals that the store did not take wait again, before what found no place. */
static void test_refusals_wait_again(void **state)
{
    struct audit_log *f = *state;

    refuse_all(f, 0);
    audit_log_wall += 1;
    audit_log_act(f, "admin:ci", 99);
    audit_refused(&f->audit, "GET /a", "", 401, "no", f->now);
    sample_late_set_loss(f->store, 1);
    assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
    /* Meanwhile comes one that is like an old one, and one that is not. */
    audit_log_wall += 1;
    audit_log_act(f, "stranger", 3);
    audit_refused(&f->audit, "GET /a", "", 401, "no", f->now);
    audit_log_act(f, "stranger", 200);
    audit_refused(&f->audit, "GET /a", "", 401, "no", f->now);
    store_wait(f->store);
    assert_false(f->audit.is_writing);
    assert_int_equal(f->audit.n_pending, AUDIT_PENDING_MAX);
    assert_int_equal(f->audit.pending[0].count, 2);
    assert_int_equal(f->audit.pending[0].first, 1790000000);
    assert_int_equal(f->audit.pending[1].count, 1);
    assert_string_equal(f->audit.pending[2].from, "198.51.100.0");
    /* What was lost before, and the last of the old ones, for which there is no place now. */
    assert_int_equal(f->audit.n_lost, 1 + 1);
    assert_int_equal(f->audit.lost_since, 1790000002);
    assert_int_equal(f->audit.n[AUDIT_REFUSAL], 0);
    assert_int_equal(audit_tick(&f->audit, f->now, false, &f->e), -EIO);
}

/* Nor do they push out what has come meanwhile; since when some are lost is known from the first.
 */
static void test_refusals_that_find_no_place_again(void **state)
{
    struct audit_log *f = *state;

    refuse_all(f, 0);
    sample_late_set_loss(f->store, 1);
    assert_int_equal(audit_tick(&f->audit, f->now, true, &f->e), 0);
    audit_log_wall += 1;
    refuse_all(f, 100);
    audit_log_act(f, "admin:ci", 99);
    audit_refused(&f->audit, "GET /a", "", 401, "no", f->now);
    audit_log_wall += 1;
    store_wait(f->store);
    assert_int_equal(f->audit.n_pending, AUDIT_PENDING_MAX);
    assert_string_equal(f->audit.pending[0].from, "198.51.100.100");
    assert_int_equal(f->audit.n_lost, 1 + AUDIT_PENDING_MAX);
    assert_int_equal(f->audit.lost_since, 1790000001);
}

/* How many refusals the log tells of, in all its entries. */
static int64_t count_refusals(struct audit_log *f)
{
    json_t *page = audit_log_read(f, (struct audit_query){.limit = 0});
    const json_t *entry;
    int64_t n = 0;
    size_t i;

    json_array_foreach(json_object_get(page, "entries"), i, entry) {
        n += audit_log_number(entry, "count");
        assert_true(
            audit_log_number(entry, "count") == 0 || audit_log_number(entry, "firstTime") > 0);
    }
    json_decref(page);
    return n;
}

/* What a store does not take is told later, and with what has come meanwhile. */
static void test_refusals_that_are_lost(void **state)
{
    struct audit_log *f = *state;
    int64_t n = 0;

    sample_late_set_loss(f->store, 2);
    for (int second = 0; second < 600; second++) {
        audit_log_act(f, "stranger", (uint8_t)(n++ % 40));
        audit_refused(&f->audit, "GET /v1/networks", "", 401, "no", f->now);
        f->now += NSEC_PER_SEC;
        (void)audit_tick(&f->audit, f->now, false, &f->e);
        store_wait(f->store);
    }
    sample_late_set_loss(f->store, 0);
    (void)audit_tick(&f->audit, f->now, true, &f->e);
    store_wait(f->store);
    audit_log_tick(f, 600 * NSEC_PER_SEC);
    /* Of what nobody knew whether it was written there may be too much. */
    assert_true(count_refusals(f) >= n);
}

/* Whoever has many addresses fills neither the disk nor the log of changes. */
static void test_refusals_are_bounded(void **state)
{
    struct audit_log *f = *state;
    int64_t n = 0;

    assert_int_equal(audit_log_commit(f, "+node/a/x"), 0);
    for (int second = 0; second < 3600; second++) {
        for (int k = 0; k < 5; k++) {
            audit_log_act(f, "stranger", (uint8_t)n++);
            audit_refused(&f->audit, "GET /v1/networks", "", 401, "no", f->now);
        }
        audit_log_tick(f, NSEC_PER_SEC);
    }
    assert_in_range(f->audit.n_written[AUDIT_REFUSAL], 300, 600 + AUDIT_REFUSALS_BURST);
    audit_log_tick(f, 600 * NSEC_PER_SEC);
    /* Each is counted somewhere. */
    assert_int_equal(count_refusals(f), n);
    f->audit.max[AUDIT_REFUSAL] = 100;
    for (int i = 0; i < 5; i++)
        audit_log_tick(f, 11 * NSEC_PER_SEC);
    assert_int_equal(f->audit.n[AUDIT_REFUSAL], 100);
    assert_int_equal(f->audit.n[AUDIT_CHANGE], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AUDIT_LOG_CASE(test_refusals_are_gathered),
        AUDIT_LOG_CASE(test_refusals_that_differ),
        AUDIT_LOG_CASE(test_more_than_are_told_apart),
        AUDIT_LOG_CASE(test_the_budget_of_refusals),
        cmocka_unit_test_setup_teardown(
            test_refusals_wait_again, audit_log_setup_late, audit_log_teardown),
        cmocka_unit_test_setup_teardown(
            test_refusals_that_find_no_place_again, audit_log_setup_late, audit_log_teardown),
        cmocka_unit_test_setup_teardown(
            test_refusals_that_are_lost, audit_log_setup_late, audit_log_teardown),
        AUDIT_LOG_CASE(test_refusals_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
