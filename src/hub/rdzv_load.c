/* rdzv_load.c - jobs, and what is in them, as rdzv_save.c has put them into the hub's store. */
#include <errno.h>

#include "base/err.h"
#include "base/str.h"
#include "hub/rdzv_internal.h"
#include "store/store.h"
#include "sys/clock.h"

/* What a read of all that is kept needs. */
struct load {
    struct rdzv *rz; /* borrowed */
    struct rdzv_when when;
    struct err *e;         /* borrowed */
    struct rdzv_key first; /* whose blob is being put together; kind NONE: nobody's */
    struct str blob;       /* of it, so far */
};

/* The blob is complete: it goes into its job. */
static int load_blob(struct load *load)
{
    struct rdzv_job *job = rdzv__find_job(load->rz, load->first.network, load->first.job);
    int r = 0;

    /* One without a job is what a hub left behind that died while it forgot the job. */
    if (load->first.kind == RDZV_KEY_ENTRY && job)
        r = rdzv_kv_load(&job->kv, str_text(&load->blob), load->blob.len, load->e);
    if (load->first.kind == RDZV_KEY_NODE && job)
        r = rdzv_tree_load(&job->tree, str_text(&load->blob), load->blob.len, load->when, load->e);
    if (r != 0)
        return err_prefix(
            load->e, "job \"%s\" of network \"%s\"", load->first.job, load->first.network);
    load->first.kind = RDZV_KEY_NONE;
    load->blob.len = 0;
    return 0;
}

static int load_job(struct load *load, const struct rdzv_key *k, const char *text)
{
    struct rdzv_job_record record;
    int r = rdzv_job_decode(&record, text, load->e);

    if (r != 0)
        return r;
    r = rdzv__add_job(load->rz, k->network, k->job, &record, load->when.now);
    return r == 0 ? 0 : err_set(load->e, r, "no memory for job \"%s\"", k->job);
}

static int load_item(void *ctx, const struct store_item *item)
{
    struct load *load = ctx;
    struct rdzv_key k = rdzv_key_parse(item->key);
    int r = 0;

    if (k.kind == RDZV_KEY_NONE)
        return 0;
    if (k.chunk == 0) {
        r = load_blob(load);
        load->first = k;
    }
    if (r == 0)
        r = k.kind == RDZV_KEY_JOB ? load_job(load, &k, item->value)
                                   : rdzv_chunk_decode(&load->blob, item->value, load->e);
    return r == 0 ? 0 : err_prefix(load->e, "record \"%s\"", item->key);
}

int rdzv__load(struct rdzv *rz, struct err *e)
{
    struct load load = {.rz = rz, .e = e, .blob = STR_NULL};
    int r;

    load.when = (struct rdzv_when){.now = clock_now(), .wall = clock_wall()};
    r = store_list(rz->model->store, RDZV_KEY_PREFIX, load_item, &load, NULL, e);
    if (r == 0)
        r = load_blob(&load);
    str_deinit(&load.blob);
    return r;
}
