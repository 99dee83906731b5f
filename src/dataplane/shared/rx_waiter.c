/* rx_waiter.c - see rx_waiter.h. */
#include "shared/rx_waiter.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>

#include "os/file.h"
#include "os/thread.h"

/* What epoll tells of: a socket, by its family, or one of these. */
#define READY_WAKE  UDP_FAMILY_N
#define READY_EVENT (READY_WAKE + 1) /* and its number */

static int watch(struct rx_waiter *w, int op, int fd, uint64_t what, uint32_t epoll_events)
{
    struct epoll_event ev = {.events = epoll_events, .data.u64 = what};

    return epoll_ctl(w->epoll_fd, op, fd, &ev) < 0 ? -errno : 0;
}

int rx_waiter_init(struct rx_waiter *w, struct gate *gate, const _Atomic bool *is_stopping)
{
    *w = (struct rx_waiter){.gate = gate,
        .is_stopping = is_stopping,
        .wake_fd = -1,
        .epoll_fd = -1,
        .sockets = UDP_SOCKETS_NULL};
    list_init(&w->events);
    w->wake_fd = wakeup_open();
    if (w->wake_fd < 0)
        return w->wake_fd;
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll_fd < 0)
        return -errno;
    return watch(w, EPOLL_CTL_ADD, w->wake_fd, READY_WAKE, EPOLLIN);
}

void rx_waiter_deinit(struct rx_waiter *w)
{
    if (!w->gate)
        return; /* one before it could not be made */
    closep(&w->wake_fd);
    closep(&w->epoll_fd);
}

int rx_waiter_watch_sockets(struct rx_waiter *w, const struct udp_sockets *s)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < UDP_FAMILY_N; i++)
        if (s->fd[i] >= 0)
            r = watch(w, EPOLL_CTL_ADD, s->fd[i], i, EPOLLIN);
    return r;
}

int rx_waiter_add(struct rx_waiter *w, struct rx_event *ev)
{
    int r;

    ev->number = w->next_number++;
    r = watch(w, EPOLL_CTL_ADD, ev->fd, READY_EVENT + ev->number, 0);
    if (r < 0)
        return r;
    gate_close(w->gate);
    list_add_tail(&w->events, &ev->siblings);
    gate_open(w->gate);
    return 0;
}

void rx_waiter_remove(struct rx_waiter *w, struct rx_event *ev)
{
    (void)watch(w, EPOLL_CTL_DEL, ev->fd, 0, 0);
    gate_close(w->gate);
    list_remove(&ev->siblings);
    gate_open(w->gate);
}

void rx_waiter_set_wanted(struct rx_waiter *w, const struct rx_event *ev, bool on)
{
    /* Fails only when it was removed, because the interface is gone. */
    (void)watch(w, EPOLL_CTL_MOD, ev->fd, READY_EVENT + ev->number, on ? EPOLLIN : 0);
}

void rx_waiter_wait(struct rx_waiter *w, struct rx_ready *ret)
{
    struct epoll_event events[sizeof(ret->what) / sizeof(*ret->what)];
    int n = epoll_wait(w->epoll_fd, events, sizeof(events) / sizeof(*events), -1);

    ret->n = n;
    for (int i = 0; i < n; i++)
        ret->what[i] = events[i].data.u64;
    atomic_fetch_add(&w->turn, 1);
}

int rx_waiter_on_ready(struct rx_waiter *w, uint64_t what)
{
    struct rx_event *ev;

    if (what < UDP_FAMILY_N)
        return w->sockets.fd[what];
    if (what < READY_EVENT) {
        /* Only that it came matters: we are to stop, or somebody waits for our next turn. */
        (void)wakeup_clear(w->wake_fd);
        return -1;
    }
    list_foreach(ev, &w->events, siblings) {
        if (ev->number == what - READY_EVENT) {
            ev->fn(ev->ctx);
            break;
        }
    }
    return -1;
}
