/*
 * job_runs.h - jobs are made, and their runs begin and end.
 *
 * Each of these writes the job's record in the store, and changes the job when that is on the disk
 * (job_network.h). How often that may be in a network is bounded: see JOBS_E_PACE.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include "base/clock.h"
#include "hub/jobs/jobs.h"
#include "rendezvous/shared/rdzv_record.h"

struct job_network;

/** job_runs_join() - as jobs_join(), of a network that is served. */
int job_runs_join(struct job_network *n, const char *name, const char *member, const char *broken,
    nsec_t now, jobs_done_fn done, void *ctx, struct job **ret, struct err *e);

/**
 * job_runs_note() - have it written down who has the places, and where a command of the run has
 * ended, so that both hold when the hub is started anew
 *
 * What is not written now is written by a later job_runs_tick().
 */
void job_runs_note(struct job *job, nsec_t now);

/** job_runs_ended_on() - the member of JOBS_E_OVER: its command has ended in the present run, and
 * it is not back; lent, "": none. */
const char *job_runs_ended_on(const struct job *job, nsec_t now);

/** Where a member that came to a job now would meet. */
struct job_outlook {
    const struct job *job;         /* lent, until the loop's turn ends; NULL: there is none yet */
    struct rdzv_job_record record; /* as it would be */
    bool begins;                   /* a run would begin, with nothing in the stores */
};

/**
 * job_runs_look() - what job_runs_join() would do now; nothing is changed
 *
 * Return: 0; or JOBS_E_FULL with words.
 */
int job_runs_look(const struct job_network *n, const char *name, nsec_t now,
    struct job_outlook *ret, struct err *e);

/** job_runs_await() - is something of the job on its way to the disk? 0: no; or as job_runs_end().
 * @job: may be NULL. */
int job_runs_await(struct job *job, jobs_done_fn done, void *ctx, struct err *e);

/**
 * job_runs_end() - the run is over; who comes next begins a new one
 * @who:	says so; that it is connected itself does not matter
 * @done:	called later, once, when the outcome is JOBS_E_AGAIN
 *
 * When it returns 0 that is on the disk.
 *
 * Return: 0; JOBS_E_AGAIN; JOBS_E_BUSY or JOBS_E_PACE with words; or negative errno with words.
 */
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
