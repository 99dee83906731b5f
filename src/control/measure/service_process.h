/*
 * service_process.h - the measuring service in a process of its own, without any capability.
 *
 * Theory of operation. The service parses and moves bytes that come from members, while the agent
 * may change the machine's network and has the node's key. The two are kept apart: the agent starts
 * this same program again (agent/measure_host.h) with one end of a socket pair, and sends what
 * service.h needs to know through it (service_wire.h). The process reads its configuration, enters
 * a sandbox, and offers the service until that connection ends.
 */
#pragma once

struct err;

/**
 * service_process_run() - run the service in this process, until the connection @fd ends
 * @fd:	the connection to the agent; borrowed; a blocking socket
 *
 * Threads: call it while the process has only one thread.
 *
 * Return: 0; or negative errno with words: -EPROTO when the agent sends a message that is malformed
 * or out of order.
 */
int service_process_run(int fd, struct err *e);
