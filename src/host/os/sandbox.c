/* sandbox.c - see sandbox.h. The list of system calls is in sandbox_calls.c. */
#include "os/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/version.h"
#include "os/file.h"

/* ---- files: Landlock ---- */

/*
 * The C library has no functions for it. A right that the running kernel does not know is not
 * asked for, so that an older kernel checks what it can.
 */

/* The kernel has no Landlock. */
#define NO_LANDLOCK 1

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

/* Narrows the files. 0; NO_LANDLOCK: the kernel has none; or negative errno with words. */
static int narrow_files(const struct sandbox_path *paths, size_t n_paths, struct err *e)
{
    struct landlock_ruleset_attr attr = {.handled_access_fs = handled_rights()};
    _cleanup_(closep) int ruleset = -1;
    int r = 0;

    if (attr.handled_access_fs == 0)
        return NO_LANDLOCK;
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (ruleset < 0)
        return err_set(e, -errno, "a list of files cannot be made: %s", strerror(errno));
    for (size_t i = 0; r == 0 && i < n_paths; i++)
        r = add_path(ruleset, &paths[i], attr.handled_access_fs, e);
    if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        r = err_set(e, -errno, "the list of files cannot be enforced: %s", strerror(errno));
    return r;
}

/* ---- user and capabilities ---- */

/* The names of capabilities(7), by number. */
static const char *const cap_names[] = {
    "chown",
    "dac_override",
    "dac_read_search",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "linux_immutable",
    "net_bind_service",
    "net_broadcast",
    "net_admin",
    "net_raw",
    "ipc_lock",
    "ipc_owner",
    "sys_module",
    "sys_rawio",
    "sys_chroot",
    "sys_ptrace",
    "sys_pacct",
    "sys_admin",
    "sys_boot",
    "sys_nice",
    "sys_resource",
    "sys_time",
    "sys_tty_config",
    "mknod",
    "lease",
    "audit_write",
    "audit_control",
    "setfcap",
    "mac_override",
    "mac_admin",
    "syslog",
    "wake_alarm",
    "block_suspend",
    "audit_read",
    "perfmon",
    "bpf",
    "checkpoint_restore",
};
#define N_CAPS (sizeof(cap_names) / sizeof(*cap_names))

const char *sandbox_format_capabilities(uint64_t set, char *buf, size_t cap)
{
    size_t len = 0;

    (void)snprintf(buf, cap, "none");
    for (unsigned i = 0; i < N_CAPS; i++)
        if ((set & SANDBOX_CAP(i)) && len < cap)
            len += (size_t)snprintf(buf + len, cap - len, "%s%s", len > 0 ? " " : "", cap_names[i]);
    return buf;
}

/* The capabilities that this thread may have. */
static int get_permitted(uint64_t *ret, struct err *e)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        return err_set(e, -errno, "the capabilities cannot be read: %s", strerror(errno));
    *ret = (uint64_t)data[1].permitted << 32 | data[0].permitted;
    return 0;
}

static int set_all(uint64_t set, bool inheritable, struct err *e)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    for (unsigned i = 0; i < 2; i++) {
        uint32_t half = (uint32_t)(set >> (32 * i));

        data[i].permitted = data[i].effective = half;
        data[i].inheritable = inheritable ? half : 0;
    }
    if (syscall(SYS_capset, &header, data) < 0)
        return err_set(e, -errno, "the capabilities cannot be dropped: %s", strerror(errno));
    return 0;
}

/* What a program that is started can have at most. Who has no CAP_SETPCAP cannot narrow it, and
 * needs not: without new privileges it gives nothing. */
static int narrow_bounding(uint64_t keep, struct err *e)
{
    for (unsigned long i = 0; i < 64; i++) {
        if (keep & SANDBOX_CAP(i))
            continue;
        /* EINVAL: the kernel has no more of them. */
        if (prctl(PR_CAPBSET_READ, i, 0, 0, 0) != 1)
            continue;
        if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0 && errno != EPERM)
            return err_set(
                e, -errno, "the capability %lu cannot be dropped: %s", i, strerror(errno));
    }
    return 0;
}

static int set_ambient(uint64_t set, struct err *e)
{
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return err_set(e, -errno, "ambient capabilities cannot be cleared: %s", strerror(errno));
    for (unsigned long i = 0; i < 64; i++)
        if ((set & SANDBOX_CAP(i)) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0) < 0)
            return err_set(
                e, -errno, "the capability %lu cannot be handed on: %s", i, strerror(errno));
    return 0;
}

/* User, group and capabilities. 0 or negative errno with words. */
static int become_user(const struct sandbox *s, uint64_t *ret_capabilities, struct err *e)
{
    uint64_t permitted = 0;
    uint64_t keep;
    int r = get_permitted(&permitted, e);

    if (r < 0)
        return r;
    keep = permitted & s->capabilities;
    r = narrow_bounding(keep, e);
    if (r == 0 && geteuid() == 0 && s->uid != 0) {
        if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
            return err_set(e, -errno, "capabilities cannot be kept: %s", strerror(errno));
        if (setgroups(0, NULL) < 0 || setresgid(s->gid, s->gid, s->gid) < 0 ||
            setresuid(s->uid, s->uid, s->uid) < 0)
            return err_set(e, -errno, "cannot become user %u, group %u: %s", (unsigned)s->uid,
                (unsigned)s->gid, strerror(errno));
    }
    if (r == 0)
        r = set_all(keep, s->may_start, e);
    if (r == 0)
        r = set_ambient(s->may_start ? keep : 0, e);
    if (r == 0)
        *ret_capabilities = keep;
    return r;
}

/* ---- all of it ---- */

bool sandbox_kind_has_keys(enum sandbox_kind kind)
{
    return kind == SANDBOX_HUB || kind == SANDBOX_AGENT || kind == SANDBOX_WG;
}

/*
 * All of it, because secrets are not only where we put them: libraries copy them, and the compiler
 * leaves them on stacks. Pages are locked when they are first touched, so nothing grows by it. With
 * a limit this could make a later allocation fail, so then nothing is locked.
 */
static bool lock_memory(void)
{
    const struct rlimit no_limit = {RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit limit;

    /* Only root may raise the limit; for others it stays as it is. */
    (void)setrlimit(RLIMIT_MEMLOCK, &no_limit);
    return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY &&
           mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
}

/* No new privileges, no core dump, and no tracing by others. */
static int harden(struct err *e)
{
    const struct rlimit none = {0, 0};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set(e, -errno, "new privileges cannot be renounced: %s", strerror(errno));
    if (setrlimit(RLIMIT_CORE, &none) < 0)
        return err_set(e, -errno, "core dumps cannot be turned off: %s", strerror(errno));
    /* The leak sanitizer traces its own process at the end. */
    if (!HAS_SANITIZER && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_set(e, -errno, "tracing cannot be turned off: %s", strerror(errno));
    return 0;
}

int sandbox_enter(const struct sandbox *s, struct sandbox_result *ret, struct err *e)
{
    struct sandbox_result result = {0};
    int r = harden(e);

    if (r == 0 && sandbox_kind_has_keys(s->kind))
        result.is_locked = lock_memory();
    if (r == 0 && !s->all_files) {
        r = narrow_files(s->paths, s->n_paths, e);
        result.has_landlock = r == 0;
        if (r == NO_LANDLOCK)
            r = 0;
    }
    if (r == 0)
        r = become_user(s, &result.capabilities, e);
    /* A change of user makes the process one that can be traced and dumped again. */
    if (r == 0)
        r = harden(e);
    if (r == 0)
        r = sandbox__calls(s->kind, &result.has_calls, e);
    if (r == 0 && ret)
        *ret = result;
    return r;
}
