/* netlink_writes.c - see netlink_writes.h. */
#include "test/support/netlink_writes.h"

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/wireguard.h>
#include <stdbool.h>
#include <sys/socket.h>

/* The types of rtnetlink come in fours: new, delete, get, set. */
#define RTM_KINDS    4
#define RTM_KIND_GET 2

static unsigned n_writes;

static bool is_write(int fd, const struct nlmsghdr *nlh)
{
    const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
    int family = NETLINK_ROUTE;
    socklen_t len = sizeof(family);

    (void)getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &family, &len);
    if (family == NETLINK_ROUTE)
        return (nlh->nlmsg_type - RTM_BASE) % RTM_KINDS != RTM_KIND_GET;
    return nlh->nlmsg_type != GENL_ID_CTRL && genl->cmd != WG_CMD_GET_DEVICE;
}

ssize_t mnl_socket_sendto(const struct mnl_socket *nl, const void *buf, size_t len)
{
    static const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    int fd = mnl_socket_get_fd(nl);

    n_writes += is_write(fd, buf);
    return sendto(fd, buf, len, 0, (const struct sockaddr *)&kernel, sizeof(kernel));
}

unsigned netlink_writes_take(void)
{
    unsigned n = n_writes;

    n_writes = 0;
    return n;
}
