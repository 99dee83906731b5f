/*
 * unix_socket.h - a unix socket with a place in the file system, for its owner alone.
 */
#pragma once

/**
 * unix_socket_listen() - make the place, bind, listen; mode 0600
 * @path:	its folder is made, mode 0755; a socket that nobody listens on is replaced
 * @type:	SOCK_STREAM or SOCK_SEQPACKET
 *
 * Return: a descriptor that does not block; -EADDRINUSE when another process
 * serves @path; -ENAMETOOLONG; or another negative errno.
 */
int unix_socket_listen(const char *path, int type);

/** unix_socket_connect() - a descriptor that blocks, or negative errno. @type: as above. */
int unix_socket_connect(const char *path, int type);
