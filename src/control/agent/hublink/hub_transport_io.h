/*
 * hub_transport_io.h - carries out what hub_transport.h says: STUN requests by UDP, and the stream
 * in TLS.
 *
 * The owner calls hub_transport_io_poll() after each poll of the engine, and hub_transport_io_run()
 * when the deadline has come. Both return what the owner has to act upon.
 *
 * Threads: the loop's. The stream has one of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/hublink/hub_health.h"
#include "agent/hublink/hub_transport.h"
#include "agent/paths/socket/stun_socket.h"
#include "agent/state/state.h"
#include "base/addr.h"
#include "crypto/x25519.h"
#include "os/log.h"

/** What the owner has to act upon. */
struct hub_transport_io_result {
    bool has_changed; /* hub_transport_io_endpoint() is another one: tell the engine */
    struct endpoint answered[HUB_ENDPOINTS_MAX]; /* these of the hub's endpoints answer by UDP */
    unsigned n_answered;
    bool ask_heard; /* ask the hub whether it has heard @request; hub_transport_io_on_heard() */
    struct stun_transaction request;
};

struct hub_transport_io {
    struct hub_transport transport;
    const struct state *state;           /* pins */
    const struct state_hub_api *hub_api; /* pins; of this hub's public API */
    struct udp_probe probe;
    bool is_running;                 /* between init and stop */
    struct hub_stream *stream;       /* owns; NULL: none */
    struct hub_transport_stream now; /* the stream, as last looked at */
    struct hub_api_list api;         /* where the hub's public API may be */
    struct ip_addr hub_address;      /* on the overlay */
    struct x25519_public hub_key;
    uint16_t listen_port;
    struct endpoint answered[HUB_ENDPOINTS_MAX]; /* since the last run, each once */
    unsigned n_answered;
    nsec_t due_at; /* time of the next run; NSEC_NEVER: after the next poll; 0: at once */
    struct log_limit limit;
};

/**
 * hub_transport_io_init() - by UDP, at first
 * @state:	pinned: who this node is
 * @hub_api:	pinned: how this hub's public API is reached; may be filled in later
 */
void hub_transport_io_init(struct hub_transport_io *io, struct uv_loop_s *loop,
    const struct state *state, const struct state_hub_api *hub_api);

/**
 * hub_transport_io_stop() - its handles close in the loop's next turns
 *
 * Idempotent.
 */
void hub_transport_io_stop(struct hub_transport_io *io);

/**
 * hub_transport_io_poll() - at least each second, unless hub_transport_io_is_settled()
 * @view, @node:	borrowed for the call; @node: the hub, NULL: there is none, and nothing is
 * done
 * @listen_port:	WireGuard's, host order; 0: not known yet
 */
struct hub_transport_io_result hub_transport_io_poll(struct hub_transport_io *io,
    const struct hub_transport_view *view, const struct node *node, uint16_t listen_port,
    nsec_t now);

/** hub_transport_io_run() - when @io->due_at has come. */
struct hub_transport_io_result hub_transport_io_run(struct hub_transport_io *io, nsec_t now);

/**
 * hub_transport_io_on_heard() - what the hub says to that
 * @from:	where the request came from, as the hub saw it; NULL: it did not come
 */
void hub_transport_io_on_heard(struct hub_transport_io *io, const struct endpoint *from);

/**
 * hub_transport_io_speak() - send one packet to the hub through the tunnel
 *
 * The hub follows a node to where its packets come from, and sends to where it was before until one
 * comes. To be called after the engine was told where the hub is. An answer does not matter.
 */
void hub_transport_io_speak(struct hub_transport_io *io, nsec_t now);

/** hub_transport_io_is_settled() - the hub is heard by UDP, and nothing is being tried. */
bool hub_transport_io_is_settled(const struct hub_transport_io *io);

/**
 * hub_transport_io_failure() - why the stream that is wanted does not come about, a clause
 *
 * Return: lends, until the next poll or run; NULL: none is wanted, or it is open, or not tried yet.
 */
const char *hub_transport_io_failure(const struct hub_transport_io *io);

/** hub_transport_io_endpoint() - the stream's, for WireGuard; none: the hub is reached by UDP. */
struct endpoint hub_transport_io_endpoint(const struct hub_transport_io *io);
