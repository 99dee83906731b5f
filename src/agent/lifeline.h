/*
 * lifeline.h - keeps the hub in reach: by UDP, or in TLS for as long as UDP is blocked.
 *
 * Puts together when (hub_rung.h), whether UDP passes (udp_probe.h) and the
 * stream itself (hub_stream.h). The agent tells what it sees, and asks where
 * the hub's endpoint is.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "agent/hub_rung.h"
#include "agent/hub_stream.h"
#include "agent/udp_probe.h"
#include "base/log.h"
#include "mesh/object.h"

/** What the agent sees. */
struct lifeline_view {
    nsec_t silent;            /* since when the hub has not been heard; 0: it is heard */
    struct endpoint heard_at; /* where the engine has it */
    const struct node *hub;   /* borrowed for the call; NULL: there is none */
    uint16_t listen_port;     /* WireGuard's; 0: not known yet */
};

struct lifeline {
    /* Pinned. */
    const struct state *state;
    void (*on_change)(void *ctx); /* the hub's endpoint is another one now */
    void *ctx;

    uv_timer_t timer; /* while UDP is in doubt, or a stream is there */
    bool has_timer;
    struct udp_probe probe;
    struct hub_rung rung;
    struct hub_stream *stream;       /* owns; NULL: none */
    struct hub_stream_status status; /* of it, as last looked at */
    nsec_t silent;                   /* since when it has not been heard by UDP; 0: it is */
    struct node_hub hub;             /* as last viewed, likewise the next three */
    struct ip_addr hub_address;
    struct x25519_public hub_key;
    uint16_t listen_port;
    char why[512];    /* why it is a stream, a clause */
    char failed[512]; /* what was last said about a stream that failed */
    struct log_limit limit;
};

/**
 * lifeline_init() - by UDP, at first
 * @state:	pinned: who this node is, and the hub's ways
 * @on_change:	called from lifeline_look() and from the loop
 */
void lifeline_init(struct lifeline *l, uv_loop_t *loop, const struct state *state,
    void (*on_change)(void *ctx), void *ctx);

/** lifeline_stop() - its handles close in the loop's next turns. Idempotent. */
void lifeline_stop(struct lifeline *l);

/** lifeline_look() - at least each second. */
void lifeline_look(struct lifeline *l, const struct lifeline_view *view);

/** lifeline_speak() - let the hub hear this node where it is now; after the engine was told. */
void lifeline_speak(struct lifeline *l);

/** lifeline_endpoint() - where the hub is for WireGuard; none: by UDP, where it says. */
struct endpoint lifeline_endpoint(const struct lifeline *l);

/** lifeline_why() - why packets go through a stream, a clause; NULL while they do not. */
const char *lifeline_why(const struct lifeline *l);
