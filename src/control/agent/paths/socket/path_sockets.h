/*
 * path_sockets.h - the sockets that a node's path frames go through: WireGuard's own port, by way
 * of the engine (frame_client.h), and those beside it (punch_sockets.h).
 *
 * Sockets are named as in path/path.h: PATH_SOCKET_MAIN is WireGuard's port.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/paths/socket/frame_client.h"
#include "agent/paths/socket/punch_sockets.h"
#include "os/log.h"
#include "path/path.h"

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

/** path_sockets_deinit() - their handles close in the loop's next turns. Fine after a failed init.
 */
void path_sockets_deinit(struct path_sockets *s);

/** path_sockets_keep() - as frame_client_keep(). */
bool path_sockets_keep(struct path_sockets *s, struct engine *engine, uint16_t port, nsec_t now);

/** path_sockets_is_open() - can frames be sent through WireGuard's port? */
bool path_sockets_is_open(const struct path_sockets *s);

/** path_sockets_port() - WireGuard's port, as of the last path_sockets_keep(); 0: not known. */
uint16_t path_sockets_port(const struct path_sockets *s);

/** path_sockets_send() - send the frame of @action. One that cannot be sent is dropped. */
void path_sockets_send(struct path_sockets *s, const struct path_action *action);

/** path_sockets_open() - open a socket beside WireGuard's, to be known as @socket. False: it
 * failed. */
bool path_sockets_open(struct path_sockets *s, uint32_t socket, nsec_t now);

/** path_sockets_close() - close that socket; one that is not open is fine. */
void path_sockets_close(struct path_sockets *s, uint32_t socket);

/**
 * path_sockets_use() - where WireGuard has to send so that its packets take the path of @action
 * @action:	a USE of a direct path
 *
 * Return: false, with a log line, when that cannot be had: the socket is closed, and the path is
 * left at both ends because nothing answers on it.
 */
bool path_sockets_use(
    struct path_sockets *s, const struct path_action *action, struct endpoint *ret, nsec_t now);
