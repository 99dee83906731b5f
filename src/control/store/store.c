/* store.c - see store.h: bounds, leases, and who is called; upon a back end (store_backend.h). */
#include "store.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "os/thread.h"
#include "store/store_backend.h"

/* A job with a copy of @key, if there is one. NULL: no memory, with words. */
static struct store_job *new_job(
    enum store_job_kind kind, const char *key, store_done_fn done, void *ctx, struct err *e)
{
    struct store_job *job = store_job_new(kind);

    if (job && key)
        job->key = strdup(key);
    if (!job || (key && !job->key)) {
        (void)err_set(e, -ENOMEM, "no memory for a request to the store");
        return store_job_free(job);
    }
    job->done = done;
    job->ctx = ctx;
    return job;
}

/* ---- watches: who is told of changes --------------------------------------------------------- */

/*
 * Theory of operation. A watch that begins with the next change is told as changes come. One that
 * begins in the past first has the back end read the changes that it missed (a CHANGES job). That
 * job waits in the same queue as the commits. So the watch is told each change once: those before
 * the answer by the job, and those after it as they come.
 *
 * Threads: the owner's loop only.
 */

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
static int replay(struct store_watch *w, uint64_t from, struct err *e)
{
    struct store_job *job = new_job(STORE_JOB_CHANGES, w->prefix, NULL, NULL, e);
    int r;

    if (!job)
        return -ENOMEM;
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
        r = replay(w, from, e);
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

/* The CHANGES job of a watch is done: tell the watch. */
static void end_catching_up(struct store_job *job)
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

/* ---- leases ---------------------------------------------------------------------------------- */

struct lease {
    struct keyed keyed;    /* in the store's leases */
    struct heap_link link; /* in by_end */
    uint32_t ttl_seconds;  /* how long, from the last begin */
};

/* Begin @le anew. 0 or -ENOMEM. */
static int begin(struct store *s, struct lease *le, nsec_t now)
{
    return heap_set(&s->by_end, &le->link, now + le->ttl_seconds * NSEC_PER_SEC);
}

int store__set_lease(struct store *s, const char *key, uint32_t ttl_seconds, nsec_t now)
{
    struct lease *le =
        ttl_seconds > 0 ? keys_open(&s->leases, key, sizeof(*le)) : keys_find(&s->leases, key);

    if (!le)
        return ttl_seconds > 0 ? -ENOMEM : 0;
    if (ttl_seconds == 0) {
        heap_remove(&s->by_end, &le->link);
        keys_free(&s->leases, &le->keyed);
        return 0;
    }
    le->ttl_seconds = ttl_seconds;
    return begin(s, le, now);
}

int store_keep(struct store *s, const char *key, nsec_t now, struct err *e)
{
    int r = store__check_key(key, 1, e);
    struct lease *le = keys_find(&s->leases, key);

    if (r != 0)
        return r;
    /* Moving a member that is armed allocates nothing, so it cannot fail. */
    return le && begin(s, le, now) == 0 ? 0 : STORE_E_ABSENT;
}

nsec_t store_due(struct store *s)
{
    return heap_due(&s->by_end);
}

size_t store_ended(struct store *s, nsec_t now, const char **ret, size_t cap)
{
    size_t n = 0;

    if (heap_due(&s->by_end) > now)
        return 0;
    /* A walk over all of them is fine: it happens only when at least one has ended. */
    for (size_t i = 0; i < s->leases.n && n < cap; i++) {
        const struct lease *le = container_of(s->leases.items[i], struct lease, keyed);

        if (le->link.due <= now)
            ret[n++] = le->keyed.key;
    }
    return n;
}

/* ---- jobs, and who asked for them ------------------------------------------------------------ */

/* Most answers that one store_dispatch() gives, so that other work on the loop is not held up. */
#define DISPATCH_MAX 64

/* ---- life ----------------------------------------------------------------------------------- */

struct store *store_free(struct store *s)
{
    if (s)
        s->ops->free(s);
    return NULL;
}

/* ---- asking --------------------------------------------------------------------------------- */

int store_get(struct store *s, const char *key, store_done_fn done, void *ctx, struct err *e)
{
    int r = store__check_key(key, 1, e);
    struct store_job *job = r == 0 ? new_job(STORE_JOB_GET, key, done, ctx, e) : NULL;

    if (!job)
        return r != 0 ? r : -ENOMEM;
    return store__submit(s, job, e);
}

int store_list(
    struct store *s, const struct store_range *range, store_done_fn done, void *ctx, struct err *e)
{
    struct store_job *job;
    int r = store__check_key(range->prefix, 0, e);

    if (r == 0 && range->from)
        r = store__check_key(range->from, 1, e);
    if (r != 0)
        return r;
    job = new_job(STORE_JOB_LIST, range->prefix, done, ctx, e);
    if (!job)
        return -ENOMEM;
    job->is_down = range->is_down;
    job->limit = range->limit > 0 && range->limit < STORE_PAGE_MAX ? range->limit : STORE_PAGE_MAX;
    if (range->from) {
        job->from = strdup(range->from);
        if (!job->from) {
            store_job_free(job);
            return err_set(e, -ENOMEM, "no memory for a request to the store");
        }
    }
    return store__submit(s, job, e);
}

static int check_op(const struct store_op *op, struct err *e)
{
    int r = store__check_key(op->key, 1, e);

    if (r == 0 && op->kind == STORE_OP_PUT &&
        strnlen(op->value, STORE_VALUE_MAX + 1) > STORE_VALUE_MAX)
        r = err_set(
            e, -EINVAL, "the value of \"%s\" is longer than %u bytes", op->key, STORE_VALUE_MAX);
    return r;
}

int store_commit(struct store *s, const struct store_op *ops, size_t n_ops, nsec_t now,
    store_done_fn done, void *ctx, struct err *e)
{
    struct store_job *job;
    int r = 0;

    if (n_ops < 1 || n_ops > STORE_OPS_MAX)
        return err_set(
            e, -EINVAL, "a commit of %zu operations is not 1 to %d", n_ops, STORE_OPS_MAX);
    for (size_t i = 0; r == 0 && i < n_ops; i++)
        r = check_op(&ops[i], e);
    if (r != 0)
        return r;
    job = new_job(STORE_JOB_COMMIT, NULL, done, ctx, e);
    if (!job)
        return -ENOMEM;
    job->asked_at = now;
    if (store_job_set_ops(job, ops, n_ops) != 0) {
        store_job_free(job);
        return err_set(e, -ENOMEM, "no memory for a commit");
    }
    return store__submit(s, job, e);
}

int store_copy(struct store *s, const char *path, store_done_fn done, void *ctx, struct err *e)
{
    struct store_job *job = new_job(STORE_JOB_COPY, path, done, ctx, e);

    return job ? store__submit(s, job, e) : -ENOMEM;
}

int store_deleted(struct store *s, store_done_fn done, void *ctx, struct err *e)
{
    struct store_job *job = new_job(STORE_JOB_DELETED, "", done, ctx, e);

    return job ? store__submit(s, job, e) : -ENOMEM;
}

/* ---- answering ------------------------------------------------------------------------------ */

/* What a commit has changed: the leases follow it, and the watches are told. */
static void take_in(struct store *s, const struct store_job *job)
{
    if (job->revision > s->revision)
        s->revision = job->revision;
    for (size_t i = 0; i < job->n_ops; i++) {
        const struct store_op *op = &job->ops[i];
        bool is_put = op->kind == STORE_OP_PUT;
        struct store_watch *w;
        struct store_item item = {.key = op->key,
            .value = op->value,
            .value_len = op->value ? strlen(op->value) : 0,
            .revision = job->revision,
            .ttl_seconds = is_put ? op->ttl_seconds : 0};

        if (op->kind == STORE_OP_CHECK)
            continue;
        /* Without memory for a lease its key stays too long, which is better than too short. */
        (void)store__set_lease(s, op->key, item.ttl_seconds, job->asked_at);
        if (!job->took_effect[i] || op->is_unwatched)
            continue;
        list_foreach(w, &s->watches, link) {
            if (!w->closed && !w->is_lost && !w->catching &&
                strncmp(item.key, w->prefix, strlen(w->prefix)) == 0)
                w->fn(w->ctx, &item);
        }
    }
}

/* Whether the store takes commits, by the answer to one. */
static void note_refusal(struct store *s, const struct store_job *job)
{
    if (job->r < 0 || job->r == STORE_E_UNKNOWN) {
        if (s->refused_since == 0)
            s->refused_since = job->asked_at;
        s->refused_at = job->asked_at;
        s->n_refused++;
        s->refusal = job->e;
    } else if (job->r == 0 && job->asked_at - s->refused_at >= STORE_REFUSAL_HOLD) {
        s->refused_since = 0;
    }
}

static void answer(struct store *s, struct store_job *job)
{
    struct store_answer a = {.r = job->r,
        .e = &job->e,
        .revision = job->revision,
        .failed = job->failed,
        .items = job->items.items,
        .n_items = job->items.n,
        .has_more = job->has_more,
        .since = job->first};

    if (!job->is_unasked) {
        s->n_pending--;
        s->bytes_pending -= job->bytes;
    }
    if (job->kind == STORE_JOB_CHANGES)
        end_catching_up(job);
    if (job->kind == STORE_JOB_COMMIT && !job->is_unasked)
        note_refusal(s, job);
    if (job->kind == STORE_JOB_COMMIT && job->r == 0)
        take_in(s, job);
    if (job->done)
        job->done(job->ctx, &a);
    store_job_free(job);
}

/* Gives the job that was handed back first; NULL: there is none. */
static struct store_job *next_finished(struct store *s)
{
    struct store_job *job;

    (void)pthread_mutex_lock(&s->lock);
    job = list_first(&s->finished, struct store_job, link);
    if (job)
        list_remove(&job->link);
    (void)pthread_mutex_unlock(&s->lock);
    return job;
}

int store_fd(const struct store *s)
{
    return s->wake_fd;
}

void store_dispatch(struct store *s)
{
    struct store_job *job = NULL;
    struct store_watch *w;
    struct store_watch *tmp;
    unsigned n = 0;

    assert(!s->is_dispatching);
    s->is_dispatching = true;
    (void)wakeup_clear(s->wake_fd);
    if (s->ops->turn)
        s->ops->turn(s);
    while (n++ < DISPATCH_MAX && (job = next_finished(s)))
        answer(s, job);
    /* There may be more, and store__finish() wakes only for the first of those that wait. */
    if (job)
        store__wake(s);
    s->is_dispatching = false;
    list_foreach_safe(w, tmp, &s->watches, link) {
        if (w->closed)
            watch_free(w);
    }
}

void store_wait(struct store *s)
{
    while (s->n_pending > 0) {
        struct pollfd p = {.fd = s->wake_fd, .events = POLLIN};

        if (poll(&p, 1, -1) > 0)
            store_dispatch(s);
    }
}

size_t store_pending(const struct store *s)
{
    return s->n_pending;
}

/* ---- what is known at once ------------------------------------------------------------------- */

bool store_is_shared(const struct store *s)
{
    return s->is_shared;
}

uint64_t store_revision(const struct store *s)
{
    return s->revision;
}

struct store_lag store_lag(const struct store *s, nsec_t now)
{
    nsec_t current_at = atomic_load(&s->current_at);

    return (struct store_lag){
        .behind_for = current_at != 0 && now > current_at ? now - current_at : 0,
        .n_relists = atomic_load(&s->n_relists)};
}

struct store_refusal store_refusal(const struct store *s)
{
    return (struct store_refusal){
        .since = s->refused_since, .at = s->refused_at, .n = s->n_refused, .why = &s->refusal};
}

/* ---- asking, and waiting for the answer ------------------------------------------------------ */

/* A question whose answer is waited for. */
struct waiting {
    store_item_fn fn; /* NULL: nothing is read */
    void *ctx;        /* for @fn */
    struct err *e;    /* NULL: nobody wants the words */
    int r;
    uint64_t revision;
    bool has_more;
    char last[STORE_KEY_MAX + 1]; /* the key of the last item */
};

static void on_done(void *ctx, const struct store_answer *a)
{
    struct waiting *w = ctx;

    w->r = a->r;
    w->revision = a->revision;
    w->has_more = a->has_more;
    if (a->r != 0 && a->e->text[0] && w->e)
        *w->e = *a->e;
    for (size_t i = 0; w->r == 0 && i < a->n_items; i++) {
        (void)snprintf(w->last, sizeof(w->last), "%s", a->items[i].key);
        w->r = w->fn(w->ctx, &a->items[i]);
    }
}

/* Wait for the answer of a request. @r: what the call that made the request returned. */
static int wait(struct store *s, struct waiting *w, int r)
{
    if (r != 0)
        return r;
    store_wait(s);
    return w->r;
}

int store_now_get(struct store *s, const char *key, store_item_fn fn, void *ctx, struct err *e)
{
    struct waiting w = {.fn = fn, .ctx = ctx, .e = e};

    return wait(s, &w, store_get(s, key, on_done, &w, e));
}

int store_now_list(struct store *s, const char *prefix, store_item_fn fn, void *ctx,
    uint64_t *ret_revision, struct err *e)
{
    struct waiting w = {.fn = fn, .ctx = ctx, .e = e};
    struct store_range range = {.prefix = prefix};
    int r;

    do {
        r = wait(s, &w, store_list(s, &range, on_done, &w, e));
        range.from = w.last;
    } while (r == 0 && w.has_more);
    if (r == 0 && ret_revision)
        *ret_revision = w.revision;
    return r;
}
