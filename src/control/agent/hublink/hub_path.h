/*
 * hub_path.h - which of the hub's public endpoints is used.
 *
 * A hub may have several, of both IP versions, and not every node can reach
 * every one. The first for which there is a route is tried; one at which no
 * session comes about is given up for the next. A working one is kept. While the
 * hub is silent, an endpoint that answers STUN requests takes the place of one
 * that does not: the hub has moved.
 *
 * Pure: whether there is a route is an argument.
 */
#pragma once

#include <stdbool.h>

#include "base/addr.h"
#include "base/clock.h"
#include "mesh/render/render.h"

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
