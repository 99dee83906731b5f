/*
 * frame_socket.h - path frames in and out of one device's UDP port, /run/wireguard/NAME.path.
 *
 * Whoever finds paths (the agent) has to send and to hear its own frames from
 * the very port that WireGuard uses, because a NAT keeps one mapping for it. The
 * data plane carries them and never interprets one: what arrives and is either
 * of a type that WireGuard leaves alone (first byte 0x80 and up)
 * or the answer of a STUN server goes to the client, and what the client
 * writes goes out.
 *
 * A unix socket, SOCK_SEQPACKET, mode 0600. One client at a time; a further one
 * is hung up on. Each message either way is a struct frame_socket_header
 * (frame_client.h) and the frame. Frames that come faster than FRAME_SOCKET_RATE, or while the
 * client does not read, are dropped and counted.
 *
 * While there is a client, peers that were told `pinned_endpoint=true` do not
 * follow the source of what arrives: only the client moves them.
 *
 * Served by the port's control thread; the rx workers write to the client
 * themselves (frame_client.h).
 */
#pragma once

struct device;
struct err;
struct frame_socket;
struct port;

/**
 * frame_socket_new() - listen and serve
 * @path:	replaced when a stale socket is there; refused when somebody answers
 *
 * Return: 0, -EADDRINUSE when another process serves @path, or negative errno; with words.
 */
int frame_socket_new(struct frame_socket **ret, struct device *d, const char *path, struct err *e);

/**
 * frame_socket_join() - for a client in this process, which shares the port among several devices
 * @ret_fd:	gives the client's end, which it closes itself; a SOCK_SEQPACKET that does not wait
 *
 * Return: 0 or negative errno; with words.
 */
int frame_socket_join(struct frame_socket **ret, struct port *p, int *ret_fd, struct err *e);

/** frame_socket_free() - hang up, remove the socket. */
struct frame_socket *frame_socket_free(struct frame_socket *fs);
