/*
 * bench.h - how fast is the mesh? What was measured, as numbers, JSON and a table.
 *
 * Pure: bench_run.c measures, heatmap.c draws, bench_history.c remembers.
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

struct str;

/** What `weft bench` measures of a pair beyond a survey; by a: out is towards b. */
struct bench_pair {
    bool has_both;
    struct bulk both; /* both ways at once */
    bool has_raw;     /* the underlay could be reached */
    struct bulk raw_one;
    struct bulk raw_many;
    char raw_why[RESULT_WHY_MAX]; /* why it could not; "" when it was not asked for */
};

/** One all-reduce over all members. */
struct bench_allreduce {
    bool is_done; /* every member took part to the end, and the sums were right */
    uint64_t bytes;
    uint32_t repeats;
    nsec_t elapsed; /* of one repeat, of the slowest member */
    char why[RESULT_WHY_MAX];
};

struct bench {
    const struct preflight_node *nodes; /* borrowed */
    size_t n_nodes;
    const struct preflight_pair *pairs; /* borrowed; by rounds_index() */
    const struct bench_pair *more;      /* borrowed; the same order */
    size_t n_pairs;
    struct bench_allreduce allreduce[ORDER_ALGORITHM_N];
    uint32_t streams;
    uint64_t expect_bps; /* 0: nothing is expected */
    nsec_t elapsed;      /* how long the measuring took */
    nsec_t measured_at;  /* wall clock: nanoseconds since 1970 */
    const char *network; /* borrowed */
};

/** bench_algbw() - the vector's size by the time of one repeat, in bits per second; 0: not done. */
uint64_t bench_algbw(const struct bench_allreduce *a);

/**
 * bench_busbw() - as nccl-tests has it, comparable with a link's rate
 *
 * algbw * 2(n-1)/n for an all-reduce (nccl-tests, doc/PERFORMANCE.md), whatever the algorithm.
 */
uint64_t bench_busbw(const struct bench_allreduce *a, size_t n_nodes);

/**
 * bench_rate() - the rate from one member to another, of one stream or several, whichever did
 * better
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

/** bench_failures() - how many directions of pairs are slower than expected, or not measured. */
size_t bench_failures(const struct bench *b);

/** bench_encode() - as JSON, whose fields are added to, not renamed: a new reference; NULL for no
 * memory. */
json_t *bench_encode(const struct bench *b);

/** bench_format() - append a report for people. */
void bench_format(const struct bench *b, struct str *out);

/** bench_summarise() - the line for bench_history.h: a new reference; NULL for no memory. */
json_t *bench_summarise(const struct bench *b);

/** bench_format_rate() - "9.41 Gbit/s"; returns @buf. */
const char *bench_format_rate(uint64_t bits_per_s, char buf[static 32]);
