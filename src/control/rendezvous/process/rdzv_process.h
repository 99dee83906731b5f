/*
 * rdzv_process.h - the process that serves the rendezvous of one network.
 *
 * It is this same program, started by the hub (hub/jobs/rdzv_child.c), and reads what members'
 * programs send. So it has nothing that is worth an attack: no key, no file, no capability, no
 * access to the network but the sockets that the hub hands over, and bounds on what it may use. It
 * tells the hub through one pipe (rdzv_wire.h) what it keeps for the jobs; when it dies, the hub
 * tells that to the next process.
 *
 * What is served is in docs/wire/rendezvous.md.
 */
#pragma once

#include "rendezvous/job/rdzv_conn.h"

struct err;

/** Limit of the process' data, bytes (RLIMIT_DATA); rdzv_quota.h has what it is used for. */
#define RDZV_MEMORY_MAX (112u << 20)

/** Limit of its descriptors: connections, 256 jobs with two ports on two addresses each, the same
 * for a member on the hub's own machine, and its own. */
#define RDZV_FILES_MAX (RDZV_CONNECTIONS_MAX + 2048)

/**
 * rdzv_process_run() - give up all privileges for good, and serve until the hub ends it or is gone
 * @fd:	the process' end of the pipe; a stream socket
 *
 * Return: 0; or negative errno with words.
 */
int rdzv_process_run(int fd, struct err *e);
