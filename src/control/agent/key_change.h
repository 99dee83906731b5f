/*
 * key_change.h - how this node comes from one key to the next (mesh/keys/key_rotation.h), and what
 * it acknowledges of the keys of others.
 *
 * What is to be true is on the disk before it is done: keys.json has the next key and how far the
 * node is, and node.json the key that is the only one in the end. So a node that ends at any point
 * goes on from there. The owner applies the keys to the engine, the paths and the links when
 * key_change_poll() says that there are others, and each time that it starts.
 *
 * Threads: the loop's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/key_hubs.h"
#include "agent/node_trust.h"
#include "agent/state/state.h"
#include "base/clock.h"
#include "mesh/keys/key_rotation.h"
#include "os/log.h"

struct observe;
struct snapshot;
struct watch_event;

struct key_change {
    const char *dir;     /* pins; NULL: nothing is kept, and no change begins */
    struct state *state; /* pins: who this node is; its keys are written here */
    struct key_rotation rotation;
    struct state_next_key next;    /* read unless the rotation is IDLE */
    struct x25519_public next_key; /* of it */
    bool is_damaged; /* keys.json does not parse, and is left alone: no change begins */
    struct key_hubs hubs;
    json_t *levels; /* owns; {"NODE": level} that were acknowledged of the next key; NULL: none */
    json_t *owed;  /* owns; {"NODE": true}: who has not heard of the key when the last change ended;
                      NULL: everybody has */
    json_t *acks;  /* owns; {"NODE": "base64"}: what this node acknowledges; NULL: nothing */
    json_t *acked; /* owns; {"NODE": "LEVEL KEY KEY"}, of which each is made */
    nsec_t
        settled_at;   /* since when all hubs say that the next key is this node's; 0: they do not */
    nsec_t stage_at;  /* when the present stage began, here */
    nsec_t called_at; /* when others were last called under the next key */
    nsec_t begun_at;  /* of the agent */
    nsec_t refused_at;               /* when hubs refused a statement last; 0: never */
    unsigned n_waits;                /* as of the last poll: nodes for which it waits */
    char waits[8][NAME_MAX_LEN + 1]; /* some of them; "": no more */
    const char *why;                 /* a clause, why else it waits; NULL: it does not */
    struct log_limit limit;
};

/** What is known, for a poll. Borrowed. */
struct key_change_facts {
    const struct snapshot *snapshot;
    const struct observe *seen;
    const struct node_trust *trust;
    const struct hub_set *hubs;
    bool has_engine;   /* it is open */
    bool has_two_keys; /* it answers under two */
    bool is_applied;   /* and has this node's keys, as key_change_poll() last left them */
    nsec_t now;
    int64_t wall_s;
};

/** What the owner has to do after a poll; bits. */
enum key_change_action {
    KEY_CHANGE_APPLY = 1, /* the keys are others: apply them */
    KEY_CHANGE_OWN = 2,   /* and the node's own is another one: all that was made of it, too */
    KEY_CHANGE_CALL = 4,  /* key_change_next_call() says whom to call */
};

/**
 * key_change_open() - go on where an earlier run was
 * @dir:	pinned
 * @state:	pinned; gets @next
 */
void key_change_open(struct key_change *kc, const char *dir, struct state *state, nsec_t now);

/** key_change_close() - wipe and release. */
void key_change_close(struct key_change *kc);

/** key_change_next() - the secret that the node goes on with; lends. NULL: it does not change its
 * key. */
const struct x25519_secret *key_change_next(const struct key_change *kc);

/** key_change_calls_next() - does it call under that already? */
bool key_change_calls_next(const struct key_change *kc);

/** key_change_knows_one() - is that a stock peer which knows but the key before? */
bool key_change_knows_one(const struct key_change *kc, const struct node *node);

/** key_change_filter() - what a hub says of this node's own key: in the snapshot it is the key that
 * the node has, until it has no other one. */
void key_change_filter(const struct key_change *kc, struct watch_event *ev);

/** key_change_poll() - do what can be done now. Return: bits of enum key_change_action. */
unsigned key_change_poll(struct key_change *kc, const struct key_change_facts *facts);

/**
 * key_change_next_call() - whom to call, so that it hears of the key
 * @i:		0 at first; where to go on after it
 *
 * Return: lends; NULL: nobody more.
 */
const struct node *key_change_next_call(
    const struct key_change *kc, const struct snapshot *s, size_t *i);

/** key_change_is_settled() - nothing goes on: polls may be skipped. */
bool key_change_is_settled(const struct key_change *kc, const struct snapshot *s);

/** key_change_encode() - for the status; a new reference; NULL: the key does not change, or there
 * is no memory. */
json_t *key_change_encode(const struct key_change *kc);
