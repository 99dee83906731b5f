/* loop.c - see loop.h. */
#include "shared/loop.h"

#include <errno.h>
#include <sys/epoll.h>

#include "os/clock.h"
#include "os/file.h"
#include "os/thread.h"

#define EVENTS_PER_TURN 32

static void on_wake(void *ctx, uint32_t epoll_events)
{
    struct loop *l = ctx;

    l->is_woken = wakeup_clear(l->wake_fd);
    /* Before the work is looked for, so that later work wakes again. An exchange pairs with that of
     * whoever found it set and did not signal: that one's work is seen from here on. */
    (void)atomic_exchange(&l->is_signalled, false);
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
    if (!atomic_exchange(&l->is_signalled, true))
        wakeup_signal(l->wake_fd);
}

void loop_wake_soon(struct loop *l, nsec_t now)
{
    /* Either this thread sees until when the other one sleeps, or that one sees that it is wanted:
     * each writes first and then reads (begin_sleep()). */
    atomic_store(&l->is_wanted, true);
    if (atomic_load(&l->sleeps_until) > now + LOOP_SOON)
        loop_wake(l);
}

/* Tells the other threads how long it will sleep, and returns that in ms. */
static int begin_sleep(struct loop *l, nsec_t until)
{
    nsec_t now = clock_now();
    nsec_t ms;

    atomic_store(&l->sleeps_until, until);
    if (atomic_load(&l->is_wanted))
        until = nsec_min(until, now + LOOP_SOON);
    if (until <= now)
        return 0;
    if (until == NSEC_NEVER)
        return -1;
    ms = (until - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
    return ms > 3600 * 1000 ? 3600 * 1000 : (int)ms;
}

bool loop_wait(struct loop *l, pthread_mutex_t *lock, nsec_t until)
{
    struct epoll_event events[EVENTS_PER_TURN];
    unsigned n_removals = l->n_removals;
    int timeout_ms = begin_sleep(l, until);
    int n;

    l->is_woken = false;
    (void)pthread_mutex_unlock(lock);
    n = epoll_wait(l->epoll_fd, events, EVENTS_PER_TURN, timeout_ms);
    (void)pthread_mutex_lock(lock);
    /* Awake: nobody has to wake it. What was wanted is looked for after this, and is seen, since
     * the exchange pairs with the store of whoever wanted it. */
    atomic_store(&l->sleeps_until, 0);
    (void)atomic_exchange(&l->is_wanted, false);
    /* What was removed meanwhile may be freed; whatever else is ready will be ready again. */
    for (int i = 0; i < n && l->n_removals == n_removals; i++) {
        struct loop_event *ev = events[i].data.ptr;

        ev->fn(ev->ctx, events[i].events);
    }
    return l->is_woken;
}
