/*
 * service_internal.h - the measuring service's parts. From the bottom up: service_state.c (what the
 * threads share), service_orders.c (one connection), service.c (its life, and the listening
 * thread).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure/dial.h"
#include "measure/service.h"
#include "measure/session.h"

#define SERVICE_CONNECTIONS_MAX 160
#define SERVICE_UNDERLAY_MAX    (2 * ORDER_STREAMS_MAX + 4)

/** By which way a connection came in. */
enum service_access {
    SERVICE_ACCESS_OVERLAY,  /* a member */
    SERVICE_ACCESS_LOCAL,    /* root on this machine */
    SERVICE_ACCESS_UNDERLAY, /* anybody who reaches the port; must know the session */
};

struct service {
    struct service_config config; /* immutable */
    struct session session;       /* guards itself */
    int wake_fd;                  /* eventfd; wakes the listening thread, to check everything */
    pthread_t thread;             /* the listening thread */

    pthread_mutex_t lock; /* taken before session.lock, never after it */
    /* guarded by lock: */
    unsigned users; /* the owner, the listening thread and every connection */
    bool is_stopping;
    struct ip_addr own;             /* none: not known yet */
    struct service_member *members; /* owns; sorted by address */
    size_t n_members;
    unsigned n_connections;
    unsigned n_underlay; /* of these, the ones that came in beside the overlay */
    int underlay_fd;     /* owns; -1: not open */

    /* listening thread only: */
    int tcp_fd;
    int udp_fd;
    int unix_fd;
    unsigned ifindex;     /* for which tcp_fd and udp_fd are open */
    struct ip_addr bound; /* the address that they are bound to */
};

/** One connection, and its thread. */
struct service_connection {
    struct service *service; /* holds one use */
    int fd;                  /* owns */
    enum service_access access;
    struct ip_addr from;
};

/** service__ref() - one more thread uses the service. */
void service__ref(struct service *s);

/** service__unref() - a thread ends its use; the last one releases everything. */
void service__unref(struct service *s);

/** service__serve() - carry out the orders of a connection, until it ends; does not close it. */
void service__serve(struct service_connection *c);

/**
 * service__find_member() - which member has that address on the overlay?
 * @ret:	set to a copy
 *
 * Return: false if no member has it. Threads: any.
 */
bool service__find_member(
    struct service *s, const struct ip_addr *address, struct service_member *ret);

/** service__underlay_port() - the port that is open beside the overlay; 0: none. */
uint16_t service__underlay_port(struct service *s);

/** service__is_stopping() - has service_free() been called? */
bool service__is_stopping(struct service *s);

/**
 * service__open_underlay() - open a port beside the overlay, for the session that is on
 *
 * One that is open already is kept.
 *
 * Return: the port, or negative errno.
 */
int service__open_underlay(struct service *s);

/** service__close_underlay() - close that port; idempotent. Threads: the listening one. */
void service__close_underlay(struct service *s);
