/*
 * etcd_internal.h - the store in etcd v3, from which several hubs may serve one network: the struct
 * that its files share, and the steps of its thread.
 *
 * It speaks the gateway's JSON (etcd 3.4 and later, under /v3/) with libcurl, on a thread of its
 * own, to any of the members. etcd_codec.h says what the URL holds, and what the keys are.
 *
 * How the promises of store.h are kept:
 *
 *   order      The thread does one job after the other. Commits that have gathered and have no key
 *              in common go into one transaction, which may give them the same revision.
 *   durable    etcd answers when most members have it on their disks.
 *   compare    A revision is etcd's, less the one at which the store's prefix was made.
 *   unknown    A commit is sent again until it is answered; the key of the session makes sure that
 *              it is done once (etcd_client.h). Only when no member has answered for eight seconds
 *              is the answer STORE_E_UNKNOWN, or -EIO where nothing can have been done.
 *   watches    Everything is told from one watch of etcd's, own changes as well: a commit is
 *              answered when the watch has shown it. So changes come in the order of etcd's
 *              revisions, whoever made them. When a member is lost, the watch continues at another
 *              one, behind the last change that came. If etcd has compacted those revisions by
 *              then, everything is read again. Then watches are told the present value of each key
 *              that changed, and not each change.
 *   leases     The length of a lease is kept with the key's value. Each hub measures the time
 *              itself, from when it saw the key written; other hubs do not know of a store_keep().
 *   large      A commit that is too long for a transaction of etcd's is done in parts, and is seen
 *              whole or not at all (etcd_commit.c).
 *
 *     etcd_follow.c  requests, the steps of large commits, and following the feed
 *     etcd_commit.c  requests that read, and commits of one transaction or of many
 *     etcd.c         opening and closing, the thread, which job comes next
 *
 * A file calls only files above it in this list.
 */
#pragma once

#include <stdatomic.h>

#include "backends/etcd/etcd_client.h"
#include "backends/etcd/etcd_codec.h"
#include "backends/etcd/etcd_updates.h"
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
    struct etcd_updates updates;
    struct etcd_session session;
    uint64_t last_seq;    /* the number of a commit that was given out last, in any session */
    struct list *current; /* pins: the jobs of the commit that is being made; NULL: none is */
    uint64_t current_seq; /* its number in the session */
    bool is_current_seen; /* the feed has shown it, and its jobs were handed back */
    nsec_t away_at;       /* when a request got no answer; 0: the last one was answered */
    nsec_t asked_at;      /* when the feed's server last answered a request */
    struct err away;      /* the words of that failure */
    bool is_probe_lost;   /* the last probe got no answer, and nothing was answered since */

    _Atomic unsigned n_untaken; /* unasked commits handed to the owner's loop, and not taken yet */
};

/* ---- requests -------------------------------------------------------------------------------- */

/** etcd__ask() - as etcd_client_ask(), noting whether etcd is away. */
int etcd__ask(
    struct etcd *q, const char *path, struct str *body, nsec_t until, json_t **ret, struct err *e);

/** An outcome: an operation of the commit, which its job names, finds a key at another revision. */
#define ETCD_E_CONFLICT 201

/** etcd__fail() - @job has failed with ETCD_E_CONFLICT, or with @r of etcd_client_ask() and the
 * words @e. 0: it was done, and the feed has not shown it. */
void etcd__fail(struct etcd *q, struct store_job *job, int r, const struct err *e);

/** etcd__need_session() - begin a session if there is none. As etcd_client_ask(). */
int etcd__need_session(struct etcd *q, nsec_t until, struct err *e);

/** etcd__key_name() - the name of the store's key @key. Returns @buf. */
const char *etcd__key_name(char buf[static ETCD_NAME_MAX + 1], const char *key);

/** etcd__add_op() - add the operation that does @op, a put or a delete. @revision: see struct
 * etcd_value. */
void etcd__add_op(
    const struct etcd *q, const struct store_op *op, uint64_t revision, struct str *to);

/* ---- from the feed to the owner's loop ------------------------------------------------------- */

/** etcd__drain() - tell the owner's loop what the feed has brought. */
void etcd__drain(struct etcd *q);

/** etcd__wait() - remote_http_wait() on @fd for at most @ms, and then etcd__drain(). */
void etcd__wait(struct etcd *q, int fd, unsigned ms);

/* ---- the steps of large commits -------------------------------------------------------------- */

/** An outcome of a step: the key "i", which says what large commit is being made, has changed. */
#define ETCD_E_LOST_HEAD 200

/** etcd__part_name() - the key that holds part @part of a large commit. Returns @buf. */
const char *etcd__part_name(
    char buf[static ETCD_NAME_MAX + 1], const struct etcd_writer *w, uint64_t part);

/**
 * etcd__step() - send a transaction that fails where its comparisons do not hold
 * @body:	emptied
 * @ret_mod:	etcd's revision of it; NULL: not wanted
 *
 * Return: 0; ETCD_E_LOST_HEAD: a comparison did not hold; or as etcd_client_ask().
 */
int etcd__step(struct etcd *q, struct str *body, nsec_t until, uint64_t *ret_mod, struct err *e);

/** etcd__read_head() - what "i" is. @ret_mod: etcd's revision; 0: absent. As etcd_client_ask(). */
int etcd__read_head(
    struct etcd *q, nsec_t until, struct etcd_large_head *ret, uint64_t *ret_mod, struct err *e);

/** etcd__remove_head() - remove "i", if it is at revision @mod; as etcd__step(). */
int etcd__remove_head(struct etcd *q, uint64_t mod, nsec_t until, struct err *e);

/**
 * etcd__apply() - steps 5 and 6 of a large commit, whoever else is at it
 * @mod:	the revision of "i"
 *
 * Return: 0: it is done; or as etcd_client_ask().
 */
int etcd__apply(
    struct etcd *q, const struct etcd_large_head *head, uint64_t mod, nsec_t until, struct err *e);

/**
 * etcd__large_help() - a large commit was found begun: wait for it, or bring it to its end
 *
 * Return: 0: look again; or as etcd_client_ask().
 */
int etcd__large_help(struct etcd *q, nsec_t until, struct err *e);

/** etcd__large_clean() - remove parts of unmade large commits that dead hubs have left. */
void etcd__large_clean(struct etcd *q, nsec_t until);

/* ---- following the feed ---------------------------------------------------------------------- */

/** What is done with each key; not 0: no further one. */
typedef int (*etcd_kv_fn)(void *ctx, const struct etcd_kv *kv);

/**
 * etcd__read_pages() - read a span, page by page, as of one revision
 * @revision:	that revision, etcd's
 *
 * Return: 0; what @fn ended it with; or as etcd_client_ask().
 */
int etcd__read_pages(struct etcd *q, struct etcd_span span, nsec_t until, uint64_t *revision,
    etcd_kv_fn fn, void *ctx, struct err *e);

/** etcd__load() - at the start: what there is. 0 or negative errno with words. */
int etcd__load(struct etcd *q, nsec_t now, nsec_t until, struct err *e);

/** etcd__tend() - regular work: keep the feed alive, and read everything again after a gap. */
void etcd__tend(struct etcd *q, nsec_t now);

/**
 * etcd__wait_for() - until etcd's revision @revision was told
 *
 * Return: 0; or ETCD_E_AWAY with words when the time is over.
 */
int etcd__wait_for(struct etcd *q, uint64_t revision, nsec_t until, struct err *e);

/* ---- jobs ------------------------------------------------------------------------------------ */

/** etcd__read() - do @job, a GET or a LIST. */
void etcd__read(struct etcd *q, struct store_job *job);

/** etcd__deleted() - do @job, a DELETED. */
void etcd__deleted(struct etcd *q, struct store_job *job);

/** etcd__large_commit() - do @job, a commit that does not fit into one transaction. */
void etcd__large_commit(struct etcd *q, struct store_job *job);

/** etcd__commit() - do @jobs, commits that fit into one transaction; they are handed back. */
void etcd__commit(struct etcd *q, struct list *jobs);
