/* file.c - see file.h. */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/secret.h"

void closedirp(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

int file_write_all(int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

ssize_t file_read_all(int fd, void *buf, size_t cap)
{
    size_t len = 0;

    while (len < cap) {
        ssize_t n = read(fd, (char *)buf + len, cap - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

static int fail(struct err *e, int error, const char *path, const char *what)
{
    return err_set(e, -error, "\"%s\" cannot be %s: %s", path, what, strerror(error));
}

int statefile_sync_dir_of(const char *path, struct err *e)
{
    _cleanup_(freep) char *dir = strdup(path);
    _cleanup_(closep) int fd = -1;
    char *slash;

    if (!dir)
        return err_set(e, -ENOMEM, "no memory for a path");
    slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir] = '\0';
    fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return fail(e, errno, slash ? dir : ".", "synced");
    return 0;
}

int statefile_replace(const char *path, const void *data, size_t len, mode_t mode, struct err *e)
{
    _cleanup_(freep) char *fresh = NULL;
    _cleanup_(closep) int fd = -1;
    struct stat st;
    int r;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return err_set(e, -EINVAL, "%s is not a regular file, and is not replaced by one", path);
    if (asprintf(&fresh, "%s.XXXXXX", path) < 0) {
        fresh = NULL;
        return err_set(e, -ENOMEM, "no memory for a path");
    }
    fd = mkostemp(fresh, O_CLOEXEC); /* 0600 */
    if (fd < 0)
        return fail(e, errno, path, "written");
    r = fchmod(fd, mode) < 0 ? -errno : file_write_all(fd, data, len);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r == 0 && rename(fresh, path) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlink(fresh);
        return fail(e, -r, path, "written");
    }
    return statefile_sync_dir_of(path, e);
}

int statefile_read(const char *path, size_t max, char **ret, size_t *ret_len, struct err *e)
{
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *buf;
    ssize_t n;

    if (fd < 0 && errno == ENOENT)
        return STATEFILE_E_ABSENT;
    if (fd < 0)
        return fail(e, errno, path, "read");
    buf = malloc(max + 1);
    if (!buf)
        return err_set(e, -ENOMEM, "no memory to read \"%s\"", path);
    n = file_read_all(fd, buf, max + 1);
    if (n < 0 || (size_t)n > max) {
        secret_wipe(buf, max + 1);
        free(buf);
        if (n < 0)
            return fail(e, (int)-n, path, "read");
        return err_set(e, -EFBIG, "\"%s\" is longer than %zu bytes", path, max);
    }
    buf[n] = '\0';
    *ret = buf;
    if (ret_len)
        *ret_len = (size_t)n;
    return 0;
}

bool dir_has_entries(const char *path)
{
    _cleanup_(closedirp) DIR *dir = opendir(path);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            return true;
    return false;
}

int statefile_make_dir(const char *path, mode_t mode, struct err *e)
{
    _cleanup_(freep) char *part = strdup(path);
    struct stat st;

    if (!part)
        return err_set(e, -ENOMEM, "no memory for a path");
    for (char *p = part + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return fail(e, errno, part, "made");
        *p = '/';
    }
    if (mkdir(part, mode) < 0 && errno != EEXIST)
        return fail(e, errno, part, "made");
    if (stat(part, &st) < 0)
        return fail(e, errno, part, "read");
    if (!S_ISDIR(st.st_mode))
        return err_set(e, -ENOTDIR, "\"%s\" is not a directory", path);
    return 0;
}

int statefile_lock(const char *path, int *ret_fd, struct err *e)
{
    /* An "open file description" lock: unlike the older kind it survives a close elsewhere. */
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    _cleanup_(closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return fail(e, errno, path, "opened");
    if (fcntl(fd, F_OFD_SETLK, &whole) < 0) {
        if (errno == EAGAIN || errno == EACCES)
            return err_set(e, -EBUSY, "another process holds \"%s\"", path);
        return fail(e, errno, path, "locked");
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}
