/*
 * arrivals.h - which members have come to the present run of a job.
 *
 * Only to be told: `weft run` says by it who is missing. It lives in memory; a
 * hub that was started anew knows of nobody until they ask again.
 */
#pragma once

#include <jansson.h>

/** Most jobs of all networks that are kept; when there are more, all are forgotten. */
#define ARRIVALS_JOBS_MAX 4096

struct arrivals {
    json_t *jobs; /* owns; by "NETWORK/JOB": {"run": ..., "members": {NAME: true}}; NULL: none */
};

#define ARRIVALS_NULL                                                                              \
    {                                                                                              \
        0                                                                                          \
    }

/** arrivals_deinit() - idempotent. */
void arrivals_deinit(struct arrivals *a);

/** arrivals_add() - @member has asked where @run of the job meets. Those of another run go. */
void arrivals_add(
    struct arrivals *a, const char *network, const char *job, const char *run, const char *member);

/** arrivals_list() - the names, sorted; gives a reference, NULL: no memory. */
json_t *arrivals_list(
    const struct arrivals *a, const char *network, const char *job, const char *run);
