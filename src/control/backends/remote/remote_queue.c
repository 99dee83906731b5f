/* remote_queue.c - see remote_queue.h. */
#include "remote_queue.h"

#include <string.h>

#include "base/err.h"
#include "os/file.h"
#include "os/thread.h"
#include "store/store_backend.h"

void remote_queue_init(struct remote_queue *q)
{
    *q = (struct remote_queue){.wake_fd = -1};
    (void)pthread_mutex_init(&q->lock, NULL);
    list_init(&q->jobs);
}

void remote_queue_deinit(struct remote_queue *q)
{
    closep(&q->wake_fd);
    (void)pthread_mutex_destroy(&q->lock);
}

int remote_queue_start(struct remote_queue *q, void *(*run)(void *), void *ctx, struct err *e)
{
    int fd = wakeup_open();
    int r;

    if (fd < 0)
        return err_set(e, fd, "no descriptor for the store: %s", strerror(-fd));
    q->wake_fd = fd;
    r = thread_start(&q->thread, "store", -1, run, ctx);
    q->has_thread = r == 0;
    return r == 0 ? 0 : err_set(e, r, "no thread for the store: %s", strerror(-r));
}

void remote_queue_stop(struct remote_queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    q->is_ending = true;
    (void)pthread_mutex_unlock(&q->lock);
    if (!q->has_thread)
        return;
    wakeup_signal(q->wake_fd);
    (void)pthread_join(q->thread, NULL);
    q->has_thread = false;
}

void remote_queue_add(struct remote_queue *q, struct store_job *job)
{
    (void)pthread_mutex_lock(&q->lock);
    list_add_tail(&q->jobs, &job->link);
    (void)pthread_mutex_unlock(&q->lock);
    wakeup_signal(q->wake_fd);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static bool has_key(const struct list *jobs, const char *key)
{
    const struct store_job *job;

    list_foreach(job, jobs, link)
        for (size_t i = 0; i < job->n_ops; i++)
            if (strcmp(job->ops[i].key, key) == 0)
                return true;
    return false;
}

/* Is none of its keys among those of @jobs? */
static bool is_apart(const struct list *jobs, const struct store_job *job)
{
    for (size_t i = 0; i < job->n_ops; i++)
        if (has_key(jobs, job->ops[i].key))
            return false;
    return true;
}

/* What was taken so far. */
struct taken {
    const struct remote_queue_limits *limits; /* borrowed */
    struct list *jobs;                        /* borrowed */
    size_t n_ops;
    size_t bytes;
};

static bool is_within(const struct taken *t, const struct store_job *job)
{
    return t->n_ops + job->n_ops <= t->limits->ops_max &&
           t->bytes + job->bytes <= t->limits->bytes_max;
}

/* May @job be taken together with those that were taken? */
static bool goes_along(const struct taken *t, const struct store_job *job)
{
    return t->limits->can_share(job) && is_within(t, job) &&
           (!t->limits->is_apart || is_apart(t->jobs, job));
}

bool remote_queue_take(struct remote_queue *q, const struct remote_queue_limits *limits,
    struct list *ret, bool *ret_ends)
{
    struct taken t = {.limits = limits, .jobs = ret};
    bool has_room = true;
    struct store_job *job;

    (void)pthread_mutex_lock(&q->lock);
    *ret_ends = q->is_ending;
    while (has_room && (job = list_first(&q->jobs, struct store_job, link))) {
        if (list_is_empty(ret))
            has_room = limits->can_share(job) && is_within(&t, job);
        else if (!goes_along(&t, job))
            break;
        t.n_ops += job->n_ops;
        t.bytes += job->bytes;
        list_remove(&job->link);
        list_add_tail(ret, &job->link);
    }
    (void)pthread_mutex_unlock(&q->lock);
    return !list_is_empty(ret);
}
