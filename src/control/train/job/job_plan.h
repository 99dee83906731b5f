/*
 * job_plan.h - the plan of `weft plan` that a job is given, and what it says of averaging gradients
 * in each step between islands.
 *
 * A plan is what `weft plan --json` prints. It comes from a file of the person's; or `weft run` has
 * it made from new measurements, once for all nodes of the job; or it is made for advice only, from
 * what was last measured. In all cases `weft plan` itself runs as a program of its own, so that
 * there is one plan and one set of defaults.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct err;
struct run;
struct str;

/** The file in the state directory with what was last measured between all nodes. */
#define JOB_PLAN_MEASURED "measured.json"

/** What matters of a plan here. */
struct job_plan {
    size_t n_islands;
    double params;       /* weights of the model */
    bool is_good;        /* it fits, and there is an interval at which islands can exchange */
    bool is_synchronous; /* gradients may be averaged in each step across islands */
    double step_seconds; /* of a step without what islands exchange */
    double sync_seconds; /* of averaging in the best way; 0: some link was not measured */
    double sync_share;   /* of the time, 0 to 1 */
    double max_share;    /* that was allowed, 0 to 1 */
    double interval;     /* steps between two exchanges; 0: no interval is long enough */
    char form[16];       /* of an exchange; "" with one island */
};

/**
 * job_plan_decode() - read what `weft plan --json` has printed
 * @ret:	untouched on failure
 *
 * Return: 0, or -EINVAL with words: it is no such object.
 */
int job_plan_decode(struct job_plan *ret, const json_t *json, struct err *e);

/** job_plan_read() - the same from a file; words name it. */
int job_plan_read(struct job_plan *ret, const char *path, struct err *e);

/** How a plan is made. Pointers are borrowed. */
struct job_plan_order {
    const char *params;      /* as --params has it */
    const char *socket_path; /* of the agent */
    const char *matrix;      /* what was measured; it is for advice, and why there is none is of no
                                interest. NULL: it is measured now */
    unsigned timeout_ms;
};

/**
 * job_plan_make() - have `weft plan` make one
 * @out:	its JSON is appended
 *
 * Return: 0; or non-zero with words.
 */
int job_plan_make(const struct job_plan_order *order, struct str *out, struct err *e);

/**
 * job_plan_say_no() - append in a sentence, without a newline, why gradients are better not
 * averaged in each step, with the numbers, and how often islands can exchange instead
 */
void job_plan_say_no(const struct job_plan *p, struct str *out);

/**
 * run_make_plan() - have a plan made of new measurements, and give it to the job
 * @kept:	the plan's text, made when it is empty; a job that is started again keeps its plan
 * @ret:	what it says
 *
 * One node makes it for all nodes that meet at the hub (agree_once()), and this waits for it.
 *
 * Return: 0; or non-zero with words.
 */
int run_make_plan(
    struct run *run, const char *params, struct str *kept, struct job_plan *ret, struct err *e);
