/*
 * tcp.h - TCP: sockets, which connections move data, and how each goes, as the kernel counts it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "net/netlink/netlink.h"

/*
 * TCP sockets: bound, on an address or on one interface only; and what has come by a
 * connection, as the kernel counts it.
 */

/**
 * tcp_listener_open() - a bound socket that does not listen yet
 * @ret_fd:	gives it; non-blocking, close-on-exec
 * @at:		address none: all of them, v4 and v6; port 0: the kernel chooses
 * @interface:	an overlay's: only what comes in there is heard, and what is sent is marked as
 *		control traffic (tcp_mark_control()); NULL: anything
 * @is_shared:	others that say so too may have the same port
 *
 * Return: 0 or negative errno with words that name the address (-EAFNOSUPPORT: no IPv6 here).
 */
int tcp_listener_open(
    int *ret_fd, const struct endpoint *at, const char *interface, bool is_shared, struct err *e);

/**
 * tcp_mark_control() - have what is sent by @fd, and by connections that it accepts, carry DSCP CS6
 *
 * That is the class that goes first where an interface has a rate (net/tun/tun.h). Where it cannot
 * be set the packets go as all others.
 */
void tcp_mark_control(int fd);

/**
 * What has come by a connection. Segments that repeat what came already are counted, too: when they
 * come and nothing new does, the other end does not hear our acknowledgements.
 */
struct tcp_traffic {
    uint64_t bytes;    /* new ones */
    uint32_t segments; /* with data, repeated ones as well; wraps */
    nsec_t silent_for; /* since the other end's last segment, acknowledgements as well; to a ms */
};

/** tcp_traffic_read() - false, and @ret untouched, when @fd is no TCP connection. */
bool tcp_traffic_read(int fd, struct tcp_traffic *ret);

/** tcp_is_answered() - is all that was sent acknowledged, or did an acknowledgement come within
 * @within? True also if @fd is no TCP connection. */
bool tcp_is_answered(int fd, nsec_t within);

/*
 * Which TCP connections of this network namespace move data, as the kernel counts it.
 *
 * Theory of operation. sock_diag(7) lists the connections that there are, with the bytes that each
 * has moved; and it tells of each one that is destroyed, with its last counts. So what has come and
 * gone between two looks is seen, too, as long as the socket for news takes all of it. Connections
 * that were there at the start are none of those that are looked for, and are passed over. What
 * moves nothing but its handshake and its end, as a port that is only tried, is not told.
 *
 * No privilege is needed. Other namespaces, such as that of a container, are not seen.
 *
 * Threads: one at a time. No function waits.
 */

/** A watch. Not watched: all zero but updates_fd, which is -1. */
struct tcp_watch {
    struct netlink nl; /* owns; for lists */
    int updates_fd;    /* owns; readable when there is news; -1: it is not open */
    uint64_t *before;  /* owns; the kernel's numbers of the connections that were there, sorted */
    size_t n_before;
    size_t cap_before;
    bool has_missed; /* the kernel had more to tell than could be taken: something may be unseen */
};

#define TCP_WATCH_NULL                                                                             \
    {                                                                                              \
        .updates_fd = -1                                                                           \
    }

/** A connection that has moved data. */
struct tcp_watch_pair {
    struct endpoint local;
    struct endpoint remote;
};

/** tcp_watch_fn - takes a connection that has moved data; one may be told again and again. */
typedef void (*tcp_watch_fn)(void *ctx, const struct tcp_watch_pair *pair);

/** tcp_watch_open() - begin. @ret: untouched on failure. 0; or negative errno: it is not told here.
 */
int tcp_watch_open(struct tcp_watch *ret);

/** tcp_watch_close() - idempotent. */
void tcp_watch_close(struct tcp_watch *w);

/** tcp_watch_hear() - the connections that were destroyed since the last call. */
void tcp_watch_hear(struct tcp_watch *w, tcp_watch_fn fn, void *ctx);

/** tcp_watch_list() - the connections that there are. */
void tcp_watch_list(struct tcp_watch *w, tcp_watch_fn fn, void *ctx);

/* ---- how each connection goes ---------------------------------------------------------------- */

/** A connection and its counts, which only grow but for the last three. */
struct tcp_flow {
    uint64_t cookie; /* the kernel's number of it, which no other one gets */
    uint32_t inode;  /* of its socket, as in /proc/PID/fd; 0: nobody has accepted it yet */
    struct endpoint local;
    struct endpoint remote;
    uint64_t acked;     /* bytes that the other end has acknowledged */
    uint64_t received;  /* bytes that have come */
    uint64_t busy_us;   /* while something was on its way, or waited for it */
    uint64_t window_us; /* of these, while the other end's window was full */
    uint32_t segments;  /* with data, that were sent; wraps */
    uint32_t repeated;  /* segments that were sent again; wraps */
    uint32_t queued;    /* bytes that are not acknowledged */
    uint32_t unread;    /* bytes that the program has not read */
};

/** tcp_flow_fn - takes one. Return: 0; or negative errno, which ends the list. */
typedef int (*tcp_flow_fn)(void *ctx, const struct tcp_flow *flow);

/**
 * tcp_flows_list() - the connections of this network namespace that have that local address
 * @nl:	of NETLINK_SOCK_DIAG
 *
 * The kernel passes over all others, so this takes no longer where there are many. An older kernel
 * counts less, and then the field is 0.
 *
 * Return: 0; what @fn returned; or negative errno. Where connections come and go meanwhile, one may
 * be told twice.
 */
int tcp_flows_list(struct netlink *nl, const struct ip_addr *local, tcp_flow_fn fn, void *ctx);

/** tcp_flow_decode() - from one message of the kernel's. False: it is no connection with counts. */
bool tcp_flow_decode(const struct nlmsghdr *nlh, struct tcp_flow *ret);
