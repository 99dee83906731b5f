/*
 * device_state.h - the struct behind device.h, for dataplane/ only. Lock order: port_state.h.
 */
#pragma once

#include <net/if.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "allowedips/allowedips.h"
#include "base/containers.h"
#include "net/netlink/link_watch.h"
#include "net/tun/offload.h"
#include "net/tun/tun.h"
#include "noise/cookie.h"
#include "noise/identity.h"
#include "noise/profile.h"
#include "os/thread.h"
#include "packet/sched.h"
#include "shared/loop.h"
#include "shared/options.h"
#include "shared/port_state.h"

struct access_filter;

/*
 * The rates that an interface keeps; part of struct device.
 *
 * Written under the port's lock (port/device_config.h); read by any thread.
 */

struct device_shaping {
    _Atomic bool is_on;                   /* there is a rate: of these, or of a peer */
    _Atomic bool has_classes;             /* the queues are sorted by class */
    _Atomic bool shows_dscp;              /* datagrams have the DSCP of the packet in them */
    struct pace all;                      /* of all that the interface sends */
    struct pace classes[TRAFFIC_CLASS_N]; /* of each class */
    unsigned n_rates;                     /* that are set, of peers too; under the port's lock */
};

/** The key that a device goes on with: until it does, it answers under both. */
struct device_next {
    struct noise_local local;
    struct cookie_checker checker; /* has the secret of the device's own */
};

struct device {
    /* Immutable after device_new(). */
    struct port *port;          /* pins */
    struct noise_choice cipher; /* of peers about whom nothing else is said */
    struct offloads offloads;
    struct tun tun;
    char name[IFNAMSIZ];
    struct gate gate; /* of its tx workers */

    /* Any thread. */
    _Atomic unsigned mtu; /* bytes; written by device_config.c */
    struct refusals refusals;
    /* A device's sending threads. tx.c's. */
    struct {
        struct tx_worker *workers; /* owns tun_readers(); immutable after device_new() */
        _Atomic bool is_stopping;  /* they end */
        _Atomic bool has_vanished; /* one could not read any more: the interface may be gone */
        _Atomic uint64_t n_lent;   /* times that one lent its queues: see tx.c */
    } tx;
    struct device_shaping shaping;

    /* Changed with the gates closed, read inside them. */
    struct list siblings; /* in port->devices */
    struct allowedips allowed;
    struct cookie_checker checker;
    struct device_next *next; /* owns; NULL: it has one key, as nearly always */
    struct device_accept accept;
    struct access_filter
        *access; /* owns; the network's rules; NULL: all passes. device_access.c's */

    /* Guarded by port->lock. */
    struct noise_local local;
    bool initiates_with_next; /* where there is a next key */
    struct htab by_key;       /* of struct peer, by public key */
    struct htab by_next_key;  /* of struct peer_next, by public key */
    struct list peers;        /* of struct peer, by siblings; the oldest first */
    size_t n_peers;
    /* A device's interface as the kernel has it. device_config.c's, but uapi_request.c sets
     * @has_new_mtus, too; under the port's lock. */
    struct {
        struct link_watch watch;
        struct loop_event event; /* of watch */
        unsigned fitted_mtu;     /* that the interface's superpackets are cut for; 0: not yet */
        uint64_t fitted_rate;    /* and for this one, in bit/s; 0: none */
        bool has_new_mtus;       /* of peers, since */
        bool is_up;              /* messages are sent and taken */
        bool is_gone;            /* deleted */
    } link;
    struct device_listener listener;
    /* What a device needs to relay between its peers. relay_device.c's; under the port's lock. */
    struct {
        struct relay *relay;            /* owns; NULL: it does not relay */
        struct router_network *network; /* lent by its router */
        nsec_t due;                     /* give back what has expired; NSEC_NEVER: nothing does */
    } relay;
};
