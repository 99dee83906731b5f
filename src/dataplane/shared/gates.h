/*
 * gates.h - what is changed with the gates closed: filters, keypairs that go, sockets.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "shared/port_tx.h"

struct device;
struct port;
struct keypairs_evicted;

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

#define RETIRED_NULL {.due = NSEC_NEVER}

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

/** port_sockets_close() - close them, and try no more. Idempotent. */
void port_sockets_close(struct port *p);

/** port_sockets_set_listen_port() - bind elsewhere if they are open; 0: the kernel chooses. 0 or
 * negative errno with words; on failure nothing changes. */
int port_sockets_set_listen_port(struct port *p, uint16_t listen_port, struct err *e);
