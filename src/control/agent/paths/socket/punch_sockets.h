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
 * Runs of datagrams are passed on as they come (net/socket/udp_batch.h), with their TOS.
 * Only datagrams from the peer's address are passed to WireGuard, and the loopback
 * end takes only those from WireGuard's port. When the process ends so do the paths
 * that go through it; the other end notices, and begins a handshake through the
 * relay.
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

/** Most sockets that are open at the same time: those of one guess, those in use, and those that
 * were in use and still receive. */
#define PUNCH_SOCKETS_MAX 512

/** punch_sockets_fn - a datagram that is not WireGuard's came to @socket; @frame is borrowed for
 * the call. From the loop. */
typedef void (*punch_sockets_fn)(void *ctx, uint32_t socket, const struct engine_frame *frame);

/** punch_sockets_new() - none is open yet. @loop, @ctx: pinned. 0 or negative errno with words. */
int punch_sockets_new(struct punch_sockets **ret, struct uv_loop_s *loop, punch_sockets_fn fn,
    void *ctx, struct err *e);

/** punch_sockets_free() - its handles close in the loop's next turns. NULL is fine. Always NULL. */
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
