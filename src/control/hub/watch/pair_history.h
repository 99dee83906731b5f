/*
 * pair_history.h - how each pair of nodes has been: a point a minute for an hour, and a point an
 * hour for a week.
 *
 * At the end of each minute the pairs are passed of which there are figures: a round trip, loss, or
 * what jobs carry, which is the mean of that minute. A pair has a history from the first of them
 * on, and then also a point where there is none: its state. Of a pair that is dead there is the
 * state alone (edge_view_figures()). A minute in which the hub did not look has no point.
 *
 * The history is in memory, 5.6 kB for each pair, and PAIR_HISTORY_MAX of them at most, 112 MB. In
 * a network of 1,000 nodes each may speak with 40 others. A pair that finds no room has none; one
 * of which there was no figure for a week makes room.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "health/pair.h"
#include "hub/model/model.h"
#include "hub/watch/edge_view.h"
#include "store/keys.h"

#define PAIR_HISTORY_MINUTES 60
#define PAIR_HISTORY_HOURS   168

/** Most pairs of all networks together. */
#define PAIR_HISTORY_MAX 20000

/** In struct pair_point: what is not known. */
#define PAIR_POINT_NO_LOSS  0xfffffu
#define PAIR_POINT_NO_STATE 31u

/** How a pair was in a minute or an hour; [0]: from the first node to the second. */
struct pair_point {
    uint32_t rtt_us;      /* 0: not measured */
    uint32_t jitter_us;   /* 0: not measured */
    uint32_t rate_kib[2]; /* what jobs carry, KiB/s, rounded up; 0: nothing */
    uint32_t loss0 : 20;  /* parts in a million; PAIR_POINT_NO_LOSS: not known */
    uint32_t state : 5;   /* enum edge_state; PAIR_POINT_NO_STATE: there is no point */
    uint32_t loss1 : 20;  /* as @loss0, of the other way */
};

/** A history; all zero: it has not begun. */
struct pair_history {
    int64_t minute;         /* of the last point, since 1970; 0: there is none */
    int64_t figures_minute; /* the last one in which something was measured */
    struct pair_point minutes[PAIR_HISTORY_MINUTES]; /* each at its minute, modulo */
    struct pair_point hours[PAIR_HISTORY_HOURS];     /* likewise */
};

/** pair_history_put() - how the pair is in the minute of @at, s since 1970. One that is there
 * stays; before the last one the clock was set back, and the history begins anew. */
void pair_history_put(struct pair_history *h, int64_t at, const struct pair_point *p);

/** pair_history_encode() - {"minutes": [...], "hours": [...]}, the oldest first; a new reference,
 * NULL: no memory. Minutes and hours long before @at are not shown. */
json_t *pair_history_encode(const struct pair_history *h, int64_t at);

/** Those of all networks. */
struct pair_histories {
    struct keys networks; /* of struct network_history */
    size_t n;             /* pairs */
    int64_t minute;       /* the present one, since 1970; 0: there was no pass yet */
    int64_t rates_at;     /* when what jobs carry was looked at last, in tens of seconds */
    unsigned n_rates;     /* such looks in this minute */
};

/** pair_histories_deinit() - forget all. */
void pair_histories_deinit(struct pair_histories *all);

/** pair_histories_pass() - each second: when a minute is over, add a point of it to each history.
 */
void pair_histories_pass(struct pair_histories *all, const struct model *m, int64_t wall_s);

/**
 * pair_histories_show() - as GET .../edges/A--B/history answers:
 * {"name", "nodes": [A, B], "minutes", "hours"}
 *
 * Return: a new reference, NULL: no memory.
 */
json_t *pair_histories_show(
    const struct pair_histories *all, const struct edge_pair *pair, int64_t wall_s);
