/* ping_monitor.c - see ping_monitor.h. */
#include "monitor/ping_monitor.h"

#include <errno.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "measure/dial.h"
#include "net/address/sockaddr.h"
#include "os/fd_cleanup.h"
#include "wire/echo.h"
#include "wire/ip.h"

/* Most answers that are read in one call, so that many answers do not delay the pings. */
#define ANSWERS_A_TURN 256

/* Bytes for the longest IPv4 header (60) and an answer. A longer packet is cut off. */
#define ANSWER_ROOM (60 + ECHO_LEN)

static int open_v4(void)
{
    struct icmp_filter filter = {.data = ~(1u << ICMP_ECHOREPLY)};
    int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMP);

    if (fd < 0)
        return -errno;
    /* A failure does no harm: other kinds of ICMP are then read, too, and echo_decode() refuses
     * them. */
    (void)setsockopt(fd, SOL_RAW, ICMP_FILTER, &filter, sizeof(filter));
    return fd;
}

static int open_v6(void)
{
    struct icmp6_filter filter;
    int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMPV6);

    if (fd < 0)
        return -errno;
    ICMP6_FILTER_SETBLOCKALL(&filter);
    ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter);
    (void)setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof(filter));
    return fd;
}

int ping_monitor_open(struct ping_monitor *p, const char *interface, nsec_t period, uint64_t cookie,
    ping_monitor_fn on_change, void *ctx, struct err *e)
{
    int fd = open_v4();

    if (fd < 0)
        return err_set(e, fd, "no socket for pings: %s%s", strerror(-fd),
            fd == -EPERM || fd == -EACCES ? "; it takes root, or CAP_NET_RAW" : "");
    p->fd[PING_MONITOR_V4] = fd;
    fd = open_v6();
    p->fd[PING_MONITOR_V6] = fd < 0 ? -1 : fd;
    (void)snprintf(p->interface, sizeof(p->interface), "%s", interface);
    p->id = (uint16_t)cookie;
    p->cookie = cookie;
    p->period = period;
    p->on_change = on_change;
    p->ctx = ctx;
    return 0;
}

void ping_monitor_close(struct ping_monitor *p)
{
    for (unsigned f = 0; f < PING_MONITOR_FAMILY_N; f++)
        closep(&p->fd[f]);
    free(p->members);
    *p = (struct ping_monitor)PING_MONITOR_NULL;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct ping_monitor_member *)a)->name,
        ((const struct ping_monitor_member *)b)->name);
}

void ping_monitor_set(struct ping_monitor *p, struct ping_monitor_member *members, size_t n)
{
    for (size_t i = 0; i < n && p->n > 0; i++) {
        const struct ping_monitor_member *was =
            bsearch(&members[i], p->members, p->n, sizeof(*members), compare);

        for (unsigned f = 0; was && f < PING_MONITOR_FAMILY_N; f++)
            if (ip_addr_equal(&was->address[f], &members[i].address[f]))
                members[i].reach[f] = was->reach[f];
    }
    free(p->members);
    p->members = members;
    p->n = n;
    if (p->cursor > n)
        p->cursor = n;
}

/* Binds the sockets to the interface again when it was deleted and created again, which changes its
 * index. ifindex is 0 while there is no interface, or binding to it has failed. */
static void follow_interface(struct ping_monitor *p)
{
    unsigned ifindex = if_nametoindex(p->interface);

    if (ifindex == p->ifindex)
        return;
    p->ifindex = ifindex;
    for (unsigned f = 0; ifindex != 0 && f < PING_MONITOR_FAMILY_N; f++)
        if (p->fd[f] >= 0 && dial_bind_device(p->fd[f], p->interface) < 0)
            p->ifindex = 0;
}

static void ping(struct ping_monitor *p, size_t index, enum ping_monitor_family family, nsec_t now)
{
    struct ping_monitor_member *m = &p->members[index];
    struct reachability *reach = &m->reach[family];
    struct endpoint to = {.addr = m->address[family]};
    struct echo echo = {.id = p->id, .index = (uint32_t)index, .cookie = p->cookie};
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, &to);
    uint8_t out[ECHO_LEN];

    if (reachability_judge(reach, now))
        p->on_change(p->ctx, m, family, now);
    echo.seq = reachability_on_ping(reach, now);
    echo_encode(&echo, family == PING_MONITOR_V4, out);
    /* The ping must not leave by another interface, so without this one it is not sent. A ping that
     * was not sent counts like a lost one. */
    if (p->ifindex != 0)
        (void)sendto(p->fd[family], out, sizeof(out), MSG_DONTWAIT, &sa.any, len);
}

nsec_t ping_monitor_period(const struct ping_monitor *p)
{
    return nsec_max(p->period, (nsec_t)p->n * p->pace);
}

static nsec_t due_of(const struct ping_monitor *p, size_t index)
{
    return p->round_since + (nsec_t)((double)ping_monitor_period(p) * (double)index / (double)p->n);
}

nsec_t ping_monitor_due(const struct ping_monitor *p)
{
    return p->n > 0 ? due_of(p, p->cursor) : NSEC_NEVER;
}

bool ping_monitor_run(struct ping_monitor *p, nsec_t now)
{
    bool begins =
        p->n > 0 && (p->round_since == 0 || (p->cursor == p->n && due_of(p, p->n) <= now));

    if (begins) {
        /* After a suspend of the machine the rounds that it missed are left out. */
        p->round_since = now - p->round_since < 2 * ping_monitor_period(p)
                             ? p->round_since + ping_monitor_period(p)
                             : now;
        p->cursor = 0;
        follow_interface(p);
    }
    for (; p->cursor < p->n && due_of(p, p->cursor) <= now; p->cursor++)
        for (unsigned f = 0; f < PING_MONITOR_FAMILY_N; f++)
            if (p->fd[f] >= 0)
                ping(p, p->cursor, (enum ping_monitor_family)f, now);
    return begins;
}

static bool is_ours(const struct ping_monitor *p, const struct echo *echo,
    enum ping_monitor_family family, const struct ip_addr *from)
{
    return echo->id == p->id && echo->cookie == p->cookie && echo->index < p->n &&
           ip_addr_equal(&p->members[echo->index].address[family], from);
}

void ping_monitor_take(struct ping_monitor *p, enum ping_monitor_family family, nsec_t now)
{
    for (unsigned i = 0; i < ANSWERS_A_TURN; i++) {
        uint8_t buf[ANSWER_ROOM];
        union sockaddr_inet sa;
        socklen_t sa_len = sizeof(sa);
        struct endpoint from;
        struct echo echo;
        ssize_t n = recvfrom(p->fd[family], buf, sizeof(buf), MSG_DONTWAIT, &sa.any, &sa_len);
        /* A raw IPv4 socket puts the IP header before the message; a raw IPv6 socket does not. */
        size_t off = family == PING_MONITOR_V4 && n > 0 ? (buf[0] & 0x0fu) * 4u : 0;

        if (n < 0)
            return;
        if ((size_t)n < off || !sockaddr_to_endpoint(&sa, &from) ||
            !echo_decode(&echo, family == PING_MONITOR_V4, buf + off, (size_t)n - off) ||
            !is_ours(p, &echo, family, &from.addr))
            continue;
        if (reachability_on_answer(&p->members[echo.index].reach[family], echo.seq, now))
            p->on_change(p->ctx, &p->members[echo.index], family, now);
    }
}
