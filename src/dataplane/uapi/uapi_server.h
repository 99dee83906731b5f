/*
 * uapi_server.h - the configuration socket of one device, /run/wireguard/NAME.sock.
 *
 * Served by the port's control thread. A client may send any number of
 * requests; it is never waited for, and one answer at a time is kept for it: the
 * next request is read when all of that was taken. Only the socket's owner may
 * connect (mode 0600).
 */
#pragma once

struct device;
struct err;
struct uapi_server;

/** Where wg(8) looks for sockets. */
#define UAPI_SOCKET_DIR "/run/wireguard"

/**
 * uapi_server_new() - listen and serve
 * @path:	replaced when a stale socket is there; refused when somebody answers
 * @fd:		taken: a listening socket for @path that somebody else opened; -1: open one
 *
 * Return: 0, -EADDRINUSE when another process serves @path, or negative errno; with words.
 */
int uapi_server_new(
    struct uapi_server **ret, struct device *d, const char *path, int fd, struct err *e);

/** uapi_server_free() - hang up, remove the socket; NULL is fine. Returns NULL. */
struct uapi_server *uapi_server_free(struct uapi_server *s);
