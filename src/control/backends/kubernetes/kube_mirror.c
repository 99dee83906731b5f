/*
 * kube_mirror.c - the keys in memory of a store in Kubernetes, and telling how they differ from
 * those before; see kubernetes_internal.h.
 */
#include "backends/kubernetes/kubernetes_internal.h"

#include <errno.h>

#include "os/clock.h"
#include "store/memory.h"

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

    return memory_revision_of(d->other, item->key) ? 0 : tell(d->q, &op, d->revision);
}

static int tell_new(void *ctx, const struct store_item *item)
{
    const struct difference *d = ctx;
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = item->key,
        .value = item->value,
        .ttl_seconds = item->ttl_seconds};

    return memory_revision_of(d->other, item->key) == item->revision
               ? 0
               : tell(d->q, &op, item->revision);
}

int kube_mirror__tell_differences(struct kubernetes *q, struct store *before)
{
    struct difference d = {.q = q, .other = q->mirror, .revision = memory_revision(q->mirror)};
    int r = memory_walk(before, tell_gone, &d);

    d.other = before;
    return r == 0 ? memory_walk(q->mirror, tell_new, &d) : r;
}
