/* store_backend.c - see store_backend.h. */
#include "store_backend.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"
#include "os/thread.h"

/* ---- jobs ------------------------------------------------------------------------------------ */

struct store_job *store_job_new(enum store_job_kind kind)
{
    struct store_job *job = calloc(1, sizeof(*job));

    if (job) {
        job->kind = kind;
        list_init(&job->link);
    }
    return job;
}

static void items_deinit(struct store_items *it)
{
    for (size_t i = 0; i < it->n; i++) {
        free((char *)it->items[i].key);
        free((char *)it->items[i].value);
    }
    free(it->items);
    *it = (struct store_items){.n = 0};
}

struct store_job *store_job_free(struct store_job *job)
{
    if (!job)
        return NULL;
    for (size_t i = 0; i < job->n_ops; i++) {
        free((char *)job->ops[i].key);
        free((char *)job->ops[i].value);
    }
    free(job->ops);
    free(job->key);
    free(job->from);
    free(job->took_effect);
    items_deinit(&job->items);
    free(job);
    return NULL;
}

int store_job_set_ops(struct store_job *job, const struct store_op *ops, size_t n_ops)
{
    job->ops = calloc(n_ops, sizeof(*ops));
    job->took_effect = calloc(n_ops, sizeof(*job->took_effect));
    if (!job->ops || !job->took_effect)
        return -ENOMEM;
    for (job->n_ops = 0; job->n_ops < n_ops; job->n_ops++) {
        struct store_op *op = &job->ops[job->n_ops];
        bool is_put = ops[job->n_ops].kind == STORE_OP_PUT;

        *op = ops[job->n_ops];
        op->key = strdup(op->key);
        op->value = is_put ? strdup(op->value) : NULL;
        if (!op->key || (is_put && !op->value)) {
            free((char *)op->key);
            return -ENOMEM;
        }
        job->bytes += strlen(op->key) + (is_put ? strlen(op->value) : 0);
    }
    return 0;
}

static int make_space(struct store_items *it)
{
    size_t cap = it->cap ? 2 * it->cap : 4;
    struct store_item *items;

    if (it->n < it->cap)
        return 0;
    items = realloc(it->items, cap * sizeof(*items));
    if (!items)
        return -ENOMEM;
    it->items = items;
    it->cap = cap;
    return 0;
}

int store_job_add(struct store_job *job, const struct store_item *item)
{
    struct store_items *it = &job->items;
    struct store_item copy = *item;

    if (job->kind == STORE_JOB_DELETED && item->value)
        return 0;
    if (job->kind == STORE_JOB_LIST && it->n > 0 &&
        (it->n == job->limit || it->bytes + item->value_len > STORE_PAGE_BYTES_MAX)) {
        job->has_more = true;
        return 1;
    }
    copy.key = strdup(item->key);
    /* A damaged value may hold zero bytes, so copy by length, and add a zero behind it. */
    copy.value = item->value ? calloc(1, item->value_len + 1) : NULL;
    if (!copy.key || (item->value && !copy.value) || make_space(it) != 0) {
        free((char *)copy.key);
        free((char *)copy.value);
        return -ENOMEM;
    }
    if (item->value)
        memcpy((char *)copy.value, item->value, item->value_len);
    it->items[it->n++] = copy;
    it->bytes += item->value_len;
    return 0;
}

void store_job_undo(struct store_job *job)
{
    items_deinit(&job->items);
    if (job->n_ops > 0)
        memset(job->took_effect, 0, job->n_ops * sizeof(*job->took_effect));
    job->r = 0;
    job->has_more = false;
    job->failed = 0;
    job->e = (struct err)ERR_NULL;
}

/* ---- the last changes ------------------------------------------------------------------------ */

struct change {
    struct list link;       /* in the log */
    struct store_item item; /* owns key and value */
};

void store_log_init(struct store_log *l, uint64_t first)
{
    *l = (struct store_log){.first = first};
    list_init(&l->changes);
}

static struct change *oldest(const struct store_log *l)
{
    return list_first(&l->changes, struct change, link);
}

static void change_free(struct change *c)
{
    list_remove(&c->link);
    free((char *)c->item.key);
    free((char *)c->item.value);
    free(c);
}

static void drop_oldest(struct store_log *l)
{
    l->n--;
    l->bytes -= oldest(l)->item.value_len;
    change_free(oldest(l));
}

void store_log_forget(struct store_log *l, uint64_t first)
{
    while (l->n > 0)
        drop_oldest(l);
    l->first = first;
}

int store_log_add(struct store_log *l, const struct store_op *op, uint64_t revision)
{
    struct change *c = calloc(1, sizeof(*c));
    const char *value = op->kind == STORE_OP_PUT ? op->value : NULL;

    if (!c)
        return -ENOMEM;
    list_add_tail(&l->changes, &c->link);
    c->item = (struct store_item){.key = strdup(op->key),
        .value = value ? strdup(value) : NULL,
        .value_len = value ? strlen(value) : 0,
        .revision = revision,
        .ttl_seconds = value ? op->ttl_seconds : 0};
    if (!c->item.key || (value && !c->item.value)) {
        change_free(c);
        return -ENOMEM;
    }
    l->n++;
    l->bytes += c->item.value_len;
    return 0;
}

void store_log_trim(struct store_log *l, uint64_t newest, size_t bytes_max)
{
    while (l->n > STORE_LOG_MAX || l->bytes > bytes_max) {
        uint64_t revision = oldest(l)->item.revision;

        if (revision == newest)
            return;
        l->first = revision + 1;
        while (l->n > 0 && oldest(l)->item.revision == revision)
            drop_oldest(l);
    }
}

int store_log_read(const struct store_log *l, struct store_job *job)
{
    size_t len = strlen(job->key);
    struct change *c;

    if (job->first < l->first)
        return err_set(&job->e, STORE_E_COMPACTED,
            "the changes from revision %" PRIu64 " on are no longer kept, only those from %" PRIu64,
            job->first, l->first);
    list_foreach(c, &l->changes, link) {
        if (c->item.revision < job->first || strncmp(c->item.key, job->key, len) != 0)
            continue;
        if (store_job_add(job, &c->item) != 0)
            return err_set(&job->e, -ENOMEM, "no memory for changes");
    }
    return 0;
}

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
    keys_free_all(&s->leases);
    heap_deinit(&s->by_end);
    (void)pthread_mutex_destroy(&s->lock);
    closep(&s->wake_fd);
}

/* ---- to the back end ------------------------------------------------------------------------ */

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

void store__add_pending(struct store *s, const struct store_job *job)
{
    s->n_pending++;
    s->bytes_pending += job->bytes;
}

int store__submit(struct store *s, struct store_job *job, struct err *e)
{
    if (s->n_pending >= STORE_PENDING_MAX ||
        (s->n_pending > 0 && s->bytes_pending + job->bytes > STORE_PENDING_BYTES_MAX)) {
        store_job_free(job);
        return err_set(e, -EAGAIN,
            "the store is behind: %zu requests wait for it, as many as may; try again",
            s->n_pending);
    }
    store__add_pending(s, job);
    s->ops->submit(s, job);
    return 0;
}

/* ---- and back ------------------------------------------------------------------------------- */

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

void store__set_current(struct store *s, nsec_t now)
{
    atomic_store(&s->current_at, now);
}

void store__count_relist(struct store *s)
{
    atomic_fetch_add(&s->n_relists, 1);
}

/* ---- what the worker of a back end does next ------------------------------------------------- */

int store_queue_start(
    struct worker **ret, void (*loop)(struct worker *w, void *ctx), void *ctx, struct err *e)
{
    int r = worker_start(ret, &(struct worker_config){.name = "store", .loop = loop, .ctx = ctx});

    return r == 0 ? 0 : err_set(e, r, "no thread for the store: %s", strerror(-r));
}

void store_queue_submit(struct store *s, struct store_job *job)
{
    (void)worker_put(s->worker, &job->link);
}

static bool has_key(const struct list *jobs, const char *key)
{
    const struct store_job *job;

    list_foreach(job, jobs, link)
        for (size_t i = 0; i < job->n_ops; i++)
            if (strcmp(job->ops[i].key, key) == 0)
                return true;
    return false;
}

/* Is none of its keys among those of @jobs? */
static bool is_apart(const struct list *jobs, const struct store_job *job)
{
    for (size_t i = 0; i < job->n_ops; i++)
        if (has_key(jobs, job->ops[i].key))
            return false;
    return true;
}

bool store_queue_take(
    struct worker *w, const struct store_queue_limits *limits, struct list *ret, bool *ret_ends)
{
    size_t n_ops = 0;
    size_t bytes = 0;
    bool goes_along = true;
    struct list *link;

    /* Asked before: jobs come until it is ending, and not after that. */
    *ret_ends = worker_is_ending(w);
    while (goes_along && (link = worker_peek(w))) {
        struct store_job *job = container_of(link, struct store_job, link);

        n_ops += job->n_ops;
        bytes += job->bytes;
        goes_along = job->kind == STORE_JOB_COMMIT &&
                     (!limits->can_share || limits->can_share(job)) && n_ops <= limits->ops_max &&
                     bytes <= limits->bytes_max && (!limits->is_apart || is_apart(ret, job));
        if (!goes_along && !list_is_empty(ret))
            break;
        list_add_tail(ret, worker_take(w));
    }
    return !list_is_empty(ret);
}
