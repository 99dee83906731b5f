/* run_dir.c - see run_dir.h. */
#include "train/job/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "os/fd_cleanup.h"
#include "os/rng_kernel.h"

/* Bytes of a name that nobody guesses. */
#define UNIQUE_LEN 16

int run_dir_name(char ret[static RUN_DIR_MAX], struct err *e)
{
    const char *base = getenv("TMPDIR");
    struct rng rng = rng_kernel();
    uint8_t unique[UNIQUE_LEN];
    char hex[2 * UNIQUE_LEN + 1];
    char path[RUN_DIR_MAX];

    if (!base || base[0] != '/')
        base = "/tmp";
    rng_fill(&rng, unique, sizeof(unique));
    hex_encode(unique, sizeof(unique), hex);
    if (snprintf(path, sizeof(path), "%s/weft-run-%s", base, hex) >= (int)sizeof(path))
        return err_set(e, -ENAMETOOLONG, "TMPDIR \"%.40s...\" is too long", base);
    if (faccessat(AT_FDCWD, base, W_OK | X_OK, AT_EACCESS) < 0)
        return err_set(e, -errno, "no directory can be made in %.200s: %s", base, strerror(errno));
    memcpy(ret, path, sizeof(path));
    return 0;
}

int run_dir_make(const char *dir, struct err *e)
{
    if (mkdir(dir, 0700) < 0)
        return err_set(e, -errno, "%.200s cannot be made: %s", dir, strerror(errno));
    return 0;
}

/* Is it one that run_dir_make() has made, and not a folder that somebody has put in its place? The
 * folder above may have handed the set-group-ID bit on to it. */
static bool is_ours(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
           (st.st_mode & (07777 & ~S_ISGID)) == 0700;
}

void run_dir_remove(const char *dir)
{
    _cleanup_(closep) int fd =
        dir[0] != '\0' ? open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    DIR *d = fd >= 0 && is_ours(fd) ? fdopendir(fd) : NULL;

    if (!d)
        return;
    fd = -1; /* closedir() closes it. */
    for (struct dirent *entry = readdir(d); entry; entry = readdir(d))
        (void)unlinkat(dirfd(d), entry->d_name, 0);
    (void)closedir(d);
    (void)rmdir(dir);
}
