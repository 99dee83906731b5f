/*
 * etcd_read.c - requests that read; see etcd_internal.h.
 *
 * What is read may be newer than the feed. Then the answer waits until the feed has come to the
 * same revision, because whoever asked must not see a revision that the watches were not told of.
 */
#include "backends/etcd/etcd_internal.h"

#include <stdio.h>
#include <string.h>

#include "os/clock.h"

/* A name behind all that begin with what stands in front of it: no key has this character. */
#define BEHIND '~'
/* The first name behind the one that stands in front of it. */
#define NEXT '!'

static const char *name_of(char buf[static ETCD_NAME_MAX + 1], const char *key, char end)
{
    (void)snprintf(buf, ETCD_NAME_MAX + 1, "k/%s%.1s", key, (const char[]){end, '\0'});
    return buf;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* A GET or a LIST on its way. */
struct reading {
    struct etcd *q;        /* pins */
    struct store_job *job; /* pins */
    uint64_t newest;       /* etcd's highest revision among the items */
};

static int take_item(void *ctx, const struct etcd_kv *kv)
{
    struct reading *rd = ctx;
    struct store_item item;

    if (store__check_key(kv->name + 2, 1, NULL) != 0)
        return 0;
    item = etcd_news_item(&rd->q->news, kv);
    if (kv->mod > rd->newest)
        rd->newest = kv->mod;
    return store_job_add(rd->job, &item);
}

/* The names that a LIST is of, from where it goes on. */
static struct etcd_span span_of(const struct store_job *job, char from[static ETCD_NAME_MAX + 1],
    char end[static ETCD_NAME_MAX + 1])
{
    struct etcd_span span = {.is_down = job->order == STORE_DESCENDING};
    char place[ETCD_NAME_MAX + 1];

    (void)name_of(from, job->key, '\0');
    (void)name_of(end, job->key, BEHIND);
    if (job->from) {
        (void)name_of(place, job->from, span.is_down ? '\0' : NEXT);
        if (span.is_down && strcmp(place, end) < 0)
            memcpy(end, place, sizeof(place));
        if (!span.is_down && strcmp(place, from) > 0)
            memcpy(from, place, sizeof(place));
    }
    span.from = from;
    span.end = end;
    return span;
}

void etcd__read(struct etcd *q, struct store_job *job)
{
    struct reading rd = {.q = q, .job = job};
    nsec_t until = clock_now() + ETCD_JOB_NS;
    char from[ETCD_NAME_MAX + 1];
    char end[ETCD_NAME_MAX + 1];
    struct etcd_span span;
    struct err e = ERR_NULL;
    uint64_t revision = 0;
    int r;

    if (job->kind == STORE_JOB_LIST)
        span = span_of(job, from, end);
    else
        span = (struct etcd_span){
            .from = name_of(from, job->key, '\0'), .end = name_of(end, job->key, NEXT)};
    /* An empty span is none to etcd: its end would be before its beginning. */
    r = strcmp(span.from, span.end) < 0
            ? etcd__read_pages(q, span, until, &revision, take_item, &rd, &e)
            : 0;
    /* 1: the page is full. */
    r = r == 1 && job->has_more ? 0 : r;
    if (r == 0)
        r = etcd__wait_for(q, rd.newest, until, &e);
    job->revision = q->news.revision;
    if (r != 0) {
        store_job_undo(job);
        etcd__fail(q, job, r, &e);
        return;
    }
    job->r = job->kind == STORE_JOB_GET && job->items.n == 0 ? STORE_E_ABSENT : 0;
    store__finish(&q->base, job);
}
