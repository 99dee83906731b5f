/* sqlite_file.c - see sqlite_file.h. */
#include "backends/sqlite/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "os/fd_cleanup.h"
#include "os/statefile.h"

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

int sqlite_file_fail(struct sqlite_file *f, struct err *e)
{
    int last = errno;
    int code = sqlite3_extended_errcode(f->db);
    int sys = sqlite3_system_errno(f->db);

    /* A write-ahead log that cannot grow (quota, size limit) leaves its reason only in errno. */
    if (sys == 0 && code == SQLITE_IOERR_WRITE)
        sys = last;

    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_set(e, -EUCLEAN,
            "database \"%s\" is damaged (%s); it is left as it is: put a copy in its place, or "
            "move it away to start empty",
            f->path, sqlite3_errmsg(f->db));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(
            e, -EBUSY, "database \"%s\" is in use: is another hub running on it?", f->path);
    case SQLITE_FULL:
        return err_set(e, -ENOSPC, "no space left for database \"%s\"", f->path);
    case SQLITE_NOMEM:
        return err_set(e, -ENOMEM, "no memory for database \"%s\"", f->path);
    case SQLITE_IOERR:
        if (sys == ENOSPC || sys == EDQUOT || sys == EFBIG)
            return err_set(e, -ENOSPC, "no space left for database \"%s\"", f->path);
        break;
    }
    return err_set(e, sys ? -sys : -EIO, "database \"%s\": %s%s%s", f->path, sqlite3_errmsg(f->db),
        sys ? ": " : "", sys ? strerror(sys) : "");
}

int sqlite_file_run(struct sqlite_file *f, const char *sql, struct err *e)
{
    return sqlite3_exec(f->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_file_fail(f, e);
}

int sqlite_file_number(
    struct sqlite_file *f, sqlite3_stmt *st, uint64_t dflt, uint64_t *ret, struct err *e)
{
    int code = sqlite3_step(st);
    int r = 0;

    if (code == SQLITE_ROW)
        *ret = (uint64_t)sqlite3_column_int64(st, 0);
    else if (code == SQLITE_DONE)
        *ret = dflt;
    else
        r = sqlite_file_fail(f, e);
    sqlite3_reset(st);
    return r;
}

int sqlite_file_ask(struct sqlite_file *f, const char *sql, uint64_t *ret, struct err *e)
{
    sqlite3_stmt *st = NULL;
    int r;

    if (sqlite3_prepare_v2(f->db, sql, -1, &st, NULL) != SQLITE_OK)
        return sqlite_file_fail(f, e);
    r = sqlite_file_number(f, st, 0, ret, e);
    sqlite3_finalize(st);
    return r;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int set_path(struct sqlite_file *f, const char *path, struct err *e)
{
    f->path = strdup(path);
    return f->path ? 0 : err_set(e, -ENOMEM, "no memory for a store");
}

static int connect_file(struct sqlite_file *f, struct err *e)
{
    if (sqlite3_open_v2(f->path, &f->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        if (!f->db)
            return err_set(e, -ENOMEM, "no memory for database \"%s\"", f->path);
        return sqlite_file_fail(f, e);
    }
    sqlite3_extended_result_codes(f->db, 1);
    /* Until the file is known to be sound, closing must not write to it. */
    sqlite3_db_config(f->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return sqlite_file_run(f,
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF;"
        "PRAGMA cell_size_check = ON;",
        e);
}

/* Is the file ours, of a version that we know, and sound? */
static int check_file(struct sqlite_file *f, struct err *e)
{
    sqlite3_stmt *st = NULL;
    uint64_t app = 0;
    uint64_t version = 0;
    int r = sqlite_file_ask(f, "PRAGMA application_id", &app, e);

    if (r == 0)
        r = sqlite_file_ask(f, "PRAGMA user_version", &version, e);
    if (r != 0)
        return r;
    if (app != APPLICATION_ID)
        return err_set(e, -EUCLEAN,
            "\"%s\" is not the database of a hub, or a damaged one; it is left as it is: put a "
            "copy in its place, or move it away to start empty",
            f->path);
    if (version != SCHEMA_VERSION)
        return err_set(e, -EUCLEAN,
            "database \"%s\" has schema version %llu; this weft knows version %d", f->path,
            (unsigned long long)version, SCHEMA_VERSION);
    if (sqlite3_prepare_v2(f->db, "PRAGMA quick_check(1)", -1, &st, NULL) != SQLITE_OK)
        return sqlite_file_fail(f, e);
    if (sqlite3_step(st) != SQLITE_ROW)
        r = sqlite_file_fail(f, e);
    else if (strcmp((const char *)sqlite3_column_text(st, 0), "ok") != 0)
        r = err_set(e, -EUCLEAN,
            "database \"%s\" is damaged (%s); it is left as it is: put a copy in its place, or "
            "move it away to start empty",
            f->path, (const char *)sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    return r;
}

/* An empty file becomes a database of ours, at once or not at all. */
static int fill(struct sqlite_file *f, struct err *e)
{
    char marks[96];
    int r = sqlite_file_run(f, schema, e);

    (void)snprintf(marks, sizeof(marks),
        "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT", APPLICATION_ID,
        SCHEMA_VERSION);
    return r == 0 ? sqlite_file_run(f, marks, e) : r;
}

static int fill_new(const char *path, struct err *e)
{
    struct sqlite_file f = SQLITE_FILE_NULL;
    int r = set_path(&f, path, e);

    if (r == 0)
        r = connect_file(&f, e);
    if (r == 0)
        r = fill(&f, e);
    sqlite_file_close(&f);
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

int sqlite_file_open(struct sqlite_file *ret, const char *path, struct err *e)
{
    struct sqlite_file f = SQLITE_FILE_NULL;
    struct stat st;
    int r = 0;

    if (stat(path, &st) < 0) {
        if (errno != ENOENT)
            return err_set(e, -errno, "database \"%s\": %s", path, strerror(errno));
        r = create(path, e);
    }
    if (r == 0)
        r = set_path(&f, path, e);
    if (r == 0)
        r = connect_file(&f, e);
    if (r == 0)
        r = check_file(&f, e);
    if (r == 0)
        r = sqlite_file_run(&f, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", e);
    if (r != 0) {
        sqlite_file_close(&f);
        return r;
    }
    sqlite3_db_config(f.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    *ret = f;
    return 0;
}

void sqlite_file_close(struct sqlite_file *f)
{
    sqlite3_close(f->db);
    free(f->path);
    *f = (struct sqlite_file)SQLITE_FILE_NULL;
}

static int sync_file(const char *path, struct err *e)
{
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return err_set(e, -errno, "\"%s\" cannot be written: %s", path, strerror(errno));
    return 0;
}

int sqlite_file_copy(struct sqlite_file *f, const char *path, struct err *e)
{
    _cleanup_(closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    sqlite3_stmt *st = NULL;
    int r = 0;

    /* SQLite fills the existing empty file, so that the file has its mode from the beginning. */
    if (fd < 0)
        return err_set(e, -errno, "\"%s\" cannot be made: %s", path, strerror(errno));
    if (sqlite3_prepare_v2(f->db, "VACUUM INTO ?1", -1, &st, NULL) != SQLITE_OK)
        return sqlite_file_fail(f, e);
    sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
    if (sqlite3_step(st) != SQLITE_DONE)
        r = sqlite_file_fail(f, e);
    sqlite3_finalize(st);
    return r == 0 ? sync_file(path, e) : r;
}
