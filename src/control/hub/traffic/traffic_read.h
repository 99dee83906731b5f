/*
 * traffic_read.h - reads what went over a network's edges, day by day, from the store.
 *
 * All hubs' records are read, so any hub answers for all. What nodes have told other hubs in the
 * last minute may be missing.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/parse.h"
#include "hub/traffic/traffic_edges.h"

struct err;
struct model_network;
struct traffic_book;

struct traffic_query {
    char network[NAME_MAX_LEN + 1];
    int32_t since; /* the first day, and the last one */
    int32_t until;
};

/** Who reads. */
struct traffic_reader {
    /* What one day comes to, borrowed; in the order of days, each at most once. */
    void (*on_day)(void *ctx, int32_t day, const struct traffic_edges *edges);
    /* The end: 0, or negative errno with words. */
    void (*on_end)(void *ctx, int r, const struct err *e);
    void *ctx; /* pinned until then */
};

/**
 * traffic_read() - what this hub was told is written first, and then read with the rest
 *
 * Return: 0: accepted, and on_end is called once, later; or negative errno with words.
 */
int traffic_read(struct traffic_book *b, const struct traffic_query *query,
    const struct traffic_reader *reader, nsec_t now, struct err *e);

/** traffic_read_islands() - {"NODE": "ISLAND"}, as they were declared: prices depend on them.
 * @net: NULL: it is gone. A new reference. */
json_t *traffic_read_islands(const struct model_network *net);

/** traffic_read_hubs() - the names of the nodes that are hubs, likewise. A new reference. */
json_t *traffic_read_hubs(const struct model_network *net);
