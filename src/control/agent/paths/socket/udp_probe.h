/*
 * udp_probe.h - whether UDP gets through to a hub, and how long that takes, by STUN requests.
 *
 * The requests leave from sockets of their own, so the answers say nothing about
 * WireGuard's NAT mapping: only that UDP passes, and what the round trip is.
 *
 * Threads: the loop's.
 */
#pragma once

#include "base/addr.h"
#include "base/clock.h"
#include "base/rng.h"
#include "wire/stun.h"

struct stun_socket;
struct uv_loop_s;

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
