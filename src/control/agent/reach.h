/*
 * reach.h - how each peer is reached right now, since when, and why not better.
 *
 * Pure: it combines the rule (render_decide()) with what is observed. The
 * status and the report to the hub are made from it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "mesh/render.h"
#include "mesh/snapshot.h"
#include "path/path.h"

struct finder;

struct reach_peer {
    char node[NAME_MAX_LEN + 1];
    enum path_kind kind;
    char relay[NAME_MAX_LEN + 1]; /* the node through which it goes; "": through none */
    char why[PATH_TEXT_MAX];      /* a clause; "" when there is nothing to explain */
    nsec_t since;                 /* monotonic: how long it has been so */
    struct endpoint remote; /* it is there, whatever the engine thinks; none: as the engine says */
    bool is_alarm;          /* only direct paths are wanted, and for some time there was none */
    bool is_measured;       /* the next two are known */
    nsec_t rtt;
    unsigned loss_permille;
};

struct reach {
    struct reach_peer *items; /* owns; every node but this one and the hubs, sorted by name */
    size_t n;
    size_t n_alarms; /* of them */
};

#define REACH_NULL                                                                                 \
    {                                                                                              \
        0                                                                                          \
    }

void reach_deinit(struct reach *p);

/**
 * reach_take() - look again
 * @in:		as render_config() has it
 * @finder:	what has been found; NULL: nothing is looked for
 * @hub_heard:	the hub is there
 * @stream_why:	why all that goes to the hub goes in TLS; NULL: it does not. Pinned: until the
 *		next call
 *
 * Return: 0 or -ENOMEM, and then nothing has changed.
 */
int reach_take(struct reach *p, const struct render_input *in, const struct finder *finder,
    bool hub_heard, const char *stream_why, nsec_t now);

/** reach_find() - lends; NULL if there is none to that node. */
const struct reach_peer *reach_find(const struct reach *p, const char *node);
