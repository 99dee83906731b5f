/*
 * rx.h - the rx workers: threads that receive, and what each has to itself.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/drop.h"
#include "base/rate.h"
#include "net/socket/udp_batch.h"
#include "os/thread.h"
#include "packet/gro.h"
#include "packet/merging.h"
#include "shared/handshake_queue.h"
#include "shared/port_tx.h"
#include "worker/addressee.h"

/** The end of the way in: packets that become frames of an interface. */
struct frame_writer {
    struct drops *drops;   /* pins: the worker's */
    unsigned worker;       /* which one: it has a queue of each interface for its own */
    struct device *device; /* borrows, for the batch; NULL: nothing is collected */
    nsec_t now;            /* of the batch */
    struct gro gro;        /* what is to be written to @device */
};

/** A receiving thread. All of it belongs to that thread, but for the counters of @drops and of
 * @batch, which any thread may read. */
struct rx_worker {
    struct port *port;        /* pins */
    struct rx_waiter *waiter; /* pins: what it waits for, and its sockets */
    unsigned i;               /* its part of the port's gate */
    pthread_t thread;         /* valid while the port runs; port.c joins it */
    struct udp_inbox inbox;
    struct port_tx tx;                 /* of the filter; its now is the batch's */
    struct aead_lane *lane;            /* owns */
    struct frame_writer writer;        /* to the interface */
    struct addressee addressee;        /* which device a handshake message is for */
    struct handshake_slots handshakes; /* messages on their way to the control thread */
    bool has_handshakes;               /* in this batch: control is to be woken */
    struct rate frame_rate;            /* of frames for the agent */
    struct merging_window merging;     /* how datagrams arrive */
    struct sched_batch batch;          /* while the port is quiet */
    struct drops drops;
};

/** rx_init() - worker @i of @p, without its thread. 0 or negative errno; after a failure, too, it
 * is to be given to rx_deinit(). */
int rx_init(struct rx_worker *w, struct port *p, unsigned i);

/** rx_deinit() - release, when its thread has ended. Once. */
void rx_deinit(struct rx_worker *w);

/** rx_start() - its thread, which ends when the port stops. @cpu: run only there; -1: anywhere. 0
 * or negative errno. */
int rx_start(struct rx_worker *w, int cpu);
