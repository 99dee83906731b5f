/*
 * port_options.h - what port_new() needs to know; the port keeps a copy.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/tun/offload.h"
#include "os/thread.h"

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
