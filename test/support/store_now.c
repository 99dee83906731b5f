/* store_now.c - see store_now.h. */
#include "test/support/store_now.h"

#include "base/err.h"

struct waiting {
    struct err *e; /* NULL: nobody wants the words */
    int r;
    uint64_t revision;
    size_t failed;
};

static void on_done(void *ctx, const struct store_answer *a)
{
    struct waiting *w = ctx;

    w->r = a->r;
    w->revision = a->revision;
    w->failed = a->failed;
    if (a->r != 0 && a->e->text[0] && w->e)
        *w->e = *a->e;
}

int store_now_commit(struct store *s, const struct store_op *ops, size_t n_ops, nsec_t now,
    uint64_t *ret_revision, size_t *ret_failed, struct err *e)
{
    struct waiting w = {.e = e};
    int r = store_commit(s, ops, n_ops, now, on_done, &w, e);

    if (r == 0) {
        store_wait(s);
        r = w.r;
    }
    if (ret_revision)
        *ret_revision = w.revision;
    if (ret_failed)
        *ret_failed = w.failed;
    return r;
}
