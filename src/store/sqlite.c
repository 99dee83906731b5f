/*
 * sqlite.c - the embedded store: what is read and written in one SQLite file (sqlite_file.h).
 *
 * Write-ahead log, synchronous=FULL: what was committed survives the process and the machine.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/list.h"
#include "store/sqlite_file.h"
#include "store/store_internal.h"

/* Rows that the log may exceed its bound by, before it is trimmed: spares work on each commit. */
#define LOG_SLACK (STORE_LOG_MAX / 4)

enum query {
    QUERY_GET,
    QUERY_LIST,
    QUERY_WALK_UP,
    QUERY_WALK_DOWN,
    QUERY_REVISION_OF,
    QUERY_PUT,
    QUERY_DELETE,
    QUERY_LOG,
    QUERY_COUNT,
    QUERY_CHANGES,
    QUERY_CUT,
    QUERY_TRIM,
    QUERY_N,
};

/* '~' sorts behind every character that a key may have. */
static const char *const query_text[QUERY_N] = {
    [QUERY_GET] = "SELECT key, value, revision, ttl FROM item WHERE key = ?1",
    [QUERY_LIST] = "SELECT key, value, revision, ttl FROM item"
                   " WHERE key >= ?1 AND key < ?1 || '~' ORDER BY key",
    [QUERY_WALK_UP] = "SELECT key, value, revision, ttl FROM item"
                      " WHERE key >= ?1 AND key < ?1 || '~' AND key > ?2 ORDER BY key",
    [QUERY_WALK_DOWN] = "SELECT key, value, revision, ttl FROM item"
                        " WHERE key >= ?1 AND key < ?1 || '~' AND key < ?2 ORDER BY key DESC",
    [QUERY_REVISION_OF] = "SELECT revision FROM item WHERE key = ?1",
    [QUERY_PUT] = "INSERT OR REPLACE INTO item(key, value, revision, ttl) VALUES(?1, ?2, ?3, ?4)",
    [QUERY_DELETE] = "DELETE FROM item WHERE key = ?1",
    [QUERY_LOG] = "INSERT INTO change(revision, seq, key, value, ttl) VALUES(?1, ?2, ?3, ?4, ?5)",
    [QUERY_COUNT] = "UPDATE counter SET revision = ?1",
    [QUERY_CHANGES] = "SELECT key, value, revision, ttl FROM change"
                      " WHERE revision >= ?2 AND revision <= ?3 AND key >= ?1 AND key < ?1 || '~'"
                      " ORDER BY revision, seq",
    [QUERY_CUT] = "SELECT revision FROM change ORDER BY revision DESC, seq DESC LIMIT 1 OFFSET ?1",
    [QUERY_TRIM] = "DELETE FROM change WHERE revision <= ?1",
};

struct sqlite {
    struct store base;
    struct sqlite_file file;
    sqlite3_stmt *query[QUERY_N]; /* owns */
    size_t n_log;                 /* rows in change */
};

static struct sqlite *sqlite_of(struct store *s)
{
    return container_of(s, struct sqlite, base);
}

static void sqlite_free(struct store *s)
{
    struct sqlite *q = sqlite_of(s);

    for (int i = 0; i < QUERY_N; i++)
        sqlite3_finalize(q->query[i]);
    sqlite_file_close(&q->file);
    store__deinit(s);
    free(q);
}

static sqlite3_stmt *query(struct sqlite *q, enum query which)
{
    sqlite3_reset(q->query[which]);
    return q->query[which];
}

static void bind_text(sqlite3_stmt *st, int i, const char *text)
{
    /* Without a copy: the text outlives the step, and the next use resets the statement. */
    sqlite3_bind_text(st, i, text, -1, SQLITE_STATIC);
}

/* One row of key, value, revision, ttl. */
static int tell_row(sqlite3_stmt *st, store_item_fn fn, void *ctx)
{
    struct store_item item = {.key = (const char *)sqlite3_column_text(st, 0),
        .value = (const char *)sqlite3_column_text(st, 1),
        .value_len = (size_t)sqlite3_column_bytes(st, 1),
        .revision = (uint64_t)sqlite3_column_int64(st, 2),
        .ttl_seconds = (uint32_t)sqlite3_column_int64(st, 3)};

    bool is_whole = item.key && (item.value || sqlite3_column_type(st, 1) == SQLITE_NULL);

    return is_whole ? fn(ctx, &item) : -ENOMEM;
}

/* Step through @st; its read ends with the call, whatever @fn says. */
static int tell_rows(
    struct sqlite *q, sqlite3_stmt *st, store_item_fn fn, void *ctx, size_t *n, struct err *e)
{
    int code;
    int r = 0;

    while (r == 0 && (code = sqlite3_step(st)) == SQLITE_ROW) {
        r = tell_row(st, fn, ctx);
        *n += 1;
    }
    if (r == 0 && code != SQLITE_DONE)
        r = sqlite_file_fail(&q->file, e);
    sqlite3_reset(st);
    return r;
}

static int sqlite_get(struct store *s, const char *key, store_item_fn fn, void *ctx, struct err *e)
{
    struct sqlite *q = sqlite_of(s);
    sqlite3_stmt *st = query(q, QUERY_GET);
    size_t n = 0;
    int r;

    bind_text(st, 1, key);
    r = tell_rows(q, st, fn, ctx, &n, e);
    return r == 0 && n == 0 ? STORE_E_ABSENT : r;
}

static int sqlite_list(
    struct store *s, const char *prefix, store_item_fn fn, void *ctx, struct err *e)
{
    struct sqlite *q = sqlite_of(s);
    sqlite3_stmt *st = query(q, QUERY_LIST);
    size_t n = 0;

    bind_text(st, 1, prefix);
    return tell_rows(q, st, fn, ctx, &n, e);
}

static int sqlite_walk(struct store *s, const char *prefix, const char *from,
    enum store_order order, store_item_fn fn, void *ctx, struct err *e)
{
    struct sqlite *q = sqlite_of(s);
    bool is_up = order == STORE_ASCENDING;
    sqlite3_stmt *st = query(q, is_up ? QUERY_WALK_UP : QUERY_WALK_DOWN);
    size_t n = 0;

    bind_text(st, 1, prefix);
    bind_text(st, 2, from ? from : is_up ? "" : "~");
    return tell_rows(q, st, fn, ctx, &n, e);
}

static int sqlite_copy(struct store *s, const char *path, struct err *e)
{
    return sqlite_file_copy(&sqlite_of(s)->file, path, e);
}

static int sqlite_changes(struct store *s, const char *prefix, uint64_t from, uint64_t to,
    store_item_fn fn, void *ctx, struct err *e)
{
    struct sqlite *q = sqlite_of(s);
    sqlite3_stmt *st = query(q, QUERY_CHANGES);
    size_t n = 0;

    bind_text(st, 1, prefix);
    sqlite3_bind_int64(st, 2, (sqlite3_int64)from);
    sqlite3_bind_int64(st, 3, (sqlite3_int64)to);
    return tell_rows(q, st, fn, ctx, &n, e);
}

/* Run a statement that gives no rows. */
static int execute(struct sqlite *q, sqlite3_stmt *st, struct err *e)
{
    int code = sqlite3_step(st);
    int r = code == SQLITE_DONE ? 0 : sqlite_file_fail(&q->file, e);

    sqlite3_reset(st);
    return r;
}

static int revision_of(struct sqlite *q, const char *key, uint64_t *ret, struct err *e)
{
    sqlite3_stmt *st = query(q, QUERY_REVISION_OF);

    bind_text(st, 1, key);
    return sqlite_file_number(&q->file, st, STORE_EXPECT_ABSENT, ret, e);
}

static int write_log(
    struct sqlite *q, const struct store_op *op, uint64_t revision, size_t seq, struct err *e)
{
    sqlite3_stmt *st = query(q, QUERY_LOG);
    bool is_put = op->kind == STORE_OP_PUT;

    sqlite3_bind_int64(st, 1, (sqlite3_int64)revision);
    sqlite3_bind_int64(st, 2, (sqlite3_int64)seq);
    bind_text(st, 3, op->key);
    bind_text(st, 4, is_put ? op->value : NULL);
    sqlite3_bind_int64(st, 5, is_put ? op->ttl_seconds : 0);
    return execute(q, st, e);
}

static int write_item(struct sqlite *q, const struct store_op *op, uint64_t revision, struct err *e)
{
    sqlite3_stmt *st = query(q, op->kind == STORE_OP_PUT ? QUERY_PUT : QUERY_DELETE);

    bind_text(st, 1, op->key);
    if (op->kind == STORE_OP_PUT) {
        bind_text(st, 2, op->value);
        sqlite3_bind_int64(st, 3, (sqlite3_int64)revision);
        sqlite3_bind_int64(st, 4, op->ttl_seconds);
    }
    return execute(q, st, e);
}

/* One operation, inside a transaction; @changed: it took effect. */
static int apply_op(
    struct sqlite *q, const struct store_op *op, size_t seq, bool *changed, struct err *e)
{
    uint64_t revision = q->base.revision + 1;
    uint64_t current = STORE_EXPECT_ABSENT;
    int r = revision_of(q, op->key, &current, e);

    *changed = false;
    if (r != 0)
        return r;
    if (op->expect != STORE_EXPECT_ANY && op->expect != current)
        return STORE_E_CONFLICT;
    if (op->kind == STORE_OP_CHECK ||
        (op->kind == STORE_OP_DELETE && current == STORE_EXPECT_ABSENT))
        return 0;
    *changed = true;
    r = write_item(q, op, revision, e);
    return r == 0 && !op->is_untold ? write_log(q, op, revision, seq, e) : r;
}

/* All of them. @any_changed: some took effect; @n_logged: how many of those went into the log;
 * @failed: the one that did not pass. */
static int apply(struct sqlite *q, const struct store_op *ops, size_t n_ops, bool *any_changed,
    size_t *n_logged, size_t *failed, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n_ops; i++) {
        bool changed;

        r = apply_op(q, &ops[i], i, &changed, e);
        *any_changed |= changed;
        *n_logged += changed && !ops[i].is_untold;
        *failed = i;
    }
    return r;
}

/*
 * Forget whole revisions from the front of the log when it has grown too long; the commit of
 * @revision stays. @cut: the newest one forgotten, or 0.
 */
static int trim_log(struct sqlite *q, uint64_t revision, size_t n_log, uint64_t *cut, struct err *e)
{
    sqlite3_stmt *st;
    int r;

    *cut = 0;
    if (n_log <= STORE_LOG_MAX + LOG_SLACK)
        return 0;
    st = query(q, QUERY_CUT);
    sqlite3_bind_int64(st, 1, STORE_LOG_MAX);
    r = sqlite_file_number(&q->file, st, 0, cut, e);
    if (r != 0)
        return r;
    if (*cut >= revision)
        *cut = revision - 1;
    st = query(q, QUERY_TRIM);
    sqlite3_bind_int64(st, 1, (sqlite3_int64)*cut);
    return execute(q, st, e);
}

static int sqlite_commit(
    struct store *s, const struct store_op *ops, size_t n_ops, size_t *ret_failed, struct err *e)
{
    struct sqlite *q = sqlite_of(s);
    bool changed = false;
    size_t n_log = q->n_log;
    uint64_t cut = 0;
    int r = sqlite_file_run(&q->file, "BEGIN IMMEDIATE", e);

    if (r != 0)
        return r;
    r = apply(q, ops, n_ops, &changed, &n_log, ret_failed, e);
    if (r == 0 && changed) {
        sqlite3_stmt *st = query(q, QUERY_COUNT);

        sqlite3_bind_int64(st, 1, (sqlite3_int64)(s->revision + 1));
        r = execute(q, st, e);
    }
    if (r == 0) {
        r = trim_log(q, s->revision + 1, n_log, &cut, e);
        if (cut > 0)
            n_log -= (size_t)sqlite3_changes(q->file.db);
    }
    if (r == 0)
        r = sqlite_file_run(&q->file, "COMMIT", e);
    if (r != 0) {
        /* SQLite may have rolled back by itself; then this does nothing. */
        (void)sqlite3_exec(q->file.db, "ROLLBACK", NULL, NULL, NULL);
        return r;
    }
    q->n_log = n_log;
    if (changed)
        s->revision++;
    if (cut > 0)
        s->log_first = cut + 1;
    return 0;
}

static const struct store_ops sqlite_ops = {
    .free = sqlite_free,
    .get = sqlite_get,
    .list = sqlite_list,
    .walk = sqlite_walk,
    .copy = sqlite_copy,
    .commit = sqlite_commit,
    .changes = sqlite_changes,
};

static int prepare(struct sqlite *q, struct err *e)
{
    uint64_t n_log;
    int r = 0;

    for (int i = 0; r == 0 && i < QUERY_N; i++)
        if (sqlite3_prepare_v3(q->file.db, query_text[i], -1, SQLITE_PREPARE_PERSISTENT,
                &q->query[i], NULL) != SQLITE_OK)
            r = sqlite_file_fail(&q->file, e);
    if (r == 0)
        r = sqlite_file_ask(&q->file, "SELECT revision FROM counter", &q->base.revision, e);
    if (r == 0)
        r = sqlite_file_ask(&q->file, "SELECT count(*) FROM change", &n_log, e);
    if (r == 0)
        r = sqlite_file_ask(&q->file, "SELECT min(revision) FROM change", &q->base.log_first, e);
    if (r != 0)
        return r;
    q->n_log = n_log;
    if (q->base.log_first == 0)
        q->base.log_first = 1;
    return 0;
}

int sqlite_open(struct store **ret, const char *where, struct err *e)
{
    _cleanup_(store_freep) struct store *s = NULL;
    struct sqlite *q;
    int r;

    if (where[0] == '\0')
        return err_set(e, -EINVAL, "store \"sqlite:\": a path must follow the colon");
    q = calloc(1, sizeof(*q));
    if (!q)
        return err_set(e, -ENOMEM, "no memory for a store");
    store__init(&q->base, &sqlite_ops);
    s = &q->base;
    r = sqlite_file_open(&q->file, where, e);
    if (r == 0)
        r = prepare(q, e);
    if (r == 0)
        *ret = TAKE_PTR(s);
    return r;
}
