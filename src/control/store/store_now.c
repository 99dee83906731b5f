/* store_now.c - see store_now.h. */
#include "store/store_now.h"

#include <stdio.h>

#include "base/err.h"

/* A question whose answer is waited for. */
struct waiting {
    store_item_fn fn; /* NULL: nothing is read */
    void *ctx;        /* for @fn */
    struct err *e;    /* NULL: nobody wants the words */
    int r;
    uint64_t revision;
    size_t failed;
    bool has_more;
    char last[STORE_KEY_MAX + 1]; /* the key of the last item */
};

static void on_done(void *ctx, const struct store_answer *a)
{
    struct waiting *w = ctx;

    w->r = a->r;
    w->revision = a->revision;
    w->failed = a->failed;
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

int store_now_commit(struct store *s, const struct store_op *ops, size_t n_ops, nsec_t now,
    uint64_t *ret_revision, size_t *ret_failed, struct err *e)
{
    struct waiting w = {.e = e};
    int r = wait(s, &w, store_commit(s, ops, n_ops, now, on_done, &w, e));

    if (ret_revision)
        *ret_revision = w.revision;
    if (ret_failed)
        *ret_failed = w.failed;
    return r;
}
