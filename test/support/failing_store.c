/* failing_store.c - see failing_store.h. */
#include "test/support/failing_store.h"

static enum store_job_kind failing;
static unsigned n_spared;
static const struct store_ops *usual; /* NULL: it does what it is asked */

static void submit(struct store *s, struct store_job *job)
{
    bool is_spared = job->kind == failing && n_spared > 0;

    n_spared -= is_spared;
    if (job->kind != failing || is_spared) {
        usual->submit(s, job);
        return;
    }
    job->r = err_set(&job->e, FAILING_STORE_R, FAILING_STORE_WORDS);
    store__finish(s, job);
}

void failing_store_begin(struct store *s, enum store_job_kind kind)
{
    static struct store_ops ops;

    failing_store_end(s);
    failing = kind;
    n_spared = 0;
    usual = s->ops;
    ops = *usual;
    ops.submit = submit;
    s->ops = &ops;
}

void failing_store_spare(unsigned n)
{
    n_spared = n;
}

void failing_store_end(struct store *s)
{
    if (usual)
        s->ops = usual;
    usual = NULL;
}

void failing_store_set_full(struct store *s, bool is_full)
{
    if (is_full)
        s->n_pending += STORE_PENDING_MAX;
    else
        s->n_pending -= STORE_PENDING_MAX;
}
