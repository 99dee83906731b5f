/* net_watch.c - see net_watch.h. */
#include "net/netlink/net_watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/fd_cleanup.h"

int net_watch_open(void)
{
    struct sockaddr_nl sa = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
                     RTMGRP_IPV6_ROUTE | RTMGRP_IPV4_RULE | 1 << (RTNLGRP_IPV6_RULE - 1),
    };
    _cleanup_(closep) int fd =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

bool net_watch_read(int fd)
{
    char buf[8192];
    bool any = false;

    for (;;) {
        ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

        /* ENOBUFS: there was more news than the kernel keeps. */
        if (n < 0 && errno != EINTR && errno != ENOBUFS)
            return any;
        any = true;
    }
}
