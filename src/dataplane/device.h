/*
 * device.h - one WireGuard interface: a TUN device, a private key, its peers.
 *
 * A device belongs to a port (port.h), which carries its datagrams and whose
 * control thread runs its handshakes and timers. It is configured through the
 * text protocol of uapi.h, from within the process or over a unix socket.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "noise/choice.h"
#include "net/offload.h"

struct device;
struct err;
struct port;
struct udp_path;
struct x25519_public;

/** What device_new() needs to know; zeroes are good defaults, but @tun_fd must be set. */
struct device_options {
    const char *name;   /* of the interface; "%d" in it becomes a free number */
    int tun_fd;         /* taken: an open TUN descriptor instead of a new interface; -1: none */
    unsigned mtu;       /* bytes; 0: 1420 */
    unsigned n_workers; /* sending threads; 0: 1 */
    struct noise_choice cipher; /* of peers about whom nothing else is said */
    /* An interface of that name was handed over (uapi.h): it keeps its MTU, and goes with us. */
    bool takes_over;
};

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

/**
 * device_new() - create the interface and attach the device to its port
 * @port:	pinned
 *
 * The device has no key and no peers. Sending threads start with the port, or
 * at once if it runs already.
 *
 * Return: 0 or negative errno with words.
 */
int device_new(
    struct device **ret, struct port *port, const struct device_options *opt, struct err *e);

/** device_free() - detach, end the sending threads, wipe the keys, delete the interface. */
struct device *device_free(struct device *d);

/** device_offload_why() - why an offload is not in use; NULL: it is. Any thread. */
const char *device_offload_why(const struct device *d, enum offload which);

/** device_name() - the interface's name when it was created. */
const char *device_name(const struct device *d);

/**
 * What a device hands to its interface. All zeroes: everything that its peers may send. A hub
 * limits it, so that nothing of one member ever reaches another through the hub's own sessions,
 * whatever the machine's forwarding and routes are.
 */
struct device_accept {
    struct {
        struct ip_addr to; /* packets for this address; both none: for anybody */
        uint16_t tcp_port; /* and of them only TCP to this port; 0: all */
    } at[2];
};

/** device_set_accept() - from now on. */
void device_set_accept(struct device *d, const struct device_accept *accept);

/** device_set_listener() - before port_start(), or from a call that holds no other lock. */
void device_set_listener(struct device *d, const struct device_listener *listener);
