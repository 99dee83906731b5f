/* socket.c - see socket.h. */
#include "net/socket/socket.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "os/clock.h"

/* The forced option needs CAP_NET_ADMIN; the kernel cuts the usual one to the system's limit
 * without an error. */
static void set_room(int fd, int forced, int usual, int bytes)
{
    if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof(bytes)) < 0)
        (void)setsockopt(fd, SOL_SOCKET, usual, &bytes, sizeof(bytes));
}

void socket_set_receive_room(int fd, int bytes)
{
    set_room(fd, SO_RCVBUFFORCE, SO_RCVBUF, bytes);
}

void socket_set_send_room(int fd, int bytes)
{
    set_room(fd, SO_SNDBUFFORCE, SO_SNDBUF, bytes);
}

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
