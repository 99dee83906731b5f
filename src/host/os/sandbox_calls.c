/*
 * sandbox_calls.c - the system calls that each kind of process may make: seccomp, see sandbox.h.
 *
 * A list is made of groups; each group has a reason, and so has everything in it. A call that the
 * running architecture does not have is left out, so one table serves x86-64 and arm64. The C
 * library chooses between an older call and a newer one by its own version: both are listed.
 *
 * An unlisted call raises SIGSYS in the thread that made it. The handler names the call and ends
 * the process. Where SIGSYS is blocked the kernel ends the process without a word: thread_start()
 * leaves it open, and only pthread_create(3) and posix_spawn(3) block it, for a moment.
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/version.h"
#include "os/sandbox.h"

const char *const sandbox_kind_names[] = {
    [SANDBOX_HUB] = "hub",
    [SANDBOX_AGENT] = "agent",
    [SANDBOX_WG] = "wg",
    [SANDBOX_PROBE] = "probe",
    [SANDBOX_RENDEZVOUS] = "rendezvous",
    [SANDBOX_MEASURE] = "measuring",
    [SANDBOX_HOSTS] = "hosts",
    [SANDBOX_GPUS] = "gpus",
};
_Static_assert(
    sizeof(sandbox_kind_names) / sizeof(*sandbox_kind_names) == SANDBOX_N, "a name each");

/* ---- the groups ----------------------------------------------------------------------------- */

/* Memory, clocks, signals of its own and the end: the C library needs these in any program. */
static const char *const base_calls[] = {"brk", "munmap", "mremap", "madvise", "mlock", "mlock2",
    "munlock", "futex", "futex_waitv", "clock_gettime", "clock_gettime64", "clock_getres",
    "clock_nanosleep", "nanosleep", "gettimeofday", "time", "rt_sigaction", "rt_sigprocmask",
    "rt_sigreturn", "rt_sigtimedwait", "sigaltstack", "restart_syscall", "exit", "exit_group",
    "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getgroups",
    "getrandom", "sched_yield", "sched_getaffinity", "getcpu", "rseq", "set_robust_list",
    "get_robust_list", "membarrier", "tgkill", "uname", "sysinfo", "getrusage", "times",
    "prlimit64", "getrlimit", "capget", NULL};

/* Bytes and events on descriptors that are open. */
static const char *const descriptor_calls[] = {"read", "readv", "write", "writev", "pread64",
    "pwrite64", "preadv", "pwritev", "close", "close_range", "fcntl", "dup", "dup2", "dup3",
    "lseek", "fstat", "poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1",
    "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2",
    "timerfd_create", "timerfd_settime", "timerfd_gettime", "pipe", "pipe2", "signalfd",
    "signalfd4", NULL};

/* Messages on sockets that are open, and connections on those that listen. */
static const char *const socket_calls[] = {"recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg",
    "sendmmsg", "shutdown", "accept", "accept4", "getsockopt", "setsockopt", "getsockname",
    "getpeername", NULL};

/* New sockets; of which families is in open_socket_families. */
static const char *const connect_calls[] = {"bind", "connect", "listen", "socketpair", NULL};

/* Looking at files; which ones is the business of Landlock and of the file's mode. */
static const char *const look_calls[] = {"open", "openat", "stat", "lstat", "newfstatat", "statx",
    "fstatat64", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getdents64",
    "getcwd", "statfs", "fstatfs", NULL};

/* State files, the database, unix sockets. */
static const char *const change_calls[] = {"mkdir", "mkdirat", "unlink", "unlinkat", "rmdir",
    "rename", "renameat", "renameat2", "link", "linkat", "fsync", "fdatasync", "ftruncate",
    "fallocate", "flock", "chmod", "fchmod", "fchmodat", "fchown", "umask", "utimensat",
    "fadvise64", "memfd_create", NULL};

/* A unix socket's place in the file system. */
static const char *const socket_file_calls[] = {"mkdir", "mkdirat", "unlink", "unlinkat", "rename",
    "renameat", "renameat2", "chmod", "fchmod", "fchmodat", NULL};

/* Threads: their processors, their priority, their names. clone is checked apart. */
static const char *const thread_calls[] = {"sched_setaffinity", "sched_getparam",
    "sched_getscheduler", "sched_setscheduler", "sched_get_priority_min", "sched_get_priority_max",
    "getpriority", "setpriority", "prctl", "set_tid_address", "arch_prctl", NULL};

/* Terminals, interfaces, TUN: what an ioctl is asked of, the descriptor says. */
static const char *const ioctl_calls[] = {"ioctl", NULL};

/* Starting our own program, and waiting for it. */
static const char *const start_calls[] = {"fork", "vfork", "execve", "wait4", "waitid",
    "pidfd_open", "pidfd_send_signal", "kill", "setsid", "chdir", "setrlimit", NULL};

/* What such a program does to enter its own, narrower sandbox. */
static const char *const narrow_calls[] = {"capset", "setgroups", "setresgid", "setresuid",
    "setuid", "setgid", "seccomp", "landlock_create_ruleset", "landlock_add_rule",
    "landlock_restrict_self", "mlockall", NULL};

/* To the background, as wireguard-go goes: see `weft wg` without -f. */
static const char *const background_calls[] = {"setsid", "chdir", "kill", NULL};

/** What a kind may do. */
struct rules {
    const char *const *groups[12]; /* ends with NULL */
    bool threads;                  /* may make threads */
    bool processes;                /* may make processes */
    bool packet;                   /* may have sockets of AF_PACKET */
    bool sockets;                  /* may have sockets of the other families below */
    bool plain_ioctl;              /* only the ioctls of libuv, isatty(3) and if_nametoindex(3) */
    bool unix_socket;              /* sockets of AF_UNIX: if_nametoindex(3) asks one */
    bool no_bpf;                   /* bpf(2) fails: who has loaded no program before has none */
};

static const struct rules rules[] = {
    [SANDBOX_HUB] = {.groups = {base_calls, descriptor_calls, socket_calls, connect_calls,
                         look_calls, change_calls, thread_calls, ioctl_calls, start_calls,
                         narrow_calls},
        .threads = true,
        .processes = true,
        .sockets = true,
        .no_bpf = true},
    [SANDBOX_AGENT] = {.groups = {base_calls, descriptor_calls, socket_calls, connect_calls,
                           look_calls, change_calls, thread_calls, ioctl_calls, start_calls,
                           narrow_calls},
        .threads = true,
        .processes = true,
        .packet = true,
        .sockets = true,
        .no_bpf = true},
    [SANDBOX_WG] = {.groups = {base_calls, descriptor_calls, socket_calls, connect_calls,
                        look_calls, change_calls, thread_calls, ioctl_calls, background_calls},
        .threads = true,
        .sockets = true,
        .no_bpf = true},
    [SANDBOX_PROBE] =
        {.groups = {base_calls, descriptor_calls, socket_calls, look_calls, change_calls},
            .plain_ioctl = true,
            .unix_socket = true},
    [SANDBOX_RENDEZVOUS] = {.groups = {base_calls, descriptor_calls, socket_calls},
        .plain_ioctl = true},
    [SANDBOX_MEASURE] = {.groups = {base_calls, descriptor_calls, socket_calls, connect_calls,
                             look_calls, socket_file_calls, thread_calls},
        .threads = true,
        .sockets = true,
        .plain_ioctl = true},
    [SANDBOX_HOSTS] = {.groups = {base_calls, descriptor_calls, look_calls, change_calls},
        .plain_ioctl = true},
    /* The library may start a program that makes the devices, and talks with NVIDIA's daemon. */
    [SANDBOX_GPUS] = {.groups = {base_calls, descriptor_calls, socket_calls, connect_calls,
                          look_calls, change_calls, thread_calls, ioctl_calls, start_calls},
        .threads = true,
        .processes = true,
        .unix_socket = true,
        .no_bpf = true},
};
_Static_assert(sizeof(rules) / sizeof(*rules) == SANDBOX_N, "a list per kind");

/* ---- naming what was refused ---------------------------------------------------------------- */

#define N_CALLS       512
#define CALL_NAME_MAX 28

/* Filled in before the list holds; a signal handler can only read. */
static struct {
    const char *kind;
    char names[N_CALLS][CALL_NAME_MAX];
} refusal;

static void name_calls(enum sandbox_kind kind)
{
    refusal.kind = sandbox_kind_names[kind];
    for (int i = 0; i < N_CALLS; i++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);

        if (name && strlen(name) < CALL_NAME_MAX)
            memcpy(refusal.names[i], name, strlen(name) + 1);
        free(name);
    }
}

static size_t add_text(char *line, size_t len, size_t cap, const char *text)
{
    while (*text && len < cap)
        line[len++] = *text++;
    return len;
}

static size_t add_number(char *line, size_t len, size_t cap, unsigned number)
{
    char digits[12];
    size_t at = sizeof(digits) - 1;

    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return add_text(line, len, cap, digits + at);
}

/* Async-signal-safe: a buffer on the stack, write(2) and _exit(2). */
static void on_refused(int signal, siginfo_t *info, void *context)
{
    unsigned number = (unsigned)info->si_syscall;
    const char *name = number < N_CALLS ? refusal.names[number] : "";
    char line[160];
    size_t cap = sizeof(line) - 1;
    size_t len = add_text(line, 0, cap, "error: ");

    len = add_text(line, len, cap, refusal.kind);
    len = add_text(line, len, cap, ": the system call ");
    len = add_text(line, len, cap, name[0] ? name : "without a name");
    len = add_text(line, len, cap, " (");
    len = add_number(line, len, cap, number);
    len = add_text(line, len, cap, ") is not one that this process may make; it ends\n");
    /* When this fails as well, the process ends without a word. */
    if (write(STDERR_FILENO, line, len) < 0)
        _exit(SANDBOX_EXIT);
    _exit(SANDBOX_EXIT);
}

static int take_signal(struct err *e)
{
    struct sigaction action = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO};
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGSYS);
    if (sigaction(SIGSYS, &action, NULL) < 0 || pthread_sigmask(SIG_UNBLOCK, &set, NULL) != 0)
        return err_set(e, -errno, "SIGSYS cannot be handled: %s", strerror(errno));
    return 0;
}

/* ---- the filter ----------------------------------------------------------------------------- */

/* Nothing is writable and executable at once. */
static int allow_memory(scmp_filter_ctx ctx)
{
    static const uint64_t kinds[] = {0, PROT_WRITE, PROT_EXEC};
    int calls[] = {SCMP_SYS(mmap), SCMP_SYS(mprotect)};
    int r = 0;

    for (size_t c = 0; c < 2; c++)
        for (size_t i = 0; r == 0 && i < 3; i++)
            r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, calls[c], 1,
                SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_WRITE | PROT_EXEC, kinds[i]));
    return r;
}

/* The C library falls back to clone, whose flags are in a register where they can be checked. */
static int allow_clone(scmp_filter_ctx ctx, const struct rules *rule)
{
    const uint64_t spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                            CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
    int r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

    if (r == 0 && rule->processes)
        return seccomp_rule_add(
            ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, spaces, 0));
    if (r == 0 && rule->threads)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
            SCMP_A0(SCMP_CMP_MASKED_EQ, spaces | CLONE_THREAD, CLONE_THREAD));
    return r;
}

static int allow_sockets(scmp_filter_ctx ctx, const struct rules *rule)
{
    static const uint64_t families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    int r = 0;

    for (size_t i = 0; r == 0 && rule->sockets && i < 4; i++)
        r = seccomp_rule_add(
            ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, families[i]));
    if (r == 0 && rule->unix_socket)
        r = seccomp_rule_add(
            ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
    if (r == 0 && rule->packet)
        r = seccomp_rule_add(
            ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_PACKET));
    return r;
}

static int allow_plain_ioctl(scmp_filter_ctx ctx)
{
    static const uint64_t requests[] = {FIONBIO, FIONREAD, FIOCLEX, TCGETS, SIOCGIFINDEX};
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(requests) / sizeof(*requests); i++)
        r = seccomp_rule_add(
            ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, requests[i]));
    return r;
}

static int fill(scmp_filter_ctx ctx, const struct rules *rule)
{
    int r = 0;

    for (size_t g = 0; rule->groups[g]; g++)
        for (size_t i = 0; r == 0 && rule->groups[g][i]; i++) {
            int number = seccomp_syscall_resolve_name(rule->groups[g][i]);

            /* Negative: not of this architecture, or not known to this library. */
            if (number >= 0)
                r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number, 0);
        }
    if (r == 0)
        r = allow_memory(ctx);
    if (r == 0)
        r = allow_clone(ctx, rule);
    if (r == 0)
        r = allow_sockets(ctx, rule);
    if (r == 0 && rule->no_bpf)
        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(bpf), 0);
    return r == 0 && rule->plain_ioctl ? allow_plain_ioctl(ctx) : r;
}

int sandbox__calls(enum sandbox_kind kind, bool *ret_holds, struct err *e)
{
    scmp_filter_ctx ctx;
    int r;

    /* The calls of a sanitizer's runtime are not known. */
    if (HAS_SANITIZER) {
        *ret_holds = false;
        return 0;
    }
    ctx = seccomp_init(SCMP_ACT_TRAP);
    if (!ctx)
        return err_set(e, -ENOMEM, "no memory for the list of system calls");
    name_calls(kind);
    r = take_signal(e);
    if (r < 0) {
        seccomp_release(ctx);
        return r;
    }
    /* For all threads, without the mitigations against speculation that older kernels couple
     * to it, and as a tree: a list of a hundred is walked for each call otherwise. */
    r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
    if (r == 0)
        r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_SSB, 1);
    if (r == 0)
        r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (r == 0)
        r = fill(ctx, &rules[kind]);
    if (r == 0)
        r = seccomp_load(ctx);
    seccomp_release(ctx);
    if (r < 0)
        return err_set(e, r, "the list of system calls cannot be enforced: %s", strerror(-r));
    *ret_holds = true;
    return 0;
}
