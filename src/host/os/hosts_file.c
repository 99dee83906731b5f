/* hosts_file.c - see hosts_file.h. */
#include "os/hosts_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/names/hosts.h"
#include "os/file.h"

/* Is @path still the file that is open as @fd? */
static bool is_same(int fd, const char *path)
{
    struct stat a;
    struct stat b;

    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/*
 * Opens and locks it. Who waited for the lock while another agent put a new
 * file in this one's place has locked the old one, and tries again.
 */
static int open_locked(const char *path, bool create, int *ret_fd, struct err *e)
{
    for (;;) {
        _cleanup_(closep) int fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0644);

        if (fd < 0 && errno == ENOENT) {
            *ret_fd = -1;
            return 0;
        }
        if (fd < 0 || flock(fd, LOCK_EX) < 0)
            return err_set(e, -errno, "\"%s\" cannot be opened: %s", path, strerror(errno));
        if (is_same(fd, path)) {
            *ret_fd = TAKE_FD(fd);
            return 0;
        }
    }
}

/* Used only where the file cannot be replaced: a reader may see half of the new text for a
 * moment. */
static int write_in_place(int fd, const char *path, const struct str *text, struct err *e)
{
    size_t done = 0;

    while (done < text->len) {
        ssize_t n = pwrite(fd, text->text + done, text->len - done, (off_t)done);

        if (n < 0)
            return err_set(e, -errno, "\"%s\" cannot be written: %s", path, strerror(errno));
        done += (size_t)n;
    }
    if (ftruncate(fd, (off_t)text->len) < 0)
        return err_set(e, -errno, "\"%s\" cannot be shortened: %s", path, strerror(errno));
    return 0;
}

/* Does the file say already what it is to say? Then it need not be writable. */
static bool is_as_wanted(const char *path, const char *owner, const char *block)
{
    _cleanup_(str_deinit) struct str text = STR_NULL;
    _cleanup_(freep) char *old = NULL;
    size_t len = 0;

    if (statefile_read(path, HOSTS_FILE_MAX, &old, &len, NULL) != 0)
        return false;
    hosts_replace(&text, old, len, owner, block);
    return !text.failed && text.len == len && memcmp(str_text(&text), old, len) == 0;
}

int hosts_file_put(
    const char *path, const char *owner, const char *block, bool *ret_changed, struct err *e)
{
    _cleanup_(str_deinit) struct str text = STR_NULL;
    _cleanup_(freep) char *old = NULL;
    _cleanup_(closep) int fd = -1;
    char real[PATH_MAX];
    struct stat st;
    size_t len = 0;
    int r;

    /* A symbolic link is followed, so that it stays a link. */
    if (realpath(path, real))
        path = real;
    r = open_locked(path, block != NULL, &fd, e);
    *ret_changed = false;
    if (r < 0 && is_as_wanted(path, owner, block))
        return 0;
    if (r < 0 || fd < 0)
        return r;
    r = statefile_read(path, HOSTS_FILE_MAX, &old, &len, e);
    if (r != 0)
        return r < 0 ? r : err_set(e, -ENOENT, "\"%s\" is gone", path);
    hosts_replace(&text, old, len, owner, block);
    if (text.failed)
        return err_set(e, -ENOMEM, "no memory for \"%s\"", path);
    if (text.len == len && memcmp(str_text(&text), old, len) == 0)
        return 0;
    if (fstat(fd, &st) != 0 ||
        statefile_replace(path, str_text(&text), text.len, st.st_mode & 07777, NULL) != 0)
        r = write_in_place(fd, path, &text, e);
    *ret_changed = r == 0;
    return r;
}
