/*
 * peer_doubt.h - peers whose packets the engine sends to a wrong endpoint.
 *
 * WireGuard follows the source of every authentic packet. A peer without path finding that does not
 * answer where the engine has it may have been led astray by a copy of a packet. A peer whose path
 * this node finds goes nowhere by itself: if the engine has it elsewhere, somebody changed the
 * engine by hand, or the engine cannot pin an endpoint and has followed a packet from the old path
 * while both ends change to another. In both cases the next pass has to tell the engine the wanted
 * endpoint again.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "os/log.h"

struct path_driver;
struct observe;
struct reconcile;
struct snapshot;

struct peer_doubt {
    struct log_limit limit;
};

/**
 * peer_doubt_poll() - after each poll of the engine
 * @seen:	what the engine has
 * @rc:		gets the endpoints that are in doubt: reconcile_doubt()
 *
 * Return: true if there are some, so that a pass is needed.
 */
bool peer_doubt_poll(struct peer_doubt *pd, const struct snapshot *s, const struct observe *seen,
    const struct path_driver *paths, struct reconcile *rc, nsec_t now);
