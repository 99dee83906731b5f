/*
 * etcd2_http.h - connections to jobs that speak HTTP, for etcd's v2 API.
 *
 * Theory of operation. As in the hub's own server (server.h), libmicrohttpd does the HTTP
 * (mhd_loop.h). A request is read whole, then handled (etcd2_api.h). One that waits for an event,
 * or for the disk, suspends its connection; what it waits for makes the answer and resumes it.
 * libmicrohttpd does not look at a connection that is suspended, so its end is then watched for
 * here.
 *
 * Threads: the process has one.
 */
#pragma once

#include <stdint.h>

#include "api/server/mhd_loop.h"
#include "base/clock.h"
#include "base/list.h"
#include "rendezvous/job/rdzv_conn.h"

struct err;

/** A request that waits for an event for so long is answered with none, as etcd does. */
#define ETCD2_HTTP_WAIT (300 * NSEC_PER_SEC)

/** Longest body of a request, bytes. */
#define ETCD2_HTTP_BODY_MAX (1u << 20)

/** All connections of a process that speak HTTP. */
struct etcd2_http {
    struct mhd_loop mhd; /* libmicrohttpd */
    struct list waiting; /* of requests that wait for an event */
    nsec_t started_at;   /* since 1970 */
    uint64_t n_requests; /* answered, since the start */
};

/** etcd2_http_start() - @loop: pinned. 0 or negative errno with words. */
int etcd2_http_start(struct etcd2_http *h, struct uv_loop_s *loop, struct err *e);

/** etcd2_http_stop() - after all connections were hung up; then run the loop to its end. */
void etcd2_http_stop(struct etcd2_http *h);

/** etcd2_http_begin() - @c speaks HTTP; nothing of it was read. Hangs up without memory. */
void etcd2_http_begin(struct etcd2_http *h, struct rdzv_conn *c);

/** etcd2_http_tick() - answer those who have waited for too long; each second. */
void etcd2_http_tick(struct etcd2_http *h, nsec_t now);
