/* tcp.c - see tcp.h. The kernel's tcp.h, since the C library's struct tcp_info is older. */
#include "net/socket/tcp.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/containers.h"
#include "base/err.h"
#include "net/address/sockaddr.h"
#include "net/socket/socket.h"
#include "os/file.h"

/* Bytes of the segments of connections to our listeners, in both directions: packets of 1200 bytes
 * over IPv6, which every path is taken to carry (path/pmtu.h). */
#define CONTROL_SEGMENT_MAX 1140

/* ---- sockets ---- */

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

int tcp_listener_open(
    int *ret_fd, const struct endpoint *at, const char *interface, bool is_shared, struct err *e)
{
    _cleanup_(closep) int fd = -1;
    union sockaddr_inet sa;
    const int most = CONTROL_SEGMENT_MAX;
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
    /* Whichever way a connection comes, over the overlay or beside it, and whatever that loses
     * without a word: what both ends send has the size of packets that pass everywhere. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &most, sizeof(most));
    if (interface) {
        tcp_mark_control(fd);
        r = keep_to(fd, interface, e);
    }
    if (r == 0 && is_shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) < 0)
        r = err_set(e, -errno, "a port cannot be shared: %s", strerror(errno));
    if (r == 0)
        r = bind_tcp(fd, at, e);
    /* At an interface whoever asks tries the next port, and needs no name. */
    if (r == -EADDRINUSE && !interface)
        r = port_taken(true, at->port, r, e);
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

bool tcp_is_answered(int fd, nsec_t within)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
           len < offsetof(struct tcp_info, tcpi_last_ack_recv) + sizeof(info.tcpi_last_ack_recv) ||
           info.tcpi_unacked == 0 || info.tcpi_last_ack_recv * NSEC_PER_MSEC <= within;
}

/* ---- which connections move data ---- */

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
#define UPDATES_SIZE (1 << 20)

/* A receive call brings one message of about 500 bytes. */
#define UPDATES_MAX 8192

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
    struct netlink_message message;
    struct inet_diag_req_v2 *rq =
        netlink_start(&message, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, sizeof(*rq));

    rq->sdiag_family = family;
    rq->sdiag_protocol = IPPROTO_TCP;
    rq->idiag_ext = 1u << (INET_DIAG_INFO - 1);
    rq->idiag_states = STATES;
    return netlink_request(nl, message.nlh, fn, ctx);
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
    uint64_t *before;

    if (!take_message(nlh, &c))
        return 0;
    before = sorted_open(w->before, w->n_before, sizeof(*before), w->n_before, &w->cap_before);
    if (!before)
        return -ENOMEM;
    w->before = before;
    before[w->n_before++] = c.cookie;
    return 0;
}

/* ---- news ----------------------------------------------------------------------------------- */

static int open_updates(int *ret)
{
    static const int groups[] = {SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY};
    const struct sockaddr_nl sa = {.nl_family = AF_NETLINK};
    _cleanup_(closep) int fd =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    int size = UPDATES_SIZE;

    if (fd < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
        return -errno;
    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
        if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i], sizeof(groups[i])) < 0)
            return -errno;
    /* Best effort. */
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    *ret = TAKE_FD(fd);
    return 0;
}

void tcp_watch_hear(struct tcp_watch *w, tcp_watch_fn fn, void *ctx)
{
    _Alignas(struct nlmsghdr) char buf[UPDATES_MAX];
    struct taker t = {w, fn, ctx};

    for (;;) {
        ssize_t n = recv(w->updates_fd, buf, sizeof(buf), 0);
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
        r = open_updates(&w.updates_fd);
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
    closep(&w->updates_fd);
    netlink_close(&w->nl);
    free(w->before);
    *w = (struct tcp_watch)TCP_WATCH_NULL;
}

/* ---- how each connection goes --------------------------------------------------------------- */

bool tcp_flow_decode(const struct nlmsghdr *nlh, struct tcp_flow *ret)
{
    const struct inet_diag_msg *m = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attrs[INET_DIAG_INFO + 1];
    const struct nlattr *info;
    struct tcp_info i = {0};
    struct counts c;

    if (!take_message(nlh, &c))
        return false;
    netlink_attributes(mnl_nlmsg_get_payload_offset(nlh, sizeof(*m)),
        mnl_nlmsg_get_payload_len(nlh) - MNL_ALIGN(sizeof(*m)), attrs, INET_DIAG_INFO + 1);
    info = attrs[INET_DIAG_INFO];
    if (!info)
        return false;
    /* How long it is differs from kernel to kernel. */
    memcpy(&i, mnl_attr_get_payload(info),
        mnl_attr_get_payload_len(info) < sizeof(i) ? mnl_attr_get_payload_len(info) : sizeof(i));
    *ret = (struct tcp_flow){.cookie = c.cookie,
        .inode = m->idiag_inode,
        .local = c.pair.local,
        .remote = c.pair.remote,
        .acked = i.tcpi_bytes_acked,
        .received = i.tcpi_bytes_received,
        .busy_us = i.tcpi_busy_time,
        .window_us = i.tcpi_rwnd_limited,
        .segments = i.tcpi_data_segs_out,
        .repeated = i.tcpi_total_retrans,
        .queued = m->idiag_wqueue,
        .unread = m->idiag_rqueue};
    return true;
}

/* Who is told. */
struct flow_taker {
    tcp_flow_fn fn;
    void *ctx;
};

static int tell_flow(const struct nlmsghdr *nlh, void *ctx)
{
    const struct flow_taker *t = ctx;
    struct tcp_flow flow;

    return tcp_flow_decode(nlh, &flow) ? t->fn(t->ctx, &flow) : 0;
}

/* The kernel's filter: one condition, behind which all is over. Where it does not hold, the next
 * step is one beyond the end, which means no. */
struct address_filter {
    struct inet_diag_bc_op op;
    uint8_t family; /* as in struct inet_diag_hostcond, which has no end */
    uint8_t prefix_len;
    int32_t port;
    uint8_t address[16];
};
_Static_assert(offsetof(struct address_filter, address) ==
                   sizeof(struct inet_diag_bc_op) + sizeof(struct inet_diag_hostcond),
    "it is as the kernel has it");

static size_t make_filter(struct address_filter *ret, const struct ip_addr *local)
{
    bool v4 = ip_addr_is_v4(local);
    size_t address_len = v4 ? 4 : 16;
    size_t len = offsetof(struct address_filter, address) + address_len;

    *ret = (struct address_filter){.op = {.code = INET_DIAG_BC_S_COND,
                                       .yes = (unsigned char)len,
                                       .no = (unsigned short)(len + sizeof(ret->op))},
        .family = v4 ? AF_INET : AF_INET6,
        .prefix_len = (uint8_t)(8 * address_len),
        .port = -1};
    memcpy(ret->address, local->b + (v4 ? 12 : 0), address_len);
    return len;
}

static int list_local(
    struct netlink *nl, uint8_t family, const struct ip_addr *local, struct flow_taker *t)
{
    struct netlink_message message;
    struct inet_diag_req_v2 *rq =
        netlink_start(&message, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, sizeof(*rq));
    struct address_filter filter;
    size_t len = make_filter(&filter, local);

    rq->sdiag_family = family;
    rq->sdiag_protocol = IPPROTO_TCP;
    rq->idiag_ext = 1u << (INET_DIAG_INFO - 1);
    rq->idiag_states = STATES;
    mnl_attr_put(message.nlh, INET_DIAG_REQ_BYTECODE, len, &filter);
    return netlink_request(nl, message.nlh, tell_flow, t);
}

int tcp_flows_list(struct netlink *nl, const struct ip_addr *local, tcp_flow_fn fn, void *ctx)
{
    struct flow_taker t = {fn, ctx};
    /* A socket of both families has an IPv4 connection among those of IPv6. */
    int r = list_local(nl, AF_INET6, local, &t);

    if ((r == 0 || r == -EINTR) && ip_addr_is_v4(local))
        r = list_local(nl, AF_INET, local, &t);
    return r == -EINTR ? 0 : r;
}
