/* job_network.c - see job_network.h. */
#include "job_network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "health/job_health.h"
#include "os/clock.h"
#include "rendezvous/shared/rdzv_wire.h"

/* ---- what the process is told ---------------------------------------------------------------- */

/* How many calls in a row cannot open a port before the log says so; there is one each second. */
#define PORT_FAILURES_SAID 3

static void say(struct job_network *n, const struct rdzv_wire *m)
{
    if (n->has_process)
        rdzv_wire_encode(&n->to_process, m);
}

static void say_job(struct job *job, enum rdzv_wire_type type)
{
    say(job->network,
        &(struct rdzv_wire){.type = type, .job = job->number, .run = job->record.run});
}

/* ---- which jobs there are ------------------------------------------------------------------- */

/* A network has at most JOBS_JOBS_MAX, and nobody looks often. */
struct job *job_network_find_job(const struct job_network *n, const char *name)
{
    struct job *job;

    list_foreach(job, &n->jobs, link) {
        if (strcmp(job->name, name) == 0)
            return job;
    }
    return NULL;
}

struct job *job_network_add(
    struct job_network *n, const char *name, const struct rdzv_job_record *record, nsec_t now)
{
    static const struct rdzv_job_record gone = {
        .port = 1, .run = 1, .ended = true, .has_heads = true};
    struct job *job = calloc(1, sizeof(*job));
    struct job *after;

    if (!job)
        return NULL;
    job->network = n;
    job->number = ++n->last_number;
    job->record = record ? *record : gone;
    job->is_forgotten = !record;
    job->heard_at = now;
    (void)snprintf(job->name, sizeof(job->name), "%s", name);
    job_blobs_init(&job->blobs, n->name, job->name, &n->queue, &n->totals, n->env->seed);
    if (record)
        blob_index_set_run(&job->blobs.index, record->run, !record->has_heads);
    if (!job->record.ended)
        job_members_keep(&job->members, job->record.members, now);
    job_ports_init(&job->ports);
    /* The list is in the order of names. */
    list_foreach(after, &n->jobs, link)
        if (strcmp(after->name, name) > 0)
            break;
    list_add_tail(&after->link, &job->link);
    return job;
}

void job_network_free_job(struct job *job)
{
    job_network_forget_health(job);
    job_ports_close(&job->ports);
    job_blobs_deinit(&job->blobs);
    job_members_deinit(&job->members);
    list_remove(&job->link);
    free(job);
}

void job_counts_add(struct job_counts *sum, const struct job_counts *more)
{
    sum->n_store_requests += more->n_store_requests;
    sum->n_etcd_requests += more->n_etcd_requests;
    sum->n_hung_up += more->n_hung_up;
    sum->n_accepts_deferred += more->n_accepts_deferred;
}

struct job_network *job_network_find(const struct list *networks, const char *name)
{
    struct job_network *n;

    list_foreach(n, networks, link) {
        if (strcmp(n->name, name) == 0)
            return n;
    }
    return NULL;
}

struct job_network *job_network_get(struct list *networks, struct jobs_env *env, const char *name)
{
    struct job_network *n = job_network_find(networks, name);

    if (n)
        return n;
    n = calloc(1, sizeof(*n));
    if (!n)
        return NULL;
    n->env = env;
    (void)snprintf(n->name, sizeof(n->name), "%s", name);
    list_init(&n->jobs);
    change_queue_init(&n->queue, env->seed);
    list_add_tail(networks, &n->link);
    return n;
}

void job_network_free(struct job_network *n)
{
    struct job *job;
    struct job *tmp;

    list_foreach_safe(job, tmp, &n->jobs, link)
        job_network_free_job(job);
    findings_deinit(&n->findings);
    change_queue_deinit(&n->queue);
    str_deinit(&n->to_process);
    list_remove(&n->link);
    free(n);
}

/* ---- ports ---------------------------------------------------------------------------------- */

void job_network_open_ports(struct job *job)
{
    const struct job_network *n = job->network;
    struct endpoint at[JOB_PORTS_OVERLAY] = {
        {.addr = n->address4, .port = job->record.port},
        {.addr = n->address6, .port = job->record.port},
        {.addr = n->address4, .port = JOBS_DEFAULT_ETCD},
        {.addr = n->address6, .port = JOBS_DEFAULT_ETCD},
    };
    struct err e = ERR_NULL;

    /* A process that served the job and is ending may still have the port for a moment. */
    if (job_ports_open(&job->ports, n->interface, !ip_addr_is_none(&n->own_member), at,
            job_is_default(job) ? 4 : 2, &e) != 0 &&
        job->ports.n_failures == PORT_FAILURES_SAID)
        log_warning("job \"%s\" of network \"%s\" is not served at one of its addresses: %s",
            job->name, n->name, err_text(&e));
    job->network->has_updates = true;
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* Forget the blob of this job that the process is just sending. */
static void abort_upload(struct job *job, nsec_t now)
{
    if (job->network->upload.to == &job->blobs)
        job_blobs_abort(&job->network->upload, now);
}

void job_network_begin_run(struct job *job, uint32_t run, nsec_t now)
{
    char before[NAME_MAX_LEN + 16];

    abort_upload(job, now);
    (void)snprintf(before, sizeof(before), "%s.%u", job->name, job->record.run);
    job_set_run(job, run);
    job_forget_facts(job);
    job_members_begin_next(&job->members, before, now);
    say_job(job, RDZV_WIRE_CLEAR);
    log_info("job \"%s\" of network \"%s\": run %u begins", job->name, job->network->name, run);
}

/* ---- how jobs go ---------------------------------------------------------------------------- */

struct findings *job_network_findings(struct job_network *n)
{
    return &n->findings;
}

/* A finding_changed_fn. */
static void on_changed(void *arg, const struct finding *f, bool is_over)
{
    const struct job_network *n = arg;

    log_info("network \"%s\": %s of %s%s: %s", n->name, finding_kinds[f->code].code, f->subject,
        is_over ? " is over" : "", f->text);
}

static struct job_health_out health_out(struct job *job)
{
    return (struct job_health_out){.job = job->name,
        .findings = job_network_findings(job->network),
        .changed = on_changed,
        .arg = job->network,
        .at = clock_wall_s()};
}

void job_network_take_sample(
    struct job *job, const char *member, const struct job_sample *s, nsec_t now)
{
    if (!job->health)
        job->health = job_health_new();
    if (job->health)
        job_health_take(job->health, member, s, now);
}

void job_network_look(struct job *job, nsec_t now)
{
    struct job_health_out out = health_out(job);

    if (!job->health)
        return;
    if (job_exists(job) && !job_is_over(job, now))
        job_health_look(job->health, &out, now);
    else
        job_health_clear(job->health, &out);
}

void job_network_forget_health(struct job *job)
{
    struct job_health_out out = health_out(job);

    if (job->health)
        job_health_clear(job->health, &out);
    job->health = job_health_free(job->health);
}

/* ---- forgetting ----------------------------------------------------------------------------- */

void job_network_forget_job(struct job *job, nsec_t now)
{
    job_ports_close(&job->ports);
    job_network_forget_health(job);
    say_job(job, RDZV_WIRE_FORGET);
    job->is_save_in_vain = job->save != NULL;
    abort_upload(job, now);
    job->is_forgotten = true;
    blob_index_set_run(&job->blobs.index, 0, false);
}

void job_network_sweep(struct job_network *n, nsec_t now)
{
    struct job *job;
    struct job *tmp;

    list_foreach_safe(job, tmp, &n->jobs, link) {
        char key[RDZV_KEY_MAX];

        job_blobs_sweep(&job->blobs, now);
        if (!job->is_forgotten || job->save || job->blobs.index.entries.n > 0 ||
            !job_blobs_may_delete(&n->queue))
            continue;
        /* Behind all that was in it, so that no later job of the name finds any of that. */
        (void)change_queue_put(&n->queue, rdzv_key_of_job(key, n->name, job->name), NULL, now);
        job_network_free_job(job);
    }
}

void job_network_forget(struct job_network *n, nsec_t now)
{
    struct job *job;

    list_foreach(job, &n->jobs, link) {
        /* One that was forgotten may be about to be revived. */
        if (!job->is_forgotten || job->save)
            job_network_forget_job(job, now);
    }
    job_network_sweep(n, now);
}

/* ---- serving -------------------------------------------------------------------------------- */

size_t job_network_add_fence(const struct job_network *n, struct store_op *ops)
{
    if (!n->fence[0])
        return 0;
    *ops = (struct store_op){
        .kind = STORE_OP_CHECK, .key = n->fence, .expect = n->fence_revision, .is_unwatched = true};
    return 1;
}

/* ---- changes, on their way to the store ----------------------------------------------------- */

/* Tell the process which of its changes are on the disk, or that they could not be stored. */
static void say_saved(struct job_network *n, int error)
{
    uint64_t seq;

    if (change_queue_take_saved(&n->queue, error, &seq))
        say(n, &(struct rdzv_wire){.type = RDZV_WIRE_SAVED, .seq = seq, .error = error});
}

void job_network_sync(struct job_network *n, uint64_t seq, nsec_t now)
{
    change_queue_sync(&n->queue, seq, now);
    if (change_queue_is_empty(&n->queue))
        say_saved(n, 0);
}

nsec_t job_network_due(const struct job_network *n)
{
    return n->is_foreign ? NSEC_NEVER : change_queue_due(&n->queue, &n->env->pace);
}

/* The store has answered the commit on its way. */
static void settle(struct job_network *n, int r, nsec_t now)
{
    const struct change *ch;

    if (r == 0) {
        list_foreach(ch, &n->queue.sent, link)
            n->env->records.written(n->env->records.ctx, ch->key);
    }
    change_queue_settle(&n->queue, &n->env->pace, r, now);
}

/* What comes after a commit, or after one that could not begin. */
static void resume(struct job_network *n, int r, const struct err *e, nsec_t now)
{
    if (r != 0)
        log_limited(&n->env->log_limit, now, LOG_LEVEL_WARNING,
            "rendezvous of network \"%s\": what has changed is in memory only, until the next "
            "try: %s",
            n->name, err_text(e));
    /* A positive outcome has no meaning for the process: it is told an ordinary error. */
    say_saved(n, r > 0 ? -EIO : r);
    job_network_sweep(n, now);
    change_queue_resume(&n->queue, now);
}

static void on_committed(void *ctx, const struct store_answer *a)
{
    struct job_network *n = ctx;
    nsec_t now = n->env->clock();

    settle(n, a->r, now);
    resume(n, a->r, a->e, now);
}

/* Hand the oldest changes to the store as one commit. 0, also when there are none; or negative
 * errno with words. */
static int send_some(struct job_network *n, nsec_t now, struct err *e)
{
    struct store_op ops[CHANGE_QUEUE_BATCH_MAX + 1];
    size_t n_ops = change_queue_send(&n->queue, &n->env->pace, ops, now);
    int r = 0;

    if (n_ops > 0)
        n_ops += job_network_add_fence(n, ops + n_ops);
    if (n_ops > 0)
        r = store_commit(n->env->store, ops, n_ops, now, on_committed, n, e);
    if (r != 0)
        settle(n, r, now);
    return r;
}

void job_network_commit(struct job_network *n, nsec_t now)
{
    struct err e = ERR_NULL;
    int r = send_some(n, now, &e);

    if (r != 0)
        resume(n, r, &e, now);
}

int job_network_commit_all(struct job_network *n, struct err *e)
{
    struct store *store = n->env->store;
    int r = 0;

    store_wait(store);
    while (r == 0 && !n->is_foreign && !list_is_empty(&n->queue.waiting)) {
        r = send_some(n, n->env->clock(), e);
        store_wait(store);
        if (n->queue.is_failing)
            r = err_set(e, -EIO, "the store has refused it");
    }
    say_saved(n, r);
    return r;
}
