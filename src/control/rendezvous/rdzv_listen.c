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
#include "rendezvous/rdzv_internal.h"
#include "os/clock.h"
#include "net/sockaddr.h"

/* Connections taken in one turn of the loop. */
#define TAKE_AT_ONCE 64

/* A silent connection is asked after a minute whether its other end is there, then each half
 * minute; six minutes without an answer end it. A store may be silent for hours, and a node may be
 * unreachable for minutes, while its job goes on. */
#define KEEPALIVE_IDLE_S 60
#define KEEPALIVE_EACH_S 30
#define KEEPALIVE_PROBES 10
#define TCP_GIVE_UP_MS   360000

/* When descriptors have run out, the next try to accept. */
#define RETRY_MS 100

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

/* Whom it counts for. All members have the same first half of an IPv6 address, which is what
 * admission.h goes by. */
static struct ip_addr counted(const struct ip_addr *from)
{
    struct ip_addr a = *from;

    if (!ip_addr_is_v4(from))
        memcpy(a.b, from->b + 8, 8);
    return a;
}

void rdzv__detach(struct rdzv_conn *c)
{
    struct ip_addr who = counted(&c->from);

    if (!c->job)
        return;
    if (c->is_store) {
        rdzv__store_forget_input(c);
        rdzv_client_deinit(&c->job->kv, &c->client);
    }
    rdzv_http_detach(c);
    rdzv_quota_give(&c->job->network->quota, c->charged, 0);
    c->charged = 0;
    list_remove(&c->silent);
    rdzv__changed(c->job);
    admission_leave(&c->job->network->admission, &who);
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
    list_remove(&c->silent);
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
    struct ip_addr who = counted(from);
    struct rdzv_conn *c = NULL;

    if (rdzv__is_member(job->network, from) && admission_enter(&job->network->admission, &who))
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
    c->since = clock_now();
    /* Cannot fail on a descriptor that is open and watched by nobody else. */
    (void)uv_poll_init(&job->rz->loop, &c->poll, fd);
    c->poll.data = c;
    list_add_tail(&job->conns, &c->link);
    list_add_tail(&job->rz->silent, &c->silent);
    job->heard = c->since;
    rdzv__changed(job);
    rdzv__poll(c, UV_READABLE, on_first);
}

static void on_connectable(uv_poll_t *poll, int status, int events);

static void on_retry(uv_timer_t *timer)
{
    struct rdzv *rz = container_of(timer, struct rdzv, retry);
    struct rdzv_job *job;

    list_foreach(job, &rz->network.jobs, link)
        rdzv__listen_again(job);
}

/* Without a descriptor to accept into, the socket stays readable: then it is left alone for a
 * while, or the loop would do nothing else. */
static void defer(struct rdzv_listener *l)
{
    struct rdzv *rz = l->job->rz;

    rz->n_accepts_deferred++;
    (void)uv_poll_stop(&l->poll);
    if (!uv_is_active((uv_handle_t *)&rz->retry))
        (void)uv_timer_start(&rz->retry, on_retry, RETRY_MS, 0);
}

static void on_connectable(uv_poll_t *poll, int status, int events)
{
    struct rdzv_listener *l = poll->data;

    /* Whoever comes may have been told something by the hub, that has told us before. */
    rdzv_link_read(&l->job->rz->link);
    for (int i = 0; i < TAKE_AT_ONCE && !uv_is_closing((uv_handle_t *)poll); i++) {
        struct endpoint from = {0};
        union sockaddr_inet sa;
        socklen_t len = sizeof(sa);
        int fd = accept4(l->fd, &sa.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            defer(l);
        if (fd < 0)
            return;
        (void)sockaddr_to_endpoint(&sa, &from);
        take(l->job, fd, &from.addr);
    }
}

void rdzv__hang_up_silent(struct rdzv *rz, nsec_t now)
{
    struct rdzv_conn *c;

    while ((c = list_first(&rz->silent, struct rdzv_conn, silent)) &&
           now - c->since > RDZV_SILENT_MAX) {
        rz->n_hung_up++;
        rdzv__hang_up(c);
    }
}

void rdzv__hang_up_all(struct rdzv_job *job, const struct ip_addr *from)
{
    struct rdzv_conn *c;
    struct rdzv_conn *tmp;

    list_foreach_safe(c, tmp, &job->conns, link) {
        if (!from || ip_addr_equal(&c->from, from))
            rdzv__hang_up(c);
    }
}

/* ---- listeners ------------------------------------------------------------------------------ */

static void on_listener_closed(uv_handle_t *h)
{
    struct rdzv_listener *l = container_of((uv_poll_t *)h, struct rdzv_listener, poll);

    free(l);
}

void rdzv__listen(struct rdzv_job *job, int fd)
{
    struct rdzv_listener **free_one = job->listeners;
    struct rdzv_listener *l = calloc(1, sizeof(*l));

    while (free_one < job->listeners + RDZV__LISTENERS_MAX && *free_one)
        free_one++;
    if (!l || free_one == job->listeners + RDZV__LISTENERS_MAX) {
        free(l);
        (void)close(fd);
        return;
    }
    l->job = job;
    l->fd = fd;
    (void)uv_poll_init(&job->rz->loop, &l->poll, fd);
    l->poll.data = l;
    (void)uv_poll_start(&l->poll, UV_READABLE, on_connectable);
    *free_one = l;
}

void rdzv__listen_again(struct rdzv_job *job)
{
    for (unsigned i = 0; i < RDZV__LISTENERS_MAX; i++)
        if (job->listeners[i])
            (void)uv_poll_start(&job->listeners[i]->poll, UV_READABLE, on_connectable);
}

void rdzv__unlisten(struct rdzv_job *job)
{
    for (unsigned i = 0; i < RDZV__LISTENERS_MAX; i++) {
        struct rdzv_listener *l = job->listeners[i];

        if (!l)
            continue;
        /* Closed at once: another network may want the address in this very turn. */
        uv_close((uv_handle_t *)&l->poll, on_listener_closed);
        (void)close(l->fd);
        job->listeners[i] = NULL;
    }
    rdzv__hang_up_all(job, NULL);
}
