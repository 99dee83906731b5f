/*
 * hub_health.h - where a hub is: the endpoints where it may be, the one that is used, and whether
 * it is heard there.
 *
 * Threads: the loop's, where nothing else is said.
 */
#pragma once

#include <stdbool.h>

#include "agent/state/state.h"
#include "base/addr.h"
#include "base/clock.h"
#include "mesh/render/render.h"
#include "os/log.h"

struct resolve_answer;

/* ---- where it may be ------------------------------------------------------------------------- */

/*
 * Where the hub may be: as it says itself, and where its names lead today.
 *
 * Theory of operation. A hub tells its members its endpoints and, where its operator gave it one,
 * its name. While it is heard the endpoints are enough. When it is silent it may have got another
 * address, so the names are looked up, at once and then less and less often, without the loop
 * waiting for it (net/address/resolve.h). What was found is kept beside what the hub says,
 * until the next answer of a name server, and is a candidate like the others: whoever answers there
 * has to have the hub's key.
 */

/** Most endpoints: those that the hub says, and as many that are found. */
#define HUB_ENDPOINTS_MAX ((unsigned)(2 * OBJECT_ENDPOINTS_MAX))

/** Most addresses of its public API: its names, those of the join token, its endpoints. */
#define HUB_API_MAX (OBJECT_HUB_NAMES_MAX + TOKEN_ENDPOINTS_MAX + OBJECT_ENDPOINTS_MAX)

/** "HOST:PORT" of the hub's public API, best first. */
struct hub_api_list {
    char items[HUB_API_MAX][HOST_PORT_MAX + 1];
    unsigned n;
};

struct hub_endpoints {
    struct endpoint all[HUB_ENDPOINTS_MAX]; /* UDP, best first; what was found, then what it says */
    unsigned n;

    struct endpoint found[OBJECT_ENDPOINTS_MAX]; /* where its names led last */
    unsigned n_found;
    struct resolve_task *task; /* owns; NULL: nothing is being looked up */
    nsec_t look_up_at;         /* time of the next look-up; 0: as soon as the hub is silent */
    nsec_t wait_for;           /* time from the last look-up to the next; 0: the hub is heard */
    struct log_limit limit;
};

/** hub_endpoints_deinit() - does not wait for a name server. */
void hub_endpoints_deinit(struct hub_endpoints *he);

/**
 * hub_endpoints_poll() - begin and end look-ups, and compose @he->all; to be called about each
 * second
 * @hub:	what the hub says of itself: its endpoints and its names
 * @net:	the network; an address inside its blocks is not a way to the hub
 * @is_silent:	the hub is not heard
 */
void hub_endpoints_poll(struct hub_endpoints *he, const struct node_hub *hub,
    const struct network *net, bool is_silent, nsec_t now);

/**
 * hub_endpoints_take() - what the name servers say
 * @answers:	of the hub's names, @n of them
 *
 * Part of hub_endpoints_poll(). Names that lead nowhere change nothing.
 */
void hub_endpoints_take(struct hub_endpoints *he, const struct node_hub *hub,
    const struct network *net, const struct resolve_answer *answers, unsigned n);

/** hub_api_list_make() - @joined: of the join. Names first, as they are true for longest. */
void hub_api_list_make(
    struct hub_api_list *ret, const struct state_hub_api *joined, const struct node_hub *hub);

/* ---- which endpoint is used ------------------------------------------------------------------ */

/*
 * Which of the hub's public endpoints is used.
 *
 * A hub may have several, of both IP versions, and not every node can reach
 * every one. The first for which there is a route is tried; one at which no
 * session comes about is given up for the next. A working one is kept. While the
 * hub is silent, an endpoint that answers STUN requests takes the place of one
 * that does not: the hub has moved.
 *
 * Pure: whether there is a route is an argument.
 */

/** An endpoint is tried for this time: a handshake is repeated every 5 s. */
#define HUB_PATH_TRY (11 * NSEC_PER_SEC)

struct hub_path {
    struct render_path path; /* for render_config(); its node is "" until the first choice */
    nsec_t taken_at;         /* time when the endpoint was chosen */

    struct endpoint
        other;          /* one that answers while the present one does not; none: there is none */
    nsec_t other_since; /* time of its first answer */
    nsec_t other_at;    /* time of its last answer */
};

/** hub_path_fn - is there a route to that address? */
typedef bool (*hub_path_fn)(void *ctx, const struct ip_addr *to);

/**
 * hub_path_take() - choose an endpoint
 * @hub:	the hub's name
 * @endpoints:	where it may be, @n of them, at least 1
 * @works:	the hub is heard at the present endpoint
 *
 * Return: true if another endpoint than before was chosen.
 */
bool hub_path_take(struct hub_path *hp, const char *hub, const struct endpoint *endpoints,
    unsigned n, bool works, nsec_t now, hub_path_fn has_route, void *ctx);

/**
 * hub_path_on_answer() - a STUN request to @from was answered, while the hub is silent
 *
 * Who has answered is not known, because a STUN answer proves nothing. So this only chooses where
 * handshakes go: an endpoint at which no session comes about is given up as any other.
 *
 * Return: true if another endpoint than before was chosen.
 */
bool hub_path_on_answer(struct hub_path *hp, const struct endpoint *from, nsec_t now);

/* ---- is it heard ----------------------------------------------------------------------------- */

/*
 * Is the hub heard, and at which of its public endpoints is it to be looked for?
 *
 * Theory of operation. Keeps where the hub may be (struct hub_endpoints), which of these endpoints
 * is in use (struct hub_path), since when the hub is silent, and whether it has to be told where
 * this node is now. The owner tells after each poll what the engine has observed, and does what is
 * to be done.
 *
 * A hub that takes a new handshake has proved that it is there. If the session before was young,
 * the hub has lost it: it was started anew, and the stream of events is dead although its end was
 * not heard. One that answers STUN, and nothing that is sent in the session, has probably lost it,
 * too: a handshake is begun then, and not only 15 s after the first packet (whitepaper 6.5).
 *
 * No I/O but the look-ups of struct hub_endpoints.
 */

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
struct hub_health_actions {
    enum hub_health_link link;
    bool reconcile;            /* the endpoint is another one: have a pass */
    const char *moved_because; /* why, for the log; NULL: it did not change, or is the first */
};

struct hub_health {
    struct hub_endpoints endpoints;
    struct hub_path path;
    nsec_t handshake_at;     /* time of the last handshake with the hub; 0: never */
    nsec_t no_session_since; /* no session with the hub since then; 0: there is one, or no engine */
    nsec_t silent_since;     /* what was sent since then is not answered; 0: the hub is heard */
    nsec_t renewed_for;      /* the @silent_since for which a handshake was begun last */
    bool has_moved;       /* its endpoint is another one, and no handshake has come about since */
    bool wants_handshake; /* one is to be begun, once the engine knows the endpoint */
};

/** hub_health_poll() - after each poll of the engine. */
struct hub_health_actions hub_health_poll(
    struct hub_health *hh, const struct hub_health_facts *facts);

/**
 * hub_health_on_answer() - a STUN request to @from was answered, while the hub is silent
 * @is_by_stream:	packets to the hub go in TLS at present
 *
 * Where @from is the endpoint in use and there is a session, a new one is begun, once in a silence.
 */
struct hub_health_actions hub_health_on_answer(
    struct hub_health *hh, const struct endpoint *from, bool is_by_stream, nsec_t now);

/**
 * hub_health_take_handshake() - is a handshake with the hub to be begun now?
 *
 * At its new endpoint the hub may know nothing of the session, nor of where this node is. To be
 * asked after the engine was told the endpoint; true only once.
 */
bool hub_health_take_handshake(struct hub_health *hh);
