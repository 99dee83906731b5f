/*
 * etcd_feed.h - the changes below the prefix, revision by revision, in order, without a gap.
 *
 * Theory of operation. One watch of the names from "i" to "t": large commits, keys, sessions
 * (etcd_codec.h). Its lines become whole revisions in a queue. The watch uses the current server of
 * remote_http.h, as the requests do. When requests change to the next server, the watch is closed,
 * and begins there again behind the last whole revision that came. Changes that come twice are
 * dropped.
 *
 * A member that is cut off from the others or hangs sends nothing; but neither does a member on
 * which nothing changes. So the owner of the feed sends the server a request now and then while the
 * feed is silent (etcd_feed_is_silent()), and a server that does not answer is given up.
 *
 * Threads: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/etcd/etcd_client.h"
#include "backends/etcd/etcd_codec.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"

/** Bytes of changes in the queue, above which the watch ends until it is empty. */
#define ETCD_FEED_BYTES_MAX (32u << 20)

/** The changes of one revision. */
struct etcd_revision {
    struct list link;       /* in the feed's queue */
    uint64_t number;        /* etcd's */
    struct etcd_kvs events; /* at least one */
};

/** etcd_revision_free() - NULL is fine. Always NULL. */
struct etcd_revision *etcd_revision_free(struct etcd_revision *rev);

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
    bool is_broken;     /* the stream is to be closed */
    uint64_t compacted; /* etcd no longer holds what follows @last: list again; 0: it does */
    struct err e;       /* the words of the last failure */
};

/** etcd_feed_init() - @client: pinned; @last: the first change wanted is the one behind it. */
void etcd_feed_init(struct etcd_feed *f, struct etcd_client *client, uint64_t last);

/** etcd_feed_deinit() - idempotent. */
void etcd_feed_deinit(struct etcd_feed *f);

/** etcd_feed_restart() - begin behind @last, whatever came; what is queued is dropped. */
void etcd_feed_restart(struct etcd_feed *f, uint64_t last);

/** etcd_feed_tend() - open the watch, or open it again, when that is due. Never waits. */
void etcd_feed_tend(struct etcd_feed *f, nsec_t now);

/** etcd_feed_next() - lends the first revision of the queue; NULL: it is empty. */
struct etcd_revision *etcd_feed_next(struct etcd_feed *f);

/** etcd_feed_drop() - remove the first one, and free it. */
void etcd_feed_drop(struct etcd_feed *f);

/** etcd_feed_is_silent() - has nothing come for @for_ns? */
bool etcd_feed_is_silent(const struct etcd_feed *f, nsec_t now, nsec_t for_ns);
