/*
 * roster.h - the nodes of a network in blocks, each with the JSON of its nodes in one text.
 *
 * A snapshot names all nodes of a network, and thousands of nodes get one. If it were one text,
 * then each change of a node would need that text anew, and each snapshot that is still being sent
 * would keep its own copy. So it is made of the texts of the blocks: a change costs the text of one
 * block, and all snapshots share those of the other blocks.
 *
 * Theory of operation. A node stays in its block for as long as it is in the network. Blocks with
 * room for more nodes come first in the list; an empty block is freed. Who makes the texts is
 * hub/watch/view.h; the model only says when one is not true any more.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include "base/containers.h"

struct line;

/** Most nodes of a block: enough to pack them well (stream.h), and to make its text in 0.2 ms. */
#define ROSTER_BLOCK_NODES 64

struct roster {
    struct list blocks; /* of struct roster_block */
};

struct roster_block {
    struct list link;   /* in the roster's */
    struct list places; /* of struct roster_place: its nodes */
    unsigned n;         /* how many */
    struct line *text;  /* owns; a part, "NODE,NODE,..."; NULL: to be made */
};

/** Embedded in each node. */
struct roster_place {
    struct list link;           /* in its block's places */
    struct roster_block *block; /* pins; NULL: it is in none */
};

/** roster_init() - without any node. */
void roster_init(struct roster *r);

/** roster_deinit() - release the blocks; the nodes' places are not touched. Idempotent. */
void roster_deinit(struct roster *r);

/** roster_add() - a node that is in no block yet. 0 or -ENOMEM. */
int roster_add(struct roster *r, struct roster_place *place);

/** roster_remove() - fine for a node that is in no block. */
void roster_remove(struct roster *r, struct roster_place *place);

/** roster_forget() - what is told of that node has changed: drop the text of its block. */
void roster_forget(struct roster_place *place);
