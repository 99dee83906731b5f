/*
 * node_trust.h - which peers this node knows, kept in peers.json, and what it believes of them
 * (mesh/keys/first_sight.h).
 *
 * What a hub, or the cluster, says goes through node_trust_filter() before it is taken into the
 * snapshot: so the agent's snapshot is what the node believes, and nothing else of the agent
 * knows of it. What is believed only after a while is put into the snapshot by
 * node_trust_look(), each poll. A file that does not parse is named in the log and never
 * overwritten.
 *
 * Threads: the loop's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "mesh/keys/first_sight.h"
#include "os/log.h"

struct err;
struct observe;
struct snapshot;
struct watch_event;

/** Most nodes that are kept though they are left out for now. */
#define NODE_TRUST_LEFT_OUT_MAX 64

struct node_trust {
    struct first_sight memory;
    struct object *left_out[NODE_TRUST_LEFT_OUT_MAX]; /* owns; @n_left_out nodes, as the hub has
                                                         them */
    unsigned n_left_out;
    const char *dir;   /* pins: the state directory; NULL: nothing is kept */
    bool is_damaged;   /* peers.json does not parse, or is of another node, and is left alone */
    bool has_new_keys; /* keys that have signed each other are not in the file yet */
    nsec_t looked_at;  /* at all peers */
    nsec_t saved_at;
    struct log_limit limit;
};

/** What the agent knows. Borrowed. */
struct node_trust_facts {
    const struct observe *seen;
    bool has_one_key; /* the engine has one key of each peer */
    nsec_t now;       /* monotonic */
    nsec_t wall;      /* nanoseconds since 1970 */
};

/**
 * node_trust_open() - read what an earlier run has remembered; where there is nothing, the nodes of
 * @s are those that are known first
 * @dir:	pinned
 * @s:		its nodes get the keys that are remembered of them
 * @held_for:	how long a key that was heard still answers; 0: as usual
 */
void node_trust_open(struct node_trust *t, const char *dir, struct snapshot *s, nsec_t held_for,
    const struct node_trust_facts *facts);

/** node_trust_close() - write it, if @keeps, and release. */
void node_trust_close(struct node_trust *t, bool keeps, const struct node_trust_facts *facts);

/**
 * node_trust_on_calls() - the engine may have heard peers call under their next keys
 *
 * Return: nodes of @s have other keys now.
 */
bool node_trust_on_calls(
    struct node_trust *t, struct snapshot *s, const struct node_trust_facts *facts);

/** node_trust_level() - what may be told @node, which goes on with @next; what is not in the file
 * yet may not. */
enum key_ack_level node_trust_level(
    const struct node_trust *t, const char *node, const struct x25519_public *next);

/**
 * node_trust_filter() - make of an event what may be believed of it
 * @ev:		as node_trust_filter() leaves it, it goes into the snapshot; a node that is left out
 *		is OBJECT_NULL, or not in the event's snapshot
 */
void node_trust_filter(
    struct node_trust *t, struct watch_event *ev, const struct node_trust_facts *facts);

/** node_trust_look() - what may be believed by now goes into @s. Return: something has. */
bool node_trust_look(
    struct node_trust *t, struct snapshot *s, const struct node_trust_facts *facts);

/** node_trust_next() - the next peer from *@i on whose key is to be asked to answer, since the hub
 * says another one; NULL: there is none. */
const struct first_sight_peer *node_trust_next(const struct node_trust *t, size_t *i);

/** node_trust_take() - the operator trusts what the hub says of a peer; as first_sight_trust(). */
int node_trust_take(struct node_trust *t, const char *name, struct snapshot *s,
    const struct node_trust_facts *facts, struct err *e);

/** node_trust_encode() - {"peers": [...]}, for `weft trust`; a new reference, NULL: no memory. */
json_t *node_trust_encode(const struct node_trust *t, const struct node_trust_facts *facts);
