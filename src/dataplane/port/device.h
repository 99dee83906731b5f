/*
 * device.h - one WireGuard interface: a TUN device, a private key, its peers.
 *
 * A device belongs to a port (port.h), which carries its datagrams and whose
 * control thread runs its handshakes and timers. It is configured through the
 * text protocol of uapi.h, from within the process or over a unix socket.
 */
#pragma once

#include <stdbool.h>

#include "base/traffic.h"
#include "net/tun/offload.h"
#include "noise/profile.h"
#include "shared/options.h"

struct device;
struct port;

/** What device_new() needs to know; zeroes are good defaults, but @tun_fd must be set. */
struct device_options {
    const char *name;   /* of the interface; "%d" in it becomes a free number */
    int tun_fd;         /* taken: an open TUN descriptor instead of a new interface; -1: none */
    unsigned mtu;       /* bytes; 0: 1420 */
    unsigned n_workers; /* sending threads; 0: 1 */
    struct noise_choice cipher; /* of peers about whom nothing else is said */
    /* An interface of that name was handed over (uapi.h): it keeps its MTU, and goes with us. */
    bool takes_over;
    struct traffic_rates rates; /* to begin with; as traffic_rate_is_allowed() allows */
    bool shows_dscp;            /* datagrams carry the DSCP of the packets in them */
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

/** device_offload_why() - why an offload is not in use, whether it was found unusable when the
 * device began or refused later (port_state.h); NULL: it is in use. Any thread. */
const char *device_offload_why(const struct device *d, enum offload which);

/** device_name() - the interface's name when it was created. */
const char *device_name(const struct device *d);

/** device_set_accept() - limit what goes to the interface, from now on. */
void device_set_accept(struct device *d, const struct device_accept *accept);

/** device_set_listener() - tell @listener, which is copied, from now on. Before port_start(), or
 * from a thread that holds no other lock. */
void device_set_listener(struct device *d, const struct device_listener *listener);
