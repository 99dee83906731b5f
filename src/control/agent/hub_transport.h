/*
 * hub_transport.h - keeps the hub in reach: by UDP, or in TLS for as long as UDP is blocked.
 *
 * Puts together when (transport_choice.h), whether UDP passes (udp_probe.h) and the
 * stream itself (hub_stream.h). The agent tells what it sees, and asks where
 * the hub's endpoint is.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "agent/transport_choice.h"
#include "agent/hub_stream.h"
#include "agent/one_way.h"
#include "agent/udp_probe.h"
#include "os/log.h"
#include "mesh/object.h"

/** What the agent sees. */
struct hub_transport_view {
    nsec_t silent;            /* since when the hub has not been heard; 0: it is heard */
    bool is_doubt;            /* it is heard, and @silent is since when it seems not to hear us */
    struct endpoint heard_at; /* where the engine has it */
    uint64_t rx_bytes;        /* received from it */
    const struct node *hub;   /* borrowed for the call; NULL: there is none */
    const struct hub_ways *ways; /* where it may be by UDP; likewise */
    uint16_t listen_port;        /* WireGuard's; 0: not known yet */
};

/** Who is told; called from hub_transport_look() and from the loop. */
struct hub_transport_listener {
    void (*on_change)(void *ctx); /* the hub's endpoint is another one now */

    /* Ask the hub whether it has heard that STUN request: hub_transport_on_heard(). false: not now.
     */
    bool (*ask_heard)(void *ctx, const struct stun_transaction *id);

    void (*on_answer)(void *ctx, const struct endpoint *from); /* UDP that was in doubt passes */
    void *ctx;                                                 /* pinned */
};

struct hub_transport {
    const struct state *state; /* pins */
    struct hub_transport_listener listener;

    uv_timer_t timer; /* while UDP is in doubt, or a stream is there */
    bool has_timer;
    struct udp_probe probe;
    struct transport_choice choice;
    struct hub_stream *stream;          /* owns; NULL: none */
    struct hub_stream_status status;    /* of it, as last looked at */
    nsec_t silent;                      /* since when it has not been heard by UDP; 0: it is */
    bool is_doubt;                      /* as last viewed */
    struct endpoint ways[HUB_WAYS_MAX]; /* where the hub may be, as last viewed; likewise: */
    unsigned n_ways;
    struct hub_ways_api api;
    struct ip_addr hub_address;
    struct x25519_public hub_key;
    uint16_t listen_port;
    struct one_way one_way;
    enum one_way_kind told; /* which way is broken, as @why says */
    unsigned next_asked;    /* of @ways */
    char why[512];          /* why it is a stream, a clause */
    char failed[512];       /* what was last said about a stream that failed */
    struct log_limit limit;
};

/**
 * hub_transport_init() - by UDP, at first
 * @state:	pinned: who this node is, and the hub's ways
 * @listener:	copied
 */
void hub_transport_init(struct hub_transport *l, uv_loop_t *loop, const struct state *state,
    const struct hub_transport_listener *listener);

/** hub_transport_stop() - its handles close in the loop's next turns. Idempotent. */
void hub_transport_stop(struct hub_transport *l);

/** hub_transport_look() - at least each second, unless hub_transport_is_calm(). */
void hub_transport_look(struct hub_transport *l, const struct hub_transport_view *view);

/** hub_transport_speak() - let the hub hear this node where it is now; after the engine was told.
 */
void hub_transport_speak(struct hub_transport *l);

/** hub_transport_is_calm() - the hub is heard by UDP, and nothing is being tried. */
bool hub_transport_is_calm(const struct hub_transport *l);

/** hub_transport_endpoint() - where the hub is for WireGuard; none: by UDP, where it says. */
struct endpoint hub_transport_endpoint(const struct hub_transport *l);

/** hub_transport_why() - why packets go through a stream, a clause; NULL while they do not. */
const char *hub_transport_why(const struct hub_transport *l);

/** hub_transport_on_heard() - what the hub says to ask_heard(). @from: where it heard it; NULL: it
 * did not. */
void hub_transport_on_heard(struct hub_transport *l, const struct endpoint *from);

/** hub_transport_one_way() - which way UDP is broken, as far as that is known. */
enum one_way_kind hub_transport_one_way(const struct hub_transport *l);
