/* interrupt.c - see interrupt.h. */
#include "os/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>

#include "os/clock.h"

static const int by_person[] = {SIGINT, SIGQUIT};

void interrupt_begin(struct interrupt *i)
{
    struct sigaction now;

    *i = (struct interrupt){.signal = 0};
    (void)sigemptyset(&i->taken);
    for (size_t k = 0; k < sizeof(by_person) / sizeof(*by_person); k++)
        if (sigaction(by_person[k], NULL, &now) != 0 || now.sa_handler != SIG_IGN)
            (void)sigaddset(&i->taken, by_person[k]);
    (void)sigprocmask(SIG_BLOCK, &i->taken, &i->before);
}

bool interrupt_wait(struct interrupt *i, unsigned ms)
{
    nsec_t until = clock_now() + ms * NSEC_PER_MSEC;
    nsec_t left;

    while (i->signal == 0 && (left = until - clock_now()) > 0) {
        struct timespec wait = {.tv_sec = left / NSEC_PER_SEC, .tv_nsec = left % NSEC_PER_SEC};
        int signal = sigtimedwait(&i->taken, NULL, &wait);

        if (signal > 0)
            i->signal = signal;
    }
    return i->signal != 0;
}

void interrupt_end(struct interrupt *i)
{
    (void)sigprocmask(SIG_SETMASK, &i->before, NULL);
    if (i->signal != 0)
        (void)raise(i->signal);
    i->signal = 0;
}

/* ---- the end of a program ---- */

int end_signals_open(void)
{
    sigset_t set;
    int fd;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}
