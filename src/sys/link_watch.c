/* link_watch.c - see link_watch.h. */
#include "sys/link_watch.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/thread.h"

struct visit {
    int netns_fd; /* -1: stay */
    int ret;      /* a netlink socket of that namespace, or negative errno */
};

static int open_socket(void)
{
    struct sockaddr_nl sa = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    _cleanup_(closep) int fd =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* A thread's namespace is its own, so it can go there and end there. */
static void *visit_netns(void *arg)
{
    struct visit *v = arg;

    v->ret = setns(v->netns_fd, CLONE_NEWNET) < 0 ? -errno : open_socket();
    return NULL;
}

static int open_socket_in(int netns_fd)
{
    struct visit v = {.netns_fd = netns_fd};
    pthread_t t;
    int r;

    if (netns_fd < 0)
        return open_socket();
    r = thread_start(&t, "netns-visit", -1, visit_netns, &v);
    if (r < 0)
        return r;
    (void)pthread_join(t, NULL);
    return v.ret;
}

static int request_link(int fd, const char *name)
{
    char buf[256];
    struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
    struct ifinfomsg *ifi;

    nlh->nlmsg_type = RTM_GETLINK;
    nlh->nlmsg_flags = NLM_F_REQUEST;
    ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
    ifi->ifi_family = AF_UNSPEC;
    mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
    return send(fd, nlh, nlh->nlmsg_len, 0) < 0 ? -errno : 0;
}

/* Name and MTU from the attributes of a link message. */
static void read_attributes(const struct nlmsghdr *nlh, const char **name, unsigned *mtu)
{
    const struct nlattr *attr;

    mnl_attr_for_each(attr, nlh, sizeof(struct ifinfomsg)) {
        if (mnl_attr_get_type(attr) == IFLA_IFNAME &&
            mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
            *name = mnl_attr_get_str(attr);
        else if (mnl_attr_get_type(attr) == IFLA_MTU && mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
            *mtu = mnl_attr_get_u32(attr);
    }
}

static void take_message(struct link_watch *w, const struct nlmsghdr *nlh)
{
    const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
    unsigned mtu = w->state.mtu;
    const char *name = "";

    if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN + sizeof(*ifi))
        return;
    read_attributes(nlh, &name, &mtu);
    if (w->state.ifindex ? (unsigned)ifi->ifi_index != w->state.ifindex
                         : strcmp(name, w->name) != 0)
        return;
    if (nlh->nlmsg_type == RTM_DELLINK) {
        w->state = (struct link_state){.mtu = mtu};
        return;
    }
    w->state.ifindex = (unsigned)ifi->ifi_index;
    w->state.mtu = mtu;
    w->state.up = ifi->ifi_flags & IFF_UP;
    if (name[0] != '\0')
        (void)snprintf(w->name, sizeof(w->name), "%s", name);
}

/* -EAGAIN when nothing waits; -ENODEV when a request was answered so. */
static int read_once(struct link_watch *w)
{
    _Alignas(struct nlmsghdr) char buf[16384];
    ssize_t n = recv(w->fd, buf, sizeof(buf), 0);
    const struct nlmsghdr *nlh = (const struct nlmsghdr *)buf;
    int left = (int)n;

    if (n < 0)
        return -errno;
    for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
        if (nlh->nlmsg_type == RTM_NEWLINK || nlh->nlmsg_type == RTM_DELLINK)
            take_message(w, nlh);
        else if (nlh->nlmsg_type == NLMSG_ERROR)
            return -ENODEV;
    }
    return 0;
}

bool link_watch_read(struct link_watch *w)
{
    struct link_state old = w->state;
    int r;

    do {
        r = read_once(w);
        /* The kernel dropped messages: ask for the present state instead. */
        if (r == -ENOBUFS)
            r = request_link(w->fd, w->name);
        if (r == -ENODEV)
            w->state.ifindex = 0;
    } while (r == 0 || r == -EINTR || r == -ENODEV);
    return old.ifindex != w->state.ifindex || old.mtu != w->state.mtu || old.up != w->state.up;
}

int link_watch_open(struct link_watch *ret, const char *name, int netns_fd)
{
    struct link_watch w = LINK_WATCH_NULL;
    int r;

    (void)snprintf(w.name, sizeof(w.name), "%s", name);
    w.fd = open_socket_in(netns_fd);
    if (w.fd < 0)
        return w.fd;
    r = request_link(w.fd, name);
    /* The kernel answers a request before send() returns. */
    if (r == 0)
        (void)link_watch_read(&w);
    if (r == 0 && w.state.ifindex == 0)
        r = -ENODEV;
    if (r < 0) {
        link_watch_close(&w);
        return r;
    }
    *ret = w;
    return 0;
}

void link_watch_close(struct link_watch *w)
{
    if (w->fd >= 0)
        (void)close(w->fd);
    w->fd = -1;
}
