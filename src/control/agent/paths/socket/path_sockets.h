/*
 * path_sockets.h - the sockets that a node's path frames go through: WireGuard's own port, by way
 * of the engine (struct frame_client), and those beside it (struct punch_sockets).
 *
 * Sockets are named as in path/path.h: PATH_SOCKET_MAIN is WireGuard's port.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "engine/frames.h"
#include "os/log.h"
#include "path/path.h"

struct punch_sockets;

/* ---- WireGuard's own port -------------------------------------------------------------------- */

/*
 * Sends and receives frames through the engine's port (engine/frames.h), in the
 * agent's loop.
 *
 * It is opened as soon as there is an engine that listens, closed when the engine
 * goes, and opened anew with the next one: an engine may be restarted at any time.
 *
 * Threads: the loop's.
 */

/** frame_client_fn - a frame has arrived; @frame is borrowed for the call. */
typedef void (*frame_client_fn)(void *ctx, const struct engine_frame *frame);

struct frame_client {
    struct uv_loop_s *loop; /* pins */
    frame_client_fn fn;
    void *ctx;                      /* pins */
    struct engine_frames *frames;   /* owns; NULL: closed */
    struct frame_client_poll *poll; /* owns while open */
    const struct engine *engine;    /* that it was opened for; compared, never followed */
    uint16_t port;                  /* that the engine listened on when it was opened */
    nsec_t tried_at;                /* when opening failed last; 0: it did not */
    struct log_limit limit;
};

/**
 * frame_client_keep() - be open for @engine, and closed for any other
 * @engine:	NULL: there is none, so be closed
 * @port:	that the engine listens on, host order; 0: it does not listen yet
 *
 * Call it whenever one of them may have changed, and now and then: what could not
 * be opened is tried again a second later.
 *
 * Return: true when it was opened just now.
 */
bool frame_client_keep(struct frame_client *fc, struct engine *engine, uint16_t port, nsec_t now);

/** frame_client_send() - while it is closed @frame is dropped. Return: as send() of
 * engine_frames_ops. */
int frame_client_send(struct frame_client *fc, const struct engine_frame *frame);

/** frame_client_close() - its handle closes in the loop's next turns. Idempotent. */
void frame_client_close(struct frame_client *fc);

/* ---- sockets beside it ----------------------------------------------------------------------- */

/*
 * UDP sockets beside WireGuard's, so that the ports of a symmetric NAT may be
 * guessed (path/path.h, PATH_ACTION_OPEN), and the way of WireGuard's datagrams through one.
 *
 * Theory of operation. A NAT whose mappings depend on the destination gives each
 * of these sockets a mapping of its own towards a peer. One that has met the peer
 * is *used*: it gets a second end on loopback, whose address is the peer's
 * endpoint for WireGuard, and a thread passes datagrams between the two:
 *
 *   WireGuard's port ── loopback end ═ thread ═ punch socket ── NAT ── peer
 *                                        │
 *                                   path frames, to the loop
 *
 * Runs of datagrams are passed on as they come (net/socket/udp_batch.h), with their TOS.
 * Only datagrams from the peer's address are passed to WireGuard, and the loopback
 * end takes only those from WireGuard's port. When the process ends so do the paths
 * that go through it; the other end notices, and begins a handshake through the
 * relay.
 *
 * Threads: the functions are the loop's, which alone opens and closes. The
 * thread is started with the first socket.
 */

/** Most sockets that are open at the same time: those of one guess, those in use, and those that
 * were in use and still receive. */
#define PUNCH_SOCKETS_MAX 512

/** punch_sockets_fn - a datagram that is not WireGuard's came to @socket; @frame is borrowed for
 * the call. From the loop. */
typedef void (*punch_sockets_fn)(void *ctx, uint32_t socket, const struct engine_frame *frame);

/** punch_sockets_new() - none is open yet. @loop, @ctx: pinned. 0 or negative errno with words. */
int punch_sockets_new(struct punch_sockets **ret, struct uv_loop_s *loop, punch_sockets_fn fn,
    void *ctx, struct err *e);

/** punch_sockets_free() - its handles close in the loop's next turns. */
struct punch_sockets *punch_sockets_free(struct punch_sockets *ss);

/** punch_sockets_set_port() - where WireGuard listens, host order; 0: not known. */
void punch_sockets_set_port(struct punch_sockets *ss, uint16_t port);

/**
 * punch_sockets_open() - open one more, on a port that the kernel chooses
 * @socket:	the number by which it is known from now on; not 0
 *
 * Return: 0; -EMFILE when PUNCH_SOCKETS_MAX are open; or another negative errno. With words.
 */
int punch_sockets_open(struct punch_sockets *ss, uint32_t socket, struct err *e);

/** punch_sockets_close() - close it: at once, or a second later if it is used, so that packets on
 * their way still arrive. One that is not open is fine. */
void punch_sockets_close(struct punch_sockets *ss, uint32_t socket);

/** punch_sockets_send() - never waits; what cannot be sent is dropped. */
void punch_sockets_send(
    struct punch_sockets *ss, uint32_t socket, const struct engine_frame *frame);

/**
 * punch_sockets_use() - pass WireGuard's datagrams between here and @remote, IPv4
 * @ret_local:	the endpoint that WireGuard has to have for that peer: this socket's loopback end
 *
 * A socket that is used already may be given another @remote; its loopback end stays the same.
 *
 * Return: 0; -ENOENT when it is not open; -ENOTCONN while WireGuard's port is not known; or
 * another negative errno. With words.
 */
int punch_sockets_use(struct punch_sockets *ss, uint32_t socket, const struct endpoint *remote,
    struct endpoint *ret_local, struct err *e);

/* ---- all of them ----------------------------------------------------------------------------- */

/** The socket from which a NAT's newest port is asked for; struct paths never uses that number. */
#define PATH_SOCKETS_FRESH UINT32_MAX

/** path_sockets_fn - a frame has come to @socket; @frame lives for the call. From the loop. */
typedef punch_sockets_fn path_sockets_fn;

struct path_sockets {
    struct frame_client main;
    struct punch_sockets *punch; /* owns */
    struct log_limit limit;
    path_sockets_fn fn;
    void *ctx; /* pins */
};

/** path_sockets_init() - none is open yet. @ctx: pinned. 0 or negative errno with words. */
int path_sockets_init(
    struct path_sockets *s, struct uv_loop_s *loop, path_sockets_fn fn, void *ctx, struct err *e);

/** path_sockets_keep() - as frame_client_keep(). */
bool path_sockets_keep(struct path_sockets *s, struct engine *engine, uint16_t port, nsec_t now);

/** path_sockets_send() - send the frame of @action. One that cannot be sent is dropped. */
void path_sockets_send(struct path_sockets *s, const struct path_action *action);

/** path_sockets_open() - open a socket beside WireGuard's, to be known as @socket. False: it
 * failed. */
bool path_sockets_open(struct path_sockets *s, uint32_t socket, nsec_t now);

/**
 * path_sockets_use() - where WireGuard has to send so that its packets take the path of @action
 * @action:	a USE of a direct path
 *
 * Return: false, with a log line, when that cannot be had: the socket is closed, and the path is
 * left at both ends because nothing answers on it.
 */
bool path_sockets_use(
    struct path_sockets *s, const struct path_action *action, struct endpoint *ret, nsec_t now);
