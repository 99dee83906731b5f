/*
 * process.h - other programs: run, kept going, or started again when they die.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/clock.h"

struct err;
struct str;

/*
 * Other programs: run one to its end, or let one go its own way.
 *
 * A child gets no descriptor of ours but the three standard ones (and one that
 * leads to us, if it is to talk with us), has its own session, and is never a shell: an argument
 * list goes to exec as it is.
 */

/** It ended with another status than 0, or by a signal. */
#define PROCESS_E_FAILED 1

/** The descriptor by which a linked program talks with its starter. */
#define PROCESS_LINK_FD 3

/** process_self_path() - where this program lies now, after an upgrade too. Returns @buf. */
const char *process_self_path(char buf[static PATH_MAX]);

/** process_loader_path() - the loader that the kernel starts for this program; NULL: static. */
const char *process_loader_path(void);

/**
 * process_run() - run a program and wait until it has ended
 * @argv:	path and arguments; ends with NULL
 * @timeout_ms:	then it is killed
 *
 * What it forks off may live on.
 *
 * Return: 0 when it ended with status 0; PROCESS_E_FAILED with the last line
 * that it said on standard error; -ETIMEDOUT or another negative errno with words.
 */
int process_run(const char *const argv[], unsigned timeout_ms, struct err *e);

/**
 * process_detach() - start a program that outlives this one
 * @log_path:	its output is appended there; mode 0600
 * @ret:	to be asked with process_has_ended()
 *
 * Return: 0 or negative errno with words.
 */
int process_detach(const char *const argv[], const char *log_path, pid_t *ret, struct err *e);

/**
 * process_link() - start a program that talks with us
 * @fd:		becomes its descriptor PROCESS_LINK_FD; its standard output and error are ours
 *
 * Of our environment it gets what the loader, a sanitizer and the log look at: the rest may have
 * secrets in it, and is not needed.
 *
 * Return: 0 or negative errno with words.
 */
int process_link(const char *const argv[], int fd, pid_t *ret, struct err *e);

/**
 * process_take_link() - first thing in the program that process_link() starts
 *
 * Closes what the starter had open besides and did not mark as its own, and has a reader that went
 * away be an error of the write, instead of a signal.
 *
 * Return: false when nobody is behind PROCESS_LINK_FD: a person has started this.
 */
bool process_take_link(void);

/**
 * process_wait_end() - wait until a process has ended; it need not be our child
 *
 * Return: 0, also when there is none; -ETIMEDOUT; or another negative errno.
 */
int process_wait_end(pid_t pid, unsigned timeout_ms);

/** process_has_ended() - has our child ended? After true the pid must not be used again. */
bool process_has_ended(pid_t pid);

/*
 * Run another program to its end and keep what it prints.
 *
 * For tools that print what we want to know. Unlike those of process_run() it stays in our session,
 * so a person who interrupts us interrupts it too, and its standard error is ours unless that is
 * kept as well.
 */

/** What to run. Everything is borrowed. */
struct capture_options {
    const char *const *argv; /* looked up in PATH; ends with NULL */
    unsigned timeout_ms;     /* then it is killed */
    size_t max;              /* bytes of output that are kept; what follows is read and dropped */
    bool takes_errors;       /* its standard error is kept as well, in the order of the writing */
    bool drops_errors;       /* its standard error leads nowhere */
};

/** There is no such program, or it cannot be run. */
#define CAPTURE_E_NOT_RUN 1

/**
 * capture_run() - run it, and wait for its end
 * @out:	its output is appended
 * @ret_status:	its exit status; 128 and the signal's number when it was killed
 *
 * It does not outlive us.
 *
 * Return: 0; CAPTURE_E_NOT_RUN with words; -ETIMEDOUT with words; or another negative errno with
 * words.
 */
int capture_run(const struct capture_options *opt, struct str *out, int *ret_status, struct err *e);

/*
 * A program that is started again when it dies, where no service manager does that.
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
    int status;         /* of the last run; 128 and the signal's number when it was ended by one */
    bool was_signalled; /* by a signal to this process */
};

/** respawn_run() - until it is over. 0 and @ret; or negative errno with words: nothing was run. */
int respawn_run(const struct respawn *r, struct respawn_end *ret, struct err *e);
