/*
 * server_internal.h - what server.c (HTTP) and listener.c (sockets) share.
 */
#pragma once

#include <microhttpd.h>
#include <uv.h>

#include "api/admission.h"
#include "api/server.h"
#include "base/list.h"

/** One libmicrohttpd daemon without a listening socket of its own: one speaks TLS, one does not. */
struct server__engine {
    struct MHD_Daemon *daemon; /* owns; NULL: none */
    struct server *s;          /* pins */
    uv_poll_t poll;            /* of the daemon's epoll descriptor */
    uv_timer_t again;          /* the daemon has more to do at once */
};

struct server {
    struct server_config config;         /* see there */
    struct server__engine plain;         /* unix sockets and overlay */
    struct server__engine tls;           /* the public door */
    uv_timer_t tick;                     /* looks for deadlines, each second */
    struct list listeners;               /* of struct server_listener */
    struct list connections;             /* of struct server__connection */
    struct server_counts counts;         /* see there */
    struct server__connection *starting; /* being handed to libmicrohttpd right now */
    uint64_t seed;                       /* for the hash tables */
    bool stopped;                        /* server_stop() was called */
};

/** A door's listening socket. Freed when its handles have closed. */
struct server_listener {
    struct list link;              /* in the server's */
    struct server *s;              /* pins */
    struct server__engine *engine; /* where its connections go */
    int fd;                        /* owns */
    uv_poll_t poll;                /* of it */
    uv_timer_t pause;              /* ends a pause in taking connections */
    unsigned n_handles;            /* not closed yet */
    enum door door;                /* see there */
    void *door_ctx;                /* pins: for the handlers */
    char *path;                    /* owns; of a unix socket, to unlink it */
    struct admission admission;    /* its limits */
    nsec_t window;                 /* when the current window of the pace began */
    unsigned taken;                /* connections taken in it */
};

/** One connection, one request. */
struct server__connection {
    struct list link;                 /* in the server's */
    struct server *s;                 /* pins */
    struct server_listener *listener; /* pins; NULL once that is closed */
    struct server__engine *engine;    /* pins; which serves it */
    struct MHD_Connection *mhd;       /* libmicrohttpd's; NULL before it started */
    int fd;                           /* libmicrohttpd's, which closes it */
    enum door door;                   /* of the listener */
    void *door_ctx;                   /* of the listener */
    struct endpoint from;             /* the other end */
    nsec_t deadline;                  /* when it is cut; NSEC_NEVER for a stream */
    char *body;                       /* owns; what has come of the request's body */
    size_t body_len;                  /* bytes */
    bool too_long;                    /* the body goes on beyond what is kept */
    size_t discarded;                 /* bytes of it that were thrown away */
    struct stream *stream;            /* pins; the answer, if it is one */
    bool cut;                         /* it shall end, whatever is left to send */
    bool suspended;                   /* the stream is empty, libmicrohttpd waits for us */
};

/**
 * server__take() - a new connection, accepted by @l
 * @fd:	taken
 */
void server__take(struct server_listener *l, int fd, const struct endpoint *from, nsec_t now);

/** server__cut() - end a connection now; its memory goes when libmicrohttpd has noticed. */
void server__cut(struct server__connection *c);
