/*
 * rdzv_conn.h - members' connections to jobs, whatever protocol they speak.
 *
 * Theory of operation. A connection begins without a protocol. When its first byte says which one
 * it speaks (rdzv_listen.c), that protocol's table is set, with its own state of the connection.
 * A connection ends in two steps, which may be turns of the loop apart. First it is detached: it
 * does not refer to its job any more, which may be freed, and counts in no limit. Then its handle
 * closes, and its memory is freed.
 *
 * Threads: the process has one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "api/server/admission.h"
#include "base/addr.h"
#include "base/clock.h"
#include "base/list.h"
#include "os/log.h"
#include "rendezvous/job/rdzv_job.h"

/** Most connections at once: of a network; of one member; and of one while less than half of the
 * network's are taken. */
#define RDZV_CONNECTIONS_MAX           8192
#define RDZV_CONNECTIONS_MAX_BY_MEMBER 512
#define RDZV_CONNECTIONS_MAX_OF_MANY   2048

/**
 * A connection that has sent no byte for so long since its beginning is ended while seven eighths
 * of the network's connections are taken, unless it is a store's second one.
 *
 * A client of torch 1.x connects twice and says nothing until it is first used, which may be hours
 * later. The second connection says nothing until a key is watched, which may be never; when it is
 * ended, a thread of torch polls it without end, on a processor of its own. So a member may always
 * have as many silent connections to a job as it has others there.
 */
#define RDZV_SILENT_MAX (10 * NSEC_PER_SEC)

/** All connections of a process. */
struct rdzv_conns {
    struct uv_loop_s *loop;     /* pins */
    struct admission admission; /* how many at once, of all members and of each */
    struct list silent;         /* of struct rdzv_conn that have sent nothing yet; oldest first */
    uint64_t n_hung_up;         /* connections that this process has ended or refused */
    struct log_limit limit;     /* of the log lines about connections that are ended */
};

struct rdzv_conn;

/** What a protocol does with its connections. */
struct rdzv_protocol {
    /* The connection is being detached: release what its state holds of the job. */
    void (*detach)(struct rdzv_conn *c);

    /* It has been detached: end it, and then call rdzv_conn_close(). NULL: there is nothing to do
     * before. */
    void (*end)(struct rdzv_conn *c);

    /* Free the state; the connection is freed next. */
    void (*free)(struct rdzv_conn *c);
};

/** A connection. Freed when its handle has closed. */
struct rdzv_conn {
    struct list link;                     /* in the job's, while it is attached */
    struct list silent;                   /* in rdzv_conns.silent, until it says something */
    nsec_t judged_at;                     /* when it was accepted, or last found to stay silent */
    size_t charged;                       /* bytes that it has in the network's quota */
    struct rdzv_conns *conns;             /* pins */
    struct rdzv_job *job;                 /* pins; NULL once it is detached */
    int fd;                               /* owns; -1 when the protocol has given it away */
    uv_poll_t poll;                       /* of the descriptor */
    int events;                           /* which events are polled for; 0: none */
    struct ip_addr from;                  /* the member's address */
    const struct rdzv_protocol *protocol; /* NULL until its first byte has come */
    void *state;                          /* the protocol's; NULL: none */
};

/** rdzv_conns_init() - no connections. @loop: pinned; @seed: random, unknown to strangers. */
void rdzv_conns_init(struct rdzv_conns *conns, struct uv_loop_s *loop, uint64_t seed);

/** rdzv_conns_deinit() - after all connections. */
void rdzv_conns_deinit(struct rdzv_conns *conns);

/**
 * rdzv_conns_hang_up_silent() - while few connections are left, end those that have sent nothing
 * for RDZV_SILENT_MAX
 *
 * One that stays is charged for, as those that speak are; it is ended when there is no room. Looks
 * at a bounded number of them in one call, the oldest first.
 */
void rdzv_conns_hang_up_silent(struct rdzv_conns *conns, nsec_t now);

/** rdzv_conns_hang_up() - end a job's connections: those of the address @from; NULL: all. */
void rdzv_conns_hang_up(struct rdzv_job *job, const struct ip_addr *from);

/** rdzv_conns_count() - who is connected to a job. */
struct rdzv_presence rdzv_conns_count(const struct rdzv_job *job);

/**
 * rdzv_conn_new() - a connection to a job begins
 * @fd:	does not block; taken, also on failure
 *
 * Return: lends it, attached, polled for nothing. NULL when it is over a limit, or there is no
 * memory; then the descriptor is closed.
 */
struct rdzv_conn *rdzv_conn_new(
    struct rdzv_conns *conns, struct rdzv_job *job, int fd, const struct ip_addr *from, nsec_t now);

/** rdzv_conn_charge() - it counts in the network's quota until it is detached. False: no room. */
bool rdzv_conn_charge(struct rdzv_conn *c, size_t cost);

/** rdzv_conn_poll() - have @cb called for these events, and no others; 0: for none. */
void rdzv_conn_poll(struct rdzv_conn *c, int events, uv_poll_cb cb);

/** rdzv_conn_hang_up() - end a connection, which is freed in a later turn. Idempotent. */
void rdzv_conn_hang_up(struct rdzv_conn *c);

/** rdzv_conn_complain() - before it is ended: count that, and log why, at a limited rate. */
void rdzv_conn_complain(struct rdzv_conn *c, const char *why);

/** rdzv_conn_detach() - take it off its job: the first step of its end. Idempotent. */
void rdzv_conn_detach(struct rdzv_conn *c);

/** rdzv_conn_close() - after rdzv_conn_detach(): close its handle, then free it. Idempotent. */
void rdzv_conn_close(struct rdzv_conn *c);
