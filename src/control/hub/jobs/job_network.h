/*
 * job_network.h - the jobs of one network: which there are, where they are served, and the way of
 * what is in them to the store.
 *
 * Theory of operation. What a rendezvous process wants kept gathers in the queue of changes
 * (change_queue.h), which is committed here. Jobs are made, and their runs begun and ended, by
 * job_runs.c, above.
 *
 * Nothing here knows the rendezvous process. What it is to be told is put into `to_process`, in
 * order, and `has_updates` says that a job or a port has come; job_host.c looks at both in each
 * turn of the loop, and jobs.c asks for the deadline, job_network_due().
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/containers.h"
#include "base/rate.h"
#include "base/text.h"
#include "health/finding.h"
#include "hub/jobs/change_queue.h"
#include "hub/jobs/job.h"
#include "hub/jobs/jobs.h"
#include "os/log.h"
#include "rendezvous/shared/rdzv_record.h"
#include "store/store.h"

struct job_network {
    struct list link;            /* in the list of all networks */
    struct jobs_env *env;        /* pins */
    char name[NAME_MAX_LEN + 1]; /* of the network */
    struct list jobs;            /* owns struct job, by name; also those that are forgotten */
    uint32_t last_number;        /* of a job */
    struct rate pace;            /* how often runs begin and end; job_runs.c's */
    struct rate notes;           /* how often other things are written of them; likewise */
    struct blob_totals totals;   /* of all jobs */
    struct change_queue queue;   /* what is not on the disk yet */
    struct blob_upload upload;   /* the blob that the process is saying */
    bool is_served;              /* jobs.c opens and closes the ports of its jobs */
    char interface[JOBS_INTERFACE_MAX]; /* where it is served */
    struct ip_addr address4;            /* likewise: the hub's */
    struct ip_addr address6;            /* likewise */
    struct ip_addr own_member;          /* of the member that the hub's machine is; none: it is not.
                                           Its programs connect from the hub's address */
    char fence[STORE_KEY_MAX + 1];      /* likewise: see struct jobs_place; "": none */
    uint64_t fence_revision;            /* likewise */
    uint64_t epoch;                     /* likewise */
    bool is_foreign;                    /* what is here may not be what the store has: it is neither
                                           served nor written */
    bool is_loading;                    /* it is being read anew */
    bool has_process;                   /* without a process @to_process stays empty */
    struct str to_process;              /* messages for the process */
    bool has_updates;                   /* a job or a port has come that it is not told of yet */
    struct job_counts counts_now;       /* of the present process; job_host.c's */
    struct job_counts counts_before;    /* of those that have ended; job_host.c's */
    struct findings findings;           /* what holds up its jobs now */
};

/* ---- networks ------------------------------------------------------------------------------- */

/** job_counts_add() - @more into @sum. */
void job_counts_add(struct job_counts *sum, const struct job_counts *more);

/** job_network_find() - lends the one of that name out of @networks; NULL: there is none. */
struct job_network *job_network_find(const struct list *networks, const char *name);

/** job_network_get() - as job_network_find(), and makes it if there is none. @env: pinned. NULL: no
 * memory. */
struct job_network *job_network_get(struct list *networks, struct jobs_env *env, const char *name);

/** job_network_free() - with its jobs, from memory alone. Nothing may be on its way to the store.
 */
void job_network_free(struct job_network *n);

/** job_network_add_fence() - add the check of the fence to @ops, if there is one. 1 or 0. */
size_t job_network_add_fence(const struct job_network *n, struct store_op *ops);

/** job_network_forget() - forget all jobs; what the store has of them is deleted. */
void job_network_forget(struct job_network *n, nsec_t now);

/* ---- jobs ----------------------------------------------------------------------------------- */

/** job_network_find_job() - lends, also one that is forgotten; NULL if there is none. */
struct job *job_network_find_job(const struct job_network *n, const char *name);

/**
 * job_network_add() - a job that was found in the store
 * @record:	as it is there; NULL: there is none, but blobs: they are garbage
 *
 * Return: lends; NULL: no memory.
 */
struct job *job_network_add(
    struct job_network *n, const char *name, const struct rdzv_job_record *record, nsec_t now);

/** job_network_free_job() - from memory alone; it may not be on its way to the store. */
void job_network_free_job(struct job *job);

/** job_network_open_ports() - of a network that is served; what cannot be opened is logged. */
void job_network_open_ports(struct job *job);

/** job_network_begin_run() - the record of run number @run is on the disk. */
void job_network_begin_run(struct job *job, uint32_t run, nsec_t now);

/** job_network_forget_job() - forget the job; sweeping deletes what the store has of it. */
void job_network_forget_job(struct job *job, nsec_t now);

/**
 * job_network_sweep() - delete some garbage, as long as few changes wait
 *
 * A job that was forgotten is freed when nothing of it is left, unless it is on its way to the
 * store.
 */
void job_network_sweep(struct job_network *n, nsec_t now);

/* ---- how jobs go ---------------------------------------------------------------------------- */

struct job_sample;

/** job_network_findings() - where what is found of the network's jobs goes. */
struct findings *job_network_findings(struct job_network *n);

/** job_network_take_sample() - what @member has seen of the job; the names of the sample's peers
 * are filled in. Without memory it is passed over. */
void job_network_take_sample(
    struct job *job, const char *member, const struct job_sample *s, nsec_t now);

/** job_network_look() - find out what holds up the job now; each second. */
void job_network_look(struct job *job, nsec_t now);

/** job_network_forget_health() - nothing is known of how the job goes. Idempotent. */
void job_network_forget_health(struct job *job);

/* ---- the store ------------------------------------------------------------------------------ */

/** job_network_sync() - the process is to be told @seq when all changes so far are on the disk. */
void job_network_sync(struct job_network *n, uint64_t seq, nsec_t now);

/** job_network_due() - when job_network_commit() is to be called; NSEC_NEVER: not now. */
nsec_t job_network_due(const struct job_network *n);

/** job_network_commit() - begin a commit of what waits. */
void job_network_commit(struct job_network *n, nsec_t now);

/**
 * job_network_commit_all() - commit everything and wait for the disk: the hub ends
 *
 * Return: 0 or negative errno with words.
 */
int job_network_commit_all(struct job_network *n, struct err *e);

/* ---- what all networks of a hub share, as far as their jobs are concerned -------------------- */

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
