/*
 * coordinator.h - the coordinator's side of a measurement: it gives orders to many members at once.
 *
 * A coordinator has one connection to each member. coordinator_ask() sends an order to each of the
 * members that it is called for, and waits for all answers together, so that a round takes only as
 * long as its slowest pair.
 *
 * Threads: the caller's; coordinator_open() and coordinator_ask() block, until about their
 * deadline.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/clock.h"
#include "measure/dial.h"
#include "measure/order.h"

#define COORDINATOR_WHY_MAX 160

/** The connection to one member. */
struct coordinator_link {
    struct ip_addr address;           /* of the member, on the overlay */
    int fd;                           /* owns; -1: not connected, or the connection is lost */
    struct line_buffer in;            /* the part of an answer that has arrived */
    json_t *answer;                   /* owns; the answer to the last order; NULL: there is none */
    char why[COORDINATOR_WHY_MAX];    /* why there is no answer or no connection; "" otherwise */
    bool has_challenge;               /* it wants a proof of the order that it has refused */
    struct order_challenge challenge; /* for that */
};

/**
 * Proves a session to members that want it. @links: @n of them; for those that have a challenge
 * sets @ret, and @ret_has if it could. Return: 0; or negative errno with words, and no member gets
 * a proof.
 */
typedef int (*coordinator_prove_fn)(void *ctx, const struct order *session,
    const struct coordinator_link *links, size_t n, struct order_proof *ret, bool *ret_has,
    struct err *e);

/** How the members are reached, and how orders are proven to them. All pointers are borrowed. */
struct coordinator_hooks {
    struct ip_addr own;      /* this node's address */
    const char *socket_path; /* of this machine's measuring service, asked in place of @own; NULL:
                                this machine is asked over the network like the others */
    const char *interface;   /* connections leave by it only; NULL: as routed */
    uint16_t port;           /* on which the other members' measuring services listen */
    coordinator_prove_fn prove; /* NULL: nothing is proven, and members of this version refuse */
    void *ctx;                  /* for @prove */
};

struct coordinator {
    struct coordinator_link *items; /* owns; in the order given to coordinator_open() */
    size_t n;
    struct session_id id; /* of the session that the members are in */
};

/** coordinator_deinit() - close all connections, which ends the session everywhere. */
void coordinator_deinit(struct coordinator *c);

/**
 * coordinator_open() - connect to all members, and begin a session with them
 * @c:		not initialised yet; coordinator_deinit() is due also after a failure
 * @addresses:	@n of them, on the overlay
 * @o:		SESSION, with an id that nobody can guess. A member that wants a proof gets the
 *		order once more, with one
 * @deadline:	monotonic, for connecting; then those that are connected have as long to answer
 *
 * A member that does not take part keeps its place, with fd -1 and the reason in @why.
 *
 * Return: 0 or -ENOMEM.
 */
int coordinator_open(struct coordinator *c, const struct ip_addr *addresses, size_t n,
    const struct coordinator_hooks *hooks, const struct order *o, nsec_t deadline);

/**
 * coordinator_ask() - give orders, and wait for the answers
 * @orders:	one for each member, in the order of @items; NULL: no order for that member
 * @deadline:	monotonic
 *
 * Afterwards each member that was asked has an answer, or the reason why not in @why. A refusal is
 * no answer; its text is in @why. The connection to a member that does not answer in time is
 * closed: a late answer would otherwise be taken for the answer to the next order.
 */
void coordinator_ask(struct coordinator *c, const struct order *const orders[], nsec_t deadline);

/** coordinator_has() - is the member with index @i still connected? */
bool coordinator_has(const struct coordinator *c, size_t i);
