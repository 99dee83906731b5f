/* run_dir.c - see run_dir.h. */
#include "train/job/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

int run_dir_name(char ret[static RUN_DIR_MAX], struct err *e)
{
    const char *base = getenv("TMPDIR");
    char path[RUN_DIR_MAX];

    if (!base || base[0] != '/')
        base = "/tmp";
    if (snprintf(path, sizeof(path), "%s/weft-run-XXXXXX", base) >= (int)sizeof(path))
        return err_set(e, -ENAMETOOLONG, "TMPDIR \"%.40s...\" is too long", base);
    if (!mkdtemp(path) || rmdir(path) < 0)
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

void run_dir_remove(const char *dir)
{
    DIR *d = dir[0] != '\0' ? opendir(dir) : NULL;

    if (!d)
        return;
    for (struct dirent *entry = readdir(d); entry; entry = readdir(d))
        (void)unlinkat(dirfd(d), entry->d_name, 0);
    (void)closedir(d);
    (void)rmdir(dir);
}
