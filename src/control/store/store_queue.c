/* store_queue.c - see store_queue.h. */
#include "store_queue.h"

#include <string.h>

#include "base/err.h"
#include "os/worker.h"
#include "store/store_backend.h"

int store_queue_start(
    struct worker **ret, void (*loop)(struct worker *w, void *ctx), void *ctx, struct err *e)
{
    int r = worker_start(ret, &(struct worker_config){.name = "store", .loop = loop, .ctx = ctx});

    return r == 0 ? 0 : err_set(e, r, "no thread for the store: %s", strerror(-r));
}

void store_queue_submit(struct store *s, struct store_job *job)
{
    (void)worker_put(s->worker, &job->link);
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
    const struct store_queue_limits *limits; /* borrowed */
    struct list *jobs;                       /* borrowed */
    size_t n_ops;
    size_t bytes;
};

/* May @job be taken together with those that were taken, which may be none? */
static bool goes_along(const struct taken *t, const struct store_job *job)
{
    return job->kind == STORE_JOB_COMMIT && (!t->limits->can_share || t->limits->can_share(job)) &&
           t->n_ops + job->n_ops <= t->limits->ops_max &&
           t->bytes + job->bytes <= t->limits->bytes_max &&
           (!t->limits->is_apart || is_apart(t->jobs, job));
}

bool store_queue_take(
    struct worker *w, const struct store_queue_limits *limits, struct list *ret, bool *ret_ends)
{
    struct taken t = {.limits = limits, .jobs = ret};
    bool has_space = true;
    struct list *link;

    /* Asked before: jobs come until it is ending, and not after that. */
    *ret_ends = worker_is_ending(w);
    while (has_space && (link = worker_peek(w))) {
        struct store_job *job = container_of(link, struct store_job, link);

        has_space = goes_along(&t, job);
        if (!has_space && !list_is_empty(ret))
            break;
        t.n_ops += job->n_ops;
        t.bytes += job->bytes;
        list_add_tail(ret, worker_take(w));
    }
    return !list_is_empty(ret);
}
