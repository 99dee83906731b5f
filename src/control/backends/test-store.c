/*
 * test-store.c - the contract of store.h, for every back end (test/support/store_fixture.h). What
 * only a store on a disk can promise (crashes, damage, full disks) is in test-sqlite.c; what
 * becomes of commits whose answer is lost, in test-lost.c.
 */
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
#include "base/text.h"
#include "store/store.h"
#include "test/support/netns.h"
#include "test/support/sample_etcd.h"
#include "test/support/store_fixture.h"
#include "test/support/store_now.h"

static void test_get_and_list(void **state)
{
    struct store_fixture *f = *state;
    struct store_said said = {0};

    assert_int_equal(store_now_get(f->s, "a", store_said_item, &said, &f->e), STORE_E_ABSENT);
    assert_int_equal(store_revision(f->s), 0);
    store_fixture_assert_list(f, "", "");
    assert_int_equal(store_fixture_put(f, "node/b/1", "{}"), 1);
    assert_int_equal(store_fixture_put(f, "node/a/2", "[1]"), 2);
    assert_int_equal(store_fixture_put(f, "node/a/1", "x"), 3);
    assert_int_equal(store_fixture_put(f, "node", "root"), 4);
    assert_int_equal(store_now_get(f->s, "node/a/2", store_said_item, &said, &f->e), 0);
    assert_string_equal(said.text, "node/a/2=[1]@2");
    store_fixture_assert_list(f, "node/a/", "node/a/1=x@3 node/a/2=[1]@2");
    store_fixture_assert_list(f, "node/", "node/a/1=x@3 node/a/2=[1]@2 node/b/1={}@1");
    store_fixture_assert_list(f, "", "node=root@4 node/a/1=x@3 node/a/2=[1]@2 node/b/1={}@1");
    store_fixture_put(f, "node/a/1", "y");
    store_fixture_assert_list(f, "node/a/", "node/a/1=y@5 node/a/2=[1]@2");
}

static void assert_walk(struct store_fixture *f, const char *prefix, const char *from, bool is_down,
    const char *expected)
{
    struct store_page page = store_page_read(f, prefix, from, is_down, 0);

    assert_string_equal(page.said.text, expected);
    assert_false(page.has_more);
}

static void assert_page(
    struct store_fixture *f, const char *from, bool is_down, const char *expected, bool has_more)
{
    struct store_page page = store_page_read(f, "a/", from, is_down, 2);

    assert_string_equal(page.said.text, expected);
    assert_int_equal(page.has_more, has_more);
}

static void test_list_either_way(void **state)
{
    struct store_range bad = {.prefix = "a/", .from = "no key"};
    struct store_fixture *f = *state;

    store_fixture_put(f, "a/1", "x");
    store_fixture_put(f, "a/2", "y");
    store_fixture_put(f, "a/3", "z");
    store_fixture_put(f, "b/1", "other");
    assert_walk(f, "a/", NULL, false, "a/1=x@1 a/2=y@2 a/3=z@3");
    assert_walk(f, "a/", NULL, true, "a/3=z@3 a/2=y@2 a/1=x@1");
    assert_walk(f, "a/", "a/1", false, "a/2=y@2 a/3=z@3");
    assert_walk(f, "a/", "a/3", true, "a/2=y@2 a/1=x@1");
    /* The place itself need not exist. */
    assert_walk(f, "a/", "a/15", false, "a/2=y@2 a/3=z@3");
    assert_walk(f, "a/", "a/15", true, "a/1=x@1");
    assert_walk(f, "a/", "a/3", false, "");
    assert_walk(f, "", "a/3", false, "b/1=other@4");
    assert_walk(f, "c/", NULL, true, "");
    assert_int_equal(store_list(f->s, &bad, store_page_done, NULL, &f->e), -EINVAL);
}

static void test_pages(void **state)
{
    struct store_fixture *f = *state;
    char *big = malloc(STORE_VALUE_MAX + 1);
    struct store_page page;
    char key[16];

    for (int i = 0; i < 5; i++) {
        (void)snprintf(key, sizeof(key), "a/%d", i);
        store_fixture_put(f, key, "x");
    }
    store_fixture_put(f, "b", "x");
    assert_page(f, NULL, false, "a/0=x@1 a/1=x@2", true);
    assert_page(f, "a/1", false, "a/2=x@3 a/3=x@4", true);
    assert_page(f, "a/3", false, "a/4=x@5", false);
    assert_page(f, "a/2", true, "a/1=x@2 a/0=x@1", false);
    /* Long values make short pages, and reading on gets all of them. */
    memset(big, 'v', STORE_VALUE_MAX);
    big[STORE_VALUE_MAX] = '\0';
    for (int i = 0; i < 40; i++) {
        (void)snprintf(key, sizeof(key), "big/%02d", i);
        store_fixture_put(f, key, big);
    }
    page = store_page_read(f, "big/", NULL, false, 0);
    assert_int_equal(page.said.n, STORE_PAGE_BYTES_MAX / STORE_VALUE_MAX);
    assert_true(page.has_more);
    page.said.n = 0;
    assert_int_equal(store_now_list(f->s, "big/", store_said_item, &page.said, NULL, &f->e), 0);
    assert_int_equal(page.said.n, 40);
    free(big);
}

static int stop_at_second(void *ctx, const struct store_item *item)
{
    unsigned *n = ctx;

    return ++*n == 2 ? 77 : 0;
}

static void test_list_ends_early(void **state)
{
    struct store_fixture *f = *state;
    unsigned n = 0;

    store_fixture_put(f, "a", "1");
    store_fixture_put(f, "b", "2");
    store_fixture_put(f, "c", "3");
    assert_int_equal(store_now_list(f->s, "", stop_at_second, &n, NULL, &f->e), 77);
    assert_int_equal(n, 2);
    /* The read is over: a write must not find the store busy. */
    store_fixture_put(f, "d", "4");
}

static void test_compare_and_put(void **state)
{
    struct store_fixture *f = *state;
    struct store_op op = {.kind = STORE_OP_PUT, .key = "k", .value = "1"};
    size_t failed = 99;

    op.expect = 5;
    assert_int_equal(store_now_commit(f->s, &op, 1, 0, NULL, &failed, &f->e), STORE_E_CONFLICT);
    assert_int_equal(failed, 0);
    op.expect = STORE_EXPECT_ABSENT;
    assert_int_equal(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), 0);
    assert_int_equal(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), STORE_E_CONFLICT);
    op.expect = 1;
    op.value = "2";
    assert_int_equal(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), 0);
    assert_int_equal(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), STORE_E_CONFLICT);
    store_fixture_assert_list(f, "", "k=2@2");
    op = (struct store_op){.kind = STORE_OP_DELETE, .key = "k", .expect = 1};
    assert_int_equal(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), STORE_E_CONFLICT);
    op.expect = 2;
    assert_int_equal(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), 0);
    store_fixture_assert_list(f, "", "");
}

static void test_commit_is_atomic(void **state)
{
    struct store_fixture *f = *state;
    struct store_op ops[] = {
        {.kind = STORE_OP_PUT, .key = "a", .value = "new", .expect = STORE_EXPECT_ANY},
        {.kind = STORE_OP_DELETE, .key = "b", .expect = STORE_EXPECT_ANY},
        {.kind = STORE_OP_CHECK, .key = "c", .expect = STORE_EXPECT_ABSENT},
    };
    uint64_t revision = 0;
    size_t failed = 0;

    store_fixture_put(f, "a", "1");
    store_fixture_put(f, "b", "2");
    store_fixture_put(f, "c", "3");
    assert_int_equal(store_now_commit(f->s, ops, 3, 0, NULL, &failed, &f->e), STORE_E_CONFLICT);
    assert_int_equal(failed, 2);
    store_fixture_assert_list(f, "", "a=1@1 b=2@2 c=3@3");
    assert_int_equal(store_revision(f->s), 3);
    ops[2].expect = 3;
    assert_int_equal(store_now_commit(f->s, ops, 3, 0, &revision, NULL, &f->e), 0);
    assert_int_equal(revision, 4);
    store_fixture_assert_list(f, "", "a=new@4 c=3@3");
}

static void test_nothing_changed_keeps_the_revision(void **state)
{
    struct store_fixture *f = *state;
    struct store_op ops[] = {
        {.kind = STORE_OP_CHECK, .key = "a", .expect = 1},
        {.kind = STORE_OP_DELETE, .key = "b", .expect = STORE_EXPECT_ANY},
    };
    uint64_t revision = 0;

    store_fixture_put(f, "a", "1");
    assert_int_equal(store_now_commit(f->s, ops, 2, 0, &revision, NULL, &f->e), 0);
    assert_int_equal(revision, 1);
}

static void test_bounds(void **state)
{
    struct store_fixture *f = *state;
    char *longest = malloc(STORE_VALUE_MAX + 2);
    char key[STORE_KEY_MAX + 2];
    struct store_op op = {.kind = STORE_OP_PUT, .key = key, .value = "1"};

    memset(key, 'k', sizeof(key));
    key[STORE_KEY_MAX + 1] = '\0';
    assert_true(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &f->e) < 0);
    key[STORE_KEY_MAX] = '\0';
    memset(longest, 'v', STORE_VALUE_MAX + 1);
    longest[STORE_VALUE_MAX + 1] = '\0';
    op.value = longest;
    assert_true(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &f->e) < 0);
    longest[STORE_VALUE_MAX] = '\0';
    assert_int_equal(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), 0);
    op.key = "white space";
    assert_true(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &f->e) < 0);
    assert_non_null(strstr(f->e.text, "\"white space\""));
    op.key = "";
    assert_true(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &f->e) < 0);
    assert_true(store_now_commit(f->s, &op, 0, 0, NULL, NULL, &f->e) < 0);
    free(longest);
}

static void test_watch(void **state)
{
    struct store_fixture *f = *state;
    struct store_op delete = {.kind = STORE_OP_DELETE, .key = "n/a", .expect = STORE_EXPECT_ANY};
    struct store_watch *w = NULL;
    struct store_said said = {0};

    store_fixture_put(f, "n/a", "1");
    store_fixture_put(f, "x/a", "1");
    store_fixture_put(f, "n/b", "1");
    assert_int_equal(store_watch(f->s, "n/", 2, store_said_change, &said, &w, &f->e), 0);
    assert_string_equal(said.text, "");
    store_fixture_put(f, "n/c", "1");
    assert_int_equal(store_now_commit(f->s, &delete, 1, 0, NULL, NULL, &f->e), 0);
    assert_string_equal(said.text, "n/b=1@3 n/c=1@4 n/a=(gone)@5");
    /* What is gone already is no change. */
    assert_int_equal(store_now_commit(f->s, &delete, 1, 0, NULL, NULL, &f->e), 0);
    store_wait(f->s);
    assert_int_equal(said.n, 3);
    store_watch_close(w);
    store_fixture_put(f, "n/d", "1");
    assert_int_equal(said.n, 3);
}

/* A watch is told of a change before who made it is answered, and of nothing before it is made. */
struct order {
    struct store_fixture *f;
    struct str text;
};

static void order_change(void *ctx, const struct store_item *item)
{
    struct order *o = ctx;

    assert_true(store_revision(o->f->s) >= item->revision);
    str_add(&o->text, "told ");
}

static void order_done(void *ctx, const struct store_answer *a)
{
    struct order *o = ctx;

    assert_int_equal(a->r, 0);
    str_add(&o->text, "done ");
}

static void test_told_then_answered(void **state)
{
    struct store_fixture *f = *state;
    struct order o = {.f = f};
    struct store_watch *w = NULL;
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = "k", .value = "1", .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_watch(f->s, "", 1, order_change, &o, &w, &f->e), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(store_commit(f->s, &op, 1, 0, order_done, &o, &f->e), 0);
    /* Nobody is called from inside the call that asks. */
    assert_string_equal(str_text(&o.text), "");
    assert_int_equal(store_pending(f->s), 2);
    assert_int_equal(store_revision(f->s), 0);
    store_wait(f->s);
    assert_string_equal(str_text(&o.text), "told done told done ");
    assert_int_equal(store_pending(f->s), 0);
    str_deinit(&o.text);
    store_watch_close(w);
}

/* Questions that are asked at once are answered in that order, and each sees those before it. */
struct step {
    unsigned *n_done; /* borrowed */
    unsigned place;
    int r;
    struct store_said said;
};

static void step_done(void *ctx, const struct store_answer *a)
{
    struct step *step = ctx;

    assert_int_equal((*step->n_done)++, step->place);
    step->r = a->r;
    for (size_t i = 0; i < a->n_items; i++)
        store_said_add(&step->said, &a->items[i]);
}

static void test_order(void **state)
{
    struct store_fixture *f = *state;
    struct store_range all = {.prefix = ""};
    struct store_op create = {.kind = STORE_OP_PUT, .key = "k", .value = "1"};
    struct store_op change = {.kind = STORE_OP_PUT, .key = "k", .value = "2", .expect = 1};
    struct store_op again = {.kind = STORE_OP_PUT, .key = "k", .value = "3", .expect = 1};
    unsigned n_done = 0;
    struct step steps[6];

    memset(steps, 0, sizeof(steps));
    for (unsigned i = 0; i < 6; i++)
        steps[i] = (struct step){.n_done = &n_done, .place = i};
    assert_int_equal(store_get(f->s, "k", step_done, &steps[0], &f->e), 0);
    assert_int_equal(store_commit(f->s, &create, 1, 0, step_done, &steps[1], &f->e), 0);
    assert_int_equal(store_get(f->s, "k", step_done, &steps[2], &f->e), 0);
    assert_int_equal(store_commit(f->s, &change, 1, 0, step_done, &steps[3], &f->e), 0);
    /* It conflicts, and takes nothing of those beside it along. */
    assert_int_equal(store_commit(f->s, &again, 1, 0, step_done, &steps[4], &f->e), 0);
    assert_int_equal(store_list(f->s, &all, step_done, &steps[5], &f->e), 0);
    store_wait(f->s);
    assert_int_equal(n_done, 6);
    assert_int_equal(steps[0].r, STORE_E_ABSENT);
    assert_string_equal(steps[2].said.text, "k=1@1");
    assert_int_equal(steps[3].r, 0);
    assert_int_equal(steps[4].r, STORE_E_CONFLICT);
    assert_string_equal(steps[5].said.text, "k=2@2");
}

static void count_done(void *ctx, const struct store_answer *a)
{
    assert_int_equal(a->r, 0);
    *(unsigned *)ctx += 1;
}

static void test_back_pressure(void **state)
{
    struct store_fixture *f = *state;
    unsigned n_done = 0;
    unsigned n = 0;
    int r = 0;

    while (n <= STORE_PENDING_MAX && r == 0) {
        char key[16];
        struct store_op op = {
            .kind = STORE_OP_PUT, .key = key, .value = "1", .expect = STORE_EXPECT_ANY};

        (void)snprintf(key, sizeof(key), "k/%u", n % 10);
        r = store_commit(f->s, &op, 1, 0, count_done, &n_done, &f->e);
        n += r == 0;
    }
    assert_int_equal(r, -EAGAIN);
    assert_int_equal(n, STORE_PENDING_MAX);
    assert_non_null(strstr(f->e.text, "4096 requests wait"));
    store_wait(f->s);
    assert_int_equal(n_done, n);
    store_fixture_put(f, "k", "1");
    /* Commits of one key have a revision each; others may share theirs. */
    assert_in_range(store_revision(f->s), n / 10 + 1, n + 1);
}

/* A watcher that answers each change of "in" with one of "out", and closes after the third. */
struct echo {
    struct store_fixture *f;
    struct store_watch *w;
    unsigned n;
};

static void echo_change(void *ctx, const struct store_item *item)
{
    struct echo *echo = ctx;
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = "out", .value = item->value, .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_commit(echo->f->s, &op, 1, 0, NULL, NULL, &echo->f->e), 0);
    if (++echo->n == 3)
        echo->w = store_watch_close(echo->w);
}

static void test_watcher_writes_and_closes(void **state)
{
    struct store_fixture *f = *state;
    struct echo echo = {.f = f};
    struct store_watch *w = NULL;
    struct store_said said = {0};

    for (int i = 0; i < 4; i++)
        store_fixture_put(f, "in", (const char *[]){"1", "2", "3", "4"}[i]);
    assert_int_equal(store_watch(f->s, "in", 1, echo_change, &echo, &echo.w, &f->e), 0);
    assert_int_equal(store_watch(f->s, "out", 1, store_said_change, &said, &w, &f->e), 0);
    store_wait(f->s);
    assert_string_equal(said.text, "out=1@5 out=2@6 out=3@7");
    assert_null(echo.w);
    store_watch_close(w);
}

/* Enough changes to push the first ones out of the log. */
static void overflow_log(struct store_fixture *f)
{
    struct store_op *ops = calloc(STORE_OPS_MAX, sizeof(*ops));
    char(*keys)[16] = calloc(STORE_OPS_MAX, sizeof(*keys));

    for (size_t i = 0; i < STORE_OPS_MAX; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "bulk/%zu", i);
        ops[i] = (struct store_op){
            .kind = STORE_OP_PUT, .key = keys[i], .value = "1", .expect = STORE_EXPECT_ANY};
    }
    for (size_t n = 0; n <= 2 * STORE_LOG_MAX; n += STORE_OPS_MAX)
        assert_int_equal(store_now_commit(f->s, ops, STORE_OPS_MAX, 0, NULL, NULL, &f->e), 0);
    free(keys);
    free(ops);
}

static void test_watch_compaction(void **state)
{
    struct store_fixture *f = *state;
    struct store_watch *slow = NULL;
    struct store_watch *w = NULL;
    struct store_said said = {0};
    struct store_said late = {0};

    store_fixture_put(f, "a", "1");
    assert_int_equal(store_watch(f->s, "a", 2, store_said_change, &said, &slow, &f->e), 0);
    overflow_log(f);
    assert_int_equal(store_watch(f->s, "a", 1, store_said_change, &late, &w, &f->e), 0);
    store_wait(f->s);
    store_fixture_put(f, "a", "2");
    /* Who was there all the time has missed nothing. */
    assert_string_equal(late.text, "(compacted)");
    assert_int_equal(said.n, 1);
    store_watch_close(slow);
    store_watch_close(w);
}

static void say_deleted(void *ctx, const struct store_answer *a)
{
    assert_int_equal(a->r, 0);
    assert_int_equal(a->since, 1);
    for (size_t i = 0; i < a->n_items; i++) {
        assert_null(a->items[i].value);
        assert_int_equal(store_said_item(ctx, &a->items[i]), 0);
    }
}

/* Every deletion since the store was opened is in the list, also of a key that came again. */
static void test_deleted(void **state)
{
    struct store_fixture *f = *state;
    struct store_said said = {0};
    struct store_op gone[] = {{.kind = STORE_OP_DELETE, .key = "a", .expect = STORE_EXPECT_ANY},
        {.kind = STORE_OP_DELETE, .key = "none", .expect = STORE_EXPECT_ANY},
        {.kind = STORE_OP_DELETE, .key = "b/1", .expect = STORE_EXPECT_ANY}};

    store_fixture_put(f, "a", "1");
    store_fixture_put(f, "b/1", "1");
    assert_int_equal(store_now_commit(f->s, gone, 3, 0, NULL, NULL, &f->e), 0);
    store_fixture_put(f, "a", "2");
    assert_int_equal(store_deleted(f->s, say_deleted, &said, &f->e), 0);
    store_wait(f->s);
    assert_int_equal(said.n, 2);
    assert_non_null(strstr(said.text, "a=(gone)@3"));
    assert_non_null(strstr(said.text, "b/1=(gone)@3"));
}

/* Delete what has ended, as a hub does. */
static void expire(struct store_fixture *f, nsec_t now)
{
    const char *ended[4];
    struct store_op ops[4];
    size_t n = store_ended(f->s, now, ended, 4);

    for (size_t i = 0; i < n; i++)
        ops[i] =
            (struct store_op){.kind = STORE_OP_DELETE, .key = ended[i], .expect = STORE_EXPECT_ANY};
    if (n > 0)
        assert_int_equal(store_now_commit(f->s, ops, n, now, NULL, NULL, &f->e), 0);
    assert_int_equal(store_ended(f->s, now, ended, 4), 0);
}

static void put_lease(struct store_fixture *f, const char *key, uint32_t ttl, nsec_t now)
{
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = key,
        .value = "1",
        .expect = STORE_EXPECT_ANY,
        .ttl_seconds = ttl};

    assert_int_equal(store_now_commit(f->s, &op, 1, now, NULL, NULL, &f->e), 0);
}

static void test_leases(void **state)
{
    struct store_fixture *f = *state;
    struct store_watch *w = NULL;
    struct store_said said = {0};

    assert_int_equal(store_due(f->s), NSEC_NEVER);
    put_lease(f, "short", 10, 0);
    put_lease(f, "long", 60, 0);
    put_lease(f, "kept", 10, 0);
    put_lease(f, "freed", 10, 0);
    store_fixture_put(f, "freed", "1");
    assert_int_equal(store_watch(f->s, "", 6, store_said_change, &said, &w, &f->e), 0);
    assert_int_equal(store_due(f->s), 10 * NSEC_PER_SEC);
    assert_int_equal(store_keep(f->s, "kept", 5 * NSEC_PER_SEC, &f->e), 0);
    assert_int_equal(store_keep(f->s, "freed", 0, &f->e), STORE_E_ABSENT);
    assert_int_equal(store_keep(f->s, "nobody", 0, &f->e), STORE_E_ABSENT);
    expire(f, 10 * NSEC_PER_SEC - 1);
    assert_int_equal(store_revision(f->s), 5);
    expire(f, 12 * NSEC_PER_SEC);
    assert_int_equal(store_due(f->s), 15 * NSEC_PER_SEC);
    expire(f, 15 * NSEC_PER_SEC);
    store_fixture_assert_list(f, "", "freed=1@5 long=1@2");
    store_wait(f->s);
    assert_string_equal(said.text, "short=(gone)@6 kept=(gone)@7");
    store_watch_close(w);
}

#define ON_ALL(test)                                                                               \
    {#test " (memory)", test, store_fixture_memory, store_fixture_free, NULL},                     \
        {#test " (sqlite)", test, store_fixture_sqlite, store_fixture_free, NULL},                 \
        {#test " (late)", test, store_fixture_late, store_fixture_free, NULL},                     \
    {                                                                                              \
#test " (etcd)", test, store_fixture_etcd, store_fixture_free, NULL                        \
    }

/* Without etcd, those that need it are left out, and that is said. */
static int run(const struct CMUnitTest *tests, size_t n)
{
    struct CMUnitTest *those = calloc(n, sizeof(*those));
    bool has_etcd = sample_etcd_is_there();
    size_t n_those = 0;
    int r;

    for (size_t i = 0; i < n; i++)
        if (has_etcd || !strstr(tests[i].name, "(etcd)"))
            those[n_those++] = tests[i];
    r = _cmocka_run_group_tests("store", those, n_those, NULL, store_fixture_end);
    free(those);
    return r;
}

/* The contract alone, on the cluster that test/kube/test_store.py has started. */
static int run_on_kubernetes(const struct CMUnitTest *tests, size_t n_tests)
{
    struct CMUnitTest *on = calloc(n_tests, sizeof(*on));
    size_t n = 0;
    int r;

    for (size_t i = 0; i < n_tests; i++) {
        if (tests[i].setup_func != store_fixture_memory)
            continue;
        on[n] = tests[i];
        /* "test_order (memory)": without the store's name. */
        on[n].name = strndup(tests[i].name, strcspn(tests[i].name, " "));
        on[n++].setup_func = store_fixture_kubernetes;
    }
    r = _cmocka_run_group_tests("kubernetes", on, n, NULL, NULL);
    for (size_t i = 0; i < n; i++)
        free((char *)on[i].name);
    free(on);
    return r;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ON_ALL(test_get_and_list),
        ON_ALL(test_list_either_way),
        ON_ALL(test_pages),
        ON_ALL(test_list_ends_early),
        ON_ALL(test_compare_and_put),
        ON_ALL(test_commit_is_atomic),
        ON_ALL(test_nothing_changed_keeps_the_revision),
        ON_ALL(test_bounds),
        ON_ALL(test_watch),
        ON_ALL(test_told_then_answered),
        ON_ALL(test_order),
        ON_ALL(test_back_pressure),
        ON_ALL(test_watcher_writes_and_closes),
        ON_ALL(test_watch_compaction),
        ON_ALL(test_deleted),
        ON_ALL(test_leases),
    };

    if (getenv("WEFT_TEST_KUBECONFIG"))
        return run_on_kubernetes(tests, sizeof(tests) / sizeof(*tests));
    netns_be_alone();
    return run(tests, sizeof(tests) / sizeof(*tests));
}
