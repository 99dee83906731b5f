/*
 * rdzv_job.h - the jobs of a network in a rendezvous process: what each keeps, and what the hub is
 * told of it.
 *
 * The hub decides which jobs there are and when a run of one begins (hub/jobs/jobs.h). What a job
 * keeps is in tcpstore_server.h (TCPStore) and etcd2_tree.h (etcd). Its connections are in
 * rdzv_conn.h.
 *
 * Nothing here waits, and no timer is started here: a job notes in struct rdzv_jobs what has to be
 * done, and the owner of the loop looks there at the end of each turn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"
#include "rendezvous/etcd2/etcd2_tree.h"
#include "rendezvous/job/rdzv_save.h"
#include "rendezvous/shared/rdzv_quota.h"
#include "rendezvous/tcpstore/tcpstore_server.h"

/** What the jobs of a network share. */
struct rdzv_jobs {
    char network[NAME_MAX_LEN + 1]; /* its name */
    struct ip_addr address4;        /* the hub's overlay address */
    struct ip_addr address6;        /* likewise */
    struct list all;                /* of struct rdzv_job */
    struct rdzv_quota quota;        /* of all of them */
    struct rdzv_save *save;         /* pins: changes go to the hub through it */
    uint64_t seed;                  /* for the hash tables */
    struct str blob;                /* the pieces of a blob that have been loaded so far */

    /* What the owner of the loop does at the end of the turn. */
    bool has_unsaved;  /* some job's TCPStore has changes that rdzv_jobs_flush() saves */
    bool has_news;     /* some job has facts that the hub does not know */
    nsec_t expires_at; /* the earliest end of a node, of the trees that have changed; else
                          NSEC_NEVER */
};

/** A job. */
struct rdzv_job {
    struct list link;                /* in rdzv_jobs.all */
    struct rdzv_jobs *jobs;          /* pins */
    uint32_t number;                 /* by which the hub names it */
    uint32_t run;                    /* number of its current run */
    uint16_t port;                   /* of both protocols */
    uint16_t etcd_port;              /* the port that clients of etcd are told */
    char name[NAME_MAX_LEN + 1];     /* of the job */
    struct rdzv_quota quota;         /* of what is in it */
    struct rdzv_quota when_empty;    /* the same as it was when the job was new */
    struct tcpstore_server tcpstore; /* its TCPStore */
    struct etcd2_tree etcd2;         /* its etcd */
    bool is_unsaved;                 /* its TCPStore has changes to save */
    bool is_clearing;                /* drops are not told: the hub drops all blobs by itself */
    bool has_news;                   /* the hub does not know its facts yet */
    struct list conns;               /* of struct rdzv_conn; only rdzv_conn.c changes it */
    nsec_t heard_at;                 /* when a client sent something last */
    nsec_t told_heard_at;            /* the same, as the hub knows it */
    uint64_t told_refused;           /* refusals of the quota, as the hub knows them */
};

/** Who is connected to a job. */
struct rdzv_presence {
    uint32_t n_connections;
    uint8_t n_members;     /* 0, 1, or 2 for more than one */
    struct ip_addr member; /* one of them; valid when there is one */
};

/** rdzv_jobs_init() - no jobs; @seed: random, unknown to strangers. */
void rdzv_jobs_init(struct rdzv_jobs *jobs, struct rdzv_save *save, uint64_t seed);

/** rdzv_jobs_deinit() - after rdzv_job_free() of each. Idempotent. */
void rdzv_jobs_deinit(struct rdzv_jobs *jobs);

/** rdzv_jobs_find() - lends the job of that number; NULL if there is none. */
struct rdzv_job *rdzv_jobs_find(struct rdzv_jobs *jobs, uint32_t number);

/** rdzv_jobs_flush() - send all changes to the hub: before an answer, and at the end of each turn.
 */
void rdzv_jobs_flush(struct rdzv_jobs *jobs);

/** rdzv_job_new() - an empty job, as RDZV_WIRE_JOB describes it. NULL: no memory, or a name too
 * long. */
struct rdzv_job *rdzv_job_new(struct rdzv_jobs *jobs, const struct rdzv_wire *m, nsec_t now);

/** rdzv_job_free() - after its connections. What the hub has kept of it, the hub drops by itself.
 */
void rdzv_job_free(struct rdzv_job *job);

/** rdzv_job_load() - load a piece of a blob that the hub has kept; a damaged one is told to the
 * hub. */
void rdzv_job_load(struct rdzv_job *job, const struct rdzv_wire *m, struct etcd2_when when);

/** rdzv_job_clear() - drop what it keeps, since @run begins. End its connections before. */
void rdzv_job_clear(struct rdzv_job *job, uint32_t run, nsec_t now);

/** rdzv_job_changed() - note that the hub has to be told the job's facts. */
void rdzv_job_changed(struct rdzv_job *job);

/** rdzv_job_note_expiry() - note when its tree's next node ends, after the tree may have changed.
 */
void rdzv_job_note_expiry(struct rdzv_job *job);

/** rdzv_job_has_facts() - is there anything about it that the hub does not know? */
bool rdzv_job_has_facts(const struct rdzv_job *job);

/** rdzv_job_tell_facts() - tell the hub the job's facts: RDZV_WIRE_FACTS. */
void rdzv_job_tell_facts(struct rdzv_job *job, const struct rdzv_presence *who, nsec_t now);
