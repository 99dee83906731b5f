/* child.c - see child.h. */
#include "os/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "os/clock.h"
#include "os/file.h"

/* Processes of one walk at most; those beyond are not visited. */
#define VISITED_MAX 4096

/* ---- descendants ---- */

/* A line of a memory map: addresses, rights and numbers before the file's path. */
#define LINE_MAX_BYTES (PATH_MAX + 128)

/* The processes that were found, of which the first @n_visited were visited. */
struct found {
    int pids[VISITED_MAX];
    size_t n;
    size_t n_visited;
};

/* /proc/PID/@name; with a @dir, the children of what @name is there. */
static FILE *open_proc(int pid, const char *dir, const char *name)
{
    char path[64];

    (void)snprintf(
        path, sizeof(path), "/proc/%d/%s%.16s%s", pid, dir, name, dir[0] ? "/children" : "");
    return fopen(path, "re");
}

/* False when it is not known whether that was all. */
static bool add_all_children(struct found *f, int pid)
{
    char path[32];
    const struct dirent *entry;
    bool known = true;
    _cleanup_(closedirp) DIR *threads = NULL;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
    threads = opendir(path);
    while (threads && (entry = readdir(threads)) != NULL) {
        _cleanup_(fclosep) FILE *file = NULL;
        int child;

        if (entry->d_name[0] == '.')
            continue;
        file = open_proc(pid, "task/", entry->d_name);
        while (file && f->n < VISITED_MAX && fscanf(file, "%d", &child) == 1)
            f->pids[f->n++] = child;
        known &= file && !ferror(file);
    }
    return threads && known;
}

void descendants_walk(int pid, descendants_fn fn, void *ctx)
{
    _cleanup_(freep) struct found *f = malloc(sizeof(*f));

    if (!f)
        return;
    f->n = 0;
    f->n_visited = 0;
    (void)add_all_children(f, pid);
    while (f->n_visited < f->n) {
        int next = f->pids[f->n_visited++];

        if (!fn(ctx, next))
            return;
        (void)add_all_children(f, next);
    }
}

const char *descendants_name(int pid, char buf[static 16])
{
    _cleanup_(fclosep) FILE *f = open_proc(pid, "", "comm");

    buf[0] = '\0';
    if (f && fgets(buf, 16, f))
        buf[strcspn(buf, "\n")] = '\0';
    return buf;
}

/* Fields of /proc/PID/stat between the state and the time in user mode (proc_pid_stat(5)). */
#define STAT_BETWEEN 10

bool process_stat_parse(const char *line, struct process_stat *ret)
{
    /* The name stands in brackets, and may have brackets in it. */
    const char *at = strrchr(line, ')');
    struct process_stat s;
    char *end;

    if (!at || at[1] != ' ' || at[2] == '\0' || at[3] != ' ')
        return false;
    s.state = at[2];
    at += 3;
    for (unsigned i = 0; i < STAT_BETWEEN && at; i++)
        at = strchr(at + 1, ' ');
    if (!at)
        return false;
    s.user_ticks = strtoull(at + 1, &end, 10);
    if (*end != ' ')
        return false;
    s.kernel_ticks = strtoull(end + 1, &end, 10);
    if (*end != ' ')
        return false;
    *ret = s;
    return true;
}

bool descendants_stat(int pid, struct process_stat *ret)
{
    _cleanup_(fclosep) FILE *f = open_proc(pid, "", "stat");
    char line[1024];

    return f && fgets(line, sizeof(line), f) && process_stat_parse(line, ret);
}

unsigned descendants_sockets(int pid, uint32_t *ret, unsigned cap)
{
    static const char socket_link[] = "socket:[";
    char path[32];
    const struct dirent *entry;
    unsigned n = 0;
    _cleanup_(closedirp) DIR *fds = NULL;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    fds = opendir(path);
    while (fds && n < cap && (entry = readdir(fds)) != NULL) {
        char to[32];
        ssize_t len = readlinkat(dirfd(fds), entry->d_name, to, sizeof(to) - 1);

        to[len > 0 ? len : 0] = '\0';
        if (strncmp(to, socket_link, strlen(socket_link)) == 0)
            ret[n++] = (uint32_t)strtoul(to + strlen(socket_link), NULL, 10);
    }
    return n;
}

bool descendants_maps(int pid, const char *prefix)
{
    _cleanup_(fclosep) FILE *f = open_proc(pid, "", "maps");
    char line[LINE_MAX_BYTES];

    while (f && fgets(line, sizeof(line), f)) {
        const char *name = strrchr(line, '/');

        if (name && strncmp(name + 1, prefix, strlen(prefix)) == 0)
            return true;
    }
    return false;
}

/* ---- a command ---- */

/* What a person or a service manager sends to a command that is to end, or to do something. */
static const int forwarded[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};

/* Each generation of what a killed command has left comes to us when the one before has ended. */
#define ORPHAN_ROUNDS_MAX 64

/* What was killed ends within moments, unless it is stuck in the kernel: in a driver, or in a file
 * system that does not answer. So long it is waited for, all of it together. */
#define ORPHAN_WAIT (5 * NSEC_PER_SEC)

static int explain(const char *name, int error, struct err *e)
{
    if (error == ENOENT)
        return err_set(e, CHILD_E_NOT_FOUND, "%s: command not found", name);
    return err_set(e, CHILD_E_NOT_EXECUTABLE, "%s cannot be run: %s", name, strerror(error));
}

int child_become(char *const words[], char *const env[], struct err *e)
{
    (void)execvpe(words[0], words, env);
    return explain(words[0], errno, e);
}

/* In the child. @report: closed by a successful exec, else told the error. */
static _Noreturn void start(
    char *const words[], char *const env[], const sigset_t *mask, int report, pid_t parent)
{
    int error;

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    if (getppid() == parent)
        (void)execvpe(words[0], words, env);
    error = errno;
    /* A failure here cannot be reported to anybody. */
    if (write(report, &error, sizeof(error)) < 0)
        _exit(CHILD_E_NOT_EXECUTABLE);
    _exit(0);
}

static bool means_end(int signal)
{
    return signal == SIGTERM || signal == SIGINT || signal == SIGQUIT || signal == SIGHUP;
}

/* A command that runs, and what is to be done with it when. */
struct running {
    pid_t pid;
    const struct child_watch *watch; /* pins; NULL: none */
    nsec_t look_at;                  /* the watch's next turn; NSEC_NEVER: none */
    nsec_t kill_at;                  /* of a command that the watch had end; NSEC_NEVER: none */
    bool was_stopped;
    bool was_killed; /* it did not end in time */
};

/* Has the watch look when it is time, and sees to the end that it wants. */
static void do_what_is_due(struct running *c)
{
    struct child_order order;

    if (clock_now() >= c->kill_at) {
        (void)kill(c->pid, SIGKILL);
        c->kill_at = NSEC_NEVER;
        c->was_killed = true;
    }
    if (clock_now() < c->look_at)
        return;
    order = c->watch->fn(c->watch->ctx, c->pid);
    c->look_at = order.next_ms > 0 ? clock_now() + order.next_ms * NSEC_PER_MSEC : NSEC_NEVER;
    if (!order.stops)
        return;
    (void)kill(c->pid, SIGTERM);
    if (!c->was_stopped && c->watch->stop_ms > 0)
        c->kill_at = clock_now() + c->watch->stop_ms * NSEC_PER_MSEC;
    c->was_stopped = true;
}

/* Waits for one of @set; true when one came, false when something is due. */
static bool wait_signal(const sigset_t *set, const struct running *c, siginfo_t *ret)
{
    nsec_t due = nsec_min(c->look_at, c->kill_at);
    nsec_t left = due - clock_now();
    struct timespec wait = {.tv_sec = left / NSEC_PER_SEC, .tv_nsec = left % NSEC_PER_SEC};

    if (due == NSEC_NEVER)
        return sigwaitinfo(set, ret) >= 0;
    return left > 0 && sigtimedwait(set, ret, &wait) >= 0;
}

/* Waits for a child that was killed. SIGCHLD is blocked. False: it has not ended by @deadline. */
static bool wait_killed(pid_t pid, nsec_t deadline)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        nsec_t left = deadline - clock_now();
        struct timespec wait = {.tv_sec = left / NSEC_PER_SEC, .tv_nsec = left % NSEC_PER_SEC};

        if (left <= 0)
            return false;
        (void)sigtimedwait(&set, NULL, &wait);
    }
    return true;
}

/*
 * Ends what the command has left behind when it was killed: such as its workers, which would keep
 * the memory of their GPUs. They are our children now.
 */
static void end_orphans(void)
{
    nsec_t deadline = clock_now() + ORPHAN_WAIT;
    char text[16];
    bool found = true;

    for (unsigned i = 0; i < ORPHAN_ROUNDS_MAX && found; i++) {
        _cleanup_(fclosep) FILE *f = fopen("/proc/thread-self/children", "re");

        found = false;
        while (f && fscanf(f, "%15s", text) == 1) {
            pid_t pid = (pid_t)strtol(text, NULL, 10);

            /* One that has become another user's ends when it wants to, and one that is stuck when
             * the kernel lets it. */
            found |= kill(pid, SIGKILL) == 0 && wait_killed(pid, deadline);
        }
    }
}

/* Takes the status of each child that has ended: what the command's own children leave behind comes
 * to us, too. True when @pid, the command, was among them. */
static bool reap(pid_t pid, int *ret_status)
{
    bool has_ended = false;
    pid_t ended;
    int status;

    while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
        if (ended != pid)
            continue;
        *ret_status = status;
        has_ended = true;
    }
    return has_ended;
}

static struct child_end follow(pid_t pid, const sigset_t *set, const struct child_watch *watch)
{
    struct running c = {.pid = pid, .watch = watch, .look_at = NSEC_NEVER, .kill_at = NSEC_NEVER};
    struct child_end end = {0};
    siginfo_t info;
    int status = 0;

    if (watch && watch->first_ms > 0)
        c.look_at = clock_now() + watch->first_ms * NSEC_PER_MSEC;
    for (;;) {
        if (!wait_signal(set, &c, &info)) {
            do_what_is_due(&c);
            continue;
        }
        if (info.si_signo != SIGCHLD) {
            if (means_end(info.si_signo) && !end.was_signalled)
                end.is_by_person = info.si_signo == SIGINT || info.si_signo == SIGQUIT;
            end.was_signalled |= means_end(info.si_signo);
            /* The terminal's own signals go to the whole process group, so the child has them
             * already. */
            if (info.si_code != SI_KERNEL)
                (void)kill(pid, info.si_signo);
            continue;
        }
        if (reap(pid, &status))
            break;
    }
    end.was_stopped = c.was_stopped;
    /* One that ended by what it was told has had the time to end its own. */
    if (WIFSIGNALED(status) && (!end.was_signalled || c.was_killed))
        end_orphans();
    end.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return end;
}

int child_run(char *const words[], char *const env[], const struct child_watch *watch,
    struct child_end *ret, struct err *e)
{
    pid_t parent = getpid();
    int pipe_fds[2];
    sigset_t set;
    sigset_t mask;
    struct child_end end = {0};
    int error = 0;
    pid_t pid;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_set(e, -errno, "no descriptors left: %s", strerror(errno));
    /* Without it the orphans of a killed command stay; all else is the same. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(*forwarded); i++)
        (void)sigaddset(&set, forwarded[i]);
    (void)sigprocmask(SIG_BLOCK, &set, &mask);
    pid = fork();
    if (pid == 0)
        start(words, env, &mask, pipe_fds[1], parent);
    error = pid < 0 ? errno : 0;
    (void)close(pipe_fds[1]);
    /* The pipe ends without a byte when the exec has worked. */
    if (pid > 0 && read(pipe_fds[0], &error, sizeof(error)) != (ssize_t)sizeof(error))
        error = 0;
    (void)close(pipe_fds[0]);
    if (pid > 0)
        end = follow(pid, &set, watch);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    if (error != 0)
        return explain(words[0], error, e);
    *ret = end;
    return 0;
}

bool child_has_children(int pid)
{
    _cleanup_(freep) struct found *f = malloc(sizeof(*f));

    if (!f)
        return true;
    f->n = 0;
    return !add_all_children(f, pid) || f->n > 0;
}
