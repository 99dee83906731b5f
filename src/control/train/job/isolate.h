/*
 * isolate.h - `weft run --isolate`: says to the agent at which ports the job's processes listen
 * here, and at which others do (rules/job_ports.h).
 *
 * Theory of operation. The kernel tells which sockets listen (/proc/net/tcp), and /proc/PID/fd
 * whose they are; that is read only when the sockets are not those of the look before. The agent
 * is told at once of what has changed, and else now and then, since it may have been started anew.
 *
 * What the job has others start, such as the containers of a daemon, is not seen to be its own.
 *
 * Threads: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "rules/job_ports.h"

struct err;
struct run;

/** A socket that listens. */
struct isolate_socket {
    uint64_t inode;
    uint16_t port;
};

/** Most sockets that are looked at. */
#define ISOLATE_SOCKETS_MAX 8192

struct isolate {
    const struct run *run;         /* borrowed */
    struct isolate_socket *before; /* owns; as of the last look, sorted */
    size_t n_before;
    struct job_ports_word word; /* owns; what was said last */
    nsec_t look_at;             /* NSEC_NEVER: the job is not isolated */
    nsec_t said_at;             /* 0: nothing, or the agent has not taken it */
};

/** isolate_sort() - whose the sockets are: @own: @n_own inodes, sorted. Ports that nobody but root
 * may listen at are left out. False: no memory. Pure. */
bool isolate_sort(const struct isolate_socket *all, size_t n, const uint32_t *own, size_t n_own,
    struct job_ports_word *ret);

/**
 * isolate_begin() - before the command starts: wait until the agent enforces that the job is
 *		     isolated
 * @i:	set; a job that is not isolated needs nothing
 *
 * Return: 0; or non-zero with words: it does not, and the command is not to be started.
 */
int isolate_begin(struct isolate *i, const struct run *run, struct err *e);

/** isolate_await() - wait until the agent enforces it, before anything of the job has started. As
 * isolate_begin(). */
int isolate_await(const struct run *run, struct err *e);

/** isolate_look() - several times a second, while it runs. */
void isolate_look(struct isolate *i);

/** isolate_deinit() - idempotent. */
void isolate_deinit(struct isolate *i);
