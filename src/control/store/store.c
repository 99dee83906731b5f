/*
 * store.c - the part of every store that is the same: bounds, order, leases, who is called.
 *
 * The interface is in store.h, what a back end adds in store_backend.h.
 */
#include "store.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/fd_cleanup.h"
#include "base/err.h"
#include "store/store_backend.h"
#include "os/wakeup.h"

/* Answers that one store_dispatch() hands out: others on the loop have their turn then. */
#define DISPATCH_MAX 64

/* ---- life ----------------------------------------------------------------------------------- */

int store__init(struct store *s, const struct store_ops *ops, struct err *e)
{
    *s = (struct store){.ops = ops, .wake_fd = wakeup_open()};
    list_init(&s->watches);
    list_init(&s->finished);
    (void)pthread_mutex_init(&s->lock, NULL);
    if (s->wake_fd < 0)
        return err_set(e, s->wake_fd, "no descriptor for a store: %s", strerror(-s->wake_fd));
    return 0;
}

void store__deinit(struct store *s)
{
    struct store_job *job;
    struct store_job *tmp;

    assert(list_is_empty(&s->watches));
    list_foreach_safe(job, tmp, &s->finished, link)
        store_job_free(job);
    leases_deinit(&s->leases);
    (void)pthread_mutex_destroy(&s->lock);
    closep(&s->wake_fd);
}

struct store *store_free(struct store *s)
{
    if (s)
        s->ops->free(s);
    return NULL;
}

void store_freep(struct store **s)
{
    *s = store_free(*s);
}

struct kind {
    const char *scheme;
    int (*open)(struct store **ret, const char *where, nsec_t now, struct err *e);
    bool has_path; /* something must follow the scheme; else nothing may */
};

static const struct kind kinds[] = {
    {"sqlite:", sqlite_open, true},
    {"memory:", memory_open, false},
};

static int find_kind(const char *url, const struct kind **ret, struct err *e)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        size_t len = strlen(kinds[i].scheme);

        if (strncmp(url, kinds[i].scheme, len) != 0 || kinds[i].has_path != (url[len] != '\0'))
            continue;
        *ret = &kinds[i];
        return 0;
    }
    return err_set(e, -EINVAL, "store \"%.200s\" is neither \"sqlite:PATH\" nor \"memory:\"", url);
}

int store_check_url(const char *url, struct err *e)
{
    const struct kind *kind;

    return find_kind(url, &kind, e);
}

int store_open(struct store **ret, const char *url, nsec_t now, struct err *e)
{
    const struct kind *kind;
    int r = find_kind(url, &kind, e);

    return r == 0 ? kind->open(ret, url + strlen(kind->scheme), now, e) : r;
}

/* ---- asking --------------------------------------------------------------------------------- */

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("/._-", c);
}

int store__check_key(const char *key, size_t min, struct err *e)
{
    size_t len = strnlen(key, STORE_KEY_MAX + 1);
    bool good = len >= min && len <= STORE_KEY_MAX;

    for (size_t i = 0; good && i < len; i++)
        good = is_key_char(key[i]);
    if (good)
        return 0;
    return err_set(e, -EINVAL,
        "store key \"%.80s\" is not %zu to %d of letters, digits, '/', '.', '_' and '-'", key, min,
        STORE_KEY_MAX);
}

int store__ask(struct store *s, struct store_job *job, struct err *e)
{
    if (s->n_pending >= STORE_PENDING_MAX ||
        (s->n_pending > 0 && s->bytes_pending + job->bytes > STORE_PENDING_BYTES_MAX)) {
        store_job_free(job);
        return err_set(e, -EAGAIN,
            "the store is behind: %zu requests wait for it, as many as may; try again",
            s->n_pending);
    }
    s->n_pending++;
    s->bytes_pending += job->bytes;
    s->ops->submit(s, job);
    return 0;
}

/* A job with who asks, and a text of its own; NULL: no memory, in words. */
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

int store_get(struct store *s, const char *key, store_done_fn done, void *ctx, struct err *e)
{
    int r = store__check_key(key, 1, e);
    struct store_job *job = r == 0 ? new_job(STORE_JOB_GET, key, done, ctx, e) : NULL;

    if (!job)
        return r != 0 ? r : -ENOMEM;
    return store__ask(s, job, e);
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
    job->order = range->order;
    job->limit = range->limit > 0 && range->limit < STORE_PAGE_MAX ? range->limit : STORE_PAGE_MAX;
    if (range->from) {
        job->from = strdup(range->from);
        if (!job->from) {
            store_job_free(job);
            return err_set(e, -ENOMEM, "no memory for a request to the store");
        }
    }
    return store__ask(s, job, e);
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
    job->now = now;
    if (store_job_set_ops(job, ops, n_ops) != 0) {
        store_job_free(job);
        return err_set(e, -ENOMEM, "no memory for a commit");
    }
    return store__ask(s, job, e);
}

int store_copy(struct store *s, const char *path, store_done_fn done, void *ctx, struct err *e)
{
    struct store_job *job = new_job(STORE_JOB_COPY, path, done, ctx, e);

    return job ? store__ask(s, job, e) : -ENOMEM;
}

/* ---- answering ------------------------------------------------------------------------------ */

void store__wake(struct store *s)
{
    wakeup_signal(s->wake_fd);
}

void store__finish(struct store *s, struct store_job *job)
{
    bool is_first;

    (void)pthread_mutex_lock(&s->lock);
    is_first = list_is_empty(&s->finished);
    list_add_tail(&s->finished, &job->link);
    (void)pthread_mutex_unlock(&s->lock);
    if (is_first)
        store__wake(s);
}

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

/* What a commit has changed: to the leases, and to whoever follows. */
static void take_in(struct store *s, const struct store_job *job)
{
    if (job->revision > s->revision)
        s->revision = job->revision;
    for (size_t i = 0; i < job->n_ops; i++) {
        const struct store_op *op = &job->ops[i];
        bool is_put = op->kind == STORE_OP_PUT;
        struct store_item item = {.key = op->key,
            .value = op->value,
            .value_len = op->value ? strlen(op->value) : 0,
            .revision = job->revision,
            .ttl_seconds = is_put ? op->ttl_seconds : 0};

        if (op->kind == STORE_OP_CHECK)
            continue;
        /* Without memory for it the key stays too long, which is the lesser evil. */
        (void)leases_set(&s->leases, op->key, item.ttl_seconds, job->now);
        if (job->took_effect[i] && !op->is_untold)
            store_watch__tell(s, &item);
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
        .has_more = job->has_more};

    s->n_pending--;
    s->bytes_pending -= job->bytes;
    if (job->kind == STORE_JOB_CHANGES)
        store_watch__catch_up(job);
    if (job->kind == STORE_JOB_COMMIT && job->r == 0)
        take_in(s, job);
    if (job->done)
        job->done(job->ctx, &a);
    store_job_free(job);
}

int store_fd(const struct store *s)
{
    return s->wake_fd;
}

void store_dispatch(struct store *s)
{
    struct store_job *job = NULL;
    unsigned n = 0;

    assert(!s->dispatching);
    s->dispatching = true;
    (void)wakeup_clear(s->wake_fd);
    if (s->ops->turn)
        s->ops->turn(s);
    while (n++ < DISPATCH_MAX && (job = next_finished(s)))
        answer(s, job);
    /* There may be more: store__finish() wakes only for the first. */
    if (job)
        store__wake(s);
    s->dispatching = false;
    store_watch__bury(s);
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

int store_keep(struct store *s, const char *key, nsec_t now, struct err *e)
{
    int r = store__check_key(key, 1, e);

    if (r != 0)
        return r;
    return leases_keep(&s->leases, key, now) ? 0 : STORE_E_ABSENT;
}

nsec_t store_due(struct store *s)
{
    return leases_due(&s->leases);
}

size_t store_ended(struct store *s, nsec_t now, const char **ret, size_t cap)
{
    return leases_ended(&s->leases, now, ret, cap);
}

uint64_t store_revision(const struct store *s)
{
    return s->revision;
}
