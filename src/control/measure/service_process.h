/*
 * service_process.h - the measuring service in a process of its own, without any capability.
 *
 * Theory of operation. The service takes members' bytes, and moves them at length; the agent may
 * change the machine's network, and has the node's key. So the agent starts this same program again
 * (agent/measure_host.h), with one end of a socket pair, through which it says what service.h needs
 * to know (service_wire.h). The process hears its configuration, gives up everything else, and
 * offers the service until that connection ends.
 */
#pragma once

struct err;

/**
 * service_process_run() - be that process, until the connection @fd ends
 * @fd:	borrowed; blocks
 *
 * Threads: while the process has one.
 *
 * Return: 0; or negative errno with words: -EPROTO when something else is said than it should be.
 */
int service_process_run(int fd, struct err *e);
