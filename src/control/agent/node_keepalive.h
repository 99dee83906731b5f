/*
 * node_keepalive.h - how often this node keeps its UDP mappings alive: measured, kept, told.
 *
 * keepalive_probe.h measures how long an idle mapping towards the hub lives. The result is kept in
 * keepalive.json for the next start, is what the way to the hub uses when the network's keepalive
 * is "auto", and is told to peers.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/paths/edge/keepalive_probe.h"
#include "base/clock.h"

struct network;

struct node_keepalive {
    struct keepalive_probe probe;
    const char *dir; /* pins: the state directory */
    bool is_damaged; /* keepalive.json does not parse, and is left alone */
};

/**
 * node_keepalive_init() - read what an earlier run has measured; nothing is asked yet
 * @dir:	pinned
 * @fn:		calls node_keepalive_on_result() and node_keepalive_on_interval(); its @ctx: pinned
 */
void node_keepalive_init(
    struct node_keepalive *nk, uv_loop_t *loop, const char *dir, keepalive_fn fn, void *ctx);

/** node_keepalive_interval() - the keepalive that the mapping towards the hub needs, s. */
uint16_t node_keepalive_interval(const struct node_keepalive *nk);

/**
 * node_keepalive_to_tell() - what holds this node's mappings, for peers; ns; 0: not known
 *
 * Both ends of an idle direct path use the shorter of what both tell. So a network whose keepalive
 * is 0, which has no keepalive towards the hub, has one all the same on paths that nothing else
 * keeps.
 */
nsec_t node_keepalive_to_tell(const struct node_keepalive *nk, const struct network *net);

/** node_keepalive_on_interval() - the interval is another one: log it. */
void node_keepalive_on_interval(const struct node_keepalive *nk);

/** node_keepalive_on_result() - a measurement has ended: log what follows from it, and keep it. */
void node_keepalive_on_result(const struct node_keepalive *nk, const struct network *net);
