/*
 * listener.c - the server's listening sockets: binding them, and the pace of taking connections.
 *
 * What happens with a connection is in server.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/server_internal.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "sys/clock.h"
#include "sys/sockaddr.h"
#include "sys/tcp_listener.h"
#include "sys/unix_socket.h"

#define BACKLOG 512

/* Connections at once. A member needs two: its watch, and one for reports. */
#define PUBLIC_MAX             512
#define PUBLIC_MAX_BY_ADDRESS  64
#define OVERLAY_MAX            65536
#define OVERLAY_MAX_BY_ADDRESS 8
#define ADMIN_MAX              64

/* The pace: so many connections in each window, then a pause until it ends. A TLS handshake costs
 * up to a millisecond, so strangers get a quarter of the loop's time at most. */
#define PACE_WINDOW  (100 * NSEC_PER_MSEC)
#define PACE_PUBLIC  25
#define PACE_MEMBERS 500

/* Taken in one turn of the loop, so that a burst does not hold up everything else. */
#define TAKE_AT_ONCE 32

static void on_listener_closed(uv_handle_t *h)
{
    struct server_listener *l = h->data;

    if (--l->n_handles > 0)
        return;
    (void)close(l->fd);
    free(l->path);
    free(l);
}

struct server_listener *server_listener_close(struct server_listener *l)
{
    struct server__connection *c;

    if (!l)
        return NULL;
    list_foreach(c, &l->s->connections, link) {
        if (c->listener == l) {
            c->listener = NULL;
            server__cut(c);
        }
    }
    list_remove(&l->link);
    admission_deinit(&l->admission);
    if (l->path)
        (void)unlink(l->path);
    uv_close((uv_handle_t *)&l->poll, on_listener_closed);
    uv_close((uv_handle_t *)&l->pause, on_listener_closed);
    return NULL;
}

static void on_connectable(uv_poll_t *poll, int status, int events);

static void on_pause_over(uv_timer_t *timer)
{
    struct server_listener *l = timer->data;

    (void)uv_poll_start(&l->poll, UV_READABLE, on_connectable);
}

/* May one more be taken now? If not, a pause has begun. */
static bool is_in_pace(struct server_listener *l, nsec_t now)
{
    unsigned most = l->door == DOOR_PUBLIC ? PACE_PUBLIC : PACE_MEMBERS;

    if (now - l->window >= PACE_WINDOW) {
        l->window = now;
        l->taken = 0;
    }
    if (l->taken < most) {
        l->taken++;
        return true;
    }
    (void)uv_poll_stop(&l->poll);
    (void)uv_timer_start(&l->pause, on_pause_over, (uint64_t)(PACE_WINDOW / NSEC_PER_MSEC), 0);
    return false;
}

static void on_connectable(uv_poll_t *poll, int status, int events)
{
    struct server_listener *l = poll->data;
    nsec_t now = clock_now();

    for (int i = 0; i < TAKE_AT_ONCE && is_in_pace(l, now); i++) {
        struct endpoint from = {0};
        union sockaddr_inet sa;
        socklen_t len = sizeof(sa);
        int fd = accept4(l->fd, &sa.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

        /* Without descriptors or memory the pace makes sure that we do not spin. */
        if (fd < 0)
            return;
        if (l->door != DOOR_ADMIN)
            (void)sockaddr_to_endpoint(&sa, &from);
        server__take(l, fd, &from, now);
    }
}

/* A listener on a bound socket, which is taken. */
static int listener_new(struct server_listener **ret, struct server *s, int fd, enum door door,
    void *door_ctx, struct err *e)
{
    struct server_listener *l = calloc(1, sizeof(*l));

    if (!l || listen(fd, BACKLOG) < 0) {
        int r = err_set(e, l ? -errno : -ENOMEM, "a socket cannot listen: %s", strerror(errno));

        (void)close(fd);
        free(l);
        return r;
    }
    *l = (struct server_listener){
        .s = s, .fd = fd, .n_handles = 2, .door = door, .door_ctx = door_ctx};
    switch (door) {
    case DOOR_PUBLIC:
        admission_init(&l->admission, PUBLIC_MAX, PUBLIC_MAX_BY_ADDRESS, s->seed);
        break;
    case DOOR_OVERLAY:
        admission_init(&l->admission, OVERLAY_MAX, OVERLAY_MAX_BY_ADDRESS, s->seed);
        break;
    case DOOR_ADMIN:
        admission_init(&l->admission, ADMIN_MAX, ADMIN_MAX, s->seed);
        break;
    }
    /* Neither can fail on a descriptor that is open and watched by nobody else. */
    (void)uv_poll_init(s->config.loop, &l->poll, fd);
    (void)uv_timer_init(s->config.loop, &l->pause);
    l->poll.data = l;
    l->pause.data = l;
    (void)uv_poll_start(&l->poll, UV_READABLE, on_connectable);
    list_add_tail(&s->listeners, &l->link);
    *ret = l;
    return 0;
}

/*
 * A TCP socket, bound. The public door takes all addresses of its port and each overlay door one of
 * them, on one interface, which the kernel allows only to sockets that all share the port. That
 * would let in a second hub too; so whoever is not on an interface first tries without.
 */
static int open_tcp(int *ret_fd, const struct endpoint *at, const char *interface, struct err *e)
{
    _cleanup_(closep) int alone = -1;

    if (!interface) {
        int r = tcp_listener_open(&alone, at, NULL, false, e);

        if (r != 0)
            return r;
        (void)close(TAKE_FD(alone));
    }
    return tcp_listener_open(ret_fd, at, interface, true, e);
}

static uint16_t port_of(int fd)
{
    union sockaddr_inet sa;
    struct endpoint ep = {0};
    socklen_t len = sizeof(sa);

    if (getsockname(fd, &sa.any, &len) == 0)
        (void)sockaddr_to_endpoint(&sa, &ep);
    return ep.port;
}

int server_listen_tls(
    struct server *s, const struct endpoint *at, uint16_t *ret_port, struct err *e)
{
    struct endpoint any4 = {.addr = ip_addr_v4((const uint8_t[4]){0}), .port = at->port};
    struct server_listener *l = NULL;
    int fd = -1;
    int r = open_tcp(&fd, at, NULL, e);

    /* A machine without IPv6 cannot open the socket that takes both. */
    if (r == -EAFNOSUPPORT && ip_addr_is_none(&at->addr))
        r = open_tcp(&fd, &any4, NULL, e);
    if (r == -EAFNOSUPPORT)
        return err_set(e, r, "this machine has no IPv6");
    if (r != 0)
        return r;
    if (ret_port)
        *ret_port = port_of(fd);
    return listener_new(&l, s, fd, DOOR_PUBLIC, NULL, e);
}

int server_listen_overlay(struct server *s, const struct endpoint *at, const char *interface,
    void *door_ctx, struct server_listener **ret, struct err *e)
{
    int fd = -1;
    int r = open_tcp(&fd, at, interface, e);

    if (r == -EAFNOSUPPORT)
        return err_set(e, r, "this machine has no IPv6");
    if (r != 0)
        return r;
    r = listener_new(ret, s, fd, DOOR_OVERLAY, door_ctx, e);
    if (r == 0)
        (*ret)->own = at->addr;
    return r;
}

int server_listen_unix(struct server *s, const char *path, struct err *e)
{
    struct server_listener *l = NULL;
    int fd = unix_socket_listen(path, SOCK_STREAM);
    int r;

    if (fd == -EADDRINUSE)
        return err_set(e, fd, "another daemon answers at \"%s\" already", path);
    if (fd == -EEXIST)
        return err_set(e, fd, "\"%s\" exists and is not a socket", path);
    if (fd == -ENAMETOOLONG || fd == -EINVAL)
        return err_set(
            e, fd, "socket path \"%.120s\" is not 1 to %d bytes long", path, UNIX_SOCKET_PATH_MAX);
    if (fd < 0)
        return err_set(e, fd, "socket \"%s\" cannot be made: %s", path, strerror(-fd));
    r = listener_new(&l, s, fd, DOOR_ADMIN, NULL, e);
    if (r == 0)
        l->path = strdup(path);
    return r;
}
