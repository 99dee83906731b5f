/*
 * underlay_monitor.h - asks the members at their underlay endpoints by UDP, and remembers who
 * answers.
 *
 * Theory of operation. What is sent are path pings (docs/wire/path.md) with the UDP port of this
 * node's WireGuard as their source, through raw sockets: so they take the way, the firewalls and
 * the mappings of NATs that WireGuard's packets take. The agent at the other end answers a ping of
 * a run that it does not know, and looks once whether that way works for itself; it changes nothing
 * else. The endpoints are the candidates that the member has reported. One that answers is kept;
 * when it does not answer any more, and before one has answered, they are asked in turn.
 *
 * Load. A member is asked once a round. A round lasts as long as was asked for, and at least
 * UNDERLAY_PACE for each member, so that ten thousand members get a hundred pings a second. It
 * begins at a random member: not all nodes ask the same one first.
 *
 * Threads: one thread only, the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/secret.h"
#include "crypto/x25519.h"
#include "mesh/object/edge_status.h"
#include "net/socket/raw_udp.h"
#include "wire/path.h"

/** Shortest time between two members. */
#define UNDERLAY_PACE (10 * NSEC_PER_MSEC)

/** Most endpoints of a member that are asked. */
#define UNDERLAY_ENDPOINTS_MAX 8

/** A member that is asked. The first group is the caller's, the second the monitor's. */
struct underlay_member {
    char name[NAME_MAX_LEN + 1];
    struct x25519_public public;
    struct endpoint at[UNDERLAY_ENDPOINTS_MAX];
    unsigned n_at; /* 0: it has reported none, and is not asked */

    struct path_keys keys;    /* between it and this node */
    bool has_keys;            /* they are derived */
    unsigned asked;           /* which of @at was asked last */
    unsigned n_silent;        /* pings without an answer, one after the other */
    uint64_t transaction;     /* of the ping that is on its way */
    nsec_t sent_at;           /* monotonic; of that ping; 0: none is on its way */
    enum edge_reach reach;    /* does it answer? */
    nsec_t rtt;               /* of its last answer, ns; 0: there was none */
    struct endpoint endpoint; /* that answered last, else that was asked last */
    nsec_t heard_at;          /* monotonic; when a frame of it came in here; 0: none did */
};

struct underlay_monitor {
    struct raw_udp udp;          /* owns */
    struct x25519_secret secret; /* this node's; wiped at the end */
    struct x25519_public public; /* the key of it */
    struct rng rng;
    nsec_t period;    /* as asked for */
    uint64_t session; /* random: this run's */
    uint64_t n_sent;
    struct underlay_member *members; /* owns; sorted by name */
    size_t n;
    size_t *by_tag; /* owns; @n indices of @members, sorted by the tag of what they send */
    size_t cursor;  /* index of the member that is asked next */
    nsec_t due_at;  /* monotonic; when it is asked; NSEC_NEVER: there are no members */
};

#define UNDERLAY_MONITOR_NULL {.udp = RAW_UDP_NULL, .due_at = NSEC_NEVER}

/**
 * underlay_monitor_init() - nobody is asked yet, and no socket is open
 * @secret:	this node's; copied
 * @period:	of a round, ns
 *
 * Return: false when the node's key is one that nobody can have.
 */
bool underlay_monitor_init(struct underlay_monitor *u, const struct x25519_secret *secret,
    nsec_t period, const struct rng *rng);

/**
 * underlay_monitor_set_port() - the UDP port of this node's WireGuard, host order; 0: not known
 *
 * Opens the sockets, anew if the port was another one. Without a port nobody is asked.
 *
 * Return: 0; or negative errno with words: it takes root, or CAP_NET_RAW.
 */
int underlay_monitor_set_port(struct underlay_monitor *u, uint16_t port, struct err *e);

/** underlay_monitor_close() - close the sockets, wipe the keys; idempotent. */
void underlay_monitor_close(struct underlay_monitor *u);

/**
 * underlay_monitor_set() - replace the members
 * @members:	@n of them, on the heap, sorted by name, all but the first group zero; taken
 * @now:	monotonic
 *
 * What is known of one that was there before, with the same key, is kept. 0 or -ENOMEM, and then
 * the members are as they were.
 */
int underlay_monitor_set(
    struct underlay_monitor *u, struct underlay_member *members, size_t n, nsec_t now);

/** underlay_monitor_run() - ask every member whose turn has come. */
void underlay_monitor_run(struct underlay_monitor *u, nsec_t now);

/** underlay_monitor_take() - take in what has arrived; does not block. */
void underlay_monitor_take(struct underlay_monitor *u, nsec_t now);

/** underlay_monitor_period() - how long a round lasts, ns. */
nsec_t underlay_monitor_period(const struct underlay_monitor *u);

/** underlay_monitor_tell() - what is known of member @index, into the fields of @ret about UDP. */
void underlay_monitor_tell(
    const struct underlay_monitor *u, size_t index, struct edge_probed *ret, nsec_t now);

/* ---- for tests ------------------------------------------------------------------------------ */

/** underlay_monitor__on_ping() - the next ping to @m is being sent: judges the one before. */
void underlay_monitor__on_ping(struct underlay_member *m, uint64_t transaction, nsec_t now);

/** underlay_monitor__on_frame() - an authentic frame of @m has come from @from. */
void underlay_monitor__on_frame(
    struct underlay_member *m, const struct path_frame *f, const struct endpoint *from, nsec_t now);
