/*
 * rdzv_listen.c - the ports of jobs, and their connections until it is known what they speak.
 *
 * A port serves both protocols: the first byte of a connection says which. HTTP
 * begins with a capital letter, a TCPStore's request with a number below 32.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "hub/rdzv_internal.h"
#include "sys/clock.h"
#include "sys/sockaddr.h"
#include "sys/tcp_listener.h"

#define BACKLOG 1024

/* Connections taken in one turn of the loop. */
#define TAKE_AT_ONCE 64

/* A silent connection is asked after a minute whether its other end is there, then each half
 * minute; six minutes without an answer end it. A store may be silent for hours, and a node may be
 * unreachable for minutes, while its job goes on. */
#define KEEPALIVE_IDLE_S 60
#define KEEPALIVE_EACH_S 30
#define KEEPALIVE_PROBES 10
#define TCP_GIVE_UP_MS   360000

struct rdzv_listener {
    struct rdzv_job *job; /* pins, while it is open */
    int fd;               /* owns */
    uv_poll_t poll;       /* of it */
};

/* ---- connections ---------------------------------------------------------------------------- */

static void on_conn_closed(uv_handle_t *h)
{
    struct rdzv_conn *c = container_of((uv_poll_t *)h, struct rdzv_conn, poll);

    if (c->fd >= 0)
        (void)close(c->fd);
    free(c);
}

void rdzv__detach(struct rdzv_conn *c)
{
    if (!c->job)
        return;
    if (c->is_store) {
        rdzv__store_forget_input(c);
        rdzv_client_deinit(&c->job->kv, &c->client);
    }
    rdzv_http_detach(c);
    rdzv_quota_give(&c->job->network->quota, c->charged, 0);
    c->charged = 0;
    admission_leave(&c->job->network->admission, &c->from);
    c->job->heard = clock_now();
    list_remove(&c->link);
    c->job = NULL;
}

bool rdzv__charge(struct rdzv_conn *c, size_t cost)
{
    if (!rdzv_quota_try(&c->job->network->quota, cost, 0)) {
        rdzv_quota_refuse(&c->job->quota, "the network has no room for a connection");
        return false;
    }
    c->charged += cost;
    return true;
}

void rdzv__close(struct rdzv_conn *c)
{
    if (!uv_is_closing((uv_handle_t *)&c->poll))
        uv_close((uv_handle_t *)&c->poll, on_conn_closed);
}

void rdzv__hang_up(struct rdzv_conn *c)
{
    if (!c->job)
        return;
    rdzv__detach(c);
    if (c->is_http)
        rdzv_http_end(c);
    else
        rdzv__close(c);
}

void rdzv__poll(struct rdzv_conn *c, int events, uv_poll_cb cb)
{
    if (c->events == events || uv_is_closing((uv_handle_t *)&c->poll))
        return;
    c->events = events;
    (void)uv_poll_start(&c->poll, events, cb);
}

/* Its first byte has come, or its end. */
static void on_first(uv_poll_t *poll, int status, int events)
{
    struct rdzv_conn *c = poll->data;
    uint8_t first;
    ssize_t n = recv(c->fd, &first, 1, MSG_PEEK);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == 1 && first < ' ' && rdzv__charge(c, RDZV_COST_CONN))
        rdzv__store_begin(c);
    else if (n == 1 && first >= 'A' && first <= 'Z' &&
             rdzv__charge(c, RDZV_COST_CONN + RDZV_COST_HTTP))
        rdzv_http_begin(&c->rz->http, c);
    else
        rdzv__hang_up(c);
}

static void set_options(int fd)
{
    static const struct {
        int level;
        int name;
        int value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EACH_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, TCP_GIVE_UP_MS},
    };

    /* None is needed for what is answered to be right. */
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

/* @fd is taken. Who has the address of no node is hung up on, as at the API. */
static void take(struct rdzv_job *job, int fd, const struct ip_addr *from)
{
    struct rdzv_conn *c = NULL;

    if (model_find_address(job->network->net, from) &&
        admission_enter(&job->network->admission, from))
        c = calloc(1, sizeof(*c));
    if (!c) {
        job->rz->n_hung_up++;
        (void)close(fd);
        return;
    }
    set_options(fd);
    c->rz = job->rz;
    c->job = job;
    c->fd = fd;
    c->from = *from;
    /* Cannot fail on a descriptor that is open and watched by nobody else. */
    (void)uv_poll_init(job->rz->loop, &c->poll, fd);
    c->poll.data = c;
    list_add_tail(&job->conns, &c->link);
    job->heard = clock_now();
    rdzv__poll(c, UV_READABLE, on_first);
}

static void on_connectable(uv_poll_t *poll, int status, int events)
{
    struct rdzv_listener *l = poll->data;

    for (int i = 0; i < TAKE_AT_ONCE; i++) {
        struct endpoint from = {0};
        union sockaddr_inet sa;
        socklen_t len = sizeof(sa);
        int fd = accept4(l->fd, &sa.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0)
            return;
        (void)sockaddr_to_endpoint(&sa, &from);
        take(l->job, fd, &from.addr);
    }
}

/* ---- listeners ------------------------------------------------------------------------------ */

static void on_listener_closed(uv_handle_t *h)
{
    struct rdzv_listener *l = container_of((uv_poll_t *)h, struct rdzv_listener, poll);

    free(l);
}

static int open_one(
    struct rdzv_listener **ret, struct rdzv_job *job, const struct endpoint *at, struct err *e)
{
    struct rdzv_listener *l;
    _cleanup_(closep) int fd = -1;
    int r = tcp_listener_open(&fd, at, job->network->interface, false, e);

    if (r != 0)
        return r;
    l = calloc(1, sizeof(*l));
    if (!l || listen(fd, BACKLOG) < 0) {
        r = err_set(e, l ? -errno : -ENOMEM, "a port cannot be served: %s", strerror(errno));
        free(l);
        return r;
    }
    l->job = job;
    l->fd = TAKE_FD(fd);
    (void)uv_poll_init(job->rz->loop, &l->poll, l->fd);
    l->poll.data = l;
    (void)uv_poll_start(&l->poll, UV_READABLE, on_connectable);
    *ret = l;
    return 0;
}

void rdzv__listen(struct rdzv_job *job)
{
    const struct hub_network *net = &job->network->net->pub;
    bool is_default = strcmp(job->name, RDZV_DEFAULT) == 0;
    struct endpoint at[RDZV__LISTENERS_MAX] = {
        {.addr = net->address4, .port = job->record.port},
        {.addr = net->address6, .port = job->record.port},
        {.addr = net->address4, .port = RDZV_DEFAULT_ETCD},
        {.addr = net->address6, .port = RDZV_DEFAULT_ETCD},
    };

    for (unsigned i = 0; i < (is_default ? 4 : 2); i++) {
        struct err e = ERR_NULL;

        if (!job->listeners[i] && open_one(&job->listeners[i], job, &at[i], &e) != 0)
            log_warning("job \"%s\" of network \"%s\" is not served at one of its addresses: %s",
                job->name, job->network->name, err_text(&e));
    }
}

void rdzv__unlisten(struct rdzv_job *job)
{
    struct rdzv_conn *c;
    struct rdzv_conn *tmp;

    for (unsigned i = 0; i < RDZV__LISTENERS_MAX; i++) {
        struct rdzv_listener *l = job->listeners[i];

        if (!l)
            continue;
        /* Closed at once: another network may want the address in this very turn. */
        uv_close((uv_handle_t *)&l->poll, on_listener_closed);
        (void)close(l->fd);
        job->listeners[i] = NULL;
    }
    list_foreach_safe(c, tmp, &job->conns, link)
        rdzv__hang_up(c);
}
