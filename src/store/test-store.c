/*
 * test-store.c - the contract of store.h, run against every local back end.
 *
 * What only a store on a disk can promise (crashes, damage, full disks) is in
 * test-sqlite.c.
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
#include <unistd.h>

#include "base/err.h"
#include "store/store.h"

/* What a test works on, made anew for each. */
struct fixture {
    struct store *s;
    char dir[64]; /* of the SQLite one */
    struct err e;
};

static struct store *open_store(struct fixture *f, const char *url)
{
    struct store *s = NULL;
    int r = store_open(&s, url, 0, &f->e);

    if (r != 0)
        fail_msg("%s: %s", url, err_text(&f->e));
    return s;
}

static int setup_memory(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->s = open_store(f, "memory:");
    *state = f;
    return 0;
}

static int setup_sqlite(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    char url[128];

    (void)snprintf(f->dir, sizeof(f->dir), "/tmp/weft-test-store.XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(url, sizeof(url), "sqlite:%s/hub.db", f->dir);
    f->s = open_store(f, url);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];
    int r = 0;

    store_free(f->s);
    if (f->dir[0]) {
        (void)snprintf(command, sizeof(command), "rm -rf %s", f->dir);
        r = system(command);
    }
    free(f);
    return r;
}

/* Items as text, "key=value@revision ...", so that an assertion shows all of them. */
struct said {
    char text[4096];
    unsigned n;
};

static void say(struct said *said, const struct store_item *item)
{
    size_t len = strlen(said->text);

    said->n++;
    (void)snprintf(said->text + len, sizeof(said->text) - len, "%s%s=%.40s@%llu", len ? " " : "",
        item->key, item->value ? item->value : "(gone)", (unsigned long long)item->revision);
}

static int say_item(void *ctx, const struct store_item *item)
{
    say(ctx, item);
    if (item->value)
        assert_int_equal(item->value_len, strlen(item->value));
    return 0;
}

static void say_change(void *ctx, const struct store_item *item)
{
    struct said *said = ctx;
    size_t len = strlen(said->text);

    if (item)
        say(said, item);
    else
        (void)snprintf(said->text + len, sizeof(said->text) - len, "(compacted)");
}

static uint64_t put(struct fixture *f, const char *key, const char *value)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ANY};
    uint64_t revision = 0;

    assert_int_equal(store_commit(f->s, &op, 1, 0, &revision, NULL, &f->e), 0);
    return revision;
}

static void assert_list(struct fixture *f, const char *prefix, const char *expected)
{
    struct said said = {0};
    uint64_t revision = 0;

    assert_int_equal(store_list(f->s, prefix, say_item, &said, &revision, &f->e), 0);
    assert_string_equal(said.text, expected);
    assert_int_equal(revision, store_revision(f->s));
}

static void test_get_and_list(void **state)
{
    struct fixture *f = *state;
    struct said said = {0};

    assert_int_equal(store_get(f->s, "a", say_item, &said, &f->e), STORE_E_ABSENT);
    assert_int_equal(store_revision(f->s), 0);
    assert_list(f, "", "");
    assert_int_equal(put(f, "node/b/1", "{}"), 1);
    assert_int_equal(put(f, "node/a/2", "[1]"), 2);
    assert_int_equal(put(f, "node/a/1", "x"), 3);
    assert_int_equal(put(f, "node", "root"), 4);
    assert_int_equal(store_get(f->s, "node/a/2", say_item, &said, &f->e), 0);
    assert_string_equal(said.text, "node/a/2=[1]@2");
    assert_list(f, "node/a/", "node/a/1=x@3 node/a/2=[1]@2");
    assert_list(f, "node/", "node/a/1=x@3 node/a/2=[1]@2 node/b/1={}@1");
    assert_list(f, "", "node=root@4 node/a/1=x@3 node/a/2=[1]@2 node/b/1={}@1");
    put(f, "node/a/1", "y");
    assert_list(f, "node/a/", "node/a/1=y@5 node/a/2=[1]@2");
}

static void assert_walk(struct fixture *f, const char *prefix, const char *from,
    enum store_order order, const char *expected)
{
    struct said said = {0};

    assert_int_equal(store_walk(f->s, prefix, from, order, say_item, &said, &f->e), 0);
    assert_string_equal(said.text, expected);
}

static void test_walk(void **state)
{
    struct fixture *f = *state;

    put(f, "a/1", "x");
    put(f, "a/2", "y");
    put(f, "a/3", "z");
    put(f, "b/1", "other");
    assert_walk(f, "a/", NULL, STORE_ASCENDING, "a/1=x@1 a/2=y@2 a/3=z@3");
    assert_walk(f, "a/", NULL, STORE_DESCENDING, "a/3=z@3 a/2=y@2 a/1=x@1");
    assert_walk(f, "a/", "a/1", STORE_ASCENDING, "a/2=y@2 a/3=z@3");
    assert_walk(f, "a/", "a/3", STORE_DESCENDING, "a/2=y@2 a/1=x@1");
    /* The place itself need not exist. */
    assert_walk(f, "a/", "a/15", STORE_ASCENDING, "a/2=y@2 a/3=z@3");
    assert_walk(f, "a/", "a/15", STORE_DESCENDING, "a/1=x@1");
    assert_walk(f, "a/", "a/3", STORE_ASCENDING, "");
    assert_walk(f, "", "a/3", STORE_ASCENDING, "b/1=other@4");
    assert_walk(f, "c/", NULL, STORE_DESCENDING, "");
    assert_int_equal(
        store_walk(f->s, "a/", "no key", STORE_ASCENDING, say_item, NULL, &f->e), -EINVAL);
}

static int stop_at_second(void *ctx, const struct store_item *item)
{
    unsigned *n = ctx;

    return ++*n == 2 ? 77 : 0;
}

static void test_list_ends_early(void **state)
{
    struct fixture *f = *state;
    unsigned n = 0;

    put(f, "a", "1");
    put(f, "b", "2");
    put(f, "c", "3");
    assert_int_equal(store_list(f->s, "", stop_at_second, &n, NULL, &f->e), 77);
    assert_int_equal(n, 2);
    /* The read is over: a write must not find the store busy. */
    put(f, "d", "4");
}

static void test_compare_and_put(void **state)
{
    struct fixture *f = *state;
    struct store_op op = {.kind = STORE_OP_PUT, .key = "k", .value = "1"};
    size_t failed = 99;

    op.expect = 5;
    assert_int_equal(store_commit(f->s, &op, 1, 0, NULL, &failed, &f->e), STORE_E_CONFLICT);
    assert_int_equal(failed, 0);
    op.expect = STORE_EXPECT_ABSENT;
    assert_int_equal(store_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), 0);
    assert_int_equal(store_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), STORE_E_CONFLICT);
    op.expect = 1;
    op.value = "2";
    assert_int_equal(store_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), 0);
    assert_int_equal(store_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), STORE_E_CONFLICT);
    assert_list(f, "", "k=2@2");
    op = (struct store_op){.kind = STORE_OP_DELETE, .key = "k", .expect = 1};
    assert_int_equal(store_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), STORE_E_CONFLICT);
    op.expect = 2;
    assert_int_equal(store_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), 0);
    assert_list(f, "", "");
}

static void test_commit_is_atomic(void **state)
{
    struct fixture *f = *state;
    struct store_op ops[] = {
        {.kind = STORE_OP_PUT, .key = "a", .value = "new", .expect = STORE_EXPECT_ANY},
        {.kind = STORE_OP_DELETE, .key = "b", .expect = STORE_EXPECT_ANY},
        {.kind = STORE_OP_CHECK, .key = "c", .expect = STORE_EXPECT_ABSENT},
    };
    uint64_t revision = 0;
    size_t failed = 0;

    put(f, "a", "1");
    put(f, "b", "2");
    put(f, "c", "3");
    assert_int_equal(store_commit(f->s, ops, 3, 0, NULL, &failed, &f->e), STORE_E_CONFLICT);
    assert_int_equal(failed, 2);
    assert_list(f, "", "a=1@1 b=2@2 c=3@3");
    assert_int_equal(store_revision(f->s), 3);
    ops[2].expect = 3;
    assert_int_equal(store_commit(f->s, ops, 3, 0, &revision, NULL, &f->e), 0);
    assert_int_equal(revision, 4);
    assert_list(f, "", "a=new@4 c=3@3");
}

static void test_nothing_changed_keeps_the_revision(void **state)
{
    struct fixture *f = *state;
    struct store_op ops[] = {
        {.kind = STORE_OP_CHECK, .key = "a", .expect = 1},
        {.kind = STORE_OP_DELETE, .key = "b", .expect = STORE_EXPECT_ANY},
    };
    uint64_t revision = 0;

    put(f, "a", "1");
    assert_int_equal(store_commit(f->s, ops, 2, 0, &revision, NULL, &f->e), 0);
    assert_int_equal(revision, 1);
}

static void test_bounds(void **state)
{
    struct fixture *f = *state;
    char *longest = malloc(STORE_VALUE_MAX + 2);
    char key[STORE_KEY_MAX + 2];
    struct store_op op = {.kind = STORE_OP_PUT, .key = key, .value = "1"};

    memset(key, 'k', sizeof(key));
    key[STORE_KEY_MAX + 1] = '\0';
    assert_true(store_commit(f->s, &op, 1, 0, NULL, NULL, &f->e) < 0);
    key[STORE_KEY_MAX] = '\0';
    memset(longest, 'v', STORE_VALUE_MAX + 1);
    longest[STORE_VALUE_MAX + 1] = '\0';
    op.value = longest;
    assert_true(store_commit(f->s, &op, 1, 0, NULL, NULL, &f->e) < 0);
    longest[STORE_VALUE_MAX] = '\0';
    assert_int_equal(store_commit(f->s, &op, 1, 0, NULL, NULL, &f->e), 0);
    op.key = "white space";
    assert_true(store_commit(f->s, &op, 1, 0, NULL, NULL, &f->e) < 0);
    assert_non_null(strstr(f->e.text, "\"white space\""));
    op.key = "";
    assert_true(store_commit(f->s, &op, 1, 0, NULL, NULL, &f->e) < 0);
    assert_true(store_commit(f->s, &op, 0, 0, NULL, NULL, &f->e) < 0);
    free(longest);
}

static void test_watch(void **state)
{
    struct fixture *f = *state;
    struct store_op delete = {.kind = STORE_OP_DELETE, .key = "n/a", .expect = STORE_EXPECT_ANY};
    struct store_watch *w = NULL;
    struct said said = {0};

    put(f, "n/a", "1");
    put(f, "x/a", "1");
    put(f, "n/b", "1");
    assert_int_equal(store_watch(f->s, "n/", 2, say_change, &said, &w, &f->e), 0);
    put(f, "n/c", "1");
    assert_int_equal(store_commit(f->s, &delete, 1, 0, NULL, NULL, &f->e), 0);
    assert_string_equal(said.text, "");
    assert_int_equal(store_poll(f->s, &f->e), 0);
    assert_string_equal(said.text, "n/b=1@3 n/c=1@4 n/a=(gone)@5");
    assert_int_equal(store_poll(f->s, &f->e), 0);
    assert_int_equal(said.n, 3);
    store_watch_close(w);
    put(f, "n/d", "1");
    assert_int_equal(store_poll(f->s, &f->e), 0);
    assert_int_equal(said.n, 3);
}

/* A watcher that answers each change of "in" with one of "out", and closes after the third. */
struct echo {
    struct fixture *f;
    struct store_watch *w;
    unsigned n;
};

static void echo_change(void *ctx, const struct store_item *item)
{
    struct echo *echo = ctx;

    put(echo->f, "out", item->value);
    if (++echo->n == 3)
        echo->w = store_watch_close(echo->w);
}

static void test_watcher_writes_and_closes(void **state)
{
    struct fixture *f = *state;
    struct echo echo = {.f = f};
    struct store_watch *w = NULL;
    struct said said = {0};

    assert_int_equal(store_watch(f->s, "in", 1, echo_change, &echo, &echo.w, &f->e), 0);
    assert_int_equal(store_watch(f->s, "out", 1, say_change, &said, &w, &f->e), 0);
    for (int i = 0; i < 4; i++)
        put(f, "in", (const char *[]){"1", "2", "3", "4"}[i]);
    assert_int_equal(store_poll(f->s, &f->e), 0);
    assert_string_equal(said.text, "out=1@5 out=2@6 out=3@7");
    assert_null(echo.w);
    store_watch_close(w);
}

/* Enough changes to push the first ones out of the log. */
static void overflow_log(struct fixture *f)
{
    struct store_op *ops = calloc(STORE_OPS_MAX, sizeof(*ops));
    char(*keys)[16] = calloc(STORE_OPS_MAX, sizeof(*keys));

    for (size_t i = 0; i < STORE_OPS_MAX; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "bulk/%zu", i);
        ops[i] = (struct store_op){
            .kind = STORE_OP_PUT, .key = keys[i], .value = "1", .expect = STORE_EXPECT_ANY};
    }
    for (size_t n = 0; n <= 2 * STORE_LOG_MAX; n += STORE_OPS_MAX)
        assert_int_equal(store_commit(f->s, ops, STORE_OPS_MAX, 0, NULL, NULL, &f->e), 0);
    free(keys);
    free(ops);
}

static void test_watch_compaction(void **state)
{
    struct fixture *f = *state;
    struct store_watch *slow = NULL;
    struct store_watch *w = NULL;
    struct said said = {0};
    struct said fresh = {0};

    put(f, "a", "1");
    assert_int_equal(store_watch(f->s, "a", 1, say_change, &said, &slow, &f->e), 0);
    overflow_log(f);
    assert_int_equal(store_watch(f->s, "a", 1, say_change, &said, &w, &f->e), STORE_E_COMPACTED);
    assert_int_equal(store_poll(f->s, &f->e), 0);
    assert_int_equal(store_poll(f->s, &f->e), 0);
    assert_string_equal(said.text, "(compacted)");
    store_watch_close(slow);
    assert_int_equal(
        store_watch(f->s, "a", store_revision(f->s) + 1, say_change, &fresh, &w, &f->e), 0);
    put(f, "a", "2");
    assert_int_equal(store_poll(f->s, &f->e), 0);
    assert_int_equal(fresh.n, 1);
    store_watch_close(w);
}

/* Delete what has ended, as a hub does. */
static void expire(struct fixture *f, nsec_t now)
{
    const char *ended[4];
    struct store_op ops[4];
    size_t n = store_ended(f->s, now, ended, 4);

    for (size_t i = 0; i < n; i++)
        ops[i] =
            (struct store_op){.kind = STORE_OP_DELETE, .key = ended[i], .expect = STORE_EXPECT_ANY};
    if (n > 0)
        assert_int_equal(store_commit(f->s, ops, n, now, NULL, NULL, &f->e), 0);
    assert_int_equal(store_ended(f->s, now, ended, 4), 0);
}

static void put_lease(struct fixture *f, const char *key, uint32_t ttl, nsec_t now)
{
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = key,
        .value = "1",
        .expect = STORE_EXPECT_ANY,
        .ttl_seconds = ttl};

    assert_int_equal(store_commit(f->s, &op, 1, now, NULL, NULL, &f->e), 0);
}

static void test_leases(void **state)
{
    struct fixture *f = *state;
    struct store_watch *w = NULL;
    struct said said = {0};

    assert_int_equal(store_due(f->s), NSEC_NEVER);
    put_lease(f, "short", 10, 0);
    put_lease(f, "long", 60, 0);
    put_lease(f, "kept", 10, 0);
    put_lease(f, "freed", 10, 0);
    put(f, "freed", "1");
    assert_int_equal(store_watch(f->s, "", 6, say_change, &said, &w, &f->e), 0);
    assert_int_equal(store_due(f->s), 10 * NSEC_PER_SEC);
    assert_int_equal(store_keep(f->s, "kept", 5 * NSEC_PER_SEC, &f->e), 0);
    assert_int_equal(store_keep(f->s, "freed", 0, &f->e), STORE_E_ABSENT);
    assert_int_equal(store_keep(f->s, "nobody", 0, &f->e), STORE_E_ABSENT);
    expire(f, 10 * NSEC_PER_SEC - 1);
    assert_int_equal(store_revision(f->s), 5);
    expire(f, 12 * NSEC_PER_SEC);
    assert_int_equal(store_due(f->s), 15 * NSEC_PER_SEC);
    expire(f, 15 * NSEC_PER_SEC);
    assert_list(f, "", "freed=1@5 long=1@2");
    assert_int_equal(store_poll(f->s, &f->e), 0);
    assert_string_equal(said.text, "short=(gone)@6 kept=(gone)@7");
    store_watch_close(w);
}

#define ON_BOTH(test)                                                                              \
    {#test " (memory)", test, setup_memory, teardown, NULL},                                       \
    {                                                                                              \
#test " (sqlite)", test, setup_sqlite, teardown, NULL                                      \
    }

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ON_BOTH(test_get_and_list),
        ON_BOTH(test_walk),
        ON_BOTH(test_list_ends_early),
        ON_BOTH(test_compare_and_put),
        ON_BOTH(test_commit_is_atomic),
        ON_BOTH(test_nothing_changed_keeps_the_revision),
        ON_BOTH(test_bounds),
        ON_BOTH(test_watch),
        ON_BOTH(test_watcher_writes_and_closes),
        ON_BOTH(test_watch_compaction),
        ON_BOTH(test_leases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
