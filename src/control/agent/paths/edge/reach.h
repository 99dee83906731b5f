/*
 * reach.h - how each peer is reached right now, since when, and why not better.
 *
 * It combines the rule (render_decide()) with what was found (path/path.h) and with what the engine
 * shows: a peer that is not reached, or does not answer, has no round trip time and no loss. The
 * status and the report to the hub are made from it.
 *
 * Pure: facts and times in; how each peer is reached, and since when, out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "mesh/render/render.h"
#include "path/path.h"

struct observe;

struct reach_peer {
    char node[NAME_MAX_LEN + 1];
    enum path_kind kind;
    char relay[NAME_MAX_LEN + 1]; /* the node through which it goes; "": through none */
    char why[PATH_TEXT_MAX];      /* a clause; "" when there is nothing to explain */
    nsec_t since;                 /* @kind has been the same since then, monotonic */
    struct endpoint remote;  /* it is there, whatever the engine thinks; none: as the engine says */
    struct ip_addr underlay; /* of the other end of a lan or direct path; none: not known */
    bool is_alarm;           /* only direct paths are wanted, and for some time there was none */
    bool is_relay_better;    /* it is relayed, and the direct path that there was is worse */
    nsec_t silent_since; /* what was sent to it since then has no answer, monotonic; 0: it has, or
                            nothing was sent that is answered */
    nsec_t fell_back_at; /* it had a direct path until then, and could do with one, monotonic; 0: it
                            has one, or never had, or is better off at the relay, or is to be there
                          */
    bool awaits_hub;     /* it is not reached because the hub that relays does not answer */
    bool is_measured;    /* the next two are known */
    nsec_t rtt;
    nsec_t least_rtt;         /* as in struct path_view */
    struct rtt_spread spread; /* of a direct path; all zero: not known */
    struct rtt_longer longer; /* likewise: its round trips take longer than usual */
    bool has_loss;            /* the next is known */
    unsigned loss_permille;
    unsigned lost_lately_permille; /* as in struct path_view; 0: not known */
    nsec_t answered_at;            /* likewise */
};

struct reach {
    struct reach_peer *items; /* owns; every node but this one and the hubs, sorted by name */
    size_t n;
    size_t n_alarms; /* of them */
};

/** reach_deinit() - release it. */
void reach_deinit(struct reach *r);

/** What holds for all nodes at one look. */
struct reach_facts {
    const struct render_input *in; /* borrowed; as render_config() has it */
    bool hub_heard;                /* the hub is there */
    const char *stream_why;        /* why all that goes to the hub goes in TLS; NULL: it does not */
    const struct observe *seen;    /* borrowed; of all peers; NULL: nothing is known of them */
    nsec_t now;
};

/** What was found for a node: fills in @ret. False: nothing is looked for. */
typedef bool (*reach_view_fn)(const void *ctx, const char *node, struct path_view *ret, nsec_t now);

/**
 * reach_update() - how each node is reached now; what is as it was keeps the time since when
 * @view:	NULL: no paths are looked for
 *
 * Return: 0 or -ENOMEM, and then nothing has changed.
 */
int reach_update(
    struct reach *r, const struct reach_facts *facts, reach_view_fn view, const void *ctx);

/** reach_find() - lends; NULL if there is none to that node. */
const struct reach_peer *reach_find(const struct reach *r, const char *node);
