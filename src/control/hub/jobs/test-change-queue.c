/* test-change-queue.c - when changes are committed, how many at once, and who hears of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hub/jobs/change_queue.h"
#include "store/store.h"

#define MS NSEC_PER_MSEC

/* When a test begins. */
#define T0 (100 * NSEC_PER_SEC)

struct fixture {
    struct change_queue q;
    struct change_pace pace;
    struct store_op ops[CHANGE_QUEUE_BATCH_MAX];
};

static int set_up(void **state)
{
    static struct fixture f;

    f = (struct fixture){.pace = CHANGE_PACE_INIT};
    change_queue_init(&f.q, 1);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    change_queue_deinit(&f->q);
    return 0;
}

static void put(struct fixture *f, const char *key, const char *text, nsec_t now)
{
    assert_int_equal(change_queue_put(&f->q, key, text ? strdup(text) : NULL, now), 0);
}

static nsec_t due(const struct fixture *f)
{
    return change_queue_due(&f->q, &f->pace);
}

static size_t send(struct fixture *f, nsec_t now)
{
    return change_queue_send(&f->q, &f->pace, f->ops, now);
}

/* A commit that takes so long. */
static void commit(struct fixture *f, int r, nsec_t at, nsec_t cost)
{
    assert_true(send(f, at) > 0);
    change_queue_settle(&f->q, &f->pace, r, at + cost);
}

/* The question that is answered after a commit with that result; 0: none is. */
static uint64_t saved(struct fixture *f, int r)
{
    uint64_t seq = 0;

    return change_queue_take_saved(&f->q, r, &seq) ? seq : 0;
}

/* Nobody waits: a change is committed 20 ms later, with what has come meanwhile. */
static void test_gathering(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(due(f), NSEC_NEVER);
    assert_int_equal(send(f, T0), 0);
    put(f, "a", "1", T0);
    put(f, "b", "2", T0 + 15 * MS);
    put(f, "a", "3", T0 + 16 * MS);
    assert_int_equal(due(f), T0 + 20 * MS);
    assert_int_equal(send(f, T0 + 20 * MS), 2);
    assert_string_equal(f->ops[0].key, "a");
    assert_string_equal(f->ops[0].value, "3");
    assert_string_equal(f->ops[1].key, "b");
    assert_int_equal(f->ops[1].kind, STORE_OP_PUT);
    assert_int_equal(f->ops[1].expect, STORE_EXPECT_ANY);
    assert_true(f->ops[1].is_unwatched);
    assert_int_equal(f->q.bytes, 2);
    assert_int_equal(f->q.sent_at, T0 + 20 * MS);
    /* One commit at a time. */
    put(f, "c", NULL, T0 + 21 * MS);
    assert_int_equal(due(f), NSEC_NEVER);
    assert_false(change_queue_is_empty(&f->q));
    change_queue_settle(&f->q, &f->pace, 0, T0 + 22 * MS);
    assert_int_equal(f->q.ended_at, T0 + 22 * MS);
    assert_int_equal(f->q.cost, 2 * MS);
    assert_int_equal(f->q.sent_at, 0);
    change_queue_resume(&f->q, T0 + 22 * MS);
    /* It was to be committed 20 ms after it came. */
    assert_int_equal(due(f), T0 + 41 * MS);
    assert_int_equal(send(f, due(f)), 1);
    assert_int_equal(f->ops[0].kind, STORE_OP_DELETE);
    change_queue_settle(&f->q, &f->pace, 0, T0 + 90 * MS);
    assert_true(change_queue_is_empty(&f->q));
    assert_int_equal(f->q.bytes, 0);
    assert_int_equal(f->q.n_commits, 2);
    assert_int_equal(f->q.n_failed, 0);
}

/* After a commit there is a pause: for this network's next, and a shorter one for all others'. */
static void test_pauses(void **state)
{
    struct fixture *f = *state;
    struct change_queue other;

    change_queue_init(&other, 2);
    put(f, "a", "1", T0);
    commit(f, 0, T0 + 20 * MS, 10 * MS);
    assert_int_equal(f->pace.free_at, T0 + 40 * MS);
    put(f, "a", "2", T0 + 30 * MS);
    assert_int_equal(due(f), T0 + 30 * MS + 60 * MS);
    /* Somebody waits for it. */
    change_queue_sync(&f->q, 7, T0 + 31 * MS);
    assert_int_equal(due(f), T0 + 30 * MS + 20 * MS);
    /* Another network's. */
    assert_int_equal(change_queue_put(&other, "o", strdup("1"), T0 + 10 * MS), 0);
    assert_int_equal(change_queue_due(&other, &f->pace), T0 + 40 * MS);
    change_queue_sync(&other, 8, T0 + 31 * MS);
    assert_true(change_queue_due(&other, &f->pace) <= T0 + 31 * MS);
    change_queue_deinit(&other);
}

/* What is left of a commit is planned when that has ended: soon where somebody waits. */
static void test_resuming(void **state)
{
    struct fixture *f = *state;

    change_queue_resume(&f->q, T0);
    assert_int_equal(due(f), NSEC_NEVER);
    f->pace.batch = 1;
    put(f, "a", "1", T0);
    put(f, "b", "1", T0);
    put(f, "c", "1", T0);
    commit(f, 0, T0, 10 * MS);
    assert_int_equal(due(f), NSEC_NEVER);
    change_queue_resume(&f->q, T0 + 10 * MS);
    assert_int_equal(due(f), T0 + 70 * MS);
    change_queue_sync(&f->q, 1, T0 + 10 * MS);
    f->q.due_at = NSEC_NEVER;
    f->pace.batch = 1;
    commit(f, 0, T0 + 20 * MS, 10 * MS);
    change_queue_resume(&f->q, T0 + 40 * MS);
    assert_int_equal(due(f), T0 + 50 * MS);
}

/* A newer change in the place of one that failed is what those wait for who asked before it. */
static void test_who_waits_for_what_failed(void **state)
{
    struct fixture *f = *state;

    put(f, "a", "1", T0);
    change_queue_sync(&f->q, 1, T0);
    assert_int_equal(send(f, T0), 1);
    put(f, "a", "2", T0);
    change_queue_settle(&f->q, &f->pace, -EIO, T0 + MS);
    assert_int_equal(change_queue_count(&f->q), 1);
    assert_int_equal(saved(f, 0), 0);
    commit(f, 0, T0 + NSEC_PER_SEC, MS);
    assert_int_equal(saved(f, 0), 1);
}

/* What has failed is tried again a second later, in its order; a newer change takes its place. */
static void test_failing(void **state)
{
    struct fixture *f = *state;

    put(f, "a", "1", T0);
    put(f, "b", "2", T0);
    put(f, "c", "3", T0);
    assert_int_equal(send(f, T0), 3);
    put(f, "d", "4", T0 + MS);
    put(f, "b", "5", T0 + MS);
    change_queue_settle(&f->q, &f->pace, -EIO, T0 + 2 * MS);
    change_queue_resume(&f->q, T0 + 2 * MS);
    assert_int_equal(f->q.n_failed, 1);
    /* What was put in meanwhile was to be committed before. */
    assert_true(due(f) <= T0 + 2 * MS + NSEC_PER_SEC);
    assert_int_equal(send(f, T0 + NSEC_PER_SEC), 4);
    assert_string_equal(f->ops[0].key, "a");
    assert_string_equal(f->ops[1].key, "b");
    assert_string_equal(f->ops[1].value, "5");
    assert_string_equal(f->ops[2].key, "c");
    assert_string_equal(f->ops[3].key, "d");
    change_queue_settle(&f->q, &f->pace, STORE_E_UNKNOWN, T0 + NSEC_PER_SEC);
    put(f, "e", "6", T0 + NSEC_PER_SEC);
    assert_int_equal(due(f), T0 + 2 * NSEC_PER_SEC);
    commit(f, 0, T0 + 2 * NSEC_PER_SEC, MS);
    assert_true(change_queue_is_empty(&f->q));
}

/* Somebody else writes the key: neither what waits nor what is on its way is tried again. */
static void test_forgetting(void **state)
{
    struct fixture *f = *state;

    put(f, "a", NULL, T0);
    assert_int_equal(send(f, T0), 1);
    put(f, "b", "1", T0);
    change_queue_forget(&f->q, "a");
    change_queue_forget(&f->q, "b");
    change_queue_forget(&f->q, "c");
    assert_int_equal(change_queue_count(&f->q), 1);
    change_queue_settle(&f->q, &f->pace, -EIO, T0 + MS);
    assert_true(change_queue_is_empty(&f->q));
    assert_int_equal(f->q.bytes, 0);
}

/* Who waits hears when all before his question is on the disk, or that it is not. */
static void test_syncs(void **state)
{
    struct fixture *f = *state;

    put(f, "a", "1", T0);
    change_queue_sync(&f->q, 1, T0);
    put(f, "b", "1", T0);
    change_queue_sync(&f->q, 2, T0);
    assert_int_equal(due(f), T0);
    f->pace.batch = 1;
    assert_int_equal(send(f, T0), 1);
    change_queue_sync(&f->q, 3, T0);
    assert_int_equal(saved(f, 0), 0);
    change_queue_settle(&f->q, &f->pace, 0, T0 + MS);
    assert_int_equal(saved(f, 0), 1);
    assert_int_equal(saved(f, 0), 0);
    /* What failed is still to come, but nobody is kept waiting for it. */
    commit(f, -EIO, T0 + MS, MS);
    assert_int_equal(saved(f, -EIO), 3);
    assert_int_equal(saved(f, -EIO), 0);
    assert_false(change_queue_is_empty(&f->q));
    /* More questions than are told apart: the last one stands for those before it. */
    for (unsigned i = 0; i < 2 * CHANGE_QUEUE_SYNCS_MAX; i++)
        change_queue_sync(&f->q, 100 + i, T0);
    commit(f, 0, T0 + 2 * NSEC_PER_SEC, MS);
    assert_int_equal(saved(f, 0), 100 + 2 * CHANGE_QUEUE_SYNCS_MAX - 1);
    /* With nothing to be done the answer is there at once. */
    change_queue_sync(&f->q, 500, T0);
    assert_int_equal(saved(f, 0), 500);
    change_queue_sync(&f->q, 501, T0);
    f->q.n_syncs = 0;
    assert_int_equal(saved(f, 0), 0);
}

static void put_many(struct fixture *f, unsigned n, const char *text, nsec_t now)
{
    char key[16];

    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(key, sizeof(key), "%u", i);
        put(f, key, text, now);
    }
}

/* A slow disk gets small commits, a fast one large ones; and never too many bytes. */
static void test_batches(void **state)
{
    struct fixture *f = *state;
    size_t first = f->pace.batch;
    nsec_t now = T0;
    char *text;

    put_many(f, 3000, "1", now);
    for (unsigned i = 0; i < 3; i++, now += NSEC_PER_SEC)
        commit(f, 0, now, 50 * MS);
    assert_int_equal(f->pace.batch, 16);
    for (unsigned i = 0; i < 10; i++, now += NSEC_PER_SEC)
        commit(f, 0, now, 8 * MS);
    assert_int_equal(f->pace.batch, 16);
    for (unsigned i = 0; i < 6; i++, now += NSEC_PER_SEC)
        commit(f, 0, now, MS);
    assert_int_equal(f->pace.batch, CHANGE_QUEUE_BATCH_MAX);
    while (!change_queue_is_empty(&f->q))
        commit(f, 0, now, 8 * MS);
    /* Bytes: the one that goes beyond is the last. */
    f->pace.batch = first;
    text = malloc(10001);
    memset(text, 'x', 10000);
    text[10000] = '\0';
    put_many(f, 50, text, now);
    assert_int_equal(send(f, now), first * 1024 / 10000 + 1);
    free(text);
}

/* By what one commit cost, and how much of what it might have was in it. */
static void test_how_large_the_next_ones_are(void **state)
{
    static const struct {
        unsigned n;
        nsec_t cost;
        size_t batch;
    } cases[] = {
        {64, 12 * MS + 1, 32},
        {64, 12 * MS, 64},
        {64, 6 * MS, 64},
        {64, 6 * MS - 1, 128},
        {32, MS, 128},
        {31, MS, 64},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        f->pace = (struct change_pace)CHANGE_PACE_INIT;
        put_many(f, cases[i].n, "1", T0);
        commit(f, 0, T0, cases[i].cost);
        assert_int_equal(f->pace.batch, cases[i].batch);
        assert_int_equal(f->pace.free_at, T0 + 2 * cases[i].cost);
    }
}

/* Just as many bytes as there may be do not end a commit. */
static void test_bytes_of_a_commit(void **state)
{
    struct fixture *f = *state;
    char text[2049];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    f->pace.batch = 4;
    put_many(f, 4, text, T0);
    assert_int_equal(send(f, T0), 3);
}

/* Beyond so many changes, or bytes, there is no room. */
static void test_room(void **state)
{
    struct fixture *f = *state;
    char *text;

    put_many(f, CHANGE_QUEUE_MAX - 1, "1", T0);
    assert_true(change_queue_has_space(&f->q));
    (void)send(f, T0);
    put(f, "more", "1", T0);
    assert_false(change_queue_has_space(&f->q));
    change_queue_settle(&f->q, &f->pace, 0, T0 + MS);
    assert_true(change_queue_has_space(&f->q));
    text = malloc(CHANGE_QUEUE_BYTES_MAX + 1);
    memset(text, 'x', CHANGE_QUEUE_BYTES_MAX);
    text[CHANGE_QUEUE_BYTES_MAX] = '\0';
    put(f, "long", text, T0);
    assert_false(change_queue_has_space(&f->q));
    put(f, "long", NULL, T0);
    assert_true(change_queue_has_space(&f->q));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gathering, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pauses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_resuming, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_waits_for_what_failed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_how_large_the_next_ones_are, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bytes_of_a_commit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_forgetting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_syncs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_batches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_room, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
