/*
 * record_save.h - a job's own record on its way to the store, and who waits for it.
 *
 * The job changes when its record is on the disk, and not before (job_runs.c). Until then whoever
 * wants something of the job waits, and asks again.
 *
 * Threads: the owner's.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/list.h"
#include "hub/jobs/jobs.h"
#include "rendezvous/shared/rdzv_record.h"

struct err;

/** What is new in the record. */
enum record_save_kind {
    RECORD_SAVE_NEW,     /* there is such a job */
    RECORD_SAVE_REVIVED, /* there is again: it was forgotten, and not yet deleted */
    RECORD_SAVE_RUN,     /* a run begins */
    RECORD_SAVE_END,     /* the run is over */
};

struct record_save {
    enum record_save_kind kind;
    struct rdzv_job_record record;
    nsec_t asked_at;     /* when it was asked for */
    bool is_in_vain;     /* the job was forgotten meanwhile, and does not change */
    struct list waiters; /* who is to be called at the end; record_save.c's */
};

/** record_save_new() - nobody waits yet. NULL: no memory. */
struct record_save *record_save_new(
    enum record_save_kind kind, const struct rdzv_job_record *record, nsec_t now);

/** record_save_wait() - @done is called once, by record_save_free(). 0 or -ENOMEM. */
int record_save_wait(struct record_save *s, jobs_done_fn done, void *ctx);

/**
 * record_save_free() - it has ended: call all who wait
 * @r:	0: it is on the disk; or negative errno
 * @e:	the words, when @r is not 0
 *
 * Who is called may ask for the same job at once. Always NULL.
 */
struct record_save *record_save_free(struct record_save *s, int r, const struct err *e);
