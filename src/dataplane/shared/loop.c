/* loop.c - see loop.h. */
#include "shared/loop.h"

#include <errno.h>
#include <sys/epoll.h>

#include "os/fd_cleanup.h"
#include "os/wakeup.h"

#define EVENTS_PER_TURN 32

static void on_wake(void *ctx, uint32_t epoll_events)
{
    struct loop *l = ctx;

    /* Before the work is looked for, so that later work wakes again. */
    l->is_woken = wakeup_clear(l->wake_fd);
}

int loop_init(struct loop *l)
{
    *l = (struct loop)LOOP_NULL;
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll_fd < 0)
        return -errno;
    l->wake_fd = wakeup_open();
    if (l->wake_fd < 0)
        return l->wake_fd;
    l->wake_event = (struct loop_event){.fd = l->wake_fd, .fn = on_wake, .ctx = l};
    return loop_add(l, &l->wake_event, EPOLLIN);
}

void loop_deinit(struct loop *l)
{
    closep(&l->wake_fd);
    closep(&l->epoll_fd);
    *l = (struct loop)LOOP_NULL;
}

int loop_add(struct loop *l, struct loop_event *ev, uint32_t epoll_events)
{
    struct epoll_event e = {.events = epoll_events, .data.ptr = ev};

    return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, ev->fd, &e) < 0 ? -errno : 0;
}

void loop_change(struct loop *l, struct loop_event *ev, uint32_t epoll_events)
{
    struct epoll_event e = {.events = epoll_events, .data.ptr = ev};

    (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, ev->fd, &e);
}

void loop_remove(struct loop *l, struct loop_event *ev)
{
    (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, ev->fd, NULL);
    l->n_removals++;
}

void loop_wake(struct loop *l)
{
    wakeup_signal(l->wake_fd);
}

bool loop_wait(struct loop *l, pthread_mutex_t *lock, int timeout_ms)
{
    struct epoll_event events[EVENTS_PER_TURN];
    unsigned n_removals = l->n_removals;
    int n;

    l->is_woken = false;
    (void)pthread_mutex_unlock(lock);
    n = epoll_wait(l->epoll_fd, events, EVENTS_PER_TURN, timeout_ms);
    (void)pthread_mutex_lock(lock);
    /* What was removed meanwhile may be freed; whatever else is ready will be ready again. */
    for (int i = 0; i < n && l->n_removals == n_removals; i++) {
        struct loop_event *ev = events[i].data.ptr;

        ev->fn(ev->ctx, events[i].events);
    }
    return l->is_woken;
}
