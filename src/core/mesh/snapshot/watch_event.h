/*
 * watch_event.h - what the hub tells a node, one JSON object a line.
 *
 * The stream begins with a snapshot; deltas, heartbeats and perhaps one
 * "removed" follow (docs/API.md, "Members' API").
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mesh/object/object.h"
#include "mesh/snapshot/snapshot.h"

/** Longest line: a snapshot of SNAPSHOT_NODES_MAX nodes with labels. */
#define WATCH_EVENT_LINE_MAX   (64u << 20)
#define WATCH_EVENT_REASON_MAX 255

enum watch_event_kind {
    WATCH_EVENT_NONE,      /* of a type that this version does not know */
    WATCH_EVENT_SNAPSHOT,  /* all that the node may know, at one revision */
    WATCH_EVENT_PUT,       /* an object is new, or has changed */
    WATCH_EVENT_DELETE,    /* an object is gone, or is not in the node's view any more */
    WATCH_EVENT_HEARTBEAT, /* nothing has changed, and the hub is there */
    WATCH_EVENT_REMOVED,   /* the node itself is removed */
    WATCH_EVENT_N,
};

struct watch_event {
    enum watch_event_kind kind;
    uint64_t revision;           /* 0 in REMOVED, which is about no revision */
    uint64_t boot;               /* HEARTBEAT: the hub's run is this one now; 0: it is not said */
    uint32_t next_s;             /* HEARTBEAT: when the next one comes, in s; 0: it is not said */
    uint64_t store_behind_s;     /* HEARTBEAT: for so long the hub has not heard what changes in its
                                    store, in s; 0: it has */
    struct snapshot_skips skips; /* what was passed over in decoding and applying it */
    union {
        struct snapshot snapshot; /* SNAPSHOT */
        struct object object;     /* PUT; OBJECT_NULL when it was passed over */
        struct {
            const struct object_kind *kind;
            char name[OBJECT_NAME_MAX + 1];
        } deleted;                               /* DELETE */
        char reason[WATCH_EVENT_REASON_MAX + 1]; /* REMOVED: in words, for a person */
    };
};

#define WATCH_EVENT_NULL {0}

/** watch_event_deinit() - idempotent, safe on WATCH_EVENT_NULL. */
void watch_event_deinit(struct watch_event *ev);

/**
 * watch_event_decode() - take in one line
 * @ret:	untouched on failure, else to be released with watch_event_deinit()
 * @line:	@len bytes, without the newline
 *
 * An object that cannot be understood is passed over: the event has its revision,
 * and OBJECT_NULL. A "type" that this version does not know is no failure but an
 * event of kind NONE, so that a newer hub may say more.
 *
 * Return: 0; -EINVAL with words; -ENOMEM.
 */
int watch_event_decode(struct watch_event *ret, const char *line, size_t len, struct err *e);

/**
 * watch_event_apply() - bring a snapshot up to date
 * @ev:		what it holds is taken, also on failure; its skips stay, and may become more
 *
 * A snapshot replaces everything, so it may also lower the revision: the hub
 * was restored from an older copy.
 *
 * Return: 0; -EINVAL with words when the delta does not fit: it is older than
 * the snapshot, there is no snapshot yet, or it would delete the node itself or
 * the network; -ENOMEM. An object that snapshot_put() refuses is passed over.
 */
int watch_event_apply(struct snapshot *s, struct watch_event *ev, struct err *e);
