/* sqlite_db.c - see sqlite_db.h. */
#include "backends/sqlite/sqlite_db.h"

#include <errno.h>
#include <stdlib.h>

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
        "SELECT revision FROM change ORDER BY revision DESC, seq DESC LIMIT 1 OFFSET ?1",
    [SQLITE_DB_TRIM] = "DELETE FROM change WHERE revision <= ?1",
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
    int r = code == SQLITE_DONE ? 0 : sqlite_file_fail(&db->file, e);

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
        r = sqlite_file_fail(&db->file, &job->e);
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
    bool is_up = job->order == STORE_ASCENDING;
    sqlite3_stmt *st = query(db, is_up ? SQLITE_DB_UP : SQLITE_DB_DOWN);

    bind_text(st, 1, job->key);
    bind_text(st, 2, job->from ? job->from : is_up ? "" : "~");
    return read_rows(db, st, job);
}

static int changes(struct sqlite_db *db, struct store_job *job)
{
    sqlite3_stmt *st = query(db, SQLITE_DB_CHANGES);

    if (job->first < db->log_first)
        return STORE_E_COMPACTED;
    bind_text(st, 1, job->key);
    sqlite3_bind_int64(st, 2, (sqlite3_int64)job->first);
    return read_rows(db, st, job);
}

void sqlite_db_read(struct sqlite_db *db, struct store_job *job)
{
    job->revision = db->revision;
    if (job->kind == STORE_JOB_GET)
        job->r = get(db, job);
    else if (job->kind == STORE_JOB_LIST)
        job->r = list(db, job);
    else if (job->kind == STORE_JOB_CHANGES)
        job->r = changes(db, job);
    else
        job->r = sqlite_file_copy(&db->file, job->key, &job->e);
}

int sqlite_db_leases(struct sqlite_db *db, struct leases *leases, nsec_t now, struct err *e)
{
    sqlite3_stmt *st = query(db, SQLITE_DB_LEASES);
    int code = SQLITE_DONE;
    int r = 0;

    while (r == 0 && (code = sqlite3_step(st)) == SQLITE_ROW) {
        const char *key = (const char *)sqlite3_column_text(st, 0);

        r = key ? leases_set(leases, key, (uint32_t)sqlite3_column_int64(st, 1), now) : -ENOMEM;
    }
    if (r != 0)
        (void)err_set(e, r, "no memory for what has a lease");
    else if (code != SQLITE_DONE)
        r = sqlite_file_fail(&db->file, e);
    sqlite3_reset(st);
    return r;
}

/* ---- writing -------------------------------------------------------------------------------- */

static int revision_of(struct sqlite_db *db, const char *key, uint64_t *ret, struct err *e)
{
    sqlite3_stmt *st = query(db, SQLITE_DB_REVISION_OF);

    bind_text(st, 1, key);
    return sqlite_file_number(&db->file, st, STORE_EXPECT_ABSENT, ret, e);
}

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
    int r = revision_of(db, op->key, &current, e);

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
    return r == 0 && !op->is_untold ? write_log(db, op, revision, seq, e) : r;
}

static int count_revision(struct sqlite_db *db, struct err *e)
{
    sqlite3_stmt *st = query(db, SQLITE_DB_COUNT);

    sqlite3_bind_int64(st, 1, (sqlite3_int64)(db->revision + 1));
    return execute(db, st, e);
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
        n_logged += job->took_effect[i] && !job->ops[i].is_untold;
    }
    if (r == 0 && any)
        r = count_revision(db, &job->e);
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

/* Forget whole revisions from the front of the log when it has grown too long; the last commit
 * stays. */
static int trim_log(struct sqlite_db *db, struct err *e)
{
    sqlite3_stmt *st;
    uint64_t cut = 0;
    int r;

    if (db->n_log <= STORE_LOG_MAX + LOG_SLACK)
        return 0;
    st = query(db, SQLITE_DB_CUT);
    sqlite3_bind_int64(st, 1, STORE_LOG_MAX);
    r = sqlite_file_number(&db->file, st, 0, &cut, e);
    if (r != 0)
        return r;
    if (cut >= db->revision)
        cut = db->revision - 1;
    st = query(db, SQLITE_DB_TRIM);
    sqlite3_bind_int64(st, 1, (sqlite3_int64)cut);
    r = execute(db, st, e);
    if (r == 0 && cut > 0) {
        db->n_log -= (size_t)sqlite3_changes(db->file.db);
        db->log_first = cut + 1;
    }
    return r;
}

/* What is set back when a transaction fails. */
struct before {
    uint64_t revision;
    uint64_t log_first;
    size_t n_log;
};

/* The @n commits from @first on, as one transaction. 0; STORE_E_CONFLICT when @n is 1 and it
 * conflicts; or negative errno with words. */
static int transact(struct sqlite_db *db, struct list *first, size_t n, struct err *e)
{
    struct before before = {db->revision, db->log_first, db->n_log};
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
    (void)sqlite3_exec(db->file.db, "ROLLBACK", NULL, NULL, NULL);
    db->revision = before.revision;
    db->log_first = before.log_first;
    db->n_log = before.n_log;
    return r;
}

static void commit_alone(struct sqlite_db *db, struct store_job *job)
{
    struct err e = ERR_NULL;
    int r;

    store_job_undo(job);
    r = transact(db, &job->link, 1, &e);
    if (r == 0)
        return;
    job->r = r;
    job->e = e;
}

void sqlite_db_commit(struct sqlite_db *db, struct list *jobs)
{
    struct err e = ERR_NULL;
    struct store_job *job;
    size_t n = 0;

    list_foreach(job, jobs, link)
        n++;
    if (n > 1 && transact(db, jobs->next, n, &e) == 0)
        return;
    list_foreach(job, jobs, link)
        commit_alone(db, job);
}

/* ---- opening -------------------------------------------------------------------------------- */

static int prepare(struct sqlite_db *db, struct err *e)
{
    uint64_t n_log;
    int r = 0;

    for (int i = 0; r == 0 && i < SQLITE_DB_QUERY_N; i++)
        if (sqlite3_prepare_v3(db->file.db, query_text[i], -1, SQLITE_PREPARE_PERSISTENT,
                &db->query[i], NULL) != SQLITE_OK)
            r = sqlite_file_fail(&db->file, e);
    if (r == 0)
        r = sqlite_file_ask(&db->file, "SELECT revision FROM counter", &db->revision, e);
    if (r == 0)
        r = sqlite_file_ask(&db->file, "SELECT count(*) FROM change", &n_log, e);
    if (r == 0)
        r = sqlite_file_ask(&db->file, "SELECT min(revision) FROM change", &db->log_first, e);
    if (r != 0)
        return r;
    db->n_log = n_log;
    if (db->log_first == 0)
        db->log_first = 1;
    return 0;
}

int sqlite_db_open(struct sqlite_db *db, const char *path, struct err *e)
{
    int r;

    *db = (struct sqlite_db){.file = SQLITE_FILE_NULL};
    r = sqlite_file_open(&db->file, path, e);
    /* A savepoint of many pages needs room for a while, which must not be files elsewhere. */
    if (r == 0)
        r = sqlite_file_run(&db->file, "PRAGMA temp_store = MEMORY", e);
    return r == 0 ? prepare(db, e) : r;
}

void sqlite_db_close(struct sqlite_db *db)
{
    for (int i = 0; i < SQLITE_DB_QUERY_N; i++)
        sqlite3_finalize(db->query[i]);
    sqlite_file_close(&db->file);
    *db = (struct sqlite_db){.file = SQLITE_FILE_NULL};
}
