/*
 * link_watch.h - what happens to this machine's interfaces: to one, or to any.
 */
#pragma once

#include <stdbool.h>

/*
 * What happens to one network interface: up, down, MTU, gone.
 *
 * The interface is also watched after it was moved to another network namespace.
 * The socket stays in our namespace and hears of all namespaces that have a number
 * in ours. A socket in the other namespace would keep that namespace, and so the
 * interface, alive.
 */

/** The interface as last heard of. */
struct link_state {
    int nsid;         /* number of its namespace in ours; LINK_WATCH_HERE: our own */
    unsigned ifindex; /* its number there; 0: it has left that namespace, or was deleted */
    unsigned mtu;     /* bytes */
    bool up;          /* administratively (IFF_UP) */
    char name[16];    /* now; it may be renamed */
};

#define LINK_WATCH_HERE (-1)

struct link_watch {
    int fd;          /* owns: netlink socket, readable when there is news; -1 closed */
    bool hears_all;  /* it hears of other namespaces, too; needs CAP_NET_BROADCAST */
    char adopts[16]; /* when no interface is watched, one that appears here so is; "": none */
    struct link_state state; /* updated by link_watch_read() */
};

#define LINK_WATCH_NULL {.fd = -1}

/** link_watch_open() - a watch for nothing yet. 0 or negative errno. */
int link_watch_open(struct link_watch *ret);

/**
 * link_watch_find() - from now on watch @name, wherever it is
 * @netns_fd:	the namespace that it is in; borrowed; negative: our own
 *
 * The state is filled at once. Return: 0; -ENODEV when there is no such
 * interface; -EPERM when it is elsewhere and we may not hear of that.
 */
int link_watch_find(struct link_watch *w, const char *name, int netns_fd);

/** link_watch_read() - take the news without waiting. True if @w->state changed. */
bool link_watch_read(struct link_watch *w);

/*
 * Has anything changed in this machine's network?
 *
 * Watches links, addresses, routes and routing rules of all interfaces. It does not say what has
 * changed; the caller reads the state again with rtnl.h.
 */

/** net_watch_open() - a descriptor that is readable when there is news, or negative errno. */
int net_watch_open(void);

/** net_watch_read() - take the news without waiting. True if there was any. */
bool net_watch_read(int fd);
