/*
 * sweep.h - all-reduces of all sizes from 8 bytes to 1 GiB, and whether the best of them is what
 * the machines should give.
 *
 * By nccl-tests (nccl_tests.h) where GPUs are, else by our own all-reduce over TCP (bench_run.h).
 * Pure: results in, JSON and text out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "train/survey/nccl_tests.h"
#include "train/survey/verdict.h"

struct str;

#define SWEEP_LEAST   8ull         /* bytes of the first size */
#define SWEEP_MOST    (1ull << 30) /* bytes of the last one */
#define SWEEP_WHY_MAX 200

/** A sweep and its verdict. */
struct sweep {
    bool is_done; /* it was asked for */
    bool by_nccl; /* by nccl-tests; else over TCP on the overlay */
    struct nccl_tests_size sizes[NCCL_TESTS_SIZES_MAX];
    size_t n_sizes;
    bool is_wrong; /* some sums were wrong */
    bool crosses;  /* NCCL was kept from the fabric, since not all members are in one island */
    char why[SWEEP_WHY_MAX];         /* why it did not come to the last size; "" if it did */
    char network[NCCL_LOG_TEXT_MAX]; /* that NCCL used; "": not said, or it was not NCCL */
    bool has_expectation;
    struct verdict_expectation expected;
    enum verdict verdict;
    char text[512]; /* the verdict in a sentence */
};

/** sweep_best() - the highest bus bandwidth, GB/s; 0: nothing was measured. */
double sweep_best(const struct sweep *s);

/**
 * sweep_judge() - set @s's verdict
 * @machine:	this node's; NULL: not known. Nothing is expected of it where the sweep crosses
 * islands
 * @rate:	bit/s of the slowest pair, for a sweep over TCP; 0: not measured
 * @log:	NCCL's; NULL: it was not NCCL
 */
void sweep_judge(
    struct sweep *s, const struct fabric_report *machine, double rate, const struct nccl_log *log);

/** sweep_encode() - as JSON: a new reference; null when no sweep was asked for. NULL: no memory. */
json_t *sweep_encode(const struct sweep *s);

/** sweep_format() - append a table for people. */
void sweep_format(const struct sweep *s, struct str *out);
