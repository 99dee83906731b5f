/*
 * tcpstore_conn.h - connections that speak TCPStore: bytes in, requests, answers, bytes out.
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
#pragma once

#include <stdint.h>
#include <uv.h>

#include "base/list.h"
#include "rendezvous/job/rdzv_conn.h"

/** Most bytes that are read from a connection at a time. */
#define TCPSTORE_CONNS_READ_MAX (64u << 10)

/** All connections of a process that speak TCPStore. */
struct tcpstore_conns {
    uv_timer_t later;    /* the next turn of the loop is for @turns */
    struct list turns;   /* of struct tcpstore_conn that have used up their share of this turn */
    uint64_t n_requests; /* since the start */
    uint8_t read_buf[TCPSTORE_CONNS_READ_MAX]; /* what has come in, until it is decoded */
};

/** tcpstore_conns_start() - before the first connection. @loop: pinned. */
void tcpstore_conns_start(struct tcpstore_conns *all, struct uv_loop_s *loop);

/** tcpstore_conns_stop() - after all connections were hung up; then run the loop to its end. */
void tcpstore_conns_stop(struct tcpstore_conns *all);

/** tcpstore_conn_begin() - serve @c, of which nothing has been read. Without memory it is ended. */
void tcpstore_conn_begin(struct tcpstore_conns *all, struct rdzv_conn *c);
