/*
 * test-sqlite.c - what the embedded store promises about crashes, damage and full disks.
 *
 * The part of the contract that every store has is in test-store.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/store_open.h"
#include "base/err.h"
#include "base/secret.h"
#include "store/store.h"
#include "test/support/store_now.h"

static char dir[64];
static char path[96];
static char url[128];

static int make_dir(void **state)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/weft-test-sqlite.XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof(path), "%s/hub.db", dir);
    (void)snprintf(url, sizeof(url), "sqlite:%s", path);
    return 0;
}

static int remove_dir(void **state)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

static struct store *open_store(void)
{
    struct err e = ERR_NULL;
    struct store *s = NULL;

    if (store_open(&s, url, 0, &e) != 0)
        fail_msg("%s", err_text(&e));
    return s;
}

/* Opening must fail, with a sentence that names the file and holds @word. */
static void assert_refused(const char *word)
{
    struct err e = ERR_NULL;
    struct store *s = NULL;

    assert_true(store_open(&s, url, 0, &e) < 0);
    assert_non_null(strstr(e.text, path));
    if (!strstr(e.text, word))
        fail_msg("\"%s\" does not say \"%s\"", e.text, word);
}

static int put_number(struct store *s, unsigned n, struct err *e)
{
    char key[32];
    char value[600];
    struct store_op ops[2];

    (void)snprintf(key, sizeof(key), "n/%08u", n);
    (void)snprintf(value, sizeof(value), "%u %0500d", n, 0);
    ops[0] = (struct store_op){
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ABSENT};
    ops[1] = (struct store_op){
        .kind = STORE_OP_PUT, .key = "last", .value = value, .expect = STORE_EXPECT_ANY};
    return store_now_commit(s, ops, 2, 0, NULL, NULL, e);
}

/* The numbers inside must be 0, 1, 2, ... without a gap; says how many. */
static int count_number(void *ctx, const struct store_item *item)
{
    unsigned *n = ctx;

    assert_int_equal(strtoul(item->key + 2, NULL, 10), *n);
    assert_int_equal(strtoul(item->value, NULL, 10), *n);
    ++*n;
    return 0;
}

static int read_last(void *ctx, const struct store_item *item)
{
    *(unsigned *)ctx = (unsigned)strtoul(item->value, NULL, 10) + 1;
    return 0;
}

static unsigned count_numbers(struct store *s)
{
    struct err e = ERR_NULL;
    unsigned n = 0;
    unsigned last = 0;
    int r;

    assert_int_equal(store_now_list(s, "n/", count_number, &n, NULL, &e), 0);
    r = store_now_get(s, "last", read_last, &last, &e);
    assert_true(r == 0 || (r == STORE_E_ABSENT && n == 0));
    /* Both keys of a commit, or neither. */
    assert_int_equal(last, n);
    return n;
}

/* The child: write numbers, and acknowledge each with one byte once it is committed. */
static void write_until_killed(int ack)
{
    struct err e = ERR_NULL;
    struct store *s = NULL;
    unsigned n = 0;

    if (store_open(&s, url, 0, &e) != 0 || store_now_list(s, "n/", count_number, &n, NULL, &e) != 0)
        _exit(1);
    while (put_number(s, n++, &e) == 0)
        if (write(ack, "x", 1) != 1)
            _exit(1);
    _exit(1);
}

/* Kill a writer after @wanted acknowledgements and @more loops; says how many there were. */
static unsigned run_and_kill(unsigned wanted, unsigned more)
{
    char buf[256];
    unsigned acked = 0;
    int fds[2];
    pid_t pid;
    ssize_t n;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(fds[0]);
        write_until_killed(fds[1]);
    }
    (void)close(fds[1]);
    while (acked < wanted && (n = read(fds[0], buf, 1)) > 0)
        acked += (unsigned)n;
    /* Somewhere inside the next commit: a moment that no test could choose on purpose. */
    for (volatile unsigned i = 0; i < more; i++)
        continue;
    assert_int_equal(kill(pid, SIGKILL), 0);
    while ((n = read(fds[0], buf, sizeof(buf))) > 0)
        acked += (unsigned)n;
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)close(fds[0]);
    return acked;
}

static void test_kill_loses_nothing(void **state)
{
    uint64_t seed = 20240607;
    struct rng rng = rng_seeded(&seed);
    unsigned total = 0;

    for (int round = 0; round < 25; round++) {
        unsigned acked = run_and_kill(rng_u32(&rng) % 12, rng_u32(&rng) % 400000);
        struct store *s = open_store();
        unsigned found = count_numbers(s);

        /* One commit may have been done but not acknowledged any more. */
        if (found < total + acked || found > total + acked + 1)
            fail_msg("round %d: %u acknowledged, %u found", round, total + acked, found);
        total = found;
        assert_true(store_revision(s) >= total);
        store_free(s);
    }
    assert_true(total > 25);
}

static void test_second_process_is_refused(void **state)
{
    struct store *s = open_store();

    assert_refused("another hub");
    store_free(s);
    store_free(open_store());
}

static void test_reopened_leases_start_anew(void **state)
{
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = "leased",
        .value = "1",
        .expect = STORE_EXPECT_ANY,
        .ttl_seconds = 10};
    struct err e = ERR_NULL;
    struct store *s = open_store();

    assert_int_equal(store_now_commit(s, &op, 1, 0, NULL, NULL, &e), 0);
    store_free(s);
    assert_int_equal(store_open(&s, url, 1000 * NSEC_PER_SEC, &e), 0);
    assert_int_equal(store_due(s), 1010 * NSEC_PER_SEC);
    op = (struct store_op){.kind = STORE_OP_DELETE, .key = "leased", .expect = STORE_EXPECT_ANY};
    assert_int_equal(store_now_commit(s, &op, 1, 0, NULL, NULL, &e), 0);
    store_free(s);
}

/* What a list of deletions says. */
struct deleted {
    size_t n;
    uint64_t first; /* revision of the first one */
    uint64_t since;
};

static void on_deleted(void *ctx, const struct store_answer *a)
{
    assert_int_equal(a->r, 0);
    *(struct deleted *)ctx = (struct deleted){
        .n = a->n_items, .first = a->n_items > 0 ? a->items[0].revision : 0, .since = a->since};
}

static struct deleted read_deleted(struct store *s)
{
    struct deleted d;
    struct err e = ERR_NULL;

    assert_int_equal(store_deleted(s, on_deleted, &d, &e), 0);
    store_wait(s);
    return d;
}

static void on_change(void *ctx, const struct store_item *item)
{
    ++*(size_t *)ctx;
}

/* So many keys are written, or deleted. */
static void write_bulk(struct store *s, enum store_op_kind kind, size_t n)
{
    struct store_op *ops = calloc(STORE_OPS_MAX, sizeof(*ops));
    char(*keys)[24] = calloc(STORE_OPS_MAX, sizeof(*keys));
    struct err e = ERR_NULL;

    for (size_t done = 0; done < n; done += STORE_OPS_MAX) {
        for (size_t i = 0; i < STORE_OPS_MAX; i++) {
            (void)snprintf(keys[i], sizeof(keys[i]), "bulk/%zu", done + i);
            ops[i] = (struct store_op){
                .kind = kind, .key = keys[i], .value = "1", .expect = STORE_EXPECT_ANY};
        }
        assert_int_equal(store_now_commit(s, ops, STORE_OPS_MAX, 0, NULL, NULL, &e), 0);
    }
    free(keys);
    free(ops);
}

/* Deletions stay longer than the log, over a restart too, and so does from when on they are all
 * there; but not for ever. */
static void test_deletions_stay(void **state)
{
    struct store_op op = {.kind = STORE_OP_PUT, .key = "x", .value = "1", .expect = 0};
    struct store_watch *w = NULL;
    struct err e = ERR_NULL;
    struct store *s = open_store();
    uint64_t gone_at;
    struct deleted d;
    size_t n_reported = 0;

    assert_int_equal(store_now_commit(s, &op, 1, 0, NULL, NULL, &e), 0);
    op = (struct store_op){.kind = STORE_OP_DELETE, .key = "x", .expect = STORE_EXPECT_ANY};
    assert_int_equal(store_now_commit(s, &op, 1, 0, &gone_at, NULL, &e), 0);
    for (unsigned i = 0; i < 2; i++) {
        write_bulk(s, STORE_OP_PUT, 2 * STORE_LOG_MAX);
        d = read_deleted(s);
        assert_true(d.since <= gone_at);
        store_free(s);
        s = open_store();
        assert_int_equal(read_deleted(s).since, d.since);
        assert_int_equal(read_deleted(s).n, d.n);
    }
    /* What is not a deletion is not there any more. */
    assert_int_equal(store_watch(s, "", gone_at, on_change, &n_reported, &w, &e), 0);
    store_wait(s);
    assert_int_equal(n_reported, 1);
    store_watch_close(w);
    write_bulk(s, STORE_OP_PUT, STORE_DELETED_MAX);
    write_bulk(s, STORE_OP_DELETE, STORE_DELETED_MAX + STORE_OPS_MAX);
    write_bulk(s, STORE_OP_PUT, 2 * STORE_LOG_MAX);
    d = read_deleted(s);
    assert_true(d.since > gone_at);
    assert_true(d.n > STORE_DELETED_MAX - 2 * STORE_OPS_MAX && d.n <= STORE_DELETED_MAX);
    store_free(s);
    s = open_store();
    assert_true(read_deleted(s).since >= d.since && read_deleted(s).since <= d.first);
    store_free(s);
}

/* Another commit, of one key. */
static void write_one(struct store *s)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = "one", .value = "1", .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;

    assert_int_equal(store_now_commit(s, &op, 1, 0, NULL, NULL, &e), 0);
}

static void on_lost(void *ctx, const struct store_item *item)
{
    *(bool *)ctx |= !item;
}

/* Is a watch that begins at @revision told that changes are missing? */
static bool is_lost_at(struct store *s, uint64_t revision)
{
    struct store_watch *w = NULL;
    struct err e = ERR_NULL;
    bool is_lost = false;

    assert_int_equal(store_watch(s, "", revision, on_lost, &is_lost, &w, &e), 0);
    store_wait(s);
    store_watch_close(w);
    return is_lost;
}

/* A revision that was trimmed stays so, however few rows large commits have left of the log, and
 * over a restart too: the deletions that are kept of earlier ones are not all that has changed. */
static void test_trimmed_stays_trimmed(void **state)
{
    struct store *s = open_store();
    uint64_t lost = 0;

    for (unsigned i = 0; i < 8; i++) {
        write_bulk(s, i % 4 == 3 ? STORE_OP_DELETE : STORE_OP_PUT, STORE_OPS_MAX);
        write_one(s);
        assert_true(lost == 0 || is_lost_at(s, lost));
        while (is_lost_at(s, lost + 1))
            lost++;
        store_free(s);
        s = open_store();
        assert_true(lost == 0 || is_lost_at(s, lost));
    }
    assert_true(lost > 0 && lost < store_revision(s));
    store_free(s);
}

static void copy(const char *from, const char *to)
{
    char command[320];

    (void)snprintf(command, sizeof(command), "cp %s %s", from, to);
    assert_int_equal(system(command), 0);
}

static bool is_same(const char *a, const char *b)
{
    char command[320];

    (void)snprintf(command, sizeof(command), "cmp -s %s %s", a, b);
    return system(command) == 0;
}

static off_t size_of(const char *name)
{
    struct stat st;

    assert_int_equal(stat(name, &st), 0);
    return st.st_size;
}

static void test_truncated_is_named_and_left(void **state)
{
    char good[128];
    char bad[128];
    struct store *s = open_store();
    struct err e = ERR_NULL;
    unsigned n = count_numbers(s);
    off_t size;

    while (n < 200)
        assert_int_equal(put_number(s, n++, &e), 0);
    store_free(s);
    (void)snprintf(good, sizeof(good), "%s.good", path);
    (void)snprintf(bad, sizeof(bad), "%s.bad", path);
    copy(path, good);
    size = size_of(good);
    assert_true(size > 100000);
    for (off_t len = 0; len < size; len += len < 8192 ? 512 : 20480) {
        copy(good, path);
        assert_int_equal(truncate(path, len), 0);
        copy(path, bad);
        assert_refused("left as it is");
        assert_true(is_same(path, bad));
    }
    copy(good, path);
    s = open_store();
    assert_int_equal(count_numbers(s), n);
    store_free(s);
}

static void test_overwritten_is_named_and_left(void **state)
{
    char good[128];
    char bad[128];
    char garbage[4096];
    int fd;

    (void)snprintf(good, sizeof(good), "%s.good", path);
    (void)snprintf(bad, sizeof(bad), "%s.bad", path);
    memset(garbage, 0xa5, sizeof(garbage));
    for (off_t page = 0; page < 3; page++) {
        copy(good, path);
        fd = open(path, O_WRONLY);
        assert_int_equal(
            pwrite(fd, garbage, sizeof(garbage), page * (off_t)sizeof(garbage)), sizeof(garbage));
        (void)close(fd);
        copy(path, bad);
        assert_refused("left as it is");
        assert_true(is_same(path, bad));
    }
    copy(good, path);
}

static void test_foreign_and_newer_are_refused(void **state)
{
    char good[128];
    char command[320];

    (void)snprintf(good, sizeof(good), "%s.good", path);
    (void)snprintf(command, sizeof(command),
        "/usr/bin/python3 -c \"import sqlite3; d = sqlite3.connect('%s');"
        " d.execute('PRAGMA user_version = 99'); d.commit()\"",
        path);
    assert_int_equal(system(command), 0);
    assert_refused("schema version 99");
    (void)snprintf(command, sizeof(command), "echo hello > %s", path);
    assert_int_equal(system(command), 0);
    assert_refused("left as it is");
    copy(good, path);
}

/* The file size limit stands for a full disk: the write-ahead log cannot grow any more. */
static void test_full_disk(void **state)
{
    struct err e = ERR_NULL;
    struct store *s = open_store();
    unsigned n = count_numbers(s);
    struct rlimit old;
    struct rlimit small;
    int r = 0;

    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 300 << 10;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (unsigned i = 0; r == 0 && i < 2000; i++) {
        r = put_number(s, n, &e);
        if (r == 0)
            n++;
    }
    assert_true(r < 0);
    if (!strstr(e.text, "no space left"))
        fail_msg("%s", e.text);
    assert_non_null(strstr(e.text, path));
    /* Reading goes on, and what was acknowledged is there. */
    assert_int_equal(count_numbers(s), n);
    assert_true(put_number(s, n, &e) < 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    /* With room again, so does writing. */
    assert_int_equal(put_number(s, n, &e), 0);
    store_free(s);
    s = open_store();
    assert_int_equal(count_numbers(s), n + 1);
    store_free(s);
}

static void test_unwritable_place(void **state)
{
    struct err e = ERR_NULL;
    struct store *s = NULL;

    assert_true(store_open(&s, "sqlite:/nonexistent/dir/hub.db", 0, &e) < 0);
    assert_non_null(strstr(e.text, "/nonexistent/dir/hub.db"));
    assert_true(store_open(&s, "etcd:x", 0, &e) < 0);
    assert_non_null(strstr(e.text, "\"etcd:x\""));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_loses_nothing),
        cmocka_unit_test(test_second_process_is_refused),
        cmocka_unit_test(test_reopened_leases_start_anew),
        cmocka_unit_test(test_trimmed_stays_trimmed),
        cmocka_unit_test(test_deletions_stay),
        cmocka_unit_test(test_truncated_is_named_and_left),
        cmocka_unit_test(test_overwritten_is_named_and_left),
        cmocka_unit_test(test_foreign_and_newer_are_refused),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_unwritable_place),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
