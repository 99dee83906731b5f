/*
 * record_save.c - a job's own record, on its way to the store, and who waits for it.
 *
 * What the record says comes true when it is on the disk. Until then others who want something of
 * the job wait, and ask again when it is.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "hub/jobs_internal.h"
#include "store/store.h"

/* Who wants something of the job. */
struct waiter {
    struct list link; /* in the saving's */
    jobs_done_fn done;
    void *ctx; /* pins */
};

struct jobs_saving {
    struct job *job; /* pins */
    enum jobs_save what;
    struct rdzv_job_record record;
    nsec_t now;          /* when it was asked for */
    bool is_in_vain;     /* the job was forgotten meanwhile */
    struct list waiters; /* of struct waiter */
};

/* It is on the disk. */
static void come_true(const struct jobs_saving *s)
{
    switch (s->what) {
    case JOBS_SAVE_NEW:
        jobs__is_made(s->job);
        break;
    case JOBS_SAVE_REVIVED:
        jobs__is_revived(s->job, &s->record, s->now);
        break;
    case JOBS_SAVE_RUN:
        jobs__has_begun(s->job, &s->record);
        break;
    case JOBS_SAVE_END:
        s->job->record = s->record;
        break;
    }
}

/* It is not, as far as is known. If it was stored after all, the next start finds a job that nobody
 * comes to, or a run that begins once more. */
static void give_up(const struct jobs_saving *s)
{
    if (s->what == JOBS_SAVE_NEW)
        jobs__free(s->job);
}

static void on_saved(void *ctx, const struct store_answer *a)
{
    struct jobs_saving *s = ctx;
    struct jobs_network *n = s->job->network;
    struct waiter *w;
    struct waiter *tmp;

    s->job->saving = NULL;
    if (s->is_in_vain)
        s->job->is_unsaved = false;
    else if (a->r == 0)
        come_true(s);
    else
        give_up(s);
    jobs__sweep(n);
    list_foreach_safe(w, tmp, &s->waiters, link) {
        list_remove(&w->link);
        w->done(w->ctx, a->r < 0 ? a->r : a->r > 0 ? -EIO : 0, a->e);
        free(w);
    }
    free(s);
}

int jobs__save(struct job *job, enum jobs_save what, const struct rdzv_job_record *record,
    nsec_t now, struct err *e)
{
    _cleanup_(freep) char *text = rdzv_job_encode(record);
    struct jobs_saving *s = calloc(1, sizeof(*s));
    char key[RDZV_KEY_MAX];
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = rdzv_key_of_job(key, job->network->name, job->name),
        .value = text,
        .expect = STORE_EXPECT_ANY,
        .is_untold = true};
    int r = -ENOMEM;

    if (text && s)
        r = store_commit(job->network->jobs->model->store, &op, 1, now, on_saved, s, e);
    else
        (void)err_set(e, r, "no memory for job \"%s\"", job->name);
    if (r != 0) {
        free(s);
        return r;
    }
    /* A job of the name that was forgotten may be about to be deleted. */
    jobs__forget_put(job->network, key);
    *s = (struct jobs_saving){.job = job, .what = what, .record = *record, .now = now};
    list_init(&s->waiters);
    job->saving = s;
    return 0;
}

void jobs__save_in_vain(struct job *job)
{
    job->saving->is_in_vain = true;
}

int jobs__wait(struct job *job, jobs_done_fn done, void *ctx)
{
    struct waiter *w = calloc(1, sizeof(*w));

    if (!w)
        return -ENOMEM;
    w->done = done;
    w->ctx = ctx;
    list_init(&w->link);
    list_add_tail(&job->saving->waiters, &w->link);
    return 0;
}
