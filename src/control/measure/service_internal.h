/*
 * service_internal.h - the measuring service's parts, from the bottom up: service_state.c,
 * service_underlay.c, service_orders.c, service_listen.c, service.c.
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

/** Through which door a connection came. */
enum service_door {
    SERVICE_DOOR_OVERLAY,  /* a member */
    SERVICE_DOOR_LOCAL,    /* root on this machine */
    SERVICE_DOOR_UNDERLAY, /* anybody who reaches the port; must know the session */
};

struct service {
    struct service_config config; /* immutable */
    struct session session;       /* guards itself */
    int wake_fd;                  /* eventfd: the listening thread is to look around */
    pthread_t thread;             /* the listening thread */

    pthread_mutex_t lock; /* taken before session.lock, never after it */
    /* guarded by lock: */
    unsigned users; /* the owner, the listening thread and every connection */
    bool is_stopping;
    struct ip_addr own;             /* none: not known yet */
    struct service_member *members; /* owns; sorted by address */
    size_t n_members;
    unsigned n_connections;
    unsigned n_underlay; /* of these, through that door */
    int underlay_fd;     /* owns; -1: not open */

    /* listening thread only: */
    int tcp_fd;
    int udp_fd;
    int unix_fd;
    unsigned ifindex;     /* for which tcp_fd and udp_fd are open */
    struct ip_addr bound; /* to which they are */
};

/** One connection, and its thread. */
struct service_connection {
    struct service *service; /* holds one use */
    int fd;                  /* owns */
    enum service_door door;
    struct ip_addr from;
};

/** service__ref(), service__unref() - the last one releases everything. */
void service__ref(struct service *s);
void service__unref(struct service *s);

/** service__listen() - body of the listening thread. */
void *service__listen(void *service);

/** service__serve() - what a connection brings, to its end; closes nothing. */
void service__serve(struct service_connection *c);

/** service__find_member() - who has that address on the overlay; false if nobody. */
bool service__find_member(
    struct service *s, const struct ip_addr *address, struct service_member *ret);

/** service__underlay_port() - that is open for the session that is on; 0: none. */
uint16_t service__underlay_port(struct service *s);

/** service__is_stopping() - the owner has let go. */
bool service__is_stopping(struct service *s);

/** service__open_underlay() - for the session that is on. The port, or negative errno. */
int service__open_underlay(struct service *s);

/** service__close_underlay() - idempotent. Threads: the listening one. */
void service__close_underlay(struct service *s);
