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

#include <stdint.h>
#include <uv.h>

#include "api/server/mhd_loop.h"
#include "base/clock.h"
#include "base/containers.h"
#include "rendezvous/job/rdzv_job.h"

/**
 * rdzv_process_run() - give up all privileges for good, and serve until the hub ends it or is gone
 * @fd:	the process' end of the pipe; a stream socket
 *
 * Return: 0; or negative errno with words.
 */
int rdzv_process_run(int fd, struct err *e);

/*
 * Connections to jobs that speak HTTP, for etcd's v2 API.
 *
 * Theory of operation. As in the hub's own server (server.h), libmicrohttpd does the HTTP
 * (mhd_loop.h). A request is read whole, then handled (etcd2_api.h). While it waits for an event or
 * for the disk, its connection is suspended, and resumed when the answer is there. libmicrohttpd
 * does not notice the end of a suspended connection, so that is watched for here.
 *
 * Threads: the process has one.
 */

/** A request that has waited for an event for so long is answered without one, as by etcd. */
#define ETCD2_HTTP_WAIT (300 * NSEC_PER_SEC)

/** Longest body of a request, bytes. */
#define ETCD2_HTTP_BODY_MAX (1u << 20)

/** All connections of a process that speak HTTP. */
struct etcd2_http {
    struct mhd_loop mhd; /* libmicrohttpd; to be stopped after all connections were hung up */
    struct list waiting; /* of requests that wait for an event */
    nsec_t started_at;   /* since 1970 */
    uint64_t n_requests; /* answered, since the start */
};

/** etcd2_http_start() - begin to serve on @loop, which is pinned. 0 or negative errno with words.
 */
int etcd2_http_start(struct etcd2_http *h, struct uv_loop_s *loop, struct err *e);

/** etcd2_http_begin() - serve @c, of which nothing has been read. Without memory it is ended. */
void etcd2_http_begin(struct etcd2_http *h, struct rdzv_conn *c);

/** etcd2_http_tick() - answer requests that have waited too long. To be called each second. */
void etcd2_http_tick(struct etcd2_http *h, nsec_t now);

/*
 * Connections that speak TCPStore: bytes in, requests, answers, bytes out.
 *
 * What a request does is in tcpstore_server.h.
 *
 * Theory of operation. Answers are sent after all requests of one read have been handled, so that a
 * client which sends many requests in a row costs few system calls. A client has a share of bytes
 * and of time in each turn of the loop. When its requests take more, the rest of them is kept,
 * nothing more is read from it, and it goes on in the next turn, after all others have had theirs.
 *
 * Threads: the process has one.
 */

/** Most bytes that are read from a connection at a time. */
#define TCPSTORE_CONNS_READ_MAX (64u << 10)

/** All connections of a process that speak TCPStore. */
struct tcpstore_conns {
    uv_timer_t next;     /* the next turn of the loop is for @turns; the owner closes it */
    struct list turns;   /* of struct tcpstore_conn that have used up their share of this turn */
    uint64_t n_requests; /* since the start */
    uint8_t read_buf[TCPSTORE_CONNS_READ_MAX]; /* what has come in, until it is decoded */
};

/** tcpstore_conns_start() - before the first connection. @loop: pinned. */
void tcpstore_conns_start(struct tcpstore_conns *all, struct uv_loop_s *loop);

/** tcpstore_conn_begin() - serve @c, of which nothing has been read. Without memory it is ended. */
void tcpstore_conn_begin(struct tcpstore_conns *all, struct rdzv_conn *c);
