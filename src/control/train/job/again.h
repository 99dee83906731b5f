/*
 * again.h - a job's command is to be begun again: how often it is, and waiting until it can be.
 *
 * Theory of operation. run_exec() has returned a RUN_E_. again_judge() counts: a script that takes
 * its machine down, or is killed for its memory, would otherwise be begun again for ever.
 * again_prepare() then asks for the job's next run. The agent or the hub may be away in that
 * moment, as they may have been started anew with the machine, so it asks again, less and less
 * often. Of a job of fixed size it waits for the nodes (lost.h).
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

struct err;
struct interrupt;
struct run;
struct run_wish;

/** The highest number of times that a command may be begun again. */
#define AGAIN_MAX 1000000

/** How often a command was begun again. All zero but for @max. */
struct again {
    unsigned max; /* it is begun again so often at the most */
    unsigned n;
    unsigned n_killed; /* it was killed so often, each time soon after its start */
};

enum again_verdict {
    AGAIN_VERDICT_GO,      /* begin it again */
    AGAIN_VERDICT_KILLED,  /* it was killed soon after its start once more */
    AGAIN_VERDICT_USED_UP, /* it was begun again @max times */
};

/**
 * again_judge() - may the command be begun again?
 * @r:		the outcome of run_exec(), one for which run_is_again() holds
 * @lasted:	so long after its start
 *
 * Counts it if it may.
 */
enum again_verdict again_judge(struct again *a, int r, nsec_t lasted);

/** again_pause_ms() - @n tries have failed: wait for so long, ms; longer each time, up to 30 s */
unsigned again_pause_ms(unsigned n);

/* Outcomes of again_prepare(). */
#define AGAIN_E_ALONE       1 /* nodes, the hub or the agent have not come in time, or will not */
#define AGAIN_E_INTERRUPTED 2 /* a person does not wait */

/**
 * again_prepare() - prepare the next run of the job, and of one of fixed size wait for its nodes
 * @run:	the run that was; replaced by the next one, unless none could be prepared
 * @wish:	its broken_run is set meanwhile
 * @i:		begun; a signal ends the wait
 *
 * A run that cannot be prepared is tried again for wait_lost, or a minute if that is longer; the
 * first failure is said on standard error.
 *
 * Return: 0; AGAIN_E_ALONE with words; AGAIN_E_INTERRUPTED.
 */
int again_prepare(struct run *run, struct run_wish *wish, struct interrupt *i, struct err *e);

/**
 * again_await_hub() - the first run could not be prepared, since no hub answers: wait for one, for
 * @wish's wait_lost, or a minute if that is longer
 * @ret:	as of run_prepare()
 * @i:		begun; a signal ends the wait
 * @e:		has run_prepare()'s words, which are said on standard error with what is waited for
 *
 * Return: 0; AGAIN_E_ALONE with words; AGAIN_E_INTERRUPTED; or an error of run_prepare().
 */
int again_await_hub(
    struct run *ret, const struct run_wish *wish, struct interrupt *i, struct err *e);

/**
 * again_give_up() - the command is not begun again: tell the job's other nodes
 *
 * Those of a job of fixed size look at its next run, so they are told there.
 */
void again_give_up(struct run *run, struct run_wish *wish);
