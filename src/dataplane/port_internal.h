/*
 * port_internal.h - the structs behind port.h and device.h, for dataplane/ only.
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

#include "base/heap.h"
#include "base/htab.h"
#include "base/list.h"
#include "os/log.h"
#include "base/rate.h"
#include "base/ring.h"
#include "base/rng.h"
#include "dataplane/addressee.h"
#include "dataplane/device.h"
#include "dataplane/gro.h"
#include "dataplane/index.h"
#include "dataplane/loop.h"
#include "dataplane/frame_socket.h"
#include "dataplane/port.h"
#include "dataplane/retire.h"
#include "dataplane/sender.h"
#include "dataplane/source_addr.h"
#include "noise/choice.h"
#include "noise/cookie.h"
#include "noise/local.h"
#include "noise/ratelimit.h"
#include "allowedips/allowedips.h"
#include "os/sched_batch.h"
#include "net/link_watch.h"
#include "os/thread.h"
#include "net/tun.h"
#include "net/udp_batch.h"

struct relay;
struct router_network;
struct tx_worker;

/** Handshake messages that wait for the control thread, per rx worker; of them at most half from
 * senders that have not proved their address: strangers cannot keep honest peers out. */
#define HANDSHAKES_PER_WORKER   512
#define HANDSHAKES_UNPROVEN_MAX (HANDSHAKES_PER_WORKER / 2)

/** A handshake message on its way from an rx worker to the control thread. */
struct handshake_msg {
    struct device *device; /* pins: whose mac1 it carries; NULL for a cookie reply */
    struct udp_path path;  /* where it came from */
    uint16_t len;          /* bytes in msg */
    bool is_proven;        /* under load: its mac2 shows that the sender is where it says */
    _Atomic bool is_busy;  /* set by the worker, cleared by control when done */
    uint8_t msg[sizeof(struct wg_initiation)];
};

/** What a filter sends with; see port.h. Lives in its rx worker. */
struct port_tx {
    struct port *port;     /* pins */
    struct udp_outbox out; /* sent at the end of the batch */
    struct drops *drops;   /* borrows: the worker's */
    nsec_t now;            /* of this batch */
    unsigned worker;       /* which */
    uint8_t *room;         /* owns: for answers, PORT_TX_ROOM bytes */
    size_t room_used;      /* in this batch */
};

#define PORT_TX_ROOM 16384

/** A descriptor that an rx worker waits for beside its sockets, while its owner wants that. */
struct rx_event {
    int fd;                /* borrows */
    void (*fn)(void *ctx); /* runs on the worker's thread, inside the port's gate */
    void *ctx;             /* pins */
    struct list siblings;  /* in the worker's events */
    uint64_t number;       /* among all that the worker ever had */
};

/** A receiving thread. All but the atomics belongs to it. */
struct rx_worker {
    struct port *port;          /* pins */
    unsigned i;                 /* its part of the port's gate */
    pthread_t thread;           /* valid while the port runs */
    int wake_fd;                /* owns: eventfd */
    int epoll_fd;               /* owns: of wake_fd, the sockets, and events; see rx_add() */
    _Atomic uint32_t turn;      /* of its loop, by itself; who changes sockets waits for the next */
    struct udp_sockets sockets; /* owns; changed with the gates closed. The kernel spreads
                                   senders over the workers' sockets */
    struct udp_inbox inbox;
    struct port_tx tx;
    struct aead_lane *lane;           /* owns */
    struct gro gro;                   /* what is to be written to gro_device */
    struct device *gro_device;        /* borrows, for the batch; NULL: nothing collected */
    struct addressee addressee;       /* which device a handshake message is for */
    struct handshake_msg *handshakes; /* owns HANDSHAKES_PER_WORKER, used in turn */
    unsigned next_handshake;
    bool has_handshakes;      /* in this batch: control is to be woken */
    struct rate frame_rate;   /* of frames for the agent */
    struct list events;       /* changed with the gates closed */
    uint64_t n_events;        /* that it ever had */
    struct sched_batch batch; /* while the port is quiet */
    struct drops drops;
};

struct port {
    /* Immutable after port_new(), or set before port_start(). */
    struct port_options opt;
    const struct aead_algorithm *aead[AEAD_CIPHER_N]; /* back ends for data messages */
    struct rng rng;
    struct rx_worker *workers; /* owns opt.n_workers */
    struct gate gate;          /* rx workers */

    /* Any thread. */
    struct mpsc_ring handshakes;   /* rx workers to control */
    _Atomic unsigned n_handshakes; /* in it */
    _Atomic(struct peer *) told;   /* a stack of peers: see peer_tell() */
    _Atomic bool is_stopping;      /* threads end */
    _Atomic bool refuses_gso;      /* a segmented send failed for its being one */
    _Atomic bool has_path_client;  /* somebody finds paths: see frame_socket.h */
    _Atomic nsec_t busy_at;        /* when a worker last had much at once: see port__is_quiet() */

    /* Changed with the gates closed, read inside them. */
    int path_fd;           /* borrows: the frame socket's client; -1: none */
    port_filter_fn filter; /* NULL: none */
    void *filter_ctx;      /* pins */
    struct list devices;
    struct index_table index; /* find inside a gate, the rest under the lock */

    /* Guarded by lock. */
    pthread_mutex_t lock;
    bool is_running;      /* threads are there: devices that come later start theirs */
    bool is_controlled;   /* the control thread is there */
    unsigned n_started;   /* rx workers that are there */
    uint16_t listen_port; /* to bind, or bound; 0: not chosen yet */
    uint32_t fwmark;
    unsigned n_up;                      /* devices whose link is up */
    struct heap timers;                 /* of peers */
    size_t n_peers;                     /* of all devices */
    nsec_t expire_due;                  /* of relays' leases; NSEC_NEVER: there is no relay */
    nsec_t bind_due;                    /* when the port is tried again; NSEC_NEVER: it was had */
    struct retired retired;             /* keypairs that go */
    struct ratelimit ratelimit;         /* of handshakes */
    struct source_addr source;          /* of routes that change */
    struct log_limit mismatch_log;      /* of peers that want another cipher */
    _Atomic nsec_t loaded_until;        /* cookies are asked for until then; rx reads it */
    struct sender sender;               /* the control thread's own */
    struct drops drops;                 /* of what runs under the lock */
    uint64_t past_drops[DROP_REASON_N]; /* of devices that are gone */

    /* Control thread. */
    pthread_t control_thread;
    struct loop loop; /* loop_wake(): any thread */
};

struct device {
    /* Immutable after device_new(). */
    struct port *port;          /* pins */
    struct noise_choice cipher; /* of peers about whom nothing else is said */
    struct offloads offloads;
    struct tun tun;
    char name[IFNAMSIZ];
    struct tx_worker *workers; /* owns tun_readers() */
    struct gate gate;          /* tx workers */

    /* Any thread. */
    _Atomic unsigned mtu;
    _Atomic bool is_stopping;  /* its tx workers end */
    _Atomic bool refuses_tso;  /* the kernel refused a merged TCP frame: merge no more */
    _Atomic bool refuses_uso;  /* the same, UDP */
    _Atomic bool has_vanished; /* a tx worker could not read any more */
    _Atomic uint64_t n_lent;   /* times that a tx worker lent its queue: see tx.c */

    /* Changed with the gates closed, read inside them. */
    struct list siblings; /* in port->devices */
    struct allowedips allowed;
    struct cookie_checker checker;
    struct device_accept accept;

    /* Guarded by port->lock. */
    struct noise_local local;
    struct htab by_key; /* peers */
    struct list peers;  /* oldest first */
    size_t n_peers;
    struct link_watch link;
    struct loop_event link_event;
    unsigned fitted_mtu; /* that the interface's superpackets are cut for; 0: not yet */
    bool has_new_mtus;   /* of peers, since */
    bool is_up;          /* link up: messages are sent and taken */
    bool is_gone;        /* link deleted */
    struct device_listener listener;
    struct relay *relay;                  /* owns; NULL: it does not relay */
    struct router_network *relay_network; /* lent by its router */
    nsec_t relay_due;                     /* give back what has expired; NSEC_NEVER: nothing does */
};

/** port__close_gates() - nobody is in port->gate nor in @d's gate (NULL: any device's). */
void port__close_gates(struct port *p, struct device *d);
void port__open_gates(struct port *p, struct device *d);

/** port__sockets() - what others than the rx workers send with. Inside a gate or under the lock. */
static inline const struct udp_sockets *port__sockets(const struct port *p)
{
    return &p->workers[0].sockets;
}

/** port__open_sockets() - bind, with the gates closed around the change. Under the lock. */
int port__open_sockets(struct port *p, struct err *e);
void port__close_sockets(struct port *p);

/** port__set_listen_port() - rebind if open. 0 or negative errno; on failure nothing changes. */
int port__set_listen_port(struct port *p, uint16_t listen_port, struct err *e);
int port__set_fwmark(struct port *p, uint32_t fwmark);

/** port__set_filter() - port_set_filter() under the lock. */
void port__set_filter(struct port *p, port_filter_fn fn, void *ctx);

/** port__drops() - port_drops() under the lock. */
void port__drops(struct port *p, uint64_t sum[static DROP_REASON_N]);

/** Packets at once that need no second thread. */
#define QUIET_PACKETS 4

/** After this long without more than that at once a port is quiet again. */
#define QUIET_AFTER (20 * NSEC_PER_MSEC)

/** port__count_load() - a worker handled @n packets in one turn. Any thread. */
static inline void port__count_load(struct port *p, unsigned n, nsec_t now)
{
    /* Not at every turn: all workers share the cache line. */
    if (n > QUIET_PACKETS &&
        now - atomic_load_explicit(&p->busy_at, memory_order_relaxed) > NSEC_PER_MSEC)
        atomic_store_explicit(&p->busy_at, now, memory_order_relaxed);
}

/** port__is_quiet() - one thread for both directions does, and saves wake-ups: see tx.c. */
static inline bool port__is_quiet(const struct port *p, nsec_t now)
{
    return now - atomic_load_explicit(&p->busy_at, memory_order_relaxed) > QUIET_AFTER;
}

/** rx_start() - an rx worker's thread. 0 or negative errno. */
int rx_start(struct rx_worker *w, int cpu);
int rx_init(struct rx_worker *w, struct port *p, unsigned i);
void rx_deinit(struct rx_worker *w);

/** rx_watch_sockets() - have the worker wake up for these; closing them ends it. 0 or -errno. */
int rx_watch_sockets(struct rx_worker *w, const struct udp_sockets *s);

/**
 * rx_add() - know an event, but do not wake up for it yet; pins @ev, whose first three are set
 *
 * Return: 0 or negative errno.
 */
int rx_add(struct rx_worker *w, struct rx_event *ev);

/** rx_remove() - before its descriptor is closed. */
void rx_remove(struct rx_worker *w, struct rx_event *ev);

/** rx_wake_for() - wake up for it from now on, or no more. Any thread. */
void rx_wake_for(struct rx_worker *w, const struct rx_event *ev, bool on);

/** tx_init() - the tx workers of a device; tx_start() begins, tx_stop() ends them, both under the
 * lock. */
int tx_init(struct device *d);
int tx_start(struct device *d);
void tx_stop(struct device *d);
void tx_deinit(struct device *d);
void tx_drops(const struct device *d, uint64_t sum[static DROP_REASON_N]);
