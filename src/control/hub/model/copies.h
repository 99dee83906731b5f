/*
 * copies.h - do several machines run as one node?
 *
 * Whoever copies a disk or an image copies the node that is on it, with its key. The hub then hears
 * one node whose reports are made by two agents in turn, and each takes the other's sessions away.
 *
 * Theory of operation. Each run of an agent has a random number, which all its reports have. A
 * restart, another line or a new container brings a new run, and never an old one back. So a run
 * that is heard again after another one has not ended; when that is true of two runs, two agents
 * live. Which of them is the copy is told by what each finds of the machine on which the node
 * joined: when all but one say that it is not theirs, that one is the original.
 *
 * A verdict holds until all but one of the runs that came back have been unheard for
 * COPIES_FORGET_S. No run that is new ends it earlier, so it changes twice in that time at most.
 *
 * Pure: facts in, a verdict out. Times are in seconds since 1970.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "hub/record/request.h"

/** Most runs that are remembered, at least 3. The one that was not heard for longest makes room, of
 * those that have not come back while there are such. */
#define COPIES_RUNS_MAX 4

/** How long a run may stay unheard, seconds; then it has ended. Agents report each minute. */
#define COPIES_FORGET_S 600

/** Room for a sentence. */
#define COPIES_TEXT_MAX 520

struct copies_run {
    uint64_t run;
    int64_t heard_at;
    bool came_back;                /* heard again after another one */
    struct report_machine machine; /* as its last report said */
    char at[ENDPOINT_TEXT_MAX];    /* an address of that machine; "": not said */
};

/** Starts as zeroes. */
struct copies {
    struct copies_run runs[COPIES_RUNS_MAX]; /* the one that was heard last first */
    unsigned n;
};

/** copies_hear() - @report came from the node's agent. */
void copies_hear(struct copies *c, const struct report *report, int64_t wall_s);

/** copies_forget() - forget the runs that have not been heard for COPIES_FORGET_S. */
void copies_forget(struct copies *c, int64_t wall_s);

/** copies_are_there() - do several agents run as this node? */
bool copies_are_there(const struct copies *c);

/** copies_answer() - what the agent of @run is told; a new reference; NULL: nothing. */
json_t *copies_answer(const struct copies *c, uint64_t run);

/** copies_explain() - for administrators: which machines, and what to do; "" if there are none. */
void copies_explain(const struct copies *c, char ret[static COPIES_TEXT_MAX]);

/** copies_encode() - the same as JSON, a new reference; NULL: there are none, or no memory. */
json_t *copies_encode(const struct copies *c, int64_t wall_s);
