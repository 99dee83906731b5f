/*
 * island_lan.h - the nodes of this node's island, as its private network reaches them.
 *
 * What `weft run --island-lan` gives a job: the nodes of the island with their addresses on the
 * private network, and a hosts file in which their names lead there instead of onto the overlay.
 *
 * Only a node counts whose packets the agent sends over the private network at present: its address
 * there is one from which the node has answered a sealed frame, so it is that node's. An island
 * that measurements contradict counts only with a label. The node's own name stays on the overlay,
 * since programs announce themselves by it to nodes of other islands, too.
 *
 * Pure: the agent's status and a text go in.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/parse.h"

struct str;

/** A node of the island. */
struct island_mate {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr overlay4; /* its addresses on the overlay; none: not known */
    struct ip_addr overlay6;
    struct ip_addr lan; /* its address on the private network */
};

struct island_lan {
    struct island_mate *mates; /* owns */
    size_t n;
};

#define ISLAND_LAN_NULL                                                                            \
    {                                                                                              \
        0                                                                                          \
    }

/** The first line of a hosts file that island_lan_hosts() has made. */
#define ISLAND_LAN_MARK "# weft run --island-lan: nodes of this island at their private addresses\n"

/**
 * island_lan_of_status() - the nodes of the island, from an agent's status (GET /v1/status)
 * @ret:	untouched on failure; to be released with island_lan_deinit()
 *
 * Return: 0 or -ENOMEM.
 */
int island_lan_of_status(struct island_lan *ret, const json_t *status);

/** island_lan_deinit() - idempotent. */
void island_lan_deinit(struct island_lan *l);

/** island_lan_format() - append a line for each node, as in a hosts file: address and name. */
void island_lan_format(const struct island_lan *l, struct str *out);

/**
 * island_lan_hosts() - append a hosts file in which the nodes' names lead to the private addresses
 * @old:	@len bytes of a hosts file, whatever they are
 *
 * Lines with a node's overlay address get the private one; its line of the other family is left
 * out. All other lines stay as they are.
 */
void island_lan_hosts(const struct island_lan *l, struct str *out, const char *old, size_t len);
