/* rdzv_listen.c - see rdzv_listen.h. */
#include "rdzv_listen.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/address/sockaddr.h"
#include "os/clock.h"

/* Most connections that are accepted in one turn of the loop. */
#define TAKE_AT_ONCE 64

/* Time until the next try to accept after descriptors ran out. */
#define RETRY_MS 100

struct rdzv_listener {
    struct list link;      /* in rdzv_listen.all, while it is open */
    struct rdzv_listen *l; /* pins */
    struct rdzv_job *job;  /* pins, while it is open */
    int fd;                /* owns */
    uv_poll_t poll;        /* of the descriptor; its close frees this */
};

/* ---- connections ---------------------------------------------------------------------------- */

static void on_first(uv_poll_t *poll, int status, int events);

/* Begins a connection at @fd, which is taken. One that is not from a member's address is closed. */
static void take(struct rdzv_listener *li, int fd, const struct ip_addr *from)
{
    struct rdzv_conn *c;

    if (!rdzv_members_has(li->l->members, from)) {
        li->l->conns->n_hung_up++;
        (void)close(fd);
        return;
    }
    c = rdzv_conn_new(li->l->conns, li->job, fd, from, clock_now());
    if (!c)
        return;
    /* on_first() needs it; the protocol sets its own state later. */
    c->state = li->l;
    rdzv_conn_poll(c, UV_READABLE, on_first);
}

/* The first byte has come, or the end: finds out which protocol the connection speaks. */
static void on_first(uv_poll_t *poll, int status, int events)
{
    struct rdzv_conn *c = poll->data;
    struct rdzv_listen *l = c->state;
    uint8_t first;
    ssize_t n = recv(c->fd, &first, 1, MSG_PEEK);
    size_t charged;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    list_remove(&c->silent);
    /* One that was silent for long is charged for already. */
    charged = c->charged;
    if (n == 1 && first < ' ' && rdzv_conn_charge(c, RDZV_COST_CONN - charged))
        tcpstore_conn_begin(l->tcpstore, c);
    else if (n == 1 && first >= 'A' && first <= 'Z' &&
             rdzv_conn_charge(c, RDZV_COST_CONN + RDZV_COST_HTTP - charged))
        etcd2_http_begin(l->http, c);
    else
        rdzv_conn_hang_up(c);
}

/* ---- accepting ------------------------------------------------------------------------------ */

static void on_connectable(uv_poll_t *poll, int status, int events);

static void on_retry(uv_timer_t *timer)
{
    struct rdzv_listen *l = container_of(timer, struct rdzv_listen, retry);
    struct rdzv_listener *li;

    list_foreach(li, &l->all, link)
        (void)uv_poll_start(&li->poll, UV_READABLE, on_connectable);
}

/* When there is no free descriptor, the socket stays readable. It is not polled for a while then,
 * or the loop would do nothing else. */
static void defer(struct rdzv_listener *li)
{
    struct rdzv_listen *l = li->l;

    l->n_deferred++;
    (void)uv_poll_stop(&li->poll);
    if (!uv_is_active((uv_handle_t *)&l->retry))
        (void)uv_timer_start(&l->retry, on_retry, RETRY_MS, 0);
}

static void on_connectable(uv_poll_t *poll, int status, int events)
{
    struct rdzv_listener *li = poll->data;

    rdzv_link_read(li->l->link);
    for (int i = 0; i < TAKE_AT_ONCE && !uv_is_closing((uv_handle_t *)poll); i++) {
        struct endpoint from = {0};
        union sockaddr_inet sa;
        socklen_t len = sizeof(sa);
        int fd = accept4(li->fd, &sa.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            defer(li);
        if (fd < 0)
            return;
        (void)sockaddr_to_endpoint(&sa, &from);
        take(li, fd, &from.addr);
    }
}

/* ---- sockets -------------------------------------------------------------------------------- */

static void on_listener_closed(uv_handle_t *h)
{
    free(container_of((uv_poll_t *)h, struct rdzv_listener, poll));
}

static unsigned count_of(const struct rdzv_listen *l, const struct rdzv_job *job)
{
    const struct rdzv_listener *li;
    unsigned n = 0;

    list_foreach(li, &l->all, link)
        n += li->job == job;
    return n;
}

void rdzv_listen_add(struct rdzv_listen *l, struct rdzv_job *job, int fd)
{
    struct rdzv_listener *li = count_of(l, job) < RDZV_LISTEN_MAX ? calloc(1, sizeof(*li)) : NULL;

    if (!li) {
        (void)close(fd);
        return;
    }
    li->l = l;
    li->job = job;
    li->fd = fd;
    (void)uv_poll_init(l->conns->loop, &li->poll, fd);
    li->poll.data = li;
    (void)uv_poll_start(&li->poll, UV_READABLE, on_connectable);
    list_add_tail(&l->all, &li->link);
}

void rdzv_listen_remove(struct rdzv_listen *l, const struct rdzv_job *job)
{
    struct rdzv_listener *li;
    struct rdzv_listener *tmp;

    list_foreach_safe(li, tmp, &l->all, link) {
        if (li->job != job)
            continue;
        list_remove(&li->link);
        uv_close((uv_handle_t *)&li->poll, on_listener_closed);
        /* At once, since another network may need the address in this turn of the loop. */
        (void)close(li->fd);
    }
}

void rdzv_listen_start(struct rdzv_listen *l)
{
    list_init(&l->all);
    (void)uv_timer_init(l->conns->loop, &l->retry);
}

void rdzv_listen_stop(struct rdzv_listen *l)
{
    if (!uv_is_closing((uv_handle_t *)&l->retry))
        uv_close((uv_handle_t *)&l->retry, NULL);
}
