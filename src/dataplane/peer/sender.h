/*
 * sender.h - the second half of the way out: nonces, sealing, coalescing, sending.
 *
 * One per thread that sends to peers: each tx worker has one, and the control
 * thread, for handshakes, keepalives and packets that waited for a session.
 *
 *   session   the peer's keypair to send with, or the packets wait for one
 *   nonces    as many counters as there are packets, at once
 *   seal      each packet, in place
 *   coalesce  neighbours of one size become one run of datagrams
 *   send      by sender_flush(), all that was added
 *
 * A sender keeps references to the keypairs of a batch until sender_flush(),
 * because its lane borrows their keys.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "net/socket/udp_batch.h"
#include "wire/wg.h"

struct peer;

/** An inner packet in a batch's buffer, with room for header and tag around it. */
struct packet {
    uint32_t off;    /* of the room for the message header in the buffer */
    uint16_t len;    /* bytes of the inner packet, which follows the header */
    uint16_t padded; /* with its padding, already zeroed; the tag's room follows */
};

/** packet_capacity() - bytes of the buffer that the finished message takes. */
static inline uint32_t packet_capacity(const struct packet *pkt)
{
    return (uint32_t)(pkt->padded + WG_DATA_OVERHEAD);
}

#define SENDER_KEYPAIRS_MAX 32
#define SENDER_SIZE         (65536 + WG_DATA_OVERHEAD) /* the largest inner packet as a message */

static_assert(SENDER_KEYPAIRS_MAX * WG_DATA_OVERHEAD <= SENDER_SIZE, "a keepalive each");

struct sender {
    struct port *port;   /* pins */
    struct drops *drops; /* pins: the thread's */
    struct udp_outbox out;
    struct aead_lane *lane;                    /* owns */
    uint8_t *space;                            /* owns SENDER_SIZE bytes, for packets that waited,
                                                 and for keepalives */
    uint32_t space_used;                       /* of it by keepalives, until the flush */
    struct keypair *used[SENDER_KEYPAIRS_MAX]; /* owns a reference each, until the flush */
    unsigned n_used;
};

/** sender_init() - pins @port and @drops; @wait: for room in the socket, rather than drop. 0 or
 * -ENOMEM. */
int sender_init(struct sender *s, struct port *port, struct drops *drops, bool wait);

/** sender_deinit() - release. */
void sender_deinit(struct sender *s);

/** sender_new() - the one that a port has for whoever sends under its lock. 0 or -ENOMEM. */
int sender_new(struct sender **ret, struct port *port);

/** sender_free() - release. */
struct sender *sender_free(struct sender *s);

/**
 * sender_add() - send inner packets to one peer: now, or when it has a session
 * @buf:	the batch's buffer, borrowed until sender_flush(); sealed in place
 * @pkts:	@n_pkts of them, back to back in @buf, in order
 * @tos:	of the datagrams
 *
 * Asks for a handshake where one is needed. Packets that have to wait are copied.
 *
 * Threads: a tx worker inside its gate, or under the port's lock.
 */
void sender_add(struct sender *s, struct peer *peer, uint8_t *buf, const struct packet *pkts,
    unsigned n_pkts, uint8_t tos, nsec_t now);

/** sender_add_staged() - send what waited, if there is a session. Same threads. */
void sender_add_staged(struct sender *s, struct peer *peer, nsec_t now);

/**
 * sender_add_keepalive() - an empty data message, sent by the next sender_flush()
 *
 * Threads: under the port's lock.
 *
 * Return: false when there is no session to send it under.
 */
bool sender_add_keepalive(struct sender *s, struct peer *peer, nsec_t now);

/**
 * sender_keepalive() - the same, sent at once
 *
 * Return: false when there is no session to send it under.
 */
bool sender_keepalive(struct sender *s, struct peer *peer, nsec_t now);

/** sender_flush() - hand everything to the kernel, forget keys. */
void sender_flush(struct sender *s);
