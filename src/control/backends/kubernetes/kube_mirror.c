/*
 * kube_mirror.c - the keys in memory of a store in Kubernetes, and telling how they differ from
 * those before; see kubernetes_internal.h.
 */
#include "backends/kubernetes/kubernetes_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "store/memory.h"

/* The page of @from's keys behind @after; NULL: no memory. */
static struct store_job *read_page(struct store *from, const char *after)
{
    struct store_job *job = store_job_new(STORE_JOB_LIST);

    if (!job)
        return NULL;
    job->key = strdup("");
    job->from = after ? strdup(after) : NULL;
    job->limit = STORE_PAGE_MAX;
    if (!job->key || (after && !job->from))
        return store_job_free(job);
    memory_run(from, job);
    return job->r == 0 ? job : store_job_free(job);
}

/* The revision of @key in @s; 0: it is not there. */
static uint64_t revision_in(struct store *s, const char *key)
{
    struct store_job *job = store_job_new(STORE_JOB_GET);
    uint64_t revision = 0;

    if (job)
        job->key = strdup(key);
    if (job && job->key) {
        memory_run(s, job);
        if (job->r == 0)
            revision = job->items.items[0].revision;
    }
    store_job_free(job);
    return revision;
}

static int tell(struct kubernetes *q, const struct store_op *op, uint64_t revision)
{
    struct store_job *job = store_job_new(STORE_JOB_COMMIT);

    if (!job || store_job_set_ops(job, op, 1) != 0) {
        store_job_free(job);
        return -ENOMEM;
    }
    job->took_effect[0] = true;
    job->is_unasked = true;
    job->asked_at = clock_now();
    job->revision = revision;
    store__finish(&q->base, job);
    return 0;
}

int kube_mirror__walk(struct store *s, kube_item_fn fn, void *ctx)
{
    char *after = NULL;
    bool has_more = true;
    int r = 0;

    while (r == 0 && has_more) {
        struct store_job *page = read_page(s, after);

        free(after);
        after = NULL;
        if (!page)
            return -ENOMEM;
        for (size_t i = 0; r == 0 && i < page->items.n; i++)
            r = fn(ctx, &page->items.items[i]);
        has_more = page->has_more;
        if (has_more && !(after = strdup(page->items.items[page->items.n - 1].key)))
            r = -ENOMEM;
        store_job_free(page);
    }
    free(after);
    return r;
}

/* Two states of the store, of which the first one's keys are walked through. */
struct difference {
    struct kubernetes *q;
    struct store *other;
    uint64_t revision; /* of the newer one */
};

static int tell_gone(void *ctx, const struct store_item *item)
{
    const struct difference *d = ctx;
    struct store_op op = {.kind = STORE_OP_DELETE, .key = item->key};

    return revision_in(d->other, item->key) ? 0 : tell(d->q, &op, d->revision);
}

static int tell_new(void *ctx, const struct store_item *item)
{
    const struct difference *d = ctx;
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = item->key,
        .value = item->value,
        .ttl_seconds = item->ttl_seconds};

    return revision_in(d->other, item->key) == item->revision ? 0 : tell(d->q, &op, item->revision);
}

int kube_mirror__tell_differences(struct kubernetes *q, struct store *before)
{
    struct difference d = {.q = q, .other = q->mirror, .revision = memory_revision(q->mirror)};
    int r = kube_mirror__walk(before, tell_gone, &d);

    d.other = before;
    return r == 0 ? kube_mirror__walk(q->mirror, tell_new, &d) : r;
}
