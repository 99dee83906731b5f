/*
 * job_ports.h - the listening sockets of one job, on the hub's overlay addresses.
 *
 * The hub opens them and hands copies to the rendezvous process. They stay open here as well: while
 * a process is dead its clients wait in their queues.
 *
 * Threads: the owner's.
 */
#pragma once

#include "base/addr.h"

struct err;

/** A job has at most two ports, each on two addresses. */
#define JOB_PORTS_MAX 4

struct job_ports {
    int fds[JOB_PORTS_MAX]; /* owns; -1: none */
    unsigned n_failures;    /* calls of job_ports_open() in a row that left one closed */
};

/** job_ports_init() - none is open. */
void job_ports_init(struct job_ports *p);

/**
 * job_ports_open() - open those sockets that are not open yet
 * @interface:	its name; only what comes in there is heard
 * @at:		@n (at most JOB_PORTS_MAX) addresses with ports; the same in each call until
 *		job_ports_close()
 *
 * Return: 0, or negative errno with words: one of them cannot be opened; the others are.
 */
int job_ports_open(struct job_ports *p, const char *interface, const struct endpoint *at,
    unsigned n, struct err *e);

/** job_ports_close() - all of them, at once. Idempotent. */
void job_ports_close(struct job_ports *p);
