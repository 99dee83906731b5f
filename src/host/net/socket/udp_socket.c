/* udp_socket.c - opening the pair of sockets of udp_batch.h. */
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "net/address/sockaddr.h"
#include "net/socket/socket.h"
#include "net/socket/udp_batch.h"
#include "net/tun/offload.h"
#include "os/file.h"

/* What four TCP streams have under way, 4 MB each (tcp_wmem), while the thread that should receive
 * does not get a core. Half of it overflows, and costs each stream 45 packets at a time: one merged
 * datagram. It costs memory only while it is full. */
#define RECEIVE_BUFFER (16 << 20)

/* What wireguard-go and others settled on: a burst of 5,000 full packets. */
#define SEND_BUFFER (7 << 20)

/* The kernel picks the v4 port; somebody may hold the same v6 port. */
#define PORT_ATTEMPTS 100

struct bind_options {
    uint32_t fwmark;
    enum udp_share share;
    bool gro;
};

static int set_int(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

static int set_dont_fragment(int fd, int family, bool on)
{
    if (family == AF_INET)
        return set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, on ? IP_PMTUDISC_PROBE : IP_PMTUDISC_DONT);
    return set_int(
        fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, on ? IPV6_PMTUDISC_PROBE : IPV6_PMTUDISC_DONT);
}

/* What each packet tells on arrival (TOS and our own address), and that it may be fragmented on
 * its way, as the kernel's WireGuard does: the inner packet decides about its own DF. */
static int set_family_options(int fd, int family)
{
    int r;

    (void)set_dont_fragment(fd, family, false);
    if (family == AF_INET) {
        r = set_int(fd, IPPROTO_IP, IP_PKTINFO, 1);
        return r < 0 ? r : set_int(fd, IPPROTO_IP, IP_RECVTOS, 1);
    }
    r = set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (r == 0)
        r = set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
    return r < 0 ? r : set_int(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
}

static int set_options(int fd, int family, const struct bind_options *opt)
{
    int r = set_family_options(fd, family);

    socket_set_receive_buffer(fd, RECEIVE_BUFFER);
    socket_set_send_buffer(fd, SEND_BUFFER);
    if (r == 0 && opt->gro)
        (void)set_int(fd, IPPROTO_UDP, UDP_GRO, 1);
    if (r == 0 && opt->fwmark)
        r = set_int(fd, SOL_SOCKET, SO_MARK, (int)opt->fwmark);
    return r;
}

/* One family, that of @at; *@ret_port is what the kernel chose. */
static int open_at(
    const struct endpoint *at, const struct bind_options *opt, uint16_t *ret_port, int *ret_fd)
{
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, at);
    _cleanup_(closep) int fd = socket(sa.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct endpoint bound;
    int r;

    if (fd < 0)
        return -errno;
    r = set_options(fd, sa.any.sa_family, opt);
    if (r == 0 && opt->share == UDP_SHARE_NEXT)
        r = set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (r == 0 && bind(fd, &sa.any, len) < 0)
        r = -errno;
    /* The first binds before it shares, or it would share with another process doing the same. */
    if (r == 0 && opt->share == UDP_SHARE_FIRST)
        r = set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (r == 0)
        r = sockaddr_local(fd, &bound);
    if (r < 0)
        return r;
    *ret_port = bound.port;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* All addresses of one family; *@port 0 is replaced by what the kernel chose. */
static int open_family(int family, uint16_t *port, const struct bind_options *opt, int *ret_fd)
{
    struct endpoint any = {.port = *port};

    if (family == AF_INET)
        any.addr = ip_addr_v4((const uint8_t[4]){0});
    return open_at(&any, opt, port, ret_fd);
}

/* A family that this kernel or namespace does not have is no failure. */
static bool is_missing_family(int r)
{
    return r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL || r == -EPROTONOSUPPORT;
}

static int open_pair(struct udp_sockets *s, uint16_t port, const struct bind_options *opt)
{
    int r;

    s->port = port;
    r = open_family(AF_INET, &s->port, opt, &s->fd[UDP_FAMILY_V4]);
    if (r < 0 && !is_missing_family(r))
        return r;
    r = open_family(AF_INET6, &s->port, opt, &s->fd[UDP_FAMILY_V6]);
    if (r < 0 && is_missing_family(r) && s->fd[UDP_FAMILY_V4] >= 0)
        r = 0;
    if (r < 0)
        udp_close(s);
    return r;
}

int udp_open(struct udp_sockets *ret, uint16_t port, uint32_t fwmark, enum udp_share share,
    const struct offloads *offloads, struct err *e)
{
    struct bind_options opt = {
        .fwmark = fwmark, .share = share, .gro = offloads->on[OFFLOAD_UDP_GRO]};
    struct udp_sockets s = UDP_SOCKETS_NULL;
    int r = -EADDRINUSE;

    for (int i = 0; r == -EADDRINUSE && i < (port ? 1 : PORT_ATTEMPTS); i++)
        r = open_pair(&s, port, &opt);
    if (r < 0)
        return err_set(e, r, "cannot open UDP port %u: %s", port, strerror(-r));
    *ret = s;
    return 0;
}

int udp_open_at(struct udp_sockets *ret, const struct endpoint *local,
    const struct offloads *offloads, struct err *e)
{
    struct bind_options opt = {.gro = offloads->on[OFFLOAD_UDP_GRO]};
    enum udp_family family = ip_addr_is_v4(&local->addr) ? UDP_FAMILY_V4 : UDP_FAMILY_V6;
    struct udp_sockets s = UDP_SOCKETS_NULL;
    char text[ENDPOINT_TEXT_MAX];
    int r = open_at(local, &opt, &s.port, &s.fd[family]);

    if (r < 0)
        return err_set(
            e, r, "cannot open a UDP socket at %s: %s", endpoint_format(local, text), strerror(-r));
    *ret = s;
    return 0;
}

int udp_connect(const struct udp_sockets *s, const struct endpoint *remote)
{
    enum udp_family family = ip_addr_is_v4(&remote->addr) ? UDP_FAMILY_V4 : UDP_FAMILY_V6;
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, remote);

    return connect(s->fd[family], &sa.any, len) < 0 ? -errno : 0;
}

void udp_close(struct udp_sockets *s)
{
    for (int i = 0; i < UDP_FAMILY_N; i++)
        closep(&s->fd[i]);
    s->port = 0;
}

uint64_t udp_drops(const struct udp_sockets *s)
{
    uint64_t n = 0;

    for (int i = 0; i < UDP_FAMILY_N; i++) {
        uint32_t mem[SK_MEMINFO_VARS] = {0};
        socklen_t len = sizeof(mem);

        /* A kernel from before 4.12 does not say. */
        if (s->fd[i] >= 0 && getsockopt(s->fd[i], SOL_SOCKET, SO_MEMINFO, mem, &len) == 0)
            n += mem[SK_MEMINFO_DROPS];
    }
    return n;
}

int udp_set_fwmark(const struct udp_sockets *s, uint32_t fwmark)
{
    int r = 0;

    for (int i = 0; r == 0 && i < UDP_FAMILY_N; i++)
        if (s->fd[i] >= 0)
            r = set_int(s->fd[i], SOL_SOCKET, SO_MARK, (int)fwmark);
    return r;
}

int udp_set_dont_fragment(const struct udp_sockets *s, bool on)
{
    static const int families[UDP_FAMILY_N] = {AF_INET, AF_INET6};
    int r = 0;

    for (int i = 0; r == 0 && i < UDP_FAMILY_N; i++)
        if (s->fd[i] >= 0)
            r = set_dont_fragment(s->fd[i], families[i], on);
    return r;
}
