/* worker.c - see worker.h. */
#include "os/worker.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "os/clock.h"
#include "os/file.h"
#include "os/thread.h"

/** Jobs on their way in one direction. */
struct queue {
    int fd;           /* owns; immutable; changed with the lock held, but by worker_wake() */
    struct list jobs; /* the oldest first */
    unsigned n;
};

struct worker {
    struct worker_config config; /* immutable */
    pthread_t thread;            /* the owner's */
    _Atomic unsigned users;      /* the owner and the thread; the last one releases all */
    _Atomic bool is_ending;

    pthread_mutex_t lock; /* guards what follows */
    struct queue todo;
    struct queue done;
};

static void queue_add(struct queue *q, struct list *job)
{
    list_add_tail(&q->jobs, job);
    if (q->n++ == 0)
        wakeup_signal(q->fd);
}

static struct list *queue_take(struct queue *q)
{
    struct list *job = list_is_empty(&q->jobs) ? NULL : q->jobs.next;

    if (job) {
        list_remove(job);
        q->n--;
    }
    return job;
}

static void queue_drop(struct queue *q, void (*drop)(struct list *job))
{
    struct list *job;

    while ((job = queue_take(q)))
        if (drop)
            drop(job);
    closep(&q->fd);
}

static void worker_free(struct worker *w)
{
    queue_drop(&w->todo, w->config.drop);
    queue_drop(&w->done, w->config.drop);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

static void worker_unref(struct worker *w)
{
    struct worker_config config = w->config;

    if (atomic_fetch_sub(&w->users, 1) > 1)
        return;
    worker_free(w);
    if (config.release)
        config.release(config.ctx);
}

static bool wait_readable(int fd, nsec_t until)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;

    /* An owner may have signal handlers, and no system call waits for longer than INT_MAX ms. */
    do {
        nsec_t left = nsec_max(until - clock_now(), 0);
        nsec_t ms = nsec_min((left + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC, INT_MAX);

        n = poll(&p, 1, until == NSEC_NEVER ? -1 : (int)ms);
    } while ((n == 0 || (n < 0 && errno == EINTR)) && clock_now() < until);
    return n > 0;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void do_jobs(struct worker *w)
{
    while (!worker_is_ending(w)) {
        struct list *job = worker_take(w);

        if (!job) {
            worker_wait(w, NSEC_NEVER);
            continue;
        }
        w->config.job(job);
        worker_finish(w, job);
    }
}

static void *run(void *arg)
{
    struct worker *w = arg;

    if (w->config.loop)
        w->config.loop(w, w->config.ctx);
    else
        do_jobs(w);
    worker_unref(w);
    return NULL;
}

bool worker_is_ending(const struct worker *w)
{
    return atomic_load(&w->is_ending);
}

int worker_fd(const struct worker *w)
{
    return w->todo.fd;
}

/* Holds the lock. Once it has looked, it is woken for later jobs alone. */
static void look(struct worker *w)
{
    if (w->todo.n > 0)
        return;
    (void)wakeup_clear(w->todo.fd);
    /* Set before the descriptor is signalled, so either this or that call sees it. */
    if (worker_is_ending(w))
        wakeup_signal(w->todo.fd);
}

void worker_wait(struct worker *w, nsec_t until)
{
    (void)wait_readable(w->todo.fd, until);
    (void)worker_peek(w);
}

struct list *worker_peek(struct worker *w)
{
    struct list *job;

    (void)pthread_mutex_lock(&w->lock);
    look(w);
    job = w->todo.n > 0 ? w->todo.jobs.next : NULL;
    (void)pthread_mutex_unlock(&w->lock);
    return job;
}

struct list *worker_take(struct worker *w)
{
    struct list *job;

    (void)pthread_mutex_lock(&w->lock);
    look(w);
    job = queue_take(&w->todo);
    (void)pthread_mutex_unlock(&w->lock);
    return job;
}

void worker_finish(struct worker *w, struct list *job)
{
    (void)pthread_mutex_lock(&w->lock);
    queue_add(&w->done, job);
    (void)pthread_mutex_unlock(&w->lock);
}

/* ---- the owner ------------------------------------------------------------------------------- */

int worker_start(struct worker **ret, const struct worker_config *config)
{
    struct worker *w = calloc(1, sizeof(*w));
    int r;

    if (!w)
        return -ENOMEM;
    w->config = *config;
    w->users = 2;
    list_init(&w->todo.jobs);
    list_init(&w->done.jobs);
    (void)pthread_mutex_init(&w->lock, NULL);
    w->todo.fd = wakeup_open();
    w->done.fd = wakeup_open();
    r = w->todo.fd < 0 ? w->todo.fd : w->done.fd < 0 ? w->done.fd : 0;
    /* The thread may use it from its beginning. */
    *ret = w;
    if (r == 0 && config->prepare)
        r = config->prepare(w, config->ctx);
    if (r == 0)
        r = thread_start(&w->thread, config->name, -1, run, w);
    if (r < 0) {
        worker_free(w);
        *ret = NULL;
    }
    return r;
}

bool worker_put(struct worker *w, struct list *job)
{
    bool is_taken;

    (void)pthread_mutex_lock(&w->lock);
    is_taken = w->config.max == 0 || w->todo.n < w->config.max;
    if (is_taken)
        queue_add(&w->todo, job);
    (void)pthread_mutex_unlock(&w->lock);
    return is_taken;
}

void worker_wake(struct worker *w)
{
    wakeup_signal(w->todo.fd);
}

struct list *worker_collect(struct worker *w)
{
    struct list *job;

    (void)pthread_mutex_lock(&w->lock);
    job = queue_take(&w->done);
    if (w->done.n == 0)
        (void)wakeup_clear(w->done.fd);
    (void)pthread_mutex_unlock(&w->lock);
    return job;
}

bool worker_wait_done(const struct worker *w, nsec_t until)
{
    return wait_readable(w->done.fd, until);
}

int worker_done_fd(const struct worker *w)
{
    return w->done.fd;
}

static void end(struct worker *w)
{
    atomic_store(&w->is_ending, true);
    worker_wake(w);
}

struct worker *worker_stop(struct worker *w)
{
    if (!w)
        return NULL;
    end(w);
    (void)pthread_join(w->thread, NULL);
    worker_unref(w);
    return NULL;
}

struct worker *worker_leave(struct worker *w)
{
    if (!w)
        return NULL;
    end(w);
    (void)pthread_detach(w->thread);
    worker_unref(w);
    return NULL;
}
