/* link_watch.c - see link_watch.h. */
#include "net/netlink/link_watch.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/net_namespace.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "net/netlink/netlink.h"
#include "os/file.h"

/* What a request was answered with. */
struct answer {
    int error; /* negative errno */
    int nsid;  /* from RTM_NEWNSID; LINK_WATCH_HERE: none */
};

/* What the kernel tells of those groups, without being asked. */
static int open_groups(uint32_t groups)
{
    struct sockaddr_nl sa = {.nl_family = AF_NETLINK, .nl_groups = groups};
    _cleanup_(closep) int fd =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

int link_watch_open(struct link_watch *ret)
{
    int fd = open_groups(RTMGRP_LINK);
    int on = 1;

    if (fd < 0)
        return fd;
    *ret = (struct link_watch){.fd = fd, .state.nsid = LINK_WATCH_HERE};
    ret->hears_all = setsockopt(fd, SOL_NETLINK, NETLINK_LISTEN_ALL_NSID, &on, sizeof(on)) == 0;
    return 0;
}

/* ---- what comes in ---- */

/** What a link message tells. */
struct link_message {
    unsigned ifindex;
    bool up;
    unsigned mtu;     /* 0: not told */
    const char *name; /* borrows: the message's; "": not told */
};

static bool read_message(const struct nlmsghdr *nlh, struct link_message *ret)
{
    const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attr;

    if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN + sizeof(*ifi))
        return false;
    *ret = (struct link_message){
        .ifindex = (unsigned)ifi->ifi_index, .up = ifi->ifi_flags & IFF_UP, .name = ""};
    mnl_attr_for_each(attr, nlh, sizeof(*ifi)) {
        uint16_t type = mnl_attr_get_type(attr);

        if (type == IFLA_MTU && mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
            ret->mtu = mnl_attr_get_u32(attr);
        else if (type == IFLA_IFNAME && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
            ret->name = mnl_attr_get_str(attr);
    }
    return true;
}

/* @is_found: it answers the request for the interface to watch. */
static void take_link(struct link_watch *w, const struct nlmsghdr *nlh, int nsid, bool is_found)
{
    bool is_gone = nlh->nlmsg_type == RTM_DELLINK;
    struct link_message message;
    bool is_ours;

    if (!read_message(nlh, &message))
        return;
    is_ours = w->state.ifindex
                  ? nsid == w->state.nsid && message.ifindex == w->state.ifindex
                  : w->adopts[0] && nsid == LINK_WATCH_HERE && strcmp(message.name, w->adopts) == 0;
    if (is_ours && is_gone)
        w->state.ifindex = 0;
    if (is_gone || (!is_ours && !is_found))
        return;
    w->state.nsid = nsid;
    w->state.ifindex = message.ifindex;
    w->state.up = message.up;
    if (message.mtu)
        w->state.mtu = message.mtu;
    if (message.name[0])
        (void)snprintf(w->state.name, sizeof(w->state.name), "%s", message.name);
}

static void take_nsid(const struct nlmsghdr *nlh, struct answer *answer)
{
    const struct nlattr *attr;

    mnl_attr_for_each(attr, nlh, sizeof(struct rtgenmsg)) {
        if (mnl_attr_get_type(attr) == NETNSA_NSID && mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
            answer->nsid = (int)mnl_attr_get_u32(attr);
    }
}

static int sender_nsid(struct msghdr *mh)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
        int nsid;

        if (c->cmsg_level != SOL_NETLINK || c->cmsg_type != NETLINK_LISTEN_ALL_NSID)
            continue;
        memcpy(&nsid, CMSG_DATA(c), sizeof(nsid));
        return nsid;
    }
    return LINK_WATCH_HERE;
}

/* One receive call. @seq: of the request whose answer is waited for, 0: none; @nsid: it was about
 * that namespace. Return: 0 or negative errno, -EAGAIN when nothing waits. */
static int read_once(struct link_watch *w, uint32_t seq, int nsid, struct answer *answer)
{
    _Alignas(struct nlmsghdr) char buf[16384];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct iovec iov = {buf, sizeof(buf)};
    struct msghdr mh = {.msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control)};
    const struct nlmsghdr *nlh = (const struct nlmsghdr *)buf;
    ssize_t n = recvmsg(w->fd, &mh, 0);
    int left = (int)n;

    if (n < 0)
        return -errno;
    for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
        bool is_answer = seq != 0 && nlh->nlmsg_seq == seq;

        if (nlh->nlmsg_type == NLMSG_ERROR && is_answer)
            answer->error = ((const struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->error;
        else if (nlh->nlmsg_type == RTM_NEWNSID && is_answer)
            take_nsid(nlh, answer);
        else if (nlh->nlmsg_type == RTM_NEWLINK || nlh->nlmsg_type == RTM_DELLINK)
            take_link(w, nlh, is_answer ? nsid : sender_nsid(&mh), is_answer);
    }
    return 0;
}

/* ---- requests; the kernel answers one before send() returns ---- */

/* A sequence number of our own: notices that other processes' requests caused may carry theirs. */
#define REQUEST_SEQ 0x77656674

static int ask(struct link_watch *w, struct nlmsghdr *nlh, int nsid, struct answer *answer)
{
    int r;

    *answer = (struct answer){.nsid = LINK_WATCH_HERE};
    nlh->nlmsg_flags |= NLM_F_REQUEST;
    nlh->nlmsg_seq = REQUEST_SEQ;
    if (send(w->fd, nlh, nlh->nlmsg_len, 0) < 0)
        return -errno;
    do
        r = read_once(w, REQUEST_SEQ, nsid, answer);
    while (r == 0 || r == -EINTR || r == -ENOBUFS);
    return r == -EAGAIN ? answer->error : r;
}

static int ask_link(struct link_watch *w, const char *name, int nsid)
{
    struct netlink_message rq;
    struct ifinfomsg *ifi = netlink_start(&rq, RTM_GETLINK, 0, sizeof(*ifi));
    struct answer answer;

    /* Asked for by its number if that is known, because its name may have changed. */
    if (name)
        mnl_attr_put_strz(rq.nlh, IFLA_IFNAME, name);
    else
        ifi->ifi_index = (int)w->state.ifindex;
    if (nsid != LINK_WATCH_HERE)
        mnl_attr_put_u32(rq.nlh, IFLA_TARGET_NETNSID, (uint32_t)nsid);
    return ask(w, rq.nlh, nsid, &answer);
}

/* The number of a namespace in ours; it is given one if it has none. */
static int ask_nsid(struct link_watch *w, int netns_fd, uint16_t type, int *ret)
{
    struct netlink_message rq;
    struct answer answer;
    int r;

    (void)netlink_start(&rq, type, 0, sizeof(struct rtgenmsg));
    mnl_attr_put_u32(rq.nlh, NETNSA_FD, (uint32_t)netns_fd);
    if (type == RTM_NEWNSID)
        mnl_attr_put_u32(rq.nlh, NETNSA_NSID, (uint32_t)LINK_WATCH_HERE);
    r = ask(w, rq.nlh, LINK_WATCH_HERE, &answer);
    if (r == 0)
        *ret = answer.nsid;
    return r;
}

static bool is_own_netns(int netns_fd)
{
    struct stat a, b;

    return fstat(netns_fd, &a) == 0 && stat("/proc/thread-self/ns/net", &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int find_nsid(struct link_watch *w, int netns_fd, int *ret)
{
    int r;

    *ret = LINK_WATCH_HERE;
    if (netns_fd < 0 || is_own_netns(netns_fd))
        return 0;
    if (!w->hears_all)
        return -EPERM;
    r = ask_nsid(w, netns_fd, RTM_GETNSID, ret);
    if (r == 0 && *ret == LINK_WATCH_HERE) {
        int ignored;

        (void)ask_nsid(w, netns_fd, RTM_NEWNSID, &ignored);
        r = ask_nsid(w, netns_fd, RTM_GETNSID, ret);
    }
    return r == 0 && *ret == LINK_WATCH_HERE ? -EPERM : r;
}

int link_watch_find(struct link_watch *w, const char *name, int netns_fd)
{
    int nsid;
    int r = find_nsid(w, netns_fd, &nsid);

    w->state.ifindex = 0;
    if (r == 0)
        r = ask_link(w, name, nsid);
    return r == 0 && w->state.ifindex == 0 ? -ENODEV : r;
}

bool link_watch_read(struct link_watch *w)
{
    struct link_state old = w->state;
    struct answer ignored;
    int r;

    do {
        r = read_once(w, 0, LINK_WATCH_HERE, &ignored);
        /* The kernel dropped messages: ask for the present state instead. */
        if (r == -ENOBUFS && w->state.ifindex != 0 && ask_link(w, NULL, w->state.nsid) == -ENODEV)
            w->state.ifindex = 0;
    } while (r == 0 || r == -EINTR || r == -ENOBUFS);
    return old.nsid != w->state.nsid || old.ifindex != w->state.ifindex ||
           old.mtu != w->state.mtu || old.up != w->state.up || strcmp(old.name, w->state.name) != 0;
}

/* ---- any interface ---- */

int net_watch_open(void)
{
    return open_groups(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
                       RTMGRP_IPV6_ROUTE | RTMGRP_IPV4_RULE | 1 << (RTNLGRP_IPV6_RULE - 1));
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
