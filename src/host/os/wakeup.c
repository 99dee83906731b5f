/* wakeup.c - see wakeup.h. */
#include "os/wakeup.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int wakeup_open(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    return fd < 0 ? -errno : fd;
}

void wakeup_signal(int fd)
{
    uint64_t one = 1;

    /* Fails only when the counter is at its end, and then it is readable anyway. */
    (void)!write(fd, &one, sizeof(one));
}

bool wakeup_clear(int fd)
{
    uint64_t ignored;

    return read(fd, &ignored, sizeof(ignored)) > 0;
}
