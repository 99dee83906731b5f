/*
 * reports.h - what nodes report about themselves and their edges.
 *
 * Each node owns one record and writes only that: its own half of `status`,
 * and in each of its edges what stands under its field owners, "agent/NAME"
 * and "probe/NAME". reports_owns() enforces that. Other nodes' watches are told
 * of a report only when it changes something that peers need, such as the
 * candidates or the speeds of the ciphers.
 *
 * Reports come often and are repeated, so many are written together in one
 * commit every few seconds. If the hub crashes, the reports that it had not
 * written are lost, and their nodes make them again as soon as the hub is
 * back. The parts of edges are kept in memory, and the record holds as many of
 * them as it has room for (docs/EDGES.md).
 *
 * A change for the worse or the better becomes an event (edge_events.h), and what is found of it a
 * finding (health.h).
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>

#include "base/clock.h"
#include "hub/model/model.h"
#include "hub/record/request.h"
#include "hub/watch/access_view.h"
#include "hub/watch/edge_events.h"
#include "hub/watch/health.h"
#include "hub/watch/pair_history.h"
#include "hub/watch/relay_lines.h"

/** How long a report may stay in memory only. */
#define REPORTS_FLUSH (5 * NSEC_PER_SEC)

/** How often a record is written when only "last seen" has changed, seconds: so often, and a second
 * later for each REPORTS_SEEN_NODES of the network, which bounds what a large one has written. */
#define REPORTS_SEEN_FLUSH_S 60
#define REPORTS_SEEN_NODES   100

/** The rate limit for the reports of one node: a burst of so many, then five a second. */
#define REPORTS_BURST 30
#define REPORTS_EACH  (NSEC_PER_SEC / 5)

/** Most parts of edges that a hub keeps in memory, of all nodes together: about 100 MB. */
#define REPORTS_PARTS_MAX 1000000

struct reports {
    struct model *model; /* pins */
    struct edge_events events;
    struct access_view access;       /* what rules let in and refuse */
    struct health health;            /* what is found of it */
    struct pair_histories histories; /* how each pair has been */
    const struct relay_line *line;   /* pins: of this hub's relay; NULL: it has none */
    size_t n_parts;                  /* parts of edges in memory; each reports_look() counts anew */
    size_t n_parts_left_out;         /* parts that had no room, since the start */
    int64_t started_at;              /* time of the first reports_look(), s since 1970 */
    nsec_t clock_at;                 /* monotonic; a moment, 0: none yet, ... */
    int64_t clock_wall_s;            /* ... and what the clock said in it, s since 1970 */
    nsec_t looked_at;                /* when the parts were last counted */
    nsec_t present_at;               /* when all nodes were, by presence_tick() */
    struct list unsaved;             /* of struct reported_node: records still to be written */
    nsec_t flushed_at;               /* when unsaved records were last written */
    unsigned n_flushes;              /* commits of records that are not answered yet */
    bool is_behind;                  /* the store, as it was told last */
    bool is_refusing;                /* likewise */
    bool is_hub_found;               /* something is found of it, or of the relay's line */
    nsec_t unheard_at;               /* when it was last not heard; 0: never */
    struct err failure; /* the error of a failed commit, until reports_tick() returns it */
};

/** reports_init() - with nothing unsaved. @model: pinned. */
void reports_init(struct reports *s, struct model *model);

/** reports_deinit() - forget the events, and what was found. */
void reports_deinit(struct reports *s);

/**
 * reports_owns() - may @node write the part that @report is about?
 *
 * A node may write its own two parts only. Return: false, and @e says whose part it is.
 */
bool reports_owns(const struct model_node *node, const struct report *report, struct err *e);

/** What became of a report. */
enum reports_result {
    REPORTS_TAKEN,
    REPORTS_UPDATES, /* taken, and it changes what other nodes see of the node */
    REPORTS_AGAIN,   /* its parts of edges were not taken: the writer has to begin anew */
};

/**
 * reports_take() - take in what @node reports
 * @report:	taken
 * @wall_s:	seconds since 1970
 */
enum reports_result reports_take(
    struct reports *s, const struct model_node *node, struct report *report, int64_t wall_s);

/** reports_look() - each second: look at what is due, and each ten seconds at how many parts there
 * are. */
void reports_look(struct reports *s, nsec_t now, int64_t wall_s);

/** reports_seen() - @node was heard. @wall_s: seconds since 1970. */
void reports_seen(struct reports *s, const struct model_node *node, nsec_t now, int64_t wall_s);

/**
 * reports_enrolled() - @node has enrolled, which is no use that it makes of its membership
 * @is_new:	for the first time
 * @engine:	that it says it has
 * @routes:	that it asks for
 */
void reports_enrolled(struct reports *s, const struct model_node *node, bool is_new,
    const char *engine, const struct subnets *routes, nsec_t now, int64_t wall_s);

/**
 * reports_try_store() - have something written, if nothing is to be written already
 *
 * The next reports_tick() writes the record of one of this hub's own nodes as it is. So a store
 * that has refused a commit is asked again. (A shared store is asked by owners.h, all the time.)
 */
void reports_try_store(struct reports *s);

/**
 * reports_tick() - have what is unsaved written, if it is time
 *
 * Return: 0 or negative errno with words. The error may be that of a commit which an earlier call
 * began. The next call tries again to write what is left.
 */
int reports_tick(struct reports *s, nsec_t now, struct err *e);

/** reports_flush() - write all unsaved records and wait, when the hub ends. 0 or negative errno. */
int reports_flush(struct reports *s, nsec_t now, struct err *e);

/** reports_of_node() - a Node's `status`; a new reference, NULL: no memory. */
json_t *reports_of_node(const struct model_node *node);

/* ---- which nodes are present now ---------------------------------------------------------------
 */

/*
 * A node is present if its watch is open, if it has made a request recently, or if it has a
 * WireGuard session with the hub. A watch whose machine acknowledges nothing any more is none. The
 * hub knows nothing but the handshakes of a node without an agent. A node that is present is noted
 * as seen, and if it is ephemeral its lease begins anew. Its lease begins anew as well when another
 * hub of the same store has noted that it was seen.
 */

struct overlay_facts;

/** presence_tick() - call it each second; it checks all nodes every ten seconds. @wall_s: seconds
 * since 1970. */
void presence_tick(struct reports *s, nsec_t now, int64_t wall_s);

/** presence_has_session() - has the node of @facts a WireGuard session with the hub? */
bool presence_has_session(const struct overlay_facts *facts, nsec_t now);

/* ---- the hub does not hear what changes in its store, or the store takes nothing ------------- */

/*
 * Another hub may have changed what this hub still tells its nodes. The back end repairs that by
 * itself: it begins its watch again behind what came last, and reads all keys where that is gone.
 * Here people are told, by an event and a finding in each network, and in the log. Heartbeats say
 * it as well (watch/view.h), and so does "weft status" on each node.
 *
 * Of a store that refuses commits a finding says it, the log, GET /v1/health and the metrics.
 * Nothing may want to be written while it does, so something is then written each few seconds, to
 * see whether it is over.
 */

/** store_lag_tick() - each second. @wall_s: s since 1970. */
void store_lag_tick(struct reports *s, nsec_t now, int64_t wall_s);
