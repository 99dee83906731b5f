/*
 * job_causes.h - who holds up a job now: from what is known of it (job_known.h), the first cause in
 * the order that job_health.h names.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "health/finding.h"

struct health_node;
struct job_health;

/** Causes that are named at once, all of one kind. */
#define JOB_CAUSES_MAX 4

/** A finding to be. */
struct verdict {
    enum finding_code code;
    const struct health_node *node; /* NULL: of the job */
    nsec_t since;                   /* monotonic */
    char text[FINDING_TEXT_MAX];
    char fix[FINDING_FIX_MAX]; /* "": the code's own */
};

/** What a look works with. */
struct look {
    struct job_health *h;
    nsec_t now;
    size_t n_there; /* nodes that have said something, and have not ended */
    size_t n_gone;  /* of them */
    bool is_late;   /* one has said nothing for too long, and is not gone */
    bool is_slow;   /* the job moves less than it did */
    uint64_t rate;  /* bytes/s that it moves now ... */
    uint64_t usual; /* ... and usually; 0: that is not known */
    struct verdict verdicts[JOB_CAUSES_MAX];
    unsigned n;
};

/** job_causes_format_rate() - bytes/s as "0.20 MB/s", "11 MB/s". Returns @buf. */
const char *job_causes_format_rate(uint64_t rate, char buf[static 32]);

/** job_causes_find() - into the verdicts of @l, of which the job and the time are set. False:
 * nothing can be concluded now. */
bool job_causes_find(struct look *l);
