/* sample_late.c - see sample_late.h. */
#include "test/support/sample_late.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/secret.h"
#include "store/store_backend.h"

/* Jobs that take their turn at once, at most. */
#define AT_ONCE 3

struct late {
    struct store base;
    struct store *inner; /* owns: what is kept */
    struct list jobs;    /* of struct store_job */
    uint64_t seed;
    struct rng rng;
    unsigned loss;
};

static struct late *late_of(struct store *s)
{
    return container_of(s, struct late, base);
}

static void late_submit(struct store *s, struct store_job *job)
{
    list_add_tail(&late_of(s)->jobs, &job->link);
    store__wake(s);
}

static void fail(struct store_job *job, int r, const char *words)
{
    job->r = err_set(&job->e, r, "%s", words);
}

/* The commit was done, and watches are change so in a later turn: by a job that nobody asked. */
static void tell_later(struct late *l, struct store_job *job)
{
    struct store_job *change = store_job_new(STORE_JOB_COMMIT);

    change->ops = job->ops;
    change->n_ops = job->n_ops;
    change->took_effect = job->took_effect;
    change->asked_at = job->asked_at;
    change->revision = job->revision;
    /* It has its answer already: see do_one(). */
    change->limit = 1;
    job->ops = NULL;
    job->n_ops = 0;
    job->took_effect = NULL;
    list_add(&l->jobs, &change->link);
    store__add_pending(&l->base, change);
}

static void do_commit(struct late *l, struct store_job *job, bool is_lost)
{
    unsigned how = is_lost ? rng_u32(&l->rng) % 3 : 0;

    if (is_lost && how == 0) {
        fail(job, -EIO, "the store is away");
        return;
    }
    if (!is_lost || how == 1)
        memory_run(l->inner, job);
    if (!is_lost || job->r != 0)
        return;
    if (how == 1)
        tell_later(l, job);
    fail(job, STORE_E_UNKNOWN, "the store's answer was lost");
}

static void do_one(struct late *l, struct store_job *job)
{
    bool is_lost = l->loss > 0 && rng_u32(&l->rng) % l->loss == 0;

    list_remove(&job->link);
    if (job->kind == STORE_JOB_COMMIT && job->limit == 1)
        job->r = 0;
    else if (job->kind == STORE_JOB_COMMIT)
        do_commit(l, job, is_lost);
    else if (is_lost && job->kind != STORE_JOB_CHANGES)
        fail(job, -EIO, "the store is away");
    else
        memory_run(l->inner, job);
    store__finish(&l->base, job);
}

static void late_turn(struct store *s)
{
    struct late *l = late_of(s);
    unsigned n = rng_u32(&l->rng) % (AT_ONCE + 1);
    struct store_job *job;

    while (n-- > 0 && (job = list_first(&l->jobs, struct store_job, link)))
        do_one(l, job);
    if (!list_is_empty(&l->jobs))
        store__wake(s);
}

static void late_free(struct store *s)
{
    struct late *l = late_of(s);
    struct store_job *job;
    struct store_job *tmp;

    list_foreach_safe(job, tmp, &l->jobs, link)
        store_job_free(job);
    store_free(l->inner);
    store__deinit(s);
    free(l);
}

static const struct store_ops late_ops = {
    .free = late_free,
    .submit = late_submit,
    .turn = late_turn,
};

struct store *sample_late_open(uint64_t seed, unsigned loss)
{
    struct late *l = calloc(1, sizeof(*l));

    if (!l || store__init(&l->base, &late_ops, NULL) != 0 || memory_open(&l->inner, "", 0, NULL))
        assert(false);
    list_init(&l->jobs);
    l->seed = seed;
    l->rng = rng_seeded(&l->seed);
    l->loss = loss;
    return &l->base;
}

void sample_late_set_loss(struct store *s, unsigned loss)
{
    late_of(s)->loss = loss;
}
