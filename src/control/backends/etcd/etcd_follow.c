/*
 * etcd_follow.c - reads what etcd has, and follows its changes; see etcd_internal.h.
 *
 * Every read is a transaction that expects that no large commit is being made, so that nobody sees
 * half of one. It is linearizable: it sees every commit that any hub was told is done.
 */
#include "backends/etcd/etcd_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"

/* Most keys in one answer of etcd; when an answer is too long, a quarter as many are asked for. */
#define PAGE_KEYS 512

/* After so much silence of the feed, its server is sent a request. */
#define PULSE_NS (2 * NSEC_PER_SEC)

/* How long the feed may lag behind the answers of the server. */
#define LAG_NS (1 * NSEC_PER_SEC)

/* ---- reading -------------------------------------------------------------------------------- */

/* Read a span once. @revision: etcd's, at which it was so. */
static int read_span(struct etcd *q, const struct etcd_span *span, nsec_t until,
    struct etcd_kvs *ret, uint64_t *revision, struct err *e)
{
    int r = ETCD_E_AWAY;

    for (bool is_done = false; !is_done;) {
        struct str body = STR_NULL;
        json_t *answer = NULL;

        str_add(&body, "{\"compare\":[");
        etcd_add_compare(&body, q->client.prefix, "i", 0);
        str_add(&body, "],\"success\":[{\"request_range\":{");
        etcd_add_span(&body, q->client.prefix, span);
        str_add(&body, "}}]}");
        r = etcd__ask(q, "/v3/kv/txn", &body, until, &answer, e);
        str_deinit(&body);
        is_done = r != 0 || etcd_answer_succeeded(answer);
        if (r == 0 && is_done)
            r = etcd_answer_revision(answer, revision, e);
        if (r == 0 && is_done)
            r = etcd_answer_nth(answer, 0, q->client.prefix, ret, e);
        json_decref(answer);
        if (!is_done) {
            r = etcd__large_help(q, until, e);
            is_done = r != 0;
        }
    }
    return r == ETCD_E_LOST ? ETCD_E_AWAY : r;
}

int etcd__read_pages(struct etcd *q, struct etcd_span span, nsec_t until, uint64_t *revision,
    etcd_kv_fn fn, void *ctx, struct err *e)
{
    char place[ETCD_NAME_MAX + 2];
    bool has_more = true;
    int r = 0;

    span.limit = PAGE_KEYS;
    while (r == 0 && has_more) {
        struct etcd_kvs kvs = ETCD_KVS_NULL;

        r = read_span(q, &span, until, &kvs, revision, e);
        if (r == ETCD_E_TOO_BIG && span.limit > 1) {
            span.limit = span.limit < 4 ? 1 : span.limit / 4;
            r = 0;
            continue;
        }
        for (size_t i = 0; r == 0 && i < kvs.n; i++)
            r = fn(ctx, &kvs.items[i]);
        has_more = r == 0 && kvs.has_more && kvs.n > 0;
        if (has_more) {
            const char *last = kvs.items[kvs.n - 1].name;

            span.at = *revision;
            (void)snprintf(place, sizeof(place), "%s%s", last, span.is_down ? "" : "!");
            if (span.is_down)
                span.end = place;
            else
                span.from = place;
        }
        etcd_kvs_deinit(&kvs);
    }
    return r;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static const struct etcd_span all = {.from = "k/", .end = "k/~"};

/* What is known at the start. */
struct loading {
    struct etcd *q; /* pins */
    nsec_t now;
};

static int take_known(void *ctx, const struct etcd_kv *kv)
{
    struct loading *l = ctx;
    struct store_item item = etcd_news_item(&l->q->news, kv);
    int r = etcd_news_note(&l->q->news, item.key, true);

    return r == 0 ? leases_set(&l->q->base.leases, item.key, item.ttl_seconds, l->now) : r;
}

int etcd__load(struct etcd *q, nsec_t now, nsec_t until, struct err *e)
{
    struct loading l = {.q = q, .now = now};
    uint64_t base = q->news.base;
    uint64_t revision = 0;
    int r = etcd__read_pages(q, all, until, &revision, take_known, &l, e);

    if (r != 0)
        return r;
    q->news.position = revision;
    q->news.revision = revision - base;
    q->news.log_first = revision - base + 1;
    q->base.revision = revision - base;
    etcd_feed_restart(&q->feed, revision);
    store__set_current(&q->base, clock_now());
    return 0;
}

/* After a gap: the keys as they are, and those that were told of before. */
struct catching {
    struct etcd *q;          /* pins */
    struct etcd_kvs changed; /* owns: written in the gap */
    struct keys there;       /* owns: all keys that there are */
};

static int take_changed(void *ctx, const struct etcd_kv *kv)
{
    struct catching *c = ctx;
    struct keyed *k = calloc(1, sizeof(*k));
    struct etcd_kv *items;

    if (k)
        k->key = strdup(kv->name + 2);
    if (!k || !k->key || keys_add(&c->there, k) != 0) {
        if (k)
            free(k->key);
        free(k);
        return -ENOMEM;
    }
    if (kv->mod <= c->q->news.position)
        return 0;
    items = realloc(c->changed.items, (c->changed.n + 1) * sizeof(*items));
    if (!items)
        return -ENOMEM;
    c->changed.items = items;
    items[c->changed.n] = *kv;
    items[c->changed.n].name = strdup(kv->name);
    items[c->changed.n].value = calloc(1, kv->len + 1);
    if (!items[c->changed.n].name || !items[c->changed.n].value) {
        free(items[c->changed.n].name);
        free(items[c->changed.n].value);
        return -ENOMEM;
    }
    memcpy(items[c->changed.n++].value, kv->value, kv->len);
    return 0;
}

static void tell_one(struct etcd *q, struct etcd_kv *kv, uint64_t revision)
{
    struct etcd_kvs one = {.items = kv, .n = 1};
    struct store_job *job = etcd_news_job(&one, revision);

    if (!job)
        return;
    etcd_news_done(&q->news, job);
    etcd__tell(q, job);
}

static int by_mod(const void *a, const void *b)
{
    const struct etcd_kv *x = a;
    const struct etcd_kv *y = b;

    return x->mod < y->mod ? -1 : x->mod > y->mod;
}

/* Keys that are gone first, then what was written, in that order; each by itself, because each has
 * a revision of its own. */
static void tell_gap(struct catching *c, uint64_t revision)
{
    struct etcd *q = c->q;
    char name[ETCD_NAME_MAX + 1];

    for (size_t i = q->news.known.n; i > 0; i--) {
        struct etcd_kv gone = {.name = name};
        const char *key = q->news.known.items[i - 1]->key;

        if (keys_find(&c->there, key))
            continue;
        (void)snprintf(name, sizeof(name), "k/%s", key);
        tell_one(q, &gone, q->news.revision);
    }
    qsort(c->changed.items, c->changed.n, sizeof(*c->changed.items), by_mod);
    for (size_t i = 0; i < c->changed.n; i++)
        tell_one(q, &c->changed.items[i], etcd_news_revision_of(&q->news, &c->changed.items[i]));
    q->news.position = revision;
    q->news.revision = revision - q->news.base;
    etcd_news_forget(&q->news, q->news.revision + 1);
}

/* After a gap of the feed: tell what has become of each key. */
static void catch_up(struct etcd *q, nsec_t until)
{
    struct catching c = {.q = q};
    struct err e = ERR_NULL;
    uint64_t revision = 0;

    if (etcd__read_pages(q, all, until, &revision, take_changed, &c, &e) == 0) {
        /* What is queued is older than what was read. */
        etcd_feed_restart(&q->feed, revision);
        etcd_kvs_deinit(&q->news.large.changes);
        q->news.is_large = false;
        tell_gap(&c, revision);
        store__count_relist(&q->base);
        store__set_current(&q->base, clock_now());
    }
    for (size_t i = 0; i < c.there.n; i++) {
        free(c.there.items[i]->key);
        free(c.there.items[i]);
    }
    keys_deinit(&c.there);
    etcd_kvs_deinit(&c.changed);
}

/* ---- keeping up -------------------------------------------------------------------------------
 */

/* Ask the feed's server whether it answers, and whether it has the latest revision. */
static void pulse(struct etcd *q, nsec_t now)
{
    struct str body = STR_NULL;
    json_t *answer = NULL;
    struct err e = ERR_NULL;

    q->asked_at = now;
    str_add(&body, "{");
    etcd_add_span(&body, q->client.prefix, &(struct etcd_span){.from = "about", .end = "about!"});
    str_add(&body, "}");
    if (etcd__probe(q, "/v3/kv/range", &body, &answer, &e) == 0)
        store__set_current(&q->base, now);
    json_decref(answer);
    str_deinit(&body);
}

void etcd__tend(struct etcd *q, nsec_t now)
{
    etcd_feed_tend(&q->feed, now);
    if (q->feed.compacted)
        catch_up(q, now + ETCD_JOB_NS);
    if (etcd_feed_is_silent(&q->feed, now, PULSE_NS) && now - q->asked_at >= PULSE_NS)
        pulse(q, now);
    etcd_session_keep(&q->session, &q->client, now, now);
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
            catch_up(q, until);
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
