/*
 * ping_monitor.h - pings the members of a network through its interface, and keeps what is reached.
 *
 * Theory of operation. The pings are plain ICMP from raw sockets of this process, and each member's
 * kernel answers them. So an answer says that the tunnel carries packets, whatever the agents at
 * both ends think or do. A round pings each member once at each of its addresses, spread evenly
 * over the period. An answer carries the member's index and the cookie of this run, and counts only
 * when it comes from that member's address, which nobody else can have inside the tunnel.
 *
 * Threads: the caller's alone.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/parse.h"
#include "monitor/reachability.h"

struct err;

/** Index of a member's addresses, and of the sockets for them. */
enum ping_monitor_family { PING_MONITOR_V4, PING_MONITOR_V6, PING_MONITOR_FAMILY_N };

struct ping_monitor_member {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr address[PING_MONITOR_FAMILY_N]; /* on the overlay */
    struct reachability reach[PING_MONITOR_FAMILY_N];
};

/**
 * ping_monitor_fn - a member's state has changed, in one family
 * @ctx:	as given to ping_monitor_open()
 * @m:		the member with its new state; borrowed
 * @now:	monotonic
 *
 * It must not change the monitor.
 */
typedef void (*ping_monitor_fn)(
    void *ctx, const struct ping_monitor_member *m, enum ping_monitor_family family, nsec_t now);

struct ping_monitor {
    char interface[IFNAMSIZ];
    unsigned ifindex;              /* of the interface that the sockets are bound to; 0: none */
    int fd[PING_MONITOR_FAMILY_N]; /* owns; -1: this machine has no such family */
    uint16_t id;                   /* ICMP identifier of the pings */
    uint64_t cookie;               /* in each ping, so that answers to another run are not taken */
    nsec_t period;                 /* length of a round */
    struct ping_monitor_member *members; /* owns; sorted by name */
    size_t n;
    size_t cursor;      /* index of the member that is pinged next in this round */
    nsec_t round_since; /* monotonic; when this round began; 0: there was none */
    ping_monitor_fn on_change;
    void *ctx; /* pins; for on_change */
};

#define PING_MONITOR_NULL                                                                          \
    {                                                                                              \
        .fd = { -1, -1 }                                                                           \
    }

/**
 * ping_monitor_open() - open the sockets; nobody is pinged yet
 * @p:		PING_MONITOR_NULL
 * @interface:	copied; it need not exist yet, and may go and come again
 * @period:	length of a round, in nanoseconds
 * @cookie:	random
 * @on_change:	called from ping_monitor_run() and ping_monitor_take()
 * @ctx:	pinned; for @on_change
 *
 * Return: 0; or negative errno with words: -EPERM where the process has no CAP_NET_RAW. A machine
 * without IPv6 is no error: its socket is then -1.
 */
int ping_monitor_open(struct ping_monitor *p, const char *interface, nsec_t period, uint64_t cookie,
    ping_monitor_fn on_change, void *ctx, struct err *e);

/** ping_monitor_close() - close the sockets and forget the members; idempotent. */
void ping_monitor_close(struct ping_monitor *p);

/**
 * ping_monitor_set() - replace the members
 * @members:	@n of them, sorted by name, on the heap, their reachability all zero; taken
 *
 * A member that was there before, with the same address, keeps what is known of it.
 */
void ping_monitor_set(struct ping_monitor *p, struct ping_monitor_member *members, size_t n);

/**
 * ping_monitor_run() - ping every member whose turn has come
 * @now:	monotonic
 *
 * Return: true when a round has begun.
 */
bool ping_monitor_run(struct ping_monitor *p, nsec_t now);

/** ping_monitor_due() - when ping_monitor_run() has something to do; NSEC_NEVER without members. */
nsec_t ping_monitor_due(const struct ping_monitor *p);

/**
 * ping_monitor_take() - take the answers that wait at one of the sockets; does not block
 * @now:	monotonic
 */
void ping_monitor_take(struct ping_monitor *p, enum ping_monitor_family family, nsec_t now);
