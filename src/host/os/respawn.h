/*
 * respawn.h - a program that is started again when it dies, where no service manager does that.
 *
 * Theory of operation. The program is a child. Is it ended by a signal, or does it end with another
 * exit status than 0, it is started again: soon, and after further failures later and later. One
 * that ends with 0 has done what it was there for. A first run that fails at once has no prospects,
 * such as one with a wrong option, and is the last. A signal that asks this process to end goes on
 * to the program, and when that has ended, so has the respawning.
 *
 * The program is not bound to this process: when this one is killed, the program runs on, and
 * nobody starts it again.
 *
 * Threads: the process must have only one; its signal mask is used.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

struct err;

/** What is run, and how. */
struct respawn {
    char *const *words;    /* borrowed: a path, its arguments, NULL */
    nsec_t proves_itself;  /* a first run that fails earlier is the last */
    nsec_t shortest_pause; /* before it is started again; doubled after each failure ... */
    nsec_t longest_pause;  /* ... up to this */
    nsec_t settled;        /* after a run of this length it starts with the shortest again */

    /* It has ended, as @how says, and is started again after @pause. Return: false: it is not,
     * since there is nothing more for it to do. */
    bool (*may_start)(void *ctx, const char *how, nsec_t pause);
    void *ctx; /* pins */
};

/** How it came to an end. */
struct respawn_end {
    int status;    /* of the last run; 128 and the signal's number when it was ended by one */
    bool was_told; /* by a signal to this process */
};

/** respawn_run() - until it is over. 0 and @ret; or negative errno with words: nothing was run. */
int respawn_run(const struct respawn *r, struct respawn_end *ret, struct err *e);
