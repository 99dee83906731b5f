/* record_save.c - see record_save.h. */
#include "record_save.h"

#include <errno.h>
#include <stdlib.h>

struct waiter {
    struct list link; /* in the save's */
    jobs_done_fn done;
    void *ctx; /* pins */
};

struct record_save *record_save_new(
    enum record_save_kind kind, const struct rdzv_job_record *record, nsec_t now)
{
    struct record_save *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->kind = kind;
    s->record = *record;
    s->asked_at = now;
    list_init(&s->waiters);
    return s;
}

int record_save_wait(struct record_save *s, jobs_done_fn done, void *ctx)
{
    struct waiter *w = calloc(1, sizeof(*w));

    if (!w)
        return -ENOMEM;
    w->done = done;
    w->ctx = ctx;
    list_add_tail(&s->waiters, &w->link);
    return 0;
}

struct record_save *record_save_free(struct record_save *s, int r, const struct err *e)
{
    struct waiter *w;
    struct waiter *tmp;

    list_foreach_safe(w, tmp, &s->waiters, link) {
        list_remove(&w->link);
        w->done(w->ctx, r, e);
        free(w);
    }
    free(s);
    return NULL;
}
