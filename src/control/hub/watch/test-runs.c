/* test-runs.c - which revisions of earlier runs are of a store's history. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/watch/watch.h"
#include "store/store_backend.h"
#include "store/store.h"
#include "test/support/store_now.h"

static struct store *store;
static struct runs runs;

static int enter(void **state)
{
    struct err e = ERR_NULL;

    return memory_open(&store, "", 0, &e);
}

static int leave(void **state)
{
    runs_deinit(&runs);
    store = store_free(store);
    return 0;
}

static void put(const char *key, const char *value)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;

    assert_int_equal(store_now_commit(store, &op, 1, 1, NULL, NULL, &e), 0);
}

static void begin(uint64_t boot)
{
    runs_begin(&runs, store, "hub", boot, 1);
    store_wait(store);
}

static void test_runs(void **state)
{
    begin(11);
    put("x", "1");
    put("x", "2");
    assert_int_equal(store_revision(store), 3);
    begin(12);
    put("x", "3");
    begin(13);
    assert_int_equal(json_array_size(runs.list), 3);
    assert_true(runs_hold(&runs, 11, 3));
    assert_false(runs_hold(&runs, 11, 4));
    assert_true(runs_hold(&runs, 12, 5));
    assert_false(runs_hold(&runs, 12, 6));
    assert_true(runs_hold(&runs, 13, 1000));
    assert_false(runs_hold(&runs, 14, 1));
    for (unsigned i = 0; i < RUNS_MAX - 1; i++)
        begin(100 + i);
    assert_int_equal(json_array_size(runs.list), RUNS_MAX);
    assert_false(runs_hold(&runs, 12, 1));
    assert_true(runs_hold(&runs, 13, 1));
}

/* From which revision the next run was, the bound included; what is no revision bounds nothing. */
static void test_bounds_of_runs(void **state)
{
    put("runs/hub", "[[5,1],[6,0],[7,-1]]");
    begin(9);
    assert_true(runs_hold(&runs, 5, 0));
    assert_false(runs_hold(&runs, 5, 1));
    assert_false(runs_hold(&runs, 6, 0));
}

/* What the store has there is somebody else's, or damaged: nothing is known of earlier runs. */
static void test_what_is_no_list(void **state)
{
    static const char *const values[] = {"", "[]", "{}", "7", "[7]", "[[0,1]]", "[[5]]"};

    for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++) {
        put("runs/hub", values[i]);
        begin(9);
        assert_true(runs_hold(&runs, 9, 1));
        assert_false(runs_hold(&runs, 5, 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_runs, enter, leave),
        cmocka_unit_test_setup_teardown(test_bounds_of_runs, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_no_list, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
