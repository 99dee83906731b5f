/*
 * bench_run.h - measures what a survey does not: both ways at once, the underlay, all-reduce.
 */
#pragma once

#include "train/survey/bench.h"
#include "train/survey/survey.h"

/** What is wanted besides a survey. */
struct bench_wish {
    bool underlay;            /* side by side with the overlay, where it can be reached */
    uint64_t allreduce_bytes; /* of the vector; 0: no all-reduce */
};

/**
 * bench_run() - measure what a survey does not; after survey_run()
 * @more:	one for each pair of the survey, all zero before
 * @allreduce:	one for each algorithm, all zero before
 *
 * Return: 0 or -ENOMEM.
 */
int bench_run(struct survey *s, const struct survey_plan *plan, const struct bench_wish *wish,
    struct bench_pair *more, struct bench_allreduce allreduce[static ORDER_ALGORITHM_N]);
