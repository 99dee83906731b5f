/* rdzv_job.c - see rdzv_job.h. */
#include "rdzv_job.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* A buffer for blobs that is larger than this is freed after use. */
#define BLOB_KEEP (64u << 10)

/* ---- saving --------------------------------------------------------------------------------- */

static void on_put(void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len,
    const void *p, size_t len, size_t before)
{
    struct rdzv_job *job = ctx;

    rdzv_save_blob(job->jobs->save, job->number, job->run, kind, name, name_len, p, len);
    rdzv_job_changed(job);
}

static void on_drop(
    void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len, size_t before)
{
    struct rdzv_job *job = ctx;

    if (job->is_clearing)
        return;
    rdzv_save_drop_blob(job->jobs->save, job->number, job->run, kind, name, name_len);
    rdzv_job_changed(job);
}

static void on_unsaved(void *ctx)
{
    struct rdzv_job *job = ctx;

    job->is_unsaved = true;
    job->jobs->has_unsaved = true;
}

void rdzv_jobs_flush(struct rdzv_jobs *jobs)
{
    struct rdzv_job *job;

    if (jobs->has_unsaved) {
        jobs->has_unsaved = false;
        list_foreach(job, &jobs->all, link) {
            if (!job->is_unsaved)
                continue;
            job->is_unsaved = false;
            (void)tcpstore_server_flush(&job->tcpstore, SIZE_MAX);
        }
    }
    rdzv_save_flush(jobs->save);
}

/* ---- life ----------------------------------------------------------------------------------- */

void rdzv_jobs_init(struct rdzv_jobs *jobs, struct rdzv_save *save, uint64_t seed)
{
    *jobs = (struct rdzv_jobs){.save = save,
        .seed = seed,
        .quota = {.bytes_max = RDZV_NETWORK_BYTES_MAX, .entries_max = RDZV_NETWORK_ENTRIES_MAX},
        .expires_at = NSEC_NEVER};
    list_init(&jobs->all);
}

void rdzv_jobs_deinit(struct rdzv_jobs *jobs)
{
    str_deinit(&jobs->blob);
}

struct rdzv_job *rdzv_jobs_find(struct rdzv_jobs *jobs, uint32_t number)
{
    struct rdzv_job *job;

    /* O(jobs): a network has at most 256, and the hub does not ask often. */
    list_foreach(job, &jobs->all, link) {
        if (job->number == number)
            return job;
    }
    return NULL;
}

struct rdzv_job *rdzv_job_new(struct rdzv_jobs *jobs, const struct rdzv_wire *m, nsec_t now)
{
    struct rdzv_job *job = m->len <= NAME_MAX_LEN ? calloc(1, sizeof(*job)) : NULL;
    struct rdzv_saver saver = {.ctx = job, .unsaved = on_unsaved, .put = on_put, .drop = on_drop};

    if (!job)
        return NULL;
    job->jobs = jobs;
    job->number = m->job;
    job->run = m->run;
    job->port = m->port;
    job->etcd_port = m->etcd_port;
    job->heard_at = now;
    memcpy(job->name, m->data, m->len);
    job->quota = (struct rdzv_quota){.parent = &jobs->quota,
        .bytes_max = RDZV_JOB_BYTES_MAX,
        .entries_max = RDZV_JOB_ENTRIES_MAX};
    list_init(&job->conns);
    tcpstore_server_init(&job->tcpstore, &saver, &job->quota, jobs->seed);
    if (etcd2_tree_init(&job->etcd2, &saver, &job->quota) != 0) {
        free(job);
        return NULL;
    }
    job->when_empty = job->quota;
    list_add_tail(&jobs->all, &job->link);
    return job;
}

void rdzv_job_free(struct rdzv_job *job)
{
    assert(list_is_empty(&job->conns));
    tcpstore_server_deinit(&job->tcpstore);
    etcd2_tree_deinit(&job->etcd2);
    list_remove(&job->link);
    free(job);
}

void rdzv_job_clear(struct rdzv_job *job, uint32_t run, nsec_t now)
{
    assert(list_is_empty(&job->conns));
    job->is_clearing = true;
    tcpstore_server_clear(&job->tcpstore);
    etcd2_tree_clear(&job->etcd2);
    job->is_clearing = false;
    job->run = run;
    job->heard_at = now;
    /* The index goes on from run to run, but the hub has dropped its blob with all others. */
    if (job->etcd2.index > 0)
        etcd2_tree_save_index(&job->etcd2);
    rdzv_job_changed(job);
}

/* ---- loading -------------------------------------------------------------------------------- */

/* Is the blob kept under its own name? Under another one it would be overwritten with that one's.
 */
static int check_name(
    const struct str *blob, enum rdzv_key_kind kind, const struct rdzv_hash *hash, struct err *e)
{
    struct rdzv_hash its;
    const uint8_t *name;
    size_t len;
    int r = kind == RDZV_KEY_ENTRY ? tcpstore_server_name(str_text(blob), blob->len, &name, &len, e)
                                   : etcd2_tree_name(str_text(blob), blob->len, &name, &len, e);

    if (r != 0)
        return r;
    its = rdzv_hash_of(name, len);
    return memcmp(&its, hash, sizeof(its)) == 0
               ? 0
               : err_set(e, -EINVAL, "it is kept where another belongs");
}

static int load(struct rdzv_job *job, enum rdzv_key_kind kind, const struct rdzv_hash *hash,
    struct etcd2_when when, struct err *e)
{
    struct str *blob = &job->jobs->blob;
    int r;

    if (blob->failed || blob->len > RDZV_BLOB_MAX)
        return err_set(e, -EINVAL, "it is longer than %u bytes", RDZV_BLOB_MAX);
    r = check_name(blob, kind, hash, e);
    if (r != 0)
        return r;
    return kind == RDZV_KEY_ENTRY
               ? tcpstore_server_load(&job->tcpstore, str_text(blob), blob->len, e)
               : etcd2_tree_load(&job->etcd2, str_text(blob), blob->len, when, e);
}

void rdzv_job_load(struct rdzv_job *job, const struct rdzv_wire *m, struct etcd2_when when)
{
    struct str *blob = &job->jobs->blob;
    struct rdzv_wire damaged = *m;
    struct err e = ERR_NULL;

    str_add_bytes(blob, (const char *)m->data, m->len);
    if (m->has_more)
        return;
    if (load(job, m->kind, &m->hash, when, &e) != 0) {
        damaged.type = RDZV_WIRE_DAMAGED;
        damaged.data = (const uint8_t *)err_text(&e);
        damaged.len = strlen(err_text(&e));
        rdzv_link_say(job->jobs->save->link, &damaged);
    }
    if (blob->failed || blob->cap > BLOB_KEEP)
        str_deinit(blob);
    blob->failed = false;
    blob->len = 0;
}

/* ---- facts ---------------------------------------------------------------------------------- */

void rdzv_job_changed(struct rdzv_job *job)
{
    job->has_news = true;
    job->jobs->has_news = true;
}

void rdzv_job_note_expiry(struct rdzv_job *job)
{
    nsec_t due = etcd2_tree_due(&job->etcd2);

    if (due < job->jobs->expires_at)
        job->jobs->expires_at = due;
}

bool rdzv_job_has_facts(const struct rdzv_job *job)
{
    return job->has_news || job->heard_at != job->told_heard_at ||
           job->quota.n_refused != job->told_refused;
}

void rdzv_job_tell_facts(struct rdzv_job *job, const struct rdzv_presence *who, nsec_t now)
{
    struct rdzv_wire m = {.type = RDZV_WIRE_FACTS,
        .job = job->number,
        .run = job->run,
        .n_connections = who->n_connections,
        .n_members = who->n_members,
        .address = who->member,
        .quiet_ms = (uint64_t)((now - job->heard_at) / NSEC_PER_MSEC),
        .n_keys = job->quota.entries - job->when_empty.entries,
        .n_bytes = job->quota.bytes - job->when_empty.bytes,
        .n_refused = job->quota.n_refused};

    job->has_news = false;
    job->told_heard_at = job->heard_at;
    job->told_refused = job->quota.n_refused;
    if (job->quota.last_refusal) {
        m.data = (const uint8_t *)job->quota.last_refusal;
        m.len = strlen(job->quota.last_refusal);
    }
    rdzv_link_say(job->jobs->save->link, &m);
}
