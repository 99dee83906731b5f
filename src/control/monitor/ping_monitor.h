/*
 * ping_monitor.h - pings the members of a network through its interface, and remembers who answers.
 *
 * Theory of operation. The pings are plain ICMP from raw sockets of this process, and each member's
 * kernel answers them. So an answer proves that the tunnel carries packets, whatever the agents at
 * both ends report. A round pings each member once at each of its addresses, spread evenly
 * over the period. An answer carries the member's index and the cookie of this run, and counts only
 * when it comes from that member's address, which nobody else can have inside the tunnel.
 *
 * Threads: one thread only, the caller's.
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

/** A pace that keeps a node with ten thousand members at a hundred of them a second. */
#define PING_MONITOR_PACE (10 * NSEC_PER_MSEC)

/** Index of a member's addresses, and of the sockets for them. */
enum ping_monitor_family { PING_MONITOR_V4, PING_MONITOR_V6, PING_MONITOR_FAMILY_N };

/** A member that is pinged. */
struct ping_monitor_member {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr address[PING_MONITOR_FAMILY_N];    /* on the overlay */
    struct reachability reach[PING_MONITOR_FAMILY_N]; /* of these addresses */
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
    unsigned ifindex; /* index of @interface, which the sockets are bound to; 0: to none */
    int fd[PING_MONITOR_FAMILY_N]; /* owns; -1: this family is not pinged */
    uint16_t id;                   /* ICMP identifier of the pings */
    uint64_t cookie; /* in each ping, so that answers to another process are ignored */
    nsec_t period;   /* length of a round, ns, if there are not too many members for it */
    nsec_t pace;     /* shortest time between two members, ns; the caller may set it; 0: none */
    struct ping_monitor_member *members; /* owns; sorted by name */
    size_t n;
    size_t cursor;             /* index of the member to be pinged next; @n: the round is done */
    nsec_t round_since;        /* monotonic; when this round began; 0: there was no round yet */
    ping_monitor_fn on_change; /* called when a member's state has changed */
    void *ctx;                 /* pins; for on_change */
};

#define PING_MONITOR_NULL                                                                          \
    {                                                                                              \
        .fd = { -1, -1 }                                                                           \
    }

/**
 * ping_monitor_open() - open the sockets; nobody is pinged yet
 * @p:		PING_MONITOR_NULL
 * @interface:	copied; it need not exist yet, and may be deleted and created again
 * @period:	length of a round, in nanoseconds
 * @cookie:	random
 * @on_change:	called from ping_monitor_run() and ping_monitor_take()
 * @ctx:	pinned; for @on_change
 *
 * Return: 0; or negative errno with words, -EPERM if the process has no CAP_NET_RAW. It is no error
 * if the IPv6 socket cannot be opened: its fd is then -1, and only IPv4 is pinged.
 */
int ping_monitor_open(struct ping_monitor *p, const char *interface, nsec_t period, uint64_t cookie,
    ping_monitor_fn on_change, void *ctx, struct err *e);

/** ping_monitor_close() - close the sockets and forget the members; idempotent. */
void ping_monitor_close(struct ping_monitor *p);

/**
 * ping_monitor_set() - replace the members
 * @members:	@n of them, on the heap, sorted by name, @reach all zero; the monitor owns them then
 *
 * For a member that was there before, what is known of each unchanged address is kept.
 */
void ping_monitor_set(struct ping_monitor *p, struct ping_monitor_member *members, size_t n);

/**
 * ping_monitor_run() - ping every member whose turn has come
 * @now:	monotonic
 *
 * Return: true if this call has begun a new round.
 */
bool ping_monitor_run(struct ping_monitor *p, nsec_t now);

/** ping_monitor_period() - how long a round lasts with these members, ns. */
nsec_t ping_monitor_period(const struct ping_monitor *p);

/**
 * ping_monitor_due() - when ping_monitor_run() is to be called next
 *
 * Return: monotonic; NSEC_NEVER when there are no members.
 */
nsec_t ping_monitor_due(const struct ping_monitor *p);

/**
 * ping_monitor_take() - read the answers that wait at one of the sockets; does not block
 * @family:	of the socket, which must be open
 * @now:	monotonic
 */
void ping_monitor_take(struct ping_monitor *p, enum ping_monitor_family family, nsec_t now);
