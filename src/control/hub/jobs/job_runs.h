/*
 * job_runs.h - jobs are made, and their runs begin and end.
 *
 * Each of these writes the job's record in the store, and changes the job when that is on the disk
 * (record_save.h). How often that may be in a network is bounded: see JOBS_E_PACE.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include "base/clock.h"
#include "hub/jobs/jobs.h"

struct err;
struct ip_addr;
struct job;
struct job_network;

/** job_runs_join() - as jobs_join(), of a network that is served. */
int job_runs_join(struct job_network *n, const char *name, const char *member, const char *broken,
    nsec_t now, jobs_done_fn done, void *ctx, struct job **ret, struct err *e);

/** job_runs_end() - as jobs_end(). */
int job_runs_end(struct job *job, const struct ip_addr *who, nsec_t now, jobs_done_fn done,
    void *ctx, struct err *e);

/**
 * job_runs_make_default() - make the default job if the network is served and has none
 *
 * When it cannot be saved, that is logged, and the next job_runs_tick() tries again.
 */
void job_runs_make_default(struct job_network *n, nsec_t now);

/**
 * job_runs_tick() - each second
 *
 * Tries ports that could not be opened, forgets jobs that nobody came to for JOBS_IDLE (of the
 * default one: what is in it), and deletes some garbage.
 */
void job_runs_tick(struct job_network *n, nsec_t now);
