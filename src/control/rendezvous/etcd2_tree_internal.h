/*
 * etcd2_tree_internal.h - nodes, as etcd2_*.c share them.
 */
#pragma once

#include "rendezvous/etcd2_json.h"
#include "rendezvous/rdzv_buf.h"
#include "rendezvous/etcd2_tree.h"

/** A file or a directory. */
struct rdzv_node {
    struct keyed keyed;       /* in its parent's children, by the whole path; "/" of the root */
    struct rdzv_node *parent; /* pins; NULL: the root */
    bool is_dir;
    struct keys children;      /* owns struct rdzv_node; of a directory */
    struct rdzv_shared *value; /* counted; of a file; NULL while empty */
    uint64_t created;          /* index of its creation */
    uint64_t modified;         /* index of its last change */
    struct heap_link ttl;      /* in the tree's; armed when it ends */
    uint32_t ttl_seconds;      /* as was asked for; valid while @ttl is armed */
    nsec_t ends_wall;          /* likewise: as shown */
    size_t saved;              /* length of its blob; 0: not saved */
};

static inline struct rdzv_node *rdzv_node_of(struct keyed *k)
{
    return container_of(k, struct rdzv_node, keyed);
}

/** rdzv_tree__add() - a new node below @parent, unless the quota is used up: then NULL. */
struct rdzv_node *rdzv_tree__add(
    struct rdzv_tree *t, struct rdzv_node *parent, const char *path, bool is_dir, uint64_t index);

/** rdzv_tree__value() - of a file; borrowed until it changes. */
struct rdzv_text rdzv_tree__value(const struct rdzv_node *n);

/** rdzv_tree__new_value() - gives a copy for a node in @ret, NULL when empty. False: no room. */
bool rdzv_tree__new_value(struct rdzv_tree *t, struct rdzv_text value, struct rdzv_shared **ret);

/** rdzv_tree__set_value() - of a file; @value is taken. */
void rdzv_tree__set_value(struct rdzv_node *n, struct rdzv_shared *value);

/** rdzv_tree__set_ttl() - begin it anew, or end it. */
void rdzv_tree__set_ttl(struct rdzv_tree *t, struct rdzv_node *n, bool has_ttl, uint32_t seconds,
    struct rdzv_when when);

/** rdzv_tree__free() - a node without children leaves the tree and the disk. */
void rdzv_tree__free(struct rdzv_tree *t, struct rdzv_node *n);

/** rdzv_tree__save() - tell the saver how it is now; and the index. */
void rdzv_tree__save(struct rdzv_tree *t, struct rdzv_node *n);
void rdzv_tree__save_index(struct rdzv_tree *t);

/** What an event shows of a node, as it was at some time. */
struct rdzv_shown {
    const char *path; /* borrowed */
    bool is_dir;
    bool has_nothing;          /* it is gone: neither value nor time to live is shown */
    struct rdzv_shared *value; /* counted */
    size_t value_len;          /* of it: it may have grown */
    bool has_ttl;
    nsec_t left;      /* of its time to live */
    nsec_t ends_wall; /* when it ends, as shown */
    uint64_t created;
    uint64_t modified;
};

/** rdzv_tree__show() - as it is now; rdzv_tree__show_end() afterwards. */
struct rdzv_shown rdzv_tree__show(const struct rdzv_node *n, struct rdzv_when when);
void rdzv_tree__show_end(struct rdzv_shown *s);

/** rdzv_tree__write_shown() - without what is below it. */
void rdzv_tree__write_shown(struct rdzv_json *j, const struct rdzv_shown *s);

/** rdzv_tree__write() - a node as etcd shows it; @depth: levels of children. */
void rdzv_tree__write(
    struct rdzv_json *j, const struct rdzv_node *n, unsigned depth, struct rdzv_when when);

/** rdzv_tree__has_room() - for an event about a node at @path whose values have so many bytes in
 * all; history gives way to it. */
bool rdzv_tree__has_room(struct rdzv_tree *t, const char *path, size_t values_len);

/**
 * rdzv_tree__event_new() - that something has happened; there was room for it
 * @prev:	as it was; NULL: nothing was there
 *
 * Return: gives it; NULL: no memory.
 */
struct rdzv_event *rdzv_tree__event_new(struct rdzv_tree *t, enum rdzv_action action,
    uint64_t index, const struct rdzv_shown *node, const struct rdzv_shown *prev);

/** rdzv_tree__tell() - into the history, and to those who wait at its path or above. */
void rdzv_tree__tell(struct rdzv_tree *t, struct rdzv_event *ev);

/** rdzv_tree__tell_below() - to those who wait at a node below its path, which will go with it. */
void rdzv_tree__tell_below(struct rdzv_tree *t, struct rdzv_event *ev);

/** rdzv_tree__find() - NULL: it is not there. */
struct rdzv_node *rdzv_tree__find(const struct rdzv_tree *t, const char *path);

/** rdzv_tree__forget_history() - nothing from before the index is known any more. */
void rdzv_tree__forget_history(struct rdzv_tree *t);
