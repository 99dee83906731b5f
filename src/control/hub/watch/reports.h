/*
 * reports.h - what nodes report about themselves and their edges.
 *
 * Each node owns one record and writes only that: its own half of `status`,
 * and in each of its edges what stands under its field owners, "agent/NAME"
 * and "probe/NAME". reports_owns() is where that is enforced. Reports do not
 * wake anybody's watch but for the candidates and the ciphers' speeds, which
 * peers need.
 *
 * They come often and are repeated, so they are written together, every few
 * seconds and in one commit: what a crash of the hub can lose is a report that
 * its node makes again as soon as it is back. What is said about edges is in
 * memory, and as much of it in the record as has room there (docs/EDGES.md).
 *
 * What a report changes for the worse or the better is an event (edge_events.h).
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>

#include "base/clock.h"
#include "hub/model/model.h"
#include "hub/record/request.h"
#include "hub/watch/edge_events.h"

/** How long a report may stay in memory only. */
#define REPORTS_FLUSH (5 * NSEC_PER_SEC)

/** How often "last seen" alone is worth a write. */
#define REPORTS_SEEN_FLUSH_S 60

/** How many reports of one node are taken at once, and how often one more: five a second. */
#define REPORTS_BURST 30
#define REPORTS_EACH  (NSEC_PER_SEC / 5)

/** Most parts of edges that a hub keeps in memory, of all nodes together: some 100 MB. */
#define REPORTS_PARTS_MAX 1000000

struct reports {
    struct model *model; /* pins */
    struct edge_events events;
    size_t n_parts;          /* of edges, in memory; counted anew by each look */
    size_t n_parts_left_out; /* parts that had no room, since the start */
    int64_t started_at;      /* s since 1970; of the first look */
    nsec_t looked_at;        /* when the agents were last looked at */
    struct list unsaved;     /* of struct model_node */
    nsec_t flushed_at;       /* when that was last written */
    unsigned n_flushes;      /* commits on their way */
    struct err failure;      /* of one of them, until reports_tick() returns it */
};

/** reports_init() - nothing is unsaved. */
void reports_init(struct reports *s, struct model *model);

/** reports_admit() - may @node report now, by that limit? An agent keeps far below it. */
bool reports_admit(struct model_node *node, nsec_t now);

/**
 * reports_owns() - may @node write the part that @report is about?
 *
 * Its own two, and nobody else's. Return: false, and @e says whose it is.
 */
bool reports_owns(const struct model_node *node, const struct report *report, struct err *e);

/** What has come of a report. */
enum reports_result {
    REPORTS_TAKEN,
    REPORTS_NEWS,  /* taken, and what other nodes see of it has changed */
    REPORTS_AGAIN, /* of the edges nothing was taken: the writer has to begin anew */
};

/**
 * reports_take() - take in what @node reports
 * @report:	taken
 * @wall_s:	seconds since 1970
 */
enum reports_result reports_take(
    struct reports *s, struct model_node *node, struct report *report, int64_t wall_s);

/** reports_look() - each ten seconds: which agents are silent, or have never applied anything? */
void reports_look(struct reports *s, nsec_t now, int64_t wall_s);

/** reports_seen() - @node was heard. @wall_s: seconds since 1970. */
void reports_seen(struct reports *s, struct model_node *node, nsec_t now, int64_t wall_s);

/**
 * reports_tick() - have what is unsaved written, if it is time
 *
 * Return: 0 or negative errno with words, perhaps of what an earlier call has begun; what is left
 * then is tried again by the next call.
 */
int reports_tick(struct reports *s, nsec_t now, struct err *e);

/** reports_flush() - have all of it written, and wait for it: the hub ends. 0 or negative errno. */
int reports_flush(struct reports *s, nsec_t now, struct err *e);

/** reports_deinit() - forget the events; idempotent. */
void reports_deinit(struct reports *s);

/** reports_of_node() - a Node's `status`; a new reference, NULL: no memory. */
json_t *reports_of_node(const struct model_node *node);
