/* job_feed.c - see job_feed.h. */
#include "job_feed.h"

#include <errno.h>
#include <string.h>

#include "hub/jobs/blob_reader.h"
#include "hub/jobs/job.h"
#include "hub/jobs/job_network.h"
#include "hub/jobs/jobs_env.h"
#include "hub/jobs/rdzv_child.h"
#include "store/store.h"

/* About how many blobs are read at once. */
#define READ_MAX 16

void job_feed_restart(struct job_network *n)
{
    struct job *job;

    list_foreach(job, &n->jobs, link)
        job->told = (struct job_told){0};
}

/* Tell the process a blob that was read, or set it aside if it cannot be read. */
static void tell_blob(struct job_network *n, struct rdzv_child *child, const struct blob_read *read)
{
    const struct jobs_records *records = &n->env->records;
    const struct job *job = job_network_find_number(n, read->m.job);

    /* A run that is over meanwhile has no content. */
    bool is_current = job && job->record.run == read->m.run;

    if (read->messages.failed || (job && read->r == -EIO))
        rdzv_child_kill(child);
    else if (is_current && read->r == 0)
        rdzv_child_say_bytes(child, str_text(&read->messages), read->messages.len);
    else if (is_current)
        records->damaged(records->ctx, read->bad,
            read->r == STORE_E_ABSENT ? "a piece of it is missing" : err_text(&read->e));
}

/* What the store has of a job, as much as may wait to be said; true when all of it was said. The
 * index gets no new entries meanwhile: nobody is served yet. */
static bool load(struct job *job, struct rdzv_child *child, struct blob_reader *reader)
{
    while (rdzv_child_unsent(child) + blob_reader_bytes(reader) < RDZV_CHILD_UNSENT_LOAD &&
           blob_reader_count(reader) < READ_MAX) {
        const struct htab_link *l = blob_index_next(&job->blobs.index, &job->told.cursor);

        if (!l)
            return blob_reader_count(reader) == 0;
        for (; l; l = l->next) {
            const struct blob_entry *entry = container_of(l, struct blob_entry, link);

            if (blob_index_is_current(&job->blobs.index, entry) &&
                !blob_reader_add(reader, job, entry))
                rdzv_child_kill(child);
        }
    }
    return false;
}

/* Hand over the listening sockets. False: not all of them can be handed over now. */
static bool hand_over(struct job *job, struct rdzv_child *child)
{
    for (unsigned i = 0; i < JOB_PORTS_MAX; i++) {
        if (job->ports.fds[i] < 0 || job->told.handed & 1U << i)
            continue;
        if (!rdzv_child_say_socket(child, job->number, job->ports.fds[i]))
            return false;
        job->told.handed |= 1U << i;
    }
    return true;
}

static void tell_job(struct job *job, struct rdzv_child *child)
{
    uint16_t port = job->record.port;

    rdzv_child_say(child, &(struct rdzv_wire){.type = RDZV_WIRE_JOB,
                              .job = job->number,
                              .run = job->record.run,
                              .port = port,
                              .etcd_port = job_is_default(job) ? JOBS_DEFAULT_ETCD : port,
                              .data = (const uint8_t *)job->name,
                              .len = strlen(job->name)});
    job->told = (struct job_told){.number = job->number};
}

/* Tell the process of one job, as far as possible now. True: it was told all of it. */
static bool feed(struct job *job, struct rdzv_child *child, struct blob_reader *reader)
{
    if (job->told.number != job->number)
        tell_job(job, child);
    if (!job->told.is_loaded)
        job->told.is_loaded = load(job, child, reader);
    return job->told.is_loaded && hand_over(job, child);
}

bool job_feed_run(struct job_network *n, struct rdzv_child *child, struct blob_reader *reader)
{
    struct blob_read *read;
    bool is_behind = false;
    struct job *job;

    while ((read = blob_reader_take(reader))) {
        tell_blob(n, child, read);
        blob_read_free(read);
    }
    list_foreach(job, &n->jobs, link) {
        is_behind = job_exists(job) && !feed(job, child, reader);
        if (is_behind)
            break;
    }
    rdzv_child_flush(child);
    return is_behind;
}
