/*
 * punch_sockets.h - UDP sockets beside WireGuard's, so that the ports of a symmetric NAT may be
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
 * Runs are handed on as they come (net/udp_batch.h), with their TOS. Only the
 * peer's place is passed on to WireGuard, and only WireGuard's port is heard on
 * loopback. When the process ends so do the paths that go through it; the other
 * end notices, and begins a handshake through the relay.
 *
 * Threads: the functions are the loop's, which alone opens and closes. The
 * thread is started with the first socket.
 */
#pragma once

#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

struct engine_frame;
struct err;
struct punch_sockets;
struct uv_loop_s;

/** At the same time: those of one guess, those in use, and those that linger. */
#define PUNCH_SOCKETS_MAX 512

/** punch_sockets_fn - what came to a socket and is not WireGuard's; from the loop. */
typedef void (*punch_sockets_fn)(void *ctx, uint32_t socket, const struct engine_frame *frame);

/** punch_sockets_new() - @ctx: pinned. None is open yet. 0 or negative errno with words. */
int punch_sockets_new(struct punch_sockets **ret, struct uv_loop_s *loop, punch_sockets_fn fn,
    void *ctx, struct err *e);

/** punch_sockets_free() - its handles close in the loop's next turns. NULL is fine. Always NULL. */
struct punch_sockets *punch_sockets_free(struct punch_sockets *ss);

/** punch_sockets_set_port() - where WireGuard listens, host order; 0: not known. */
void punch_sockets_set_port(struct punch_sockets *ss, uint16_t port);

/** punch_sockets_open() - one more, to be known as @socket, not 0. 0 or negative errno with words.
 */
int punch_sockets_open(struct punch_sockets *ss, uint32_t socket, struct err *e);

/** punch_sockets_close() - now, or a used one when what is on its way has arrived. */
void punch_sockets_close(struct punch_sockets *ss, uint32_t socket);

/** punch_sockets_send() - never waits; what does not go is lost. */
void punch_sockets_send(
    struct punch_sockets *ss, uint32_t socket, const struct engine_frame *frame);

/**
 * punch_sockets_use() - pass WireGuard's datagrams between here and @remote, IPv4
 * @ret_local:	what WireGuard has to have for that peer's endpoint
 *
 * For a socket in use it may be another @remote than before: the endpoint stays.
 *
 * Return: 0; -ENOENT when it is not open; -ENOTCONN while WireGuard's port is not known; or
 * another negative errno. With words.
 */
int punch_sockets_use(struct punch_sockets *ss, uint32_t socket, const struct endpoint *remote,
    struct endpoint *ret_local, struct err *e);
