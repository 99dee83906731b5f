/*
 * sqlite.c - the embedded store: one SQLite file.
 *
 * Write-ahead log, synchronous=FULL: what was committed survives the process
 * and the machine. The file is locked for as long as it is open, so a second
 * hub on the same state is refused. A file that is not ours, damaged, or of a
 * newer schema is named and left as it is; a new one is made beside its final
 * name and linked there when complete, so an empty file is damage too.
 *
 *     item     every key with its value
 *     change   the log for watches; a NULL value is a deletion
 *     counter  the revision
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/list.h"
#include "store/store_internal.h"
#include "sys/statefile.h"

#define APPLICATION_ID 0x57654674 /* "WeFt": says whose file it is */
#define SCHEMA_VERSION 1

/* Rows that the log may exceed its bound by, before it is trimmed: spares work on each commit. */
#define LOG_SLACK (STORE_LOG_MAX / 4)

#define STR_(x) #x
#define STR(x)  STR_(x)

static const char schema[] =
    "BEGIN;"
    "CREATE TABLE item(key TEXT PRIMARY KEY, value TEXT NOT NULL, revision INTEGER NOT NULL,"
    "  ttl INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE change(revision INTEGER NOT NULL, seq INTEGER NOT NULL, key TEXT NOT NULL,"
    "  value TEXT, ttl INTEGER NOT NULL, PRIMARY KEY(revision, seq)) WITHOUT ROWID;"
    "CREATE TABLE counter(revision INTEGER NOT NULL);"
    "INSERT INTO counter VALUES(0);"
    "PRAGMA application_id = " STR(APPLICATION_ID) ";"
                                                   "PRAGMA user_version = " STR(
                                                       SCHEMA_VERSION) ";"
                                                                       "COMMIT;";

enum query {
    QUERY_GET,
    QUERY_LIST,
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
    char *path;                   /* owns; for messages */
    sqlite3 *db;                  /* owns */
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
    sqlite3_close(q->db);
    free(q->path);
    store__deinit(s);
    free(q);
}

/* What SQLite just said, as an error that names the file. */
static int fail(struct sqlite *q, struct err *e)
{
    int last = errno;
    int code = sqlite3_extended_errcode(q->db);
    int sys = sqlite3_system_errno(q->db);

    /* A write-ahead log that cannot grow (quota, size limit) leaves its reason only in errno. */
    if (sys == 0 && code == SQLITE_IOERR_WRITE)
        sys = last;

    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_set(e, -EUCLEAN,
            "database \"%s\" is damaged (%s); it is left as it is: put a copy in its place, or "
            "move it away to start empty",
            q->path, sqlite3_errmsg(q->db));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(
            e, -EBUSY, "database \"%s\" is in use: is another hub running on it?", q->path);
    case SQLITE_FULL:
        return err_set(e, -ENOSPC, "no space left for database \"%s\"", q->path);
    case SQLITE_NOMEM:
        return err_set(e, -ENOMEM, "no memory for database \"%s\"", q->path);
    case SQLITE_IOERR:
        if (sys == ENOSPC || sys == EDQUOT || sys == EFBIG)
            return err_set(e, -ENOSPC, "no space left for database \"%s\"", q->path);
        break;
    }
    return err_set(e, sys ? -sys : -EIO, "database \"%s\": %s%s%s", q->path, sqlite3_errmsg(q->db),
        sys ? ": " : "", sys ? strerror(sys) : "");
}

static int run(struct sqlite *q, const char *sql, struct err *e)
{
    return sqlite3_exec(q->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(q, e);
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
        r = fail(q, e);
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
    int r = code == SQLITE_DONE ? 0 : fail(q, e);

    sqlite3_reset(st);
    return r;
}

/* The first number of the first row; @dflt when there is none. */
static int read_number(
    struct sqlite *q, sqlite3_stmt *st, uint64_t dflt, uint64_t *ret, struct err *e)
{
    int code = sqlite3_step(st);
    int r = 0;

    if (code == SQLITE_ROW)
        *ret = (uint64_t)sqlite3_column_int64(st, 0);
    else if (code == SQLITE_DONE)
        *ret = dflt;
    else
        r = fail(q, e);
    sqlite3_reset(st);
    return r;
}

static int revision_of(struct sqlite *q, const char *key, uint64_t *ret, struct err *e)
{
    sqlite3_stmt *st = query(q, QUERY_REVISION_OF);

    bind_text(st, 1, key);
    return read_number(q, st, STORE_EXPECT_ABSENT, ret, e);
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
    return r == 0 ? write_log(q, op, revision, seq, e) : r;
}

/* All of them. @n_changed: how many took effect; @failed: the one that did not pass. */
static int apply(struct sqlite *q, const struct store_op *ops, size_t n_ops, size_t *n_changed,
    size_t *failed, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n_ops; i++) {
        bool changed;

        r = apply_op(q, &ops[i], i, &changed, e);
        if (changed)
            *n_changed += 1;
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
    r = read_number(q, st, 0, cut, e);
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
    size_t n_changed = 0;
    size_t n_log = q->n_log;
    uint64_t cut = 0;
    int r = run(q, "BEGIN IMMEDIATE", e);

    if (r != 0)
        return r;
    r = apply(q, ops, n_ops, &n_changed, ret_failed, e);
    if (r == 0 && n_changed > 0) {
        sqlite3_stmt *st = query(q, QUERY_COUNT);

        sqlite3_bind_int64(st, 1, (sqlite3_int64)(s->revision + 1));
        r = execute(q, st, e);
    }
    if (r == 0) {
        n_log += n_changed;
        r = trim_log(q, s->revision + 1, n_log, &cut, e);
        if (cut > 0)
            n_log -= (size_t)sqlite3_changes(q->db);
    }
    if (r == 0)
        r = run(q, "COMMIT", e);
    if (r != 0) {
        /* SQLite may have rolled back by itself; then this does nothing. */
        (void)sqlite3_exec(q->db, "ROLLBACK", NULL, NULL, NULL);
        return r;
    }
    q->n_log = n_log;
    if (n_changed > 0)
        s->revision++;
    if (cut > 0)
        s->log_first = cut + 1;
    return 0;
}

static const struct store_ops sqlite_ops = {
    .free = sqlite_free,
    .get = sqlite_get,
    .list = sqlite_list,
    .commit = sqlite_commit,
    .changes = sqlite_changes,
};

static int connect_db(struct sqlite *q, struct err *e)
{
    if (sqlite3_open_v2(q->path, &q->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        if (!q->db)
            return err_set(e, -ENOMEM, "no memory for database \"%s\"", q->path);
        return fail(q, e);
    }
    sqlite3_extended_result_codes(q->db, 1);
    /* Until the file is known to be sound, closing must not write to it. */
    sqlite3_db_config(q->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return run(q,
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF;"
        "PRAGMA cell_size_check = ON;",
        e);
}

/* One number out of a pragma or an aggregate. */
static int ask(struct sqlite *q, const char *sql, uint64_t *ret, struct err *e)
{
    sqlite3_stmt *st = NULL;
    int r;

    if (sqlite3_prepare_v2(q->db, sql, -1, &st, NULL) != SQLITE_OK)
        return fail(q, e);
    r = read_number(q, st, 0, ret, e);
    sqlite3_finalize(st);
    return r;
}

/* Is the file ours, of a version that we know, and sound? */
static int check_file(struct sqlite *q, struct err *e)
{
    sqlite3_stmt *st = NULL;
    uint64_t app = 0;
    uint64_t version = 0;
    int r = ask(q, "PRAGMA application_id", &app, e);

    if (r == 0)
        r = ask(q, "PRAGMA user_version", &version, e);
    if (r != 0)
        return r;
    if (app != APPLICATION_ID)
        return err_set(e, -EUCLEAN,
            "\"%s\" is not the database of a hub, or a damaged one; it is left as it is: put a "
            "copy in its place, or move it away to start empty",
            q->path);
    if (version != SCHEMA_VERSION)
        return err_set(e, -EUCLEAN,
            "database \"%s\" has schema version %llu; this weft knows version %d", q->path,
            (unsigned long long)version, SCHEMA_VERSION);
    if (sqlite3_prepare_v2(q->db, "PRAGMA quick_check(1)", -1, &st, NULL) != SQLITE_OK)
        return fail(q, e);
    if (sqlite3_step(st) != SQLITE_ROW)
        r = fail(q, e);
    else if (strcmp((const char *)sqlite3_column_text(st, 0), "ok") != 0)
        r = err_set(e, -EUCLEAN,
            "database \"%s\" is damaged (%s); it is left as it is: put a copy in its place, or "
            "move it away to start empty",
            q->path, (const char *)sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    return r;
}

static int prepare(struct sqlite *q, struct err *e)
{
    uint64_t n_log;
    int r = run(q, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", e);

    sqlite3_db_config(q->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    for (int i = 0; r == 0 && i < QUERY_N; i++)
        if (sqlite3_prepare_v3(q->db, query_text[i], -1, SQLITE_PREPARE_PERSISTENT, &q->query[i],
                NULL) != SQLITE_OK)
            r = fail(q, e);
    if (r == 0)
        r = ask(q, "SELECT revision FROM counter", &q->base.revision, e);
    if (r == 0)
        r = ask(q, "SELECT count(*) FROM change", &n_log, e);
    if (r == 0)
        r = ask(q, "SELECT min(revision) FROM change", &q->base.log_first, e);
    if (r != 0)
        return r;
    q->n_log = n_log;
    if (q->base.log_first == 0)
        q->base.log_first = 1;
    return 0;
}

static int sqlite_new(struct sqlite **ret, const char *path, struct err *e)
{
    struct sqlite *q = calloc(1, sizeof(*q));

    if (q)
        q->path = strdup(path);
    if (!q || !q->path) {
        free(q);
        return err_set(e, -ENOMEM, "no memory for a store");
    }
    store__init(&q->base, &sqlite_ops);
    *ret = q;
    return 0;
}

static int open_existing(struct store **ret, const char *path, struct err *e)
{
    _cleanup_(store_freep) struct store *s = NULL;
    struct sqlite *q = NULL;
    int r = sqlite_new(&q, path, e);

    if (r != 0)
        return r;
    s = &q->base;
    r = connect_db(q, e);
    if (r == 0)
        r = check_file(q, e);
    if (r == 0)
        r = prepare(q, e);
    if (r == 0)
        *ret = TAKE_PTR(s);
    return r;
}

static int fill_new(const char *path, struct err *e)
{
    _cleanup_(store_freep) struct store *s = NULL;
    struct sqlite *q = NULL;
    int r = sqlite_new(&q, path, e);

    if (r != 0)
        return r;
    s = &q->base;
    r = connect_db(q, e);
    return r == 0 ? run(q, schema, e) : r;
}

/* A complete empty database, first beside its name, then under it. */
static int create(const char *path, struct err *e)
{
    _cleanup_(freep) char *fresh = NULL;
    _cleanup_(closep) int fd = -1;
    int r;

    if (asprintf(&fresh, "%s.new", path) < 0)
        return err_set(e, -ENOMEM, "no memory for a path");
    /* Left over when a hub ended in the middle of this; nothing of worth is in it. */
    (void)unlink(fresh);
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(e, -errno, "database \"%s\" cannot be made: %s", path, strerror(errno));
    r = fill_new(fresh, e);
    if (r == 0 && link(fresh, path) < 0)
        r = err_set(e, -errno, "database \"%s\" cannot be made: %s", path, strerror(errno));
    if (r == 0)
        r = statefile_sync_dir_of(path, e);
    (void)unlink(fresh);
    return r;
}

int sqlite_open(struct store **ret, const char *where, struct err *e)
{
    struct stat st;
    int r = 0;

    if (where[0] == '\0')
        return err_set(e, -EINVAL, "store \"sqlite:\": a path must follow the colon");
    if (stat(where, &st) < 0) {
        if (errno != ENOENT)
            return err_set(e, -errno, "database \"%s\": %s", where, strerror(errno));
        r = create(where, e);
    }
    return r == 0 ? open_existing(ret, where, e) : r;
}
