/*
 * job_known.h - what is known of a job: its nodes, what each has seen in its last samples, and what
 * is usual. job_health.c fills it in, and job_causes.c concludes from it.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/rate_memory.h"
#include "health/job_sample.h"

/** Samples of each node that are kept. */
#define JOB_KNOWN_KEPT 3

/** What moves less says nothing about a line, bytes. */
#define JOB_KNOWN_BYTES_MIN 16384

/** What is sent to a node, and what comes from it. */
struct line {
    struct health_node *to;
    struct job_flow last[JOB_KNOWN_KEPT]; /* as the node's periods */
    struct rate_memory usual;             /* bytes/s while it is busy */
    bool is_slow;                         /* it was, at the last look */
    bool is_named;      /* and it is one of those that hold up the job, at this look */
    nsec_t named_since; /* the first look of those at which it was, one after the other; 0: none */
    uint64_t rate;      /* bytes/s while it is busy, at the last of them ... */
    uint32_t repeated;  /* ... and share of its segments that are sent again */
};

/** The time of a sample. */
struct period {
    uint32_t ms;
    uint64_t sent; /* to all others */
    struct job_processes processes;
    struct job_progress progress;
};

struct health_node {
    char name[NAME_MAX_LEN + 1];
    char command[JOB_SAMPLE_COMMAND_MAX + 1];
    bool is_ended;   /* its command has said so */
    nsec_t heard_at; /* the last sample; 0: there is none in this run */
    unsigned n;      /* samples in this run; the last one is in @last[(n - 1) % JOB_KNOWN_KEPT] */
    struct period last[JOB_KNOWN_KEPT]; /* zero: not yet */
    struct nccl_faults nccl;            /* what NCCL's log has said there in this run ... */
    nsec_t nccl_at[NCCL_FAULT_N];       /* ... and when it was heard last of each kind */
    struct ras_ranks ras;               /* as its last sample has it */
    struct flight_places *flight;       /* owns; likewise; NULL: no recorder is known there */
    struct rate_memory usual;           /* bytes/s that it sends, while it does */
    struct line *lines;                 /* owns; sorted by the other node's place in memory */
    size_t n_lines, cap_lines;          /* of them */
};

struct job_health {
    char run[JOB_SAMPLE_RUN_MAX + 1]; /* of the last sample; "": none yet */
    struct health_node **nodes;       /* owns, also what they point to; sorted by name */
    size_t n, cap;
    nsec_t moved_at;    /* when something had moved last; 0: nothing yet in this run */
    nsec_t pauses[2];   /* the longest until then of this half hour, and of the one before */
    nsec_t pauses_from; /* when this half hour has begun */
    unsigned n_found;   /* findings that are said now */
    bool is_usual;      /* nothing of that says that pauses are not the job's own */
    bool says_network;  /* of some node it is said that NCCL uses another network */
    const struct health_node *alone; /* computes while the others wait; NULL: none does */
    nsec_t alone_since;
};

/** job_known_deinit() - forget all nodes. */
void job_known_deinit(struct job_health *h);

/** job_known_find_node() - lends; NULL: there is none of that name. */
struct health_node *job_known_find_node(const struct job_health *h, const char *name);

/** job_known_node() - the same, and makes it; NULL: there are too many, or no memory. */
struct health_node *job_known_node(struct job_health *h, const char *name);

/** job_known_find_line() - what @from says of @to; lends, NULL: nothing. */
struct line *job_known_find_line(const struct health_node *from, const struct health_node *to);

/** job_known_line() - the same, and makes it; NULL: there are too many, or no memory. */
struct line *job_known_line(struct health_node *from, struct health_node *to);

/** job_known_is_there() - has the node said something in this run, and not ended? */
bool job_known_is_there(const struct health_node *node);

/** job_known_rate() - bytes/s. */
uint64_t job_known_rate(uint64_t bytes, uint32_t ms);

/** job_known_is_bulk() - is a line used as one that is to carry much, not for short messages? */
bool job_known_is_bulk(const struct job_flow *f);
