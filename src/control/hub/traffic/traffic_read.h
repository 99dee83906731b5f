/*
 * traffic_read.h - reads what went over a network's edges, day by day, from the store.
 *
 * All hubs' records are read, so any hub answers for all. What nodes have told other hubs in the
 * last minute may be missing.
 */
#pragma once

#include <stdbool.h>
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

struct traffic_key;

/** Who reads: the rows of whole days, or one record after the other. */
struct traffic_reader {
    /* What one day comes to, borrowed; in the order of days, each at most once. */
    void (*on_day)(void *ctx, int32_t day, const struct traffic_edges *edges);
    /* NULL: days are read. Else whether this record, written at that revision, is wanted. */
    bool (*wants)(void *ctx, const struct traffic_key *key, uint64_t revision);
    /* One that was, borrowed. */
    void (*on_record)(void *ctx, const struct traffic_key *key, const struct traffic *t);
    /* The end: 0, or negative errno with words. */
    void (*on_end)(void *ctx, int r, const struct err *e);
    void *ctx; /* pinned until then */
};

/** traffic_read_voice() - whether a node of that name, which has told nothing of a day, might.
 * @net: NULL: it is gone. */
enum traffic_voice traffic_read_voice(const struct model_network *net, const char *node);

/**
 * traffic_read() - what this hub was told is written first, and then read with the rest
 *
 * Return: 0: accepted, and on_end is called once, later; or negative errno with words.
 */
int traffic_read(struct traffic_book *b, const struct traffic_query *query,
    const struct traffic_reader *reader, nsec_t now, struct err *e);
