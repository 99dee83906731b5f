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

#include <stdint.h>

#include "base/clock.h"
#include "base/drop.h"
#include "shared/options.h"
#include "shared/port_tx.h"

struct port;
struct tai64n_bounds;

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

/** port_free() - after port_stop() and after all devices are freed. */
struct port *port_free(struct port *p);

/** port_drops() - add all drops of the port's threads and its devices' threads to @sum. Any thread.
 */
void port_drops(struct port *p, uint64_t sum[static DROP_REASON_N]);

/**
 * port_bound_timestamps() - date initiations within @b from now on
 *
 * Return: the greatest timestamp sent so far, in ns since 1970; 0: none was. Any thread.
 */
nsec_t port_bound_timestamps(struct port *p, const struct tai64n_bounds *b);

/** port_sum_drops() - the same, under the port's lock, for dataplane/ only. */
void port_sum_drops(struct port *p, uint64_t sum[static DROP_REASON_N]);

/* ---- sharing the port ---- */

/** port_set_filter() - have @fn see what arrives, from now on; NULL: none. @ctx is pinned until
 * another one is set. Any thread but a filter or a listener. */
void port_set_filter(struct port *p, port_filter_fn fn, void *ctx);
