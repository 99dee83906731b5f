/*
 * members.h - the members of this node's network that take part in a measurement.
 */
#pragma once

#include <jansson.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/parse.h"
#include "mesh/object/node_status.h"

struct str;

/** One member of the network. */
struct member {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr address; /* IPv4, on the overlay */
    bool is_up;             /* this node, or a peer that is reached in some way */
    char no_path[160];      /* why no way leads to it, as the agent says; "": one does */
    bool is_stock;          /* no agent runs there; then it was named */
    bool has_fabric;        /* it has reported its fabric */
    struct fabric_report fabric;
};

/** The members that take part, and the network that they share. */
struct members {
    struct member *items; /* owns; this node first, then the order of the agent's status */
    size_t n;             /* members in @items */
    char network[NAME_MAX_LEN + 1];  /* the network's name */
    char interface[IFNAMSIZ];        /* name of the overlay's interface on this node */
    char fault[256];                 /* why that is not as it should be; "": it is */
    char hub_away[NAME_MAX_LEN + 1]; /* the hub, if it does not answer this node's agent; else "" */
};

#define MEMBERS_NULL {0}

/**
 * members_takes_part() - does a member take part in what needs an agent there?
 * @is_stock:	it is a stock WireGuard, as of a phone or a NAS, without an agent
 * @only:	"a,b,c": the members that were named; NULL: none was
 *
 * This one predicate says who is measured, waited for and watched. A stock WireGuard is only where
 * it is named.
 */
bool members_takes_part(const char *name, bool is_stock, const char *only);

/**
 * members_next_name() - take the first name off a list "a,b,c"
 * @ret:	the name; of one that is too long only so much that it is too long
 *
 * Return: false: the list is empty.
 */
bool members_next_name(const char **list, char ret[static NAME_MAX_LEN + 2]);

/** members_peer_takes_part() - the same of a peer of the agent's status, where none was named. */
bool members_peer_takes_part(const json_t *peer);

/** members_deinit() - release what @m owns. Idempotent, and safe on MEMBERS_NULL. */
void members_deinit(struct members *m);

/**
 * members_decode() - read the members from the agent's status
 * @ret:	untouched on failure; otherwise to be released with members_deinit()
 * @status:	the agent's answer to GET /v1/status; borrowed
 * @only:	"a,b,c": only these members and this node; NULL: all members
 * @max:	how many members are allowed, this node included
 *
 * The hub is left out, because it runs no jobs, and so is who does not take part.
 *
 * Return: 0; -ENOMEM; or -EINVAL with words: the status is not well formed, a name in @only is no
 * member, or there are more than @max members or fewer than two.
 */
int members_decode(
    struct members *ret, const json_t *status, const char *only, size_t max, struct err *e);

/**
 * members_hostfile() - append a hostfile for mpirun (Open MPI): a line for each member that is up
 *
 * "10.77.0.2 slots=8": its address on the overlay, which needs no name to be resolved, and a slot
 * for each GPU that it has reported, or one.
 *
 * Return: the number of slots in all.
 */
unsigned members_hostfile(const struct members *m, struct str *out);

/*
 * Divides all pairs of n members into the fewest rounds in which nobody occurs twice.
 *
 * This is the circle method for a 1-factorisation of the complete graph. It
 * takes n - 1 rounds for an even n. For an odd n it takes n rounds, and in each
 * of them one member rests. The pairs of a round share no member, so they can be
 * measured at the same time.
 *
 * Pure.
 */

/** Two members, as indices from 0 to n - 1. */
struct rounds_pair {
    size_t a; /* less than b */
    size_t b;
};

/** rounds_count() - how many rounds there are; 0 for fewer than two members. */
size_t rounds_count(size_t n);

/** rounds_pairs() - how many pairs there are in all. */
size_t rounds_pairs(size_t n);

/**
 * rounds_get() - the pairs of one round
 * @round:	below rounds_count()
 * @ret:	the pairs; has room for @n / 2
 *
 * Return: the number of pairs.
 */
size_t rounds_get(size_t n, size_t round, struct rounds_pair *ret);

/** rounds_index() - the number of a pair, from 0 to rounds_pairs() - 1. @a < @b < @n. */
size_t rounds_index(size_t n, size_t a, size_t b);
