/*
 * job_sample.h - what a job has done on one node in some seconds, as the node's kernel counts it:
 * what its connections over the overlay have moved, by the node at their other end, and how its
 * processes are.
 *
 * `weft run` makes one every few seconds (train/job/samples.h), and the hub gets it in
 * PUT /v1/jobs/JOB/samples (docs/API.md). health/job_health.h says what is concluded from them.
 *
 * Pure: no I/O, no clock.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/parse.h"
#include "health/flight.h"
#include "health/nccl_faults.h"
#include "health/ras_status.h"

/** Nodes at the other end of which a sample tells: those with which most is exchanged. */
#define JOB_SAMPLE_PEERS_MAX 64

/** Longest time of a sample, ms. */
#define JOB_SAMPLE_MS_MAX 60000

/** Longest texts, without the zero. */
#define JOB_SAMPLE_RUN_MAX     (NAME_MAX_LEN + 16)
#define JOB_SAMPLE_COMMAND_MAX 31

/** A share of 1: shares are in thousandths. A process with several threads may compute more. */
#define JOB_SAMPLE_WHOLE 1000
#define JOB_SAMPLE_MOST  (1000 * JOB_SAMPLE_WHOLE)

/** All connections to one other node together. */
struct job_flow {
    uint64_t sent;      /* bytes that the other end has acknowledged in this time */
    uint64_t received;  /* bytes that have come */
    uint32_t busy_ms;   /* of this time, while something was on its way there, or waited for it */
    uint32_t window_ms; /* of @busy_ms, while the other end had no space for more */
    uint32_t segments;  /* with data, that were sent */
    uint32_t repeated;  /* of them, those that were sent again */
    uint64_t queued;    /* bytes that are not acknowledged at the end of this time */
    uint64_t unread;    /* bytes that have come, and that the job has not read then */
};

/** A node at the other end. */
struct job_sample_peer {
    struct ip_addr address;      /* on the overlay */
    char node[NAME_MAX_LEN + 1]; /* whose that is; the hub fills it in; "": nobody's */
    struct job_flow flow;
};

/** The job's processes. */
struct job_processes {
    uint32_t n;
    uint32_t n_stopped;  /* by SIGSTOP or a debugger, now */
    uint32_t stopped_ms; /* for so long one of them has been, at least */
    uint32_t cpu;        /* share of a core that the one took that took most ... */
    uint32_t kernel;     /* ... and of that what it was in the kernel */
    uint32_t running;    /* share of the looks at which one wanted a core: the greatest of all */
    uint32_t waiting;    /* likewise, at which one waited and could not be interrupted, as for a
                            disk */
};

/** What ranks say of themselves (health/job_report.h), of those that have said something. */
struct job_progress {
    uint32_t n_ranks; /* 0: none has; the other fields are 0 then */
    uint64_t step;    /* that the one that is behind has made last */
    uint32_t n_steps; /* that were made in this time, the least of all ranks */
    uint32_t comm_ms; /* of this time, in collectives; the least of all ranks */
};

/** A sample. */
struct job_sample {
    char run[JOB_SAMPLE_RUN_MAX + 1];         /* of the job, NAME.NUMBER */
    char command[JOB_SAMPLE_COMMAND_MAX + 1]; /* what `weft run` calls itself; "": it does not */
    uint32_t ms;                              /* how long this time was, above 0 */
    struct job_processes processes;
    struct job_progress progress;
    struct nccl_faults nccl;     /* what NCCL's log has said since the command began */
    struct ras_ranks ras;        /* what NCCL's RAS says, if it was asked there lately */
    struct flight_places flight; /* what PyTorch's flight recorder has written */
    struct job_sample_peer peers[JOB_SAMPLE_PEERS_MAX];
    unsigned n_peers;
};

/** job_sample_encode() - as job_sample_decode() takes it; a new reference, NULL: no memory. */
json_t *job_sample_encode(const struct job_sample *s);

/**
 * job_sample_decode() - all but the peers' names
 * @ret:	untouched on failure
 *
 * Return: 0, or -EINVAL with words.
 */
int job_sample_decode(struct job_sample *ret, const json_t *json, struct err *e);
