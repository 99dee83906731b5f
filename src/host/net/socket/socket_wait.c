/* socket_wait.c - see socket_wait.h. */
#include "net/socket/socket_wait.h"

#include <errno.h>
#include <poll.h>

#include "os/clock.h"

int socket_wait(int fd, short events, nsec_t deadline)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        nsec_t left = deadline - clock_now();
        int n;

        if (left <= 0)
            return -ETIMEDOUT;
        n = poll(&p, 1, (int)(left / NSEC_PER_MSEC + 1));
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
}
