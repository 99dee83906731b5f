/* tcp_watch.c - see tcp_watch.h. */
#include "net/netlink/tcp_watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/fd_cleanup.h"

/* The kernel's states of a connection (include/net/tcp_states.h) that have counts: not those that
 * are being made, listen, or only wait for their end (TIME_WAIT). */
#define STATE_BIT(state) (1u << (state))
enum { ESTABLISHED = 1, FIN_WAIT1 = 4, FIN_WAIT2 = 5, CLOSE_WAIT = 8, LAST_ACK = 9, CLOSING = 11 };
#define STATES                                                                                     \
    (STATE_BIT(ESTABLISHED) | STATE_BIT(FIN_WAIT1) | STATE_BIT(FIN_WAIT2) |                        \
        STATE_BIT(CLOSE_WAIT) | STATE_BIT(LAST_ACK) | STATE_BIT(CLOSING))

/* The handshake counts as one byte that was acknowledged, and the end of each way as one more. */
#define SENT_WITHOUT_DATA     2
#define RECEIVED_WITHOUT_DATA 1

/* Room for what the kernel tells between two looks, bytes; half of it where that is the limit. */
#define NEWS_ROOM (1 << 20)

/* A receive call brings one message of about 500 bytes. */
#define NEWS_MAX 8192

/* ---- a message ------------------------------------------------------------------------------ */

struct counts {
    uint64_t cookie;
    struct tcp_watch_pair pair;
    bool has_data;
};

static struct ip_addr take_address(uint8_t family, const void *bytes)
{
    return family == AF_INET ? ip_addr_v4(bytes) : ip_addr_v6(bytes);
}

/* Are there counts, and do they say that data was moved? */
static bool has_data(const struct nlattr *info)
{
    struct tcp_info i = {0};

    /* Linux 4.1 is the first to count. */
    if (!info || mnl_attr_get_payload_len(info) <
                     offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(i.tcpi_bytes_received))
        return false;
    memcpy(&i, mnl_attr_get_payload(info),
        mnl_attr_get_payload_len(info) < sizeof(i) ? mnl_attr_get_payload_len(info) : sizeof(i));
    return i.tcpi_bytes_acked > SENT_WITHOUT_DATA || i.tcpi_bytes_received > RECEIVED_WITHOUT_DATA;
}

static bool take_message(const struct nlmsghdr *nlh, struct counts *ret)
{
    const struct inet_diag_msg *m = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attrs[INET_DIAG_INFO + 1];

    if (nlh->nlmsg_type != SOCK_DIAG_BY_FAMILY || nlh->nlmsg_len < mnl_nlmsg_size(sizeof(*m)) ||
        (m->idiag_family != AF_INET && m->idiag_family != AF_INET6))
        return false;
    netlink_attributes(mnl_nlmsg_get_payload_offset(nlh, sizeof(*m)),
        mnl_nlmsg_get_payload_len(nlh) - MNL_ALIGN(sizeof(*m)), attrs, INET_DIAG_INFO + 1);
    *ret = (struct counts){.has_data = has_data(attrs[INET_DIAG_INFO])};
    memcpy(&ret->cookie, m->id.idiag_cookie, sizeof(ret->cookie));
    ret->pair.local.addr = take_address(m->idiag_family, m->id.idiag_src);
    ret->pair.remote.addr = take_address(m->idiag_family, m->id.idiag_dst);
    ret->pair.local.port = ntohs(m->id.idiag_sport);
    ret->pair.remote.port = ntohs(m->id.idiag_dport);
    return true;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return (*x > *y) - (*x < *y);
}

/* Who is told. */
struct taker {
    struct tcp_watch *w;
    tcp_watch_fn fn;
    void *ctx;
};

static int tell(const struct nlmsghdr *nlh, void *ctx)
{
    const struct taker *t = ctx;
    struct counts c;

    if (take_message(nlh, &c) && c.has_data &&
        !bsearch(&c.cookie, t->w->before, t->w->n_before, sizeof(c.cookie), compare))
        t->fn(t->ctx, &c.pair);
    return 0;
}

/* ---- lists ---------------------------------------------------------------------------------- */

static int list(struct netlink *nl, uint8_t family, netlink_fn fn, void *ctx)
{
    _Alignas(struct nlmsghdr) char buf[256];
    struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
    struct inet_diag_req_v2 *rq;

    nlh->nlmsg_type = SOCK_DIAG_BY_FAMILY;
    nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    rq = mnl_nlmsg_put_extra_header(nlh, sizeof(*rq));
    rq->sdiag_family = family;
    rq->sdiag_protocol = IPPROTO_TCP;
    rq->idiag_ext = 1u << (INET_DIAG_INFO - 1);
    rq->idiag_states = STATES;
    return netlink_request(nl, nlh, fn, ctx);
}

/* A list that changed underneath has to be made anew, since it may lack some. */
static int list_both(struct netlink *nl, netlink_fn fn, void *ctx)
{
    static const uint8_t families[] = {AF_INET, AF_INET6};
    int r = 0;

    for (size_t i = 0; i < sizeof(families) && r == 0; i++)
        r = list(nl, families[i], fn, ctx);
    return r == -EINTR ? 0 : r;
}

void tcp_watch_list(struct tcp_watch *w, tcp_watch_fn fn, void *ctx)
{
    struct taker t = {w, fn, ctx};

    if (list_both(&w->nl, tell, &t) < 0)
        w->has_missed = true;
}

/* Keeps the numbers of the connections that there are. */
static int keep(const struct nlmsghdr *nlh, void *ctx)
{
    struct tcp_watch *w = ctx;
    struct counts c;

    if (!take_message(nlh, &c))
        return 0;
    if (w->n_before == w->cap_before) {
        size_t cap = w->cap_before ? 2 * w->cap_before : 64;
        uint64_t *more = reallocarray(w->before, cap, sizeof(*more));

        if (!more)
            return -ENOMEM;
        w->before = more;
        w->cap_before = cap;
    }
    w->before[w->n_before++] = c.cookie;
    return 0;
}

/* ---- news ----------------------------------------------------------------------------------- */

static int open_news(int *ret)
{
    static const int groups[] = {SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY};
    const struct sockaddr_nl sa = {.nl_family = AF_NETLINK};
    _cleanup_(closep) int fd =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    int room = NEWS_ROOM;

    if (fd < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
        return -errno;
    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
        if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i], sizeof(groups[i])) < 0)
            return -errno;
    /* Best effort. */
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    *ret = TAKE_FD(fd);
    return 0;
}

void tcp_watch_hear(struct tcp_watch *w, tcp_watch_fn fn, void *ctx)
{
    _Alignas(struct nlmsghdr) char buf[NEWS_MAX];
    struct taker t = {w, fn, ctx};

    for (;;) {
        ssize_t n = recv(w->news_fd, buf, sizeof(buf), 0);
        const struct nlmsghdr *nlh = (const struct nlmsghdr *)buf;
        int left = (int)n;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == ENOBUFS) {
            w->has_missed = true;
            continue;
        }
        if (n <= 0)
            return;
        for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left))
            (void)tell(nlh, &t);
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

int tcp_watch_open(struct tcp_watch *ret)
{
    struct tcp_watch w = TCP_WATCH_NULL;
    int r = netlink_open(&w.nl, NETLINK_SOCK_DIAG);

    /* One that ends just now is known before its end can be told; one that has begun meanwhile is
     * in the second list. */
    if (r == 0)
        r = list_both(&w.nl, keep, &w);
    if (r == 0)
        r = open_news(&w.news_fd);
    if (r == 0)
        r = list_both(&w.nl, keep, &w);
    if (r < 0) {
        tcp_watch_close(&w);
        return r;
    }
    if (w.n_before > 0)
        qsort(w.before, w.n_before, sizeof(*w.before), compare);
    *ret = w;
    return 0;
}

void tcp_watch_close(struct tcp_watch *w)
{
    if (w->news_fd >= 0)
        (void)close(w->news_fd);
    netlink_close(&w->nl);
    free(w->before);
    *w = (struct tcp_watch)TCP_WATCH_NULL;
}
