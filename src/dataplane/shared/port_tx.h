/*
 * port_tx.h - sharing a port: a filter sees what arrives before the devices do, and may send.
 *
 * A hub's relay and STUN server are one (relay.h). There is at most one filter a port; it is set
 * with port_set_filter() (port.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/drop.h"
#include "net/socket/udp_batch.h"

/** Bytes for the answers to one batch. */
#define PORT_TX_SPACE 16384

/**
 * The sending side that a filter is handed: one per worker.
 *
 * A filter reads it, counts what ends in it in @drops, and sends by udp_outbox_add() to @out: runs
 * leave after the current batch was looked at, in the order of the calls. Their bytes must live
 * until then: those of a received run do (whole or a part of it, for forwarding without a copy),
 * and those in @space. What the kernel does not take at once is dropped: a worker never
 * waits.
 */
struct port_tx {
    const struct index_table *index;   /* pins: the port's */
    const struct udp_sockets *sockets; /* pins: the worker's */
    struct drops *drops;               /* pins: the worker's */
    struct udp_outbox out;             /* sent at the end of the batch */
    nsec_t now;                        /* of this batch; monotonic */
    unsigned worker;                   /* which, from 0; for state kept per worker */
    uint8_t *space;                    /* owns: for answers, PORT_TX_SPACE bytes */
    size_t space_used;                 /* in this batch */
};

/**
 * port_filter_fn - look at what arrived before the devices do
 * @ctx:	from port_set_filter()
 * @tx:		for answers and for forwarding; also tells the time and the worker
 * @run:	data messages (type 4) that arrived together from one place, of one size (the last
 *		may be shorter) and with one receiver index; or one datagram of any other kind.
 *		The bytes may be changed by a filter that takes the run; they live until this
 *		batch has been sent.
 *
 * Runs on several workers at once, inside the gate: it may not block, nor call
 * anything of port.h or device.h.
 *
 * Return: true when taken; false to let the devices have it.
 */
typedef bool (*port_filter_fn)(void *ctx, struct port_tx *tx, const struct udp_run *run);

/** What a port has of it. Changed with the gates closed, read inside them. */
struct port_filter {
    port_filter_fn fn; /* NULL: none */
    void *ctx;         /* pins: handed to @fn */
};
