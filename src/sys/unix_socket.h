/*
 * unix_socket.h - a unix socket with a place in the file system, for its owner alone.
 */
#pragma once

/** Longest path, bytes: what the kernel has room for, less what the name has until it listens. */
#define UNIX_SOCKET_PATH_MAX 103

/**
 * unix_socket_listen() - make the place, bind, listen; mode 0600
 * @path:	its folder is made, mode 0755, with those above it; a socket that nobody listens on
 *		is replaced
 * @type:	SOCK_STREAM or SOCK_SEQPACKET
 *
 * Return: a descriptor that does not block; -EADDRINUSE when another process
 * serves @path; -EEXIST when it is something else than a socket; -EINVAL for an
 * empty path; -ENAMETOOLONG; or another negative errno.
 */
int unix_socket_listen(const char *path, int type);

/** unix_socket_connect() - a descriptor that blocks, or negative errno. @type: as above. */
int unix_socket_connect(const char *path, int type);
