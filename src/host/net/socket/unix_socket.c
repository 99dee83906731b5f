/* unix_socket.c - see unix_socket.h. */
#include "net/socket/unix_socket.h"

#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/file.h"

/* Ends the socket's name until it listens. */
#define FRESH_SUFFIX ".new"

#define PATH_CAP sizeof(((struct sockaddr_un *)0)->sun_path)

_Static_assert(UNIX_SOCKET_PATH_MAX + sizeof(FRESH_SUFFIX) == PATH_CAP, "room for the suffix");

static int take_path(struct sockaddr_un *ret, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    /* Linux takes a socket without a path for one that has no place in the file system. */
    if (path[0] == '\0')
        return -EINVAL;
    if (strlen(path) > UNIX_SOCKET_PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    *ret = address;
    return 0;
}

/* A socket file that nobody listens on is what a killed process leaves behind. */
static bool is_served(const struct sockaddr_un *address, int type)
{
    _cleanup_(closep) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    return fd >= 0 && (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
                          errno == EAGAIN);
}

/*
 * wg(8) takes a socket that is bound and does not listen yet for a dead one, and removes it. So it
 * listens under another name first, which also replaces one that is dead.
 */
static int listen_at(const struct sockaddr_un *address, int type, mode_t mode)
{
    _cleanup_(closep) int fd = -1;
    struct sockaddr_un fresh = *address;
    struct stat st;
    int r;

    /* Something that is no socket stays. */
    if (lstat(address->sun_path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return -EEXIST;
    if (is_served(address, type))
        return -EADDRINUSE;
    memcpy(fresh.sun_path + strlen(fresh.sun_path), FRESH_SUFFIX, sizeof(FRESH_SUFFIX));
    (void)unlink(fresh.sun_path);
    fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* Linux gives the socket's mode to the file, so there is no moment at which others may in. */
    if (fd < 0 || fchmod(fd, mode) < 0 ||
        bind(fd, (const struct sockaddr *)&fresh, sizeof(fresh)) < 0)
        return -errno;
    /* The umask may have taken the group's part away. */
    if (chmod(fresh.sun_path, mode) < 0 || listen(fd, 16) < 0 ||
        rename(fresh.sun_path, address->sun_path) < 0) {
        r = -errno;
        (void)unlink(fresh.sun_path);
        return r;
    }
    return TAKE_FD(fd);
}

int unix_socket_listen(const char *path, int type, mode_t mode)
{
    struct sockaddr_un address;
    char copy[PATH_CAP];
    int r = take_path(&address, path);

    if (r == 0) {
        memcpy(copy, path, strlen(path) + 1);
        r = statefile_make_dir(dirname(copy), 0755, NULL);
    }
    return r < 0 ? r : listen_at(&address, type, mode);
}

const char *unix_socket_choose(const char *path, char buf[static UNIX_SOCKET_CHOICE_CAP])
{
    (void)snprintf(buf, UNIX_SOCKET_CHOICE_CAP, "%s" UNIX_SOCKET_USERS_SUFFIX, path);
    return access(path, W_OK) < 0 && errno == EACCES && access(buf, W_OK) == 0 ? buf : path;
}

int unix_socket_connect(const char *path, int type)
{
    _cleanup_(closep) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;
    int r = take_path(&address, path);

    if (r < 0)
        return r;
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

pid_t unix_socket_peer(int fd)
{
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ? 0 : peer.pid;
}
