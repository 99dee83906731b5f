/*
 * tcp_watch.h - which TCP connections of this network namespace move data, as the kernel counts it.
 *
 * Theory of operation. sock_diag(7) lists the connections that there are, with the bytes that each
 * has moved; and it tells of each one that is destroyed, with its last counts. So what has come and
 * gone between two looks is seen, too, as long as the socket for news takes all of it. Connections
 * that were there at the start are none of those that are looked for, and are passed over. What
 * moves nothing but its handshake and its end, as a port that is only tried, is not told.
 *
 * No privilege is needed. Other namespaces, such as that of a container, are not seen.
 *
 * Threads: one at a time. No function waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "net/netlink/netlink.h"

/** A watch. Not watched: all zero but news_fd, which is -1. */
struct tcp_watch {
    struct netlink nl; /* owns; for lists */
    int news_fd;       /* owns; readable when there is news; -1: it is not open */
    uint64_t *before;  /* owns; the kernel's numbers of the connections that were there, sorted */
    size_t n_before;
    size_t cap_before;
    bool has_missed; /* the kernel had more to tell than could be taken: something may be unseen */
};

#define TCP_WATCH_NULL                                                                             \
    {                                                                                              \
        .news_fd = -1                                                                              \
    }

/** A connection that has moved data. */
struct tcp_watch_pair {
    struct endpoint local;
    struct endpoint remote;
};

/** tcp_watch_fn - takes a connection that has moved data; one may be told again and again. */
typedef void (*tcp_watch_fn)(void *ctx, const struct tcp_watch_pair *pair);

/** tcp_watch_open() - begin. @ret: untouched on failure. 0; or negative errno: it is not told here.
 */
int tcp_watch_open(struct tcp_watch *ret);

/** tcp_watch_close() - idempotent. */
void tcp_watch_close(struct tcp_watch *w);

/** tcp_watch_hear() - the connections that were destroyed since the last call. */
void tcp_watch_hear(struct tcp_watch *w, tcp_watch_fn fn, void *ctx);

/** tcp_watch_list() - the connections that there are. */
void tcp_watch_list(struct tcp_watch *w, tcp_watch_fn fn, void *ctx);
