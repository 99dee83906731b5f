/*
 * listener.c - the server's listening sockets: binding them, and the pace of beginning connections.
 *
 * What happens with a connection is in server.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/server/server_internal.h"
#include "base/err.h"
#include "net/address/sockaddr.h"
#include "net/socket/tcp.h"
#include "net/socket/unix_socket.h"
#include "os/clock.h"
#include "os/file.h"

#define BACKLOG 512

/* Most connections at once, and of them from one address. A member needs two: its watch, and one
 * for reports. Who reads figures needs one, and there are few who do. */
static const unsigned connections_max[][2] = {
    [API_ACCESS_PUBLIC] = {512, 64},
    [API_ACCESS_OVERLAY] = {65536, 8},
    [API_ACCESS_ADMIN] = {64, 64},
    [API_ACCESS_METRICS] = {16, 4},
};

/*
 * The pace at which connections begin: the time for each of them, and how many may begin at once
 * after a quiet while. A TLS handshake with a request costs the TLS thread 0.65 ms (make bench
 * PARTS=scale), so strangers get at most a quarter of a core's time. The figures of a node with a
 * thousand peers take some milliseconds.
 */
static const nsec_t pace_each[] = {
    [API_ACCESS_PUBLIC] = 2500 * NSEC_PER_USEC,
    [API_ACCESS_OVERLAY] = NSEC_PER_MSEC / 5,
    [API_ACCESS_ADMIN] = NSEC_PER_MSEC / 5,
    [API_ACCESS_METRICS] = 50 * NSEC_PER_MSEC,
};
#define PACE_BURST 25

/* Most connections that are accepted and wait for their turn: see admission.h. */
#define WAITING_MAX 512

/* For how long nothing is accepted after that has failed for want of descriptors or memory. */
#define PAUSE_MS 100

/* A connection that has waited longer is closed: its client has given up, or soon will. */
#define WAITING_TIME (8 * NSEC_PER_SEC)

/* Most connections that are accepted, and that begin, in one turn of the loop: others have their
 * turn. */
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
    struct waiting_connection waits;
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
    while (waiting_take(&l->waiting, &waits))
        (void)close(waits.fd);
    waiting_deinit(&l->waiting);
    admission_deinit(&l->admission);
    if (l->path)
        (void)unlink(l->path);
    uv_close((uv_handle_t *)&l->poll, on_listener_closed);
    uv_close((uv_handle_t *)&l->pause, on_listener_closed);
    uv_close((uv_handle_t *)&l->turn, on_listener_closed);
    return NULL;
}

static void on_connectable(uv_poll_t *poll, int status, int events);

static void on_pause_over(uv_timer_t *timer)
{
    struct server_listener *l = timer->data;

    (void)uv_poll_start(&l->poll, UV_READABLE, on_connectable);
}

static void on_turn(uv_timer_t *timer);

/* Begins waiting connections as far as the pace allows, and sets the time for the rest. */
static void begin_waiting(struct server_listener *l, nsec_t now)
{
    nsec_t each = pace_each[l->access];
    struct waiting_connection c;

    for (int i = 0; i < TAKE_AT_ONCE && !rate_is_spent(&l->pace, now, (PACE_BURST - 1) * each);
         i++) {
        if (!waiting_take(&l->waiting, &c))
            return;
        if (now - c.accepted_at >= WAITING_TIME) {
            l->s->counts.refused++;
            (void)close(c.fd);
        } else if (server__take(l, c.fd, &c.from, c.accepted_at)) {
            rate_pay(&l->pace, now, each);
        }
    }
    if (l->waiting.n > 0)
        (void)uv_timer_start(
            &l->turn, on_turn, (uint64_t)((each + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC), 0);
}

static void on_turn(uv_timer_t *timer)
{
    begin_waiting(timer->data, clock_now());
}

/* Accepts a connection and lets it wait. False: there are no more for now. */
static bool accept_one(struct server_listener *l, struct rng *rng, nsec_t now)
{
    struct waiting_connection c = {.accepted_at = now};
    struct waiting_connection gone;
    union sockaddr_inet sa;
    socklen_t len = sizeof(sa);

    c.fd = accept4(l->fd, &sa.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (c.fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            (void)uv_poll_stop(&l->poll);
            (void)uv_timer_start(&l->pause, on_pause_over, PAUSE_MS, 0);
        }
        return errno == ECONNABORTED;
    }
    if (l->access != API_ACCESS_ADMIN)
        (void)sockaddr_to_endpoint(&sa, &c.from);
    if (waiting_add(&l->waiting, &c, rng_u64(rng), &gone)) {
        l->s->counts.refused++;
        (void)close(gone.fd);
    }
    return true;
}

/* Connections are accepted before their turn: only then is their source known, and the kernel's
 * queue keeps room for others. */
static void on_connectable(uv_poll_t *poll, int status, int events)
{
    struct server_listener *l = poll->data;
    struct rng rng = rng_kernel();
    nsec_t now = clock_now();
    int n = 0;

    while (n < TAKE_AT_ONCE && accept_one(l, &rng, now))
        n++;
    begin_waiting(l, now);
}

/* A listener on the bound socket @fd, which is taken. */
static int listener_new(struct server_listener **ret, struct server *s, int fd,
    enum api_access access, void *listener_ctx, struct err *e)
{
    struct server_listener *l = calloc(1, sizeof(*l));

    if (!l || listen(fd, BACKLOG) < 0) {
        int r = err_set(e, l ? -errno : -ENOMEM, "a socket cannot listen: %s", strerror(errno));

        (void)close(fd);
        free(l);
        return r;
    }
    *l = (struct server_listener){
        .s = s, .fd = fd, .n_handles = 3, .access = access, .listener_ctx = listener_ctx};
    waiting_init(&l->waiting, WAITING_MAX, s->seed);
    admission_init(&l->admission, connections_max[access][0], connections_max[access][1], s->seed);
    /* Neither can fail on a descriptor that is open and watched by nobody else. */
    (void)uv_poll_init(s->config.loop, &l->poll, fd);
    (void)uv_timer_init(s->config.loop, &l->pause);
    (void)uv_timer_init(s->config.loop, &l->turn);
    l->poll.data = l;
    l->pause.data = l;
    l->turn.data = l;
    (void)uv_poll_start(&l->poll, UV_READABLE, on_connectable);
    list_add_tail(&s->listeners, &l->link);
    *ret = l;
    return 0;
}

/*
 * Opens a bound TCP socket. The public API listens on all addresses of its port, and each overlay
 * listener on one address of the same port, on one interface; the kernel allows that only to
 * sockets that all share the port. A second hub could then share it as well. So a socket without an
 * interface is first opened without sharing, which fails when there is another hub.
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

/* The same, at any interface. A machine without IPv6 cannot open a socket for both families. */
static int open_anywhere(int *ret_fd, const struct endpoint *at, uint16_t *ret_port, struct err *e)
{
    struct endpoint any4 = {.addr = ip_addr_v4((const uint8_t[4]){0}), .port = at->port};
    struct endpoint bound;
    int r = open_tcp(ret_fd, at, NULL, e);

    if (r == -EAFNOSUPPORT && ip_addr_is_none(&at->addr))
        r = open_tcp(ret_fd, &any4, NULL, e);
    if (r == -EAFNOSUPPORT)
        return err_set(e, r, "this machine has no IPv6");
    if (r == 0 && ret_port && sockaddr_local(*ret_fd, &bound) == 0)
        *ret_port = bound.port;
    return r;
}

int server_listen_tls(
    struct server *s, const struct endpoint *at, uint16_t *ret_port, struct err *e)
{
    struct server_listener *l = NULL;
    int fd = -1;
    int r = open_anywhere(&fd, at, ret_port, e);

    return r == 0 ? listener_new(&l, s, fd, API_ACCESS_PUBLIC, NULL, e) : r;
}

int server_listen_metrics(
    struct server *s, const struct endpoint *at, uint16_t *ret_port, struct err *e)
{
    struct server_listener *l = NULL;
    int fd = -1;
    int r = open_anywhere(&fd, at, ret_port, e);

    return r == 0 ? listener_new(&l, s, fd, API_ACCESS_METRICS, NULL, e) : r;
}

int server_listen_overlay(struct server *s, const struct endpoint *at, const char *interface,
    void *listener_ctx, struct server_listener **ret, struct err *e)
{
    int fd = -1;
    int r = open_tcp(&fd, at, interface, e);

    if (r == -EAFNOSUPPORT)
        return err_set(e, r, "this machine has no IPv6");
    if (r != 0)
        return r;
    r = listener_new(ret, s, fd, API_ACCESS_OVERLAY, listener_ctx, e);
    if (r == 0)
        (*ret)->own = at->addr;
    return r;
}

int server_listen_unix(struct server *s, const char *path, enum role role, struct err *e)
{
    struct server_listener *l = NULL;
    char users[UNIX_SOCKET_CHOICE_CAP];
    int fd;
    int r;

    (void)snprintf(users, sizeof(users), "%s" UNIX_SOCKET_USERS_SUFFIX, path);
    if (role != ROLE_ADMIN)
        path = users;
    fd = unix_socket_listen(path, SOCK_STREAM, role == ROLE_ADMIN ? 0600 : 0660);
    if (fd == -EADDRINUSE)
        return err_set(e, fd, "another daemon answers at \"%s\" already", path);
    if (fd == -EEXIST)
        return err_set(e, fd, "\"%s\" exists and is not a socket", path);
    if (fd == -ENAMETOOLONG || fd == -EINVAL)
        return err_set(
            e, fd, "socket path \"%.120s\" is not 1 to %d bytes long", path, UNIX_SOCKET_PATH_MAX);
    if (fd < 0)
        return err_set(e, fd, "socket \"%s\" cannot be made: %s", path, strerror(-fd));
    r = listener_new(&l, s, fd, API_ACCESS_ADMIN, NULL, e);
    if (r == 0) {
        l->path = strdup(path);
        l->role = role;
    }
    return r;
}
