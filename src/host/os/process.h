/*
 * process.h - other programs: run one to its end, or let one go its own way.
 *
 * A child gets no descriptor of ours but the three standard ones (and one that
 * leads to us, if it is to talk with us), has its own session, and is never a shell: an argument
 * list goes to exec as it is.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct err;

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
