/* job_intake.c - see job_intake.h. */
#include "job_intake.h"

#include "hub/jobs/job.h"
#include "hub/jobs/job_network.h"
#include "hub/jobs/jobs_env.h"
#include "rendezvous/shared/rdzv_wire.h"

/* Longest text of a process that the log shows, with the terminating zero. */
#define WHY_MAX 200

static void take_damaged(struct job *job, const struct rdzv_wire *m)
{
    const struct jobs_records *records = &job->network->env->records;
    char key[RDZV_KEY_MAX];
    char why[WHY_MAX + 1];

    job_read_words(why, sizeof(why), m);
    (void)rdzv_key_of_blob(key, m->kind, job->network->name, job->name, &m->hash);
    records->damaged(records->ctx, key, why);
}

static bool take_of_job(struct job *job, const struct rdzv_wire *m, nsec_t now)
{
    /* The process was not told of this job, so it has guessed the number. */
    if (job->told.number != job->number)
        return false;
    if (m->type == RDZV_WIRE_PUT)
        return job_blobs_put(&job->blobs, &job->network->upload, m, now);
    if (m->type == RDZV_WIRE_DROP)
        job_blobs_drop(&job->blobs, m->kind, &m->hash, now);
    else if (m->type == RDZV_WIRE_FACTS)
        job_take_facts(job, m, now);
    else
        take_damaged(job, m);
    return true;
}

static void take_counts(struct job_network *n, const struct rdzv_wire *m)
{
    n->counts_now = (struct job_counts){
        .n_store_requests = m->n_store_requests,
        .n_etcd_requests = m->n_etcd_requests,
        .n_hung_up = m->n_hung_up,
        .n_accepts_deferred = m->n_accepts_deferred,
    };
}

bool job_intake_take(struct job_network *n, const struct rdzv_wire *m, nsec_t now)
{
    struct job *job;

    /* Between the pieces of a blob nothing else is said. */
    if (n->upload.to && m->type != RDZV_WIRE_PUT)
        return false;
    switch (m->type) {
    case RDZV_WIRE_PUT:
    case RDZV_WIRE_DROP:
    case RDZV_WIRE_FACTS:
    case RDZV_WIRE_DAMAGED:
        job = job_network_find_number(n, m->job);
        if (job && job->record.run == m->run)
            return take_of_job(job, m, now);
        /* That is no fault: the process may not know yet that the job, or its run, is over. */
        job_blobs_abort(&n->upload, now);
        return true;
    case RDZV_WIRE_SYNC:
        job_network_sync(n, m->seq, now);
        return true;
    case RDZV_WIRE_COUNTS:
        take_counts(n, m);
        return true;
    case RDZV_WIRE_NONE:
    case RDZV_WIRE_NETWORK:
    case RDZV_WIRE_JOB:
    case RDZV_WIRE_MEMBER:
    case RDZV_WIRE_NO_MEMBER:
    case RDZV_WIRE_LOAD:
    case RDZV_WIRE_LISTENER:
    case RDZV_WIRE_CLEAR:
    case RDZV_WIRE_FORGET:
    case RDZV_WIRE_SAVED:
    case RDZV_WIRE_END:
    case RDZV_WIRE_N:
        break;
    }
    return false;
}

bool job_intake_has_to_wait(const struct job_network *n, const struct rdzv_wire *m)
{
    /* Of several pieces the first comes last, so the second begins. */
    if (m->type == RDZV_WIRE_PUT && m->n_pieces > 1 && m->piece == 1)
        return !change_queue_is_empty(&n->queue);
    return !job_network_has_room(n);
}

void job_intake_end(struct job_network *n, nsec_t now)
{
    struct job *job;

    job_blobs_abort(&n->upload, now);
    change_queue_forget_syncs(&n->queue);
    list_foreach(job, &n->jobs, link)
        job_lose_facts(job, now);
    n->counts_before.n_store_requests += n->counts_now.n_store_requests;
    n->counts_before.n_etcd_requests += n->counts_now.n_etcd_requests;
    n->counts_before.n_hung_up += n->counts_now.n_hung_up;
    n->counts_before.n_accepts_deferred += n->counts_now.n_accepts_deferred;
    n->counts_now = (struct job_counts){0};
}
