/*
 * node_copy.h - does another machine use this node's key as well?
 *
 * Whoever copies a disk or an image copies the node that is on it. Then two machines are one node,
 * and each takes the other's sessions away again and again. Only the hub sees both: an agent tells
 * it on which machine it runs, and the hub answers that another one speaks in turn with it
 * (hub/model/copies.h). Which of the two is the copy is told by what an agent finds of the machine
 * on which the node joined.
 *
 * Threads: the loop's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/clock.h"

struct state;

/** What the hub says of the other machine, of which a sentence is made. */
#define NODE_COPY_TEXT_MAX 520

struct node_copy {
    json_t *machine;              /* owns: what the hub is told of this machine; NULL: no memory */
    char why[NODE_COPY_TEXT_MAX]; /* the hub's sentence; "": there is no other machine */
    bool is_copy;                 /* this machine's state is the copy, not the other's */
};

/** node_copy_init() - look at this machine. @st: borrowed: on which machine the node joined. */
void node_copy_init(struct node_copy *nc, const struct state *st);

/** node_copy_deinit() - idempotent. */
void node_copy_deinit(struct node_copy *nc);

/** node_copy_on_answer() - the hub has answered a report with @body; NULL: nothing. Logs news. */
void node_copy_on_answer(struct node_copy *nc, const json_t *body);
