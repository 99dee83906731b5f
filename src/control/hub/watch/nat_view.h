/*
 * nat_view.h - how long the NATs of a network's nodes keep a silent UDP mapping, by provider.
 *
 * Agents measure it and report it (docs/KEEPALIVE.md). A NAT is mostly its provider's, so what was
 * measured behind one is known for the next machine there. The provider is what the node's label
 * "provider" says, else the cloud that its agent has found; the region what its label "region"
 * says.
 *
 * Made anew each time that somebody reads it. Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "hub/model/model.h"

/** Most groups; nodes of others are counted as left out. */
#define NAT_VIEW_GROUPS_MAX 64

/** The nodes of one provider and region. */
struct nat_group {
    char provider[OBJECT_LABEL_MAX + 1]; /* "": not known */
    char region[OBJECT_LABEL_MAX + 1];   /* "": not said */
    unsigned n_nodes;                    /* that run an agent */
    unsigned n_natted;                   /* of those that have measured, behind a NAT */
    unsigned n_measured;
    uint32_t forgotten_ms[2]; /* the least and the greatest rest that was not survived; 0: none */
    uint32_t survived_ms[2];  /* the same of those that were */
};

struct nat_view {
    struct nat_group groups[NAT_VIEW_GROUPS_MAX]; /* in order of provider and region */
    size_t n;
    size_t n_left_out; /* nodes */
};

/** nat_view_make() - of the nodes of @net whose machines are there. */
void nat_view_make(struct nat_view *ret, const struct model_network *net);

/** nat_view_encode() - as GET .../nat answers: a new reference, NULL: no memory. */
json_t *nat_view_encode(const struct nat_view *v, const struct network *net);
