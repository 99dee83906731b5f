/* store_watch.c - see store_watch.h. */
#include "store_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct store_watch {
    struct list link;           /* in the store's watches */
    struct store *s;            /* pins */
    char *prefix;               /* owns */
    store_change_fn fn;         /* told */
    void *ctx;                  /* pins: for fn */
    struct store_job *catching; /* pins: reads what the watch missed; NULL: it has missed nothing */
    bool closed;  /* it was closed during store_dispatch(), which frees it at its end */
    bool is_lost; /* its owner was told that changes are missing; it is told nothing more */
};

static void watch_free(struct store_watch *w)
{
    list_remove(&w->link);
    free(w->prefix);
    free(w);
}

/* Have the back end read the changes from @from on. */
static int catch_up(struct store_watch *w, uint64_t from, struct err *e)
{
    struct store_job *job = store_job_new(STORE_JOB_CHANGES);
    int r;

    if (job)
        job->key = strdup(w->prefix);
    if (!job || !job->key) {
        store_job_free(job);
        return err_set(e, -ENOMEM, "no memory for a watch");
    }
    job->first = from;
    job->watch = w;
    w->catching = job;
    r = store__submit(w->s, job, e);
    if (r != 0)
        w->catching = NULL;
    return r;
}

int store_watch(struct store *s, const char *prefix, uint64_t from, store_change_fn fn, void *ctx,
    struct store_watch **ret, struct err *e)
{
    struct store_watch *w;
    int r = store__check_key(prefix, 0, e);

    if (r != 0)
        return r;
    w = calloc(1, sizeof(*w));
    if (!w)
        return err_set(e, -ENOMEM, "no memory for a watch");
    *w = (struct store_watch){.s = s, .fn = fn, .ctx = ctx};
    list_init(&w->link);
    w->prefix = strdup(prefix);
    if (!w->prefix)
        r = err_set(e, -ENOMEM, "no memory for a watch");
    if (r == 0 && from <= s->revision)
        r = catch_up(w, from, e);
    if (r != 0) {
        watch_free(w);
        return r;
    }
    list_add_tail(&s->watches, &w->link);
    *ret = w;
    return 0;
}

struct store_watch *store_watch_close(struct store_watch *w)
{
    if (!w)
        return NULL;
    w->closed = true;
    if (w->catching)
        w->catching->watch = NULL;
    w->catching = NULL;
    if (!w->s->is_dispatching)
        watch_free(w);
    return NULL;
}

void store_watch__tell(struct store *s, const struct store_item *item)
{
    struct store_watch *w;

    list_foreach(w, &s->watches, link) {
        if (!w->closed && !w->is_lost && !w->catching &&
            strncmp(item->key, w->prefix, strlen(w->prefix)) == 0)
            w->fn(w->ctx, item);
    }
}

void store_watch__catch_up(struct store_job *job)
{
    struct store_watch *w = job->watch;

    if (!w)
        return;
    w->catching = NULL;
    if (job->r != 0) {
        w->is_lost = true;
        w->fn(w->ctx, NULL);
        return;
    }
    for (size_t i = 0; i < job->items.n && !w->closed; i++)
        w->fn(w->ctx, &job->items.items[i]);
}

void store_watch__free_closed(struct store *s)
{
    struct store_watch *w;
    struct store_watch *tmp;

    list_foreach_safe(w, tmp, &s->watches, link) {
        if (w->closed)
            watch_free(w);
    }
}
