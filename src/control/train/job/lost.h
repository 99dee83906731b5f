/*
 * lost.h - a job of fixed size whose node is lost: noticing it, and waiting for the node.
 *
 * Theory of operation. torchrun of such a job cannot go on without one of its nodes, and ends on
 * the others, as it does when the script fails. What it was only the hub can say: each `weft run`
 * tells it every few seconds that its command is there, and at the end that it has ended. A command
 * that is silent and has not ended is lost: its machine is without power, starts anew, or somebody
 * has killed `weft run`. Then the others begin a new run of the job and wait in it until all are
 * there again, the node that was lost or another one in its place. A node that ends its command
 * while it waits, because a person wants it or nobody has come in time, says so in that run, and
 * then all end.
 *
 * When a command has failed, those of the other nodes may be lost without being missed yet, so
 * lost_judge() waits until each of them was heard, or is missed. That takes a few seconds.
 *
 * A hub of a version that does not know of this says nothing, and nobody counts as lost.
 *
 * All functions but lost_each_ms() ask the agent, and block.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "train/job/rendezvous.h"

struct err;
struct interrupt;
struct run;

/** What the looks since the start of the command have shown. Starts as zeroes. */
struct lost_looks {
    unsigned n_own;  /* in a row: an earlier command of this node is lost */
    unsigned n_idle; /* in a row: another node is lost, and the command has nothing to do */
};

/** lost_is_watched() - is it a job that ends when one of its nodes is lost, and may begin again? */
bool lost_is_watched(const struct run *run);

/** lost_is_said() - does the command tell the hub that it is there? That of a job of fixed size
 * does. */
bool lost_is_said(const struct run *run);

/**
 * lost_each_ms() - milliseconds between two looks at what has become of the job
 *
 * The nodes of a large job look less often, so that one hub has at most some ten of these requests
 * a second of it.
 */
unsigned lost_each_ms(const struct run *run);

/**
 * lost_say() - what has become of the job's meeting; and if it is such a job, say how this command
 * is
 * @ret:	always set
 */
enum rendezvous_state lost_say(const struct run *run, bool ended, struct rendezvous_presence *ret);

/**
 * lost_is_own() - was an earlier command of this node lost with the run that this one came to?
 *
 * So it is when the machine was started anew, and the command with it, before the others have
 * noticed: the run cannot go on. It counts at the second look, since after a time without the hub
 * two commands of one machine are not heard at once.
 */
bool lost_is_own(
    const struct run *run, const struct rendezvous_presence *presence, struct lost_looks *looks);

/**
 * lost_is_idle() - does torchrun wait in vain, because a node was lost?
 * @is_idle:	it has no workers
 *
 * When its workers have failed, torchrun waits for five minutes for the other nodes to end, too,
 * and at a meeting for ten for them to come. It counts at the second look, and is said on standard
 * error.
 */
bool lost_is_idle(const struct run *run, const struct rendezvous_presence *presence, bool is_idle,
    struct lost_looks *looks);

/**
 * lost_is_before() - lost_is_own(), before the command is started
 *
 * Says on standard error when the job's other nodes have ended without this one, which was lost.
 */
bool lost_is_before(const struct run *run);

/**
 * lost_judge() - the command has just failed: was another node lost?
 * @i:	begun; a signal ends the wait
 *
 * While the hub does not answer it is not known, and asked again for wait_lost, or a minute if that
 * is longer.
 *
 * Return: RUN_E_LOST, after a sentence on standard error that names the nodes; RUN_E_CUT_OFF: a new
 * run of the job has begun meanwhile, or another hub serves it; 0: no; or a person does not wait.
 */
int lost_judge(const struct run *run, struct interrupt *i);

/* Outcomes of lost_await(). */
#define LOST_E_AGAIN       1 /* the run has broken, or another hub serves it: prepare it again */
#define LOST_E_ALONE       2 /* not all nodes have come in time */
#define LOST_E_ENDED       3 /* another node has ended its command, and will not be there */
#define LOST_E_INTERRUPTED 4 /* a person does not wait */

/**
 * lost_await() - wait until all nodes of the job are there
 * @deadline:	monotonic
 * @i:		begun; a signal ends the wait
 *
 * Says from time to time who is missing.
 *
 * Return: 0: they are, or the hub does not say; LOST_E_ALONE or LOST_E_ENDED with words;
 * LOST_E_AGAIN or LOST_E_INTERRUPTED.
 */
int lost_await(const struct run *run, nsec_t deadline, struct interrupt *i, struct err *e);

/**
 * lost_give_up() - tell those that wait in lost_await() that this node's command has ended
 *
 * The run is left, so that a node that comes to it within a minute is told, too.
 */
void lost_give_up(const struct run *run);
