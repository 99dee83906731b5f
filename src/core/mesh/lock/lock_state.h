/*
 * lock_state.h - what the entries of a network's lock come to: who and what is accepted now.
 *
 * An entry is checked against the state, and then taken into it. Whether it is signed by whom it
 * has to be, and stands at its place, is lock_chain.h's matter.
 *
 * Theory of operation. All is kept in sorted arrays of pointers, so each lookup is a binary search.
 * A node is in four of them: by its name, key and two addresses, since none of these may be another
 * node's. Its routes are in one more, in which no two overlap, so a block has to be compared with
 * its neighbours only. Keys that were revoked, keys that have come in by a token, and tokens that
 * are over stay for ever: an entry which a hub shows again changes nothing.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mesh/lock/lock_entry.h"

struct err;

/** Most of each in one lock. */
#define LOCK_NODES_MAX  65536
#define LOCK_EDGES_MAX  65536
#define LOCK_RULES_MAX  65536
#define LOCK_TOKENS_MAX 65536

/** Pointers, in an order. */
struct lock_list {
    void **items; /* owns the array */
    size_t n;
    size_t cap;
};

/** A node that is accepted. */
struct lock_node {
    struct node node;   /* owns; what is signed of it */
    uint64_t signed_at; /* its key; s since 1970 */
};

struct lock_state {
    char network[NAME_MAX_LEN + 1];
    struct ip_prefix cidr4;
    struct ip_prefix cidr6;
    struct lock_settings settings;
    struct lock_signers signers;
    uint64_t version;     /* 1 for the first entry, then one more with each that renews */
    uint64_t valid_until; /* s since 1970 */
    uint64_t n_tombstones;
    struct lock_hubs hubs;   /* none: not said yet */
    struct lock_list nodes;  /* owns struct lock_node; by name */
    struct lock_list by_key; /* pins them, and the next two */
    struct lock_list by_address4;
    struct lock_list by_address6;
    struct lock_list routes;  /* owns struct lock_route; by address */
    struct lock_list edges;   /* owns struct mesh_edge; by the object's name */
    struct lock_list rules;   /* owns struct object; by name */
    struct lock_list tokens;  /* owns struct lock_token; by key; @uses is what is left */
    struct lock_list revoked; /* owns struct x25519_public */
    struct lock_list joined;  /* owns struct x25519_public: keys that tokens have let in */
};

#define LOCK_STATE_NULL                                                                            \
    {                                                                                              \
        .network = ""                                                                              \
    }

/** lock_state_deinit() - release what it owns; idempotent, safe on LOCK_STATE_NULL. */
void lock_state_deinit(struct lock_state *s);

/**
 * lock_state_check() - may the entry be the next?
 * @at:		the time that is known to have come when it was made; s since 1970
 *
 * By what it says alone. The first entry makes the state, and every other one needs it.
 *
 * Return: 0, or -EINVAL with words that name the value and what is against it.
 */
int lock_state_check(
    const struct lock_state *s, const struct lock_entry *entry, uint64_t at, struct err *e);

/**
 * lock_state_take() - the entry holds from now on
 * @entry:	checked by lock_state_check(); what its body owns moves into the state
 *
 * Return: 0; -ENOMEM: @s is good for lock_state_deinit() alone.
 */
int lock_state_take(struct lock_state *s, struct lock_entry *entry);

/** lock_state_node() - lends the node of that name; NULL: none is accepted. */
const struct lock_node *lock_state_node(const struct lock_state *s, const char *name);

/** lock_state_node_of() - lends the node for which that key is signed; NULL: there is none. */
const struct lock_node *lock_state_node_of(
    const struct lock_state *s, const struct x25519_public *key);

/** lock_state_edge() - lends what is signed of the pair, in either order; NULL: nothing is. */
const struct mesh_edge *lock_state_edge(const struct lock_state *s, const char *a, const char *b);

/** lock_state_rule() - lends the rule of that name; NULL: none is signed. */
const struct object *lock_state_rule(const struct lock_state *s, const char *name);

/** lock_state_token() - lends the token of that key, of which @uses are left; NULL: none is
 * signed. */
const struct lock_token *lock_state_token(
    const struct lock_state *s, const struct ed25519_public *key);

/** lock_state_is_revoked() - was that key a node's that is removed? */
bool lock_state_is_revoked(const struct lock_state *s, const struct x25519_public *key);
