/*
 * server_internal.h - the parts of the server, from the bottom up; none calls one that follows.
 * mhd_loop.h is below all of them.
 *
 * stream.c      lines that go on, queued and packed
 * connection.c  a connection until it ends, and what it is answered
 * listener.c    listening sockets
 * server.c      requests, and the server as a whole
 */
#pragma once

#include <uv.h>

#include "api/server/admission.h"
#include "api/server/mhd_loop.h"
#include "api/server/server.h"
#include "base/containers.h"
#include "base/rate.h"

/** From a connection's start to the end of its request, TLS included. */
#define SERVER__REQUEST_TIME (10 * NSEC_PER_SEC)

/** To take the answer. */
#define SERVER__ANSWER_TIME (30 * NSEC_PER_SEC)

/** Memory of one connection inside libmicrohttpd, bytes: its header lines, and a piece of the
 * answer. */
#define SERVER__CONNECTION_MEMORY 8192

/*
 * Each time that a connection goes on that has waited for its answer, libmicrohttpd walks all those
 * of the same daemon that still wait. Thousands of members' watches do. So members have daemons of
 * their own, or each machine that joins would wait for as many walks; and there are many of them,
 * or each request of a member would walk as far.
 */
#define SERVER__MEMBERS_LOOPS 32

struct server {
    struct server_config config; /* see there */
    struct mhd_loop http;        /* libmicrohttpd in the loop: all but the members' API */
    struct mhd_loop members[SERVER__MEMBERS_LOOPS]; /* the members' API, each in turn; see above */
    unsigned next_members;                          /* whose turn it is */
    struct tls_front *front;     /* owns: the public API's TLS; NULL: there is none */
    uv_timer_t tick;             /* looks for deadlines, while there are connections */
    struct list listeners;       /* of struct server_listener */
    struct list connections;     /* of struct server__connection */
    struct list timed;           /* of the same: those that are to be cut at some time */
    struct list busy;            /* of the same: streams with something that is to be taken */
    struct list ready;           /* of the same: streams that were pushed to in this turn */
    uv_prepare_t turn_end;       /* sends those */
    struct server_counts counts; /* see there */
    uint64_t seed;               /* for the hash tables */
    bool stopped;                /* server_stop() was called */
};

/** A listening socket. Freed when its handles have closed. */
struct server_listener {
    struct list link;           /* in the server's */
    struct server *s;           /* pins */
    int fd;                     /* owns */
    uv_poll_t poll;             /* of it */
    uv_timer_t pause;           /* ends a pause in accepting connections */
    uv_timer_t turn;            /* when the next one of those that wait may begin */
    unsigned n_handles;         /* not closed yet */
    enum api_access access;     /* see there */
    void *listener_ctx;         /* pins: for the handlers */
    struct ip_addr own;         /* API_ACCESS_OVERLAY: the address that it is bound to */
    char *path;                 /* owns; of a unix socket, to unlink it */
    enum role role;             /* API_ACCESS_ADMIN: of who comes through a unix socket */
    struct admission admission; /* its limits */
    struct waiting waiting;     /* accepted, and not begun */
    struct rate pace;           /* of those that begin */
};

/** One connection, one request. */
struct server__connection {
    struct list link;                      /* in the server's */
    struct list timed;                     /* in the server's timed, while @cut_at is a time */
    struct list busy;                      /* in the server's busy, since its stream had a line */
    struct list ready;                     /* in the server's ready */
    struct server *s;                      /* pins */
    struct mhd_loop *loop;                 /* pins: the one of the server's that it is in */
    struct server_listener *listener;      /* pins; NULL once that is closed */
    struct mhd_loop_conn http;             /* libmicrohttpd's part of it */
    int fd;                                /* libmicrohttpd's, which closes it */
    enum api_access access;                /* of the listener */
    void *listener_ctx;                    /* of the listener */
    struct endpoint from;                  /* the other end */
    uint32_t uid;                          /* of the other end of a unix socket */
    int32_t pid;                           /* likewise; 0: it is in another pid namespace */
    nsec_t began_at;                       /* when it was accepted */
    bool has_asked;                        /* its request has come whole */
    enum role role;                        /* API_ACCESS_ADMIN: of the listener */
    nsec_t cut_at;                         /* when it is cut; NSEC_NEVER for a stream */
    char *body;                            /* owns; what has come of the request's body */
    size_t body_len;                       /* bytes */
    bool too_long;                         /* the body goes on beyond what is kept */
    size_t discarded;                      /* bytes of it that were thrown away */
    struct stream *stream;                 /* pins; the answer, if it is one */
    bool is_chunked;                       /* a stream is sent in chunks: the client has HTTP/1.1 */
    bool is_inside;                        /* it counts in its listener's admission */
    struct deferred *deferred;             /* pins; the answer that is waited for, if any */
    struct upgrade *upgrade;               /* pins; not NULL once the answer is an upgrade */
    struct MHD_UpgradeResponseHandle *urh; /* libmicrohttpd's, of an upgrade that is open */
    bool cut;                              /* it has been cut: nothing more is sent */
};

/**
 * server__take() - begin a connection, accepted by @l at @now
 * @fd:	taken
 *
 * Return: false when it is over a limit, and closed.
 */
bool server__take(struct server_listener *l, int fd, const struct endpoint *from, nsec_t now);

/** server__connection_free() - one that libmicrohttpd has ended, or never begun. */
void server__connection_free(struct server__connection *c);

/** server__wants_upgrade() - does the request ask for that protocol? */
bool server__wants_upgrade(const struct server__connection *c, const char *protocol);

/** server__end_upgrade() - the server ends an upgrade, and tells its owner; nothing if it is none.
 */
void server__end_upgrade(struct server__connection *c);

/** server__answer() - answer with @rs, which is released. */
enum MHD_Result server__answer(struct server__connection *c, struct response *rs);

/** server__give_back() - tell the owners of @rs's stream or upgrade that it will not be used. */
void server__give_back(struct response *rs);

/** server__defer() - the answer will come from @d. */
enum MHD_Result server__defer(struct server__connection *c, struct deferred *d);

/** server__answer_deferred() - answer a resumed connection; without an answer it ends. */
enum MHD_Result server__answer_deferred(struct server__connection *c);

/** server__cut() - end a connection now; it is freed when libmicrohttpd has noticed. */
void server__cut(struct server__connection *c);

/** server__send_streams() - send what streams were pushed in this turn of the loop. */
void server__send_streams(struct server *s);
