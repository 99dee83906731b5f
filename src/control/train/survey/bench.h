/*
 * bench.h - the results of a benchmark of the mesh, as figures, as JSON and as a table.
 *
 * Pure: bench_run.c measures, heatmap.c draws the picture, and bench_history.c keeps a summary of
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
#include "train/preflight/preflight.h"
#include "train/survey/sweep.h"

struct str;

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
