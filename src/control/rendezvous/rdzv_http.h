/*
 * rdzv_http.h - connections to jobs that speak HTTP, for etcd's API.
 *
 * Theory of operation. As in the hub's own server (server.h), libmicrohttpd does the HTTP, has no
 * thread and no listening socket, and runs when its epoll descriptor is readable. A request is
 * read whole, then handled (rdzv_etcd.h). One that waits for an event, or for the disk, suspends
 * its connection; what it waits for makes the answer and resumes it. libmicrohttpd does not look at
 * a connection that is suspended, so its end is then watched for here.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/clock.h"
#include "base/list.h"

struct MHD_Daemon;
struct err;
struct rdzv_conn;

/** A request that waits for an event for so long is answered with none, as etcd does. */
#define RDZV_HTTP_WAIT (300 * NSEC_PER_SEC)

/** Longest body of a request, bytes. */
#define RDZV_HTTP_BODY_MAX (1u << 20)

struct rdzv_http {
    struct MHD_Daemon *daemon;  /* owns; NULL: stopped */
    uv_poll_t poll;             /* of its epoll descriptor */
    uv_timer_t again;           /* it has more to do at once */
    struct list waiting;        /* of requests that wait for an event */
    struct list deferred;       /* of requests for which a later turn of the loop has time */
    nsec_t turn_end;            /* when this turn's time is used up */
    nsec_t since;               /* of the start; since 1970 */
    struct rdzv_conn *starting; /* being handed over right now */
    uint64_t n_requests;        /* answered, since the start */
};

/** rdzv_http_start() - @loop: pinned. 0 or negative errno with words. */
int rdzv_http_start(struct rdzv_http *h, struct uv_loop_s *loop, struct err *e);

/** rdzv_http_stop() - after all connections were hung up; then run the loop until it is empty. */
void rdzv_http_stop(struct rdzv_http *h);

/** rdzv_http_begin() - the connection speaks HTTP; nothing of it has been read. */
void rdzv_http_begin(struct rdzv_http *h, struct rdzv_conn *c);

/** rdzv_http_detach() - its job goes, or it does: it waits for nothing any more. Idempotent. */
void rdzv_http_detach(struct rdzv_conn *c);

/** rdzv_http_end() - after rdzv_http_detach(): end it; freed in a later turn. */
void rdzv_http_end(struct rdzv_conn *c);

/** rdzv_http_tick() - answer those who have waited for too long; each second. */
void rdzv_http_tick(struct rdzv_http *h, nsec_t now);
