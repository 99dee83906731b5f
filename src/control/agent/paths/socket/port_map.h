/*
 * port_map.h - has the router forward one of its ports to WireGuard's, in a thread of its own.
 *
 * The router is asked when our port is known and when the network has changed, and
 * again after half of the lifetime that it granted, or sooner, since it may have been
 * restarted and forgotten the mapping. No caller waits for an answer, and there may
 * be none.
 *
 * Threads: port_map_*() are the loop's; the thread only asks and sleeps.
 */
#pragma once

#include <stdint.h>

#include "net/gateway/port_mapping.h"

struct err;
struct port_map;
struct uv_loop_s;

/** port_map_fn - a mapping was granted, has changed, or is gone (kind PORT_MAPPING_NONE). */
typedef void (*port_map_fn)(void *ctx, const struct port_mapping *pm);

/** port_map_new() - asks for nothing yet. @ctx: pinned. 0 or negative errno with words. */
int port_map_new(
    struct port_map **ret, struct uv_loop_s *loop, port_map_fn fn, void *ctx, struct err *e);

/**
 * port_map_ask() - ask the router now, also when it has granted the port before
 * @internal_port: WireGuard's, host order; 0: ask for none from now on
 */
void port_map_ask(struct port_map *pm, uint16_t internal_port);

/**
 * port_map_free() - end the thread
 * @give_back:	remove the mapping at the router; else it lives on for its time
 *
 * With a mapping to be removed it waits until that is done, some seconds at most;
 * else the thread ends by itself after the request that it has under way. The handle
 * closes in the loop's next turns. NULL is fine. Always NULL.
 */
struct port_map *port_map_free(struct port_map *pm, bool give_back);
