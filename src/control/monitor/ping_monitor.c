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

#include "os/fd_cleanup.h"
#include "base/err.h"
#include "measure/dial.h"
#include "net/sockaddr.h"
#include "wire/echo.h"
#include "wire/ip.h"

/* Answers that are taken in one turn, so that the pings go out in time. */
#define ANSWERS_A_TURN 256

/* An answer with an IPv4 header of any length; what is longer is cut, and not looked at. */
#define ANSWER_ROOM (60 + ECHO_LEN)

static int open_v4(void)
{
    struct icmp_filter filter = {.data = ~(1u << ICMP_ECHOREPLY)};
    int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMP);

    if (fd < 0)
        return -errno;
    /* Without it answers to others are read, and left at once. */
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

int lookout_open(struct lookout *l, const char *interface, nsec_t period, uint64_t cookie,
    lookout_fn on_change, void *ctx, struct err *e)
{
    int fd = open_v4();

    if (fd < 0)
        return err_set(e, fd, "no socket for pings: %s%s", strerror(-fd),
            fd == -EPERM || fd == -EACCES ? "; it takes root, or CAP_NET_RAW" : "");
    l->fd[LOOKOUT_V4] = fd;
    fd = open_v6();
    l->fd[LOOKOUT_V6] = fd < 0 ? -1 : fd;
    (void)snprintf(l->interface, sizeof(l->interface), "%s", interface);
    l->id = (uint16_t)cookie;
    l->cookie = cookie;
    l->period = period;
    l->on_change = on_change;
    l->ctx = ctx;
    return 0;
}

void lookout_close(struct lookout *l)
{
    for (unsigned f = 0; f < LOOKOUT_FAMILY_N; f++)
        closep(&l->fd[f]);
    free(l->members);
    *l = (struct lookout)LOOKOUT_NULL;
}

static int compare(const void *a, const void *b)
{
    return strcmp(
        ((const struct lookout_member *)a)->name, ((const struct lookout_member *)b)->name);
}

void lookout_set(struct lookout *l, struct lookout_member *members, size_t n)
{
    for (size_t i = 0; i < n && l->n > 0; i++) {
        const struct lookout_member *was =
            bsearch(&members[i], l->members, l->n, sizeof(*members), compare);

        for (unsigned f = 0; was && f < LOOKOUT_FAMILY_N; f++)
            if (ip_addr_equal(&was->address[f], &members[i].address[f]))
                members[i].edge[f] = was->edge[f];
    }
    free(l->members);
    l->members = members;
    l->n = n;
    if (l->cursor > n)
        l->cursor = n;
}

/* The sockets stay with the interface also when it is made anew. */
static void follow_interface(struct lookout *l)
{
    unsigned ifindex = if_nametoindex(l->interface);

    if (ifindex == l->ifindex)
        return;
    l->ifindex = ifindex;
    for (unsigned f = 0; ifindex != 0 && f < LOOKOUT_FAMILY_N; f++)
        if (l->fd[f] >= 0 && dial_bind_device(l->fd[f], l->interface) < 0)
            l->ifindex = 0;
}

static void ping(struct lookout *l, size_t index, enum lookout_family family, nsec_t now)
{
    struct lookout_member *m = &l->members[index];
    struct edge *edge = &m->edge[family];
    struct endpoint to = {.addr = m->address[family]};
    struct echo echo = {.id = l->id, .index = (uint32_t)index, .cookie = l->cookie};
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, &to);
    uint8_t out[ECHO_LEN];

    if (edge_judge(edge, now))
        l->on_change(l->ctx, m, family, now);
    echo.seq = edge_on_ping(edge, now);
    echo_encode(&echo, family == LOOKOUT_V4, out);
    /* A ping must not leave by another way; what cannot be sent is as good as lost. */
    if (l->ifindex != 0)
        (void)sendto(l->fd[family], out, sizeof(out), MSG_DONTWAIT, &sa.any, len);
}

static nsec_t due_of(const struct lookout *l, size_t index)
{
    return l->round + (nsec_t)((double)l->period * (double)index / (double)l->n);
}

nsec_t lookout_due(const struct lookout *l)
{
    return l->n > 0 ? due_of(l, l->cursor) : NSEC_NEVER;
}

bool lookout_run(struct lookout *l, nsec_t now)
{
    bool begins = l->n > 0 && (l->round == 0 || (l->cursor == l->n && due_of(l, l->n) <= now));

    if (begins) {
        /* A machine that slept does not catch up. */
        l->round = now - l->round < 2 * l->period ? l->round + l->period : now;
        l->cursor = 0;
        follow_interface(l);
    }
    for (; l->cursor < l->n && due_of(l, l->cursor) <= now; l->cursor++)
        for (unsigned f = 0; f < LOOKOUT_FAMILY_N; f++)
            if (l->fd[f] >= 0)
                ping(l, l->cursor, (enum lookout_family)f, now);
    return begins;
}

static bool is_ours(const struct lookout *l, const struct echo *echo, enum lookout_family family,
    const struct ip_addr *from)
{
    return echo->id == l->id && echo->cookie == l->cookie && echo->index < l->n &&
           ip_addr_equal(&l->members[echo->index].address[family], from);
}

void lookout_take(struct lookout *l, enum lookout_family family, nsec_t now)
{
    for (unsigned i = 0; i < ANSWERS_A_TURN; i++) {
        uint8_t buf[ANSWER_ROOM];
        union sockaddr_inet sa;
        socklen_t sa_len = sizeof(sa);
        struct endpoint from;
        struct echo echo;
        ssize_t n = recvfrom(l->fd[family], buf, sizeof(buf), MSG_DONTWAIT, &sa.any, &sa_len);
        /* A raw socket of IPv4 gives the header, too. */
        size_t off = family == LOOKOUT_V4 && n > 0 ? (buf[0] & 0x0fu) * 4u : 0;

        if (n < 0)
            return;
        if ((size_t)n < off || !sockaddr_to_endpoint(&sa, &from) ||
            !echo_decode(&echo, family == LOOKOUT_V4, buf + off, (size_t)n - off) ||
            !is_ours(l, &echo, family, &from.addr))
            continue;
        if (edge_on_answer(&l->members[echo.index].edge[family], echo.seq, now))
            l->on_change(l->ctx, &l->members[echo.index], family, now);
    }
}
