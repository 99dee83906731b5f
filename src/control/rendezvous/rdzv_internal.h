/*
 * rdzv_internal.h - a rendezvous process as its own files see it: jobs, listeners, connections.
 *
 *     rdzv_process.c  the loop, and what the hub says
 *     rdzv_job.c      one job: what is in it, and how it is told to the hub
 *     rdzv_listen.c   the ports, and connections until it is known what they speak
 *     rdzv_store.c    connections that speak TCPStore
 *     rdzv_http.c     connections that speak HTTP
 *     rdzv_save.c     changes, on their way to the hub
 *     rdzv_link.c     the pipe to the hub
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "api/admission.h"
#include "base/htab.h"
#include "base/list.h"
#include "os/log.h"
#include "rendezvous/rdzv_http.h"
#include "rendezvous/rdzv_kv.h"
#include "rendezvous/rdzv_link.h"
#include "rendezvous/rdzv_process.h"
#include "rendezvous/rdzv_quota.h"
#include "rendezvous/rdzv_save.h"
#include "rendezvous/rdzv_tree.h"

/** What is read from a connection at a time. */
#define RDZV__READ_MAX (64u << 10)

/** A job has at most two ports, each on two addresses. */
#define RDZV__LISTENERS_MAX 4

struct MHD_Connection;
struct rdzv_http_request;

/** The network whose rendezvous this is. */
struct rdzv_network {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr address4;    /* the hub's */
    struct ip_addr address6;    /* likewise */
    struct htab members;        /* owns struct rdzv_member: who may connect */
    struct list jobs;           /* of struct rdzv_job */
    struct rdzv_quota quota;    /* of all of them */
    struct admission admission; /* of connections */
};

struct rdzv {
    struct uv_loop_s loop;            /* owns */
    uint64_t seed;                    /* for the hash tables */
    struct rdzv_link link;            /* to the hub */
    struct rdzv_save save;            /* what the hub has to keep */
    struct rdzv_http http;            /* the connections that speak HTTP */
    struct rdzv_network network;      /* whose rendezvous this is */
    uv_poll_t hub;                    /* of the pipe */
    uv_prepare_t turn;                /* at the end of each turn of the loop */
    uv_timer_t tick;                  /* each second */
    uv_timer_t facts;                 /* to telling the hub how jobs are */
    uv_timer_t ttl;                   /* when the next node of some tree ends */
    uv_timer_t retry;                 /* to accepting again, after descriptors ran out */
    uv_timer_t later;                 /* the next turn of the loop is for @turns */
    struct list turns;                /* of struct rdzv_conn that have used up their time */
    struct list silent;               /* of struct rdzv_conn: said nothing yet; oldest first */
    uint64_t n_requests;              /* of TCPStore, since the start */
    uint64_t n_hung_up;               /* connections that we ended or refused */
    uint64_t n_accepts_deferred;      /* for want of descriptors */
    struct log_limit limit;           /* of the words about those that we ended */
    bool has_unsaved;                 /* some job's TCPStore has something for rdzv__flush() */
    bool is_ending;                   /* the hub has said so, or is gone */
    struct str blob;                  /* what is being loaded, so far */
    uint8_t read_buf[RDZV__READ_MAX]; /* what has come in, until it is decoded */
};

struct rdzv_job {
    struct list link;                                     /* in the network's */
    struct rdzv *rz;                                      /* pins */
    struct rdzv_network *network;                         /* pins */
    uint32_t number;                                      /* the hub's, of it */
    uint32_t run;                                         /* of it */
    uint16_t port;                                        /* for both protocols */
    uint16_t etcd_port;                                   /* as etcd's clients are told */
    char name[NAME_MAX_LEN + 1];                          /* see parse_name() */
    struct rdzv_quota quota;                              /* of what is in it */
    struct rdzv_quota when_empty;                         /* the same, of a job that is new */
    struct rdzv_kv kv;                                    /* its TCPStore */
    struct rdzv_tree tree;                                /* its etcd */
    bool is_unsaved;                                      /* its TCPStore has, see there */
    bool is_clearing;                                     /* the hub forgets by itself */
    bool is_changed;                                      /* the hub does not know how it is */
    struct rdzv_listener *listeners[RDZV__LISTENERS_MAX]; /* owns; NULL: none */
    struct list conns;                                    /* of struct rdzv_conn */
    nsec_t heard;                                         /* when somebody spoke last */
    nsec_t heard_told;                                    /* likewise, as the hub knows it */
    uint64_t refused_told;                                /* of the quota, as the hub knows it */
};

/** A connection. Freed when its handle has closed. */
struct rdzv_conn {
    struct list link;          /* in the job's, while it is open */
    struct list silent;        /* in rdzv.silent, until it says something */
    nsec_t since;              /* when it was accepted */
    size_t charged;            /* bytes that it counts for in the network's quota */
    struct rdzv *rz;           /* pins */
    struct rdzv_job *job;      /* pins; NULL once it is detached */
    int fd;                    /* owns; -1 when libmicrohttpd has it */
    uv_poll_t poll;            /* of it */
    int events;                /* that are polled for */
    struct ip_addr from;       /* the member */
    bool is_store;             /* it speaks TCPStore: @client is valid */
    struct rdzv_client client; /* its half in the job's TCPStore */
    uint8_t *in;               /* owns; a request of which not all has come */
    size_t in_len;             /* bytes of it */
    size_t in_cap;             /* room of it */
    size_t in_need;            /* so many must be there before it is of use to look at them */
    bool has_more;             /* of what has come not all has been looked at */
    struct list turn;          /* in rdzv.turns while it waits for a turn to do that */
    /* rdzv_http.c's */
    bool is_http;                      /* it speaks HTTP */
    struct MHD_Connection *mhd;        /* libmicrohttpd's; NULL before it started, and at its end */
    struct rdzv_http_request *request; /* what it asks now; NULL: nothing */
};

/** rdzv__find_job() - lends; NULL if there is none of that number. */
struct rdzv_job *rdzv__find_job(struct rdzv *rz, uint32_t number);

/** rdzv__job_new() - as the hub has it; not served. NULL: no memory. */
struct rdzv_job *rdzv__job_new(struct rdzv *rz, const struct rdzv_wire *m);

/** rdzv__job_load() - a piece of what the hub has kept of it. */
void rdzv__job_load(struct rdzv_job *job, const struct rdzv_wire *m);

/** rdzv__job_clear() - @run begins: hang up on all, forget. */
void rdzv__job_clear(struct rdzv_job *job, uint32_t run);

/** rdzv__job_free() - with its listeners and connections; the hub forgets it by itself. */
void rdzv__job_free(struct rdzv_job *job);

/** rdzv__changed() - the hub will be told how the job is. */
void rdzv__changed(struct rdzv_job *job);

/** rdzv__tell_facts() - how the job is, if the hub does not know it. */
void rdzv__tell_facts(struct rdzv_job *job, nsec_t now);

/** rdzv__is_member() - may who has this address connect? */
bool rdzv__is_member(const struct rdzv_network *n, const struct ip_addr *address);

/** rdzv__listen() - serve the job at @fd, which is taken. */
void rdzv__listen(struct rdzv_job *job, int fd);

/** rdzv__listen_again() - after descriptors ran out. */
void rdzv__listen_again(struct rdzv_job *job);

/** rdzv__hang_up_all() - on all connections of a job; @from: of that address only; NULL: any. */
void rdzv__hang_up_all(struct rdzv_job *job, const struct ip_addr *from);

/** rdzv__hang_up_silent() - on those that have said nothing for RDZV_SILENT_MAX. */
void rdzv__hang_up_silent(struct rdzv *rz, nsec_t now);

/** rdzv__unlisten() - close them, and all connections. */
void rdzv__unlisten(struct rdzv_job *job);

/** rdzv__hang_up() - end a connection, freed in a later turn. Idempotent. */
void rdzv__hang_up(struct rdzv_conn *c);

/** rdzv__detach() - it has nothing to do with its job any more. Idempotent. */
void rdzv__detach(struct rdzv_conn *c);

/** rdzv__close() - after rdzv__detach(): the handle, then the rest. Idempotent. */
void rdzv__close(struct rdzv_conn *c);

/** rdzv__arm_ttl() - something in the job's tree may end sooner than was thought. */
void rdzv__arm_ttl(struct rdzv_job *job);

/** rdzv__poll() - be told of these events only. */
void rdzv__poll(struct rdzv_conn *c, int events, uv_poll_cb cb);

/** rdzv__store_start() - before the first connection. */
void rdzv__store_start(struct rdzv *rz);

/** rdzv__charge() - it counts in the network's quota until it is detached. False: no room. */
bool rdzv__charge(struct rdzv_conn *c, size_t cost);

/** rdzv__flush() - what has changed goes to the hub: before an answer, and each turn. */
void rdzv__flush(struct rdzv *rz);

/** rdzv__store_begin() - the connection speaks TCPStore; what it said is still to be read. */
void rdzv__store_begin(struct rdzv_conn *c);

/** rdzv__store_forget_input() - and what it counted for in the quota. Idempotent. */
void rdzv__store_forget_input(struct rdzv_conn *c);
