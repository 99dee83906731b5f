/*
 * ping_monitor.h - pings the members of a network, through its interface, and keeps an edge of each.
 *
 * Theory of operation. Plain ICMP, from a socket of ours, which each member's
 * kernel answers: so it says whether the tunnel carries packets, whatever the
 * agents at both ends think or do. A round pings each member once, at each of
 * its addresses, spread over the period. An answer names the member by its
 * index and is taken only from that member's address, which inside of the
 * tunnel nobody else can have, and with the cookie of this run.
 *
 * Threads: the caller's.
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

/** A member's addresses, and the sockets for them. */
enum lookout_family { LOOKOUT_V4, LOOKOUT_V6, LOOKOUT_FAMILY_N };

struct lookout_member {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr address[LOOKOUT_FAMILY_N];
    struct edge edge[LOOKOUT_FAMILY_N];
};

/** The state of a member's edge has changed. */
typedef void (*lookout_fn)(
    void *ctx, const struct lookout_member *m, enum lookout_family family, nsec_t now);

struct lookout {
    char interface[IFNAMSIZ];
    unsigned ifindex;         /* of the interface to which the sockets are bound; 0: to none */
    int fd[LOOKOUT_FAMILY_N]; /* owns; -1: the family is not there */
    uint16_t id;
    uint64_t cookie;
    nsec_t period;                  /* of a round */
    struct lookout_member *members; /* owns; by name */
    size_t n;
    size_t cursor; /* who is pinged next in this round */
    nsec_t round;  /* when this round began */
    lookout_fn on_change;
    void *ctx; /* pins */
};

#define LOOKOUT_NULL                                                                               \
    {                                                                                              \
        .fd = { -1, -1 }                                                                           \
    }

/**
 * lookout_open() - sockets; nobody is pinged yet
 * @l:		LOOKOUT_NULL
 * @interface:	may come later, and go
 * @cookie:	random
 *
 * Return: 0; or negative errno with words: without CAP_NET_RAW there is no such socket.
 */
int lookout_open(struct lookout *l, const char *interface, nsec_t period, uint64_t cookie,
    lookout_fn on_change, void *ctx, struct err *e);

/** lookout_close() - idempotent, safe on LOOKOUT_NULL. */
void lookout_close(struct lookout *l);

/**
 * lookout_set() - these are the members; who was one keeps his edges
 * @members:	@n of them, by name, their edges all zero; taken
 */
void lookout_set(struct lookout *l, struct lookout_member *members, size_t n);

/**
 * lookout_run() - ping who is due
 *
 * Return: true when a round begins.
 */
bool lookout_run(struct lookout *l, nsec_t now);

/** lookout_due() - when somebody is to be pinged next; NSEC_NEVER without members. */
nsec_t lookout_due(const struct lookout *l);

/** lookout_take() - the answers that have come at one of the sockets. */
void lookout_take(struct lookout *l, enum lookout_family family, nsec_t now);
