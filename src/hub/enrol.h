/*
 * enrol.h - lets a machine with a token into a network.
 *
 * One commit takes a use from the token, the next host number from the network
 * and writes the node; so a hub that dies at any moment has done all of it or
 * nothing. A machine whose answer was lost asks again with the same key and
 * secret and gets the same node, without another use, if it proves that it has
 * the key's own secret: a public key is no secret, and a token may be shared.
 *
 * A stock WireGuard, which has no agent that could bring a token, an
 * administrator may also add by its public key.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include "base/clock.h"
#include "base/rng.h"
#include "hub/limiter.h"
#include "hub/request.h"
#include "hub/model.h"
#include "wire/member_proof.h"

struct err;

/** How long an ephemeral node may be away before it is removed. */
#define ENROL_EPHEMERAL_SECONDS 600

/** The "engine" of a machine without an agent. */
#define ENROL_ENGINE_STOCK "stock"

/* Outcomes. */
#define ENROL_E_DENIED  1 /* the secret is unknown, used up or expired; or the proof is wrong */
#define ENROL_E_TAKEN   2 /* another machine has the name, key or route, or this one another name */
#define ENROL_E_GONE    3 /* the token's network does not exist any more */
#define ENROL_E_FULL    4 /* no address is left */
#define ENROL_E_TOO_OFT 5 /* too many failures from this address */

/** What was sent to prove that who asks has the secret of the key. */
struct enrol_proof {
    struct member_proof proof; /* its stamp is not looked at: TLS lets nobody repeat it */
    struct member_proof_request request;
};

struct enrol {
    struct model *model;    /* pins */
    struct rng rng;         /* for names and secrets */
    struct limiter limiter; /* of failures, by source */
    uint64_t n_enrolled;    /* since the start */
    uint64_t n_refused;     /* likewise */
};

void enrol_init(struct enrol *en, struct model *model, const struct rng *rng);

/** enrol_deinit() - idempotent. */
void enrol_deinit(struct enrol *en);

/**
 * enrol_node() - take in a machine
 * @proof:	NULL: none was sent. A machine that has enrolled before is told nothing without
 * @from:	where it asks from; none: not limited
 * @wall_s:	seconds since 1970, for the token's expiry
 *
 * Return: 0; ENROL_E_* with words; or negative errno with words (-EINVAL: labels).
 */
int enrol_node(struct enrol *en, const struct enrol_request *rq, const struct enrol_proof *proof,
    const struct ip_addr *from, nsec_t now, int64_t wall_s, struct model_node **ret, struct err *e);

/**
 * enrol_add() - take in a stock WireGuard because an administrator says so
 *
 * Return: 0; ENROL_E_TAKEN or ENROL_E_FULL with words; or negative errno with words (-EINVAL: the
 * name is reserved, the key is the hub's or nobody's, labels, a route that nobody may have).
 */
int enrol_add(struct enrol *en, struct model_network *net, const struct node_request *rq,
    nsec_t now, struct model_node **ret, struct err *e);

/**
 * enrol_new_secret() - make and store what admits to @net
 * @by:		who makes it
 * @ret:	wipe after use; the hub keeps its hash only
 *
 * Return: 0 or negative errno with words.
 */
int enrol_new_secret(struct enrol *en, struct model_network *net, const struct token_request *rq,
    const char *by, nsec_t now, int64_t wall_s, struct token_secret *ret, struct err *e);
