/*
 * status_paths.h - all that was tried to reach one node: `weft paths NODE`.
 *
 * As JSON, which is a contract as status.h's is, and of it for people.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/clock.h"

struct node;
struct path_driver;
struct reach_peer;
struct str;

/** What is told of one node. Borrowed. */
struct status_paths {
    const struct path_driver *paths;
    const struct node *node;       /* that one */
    const struct reach_peer *peer; /* how it is reached */
    uint64_t rate;                 /* what is sent to it is kept to so many bit/s; 0: to none */
    nsec_t now;                    /* monotonic */
};

/** status_paths_encode() - as JSON: a new reference, NULL for no memory. */
json_t *status_paths_encode(const struct status_paths *in);

/** status_paths_format() - what status_paths_encode() made, for people; appends to @out. */
void status_paths_format(const json_t *paths, struct str *out);
