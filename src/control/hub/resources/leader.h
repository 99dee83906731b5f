/*
 * leader.h - which of several hubs writes the resources: a Lease of coordination.k8s.io. Pure.
 *
 * The Lease is kept as client-go's leader election keeps it. Whoever holds it renews it every five
 * seconds. A hub that sees it unchanged for fifteen seconds, by its own clock, takes it over, with
 * the resourceVersion that it saw; so of several that try one succeeds. A holder that could not
 * renew it for ten seconds stops before that. The times inside are for people; nobody compares
 * them.
 *
 * The hubs choose who serves a network's jobs in another way (owner/owner.h), and this does not use
 * that one. There each network has an owner, which is found on the hub's loop from records of the
 * store, and an epoch, without which nothing of its jobs is stored. Here one hub of a namespace is
 * found on a thread that reads nothing of the store; each write is safe by the version that it
 * expects; and administrators of a cluster look for the Lease, as every controller has one.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/clock.h"

#define LEADER_LEASE "weft-hub"

#define LEADER_EVERY  (5 * NSEC_PER_SEC)
#define LEADER_LEADS  (10 * NSEC_PER_SEC)
#define LEADER_EXPIRY (15 * NSEC_PER_SEC)

#define LEADER_NAME_MAX    128
#define LEADER_VERSION_MAX 128

struct leader {
    char me[LEADER_NAME_MAX];
    char version[LEADER_VERSION_MAX]; /* of the Lease as it was seen last; "": there is none */
    char holder[LEADER_NAME_MAX];     /* likewise; "": nobody */
    json_int_t n_changes;             /* how often it went to another holder */
    nsec_t changed_at;                /* when it was first seen like that */
    nsec_t renewed_at; /* when this hub began the last renewal that succeeded; 0: none */
    nsec_t looked_at;  /* when it was looked at last; 0: never */
};

/** leader_init() - @me: this hub, like nobody else. */
void leader_init(struct leader *l, const char *me);

/** leader_due() - when to read the Lease the next time. */
nsec_t leader_due(const struct leader *l);

/** leader_saw() - the Lease was read; NULL: there is none. */
void leader_saw(struct leader *l, const json_t *lease, nsec_t now);

/** leader_may_write() - may this hub renew the Lease, or take it, as it was seen? */
bool leader_may_write(const struct leader *l, nsec_t now);

/**
 * leader_lease() - what to write then; a new reference, NULL: no memory
 * @wall:	the time, RFC 3339 with microseconds
 * @is_end:	this hub ends: give it back
 */
json_t *leader_lease(const struct leader *l, const char *wall, bool is_end);

/** leader_wrote() - it was written, as the server answers; @began_at: when that was asked. */
void leader_wrote(struct leader *l, const json_t *lease, nsec_t began_at);

/** leader_is_leading() - is this hub the one that writes? */
bool leader_is_leading(const struct leader *l, nsec_t now);
