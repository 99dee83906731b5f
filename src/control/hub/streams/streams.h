/*
 * streams.h - members whose UDP is blocked: their datagrams come in TLS (docs/wire/stream.md).
 *
 * Theory of operation. A member that shows at the public API who it is gets a
 * connection of bytes. The hub opens a UDP socket on loopback for it, which
 * speaks to the hub's own UDP port: so relay, STUN and WireGuard meet an
 * ordinary sender, and nothing there knows of streams. Each stream's socket has
 * an address of its own in 127.87.0.0/16, so that what is limited by address is
 * limited for each of them alone.
 *
 * What can be held is bounded: STREAMS_BY_NODE for a member (a new one ends the
 * oldest), STREAMS_MAX in all, and what stream_pump.h queues. A stream that
 * says nothing for STREAMS_IDLE, or what is no frame, is ended.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/containers.h"
#include "os/log.h"

struct endpoint;
struct err;
struct model_node;
struct request;
struct response;
struct stun_port;

#define STREAMS_MAX     16384
#define STREAMS_BY_NODE 2
#define STREAMS_IDLE    (60 * NSEC_PER_SEC)

struct streams {
    struct uv_loop_s *loop; /* pins */
    uint16_t udp_port;      /* the hub's */
    struct list all;        /* of struct stream_end */
    unsigned n;             /* open, or about to be */
    uint16_t next_address;  /* the last two bytes of the next stream's address */
    uint64_t rx_bytes;      /* datagrams' bytes of streams that have ended, from members */
    uint64_t tx_bytes;      /* and to them */
    struct log_limit limit;
    /* A member speaks from @ep now. May be NULL. */
    void (*on_open)(void *ctx, const struct model_node *node, const struct endpoint *ep);
    void *ctx; /* pins */
};

/** streams_init() - none yet. */
void streams_init(struct streams *s, struct uv_loop_s *loop, uint16_t udp_port);

/** streams_stop() - end all; their handles close in the loop's next turns. Idempotent. */
void streams_stop(struct streams *s);

/** streams_open() - answer a member's request: 101, or words. */
void streams_open(struct streams *s, const struct model_node *node, const struct request *rq,
    struct response *rs);

/** streams_is_near() - is that the end of a stream on the hub's machine? */
bool streams_is_near(const struct endpoint *ep);

/**
 * streams_far_end() - where a member is whose packets come from @near in a stream
 * @near:	an end of a stream on this machine, as the hub's port knows the member
 * @ret:	the other end of the connection
 *
 * Return: false: no stream of @node has that end.
 */
bool streams_far_end(
    const struct model_node *node, const struct endpoint *near, struct endpoint *ret);

/** streams_end_node() - end the streams of a node that was removed, or has another key. */
void streams_end_node(const struct model_node *node);

/** streams_tick() - end those that are silent. */
void streams_tick(struct streams *s, nsec_t now);

/** streams_count_bytes() - so far, of all. */
void streams_count_bytes(const struct streams *s, uint64_t *ret_rx, uint64_t *ret_tx);

/* ---- STUN on a second UDP port, the number of the API's TCP port ----------------------------- */

/*
 * A node that is seen with two different ports by two ports of one hub is
 * behind a NAT that maps by destination (RFC 4787 section 4.1), which decides
 * which paths are worth trying. Nothing else is served here; a hub whose
 * firewall lets only its WireGuard port through works as well, and its nodes
 * then do not know their NAT's kind. An answer goes to where its request came
 * from and nowhere else: RESPONSE-PORT is refused (420), and served on the
 * WireGuard port.
 *
 * Threads: the loop's.
 */

/**
 * stun_port_new() - answer on UDP @port
 * @seed:	random, unknown to strangers
 *
 * Return: 0, or negative errno with words: -EADDRINUSE.
 */
int stun_port_new(
    struct stun_port **ret, struct uv_loop_s *loop, uint16_t port, uint64_t seed, struct err *e);

/** stun_port_free() - its handles close in the loop's next turns. */
struct stun_port *stun_port_free(struct stun_port *sp);
