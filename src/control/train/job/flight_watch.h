/*
 * flight_watch.h - reads what PyTorch's flight recorder writes in the ranks of a command
 * (health/flight.h), and asks it to write when the job stands still.
 *
 * Theory of operation. The recorder of a rank writes to the file whose name begins as
 * TORCH_NCCL_DEBUG_INFO_TEMP_FILE says, or TORCH_FR_DUMP_TEMP_FILE, and ends with the rank: when an
 * operation times out, and when somebody writes to its pipe, TORCH_NCCL_DEBUG_INFO_PIPE_FILE with
 * the rank and ".pipe", which it looks at each second. `weft run` has both in the directory of the
 * run, unless the person has said where they are. A file is read anew when it has changed; one that
 * was read while it was being written is cut off, and changes again. Only files of this user count,
 * and only those that were written since the command began.
 *
 * Nothing here waits: a pipe that is full, or that nobody reads, is passed over.
 *
 * Threads: one at a time.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "health/flight.h"

/** Ranks of this node; more are passed over. */
#define FLIGHT_WATCH_RANKS_MAX 32

/** How the names of the files begin in the directory of the run. */
#define FLIGHT_WATCH_FILE "flight."

struct flight_watch_rank {
    uint32_t rank;
    bool has_pipe;
    bool has_record;           /* there is a file, whether or not it was read */
    int64_t changed_at;        /* of the file that was looked at last, ns since 1970; 0: none was */
    int64_t size;              /* of it, bytes */
    nsec_t written_at;         /* of the one that was read last; 0: none was */
    struct flight_record said; /* likewise */
};

struct flight_watch {
    char records[PATH_MAX]; /* how their names begin; "": they are not looked for */
    char pipes[PATH_MAX];   /* likewise; "": there are none */
    int64_t since;          /* records of before are not of this command; ns since 1970 */
    nsec_t asked_at;        /* 0: not yet */
    struct flight_watch_rank ranks[FLIGHT_WATCH_RANKS_MAX];
    unsigned n;
};

/** flight_watch_begin() - look from now on; @records and @pipes: how the names of the files begin,
 * "" or NULL: there are none. */
void flight_watch_begin(struct flight_watch *w, const char *records, const char *pipes);

/** flight_watch_look() - each second: read what is new, and ask if the job stands still. */
void flight_watch_look(struct flight_watch *w, bool is_still, nsec_t now);

/** flight_watch_add() - what was written since @since; untouched: there is no recorder. */
void flight_watch_add(
    struct flight_places *ret, const struct flight_watch *w, nsec_t since, nsec_t now);

/** flight_watch_has_records() - is there one now? */
bool flight_watch_has_records(struct flight_watch *w);
