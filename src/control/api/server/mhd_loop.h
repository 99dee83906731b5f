/*
 * mhd_loop.h - libmicrohttpd on a libuv loop: HTTP for connections that are accepted elsewhere.
 *
 * Theory of operation. The daemon of libmicrohttpd has no listening socket and no thread. It has an
 * epoll descriptor, which the libuv loop watches. When that is readable, or when a time of the
 * daemon's own is over, the daemon runs: for a bounded number of rounds and, if its owner says so,
 * for a bounded time. What is left then is done in the loop's next turn, after everybody else on
 * the loop.
 *
 * A connection whose answer is not there yet is suspended, and resumed when it is. libmicrohttpd
 * does not look at a suspended connection at all, so its end is not noticed either. It sees a
 * resumed one in its next run, which is asked for here, since a resume may come from within a run.
 * A connection for which this run has no time is deferred: suspended, until a later run resumes the
 * deferred ones, the oldest first, one in each round.
 *
 * The owner embeds a struct mhd_loop_conn in its own struct of a connection. Its callbacks of
 * libmicrohttpd get it from mhd_loop_conn_of().
 *
 * Threads: the loop's only.
 */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/clock.h"
#include "base/containers.h"

struct err;

/** A connection, as libmicrohttpd has it. Starts as zeroes. */
struct mhd_loop_conn {
    struct list deferred;       /* in mhd_loop.deferred; initialised by mhd_loop_add() */
    struct MHD_Connection *mhd; /* libmicrohttpd's; NULL before it started, and after its end */
    bool is_suspended;          /* libmicrohttpd waits for mhd_loop_resume() */
};

/** What an owner wants of libmicrohttpd. */
struct mhd_loop_config {
    size_t connection_memory; /* bytes inside libmicrohttpd for one connection: its header lines,
                                 and a piece of the answer */
    unsigned idle_seconds;    /* a connection on which nothing moves for so long ends; 0: never */
    nsec_t run_time;          /* of one run of the daemon; 0: only its rounds are bounded */
    bool has_upgrades;        /* connections may become bytes both ways */
    bool is_strict;           /* requests that RFC 9112 does not allow are refused */

    void *ctx;                                /* pins: for the three below */
    MHD_AccessHandlerCallback on_request;     /* see libmicrohttpd's manual */
    MHD_RequestCompletedCallback on_answered; /* likewise; NULL: nobody wants to know */
    void *(*on_uri)(void *ctx, const char *uri, struct MHD_Connection *mhd); /* likewise */

    /* libmicrohttpd has ended the connection, and closes its descriptor next. */
    void (*on_ended)(struct mhd_loop_conn *c);
};

struct mhd_loop {
    struct MHD_Daemon *daemon;      /* owns; NULL: stopped */
    uv_poll_t poll;                 /* of its epoll descriptor */
    uv_timer_t again;               /* when it has to run next */
    nsec_t run_time;                /* see struct mhd_loop_config */
    nsec_t run_ends_at;             /* when this run's time is over; valid with @run_time */
    struct list deferred;           /* of struct mhd_loop_conn; the oldest first */
    struct mhd_loop_conn *starting; /* being handed to libmicrohttpd, and not begun yet */
    void (*on_ended)(struct mhd_loop_conn *c); /* see struct mhd_loop_config */
};

/**
 * mhd_loop_start() - a daemon on @loop
 * @loop:	pinned
 * @config:	copied as far as it is kept
 *
 * Return: 0; or -EIO with words, and there is nothing to stop.
 */
int mhd_loop_start(struct mhd_loop *m, struct uv_loop_s *loop, const struct mhd_loop_config *config,
    struct err *e);

/**
 * mhd_loop_stop() - end all connections, of which none may be suspended without being resumed
 *
 * Its handles close in the loop's next turns. Idempotent.
 */
void mhd_loop_stop(struct mhd_loop *m);

/**
 * mhd_loop_add() - hand a connection to libmicrohttpd
 * @fd:	does not block; libmicrohttpd's from here on, also on failure
 *
 * Follow it with mhd_loop_run() or mhd_loop_run_soon().
 *
 * Return: false when it was not begun: then on_ended is not called for it.
 */
bool mhd_loop_add(struct mhd_loop *m, int fd, struct mhd_loop_conn *c);

/** mhd_loop_conn_of() - lends what was handed to mhd_loop_add(). */
struct mhd_loop_conn *mhd_loop_conn_of(struct MHD_Connection *mhd);

/** mhd_loop_run() - have libmicrohttpd look after its connections now. Not from its callbacks. */
void mhd_loop_run(struct mhd_loop *m);

/** mhd_loop_run_soon() - the same in the loop's next turn. Allowed everywhere. */
void mhd_loop_run_soon(struct mhd_loop *m);

/** mhd_loop_has_time() - at @now, is there time left in this run of the daemon? */
bool mhd_loop_has_time(const struct mhd_loop *m, nsec_t now);

/** mhd_loop_suspend() - libmicrohttpd leaves the connection alone until mhd_loop_resume(). */
void mhd_loop_suspend(struct mhd_loop_conn *c);

/** mhd_loop_defer() - the same, until a later run has time for it. */
void mhd_loop_defer(struct mhd_loop *m, struct mhd_loop_conn *c);

/** mhd_loop_resume() - libmicrohttpd goes on with the connection. Nothing if not suspended. */
void mhd_loop_resume(struct mhd_loop *m, struct mhd_loop_conn *c);
