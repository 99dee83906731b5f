/*
 * server.h - answers HTTP on a daemon's loop: to anybody, to members, to administrators.
 *
 * libmicrohttpd does the HTTP; the TLS (tls_front.h), the listening sockets, the
 * limits and the deadlines are ours. A connection carries one request: it is closed
 * after the answer, unless that is a stream.
 *
 * What a stranger can hold is bounded: connections in all and by address, ten
 * seconds from the connection's start to the end of the request, half a minute
 * to take the answer, 8 KiB of headers, 64 KiB of body, and a pace at which new
 * connections begin, in turns by source (admission.h).
 *
 * Threads: everything, handlers included, runs on the one libuv loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/content/route.h"

struct server;
struct server_listener;

struct server_config {
    struct uv_loop_s *loop;          /* pins */
    const struct route *routes;      /* pins; ends with ROUTES_END */
    void *ctx;                       /* pins: for the handlers */
    const struct identity *identity; /* borrowed; NULL: no TLS */

    /*
     * Who has the admin token @bearer, which came after "Bearer "? Fills in @ret; with CALLER_KNOWN
     * the request is an administrator's. It takes the same time for every token. NULL: there are no
     * admin tokens.
     */
    enum caller_verdict (*identify)(
        void *ctx, const char *bearer, const struct endpoint *from, nsec_t now, struct caller *ret);

    /*
     * Whose session does the header Cookie hold? Asked where there is no admin token, and only if
     * the daemon's own page asks; if it is true, the request is an administrator's. NULL: there are
     * no sessions.
     */
    bool (*identify_page)(void *ctx, const char *cookie, nsec_t now, struct caller *ret);

    /* May it be called now? Asked once a row admits the caller; when not, @rs has the answer. NULL:
     * always. */
    bool (*admits)(
        void *ctx, const struct route *row, const struct request *rq, struct response *rs);

    /* Called before and after each request's handler. @row: NULL when no row has that path and
     * method;
     * @rs: the answer. Either may be NULL. */
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

/** server_free() - after server_stop() and the loop's end. */
struct server *server_free(struct server *s);

/**
 * server_listen_tls() - the public API, and the admin API for callers with an admin token
 * @at:		address none: all of them, v4 and v6; port 0: the kernel chooses
 * @ret_port:	the port; NULL if not wanted
 *
 * Return: 0 or negative errno with words.
 */
int server_listen_tls(
    struct server *s, const struct endpoint *at, uint16_t *ret_port, struct err *e);

/**
 * server_listen_metrics() - the calls for API_ACCESS_METRICS, over plain HTTP or, with an identity,
 * in TLS, to anybody who reaches @at: 16 connections at once, 4 of them from one address
 * @at, @ret_port:	as above
 *
 * Return: 0 or negative errno with words; -EADDRNOTAVAIL: this machine does not have the address.
 */
int server_listen_metrics(
    struct server *s, const struct endpoint *at, uint16_t *ret_port, struct err *e);

/**
 * server_listen_unix() - the admin API at a unix socket
 * @role:	the role of those who ask through it. ROLE_ADMIN: the socket is for root alone;
 *		another one: it is a second socket, for the members of this process' group
 * @path:	of the socket for root. unix_socket_choose() says what the second one is called
 *
 * Return: 0 or negative errno with words.
 */
int server_listen_unix(struct server *s, const char *path, enum role role, struct err *e);

/**
 * server_listen_overlay() - the members' API of one network
 * @interface:	only connections through it are accepted; NULL: all, for tests
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

/** server_counts() - what has happened since the start, for the metrics. */
struct server_counts server_counts(const struct server *s);

/* ---- answers that come later ---------------------------------------------------------------- */

/**
 * An answer that is not there yet when the handler returns.
 *
 * A handler hands it to the server in its response. Later its owner calls deferred_answer(), once.
 * The server calls on_closed once, when the answer has been handed over or the connection has ended
 * without it; the struct may be freed then. When there is no answer within half a minute, the
 * server ends the connection.
 */
struct deferred {
    void (*on_closed)(struct deferred *d); /* the owner's; not called from deferred_answer() */
    struct response rs;                    /* the answer, once it is there */
    bool is_ready;                         /* the answer is there */
    void (*wake)(struct deferred *d);      /* the server's: the answer is there; NULL at first */
    void *server_ctx;                      /* the server's; pinned */
};

/** deferred_answer() - answer with @rs; what it owns is taken. */
void deferred_answer(struct deferred *d, struct response *rs);

/* ---- upgrades ------------------------------------------------------------------------------- */

/**
 * A connection that stops being HTTP and becomes bytes both ways (RFC 9110 section 7.8).
 *
 * A handler hands it to the server in its response, for a request that asks for that protocol.
 * Then, in this order: the server calls on_open once, as soon as the answer is out; then either the
 * owner calls upgrade_end(), or the server calls on_closed, and neither uses the struct any more.
 * When the connection ends before it is open, only on_closed is called.
 *
 * From on_open on the connection does not count among those of its listener: its owner bounds how
 * many there are, how long they may be idle and what they may queue.
 */
struct upgrade {
    const char *protocol; /* what the request has to ask for; a constant */

    /*
     * The connection is open. @fd: lent until upgrade_end() or on_closed; it does not block, and
     * reading 0 bytes means that the other end has closed. @early: @len bytes that have been read
     * already; borrowed. May not call upgrade_end().
     */
    void (*on_open)(struct upgrade *u, int fd, const void *early, size_t len);

    /* The server ends it, or it never opened. The descriptor is closed after the call; @u may be
     * freed. */
    void (*on_closed)(struct upgrade *u);

    void *server_ctx; /* the server's, pinned */
};

/** upgrade_end() - close the connection. Stop polling its descriptor before. */
void upgrade_end(struct upgrade *u);
