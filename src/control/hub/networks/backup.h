/*
 * backup.h - a copy of all that a hub keeps: its database, its keys, its certificate, its token.
 *
 * A running hub makes the copy itself, so nobody has to stop it: first the database, as it is at
 * one moment, then the keys, of which none that this database needs goes meanwhile (see
 * networks_hold_keys()). It lies in STATE/backup, for `weft hub backup` to take away. Restoring is
 * done while no hub runs on the state.
 *
 * Threads: backup_make() the hub's loop only; the others any.
 */
#pragma once

#include <stddef.h>

struct disk_works;
struct err;
struct store;
struct str;

/** The outcome. @r: 0: the copy is at @path; STORE_E_NO_FILES or negative errno: there is none. */
typedef void (*backup_done_fn)(void *ctx, int r, const char *path, const struct err *e);

/**
 * backup_make() - copy @state_dir and the store into @state_dir/backup, in place of what is there
 * @works:	pinned until @done is called
 * @done:	called later, once
 *
 * One at a time.
 *
 * Return: 0: begun; or negative errno with words, and @done is not called.
 */
int backup_make(struct store *store, struct disk_works *works, const char *state_dir,
    backup_done_fn done, void *ctx, struct err *e);

/**
 * backup_copy() - the copy in @from into @to, a new directory
 *
 * Return: 0, or negative errno with words (-EEXIST: there is something at @to), and @to is gone.
 */
int backup_copy(const char *from, const char *to, struct err *e);

/**
 * backup_keep_options() - write down with what options the hub of @state_dir was started
 *
 * The file is a part of each copy, for whoever starts a hub on it. Return: 0 or negative errno with
 * words.
 */
int backup_keep_options(const char *state_dir, const char *const *options, size_t n, struct err *e);

/**
 * backup_read_options() - append to @ret with what options the hub of @state_dir was started,
 * quoted for a shell, each with a space before it; nothing where that is not known
 */
void backup_read_options(const char *state_dir, struct str *ret);

/** backup_remove() - remove a copy; files in its folder that are no part of a copy stay. */
void backup_remove(const char *dir);

/**
 * backup_restore() - put a copy in the place of @state_dir, on which no hub runs
 * @ret_former:	where what was there is now; "": there was nothing
 * @ret_keyless:	gets the names, with commas, of networks whose key is not in the copy, or is
 *		none: a hub sets such a network aside. A copy that was carried without its folder
 *		lacks all
 *
 * All of it, or nothing: the copy is made and checked beside its place first.
 *
 * Return: 0, or negative errno with words (-EBUSY: a hub runs), and all is as it was.
 */
int backup_restore(const char *from, const char *state_dir, char ret_former[static 512],
    struct str *ret_keyless, struct err *e);
