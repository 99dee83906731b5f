/*
 * stun_client.h - asks STUN servers from which address this node's packets reach them.
 *
 * Each of a few servers is asked from the very port that WireGuard uses: at once,
 * soon again while it does not answer, and from time to time ever after, because a
 * NAT may give us another mapping. Two servers that see two different ports show
 * that the NAT's mapping depends on the destination (RFC 4787 section 4.1); the
 * reader of the answers concludes that (path/behavior.h).
 *
 * Pure: bytes and times in, bytes and deadlines out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "wire/stun.h"

struct rng;

#define STUN_CLIENT_SERVERS_MAX 16

/** What one server has told. */
struct stun_view {
    struct endpoint server;
    struct endpoint mapped; /* our address as it saw it last; none: it has not answered */
    nsec_t heard_at;        /* its last answer; 0: never */
    nsec_t rtt;             /* of the last answer */
    uint8_t lost;           /* bit i: the request i before the last known one was lost */
    /* For stun_client.c alone. */
    struct stun_asked {
        struct stun_transaction id;
        nsec_t sent_at; /* 0: it does not wait for an answer */
    } asked[2];         /* the last one, and the one before */
    nsec_t due_at;      /* of the next request */
    unsigned n_tries;   /* requests since its last answer */
};

struct stun_client {
    struct stun_view views[STUN_CLIENT_SERVERS_MAX];
    unsigned n_views;
};

#define STUN_CLIENT_NULL                                                                           \
    {                                                                                              \
        0                                                                                          \
    }

/**
 * stun_client_set_servers() - ask these from now on
 * @servers:	@n_servers; those beyond STUN_CLIENT_SERVERS_MAX are left out
 *
 * What a server has told is kept if it is among them.
 */
void stun_client_set_servers(
    struct stun_client *sc, const struct endpoint *servers, unsigned n_servers, nsec_t now);

/** stun_view_is_full() - does the way to that server, or the server, lose what is sent? */
bool stun_view_is_full(const struct stun_view *v);

/** stun_client_restart() - all servers are due now; what they have told stays. */
void stun_client_restart(struct stun_client *sc, nsec_t now);

/** stun_client_forget() - all servers are due now, and what they have told is forgotten. */
void stun_client_forget(struct stun_client *sc, nsec_t now);

/**
 * stun_client_next() - the next request that is due
 * @ret_to:	where to send @out
 *
 * Return: false when none is due.
 */
bool stun_client_next(struct stun_client *sc, nsec_t now, const struct rng *rng,
    struct endpoint *ret_to, uint8_t out[static STUN_REQUEST_SIZE]);

/** stun_client_due() - when the next request is due; NSEC_NEVER without servers. */
nsec_t stun_client_due(const struct stun_client *sc);

/**
 * stun_client_take() - a message that may be an answer
 * @msg:	@len bytes, any content
 * @from:	its source: only a server that was asked is believed
 * @at:		when it arrived
 *
 * Return: lends what that server has told; NULL when it is no answer to a request of ours.
 */
const struct stun_view *stun_client_take(
    struct stun_client *sc, const uint8_t *msg, size_t len, const struct endpoint *from, nsec_t at);
