/*
 * stun_client.h - asking STUN servers where this node's packets come from.
 *
 * A few servers, each asked from the very port that WireGuard uses: at once,
 * soon again while it does not answer, and now and then for ever, because a NAT
 * may move us. Two servers that see two different ports tell that the NAT maps
 * by destination (RFC 4787 section 4.1); that is for whoever reads the answers.
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

/** What is known from one server. */
struct stun_view {
    struct endpoint server;
    struct endpoint mapped; /* as it saw us last; none: it has not answered */
    nsec_t heard_at;        /* 0: never */
    nsec_t rtt;             /* of the last answer */
    /* Private. */
    struct stun_transaction id; /* of the request that waits for an answer */
    nsec_t sent_at;             /* 0: none waits */
    nsec_t due;                 /* of the next request */
    unsigned n_tries;           /* since it was last heard */
};

struct stun_client {
    struct stun_view views[STUN_CLIENT_SERVERS_MAX];
    unsigned n_views;
};

#define STUN_CLIENT_NULL                                                                           \
    {                                                                                              \
        0                                                                                          \
    }

/** stun_client_set_servers() - those that stay keep what they have told. At most ..._MAX count. */
void stun_client_set_servers(
    struct stun_client *sc, const struct endpoint *servers, unsigned n_servers, nsec_t now);

/** stun_client_restart() - ask all of them now. */
void stun_client_restart(struct stun_client *sc, nsec_t now);

/** stun_client_forget() - the network has changed: what they told is void; ask all of them now. */
void stun_client_forget(struct stun_client *sc, nsec_t now);

/**
 * stun_client_next() - the next request that is due
 * @ret_to:	where to send @out
 *
 * Return: false when none is due.
 */
bool stun_client_next(struct stun_client *sc, nsec_t now, const struct rng *rng,
    struct endpoint *ret_to, uint8_t out[static STUN_REQUEST_SIZE]);

/** stun_client_due() - when one is; NSEC_NEVER without servers. */
nsec_t stun_client_due(const struct stun_client *sc);

/**
 * stun_client_take() - an answer
 * @msg:	@len bytes, any content
 * @from:	its source: only who was asked is believed
 * @at:		when it arrived
 *
 * Return: lends what is known from that server now; NULL when it is no answer to us.
 */
const struct stun_view *stun_client_take(
    struct stun_client *sc, const uint8_t *msg, size_t len, const struct endpoint *from, nsec_t at);
