/*
 * port_state.h - the struct behind port.h: what the threads of a port share, for dataplane/ only.
 *
 * Each member is a part with a file of its own, which alone writes it; a comment behind a member
 * names the file where that is not its type's. Parts of which only one file needs the layout are
 * pointers.
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
#include <stdint.h>

#include "base/drop.h"
#include "base/list.h"
#include "base/rng.h"
#include "crypto/aead.h"
#include "noise/tai64n.h"
#include "os/thread.h"
#include "shared/frame_client.h"
#include "shared/handshake_queue.h"
#include "shared/index.h"
#include "shared/load.h"
#include "shared/loop.h"
#include "shared/poll_list.h"
#include "shared/port_options.h"
#include "shared/port_sockets.h"
#include "shared/port_tx.h"
#include "shared/refusals.h"
#include "shared/retire.h"
#include "shared/rx_waiter.h"

struct handshake_limits;
struct rx_worker;
struct sender;
struct source_addr;

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
    struct loop loop;         /* of the control thread */
    _Atomic bool is_stopping; /* port.c: all threads end */

    /* Changed with the gates closed, read inside them. */
    struct frame_client frames;
    struct port_filter filter; /* port_gates.c */
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
    pthread_t control_thread;        /* control.c */
};

/** port_state_sockets() - what others than the rx workers send with. Inside a gate or under the
 * lock. */
static inline const struct udp_sockets *port_state_sockets(const struct port *p)
{
    return &p->waiters[0].sockets;
}
