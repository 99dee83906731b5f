/*
 * key_rotation.h - how a node comes from one key to the next, and nobody loses it meanwhile.
 *
 * The node's half; key_peer.h is that of each other member. Facts in, one step out: who owns this
 * writes the struct to disk after key_rotation_take(), and only then does what the step says. All
 * steps may be done again, so a node that ends at any point goes on from what is on its disk.
 *
 *   state      the engine        goes on when
 *   IDLE       has the key       a rotation is due: the next key and its statement are on disk
 *   PREPARED   answers under     all hubs keep the statement, and everybody who is there has
 *              both, initiates   acknowledged it
 *              with the key
 *   MOVED      answers under     the hubs say that the next key is the node's, and everybody who is
 *              both, initiates   there has been seen under it: the old key is erased
 *              with the next
 *
 * There is no way back from PREPARED: whoever has the statement may use the next key from then on.
 * What a hub says can hold a rotation up, and never let it go on too early: acknowledgements are
 * made with the pair's keys (key_ack.h), and all hubs have to agree on the rest. test-key-model.c
 * explores this against a hub that lies.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/x25519.h"

enum key_rotation_state {
    KEY_ROTATION_IDLE,
    KEY_ROTATION_PREPARED,
    KEY_ROTATION_MOVED,
    KEY_ROTATION_N,
};

/** key_rotation_state_names - "idle", "prepared", "moved". */
extern const char *const key_rotation_state_names[];

/** What is on disk beside the secrets of its keys. */
struct key_rotation {
    enum key_rotation_state state;
    struct x25519_public key;
    struct x25519_public next; /* zeroes while IDLE */
};

/** What is known of a peer with regard to the next key. All false: it is away and knows nothing. */
struct key_rotation_peer {
    bool is_stock; /* it cannot acknowledge: a file of its own names the key */
    bool is_heard; /* by the own engine, authenticated, in the last 3 min: the life of a session */
    bool is_reachable; /* some hub has heard it in the last 30 s, or some hub has not been asked */
    bool knows_next;   /* it has acknowledged the next key: KEY_ACK_KNOWN or more */
    bool calls_next;   /* it calls the node by the next key alone: KEY_ACK_BELIEVED */
    bool is_seen_under_next; /* of a stock peer: there was a session with it under the next key */
};

struct key_rotation_facts {
    const struct key_rotation_peer *peers; /* borrowed; @n_peers, hubs among them */
    size_t n_peers;
    bool hubs_keep_statement; /* all hubs of the network keep the statement of the next key */
    bool hubs_have_moved;     /* all hubs say that the next key is the node's */
    bool is_long_moved;       /* and have done so for 3 min */
    bool has_two_keys;        /* the engine answers under both: not the kernel's */
    bool force;               /* a person has said to wait for nobody */
};

enum key_rotation_step {
    KEY_ROTATION_WAIT,     /* nothing is to be done now */
    KEY_ROTATION_ANNOUNCE, /* give the statement to the hubs */
    KEY_ROTATION_MOVE,     /* initiate with the next key */
    KEY_ROTATION_FINISH,   /* ask the hubs, with the statement, to make the next key the node's */
    KEY_ROTATION_ERASE,    /* forget the old key: engine, memory and disk */
};

/** key_rotation_begin() - @next and its statement are on disk. False: a rotation is under way. */
bool key_rotation_begin(struct key_rotation *r, const struct x25519_public *next);

/**
 * key_rotation_decide() - what is to be done now
 *
 * A fact that is true instead of false never takes a step back, but for is_stock, is_heard and
 * is_reachable, of which the same holds the other way.
 */
enum key_rotation_step key_rotation_decide(
    const struct key_rotation *r, const struct key_rotation_facts *facts);

/** key_rotation_take() - @r as it has to be on disk before @step is done. */
void key_rotation_take(struct key_rotation *r, enum key_rotation_step step);

/** key_rotation_waits_for() - does that peer hold up the present state? */
bool key_rotation_waits_for(const struct key_rotation *r, const struct key_rotation_facts *facts,
    const struct key_rotation_peer *peer);

/** key_rotation_initiates_with() - the key under which @peer is called. A stock one does not know
 * the next key before it has been seen under it. */
const struct x25519_public *key_rotation_initiates_with(
    const struct key_rotation *r, const struct key_rotation_peer *peer);

/**
 * key_rotation_due() - when the next rotation begins, s since 1970
 * @made_at:	when the present key was made known; 0: not known, and it is due now
 * @every:	s; 0: never
 *
 * Up to a tenth earlier than @every, by the node's key, so that not all rotate at once.
 *
 * Return: UINT64_MAX for never.
 */
uint64_t key_rotation_due(const struct x25519_public *key, uint64_t made_at, uint32_t every);
