/*
 * link_watch.h - what happens to one network interface: up, down, MTU, gone.
 *
 * Follows the interface into another network namespace: the socket is opened
 * in the namespace where the interface is, by a thread that visits it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** The interface as last heard of. */
struct link_state {
    unsigned ifindex; /* its number; 0 when it is not in the watched namespace any more */
    unsigned mtu;     /* bytes */
    bool up;          /* administratively (IFF_UP) */
};

struct link_watch {
    int fd;                  /* owns: netlink socket, readable when there is news; -1 closed */
    char name[16];           /* the interface's; follows renames */
    struct link_state state; /* updated by link_watch_read() */
};

#define LINK_WATCH_NULL                                                                            \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/**
 * link_watch_open() - watch @name
 * @netns_fd:	the namespace that it is in; -1: the caller's own
 *
 * The state is filled at once. Return: 0, -ENODEV if there is no such
 * interface, or negative errno.
 */
int link_watch_open(struct link_watch *ret, const char *name, int netns_fd);

/** link_watch_close() - idempotent. */
void link_watch_close(struct link_watch *w);

/** link_watch_read() - take the news without waiting. True if @w->state changed. */
bool link_watch_read(struct link_watch *w);
