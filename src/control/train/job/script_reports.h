/*
 * script_reports.h - what the ranks of a command say of themselves (health/job_report.h): their
 * steps, and how long they were in collectives.
 *
 * Theory of operation. The socket has an abstract name (unix(7)), which the command finds in
 * WEFT_REPORT, with an @ in the place of its zero. It takes datagrams of this process' user and of
 * root alone. Who sends never waits for us: what finds the queue full is lost, and as reports hold
 * sums, the next one says the same and more.
 *
 * Threads: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "health/job_report.h"

struct job_sample;

/** Ranks of this node; more are passed over. */
#define SCRIPT_REPORTS_RANKS_MAX 64

/** Bytes of the name, with its zero. */
#define SCRIPT_REPORTS_NAME_MAX 16

/** A rank. */
struct script_reports_rank {
    struct job_report last;
    struct job_report before; /* as of the last sample */
    bool is_new;              /* it has said something since then */
};

struct script_reports {
    int fd;                             /* owns; -1: there is none */
    char name[SCRIPT_REPORTS_NAME_MAX]; /* "@00a3f" */
    struct script_reports_rank ranks[SCRIPT_REPORTS_RANKS_MAX];
    unsigned n;
};

#define SCRIPT_REPORTS_NULL                                                                        \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/** script_reports_open() - make the socket. 0 or negative errno. */
int script_reports_open(struct script_reports *ret);

/** script_reports_close() - idempotent. */
void script_reports_close(struct script_reports *r);

/** script_reports_read() - take what has come; does not wait. What cannot be understood is passed
 * over. */
void script_reports_read(struct script_reports *r);

/** script_reports_take() - what a rank says. */
void script_reports_take(struct script_reports *r, const struct job_report *said);

/** script_reports_add() - put into a sample what the ranks have said since the one before. @ret:
 * its time is set. */
void script_reports_add(struct job_sample *ret, struct script_reports *r);
