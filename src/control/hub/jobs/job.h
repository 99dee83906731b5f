/*
 * job.h - one job, as the hub knows it.
 *
 * What is in the job only the network's rendezvous process knows. The hub knows its record, which
 * of its blobs are in the store, and how the process said last that it is.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/parse.h"
#include "hub/jobs/job_blobs.h"
#include "hub/jobs/job_members.h"
#include "hub/jobs/job_ports.h"
#include "rendezvous/shared/rdzv_record.h"

struct job_network;
struct rdzv_wire;
struct record_save;

/** How a job is, as its rendezvous process said last. */
struct job_facts {
    uint32_t n_connections; /* to it */
    unsigned n_members;     /* that are connected: 0, 1 (it is @member), or 2 for more */
    struct ip_addr member;  /* see @n_members */
    uint64_t n_keys;        /* entries */
    uint64_t n_bytes;       /* that they take */
    uint64_t n_refused;     /* requests over a limit */
    char last_limit[80];    /* which one it was; "": none */
};

/** What the rendezvous process has been told of a job. Only job_feed.c writes it. */
struct job_told {
    uint32_t
        number;     /* that there is a job of this number; another than the job's: it is not told */
    bool is_loaded; /* it has been told all that the store has of the job */
    size_t cursor;  /* how far the telling of blobs is: see blob_index_next() */
    unsigned handed; /* bit i: listening socket i was handed over */
};

struct job {
    struct list link;              /* in the network's jobs */
    struct job_network *network;   /* pins */
    uint32_t number;               /* by which a process knows it; new when it is revived */
    char name[NAME_MAX_LEN + 1];   /* see parse_name() */
    struct rdzv_job_record record; /* as it is in the store */
    struct record_save *save;      /* owns: the record that is on its way; NULL: none is */
    bool is_forgotten;             /* it is freed when the last of its garbage is deleted */
    bool is_unsaved;               /* it is being made: nobody is told of it */
    nsec_t heard_at;               /* when somebody spoke last */
    struct job_blobs blobs;        /* what of it is in the store */
    struct job_ports ports;        /* where it is served */
    struct job_facts facts;        /* see there */
    struct job_members members;    /* who has come to its present run */
    struct job_told told;          /* see there */
};

/** job_exists() - is it there for members? Not while it is being made, and not once forgotten. */
bool job_exists(const struct job *job);

/** job_is_default() - is it the one that is always there? */
bool job_is_default(const struct job *job);

/** job_is_busy() - is a member connected other than @who? @who: NULL: nobody is left out. */
bool job_is_busy(const struct job *job, const struct ip_addr *who);

/** job_is_over() - has its run ended, so that who comes now begins a new one? */
bool job_is_over(const struct job *job, nsec_t now);

/** job_is_idle() - has nobody been heard for so long that the job is to be forgotten? */
bool job_is_idle(const struct job *job, nsec_t now);

/** job_is_run() - is this the name of its present run? */
bool job_is_run(const struct job *job, const char *run);

/** job_set_run() - record.run, and the blobs of all other runs are garbage from now on. */
void job_set_run(struct job *job, uint32_t run);

/** job_take_facts() - a message RDZV_WIRE_FACTS, which is not trusted, says how it is. */
void job_take_facts(struct job *job, const struct rdzv_wire *m, nsec_t now);

/** job_lose_facts() - the process that told them has ended: nobody is connected any more. */
void job_lose_facts(struct job *job, nsec_t now);

/** job_forget_facts() - a run begins: nobody is connected, and nothing is in the stores. */
void job_forget_facts(struct job *job);

/** job_read_words() - what a process says in words, as people may see it; into @buf. */
void job_read_words(char *buf, size_t cap, const struct rdzv_wire *m);
