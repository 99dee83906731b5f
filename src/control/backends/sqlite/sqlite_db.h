/*
 * sqlite_db.h - does the jobs of the embedded store: it reads and writes the file.
 *
 * Each call waits for the disk, so sqlite.c calls these functions on a thread of its own.
 *
 * Threads: one at a time.
 */
#pragma once

#include "backends/sqlite/sqlite_file.h"
#include "store/store_backend.h"

/** The statements that are prepared once; their texts are in sqlite_db.c. */
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
    SQLITE_DB_BEGIN,
    SQLITE_DB_COMMIT,
    SQLITE_DB_MARK,
    SQLITE_DB_UNMARK,
    SQLITE_DB_BACK,
    SQLITE_DB_QUERY_N,
};

struct sqlite_db {
    struct sqlite_file file;                /* owns */
    sqlite3_stmt *query[SQLITE_DB_QUERY_N]; /* owns */
    uint64_t revision;                      /* of the last commit that changed something */
    uint64_t log_first;                     /* the oldest revision that the log holds completely */
    size_t n_log;                           /* rows in change */
};

/** sqlite_db_open() - as sqlite_file_open(), with all statements prepared. */
int sqlite_db_open(struct sqlite_db *db, const char *path, struct err *e);

/** sqlite_db_close() - release it. Idempotent; also after an open that failed. */
void sqlite_db_close(struct sqlite_db *db);

/** sqlite_db_leases() - begin the lease of each key that has one at @now. 0 or negative errno with
 * words. */
int sqlite_db_leases(struct sqlite_db *db, struct leases *leases, nsec_t now, struct err *e);

/** sqlite_db_read() - fill in the answer of a job that is no commit. */
void sqlite_db_read(struct sqlite_db *db, struct store_job *job);

/**
 * sqlite_db_commit() - fill in the answers of commits, written in one transaction
 * @jobs:	of struct store_job, in order; they stay in the list
 *
 * A commit that conflicts does not affect the others. When the transaction fails, each commit is
 * tried alone, so that one which is too large for the disk does not make the others fail.
 */
void sqlite_db_commit(struct sqlite_db *db, struct list *jobs);
