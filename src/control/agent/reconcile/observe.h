/*
 * observe.h - what is seen of each peer over time.
 *
 * An engine says when a peer's last handshake was by the wall clock, which may
 * jump. So the age is counted from when a new handshake was first seen here, by
 * the monotonic clock; only for those that were there before we looked is the
 * wall clock believed, and never beyond the start.
 *
 * Pure: facts and times in, answers out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "crypto/x25519.h"
#include "mesh/config/wg_config.h"
#include "os/log.h"
#include "path/loss.h"
#include "relay/line.h"

struct metrics;
struct snapshot;

/* ---- peers over time ------------------------------------------------------------------------- */

/**
 * Sending into the void for so long means that the endpoint may be wrong: a
 * peer that is there answers data within 10 s, with an empty packet if need be
 * (whitepaper 6.5), and a hub that is there sends a heartbeat every 10 s.
 */
#define OBSERVE_SILENCE_MAX (20 * NSEC_PER_SEC)

/** So much later an answer that is due has failed to come, even if one keepalive was lost. */
#define OBSERVE_DEAF_AFTER (25 * NSEC_PER_SEC)

/** WireGuard renews a session with the first packet that is sent this long after its handshake. */
#define OBSERVE_RENEW_AFTER (120 * NSEC_PER_SEC)

/** What is known of one peer. */
struct observation {
    struct x25519_public key;
    struct x25519_public other; /* its second key, as the engine has it; none: it has one */
    struct loss_track *loss;    /* owns; of what it sends; NULL: too little has come for that */
    struct wg_facts facts;      /* the engine's last word */
    struct endpoint endpoint;   /* where its packets go; none: unknown */
    struct endpoint heard;      /* where its last authentic packet came from; none: unknown */
    uint64_t rate;              /* that what is sent to it is kept to, bit/s; 0: none */
    nsec_t handshake_at;        /* time of the last handshake, monotonic; 0: never */
    nsec_t heard_at;            /* @facts.rx_bytes last changed then, monotonic; 0: not seen */
    nsec_t unanswered_since;    /* what was sent since then has no answer, monotonic; 0: it has */
    uint64_t unanswered_from;   /* facts.tx_bytes before that; to be read beside it alone */
    nsec_t renew_since;  /* what was sent since then should have renewed the session; 0: nothing
                            was sent that should */
    uint64_t renew_from; /* facts.tx_bytes before that; to be read beside it alone */
    uint16_t keepalive;  /* s, as the engine has it; 0: none */
};

struct observe {
    struct observation *items; /* owns; sorted by key */
    size_t n;
    bool has_others;            /* some of them have a second key */
    struct traffic_rates rates; /* that all that is sent is kept to */
    bool shows_dscp;            /* datagrams carry the DSCP of the packets in them */
    uint64_t socket_drops;      /* the engine's, as of the last look */
    uint32_t merging_ifindex;   /* where datagrams of one flow arrive, merged or not; 0: unknown */
    uint32_t merging_percent;   /* of those that could be merged */
    uint32_t merging_age_s;     /* since the engine has seen that */
    bool has_line;              /* it relays for others, and it is known what its line carries: */
    struct relay_line_report line;
    /* Since the last look it is more or less full, or asks others to go or lets them back. */
    bool has_new_line;
    bool has_new_merging; /* at the last look they began to arrive one by one, or no more */
    bool has_new_loss;    /* at the last look some peer's loss began, ended, or was known or
                             unknown for the first time */
};

/** observe_deinit() - release. */
void observe_deinit(struct observe *o);

/**
 * observe_take() - take in what the engine has
 * @c:		sorted
 * @now:	monotonic
 * @wall:	nanoseconds since 1970
 *
 * Peers that are gone are forgotten. One that goes on with what was its second key is the same.
 *
 * Return: 0 or -ENOMEM, and then nothing has changed.
 */
int observe_take(struct observe *o, const struct wg_config *c, nsec_t now, nsec_t wall);

/** observe_find() - by its key or its second one; lends; NULL when the engine has no such peer. */
const struct observation *observe_find(const struct observe *o, const struct x25519_public *key);

/** observation_loss() - what is lost of what it sends; unknown where the engine does not count it,
 * or too little has come. NULL: unknown. */
struct loss_rate observation_loss(const struct observation *ob, nsec_t now);

/** observe_arrives_apart() - do datagrams arrive one by one that could arrive merged, as far as the
 * engine has seen? */
bool observe_arrives_apart(const struct observe *o);

/** observe_add_metrics() - samples of what has come from each node of @s, and what has not. */
void observe_add_metrics(const struct observe *o, const struct snapshot *s, struct metrics *m);

/** observation_has_session() - may its last handshake still carry packets? NULL: no. */
bool observation_has_session(const struct observation *ob, nsec_t now);

/** observation_is_silent() - has it not answered for OBSERVE_SILENCE_MAX? */
bool observation_is_silent(const struct observation *ob, nsec_t now);

/**
 * observation_deaf_since() - since when has it not answered what WireGuard answers?
 * @least:	that long at least; else it is not said yet
 *
 * That is data, or a handshake. A keepalive is never answered, so a peer that gets nothing else may
 * well be silent.
 *
 * Return: monotonic; 0: it has answered, or nothing of that kind was sent.
 */
nsec_t observation_deaf_since(const struct observation *ob, nsec_t least, nsec_t now);

/**
 * observation_renewal_due() - for how long has traffic gone on in a session that it should have
 * renewed, ns; 0: none has
 */
nsec_t observation_renewal_due(const struct observation *ob, nsec_t now);

/** observation_age_seconds() - age of the last handshake, s; -1: there was none, or @ob is NULL. */
int64_t observation_age_seconds(const struct observation *ob, nsec_t now);

/* ---- peers at a wrong endpoint --------------------------------------------------------------- */

/*
 * Peers whose packets the engine sends to a wrong endpoint.
 *
 * WireGuard follows the source of every authentic packet. A peer without path finding that does not
 * answer where the engine has it may have been led astray by a copy of a packet. A peer whose path
 * this node finds goes nowhere by itself: if the engine has it elsewhere, somebody changed the
 * engine by hand, or the engine cannot pin an endpoint and has followed a packet from the old path
 * while both ends change to another. The same happens to a hub: its last packets may come out of a
 * stream that is left. In all cases the next pass has to tell the engine the wanted endpoint again,
 * which the owner has reconcile_resend_endpoint() do.
 *
 * Pure but for the log: facts in, one doubtful peer after the other out.
 */

/** What is the case after a poll. Borrowed; the same until peer_suspects_next() has returned false.
 */
struct peer_suspects_facts {
    const struct snapshot *snapshot;
    const struct observe *seen; /* what the engine has */
    /* May the engine have that node at @at: by its direct path, or at some relay where it is
     * relayed? */
    bool (*may_be_at)(const void *ctx, const char *node, const struct endpoint *at);
    const void *ctx; /* borrowed; for @may_be_at */
    nsec_t now;
};

/** A peer that may be at a wrong endpoint. Borrowed from the facts. */
struct peer_suspect {
    const struct observation *peer;
    const char *node; /* whose path this node finds; NULL: one that is silent where it is */
};

struct peer_suspects {
    size_t next; /* place of the walk through the facts; 0: none is on */
    struct log_limit limit;
};

/**
 * peer_suspects_next() - the next doubtful peer
 *
 * Call it until it is false; the next call then begins again. Peers whose paths this node finds
 * come first. Whether the wanted endpoint is another than the engine's is for the owner to see.
 */
bool peer_suspects_next(
    struct peer_suspects *ps, const struct peer_suspects_facts *facts, struct peer_suspect *ret);

/** peer_suspects_log() - that peer's endpoint will be told again; the log is limited. */
void peer_suspects_log(struct peer_suspects *ps, const struct peer_suspect *suspect, nsec_t now);
