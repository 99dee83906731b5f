/*
 * job_loader.c - which jobs there are, and what of them is in the hub's store.
 *
 * A record that cannot be understood is set aside: named in the log and counted, and left where it
 * is. It never keeps a hub from starting. What is in the blobs only a rendezvous process reads.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "hub/jobs_internal.h"
#include "store/store.h"
#include "store/store_now.h"
#include "os/clock.h"

/* Where the walk over the store is. */
struct load {
    struct jobs *jobs; /* borrowed */
    nsec_t now;
};

/* Content without a job is what a hub left behind that died while it forgot the job: it goes. */
static struct job *find_job(struct load *load, const struct rdzv_key *k)
{
    struct rdzv_job_record gone = {.port = 1, .run = 1, .ended = true, .has_heads = true};
    struct jobs_network *n = jobs__network(load->jobs, k->network);
    struct job *job = n ? jobs__find(n, k->job) : NULL;

    if (n && !job) {
        job = jobs__new(n, k->job, &gone, load->now);
        if (job)
            job->is_forgotten = true;
    }
    return job;
}

static int load_job(struct load *load, const struct rdzv_key *k, const char *text, struct err *e)
{
    struct jobs_network *n = jobs__network(load->jobs, k->network);
    struct rdzv_job_record record;
    int r = rdzv_job_decode(&record, text, e);

    if (r != 0)
        return r;
    return n && jobs__new(n, k->job, &record, load->now)
               ? 0
               : err_set(e, -ENOMEM, "no memory for job \"%s\"", k->job);
}

static int load_head(struct job *job, const struct rdzv_key *k, const char *text, struct err *e)
{
    struct jobs_item item = {.hash = k->hash, .kind = (uint8_t)k->kind};
    struct rdzv_head head;
    size_t at;
    int r = rdzv_head_parse(&head, &at, text, e);

    if (r != 0)
        return r;
    item.run = head.run;
    item.slot = head.slot;
    item.n_pieces = (uint16_t)(head.n_pieces ? head.n_pieces : 1);
    item.len = (uint32_t)((strlen(text) - at) / 4 * 3 + (item.n_pieces - 1U) * RDZV_CHUNK);
    return jobs__set_item(job, &item) == 0 ? 0 : err_set(e, -ENOMEM, "no memory for a rendezvous");
}

/* A piece that no first piece names is what a hub left behind that died while it wrote it. */
static void load_piece(struct job *job, const struct rdzv_key *k, const char *key)
{
    struct jobs_item *item = jobs__find_item(job, k->kind, &k->hash);

    if (item && item->slot == k->slot && k->slot == RDZV_SLOT_OLD && k->piece == item->n_pieces)
        item->n_pieces++;
    else if (!item || item->slot != k->slot || k->piece >= item->n_pieces)
        (void)jobs__put(job->network, key, NULL);
}

static int load_item(void *ctx, const struct store_item *item)
{
    struct load *load = ctx;
    struct rdzv_key k = rdzv_key_parse(item->key);
    struct err e = ERR_NULL;
    struct job *job;
    int r = 0;

    if (k.kind == RDZV_KEY_NONE)
        return 0;
    job = k.kind == RDZV_KEY_JOB ? NULL : find_job(load, &k);
    if (k.kind == RDZV_KEY_JOB)
        r = load_job(load, &k, item->value, &e);
    else if (!job)
        r = err_set(&e, -ENOMEM, "no memory for job \"%s\"", k.job);
    else if (k.piece == 0)
        r = load_head(job, &k, item->value, &e);
    else
        load_piece(job, &k, item->key);
    if (r != 0)
        jobs__set_aside(load->jobs, item->key, err_text(&e));
    return 0;
}

int jobs__load(struct jobs *jobs, struct err *e)
{
    struct load load = {.jobs = jobs, .now = clock_now()};

    return store_now_list(jobs->model->store, RDZV_KEY_PREFIX, load_item, &load, NULL, e);
}
