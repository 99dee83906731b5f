/*
 * rdzv_job.c - one job: made, saved, begun anew, ended, forgotten; and as others see it.
 *
 * Which jobs a network has is rdzv.c's. What is in a job is in rdzv_kv.c (TCPStore) and rdzv_tree.c
 * (etcd).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "hub/rdzv_internal.h"

/* ---- saving --------------------------------------------------------------------------------- */

static int save_job(struct rdzv_job *job, struct err *e)
{
    char key[RDZV_KEY_MAX];
    char *text = rdzv_job_encode(&job->record);

    (void)rdzv_key_of_job(key, job->network->name, job->name);
    if (!text || rdzv_save_put(&job->rz->save, key, text) != 0)
        return err_set(e, -ENOMEM, "no memory for job \"%s\"", job->name);
    return 0;
}

static void on_put(
    void *ctx, const void *name, size_t name_len, const void *p, size_t len, size_t before)
{
    struct rdzv_job *job = ctx;
    char key[RDZV_KEY_MAX];

    /* Without memory for it the change is in the answers only. */
    (void)rdzv_save_blob(&job->rz->save,
        rdzv_key_of_blob(key, RDZV_KEY_NODE, job->network->name, job->name, name, name_len), p, len,
        before);
}

static void on_drop(void *ctx, const void *name, size_t name_len, size_t before)
{
    struct rdzv_job *job = ctx;
    char key[RDZV_KEY_MAX];

    (void)rdzv_save_drop_blob(&job->rz->save,
        rdzv_key_of_blob(key, RDZV_KEY_NODE, job->network->name, job->name, name, name_len),
        before);
}

static struct rdzv_tree_saver tree_saver(struct rdzv_job *job)
{
    return (struct rdzv_tree_saver){.ctx = job, .put = on_put, .drop = on_drop};
}

/* ---- life ----------------------------------------------------------------------------------- */

/* Where a job of that name goes in the list, which is in the order of names. */
static struct list *behind(struct rdzv_network *n, const char *name)
{
    struct rdzv_job *job;

    list_foreach(job, &n->jobs, link) {
        if (strcmp(job->name, name) > 0)
            return &job->link;
    }
    return &n->jobs;
}

struct rdzv_job *rdzv__job_new(
    struct rdzv_network *n, const char *name, const struct rdzv_job_record *record, nsec_t now)
{
    struct rdzv_job *job = calloc(1, sizeof(*job));
    struct rdzv_tree_saver for_tree;
    struct rdzv_kv_saver for_store;

    if (!job)
        return NULL;
    job->rz = n->rz;
    job->network = n;
    job->record = *record;
    job->heard = now;
    job->quota = (struct rdzv_quota){
        .parent = &n->quota, .bytes_max = RDZV_JOB_BYTES_MAX, .entries_max = RDZV_JOB_ENTRIES_MAX};
    (void)snprintf(job->name, sizeof(job->name), "%s", name);
    list_init(&job->conns);
    for_store = rdzv__store_saver(job);
    rdzv_kv_init(&job->kv, &for_store, &job->quota, n->rz->seed);
    for_tree = tree_saver(job);
    if (rdzv_tree_init(&job->tree, &for_tree, &job->quota) != 0) {
        free(job);
        return NULL;
    }
    list_add_tail(behind(n, name), &job->link);
    return job;
}

void rdzv__job_free(struct rdzv_job *job)
{
    rdzv_kv_deinit(&job->kv);
    rdzv_tree_deinit(&job->tree);
    list_remove(&job->link);
    free(job);
}

void rdzv__job_forget(struct rdzv_job *job)
{
    char key[RDZV_KEY_MAX];

    rdzv__unlisten(job);
    rdzv_kv_clear(&job->kv);
    rdzv_tree_clear(&job->tree);
    rdzv_tree_forget_index(&job->tree);
    (void)rdzv_save_put(&job->rz->save, rdzv_key_of_job(key, job->network->name, job->name), NULL);
    rdzv__job_free(job);
}

static bool is_port_taken(struct rdzv_network *n, uint16_t port)
{
    struct rdzv_job *job;

    list_foreach(job, &n->jobs, link) {
        if (job->record.port == port)
            return true;
    }
    return false;
}

/* A free port; 0: there is none. The search begins where the name says, so that a job that was
 * forgotten most likely comes back where it was. */
static uint16_t choose_port(struct rdzv_network *n, const char *name)
{
    unsigned first = (unsigned)(hash_bytes(0, name, strlen(name)) % RDZV_JOBS_MAX);

    if (strcmp(name, RDZV_DEFAULT) == 0)
        return RDZV_DEFAULT_C10D;
    for (unsigned i = 0; i < RDZV_JOBS_MAX; i++) {
        uint16_t port = (uint16_t)(RDZV_PORT_FIRST + (first + i) % RDZV_JOBS_MAX);

        if (!is_port_taken(n, port))
            return port;
    }
    return 0;
}

int rdzv__job_make(
    struct rdzv_network *n, const char *name, nsec_t now, struct rdzv_job **ret, struct err *e)
{
    struct rdzv_job_record record = {.port = choose_port(n, name), .run = 1};
    struct rdzv_job *job;
    int r;

    if (record.port == 0)
        return err_set(e, RDZV_E_FULL,
            "network \"%s\" has %d jobs already; one is forgotten %d hours after its last member "
            "has gone",
            n->name, RDZV_JOBS_MAX, (int)(RDZV_IDLE / NSEC_PER_SEC / 3600));
    job = rdzv__job_new(n, name, &record, now);
    r = job ? save_job(job, e) : err_set(e, -ENOMEM, "no memory for job \"%s\"", name);
    if (r != 0)
        return r;
    rdzv__listen(job);
    *ret = job;
    return 0;
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* Is somebody connected but @who, who may be nobody? */
static bool is_busy(const struct rdzv_job *job, const struct ip_addr *who)
{
    struct rdzv_conn *c;

    list_foreach(c, &job->conns, link) {
        if (!who || !ip_addr_equal(&c->from, who))
            return true;
    }
    return false;
}

static void hang_up_all(struct rdzv_job *job)
{
    struct rdzv_conn *c;
    struct rdzv_conn *tmp;

    list_foreach_safe(c, tmp, &job->conns, link)
        rdzv__hang_up(c);
}

static int begin_run(struct rdzv_job *job, struct err *e)
{
    hang_up_all(job);
    rdzv_kv_clear(&job->kv);
    rdzv_tree_clear(&job->tree);
    job->record.run++;
    job->record.ended = false;
    log_info("job \"%s\" of network \"%s\": run %u begins", job->name, job->network->name,
        job->record.run);
    return save_job(job, e);
}

static bool is_over(const struct rdzv_job *job, nsec_t now)
{
    return job->record.ended || (now - job->heard > RDZV_QUIET && !is_busy(job, NULL));
}

int rdzv__job_enter(struct rdzv_job *job, nsec_t now, struct err *e)
{
    return is_over(job, now) ? begin_run(job, e) : 0;
}

int rdzv_end(struct rdzv_job *job, const struct ip_addr *who, struct err *e)
{
    int r;

    if (is_busy(job, who))
        return err_set(
            e, RDZV_E_BUSY, "other members of job \"%s\" are still connected", job->name);
    job->record.ended = true;
    r = save_job(job, e);
    return r == 0 ? rdzv_save_now(&job->rz->save, e) : r;
}

void rdzv__job_tick(struct rdzv_job *job, nsec_t now)
{
    if (now - job->heard <= RDZV_IDLE || is_busy(job, NULL))
        return;
    if (strcmp(job->name, RDZV_DEFAULT) != 0) {
        rdzv__job_forget(job);
    } else {
        rdzv_kv_clear(&job->kv);
        rdzv_tree_clear(&job->tree);
    }
}

/* ---- as others see it ----------------------------------------------------------------------- */

json_t *rdzv_job_json(const struct rdzv_job *job)
{
    const struct hub_network *net = &job->network->net->pub;
    uint16_t port = job->record.port;
    uint16_t etcd = strcmp(job->name, RDZV_DEFAULT) == 0 ? RDZV_DEFAULT_ETCD : port;
    char run[NAME_MAX_LEN + 16];
    char address[IP_ADDR_TEXT_MAX];
    char address6[IP_ADDR_TEXT_MAX];
    char c10d_at[IP_ADDR_TEXT_MAX + 8];
    char etcd_at[IP_ADDR_TEXT_MAX + 8];
    char epoch[2 * sizeof(uint64_t) + 1];

    ip_addr_format(&net->address4, address);
    ip_addr_format(&net->address6, address6);
    (void)snprintf(run, sizeof(run), "%s.%u", job->name, job->record.run);
    (void)snprintf(c10d_at, sizeof(c10d_at), "%s:%u", address, port);
    (void)snprintf(etcd_at, sizeof(etcd_at), "%s:%u", address, etcd);
    (void)snprintf(epoch, sizeof(epoch), "%016" PRIx64, job->rz->epoch);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:i}, s:{s:s, s:i}, s:I, s:I, s:I, s:I, s:s*}",
        "job", job->name, "network", job->network->name, "run", run, "epoch", epoch, "address4",
        address, "address6", address6, "c10d", "endpoint", c10d_at, "port", port, "etcdV2",
        "endpoint", etcd_at, "port", etcd, "idleSeconds", (json_int_t)(RDZV_IDLE / NSEC_PER_SEC),
        "keys", (json_int_t)job->quota.entries, "bytes", (json_int_t)job->quota.bytes, "limitHits",
        (json_int_t)job->quota.n_refused, "lastLimit", job->quota.last_refusal);
}
