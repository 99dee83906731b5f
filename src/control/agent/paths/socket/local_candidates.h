/*
 * local_candidates.h - where this node may be reached, and what its NAT does.
 *
 * Theory of operation. A candidate (RFC 8445 section 2) is an address of the
 * machine's own, one that the operator has given, one that the router has mapped,
 * or one where a STUN server has seen us. The servers are the hubs, asked from
 * WireGuard's own port (struct stun_client); what several of them see tells how the NAT
 * maps (path/behavior.h). All that an older network told is forgotten when this
 * machine's network changes.
 *
 * A NAT that gives out its ports in sequence keeps the mapping to a server that
 * was asked before, so what that server says of the newest port is old. It is
 * therefore asked once from a *fresh* socket, whose mapping is the newest.
 *
 * Pure: addresses, answers and times in; candidates, requests and a deadline out. Only the watch of
 * this machine's addresses and the asking of its router do I/O, each as it says below.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "net/gateway/port_mapping.h"
#include "net/netlink/netlink.h"
#include "path/behavior.h"
#include "path/candidate.h"
#include "path/path.h"
#include "wire/stun.h"

struct port_map;
struct snapshot;
struct uv_loop_s;

/* ---- asking STUN servers --------------------------------------------------------------------- */

/*
 * Asks STUN servers from which address this node's packets reach them.
 *
 * Each of a few servers is asked from the very port that WireGuard uses: at once,
 * soon again while it does not answer, and from time to time ever after, because a
 * NAT may give us another mapping. Two servers that see two different ports show
 * that the NAT's mapping depends on the destination (RFC 4787 section 4.1); the
 * reader of the answers concludes that (path/behavior.h).
 *
 * Pure: bytes and times in, bytes and deadlines out.
 */

#define STUN_CLIENT_SERVERS_MAX 16

/** What one server has told. */
struct stun_view {
    struct endpoint server;
    struct endpoint mapped; /* our address as it saw it last; none: it has not answered */
    nsec_t heard_at;        /* its last answer; 0: never */
    nsec_t rtt;             /* of the last answer */
    uint8_t lost;           /* bit i: the request i before the last known one was lost */
    /* For stun_client_*() alone. */
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

/* ---- this machine's addresses ---------------------------------------------------------------- */

/*
 * This machine's addresses, and word of every change of its network.
 *
 * Addresses of our own overlay and of any other WireGuard of this machine, the kernel's or one that
 * is served in user space, are left out, and so are those that cannot be a candidate.
 *
 * Threads: the loop's.
 */

/** Most host candidates: half of all, so that others have room. */
#define ADDRESSES_MAX (CANDIDATES_MAX / 2)

/** What one look has found. */
struct addresses {
    struct ip_addr items[ADDRESSES_MAX];
    unsigned n;
    uint64_t
        digest; /* of the addresses and of the interfaces of default routes; never 0 by design */
    uint64_t block_routes;          /* digest of the routes that lead to the overlay's blocks */
    struct candidate_blocks others; /* that lead into other overlays of this machine */
};

/** address_watch_fn - something has changed, perhaps one of many changes at once; from the loop. */
typedef void (*address_watch_fn)(void *ctx);

struct address_watch {
    address_watch_fn fn;
    void *ctx; /* pins */
    struct netlink nl;
    struct uv_poll_s *poll; /* owns until it is closed; NULL: not started */
    int fd;                 /* owns; -1: changes are not heard of */
};

#define ADDRESS_WATCH_NULL {.fd = -1}

/** address_watch_start() - hear of changes. @ctx: pinned. 0 or negative errno with words. */
int address_watch_start(struct address_watch *aw, struct uv_loop_s *loop, address_watch_fn fn,
    void *ctx, struct err *e);

/** address_watch_stop() - its handle closes in the loop's next turns. Idempotent, fine on NULL. */
void address_watch_stop(struct address_watch *aw);

/**
 * address_watch_look() - which addresses there are now
 * @interface:	our own, whose addresses and routes do not count; it may be absent
 * @blocks:	of the overlay; addresses in them do not count, whatever their interface is called
 *
 * Return: 0; negative errno when the kernel gave no whole answer, most often because something
 * changed meanwhile: look again a little later.
 */
int address_watch_look(struct address_watch *aw, const char *interface,
    const struct candidate_blocks *blocks, struct addresses *ret);

/* ---- the router ------------------------------------------------------------------------------ */

/*
 * Has the router forward one of its ports to WireGuard's, in a thread of its own.
 *
 * The router is asked when our port is known and when the network has changed, and
 * again after half of the lifetime that it granted, or sooner, since it may have been
 * restarted and forgotten the mapping. No caller waits for an answer, and there may
 * be none.
 *
 * Threads: port_map_*() are the loop's; the thread only asks and sleeps.
 */

/** port_map_fn - a mapping was granted, has changed, or is gone (kind PORT_MAPPING_NONE). */
typedef void (*port_map_fn)(void *ctx, const struct port_mapping *pm);

/** port_map_new() - asks for nothing yet. @ctx: pinned. 0 or negative errno with words. */
int port_map_new(
    struct port_map **ret, struct uv_loop_s *loop, port_map_fn fn, void *ctx, struct err *e);

/**
 * port_map_ask() - ask the router now, also when it has granted the port before
 * @internal_port: WireGuard's, host order; 0: ask for none from now on
 */
void port_map_ask(struct port_map *pm, uint16_t internal_port);

/**
 * port_map_free() - end the thread
 * @give_back:	remove the mapping at the router; else it lives on for its time
 *
 * With a mapping to be removed it waits until that is done, some seconds at most;
 * else the thread ends by itself after the request that it has under way. The handle
 * closes in the loop's next turns. NULL is fine. Always NULL.
 */
struct port_map *port_map_free(struct port_map *pm, bool give_back);

/** port_map_pause_after() - how long to leave the router alone after that answer. */
nsec_t port_map_pause_after(const struct port_mapping *pm);

/* ---- all of it ------------------------------------------------------------------------------- */

struct local_candidates {
    const struct endpoint *given; /* pins; by the operator, port 0: WireGuard's */
    unsigned n_given;
    struct candidate_blocks blocks;      /* of the network; nothing in them is told to anybody */
    uint16_t port;                       /* WireGuard's; 0: not known */
    struct endpoint own[CANDIDATES_MAX]; /* of the interfaces, with WireGuard's port */
    unsigned n_own;
    struct port_mapping mapping; /* what the router has granted */
    struct stun_client stun;
    struct behavior_survey survey;
    /* The newest port of a NAT that gives out its ports in sequence. */
    struct {
        struct endpoint server; /* the server that is asked for it; none: no server is asked */
        struct stun_transaction id;
        uint16_t port; /* as last seen by that server; 0: not known */
    } fresh;
    bool is_blocked;  /* no UDP gets out of this machine */
    nsec_t keepalive; /* to be told to peers; 0: not known */
};

/** A STUN request to be sent. */
struct local_request {
    struct endpoint to;
    uint8_t bytes[STUN_REQUEST_SIZE];
};

/** local_candidates_set_servers() - the STUN servers of that snapshot's hubs. */
void local_candidates_set_servers(
    struct local_candidates *lc, const struct snapshot *s, nsec_t now);

/**
 * local_candidates_set_addresses() - the network has changed, or WireGuard's port
 * @addrs:	@n of the machine's own; those that do not fit are left out
 * @port:	WireGuard's
 *
 * What the servers have told is forgotten, and they are asked again at once.
 */
void local_candidates_set_addresses(struct local_candidates *lc, const struct ip_addr *addrs,
    unsigned n, uint16_t port, nsec_t now);

/** local_candidates_on_answer() - @len bytes that may be a STUN answer. Return: it was one. */
bool local_candidates_on_answer(struct local_candidates *lc, const uint8_t *msg, size_t len,
    const struct endpoint *from, nsec_t at);

/** local_candidates_begin_fresh() - make a request for a fresh socket. False: it would be of no
 * use. */
bool local_candidates_begin_fresh(
    struct local_candidates *lc, const struct rng *rng, struct local_request *ret);

/** local_candidates_on_fresh() - what came to the fresh socket. Return: it was the answer. */
bool local_candidates_on_fresh(
    struct local_candidates *lc, const uint8_t *msg, size_t len, const struct endpoint *from);

/** local_candidates_fill() - fill in @side with what is known, all but its generation and relays.
 */
void local_candidates_fill(const struct local_candidates *lc, struct path_side *side);

/** local_candidates_outside() - at which address @server sees this node; none: not known. */
struct ip_addr local_candidates_outside(
    const struct local_candidates *lc, const struct endpoint *server);

/**
 * local_candidates_hub_rtt() - round trip to the server at @hub, as measured lately
 *
 * Of the one that answers soonest, if none is at @hub.
 *
 * Return: 0: it is not known, since the last answer is too old, or answers are lost: then nobody is
 * to leave another way for that hub.
 */
nsec_t local_candidates_hub_rtt(
    const struct local_candidates *lc, const struct endpoint *hub, nsec_t now);
