/* sysctl.c - see sysctl.h. */
#include "os/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "os/file.h"

#define PATH_CAP  128
#define VALUE_CAP 256

/* False: the name is too long, or names no file of its own. */
static bool path_of(const char *name, char path[static PATH_CAP])
{
    int len = snprintf(path, PATH_CAP, "/proc/sys/");

    for (const char *p = name; *p; p++) {
        if (len + 1 >= PATH_CAP || *p == '/')
            return false;
        path[len++] = *p == '.' ? '/' : *p;
    }
    path[len] = '\0';
    return true;
}

int sysctl_read(const char *name, char *ret, size_t cap)
{
    _cleanup_(closep) int fd = -1;
    char path[PATH_CAP];
    char text[VALUE_CAP];
    size_t len = 0;
    ssize_t n;

    if (!path_of(name, path))
        return -ENAMETOOLONG;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    n = file_read_all(fd, text, sizeof(text));
    if (n < 0)
        return (int)n;
    if ((size_t)n >= cap || (size_t)n == sizeof(text))
        return -EFBIG;
    for (ssize_t i = 0; i < n; i++) {
        bool is_blank = strchr(" \t\n", text[i]) != NULL;

        if (!is_blank)
            ret[len++] = text[i];
        else if (len > 0 && ret[len - 1] != ' ')
            ret[len++] = ' ';
    }
    while (len > 0 && ret[len - 1] == ' ')
        len--;
    ret[len] = '\0';
    return 0;
}

int sysctl_check(const char *name)
{
    char path[PATH_CAP];

    if (!path_of(name, path))
        return -ENAMETOOLONG;
    return access(path, W_OK) < 0 ? -errno : 0;
}

int sysctl_write(const char *name, const char *value, struct err *e)
{
    _cleanup_(closep) int fd = -1;
    char path[PATH_CAP];
    int r;

    if (!path_of(name, path))
        return err_set(e, -ENAMETOOLONG, "%s is no setting of the kernel", name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    r = fd < 0 ? -errno : file_write_all(fd, value, strlen(value));
    return r < 0 ? err_set(e, r, "%s cannot be set to %s: %s", name, value, strerror(-r)) : 0;
}
