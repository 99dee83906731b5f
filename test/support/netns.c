/* netns.c - see netns.h. */
#include "test/support/netns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "net/netlink/netlink.h"

int netns_enter(void **state)
{
    static struct netlink nl;

    if (unshare(CLONE_NEWNET) < 0) {
        (void)fprintf(stderr, "no network namespace: %s\n", strerror(errno));
        *state = NULL;
        return 0;
    }
    if (netlink_open(&nl, NETLINK_ROUTE) < 0)
        return -1;
    *state = &nl;
    return 0;
}

int netns_leave(void **state)
{
    if (*state)
        netlink_close(*state);
    return 0;
}

struct netlink *netns_need(void **state)
{
    if (!*state)
        skip();
    return *state;
}

void netns_be_alone(void)
{
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd;

    if (unshare(CLONE_NEWNET) < 0)
        return;
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback) < 0) {
        (void)fprintf(stderr, "loopback of a new namespace: %s\n", strerror(errno));
        abort();
    }
    (void)close(fd);
}

struct ip_prefix netns_prefix(const char *text)
{
    struct ip_prefix p;

    assert_int_equal(ip_prefix_parse(&p, text, NULL), 0);
    return p;
}
