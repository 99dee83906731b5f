/*
 * metrics.h - what is counted on other threads for GET /v1/metrics.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/** What the writer of Kubernetes' resources has done; it counts on a thread of its own. */
struct resource_counts {
    atomic_bool is_leading;       /* this hub is the one that writes them */
    _Atomic uint64_t n_applied;   /* writes of metadata and spec */
    _Atomic uint64_t n_status;    /* writes of one writer's part of a status */
    _Atomic uint64_t n_failed;    /* of both, those that failed */
    _Atomic uint64_t n_wishes;    /* changes that people wished there */
    _Atomic uint64_t n_refused;   /* of them, those that the hub has refused */
    _Atomic uint64_t n_conflicts; /* fields that others own and that differ from what the hub has */
};
