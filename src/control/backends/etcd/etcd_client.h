/*
 * etcd_client.h - sends requests to etcd's gateway, and repeats them until they are answered.
 *
 * A request is repeated, at another server where there is one, until it is answered or its time is
 * over. So each request has to be safe to repeat: what it writes, it writes only where a key is at
 * an expected revision. When etcd no longer accepts the token, the client gets a new one.
 *
 * Threads: one at a time.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/etcd/etcd_codec.h"
#include "backends/etcd/etcd_updates.h"
#include "backends/remote/remote_http.h"
#include "base/clock.h"
#include "base/containers.h"
#include "base/err.h"
#include "base/secret.h"

/* Outcomes of a request. */
#define ETCD_E_AWAY     1 /* no server has answered in time; nothing was done */
#define ETCD_E_LOST     2 /* no server has answered in time; perhaps it was done */
#define ETCD_E_NO_LEASE 3 /* the lease that it names has ended */
#define ETCD_E_TOO_BIG  4 /* the answer is longer than the client accepts */

struct etcd_client {
    struct remote_http *http; /* owns */
    char prefix[ETCD_PREFIX_MAX + 1];
    char user[ETCD_USER_MAX + 1]; /* "": none */
    char password[ETCD_USER_MAX + 1];
    struct rng rng;
    struct remote_http_backoff backoff;
    unsigned n_unanswered; /* tries since the last one that was answered */
};

/** etcd_client_init() - nothing is asked yet. 0 or negative errno with words. */
int etcd_client_init(struct etcd_client *c, const struct etcd_url *url, struct err *e);

/**
 * etcd_client_ask() - ask, and wait for the answer
 * @path:	"/v3/..."
 * @body:	JSON
 * @until:	monotonic time; one try is made however late it is. That is a short one, and twice
 *		as long after each that got no answer, so that a slow etcd is not taken for one
 *		that is away
 * @ret:	gives the answer, an object; json_decref()
 *
 * Lines of the watch are given out meanwhile (remote_http.h).
 *
 * Return: 0; ETCD_E_..., or negative errno (-EACCES: etcd forbids it; -ENOSPC: its space is used
 * up), with words.
 */
int etcd_client_ask(struct etcd_client *c, const char *path, const char *body, nsec_t until,
    json_t **ret, struct err *e);

/* ---- the session of one hub in etcd: a key that each of its commits writes ------------------- */

/*
 * The key "s/NAME" holds the number of the session's last commit. Each commit expects the key at
 * the revision that the commit before it left, and writes its own number. So a commit whose answer
 * was lost can be sent again as often as needed: it is done once, and the number in the key says
 * whether it was done. A copy of a commit that arrives after a later commit was done fails.
 *
 * The key has a lease of etcd's, which the hub keeps. When a hub dies, etcd deletes the key ten
 * minutes later. After that, no request of the session can take effect. A hub that was cut off for
 * so long begins another session.
 *
 * Threads: one at a time.
 */

struct etcd_session {
    char name[ETCD_SESSION_MAX + 1]; /* "": there is none yet */
    uint64_t lease;                  /* etcd's */
    uint64_t mod;                    /* etcd's revision of the key; 0: it is not written yet */
    nsec_t keep_at;                  /* time at which the lease is to be renewed next */
};

#define ETCD_SESSION_NULL {0}

/** etcd_session_begin() - another session, with a lease. As etcd_client_ask(). */
int etcd_session_begin(struct etcd_session *s, struct etcd_client *c, nsec_t until, struct err *e);

/** etcd_session_keep() - keep the lease, if that is due; one that has ended ends the session. */
void etcd_session_keep(struct etcd_session *s, struct etcd_client *c, nsec_t now, nsec_t until);

/** etcd_session_end() - give the lease back, so that the key goes now. */
void etcd_session_end(struct etcd_session *s, struct etcd_client *c, nsec_t until);

/** etcd_session_key() - the name of its key. Returns @buf. */
const char *etcd_session_key(const char *session, char buf[static ETCD_SESSION_MAX + 3]);

/* ---- the changes below the prefix, revision by revision, in order, without a gap ------------- */

/*
 * Theory of operation. One watch of the names from "i" to "t": large commits, keys, sessions
 * (etcd_codec.h). Its lines become whole revisions in a queue. The watch uses the current server of
 * remote_http.h, as the requests do. When requests change to the next server, the watch is closed,
 * and begins there again behind the last whole revision that came. Changes that come twice are
 * dropped.
 *
 * A member that is cut off from the others or hangs sends nothing; but neither does a member on
 * which nothing changes. So the owner of the feed sends the server a request now and then while the
 * feed is silent (@heard_at), and a server that does not answer is given up.
 *
 * Threads: one at a time.
 */

/** The changes of one revision. */
struct etcd_revision {
    struct list link;       /* in the feed's queue */
    uint64_t number;        /* etcd's */
    struct etcd_kvs events; /* at least one */
};

struct etcd_feed {
    struct etcd_client *client;        /* pins */
    struct remote_http_stream *stream; /* owns; NULL: it is to be opened */
    const char *server;                /* pins: where the stream is */
    uint64_t last;                     /* etcd's revision of what was queued last */
    struct etcd_kvs parts;             /* of lines that go on in the next one */
    struct list revisions;             /* of struct etcd_revision: the queue */
    size_t bytes;                      /* of values in it */
    nsec_t heard_at;                   /* a line has come, or the stream was opened */
    nsec_t open_at;                    /* not opened again before */
    struct remote_http_backoff backoff;
    bool deletions_only; /* revisions that have none are left out */
    bool is_broken;      /* the stream is to be closed */
    uint64_t compacted;  /* etcd no longer holds what follows @last, but all behind this revision:
                            list again; 0: it does */
    struct err e;        /* the words of the last failure */
};

/** etcd_feed_init() - @client: pinned; @last: the first change wanted is the one behind it. */
void etcd_feed_init(struct etcd_feed *f, struct etcd_client *client, uint64_t last);

/** etcd_feed_deinit() - idempotent. */
void etcd_feed_deinit(struct etcd_feed *f);

/** etcd_feed_tend() - open the watch, or open it again, when that is due. Never waits. */
void etcd_feed_tend(struct etcd_feed *f, nsec_t now);

/** etcd_feed_next() - lends the first revision of the queue; NULL: it is empty. */
struct etcd_revision *etcd_feed_next(struct etcd_feed *f);

/** etcd_feed_drop() - remove the first one, and free it. */
void etcd_feed_drop(struct etcd_feed *f);
