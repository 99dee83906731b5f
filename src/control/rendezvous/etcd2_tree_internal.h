/*
 * etcd2_tree_internal.h - nodes, as etcd2_*.c share them.
 */
#pragma once

#include "rendezvous/etcd2_json.h"
#include "rendezvous/rdzv_buf.h"
#include "rendezvous/etcd2_tree.h"

/** A file or a directory. */
struct etcd2_node {
    struct keyed keyed;        /* in its parent's children, by the whole path; "/" of the root */
    struct etcd2_node *parent; /* pins; NULL: the root */
    bool is_dir;
    struct keys children;   /* owns struct etcd2_node; of a directory */
    struct rdzv_buf *value; /* counted; of a file; NULL while empty */
    uint64_t created;       /* index of its creation */
    uint64_t modified;      /* index of its last change */
    struct heap_link ttl;   /* in the tree's; armed when it ends */
    uint32_t ttl_seconds;   /* as was asked for; valid while @ttl is armed */
    nsec_t ends_wall;       /* likewise: as shown */
    size_t saved;           /* length of its blob; 0: not saved */
};

static inline struct etcd2_node *etcd2_node_of(struct keyed *k)
{
    return container_of(k, struct etcd2_node, keyed);
}

/** etcd2_node_add() - a new node below @parent, unless the quota is used up: then NULL. */
struct etcd2_node *etcd2_node_add(
    struct etcd2_tree *t, struct etcd2_node *parent, const char *path, bool is_dir, uint64_t index);

/** etcd2_node_value() - of a file; borrowed until it changes. */
struct etcd2_text etcd2_node_value(const struct etcd2_node *n);

/** etcd2_value_new() - gives a copy for a node in @ret, NULL when empty. False: no room. */
bool etcd2_value_new(struct etcd2_tree *t, struct etcd2_text value, struct rdzv_buf **ret);

/** etcd2_node_set_value() - of a file; @value is taken. */
void etcd2_node_set_value(struct etcd2_node *n, struct rdzv_buf *value);

/** etcd2_node_set_ttl() - begin it anew, or end it. */
void etcd2_node_set_ttl(struct etcd2_tree *t, struct etcd2_node *n, bool has_ttl, uint32_t seconds,
    struct etcd2_when when);

/** etcd2_node_free() - a node without children leaves the tree and the disk. */
void etcd2_node_free(struct etcd2_tree *t, struct etcd2_node *n);

/** etcd2_node_save() - tell the saver how it is now; and the index. */
void etcd2_node_save(struct etcd2_tree *t, struct etcd2_node *n);
void etcd2_tree_save_index(struct etcd2_tree *t);

/** What an event shows of a node, as it was at some time. */
struct etcd2_shown {
    const char *path; /* borrowed */
    bool is_dir;
    bool has_nothing;       /* it is gone: neither value nor time to live is shown */
    struct rdzv_buf *value; /* counted */
    size_t value_len;       /* of it: it may have grown */
    bool has_ttl;
    nsec_t left;      /* of its time to live */
    nsec_t ends_wall; /* when it ends, as shown */
    uint64_t created;
    uint64_t modified;
};

/** etcd2_node_show() - as it is now; etcd2_shown_deinit() afterwards. */
struct etcd2_shown etcd2_node_show(const struct etcd2_node *n, struct etcd2_when when);
void etcd2_shown_deinit(struct etcd2_shown *s);

/** etcd2_shown_write() - without what is below it. */
void etcd2_shown_write(struct etcd2_json *j, const struct etcd2_shown *s);

/** etcd2_node_write() - a node as etcd shows it; @depth: levels of children. */
void etcd2_node_write(
    struct etcd2_json *j, const struct etcd2_node *n, unsigned depth, struct etcd2_when when);

/** etcd2_event_has_room() - for an event about a node at @path whose values have so many bytes in
 * all; history gives way to it. */
bool etcd2_event_has_room(struct etcd2_tree *t, const char *path, size_t values_len);

/**
 * etcd2_event_new() - that something has happened; there was room for it
 * @prev:	as it was; NULL: nothing was there
 *
 * Return: gives it; NULL: no memory.
 */
struct etcd2_event *etcd2_event_new(struct etcd2_tree *t, enum etcd2_action action, uint64_t index,
    const struct etcd2_shown *node, const struct etcd2_shown *prev);

/** etcd2_event_tell() - into the history, and to those who wait at its path or above. */
void etcd2_event_tell(struct etcd2_tree *t, struct etcd2_event *ev);

/** etcd2_event_tell_below() - to those who wait at a node below its path, which will go with it. */
void etcd2_event_tell_below(struct etcd2_tree *t, struct etcd2_event *ev);

/** etcd2_node_find() - NULL: it is not there. */
struct etcd2_node *etcd2_node_find(const struct etcd2_tree *t, const char *path);

/** etcd2_event_forget_history() - nothing from before the index is known any more. */
void etcd2_event_forget_history(struct etcd2_tree *t);
