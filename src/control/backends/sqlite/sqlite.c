/*
 * sqlite.c - the embedded store: one SQLite file, and a thread that waits for the disk.
 *
 * Write-ahead log, synchronous=FULL: what was committed survives the process and the machine.
 *
 * Theory of operation. The thread does the jobs in the order in which they came. While it waits for
 * the disk, more jobs are queued. Commits that wait together go into one transaction, which is
 * written and synced once for all of them, and they are answered when that is done. So one writer
 * gets one commit with each sync of the disk, and many writers get many commits with each.
 */
#include "store/store_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "os/file.h"

/* ---- the file of the embedded store: created in one step, locked, checked when opened -------- */

/*
 * It is locked for as long as it is open, so a second hub on the same state is refused. A file that
 * is not ours, damaged, or of a newer schema is left as it is, and the error names it. A new file
 * is made under another name and gets its final name when it is complete, so an empty file counts
 * as damaged too.
 *
 *     item     every key with its value
 *     change   the log for watches; a NULL value is a deletion
 *     counter  the revision
 */

/* The statements that are prepared once; their texts are in query_text. */
enum sqlite_db_query {
    SQLITE_DB_GET,
    SQLITE_DB_UP,
    SQLITE_DB_DOWN,
    SQLITE_DB_LEASES,
    SQLITE_DB_REVISION_OF,
    SQLITE_DB_PUT,
    SQLITE_DB_DELETE,
    SQLITE_DB_LOG,
    SQLITE_DB_COUNT,
    SQLITE_DB_CHANGES,
    SQLITE_DB_CUT,
    SQLITE_DB_TRIM,
    SQLITE_DB_TRIM_DELETED,
    SQLITE_DB_BEGIN,
    SQLITE_DB_COMMIT,
    SQLITE_DB_MARK,
    SQLITE_DB_UNMARK,
    SQLITE_DB_BACK,
    SQLITE_DB_QUERY_N,
};

struct sqlite_db {
    char *path;                             /* owns; for messages */
    sqlite3 *handle;                        /* owns */
    sqlite3_stmt *query[SQLITE_DB_QUERY_N]; /* owns */
    uint64_t revision;                      /* of the last commit that changed something */
    uint64_t log_first;                     /* the oldest revision that the log holds completely */
    uint64_t n_log;                         /* rows of these, about */
};

#define APPLICATION_ID 0x57654674 /* "WeFt": says whose file it is */
#define SCHEMA_VERSION 1

static const char schema[] =
    "BEGIN;"
    "CREATE TABLE item(key TEXT PRIMARY KEY, value TEXT NOT NULL, revision INTEGER NOT NULL,"
    "  ttl INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE change(revision INTEGER NOT NULL, seq INTEGER NOT NULL, key TEXT NOT NULL,"
    "  value TEXT, ttl INTEGER NOT NULL, PRIMARY KEY(revision, seq)) WITHOUT ROWID;"
    "CREATE TABLE counter(revision INTEGER NOT NULL);"
    "INSERT INTO counter VALUES(0);";

static int damaged(const struct sqlite_db *db, const char *why, struct err *e)
{
    return err_set(e, -EUCLEAN,
        "database \"%s\" is damaged (%s); it is left as it is: put a copy in its place, or move "
        "it away to start empty",
        db->path, why);
}

/* What SQLite just said, as an error that names the file. */
static int sqlite_db_fail(struct sqlite_db *db, struct err *e)
{
    int last = errno;
    int code = sqlite3_extended_errcode(db->handle);
    int sys = sqlite3_system_errno(db->handle);

    /* A write-ahead log that cannot grow (quota, size limit) leaves its reason only in errno. */
    if (sys == 0 && code == SQLITE_IOERR_WRITE)
        sys = last;

    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return damaged(db, sqlite3_errmsg(db->handle), e);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(
            e, -EBUSY, "database \"%s\" is in use: is another hub running on it?", db->path);
    case SQLITE_FULL:
        return err_set(e, -ENOSPC, "no space left for database \"%s\"", db->path);
    case SQLITE_NOMEM:
        return err_set(e, -ENOMEM, "no memory for database \"%s\"", db->path);
    case SQLITE_IOERR:
        if (sys == ENOSPC || sys == EDQUOT || sys == EFBIG)
            return err_set(e, -ENOSPC, "no space left for database \"%s\"", db->path);
        break;
    }
    return err_set(e, sys ? -sys : -EIO, "database \"%s\": %s%s%s", db->path,
        sqlite3_errmsg(db->handle), sys ? ": " : "", sys ? strerror(sys) : "");
}

/* Statements that give no rows. 0 or negative errno with words. */
static int sqlite_db_run(struct sqlite_db *db, const char *sql, struct err *e)
{
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_db_fail(db, e);
}

/* The first number of the first row of @st; @dflt when there is none. */
static int sqlite_db_number(
    struct sqlite_db *db, sqlite3_stmt *st, uint64_t dflt, uint64_t *ret, struct err *e)
{
    int code = sqlite3_step(st);
    int r = 0;

    if (code == SQLITE_ROW)
        *ret = (uint64_t)sqlite3_column_int64(st, 0);
    else if (code == SQLITE_DONE)
        *ret = dflt;
    else
        r = sqlite_db_fail(db, e);
    sqlite3_reset(st);
    return r;
}

/* One number out of a pragma or an aggregate; 0 when there is none. */
static int sqlite_db_ask(struct sqlite_db *db, const char *sql, uint64_t *ret, struct err *e)
{
    sqlite3_stmt *st = NULL;
    int r;

    if (sqlite3_prepare_v2(db->handle, sql, -1, &st, NULL) != SQLITE_OK)
        return sqlite_db_fail(db, e);
    r = sqlite_db_number(db, st, 0, ret, e);
    sqlite3_finalize(st);
    return r;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int connect_file(struct sqlite_db *db, const char *path, struct err *e)
{
    db->path = strdup(path);
    if (!db->path)
        return err_set(e, -ENOMEM, "no memory for a store");
    if (sqlite3_open_v2(db->path, &db->handle, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        if (!db->handle)
            return err_set(e, -ENOMEM, "no memory for database \"%s\"", db->path);
        return sqlite_db_fail(db, e);
    }
    sqlite3_extended_result_codes(db->handle, 1);
    /* Until the file is known to be sound, closing must not write to it. */
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return sqlite_db_run(db,
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF;"
        "PRAGMA cell_size_check = ON;",
        e);
}

/* Is the file ours, of a version that we know, and sound? */
static int check_file(struct sqlite_db *db, struct err *e)
{
    sqlite3_stmt *st = NULL;
    uint64_t app = 0;
    uint64_t version = 0;
    int r = sqlite_db_ask(db, "PRAGMA application_id", &app, e);

    if (r == 0)
        r = sqlite_db_ask(db, "PRAGMA user_version", &version, e);
    if (r != 0)
        return r;
    if (app != APPLICATION_ID)
        return err_set(e, -EUCLEAN,
            "\"%s\" is not the database of a hub, or a damaged one; it is left as it is: put a "
            "copy in its place, or move it away to start empty",
            db->path);
    if (version != SCHEMA_VERSION)
        return err_set(e, -EUCLEAN,
            "database \"%s\" has schema version %llu; this weft knows version %d", db->path,
            (unsigned long long)version, SCHEMA_VERSION);
    if (sqlite3_prepare_v2(db->handle, "PRAGMA quick_check(1)", -1, &st, NULL) != SQLITE_OK)
        return sqlite_db_fail(db, e);
    if (sqlite3_step(st) != SQLITE_ROW)
        r = sqlite_db_fail(db, e);
    else if (strcmp((const char *)sqlite3_column_text(st, 0), "ok") != 0)
        r = damaged(db, (const char *)sqlite3_column_text(st, 0), e);
    sqlite3_finalize(st);
    return r;
}

/* Idempotent; also after an open that failed. */
static void sqlite_db_close(struct sqlite_db *db)
{
    for (int i = 0; i < SQLITE_DB_QUERY_N; i++)
        sqlite3_finalize(db->query[i]);
    sqlite3_close(db->handle);
    free(db->path);
    *db = (struct sqlite_db){.revision = 0};
}

/* An empty file becomes a database of ours, at once or not at all. */
static int fill_new(const char *path, struct err *e)
{
    struct sqlite_db db = {0};
    char marks[96];
    int r = connect_file(&db, path, e);

    (void)snprintf(marks, sizeof(marks),
        "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT", APPLICATION_ID,
        SCHEMA_VERSION);
    if (r == 0)
        r = sqlite_db_run(&db, schema, e);
    if (r == 0)
        r = sqlite_db_run(&db, marks, e);
    sqlite_db_close(&db);
    return r;
}

/* A complete empty database, first beside its name, then under it. */
static int create(const char *path, struct err *e)
{
    _cleanup_(freep) char *fresh = NULL;
    _cleanup_(closep) int fd = -1;
    int r;

    if (asprintf(&fresh, "%s.new", path) < 0)
        return err_set(e, -ENOMEM, "no memory for a path");
    /* A hub that ended in the middle of this leaves such a file; it holds no data. */
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

/*
 * The database at @path; a new one where there is no file
 *
 * Return: 0, or negative errno with words: -EUCLEAN when it is not sound or not ours, -EBUSY when
 * another process has it.
 */
static int open_file(struct sqlite_db *db, const char *path, struct err *e)
{
    struct stat st;
    int r = 0;

    if (stat(path, &st) < 0) {
        if (errno != ENOENT)
            return err_set(e, -errno, "database \"%s\": %s", path, strerror(errno));
        r = create(path, e);
    }
    if (r == 0)
        r = connect_file(db, path, e);
    if (r == 0)
        r = check_file(db, e);
    if (r == 0)
        r = sqlite_db_run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", e);
    if (r == 0)
        sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return r;
}

static int sync_file(const char *path, struct err *e)
{
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return err_set(e, -errno, "\"%s\" cannot be written: %s", path, strerror(errno));
    return 0;
}

/* As store_copy(). */
static int sqlite_db_copy(struct sqlite_db *db, const char *path, struct err *e)
{
    _cleanup_(closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    sqlite3_stmt *st = NULL;
    int r = 0;

    /* SQLite fills the existing empty file, so that the file has its mode from the beginning. */
    if (fd < 0)
        return err_set(e, -errno, "\"%s\" cannot be made: %s", path, strerror(errno));
    if (sqlite3_prepare_v2(db->handle, "VACUUM INTO ?1", -1, &st, NULL) != SQLITE_OK)
        return sqlite_db_fail(db, e);
    sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
    if (sqlite3_step(st) != SQLITE_DONE)
        r = sqlite_db_fail(db, e);
    sqlite3_finalize(st);
    return r == 0 ? sync_file(path, e) : r;
}

/* ---- the jobs: reading and writing the file -------------------------------------------------- */

/*
 * Each call waits for the disk, so these functions run on a thread of their own.
 *
 * Threads: one at a time.
 */

/* How many rows the log may have above its bound before it is trimmed, so that most commits need
 * not trim it. */
#define LOG_SLACK (STORE_LOG_MAX / 4)

/* '~' sorts behind every character that a key may have. */
static const char *const query_text[SQLITE_DB_QUERY_N] = {
    [SQLITE_DB_GET] = "SELECT key, value, revision, ttl FROM item WHERE key = ?1",
    [SQLITE_DB_UP] = "SELECT key, value, revision, ttl FROM item"
                     " WHERE key >= ?1 AND key < ?1 || '~' AND key > ?2 ORDER BY key",
    [SQLITE_DB_DOWN] = "SELECT key, value, revision, ttl FROM item"
                       " WHERE key >= ?1 AND key < ?1 || '~' AND key < ?2 ORDER BY key DESC",
    [SQLITE_DB_LEASES] = "SELECT key, ttl FROM item WHERE ttl > 0",
    [SQLITE_DB_REVISION_OF] = "SELECT revision FROM item WHERE key = ?1",
    [SQLITE_DB_PUT] =
        "INSERT OR REPLACE INTO item(key, value, revision, ttl) VALUES(?1, ?2, ?3, ?4)",
    [SQLITE_DB_DELETE] = "DELETE FROM item WHERE key = ?1",
    [SQLITE_DB_LOG] =
        "INSERT INTO change(revision, seq, key, value, ttl) VALUES(?1, ?2, ?3, ?4, ?5)",
    [SQLITE_DB_COUNT] = "UPDATE counter SET revision = ?1",
    [SQLITE_DB_CHANGES] = "SELECT key, value, revision, ttl FROM change"
                          " WHERE revision >= ?2 AND key >= ?1 AND key < ?1 || '~'"
                          " ORDER BY revision, seq",
    [SQLITE_DB_CUT] =
        "SELECT revision - 1 FROM change ORDER BY revision DESC, seq DESC LIMIT 1 OFFSET ?1",
    [SQLITE_DB_TRIM] = "DELETE FROM change WHERE revision <= ?1 AND value IS NOT NULL"
                       " AND revision > (SELECT min(revision) FROM change)",
    [SQLITE_DB_TRIM_DELETED] = "DELETE FROM change WHERE revision <= (SELECT revision FROM change"
                               " WHERE revision <= ?1 ORDER BY revision DESC, seq DESC"
                               " LIMIT 1 OFFSET ?2)",
    [SQLITE_DB_BEGIN] = "BEGIN IMMEDIATE",
    [SQLITE_DB_COMMIT] = "COMMIT",
    [SQLITE_DB_MARK] = "SAVEPOINT one",
    [SQLITE_DB_UNMARK] = "RELEASE one",
    [SQLITE_DB_BACK] = "ROLLBACK TO one",
};

static sqlite3_stmt *query(struct sqlite_db *db, enum sqlite_db_query which)
{
    sqlite3_reset(db->query[which]);
    return db->query[which];
}

static void bind_text(sqlite3_stmt *st, int i, const char *text)
{
    /* Without a copy: the text outlives the step, and the next use resets the statement. */
    sqlite3_bind_text(st, i, text, -1, SQLITE_STATIC);
}

/* Run a statement that gives no rows. */
static int execute(struct sqlite_db *db, sqlite3_stmt *st, struct err *e)
{
    int code = sqlite3_step(st);
    int r = code == SQLITE_DONE ? 0 : sqlite_db_fail(db, e);

    sqlite3_reset(st);
    return r;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* One row of key, value, revision, ttl. */
static int read_row(sqlite3_stmt *st, struct store_job *job)
{
    struct store_item item = {.key = (const char *)sqlite3_column_text(st, 0),
        .value = (const char *)sqlite3_column_text(st, 1),
        .value_len = (size_t)sqlite3_column_bytes(st, 1),
        .revision = (uint64_t)sqlite3_column_int64(st, 2),
        .ttl_seconds = (uint32_t)sqlite3_column_int64(st, 3)};
    bool is_whole = item.key && (item.value || sqlite3_column_type(st, 1) == SQLITE_NULL);

    return is_whole ? store_job_add(job, &item) : -ENOMEM;
}

/* The rows of @st, as many as the job takes. */
static int read_rows(struct sqlite_db *db, sqlite3_stmt *st, struct store_job *job)
{
    int code = SQLITE_DONE;
    int r = 0;

    while (r == 0 && (code = sqlite3_step(st)) == SQLITE_ROW)
        r = read_row(st, job);
    if (r == 0 && code != SQLITE_DONE)
        r = sqlite_db_fail(db, &job->e);
    if (r == -ENOMEM)
        (void)err_set(&job->e, r, "no memory for what is read");
    sqlite3_reset(st);
    return r < 0 ? r : 0;
}

static int get(struct sqlite_db *db, struct store_job *job)
{
    sqlite3_stmt *st = query(db, SQLITE_DB_GET);
    int r;

    bind_text(st, 1, job->key);
    r = read_rows(db, st, job);
    return r == 0 && job->items.n == 0 ? STORE_E_ABSENT : r;
}

static int list(struct sqlite_db *db, struct store_job *job)
{
    sqlite3_stmt *st = query(db, job->is_down ? SQLITE_DB_DOWN : SQLITE_DB_UP);

    bind_text(st, 1, job->key);
    bind_text(st, 2, job->from ? job->from : job->is_down ? "~" : "");
    return read_rows(db, st, job);
}

static int changes(struct sqlite_db *db, struct store_job *job)
{
    sqlite3_stmt *st = query(db, SQLITE_DB_CHANGES);
    int r = 0;

    if (job->kind == STORE_JOB_DELETED)
        r = sqlite_db_ask(
            db, "SELECT coalesce(min(revision), 1) FROM change", &job->first, &job->e);
    else if (job->first < db->log_first)
        r = STORE_E_COMPACTED;
    if (r != 0)
        return r;
    bind_text(st, 1, job->key);
    sqlite3_bind_int64(st, 2, (sqlite3_int64)job->first);
    return read_rows(db, st, job);
}

/* Fill in the answer of a job that is no commit. */
static void sqlite_db_read(struct sqlite_db *db, struct store_job *job)
{
    job->revision = db->revision;
    if (job->kind == STORE_JOB_GET)
        job->r = get(db, job);
    else if (job->kind == STORE_JOB_LIST)
        job->r = list(db, job);
    else if (job->kind == STORE_JOB_CHANGES || job->kind == STORE_JOB_DELETED)
        job->r = changes(db, job);
    else
        job->r = sqlite_db_copy(db, job->key, &job->e);
}

/* Begin the lease of each key that has one at @now. 0 or negative errno with words. */
static int sqlite_db_leases(struct sqlite_db *db, struct store *s, nsec_t now, struct err *e)
{
    sqlite3_stmt *st = query(db, SQLITE_DB_LEASES);
    int code = SQLITE_DONE;
    int r = 0;

    while (r == 0 && (code = sqlite3_step(st)) == SQLITE_ROW) {
        const char *key = (const char *)sqlite3_column_text(st, 0);

        r = key ? store__set_lease(s, key, (uint32_t)sqlite3_column_int64(st, 1), now) : -ENOMEM;
    }
    if (r != 0)
        (void)err_set(e, r, "no memory for what has a lease");
    else if (code != SQLITE_DONE)
        r = sqlite_db_fail(db, e);
    sqlite3_reset(st);
    return r;
}

/* ---- writing -------------------------------------------------------------------------------- */

static int write_log(
    struct sqlite_db *db, const struct store_op *op, uint64_t revision, size_t seq, struct err *e)
{
    sqlite3_stmt *st = query(db, SQLITE_DB_LOG);
    bool is_put = op->kind == STORE_OP_PUT;

    sqlite3_bind_int64(st, 1, (sqlite3_int64)revision);
    sqlite3_bind_int64(st, 2, (sqlite3_int64)seq);
    bind_text(st, 3, op->key);
    bind_text(st, 4, is_put ? op->value : NULL);
    sqlite3_bind_int64(st, 5, is_put ? op->ttl_seconds : 0);
    return execute(db, st, e);
}

static int write_item(
    struct sqlite_db *db, const struct store_op *op, uint64_t revision, struct err *e)
{
    sqlite3_stmt *st = query(db, op->kind == STORE_OP_PUT ? SQLITE_DB_PUT : SQLITE_DB_DELETE);

    bind_text(st, 1, op->key);
    if (op->kind == STORE_OP_PUT) {
        bind_text(st, 2, op->value);
        sqlite3_bind_int64(st, 3, (sqlite3_int64)revision);
        sqlite3_bind_int64(st, 4, op->ttl_seconds);
    }
    return execute(db, st, e);
}

/* One operation, inside a transaction; @changed: it took effect. */
static int apply_op(
    struct sqlite_db *db, const struct store_op *op, size_t seq, bool *changed, struct err *e)
{
    uint64_t revision = db->revision + 1;
    uint64_t current = STORE_EXPECT_ABSENT;
    sqlite3_stmt *st = query(db, SQLITE_DB_REVISION_OF);
    int r;

    bind_text(st, 1, op->key);
    r = sqlite_db_number(db, st, STORE_EXPECT_ABSENT, &current, e);
    *changed = false;
    if (r != 0)
        return r;
    if (op->expect != STORE_EXPECT_ANY && op->expect != current)
        return STORE_E_CONFLICT;
    if (op->kind == STORE_OP_CHECK ||
        (op->kind == STORE_OP_DELETE && current == STORE_EXPECT_ABSENT))
        return 0;
    *changed = true;
    r = write_item(db, op, revision, e);
    return r == 0 && !op->is_unwatched ? write_log(db, op, revision, seq, e) : r;
}

/* All operations of one commit, inside a transaction. */
static int apply(struct sqlite_db *db, struct store_job *job)
{
    size_t n_logged = 0;
    bool any = false;
    int r = 0;

    for (size_t i = 0; r == 0 && i < job->n_ops; i++) {
        job->failed = i;
        r = apply_op(db, &job->ops[i], i, &job->took_effect[i], &job->e);
        any |= job->took_effect[i];
        n_logged += job->took_effect[i] && !job->ops[i].is_unwatched;
    }
    if (r == 0 && any) {
        sqlite3_stmt *st = query(db, SQLITE_DB_COUNT);

        sqlite3_bind_int64(st, 1, (sqlite3_int64)(db->revision + 1));
        r = execute(db, st, &job->e);
    }
    if (r != 0)
        return r;
    db->n_log += n_logged;
    db->revision += any;
    job->revision = db->revision;
    return 0;
}

/* As apply(), but a commit that conflicts is undone. After any other failure the whole transaction
 * has to be rolled back. @is_alone: no other commit is in it. */
static int apply_or_undo(struct sqlite_db *db, struct store_job *job, bool is_alone)
{
    int r = is_alone ? 0 : execute(db, query(db, SQLITE_DB_MARK), &job->e);

    if (r != 0)
        return r;
    if (is_alone)
        return job->r = apply(db, job);
    job->r = apply(db, job);
    r = job->r == STORE_E_CONFLICT ? execute(db, query(db, SQLITE_DB_BACK), &job->e) : job->r;
    return r == 0 ? execute(db, query(db, SQLITE_DB_UNMARK), &job->e) : r;
}

/* The last revision that does not have to be in the log; 0: there is none. More than STORE_LOG_MAX
 * rows are behind it, so what is found later is never before it, whatever is left there. */
static int find_cut(struct sqlite_db *db, uint64_t *ret, struct err *e)
{
    sqlite3_stmt *st = query(db, SQLITE_DB_CUT);

    sqlite3_bind_int64(st, 1, STORE_LOG_MAX);
    return sqlite_db_number(db, st, 0, ret, e);
}

static int trim(struct sqlite_db *db, enum sqlite_db_query which, uint64_t cut, struct err *e)
{
    sqlite3_stmt *st = query(db, which);

    sqlite3_bind_int64(st, 1, (sqlite3_int64)cut);
    if (which == SQLITE_DB_TRIM_DELETED)
        sqlite3_bind_int64(st, 2, STORE_DELETED_MAX);
    return execute(db, st, e);
}

/*
 * Forget whole revisions from the front of the log when it has grown too long; the last commit
 * stays. Deletions, which are short, stay longer, and so does all of the first revision of which
 * none is missing: it is by that row that a later start finds out.
 */
static int trim_log(struct sqlite_db *db, struct err *e)
{
    uint64_t cut = 0;
    int r;

    if (db->n_log <= STORE_LOG_MAX + LOG_SLACK)
        return 0;
    r = find_cut(db, &cut, e);
    if (r == 0)
        r = trim(db, SQLITE_DB_TRIM, cut, e);
    if (r == 0)
        r = trim(db, SQLITE_DB_TRIM_DELETED, cut, e);
    if (r != 0)
        return r;
    db->n_log = STORE_LOG_MAX;
    db->log_first = cut + 1;
    return 0;
}

/* The @n commits from @first on, as one transaction. 0; STORE_E_CONFLICT when @n is 1 and it
 * conflicts; or negative errno with words. */
static int transact(struct sqlite_db *db, struct list *first, size_t n, struct err *e)
{
    const struct sqlite_db before = *db;
    int r = execute(db, query(db, SQLITE_DB_BEGIN), e);
    struct list *l = first;

    for (size_t i = 0; r == 0 && i < n; i++, l = l->next) {
        struct store_job *job = container_of(l, struct store_job, link);

        r = apply_or_undo(db, job, n == 1);
        if (r != 0)
            *e = job->e;
    }
    if (r == 0)
        r = trim_log(db, e);
    if (r == 0)
        r = execute(db, query(db, SQLITE_DB_COMMIT), e);
    if (r == 0)
        return 0;
    /* SQLite may have rolled back by itself; then this does nothing. */
    (void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    *db = before;
    return r;
}

/*
 * Fill in the answers of commits, written in one transaction
 * @jobs:	of struct store_job, in order; they stay in the list
 *
 * A commit that conflicts does not affect the others. When the transaction fails, each commit is
 * tried alone, so that one which is too large for the disk does not make the others fail.
 */
static void sqlite_db_commit(struct sqlite_db *db, struct list *jobs)
{
    struct err e = ERR_NULL;
    struct store_job *job;
    size_t n = 0;

    list_foreach(job, jobs, link)
        n++;
    if (n > 1 && transact(db, jobs->next, n, &e) == 0)
        return;
    list_foreach(job, jobs, link) {
        store_job_undo(job);
        job->r = transact(db, &job->link, 1, &job->e);
    }
}

/* ---- preparing ------------------------------------------------------------------------------- */

static int prepare(struct sqlite_db *db, struct err *e)
{
    uint64_t cut = 0;
    int r = 0;

    for (int i = 0; r == 0 && i < SQLITE_DB_QUERY_N; i++)
        if (sqlite3_prepare_v3(db->handle, query_text[i], -1, SQLITE_PREPARE_PERSISTENT,
                &db->query[i], NULL) != SQLITE_OK)
            r = sqlite_db_fail(db, e);
    if (r == 0)
        r = sqlite_db_ask(db, "SELECT revision FROM counter", &db->revision, e);
    if (r == 0)
        r = sqlite_db_ask(db, "SELECT count(*) FROM change", &db->n_log, e);
    if (r == 0)
        r = sqlite_db_ask(db, "SELECT min(revision) FROM change", &db->log_first, e);
    /* Before the last so many there may be deletions only. */
    if (r == 0)
        r = find_cut(db, &cut, e);
    if (r != 0)
        return r;
    if (cut > 0 || db->log_first == 0)
        db->log_first = cut + 1;
    return 0;
}

/* As open_file(), with all statements prepared. */
static int sqlite_db_open(struct sqlite_db *db, const char *path, struct err *e)
{
    int r = open_file(db, path, e);

    /* A savepoint of many pages needs room for a while, which must not be files elsewhere. */
    if (r == 0)
        r = sqlite_db_run(db, "PRAGMA temp_store = MEMORY", e);
    return r == 0 ? prepare(db, e) : r;
}

/* ---- the store ------------------------------------------------------------------------------- */

struct sqlite {
    struct store base;
    struct sqlite_db db; /* the thread's, once it runs */
};

/* ---- the thread ----------------------------------------------------------------------------- */

/* Commits that become one transaction. */
static const struct store_queue_limits limits = {.ops_max = STORE_OPS_MAX, .bytes_max = SIZE_MAX};

static void run(struct worker *w, void *ctx)
{
    struct sqlite *q = ctx;
    struct store_job *job;
    struct list jobs;
    bool is_ending = false;

    list_init(&jobs);
    for (;;) {
        if (!store_queue_take(w, &limits, &jobs, &is_ending)) {
            if (is_ending)
                return;
            worker_wait(w, NSEC_NEVER);
            continue;
        }
        job = list_first(&jobs, struct store_job, link);
        if (job->kind == STORE_JOB_COMMIT)
            sqlite_db_commit(&q->db, &jobs);
        else
            sqlite_db_read(&q->db, job);
        while ((job = list_first(&jobs, struct store_job, link))) {
            list_remove(&job->link);
            store__finish(&q->base, job);
        }
    }
}

/* ---- the owner's side ----------------------------------------------------------------------- */

static void sqlite_free(struct store *s)
{
    struct sqlite *q = container_of(s, struct sqlite, base);

    s->worker = worker_stop(s->worker);
    sqlite_db_close(&q->db);
    store__deinit(s);
    free(q);
}

static const struct store_ops sqlite_ops = {
    .free = sqlite_free,
    .submit = store_queue_submit,
};

int sqlite_open(struct store **ret, const char *where, nsec_t now, struct err *e)
{
    struct sqlite *q;
    int r;

    if (where[0] == '\0')
        return err_set(e, -EINVAL, "store \"sqlite:\": a path must follow the colon");
    q = calloc(1, sizeof(*q));
    if (!q)
        return err_set(e, -ENOMEM, "no memory for a store");
    r = store__init(&q->base, &sqlite_ops, e);
    if (r == 0)
        r = sqlite_db_open(&q->db, where, e);
    if (r == 0)
        r = sqlite_db_leases(&q->db, &q->base, now, e);
    q->base.revision = q->db.revision;
    if (r == 0)
        r = store_queue_start(&q->base.worker, run, q, e);
    if (r != 0) {
        sqlite_free(&q->base);
        return r;
    }
    *ret = &q->base;
    return 0;
}
