/*
 * uapi.h - WireGuard's cross-platform configuration protocol, as text.
 *
 *     set=1                          get=1
 *     private_key=...                (empty line)
 *     public_key=...
 *     allowed_ip=10.0.0.2/32         is answered by the same keys, and
 *     (empty line)                   errno=0 (empty line)
 *
 * Some keys are our own: `cipher=CHOICE`, as noise/profile.h writes it, and those that
 * docs/DATAPLANE.md lists. An answer has them only for peers that are not plain WireGuard's, with
 * `session_cipher=NAME` while the session is not in ChaCha20-Poly1305; wg(8) passes over all of
 * them.
 *
 * Weft answers three requests more. `access_counts=1` gives what the network's rules have let in
 * and refused (port/device_access.h). `stats=1` gives its version and counters, one "name=value" a
 * line: drops by reason, offloads in use and why others are not. `hand_over=1` is for a process
 * that is to follow this one: this one lets go of the interface, which stays as it is, and ends;
 * sessions end with it. It is refused with EOPNOTSUPP where the interface is not a process's own.
 */
#pragma once

#include <stddef.h>

struct device;
struct err;
struct uapi_server;

/** Longest line that is taken, without its newline. */
#define UAPI_LINE_MAX 1024

/**
 * uapi_handle() - one whole request, from within the process
 * @in:		@len bytes: a command line, its lines, and optionally the empty line that ends it
 * @ret_out:	the answer, gives it: ends with "errno=N\n\n"; free() it
 * @ret_len:	its bytes; there is a zero byte after them
 *
 * What a request has changed before the line that is refused stays changed, as
 * in every implementation.
 *
 * Threads: any but the port's own (listeners, filters).
 *
 * Return: 0, or -ENOMEM; how the request itself fared is in the answer.
 */
int uapi_handle(struct device *d, const char *in, size_t len, char **ret_out, size_t *ret_len);

/*
 * The configuration socket of one device, /run/wireguard/NAME.sock.
 *
 * Served by the port's control thread. A client may send any number of
 * requests; it is never waited for, and one answer at a time is kept for it: the
 * next request is read when all of that was taken. Only the socket's owner may
 * connect (mode 0600).
 */

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

/** uapi_server_free() - hang up, remove the socket. */
struct uapi_server *uapi_server_free(struct uapi_server *s);
