/*
 * bench_run.h - measures what a survey does not: throughput in both directions at the same time,
 * throughput on the underlay, and all-reduce.
 */
#pragma once

#include "train/survey/bench.h"
#include "train/survey/survey.h"
#include "train/survey/sweep.h"

/** What is to be measured besides the survey and both directions at the same time. */
struct bench_wish {
    bool underlay;            /* throughput on the underlay, where the peer can be reached on it */
    uint64_t allreduce_bytes; /* size of the vector; 0: no all-reduce */
};

/**
 * bench_run() - measure what a survey does not; call it after survey_run()
 * @plan:	the one that was given to survey_run()
 * @more:	one for each pair of the survey, all zero; filled in
 * @allreduce:	one for each algorithm, all zero; filled in
 *
 * Blocks until everything is measured.
 *
 * Return: 0 or -ENOMEM.
 */
int bench_run(struct survey *s, const struct survey_plan *plan, const struct bench_wish *wish,
    struct bench_pair *more, struct bench_allreduce allreduce[static ORDER_ALGORITHM_N]);

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
