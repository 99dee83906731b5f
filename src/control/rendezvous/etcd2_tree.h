/*
 * etcd2_tree.h - the tree of etcd's v2 keys: nodes, changes, events and who waits. Sans-I/O.
 *
 * Behaves as etcd 3.4's v2 store, whose words and numbers it uses: an *index* that grows by one
 * with each change, files and directories that know the index of their creation and of their last
 * change, time to live, and a history of the last events, from which a wait for an index that has
 * passed is answered. What an HTTP request means is in etcd2_api.h.
 *
 * Theory of operation. A change makes an *event*, whose JSON is written down at once, since it
 * shows the time to live of that moment. It goes into the history, to those who wait, and to who
 * asked, who all share it; it counts in the quota until the last of them has let go. History gives
 * way when there is no room for what is new. A node is told to the saver, as a blob, whenever it
 * changes; the history is not saved: after a restart a wait for an index from before is answered as
 * etcd answers one for an event that it has forgotten (401), and its client looks again.
 *
 * Time is an argument, twice: monotonic, which ends what has a time to live, and the wall's, which
 * is shown. A restart begins every time to live anew.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/list.h"
#include "rendezvous/rdzv_quota.h"
#include "store/keys.h"

struct err;

/** Events in the history; fewer when they are over so many bytes. */
#define ETCD2_EVENTS_MAX      1000
#define ETCD2_EVENT_BYTES_MAX (4u << 20)

/** Longest path, parts of it, longest value; bytes. */
#define ETCD2_PATH_MAX  2048
#define ETCD2_DEPTH_MAX 64
#define ETCD2_VALUE_MAX (256u << 10)

/** Longest time to live; more is as much. Seconds. */
#define ETCD2_TTL_MAX 315360000u

/* Outcomes: the codes of etcd. */
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

/** A value: any bytes. Borrowed. */
struct etcd2_text {
    const char *p;
    size_t len;
};

/** Something that has happened. Counted. */
struct etcd2_event {
    unsigned refs;
    struct rdzv_quota *quota; /* pins */
    enum etcd2_action action;
    uint64_t index;   /* after it */
    bool is_created;  /* nothing was there before: HTTP says 201 */
    bool is_refresh;  /* only a time to live: nobody is woken */
    bool removes_dir; /* a directory went, with what was in it */
    char *path;       /* owns */
    char *json;       /* owns; the whole event, and the end of the line; no zero */
    size_t json_len;  /* bytes */
};

/** Why something was refused; as etcd says it. */
struct etcd2_refusal {
    int code;                       /* ETCD2_E_... */
    char cause[ETCD2_PATH_MAX + 1]; /* "" for none; any bytes */
    size_t cause_len;               /* of them */
};

/** One who waits for the next event. */
struct etcd2_watcher {
    struct list link;  /* in the tree's */
    char *path;        /* owns */
    bool is_recursive; /* for what is below too */
    uint64_t since;    /* no event before that index */
    /* Told once, and out of the list before; @ev is lent. */
    void (*fire)(struct etcd2_watcher *w, struct etcd2_event *ev);
};

/** What has to be saved; as in tcpstore_server.h. */
struct etcd2_tree_saver {
    void *ctx; /* pinned: handed to the calls */
    void (*put)(
        void *ctx, const void *name, size_t name_len, const void *p, size_t len, size_t before);
    void (*drop)(void *ctx, const void *name, size_t name_len, size_t before);
};

/** What was done since the start, as etcd counts it; a failure stands behind its success. */
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

struct etcd2_node;

struct etcd2_tree {
    struct etcd2_tree_saver saver;                 /* see there */
    struct rdzv_quota *quota;                      /* pins */
    struct etcd2_node *root;                       /* owns */
    uint64_t index;                                /* of the last change */
    struct heap ttls;                              /* of the nodes that end */
    struct list watchers;                          /* of struct etcd2_watcher */
    struct etcd2_event *history[ETCD2_EVENTS_MAX]; /* a ring; counted */
    size_t n_history;                              /* events in it */
    size_t first;                                  /* the oldest one's place */
    size_t history_bytes;                          /* of their texts */
    uint64_t history_start;                        /* index of the oldest; before it: cleared */
    uint64_t counts[ETCD2_COUNT_N];                /* etcd2_api.c counts; expiries here */
};

/** What a change says beside path and value. */
struct etcd2_change {
    bool is_dir;
    bool has_ttl;
    bool is_refresh;      /* the value stays, nobody is woken */
    uint32_t ttl_seconds; /* with @has_ttl */
    bool has_prev_value;  /* @prev_value is said */
    struct etcd2_text prev_value;
    uint64_t prev_index; /* 0: no matter */
};

/** When something happens. */
struct etcd2_when {
    nsec_t now;  /* monotonic */
    nsec_t wall; /* since 1970 */
};

/** etcd2_tree_init() - empty. 0 or -ENOMEM. @saver is copied. */
int etcd2_tree_init(
    struct etcd2_tree *t, const struct etcd2_tree_saver *saver, struct rdzv_quota *quota);

/** etcd2_tree_deinit() - after all watchers. Nothing is told to the saver. Idempotent. */
void etcd2_tree_deinit(struct etcd2_tree *t);

/** etcd2_tree_clear() - forget all nodes, without events; the index stays. */
void etcd2_tree_clear(struct etcd2_tree *t);

/** etcd2_tree_forget_index() - off the disk with it: the tree, which is empty, is given up. */
void etcd2_tree_forget_index(struct etcd2_tree *t);

/** etcd2_tree_load() - a blob as the saver got it. 0, -EINVAL with words, or -ENOMEM. */
int etcd2_tree_load(
    struct etcd2_tree *t, const void *p, size_t len, struct etcd2_when when, struct err *e);

/** etcd2_tree_name() - as tcpstore_server_name() (tcpstore_server.h), of a node's blob, or the
 * index's. */
int etcd2_tree_name(const void *p, size_t len, const uint8_t **ret, size_t *ret_len, struct err *e);

/** etcd2_text_of() - a text that ends with a zero, as a value. */
static inline struct etcd2_text etcd2_text_of(const char *text)
{
    return (struct etcd2_text){.p = text, .len = strlen(text)};
}

/** Room for a time as text. */
#define ETCD2_TIME_MAX 48

/** etcd2_time_format() - as Go prints a time: RFC 3339, in UTC; @wall: since 1970. */
void etcd2_time_format(nsec_t wall, char buf[static ETCD2_TIME_MAX]);

/** etcd2_event_ref() - one more holds it; returns it. */
struct etcd2_event *etcd2_event_ref(struct etcd2_event *ev);

/** etcd2_event_unref() - one less; NULL is fine. Always NULL. */
struct etcd2_event *etcd2_event_unref(struct etcd2_event *ev);

/**
 * etcd2_tree_clean() - a path as it is kept: a slash in front of each part, no ".", ".." or ""
 * @ret:	room for ETCD2_PATH_MAX + 1
 *
 * Return: false when it is too long or too deep.
 */
bool etcd2_tree_clean(const char *path, char *ret);

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

/** etcd2_tree_create() - a node where none is. */
int etcd2_tree_create(struct etcd2_tree *t, const char *path, struct etcd2_text value,
    const struct etcd2_change *change, struct etcd2_when when, struct etcd2_event **ret,
    struct etcd2_refusal *why);

/** etcd2_tree_create_in_order() - one below @path, called after the index. */
int etcd2_tree_create_in_order(struct etcd2_tree *t, const char *path, struct etcd2_text value,
    const struct etcd2_change *change, struct etcd2_when when, struct etcd2_event **ret,
    struct etcd2_refusal *why);

/** etcd2_tree_set() - a node, in place of a file that may be there. */
int etcd2_tree_set(struct etcd2_tree *t, const char *path, struct etcd2_text value,
    const struct etcd2_change *change, struct etcd2_when when, struct etcd2_event **ret,
    struct etcd2_refusal *why);

/** etcd2_tree_update() - value and time to live of what is there. */
int etcd2_tree_update(struct etcd2_tree *t, const char *path, struct etcd2_text value,
    const struct etcd2_change *change, struct etcd2_when when, struct etcd2_event **ret,
    struct etcd2_refusal *why);

/** etcd2_tree_swap() - the same of a file, if it is as expected. */
int etcd2_tree_swap(struct etcd2_tree *t, const char *path, struct etcd2_text value,
    const struct etcd2_change *change, struct etcd2_when when, struct etcd2_event **ret,
    struct etcd2_refusal *why);

/** etcd2_tree_delete() - a file; with @is_dir an empty directory; with @is_recursive any. */
int etcd2_tree_delete(struct etcd2_tree *t, const char *path, bool is_dir, bool is_recursive,
    struct etcd2_when when, struct etcd2_event **ret, struct etcd2_refusal *why);

/** etcd2_tree_compare_delete() - a file, if it is as expected. */
int etcd2_tree_compare_delete(struct etcd2_tree *t, const char *path,
    const struct etcd2_change *change, struct etcd2_when when, struct etcd2_event **ret,
    struct etcd2_refusal *why);

/**
 * etcd2_tree_watch() - the first event since an index, or the next one
 * @w:		its path, @is_recursive and @fire are set; waits, unless there is an event already
 * @since:	0: the next
 * @ret:	the event, counted; NULL: @w waits
 */
int etcd2_tree_watch(struct etcd2_tree *t, struct etcd2_watcher *w, uint64_t since,
    struct etcd2_event **ret, struct etcd2_refusal *why);

/** etcd2_tree_unwatch() - it waits no more. Idempotent on one whose link was initialised. */
void etcd2_tree_unwatch(struct etcd2_watcher *w);

/** etcd2_tree_due() - when the next node ends; NSEC_NEVER if none does. */
nsec_t etcd2_tree_due(const struct etcd2_tree *t);

/** etcd2_tree_expire() - end those whose time has come. */
void etcd2_tree_expire(struct etcd2_tree *t, struct etcd2_when when);
