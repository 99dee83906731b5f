/*
 * node_clock.h - is this machine's clock right, and does it lock the node out?
 *
 * Two different things. A clock that differs from the hub's disturbs jobs and whoever compares
 * logs, and no handshake. A clock that was set back does: WireGuard's peers take no initiation that
 * is dated before one that they have seen. The userspace engine dates its own after those all the
 * same (os/timestamp_file.h). The kernel's cannot, so here it is kept what its clock has said, and
 * people are told what is the matter instead of being sent to look at their firewalls.
 *
 * Pure but for the file: times in, sentences out.
 *
 * Threads: the loop's.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "os/timestamp_file.h"

/** A clock that differs from the hub's by more than this is named. */
#define NODE_CLOCK_OFF_S 10

#define NODE_CLOCK_TEXT_MAX 240

struct node_clock {
    char path[PATH_MAX];           /* of the file; "": nothing is kept */
    struct timestamp_file file;    /* beside the kernel's engine */
    nsec_t before;                 /* the latest that the clock is known to have said; 0: nothing */
    char off[NODE_CLOCK_TEXT_MAX]; /* how it differs from the hub's, a sentence; "": little */
    char lockout[NODE_CLOCK_TEXT_MAX]; /* why handshakes are refused, a clause; "": they are not */
};

/** node_clock_init() - @state_dir has the file of an earlier run. */
void node_clock_init(struct node_clock *nc, const char *state_dir);

/** node_clock_end() - no handshake is made any more at @wall. Idempotent. */
void node_clock_end(struct node_clock *nc, nsec_t wall, nsec_t now);

/**
 * node_clock_look() - each poll: has the clock been set back?
 * @is_kernel:	the engine is the kernel's
 *
 * Logs news.
 */
void node_clock_look(struct node_clock *nc, bool is_kernel, nsec_t wall, nsec_t now);

/** node_clock_compare() - the hub has said its time, and this clock is @ahead_s ahead of it. Logs
 * news. */
void node_clock_compare(struct node_clock *nc, int64_t ahead_s);

/** node_clock_why() - what is wrong with the clock, for people; "": nothing that is known. */
const char *node_clock_why(const struct node_clock *nc);
