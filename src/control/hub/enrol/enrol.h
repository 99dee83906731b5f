/*
 * enrol.h - lets a machine with a token into a network.
 *
 * One commit takes a use from the token, the next host number from the network
 * and writes the node; so a hub that dies at any moment has done all of it or
 * nothing. A machine whose answer was lost asks again with the same key and
 * secret and gets the same node, without another use, if it proves that it has
 * the key's own secret: a public key is no secret, and a token may be shared.
 *
 * Theory of operation. A machine is judged when it asks; who is refused hears so at once. The
 * others wait until the enrolments that are on their way to the store are there, are judged again
 * by what the model says then, and go together: all that have gathered in one commit. So however
 * slow the disk is, each batch knows what the one before has taken, and names, addresses and uses
 * are given once. When others have changed what was looked at, the batch is judged once more.
 *
 * A stock WireGuard, which has no agent that could bring a token, an
 * administrator may also add by its public key.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include "base/clock.h"
#include "base/rate.h"
#include "base/secret.h"
#include "hub/audit/audit.h"
#include "hub/enrol/admin_tokens.h"
#include "hub/model/model.h"
#include "hub/record/request.h"
#include "wire/member_proof.h"

/** How long an ephemeral node may be away before it is removed. */
#define ENROL_EPHEMERAL_SECONDS 600

/** Most join tokens that are kept for one network. A token may have many uses, and goes by itself
 * when its time is over. */
#define ENROL_TOKENS_MAX 16384

/* Outcomes. */
#define ENROL_E_DENIED  1 /* the secret is unknown, used up or expired; or the proof is wrong */
#define ENROL_E_TAKEN   2 /* another machine has the name, key or route, or this one another name */
#define ENROL_E_GONE    3 /* the token's network does not exist any more */
#define ENROL_E_FULL    4 /* no address is left */
#define ENROL_E_TOO_OFT 5 /* too many failures from this address */
#define ENROL_E_TOKENS  6 /* the network has ENROL_TOKENS_MAX join tokens */

/** Machines that wait for the store; no more at once. */
#define ENROL_WAITING_MAX 1024

/** What was sent to prove that who asks has the secret of the key. */
struct enrol_proof {
    struct member_proof proof; /* its stamp is not looked at: TLS lets nobody repeat it */
    struct member_proof_request request;
};

/** The outcome of an enrolment. @r: as enrol_node() returns it; @node: lent, NULL if @r is not 0.
 */
typedef void (*enrol_done_fn)(void *ctx, int r, const struct model_node *node, const struct err *e);

struct enrol {
    struct model *model;       /* pins */
    struct list waiting;       /* of struct enrolment, oldest first */
    struct list coming;        /* of struct enrolment: the batch that is on its way to the store */
    size_t n_waiting;          /* in both lists */
    nsec_t now;                /* of the last request */
    struct rng rng;            /* for names and secrets */
    struct ratelimit failures; /* by source: see GUESSES_BURST */
    uint64_t n_enrolled;       /* since the start */
    uint64_t n_refused;        /* likewise */
};

/** enrol_init() - no machine waits yet. @rng: copied. */
void enrol_init(struct enrol *en, struct model *model, const struct rng *rng);

/** enrol_deinit() - idempotent. */
void enrol_deinit(struct enrol *en);

/**
 * enrol_node() - take in a machine
 * @rq:		copied, but for its secret
 * @proof:	NULL: none was sent. A machine that has enrolled before is told nothing without
 * @by:		who is said in the audit log to ask, and from where; nowhere: not limited
 * @wall_s:	seconds since 1970, for the token's expiry
 * @ret:	the node, lent, when it is there already and @done will not be called; else NULL
 *
 * Return: 0; ENROL_E_* with words; or negative errno with words (-EINVAL: labels; -EAGAIN: too
 * many wait). When it is 0 and @ret is NULL, @done is called later, with the same outcomes.
 */
int enrol_node(struct enrol *en, const struct enrol_request *rq, const struct enrol_proof *proof,
    const struct audit_by *by, nsec_t now, int64_t wall_s, enrol_done_fn done, void *ctx,
    const struct model_node **ret, struct err *e);

/**
 * enrol_try() - would enrol_node() take the machine in? Nothing changes but the count of failures
 * @ret:	the network that it would enter, lent
 *
 * Return: as enrol_node().
 */
int enrol_try(struct enrol *en, const struct enrol_request *rq, const struct enrol_proof *proof,
    const struct audit_by *by, nsec_t now, int64_t wall_s, const struct model_network **ret,
    struct err *e);

/**
 * enrol_give_back() - the record of a token, of which a machine has made no use after all
 * @ret:	as enrol_new_secret() makes one; @ret->value NULL: there is nothing to be given back
 */
void enrol_give_back(const struct model_token *t, int64_t wall_s, struct token_write *ret);

/**
 * enrol_add() - take in a stock WireGuard because an administrator says so
 * @by:		the administrator, for the audit log
 * @done:	called later, once: 0; ENROL_E_TAKEN, ENROL_E_FULL or ENROL_E_GONE with words; or
 *		negative errno with words (-EINVAL: the name is reserved, the key is the hub's or
 *		nobody's, labels, a route that nobody may have)
 *
 * Return: 0; or one of those, and @done is not called.
 */
int enrol_add(struct enrol *en, const struct model_network *net, const struct enrol_request *rq,
    const struct audit_by *by, nsec_t now, enrol_done_fn done, void *ctx, struct err *e);

/**
 * enrol_new_secret() - make a join token for @net; the caller commits it
 * @by:		who makes it
 * @ret_secret:	wipe after use; the hub keeps its hash only
 *
 * Return: 0; ENROL_E_TOKENS with words; or negative errno with words.
 */
int enrol_new_secret(struct enrol *en, const struct model_network *net,
    const struct token_request *rq, const char *by, int64_t wall_s, struct token_write *ret,
    struct token_secret *ret_secret, struct err *e);
