/*
 * rdzv_listen.h - the ports of jobs: accepts connections, and gives each to the protocol that it
 * speaks.
 *
 * A port serves both protocols: the first byte of a connection says which. HTTP begins with a
 * capital letter, a TCPStore's request with a number below 32.
 *
 * Theory of operation. The hub's messages are read before connections are accepted, so that a
 * client which the hub has sent here finds what the hub told before that. Such a message may end
 * the job, and the listener with it.
 *
 * Threads: the process has one.
 */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "base/list.h"
#include "rendezvous/job/rdzv_conn.h"
#include "rendezvous/job/rdzv_link.h"
#include "rendezvous/job/rdzv_members.h"
#include "rendezvous/process/etcd2_http.h"
#include "rendezvous/process/tcpstore_conn.h"

/** A job has at most two ports, each on two addresses, and both for the hub's own machine too. */
#define RDZV_LISTEN_MAX 8

/** All listening sockets of a process. */
struct rdzv_listen {
    struct rdzv_conns *conns;           /* pins */
    const struct rdzv_members *members; /* pins: who may connect */
    struct rdzv_link *link;             /* pins: read before each accept */
    struct tcpstore_conns *tcpstore;    /* pins: gets the connections that speak TCPStore */
    struct etcd2_http *http;            /* pins: gets those that speak HTTP */
    struct list all;                    /* of struct rdzv_listener */
    uv_timer_t retry;                   /* until accepting again, after descriptors ran out */
    uint64_t n_deferred; /* how often accepting had to wait for want of descriptors */
};

/** rdzv_listen_start() - no sockets yet. The five pointers are set already. */
void rdzv_listen_start(struct rdzv_listen *l);

/** rdzv_listen_stop() - after rdzv_listen_remove() of each job; then run the loop to its end. */
void rdzv_listen_stop(struct rdzv_listen *l);

/** rdzv_listen_add() - serve the job at @fd, a listening socket, which is taken. */
void rdzv_listen_add(struct rdzv_listen *l, struct rdzv_job *job, int fd);

/** rdzv_listen_remove() - close a job's sockets, at once. Its connections stay. */
void rdzv_listen_remove(struct rdzv_listen *l, const struct rdzv_job *job);
