/*
 * peer.h - one peer of a device: its keys, where it is, what waits for it.
 *
 * Private to dataplane/. The protocol is in noise/; here it meets threads,
 * sockets and memory.
 *
 * A peer is found by its public key or its next one (device), by an inner address (the
 * device's allowed IPs) or through a keypair's owner (the port's index table).
 * It is unlinked with the gates closed, so data threads that found it
 * may use it until they leave the gate.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "allowedips/allowedips.h"
#include "base/clock.h"
#include "base/containers.h"
#include "net/socket/udp_batch.h"
#include "noise/cookie.h"
#include "noise/handshake.h"
#include "noise/identity.h"
#include "noise/keypair.h"
#include "noise/profile.h"
#include "noise/timers.h"
#include "packet/sched.h"
#include "shared/poll_list.h"

struct drops;
struct handshake_limits;
struct port;
struct rng;
struct source_addr;

/** Packets that wait for a session, per peer; the oldest give way. */
#define STAGED_MAX 128

/** An inner packet that waits, on the heap: this is off the hot path. */
struct staged_packet {
    struct staged_packet *next;
    uint16_t len;
    uint8_t tos; /* of the datagram that will carry it */
    uint8_t data[];
};

/** A queue of them. */
struct staged {
    struct staged_packet *first; /* owns */
    struct staged_packet *last;
    _Atomic unsigned n; /* written under the peer's lock; read without it, it is a hint */
};

/** The key that a peer goes on with. A handshake under either key is one with this peer, so its
 * sessions, blocks and all else stay where they are when it changes. */
struct peer_next {
    struct x25519_public public;
    struct htab_link by_key; /* in device->by_next_key */
    struct peer *peer;       /* pins */
    bool is_heard;           /* an authentic initiation under it has come: it is initiated to */
};

/** Under which keys a handshake is: of each end the one that it has, or its next one. */
struct key_choice {
    bool is_our_next;
    bool is_their_next;
};

struct peer {
    struct device *device; /* pins; immutable */

    /* Under the port's lock: control thread and configuration. */
    struct htab_link by_key;     /* in device->by_key */
    struct list siblings;        /* in device->peers, oldest first */
    struct noise_remote remote;  /* its identity, and what is remembered of it */
    struct peer_next *next;      /* owns; NULL: it has one key, as nearly always */
    struct handshake handshake;  /* that we have begun, under way */
    struct key_choice begun;     /* the keys of @handshake */
    struct cookie_maker cookies; /* for the messages that we send it */
    bool has_greeted_next;       /* the last of them was for its next key */
    bool has_session_under_next; /* its last handshake was under our next key */
    bool keeps_to_our_key;       /* it is not initiated to under our next key: it knows but one */
    unsigned n_unanswered;       /* initiations to it since its last session began */
    nsec_t handshake_wall;       /* when the last session began, since 1970; 0: never */
    struct arrivals arrivals;    /* under keypairs that are gone */
    uint64_t lost_most;          /* the most that peer_arrivals() has given as lost */
    uint16_t keepalive_s;        /* persistent keepalive, seconds; 0: off */
    bool is_unlinked;            /* about to be freed: nothing may be armed any more */
    bool is_relayed;    /* may be relayed to all others that may, while the device relays */
    bool follows_route; /* so does our address towards it: see below */
    struct router_node *at_router; /* lent by the router; NULL: nothing is relayed for it */

    /* Changed with the gates closed, read inside them. */
    struct allowedips_owner allowed; /* its inner addresses */

    /* Any thread; each has its own rule. */
    struct keypairs keypairs;
    struct timers timers;
    _Atomic uint64_t rx_bytes; /* of WireGuard messages, authenticated */
    _Atomic uint64_t tx_bytes; /* the same, sent */
    _Atomic uint16_t mtu;      /* inner bytes that its path carries; 0: whatever the device's is */
    struct pace pace;          /* of what is sent to it; see shared/device_state.h */
    struct poll_link poll;     /* in port->polls */
    /* Its endpoint does not follow the source of its packets, but is left to whoever finds paths,
     * while there is somebody. Both ends of an edge try and change paths together; otherwise each
     * would follow the other's packets from the old path back, and they would flap. Through a relay
     * a session goes the way that its handshake went, for no other relay knows its indices. So
     * there either end moves both, by a handshake, and none follows data. */
    _Atomic(enum pin) pin;
    _Atomic bool has_moved;     /* its endpoint changed: for the listener */
    _Atomic bool has_new_path;  /* it is answered in another way: the route is asked for */
    _Atomic bool has_confirmed; /* its keypair was confirmed: staged packets may go */

    /* Guarded by lock. Lock order: port->lock, gates, then this; a leaf but for keypairs. */
    pthread_mutex_t lock;
    struct udp_path path;  /* where its packets go; endpoint none: unknown */
    struct udp_path left;  /* the path before, when the route to it has left our address on it; the
                              endpoint is none when there is no such path */
    struct udp_path heard; /* where its last authentic packet came from; none: never */
    struct staged staged;  /* waits for a session */
};

/** peer_new() - not yet linked anywhere but in the device. Under the port's lock. 0 or -ENOMEM. */
int peer_new(struct peer **ret, struct device *d, const struct x25519_public *public);

/**
 * peer_unlink() - out of the tables of device and port; the gates are closed
 *
 * Its session, and what is relayed for it, are not ended here: device_config_remove_peer() does all
 * of that.
 */
void peer_unlink(struct peer *peer);

/**
 * peer_free() - wipe and release, after peer_unlink(), when the gates are open again
 *
 * Call peer_poll_notified() before: afterwards nobody tells of it, and port->polls does not have
 * it.
 */
void peer_free(struct peer *peer);

/** peer_find() - by public key, NULL when there is none. Under the port's lock. */
struct peer *peer_find(const struct device *d, const struct x25519_public *public);

/** peer_find_next() - by next public key, likewise. */
struct peer *peer_find_next(const struct device *d, const struct x25519_public *public);

/** peer_set_next() - it is found by @public, too, which no other peer has; all zeroes: no more. For
 * device_config.h, under the port's lock. 0 or -ENOMEM. */
int peer_set_next(struct peer *peer, const struct x25519_public *public);

/** peer_use_next() - its next key, which it has, is its key. For device_config.h, under the port's
 * lock. */
void peer_use_next(struct peer *peer);

/** peer_tell() - have the control thread call peer_poll_notified() at once. Any thread, inside a
 * gate or under the port's lock. */
void peer_tell(struct peer *peer);

/** peer_tell_soon() - have it call that within LOOP_SOON. Same threads. */
void peer_tell_soon(struct peer *peer, nsec_t now);

/** peer_copy_path() - one of its three paths, as it is now. Any thread. */
struct udp_path peer_copy_path(struct peer *peer, const struct udp_path *which);

/**
 * peer_learn_path() - an authentic message came by @path: answer there
 * @begins:	it is the first of a session under which we send from now on
 *
 * A peer that is pinned to another endpoint stays there. Any thread.
 */
void peer_learn_path(struct peer *peer, const struct udp_path *path, bool begins);

/** peer_count() - @counter, rx_bytes or tx_bytes of a peer, grows. Any thread. */
static inline void peer_count(_Atomic uint64_t *counter, uint64_t n_bytes)
{
    atomic_fetch_add_explicit(counter, n_bytes, memory_order_relaxed);
}

/** peer_retire() - retire_keypairs() of those of @peer; what came under them stays counted. Under
 * the port's lock. */
void peer_retire(struct peer *peer, const struct keypairs_evicted *evicted);

/**
 * peer_arrivals() - what has arrived of what it has sent in sessions since it was added
 *
 * As keypairs_arrivals(); no figure ever falls. Datagrams that a worker has in its hands when their
 * keypair goes, one run of them at most, are not counted. Under the port's lock.
 */
struct arrivals peer_arrivals(struct peer *peer, nsec_t now);

/**
 * peer_stage() - keep a packet until there is a session
 * @p:		@len bytes, copied
 * @tos:	of the datagram that will carry it
 * @drops:	of the calling thread
 *
 * Any thread.
 */
void peer_stage(
    struct peer *peer, const uint8_t *p, uint16_t len, uint8_t tos, struct drops *drops);

/** staged_free() - release a list of packets. */
void staged_free(struct staged_packet *list);

/** peer_drop_staged() - nobody answers. Counts in @drops. Any thread. */
void peer_drop_staged(struct peer *peer, struct drops *drops);

/*
 * What a peer needs done: what its timers ask for, and what data threads told of it.
 *
 * Threads: under the port's lock.
 */

/** peer_poll() - do what its timers ask for at @now, and arm them again. */
void peer_poll(struct peer *peer, nsec_t now);

/** peer_poll_notified() - poll the peers of which data threads have told (peer_tell()): afterwards
 * none of them is in port->polls' stack. */
void peer_poll_notified(struct port *p);

/** peer_poll_due() - poll the peers whose timers are due at @now. */
void peer_poll_due(struct port *p, nsec_t now);

/** peer_forget_session() - wipe its keys and its handshake under way. */
void peer_forget_session(struct peer *peer);

/*
 * From which of our addresses a peer is answered, when routes change.
 *
 * Theory of operation. A peer is answered from the address that its last packet came
 * to, because it, and what stands before it, may take no other. When the route to it
 * moves to another interface that address leads nowhere any more. The kernel's
 * WireGuard looks at the route of each packet; here the control thread asks for it
 * when a peer's place changes, and again for every peer after the kernel has told of a
 * change, so that no packet costs a system call:
 *
 *     the route leaves by the interface that the peer's packet came by
 *         peer->follows_route: from now on its source is held to that
 *     it leaves by another one, and follows_route was set before
 *         peer->left is that path: from packets that still come by it only the endpoint is
 *         learned, and an empty packet tells the peer at once where we are now
 *     it leaves by another one, and always did
 *         nothing is changed: a machine with several uplinks and one default route, whose
 *         answers some networks let through
 */

/** source_addr_new() - a port's part, which hears of nothing yet. 0 or -ENOMEM. */
int source_addr_new(struct source_addr **ret, struct port *p);

/** source_addr_free() - after source_addr_stop(). */
struct source_addr *source_addr_free(struct source_addr *s);

/** source_addr_start() - hear of changes in the caller's namespace. Under the lock. 0 or negative
 * errno. */
int source_addr_start(struct source_addr *s);

/** source_addr_stop() - hear of them no more: when the control thread has ended. Idempotent. */
void source_addr_stop(struct source_addr *s);

/** source_addr_tick() - check all peers, if that is due at @now. Under the lock. Returns when it
 * is due next; NSEC_NEVER: nothing is new. */
nsec_t source_addr_tick(struct source_addr *s, nsec_t now);

/* ---- handshakes on the control thread: messages in, messages out, sessions begun ------------- */

/*
 * Where the sans-I/O handshake of noise/ meets sockets and the index table. All calls are under the
 * port's lock.
 */

/** handshake_limits_new() - a port's memory of who has sent too much under load, and of what was
 * logged. 0 or -ENOMEM. */
int handshake_limits_new(struct handshake_limits **ret, const struct rng *rng);

/** handshake_limits_free() - release it. */
struct handshake_limits *handshake_limits_free(struct handshake_limits *limits);

/**
 * handshake_io_take_next() - the oldest handshake message that waits in the port's queue
 * @ret_due:	the peer whose timers are to be looked at now (peer_poll()); NULL: none's
 *
 * Its mac1 was right for its device, if it has one. Under load an initiation or a response is
 * answered with a cookie unless it carries one.
 *
 * Return: false when none waits.
 */
bool handshake_io_take_next(struct port *p, nsec_t now, struct peer **ret_due);

/** handshake_io_initiate() - create and send an initiation; tells the timers. */
void handshake_io_initiate(struct peer *peer, nsec_t now);

/** handshake_io_session_ready() - the peer can be sent to: do so, and tell the listener. */
void handshake_io_session_ready(struct peer *peer, nsec_t now);

/** handshake_io_abandon() - wipe a handshake that is under way, and release its index. */
void handshake_io_abandon(struct peer *peer);

/** handshake_io_begin_again() - a handshake that is under way, if there is one, is given up, and
 * one under the keys of now is begun. */
void handshake_io_begin_again(struct peer *peer);
