/*
 * job_report.h - what a script says of itself, as examples/weft.py sends it: one object of JSON in
 * a datagram to the socket that `weft run` has named in WEFT_REPORT.
 *
 * Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/** Longest datagram, bytes. */
#define JOB_REPORT_MAX 512

/** What it says. */
struct job_report {
    uint32_t rank;
    uint64_t step;    /* that it has made last */
    uint64_t comm_ms; /* that it has spent in collectives, since its start */
};

/** job_report_decode() - {"rank"?, "step", "commSeconds"?}. @ret: untouched on failure. 0, or
 * -EINVAL with words. */
int job_report_decode(struct job_report *ret, const char *bytes, size_t len, struct err *e);
