/*
 * paths.h - how each peer is reached right now, since when, and why not better.
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

enum path_kind {
    PATH_KIND_NONE,   /* it is not reached */
    PATH_KIND_LAN,    /* in the same private network */
    PATH_KIND_DIRECT, /* at its public address */
    PATH_KIND_RELAY,  /* through the hub, unread */
    PATH_KIND_STREAM, /* through the hub, inside TLS */
    PATH_KIND_N,
};

struct path {
    char node[NAME_MAX_LEN + 1];
    enum path_kind kind;
    const char *why; /* a clause; "" when there is nothing to explain; never NULL */
    nsec_t since;    /* monotonic: how long it has been so */
};

struct paths {
    struct path *items; /* owns; every node but this one and the hubs, sorted by name */
    size_t n;
};

#define PATHS_NULL {0}

void paths_deinit(struct paths *p);

/** path_kind_name() - "none", "lan", "direct", "relay", "stream". */
const char *path_kind_name(enum path_kind kind);

/**
 * paths_take() - look again
 * @in:		as render_config() has it
 * @hub_heard:	the hub is there
 *
 * Return: 0 or -ENOMEM, and then nothing has changed.
 */
int paths_take(struct paths *p, const struct render_input *in, bool hub_heard, nsec_t now);

/** paths_find() - lends; NULL if there is none to that node. */
const struct path *paths_find(const struct paths *p, const char *node);
