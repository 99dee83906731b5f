/*
 * port_sockets.h - the port's UDP sockets, one pair for each rx worker: opened, closed, swapped.
 *
 * The pairs themselves are in the workers' waiters (rx_waiter.h). They are changed with the gates
 * closed, so whoever is inside a gate may send with them.
 *
 * Threads: all calls are under the port's lock, outside the gates.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct err;
struct port;

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

/** port_sockets_set_fwmark() - of those that are open, and of later ones. 0 or negative errno. */
int port_sockets_set_fwmark(struct port *p, uint32_t fwmark);
