/*
 * unix_socket.h - a unix socket with a place in the file system, for its owner alone.
 */
#pragma once

#include <sys/types.h>

/** Longest path, bytes: the kernel's limit, less the suffix that is used until it listens. */
#define UNIX_SOCKET_PATH_MAX 103

/** The path of the group's socket is that of the other one with this suffix. */
#define UNIX_SOCKET_USERS_SUFFIX ".users"

/** Longest path of a socket that has one for the group beside it, bytes. */
#define UNIX_SOCKET_PAIR_PATH_MAX (UNIX_SOCKET_PATH_MAX + 1 - (int)sizeof(UNIX_SOCKET_USERS_SUFFIX))

/** Room for either; the kernel's limit is lower. */
#define UNIX_SOCKET_CHOICE_CAP 4096

/**
 * unix_socket_listen() - make the place, bind, listen
 * @path:	its folder is made, mode 0755, with those above it; a socket that nobody listens on
 *		is replaced
 * @type:	SOCK_STREAM or SOCK_SEQPACKET
 * @mode:	of the socket's file, which belongs to this process' user and group
 *
 * Return: a descriptor that does not block; -EADDRINUSE when another process
 * serves @path; -EEXIST when it is something else than a socket; -EINVAL for an
 * empty path; -ENAMETOOLONG; or another negative errno.
 */
int unix_socket_listen(const char *path, int type, mode_t mode);

/**
 * unix_socket_choose() - the socket at @path, or the one for the group, behind it
 * @buf:	room for the second
 *
 * A daemon whose socket is its own user's and root's has another one beside it,
 * for the members of its group, which may less.
 *
 * Return: @path, or @buf when this process may use only that.
 */
const char *unix_socket_choose(const char *path, char buf[static UNIX_SOCKET_CHOICE_CAP]);

/** unix_socket_peer() - the process that listens there, as this one sees it; 0: not known. */
pid_t unix_socket_peer(int fd);

/** unix_socket_connect() - a descriptor that blocks, or negative errno. @type: as above. */
int unix_socket_connect(const char *path, int type);
