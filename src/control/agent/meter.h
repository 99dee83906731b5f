/*
 * meter.h - what this node has exchanged with each other one: bytes by day, path and job.
 *
 * Theory of operation. The engine's counters of a peer only grow, until the engine or the peer is
 * made anew. At each poll the meter adds to the day's sums what they have grown by, and remembers
 * them. Sums and counters are written together, into STATE/traffic.json. So what moves while no
 * agent runs is counted by the next one, and nothing is counted twice; a machine that crashes loses
 * what had moved since the file was written. A node without that file begins a new meter, whose
 * number is another one, and with the counters as they are.
 *
 * What moves between two members of a job while it runs here is the job's. Where an edge has
 * several jobs, each gets an equal part.
 *
 * A flow gets the next number when the sums are settled, which is before they are written. So
 * whoever has been told all flows up to a number is told those above it next (docs/COST.md).
 *
 * struct meter is pure: facts in, sums out. struct node_meter keeps one in its file.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "crypto/x25519.h"
#include "mesh/object/traffic.h"
#include "os/log.h"

struct metrics;

/* ---- counting -------------------------------------------------------------------------------- */

/** Days that are kept while no hub has taken them, with today. */
#define METER_DAYS_MAX TRAFFIC_DAYS_KEPT

/** Jobs that run here at once and are told apart. */
#define METER_JOBS_MAX 16

/** The engine's counters of a peer when they were looked at last. */
struct meter_counter {
    struct x25519_public key;
    uint64_t sent;
    uint64_t received;
};

/** A job that runs here. */
struct meter_job {
    char name[NAME_MAX_LEN + 1];
    unsigned n_runs; /* commands of it that run on this machine */
    char *members;   /* owns; the names of the nodes of its run, each with its zero */
    size_t len;      /* bytes of @members */
};

struct meter {
    uint64_t id;                         /* random; 0: nothing is counted */
    struct traffic days[METER_DAYS_MAX]; /* owns; the oldest first */
    unsigned n_days;
    struct meter_counter *counters; /* owns; sorted by key */
    size_t n_counters;
    bool has_counters; /* they are those of an engine; else the first look takes them as they are */
    uint64_t seq;      /* the greatest number of a flow */
    struct meter_job jobs[METER_JOBS_MAX];
    unsigned n_jobs;
};

/** What a look is made with. Borrowed. */
struct meter_facts {
    const struct snapshot *snapshot;
    const struct observe *seen; /* what the engine says of each peer */
    const struct reach *reach;  /* how each peer is reached */
    bool is_streamed;           /* what goes to the hub goes in TLS */
    int64_t wall_s;             /* s since 1970 */
};

/** meter_deinit() - idempotent. */
void meter_deinit(struct meter *m);

/** meter_look() - count what has moved since the last look. 0 or -ENOMEM. */
int meter_look(struct meter *m, const struct meter_facts *facts);

/** meter_settle() - number what has changed. Return: something has. */
bool meter_settle(struct meter *m);

/**
 * meter_report() - the next flows above number @above
 * @ret_up_to:	set to the number up to which flows have been told then
 * @ret_more:	set to whether there are more
 *
 * Return: as traffic_decode() takes it, a new reference; NULL: there are none, or no memory.
 */
json_t *meter_report(const struct meter *m, uint64_t above, uint64_t *ret_up_to, bool *ret_more);

/** meter_forget() - of days before yesterday, those of which all up to @above is all there is. */
void meter_forget(struct meter *m, uint64_t above, int64_t wall_s);

/** meter_job_begin() - a command of that job begins here. */
void meter_job_begin(struct meter *m, const char *job);

/** meter_job_end() - and has ended. */
void meter_job_end(struct meter *m, const char *job);

/** meter_job_find() - lends the job; NULL: none of that name runs here. */
struct meter_job *meter_job_find(struct meter *m, const char *job);

/** meter_job_members() - who is in its run now. @names: an array of texts; others are passed over.
 */
void meter_job_members(struct meter_job *job, const json_t *names);

/** meter_jobs_encode() - [{"job", "nodes"}]: the jobs that run here, and who is in their runs; a
 * new reference. */
json_t *meter_jobs_encode(const struct meter *m);

/** meter_encode() - all but the jobs, for the file; a new reference, NULL: no memory. */
json_t *meter_encode(const struct meter *m);

/**
 * meter_decode() - from what meter_encode() has made
 * @ret:	untouched on failure, else for meter_deinit()
 *
 * Return: 0; -EINVAL with words; or -ENOMEM.
 */
int meter_decode(struct meter *ret, const json_t *json, const char *where, struct err *e);

/** meter_add_metrics() - add a sample for each flow and direction of the last day, so at most two
 * for each of TRAFFIC_FLOWS_MAX. */
void meter_add_metrics(const struct meter *m, struct metrics *out);

/* ---- the file -------------------------------------------------------------------------------- */

/* This node's meter, and the file in which it is kept. */

struct node_meter {
    struct meter meter;
    const char *dir;   /* pins: the state directory */
    bool is_damaged;   /* the file is left as it is */
    bool is_urgent;    /* a job has ended: report at once */
    nsec_t settled_at; /* monotonic; 0: not yet */
    struct log_limit limit;
};

/** node_meter_open() - read the file, or begin a new meter. @dir: pinned. @id: random. */
void node_meter_open(struct node_meter *nm, const char *dir, uint64_t id);

/**
 * node_meter_close() - release; idempotent
 * @is_kept:	the node stays in the network: what is not written yet is
 */
void node_meter_close(struct node_meter *nm, bool is_kept, nsec_t now);

/** node_meter_look() - after each poll. */
void node_meter_look(struct node_meter *nm, const struct meter_facts *facts, nsec_t now);

/** node_meter_settle() - a report is about to be made: have the sums written, if it is time. */
void node_meter_settle(struct node_meter *nm, nsec_t now);

/** node_meter_is_due() - is a report wanted only because of what has moved? */
bool node_meter_is_due(const struct node_meter *nm, nsec_t now);
