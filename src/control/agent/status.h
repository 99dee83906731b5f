/*
 * status.h - the node's status as JSON, which is a contract.
 *
 * It is that of `weft status --json` and of the agent's socket; status_text.h makes of it what
 * people read. Fields are added, not renamed; what is not known is null.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "agent/hublink/hub_link.h"
#include "base/addr.h"
#include "base/clock.h"
#include "base/err.h"
#include "mesh/object/subnets.h"

struct agent_hub;
struct node;
struct reach_peer;

/** What is known of the cluster's API: does it say who is in the network? All zero but @since: it
 * has not answered yet. */
struct status_cluster {
    bool is_heard;  /* it answers */
    nsec_t since;   /* monotonic; so it is since then */
    struct err why; /* why it does not; no words: nothing has failed yet */
};

/** status_cluster_set() - it answers now, or does not, for the reason @why. */
void status_cluster_set(struct status_cluster *c, bool heard, const char *why, nsec_t now);

/** Everything that a status tells of. Borrowed. */
struct status_input {
    const struct agent *agent;         /* what it has found; it is asked for nothing anew */
    const struct render_input *render; /* its snapshot and paths */
    const char *engine;                /* "userspace" or "kernel"; NULL: none runs */
    const struct offloads *offloads;   /* of the userspace engine; NULL: not known */
    struct hub_link_view hub;          /* the serving hub, as its link sees it */
    const char *tls_failure; /* why packets to it do not go in TLS although UDP fails; NULL: nothing
                                known */
    int forwards4;           /* IPv4; as interface_setting() says */
    int forwards6;
    nsec_t now;  /* monotonic */
    nsec_t wall; /* ns since 1970 */
};

/** Room for status_explain_hub(), with its zero. */
#define STATUS_HUB_WHY_MAX (ENDPOINT_TEXT_MAX + 320)

/** status_explain_hub() - what is wrong with that hub, a clause; "": nothing. */
void status_explain_hub(const struct status_input *in, const struct agent_hub *hub,
    char ret[static STATUS_HUB_WHY_MAX]);

/** A subnet behind this node, or one that it has asked for. */
struct status_subnet {
    char route[IP_PREFIX_TEXT_MAX];
    bool is_admitted;
    char why[256]; /* why no packets get to it, and what helps; "": no obstacle is known on this
                      machine */
};

/** Most of them: those that the hub has admitted, and those that were asked for. */
#define STATUS_SUBNETS_MAX (2 * SUBNETS_MAX)

/** status_own_subnets() - into @ret; returns how many. */
size_t status_own_subnets(
    const struct status_input *in, struct status_subnet ret[static STATUS_SUBNETS_MAX]);

/** status_encode() - the status as JSON: a new reference, NULL for no memory. */
json_t *status_encode(const struct status_input *in);

/** status_paths_encode() - all that was tried to reach @node, for `weft paths NODE`, as JSON, which
 * is a contract, too. @peer: how it is reached. */
json_t *status_paths_encode(
    const struct agent *a, const struct node *node, const struct reach_peer *peer, nsec_t now);
