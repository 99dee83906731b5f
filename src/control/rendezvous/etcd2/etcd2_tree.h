/*
 * etcd2_tree.h - the tree of etcd's v2 keys: what each operation does. Sans-I/O.
 *
 * Behaves as etcd 3.4's v2 store, whose words and numbers it uses: an *index* that grows by one
 * with each change, files and directories that know the index of their creation and of their last
 * change, time to live, and a history of the last events, from which a wait for an index that has
 * passed is answered. What an HTTP request means is in etcd2_api.h.
 *
 * The tree owns its nodes (etcd2_node.h) and its events, and carries what happens
 * from the one to the other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/containers.h"
#include "rendezvous/etcd2/etcd2_node.h"
#include "rendezvous/shared/rdzv_quota.h"

/*
 * The events of an etcd tree: their text, their history, and who waits for them.
 *
 * Theory of operation. The JSON of an event is written down when it happens, since it shows the
 * time to live of that moment. The history, the watchers and the answer to the request all share
 * the event by reference; it counts in the quota until the last reference is dropped. When there is
 * no room for a new event, the oldest ones of the history are dropped. The history is not saved:
 * after a restart a wait for an index from before is answered as etcd answers one for an event that
 * it has dropped (401), and the client reads the key again.
 */

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
    struct list link;    /* in etcd2_events.watchers; who does not wait any more removes it there */
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

/** etcd2_event_ref() - add a reference. Returns @ev. */
struct etcd2_event *etcd2_event_ref(struct etcd2_event *ev);

/** etcd2_event_unref() - drop a reference; the last one frees it. */
struct etcd2_event *etcd2_event_unref(struct etcd2_event *ev);

/** Longest time to live, seconds. A longer one is shortened to it. */
#define ETCD2_TTL_MAX 315360000u

/* Outcomes. They are etcd's own error codes. */
#define ETCD2_E_NOT_FOUND     100
#define ETCD2_E_TEST_FAILED   101
#define ETCD2_E_NOT_FILE      102
#define ETCD2_E_NOT_DIR       104
#define ETCD2_E_EXISTS        105
#define ETCD2_E_ROOT          107
#define ETCD2_E_NOT_EMPTY     108
#define ETCD2_E_NO_PREV_VALUE 201
#define ETCD2_E_TTL           202
#define ETCD2_E_INDEX         203
#define ETCD2_E_FIELD         209
#define ETCD2_E_FORM          210
#define ETCD2_E_REFRESH_VALUE 211
#define ETCD2_E_REFRESH_TTL   212
#define ETCD2_E_INTERNAL      300
#define ETCD2_E_CLEARED       401

/** Why a request was refused, as etcd says it. */
struct etcd2_refusal {
    int code;                       /* ETCD2_E_... */
    char cause[ETCD2_PATH_MAX + 1]; /* "" for none; any bytes */
    size_t cause_len;               /* of them */
};

/**
 * etcd2_refusal_set() - refuse with @code
 * @fmt:	the cause, cut to the room for it; one %s, which is @name
 *
 * Return: @code.
 */
int etcd2_refusal_set(struct etcd2_refusal *why, int code, const char *fmt, const char *name);

/** What etcd counts since its start. Each success is followed by its failure. */
enum etcd2_count {
    ETCD2_COUNT_GET,
    ETCD2_COUNT_GET_FAIL,
    ETCD2_COUNT_SET,
    ETCD2_COUNT_SET_FAIL,
    ETCD2_COUNT_DELETE,
    ETCD2_COUNT_DELETE_FAIL,
    ETCD2_COUNT_UPDATE,
    ETCD2_COUNT_UPDATE_FAIL,
    ETCD2_COUNT_CREATE,
    ETCD2_COUNT_CREATE_FAIL,
    ETCD2_COUNT_SWAP,
    ETCD2_COUNT_SWAP_FAIL,
    ETCD2_COUNT_COMPARE_DELETE,
    ETCD2_COUNT_COMPARE_DELETE_FAIL,
    ETCD2_COUNT_EXPIRE,
    ETCD2_COUNT_N,
};

/** A tree. */
struct etcd2_tree {
    struct etcd2_nodes nodes;       /* what is in it */
    struct etcd2_events events;     /* what has happened, and who waits */
    uint64_t index;                 /* of the last change */
    uint64_t counts[ETCD2_COUNT_N]; /* counted by etcd2_api.c, but for nodes that expire */
};

/** etcd2_tree_init() - empty. @saver: copied; @quota: pinned. 0 or -ENOMEM. */
int etcd2_tree_init(struct etcd2_tree *t, const struct rdzv_saver *saver, struct rdzv_quota *quota);

/** etcd2_tree_deinit() - after all watchers. The saver is told as by etcd2_tree_clear(). */
void etcd2_tree_deinit(struct etcd2_tree *t);

/** etcd2_tree_clear() - forget all nodes, without events; the index stays. */
void etcd2_tree_clear(struct etcd2_tree *t);

/** etcd2_tree_load() - a blob as the saver got it, kept under the name of that @hash. 0; -EINVAL or
 * -ENOMEM with words. */
int etcd2_tree_load(struct etcd2_tree *t, const void *p, size_t len, const struct rdzv_hash *hash,
    struct etcd2_when when, struct err *e);

/*
 * The calls below take clean paths. They return 0 and give what they were asked for, or a code
 * with a refusal.
 */

/**
 * etcd2_tree_get() - {"action": "get", "node": ...} and the end of the line
 * @ret, @ret_len:	gives it, free(); no zero
 *
 * Its length is found first: what is over RDZV_ANSWER_MAX, or has no room in the quota, is refused
 * and never made. The caller counts it in the quota for as long as it has it.
 */
int etcd2_tree_get(struct etcd2_tree *t, const char *path, bool is_recursive,
    struct etcd2_when when, char **ret, size_t *ret_len, struct etcd2_refusal *why);

/** etcd2_tree_create() - make a node where there is none. */
int etcd2_tree_create(struct etcd2_tree *t, const char *path, const struct etcd2_change *change,
    struct etcd2_event **ret, struct etcd2_refusal *why);

/** etcd2_tree_create_in_order() - make a node below @path whose name is the next index. */
int etcd2_tree_create_in_order(struct etcd2_tree *t, const char *path,
    const struct etcd2_change *change, struct etcd2_event **ret, struct etcd2_refusal *why);

/** etcd2_tree_set() - make a node, or replace the file that is there. */
int etcd2_tree_set(struct etcd2_tree *t, const char *path, const struct etcd2_change *change,
    struct etcd2_event **ret, struct etcd2_refusal *why);

/** etcd2_tree_update() - change value and time to live of a node that is there. */
int etcd2_tree_update(struct etcd2_tree *t, const char *path, const struct etcd2_change *change,
    struct etcd2_event **ret, struct etcd2_refusal *why);

/** etcd2_tree_swap() - the same for a file, if it is as @change expects. */
int etcd2_tree_swap(struct etcd2_tree *t, const char *path, const struct etcd2_change *change,
    struct etcd2_event **ret, struct etcd2_refusal *why);

/** etcd2_tree_delete() - remove a file; with @is_dir also an empty directory; with @is_recursive
 * any. */
int etcd2_tree_delete(struct etcd2_tree *t, const char *path, const struct etcd2_change *change,
    struct etcd2_event **ret, struct etcd2_refusal *why);

/** etcd2_tree_compare_delete() - remove a file, if it is as @change expects. */
int etcd2_tree_compare_delete(struct etcd2_tree *t, const char *path,
    const struct etcd2_change *change, struct etcd2_event **ret, struct etcd2_refusal *why);

/**
 * etcd2_tree_watch() - the first event since an index, or wait for it
 * @w:		its @path, @is_recursive and @fire are set
 * @from_index:	0: only events from now on
 * @ret:	a reference to the event; NULL: there is none yet, and @w waits
 */
int etcd2_tree_watch(struct etcd2_tree *t, struct etcd2_watcher *w, uint64_t from_index,
    struct etcd2_event **ret, struct etcd2_refusal *why);

/** etcd2_tree_expire() - remove the nodes whose time to live is over. */
void etcd2_tree_expire(struct etcd2_tree *t, struct etcd2_when when);
