/*
 * job_ports.h - the listening sockets of one job, on the hub's overlay addresses.
 *
 * The hub opens them and hands copies to the rendezvous process. They stay open here as well: while
 * a process is dead its clients wait in their queues.
 *
 * Threads: the owner's.
 */
#pragma once

#include <stdbool.h>

#include "base/addr.h"

struct err;

/** A job has at most two ports, each on two addresses, ... */
#define JOB_PORTS_OVERLAY 4
/** ... and the same on the loopback, for programs of a member on the hub's own machine. */
#define JOB_PORTS_MAX (2 * JOB_PORTS_OVERLAY)

struct job_ports {
    int fds[JOB_PORTS_MAX]; /* owns; -1: none */
    unsigned n_failures;    /* calls of job_ports_open() in a row that left one closed */
};

/** job_ports_init() - none is open. */
void job_ports_init(struct job_ports *p);

/**
 * job_ports_open() - open those sockets that are not open yet
 * @interface:	its name; only what comes in there is heard
 * @has_own:	the machine is a member too: its own programs are heard as well
 * @at:		@n (at most JOB_PORTS_OVERLAY) addresses with ports; the same in each call until
 *		job_ports_close()
 *
 * Return: 0, or negative errno with words: one of them cannot be opened; the others are.
 */
int job_ports_open(struct job_ports *p, const char *interface, bool has_own,
    const struct endpoint *at, unsigned n, struct err *e);

/** job_ports_close() - all of them, at once. Idempotent. */
void job_ports_close(struct job_ports *p);
