/*
 * port_map.h - keeps a port of the router's mapped to ours, in a thread of its own.
 *
 * The router is asked when the port is known and when the network has changed,
 * and again at half of what it granted, or sooner, for it may have been
 * restarted. Nothing waits for it: the answer comes when it comes, or never.
 *
 * Threads: port_map_*() are the loop's; the thread only asks and sleeps.
 */
#pragma once

#include <stdint.h>

#include "net/port_mapping.h"

struct err;
struct port_map;
struct uv_loop_s;

/** port_map_fn - it is granted, is another than before, or is gone (kind PORT_MAPPING_NONE). */
typedef void (*port_map_fn)(void *ctx, const struct port_mapping *pm);

/** port_map_new() - @ctx: pinned. Asks for nothing yet. 0 or negative errno with words. */
int port_map_new(
    struct port_map **ret, struct uv_loop_s *loop, port_map_fn fn, void *ctx, struct err *e);

/** port_map_ask() - for that port of ours, now, also when it was granted before. 0: for none. */
void port_map_ask(struct port_map *pm, uint16_t internal_port);

/**
 * port_map_free() - end the thread
 * @give_back:	remove the mapping at the router; else it lives on for its time
 *
 * With something to give back it waits for that, some seconds at most; else a
 * request that is under way is left to itself. Its handle closes in the loop's
 * next turns. NULL is fine. Always NULL.
 */
struct port_map *port_map_free(struct port_map *pm, bool give_back);
