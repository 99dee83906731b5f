/*
 * sqlite_file.h - the file of the embedded store: created in one step, locked, checked when opened.
 *
 * It is locked for as long as it is open, so a second hub on the same state is refused. A file that
 * is not ours, damaged, or of a newer schema is left as it is, and the error names it. A new file
 * is made under another name and gets its final name when it is complete, so an empty file counts
 * as damaged too.
 *
 *     item     every key with its value
 *     change   the log for watches; a NULL value is a deletion
 *     counter  the revision
 *
 * sqlite_db.c reads and writes the tables.
 */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

struct err;

struct sqlite_file {
    char *path;  /* owns; for messages */
    sqlite3 *db; /* owns */
};

#define SQLITE_FILE_NULL                                                                           \
    {                                                                                              \
        0                                                                                          \
    }

/**
 * sqlite_file_open() - the database at @path; a new one where there is no file
 *
 * Return: 0, or negative errno with words: -EUCLEAN when it is not sound or not ours, -EBUSY when
 * another process has it.
 */
int sqlite_file_open(struct sqlite_file *ret, const char *path, struct err *e);

/** sqlite_file_close() - after all statements were finalized. Idempotent. */
void sqlite_file_close(struct sqlite_file *f);

/** sqlite_file_fail() - what SQLite just said, as an error that names the file. */
int sqlite_file_fail(struct sqlite_file *f, struct err *e);

/** sqlite_file_run() - statements that give no rows. 0 or negative errno with words. */
int sqlite_file_run(struct sqlite_file *f, const char *sql, struct err *e);

/** sqlite_file_number() - the first number of the first row of @st; @dflt when there is none. */
int sqlite_file_number(
    struct sqlite_file *f, sqlite3_stmt *st, uint64_t dflt, uint64_t *ret, struct err *e);

/** sqlite_file_ask() - one number out of a pragma or an aggregate; 0 when there is none. */
int sqlite_file_ask(struct sqlite_file *f, const char *sql, uint64_t *ret, struct err *e);

/** sqlite_file_copy() - as store_copy(). */
int sqlite_file_copy(struct sqlite_file *f, const char *path, struct err *e);
