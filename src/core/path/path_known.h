/*
 * path_known.h - under which keys the frames of an edge come; paths.c's.
 */
#pragma once

#include "base/containers.h"
#include "path/path.h"
#include "wire/path.h"

struct path;

/** Under two keys, one of each end, frames of an edge come. Each end has a second key while it
 * changes its own, so there are four of these at most. */
struct path_known {
    struct htab_link by_tag;
    struct path *path; /* pins; NULL: it is in no table */
    struct path_keys keys;
};

/** Most of them beside the first. */
#define PATH_KNOWN_MORE 3
