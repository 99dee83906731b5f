/*
 * lock_body.h - what an entry of a network's lock says: its kinds, and each as bytes.
 *
 * lock_entry.h puts a body into the chain and signs it; lock_chain.h has what follows from all of
 * them. Nodes, edges and rules are the structs of mesh/object, of which a lock has the fields that
 * are signed; the others are nobody's word here and stay as they are after NODE_NULL.
 *
 * There is one way to write a body down, and nothing else is taken.
 *
 * Spec: docs/wire/lock.md. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/bytes.h"
#include "base/parse.h"
#include "crypto/ed25519.h"
#include "crypto/x25519.h"
#include "mesh/object/object.h"
#include "mesh/object/subnets.h"

struct err;

/** Most of each. */
#define LOCK_SIGNERS_MAX    16
#define LOCK_RECOVERY_MAX   16      /* codes of recovery */
#define LOCK_KEYS_MAX       256     /* nodes' keys in one entry */
#define LOCK_HUBS_MAX       64      /* hubs, and who follows them */
#define LOCK_TOKEN_USES_MAX 1000000 /* nodes of one token */

/** Most bytes of a body: a rule with all that one may have takes the most. */
#define LOCK_BODY_MAX 0x23000

/** The last time that is taken, s since 1970: the end of the year 9999. */
#define LOCK_TIME_MAX UINT64_C(253402300799)

/** What an entry is about. The numbers are those on the wire. */
enum lock_kind {
    LOCK_GENESIS = 1, /* the first: blocks, signers, settings */
    LOCK_SIGNERS,     /* who signs from now on */
    LOCK_RECOVER,     /* the same, by a code of recovery */
    LOCK_SETTINGS,
    LOCK_RENEW,     /* it is good for longer */
    LOCK_NODE,      /* a node as it is from now on */
    LOCK_KEYS,      /* the keys that nodes have now */
    LOCK_HUBS,      /* the order in which hubs follow each other */
    LOCK_EDGE,      /* a pair that is off, or pinned; or is so no more */
    LOCK_RULE,      /* a rule as it is from now on */
    LOCK_RULE_END,  /* a rule is gone */
    LOCK_TOMBSTONE, /* a node is gone, and its key for ever */
    LOCK_TOKEN,     /* a right to let nodes in */
    LOCK_TOKEN_END, /* and that it is over */
    LOCK_JOIN,      /* a node has come in, by a token's key */
};

#define LOCK_KIND_N (LOCK_JOIN + 1)

/** Must two weft nodes mix another secret into their handshake? */
enum lock_demand {
    LOCK_DEMAND_NONE,
    LOCK_DEMAND_PSK,
    LOCK_DEMAND_ML_KEM,
    LOCK_DEMAND_N,
};

/** lock_demand_names - "none", "psk", "ml-kem". */
extern const char *const lock_demand_names[];

/** What of a Network's spec is signed, besides its blocks. */
struct lock_settings {
    enum topology topology;
    enum cipher cipher;
    enum isolation isolation;
    enum lock_demand demand;
    uint32_t key_rotation; /* s; 0: keys are not replaced by the clock */
    uint32_t trust_for;    /* s; so long after the lock has expired peers are still believed */
};

struct lock_signer {
    struct ed25519_public key;
    char name[NAME_MAX_LEN + 1]; /* of the person or the machine, for words */
};

/** Who may sign. */
struct lock_signers {
    struct lock_signer items[LOCK_SIGNERS_MAX];        /* sorted by key, which are different */
    unsigned n;                                        /* at least 1 */
    unsigned threshold;                                /* so many of them: 1 to @n */
    struct ed25519_public recovery[LOCK_RECOVERY_MAX]; /* sorted, different, no signer's */
    unsigned n_recovery;
};

struct lock_genesis {
    struct ip_prefix cidr4; /* host bits zero */
    struct ip_prefix cidr6;
    struct lock_settings settings;
    struct lock_signers signers;
    uint64_t valid_until; /* s since 1970 */
};

struct lock_recover {
    struct ed25519_public key; /* the code's, which is used up */
    struct lock_signers signers;
};

struct lock_renew {
    uint64_t version;     /* one more than before */
    uint64_t valid_until; /* s since 1970 */
};

struct lock_key {
    char name[NAME_MAX_LEN + 1]; /* of the node */
    struct x25519_public key;
};

struct lock_keys {
    struct lock_key *items; /* owns; sorted by name, which are different */
    unsigned n;             /* 1 to LOCK_KEYS_MAX */
};

struct lock_hubs {
    char names[LOCK_HUBS_MAX][NAME_MAX_LEN + 1]; /* different; the first one is the first */
    unsigned n;                                  /* at least 1 */
};

struct lock_tombstone {
    char name[NAME_MAX_LEN + 1];
    struct x25519_public key; /* that it had last; the one that is signed goes as well */
    uint64_t counter;         /* of the network's tombstones; 1 for the first */
};

/** What the holder of a token may sign. */
struct lock_token {
    struct ed25519_public key;     /* only who joins has the private one */
    uint32_t uses;                 /* nodes that it lets in: 1 to LOCK_TOKEN_USES_MAX */
    uint64_t until;                /* s since 1970 */
    bool relay;                    /* they may be relays */
    bool ephemeral;                /* they are ephemeral; else none of them is */
    char island[NAME_MAX_LEN + 1]; /* that they may be in; "": none */
    struct label *labels;          /* owns; sorted by key: those that they may have */
    unsigned n_labels;
    struct subnets routes; /* they may have routes inside these */
};

struct lock_join {
    struct ed25519_public token;
    struct node node;
};

/** What an entry says. */
struct lock_body {
    enum lock_kind kind; /* 0: nothing inside */
    union {
        struct lock_genesis genesis;
        struct lock_signers signers;
        struct lock_recover recover;
        struct lock_settings settings;
        struct lock_renew renew;
        struct node node;
        struct lock_keys keys;
        struct lock_hubs hubs;
        struct mesh_edge edge; /* off, or auto; and the pins */
        struct object rule;
        char rule_end[NAME_MAX_LEN + 1]; /* the rule's name */
        struct lock_tombstone tombstone;
        struct lock_token token;
        struct ed25519_public token_end; /* the token's key */
        struct lock_join join;
    };
};

#define LOCK_BODY_NULL                                                                             \
    {                                                                                              \
        0                                                                                          \
    }

/** lock_kind_names - "genesis", "signers" and so on, by enum lock_kind. */
extern const char *const lock_kind_names[];

/** lock_body_deinit() - release what it owns; idempotent, safe on LOCK_BODY_NULL. */
void lock_body_deinit(struct lock_body *b);

/** lock_body_write() - as bytes; what is not signed of an object is left out. */
void lock_body_write(struct writer *w, const struct lock_body *b);

/**
 * lock_body_read() - a body from bytes
 * @ret:	untouched on failure, else to be released with lock_body_deinit()
 * @in:		is behind it afterwards; on failure it is anywhere
 * @network:	whose lock it is: the network of the objects
 *
 * All is within its bounds and in its order. That it is written in the one way there is, the caller
 * finds out by writing it again.
 *
 * Return: 0; -EINVAL with words that name the value and what is allowed; -ENOMEM.
 */
int lock_body_read(struct lock_body *ret, enum lock_kind kind, struct reader *in,
    const char *network, struct err *e);

/** lock_body_equal() - do they say the same? False as well when there is no memory. */
bool lock_body_equal(const struct lock_body *a, const struct lock_body *b);

/** lock_label_find() - lends the label of that key among @n sorted ones; NULL: there is none. */
const struct label *lock_label_find(const struct label *labels, unsigned n, const char *key);
