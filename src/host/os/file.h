/*
 * file.h - descriptors that are closed when a scope is left, and state files: whole or not at all.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/err.h"

/* Scope-bound destructors for descriptors and streams; see base/err.h. */

/** TAKE_FD() - the descriptor; the variable becomes -1 (ownership moves out). */
#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int take_fd_ = (fd);                                                                       \
        (fd) = -1;                                                                                 \
        take_fd_;                                                                                  \
    })

/** closep() - cleanup handler for a file descriptor, which becomes -1; -1 is fine. */
static inline void closep(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/** fclosep() - cleanup handler for a stdio stream; NULL is fine. */
static inline void fclosep(FILE **f)
{
    if (*f)
        (void)fclose(*f);
}

/** closedirp() - cleanup handler for a directory that is read; NULL is fine. */
void closedirp(DIR **d);

/** file_write_all() - write @len bytes to a descriptor that blocks. Return: 0 or negative errno. */
int file_write_all(int fd, const void *data, size_t len);

/** file_read_all() - read until @cap bytes are there or the end. Return: how many; negative errno.
 */
ssize_t file_read_all(int fd, void *buf, size_t cap);

/*
 * State files: whole or not at all.
 *
 * A file is replaced by writing a temporary one beside it, syncing that,
 * renaming it over the old one and syncing the directory; so a crash or a full
 * disk leaves the old file or the new one, and nothing in between.
 */

/** There is no such file. */
#define STATEFILE_E_ABSENT 1

/**
 * statefile_replace() - make @path hold exactly @data
 * @data:	@len bytes
 * @mode:	permissions of the new file; it has them before the first byte is in it
 *
 * Return: 0 when it is on the disk; or negative errno with a sentence that names
 * @path, and the old file is as it was.
 */
int statefile_replace(const char *path, const void *data, size_t len, mode_t mode, struct err *e);

/**
 * statefile_read() - all of a small file
 * @max:	most bytes it may have
 * @ret:	gives; zero-terminated; secret_wipe() it before free() when it holds a secret
 * @ret_len:	without the zero; NULL if not wanted
 *
 * Return: 0; STATEFILE_E_ABSENT; or negative errno with a sentence that names @path
 * (-EFBIG: longer than @max).
 */
int statefile_read(const char *path, size_t max, char **ret, size_t *ret_len, struct err *e);

/**
 * statefile_make_dir() - make a directory, and those above it, unless they exist
 * @mode:	permissions of the last one when it is made; the others get 0755
 *
 * Return: 0 or negative errno with a sentence that names @path.
 */
int statefile_make_dir(const char *path, mode_t mode, struct err *e);

/** dir_has_entries() - is @path a directory with anything in it, hidden files apart? */
bool dir_has_entries(const char *path);

/** statefile_sync_dir_of() - sync the directory that holds @path, so that a new name stays. */
int statefile_sync_dir_of(const char *path, struct err *e);

/**
 * statefile_lock() - be the only process that has @path locked
 * @ret_fd:	gives; the lock ends when it is closed, or with the process
 *
 * Return: 0; -EBUSY when another process holds it; or negative errno, all with words.
 */
int statefile_lock(const char *path, int *ret_fd, struct err *e);
