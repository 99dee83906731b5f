/*
 * etcd2_event.h - the events of an etcd tree: their text, their history, and who waits for them.
 *
 * Theory of operation. The JSON of an event is written down when it happens, since it shows the
 * time to live of that moment. The event goes into the history, to those who wait, and to who
 * asked, who all share it; it counts in the quota until the last of them has let go. History gives
 * way when there is no room for what is new. It is not saved: after a restart a wait for an index
 * from before is answered as etcd answers one for an event that it has forgotten (401), and its
 * client looks again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "rendezvous/etcd2/etcd2_node.h"
#include "rendezvous/shared/rdzv_quota.h"

/** Events in the history; fewer when they are over so many bytes. */
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

/** Something that has happened. Counted. */
struct etcd2_event {
    unsigned refs;            /* who holds it */
    struct rdzv_quota *quota; /* pins */
    enum etcd2_action action;
    uint64_t index;   /* of the tree after it */
    bool is_created;  /* nothing was there before: HTTP says 201 */
    bool is_refresh;  /* only a time to live: nobody is woken */
    bool removes_dir; /* a directory went, with what was in it */
    char *path;       /* owns */
    char *json;       /* owns; the whole event, and the end of the line; no zero */
    size_t json_len;  /* bytes */
};

/** One who waits for the next event. */
struct etcd2_watcher {
    struct list link;    /* in etcd2_events.watchers */
    char *path;          /* owned by who waits; clean */
    bool is_recursive;   /* for what is below too */
    uint64_t from_index; /* no event before that index */
    /* Told once, and out of the list before; @ev is lent. */
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

/** etcd2_events_init() - nothing has happened. @quota: pinned. */
void etcd2_events_init(struct etcd2_events *evs, struct rdzv_quota *quota);

/** etcd2_events_forget() - nothing from before the index @start is known any more. */
void etcd2_events_forget(struct etcd2_events *evs, uint64_t start);

/**
 * etcd2_events_has_room() - is there room for an event?
 * @path:		of its node
 * @values_len:		bytes of the values that it shows
 *
 * History gives way to it.
 */
bool etcd2_events_has_room(struct etcd2_events *evs, const char *path, size_t values_len);

/**
 * etcd2_event_new() - something has happened; there was room for it
 * @node:	as it is now
 * @prev:	as it was; NULL: nothing was there
 *
 * Return: gives it; NULL: no memory.
 */
struct etcd2_event *etcd2_event_new(struct etcd2_events *evs, enum etcd2_action action,
    uint64_t index, const struct etcd2_shown *node, const struct etcd2_shown *prev);

/** etcd2_event_ref() - one more holds it; returns it. */
struct etcd2_event *etcd2_event_ref(struct etcd2_event *ev);

/** etcd2_event_unref() - one less holds it; NULL is fine. Always NULL. */
struct etcd2_event *etcd2_event_unref(struct etcd2_event *ev);

/** etcd2_events_tell() - into the history, and to those who wait at its path or above. */
void etcd2_events_tell(struct etcd2_events *evs, struct etcd2_event *ev);

/** etcd2_events_tell_below() - to those who wait at a node below its path, which goes with it. */
void etcd2_events_tell_below(
    struct etcd2_events *evs, const struct etcd2_nodes *nodes, struct etcd2_event *ev);

/**
 * etcd2_events_watch() - the first event since w->from_index
 * @w:		@path, @is_recursive, @from_index and @fire are set; waits, unless there is one
 * @ret:	the event, counted; NULL: @w waits
 *
 * Return: false when the history does not go back so far; then @w does not wait.
 */
bool etcd2_events_watch(
    struct etcd2_events *evs, struct etcd2_watcher *w, struct etcd2_event **ret);
