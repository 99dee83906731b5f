/*
 * rdzv_job.h - the jobs of a network in a rendezvous process: what each keeps, and what the hub is
 * told of it.
 *
 * The hub decides which jobs there are and when a run of one begins (hub/jobs/jobs.h). What a job
 * keeps is in tcpstore_server.h (TCPStore) and etcd2_tree.h (etcd). Its connections are below.
 *
 * Nothing here waits, and no timer is started here: a job notes in struct rdzv_jobs what has to be
 * done, and the owner of the loop looks there at the end of each turn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "api/server/admission.h"
#include "base/addr.h"
#include "base/clock.h"
#include "base/containers.h"
#include "base/text.h"
#include "os/log.h"
#include "rendezvous/etcd2/etcd2_tree.h"
#include "rendezvous/job/rdzv_link.h"
#include "rendezvous/shared/rdzv_quota.h"
#include "rendezvous/tcpstore/tcpstore_server.h"

struct rdzv_conn;

/** What the jobs of a network share. */
struct rdzv_jobs {
    char network[NAME_MAX_LEN + 1]; /* its name */
    struct ip_addr address4;        /* the hub's overlay address */
    struct ip_addr address6;        /* likewise */
    struct list all;                /* of struct rdzv_job */
    struct rdzv_quota quota;        /* of all of them */
    struct rdzv_link *link;         /* pins: changes go to the hub through it */
    uint64_t seed;                  /* for the hash tables */
    struct str blob;                /* the pieces of a blob that have been loaded so far */

    /* What the owner of the loop does at the end of the turn. */
    bool has_unsaved;  /* some job's TCPStore has changes that rdzv_jobs_flush() saves */
    bool has_updates;  /* some job has facts that the hub does not know */
    nsec_t expires_at; /* the earliest end of a node, of the trees that have changed; else
                          NSEC_NEVER */
};

/** A job. */
struct rdzv_job {
    struct list link;                /* in rdzv_jobs.all */
    struct rdzv_jobs *jobs;          /* pins */
    uint32_t number;                 /* by which the hub names it */
    uint32_t run;                    /* number of its current run */
    uint16_t port;                   /* of both protocols */
    uint16_t etcd_port;              /* the port that clients of etcd are told */
    char name[NAME_MAX_LEN + 1];     /* of the job */
    struct rdzv_quota quota;         /* of what is in it */
    struct rdzv_quota when_empty;    /* the same as it was when the job was new */
    struct tcpstore_server tcpstore; /* its TCPStore */
    struct etcd2_tree etcd2;         /* its etcd */
    bool is_unsaved;                 /* its TCPStore has changes to save */
    bool is_clearing;          /* drops are not told: what becomes of the blobs is up to the hub */
    bool has_updates;          /* the hub does not know its facts yet */
    struct list conns;         /* of struct rdzv_conn; only rdzv_job.c changes it */
    nsec_t heard_at;           /* when a client sent something last */
    nsec_t reported_heard_at;  /* the same, as the hub knows it */
    uint64_t reported_refused; /* refusals of the quota, as the hub knows them */
};

/** rdzv_jobs_init() - no jobs; @seed: random, unknown to strangers. */
void rdzv_jobs_init(struct rdzv_jobs *jobs, struct rdzv_link *link, uint64_t seed);

/** rdzv_jobs_flush() - send all changes to the hub: before an answer, and at the end of each turn.
 */
void rdzv_jobs_flush(struct rdzv_jobs *jobs);

/** rdzv_job_new() - an empty job, as RDZV_WIRE_JOB describes it. NULL: no memory, or a name too
 * long. */
struct rdzv_job *rdzv_job_new(struct rdzv_jobs *jobs, const struct rdzv_wire *m, nsec_t now);

/** rdzv_job_free() - after its connections. What the hub has kept of it, the hub drops by itself.
 */
void rdzv_job_free(struct rdzv_job *job);

/** rdzv_job_load() - load a piece of a blob that the hub has kept; a damaged one is told to the
 * hub. */
void rdzv_job_load(struct rdzv_job *job, const struct rdzv_wire *m, struct etcd2_when when);

/** rdzv_job_clear() - drop what it keeps, since @run begins. End its connections before. */
void rdzv_job_clear(struct rdzv_job *job, uint32_t run, nsec_t now);

/** rdzv_job_note_expiry() - note when its tree's next node ends, after the tree may have changed.
 */
void rdzv_job_note_expiry(struct rdzv_job *job);

/*
 * Members' connections to jobs, whatever protocol they speak.
 *
 * Theory of operation. A connection begins without a protocol. When its first byte says which one
 * it speaks (rdzv_process.c), that protocol's table is set, with its own state of the connection.
 * A connection ends in two steps, which may be turns of the loop apart. First it is detached: it
 * does not refer to its job any more, which may be freed, and counts in no limit. Then its handle
 * closes, and its memory is freed.
 *
 * Threads: the process has one.
 */

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

/** rdzv_conn_detach() - take it off its job: the first step of its end. Idempotent. */
void rdzv_conn_detach(struct rdzv_conn *c);

/** rdzv_conn_close() - after rdzv_conn_detach(): close its handle, then free it. Idempotent. */
void rdzv_conn_close(struct rdzv_conn *c);
