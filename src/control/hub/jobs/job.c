/* job.c - see job.h. */
#include "job.h"

#include <stdio.h>
#include <string.h>

#include "hub/jobs/job_network.h"
#include "hub/jobs/jobs.h"
#include "rendezvous/shared/rdzv_wire.h"

bool job_exists(const struct job *job)
{
    return !job->is_forgotten && !job->is_unsaved;
}

bool job_is_default(const struct job *job)
{
    return strcmp(job->name, JOBS_DEFAULT) == 0;
}

bool job_is_busy(const struct job *job, const struct ip_addr *who)
{
    const struct job_facts *facts = &job->facts;

    return facts->n_members > 1 ||
           (facts->n_members == 1 && (!who || !ip_addr_equal(&facts->member, who)));
}

bool job_is_over(const struct job *job, nsec_t now)
{
    return job->record.ended || (now - job->heard_at > JOBS_QUIET && !job_is_busy(job, NULL));
}

bool job_is_idle(const struct job *job, nsec_t now)
{
    return now - job->heard_at > JOBS_IDLE && !job_is_busy(job, NULL);
}

bool job_is_run(const struct job *job, const char *run)
{
    char name[NAME_MAX_LEN + 16];

    (void)snprintf(name, sizeof(name), "%s.%u", job->name, job->record.run);
    return strcmp(name, run) == 0;
}

void job_set_run(struct job *job, uint32_t run)
{
    job->record.run = run;
    job->record.ended = false;
    job->record.has_heads = true;
    job->is_forgotten = false;
    blob_index_set_run(&job->blobs.index, run, false);
}

void job_read_words(char *buf, size_t cap, const struct rdzv_wire *m)
{
    size_t len = m->len < cap - 1 ? m->len : cap - 1;

    for (size_t i = 0; i < len; i++)
        buf[i] = m->data[i] >= ' ' && m->data[i] < 0x7f ? (char)m->data[i] : '?';
    buf[len] = '\0';
}

void job_take_facts(struct job *job, const struct rdzv_wire *m, nsec_t now)
{
    const struct job_network *n = job->network;
    struct job_facts *facts = &job->facts;

    facts->n_connections = m->n_connections;
    facts->n_members = m->n_members;
    facts->member = m->address;
    if (ip_addr_equal(&m->address, &n->address4) || ip_addr_equal(&m->address, &n->address6))
        facts->member = n->own_member;
    facts->n_refused = m->n_refused < INT64_MAX ? m->n_refused : 0;
    job_read_words(facts->last_limit, sizeof(facts->last_limit), m);
    facts->n_keys = m->n_keys < JOB_BLOBS_MAX ? m->n_keys : JOB_BLOBS_MAX;
    facts->n_bytes = m->n_bytes < JOB_BLOBS_BYTES_MAX ? m->n_bytes : JOB_BLOBS_BYTES_MAX;
    if (m->quiet_ms < (uint64_t)(now / NSEC_PER_MSEC))
        job->heard_at = nsec_max(job->heard_at, now - (nsec_t)m->quiet_ms * NSEC_PER_MSEC);
}

void job_lose_facts(struct job *job, nsec_t now)
{
    if (job->facts.n_members > 0)
        job->heard_at = now;
    job->facts.n_connections = 0;
    job->facts.n_members = 0;
}

void job_forget_facts(struct job *job)
{
    job->facts.n_connections = 0;
    job->facts.n_members = 0;
    job->facts.n_keys = 0;
    job->facts.n_bytes = 0;
}
