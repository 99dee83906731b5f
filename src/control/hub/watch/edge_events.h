/*
 * edge_events.h - what has happened to edges and to the agents that apply them, of late.
 *
 * A ring in memory: the last ones of all networks, oldest first, each with a number that only
 * grows. Events of one kind are counted for ever. They are for people; the state is in the edges
 * themselves, so that an event that was pushed out, or lost with the hub, loses nothing else.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"
#include "mesh/object/edge_status.h"
#include "mesh/object/object_meta.h"

enum edge_event_kind {
    EDGE_EVENT_FAILING,       /* an agent cannot apply an edge, or anything */
    EDGE_EVENT_APPLIED,       /* it can again */
    EDGE_EVENT_NEVER_APPLIED, /* an agent has applied nothing since its node joined */
    EDGE_EVENT_SILENT,        /* an agent has stopped to report */
    EDGE_EVENT_HEARD,         /* it reports again */
    EDGE_EVENT_FELL,          /* a direct path was lost */
    EDGE_EVENT_DIRECT_AGAIN,
    EDGE_EVENT_NO_PATH,   /* there is no way to the other end, not even through the hub */
    EDGE_EVENT_UNREACHED, /* a probe gets no answer through the tunnel */
    EDGE_EVENT_REACHED_AGAIN,
    EDGE_EVENT_N,
};

/** Longest words of an event, with the zero. */
#define EDGE_EVENT_TEXT_MAX EDGE_WHY_MAX

/** How many are kept. */
#define EDGE_EVENTS_MAX 1024

/** An event that has happened. All texts are borrowed. */
struct edge_event {
    enum edge_event_kind kind;
    int64_t at;          /* s since 1970 */
    const char *network; /* its name */
    const char *object;  /* the edge's name, or the node's whose agent it is about */
    const char *text;    /* a clause */
};

struct edge_event_kept {
    uint64_t number; /* from 1 on; 0: none is here */
    int64_t at;
    enum edge_event_kind kind;
    char network[NAME_MAX_LEN + 1];
    char object[OBJECT_NAME_MAX + 1];
    char text[EDGE_EVENT_TEXT_MAX];
};

struct edge_events {
    struct edge_event_kept *kept; /* owns; EDGE_EVENTS_MAX; NULL: none yet */
    uint64_t n;                   /* that have happened; the last one's number */
    uint64_t counts[EDGE_EVENT_N];
};

/** edge_events_deinit() - forget all; idempotent. */
void edge_events_deinit(struct edge_events *s);

/** edge_events_add() - it has happened. Without memory it is counted only. */
void edge_events_add(struct edge_events *s, const struct edge_event *ev);

/** edge_event_kind_name() - "FellBack", "NeverApplied", ... as in JSON. */
const char *edge_event_kind_name(enum edge_event_kind k);

/** edge_events_encode() - those of a network, oldest first; a new reference, NULL: no memory. */
json_t *edge_events_encode(const struct edge_events *s, const char *network);
