/*
 * service_internal.h - what the files of the measuring service share. They are, from the bottom up,
 * service_state.c (what the threads share), service_orders.c (one connection) and service.c
 * (starting and stopping, and the listening thread).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "measure/dial.h"
#include "measure/service.h"
#include "measure/session.h"

#define SERVICE_CONNECTIONS_MAX 160
/* From one member's address: streams both ways, an all-reduce's hops, its orders. Any program of
 * its machine may open one, and leaves the others room. */
#define SERVICE_FROM_ONE_MAX (2 * ORDER_STREAMS_MAX + SESSION_HOPS_MAX + 8)
#define SERVICE_UNDERLAY_MAX (2 * ORDER_STREAMS_MAX + 4)

/** How a connection came in, and so who may be at its other end. */
enum service_access {
    SERVICE_ACCESS_OVERLAY,  /* a member */
    SERVICE_ACCESS_LOCAL,    /* a process on this machine that may open the unix socket */
    SERVICE_ACCESS_UNDERLAY, /* anybody who reaches the port; has to know the session's id */
};

struct service {
    struct service_config config; /* immutable */
    struct session session;       /* has a lock of its own */
    int wake_fd;                  /* owns; eventfd; makes the listening thread check everything */
    pthread_t thread;             /* the listening thread */

    pthread_mutex_t lock; /* taken before session.lock, never after it */
    /* guarded by lock: */
    unsigned users; /* references: the owner's, the listening thread's and each connection's */
    bool is_stopping;
    struct ip_addr own;             /* none: not known yet */
    struct service_member *members; /* owns; sorted by address */
    size_t n_members;
    struct list connections; /* of struct service_connection */
    unsigned n_connections;
    unsigned n_underlay; /* how many of these came in outside the overlay */
    int underlay_fd;     /* owns; -1: not open */

    /* listening thread only: */
    int tcp_fd;
    int udp_fd;
    int unix_fd;
    unsigned ifindex;     /* interface to which tcp_fd and udp_fd are bound */
    struct ip_addr bound; /* address to which they are bound */
};

/** One connection, and its thread. */
struct service_connection {
    struct list link;        /* in the service's connections; guarded by its lock */
    struct service *service; /* owns one reference */
    int fd;                  /* owns; -1: given away */
    enum service_access access;
    struct ip_addr from; /* the other end's address; LOCAL: this node's own */
};

/** service__ref() - take a reference, for one more thread. */
void service__ref(struct service *s);

/** service__unref() - drop a thread's reference; the last one releases everything. */
void service__unref(struct service *s);

/** service__serve() - carry out the orders of a connection until it ends; does not close it. */
void service__serve(struct service_connection *c);

/**
 * service__find_member() - which member has that address on the overlay?
 * @ret:	set to a copy of the member when there is one
 *
 * Return: false if no member has it. Threads: any.
 */
bool service__find_member(
    struct service *s, const struct ip_addr *address, struct service_member *ret);

/** service__underlay_port() - the port that is open outside the overlay; 0: none. */
uint16_t service__underlay_port(struct service *s);

/** service__is_stopping() - has service_free() been called? */
bool service__is_stopping(struct service *s);

/**
 * service__open_underlay() - open a port outside the overlay, for the current session
 *
 * A port that is open already is kept.
 *
 * Return: the port, or negative errno.
 */
int service__open_underlay(struct service *s);

/** service__close_underlay() - close that port; idempotent. Threads: the listening thread only. */
void service__close_underlay(struct service *s);
