/*
 * store.c - the part of every store that is the same: bounds, leases, watches.
 *
 * The interface is in store.h, what a back end adds in store_internal.h.
 */
#include "store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/store_internal.h"

/* Revisions that a watch reads at a time, so that a long way behind costs bounded memory. */
#define POLL_STEP 64

struct store_watch {
    struct list link;   /* in the store's watches */
    struct store *s;    /* pins */
    char *prefix;       /* owns */
    uint64_t next;      /* first revision not told yet */
    store_change_fn fn; /* told */
    void *ctx;          /* pins: for fn */
    bool closed;        /* by its owner, during store_poll(); freed at the end of it */
    bool compacted;     /* its owner has been told; nothing more to say */
};

void store__init(struct store *s, const struct store_ops *ops)
{
    *s = (struct store){.ops = ops, .log_first = 1};
    list_init(&s->watches);
}

void store__deinit(struct store *s)
{
    assert(list_is_empty(&s->watches));
    leases_deinit(&s->leases);
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

static int load_lease(void *ctx, const struct store_item *item)
{
    struct {
        struct leases *leases;
        nsec_t now;
    } *load = ctx;

    return leases_set(load->leases, item->key, item->ttl_seconds, load->now);
}

struct kind {
    const char *scheme;
    int (*open)(struct store **ret, const char *where, struct err *e);
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
    _cleanup_(store_freep) struct store *s = NULL;
    struct {
        struct leases *leases;
        nsec_t now;
    } load = {NULL, now};
    const struct kind *kind;
    int r = find_kind(url, &kind, e);

    if (r == 0)
        r = kind->open(&s, url + strlen(kind->scheme), e);
    if (r != 0)
        return r;
    load.leases = &s->leases;
    r = store_list(s, "", load_lease, &load, NULL, e);
    if (r == 0)
        *ret = TAKE_PTR(s);
    return r;
}

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("/._-", c);
}

static int check_key(const char *key, size_t min, struct err *e)
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

int store_get(struct store *s, const char *key, store_item_fn fn, void *ctx, struct err *e)
{
    int r = check_key(key, 1, e);

    return r == 0 ? s->ops->get(s, key, fn, ctx, e) : r;
}

int store_list(struct store *s, const char *prefix, store_item_fn fn, void *ctx,
    uint64_t *ret_revision, struct err *e)
{
    int r = check_key(prefix, 0, e);

    if (r == 0)
        r = s->ops->list(s, prefix, fn, ctx, e);
    if (r == 0 && ret_revision)
        *ret_revision = s->revision;
    return r;
}

int store_walk(struct store *s, const char *prefix, const char *from, enum store_order order,
    store_item_fn fn, void *ctx, struct err *e)
{
    int r = check_key(prefix, 0, e);

    if (r == 0 && from)
        r = check_key(from, 1, e);
    return r == 0 ? s->ops->walk(s, prefix, from, order, fn, ctx, e) : r;
}

int store_copy(struct store *s, const char *path, struct err *e)
{
    return s->ops->copy
               ? s->ops->copy(s, path, e)
               : err_set(e, STORE_E_NO_FILES, "this store is in memory: there is no copy of it");
}

static int check_op(const struct store_op *op, struct err *e)
{
    int r = check_key(op->key, 1, e);

    if (r == 0 && op->kind == STORE_OP_PUT &&
        strnlen(op->value, STORE_VALUE_MAX + 1) > STORE_VALUE_MAX)
        r = err_set(
            e, -EINVAL, "the value of \"%s\" is longer than %u bytes", op->key, STORE_VALUE_MAX);
    return r;
}

int store_commit(struct store *s, const struct store_op *ops, size_t n_ops, nsec_t now,
    uint64_t *ret_revision, size_t *ret_failed, struct err *e)
{
    size_t failed = 0;
    int r = 0;

    if (n_ops < 1 || n_ops > STORE_OPS_MAX)
        return err_set(
            e, -EINVAL, "a commit of %zu operations is not 1 to %d", n_ops, STORE_OPS_MAX);
    for (size_t i = 0; r == 0 && i < n_ops; i++)
        r = check_op(&ops[i], e);
    if (r == 0)
        r = s->ops->commit(s, ops, n_ops, &failed, e);
    if (r != 0) {
        if (ret_failed)
            *ret_failed = failed;
        return r;
    }
    for (size_t i = 0; i < n_ops; i++)
        if (ops[i].kind != STORE_OP_CHECK)
            /* Without memory for it the key stays too long, which is the lesser evil. */
            (void)leases_set(
                &s->leases, ops[i].key, ops[i].kind == STORE_OP_PUT ? ops[i].ttl_seconds : 0, now);
    if (ret_revision)
        *ret_revision = s->revision;
    return 0;
}

int store_keep(struct store *s, const char *key, nsec_t now, struct err *e)
{
    int r = check_key(key, 1, e);

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

static void watch_free(struct store_watch *w)
{
    list_remove(&w->link);
    free(w->prefix);
    free(w);
}

int store_watch(struct store *s, const char *prefix, uint64_t from, store_change_fn fn, void *ctx,
    struct store_watch **ret, struct err *e)
{
    struct store_watch *w;
    int r = check_key(prefix, 0, e);

    if (r != 0)
        return r;
    if (from < s->log_first)
        return STORE_E_COMPACTED;
    w = calloc(1, sizeof(*w));
    if (!w)
        return err_set(e, -ENOMEM, "no memory for a watch");
    *w = (struct store_watch){.s = s, .next = from, .fn = fn, .ctx = ctx};
    list_init(&w->link);
    w->prefix = strdup(prefix);
    if (!w->prefix) {
        watch_free(w);
        return err_set(e, -ENOMEM, "no memory for a watch");
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
    if (!w->s->polling)
        watch_free(w);
    return NULL;
}

/* Copies of changes: a watcher may write to the store, which ends the back end's read. */
struct batch {
    struct store_item *items; /* owns the array, and each key and value */
    size_t n;                 /* how many */
    size_t cap;               /* room in the array */
};

static void batch_deinit(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        free((char *)b->items[i].key);
        free((char *)b->items[i].value);
    }
    free(b->items);
}

static int batch_add(void *ctx, const struct store_item *item)
{
    struct batch *b = ctx;
    struct store_item copy = *item;

    if (b->n == b->cap) {
        size_t cap = b->cap ? 2 * b->cap : 16;
        struct store_item *items = realloc(b->items, cap * sizeof(*items));

        if (!items)
            return -ENOMEM;
        b->items = items;
        b->cap = cap;
    }
    copy.key = strdup(item->key);
    copy.value = item->value ? strdup(item->value) : NULL;
    if (!copy.key || (item->value && !copy.value)) {
        free((char *)copy.key);
        free((char *)copy.value);
        return -ENOMEM;
    }
    b->items[b->n++] = copy;
    return 0;
}

/* Tell @w the changes of its next few revisions. */
static int watch_step(struct store_watch *w, struct err *e)
{
    _cleanup_(batch_deinit) struct batch b = {0};
    struct store *s = w->s;
    uint64_t to = s->revision - w->next < POLL_STEP ? s->revision : w->next + POLL_STEP - 1;
    int r;

    if (w->next < s->log_first) {
        w->compacted = true;
        w->fn(w->ctx, NULL);
        return 0;
    }
    r = s->ops->changes(s, w->prefix, w->next, to, batch_add, &b, e);
    if (r != 0)
        return r;
    w->next = to + 1;
    for (size_t i = 0; i < b.n && !w->closed; i++)
        w->fn(w->ctx, &b.items[i]);
    return 0;
}

static bool watch_is_behind(const struct store_watch *w)
{
    return !w->closed && !w->compacted && w->next <= w->s->revision;
}

/* One round over all watches; @ret_again: some watch has more to hear. */
static int poll_round(struct store *s, bool *ret_again, struct err *e)
{
    struct store_watch *w;
    bool again = false;
    int r = 0;

    list_foreach(w, &s->watches, link) {
        if (!watch_is_behind(w))
            continue;
        r = watch_step(w, e);
        if (r != 0)
            return r;
        again = true;
    }
    *ret_again = again;
    return 0;
}

int store_poll(struct store *s, struct err *e)
{
    struct store_watch *w;
    struct store_watch *tmp;
    bool again = true;
    int r = 0;

    assert(!s->polling);
    s->polling = true;
    while (r == 0 && again)
        r = poll_round(s, &again, e);
    s->polling = false;
    list_foreach_safe(w, tmp, &s->watches, link) {
        if (w->closed)
            watch_free(w);
    }
    return r;
}
