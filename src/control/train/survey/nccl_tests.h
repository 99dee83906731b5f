/*
 * nccl_tests.h - what all_reduce_perf of nccl-tests has printed.
 *
 * It prints a line for each size, with the time, the algorithm's and the bus bandwidth, first out
 * of place and then in place, in the columns of nccl-tests' src/common.cu; versions before 2.13
 * have no column "root". mpirun may put a tag before each line ("[1,0]<stdout>:"). Lines of NCCL's
 * own log (NCCL_DEBUG=INFO) may lie between, and are taken in by nccl_log.h.
 *
 * Pure: lines in, figures out. The text is from outside: what is no line of these is passed over,
 * and the number of sizes is bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/profile/nccl_log.h"

/** Sizes that are kept; 8 bytes to 1 GiB, doubled, are 28. */
#define NCCL_TESTS_SIZES_MAX 64

/** One size. */
struct nccl_tests_size {
    uint64_t bytes;
    double us;    /* of the faster of the two ways, microseconds */
    double algbw; /* of that one, GB/s (10^9 bytes) */
    double busbw; /* likewise */
};

struct nccl_tests {
    struct nccl_tests_size sizes[NCCL_TESTS_SIZES_MAX]; /* in the order of the lines */
    size_t n_sizes;
    unsigned n_ranks; /* as listed under "Using devices" */
    double average;   /* "Avg bus bandwidth", GB/s; 0: not said */
    bool is_wrong;    /* some sums were wrong */
    struct nccl_log log;
};

/** nccl_tests_take() - take in a line, without its newline. */
void nccl_tests_take(struct nccl_tests *t, const char *line, size_t len);

/** nccl_tests_take_all() - take in a whole output; @text ends with a zero. */
void nccl_tests_take_all(struct nccl_tests *t, const char *text);

/** nccl_tests_best() - the size with the highest bus bandwidth; NULL: there is none. Borrowed. */
const struct nccl_tests_size *nccl_tests_best(const struct nccl_tests *t);
