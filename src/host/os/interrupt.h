/*
 * interrupt.h - signals by which a person or a service manager ends something.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

/*
 * Waits that a person may end: SIGINT and SIGQUIT, which a terminal sends, are
 * noticed instead of ending the process, so that others can be told first.
 *
 * A signal that this process ignores, as when it was started with nohup, stays ignored.
 *
 * Threads: one thread's signal mask is used.
 */

struct interrupt {
    sigset_t before; /* the mask, to be restored */
    sigset_t taken;  /* what is waited for */
    int signal;      /* that has come; 0: none */
};

/** interrupt_begin() - from now on the signals do not end the process. */
void interrupt_begin(struct interrupt *i);

/** interrupt_wait() - wait for so long, or for one of the signals. Return: one has come. */
bool interrupt_wait(struct interrupt *i, unsigned ms);

/** interrupt_end() - the signals end the process again, and so does one that has come. */
void interrupt_end(struct interrupt *i);

/*
 * The signals by which a person or a service manager ends a program, as a descriptor.
 */

/**
 * end_signals_open() - SIGTERM and SIGINT from now on
 *
 * Both are blocked in this thread and in those that it starts later. SIGPIPE is
 * ignored: a reader that went away is an error of the write.
 *
 * Return: a descriptor that is readable once one has come; or negative errno.
 */
int end_signals_open(void);
