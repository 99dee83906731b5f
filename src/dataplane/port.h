/*
 * port.h - one UDP port and the threads that receive on it.
 *
 * A port is shared by any number of devices (networks): each has its own
 * private key and its own interface, and messages find their device by
 * receiver index, or, for a handshake initiation, by mac1. Something else may
 * share the port too: a filter sees every run first, may take it, and may send.
 *
 * Threads, all owned by the port:
 *
 *   rx workers   receive, let the filter look, decrypt, write to interfaces
 *   control      handshakes, timers, configuration requests, link changes
 *
 * Order of calls: port_new, then device_new for each device (also later, while
 * the port runs), port_start, ..., device_free, port_stop, port_free.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/drop.h"
#include "net/offload.h"
#include "os/thread.h"
#include "net/udp_batch.h"

struct err;

struct port;

/** What port_new() needs to know; zeroes are good defaults but for @offloads. */
struct port_options {
    uint16_t listen_port;      /* 0: the kernel chooses, and the choice is kept */
    uint32_t fwmark;           /* SO_MARK of all that is sent; 0: none */
    unsigned n_workers;        /* receiving threads, 0: 1 */
    struct cpulist cpus;       /* where the threads may run, in turn; empty: anywhere */
    struct offloads offloads;  /* as allowed: start from offloads_all() */
    const char *aead_backend;  /* the cipher library to use where it has the cipher; NULL: the
                                  best */
    bool sockets_follow_links; /* open only while some device's interface is up, as `weft wg`
                                  does; else from port_start() to port_stop() */
};

/**
 * port_new() - a port without threads yet
 *
 * Tests the UDP offloads (see offload_test_udp()).
 *
 * Return: 0 or negative errno with words.
 */
int port_new(struct port **ret, const struct port_options *opt, struct err *e);

/**
 * port_start() - open the sockets (unless they follow the links) and start the threads
 *
 * The sockets belong to the network namespace of the calling thread.
 *
 * Return: 0, or negative errno with words (-EADDRINUSE: the port is taken).
 */
int port_start(struct port *p, struct err *e);

/** port_stop() - end the threads, close the sockets. Idempotent. */
void port_stop(struct port *p);

/** port_free() - after port_stop() and after all devices are freed; NULL is fine. Returns NULL. */
struct port *port_free(struct port *p);

/** port_listen_port() - the bound UDP port, or the one to bind; 0 when not chosen yet. Any thread.
 */
uint16_t port_listen_port(struct port *p);

/** port_offloads() - what is in use, and why the rest is not. */
const struct offloads *port_offloads(const struct port *p);

/** port_drops() - add all drops of the port's threads and its devices' threads. Any thread. */
void port_drops(struct port *p, uint64_t sum[static DROP_REASON_N]);

/* ---- sharing the port ---- */

/** The sending side that a filter is handed: one per worker. */
struct port_tx;

/**
 * port_filter_fn - look at what arrived before the devices do
 * @ctx:	from port_set_filter()
 * @tx:		for answers and for forwarding; also tells the time and the worker
 * @run:	data messages (type 4) that arrived together from one place, of one size (the last
 *		may be shorter) and with one receiver index; or one datagram of any other kind.
 *		The bytes may be changed; they live until this batch has been sent.
 *
 * Runs on several workers at once, inside the gate: it may not block, nor call
 * anything of port.h or device.h but port_tx_*().
 *
 * Return: true when taken; false to let the devices have it.
 */
typedef bool (*port_filter_fn)(void *ctx, struct port_tx *tx, const struct udp_run *run);

/** port_set_filter() - from now on; NULL: none. @ctx is pinned until another one is set. */
void port_set_filter(struct port *p, port_filter_fn fn, void *ctx);

/**
 * port_tx_send() - send a run after the current batch was looked at, in the order of the calls
 * @run:	its bytes must live until then: those of a received run do (whole or a part of it,
 *		for forwarding without a copy), and those of port_tx_room()
 *
 * What the kernel does not take at once is dropped: a worker never waits.
 */
void port_tx_send(struct port_tx *tx, const struct udp_run *run);

/** port_tx_room() - @len bytes for an answer of our own; NULL when this batch's room is used up. */
uint8_t *port_tx_room(struct port_tx *tx, size_t len);

/** port_tx_drop() - count @n datagrams that end in the filter. */
void port_tx_drop(struct port_tx *tx, enum drop_reason reason, uint64_t n);

/** port_tx_has_index() - does a device of the port use this receiver index at the moment? */
bool port_tx_has_index(const struct port_tx *tx, uint32_t index);

/** port_tx_now() - monotonic time, read once per batch. */
nsec_t port_tx_now(const struct port_tx *tx);

/** port_tx_worker() - which worker this is, counted from 0; for state kept per worker. */
unsigned port_tx_worker(const struct port_tx *tx);

/**
 * port_send() - send a run now, from any thread but a filter
 *
 * Return: 0, or negative errno when the kernel did not take (all of) it.
 */
int port_send(struct port *p, const struct udp_run *run);

/**
 * port_quiesce() - wait until every filter call that is under way has returned
 *
 * After unlinking something that a filter reads, and before freeing it.
 *
 * Threads: any but the workers.
 */
void port_quiesce(struct port *p);
