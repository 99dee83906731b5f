/*
 * etcd2_http.h - connections to jobs that speak HTTP, for etcd's v2 API.
 *
 * Theory of operation. As in the hub's own server (server.h), libmicrohttpd does the HTTP
 * (mhd_loop.h). A request is read whole, then handled (etcd2_api.h). While it waits for an event or
 * for the disk, its connection is suspended, and resumed when the answer is there. libmicrohttpd
 * does not notice the end of a suspended connection, so that is watched for here.
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

/** A request that has waited for an event for so long is answered without one, as by etcd. */
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

/** etcd2_http_start() - begin to serve on @loop, which is pinned. 0 or negative errno with words.
 */
int etcd2_http_start(struct etcd2_http *h, struct uv_loop_s *loop, struct err *e);

/** etcd2_http_stop() - after all connections were hung up; then run the loop to its end. */
void etcd2_http_stop(struct etcd2_http *h);

/** etcd2_http_begin() - serve @c, of which nothing has been read. Without memory it is ended. */
void etcd2_http_begin(struct etcd2_http *h, struct rdzv_conn *c);

/** etcd2_http_tick() - answer requests that have waited too long. To be called each second. */
void etcd2_http_tick(struct etcd2_http *h, nsec_t now);
