/*
 * test-sandbox.c - each thing that is given up, tried in a child that has given it up.
 *
 * What only root can give up is skipped for others, aloud.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/version.h"
#include "os/sandbox.h"
#include "os/thread.h"
#include "test/support/emulated.h"
#include "test/support/sandboxed.h"

/* A user that no machine gives to anybody. */
#define SOMEBODY 61234

static void need_calls(void)
{
    if (HAS_SANITIZER) {
        print_message("a sanitizer's build has no list of system calls\n");
        skip();
    }
}

static void need_root(void)
{
    if (geteuid() != 0) {
        print_message("only root has something to give up\n");
        skip();
    }
}

/* ---- system calls --------------------------------------------------------------------------- */

static int trace(void)
{
    (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    return 0;
}

static int load_module(void)
{
    (void)syscall(SYS_init_module, NULL, 0, "");
    return 0;
}

static int new_namespace(void)
{
    (void)unshare(CLONE_NEWNET);
    return 0;
}

/* No kind may do any of these. */
static void test_never(void **state)
{
    static const struct {
        int (*act)(void);
        const char *name;
    } forbidden[] = {{trace, "ptrace"}, {load_module, "init_module"}, {new_namespace, "unshare"}};

    need_calls();
    for (unsigned kind = 0; kind < SANDBOX_N; kind++) {
        struct sandbox s = sandboxed_plain((enum sandbox_kind)kind);

        for (size_t i = 0; i < sizeof(forbidden) / sizeof(*forbidden); i++) {
            struct sandboxed o = sandboxed_run(&s, forbidden[i].act);
            char line[128];

            (void)snprintf(line, sizeof(line), "error: %s: the system call %s (",
                sandbox_kind_names[s.kind], forbidden[i].name);
            assert_int_equal(o.status, SANDBOX_EXIT);
            assert_ptr_equal(strstr(o.said, line), o.said);
            /* One line, and no other. */
            assert_ptr_equal(strchr(o.said, '\n'), o.said + strlen(o.said) - 1);
        }
    }
}

static int open_file(void)
{
    return open("/dev/null", O_RDONLY) < 0;
}

static int open_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0) < 0;
}

static int open_packet_socket(void)
{
    (void)socket(AF_PACKET, SOCK_DGRAM, 0);
    return 0;
}

static int start_program(void)
{
    (void)execl("/bin/true", "true", NULL);
    return 1;
}

static int make_process(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    return pid < 0 || waitpid(pid, NULL, 0) != pid;
}

static int make_code(void)
{
    (void)mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return 0;
}

static int become_root(void)
{
    return setuid(0) < 0;
}

/* What one kind may do and another not: "" where it may, else how the call is named. */
static void test_by_kind(void **state)
{
    static const struct {
        int (*act)(void);
        const char *refused[SANDBOX_N];
    } rows[] = {
        {open_file, {"", "", "", "", "openat", "", "", ""}},
        {open_socket, {"", "", "", "socket", "socket", "", "socket", "socket"}},
        {open_packet_socket,
            {"socket", "", "socket", "socket", "socket", "socket", "socket", "socket"}},
        {start_program, {"", "", "execve", "execve", "execve", "execve", "execve", ""}},
        {make_process, {"", "", "clone", "clone", "clone", "clone", "clone", ""}},
        {make_code, {"mmap", "mmap", "mmap", "mmap", "mmap", "mmap", "mmap", "mmap"}},
        {become_root, {"", "", "setuid", "setuid", "setuid", "setuid", "setuid", "setuid"}},
    };

    need_calls();
    need_root();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (unsigned kind = 0; kind < SANDBOX_N; kind++) {
            struct sandbox s = sandboxed_plain((enum sandbox_kind)kind);
            struct sandboxed o = sandboxed_run(&s, rows[i].act);
            char name[64];

            (void)snprintf(name, sizeof(name), "system call %s (", rows[i].refused[kind]);
            assert_int_equal(o.status, rows[i].refused[kind][0] ? SANDBOX_EXIT : 0);
            if (rows[i].refused[kind][0])
                assert_non_null(strstr(o.said, name));
        }
}

static void *trace_there(void *arg)
{
    (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    return NULL;
}

/* thread_start() blocks signals, and the refusal is a signal. */
static int trace_in_thread(void)
{
    pthread_t t;

    if (thread_start(&t, "tracer", -1, trace_there, NULL) < 0)
        return 2;
    (void)pthread_join(t, NULL);
    return 0;
}

static void test_thread(void **state)
{
    static const enum sandbox_kind kinds[] = {
        SANDBOX_HUB, SANDBOX_AGENT, SANDBOX_WG, SANDBOX_MEASURE};

    need_calls();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct sandbox s = sandboxed_plain(kinds[i]);
        struct sandboxed o = sandboxed_run(&s, trace_in_thread);

        assert_int_equal(o.status, SANDBOX_EXIT);
        assert_non_null(strstr(o.said, "the system call ptrace ("));
    }
}

/* A kind without threads makes none: not even a name for one. */
static void test_no_thread(void **state)
{
    struct sandbox s = sandboxed_plain(SANDBOX_RENDEZVOUS);
    struct sandboxed o;

    need_calls();
    o = sandboxed_run(&s, trace_in_thread);
    assert_int_equal(o.status, SANDBOX_EXIT);
    assert_non_null(strstr(o.said, "the system call prctl ("));
}

/* What the rendezvous does with what it was handed: events, bytes, time, memory, its end. */
static int serve(void)
{
    int pair[2];
    char byte = 'x';
    void *space = malloc(8 << 20);

    if (!space || pipe(pair) < 0 || write(pair[1], &byte, 1) != 1 || read(pair[0], &byte, 1) != 1)
        return 1;
    free(space);
    return byte != 'x';
}

static void test_serves(void **state)
{
    struct sandbox s = sandboxed_plain(SANDBOX_RENDEZVOUS);

    assert_int_equal(sandboxed_run(&s, serve).status, 0);
}

/* ---- dumps and privileges ------------------------------------------------------------------- */

static int look_hard(void)
{
    struct rlimit core;

    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return 1;
    if (getrlimit(RLIMIT_CORE, &core) < 0 || core.rlim_cur != 0 || core.rlim_max != 0)
        return 2;
    if (!HAS_SANITIZER && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
        return 3;
    return 0;
}

static void test_hard(void **state)
{
    struct sandbox s = sandboxed_plain(SANDBOX_AGENT);

    assert_int_equal(sandboxed_run(&s, look_hard).status, 0);
    need_root();
    s.uid = s.gid = SOMEBODY;
    assert_int_equal(sandboxed_run(&s, look_hard).status, 0);
}

/* ---- user and capabilities ------------------------------------------------------------------ */

/* A line of /proc/self/status, as a number. Who runs as root is asked by its file only. */
static uint64_t status_field(const char *field, int base)
{
    char text[8192];
    int fd = open("/proc/thread-self/status", O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    const char *at;

    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    at = strstr(text, field);
    return at ? strtoull(at + strlen(field), NULL, base) : UINT64_MAX;
}

#define WANTED (SANDBOX_CAP(CAP_NET_ADMIN) | SANDBOX_CAP(CAP_NET_RAW))

static int look_at_capabilities(void)
{
    static const char *const sets[] = {
        "\nCapBnd:\t", "\nCapPrm:\t", "\nCapEff:\t", "\nCapInh:\t", "\nCapAmb:\t"};

    if (getuid() != SOMEBODY || geteuid() != SOMEBODY || getgid() != SOMEBODY ||
        getgroups(0, NULL) != 0)
        return 10;
    for (int i = 0; i < 5; i++)
        if (status_field(sets[i], 16) != WANTED)
            return 1 + i;
    return setuid(0) < 0 ? 0 : 11;
}

static void test_capabilities(void **state)
{
    struct sandbox s = sandboxed_plain(SANDBOX_AGENT);

    need_root();
    s.uid = s.gid = SOMEBODY;
    s.capabilities = WANTED;
    s.may_start = true;
    assert_int_equal(sandboxed_run(&s, look_at_capabilities).status, 0);
}

static int look_at_nothing(void)
{
    return status_field("\nCapPrm:\t", 16) == 0 && status_field("\nCapEff:\t", 16) == 0 &&
                   status_field("\nCapAmb:\t", 16) == 0 && status_field("\nCapBnd:\t", 16) == 0
               ? 0
               : 1;
}

/* Root without capabilities is a user to whom much belongs, and no more. */
static void test_root_without(void **state)
{
    struct sandbox s = sandboxed_plain(SANDBOX_AGENT);

    need_root();
    assert_int_equal(sandboxed_run(&s, look_at_nothing).status, 0);
}

/* What a process does not have, it does not get by wishing to keep it. */
static int enter_again(void)
{
    struct sandbox s = sandboxed_plain(SANDBOX_AGENT);
    struct sandbox_result result;
    struct err e = ERR_NULL;

    s.capabilities = WANTED | SANDBOX_CAP(CAP_SYS_ADMIN);
    if (sandbox_enter(&s, &result, &e) != 0)
        return 1;
    return result.capabilities == WANTED ? 0 : 2;
}

static void test_again(void **state)
{
    struct sandbox s = sandboxed_plain(SANDBOX_AGENT);

    need_root();
    s.uid = s.gid = SOMEBODY;
    s.capabilities = WANTED;
    s.may_start = true;
    assert_int_equal(sandboxed_run(&s, enter_again).status, 0);
}

/* Is any of this process' memory locked? As the kernel says. */
static bool has_locked_memory(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    bool is_locked = false;

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "VmLck:", strlen("VmLck:")) == 0)
            is_locked = !strstr(line, " 0 kB");
    if (f)
        (void)fclose(f);
    return is_locked;
}

static int look_at_locked(void)
{
    return has_locked_memory() ? 1 : 0;
}

/* Without CAP_SYS_RESOURCE, as in some containers, not even root may lift the limit. */
static void need_no_limit(void)
{
    const struct rlimit no_limit = {RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit before;

    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
    if (setrlimit(RLIMIT_MEMLOCK, &no_limit) != 0) {
        (void)fprintf(stderr, "skipped: root may not lift the limit of locked memory here\n");
        skip();
    }
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

/* Secrets are in all of a process' memory, so all of it stays out of the swap, what comes too. */
static void test_locked(void **state)
{
    struct sandbox s = sandboxed_plain(SANDBOX_HUB);

    need_root();
    need_calls();
    need_no_limit();
    s.uid = s.gid = SOMEBODY;
    assert_int_equal(sandboxed_run(&s, look_at_locked).status, 1);
    s.kind = SANDBOX_WG;
    assert_int_equal(sandboxed_run(&s, look_at_locked).status, 1);
    s.kind = SANDBOX_PROBE;
    assert_int_equal(sandboxed_run(&s, look_at_locked).status, 0);
}

/* With a limit, memory that is locked could later run out: nothing is, and the daemon can say so.
 */
static int enter_with_limit(void)
{
    const struct rlimit limit = {1 << 20, 1 << 20};
    struct sandbox s = sandboxed_plain(SANDBOX_AGENT);
    struct sandbox_result result;
    struct err e = ERR_NULL;

    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setresuid(SOMEBODY, SOMEBODY, SOMEBODY) != 0)
        return 2;
    s.uid = SOMEBODY;
    if (sandbox_enter(&s, &result, &e) != 0)
        return 3;
    return result.is_locked || has_locked_memory() ? 1 : 0;
}

static void test_locked_with_a_limit(void **state)
{
    int status = 0;
    pid_t pid;

    need_root();
    need_calls();
    if (emulated_lacks("seccomp"))
        skip();
    pid = fork();
    if (pid == 0)
        _exit(enter_with_limit());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_format(void **state)
{
    char text[64];

    assert_string_equal(
        sandbox_format_capabilities(WANTED, text, sizeof(text)), "net_admin net_raw");
    assert_string_equal(sandbox_format_capabilities(0, text, sizeof(text)), "none");
    assert_int_equal(strlen(sandbox_format_capabilities(UINT64_MAX, text, sizeof(text))), 63);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never),
        cmocka_unit_test(test_by_kind),
        cmocka_unit_test(test_thread),
        cmocka_unit_test(test_no_thread),
        cmocka_unit_test(test_serves),
        cmocka_unit_test(test_hard),
        cmocka_unit_test(test_capabilities),
        cmocka_unit_test(test_root_without),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_locked),
        cmocka_unit_test(test_locked_with_a_limit),
        cmocka_unit_test(test_format),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
