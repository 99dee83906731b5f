/*
 * port_state.h - the struct behind port.h: what the threads of a port share, for dataplane/ only.
 *
 * Each member is a part with a file of its own, which alone writes it, but for single values that
 * a configuration sets (uapi_request.c, device.c); a comment behind a member names the file where
 * that is not its type's. Parts of which only one file needs the layout are pointers.
 *
 * Lock order, outermost first:
 *
 *   port->lock        everything that configures: devices, peers, handshakes, timers
 *   port->gate        closed by whoever holds the lock; entered by rx workers
 *   device->gate      the same, entered by the device's tx workers; closed only with port->gate
 *   peer->lock        path and staged packets
 *   keypairs->lock, keypair->replay_lock   leaves
 *
 * A thread that is inside a gate never takes port->lock.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/containers.h"
#include "base/drop.h"
#include "base/secret.h"
#include "crypto/aead.h"
#include "net/tun/offload.h"
#include "noise/tai64n.h"
#include "os/thread.h"
#include "packet/merging.h"
#include "shared/frame_client.h"
#include "shared/handshake_queue.h"
#include "shared/index.h"
#include "shared/loop.h"
#include "shared/options.h"
#include "shared/poll_list.h"
#include "shared/port_tx.h"
#include "shared/rx_waiter.h"

struct device;
struct keypairs_evicted;
struct port;

/*
 * Closing the gates around what the data threads read.
 *
 * A data thread is inside its gate while it handles a batch: an rx worker inside the port's, a tx
 * worker inside its device's. Whoever closes the gates waits until all are between two batches, and
 * may then change what they read.
 *
 * Threads: under the port's lock, outside the gates.
 */

/** port_gates_close() - from here on nobody is in the port's gate, nor in @d's (NULL: any
 * device's).
 */
void port_gates_close(struct port *p, struct device *d);

/** port_gates_open() - let them in again; @d as it was given to port_gates_close(). */
void port_gates_open(struct port *p, struct device *d);

/** port_gates_set_filter() - set the port's filter with the gate closed; NULL: none. */
void port_gates_set_filter(struct port *p, port_filter_fn fn, void *ctx);

/*
 * Keypairs that no slot of a peer has any more: freed when no data thread can see them.
 *
 * They leave the index table at once. A worker that found one before may use it until it leaves
 * the port's gate, so a grace period (os/thread.h) comes before the free; many share one.
 *
 * Threads: under the port's lock.
 */

/** What a port has of them. */
struct retired {
    struct htab_link *first; /* keypairs, by link.next; owns a reference each */
    unsigned n;
    nsec_t due; /* when to free them; NSEC_NEVER: none waits */
};

#define RETIRED_NULL                                                                               \
    {                                                                                              \
        .due = NSEC_NEVER                                                                          \
    }

/** retire_keypairs() - take those of @evicted out of the index now, and free them later; takes
 * their references. */
void retire_keypairs(struct port *p, const struct keypairs_evicted *evicted);

/** retire_reclaim() - wait until nobody is in the port's gate, and free all of them. */
void retire_reclaim(struct port *p);

/*
 * The port's UDP sockets, one pair for each rx worker: opened, closed, swapped.
 *
 * The pairs themselves are in the workers' waiters (rx_waiter.h). They are changed with the gates
 * closed, so whoever is inside a gate may send with them.
 *
 * Threads: all calls are under the port's lock, outside the gates.
 */

/** What a port knows of its sockets, open or not. Guarded by the port's lock. */
struct port_sockets {
    uint16_t listen_port; /* to bind, or bound; 0: not chosen yet */
    uint32_t fwmark;      /* SO_MARK of what is sent; 0: none */
    nsec_t retry_at;      /* when a port that was taken is tried again; NSEC_NEVER: it was had */
    int failed;           /* errno of the last try, while it is tried again; 0: it was had */
    uint64_t n_dropped;   /* udp_drops() of sockets that are closed */
};

/** port_sockets_open() - bind and use them, unless they are open already. 0, or negative errno with
 * words (-EADDRINUSE: the port is taken). */
int port_sockets_open(struct port *p, struct err *e);

/**
 * port_sockets_keep_open() - the same, and where it fails, say so once and try again later
 * @who:	the interface that is named in the log
 *
 * The port may still be held by a process that is just ending, as when this one follows one that
 * was killed.
 */
void port_sockets_keep_open(struct port *p, const char *who, nsec_t now);

/** port_sockets_drops() - what the kernel has dropped of what arrived, for want of room in the
 * sockets, since the port began: see udp_drops(). */
uint64_t port_sockets_drops(const struct port *p);

/** port_sockets_close() - close them, and try no more. Idempotent. */
void port_sockets_close(struct port *p);

/** port_sockets_set_listen_port() - bind elsewhere if they are open; 0: the kernel chooses. 0 or
 * negative errno with words; on failure nothing changes. */
int port_sockets_set_listen_port(struct port *p, uint16_t listen_port, struct err *e);

/*
 * Is a port quiet enough for one thread to carry both directions?
 *
 * A port is busy for QUIET_AFTER after one of its data threads had more than QUIET_PACKETS packets
 * in one turn, and quiet otherwise. While it is quiet the tx workers lend their queues to the rx
 * workers, which saves wake-ups: see tx.c and docs/DATAPLANE.md.
 *
 * Threads: any.
 */

/** Packets in one turn that need no second thread. */
#define QUIET_PACKETS 4

/** Time without more than that in one turn, after which a port is quiet again. */
#define QUIET_AFTER (20 * NSEC_PER_MSEC)

struct load {
    _Atomic nsec_t busy_at; /* monotonic: when a worker last had many packets in one turn */
};

/** load_count() - the calling worker has handled @n packets in one turn, at @now. */
static inline void load_count(struct load *l, unsigned n, nsec_t now)
{
    /* Not at every turn: all workers share the cache line. */
    if (n > QUIET_PACKETS &&
        now - atomic_load_explicit(&l->busy_at, memory_order_relaxed) > NSEC_PER_MSEC)
        atomic_store_explicit(&l->busy_at, now, memory_order_relaxed);
}

/** load_is_quiet() - has no worker had many packets at once for QUIET_AFTER? */
static inline bool load_is_quiet(const struct load *l, nsec_t now)
{
    return now - atomic_load_explicit(&l->busy_at, memory_order_relaxed) > QUIET_AFTER;
}

/*
 * Offloads that the kernel said it had, and then refused.
 *
 * What was tested when a port or a device began (net/tun/offload.h) may fail later, for one route
 * or one driver. It is turned off then, said once, and shown with its reason (device_offload_why()
 * of device.h).
 *
 * Threads: any.
 */

/** One in each port, for OFFLOAD_UDP_GSO, and one in each device, for OFFLOAD_TSO and _USO. */
struct refusals {
    _Atomic bool has[OFFLOAD_N]; /* refused, and off from then on */
};

/** refusals_has() - was @which refused? */
static inline bool refusals_has(const struct refusals *r, enum offload which)
{
    return atomic_load(&r->has[which]);
}

/** refusals_check_sent() - after a flush of @out: has it given up segmentation? */
void refusals_check_sent(struct port *p, const struct udp_outbox *out);

/** refusals_why() - why @which is off for @d, or does nothing, although it was tested; NULL: it was
 * not refused, and the line is not known to lack it (packet/merging.h). */
const char *refusals_why(const struct device *d, enum offload which);

struct port {
    /* Immutable after port_new(). */
    struct port_options opt;
    const struct aead_algorithm *aead[AEAD_CIPHER_N]; /* back ends for data messages */
    struct rng rng;
    struct gate gate;          /* of the rx workers */
    struct rx_waiter *waiters; /* owns opt.n_workers: what each rx worker waits for */
    struct rx_worker *workers; /* owns opt.n_workers; rx.h */

    /* Any thread, by the rules of each. */
    struct handshake_queue handshakes;
    struct poll_list polls;
    struct load load;
    struct refusals refusals;
    struct merging merging;   /* of what arrives */
    struct loop loop;         /* of the control thread */
    _Atomic bool is_stopping; /* port.c: all threads end */

    /* Changed with the gates closed, read inside them. */
    struct frame_client frames;
    struct port_filter filter; /* gates.c */
    struct list devices;       /* of struct device, by siblings; device.c */
    struct index_table index;

    /* Guarded by lock. */
    pthread_mutex_t lock;
    struct port_sockets sockets;
    struct retired retired;          /* keypairs that go */
    struct source_addr *source;      /* owns: news of routes */
    struct handshake_limits *limits; /* owns: of handshake_io.c */
    struct tai64n_bounds stamps;     /* between which initiations are dated */
    struct tai64n stamped;           /* the greatest that was sent */
    struct sender *sender;           /* owns: of whoever sends under the lock */
    struct drops drops;              /* of what runs under the lock, and of devices that went */
    bool is_running;                 /* port.c: devices that come later start their threads */
    unsigned n_receiving;            /* port.c: rx workers whose threads run */
    bool is_controlled;              /* port.c: the control thread runs */
    pthread_t control_thread;        /* port.c */
};

/** port_state_sockets() - what others than the rx workers send with. Inside a gate or under the
 * lock. */
static inline const struct udp_sockets *port_state_sockets(const struct port *p)
{
    return &p->waiters[0].sockets;
}
