/*
 * watched.h - what watches have to know of a network and of a node, beside what is stored: what has
 * changed, in order, and the texts that they are told.
 *
 * It is made with a struct model_network and a struct model_node, and gone with them; its members
 * are hub/watch's.
 *
 * Theory of operation. All objects of a network are in one list, in the order of their last
 * changes. An object that changes again goes to its end, so readers meet it once, as it is now,
 * and however often things change the list has no more entries. Of an object that is gone an entry
 * of its own is left; there are at most WATCHED_GONE_MAX of these, and the oldest is forgotten for
 * a new one. Each change has a serial number that counts up. A reader is a number, the serial of
 * the last change that it has read: the list knows nothing of its readers, and none of them can
 * hold up another one. One whose cursor is before what was forgotten needs everything.
 *
 * Readers begin at the end of the list and go back to their cursor, so one that is far behind pays
 * for it with each block that it reads: some 65,536 steps at most.
 *
 * A snapshot names all nodes of a network, and thousands of nodes get one. If it were one text,
 * then each change of a node would need that text anew, and each snapshot that is still being sent
 * would keep its own copy. So the nodes are in blocks, each with a text of its own: a change costs
 * the text of one block, and all snapshots share those of the others.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/containers.h"
#include "base/rate.h"

/** Most objects of a network that are gone, and that watches can still be told of: 6 MiB. */
#define WATCHED_GONE_MAX 65536

/** Serials at which every read ends: those who read the same entries begin at the same ones. */
#define WATCHED_READ_MAX 256

/** Most nodes of a block: enough to pack them well (stream.h), and to make its text in 0.2 ms. */
#define WATCHED_BLOCK_NODES 64

/** Texts of changes that are kept for the next reader. */
#define WATCHED_TEXTS 8

/** The last change of an object, of which this is a part; or of one that is gone. */
struct watched_change {
    struct list link; /* in the network's changes */
    const struct object_kind *kind;
    const char *name;  /* borrowed from the object */
    uint64_t serial;   /* 0: it has not changed */
    uint64_t revision; /* whoever knows all that has changed before it may lack this */
    bool is_gone;
};

struct watched_block {
    struct watched_node *nodes[WATCHED_BLOCK_NODES]; /* pins; @n of them */
    unsigned n;
    struct line *text; /* owns; a part, "NODE,NODE,..."; NULL: to be made */
};

/** What those who see every node are told of the changes behind a cursor. */
struct watched_text {
    uint64_t cursor;     /* before */
    uint64_t end_cursor; /* behind them; 0: this place is empty */
    uint64_t revision;   /* of the first of them: its lines say none before it */
    bool is_used;        /* since the last tick */
    struct line *line;   /* owns; NULL: there is nothing to tell */
};

struct watched_network {
    struct list watches;           /* of struct watch */
    struct watched_change change;  /* of the Network */
    struct list changes;           /* of struct watched_change, the oldest first */
    struct list gone;              /* owns: those of them that are gone */
    size_t n_gone;                 /* how many */
    uint64_t serial;               /* of the last change; 0: there was none */
    uint64_t ready;                /* of the last one that watches are told of now */
    uint64_t waits_from;           /* revision from which on there are some behind it */
    uint64_t forgotten_serial;     /* of the last change that is forgotten; 0: none is */
    uint64_t forgotten;            /* what has changed at that revision, or before, may be */
    struct line *text;             /* owns; the Network; NULL: to be made */
    struct watched_block **blocks; /* owns the array and each of them */
    size_t n_blocks;
    struct watched_text texts[WATCHED_TEXTS];
    unsigned next_text; /* the place that is given up for a new one */
};

struct watched_node {
    const struct model_node *node; /* pins: whose it is */
    struct list watches;           /* of struct watch: its own, oldest first */
    struct watched_change change;  /* of the Node, or of its status that others see */
    struct line *text;             /* owns; the Node as others see it; NULL: to be made */
    struct watched_block *block;   /* pins; NULL: it is in none */
    struct rate status_rate;       /* how often others were told of its status */
    nsec_t answered_at; /* when what was sent that its watch has acknowledged; monotonic; 0: none */
    nsec_t lost_at;     /* since when it acknowledges nothing; monotonic; 0: it does */
};

/** watched_network_init() - no changes, no watches; what has changed up to @revision is forgotten.
 */
void watched_network_init(struct watched_network *net, uint64_t revision);

/** watched_network_deinit() - its watches are detached already. */
void watched_network_deinit(struct watched_network *net);

/** watched_node_init() - @of's, in no block. */
void watched_node_init(struct watched_node *node, const struct model_node *of);

/** watched_node_deinit() - after watched_node_remove(), or before watched_network_deinit(), whose
 * list of changes it leaves. */
void watched_node_deinit(struct watched_node *node);

/** watched_node_add() - a node that is in no block yet. 0 or -ENOMEM. */
int watched_node_add(struct watched_network *net, struct watched_node *node);

/** watched_node_remove() - it is in no block, and has not changed. Idempotent. */
void watched_node_remove(struct watched_node *node);

/** watched_node_changed() - what others see of it has changed: the texts with it are to be made
 * anew. */
void watched_node_changed(struct watched_node *node);

/** watched_add() - an object has changed, of which @c is a part; its @name stays with it. */
void watched_add(struct watched_network *net, struct watched_change *c,
    const struct object_kind *kind, const char *name, uint64_t revision);

/** watched_add_gone() - an object is gone. Without memory for that all changes are forgotten. */
void watched_add_gone(struct watched_network *net, const struct object_kind *kind, const char *name,
    uint64_t revision);

/** watched_sort() - put all changes into the order of their revisions. 0 or -ENOMEM. */
int watched_sort(struct watched_network *net);

/**
 * watched_find() - the cursor of a reader that knows all that has changed before @revision
 *
 * Return: false: something that it lacks is forgotten.
 */
bool watched_find(const struct watched_network *net, uint64_t revision, uint64_t *ret_cursor);

/**
 * watched_read() - the next changes that are ready, at most WATCHED_READ_MAX
 * @cursor:	the reader's, not before what is forgotten; moved behind them
 * @ret:	lends them until something changes
 * @ret_end:	the revision from which on the reader lacks something after that; 0: nothing that is
 *		ready
 *
 * Return: how many.
 */
size_t watched_read(const struct watched_network *net, uint64_t *cursor,
    const struct watched_change *ret[static WATCHED_READ_MAX], uint64_t *ret_end);
