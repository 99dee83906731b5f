/*
 * reported.h - what is known of a node by its reports, those that it makes to this hub and those
 * that are in the store, where another hub may have written them.
 *
 * It is made with a struct model_node, and gone with it. What the store says of it apply.c takes
 * in; what the node says, hub/watch/reports.h.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/containers.h"
#include "base/rate.h"
#include "health/finding.h"
#include "health/fitness.h"
#include "hub/model/copies.h"
#include "hub/record/record.h"

/** A node's edges in figures, as its agent and its probe say them. */
struct reported_counts {
    unsigned by_path[PATH_KIND_N]; /* reached by that path */
    unsigned alarms;               /* not direct, though they should be */
    unsigned fallen;               /* were direct, and are not any more */
    unsigned failing;              /* not applied */
    unsigned unreached;            /* whose other end does not answer the probe in the tunnel */
};

/** How the health check of a node is, as it has said last (health/fitness.h). */
struct reported_fitness {
    int64_t said_at;                 /* s since 1970 */
    uint32_t every;                  /* it says so again after so many s, while it fails */
    uint32_t n_failed;               /* checks in a row */
    bool is_noted;                   /* the audit log tells that it is not drained for it */
    char reason[FITNESS_REASON_MAX]; /* a clause; "": the last check has passed */
    char hook[FITNESS_REASON_MAX];   /* why its hook has failed; "": it has not */
};

/** What is known of a node by its reports, its own and those that are stored. */
struct reported_node {
    struct report_record heard;              /* its last reports; the node's edges, too */
    struct edge_sequence said[EDGE_OWNER_N]; /* which of them was the last */
    int64_t reported_at;           /* when its agent's last one came, s since 1970; 0: none did */
    int64_t heard_here_at;         /* when it last reported to this hub, and not to another one
                                      only; s since 1970; 0: not since the start */
    bool has_cpu;                  /* the next is said by that report */
    uint16_t cpu_percent;          /* of its machine's cores */
    int64_t stored_at;             /* last_seen_at of its record in the store; 0: it has none */
    uint64_t stored_revision;      /* of that record; 0: it has none */
    bool is_unwritten;             /* another hub writes its record; this one has more */
    struct reported_counts counts; /* of @heard */
    struct findings own;           /* what its agent finds, as of its last report: self_decode() */
    int64_t own_at;                /* when that was another than before, s since 1970 */
    bool has_new_own;              /* hub/watch/health.c has not looked at it yet */
    struct access_count *access;   /* owns; @n_access: what rules let in and refused there, as it
                                      said last */
    unsigned n_access;
    struct copies copies; /* does another machine run as this node as well? */
    bool had_copies;      /* the network's events tell that one does */
    int64_t there_at;     /* when its machine was known to be there, s since 1970; 0: never yet */
    int64_t unapplied_at; /* since when its agent is heard and has applied nothing; 0: it has */
    int64_t probe_at;     /* when its probe's last report came, s since 1970; 0: none did */
    uint32_t probe_every; /* its probe reports at least each so many s; 0: it does not say */
    int64_t settles_at;   /* what is said of its pairs may be old up to then, s since 1970 */
    uint16_t conditions;  /* hub/watch/health.c's: as it was when it was looked at last */
    nsec_t lost_at;       /* likewise: as watched_node's when the next was read; 0: never yet */
    uint64_t lost_rx;     /* likewise: bytes received from it until then */
    nsec_t sent_at;       /* likewise: when more had come for the first time; 0: none has */
    bool is_found;        /* likewise: something was found of it */
    bool is_down;         /* likewise: its machine is down */
    bool is_probe_silent; /* likewise: what its probe said is not counted */
    bool was_silent;      /* the network's events tell that its agent is silent */
    bool was_unapplied;   /* likewise, that it has never applied anything */
    nsec_t seen_at;       /* when it last spoke to us, monotonic; 0: not since the start */
    nsec_t only_enrolled_at; /* when it enrolled here, monotonic; 0: it was heard since, or it is
                                not known when */
    struct rate asked;       /* how often it reports */
    struct reported_fitness *fitness; /* owns; drain.c's; NULL: no check has failed here */
    bool is_unsaved;                  /* @heard differs from the store */
    struct list unsaved;              /* in reports.c's list */
    const struct model_node *node;    /* pins: whose they are */
};

/** reported_count_edges() - set @counts, after its edges have changed. */
void reported_count_edges(struct reported_node *r);
