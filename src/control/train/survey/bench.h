/*
 * bench.h - the results of a benchmark of the mesh, as figures, as JSON and as a table.
 *
 * Pure: bench_text.c draws the picture, and the history keeps a summary of
 * each run.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "measure/order.h"
#include "measure/result.h"
#include "mesh/object/daily.h"
#include "train/preflight/preflight.h"
#include "train/survey/survey.h"
#include "train/survey/sweep.h"
#include "uplink/train.h"

/**
 * What `weft bench` measures of a pair in addition to a survey. The pair's first member, a,
 * measures it, so out is towards b.
 */
struct bench_pair {
    bool has_both;        /* @both is set */
    struct bulk both;     /* throughput in both directions at the same time */
    bool has_raw;         /* the peer could be reached on the underlay, and @raw_one is set */
    struct bulk raw_one;  /* throughput of one stream on the underlay */
    struct bulk raw_many; /* throughput of several streams on the underlay */
    char raw_why[RESULT_WHY_MAX]; /* what failed on the underlay; "" when nothing did */
    /* Bursts of datagrams, from a and from b, in the tunnel and beside it, where that works behind
     * NATs too; 0 bits/s: not measured. */
    struct burst bursts[2];
    struct burst raw_bursts[2];
    struct burst tls_bursts[2];     /* in the tunnel, encrypted first as in TLS */
    char burst_why[RESULT_WHY_MAX]; /* what failed beside the tunnel; "" when nothing did */
};

/** One all-reduce over all members. */
struct bench_allreduce {
    bool is_done;   /* every member took part until the end, and all sums were right */
    bool is_wrong;  /* it did, and some were not */
    uint64_t bytes; /* of the vector; 0: no all-reduce was asked for */
    uint32_t repeats;
    nsec_t elapsed;           /* average time of one repeat at the slowest member */
    char why[RESULT_WHY_MAX]; /* why it is not done; "" when it is */
};

/** The results of a whole benchmark. */
struct bench {
    const struct preflight_node *nodes; /* borrowed */
    size_t n_nodes;
    const struct preflight_pair *pairs; /* borrowed; by rounds_index() */
    const struct bench_pair *more;      /* borrowed; one for each of @pairs, in the same order */
    size_t n_pairs;
    struct bench_allreduce allreduce[ORDER_ALGORITHM_N];
    struct sweep sweep;  /* all zero: none was asked for */
    uint32_t streams;    /* of a transfer with several streams */
    uint64_t expect_bps; /* rate that every direction must reach; 0: nothing is expected */
    nsec_t elapsed;      /* how long the measuring took */
    nsec_t measured_at;  /* wall clock: nanoseconds since 1970 */
    const char *network; /* borrowed */
};

/**
 * bench_algbw() - the algorithm's bandwidth: the vector's size divided by the time of one repeat
 *
 * Return: bits per second; 0 when the all-reduce was not done.
 */
uint64_t bench_algbw(const struct bench_allreduce *a);

/**
 * bench_busbw() - the bus bandwidth, which can be compared with the rate of a link
 * @n_nodes:	how many members took part
 *
 * It is algbw * 2(n-1)/n for an all-reduce with any algorithm, as nccl-tests defines it
 * (doc/PERFORMANCE.md there).
 *
 * Return: bits per second; 0 when the all-reduce was not done, or for fewer than two members.
 */
uint64_t bench_busbw(const struct bench_allreduce *a, size_t n_nodes);

/**
 * bench_rate() - the rate from one member to another, with one stream or with several, whichever
 * was faster
 * @from, @to:	indices of the members
 *
 * Return: bits per second; 0 when it was not measured.
 */
uint64_t bench_rate(const struct bench *b, size_t from, size_t to);

/**
 * bench_cost() - how much less the overlay carries than the underlay
 * @ret:	percent of the underlay's rate; negative where the overlay was faster
 *
 * Return: false where one of them was not measured.
 */
bool bench_cost(const struct bulk *overlay, const struct bulk *raw, int *ret);

/**
 * bench_burst_cost() - how much less of a burst's datagrams the tunnel carries than the line does
 * @ret:	percent of what comes beside the tunnel, of the ways that were measured both times
 *
 * Return: false where none was.
 */
bool bench_burst_cost(const struct bench_pair *p, int *ret);

/** bench_tls_cost() - the same of what TLS in the tunnel costs: percent of what the tunnel carries
 * without. */
bool bench_tls_cost(const struct bench_pair *p, int *ret);

/** bench_has_latency() - were the round trip times of that pair measured? */
bool bench_has_latency(const struct preflight_pair *p);

/** bench_is_empty() - was nothing measured at all, between any members? */
bool bench_is_empty(const struct bench *b);

/**
 * bench_failures() - how many directions are slower than expected, or were not measured
 *
 * Return: always 0 when no rate is expected.
 */
size_t bench_failures(const struct bench *b);

/**
 * bench_encode() - the results as JSON
 *
 * Programs rely on the JSON: fields may be added to it, but none is renamed.
 *
 * Return: a new reference; NULL for no memory.
 */
json_t *bench_encode(const struct bench *b);

/** bench_format() - append a report for people to @out, which remembers a failure. */
void bench_format(const struct bench *b, struct str *out);

/** bench_summarise() - the summary for bench_history_add(): a new reference; NULL for no memory. */
json_t *bench_summarise(const struct bench *b);

/** bench_format_rate() - write a rate as text, such as "9.41 Gbit/s"; returns @buf. */
const char *bench_format_rate(uint64_t bits_per_s, char buf[static 32]);

/*
 * Summaries of earlier benchmarks, in a file of the state directory: one line of
 * JSON for each.
 */

/** When the file has this many bytes, its older half is dropped before a line is added. */
#define BENCH_HISTORY_MAX (1u << 20)

/**
 * bench_history_add() - append one summary to the file
 * @summary:	from bench_summarise(); borrowed
 *
 * Return: 0 or negative errno with words.
 */
int bench_history_add(const char *state_dir, const json_t *summary, struct err *e);

/**
 * bench_history_format() - append a line for each run to @out, the newest last
 *
 * A line of the file that is no JSON object is left out, and stays in the file.
 *
 * Return: 0 or negative errno with words.
 */
int bench_history_format(const char *state_dir, struct str *out, struct err *e);

/**
 * bench_history_encode() - the same runs as JSON: {"runs": [...]}
 * @ret:	gives a reference
 *
 * Return: 0 or negative errno with words.
 */
int bench_history_encode(const char *state_dir, json_t **ret, struct err *e);

/*
 * Measures what a survey does not: throughput in both directions at the same time,
 * throughput on the underlay, and all-reduce.
 */

/**
 * bench_run() - measure what a survey does not; call it after survey_run()
 * @plan:	the one that was given to survey_run()
 * @underlay:	throughput on the underlay, too, where the peer can be reached on it
 * @allreduce_bytes:	size of the vector; 0: no all-reduce
 * @more:	one for each pair of the survey, all zero; filled in
 * @allreduce:	one for each algorithm, all zero; filled in
 *
 * Blocks until everything is measured.
 *
 * Return: 0 or -ENOMEM.
 */
int bench_run(struct survey *s, const struct survey_plan *plan, bool underlay,
    uint64_t allreduce_bytes, struct bench_pair *more,
    struct bench_allreduce allreduce[static ORDER_ALGORITHM_N]);

/**
 * bench_sample() - short bursts between the two members of a survey, in the tunnel and beside it;
 * call it after survey_run()
 * @more:	of the only pair, all zero; its bursts are filled in
 *
 * Return: 0 or -ENOMEM.
 */
int bench_sample(struct survey *s, const struct survey_plan *plan, struct bench_pair *more);

/** What trains to a peer have come to. */
struct bench_trains {
    struct train_plan plan;   /* what was found */
    char why[RESULT_WHY_MAX]; /* why nothing was; "": something was */
};

/**
 * bench_trains() - trains from the first of the two members of a survey to the second, beside the
 * tunnel, until it is known what the line carries; call it after survey_open()
 * @known:	what it was found to carry before, bit/s; 0: not known
 *
 * Return: 0 or -ENOMEM.
 */
int bench_trains(struct survey *s, uint64_t known, struct bench_trains *ret);

/** bench_daily() - what was measured, as the sample of @day. */
struct daily_sample bench_daily(const struct bench_pair *p, int32_t day);

/**
 * bench_matrix() - what a survey and bench_run() have measured, as the matrix that a plan is made
 * of
 * @more:	of bench_run()
 * @ret:	untouched on failure; released by matrix_deinit()
 *
 * Return: 0 or -ENOMEM.
 */
int bench_matrix(const struct survey *s, const struct bench_pair *more, struct matrix *ret);

/**
 * bench_sweep() - all-reduces by a ring over TCP on the overlay, of sizes up to 1 GiB
 * @ret:	all zero; its sizes are filled in, and why there are no larger ones
 *
 * It ends before a size that would take too long. Blocks until everything is measured.
 */
void bench_sweep(struct survey *s, struct sweep *ret);

/* The matrix of a benchmark as a picture (SVG). Pure. */

/**
 * heatmap_draw() - append an SVG document to @out, which remembers a failure
 *
 * It has a square for each direction, from the member of its row to the member of its column. The
 * faster the direction, the darker the square, on a logarithmic scale between the slowest and the
 * fastest. The square of a direction that is slower than expected has a red frame. The square of a
 * direction that was not measured is empty.
 */
void heatmap_draw(const struct bench *b, struct str *out);
