/*
 * stun_socket.h - a UDP socket on the loop, for STUN requests that do not use WireGuard's port.
 *
 * It has a port of its own, so a NAT gives it a mapping of its own, and WireGuard's
 * is not touched. Requests are encoded and answers decoded by the caller
 * (wire/stun.h).
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/secret.h"
#include "wire/stun.h"

struct uv_loop_s;

/**
 * stun_socket_fn - a datagram has come
 * @msg:	@len bytes, any content; borrowed for the call
 *
 * May close the socket that it came to.
 */
typedef void (*stun_socket_fn)(void *ctx, const uint8_t *msg, size_t len);

/**
 * stun_socket_open() - on a port that the kernel chooses
 * @v4:		IPv4, else IPv6 only
 * @ctx:	pinned
 *
 * Return: NULL when there can be none: out of memory or of sockets, or a kernel without IPv6.
 */
struct stun_socket *stun_socket_open(
    struct uv_loop_s *loop, bool v4, stun_socket_fn on_datagram, void *ctx);

/** stun_socket_close() - its handle closes in the loop's next turns. NULL is fine. Always NULL. */
struct stun_socket *stun_socket_close(struct stun_socket *s);

/** stun_socket_send() - what cannot be sent is dropped, as if it were lost. NULL is fine. */
void stun_socket_send(
    struct stun_socket *s, const struct endpoint *to, const uint8_t *msg, size_t len);

/* ---- does UDP get through? ------------------------------------------------------------------- */

/*
 * Whether UDP gets through to a hub, and how long that takes, by STUN requests.
 *
 * The requests leave from sockets of their own, so the answers say nothing about
 * WireGuard's NAT mapping: only that UDP passes, and what the round trip is.
 *
 * Threads: the loop's.
 */

/** Requests that may wait for their answers. */
#define UDP_PROBE_MAX 32

/** udp_probe_fn - an answer has come. @to: who was asked. From the loop. */
typedef void (*udp_probe_fn)(void *ctx, const struct endpoint *to, nsec_t rtt);

/** A request that has no answer yet. */
struct udp_probe_request {
    struct stun_transaction id;
    struct endpoint to;
    nsec_t sent_at; /* 0: the place is free */
};

struct udp_probe {
    struct uv_loop_s *loop;                           /* pins */
    struct stun_socket *sock[2];                      /* owns; v4 and v6; NULL: not opened yet */
    struct rng rng;                                   /* the kernel's */
    struct udp_probe_request requests[UDP_PROBE_MAX]; /* the oldest gives way */
    udp_probe_fn on_answer;
    void *ctx; /* pins */
};

/** udp_probe_init() - opens nothing yet. @loop, @ctx: pinned. */
void udp_probe_init(struct udp_probe *p, struct uv_loop_s *loop, udp_probe_fn on_answer, void *ctx);

/** udp_probe_stop() - its handles close in the loop's next turns. Idempotent. */
void udp_probe_stop(struct udp_probe *p);

/**
 * udp_probe_unanswered() - a request to @to that should have been answered by now
 * @age:	how long ago it was sent at least
 *
 * Return: the newest of them; lends it until the next udp_probe_ask(). NULL: there is none.
 */
const struct udp_probe_request *udp_probe_unanswered(
    const struct udp_probe *p, const struct endpoint *to, nsec_t age, nsec_t now);

/** udp_probe_ask() - send one request; what cannot be sent counts as one without an answer. */
void udp_probe_ask(struct udp_probe *p, const struct endpoint *to, nsec_t now);
