/*
 * hub_health.h - is the hub heard, and at which of its public endpoints is it to be looked for?
 *
 * Theory of operation. Keeps where the hub may be (hub_ways.h), which of these endpoints is in use
 * (hub_path.h), since when the hub is silent, and whether it has to be told where this node is now.
 * The owner tells after each poll what the engine has observed, and does what is wished.
 *
 * A hub that takes a new handshake has proved that it is there. If the session before was young,
 * the hub has lost it: it was started anew, and the stream of events is dead although its end was
 * not heard.
 *
 * No I/O but the look-ups of hub_ways.h. Threads: the loop's.
 */
#pragma once

#include <stdbool.h>

#include "agent/hublink/hub_path.h"
#include "agent/hublink/hub_ways.h"
#include "base/clock.h"

struct network;
struct node;
struct observation;

/** What is seen of the hub after a poll. Borrowed. */
struct hub_health_facts {
    nsec_t now;
    bool has_engine;
    const struct node *hub; /* NULL: the network has none */
    const struct network *network;
    const struct observation *seen; /* what the engine has observed of it; NULL: nothing */
    bool is_by_stream;              /* packets to the hub go in TLS at present */
    bool is_standby; /* another hub serves this node: keepalives, which nobody answers, are most of
                        what is sent to this one */
    hub_path_fn has_route; /* is there a route to that address? */
    void *has_route_ctx;
};

/** What is to be done with the stream of events (hub_link.h). */
enum hub_health_link {
    HUB_HEALTH_LINK_KEEP,    /* nothing */
    HUB_HEALTH_LINK_POKE,    /* the hub is there: do not wait for it any longer */
    HUB_HEALTH_LINK_RESTART, /* the hub is another process now: open it again */
};

/** What is to be done. */
struct hub_health_wish {
    enum hub_health_link link;
    bool reconcile;            /* the endpoint is another one: have a pass */
    const char *moved_because; /* why, for the log; NULL: it did not change, or is the first */
};

struct hub_health {
    struct hub_ways ways;
    struct hub_path path;
    nsec_t handshake_at;     /* time of the last handshake with the hub; 0: never */
    nsec_t no_session_since; /* no session with the hub since then; 0: there is one, or no engine */
    nsec_t silent_since;     /* what was sent since then is not answered; 0: the hub is heard */
    bool has_moved;       /* its endpoint is another one, and no handshake has come about since */
    bool wants_handshake; /* one is to be begun, once the engine knows the endpoint */
};

/** hub_health_deinit() - does not wait for a name server. Idempotent. */
void hub_health_deinit(struct hub_health *hh);

/** hub_health_poll() - after each poll of the engine. */
struct hub_health_wish hub_health_poll(struct hub_health *hh, const struct hub_health_facts *facts);

/**
 * hub_health_on_answer() - a STUN request to @from was answered, while the hub is silent
 * @is_by_stream:	packets to the hub go in TLS at present
 */
struct hub_health_wish hub_health_on_answer(
    struct hub_health *hh, const struct endpoint *from, bool is_by_stream, nsec_t now);

/**
 * hub_health_take_handshake() - is a handshake with the hub to be begun now?
 *
 * At its new endpoint the hub may know nothing of the session, nor of where this node is. To be
 * asked after the engine was told the endpoint; true only once.
 */
bool hub_health_take_handshake(struct hub_health *hh);
