/*
 * router_internal.h - the router's structs, for the router_*.c files and lease.c only.
 *
 * "Tables" in a field's comment: written under `changing` and all worker locks,
 * read under either. "Changing": read and written under `changing`.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/containers.h"
#include "base/rate.h"
#include "crypto/hash.h"
#include "relay/router.h"

/* ---- leases ---- */

/*
 * Who may send with which receiver index, and to whom that goes.
 *
 * A lease says: what node `from` sends with receiver index `index` is for node
 * `to`. Handshakes make them (router.h tells how); nothing else does.
 *
 * Theory of operation. One hash table by (from, index). Every lease is also on
 * a list by age, one for each of the two lifetimes, so that what has expired is
 * found at the lists' heads without looking at the rest; and on the lists of
 * both its nodes, so that a node takes its leases with it when it is removed.
 * Leases come from chunks which are kept: after the busiest minute there is no
 * allocation any more.
 *
 * Threads: none of its own; router.h says who holds what.
 */

/** A node's ends of its leases. Embedded in the router's node. */
struct lease_party {
    uint32_t id;          /* part of the key; unique in the table, never reused */
    unsigned n_owned;     /* leases that count against this node: see lease_add() */
    struct list sends;    /* leases by which it is the sender, oldest first */
    struct list receives; /* leases by which it is the receiver, oldest first */
};

enum lease_state {
    LEASE_STATE_FREE,        /* in the table's store */
    LEASE_STATE_PENDING,     /* an initiation went the other way: the answer may pass */
    LEASE_STATE_ESTABLISHED, /* the answer has passed: data may */
};

/** Two nodes between which there are leases. On the heap; gone with the last of them. */
struct lease_pair {
    struct htab_link by_ids;
    struct lease_party *parties[2]; /* pins; the one with the smaller id first */
    unsigned n_leases;
    _Atomic uint64_t bytes; /* that went by these leases, with headers; any worker adds */
    uint64_t sampled;       /* changing; of them, those that were in a sample */
    uint64_t rate;          /* changing; bit/s, as of the last sample */
};

struct lease {
    struct htab_link by_key;
    struct list by_age;        /* in the list of its state; in the store while FREE */
    struct list by_sender;     /* in from->sends */
    struct list by_receiver;   /* in to->receives */
    struct lease_party *from;  /* pins: who may send */
    struct lease_party *to;    /* pins: where it goes */
    struct lease_party *owner; /* pins: either of the two: whose limit it counts against */
    struct lease_pair *pair;   /* pins: the two */
    nsec_t until;              /* the first moment at which it is void */
    uint32_t index;            /* the receiver index in the messages of @from */
    enum lease_state state;
};

struct lease_table {
    struct htab by_key;         /* members: lease.by_key */
    struct htab pairs;          /* owns; members: lease_pair.by_ids */
    struct list pending;        /* by age */
    struct list established;    /* by age */
    struct list free;           /* the store */
    struct lease_chunk *chunks; /* owns all leases ever made */
    unsigned n;                 /* leases that are not FREE */
    unsigned cap;               /* leases ever made */
    unsigned max;               /* most that there may be */
};

/** lease_table_init() - @seed: random, unknown to strangers. No allocation yet. */
void lease_table_init(struct lease_table *t, uint64_t seed, unsigned max);

/** lease_table_deinit() - forget all leases; their parties are not touched. */
void lease_table_deinit(struct lease_table *t);

/**
 * lease_find() - the lease by which @from sends with @index
 *
 * Return: NULL if there is none, or its time is over at @now.
 */
struct lease *lease_find(
    const struct lease_table *t, const struct lease_party *from, uint32_t index, nsec_t now);

/**
 * lease_add() - a new lease
 * @owner:	@from or @to: the side without whose own messages the lease would not be
 * @until:	not before that of any earlier lease of the same state, give or take the
 *		milliseconds by which two threads disagree
 *
 * There is no lease of @from with @index yet, or one whose time is over, which it replaces.
 *
 * Return: NULL when the table is full.
 */
struct lease *lease_add(struct lease_table *t, struct lease_party *from, struct lease_party *to,
    struct lease_party *owner, uint32_t index, enum lease_state state, nsec_t until, nsec_t now);

/** lease_establish() - a pending lease becomes an established one that ends at @until. */
void lease_establish(struct lease_table *t, struct lease *l, nsec_t until);

/** lease_remove_all() - all leases that @party is a side of. */
void lease_remove_all(struct lease_table *t, struct lease_party *party);

/** lease_remove_between() - all leases between these two, either way. */
void lease_remove_between(struct lease_table *t, struct lease_party *a, struct lease_party *b);

/** lease_expire() - remove at most @max leases whose time is over. */
void lease_expire(struct lease_table *t, nsec_t now, unsigned max);

/* ---- the router ---- */

/** What mac1 of a message to a certain public key is made with (whitepaper 5.4.4). */
struct router_mac1_key {
    struct blake2s_digest b; /* HASH(label-mac1 || public key): no secret */
};

/** To whom a message may be made: under one key, or under either of two while one follows the
 * other. */
struct router_addressee {
    struct router_mac1_key key;
    struct router_mac1_key next;
    bool has_next;
};

struct router_network {
    struct list in_router;       /* changing; in router.networks */
    struct list nodes;           /* changing; owns them; members: router_node.in_network */
    struct router_addressee hub; /* changing: of messages to the hub itself */
};

struct router_node {
    struct lease_party leases;      /* tables */
    struct router_network *network; /* immutable; pins */
    struct x25519_public public;    /* changing */
    struct router_addressee self;   /* changing: of messages to this node */
    struct list in_network;         /* changing; in network->nodes */
    struct list blocks;             /* changing; members: router_block.ends[] */
    struct htab_link by_remote;     /* tables; a member while has_address */
    struct endpoint remote;         /* tables; where it is, valid while has_address */
    struct ip_addr local;           /* tables; as router_node_set_address() was told */
    bool has_address;               /* tables */
    uint64_t claimed;               /* tables; when it was last heard from there: router.claims */
    uint64_t tried;                 /* changing; the last scan that has tried its key */
    struct rate initiations;        /* changing; what its initiations have cost */
};

/** One end of a blocked edge, on its node's list. */
struct router_block_end {
    struct list in_node; /* in node->blocks */
    struct router_block *block;
};

/** An edge that is off. */
struct router_block {
    struct htab_link by_pair;        /* changing */
    struct router_node *nodes[2];    /* pins; the one with the smaller id first */
    struct router_block_end ends[2]; /* of the same order */
};

/** A worker's place; no two share a cache line. */
struct router_worker {
    pthread_mutex_t lock; /* guards the tables against this worker; see router.h */
    uint8_t apart[64 - sizeof(pthread_mutex_t) % 64];
};

struct router {
    unsigned n_workers;            /* immutable */
    unsigned leases_per_node;      /* immutable */
    struct router_worker *workers; /* owns; the array is immutable */
    pthread_mutex_t changing;      /* before the workers' locks */
    struct lease_table leases;     /* tables */
    struct htab by_remote;         /* tables: nodes by their address */
    struct htab blocks;            /* changing; owns: router_block by pair */
    struct list networks;          /* changing; owns */
    uint64_t scans;                /* changing; counts searches for an addressee */
    uint64_t claims;               /* changing; counts calls of router_node_set_address() */
    uint32_t next_id;              /* changing; for the next node */
    nsec_t sampled_at;             /* changing; when the last sample was taken; 0: never */
};

/** router__begin_write() - with `changing` held: keep all workers out of the tables. */
static inline void router__begin_write(struct router *r)
{
    for (unsigned i = 0; i < r->n_workers; i++)
        (void)pthread_mutex_lock(&r->workers[i].lock);
}

static inline void router__end_write(struct router *r)
{
    for (unsigned i = r->n_workers; i > 0; i--)
        (void)pthread_mutex_unlock(&r->workers[i - 1].lock);
}

/** router__node_of() - the node whose leases these are. */
struct router_node *router__node_of(struct lease_party *party);

/**
 * router__sender() - who speaks from an address
 * @before:	UINT64_MAX for the node that was heard there last; the `claimed` of one that this
 *		gave for the one that was heard there before it
 *
 * Where several can be meant, the last one heard is the likeliest.
 *
 * Under a worker's lock or `changing`. NULL at the end, after at most ROUTER_SHARED_MAX.
 */
struct router_node *router__sender(
    const struct router *r, const struct endpoint *from, uint64_t before);

/** router__find_block() - what keeps them apart; NULL: nothing. Under `changing`. */
struct router_block *router__find_block(
    const struct router *r, const struct router_node *a, const struct router_node *b);

/** router__pass() - the verdict: not the relay's. */
static inline struct router_verdict router__pass(void)
{
    return (struct router_verdict){.action = ROUTER_ACTION_PASS};
}

/** router__drop() - the verdict: it ends here, because of @reason. */
static inline struct router_verdict router__drop(enum drop_reason reason)
{
    return (struct router_verdict){.action = ROUTER_ACTION_DROP, .reason = reason};
}

/** router__forward() - to where @node is; a drop while that is not known. */
static inline struct router_verdict router__forward(const struct router_node *node)
{
    if (!node->has_address)
        return router__drop(DROP_RELAY_NO_ADDRESS);
    return (struct router_verdict){
        .action = ROUTER_ACTION_FORWARD, .to = node->remote, .local = node->local};
}

/** router__unclaimed() - the verdict for an index that @in's source holds no lease of. */
static inline struct router_verdict router__unclaimed(
    const struct router_arrival *in, bool is_sender_known, uint32_t index)
{
    if (in->is_local(in->ctx, index))
        return router__pass();
    return router__drop(is_sender_known ? DROP_RELAY_NO_LEASE : DROP_RELAY_UNKNOWN_SENDER);
}

/** router__on_initiation(), router__on_response() - of the right size; take `changing`. */
struct router_verdict router__on_initiation(
    struct router *r, const struct router_arrival *in, const struct wg_initiation *msg);
struct router_verdict router__on_response(
    struct router *r, const struct router_arrival *in, const struct wg_response *msg);
