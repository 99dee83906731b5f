/* end_signals.c - see end_signals.h. */
#include "os/end_signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

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
