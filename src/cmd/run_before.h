/*
 * run_before.h - what weft run does between its preparations and the start of the command: the
 * job's plan, and whether the job can do what it is about to do.
 */
#pragma once

#include "base/str.h"
#include "train/job/run.h"

/** What the options said. Texts are borrowed. */
struct run_before {
    const char *wan;       /* "warn", "refuse", "allow"; NULL: as is usual */
    const char *state_dir; /* of the agent */
    bool preflight;        /* test the network first */
    bool anyway;           /* start although the test says no */
    struct str plan;       /* owns; the plan that was made, for a job that is started again */
    struct str tested;     /* owns; likewise the result of the test */
};

/**
 * run_before() - do it
 * @run:	prepared by run_prepare(); is given its plan
 *
 * Return: CMD_OK; or an exit status, after a sentence on standard error: the command is not to be
 * started.
 */
int run_before(struct run_before *b, struct run *run, const struct run_wish *wish);
