/*
 * options.h - what a port and a device are told by whoever makes them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "net/tun/offload.h"
#include "os/thread.h"

struct udp_path;
struct x25519_public;
struct ip_info;

/* What port_new() needs to know; the port keeps a copy. */

/** Zeroes are good defaults but for @offloads. */
struct port_options {
    uint16_t listen_port;      /* 0: the kernel chooses, and the choice is kept */
    uint32_t fwmark;           /* SO_MARK of all that is sent; 0: none */
    unsigned n_workers;        /* receiving threads, 0: 1 */
    unsigned n_handshakes;     /* messages of handshakes that may wait for each of these; 0: 512,
                                  HANDSHAKES_PER_WORKER */
    struct cpulist cpus;       /* where the threads may run, in turn; empty: anywhere */
    struct offloads offloads;  /* as allowed: start from offloads_all() */
    const char *aead_backend;  /* the cipher library to use where it has the cipher; NULL: the
                                  best */
    bool sockets_follow_links; /* open only while some device's interface is up, as `weft wg`
                                  does; else from port_start() to port_stop() */
};

/* Whom a device tells what happens. */

/**
 * Told about what happens. Calls come on the port's control thread, or on that
 * of a caller who removes a peer; always with the port's lock held: they may not
 * call anything of port.h or device.h. NULL members are skipped.
 */
struct device_listener {
    /* A session with @peer is ready to send; @path is where it speaks from, and to. */
    void (*on_session)(void *ctx, const struct x25519_public *peer, const struct udp_path *path);
    /* An authenticated packet of @peer came from another place than the last one did. */
    void (*on_path)(void *ctx, const struct x25519_public *peer, const struct udp_path *path);
    /* May a session with @peer not have this receiver index, because something else that
     * shares the port takes it for its own? Then another one is drawn. */
    bool (*is_index_taken)(void *ctx, const struct x25519_public *peer, uint32_t index);
    /* The interface was deleted: nothing will move any more. */
    void (*on_gone)(void *ctx);
    /* The interface stays, for another process: let go of it, and end. NULL: it cannot be had. */
    void (*on_handed_over)(void *ctx);
    void *ctx; /* pinned: handed to the calls */
};

/*
 * Which of its peers' packets a device hands to its interface.
 *
 * A hub limits that, so that nothing of one member ever reaches another through the hub's own
 * sessions, whatever the machine's forwarding and routes are.
 */

/** All zeroes: everything that its peers may send. */
struct device_accept {
    struct {
        struct ip_addr to; /* packets for this address; both none: for anybody */
        uint16_t tcp_port; /* and of them only TCP to this port; 0: all */
    } at[2];
};

/**
 * device_accept_has() - may the packet @p go to the interface?
 * @ip:		from ip_parse() of @p
 */
bool device_accept_has(const struct device_accept *a, const uint8_t *p, const struct ip_info *ip);
