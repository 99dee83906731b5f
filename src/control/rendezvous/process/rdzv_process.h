/*
 * rdzv_process.h - the process that serves the rendezvous of one network.
 *
 * It is this same program, started anew by the hub (hub/jobs/job_host.c), and reads what strangers
 * send; so it has nothing that is worth taking: no key, no file, no capability, no way to the
 * network but the sockets that the hub hands over, and bounds on what it may use. What it keeps for
 * the jobs it tells to the hub through one pipe (rdzv_wire.h), and is told again by the next
 * process when it dies.
 *
 * What is served is in docs/wire/rendezvous.md.
 */
#pragma once

#include "rendezvous/job/rdzv_conn.h"

struct err;

/** Memory of the process that is not the program's own, bytes; see rdzv_quota.h for what counts. */
#define RDZV_MEMORY_MAX (112u << 20)

/** Its descriptors: connections, 256 jobs with two ports each, and some. */
#define RDZV_FILES_MAX (RDZV_CONNECTIONS_MAX + 1024)

/**
 * rdzv_process_run() - serve until the hub ends it, or is gone
 * @fd:	the pipe's end; a stream socket
 *
 * Return: 0; or negative errno with words.
 */
int rdzv_process_run(int fd, struct err *e);
