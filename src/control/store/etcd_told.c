/* etcd_told.c - from the feed to the owner's loop; see etcd_internal.h. */
#include "store/etcd_internal.h"

#include <errno.h>
#include <string.h>

#include "os/clock.h"

/* Commits that may wait for the owner's loop, above which the feed waits. */
#define TOLD_MAX 4096

/* After so much silence the server of the feed is asked something. */
#define PULSE_NS (2 * NSEC_PER_SEC)

/* So long the feed may lack what a server has answered already. */
#define LAG_NS (1 * NSEC_PER_SEC)

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
        etcd_feed_drop(&q->feed);
        if (seen)
            tell_seen(q, seen);
    }
}

/* Ask the feed's server whether it is there, and as far as the others. */
static void pulse(struct etcd *q, nsec_t now)
{
    struct str body = STR_NULL;
    json_t *answer = NULL;
    struct err e = ERR_NULL;

    q->asked_at = now;
    str_add(&body, "{");
    etcd_add_span(&body, q->client.prefix, &(struct etcd_span){.from = "about", .end = "about!"});
    str_add(&body, "}");
    (void)etcd__ask(q, "/v3/kv/range", &body, now, &answer, &e);
    json_decref(answer);
    str_deinit(&body);
}

void etcd__tend(struct etcd *q, nsec_t now)
{
    etcd_feed_tend(&q->feed, now);
    if (q->feed.compacted)
        etcd__catch_up(q, now + ETCD_JOB_NS);
    if (etcd_feed_is_silent(&q->feed, now, PULSE_NS) && now - q->asked_at >= PULSE_NS)
        pulse(q, now);
    etcd_session_keep(&q->session, &q->client, now, now);
}

void etcd__wait(struct etcd *q, int fd, unsigned ms)
{
    remote_http_wait(q->client.http, fd, ms);
    etcd__drain(q);
    etcd_feed_tend(&q->feed, clock_now());
}

int etcd__wait_for(struct etcd *q, uint64_t revision, nsec_t until, struct err *e)
{
    nsec_t since = clock_now();
    nsec_t now = since;

    etcd__drain(q);
    while (q->news.position < revision && now < until) {
        etcd__wait(q, -1, 100);
        now = clock_now();
        if (q->feed.compacted)
            etcd__catch_up(q, until);
        if (q->news.position < revision && now - since >= LAG_NS &&
            now - q->feed.heard_at >= LAG_NS) {
            remote_http_turn(q->client.http);
            since = now;
        }
    }
    if (q->news.position >= revision)
        return 0;
    return err_set(e, ETCD_E_AWAY, "etcd does not tell what has changed: %s", q->feed.e.text);
}
