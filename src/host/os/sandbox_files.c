/*
 * sandbox_files.c - which files a process can reach: Landlock, see sandbox.h.
 *
 * The C library has no functions for it. A right that the running kernel does not know is not
 * asked for, so that an older kernel checks what it can.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "os/fd_cleanup.h"
#include "os/sandbox_internal.h"

/* The headers of Debian 12 end with ABI 2. */
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

#define READ_FILE  (LANDLOCK_ACCESS_FS_READ_FILE)
#define READ_TREE  (READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE_FILE (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)
#define WRITE_TREE                                                                                 \
    (WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |                 \
        LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK)
#define ALL_OF_ABI_1 ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

/* All rights of files that this kernel can refuse; 0: it has no Landlock. */
static uint64_t handled_rights(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    uint64_t rights = ALL_OF_ABI_1;

    if (abi <= 0)
        return 0;
    if (abi >= 2)
        rights |= LANDLOCK_ACCESS_FS_REFER;
    if (abi >= 3)
        rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
    return rights;
}

/* The kernel refuses rights of directories for what is none. */
static uint64_t rights_of(unsigned access, bool is_dir)
{
    uint64_t rights = 0;

    if (access & SANDBOX_READ)
        rights |= is_dir ? READ_TREE : READ_FILE;
    if (access & SANDBOX_WRITE)
        rights |= is_dir ? WRITE_TREE : WRITE_FILE;
    if (access & SANDBOX_EXEC)
        rights |= LANDLOCK_ACCESS_FS_EXECUTE;
    return rights;
}

static int add_path(int ruleset, const struct sandbox_path *p, uint64_t handled, struct err *e)
{
    _cleanup_(closep) int fd = open(p->path, O_PATH | O_CLOEXEC);
    struct landlock_path_beneath_attr rule = {.parent_fd = fd};
    struct stat st;

    /* What is not there, or not for us, is out of reach anyway. */
    if (fd < 0 || fstat(fd, &st) < 0)
        return 0;
    rule.allowed_access = rights_of(p->access, S_ISDIR(st.st_mode)) & handled;
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return err_set(
            e, -errno, "\"%s\" cannot be put on the list of files: %s", p->path, strerror(errno));
    return 0;
}

int sandbox__files(const struct sandbox_path *paths, size_t n_paths, struct err *e)
{
    struct landlock_ruleset_attr attr = {.handled_access_fs = handled_rights()};
    _cleanup_(closep) int ruleset = -1;
    int r = 0;

    if (attr.handled_access_fs == 0)
        return SANDBOX_E_NO_LANDLOCK;
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (ruleset < 0)
        return err_set(e, -errno, "a list of files cannot be made: %s", strerror(errno));
    for (size_t i = 0; r == 0 && i < n_paths; i++)
        r = add_path(ruleset, &paths[i], attr.handled_access_fs, e);
    if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        r = err_set(e, -errno, "the list of files cannot be enforced: %s", strerror(errno));
    return r;
}
