/*
 * hub_stream.h - the node's end of a stream: its datagrams to the hub, in TLS
 * (docs/wire/stream.md).
 *
 * Theory of operation. A UDP socket on loopback takes what WireGuard would send
 * to the hub; a thread carries it to the hub's API port and back, through an
 * HTTP proxy if there is one. When the connection ends it makes another, later
 * and later while that fails; the socket stays, so WireGuard notices nothing
 * but lost packets. Datagrams that come from another port than WireGuard's are
 * dropped.
 *
 * Threads: the thread owns the connection; the rest may be called from the one
 * thread that opened it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/hublink/hub_ways.h"
#include "agent/state/state.h"
#include "base/addr.h"
#include "crypto/x25519.h"

struct err;
struct hub_stream;

/** Where to connect, and as which node. Copied. */
struct hub_stream_config {
    const struct state_ways *ways;  /* the hub's TLS key, and the proxy */
    const struct hub_ways_api *api; /* where its public API may be */
    const char *network;
    const struct x25519_secret *secret; /* the node's */
    const struct x25519_public *node;   /* its public half */
    const struct x25519_public *hub;    /* the hub's key */
};

/** The state of a stream. */
struct hub_stream_status {
    bool is_open;                 /* connected, and admitted by the hub */
    char to[TOKEN_API_MAX + 1];   /* the address that was last asked */
    char through[PROXY_TEXT_MAX]; /* the proxy's name; "": none */
    char passed_over[256];        /* the proxy's name and why it failed; "": it is used, or none */
    char why[512];                /* what failed last; "": nothing */
};

/** hub_stream_open() - begin to connect, in a thread. 0 or negative errno with words. */
int hub_stream_open(struct hub_stream **ret, const struct hub_stream_config *config, struct err *e);

/** hub_stream_close() - end it; waits for its thread, a second at most. NULL is fine. Always NULL.
 */
struct hub_stream *hub_stream_close(struct hub_stream *hs);

/**
 * hub_stream_join() - carry WireGuard's datagrams from now on; until then none passes either way
 * @port:	where it listens, host order; 0: not known yet, and nothing changes
 */
void hub_stream_join(struct hub_stream *hs, uint16_t port);

/** hub_stream_set_api() - where the hub's public API may be, for the next connection. Copied. */
void hub_stream_set_api(struct hub_stream *hs, const struct hub_ways_api *api);

/** hub_stream_endpoint() - where WireGuard has to send for the hub, on this machine. */
struct endpoint hub_stream_endpoint(const struct hub_stream *hs);

/** hub_stream_poll() - the state of the stream now. */
void hub_stream_poll(struct hub_stream *hs, struct hub_stream_status *ret);
