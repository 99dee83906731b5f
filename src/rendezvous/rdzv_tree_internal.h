/*
 * rdzv_tree_internal.h - nodes, as rdzv_tree*.c share them.
 */
#pragma once

#include "rendezvous/rdzv_tree.h"

/** A file or a directory. */
struct rdzv_node {
    struct keyed keyed;       /* in its parent's children, by the whole path; "/" of the root */
    struct rdzv_node *parent; /* pins; NULL: the root */
    bool is_dir;
    struct keys children; /* owns struct rdzv_node; of a directory */
    char *value;          /* owns; of a file */
    uint64_t created;     /* index of its creation */
    uint64_t modified;    /* index of its last change */
    struct heap_link ttl; /* in the tree's; armed when it ends */
    uint32_t ttl_seconds; /* as was asked for; valid while @ttl is armed */
    nsec_t ends_wall;     /* likewise: as shown */
    size_t saved;         /* length of its blob; 0: not saved */
};

static inline struct rdzv_node *rdzv_node_of(struct keyed *k)
{
    return container_of(k, struct rdzv_node, keyed);
}

/** rdzv_tree__add() - a new node below @parent, unless the quota is used up: then NULL. */
struct rdzv_node *rdzv_tree__add(
    struct rdzv_tree *t, struct rdzv_node *parent, const char *path, bool is_dir, uint64_t index);

/** rdzv_tree__set_value() - of a file; copied. 0 or -ENOMEM: no memory, or no room. */
int rdzv_tree__set_value(struct rdzv_tree *t, struct rdzv_node *n, const char *value);

/** rdzv_tree__drop_value() - it becomes a directory. */
void rdzv_tree__drop_value(struct rdzv_tree *t, struct rdzv_node *n);

/** rdzv_tree__set_ttl() - begin it anew, or end it. */
void rdzv_tree__set_ttl(struct rdzv_tree *t, struct rdzv_node *n, bool has_ttl, uint32_t seconds,
    struct rdzv_when when);

/** rdzv_tree__free() - a node without children leaves the tree and the disk. */
void rdzv_tree__free(struct rdzv_tree *t, struct rdzv_node *n);

/** rdzv_tree__save() - tell the saver how it is now; and the index. */
void rdzv_tree__save(struct rdzv_tree *t, struct rdzv_node *n);
void rdzv_tree__save_index(struct rdzv_tree *t);

/** rdzv_tree__json() - a node as etcd shows it; @depth: levels of children. NULL: no memory. */
json_t *rdzv_tree__json(const struct rdzv_node *n, unsigned depth, struct rdzv_when when);

/**
 * rdzv_tree__event() - that something has happened, and to whom it matters is told
 * @node, @prev:	as they are and were; taken; either may be NULL
 *
 * Return: gives it; NULL: no memory, and nobody was told.
 */
struct rdzv_event *rdzv_tree__event_new(
    enum rdzv_action action, const char *path, uint64_t index, json_t *node, json_t *prev);

/** rdzv_tree__tell() - into the history, and to those who wait at its path or above. */
void rdzv_tree__tell(struct rdzv_tree *t, struct rdzv_event *ev);

/** rdzv_tree__tell_below() - to those who wait at a path below, which goes with it. */
void rdzv_tree__tell_below(struct rdzv_tree *t, struct rdzv_event *ev, const char *path);

/** rdzv_tree__forget_history() - nothing from before the index is known any more. */
void rdzv_tree__forget_history(struct rdzv_tree *t);
