/*
 * verdict.h - what bus bandwidth a machine of a type is expected to give an all-reduce, and whether
 * what was measured reaches it.
 *
 * One table, a row a machine type, each with its source. A type without a row is judged by the
 * rates of its fabric's ports; an ordinary network by the rate that was measured between its
 * slowest pair. Pure.
 */
#pragma once

#include <stdbool.h>

struct fabric_report;
struct nccl_log;
struct str;

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
 * verdict_judge() - judge the best bus bandwidth of a sweep
 * @expected:	NULL: nothing is
 * @machine:	its type and fabric; NULL: not known
 * @busbw:	GB/s; 0: nothing was measured
 * @log:	NCCL's, of the same run; NULL: it was not NCCL
 * @out:	a sentence is appended, without a newline: pass or fail, with the numbers, and that
 *		the fabric is off where it looks so
 */
enum verdict verdict_judge(const struct verdict_expectation *expected,
    const struct fabric_report *machine, double busbw, const struct nccl_log *log, struct str *out);
