/*
 * job_health.h - who holds up a job, and why: from samples of its nodes (health/job_sample.h) to
 * findings.
 *
 * Theory of operation. A job whose nodes wait for each other goes as fast as the slowest of them,
 * and all of them look slow. So the causes are looked for in an order, and the first that is found
 * is the one that is named; who waits because of it is not. In this order a part of the job is
 * gone, is stopped, has a fault in NCCL's log, sends over a line that is slow, does not read though
 * it has nothing else to do, or computes while the others wait; and if it is none of these while
 * nothing moves, a rank waits in another collective operation than the others, or has not entered
 * the one in which they wait, by PyTorch's flight recorder or else by NCCL's RAS. If these do not
 * say so either, the job is stuck.
 *
 * A line is one direction between two nodes. TCP counts for how long something was on its way
 * there: bytes by that time are what the line carries when it is asked to, whatever the job does
 * meanwhile. A line is slow if this is a third of what it was, and the job waits for it for a good
 * part of the time. What it was is the median of the last hour or so (struct rate_memory); while
 * something is found, nothing is added to that. A reader that is slow looks the same to who sends,
 * but for what lies unread on its side.
 *
 * Acknowledgements of what a node is sent share the line on which it sends. So where one line is
 * slow, those that end where it begins, or begin where it ends, look slow as well, if less so; they
 * are not named.
 *
 * Nothing is concluded from an old sample. While that of a node is late, what was found stays.
 *
 * Pure: @now is monotonic, above 0; @at is s since 1970.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "health/finding.h"

struct job_sample;

/** Nodes of a job that are looked at, and lines that begin at each; more are passed over. */
#define JOB_HEALTH_NODES_MAX 512
#define JOB_HEALTH_LINES_MAX 128

/** A node of a job is gone when nothing was heard of it for so long, or three samples and a half.
 */
#define JOB_HEALTH_GONE (15 * NSEC_PER_SEC)

struct job_health;

/** What is found goes there. All are borrowed for a call. */
struct job_health_out {
    const char *job;            /* its name */
    struct findings *findings;  /* subjects are the job, and "JOB/NODE" of each node */
    finding_changed_fn changed; /* as of findings_done() */
    void *arg;
    int64_t at;
};

/** job_health_new() - nothing is known; NULL: no memory. */
struct job_health *job_health_new(void);

/** job_health_free() - release; NULL is fine. Returns NULL. */
struct job_health *job_health_free(struct job_health *h);

/**
 * job_health_take() - what @node has seen
 * @s:		its peers' names are filled in
 *
 * A sample of another run than the one before begins anew; what lines carried is kept. Of several
 * commands of one node the first is looked at, as long as it is heard. One that comes within half a
 * second of the one before is passed over.
 */
void job_health_take(
    struct job_health *h, const char *node, const struct job_sample *s, nsec_t now);

/** job_health_end() - the node's command has ended: nobody is to miss it. */
void job_health_end(struct job_health *h, const char *node);

/** job_health_look() - say what is found now; each second or so. */
void job_health_look(struct job_health *h, const struct job_health_out *out, nsec_t now);

/** job_health_clear() - nothing is found any more: the run is over, or not looked at. */
void job_health_clear(struct job_health *h, const struct job_health_out *out);

/**
 * job_health_step() - the step that the job has made, by what its ranks say; @h may be NULL
 * @ret_step:	of the one that is behind; set if true
 * @ret_rate:	steps a second in the last sample, of the same one; likewise
 *
 * Return: false: they do not say.
 */
bool job_health_step(const struct job_health *h, uint64_t *ret_step, double *ret_rate);

/**
 * job_health_rate() - what its nodes send each other; @h may be NULL
 * @ret_rate:	bytes/s, in their last samples; set if true
 * @ret_usual:	bytes/s, the median of the last hour or so; 0: not known; likewise
 *
 * Return: false: a node of it was not heard lately, or none has said anything.
 */
bool job_health_rate(
    const struct job_health *h, nsec_t now, uint64_t *ret_rate, uint64_t *ret_usual);

/** What a job's connections carry from one of its nodes to another one; bytes/s. */
typedef void (*job_rate_fn)(void *arg, const char *from, const char *to, uint64_t rate);

/** job_health_each_rate() - by the last sample of each node that is heard; @h may be NULL. */
void job_health_each_rate(const struct job_health *h, nsec_t now, job_rate_fn fn, void *arg);

/** A line that holds up a job. Borrowed. */
struct job_slow_line {
    const char *from;
    const char *to;
    int64_t for_s;     /* it does so for so long, s */
    uint64_t rate;     /* bytes/s while there is something to send ... */
    uint64_t usual;    /* ... and likewise the median of the last hour or so */
    uint32_t repeated; /* share of the segments that are sent again, in thousandths */
};

typedef void (*job_slow_fn)(void *arg, const struct job_slow_line *line);

/**
 * job_health_each_slow() - the lines that RANK_LINE_SLOW names; @h may be NULL
 *
 * Not those at an end of which a process of the job wants a core and does not get it: there it may
 * be the machine that is slow.
 */
void job_health_each_slow(const struct job_health *h, nsec_t now, job_slow_fn fn, void *arg);

/** job_health_encode() - what is found of the job now, as finding_encode() gives it; an array, a
 * new reference. NULL: no memory. @h may be NULL. */
json_t *job_health_encode(
    const struct job_health *h, const char *job, const struct findings *findings, int64_t at);
