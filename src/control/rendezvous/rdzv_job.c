/*
 * rdzv_job.c - one job in a rendezvous process: what is in it, and how it is told to the hub.
 *
 * The hub decides which jobs there are and when a run begins (hub/jobs.h). What is in one is in
 * rdzv_kv.c (TCPStore) and rdzv_tree.c (etcd).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rendezvous/rdzv_internal.h"
#include "rendezvous/rdzv_tree_internal.h"
#include "os/clock.h"

/* How long the hub may not know how a job is. */
#define FACTS_MS 20

/* ---- saving --------------------------------------------------------------------------------- */

static void put(struct rdzv_job *job, enum rdzv_key_kind kind, const void *name, size_t name_len,
    const void *p, size_t len)
{
    rdzv_save_blob(&job->rz->save, job->number, job->run, kind, name, name_len, p, len);
    rdzv__changed(job);
}

static void drop(struct rdzv_job *job, enum rdzv_key_kind kind, const void *name, size_t name_len)
{
    if (job->is_clearing)
        return;
    rdzv_save_drop_blob(&job->rz->save, job->number, job->run, kind, name, name_len);
    rdzv__changed(job);
}

static void on_unsaved(void *ctx)
{
    struct rdzv_job *job = ctx;

    job->is_unsaved = true;
    job->rz->has_unsaved = true;
}

void rdzv__flush(struct rdzv *rz)
{
    struct rdzv_job *job;

    if (rz->has_unsaved) {
        rz->has_unsaved = false;
        list_foreach(job, &rz->network.jobs, link) {
            if (!job->is_unsaved)
                continue;
            job->is_unsaved = false;
            (void)rdzv_kv_flush(&job->kv, SIZE_MAX);
        }
    }
    rdzv_save_flush(&rz->save);
}

static void on_put_entry(
    void *ctx, const void *name, size_t name_len, const void *p, size_t len, size_t before)
{
    put(ctx, RDZV_KEY_ENTRY, name, name_len, p, len);
}

static void on_drop_entry(void *ctx, const void *name, size_t name_len, size_t before)
{
    drop(ctx, RDZV_KEY_ENTRY, name, name_len);
}

static void on_put_node(
    void *ctx, const void *name, size_t name_len, const void *p, size_t len, size_t before)
{
    put(ctx, RDZV_KEY_NODE, name, name_len, p, len);
}

static void on_drop_node(void *ctx, const void *name, size_t name_len, size_t before)
{
    drop(ctx, RDZV_KEY_NODE, name, name_len);
}

/* ---- life ----------------------------------------------------------------------------------- */

struct rdzv_job *rdzv__find_job(struct rdzv *rz, uint32_t number)
{
    struct rdzv_job *job;

    /* The hub has at most 256 in a network, and does not name them often. */
    list_foreach(job, &rz->network.jobs, link) {
        if (job->number == number)
            return job;
    }
    return NULL;
}

struct rdzv_job *rdzv__job_new(struct rdzv *rz, const struct rdzv_wire *m)
{
    struct rdzv_job *job = m->len <= NAME_MAX_LEN ? calloc(1, sizeof(*job)) : NULL;
    struct rdzv_kv_saver for_store = {
        .ctx = job, .unsaved = on_unsaved, .put = on_put_entry, .drop = on_drop_entry};
    struct rdzv_tree_saver for_tree = {.ctx = job, .put = on_put_node, .drop = on_drop_node};

    if (!job)
        return NULL;
    job->rz = rz;
    job->network = &rz->network;
    job->number = m->job;
    job->run = m->run;
    job->port = m->port;
    job->etcd_port = m->etcd_port;
    job->heard = clock_now();
    memcpy(job->name, m->data, m->len);
    job->quota = (struct rdzv_quota){.parent = &rz->network.quota,
        .bytes_max = RDZV_JOB_BYTES_MAX,
        .entries_max = RDZV_JOB_ENTRIES_MAX};
    list_init(&job->conns);
    rdzv_kv_init(&job->kv, &for_store, &job->quota, rz->seed);
    if (rdzv_tree_init(&job->tree, &for_tree, &job->quota) != 0) {
        free(job);
        return NULL;
    }
    job->when_empty = job->quota;
    list_add_tail(&rz->network.jobs, &job->link);
    return job;
}

void rdzv__job_free(struct rdzv_job *job)
{
    rdzv__unlisten(job);
    rdzv_kv_deinit(&job->kv);
    rdzv_tree_deinit(&job->tree);
    list_remove(&job->link);
    free(job);
}

void rdzv__job_clear(struct rdzv_job *job, uint32_t run)
{
    rdzv__hang_up_all(job, NULL);
    job->is_clearing = true;
    rdzv_kv_clear(&job->kv);
    rdzv_tree_clear(&job->tree);
    job->is_clearing = false;
    job->run = run;
    job->heard = clock_now();
    /* It goes on over the runs. */
    if (job->tree.index > 0)
        rdzv_tree__save_index(&job->tree);
    rdzv__changed(job);
}

/* ---- loading -------------------------------------------------------------------------------- */

/* Does the blob lie under its own name? Kept under another's, it would be overwritten with that. */
static int check_name(
    const struct str *blob, enum rdzv_key_kind kind, const struct rdzv_hash *hash, struct err *e)
{
    struct rdzv_hash its;
    const uint8_t *name;
    size_t len;
    int r = kind == RDZV_KEY_ENTRY ? rdzv_kv_name(str_text(blob), blob->len, &name, &len, e)
                                   : rdzv_tree_name(str_text(blob), blob->len, &name, &len, e);

    if (r != 0)
        return r;
    its = rdzv_hash_of(name, len);
    return memcmp(&its, hash, sizeof(its)) == 0
               ? 0
               : err_set(e, -EINVAL, "it is kept where another belongs");
}

static int load(
    struct rdzv_job *job, enum rdzv_key_kind kind, const struct rdzv_hash *hash, struct err *e)
{
    struct str *blob = &job->rz->blob;
    struct rdzv_when when = {.now = clock_now(), .wall = clock_wall()};
    int r;

    if (blob->failed || blob->len > RDZV_BLOB_MAX)
        return err_set(e, -EINVAL, "it is longer than %u bytes", RDZV_BLOB_MAX);
    r = check_name(blob, kind, hash, e);
    if (r != 0)
        return r;
    return kind == RDZV_KEY_ENTRY ? rdzv_kv_load(&job->kv, str_text(blob), blob->len, e)
                                  : rdzv_tree_load(&job->tree, str_text(blob), blob->len, when, e);
}

void rdzv__job_load(struct rdzv_job *job, const struct rdzv_wire *m)
{
    struct rdzv_wire damaged = *m;
    struct err e = ERR_NULL;

    str_add_bytes(&job->rz->blob, (const char *)m->data, m->len);
    if (m->has_more)
        return;
    if (load(job, m->kind, &m->hash, &e) != 0) {
        damaged.type = RDZV_WIRE_DAMAGED;
        damaged.data = (const uint8_t *)err_text(&e);
        damaged.len = strlen(err_text(&e));
        rdzv_link_say(&job->rz->link, &damaged);
    }
    if (job->rz->blob.failed || job->rz->blob.cap > RDZV__READ_MAX)
        str_deinit(&job->rz->blob);
    job->rz->blob.failed = false;
    job->rz->blob.len = 0;
}

/* ---- facts ---------------------------------------------------------------------------------- */

/* Who is connected: nobody, one member, or more. */
static void count_members(const struct rdzv_job *job, struct rdzv_wire *m)
{
    struct rdzv_conn *c;

    list_foreach(c, &job->conns, link) {
        m->n_connections++;
        if (m->n_members == 0)
            m->address = c->from;
        if (m->n_members < 2 && (m->n_members == 0 || !ip_addr_equal(&m->address, &c->from)))
            m->n_members++;
    }
}

void rdzv__tell_facts(struct rdzv_job *job, nsec_t now)
{
    struct rdzv_wire m = {.type = RDZV_WIRE_FACTS,
        .job = job->number,
        .run = job->run,
        .quiet_ms = (uint64_t)((now - job->heard) / NSEC_PER_MSEC),
        .n_keys = job->quota.entries - job->when_empty.entries,
        .n_bytes = job->quota.bytes - job->when_empty.bytes,
        .n_refused = job->quota.n_refused};

    if (!job->is_changed && job->heard == job->heard_told &&
        job->quota.n_refused == job->refused_told)
        return;
    job->is_changed = false;
    job->heard_told = job->heard;
    job->refused_told = job->quota.n_refused;
    count_members(job, &m);
    if (job->quota.last_refusal) {
        m.data = (const uint8_t *)job->quota.last_refusal;
        m.len = strlen(job->quota.last_refusal);
    }
    rdzv_link_say(&job->rz->link, &m);
}

static void on_facts(uv_timer_t *timer)
{
    struct rdzv *rz = container_of(timer, struct rdzv, facts);
    nsec_t now = clock_now();
    struct rdzv_job *job;

    list_foreach(job, &rz->network.jobs, link) {
        if (job->is_changed)
            rdzv__tell_facts(job, now);
    }
}

void rdzv__changed(struct rdzv_job *job)
{
    uv_timer_t *timer = &job->rz->facts;

    job->is_changed = true;
    if (!uv_is_active((uv_handle_t *)timer) && !uv_is_closing((uv_handle_t *)timer))
        (void)uv_timer_start(timer, on_facts, FACTS_MS, 0);
}
