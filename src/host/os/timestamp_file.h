/*
 * timestamp_file.h - up to what time handshakes may have been dated, on disk.
 *
 * Theory of operation. WireGuard's peers refuse an initiation that is not newer than the last one,
 * and remember it for as long as they run. So a machine whose clock was ahead, was set right and
 * then started again would be refused until its clock has caught up. The file says a time that
 * nothing sent is later than. It is written before that time is used, some minutes ahead, so no
 * handshake costs a write; a run begins above what the file says, and an end in order leaves in it
 * what was really sent, so the next run begins there.
 *
 * What cannot be written keeps what is on disk true: initiations are dated no later than that, and
 * go on by steps of 17 ms, of which there are enough for days. A file that cannot be read, or is
 * damaged, is named and replaced. However far ahead its time is, it is kept to.
 *
 *     1790000300        s since 1970, in decimal
 *
 * Threads: one at a time.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/clock.h"
#include "noise/tai64n.h"
#include "os/log.h"

struct err;

/** How far ahead of what was sent the file is. A run that ends out of order may be followed by one
 * whose initiations are dated so much later than the clock says. */
#define TIMESTAMP_FILE_AHEAD (300 * NSEC_PER_SEC)

/** A clock that is so far behind what an earlier run has left was set back: less may be the room
 * that runs which ended out of order had left. */
#define TIMESTAMP_FILE_BACK (2 * TIMESTAMP_FILE_AHEAD)

struct timestamp_file {
    char path[PATH_MAX];         /* "": there is none */
    struct tai64n_bounds bounds; /* what initiations have to keep to now */
    nsec_t kept;                 /* that the file says; 0: not written yet */
    bool is_failing;             /* the last write failed, which was said */
    struct log_limit limit;
};

/**
 * timestamp_file_open() - read what an earlier run has left, and write what this one begins with
 * @path:	NULL: none, and nothing is bounded
 * @wall:	time since 1970
 *
 * Logs what cannot be read or written.
 */
void timestamp_file_open(struct timestamp_file *f, const char *path, nsec_t wall, nsec_t now);

/**
 * timestamp_file_keep() - have room for what is sent next
 * @sent:	the greatest time sent so far; 0: none was
 *
 * At least each minute. Writes when what was sent comes near to what the file says.
 *
 * Return: @f->bounds has changed.
 */
bool timestamp_file_keep(struct timestamp_file *f, nsec_t sent, nsec_t wall, nsec_t now);

/** timestamp_file_warn_back() - log that @wall was set back since an earlier run, if it was. */
void timestamp_file_warn_back(const struct timestamp_file *f, nsec_t wall);

/** timestamp_file_end() - nothing is sent any more, and @sent was the last. Idempotent. */
void timestamp_file_end(struct timestamp_file *f, nsec_t sent, nsec_t now);

/**
 * timestamp_file_read() - what the file at @path says
 * @ret:	ns since 1970
 *
 * Return: 0; STATEFILE_E_ABSENT; or negative errno with words that name it.
 */
int timestamp_file_read(nsec_t *ret, const char *path, struct err *e);
