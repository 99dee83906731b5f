/*
 * link_test.h - what a member measures with another one: the path without load, its loss, its
 * throughput, what it costs to be in the tunnel, and their part of an all-reduce.
 *
 * Threads: the caller's; all functions block.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "measure/dial.h"
#include "measure/result.h"

struct session;

/* ---- without load ---------------------------------------------------------------------------- */

/*
 * From one ping to 256 KiB over TCP. There are five steps, and each relies on the ones before it: a
 * ping, to see whether the peer answers at all; a train of pings, for round trip time, loss and the
 * difference of the clocks; datagrams of many sizes that may not be fragmented, for the MTU; a TCP
 * connection, for the MSS on which its handshake agrees; and full-size segments through that
 * connection.
 */

/**
 * idle_test_warm_up() - ping members until each has answered, so that the tunnels to them are up
 * @to:		interface, port and session of the pings; its peer is not used
 * @peers:	@n of them, IPv4 on the overlay
 *
 * Takes 7 s at most, which is enough for WireGuard's second handshake if its first one is lost.
 */
void idle_test_warm_up(const struct dial_target *to, const struct ip_addr *peers, size_t n);

/**
 * idle_test_run() - do all steps, or as many as succeed
 * @ret:	always set; if a step failed, the reason is in @why; @path is left to the caller
 * @to:		the peer, on the overlay
 * @pings:	length of the train
 *
 * Takes 4 ms for each ping, and usually less than a second for the other steps. Where the peer
 * answers nothing it takes 0.8 s.
 */
void idle_test_run(struct idle_test *ret, const struct dial_target *to, uint32_t pings);

/* ---- loss ------------------------------------------------------------------------------------ */

/*
 * So many datagrams that a loss of a thousandth is seen, which the peer counts and does not answer,
 * but for a few. No more are on their way at once than any queue holds, so what is lost was not
 * lost because of the test, even where a processor is busy.
 */

/**
 * loss_test_run() - send datagrams to the peer, and ask it how many have come
 * @ret:	always set; if that is not known, the reason is in its @why
 * @to:		the peer, on the overlay
 * @o:		LOSS
 *
 * Takes the time in @o at most, and some seconds more where answers are lost.
 */
void loss_test_run(struct loss_test *ret, const struct dial_target *to, const struct order *o);

/* ---- transfers ------------------------------------------------------------------------------- */

/*
 * Bytes are sent through connections for some time, and counted where they arrive. The rate is that
 * of the second half of the time in which something arrived, because TCP's slow start and the
 * handshake of an idle tunnel are over by then.
 */

#define TRANSFER_SAMPLES 256

/** Samples of how many bytes had arrived at which time. When it is full it drops every second
 * sample, and takes samples half as often. */
struct transfer_meter {
    nsec_t at[TRANSFER_SAMPLES];      /* time of each sample, monotonic */
    uint64_t bytes[TRANSFER_SAMPLES]; /* bytes that had arrived by then */
    unsigned n;                       /* samples */
    nsec_t step;                      /* least time between samples */
};

/** One connection of a transfer. */
struct transfer_stream {
    int fd;     /* borrowed; connected */
    bool sends; /* we send on it; else we receive */
    bool is_done;
};

struct transfer {
    struct transfer_stream *streams; /* borrowed */
    size_t n_streams;
    uint64_t bytes_max;   /* most bytes in each direction */
    nsec_t duration;      /* after this time senders stop, and shut down their direction */
    nsec_t deadline;      /* monotonic; everything stops then */
    uint64_t sent;        /* result: bytes given to the kernel */
    struct flow received; /* result */
};

/**
 * transfer_run() - send and receive until every stream has ended, or until the deadline
 *
 * A stream on which an error occurs has ended; what arrived before the error counts.
 *
 * Return: 0 or -ENOMEM.
 */
int transfer_run(struct transfer *t);

/** transfer_meter_add() - @total bytes have arrived since the start. @now: monotonic */
void transfer_meter_add(struct transfer_meter *m, nsec_t now, uint64_t total);

/** transfer_meter_rate() - bits per second in the second half; 0 when nothing came. */
uint64_t transfer_meter_rate(const struct transfer_meter *m);

/* ---- throughput ------------------------------------------------------------------------------ */

/**
 * bulk_run() - measure throughput as the order says
 * @ret:	always set; if something failed, the reason is in its @why
 * @to:		the peer, on the overlay
 * @o:		BULK
 * @underlay:	the peer's address outside the overlay, as this node itself has found it; none: not
 *		known
 *
 * The coordinator cannot choose where a connection outside the overlay goes. Its address is one
 * from which the peer's sealed frames come. Its port is the one that the peer has opened for the
 * session; the peer is asked for it over the overlay.
 */
void bulk_run(struct bulk *ret, const struct dial_target *to, const struct order *o,
    const struct ip_addr *underlay);

/** bulk_serve() - serve a data connection that began with SINK or SOURCE. Does not close @fd. */
void bulk_serve(int fd, const struct order *o);

/* ---- bursts ---------------------------------------------------------------------------------- */

/*
 * Datagrams of one size, one behind the other, for a moment. The rate is that at which they arrive.
 * In the tunnel and beside it they are the same, sent and counted by the same code, so what the one
 * is less than the other is what the tunnel costs: its headers, and encryption where a processor is
 * slower than the line.
 *
 * Beside the tunnel each end has a socket of its own. It asks a hub where its NAT shows it, tells
 * the other end in the tunnel, and both send until they hear each other, as the tunnel's own paths
 * are found. Where a NAT shows each destination another port that fails, and is said.
 */

/** Where an end beside the tunnel is. */
struct burst_place {
    struct ip_addr underlay; /* the other end's address, as this node itself has found it; none: not
                                known */
    struct endpoint stun;    /* a server that says where this end is seen; none: there is none */
};

/**
 * burst_run() - send a burst to the peer, and ask it how fast it came
 * @ret:	always set; if something failed, the reason is in its @why
 * @to:		the peer, on the overlay
 * @o:		BURST
 *
 * As with bulk_run() an order cannot choose where datagrams go beside the overlay: to the address
 * from which the peer's sealed frames come, and only after something there has answered that knows
 * the session.
 */
void burst_run(struct burst *ret, const struct dial_target *to, const struct order *o,
    const struct burst_place *place);

/**
 * burst_serve() - serve a data connection that began with CATCH. Does not close @fd.
 * @from:	who measures, on the overlay, and by which interface it is reached
 * @own:	this node's address on the overlay
 */
void burst_serve(int fd, const struct order *o, const struct dial_target *from,
    const struct ip_addr *own, const struct burst_place *place);

/* ---- all-reduce ------------------------------------------------------------------------------ */

/*
 * Over plain TCP, to see what the mesh gives a collective. It sums vectors of floats in the two
 * shapes that collective libraries use: a ring (reduce-scatter, then all-gather; each member sends
 * 2(n-1)/n of the vector) and a binary tree (sums go up to rank 0, the result comes down). The sums
 * are checked.
 */

/**
 * Vectors up to this size are always taken, bytes. Each member holds two of its vectors. A larger
 * one only where that is no more than half of the memory that is available, so that measuring takes
 * nothing from a machine's own work.
 */
#define ALLREDUCE_SURE_MAX (256ull << 20)

/**
 * allreduce_run() - do this member's part of the all-reduce, as often as the order says
 * @ret:	always set; if something failed, the reason is in its @why
 * @to:		interface, port and session of the connections; its peer is not used
 * @o:		ALLREDUCE, with the addresses of all ranks
 * @s:		the session; connections from neighbours arrive in it
 *
 * Threads: the caller's. It blocks for at most the time in @o, after at most 3 s for each neighbour
 * until the connection with it is there.
 */
void allreduce_run(
    struct allreduce *ret, const struct dial_target *to, const struct order *o, struct session *s);
