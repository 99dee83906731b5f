/* unix_socket.c - see unix_socket.h. */
#include "sys/unix_socket.h"

#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Of the socket's name until it listens; and what is left for the name itself. */
#define FRESH_SUFFIX ".new"
#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof(FRESH_SUFFIX))

static int take_path(struct sockaddr_un *ret, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) > SOCKET_PATH_MAX)
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

static int make_folder(const char *path)
{
    char copy[sizeof(((struct sockaddr_un *)0)->sun_path)];
    const char *folder;

    memcpy(copy, path, strlen(path) + 1);
    folder = dirname(copy);
    return mkdir(folder, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

/*
 * wg(8) takes a socket that is bound and does not listen yet for a dead one, and removes it. So it
 * listens under another name first, which also replaces one that is dead.
 */
static int listen_at(const struct sockaddr_un *address, int type)
{
    _cleanup_(closep) int fd = -1;
    struct sockaddr_un fresh = *address;
    mode_t mask;
    int r;

    if (is_served(address, type))
        return -EADDRINUSE;
    memcpy(fresh.sun_path + strlen(fresh.sun_path), FRESH_SUFFIX, sizeof(FRESH_SUFFIX));
    (void)unlink(fresh.sun_path);
    fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* Threads of ours create no files, so changing the process's mask for a moment is fine. */
    mask = umask(0177);
    r = bind(fd, (const struct sockaddr *)&fresh, sizeof(fresh)) < 0 ? -errno : 0;
    (void)umask(mask);
    if (r == 0 && (listen(fd, 16) < 0 || rename(fresh.sun_path, address->sun_path) < 0)) {
        r = -errno;
        (void)unlink(fresh.sun_path);
    }
    return r < 0 ? r : TAKE_FD(fd);
}

int unix_socket_listen(const char *path, int type)
{
    struct sockaddr_un address;
    int r = take_path(&address, path);

    if (r == 0)
        r = make_folder(path);
    return r < 0 ? r : listen_at(&address, type);
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
