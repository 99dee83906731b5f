/*
 * node_measure.h - the node's measuring service, and who may ask it.
 *
 * The service is a process of its own (measure_host.h). It is told the members of the network and
 * how each is reached. A node works without it.
 *
 * Threads: the loop's.
 */
#pragma once

#include <limits.h>
#include <sys/resource.h>
#include <uv.h>

#include <stddef.h>

struct measure_host;
struct reach;
struct service_member;
struct snapshot;

struct node_measure {
    struct measure_host *host; /* owns; NULL: no service is offered */
    char path[PATH_MAX];       /* the service's unix socket */
};

/**
 * node_measure_start() - offer the service; one that cannot be had is logged
 * @loop:		pinned
 * @interface:		the overlay's
 * @socket_path:	the agent's own socket; the service's has AGENT_MEASURE_SUFFIX behind it
 * @memlock:		RLIMIT_MEMLOCK that the service tells of
 */
void node_measure_start(struct node_measure *nm, uv_loop_t *loop, const char *interface,
    const char *socket_path, const struct rlimit *memlock);

/**
 * node_measure_list() - who the members are, and how each is reached
 * @reach:	as of the last poll
 * @ret:	@cap of them at most; set from the start
 *
 * Return: how many were set.
 */
size_t node_measure_list(
    const struct snapshot *s, const struct reach *reach, struct service_member *ret, size_t cap);

/** node_measure_tell() - tell the service that list; without a service nothing happens. */
void node_measure_tell(
    struct node_measure *nm, const struct snapshot *s, const struct reach *reach);

/** node_measure_stop() - the process ends; waits for it, 2 s at most. Idempotent. */
void node_measure_stop(struct node_measure *nm);
