/*
 * hub_path.h - which of the hub's public endpoints is used.
 *
 * A hub may have several, of both IP versions, and not every node can reach
 * every one. The first for which there is a route is tried; one that brings no
 * session is given up for the next. A working one is kept.
 *
 * Pure: whether there is a route is an argument.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "mesh/object.h"
#include "mesh/render.h"

/** So long an endpoint is tried: a handshake is repeated every 5 s. */
#define HUB_PATH_TRY (11 * NSEC_PER_SEC)

struct hub_path {
    struct render_path path; /* for render; its node is "" at first */
    nsec_t since;            /* when the endpoint was taken up */
};

/** hub_path_fn - is there a route to that address? */
typedef bool (*hub_path_fn)(void *ctx, const struct ip_addr *to);

/**
 * hub_path_take() - choose
 * @hub:	a hub
 * @works:	there is a session with it
 *
 * Return: another endpoint than before was chosen.
 */
bool hub_path_take(struct hub_path *hp, const struct node *hub, bool works, nsec_t now,
    hub_path_fn has_route, void *ctx);
