/*
 * lease.h - who may send with which receiver index, and to whom that goes.
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
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "base/containers.h"

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

struct lease {
    struct htab_link by_key;
    struct list by_age;        /* in the list of its state; in the store while FREE */
    struct list by_sender;     /* in from->sends */
    struct list by_receiver;   /* in to->receives */
    struct lease_party *from;  /* pins: who may send */
    struct lease_party *to;    /* pins: where it goes */
    struct lease_party *owner; /* pins: either of the two: whose limit it counts against */
    nsec_t until;              /* the first moment at which it is void */
    uint32_t index;            /* the receiver index in the messages of @from */
    enum lease_state state;
};

struct lease_table {
    struct htab by_key;         /* members: lease.by_key */
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

/** lease_expire() - remove at most @max leases whose time is over. Returns how many. */
unsigned lease_expire(struct lease_table *t, nsec_t now, unsigned max);
