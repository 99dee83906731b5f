/*
 * hub_path.h - which of the hub's public endpoints is used.
 *
 * A hub may have several, of both IP versions, and not every node can reach
 * every one. The first for which there is a route is tried; one that brings no
 * session is given up for the next. A working one is kept. While the hub is
 * silent, one that answers questions by UDP is taken in the place of one that
 * does not: the hub has moved.
 *
 * Pure: whether there is a route is an argument.
 */
#pragma once

#include <stdbool.h>

#include "base/addr.h"
#include "base/clock.h"
#include "mesh/render.h"

/** So long an endpoint is tried: a handshake is repeated every 5 s. */
#define HUB_PATH_TRY (11 * NSEC_PER_SEC)

struct hub_path {
    struct render_path path; /* for render; its node is "" at first */
    nsec_t since;            /* when the endpoint was taken up */

    /* Another one that answers, while the present one does not. */
    struct endpoint other; /* none: there is none */
    nsec_t other_since;    /* its first answer */
    nsec_t other_at;       /* its last */
};

/** hub_path_fn - is there a route to that address? */
typedef bool (*hub_path_fn)(void *ctx, const struct ip_addr *to);

/**
 * hub_path_take() - choose
 * @hub:	the hub's name
 * @endpoints:	where it may be, @n of them, at least 1
 * @works:	it is heard there
 *
 * Return: another endpoint than before was chosen.
 */
bool hub_path_take(struct hub_path *hp, const char *hub, const struct endpoint *endpoints,
    unsigned n, bool works, nsec_t now, hub_path_fn has_route, void *ctx);

/**
 * hub_path_on_answer() - something at @from has answered by UDP, while the hub is silent
 *
 * Who answers there is not known, as it was not asked for a proof. So this chooses where
 * handshakes go, and no more: one that brings no session is given up as any other.
 *
 * Return: another endpoint than before was chosen.
 */
bool hub_path_on_answer(struct hub_path *hp, const struct endpoint *from, nsec_t now);
