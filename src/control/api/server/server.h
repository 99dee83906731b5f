/*
 * server.h - answers HTTP on a daemon's loop: to anybody, to members, to administrators.
 *
 * libmicrohttpd does the HTTP and the TLS; the listening sockets, the limits
 * and the deadlines are ours. A connection carries one request: it is closed
 * after the answer, unless that is a stream.
 *
 * What a stranger can hold is bounded: connections in all and by address, ten
 * seconds from the connection's start to the end of the request, half a minute
 * to take the answer, 8 KiB of headers, 64 KiB of body, and a pace at which new
 * connections begin, round by source (waiting.h).
 *
 * Threads: everything, handlers included, runs on the one libuv loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/content/route.h"

struct err;
struct identity;
struct server;
struct server_listener;
struct uv_loop_s;

struct server_config {
    struct uv_loop_s *loop;          /* pins */
    const struct route *routes;      /* pins; ends with ROUTES_END */
    void *ctx;                       /* pins: for the handlers */
    const struct identity *identity; /* borrowed; NULL: no TLS */

    /*
     * Who has the admin token @bearer, what came after "Bearer "? NULL: there are none. Fills in
     * @ret; with CALLER_KNOWN the request comes as administrator. Constant time.
     */
    enum caller_verdict (*identify)(
        void *ctx, const char *bearer, const struct endpoint *from, nsec_t now, struct caller *ret);

    /* Before and after each request's handler. @row is NULL for a path that is none, @rs what will
     * be answered. NULL: nobody wants to know. */
    void (*begin)(void *ctx, const struct request *rq);
    void (*end)(
        void *ctx, const struct request *rq, const struct route *row, const struct response *rs);
};

/** What has happened since the start. */
struct server_counts {
    uint64_t accepted;    /* connections taken */
    uint64_t refused;     /* connections closed at once, over a limit */
    uint64_t cut;         /* connections ended by a deadline */
    uint64_t requests;    /* answered */
    unsigned connections; /* now */
};

/** server_new() - nothing is listened on yet. 0 or negative errno with words. */
int server_new(struct server **ret, const struct server_config *config, struct err *e);

/**
 * server_stop() - close all listeners and all connections
 *
 * Its handles close in the loop's next turns: run the loop until it is empty,
 * then server_free(). Idempotent.
 */
void server_stop(struct server *s);

/** server_free() - after server_stop() and the loop's end. NULL is fine. Always NULL. */
struct server *server_free(struct server *s);

/**
 * server_listen_tls() - the public API, and the admin API for who has the token
 * @at:		address none: all of them, v4 and v6; port 0: the kernel chooses
 * @ret_port:	the port; NULL if not wanted
 *
 * Return: 0 or negative errno with words.
 */
int server_listen_tls(
    struct server *s, const struct endpoint *at, uint16_t *ret_port, struct err *e);

/** server_listen_unix() - the admin API at @path: unix_socket_listen(), with words. */
int server_listen_unix(struct server *s, const char *path, struct err *e);

/**
 * server_listen_users() - a second unix socket, for the members of this process' group
 * @path:	of the admin API's socket; this one is called unix_socket_choose()
 * @role:	what they may
 *
 * Return: 0 or negative errno with words.
 */
int server_listen_users(struct server *s, const char *path, enum role role, struct err *e);

/**
 * server_listen_overlay() - the members' API of one network
 * @interface:	only what comes in there is heard; NULL: anything (tests)
 * @listener_ctx:	pinned: handed to the handlers
 * @ret:	to close it; also closed by server_stop()
 *
 * Return: 0 or negative errno with words.
 */
int server_listen_overlay(struct server *s, const struct endpoint *at, const char *interface,
    void *listener_ctx, struct server_listener **ret, struct err *e);

/** server_listener_close() - with the connections that came through it. NULL is fine. Always NULL.
 */
struct server_listener *server_listener_close(struct server_listener *l);

/** request_query() - the value of "?name=value"; borrowed; NULL: there is none. */
const char *request_query(const struct request *rq, const char *name);

/** server_counts() - for the metrics. */
struct server_counts server_counts(const struct server *s);
