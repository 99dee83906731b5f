/* etcd_follow.c - requests, the steps of large commits, and following the feed; see
 * etcd_internal.h. */
#include "backends/etcd/etcd_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"

/* ---- what every request to etcd and every answer to the owner has ---------------------------- */

/* While etcd is away, one job in this time is tried; the others fail at once. */
#define AWAY_NS (1 * NSEC_PER_SEC)

int etcd__ask(
    struct etcd *q, const char *path, struct str *body, nsec_t until, json_t **ret, struct err *e)
{
    nsec_t now = clock_now();
    int r;

    if (body->failed)
        return err_set(e, -ENOMEM, "no memory for a request to etcd");
    if (q->away_at && now - q->away_at < AWAY_NS) {
        *e = q->away;
        return ETCD_E_AWAY;
    }
    r = etcd_client_ask(&q->client, path, str_text(body), q->away_at ? now : until, ret, e);
    now = clock_now();
    q->away_at = r == ETCD_E_AWAY || r == ETCD_E_LOST ? now : 0;
    if (r == 0)
        q->asked_at = now;
    else if (q->away_at)
        q->away = *e;
    q->is_probe_lost = q->is_probe_lost && r != 0;
    return r;
}

/*
 * Ask the current server, once
 *
 * When it does not answer, the next server becomes the current one. Only when that one does not
 * answer a probe either is etcd taken to be away. As etcd_client_ask().
 */
static int probe(struct etcd *q, const char *path, struct str *body, json_t **ret, struct err *e)
{
    nsec_t now = clock_now();
    int r;

    if (q->away_at || q->is_probe_lost || body->failed)
        return etcd__ask(q, path, body, now, ret, e);
    r = etcd_client_ask(&q->client, path, str_text(body), now, ret, e);
    q->is_probe_lost = r == ETCD_E_AWAY || r == ETCD_E_LOST;
    return r;
}

void etcd__fail(struct etcd *q, struct store_job *job, int r, const struct err *e)
{
    if (r == ETCD_E_CONFLICT)
        job->r = err_set(&job->e, STORE_E_CONFLICT, "key \"%s\" is not at the expected revision",
            job->ops[job->failed].key);
    else if (r == 0 || r == ETCD_E_LOST)
        job->r = err_set(&job->e, STORE_E_UNKNOWN,
            "etcd has not answered, and may have done it (most of its members must be up): %s",
            e->text);
    else if (r == ETCD_E_AWAY)
        job->r =
            err_set(&job->e, -EIO, "etcd is away (most of its members must be up): %s", e->text);
    else
        job->r = err_set(&job->e, r < 0 ? r : -EIO, "%s", e->text);
    job->revision = q->updates.revision;
    store__finish(&q->base, job);
}

int etcd__need_session(struct etcd *q, nsec_t until, struct err *e)
{
    return q->session.name[0] ? 0 : etcd_session_begin(&q->session, &q->client, until, e);
}

const char *etcd__key_name(char buf[static ETCD_NAME_MAX + 1], const char *key)
{
    (void)snprintf(buf, ETCD_NAME_MAX + 1, "k/%s", key);
    return buf;
}

void etcd__add_op(
    const struct etcd *q, const struct store_op *op, uint64_t revision, struct str *to)
{
    char name[ETCD_NAME_MAX + 1];
    size_t len = 0;
    char *raw;

    (void)etcd__key_name(name, op->key);
    if (op->kind == STORE_OP_DELETE) {
        etcd_add_delete(to, q->client.prefix, name);
        return;
    }
    raw = etcd_value_encode(&(struct etcd_value){.text = op->value,
                                .len = strlen(op->value),
                                .ttl_seconds = op->ttl_seconds,
                                .is_unwatched = op->is_unwatched,
                                .revision = revision},
        &len);
    if (raw)
        etcd_add_put(to, q->client.prefix, name, raw, len, 0);
    else
        to->failed = true;
    free(raw);
}

/* Read @span at once. As etcd_client_ask(); @ret: for etcd_kvs_deinit(). */
static int read_now(
    struct etcd *q, const struct etcd_span *span, nsec_t until, struct etcd_kvs *ret, struct err *e)
{
    _cleanup_(str_deinit) struct str body = STR_NULL;
    json_auto_t *answer = NULL;
    int r;

    str_add(&body, "{");
    etcd_add_span(&body, q->client.prefix, span);
    str_add(&body, "}");
    r = etcd__ask(q, "/v3/kv/range", &body, until, &answer, e);
    return r == 0 ? etcd_answer_kvs(answer, q->client.prefix, ret, e) : r;
}

/* ---- from the feed to the owner's loop ------------------------------------------------------- */

/* Commits that may wait for the owner's loop, above which the feed waits. */
#define UNTAKEN_MAX 4096

static void on_taken(void *ctx, const struct store_answer *a)
{
    struct etcd *q = ctx;

    atomic_fetch_sub(&q->n_untaken, 1);
}

/* Hand @changes to the owner's loop, as a commit that nobody asked for. */
static void tell(struct etcd *q, const struct etcd_kvs *changes, uint64_t revision)
{
    struct store_job *job = etcd_updates_job(changes, revision);

    if (!job)
        return;
    etcd_updates_done(&q->updates, job);
    job->asked_at = clock_now();
    job->is_unasked = true;
    job->done = on_taken;
    job->ctx = q;
    atomic_fetch_add(&q->n_untaken, 1);
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

            job->took_effect[i] =
                op->kind == STORE_OP_PUT ||
                (op->kind == STORE_OP_DELETE && keys_find(&q->updates.known, op->key));
        }
        job->r = 0;
        job->revision = revision;
        etcd_updates_done(&q->updates, job);
        list_remove(&job->link);
        store__finish(&q->base, job);
    }
    q->is_current_seen = true;
}

static void tell_seen(struct etcd *q, const struct etcd_commit_seen *seen)
{
    if (q->current && seen->writer.seq == q->current_seq &&
        strcmp(seen->writer.session, q->session.name) == 0)
        finish_current(q, seen->revision);
    else if (seen->changes.n > 0)
        tell(q, &seen->changes, seen->revision);
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

    while ((rev = etcd_feed_next(&q->feed)) && atomic_load(&q->n_untaken) < UNTAKEN_MAX) {
        const struct etcd_commit_seen *seen = NULL;

        if (q->session.name[0])
            note_session(q, rev);
        q->feed.bytes -= etcd_kvs_bytes(&rev->events);
        /* Without memory the changes are lost here, so everything is read again. */
        if (etcd_updates_take(&q->updates, rev->number, &rev->events, &seen) != 0)
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

/* ---- the steps of large commits, of whichever hub -------------------------------------------- */

/*
 * Which steps there are is said in etcd_commit.c. The hub that makes a large commit brings it to
 * its end here, and so does any hub that finds one unfinished.
 */

/* How long a large commit of somebody else may stand still in each of its states. */
#define HELP_APPLY_NS (500 * NSEC_PER_MSEC)
#define HELP_CHECK_NS (3 * NSEC_PER_SEC)

/* Names of parts that are cleaned at once. */
#define CLEAN_MAX 1000

const char *etcd__part_name(
    char buf[static ETCD_NAME_MAX + 1], const struct etcd_writer *w, uint64_t part)
{
    (void)snprintf(buf, ETCD_NAME_MAX + 1, "d/%s.%" PRIu64 "/%04" PRIu64, w->session, w->seq, part);
    return buf;
}

/* ---- parts ---------------------------------------------------------------------------------- */

/* The operations of a part, as operations of a transaction. False: it is damaged. */
static bool add_part(struct etcd *q, const struct etcd_kv *part, uint64_t revision, struct str *to)
{
    char *p = part->value;
    const char *end = part->value + part->len;

    while (p < end) {
        struct store_op op;
        char behind;

        if (!etcd_part_next(&p, end, &op))
            return false;
        behind = *p;
        *p = '\0';
        etcd__add_op(q, &op, revision, to);
        *p = behind;
    }
    return true;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Send a transaction that fails where its comparisons do not hold. @ret_mod: etcd's revision of it;
 * NULL: not wanted. */
int etcd__step(struct etcd *q, struct str *body, nsec_t until, uint64_t *ret_mod, struct err *e)
{
    json_auto_t *answer = NULL;
    int r = etcd__ask(q, "/v3/kv/txn", body, until, &answer, e);

    str_deinit(body);
    if (r == 0 && !etcd_answer_succeeded(answer))
        return ETCD_E_LOST_HEAD;
    return r == 0 && ret_mod ? etcd_answer_revision(answer, ret_mod, e) : r;
}

/* What "i" is. @ret_mod: etcd's revision; 0: it is absent. */
int etcd__read_head(
    struct etcd *q, nsec_t until, struct etcd_large_head *ret, uint64_t *ret_mod, struct err *e)
{
    _cleanup_(etcd_kvs_deinit) struct etcd_kvs kvs = ETCD_KVS_NULL;
    int r = read_now(q, &(struct etcd_span){.from = "i", .end = "i!"}, until, &kvs, e);

    if (r == 0 && kvs.n > 0 && !etcd_large_head_parse(ret, kvs.items[0].value))
        r = err_set(e, -EBADMSG, "etcd's key \"%si\" is not a large commit: \"%.60s\"",
            q->client.prefix, kvs.items[0].value);
    if (r == 0)
        *ret_mod = kvs.n > 0 ? kvs.items[0].mod : 0;
    return r == ETCD_E_LOST ? ETCD_E_AWAY : r;
}

/* Remove "i", if it is as @mod says. */
int etcd__remove_head(struct etcd *q, uint64_t mod, nsec_t until, struct err *e)
{
    struct str body = STR_NULL;

    str_add(&body, "{\"compare\":[");
    etcd_add_compare(&body, q->client.prefix, "i", mod);
    str_add(&body, "],\"success\":[");
    etcd_add_delete(&body, q->client.prefix, "i");
    str_add(&body, "]}");
    return etcd__step(q, &body, until, NULL, e);
}

/* Step 5, for one part. Also 0 when another hub has done it. */
static int apply_part(struct etcd *q, const struct etcd_large_head *head, uint64_t mod,
    uint64_t number, nsec_t until, struct err *e)
{
    char name[ETCD_NAME_MAX + 1];
    char end[ETCD_NAME_MAX + 2];
    _cleanup_(str_deinit) struct str body = STR_NULL;
    _cleanup_(etcd_kvs_deinit) struct etcd_kvs kvs = ETCD_KVS_NULL;
    int r;

    (void)etcd__part_name(name, &head->writer, number);
    (void)snprintf(end, sizeof(end), "%s!", name);
    r = read_now(q, &(struct etcd_span){.from = name, .end = end}, until, &kvs, e);
    if (r == 0 && kvs.n > 0) {
        str_add(&body, "{\"compare\":[");
        etcd_add_compare(&body, q->client.prefix, "i", mod);
        etcd_add_exists(&body, q->client.prefix, name);
        str_add(&body, "],\"success\":[");
        etcd_add_delete(&body, q->client.prefix, name);
        if (!add_part(q, &kvs.items[0], mod - q->updates.base, &body))
            r = err_set(e, -EBADMSG, "etcd's key \"%s%s\" is no part of a large commit",
                q->client.prefix, name);
        str_add(&body, "]}");
        if (r == 0)
            r = etcd__step(q, &body, until, NULL, e);
    }
    return r == ETCD_E_LOST_HEAD ? 0 : r;
}

/* Steps 5 and 6. Another hub may do the same steps at the same time. */
int etcd__apply(
    struct etcd *q, const struct etcd_large_head *head, uint64_t mod, nsec_t until, struct err *e)
{
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < head->n_parts; i++)
        r = apply_part(q, head, mod, i, until, e);
    if (r == 0)
        r = etcd__remove_head(q, mod, until, e);
    return r == ETCD_E_LOST_HEAD ? 0 : r;
}

/* ---- a large commit of another hub ----------------------------------------------------------- */

int etcd__large_help(struct etcd *q, nsec_t until, struct err *e)
{
    struct etcd_large_head head = {0};
    uint64_t first = 0;
    uint64_t mod = 0;
    nsec_t since = clock_now();
    int r = etcd__read_head(q, until, &head, &first, e);

    mod = first;
    while (r == 0 && mod != 0 && mod == first) {
        nsec_t now = clock_now();

        if (head.is_applied && now - since >= HELP_APPLY_NS)
            return etcd__apply(q, &head, mod, until, e);
        if (!head.is_applied && now - since >= HELP_CHECK_NS) {
            r = etcd__remove_head(q, mod, until, e);
            return r == ETCD_E_LOST_HEAD ? 0 : r;
        }
        if (now >= until)
            return err_set(e, ETCD_E_AWAY, "a large commit of another hub is being made");
        etcd__wait(q, -1, 100);
        r = etcd__read_head(q, until, &head, &mod, e);
    }
    return r;
}

/* ---- parts that dead hubs have left ---------------------------------------------------------- */

/* Remove the part @name, if its session is gone and no large commit is being made. */
static void clean_part(struct etcd *q, const char *name, nsec_t until)
{
    char session[ETCD_SESSION_MAX + 1];
    char key[ETCD_SESSION_MAX + 3];
    const char *dot = strchr(name + 2, '.');
    struct str body = STR_NULL;
    struct err e;

    if (!dot || dot - name - 2 > ETCD_SESSION_MAX)
        return;
    (void)snprintf(session, sizeof(session), "%.*s", (int)(dot - name - 2), name + 2);
    str_add(&body, "{\"compare\":[");
    etcd_add_compare(&body, q->client.prefix, etcd_session_key(session, key), 0);
    etcd_add_compare(&body, q->client.prefix, "i", 0);
    str_add(&body, "],\"success\":[");
    etcd_add_delete(&body, q->client.prefix, name);
    str_add(&body, "]}");
    (void)etcd__step(q, &body, until, NULL, &e);
}

void etcd__large_clean(struct etcd *q, nsec_t until)
{
    static const struct etcd_span parts = {
        .from = "d/", .end = "d/~", .limit = CLEAN_MAX, .is_bare = true};
    _cleanup_(etcd_kvs_deinit) struct etcd_kvs kvs = ETCD_KVS_NULL;
    struct err e = ERR_NULL;
    int r = read_now(q, &parts, until, &kvs, &e);

    for (size_t i = 0; r == 0 && i < kvs.n; i++)
        clean_part(q, kvs.items[i].name, until);
}

/* ---- reading what etcd has, and following its changes ---------------------------------------- */

/*
 * Every read is a transaction that expects that no large commit is being made, so that nobody sees
 * half of one. It is linearizable: it sees every commit that any hub was told is done.
 */

/* Most keys in one answer of etcd; when an answer is too long, a quarter as many are asked for. */
#define PAGE_KEYS 512

/* After so much silence of the feed, its server is sent a request. */
#define PULSE_NS (2 * NSEC_PER_SEC)

/* How long the feed may lag behind the answers of the server. */
#define LAG_NS (1 * NSEC_PER_SEC)

/* ---- one span -------------------------------------------------------------------------------- */

/* Read a span once. @revision: etcd's, at which it was so. */
static int read_span(struct etcd *q, const struct etcd_span *span, nsec_t until,
    struct etcd_kvs *ret, uint64_t *revision, struct err *e)
{
    int r = ETCD_E_AWAY;

    for (bool is_done = false; !is_done;) {
        _cleanup_(str_deinit) struct str body = STR_NULL;
        json_auto_t *answer = NULL;

        str_add(&body, "{\"compare\":[");
        etcd_add_compare(&body, q->client.prefix, "i", 0);
        str_add(&body, "],\"success\":[{\"request_range\":{");
        etcd_add_span(&body, q->client.prefix, span);
        str_add(&body, "}}]}");
        r = etcd__ask(q, "/v3/kv/txn", &body, until, &answer, e);
        is_done = r != 0 || etcd_answer_succeeded(answer);
        if (r == 0 && is_done)
            r = etcd_answer_revision(answer, revision, e);
        if (r == 0 && is_done)
            r = etcd_answer_nth(answer, 0, q->client.prefix, ret, e);
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

/* ---- all keys -------------------------------------------------------------------------------- */

static const struct etcd_span all = {.from = "k/", .end = "k/~"};

/* What is known at the start. */
struct loading {
    struct etcd *q; /* pins */
    nsec_t now;
};

static int take_known(void *ctx, const struct etcd_kv *kv)
{
    struct loading *l = ctx;
    struct store_item item = etcd_updates_item(&l->q->updates, kv);
    int r = etcd_updates_note(&l->q->updates, item.key, true);

    return r == 0 ? store__set_lease(&l->q->base, item.key, item.ttl_seconds, l->now) : r;
}

/* Begin behind @last, whatever came; what is queued is dropped. */
static void restart_feed(struct etcd_feed *f, uint64_t last)
{
    etcd_feed_deinit(f);
    f->last = last;
    f->compacted = 0;
    f->open_at = 0;
}

int etcd__load(struct etcd *q, nsec_t now, nsec_t until, struct err *e)
{
    struct loading l = {.q = q, .now = now};
    uint64_t base = q->updates.base;
    uint64_t revision = 0;
    int r = etcd__read_pages(q, all, until, &revision, take_known, &l, e);

    if (r != 0)
        return r;
    q->updates.position = revision;
    q->updates.revision = revision - base;
    q->updates.log.first = revision - base + 1;
    q->base.revision = revision - base;
    restart_feed(&q->feed, revision);
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
    struct etcd_kv *items;

    if (!keys_open(&c->there, kv->name + 2, sizeof(struct keyed)))
        return -ENOMEM;
    if (kv->mod <= c->q->updates.position)
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

    for (size_t i = q->updates.known.n; i > 0; i--) {
        struct etcd_kv gone = {.name = name};
        const char *key = q->updates.known.items[i - 1]->key;

        if (keys_find(&c->there, key))
            continue;
        (void)etcd__key_name(name, key);
        tell(q, &(struct etcd_kvs){.items = &gone, .n = 1}, q->updates.revision);
    }
    qsort(c->changed.items, c->changed.n, sizeof(*c->changed.items), by_mod);
    for (size_t i = 0; i < c->changed.n; i++) {
        struct etcd_kv *kv = &c->changed.items[i];

        tell(q, &(struct etcd_kvs){.items = kv, .n = 1}, etcd_updates_revision_of(&q->updates, kv));
    }
    q->updates.position = revision;
    q->updates.revision = revision - q->updates.base;
    store_log_forget(&q->updates.log, q->updates.revision + 1);
}

/* After a gap of the feed: tell what has become of each key. */
static void replay(struct etcd *q, nsec_t until)
{
    struct catching c = {.q = q};
    struct err e = ERR_NULL;
    uint64_t revision = 0;

    if (etcd__read_pages(q, all, until, &revision, take_changed, &c, &e) == 0) {
        /* What is queued is older than what was read. */
        restart_feed(&q->feed, revision);
        etcd_kvs_deinit(&q->updates.large.changes);
        q->updates.is_large = false;
        tell_gap(&c, revision);
        store__count_relist(&q->base);
        store__set_current(&q->base, clock_now());
    }
    keys_free_all(&c.there);
    etcd_kvs_deinit(&c.changed);
}

/* ---- keeping up ------------------------------------------------------------------------------ */

/* Ask the feed's server whether it answers, and whether it has the latest revision. */
static void pulse(struct etcd *q, nsec_t now)
{
    _cleanup_(str_deinit) struct str body = STR_NULL;
    json_auto_t *answer = NULL;
    struct err e = ERR_NULL;

    q->asked_at = now;
    str_add(&body, "{");
    etcd_add_span(&body, q->client.prefix, &(struct etcd_span){.from = "about", .end = "about!"});
    str_add(&body, "}");
    if (probe(q, "/v3/kv/range", &body, &answer, &e) == 0)
        store__set_current(&q->base, now);
}

void etcd__tend(struct etcd *q, nsec_t now)
{
    etcd_feed_tend(&q->feed, now);
    if (q->feed.compacted)
        replay(q, now + ETCD_JOB_NS);
    if (q->feed.stream && now - q->feed.heard_at >= PULSE_NS && now - q->asked_at >= PULSE_NS)
        pulse(q, now);
    etcd_session_keep(&q->session, &q->client, now, now);
}

int etcd__wait_for(struct etcd *q, uint64_t revision, nsec_t until, struct err *e)
{
    nsec_t since = clock_now();
    nsec_t now = since;

    etcd__drain(q);
    while (q->updates.position < revision && now < until) {
        etcd__wait(q, -1, 100);
        now = clock_now();
        if (q->feed.compacted)
            replay(q, until);
        if (q->updates.position < revision && now - since >= LAG_NS &&
            now - q->feed.heard_at >= LAG_NS) {
            remote_http_turn(q->client.http);
            since = now;
        }
    }
    if (q->updates.position >= revision)
        return 0;
    return err_set(e, ETCD_E_AWAY, "etcd does not tell what has changed: %s", q->feed.e.text);
}

/* ---- DELETED --------------------------------------------------------------------------------- */

/* A watch does not say when it has shown all that there is. So a name is written and deleted, and
 * its deletion is the last of them. @name: between "i" and "t", and nobody else's. */
static int mark_end(
    struct etcd *q, char name[static ETCD_NAME_MAX + 1], nsec_t until, struct err *e)
{
    int r = etcd__need_session(q, until, e);

    (void)snprintf(name, ETCD_NAME_MAX + 1, "mark/%s", q->session.name);
    for (unsigned step = 0; r == 0 && step < 2; step++) {
        struct str body = STR_NULL;

        str_add(&body, "{\"success\":[");
        if (step == 0)
            etcd_add_put(&body, q->client.prefix, name, "1", 1, q->session.lease);
        else
            etcd_add_delete(&body, q->client.prefix, name);
        str_add(&body, "]}");
        r = etcd__step(q, &body, until, NULL, e);
    }
    return r == ETCD_E_LOST ? ETCD_E_AWAY : r;
}

/* What a revision has deleted. A deletion in a large commit, whose revision is an earlier one, is
 * told with its own: whoever knows that revision is told of it again. */
static int take_deleted(struct etcd *q, struct store_job *job, const struct etcd_revision *rev)
{
    int r = 0;

    if (job->items.n >= STORE_DELETED_MAX) {
        store_job_undo(job);
        job->first = rev->number - q->updates.base;
    }
    for (size_t i = 0; r == 0 && i < rev->events.n; i++) {
        const char *name = rev->events.items[i].name;

        if (strncmp(name, "k/", 2) == 0 && store__check_key(name + 2, 1, NULL) == 0)
            r = store_job_add(job,
                &(struct store_item){.key = name + 2, .revision = rev->number - q->updates.base});
    }
    return r;
}

/* What etcd's own history still has, but of so many revisions at most. */
static int collect_deleted(
    struct etcd *q, struct store_job *job, const char *end, nsec_t until, struct err *e)
{
    uint64_t revision = q->updates.position - q->updates.base;
    uint64_t from = revision > STORE_DELETED_MAX ? revision - STORE_DELETED_MAX : 0;
    struct etcd_revision *rev;
    struct etcd_feed feed;
    bool is_all = false;
    int r = 0;

    etcd_feed_init(&feed, &q->client, q->updates.base + from);
    feed.deletions_only = true;
    job->first = from + 1;
    while (r == 0 && !is_all && clock_now() < until) {
        etcd_feed_tend(&feed, clock_now());
        if (feed.compacted) {
            job->first = feed.compacted - q->updates.base + 1;
            restart_feed(&feed, feed.compacted);
        }
        etcd__wait(q, -1, 100);
        for (; r == 0 && (rev = etcd_feed_next(&feed)); etcd_feed_drop(&feed)) {
            is_all = is_all || etcd_kvs_find(&rev->events, end);
            r = take_deleted(q, job, rev);
        }
    }
    if (r == 0 && !is_all)
        r = err_set(e, ETCD_E_AWAY, "etcd does not tell what was deleted: %s", feed.e.text);
    etcd_feed_deinit(&feed);
    return r;
}

void etcd__deleted(struct etcd *q, struct store_job *job)
{
    nsec_t until = clock_now() + ETCD_JOB_NS;
    char end[ETCD_NAME_MAX + 1];
    struct err e = ERR_NULL;
    int r = mark_end(q, end, until, &e);

    if (r == 0)
        r = collect_deleted(q, job, end, until, &e);
    job->revision = q->updates.revision;
    if (r != 0) {
        store_job_undo(job);
        etcd__fail(q, job, r, &e);
        return;
    }
    store__finish(&q->base, job);
}
