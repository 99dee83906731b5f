/*
 * edge_events.h - the latest events of edges and of the agents that apply them.
 *
 * Each network has a ring buffer of its own in memory, which holds its last events, oldest first:
 * so nobody pushes out another network's. Each event has a number that only grows. The hub also
 * counts the events of each kind since it started. Events are for people. The state itself is in
 * the edges, so nothing else is lost when an event is pushed out of the ring or when the hub ends.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "health/pair.h"
#include "store/keys.h"

enum edge_event_kind {
    EDGE_EVENT_FAILING,       /* an agent cannot apply an edge, or anything */
    EDGE_EVENT_APPLIED,       /* it can again */
    EDGE_EVENT_NEVER_APPLIED, /* an agent has applied nothing since its node joined */
    EDGE_EVENT_SILENT,        /* an agent has stopped reporting */
    EDGE_EVENT_HEARD,         /* it reports again */
    EDGE_EVENT_FELL,          /* a direct path was lost */
    EDGE_EVENT_DIRECT_AGAIN,
    EDGE_EVENT_NO_PATH,   /* there is no way to the other end, not even through the hub */
    EDGE_EVENT_UNREACHED, /* a probe gets no answer through the tunnel */
    EDGE_EVENT_REACHED_AGAIN,
    EDGE_EVENT_BUDGET_NEAR,  /* four fifths of a budget of the day are spent */
    EDGE_EVENT_BUDGET_SPENT, /* all of it */
    EDGE_EVENT_BUDGET_AGAIN, /* there is some of it again */
    EDGE_EVENT_STORE_BEHIND, /* the hub does not know what has changed in its store */
    EDGE_EVENT_STORE_AGAIN,  /* it does again */
    EDGE_EVENT_COPIED,       /* another machine runs as the same node */
    EDGE_EVENT_COPIED_NO_MORE,
    EDGE_EVENT_ASKED_AWAY, /* a relay is full, and asks a pair to go another way */
    EDGE_EVENT_LET_BACK,   /* the pair may use it again */
    EDGE_EVENT_REFUSED,    /* packets that no rule allows were refused */
    EDGE_EVENT_FOUND, /* something is found of which there is no event of its own (finding.h) */
    EDGE_EVENT_GONE,  /* it is over */
    EDGE_EVENT_N,
};

/** Longest words of an event, with the zero. */
#define EDGE_EVENT_TEXT_MAX EDGE_WHY_MAX

/** How many events are kept of one network. */
#define EDGE_EVENTS_MAX 512

/** An event that has happened. All texts are borrowed. */
struct edge_event {
    enum edge_event_kind kind;
    int64_t at;          /* s since 1970 */
    const char *network; /* its name */
    const char *object;  /* the edge's name; the node's whose agent it is about; or that of the job
                            or network whose budget it is; or the hub's; or a finding's subject */
    const char *code;    /* of the finding, a constant; NULL: it is none */
    const char *text;    /* a clause */
};

struct edge_events {
    struct keys rings; /* of networks */
    uint64_t n;        /* events so far; also the number of the last one */
    uint64_t counts[EDGE_EVENT_N];
};

/** edge_events_deinit() - forget all. */
void edge_events_deinit(struct edge_events *s);

/** edge_events_add() - note that @ev has happened. Without memory it is only counted. */
void edge_events_add(struct edge_events *s, const struct edge_event *ev);

/** edge_events_forget() - a network is gone, and its events with it. */
void edge_events_forget(struct edge_events *s, const char *network);

/** edge_events_last() - the number of the network's last event; 0: there is none. */
uint64_t edge_events_last(const struct edge_events *s, const char *network);

/** "FellBack", "NeverApplied", ... as in JSON. */
extern const char *const edge_event_names[];

/** edge_events_encode() - a network's events, oldest first; a new reference, NULL: no memory. */
json_t *edge_events_encode(const struct edge_events *s, const char *network);
