/* job_loader.c - see job_loader.h. */
#include "job_loader.h"

#include <errno.h>

#include "base/err.h"
#include "hub/jobs/job.h"
#include "hub/jobs/job_network.h"
#include "hub/jobs/jobs_env.h"
#include "store/store_now.h"

/* The walk over the store. */
struct load {
    struct list *networks; /* borrowed */
    struct jobs_env *env;  /* borrowed */
    nsec_t now;
};

static int load_job(struct load *load, const struct rdzv_key *k, const char *text, struct err *e)
{
    struct rdzv_job_record record;
    struct job_network *n;
    int r = rdzv_job_decode(&record, text, e);

    if (r != 0)
        return r;
    n = job_network_get(load->networks, load->env, k->network);
    return n && job_network_add(n, k->job, &record, load->now)
               ? 0
               : err_set(e, -ENOMEM, "no memory for job \"%s\"", k->job);
}

static int load_blob(
    struct load *load, const struct rdzv_key *k, const struct store_item *item, struct err *e)
{
    struct job_network *n = job_network_get(load->networks, load->env, k->network);
    struct job *job = n ? job_network_find_job(n, k->job) : NULL;

    /* Blobs without a job are what a hub left behind that died while it forgot the job: they go. */
    if (n && !job)
        job = job_network_add(n, k->job, NULL, load->now);
    if (!job)
        return err_set(e, -ENOMEM, "no memory for job \"%s\"", k->job);
    return job_blobs_load(&job->blobs, k, item->key, item->value, load->now, e);
}

static int load_item(void *ctx, const struct store_item *item)
{
    struct load *load = ctx;
    struct rdzv_key k = rdzv_key_parse(item->key);
    struct err e = ERR_NULL;
    int r;

    if (k.kind == RDZV_KEY_NONE)
        return 0;
    if (k.kind == RDZV_KEY_JOB)
        r = load_job(load, &k, item->value, &e);
    else
        r = load_blob(load, &k, item, &e);
    if (r != 0)
        load->env->records.damaged(load->env->records.ctx, item->key, err_text(&e));
    return 0;
}

void job_loader_take(struct list *networks, struct jobs_env *env, const struct store_item *item)
{
    struct load load = {.networks = networks, .env = env, .now = env->clock()};

    (void)load_item(&load, item);
}

int job_loader_run(struct list *networks, struct jobs_env *env, struct err *e)
{
    struct load load = {.networks = networks, .env = env, .now = env->clock()};

    return store_now_list(env->store, RDZV_KEY_PREFIX, load_item, &load, NULL, e);
}
