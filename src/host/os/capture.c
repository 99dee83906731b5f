/* capture.c - see capture.h. */
#include "os/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/process.h"

/* In the child. Where its standard error goes. */
static bool lead_errors(const struct capture_wish *wish, int output)
{
    int to = output;

    if (wish->drops_errors)
        to = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return (!wish->takes_errors && !wish->drops_errors) || dup2(to, STDERR_FILENO) >= 0;
}

/* In the child. @report: closed by a successful exec, else told the error. */
static _Noreturn void start(const struct capture_wish *wish, int output, int report, pid_t parent)
{
    int error = EIO;
    sigset_t none;

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    /* Our threads block all signals (thread.h), and a program that inherits that cannot be ended
     * but by SIGKILL. */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (getppid() == parent && dup2(output, STDOUT_FILENO) >= 0 && lead_errors(wish, output)) {
        (void)execvp(wish->argv[0], (char *const *)wish->argv);
        error = errno;
    }
    /* A failure here cannot be reported to anybody. */
    if (write(report, &error, sizeof(error)) < 0)
        _exit(1);
    _exit(0);
}

/* Reads until the program and all that it has started have closed the pipe. */
static int read_all(int fd, const struct capture_wish *wish, nsec_t deadline, struct str *out)
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
        n = kept + (size_t)n > wish->max ? (ssize_t)(wish->max - kept) : n;
        str_add_bytes(out, buf, (size_t)n);
        kept += (size_t)n;
    }
}

/* Reads what it prints, and waits for its end: it may have closed its output before. */
static int read_to_end(pid_t pid, int fd, const struct capture_wish *wish, struct str *out)
{
    nsec_t deadline = clock_now() + (nsec_t)wish->timeout_ms * NSEC_PER_MSEC;
    int r = read_all(fd, wish, deadline, out);
    nsec_t left = nsec_max(deadline - clock_now(), 0);

    if (r == 0 && process_wait_end(pid, (unsigned)(left / NSEC_PER_MSEC + 1)) == -ETIMEDOUT)
        r = -ETIMEDOUT;
    return r;
}

static int take_status(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What follows once the child is there. @error: of its start; 0: it runs. */
static int follow(pid_t pid, int fd, int error, const struct capture_wish *wish, struct str *out,
    int *ret_status, struct err *e)
{
    int r = error == 0 ? read_to_end(pid, fd, wish, out) : 0;

    if (r == -ETIMEDOUT)
        (void)kill(pid, SIGKILL);
    *ret_status = take_status(pid);
    if (error != 0)
        return err_set(e, CAPTURE_E_NOT_RUN, "%s cannot be run: %s", wish->argv[0],
            error == ENOENT ? "command not found" : strerror(error));
    if (r < 0)
        return err_set(e, r, "%s has not ended after %u s", wish->argv[0], wish->timeout_ms / 1000);
    return out->failed ? err_set(e, -ENOMEM, "no memory for the output of %s", wish->argv[0]) : 0;
}

int capture_run(const struct capture_wish *wish, struct str *out, int *ret_status, struct err *e)
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
        start(wish, output[1], report[1], parent);
    r = pid < 0 ? -errno : 0;
    (void)close(output[1]);
    (void)close(report[1]);
    /* The pipe ends without a byte when the exec has worked. */
    if (pid > 0 && read(report[0], &error, sizeof(error)) != (ssize_t)sizeof(error))
        error = 0;
    (void)close(report[0]);
    if (r == 0)
        r = follow(pid, output[0], error, wish, out, ret_status, e);
    else
        (void)err_set(e, r, "no process for %s: %s", wish->argv[0], strerror(-r));
    (void)close(output[0]);
    return r;
}
