/*
 * model.h - the store's contents as structs, indexed; and who is told when they change.
 *
 * Theory of operation. The store's watch tells of changes, one key at a time and
 * in the order in which they were committed, and that is the only code that
 * changes what is below. So the model never shows what is not on the disk, and
 * reading it never waits. After each change the listener is told. It may read
 * everything; it may write to the store, and that change comes later.
 *
 * What is on its way to the store is not in the model. Who decides by the model
 * names in the commit the revisions that it has seen (meta.resource_version),
 * and decides anew when they are not those of the store any more.
 *
 * A record that cannot be understood changes nothing but the list of those that
 * are set aside (see below); the listener is told when it gets longer.
 *
 * What is removed leaves all indexes at once, but its struct stays until its
 * owner says model_reap() or model_reap_network(): somebody may have to tell it
 * first.
 *
 * The networks' private keys are not in the store but in files of their own;
 * the listener's network_key() gives them.
 *
 * Several hubs may have one store. Each has a name, and a node of that name and with a key of its
 * own in every network. The hub that makes a network makes its own node in the same commit; the
 * others add theirs when they hear of the network (networks.h), and serve it from then on.
 *
 * Nobody else writes a node or a network: others have them const, and ask for a change by the
 * functions below. What they keep of them is in structs of their own, which are made with a node or
 * a network and gone with it.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/rate.h"
#include "hub/jobs/jobs.h"
#include "hub/model/ipam.h"
#include "hub/model/key_course.h"
#include "hub/model/proof.h"
#include "hub/model/reported.h"
#include "hub/model/watched.h"
#include "hub/record/record.h"
#include "mesh/object/object.h"
#include "store/keys.h"
#include "store/store.h"

/** Why nodes of a network that is removed are removed: what they are told. */
#define MODEL_NETWORK_REMOVED "its network was removed"

/** How this hub serves a network: changes.c's, but where it says otherwise. */
struct served_network {
    char interface[16]; /* what its interface on the hub is called */
    bool is_up;         /* it has its interface, and its members are answered there */
    struct err failure; /* why it is not up */
    struct server_listener *listeners[2]; /* where its members are answered: v4 and v6 */
    struct jobs_service jobs;             /* its jobs, while they are served */
    struct overlay_network *overlay;      /* overlay.c's; NULL: there is no data half */
    struct hub_access *access;            /* owns; hub_access.c's */
    nsec_t reap_at;                       /* when a removed network is freed */
};

struct model_network {
    struct keyed keyed;           /* in the model's networks */
    struct network spec;          /* as stored */
    struct x25519_secret secret;  /* the hub's key in this network; wiped at the end */
    struct x25519_public public;  /* of it */
    struct ip_addr address4;      /* the hub's own: the first of the block */
    struct ip_addr address6;      /* likewise */
    struct model *model;          /* pins */
    struct network_maker maker;   /* the hub that made it, whose key tells it from other networks */
    const struct model_node *own; /* lent: the node of this hub; NULL: it has none here yet */
    bool has_key;    /* @secret and @public are this hub's; without it nobody is served here */
    bool is_retired; /* this hub's node was removed: the hub comes back when it is started again */
    struct keys nodes;      /* of struct model_node */
    struct list hubs;       /* of struct model_node: those of them that are hubs */
    struct keys edges;      /* of struct model_edge */
    struct keys objects;    /* of struct model_object: all kinds but Node and MeshEdge */
    struct htab by_key;     /* the nodes, by each of their public keys */
    struct htab by_address; /* the nodes, by each of their addresses */
    struct ipam ipam;       /* host numbers in use */
    size_t n_tokens;        /* join tokens that are kept for it, spent ones included */
    uint64_t ipam_revision; /* of the record of ipam's cursor; 0: not stored yet */
    struct list removed;    /* of struct model_node: removed, and kept until they have been told */
    struct list reap;       /* in the model's removed, once it is removed */
    const char *leaving; /* it is being removed: the reason that nodes are told; NULL: it stays */
    struct err key_failure;          /* why it has no keys of this hub */
    struct watched_network *watched; /* owns: watch.c's */
    struct served_network *served;   /* owns: as said there */
    uint64_t *sent_bytes; /* owns: traffic_book.c's; what nodes have told since the start, by path,
                             PATH_KIND_N of them */
};

/** One of a node's two addresses, in its network's table. */
struct model_address {
    struct htab_link link;
    const struct model_node *node; /* pins */
    struct ip_addr address;
};

/** How this hub serves a node. */
struct served_node {
    struct rate asked_wg;         /* how often it asks for its peers: handlers_member.c's */
    struct list streams;          /* streams.c's: of struct stream_end, its own, oldest first */
    struct overlay_node *overlay; /* overlay.c's; NULL: a hub's, or there is no data half */
    const char *leaving; /* node_removal.c's: a request removes it, and this it is told, a constant;
                            nothing is written about it; NULL: it stays, or has expired */
    nsec_t reap_at;      /* when a removed node is freed */
    struct key_course *key_course; /* owns; NULL: its key does not change */
};

struct model_node {
    struct keyed keyed;              /* in its network's nodes */
    struct node spec;                /* as stored; its status stays NULL, see reports.h */
    const struct model_network *net; /* pins */
    struct token_hash token;         /* of the secret that admitted it; zeroes for the hub itself */
    struct model_key by_key[2];      /* its own; and while it changes that, the other one */
    struct model_address by_address[2]; /* v4 and v6 */
    struct list of_hubs;                /* in its network's hubs, if it is one */
    struct list edges;                  /* of struct model_edge_end: what is said about its edges */
    bool is_removed;                    /* it is in no index any more */
    bool is_expired;  /* model_expire()'s commit has its removal: nothing is written about it */
    struct list reap; /* in the network's removed */
    struct watched_node *watched;   /* owns: watch.c's */
    struct reported_node *reported; /* owns: reported.h; reports.c's */
    struct served_node *served;     /* owns: as said there */
    struct proof_state *proof;      /* owns: proof.c's */
};

/** An edge, as one of its nodes has it. */
struct model_edge_end {
    struct list link;              /* in the node's edges */
    const struct model_edge *edge; /* pins */
    const struct model_node *node; /* pins; NULL when the node is gone */
};

/** An edge about which an administrator has said something. */
struct model_edge {
    struct keyed keyed;              /* in its network's edges */
    const struct model_network *net; /* pins */
    struct mesh_edge spec;           /* as stored */
    struct model_edge_end ends[2];
    struct watched_change change; /* watch.c's */
};

/** An object of a kind that means nothing else to the model: neither network, node nor edge. */
struct model_object {
    struct keyed keyed;           /* its kind's prefix, and its name; in its network's objects */
    struct object object;         /* owns; as stored */
    struct watched_change change; /* watch.c's */
};

struct model_token {
    struct htab_link link;      /* in the model's tokens */
    struct token_hash hash;     /* of the secret */
    struct token_record record; /* as stored */
    unsigned n_given_back;      /* uses, since the start: as model_count_given_back() was told */
    uint64_t revision;          /* of its key */
};

/** Told about each change, after it was made. No member may be NULL. */
struct model_listener {
    void *ctx; /* pinned: handed to every call */

    /* This hub's private key in a network; its public half must be @public. */
    int (*network_key)(void *ctx, const char *name, const struct x25519_public *public,
        struct x25519_secret *ret, struct err *e);
    void (*network_added)(void *ctx, const struct model_network *net);
    void (*network_changed)(void *ctx, const struct model_network *net);
    void (*network_removed)(void *ctx, const struct model_network *net); /* model_reap_network() */
    void (*node_added)(void *ctx, const struct model_node *node);
    void (*node_changed)(void *ctx, const struct model_node *node, const struct node *before);
    void (*node_removed)(void *ctx, const struct model_node *node); /* now or later: model_reap() */
    /* Another hub has written what the node reports, and others see the node otherwise now. */
    void (*status_changed)(void *ctx, const struct model_node *node);
    /* @before: the path as it was; NULL in @edge's ends means that the node has gone. */
    void (*edge_changed)(void *ctx, struct model_edge *edge, enum edge_path before);
    /* Of any other kind. @before: as it was, NULL: it is new; @now: as it is, NULL: it is gone. */
    void (*object_changed)(void *ctx, const struct model_network *net, const struct object *before,
        const struct object *now);
    /* A record was set aside: it cannot be understood, or is a network without its key. Without
     * @key something else stops the model from following the store. */
    void (*broken)(void *ctx, const char *key, const struct err *e);
};

struct model {
    char self[NAME_MAX_LEN + 1]; /* this hub's name, and that of its node in each network */
    uint64_t boot;       /* of this run, random: nodes see by it that the hub was started anew */
    struct store *store; /* pins */
    struct audit *audit; /* pins: told of every commit, which it may add to; NULL: none is */
    struct store_watch *watch;      /* owns */
    struct model_listener listener; /* see there */
    struct keys networks;           /* of struct model_network */
    struct list removed;            /* removed networks; of struct model_network */
    struct htab tokens;             /* of struct model_token */
    struct keys damaged;            /* records that were set aside; of struct damaged_record */
    uint64_t seed;                  /* for all hash tables */
    bool is_expiring;               /* a commit of model_expire() is on its way */
    nsec_t expired_at;              /* the time that it was called with */
};

/** model_init() - empty, of a hub of the default name. @seed: random, unknown to strangers. */
void model_init(
    struct model *m, struct store *store, const struct model_listener *listener, uint64_t seed);

/** model_deinit() - forget everything without a word. */
void model_deinit(struct model *m);

/**
 * model_load() - read the store; the listener hears of everything as added
 *
 * A record that cannot be understood is set aside, and the rest is read.
 *
 * Return: 0 or negative errno with words: the store cannot be read, or no memory.
 */
int model_load(struct model *m, struct err *e);

/**
 * model_set_aside() - the record with @key cannot be understood: list it, and tell the listener
 * once
 *
 * For those as well who read kinds of records that the model does not know. The
 * next change of that key takes it off the list, or has it judged again.
 */
void model_set_aside(struct model *m, const char *key, uint64_t revision, const struct err *why);

/**
 * model_store() - store_commit(), each record with its sum (record.h)
 *
 * Return: as store_commit().
 */
int model_store(struct model *m, const struct store_op *ops, size_t n_ops, nsec_t now,
    store_done_fn done, void *ctx, struct err *e);

/**
 * model_commit() - model_store() with the entries of the audit log
 * @n_ops:	at most STORE_OPS_MAX - AUDIT_PER_COMMIT of what the log tells of
 *
 * Operations on what the log tells of should name the revision that the model has: others may be
 * on their way, and the log says what was there before.
 *
 * Return: as store_commit().
 */
int model_commit(struct model *m, const struct store_op *ops, size_t n_ops, nsec_t now,
    store_done_fn done, void *ctx, struct err *e);

/**
 * model_expire() - have some of what has a lease that has ended removed
 *
 * Only as the model has it: what somebody changes at the same time stays, and is looked at again by
 * the next call.
 *
 * Return: 0 or negative errno with words; what is left then is tried again by the next call. What
 * fails later, the listener is told.
 */
int model_expire(struct model *m, nsec_t now, struct err *e);

/** model_reap() - free a removed node. */
void model_reap(const struct model_node *node);

/** model_reap_network() - free a removed network, with its removed nodes. */
void model_reap_network(const struct model_network *net);

/** model_count_given_back() - a use of the token was given back: its member had only enrolled. */
void model_count_given_back(const struct model_token *t);

/** model_set_network_leaving() - a request removes the network; see @leaving there. */
void model_set_network_leaving(const struct model_network *net, const char *why);

/** model_retire() - the network is not served here any more, until the hub is started again. */
void model_retire(const struct model_network *net);

/* Lookups lend what they find; NULL: there is none. */

/** model_find_network() - by its name. */
struct model_network *model_find_network(const struct model *m, const char *name);

/** model_find_node() - by its name; @net may be NULL, and has none. */
struct model_node *model_find_node(const struct model_network *net, const char *name);

/** model_find_key() - by its public key; or the other one, while it changes it. */
struct model_node *model_find_key(const struct model_network *net, const struct x25519_public *key);

/** model_find_address() - by either of its overlay addresses. */
struct model_node *model_find_address(
    const struct model_network *net, const struct ip_addr *address);

/** model_find_edge() - what was said about the edge of two nodes, in either order. */
struct model_edge *model_find_edge(const struct model_network *net, const char *a, const char *b);

/** model_find_object() - of any kind that the model keeps as it is, by its name. */
struct model_object *model_find_object(
    const struct model_network *net, const struct object_kind *kind, const char *name);

/** model_find_token() - by the hash of its secret. */
struct model_token *model_find_token(const struct model *m, const struct token_hash *hash);

/**
 * model_revision() - at which revision the model has the record with that key
 *
 * Also of one that is set aside. Return: 0 for one that is not there, and for a kind of record
 * whose revision the model does not keep: reports, address cursors, and all that are not its own.
 */
uint64_t model_revision(const struct model *m, const char *key);

/**
 * model_each_object() - the objects of a kind that is neither Network, Node nor MeshEdge, in the
 * order of their names
 * @i:		0 at first; where to go on after it
 *
 * Return: lends the next one; NULL: there are no more.
 */
const struct object *model_each_object(
    const struct model_network *net, const struct object_kind *kind, size_t *i);

/** model_is_damaged() - is that record set aside? The parts of its key are as in record_key(). */
bool model_is_damaged(
    const struct model *m, enum record_kind kind, const char *network, const char *name);

/**
 * model_is_wary() - is the record of a node damaged?
 *
 * Then an address that no node seems to have may be that node's.
 */
bool model_is_wary(const struct model_network *net);

/** model_is_self() - is it this hub's own node? Other hubs' nodes are not. */
static inline bool model_is_self(const struct model_node *node)
{
    return node == node->net->own;
}

/** model_next_number() - the host number of the next node; 0: none is surely nobody's. */
uint32_t model_next_number(const struct model_network *net);

/** model_hold_number() - the next node does not get @number; returns the cursor as it was. */
uint32_t model_hold_number(const struct model_network *net, uint32_t number);

/** model_give_number() - it is free again; in the reverse order. @cursor: as it was. */
void model_give_number(const struct model_network *net, uint32_t number, uint32_t cursor);

/**
 * model_may_talk() - may these two members exchange packets?
 *
 * Yes, unless the edge between them is off. Both are of the same network, and different. This is
 * the one answer: what a snapshot shows and what the relay moves both come from it.
 */
bool model_may_talk(const struct model_node *a, const struct model_node *b);

/** The structs around what indexes hold. */
static inline struct model_network *model_network_at(const struct model *m, size_t i)
{
    return container_of(m->networks.items[i], struct model_network, keyed);
}

static inline struct model_node *model_node_at(const struct model_network *net, size_t i)
{
    return container_of(net->nodes.items[i], struct model_node, keyed);
}

static inline struct model_edge *model_edge_at(const struct model_network *net, size_t i)
{
    return container_of(net->edges.items[i], struct model_edge, keyed);
}

/* ---- the records of the store that did not load, and why ------------------------------------- */

/*
 * Such a record stays in the store as it is, nothing is made of it, and it is listed here until a
 * later write of its key can be understood or deletes it. weft-hub(8) says what is not done for its
 * sake meanwhile, so that nobody gains by the damage. Pure.
 */

struct damaged_record {
    struct keyed keyed; /* its key in the store; in the model's damaged */
    struct err why;     /* in words */
    uint64_t revision;  /* of it; 0: not known */
};

/**
 * damaged_add() - the record with @key cannot be understood
 *
 * Return: true when it was not in the list before. Without memory it is not in it, and true.
 */
bool damaged_add(struct keys *damaged, const char *key, uint64_t revision, const struct err *why);

/** damaged_remove() - it can be understood now, or is gone. True when it was in the list. */
bool damaged_remove(struct keys *damaged, const char *key);

/** damaged_find() - lends; NULL: it is not in the list. */
const struct damaged_record *damaged_find(const struct keys *damaged, const char *key);

/** damaged_find_below() - lends the first one whose key starts with @prefix, NULL if none. */
const struct damaged_record *damaged_find_below(const struct keys *damaged, const char *prefix);
