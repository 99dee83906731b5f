/* etcd_told.c - from the feed to the owner's loop; see etcd_internal.h. */
#include "backends/etcd/etcd_internal.h"

#include <string.h>

#include "os/clock.h"

/* Commits that may wait for the owner's loop, above which the feed waits. */
#define TOLD_MAX 4096

static void on_taken(void *ctx, const struct store_answer *a)
{
    struct etcd *q = ctx;

    atomic_fetch_sub(&q->n_told, 1);
}

void etcd__tell(struct etcd *q, struct store_job *job)
{
    job->asked_at = clock_now();
    job->is_unasked = true;
    job->done = on_taken;
    job->ctx = q;
    atomic_fetch_add(&q->n_told, 1);
    store__finish(&q->base, job);
}

/* The commit that is being made is done: hand its jobs back. */
static void finish_current(struct etcd *q, uint64_t revision)
{
    struct store_job *job;

    /* Which deletions take effect is asked before any of the jobs changes what there is; the jobs
     * of one transaction have no key in common. */
    while ((job = list_first(q->current, struct store_job, link))) {
        for (size_t i = 0; i < job->n_ops; i++) {
            const struct store_op *op = &job->ops[i];

            job->took_effect[i] = op->kind == STORE_OP_PUT ||
                                  (op->kind == STORE_OP_DELETE && etcd_news_has(&q->news, op->key));
        }
        job->r = 0;
        job->revision = revision;
        etcd_news_done(&q->news, job);
        list_remove(&job->link);
        store__finish(&q->base, job);
    }
    q->is_current_seen = true;
}

static void tell_seen(struct etcd *q, const struct etcd_commit_seen *seen)
{
    struct store_job *job;

    if (q->current && seen->writer.seq == q->current_seq &&
        strcmp(seen->writer.session, q->session.name) == 0) {
        finish_current(q, seen->revision);
        return;
    }
    if (seen->changes.n == 0)
        return;
    job = etcd_news_job(&seen->changes, seen->revision);
    if (!job)
        return;
    etcd_news_done(&q->news, job);
    etcd__tell(q, job);
}

/* Does a revision write the own session's key? Then that is what the next commit expects. */
static void note_session(struct etcd *q, const struct etcd_revision *rev)
{
    char key[ETCD_SESSION_MAX + 3];
    const struct etcd_kv *kv = etcd_kvs_find(&rev->events, etcd_session_key(q->session.name, key));

    if (kv && kv->value && kv->mod > q->session.mod)
        q->session.mod = kv->mod;
}

void etcd__drain(struct etcd *q)
{
    struct etcd_revision *rev;

    while ((rev = etcd_feed_next(&q->feed)) && atomic_load(&q->n_told) < TOLD_MAX) {
        const struct etcd_commit_seen *seen = NULL;
        size_t bytes = 0;

        if (q->session.name[0])
            note_session(q, rev);
        for (size_t i = 0; i < rev->events.n; i++)
            bytes += rev->events.items[i].len;
        q->feed.bytes -= bytes;
        /* Without memory the changes are lost here, so everything is read again. */
        if (etcd_news_take(&q->news, rev->number, &rev->events, &seen) != 0)
            q->feed.compacted = rev->number;
        else
            store__set_current(&q->base, q->feed.heard_at);
        etcd_feed_drop(&q->feed);
        if (seen)
            tell_seen(q, seen);
    }
}

void etcd__wait(struct etcd *q, int fd, unsigned ms)
{
    remote_http_wait(q->client.http, fd, ms);
    etcd__drain(q);
    etcd_feed_tend(&q->feed, clock_now());
}
