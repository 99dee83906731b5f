/* sandbox_user.c - who a process is, and which capabilities it has: see sandbox.h. */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "os/sandbox_internal.h"

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

static uint64_t wide(const struct __user_cap_data_struct data[static 2], bool permitted)
{
    uint32_t low = permitted ? data[0].permitted : data[0].effective;
    uint32_t high = permitted ? data[1].permitted : data[1].effective;

    return (uint64_t)high << 32 | low;
}

/* The capabilities that this thread may have. */
static int get_permitted(uint64_t *ret, struct err *e)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        return err_set(e, -errno, "the capabilities cannot be read: %s", strerror(errno));
    *ret = wide(data, true);
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

static int become(uid_t uid, gid_t gid, struct err *e)
{
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return err_set(e, -errno, "cannot become user %u, group %u: %s", (unsigned)uid,
            (unsigned)gid, strerror(errno));
    return 0;
}

int sandbox__user(const struct sandbox *s, uint64_t *ret_capabilities, struct err *e)
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
        r = become(s->uid, s->gid, e);
    }
    if (r == 0)
        r = set_all(keep, s->may_start, e);
    if (r == 0)
        r = set_ambient(s->may_start ? keep : 0, e);
    if (r == 0)
        *ret_capabilities = keep;
    return r;
}
