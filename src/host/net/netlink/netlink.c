/* netlink.c - see netlink.h. */
#include "net/netlink/netlink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define ANSWER_TIMEOUT_SEC 5

int netlink_open(struct netlink *ret, int family)
{
    struct netlink nl = NETLINK_NULL;
    struct timeval timeout = {.tv_sec = ANSWER_TIMEOUT_SEC};
    int fd;
    int r = 0;

    nl.buf = malloc(NETLINK_MESSAGE_MAX);
    if (!nl.buf)
        return -ENOMEM;
    nl.socket = mnl_socket_open2(family, SOCK_CLOEXEC);
    if (!nl.socket || mnl_socket_bind(nl.socket, 0, MNL_SOCKET_AUTOPID) < 0)
        r = -errno;
    if (r == 0) {
        fd = mnl_socket_get_fd(nl.socket);
        if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
            r = -errno;
        nl.port_id = mnl_socket_get_portid(nl.socket);
    }
    if (r < 0) {
        netlink_close(&nl);
        return r;
    }
    *ret = nl;
    return 0;
}

void netlink_close(struct netlink *nl)
{
    if (nl->socket)
        (void)mnl_socket_close(nl->socket);
    free(nl->buf);
    *nl = (struct netlink)NETLINK_NULL;
}

void *netlink_start(struct netlink_message *ret, uint16_t type, uint16_t flags, size_t extra_len)
{
    ret->nlh = mnl_nlmsg_put_header(ret->buf);
    ret->nlh->nlmsg_type = type;
    ret->nlh->nlmsg_flags = NLM_F_REQUEST | flags;
    return mnl_nlmsg_put_extra_header(ret->nlh, extra_len);
}

struct answer {
    netlink_fn fn; /* as given by the caller */
    void *ctx;
    int result; /* of the first message that failed */
};

/* 1: more is to come; 0: done; or negative errno. */
static int take_message(const struct nlmsghdr *nlh, struct answer *a)
{
    const struct nlmsgerr *err = mnl_nlmsg_get_payload(nlh);
    int32_t error = 0;
    int r;

    if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
        a->result = -EINTR;
    switch (nlh->nlmsg_type) {
    case NLMSG_NOOP:
        return 1;
    case NLMSG_ERROR:
        /* 0 is an acknowledgement. */
        if (nlh->nlmsg_len < mnl_nlmsg_size(sizeof(*err)) || err->error > 0)
            return -EBADMSG;
        return err->error;
    case NLMSG_DONE:
        /* A dump that failed underway says so at its end. */
        if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(error))
            memcpy(&error, mnl_nlmsg_get_payload(nlh), sizeof(error));
        return error < 0 ? error : 0;
    case NLMSG_OVERRUN:
        return -ENOBUFS;
    default:
        break;
    }
    r = a->fn ? a->fn(nlh, a->ctx) : 0;
    if (r < 0 && a->result == 0)
        a->result = r;
    return 1;
}

/* As take_message(), for all that one receive brings. Not mnl_cb_run(): it says ESRCH both for a
 * stranger's message and for a route that is not there. */
static int read_answer(struct netlink *nl, struct answer *a)
{
    ssize_t n = mnl_socket_recvfrom(nl->socket, nl->buf, NETLINK_MESSAGE_MAX);
    const struct nlmsghdr *nlh = (const struct nlmsghdr *)nl->buf;
    int left = (int)n;
    int r = 1;

    if (n < 0)
        return errno == EAGAIN ? -ETIMEDOUT : -errno;
    for (; r > 0 && mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left))
        /* What is left of a request that timed out is skipped. */
        if (mnl_nlmsg_portid_ok(nlh, nl->port_id) && mnl_nlmsg_seq_ok(nlh, nl->seq))
            r = take_message(nlh, a);
    return r;
}

int netlink_request(struct netlink *nl, struct nlmsghdr *request, netlink_fn fn, void *ctx)
{
    struct answer a = {.fn = fn, .ctx = ctx};
    int r;

    request->nlmsg_seq = ++nl->seq;
    if (mnl_socket_sendto(nl->socket, request, request->nlmsg_len) < 0)
        return -errno;
    do {
        r = read_answer(nl, &a);
    } while (r > 0);
    return r < 0 ? r : a.result;
}

void netlink_attributes(const struct nlattr *attr, size_t len, const struct nlattr *ret[], size_t n)
{
    const char *end = (const char *)attr + len;

    memset(ret, 0, n * sizeof(*ret));
    for (; mnl_attr_ok(attr, (int)(end - (const char *)attr)); attr = mnl_attr_next(attr))
        if (mnl_attr_get_type(attr) < n)
            ret[mnl_attr_get_type(attr)] = attr;
}
