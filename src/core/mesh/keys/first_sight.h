/*
 * first_sight.h - what a node remembers of its peers since it first saw them, and which changes of
 * it the node believes.
 *
 * A hub says who is a member. A hub that was broken into could say, of a peer that everybody knows,
 * that it has another key, and so stand in its place. So each node remembers the name, the key and
 * the addresses of each peer as it first saw them, and whether the peer is a hub, with the pin of
 * its TLS key. What the hub says passes through here before anything is made of it:
 *
 *   - a peer that is new is believed, unless an address of it is another peer's;
 *   - another key that the one before has signed is believed at once (key_peer.h): first as one
 *     that the peer may use, and alone when the peer has used it;
 *   - any other change is not believed while the old key answers: until nothing authentic has come
 *     under it for FIRST_SIGHT_HELD_S. Until then the peer stays what it was;
 *   - in a network whose trustPolicy is "ask" it waits for the operator of this node;
 *   - a removal is believed, because who is removed has to be gone at once. But the peer is
 *     remembered for FIRST_SIGHT_KEPT_S, so that who comes back under its name is a change.
 *
 * What has changed is shown for FIRST_SIGHT_SHOWN_S.
 *
 * Pure: no I/O, no clock. Times are seconds since 1970.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/parse.h"
#include "crypto/hash.h"
#include "crypto/x25519.h"
#include "mesh/keys/key_ack.h"
#include "mesh/snapshot/snapshot.h"

/** A key that was heard in the last so many seconds still answers. */
#define FIRST_SIGHT_HELD_S (10 * 60)
/** Before a silent key is given up it was asked to answer for so long. */
#define FIRST_SIGHT_ASKED_S 15
/** For so long a change is shown that was believed. */
#define FIRST_SIGHT_SHOWN_S (24 * 3600)
/** For so long a peer is remembered that was removed. */
#define FIRST_SIGHT_KEPT_S (7 * 24 * 3600)
/** A peer of which nothing came for so long has no session any more: it is called under its next
 * key when the hub says that it has that. */
#define FIRST_SIGHT_SESSION_S 180
/** Most peers that are remembered. */
#define FIRST_SIGHT_PEERS_MAX 131072

/** What must not change unseen. */
struct first_sight_identity {
    struct x25519_public key;
    struct ip_addr address4;
    struct ip_addr address6;
    bool is_hub;
    bool has_pin; /* of a hub: it says which TLS key its public API has */
    struct tls_pin pin;
};

/** What differs between two identities; bits. That a hub is none any more is no change: like a
 * removal it is believed. */
enum first_sight_change {
    FIRST_SIGHT_KEY = 1,
    FIRST_SIGHT_ADDRESS = 2,
    FIRST_SIGHT_HUB = 4, /* it is a hub, and was none */
    FIRST_SIGHT_PIN = 8,
};

/** Why the last change was believed. */
enum first_sight_how {
    FIRST_SIGHT_UNCHANGED,
    FIRST_SIGHT_SIGNED,  /* by the key before */
    FIRST_SIGHT_SILENT,  /* the key before had not answered for long */
    FIRST_SIGHT_TRUSTED, /* by this node's operator: it is not shown any more */
    FIRST_SIGHT_HOW_N,
};

struct first_sight_peer {
    char name[NAME_MAX_LEN + 1];
    struct first_sight_identity held;    /* what is believed; read if @seen_at is not 0 */
    struct x25519_public next;           /* that it may use as well, as @held.key has signed it;
                                            none: it has one key; as key_peer.h */
    bool calls_next;                     /* it is called under that */
    bool has_next;                       /* the hub says that @next is its key */
    int64_t seen_at;                     /* it was first believed then; 0: it never was */
    int64_t answered_at;                 /* the held key was last heard then, as far as is known; 0:
                                            never */
    int64_t removed_at;                  /* 0: it is in the network */
    struct first_sight_identity offered; /* what the hub says; read if @offered_at is not 0 */
    int64_t offered_at;                  /* since then; 0: the hub says what is held */
    enum first_sight_how how;            /* the last change of the key or an address */
    int64_t changed_at;                  /* read if @how is not UNCHANGED, and the next two */
    unsigned changed;                    /* what: bits */
    struct first_sight_identity before;
    int64_t hub_at; /* it became a hub then; 0: it was one from the first, or is
                       none */
};

struct first_sight {
    char self[NAME_MAX_LEN + 1];    /* the node whose memory it is, which is no peer */
    bool has_members;               /* a hub has named all members since this memory began */
    bool asks;                      /* changes wait for the operator */
    int64_t held_for;               /* s; FIRST_SIGHT_HELD_S, unless the operator says otherwise */
    struct first_sight_peer *peers; /* owns; @n of them, sorted by name */
    size_t n;
    size_t cap;
    size_t n_offered; /* of them something else is offered */
    bool has_changed; /* and is to be kept; whoever keeps it takes this back */
};

#define FIRST_SIGHT_NULL                                                                           \
    {                                                                                              \
        .held_for = FIRST_SIGHT_HELD_S                                                             \
    }

/** What is known beside the memory. */
struct first_sight_facts {
    int64_t at;

    /** When was the last authentic packet of @key heard? 0: not known. May be NULL. */
    int64_t (*answered)(void *ctx, const struct x25519_public *key);

    void *ctx; /* of that */

    /* The engine has one key of each peer: a next one is called as soon as the hub says that the
     * peer uses it. */
    bool has_one_key;
};

void first_sight_deinit(struct first_sight *fs);

/** first_sight_find() - lends; NULL: nobody of that name is remembered. */
const struct first_sight_peer *first_sight_find(const struct first_sight *fs, const char *name);

/** first_sight_changes() - what differs: bits of enum first_sight_change. */
unsigned first_sight_changes(
    const struct first_sight_identity *held, const struct first_sight_identity *said);

/** first_sight_text() - "key and address", for bits; Returns @buf. */
#define FIRST_SIGHT_TEXT_MAX 64
const char *first_sight_text(unsigned changes, char buf[static FIRST_SIGHT_TEXT_MAX]);

/** What becomes of a node that the hub describes. */
enum first_sight_verdict {
    FIRST_SIGHT_BELIEVED, /* as the hub has it */
    FIRST_SIGHT_KEPT,     /* the node was made what is held */
    FIRST_SIGHT_LEFT_OUT, /* not at all, for now */
};

/** first_sight_node() - the hub describes a node: may it be believed? @node is made what is held
 * where that is believed instead. */
enum first_sight_verdict first_sight_node(
    struct first_sight *fs, struct node *node, const struct first_sight_facts *facts);

/**
 * first_sight_chain() - the hub shows statements of the keys of @node; before first_sight_node()
 *
 * What they say is believed if the key that is held has signed it.
 *
 * Return: 1: another key of the peer is believed now; 0: nothing is new; -EINVAL with words: they
 * do not follow from what is held, and nothing has changed.
 */
int first_sight_chain(struct first_sight *fs, const struct node *node, const char *network,
    const struct first_sight_facts *facts, struct err *e);

/**
 * first_sight_on_call() - a peer has begun a session under @key
 *
 * Return: true: what is believed of it has changed.
 */
bool first_sight_on_call(struct first_sight *fs, const char *name, const struct x25519_public *key,
    const struct first_sight_facts *facts);

/** first_sight_level() - what may be told a peer that goes on with @next. */
enum key_ack_level first_sight_level(
    const struct first_sight *fs, const char *name, const struct x25519_public *next);

/** first_sight_set_keys() - set the key under which @node is called, and the other one that is its
 * as well, to what is held of @peer. Without memory it has the first alone. */
void first_sight_set_keys(const struct first_sight_peer *peer, struct node *node);

/** first_sight_gone() - the hub says that a node is removed. */
void first_sight_gone(
    struct first_sight *fs, const char *name, const struct first_sight_facts *facts);

/**
 * first_sight_members() - the hub names all members: whoever is not in @s is removed
 *
 * Call it before first_sight_node() for each of them.
 */
void first_sight_members(
    struct first_sight *fs, const struct snapshot *s, const struct first_sight_facts *facts);

/** Is told of a peer whose offer has become what is held, or that is called under another key. */
typedef void (*first_sight_taken_fn)(void *ctx, const struct first_sight_peer *peer);

/**
 * first_sight_look() - time has passed: believe what may be believed now, forget what is too old
 *
 * To be called each second while @n_offered is not 0, and each minute else.
 */
void first_sight_look(struct first_sight *fs, const struct first_sight_facts *facts,
    first_sight_taken_fn taken, void *ctx);

/**
 * first_sight_trust() - the operator of this node trusts what the hub says of a peer
 *
 * What waits is believed, and what was believed is not shown any more.
 *
 * Return: 0; -ENOENT with words: nobody of that name is remembered; -EBUSY with words: an address
 * of it is another peer's.
 */
int first_sight_trust(struct first_sight *fs, const char *name,
    const struct first_sight_facts *facts, first_sight_taken_fn taken, void *ctx, struct err *e);

/** first_sight_apply() - make @node what is held of @peer, with its keys; who is no hub there loses
 * that here. */
void first_sight_apply(const struct first_sight_peer *peer, struct node *node);

/* ---- what is shown --------------------------------------------------------------------------- */

/** How it stands with what is known of a peer. */
enum first_sight_state {
    FIRST_SIGHT_WELL,    /* nothing to be shown */
    FIRST_SIGHT_REFUSED, /* the hub says something else, and the old key answers */
    FIRST_SIGHT_SILENCE, /* the hub says something else, which waits for the old key's silence */
    FIRST_SIGHT_ASKS,    /* and which waits for the operator */
    FIRST_SIGHT_TAKEN,   /* a change was believed because the old key was silent */
    FIRST_SIGHT_NEW_HUB, /* it has become a hub */
    FIRST_SIGHT_STATE_N,
};

/** first_sight_state_names - "known", "refused", "waits", "asks", "changed", "new hub". */
extern const char *const first_sight_state_names[];

/** first_sight_state() - at the time @at. */
enum first_sight_state first_sight_state(
    const struct first_sight *fs, const struct first_sight_peer *peer, int64_t at);

/** first_sight_silent_at() - when the held key has been silent for long enough, if nothing more is
 * heard; s since 1970. */
int64_t first_sight_silent_at(const struct first_sight *fs, const struct first_sight_peer *peer);

/* ---- the file -------------------------------------------------------------------------------- */

/** first_sight_encode() - what first_sight_decode() takes; a new reference, NULL: no memory. */
json_t *first_sight_encode(const struct first_sight *fs);

/**
 * first_sight_decode() - what an earlier run has remembered
 * @ret:	untouched on failure, else to be released with first_sight_deinit()
 * @where:	the file, for the words
 *
 * Return: 0; -EINVAL with words; -ENOMEM.
 */
int first_sight_decode(
    struct first_sight *ret, const json_t *json, const char *where, struct err *e);
