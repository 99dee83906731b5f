/* tcp.c - see tcp.h. The kernel's tcp.h, since the C library's struct tcp_info is older. */
#include "net/socket/tcp.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "net/address/sockaddr.h"
#include "os/fd_cleanup.h"

static int bind_tcp(int fd, const struct endpoint *at, struct err *e)
{
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, at);
    char text[ENDPOINT_TEXT_MAX];
    int r;

    if (bind(fd, &sa.any, len) == 0)
        return 0;
    r = -errno;
    if (ip_addr_is_none(&at->addr))
        return err_set(e, r, "TCP port %u cannot be used: %s", at->port, strerror(-r));
    return err_set(
        e, r, "TCP address %s cannot be used: %s", endpoint_format(at, text), strerror(-r));
}

static int keep_to(int fd, const char *interface, struct err *e)
{
    int one = 1;

    /* A fresh interface's IPv6 address may still be under duplicate address detection. */
    (void)setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one));
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface) + 1) ==
        0)
        return 0;
    return err_set(
        e, -errno, "interface \"%s\" cannot be listened on: %s", interface, strerror(errno));
}

void tcp_mark_control(int fd)
{
    const int tos = 48 << 2; /* RFC 2474 section 4.2.2: class selector 6, beside the two ECN bits */

    (void)setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
    (void)setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
}

/* Whichever way a connection comes, over the overlay or beside it, and whatever that loses without
 * a word: what both ends send has the size of packets that pass everywhere. */
static void keep_segments_small(int fd)
{
    const int most = TCP_CONTROL_SEGMENT_MAX;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &most, sizeof(most));
}

int tcp_listener_open(
    int *ret_fd, const struct endpoint *at, const char *interface, bool is_shared, struct err *e)
{
    _cleanup_(closep) int fd = -1;
    union sockaddr_inet sa;
    int v6only = !ip_addr_is_none(&at->addr);
    int one = 1;
    int r = 0;

    (void)sockaddr_from_endpoint(&sa, at);
    fd = socket(sa.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set(e, -errno, "no TCP socket: %s", strerror(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (sa.any.sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof(v6only));
    keep_segments_small(fd);
    if (interface) {
        tcp_mark_control(fd);
        r = keep_to(fd, interface, e);
    }
    if (r == 0 && is_shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) < 0)
        r = err_set(e, -errno, "a port cannot be shared: %s", strerror(errno));
    if (r == 0)
        r = bind_tcp(fd, at, e);
    if (r == 0)
        *ret_fd = TAKE_FD(fd);
    return r;
}

bool tcp_traffic_read(int fd, struct tcp_traffic *ret)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        len < offsetof(struct tcp_info, tcpi_data_segs_in) + sizeof(info.tcpi_data_segs_in))
        return false;
    *ret = (struct tcp_traffic){.bytes = info.tcpi_bytes_received,
        .segments = info.tcpi_data_segs_in,
        .silent_for = NSEC_PER_MSEC * (info.tcpi_last_ack_recv < info.tcpi_last_data_recv
                                              ? info.tcpi_last_ack_recv
                                              : info.tcpi_last_data_recv)};
    return true;
}
