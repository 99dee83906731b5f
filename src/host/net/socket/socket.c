/* socket.c - see socket.h. */
#include "net/socket/socket.h"

#include <errno.h>
#include <linux/filter.h>
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

int socket_split_by_interface(int fd, unsigned ifindex)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ifindex, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, 1),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) < 0
               ? -errno
               : 0;
}
