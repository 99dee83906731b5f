/* process.c - see process.h. */
#include "os/process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/file.h"

/* ---- a program to its end, or let go ---- */

const char *process_self_path(char buf[static PATH_MAX])
{
    static const char gone[] = " (deleted)";
    ssize_t len = readlink("/proc/self/exe", buf, PATH_MAX - 1);
    size_t suffix = sizeof(gone) - 1;

    if (len > 0) {
        buf[len] = '\0';
        /* An upgrade has put a new program in the old one's place. */
        if ((size_t)len > suffix && strcmp(buf + len - suffix, gone) == 0)
            buf[(size_t)len - suffix] = '\0';
        if (access(buf, X_OK) == 0)
            return buf;
    }
    (void)snprintf(buf, PATH_MAX, "/proc/self/exe");
    return buf;
}

const char *process_loader_path(void)
{
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    size_t n = getauxval(AT_PHNUM);
    uintptr_t base = 0; /* where the program was put, beside where it says that it lies */

    for (size_t i = 0; headers && i < n; i++)
        if (headers[i].p_type == PT_PHDR)
            base = (uintptr_t)headers - headers[i].p_vaddr;
    for (size_t i = 0; headers && i < n; i++)
        if (headers[i].p_type == PT_INTERP)
            return (const char *)(base + headers[i].p_vaddr);
    return NULL;
}

/* Default signals, nothing blocked, a session of its own. */
static int set_attributes(posix_spawnattr_t *attr)
{
    sigset_t none;
    sigset_t all;
    int r;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    r = posix_spawnattr_setflags(
        attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (r == 0)
        r = posix_spawnattr_setsigmask(attr, &none);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(attr, &all);
    return r;
}

/* @output_fd becomes standard output and error; @link_fd: PROCESS_LINK_FD, -1: there is none. */
static int spawn(
    const char *const argv[], const char *const env[], int output_fd, int link_fd, pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    pid_t pid;
    int r;

    r = posix_spawn_file_actions_init(&actions);
    if (r != 0)
        return -r;
    r = posix_spawnattr_init(&attr);
    if (r != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return -r;
    }
    r = set_attributes(&attr);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, output_fd, STDERR_FILENO);
    if (r == 0 && link_fd >= 0)
        r = posix_spawn_file_actions_adddup2(&actions, link_fd, PROCESS_LINK_FD);
    if (r == 0) /* exec takes no const, and changes nothing. */
        r = posix_spawn(&pid, argv[0], &actions, &attr, (char *const *)argv, (char *const *)env);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attr);
    if (r == 0)
        *ret = pid;
    return -r;
}

/* The last line of what a program said. */
struct last_line {
    char text[256];
    size_t len;
    bool ended; /* a newline came: the next byte starts over */
};

static void add_output(struct last_line *l, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n') {
            l->ended = true;
            continue;
        }
        if (l->ended)
            l->len = 0;
        l->ended = false;
        if (l->len < sizeof(l->text) - 1)
            l->text[l->len++] = bytes[i];
    }
    l->text[l->len] = '\0';
}

/* Reads until nothing waits; false at the end of the stream. */
static bool read_output(int fd, struct last_line *l)
{
    char buf[512];
    ssize_t n;

    do {
        n = read(fd, buf, sizeof(buf));
        if (n > 0)
            add_output(l, buf, (size_t)n);
    } while (n > 0 || (n < 0 && errno == EINTR));
    return n < 0;
}

/* Waits for the end of the process, not of its output, which a process that it forked may hold
 * open for ever. @output_fd -1: nobody reads that. */
static int wait_for_end(int pid_fd, int output_fd, nsec_t deadline, struct last_line *l)
{
    struct pollfd fds[] = {{.fd = pid_fd, .events = POLLIN}, {.fd = output_fd, .events = POLLIN}};

    for (;;) {
        nsec_t left = deadline - clock_now();
        int n = poll(fds, 2, left > 0 ? (int)(left / NSEC_PER_MSEC) + 1 : 0);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0 && fds[1].revents && !read_output(output_fd, l))
            fds[1].fd = -1;
        if (n > 0 && fds[0].revents) {
            if (output_fd >= 0)
                (void)read_output(output_fd, l);
            return 0;
        }
        if (left <= 0)
            return -ETIMEDOUT;
    }
}

int process_run(const char *const argv[], unsigned timeout_ms, struct err *e)
{
    _cleanup_(closep) int output = -1;
    _cleanup_(closep) int input = -1;
    _cleanup_(closep) int pid_fd = -1;
    struct last_line last = {0};
    int status = 0;
    int pipe_fds[2];
    pid_t pid = 0;
    int r;

    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_set(e, -errno, "%s cannot be started: %s", argv[0], strerror(errno));
    output = pipe_fds[0];
    input = pipe_fds[1];
    r = spawn(argv, (const char *const *)environ, input, -1, &pid);
    if (r < 0)
        return err_set(e, r, "%s cannot be started: %s", argv[0], strerror(-r));
    closep(&input);
    pid_fd = pidfd_open(pid, 0);
    r = pid_fd < 0
            ? -errno
            : wait_for_end(pid_fd, output, clock_now() + (nsec_t)timeout_ms * NSEC_PER_MSEC, &last);
    if (r < 0)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (r == -ETIMEDOUT)
        return err_set(e, r, "%s did not end within %u ms", argv[0], timeout_ms);
    if (r < 0)
        return err_set(e, r, "%s cannot be waited for: %s", argv[0], strerror(-r));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFSIGNALED(status))
        return err_set(e, PROCESS_E_FAILED, "%s was ended by signal %d", argv[0], WTERMSIG(status));
    if (last.len > 0)
        return err_set(e, PROCESS_E_FAILED, "%s", last.text);
    return err_set(e, PROCESS_E_FAILED, "%s ended with status %d", argv[0], WEXITSTATUS(status));
}

int process_detach(const char *const argv[], const char *log_path, pid_t *ret, struct err *e)
{
    _cleanup_(closep) int fd =
        open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r;

    if (fd < 0)
        return err_set(e, -errno, "%s cannot be opened: %s", log_path, strerror(errno));
    r = spawn(argv, (const char *const *)environ, fd, -1, ret);
    if (r < 0)
        return err_set(e, r, "%s cannot be started: %s", argv[0], strerror(-r));
    return 0;
}

static const char *const kept_env[] = {"JOURNAL_STREAM", "LD_LIBRARY_PATH", "LD_PRELOAD",
    "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"};
#define KEPT_ENV_MAX (sizeof(kept_env) / sizeof(*kept_env))

int process_link(const char *const argv[], int fd, pid_t *ret, struct err *e)
{
    const char *env[KEPT_ENV_MAX + 1] = {NULL};
    char *texts[KEPT_ENV_MAX] = {NULL};
    size_t n = 0;
    int r;

    for (size_t i = 0; i < KEPT_ENV_MAX; i++) {
        const char *value = getenv(kept_env[i]);

        if (value && asprintf(&texts[n], "%s=%s", kept_env[i], value) >= 0) {
            env[n] = texts[n];
            n++;
        }
    }
    r = spawn(argv, env, STDERR_FILENO, fd, ret);
    for (size_t i = 0; i < n; i++)
        free(texts[i]);
    return r < 0 ? err_set(e, r, "%s cannot be started: %s", argv[0], strerror(-r)) : 0;
}

bool process_has_ended(pid_t pid)
{
    int status;

    return waitpid(pid, &status, WNOHANG) != 0;
}

bool process_take_link(void)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof(peer);

    if (getpeername(PROCESS_LINK_FD, (struct sockaddr *)&peer, &len) < 0 ||
        peer.ss_family != AF_UNIX)
        return false;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)close_range(PROCESS_LINK_FD + 1, ~0U, 0);
    return true;
}

int process_wait_end(pid_t pid, unsigned timeout_ms)
{
    _cleanup_(closep) int fd = pidfd_open(pid, 0);

    if (fd < 0)
        return errno == ESRCH ? 0 : -errno;
    return wait_for_end(fd, -1, clock_now() + (nsec_t)timeout_ms * NSEC_PER_MSEC, NULL);
}

/* ---- what a program prints ---- */

/* In the child. Where its standard error goes. */
static bool lead_errors(const struct capture_options *opt, int output)
{
    int to = output;

    if (opt->drops_errors)
        to = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return (!opt->takes_errors && !opt->drops_errors) || dup2(to, STDERR_FILENO) >= 0;
}

/* In the child. @report: closed by a successful exec, else told the error. */
static _Noreturn void capture_start(
    const struct capture_options *opt, int output, int report, pid_t parent)
{
    int error = EIO;
    sigset_t none;

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    /* Our threads block all signals (thread.h), and a program that inherits that cannot be ended
     * but by SIGKILL. */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (getppid() == parent && dup2(output, STDOUT_FILENO) >= 0 && lead_errors(opt, output)) {
        (void)execvp(opt->argv[0], (char *const *)opt->argv);
        error = errno;
    }
    /* A failure here cannot be reported to anybody. */
    if (write(report, &error, sizeof(error)) < 0)
        _exit(1);
    _exit(0);
}

/* Reads until the program and all that it has started have closed the pipe. */
static int read_all(int fd, const struct capture_options *opt, nsec_t deadline, struct str *out)
{
    size_t kept = 0;
    char buf[4096];

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        nsec_t left = deadline - clock_now();
        ssize_t n;

        if (left <= 0)
            return -ETIMEDOUT;
        if (poll(&p, 1, (int)nsec_min(left / NSEC_PER_MSEC + 1, 60000)) <= 0)
            continue;
        n = read(fd, buf, sizeof(buf));
        if (n <= 0)
            return 0;
        n = kept + (size_t)n > opt->max ? (ssize_t)(opt->max - kept) : n;
        str_add_bytes(out, buf, (size_t)n);
        kept += (size_t)n;
    }
}

/* Reads what it prints, and waits for its end: it may have closed its output before. */
static int read_to_end(pid_t pid, int fd, const struct capture_options *opt, struct str *out)
{
    nsec_t deadline = clock_now() + (nsec_t)opt->timeout_ms * NSEC_PER_MSEC;
    int r = read_all(fd, opt, deadline, out);
    nsec_t left = nsec_max(deadline - clock_now(), 0);

    if (r == 0 && process_wait_end(pid, (unsigned)(left / NSEC_PER_MSEC + 1)) == -ETIMEDOUT)
        r = -ETIMEDOUT;
    return r;
}

/* What follows once the child is there. @error: of its start; 0: it runs. */
static int capture_follow(pid_t pid, int fd, int error, const struct capture_options *opt,
    struct str *out, int *ret_status, struct err *e)
{
    int r = error == 0 ? read_to_end(pid, fd, opt, out) : 0;
    int status = 0;

    if (r == -ETIMEDOUT)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (error != 0)
        return err_set(e, CAPTURE_E_NOT_RUN, "%s cannot be run: %s", opt->argv[0],
            error == ENOENT ? "command not found" : strerror(error));
    if (r < 0)
        return err_set(e, r, "%s has not ended after %u s", opt->argv[0], opt->timeout_ms / 1000);
    return out->failed ? err_set(e, -ENOMEM, "no memory for the output of %s", opt->argv[0]) : 0;
}

int capture_run(const struct capture_options *opt, struct str *out, int *ret_status, struct err *e)
{
    pid_t parent = getpid();
    int output[2];
    int report[2];
    int error = 0;
    pid_t pid;
    int r;

    if (pipe2(output, O_CLOEXEC) < 0)
        return err_set(e, -errno, "no descriptors left: %s", strerror(errno));
    if (pipe2(report, O_CLOEXEC) < 0) {
        r = -errno;
        (void)close(output[0]);
        (void)close(output[1]);
        return err_set(e, r, "no descriptors left: %s", strerror(-r));
    }
    pid = fork();
    if (pid == 0)
        capture_start(opt, output[1], report[1], parent);
    r = pid < 0 ? -errno : 0;
    (void)close(output[1]);
    (void)close(report[1]);
    /* The pipe ends without a byte when the exec has worked. */
    if (pid > 0 && read(report[0], &error, sizeof(error)) != (ssize_t)sizeof(error))
        error = 0;
    (void)close(report[0]);
    if (r == 0)
        r = capture_follow(pid, output[0], error, opt, out, ret_status, e);
    else
        (void)err_set(e, r, "no process for %s: %s", opt->argv[0], strerror(-r));
    (void)close(output[0]);
    return r;
}

/* ---- starting again ---- */

/* The exit status of a child that could not be made the program; a shell's. */
#define STATUS_NO_EXEC 126

static const int end_signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};

/* Waits for one run, and passes on what asks for its end. Return: as waitpid(2) says it. */
static int respawn_follow(pid_t pid, const sigset_t *set, bool *was_signalled)
{
    for (;;) {
        siginfo_t info;
        int status;
        pid_t ended;

        /* The first process of a container gets all that others have left behind. */
        while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
            if (ended == pid)
                return status;
        if (sigwaitinfo(set, &info) < 0 || info.si_signo == SIGCHLD)
            continue;
        *was_signalled = true;
        (void)kill(pid, SIGTERM);
    }
}

/* Return: true: a signal asks for the end meanwhile. */
static bool pause_for(nsec_t pause, const sigset_t *set)
{
    const nsec_t until = clock_now() + pause;
    nsec_t left;

    while ((left = until - clock_now()) > 0) {
        struct timespec wait = {.tv_sec = left / NSEC_PER_SEC, .tv_nsec = left % NSEC_PER_SEC};
        siginfo_t info;

        if (sigtimedwait(set, &info, &wait) >= 0 && info.si_signo != SIGCHLD)
            return true;
    }
    return false;
}

/* @result: of respawn_start(); @status: as waitpid(2) says it. */
static void describe(int result, int status, char *ret, size_t cap)
{
    if (result < 0)
        (void)snprintf(ret, cap, "could not be started: %s", strerror(-result));
    else if (WIFSIGNALED(status))
        (void)snprintf(ret, cap, "was ended by signal %d", WTERMSIG(status));
    else
        (void)snprintf(ret, cap, "ended with status %d", WEXITSTATUS(status));
}

static int respawn_start(const struct respawn *r, const sigset_t *mask, pid_t *ret, struct err *e)
{
    pid_t pid = fork();

    if (pid < 0)
        return err_set(e, -errno, "%s cannot be started: %s", r->words[0], strerror(errno));
    if (pid == 0) {
        (void)sigprocmask(SIG_SETMASK, mask, NULL);
        (void)execv(r->words[0], r->words);
        _exit(STATUS_NO_EXEC);
    }
    *ret = pid;
    return 0;
}

/* Runs it again and again. Return: as respawn_run(). */
static int run_on(const struct respawn *r, const sigset_t *set, const sigset_t *mask,
    struct respawn_end *ret, struct err *e)
{
    nsec_t pause = r->shortest_pause;
    bool is_proven = false;

    for (;;) {
        const nsec_t begun_at = clock_now();
        char how[64];
        int status = 0;
        pid_t pid = 0;
        int result;

        result = respawn_start(r, mask, &pid, e);
        if (result < 0 && !is_proven)
            return result;
        if (result == 0) {
            status = respawn_follow(pid, set, &ret->was_signalled);
            ret->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            is_proven |= WIFSIGNALED(status) || clock_now() - begun_at >= r->proves_itself;
            if (ret->was_signalled || ret->status == 0 || !is_proven)
                return 0;
            if (clock_now() - begun_at >= r->settled)
                pause = r->shortest_pause;
        }
        describe(result, status, how, sizeof(how));
        if (!r->may_start(r->ctx, how, pause))
            return 0;
        ret->was_signalled = pause_for(pause, set);
        if (ret->was_signalled)
            return 0;
        pause = nsec_min(2 * pause, r->longest_pause);
    }
}

int respawn_run(const struct respawn *r, struct respawn_end *ret, struct err *e)
{
    struct respawn_end end = {0};
    sigset_t set;
    sigset_t mask;
    int result;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    for (unsigned i = 0; i < sizeof(end_signals) / sizeof(*end_signals); i++)
        (void)sigaddset(&set, end_signals[i]);
    (void)sigprocmask(SIG_BLOCK, &set, &mask);
    result = run_on(r, &set, &mask, &end, e);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    if (result == 0)
        *ret = end;
    return result;
}
