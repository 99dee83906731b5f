/*
 * etcd_internal.h - what the files of the etcd store share: one struct, and the steps of its
 * thread.
 *
 *     etcd.c          life, the thread, which job comes next
 *     etcd_read.c     what is read: items, pages, all at the start, all after a gap
 *     etcd_commit.c   commits that are one transaction
 *     etcd_large.c    commits that are many
 *     etcd_told.c     from the feed to the owner's loop
 *
 * None calls one above it in this list, but for etcd_commit.c, which has etcd_large.c complete what
 * it finds begun.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "store/etcd_client.h"
#include "store/etcd_feed.h"
#include "store/etcd_news.h"
#include "store/etcd_session.h"
#include "store/etcd_url.h"
#include "store/store_backend.h"

/** How long a request to the store is tried before it fails, ns. */
#define ETCD_JOB_NS (8 * NSEC_PER_SEC)

/** Operations and bytes of keys and values in one transaction; etcd takes 128 and 1.5 MiB. */
#define ETCD_TXN_OPS_MAX   100
#define ETCD_TXN_BYTES_MAX (512u << 10)

struct etcd {
    struct store base;

    /* The thread's, once it runs. */
    struct etcd_url url;
    struct etcd_client client;
    struct etcd_feed feed;
    struct etcd_news news;
    struct etcd_session session;
    uint64_t last_seq;    /* the number of a commit that was given out last, in any session */
    struct list *current; /* pins: the jobs of the commit that is being made; NULL: none is */
    uint64_t current_seq; /* its number in the session */
    bool is_current_seen; /* the feed has shown it, and its jobs were handed back */
    nsec_t away_at;       /* a request has failed for want of an answer; 0: the last one did not */
    nsec_t asked_at;      /* a request was answered by the server where the feed is */
    struct err away;      /* in these words */

    _Atomic unsigned n_told; /* handed to the owner's loop unasked, and not taken yet */
    int wake_fd;             /* owns; wakes the thread */
    pthread_t thread;        /* joined by the store's free */
    bool has_thread;         /* it was started */

    pthread_mutex_t lock; /* guards what follows */
    struct list jobs;     /* of struct store_job; the oldest first */
    bool is_ending;       /* no more jobs will come */
};

/* ---- etcd_told.c ---------------------------------------------------------------------------- */

/** etcd__drain() - tell the owner's loop what the feed has brought. */
void etcd__drain(struct etcd *q);

/** etcd__tend() - what has to be done now and then: keep the feed alive, and complete after a gap.
 */
void etcd__tend(struct etcd *q, nsec_t now);

/** etcd__wait() - let things happen for at most @ms, and then drain. @fd: as remote_http_wait(). */
void etcd__wait(struct etcd *q, int fd, unsigned ms);

/**
 * etcd__wait_for() - until etcd's revision @revision was told
 *
 * Return: 0; or ETCD_E_AWAY with words when the time is over.
 */
int etcd__wait_for(struct etcd *q, uint64_t revision, nsec_t until, struct err *e);

/** etcd__tell() - hand a commit that nobody asked for to the owner's loop; @job: taken. */
void etcd__tell(struct etcd *q, struct store_job *job);

/* ---- etcd_large.c --------------------------------------------------------------------------- */

/** etcd__large_commit() - do @job, a commit that does not fit into one transaction. */
void etcd__large_commit(struct etcd *q, struct store_job *job);

/**
 * etcd__large_help() - a large commit was found begun: wait for it, or bring it to its end
 *
 * Return: 0: look again; or as etcd_client_ask().
 */
int etcd__large_help(struct etcd *q, nsec_t until, struct err *e);

/** etcd__large_clean() - remove what hubs that are gone have left of commits never made. */
void etcd__large_clean(struct etcd *q, nsec_t until);

/* ---- etcd_commit.c -------------------------------------------------------------------------- */

/** etcd__commit() - do @jobs, commits that fit into one transaction; they are handed back. */
void etcd__commit(struct etcd *q, struct list *jobs);

/** etcd__add_put() - add the operation that writes what @op says. @revision: see struct etcd_value.
 */
void etcd__add_put(
    const struct etcd *q, const struct store_op *op, uint64_t revision, struct str *to);

/** etcd__need_session() - begin a session if there is none. As etcd_client_ask(). */
int etcd__need_session(struct etcd *q, nsec_t until, struct err *e);

/* ---- etcd_read.c ---------------------------------------------------------------------------- */

/** etcd__read() - do @job, a GET or a LIST. */
void etcd__read(struct etcd *q, struct store_job *job);

/** etcd__load() - at the start: what there is. 0 or negative errno with words. */
int etcd__load(struct etcd *q, nsec_t now, nsec_t until, struct err *e);

/** etcd__catch_up() - after a gap of the feed: tell what has become of each key. */
void etcd__catch_up(struct etcd *q, nsec_t until);

/* ---- etcd.c --------------------------------------------------------------------------------- */

/** etcd__fail() - @job has failed with @r of etcd_client_ask(), and @e has the words. */
void etcd__fail(struct etcd *q, struct store_job *job, int r, const struct err *e);

/** etcd__ask() - as etcd_client_ask(), noting whether etcd is away. */
int etcd__ask(
    struct etcd *q, const char *path, struct str *body, nsec_t until, json_t **ret, struct err *e);
