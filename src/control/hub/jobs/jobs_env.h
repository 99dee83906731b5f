/*
 * jobs_env.h - what all networks of a hub share, as far as their jobs are concerned.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "hub/jobs/change_queue.h"
#include "hub/jobs/jobs.h"
#include "os/log.h"

struct store;
struct uv_loop_s;

struct jobs_env {
    struct uv_loop_s *loop;      /* pins */
    struct store *store;         /* pins */
    nsec_t (*clock)(void);       /* monotonic; a test has its own */
    struct jobs_records records; /* who is told of records that cannot be read */
    uint64_t seed;               /* of the hash tables; random, unknown to strangers */
    uint64_t epoch;              /* by it members tell this life of the hub from another */
    struct change_pace pace;     /* of the commits of all networks */
    struct log_limit log_limit;  /* of the words about what could not be saved */
};
