/* respawn.c - see respawn.h. */
#include "os/respawn.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "os/clock.h"

/* The exit status of a child that could not be made the program; a shell's. */
#define STATUS_NO_EXEC 126

static const int end_signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};

static void fill_set(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGCHLD);
    for (unsigned i = 0; i < sizeof(end_signals) / sizeof(*end_signals); i++)
        (void)sigaddset(set, end_signals[i]);
}

/* Waits for one run, and passes on what asks for its end. Return: as waitpid(2) says it. */
static int follow(pid_t pid, const sigset_t *set, bool *was_told)
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
        *was_told = true;
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

/* @result: of start(); @status: as waitpid(2) says it. */
static void describe(int result, int status, char *ret, size_t cap)
{
    if (result < 0)
        (void)snprintf(ret, cap, "could not be started: %s", strerror(-result));
    else if (WIFSIGNALED(status))
        (void)snprintf(ret, cap, "was ended by signal %d", WTERMSIG(status));
    else
        (void)snprintf(ret, cap, "ended with status %d", WEXITSTATUS(status));
}

static int start(const struct respawn *r, const sigset_t *mask, pid_t *ret, struct err *e)
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

        result = start(r, mask, &pid, e);
        if (result < 0 && !is_proven)
            return result;
        if (result == 0) {
            status = follow(pid, set, &ret->was_told);
            ret->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            is_proven |= WIFSIGNALED(status) || clock_now() - begun_at >= r->proves_itself;
            if (ret->was_told || ret->status == 0 || !is_proven)
                return 0;
            if (clock_now() - begun_at >= r->settled)
                pause = r->shortest_pause;
        }
        describe(result, status, how, sizeof(how));
        if (!r->may_start(r->ctx, how, pause))
            return 0;
        ret->was_told = pause_for(pause, set);
        if (ret->was_told)
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

    fill_set(&set);
    (void)sigprocmask(SIG_BLOCK, &set, &mask);
    result = run_on(r, &set, &mask, &end, e);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    if (result == 0)
        *ret = end;
    return result;
}
