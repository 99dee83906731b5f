/*
 * rdzv_internal.h - rendezvous as its own files see it: networks, jobs, listeners, connections.
 *
 *     rdzv.c         networks, and which jobs they have
 *     rdzv_job.c     one job: its life, and its runs
 *     rdzv_load.c    jobs out of the hub's store
 *     rdzv_listen.c  the ports, and connections until it is known what they speak
 *     rdzv_store.c   connections that speak TCPStore
 *     rdzv_http.c    connections that speak HTTP
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "api/admission.h"
#include "base/list.h"
#include "base/log.h"
#include "hub/model.h"
#include "hub/rdzv.h"
#include "hub/rdzv_http.h"
#include "rendezvous/rdzv_kv.h"
#include "rendezvous/rdzv_quota.h"
#include "rendezvous/rdzv_record.h"
#include "hub/rdzv_save.h"
#include "rendezvous/rdzv_tree.h"

/** Connections of a network at once, and of one member. */
#define RDZV__CONNECTIONS_MAX           16384
#define RDZV__CONNECTIONS_MAX_BY_MEMBER 2048

/** What is read from a connection at a time. */
#define RDZV__READ_MAX (64u << 10)

/** A job has at most two ports, each on two addresses. */
#define RDZV__LISTENERS_MAX 4

struct MHD_Connection;
struct rdzv_http_request;

struct rdzv {
    struct uv_loop_s *loop;           /* pins */
    struct model *model;              /* pins */
    uint64_t seed;                    /* for the hash tables */
    uint64_t epoch;                   /* of this life of the hub */
    struct rdzv_save save;            /* what is not on the disk yet */
    struct rdzv_http http;            /* the connections that speak HTTP */
    uv_timer_t ttl;                   /* when the next node of some tree ends */
    uv_timer_t turn;                  /* the next turn of the loop is for @turns */
    struct list turns;                /* of struct rdzv_conn that have used up their time */
    struct list networks;             /* of struct rdzv_network */
    uint64_t n_requests;              /* of TCPStore, since the start */
    uint64_t n_hung_up;               /* connections that we ended */
    struct log_limit limit;           /* of the words about those */
    bool started;                     /* between rdzv_start() and rdzv_stop() */
    uint8_t read_buf[RDZV__READ_MAX]; /* what has come in, until it is decoded */
};

/** A network's jobs; there from the first of them on, or from when it is served. */
struct rdzv_network {
    struct list link;            /* in rdzv.networks */
    struct rdzv *rz;             /* pins */
    char name[NAME_MAX_LEN + 1]; /* of the network */
    struct list jobs;            /* of struct rdzv_job, by name */
    struct rdzv_quota quota;     /* of all of them */
    struct model_network *net;   /* pins; NULL: it is not served now */
    char interface[16];          /* where it is served */
    struct admission admission;  /* of connections, while it is served */
};

struct rdzv_job {
    struct list link;                                     /* in the network's */
    struct rdzv *rz;                                      /* pins */
    struct rdzv_network *network;                         /* pins */
    char name[NAME_MAX_LEN + 1];                          /* see parse_name() */
    struct rdzv_job_record record;                        /* as it is in the store */
    struct rdzv_quota quota;                              /* of what is in it */
    struct rdzv_kv kv;                                    /* its TCPStore */
    struct rdzv_tree tree;                                /* its etcd */
    struct rdzv_listener *listeners[RDZV__LISTENERS_MAX]; /* NULL: none */
    struct list conns;                                    /* of struct rdzv_conn */
    nsec_t heard;                                         /* when somebody spoke last */
};

/** A connection. Freed when its handle has closed. */
struct rdzv_conn {
    struct list link;          /* in the job's, while it is open */
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
    size_t charged;            /* what it counts for in the network's quota */
    /* rdzv_http.c's */
    bool is_http;                      /* it speaks HTTP */
    struct MHD_Connection *mhd;        /* libmicrohttpd's; NULL before it started, and at its end */
    struct rdzv_http_request *request; /* what it asks now; NULL: nothing */
};

/** rdzv__find_job() - lends; NULL if there is none of that name. */
struct rdzv_job *rdzv__find_job(struct rdzv *rz, const char *network, const char *name);

/** rdzv__add_job() - as @record has it; not saved, not served. 0 or -ENOMEM. */
int rdzv__add_job(struct rdzv *rz, const char *network, const char *name,
    const struct rdzv_job_record *record, nsec_t now);

/** rdzv__job_new() - the same; NULL: no memory. */
struct rdzv_job *rdzv__job_new(
    struct rdzv_network *n, const char *name, const struct rdzv_job_record *record, nsec_t now);

/**
 * rdzv__job_make() - one with a port of its own, served, and to be saved
 *
 * Return: 0; RDZV_E_FULL with words: there is no port left; or negative errno with words.
 */
int rdzv__job_make(
    struct rdzv_network *n, const char *name, nsec_t now, struct rdzv_job **ret, struct err *e);

/** rdzv__job_enter() - a member comes: a new run if the last one is over. 0 or -errno. */
int rdzv__job_enter(struct rdzv_job *job, nsec_t now, struct err *e);

/** rdzv__job_tick() - forget it, or what is in the default one, once nobody came for RDZV_IDLE. */
void rdzv__job_tick(struct rdzv_job *job, nsec_t now);

/** rdzv__job_forget() - it goes with all that is in it, from the disk too. */
void rdzv__job_forget(struct rdzv_job *job);

/** rdzv__job_free() - from memory alone; its connections have been hung up. */
void rdzv__job_free(struct rdzv_job *job);

/** rdzv__load() - all that is kept, into an empty @rz. 0 or negative errno with words. */
int rdzv__load(struct rdzv *rz, struct err *e);

/** rdzv__listen() - open the job's ports; what cannot be opened is named in a warning. */
void rdzv__listen(struct rdzv_job *job);

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

/** rdzv__store_stop() - after the last; then run the loop until it is empty. */
void rdzv__store_stop(struct rdzv *rz);

/** rdzv__charge() - it counts in the network's quota until it is detached. False: no room. */
bool rdzv__charge(struct rdzv_conn *c, size_t cost);

/** rdzv__store_begin() - the connection speaks TCPStore; what it said is still to be read. */
void rdzv__store_begin(struct rdzv_conn *c);

/** rdzv__store_forget_input() - and what it counted for in the quota. Idempotent. */
void rdzv__store_forget_input(struct rdzv_conn *c);

/** rdzv__store_saver() - for the job's TCPStore: to the hub's store. */
struct rdzv_kv_saver rdzv__store_saver(struct rdzv_job *job);
