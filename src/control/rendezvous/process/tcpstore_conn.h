/*
 * tcpstore_conn.h - connections that speak TCPStore: bytes in, requests, answers, bytes out.
 *
 * What a request does is in tcpstore_server.h.
 *
 * Theory of operation. Answers are sent at the end of what was read at once, so a client that asks
 * many things in a row costs few system calls. A client has a budget of bytes and of time in a turn
 * of the loop. One that has asked for more than goes into it has the rest of its requests kept, is
 * not read from meanwhile, and goes on in the next turn, after all others have had theirs.
 *
 * Threads: the process has one.
 */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "base/list.h"
#include "rendezvous/job/rdzv_conn.h"

/** What is read from a connection at a time, bytes. */
#define TCPSTORE_CONNS_READ_MAX (64u << 10)

/** All connections of a process that speak TCPStore. */
struct tcpstore_conns {
    uv_timer_t later;    /* the next turn of the loop is for @turns */
    struct list turns;   /* of struct tcpstore_conn that have used up their budget */
    uint64_t n_requests; /* since the start */
    uint8_t read_buf[TCPSTORE_CONNS_READ_MAX]; /* what has come in, until it is decoded */
};

/** tcpstore_conns_start() - before the first connection. @loop: pinned. */
void tcpstore_conns_start(struct tcpstore_conns *all, struct uv_loop_s *loop);

/** tcpstore_conns_stop() - after all connections were hung up; then run the loop to its end. */
void tcpstore_conns_stop(struct tcpstore_conns *all);

/** tcpstore_conn_begin() - @c speaks TCPStore; nothing of it was read. Hangs up without memory. */
void tcpstore_conn_begin(struct tcpstore_conns *all, struct rdzv_conn *c);
