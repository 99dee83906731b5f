/*
 * measure_host.h - the agent's end of its measuring process: started, told, started again.
 *
 * Theory of operation. The process is this same program, started with one end of a socket pair;
 * what it does is in measure/service_process.h, with what it is told. It
 * sends nothing, so the socket becomes readable only when the process has ended. Then another one
 * is started and told everything anew: soon the first time, and later each time that the next one
 * ends early, too. The agent's end of the pair is the only one, so the process ends whenever the
 * agent does.
 *
 * What does not fit into the socket waits here: at most the list that is being sent and the newest.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stddef.h>
#include <sys/resource.h>
#include <uv.h>

struct err;
struct ip_addr;
struct measure_host;
struct service_config;
struct service_member;

/**
 * measure_host_new() - start the process; one that does not start is tried again
 * @loop:	pinned
 * @config:	copied; its texts, too
 * @memlock:	its RLIMIT_MEMLOCK, which it tells members of, and not that of the agent
 *
 * Return: 0 or negative errno with words.
 */
int measure_host_new(struct measure_host **ret, uv_loop_t *loop,
    const struct service_config *config, const struct rlimit *memlock, struct err *e);

/**
 * measure_host_tell() - tell the process who the members are, as service_set_members() has them
 *
 * A list that it knows already is not sent again; it is then told to check its interface.
 */
void measure_host_tell(struct measure_host *h, const struct ip_addr *own,
    const struct service_member *members, size_t n);

/**
 * measure_host_free() - the process ends; waits for it, 2 s at most
 *
 * The loop has to turn once more. NULL is fine. Always NULL.
 */
struct measure_host *measure_host_free(struct measure_host *h);
