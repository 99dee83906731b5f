/*
 * sweep.h - all-reduces of all sizes from 8 bytes to 1 GiB, and whether the best of them is what
 * the machines should give.
 *
 * By nccl-tests where GPUs are, else by our own all-reduce over TCP (bench.h).
 * Pure: results in, JSON and text out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/profile/nccl_log.h"

struct err;
struct fabric_report;
struct members;

/*
 * What all_reduce_perf of nccl-tests has printed.
 *
 * It prints a line for each size, with the time, the algorithm's and the bus bandwidth, first out
 * of place and then in place, in the columns of nccl-tests' src/common.cu; versions before 2.13
 * have no column "root". mpirun may put a tag before each line ("[1,0]<stdout>:"). Lines of NCCL's
 * own log (NCCL_DEBUG=INFO) may lie between, and are taken in by nccl_log.h.
 *
 * Pure: lines in, figures out. The text is from outside: what is no line of these is passed over,
 * and the number of sizes is bounded.
 */

/** Sizes that are kept; 8 bytes to 1 GiB, doubled, are 28. */
#define NCCL_TESTS_SIZES_MAX 64

/** One size. */
struct nccl_tests_size {
    uint64_t bytes;
    double us;    /* of the faster of the two ways, microseconds */
    double algbw; /* of that one, GB/s (10^9 bytes) */
    double busbw; /* likewise */
};

struct sweep;

/** nccl_tests_take_all() - take in a whole output; @text ends with a zero. */
void nccl_tests_take_all(struct sweep *s, const char *text);

/*
 * What bus bandwidth a machine of a type is expected to give an all-reduce, and whether
 * what was measured reaches it.
 *
 * One table, a row a machine type, each with its source. A type without a row is judged by the
 * rates of its fabric's ports; an ordinary network by the rate that was measured between its
 * slowest pair. Pure.
 */

/** What is expected, in GB/s (10^9 bytes) of bus bandwidth between machines. */
struct verdict_expectation {
    double least;       /* less than this fails */
    double usual;       /* what such a machine gives */
    const char *source; /* who says so */
};

/**
 * verdict_expect() - what is expected of NCCL on the machine's fabric
 * @ret:	untouched unless true
 *
 * Return: false: the machine has no fast fabric, or its rate is not known.
 */
bool verdict_expect(struct verdict_expectation *ret, const struct fabric_report *machine);

/**
 * verdict_expect_plain() - what is expected on an ordinary network
 * @rate:	bit/s that were measured between the slowest pair, one way, the better of one stream
 *		and several
 */
struct verdict_expectation verdict_expect_plain(double rate);

enum verdict {
    VERDICT_PASS,
    VERDICT_FAIL,
    VERDICT_NONE, /* nothing is expected, or nothing was measured */
};

/**
 * verdict_assess() - judge the best bus bandwidth of a sweep
 * @expected:	NULL: nothing is
 * @machine:	its type and fabric; NULL: not known
 * @busbw:	GB/s; 0: nothing was measured
 * @log:	NCCL's, of the same run; NULL: it was not NCCL
 * @out:	a sentence is appended, without a newline: pass or fail, with the numbers, and that
 *		the fabric is off where it looks so
 */
enum verdict verdict_assess(const struct verdict_expectation *expected,
    const struct fabric_report *machine, double busbw, const struct nccl_log *log, struct str *out);

#define SWEEP_WHY_MAX 200

/** A sweep and its verdict. */
struct sweep {
    bool is_done; /* it was asked for */
    bool by_nccl; /* by nccl-tests; else over TCP on the overlay */
    struct nccl_tests_size sizes[NCCL_TESTS_SIZES_MAX]; /* in the order of the lines */
    size_t n_sizes;
    bool is_wrong; /* some sums were wrong */
    bool crosses;  /* NCCL was kept from the fabric, since not all members are in one island */
    char why[SWEEP_WHY_MAX]; /* why it did not come to the last size; "" if it did */
    struct nccl_log log;     /* what NCCL has said; all zero: it was not NCCL */
    bool has_expectation;
    struct verdict_expectation expected;
    enum verdict verdict;
    char text[512]; /* the verdict in a sentence */
};

/**
 * sweep_assess() - set @s's verdict
 * @machine:	this node's; NULL: not known. Nothing is expected of it where the sweep crosses
 * islands
 * @rate:	bit/s of the slowest pair, for a sweep over TCP; 0: not measured
 */
void sweep_assess(struct sweep *s, const struct fabric_report *machine, double rate);

/** sweep_encode() - as JSON: a new reference; null when no sweep was asked for. NULL: no memory. */
json_t *sweep_encode(const struct sweep *s);

/** sweep_format() - append a table for people. */
void sweep_format(const struct sweep *s, struct str *out);

/*
 * Runs all_reduce_perf of nccl-tests on all members that are up, by mpirun.
 *
 * mpirun reaches the other machines by ssh, and the program has to be there too; both are the
 * person's to set up. The hostfile, the variables of NCCL and those of mpirun are made here.
 */

/** sweep_nccl_find() - where all_reduce_perf is: in PATH or where images have it; NULL: nowhere. */
const char *sweep_nccl_find(void);

/**
 * sweep_nccl_run() - run it
 * @command:	path of all_reduce_perf, or a command with blanks that runs it, such as one in a
 *		container; NULL: sweep_nccl_find()
 * @socket_path:	the agent's
 * @ret:	all zero; its sizes are filled in, and what NCCL's log has said
 *
 * Blocks for some minutes, and for a quarter of an hour at most.
 *
 * Return: 0; or non-zero with words: it could not be run, or it has printed no size.
 */
int sweep_nccl_run(const char *command, const char *socket_path, const struct members *members,
    struct sweep *ret, struct err *e);
