/*
 * etcd2_event.h - the events of an etcd tree: their text, their history, and who waits for them.
 *
 * Theory of operation. The JSON of an event is written down when it happens, since it shows the
 * time to live of that moment. The history, the watchers and the answer to the request all share
 * the event by reference; it counts in the quota until the last reference is dropped. When there is
 * no room for a new event, the oldest ones of the history are dropped. The history is not saved:
 * after a restart a wait for an index from before is answered as etcd answers one for an event that
 * it has dropped (401), and the client reads the key again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "rendezvous/etcd2/etcd2_node.h"
#include "rendezvous/shared/rdzv_quota.h"

/** Most events in the history, and most bytes of their texts. */
#define ETCD2_EVENTS_MAX      1000
#define ETCD2_EVENT_BYTES_MAX (4u << 20)

/** What an event tells. */
enum etcd2_action {
    ETCD2_ACTION_CREATE,
    ETCD2_ACTION_SET,
    ETCD2_ACTION_UPDATE,
    ETCD2_ACTION_COMPARE_AND_SWAP,
    ETCD2_ACTION_DELETE,
    ETCD2_ACTION_COMPARE_AND_DELETE,
    ETCD2_ACTION_EXPIRE,
    ETCD2_ACTION_N,
};

/** A change of a tree. Counted by reference. */
struct etcd2_event {
    unsigned refs;            /* references to it */
    struct rdzv_quota *quota; /* pins */
    enum etcd2_action action;
    uint64_t index;   /* of the tree after it */
    bool is_created;  /* nothing was there before: HTTP says 201 */
    bool is_refresh;  /* only a time to live was set: watchers are not told */
    bool removes_dir; /* a directory was removed with all below it */
    char *path;       /* owns */
    char *json;       /* owns; the whole event, and the end of the line; no zero */
    size_t json_len;  /* bytes */
};

/** A request that waits for the next event. */
struct etcd2_watcher {
    struct list link;    /* in etcd2_events.watchers */
    char *path;          /* owned by the request; clean */
    bool is_recursive;   /* it waits for what is below the path as well */
    uint64_t from_index; /* events before that index are not for it */
    /* Called once, with an event that is borrowed; @w is out of the list by then. */
    void (*fire)(struct etcd2_watcher *w, struct etcd2_event *ev);
};

/** The events of a tree. */
struct etcd2_events {
    struct rdzv_quota *quota;                      /* pins */
    struct list watchers;                          /* of struct etcd2_watcher */
    struct etcd2_event *history[ETCD2_EVENTS_MAX]; /* a ring; counted */
    size_t n_history;                              /* events in it */
    size_t first;                                  /* the oldest one's place */
    size_t history_bytes;                          /* of their texts */
    uint64_t history_start;                        /* nothing is known before this index */
};

/** etcd2_events_init() - no events, no watchers. @quota: pinned. */
void etcd2_events_init(struct etcd2_events *evs, struct rdzv_quota *quota);

/** etcd2_events_forget() - drop the history; from now on it begins at the index @start. */
void etcd2_events_forget(struct etcd2_events *evs, uint64_t start);

/**
 * etcd2_events_has_room() - is there room for an event?
 * @path:		of its node
 * @values_len:		bytes of the values that it shows
 *
 * Drops the oldest events of the history if that makes room.
 */
bool etcd2_events_has_room(struct etcd2_events *evs, const char *path, size_t values_len);

/**
 * etcd2_event_new() - an event for a change; etcd2_events_has_room() was true
 * @node:	as it is now
 * @prev:	as it was; NULL: nothing was there
 *
 * Return: gives it; NULL: no memory.
 */
struct etcd2_event *etcd2_event_new(struct etcd2_events *evs, enum etcd2_action action,
    uint64_t index, const struct etcd2_shown *node, const struct etcd2_shown *prev);

/** etcd2_event_ref() - add a reference. Returns @ev. */
struct etcd2_event *etcd2_event_ref(struct etcd2_event *ev);

/** etcd2_event_unref() - drop a reference; the last one frees it. NULL is fine. Always NULL. */
struct etcd2_event *etcd2_event_unref(struct etcd2_event *ev);

/** etcd2_events_tell() - add it to the history, and tell the watchers of its path and those above.
 */
void etcd2_events_tell(struct etcd2_events *evs, struct etcd2_event *ev);

/** etcd2_events_tell_below() - tell the watchers of nodes below its path, which is being removed.
 */
void etcd2_events_tell_below(
    struct etcd2_events *evs, const struct etcd2_nodes *nodes, struct etcd2_event *ev);

/**
 * etcd2_events_watch() - the first event since w->from_index, or wait for it
 * @w:		its @path, @is_recursive, @from_index and @fire are set
 * @ret:	a reference to the event; NULL: there is none yet, and @w waits
 *
 * Return: false when the history does not go back so far; then @w does not wait.
 */
bool etcd2_events_watch(
    struct etcd2_events *evs, struct etcd2_watcher *w, struct etcd2_event **ret);
