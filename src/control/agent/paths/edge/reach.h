/*
 * reach.h - how each peer is reached right now, since when, and why not better.
 *
 * It combines the rule (render_decide()) with what was found (path/path.h). The status and the
 * report to the hub are made from it.
 *
 * Pure: facts and times in, a judgement out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/snapshot.h"
#include "path/path.h"

struct reach_peer {
    char node[NAME_MAX_LEN + 1];
    enum path_kind kind;
    char relay[NAME_MAX_LEN + 1]; /* the node through which it goes; "": through none */
    char why[PATH_TEXT_MAX];      /* a clause; "" when there is nothing to explain */
    nsec_t since;                 /* @kind has been the same since then, monotonic */
    struct endpoint remote;  /* it is there, whatever the engine thinks; none: as the engine says */
    struct ip_addr underlay; /* of the other end of a lan or direct path; none: not known */
    bool is_alarm;           /* only direct paths are wanted, and for some time there was none */
    bool is_measured;        /* the next three are known */
    nsec_t rtt;
    nsec_t least_rtt; /* as in struct path_view */
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

/** reach_deinit() - release it; idempotent. */
void reach_deinit(struct reach *r);

/** What holds for all nodes at one look. */
struct reach_facts {
    const struct render_input *in; /* borrowed; as render_config() has it */
    bool hub_heard;                /* the hub is there */
    const char *stream_why;        /* why all that goes to the hub goes in TLS; NULL: it does not */
    nsec_t now;
};

/** reach_is_peer() - is that node one whose reach is judged: neither this one nor a hub? */
bool reach_is_peer(const struct snapshot *s, const struct node *node);

/** reach_begin() - a new, empty one, with room for @n peers. 0 or -ENOMEM. */
int reach_begin(struct reach *ret, size_t n);

/**
 * reach_add() - judge one more peer, of those that reach_is_peer() names; in order of their names
 * @view:	what was found for it; NULL: nothing is looked for
 */
void reach_add(struct reach *r, const struct reach_facts *facts, const struct node *node,
    const struct path_view *view);

/** reach_replace() - takes @next in place of @r; what is as it was keeps the time since when. */
void reach_replace(struct reach *r, struct reach *next);

/** reach_find() - lends; NULL if there is none to that node. */
const struct reach_peer *reach_find(const struct reach *r, const char *node);
