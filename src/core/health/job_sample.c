/* job_sample.c - see job_sample.h. */
#include "health/job_sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/object/fields.h"

#define PROCESSES_MAX 100000

static json_t *encode_progress(const struct job_progress *p)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "ranks", (json_int_t)p->n_ranks, "step",
        (json_int_t)p->step, "steps", (json_int_t)p->n_steps, "commMilliseconds",
        (json_int_t)p->comm_ms);
}

json_t *job_sample_encode(const struct job_sample *s)
{
    const struct job_processes *p = &s->processes;
    json_t *peers = json_array();
    char text[IP_ADDR_TEXT_MAX];

    for (unsigned i = 0; i < s->n_peers; i++) {
        const struct job_flow *f = &s->peers[i].flow;

        fields_append(&peers,
            json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "address",
                ip_addr_format(&s->peers[i].address, text), "sentBytes", (json_int_t)f->sent,
                "receivedBytes", (json_int_t)f->received, "busyMilliseconds",
                (json_int_t)f->busy_ms, "windowMilliseconds", (json_int_t)f->window_ms, "segments",
                (json_int_t)f->segments, "repeatedSegments", (json_int_t)f->repeated, "queuedBytes",
                (json_int_t)f->queued, "unreadBytes", (json_int_t)f->unread));
    }
    return json_pack(
        "{s:s, s:s, s:I, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:o, s:o*, s:o*, s:o*, s:o*}",
        "run", s->run, "command", s->command, "milliseconds", (json_int_t)s->ms, "processes",
        "count", (json_int_t)p->n, "stopped", (json_int_t)p->n_stopped, "stoppedMilliseconds",
        (json_int_t)p->stopped_ms, "cpuThousandths", (json_int_t)p->cpu, "kernelThousandths",
        (json_int_t)p->kernel, "runningThousandths", (json_int_t)p->running, "waitingThousandths",
        (json_int_t)p->waiting, "peers", peers, "progress",
        s->progress.n_ranks > 0 ? encode_progress(&s->progress) : NULL, "nccl",
        nccl_faults_encode(&s->nccl), "ras", ras_ranks_encode(&s->ras), "flight",
        flight_places_encode(&s->flight));
}

static void decode_processes(struct job_processes *ret, const json_t *json, struct fields *all)
{
    struct fields f = fields_make(json, "processes", all->e);

    fields_int(&f, "count", FIELDS_REQUIRED, 0, PROCESSES_MAX, &ret->n);
    fields_int(&f, "stopped", FIELDS_REQUIRED, 0, PROCESSES_MAX, &ret->n_stopped);
    fields_int(&f, "stoppedMilliseconds", FIELDS_REQUIRED, 0, UINT32_MAX, &ret->stopped_ms);
    fields_int(&f, "cpuThousandths", FIELDS_REQUIRED, 0, JOB_SAMPLE_MOST, &ret->cpu);
    fields_int(&f, "kernelThousandths", FIELDS_REQUIRED, 0, JOB_SAMPLE_MOST, &ret->kernel);
    fields_int(&f, "runningThousandths", FIELDS_REQUIRED, 0, JOB_SAMPLE_WHOLE, &ret->running);
    fields_int(&f, "waitingThousandths", FIELDS_REQUIRED, 0, JOB_SAMPLE_WHOLE, &ret->waiting);
    all->failed = fields_end(&f);
}

static void decode_progress(
    struct job_progress *ret, const json_t *json, uint32_t ms, struct fields *all)
{
    struct fields f = fields_make(json, "progress", all->e);

    fields_int(&f, "ranks", FIELDS_REQUIRED, 1, PROCESSES_MAX, &ret->n_ranks);
    fields_u64(&f, "step", FIELDS_REQUIRED, 0, INT64_MAX, &ret->step);
    fields_int(&f, "steps", FIELDS_REQUIRED, 0, UINT32_MAX, &ret->n_steps);
    fields_int(&f, "commMilliseconds", FIELDS_REQUIRED, 0, JOB_SAMPLE_MS_MAX, &ret->comm_ms);
    if (ret->comm_ms > ms)
        fields_fail(
            &f, "%u ms in collectives are more than the %u ms of the sample", ret->comm_ms, ms);
    all->failed = fields_end(&f);
}

static void decode_peer(
    struct job_sample_peer *ret, const json_t *json, uint32_t ms, struct fields *all)
{
    struct fields f = fields_make(json, "an entry of \"peers\"", all->e);
    struct job_flow *flow = &ret->flow;
    const char *address = fields_string(&f, "address", FIELDS_REQUIRED, 1, IP_ADDR_TEXT_MAX);

    if (address && ip_addr_parse(&ret->address, address, NULL) != 0)
        fields_fail(&f, "\"address\" \"%.60s\" is no IP address", address);
    fields_u64(&f, "sentBytes", FIELDS_REQUIRED, 0, INT64_MAX, &flow->sent);
    fields_u64(&f, "receivedBytes", FIELDS_REQUIRED, 0, INT64_MAX, &flow->received);
    fields_int(&f, "busyMilliseconds", FIELDS_REQUIRED, 0, JOB_SAMPLE_MS_MAX, &flow->busy_ms);
    fields_int(&f, "windowMilliseconds", FIELDS_REQUIRED, 0, JOB_SAMPLE_MS_MAX, &flow->window_ms);
    fields_int(&f, "segments", FIELDS_REQUIRED, 0, UINT32_MAX, &flow->segments);
    fields_int(&f, "repeatedSegments", FIELDS_REQUIRED, 0, UINT32_MAX, &flow->repeated);
    fields_u64(&f, "queuedBytes", FIELDS_REQUIRED, 0, INT64_MAX, &flow->queued);
    fields_u64(&f, "unreadBytes", FIELDS_REQUIRED, 0, INT64_MAX, &flow->unread);
    if (flow->busy_ms > ms || flow->window_ms > flow->busy_ms)
        fields_fail(&f,
            "%u ms with a full window of %u ms that were busy of %u ms: each is at most the next",
            flow->window_ms, flow->busy_ms, ms);
    all->failed = fields_end(&f);
}

int job_sample_decode(struct job_sample *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "sample", e);
    struct job_sample *s = calloc(1, sizeof(*s));
    const json_t *processes;
    const json_t *progress;
    const json_t *peers;
    int r;

    if (!s)
        return err_set(e, -ENOMEM, "no memory for a job's sample");
    fields_text(&f, "run", FIELDS_REQUIRED, 1, sizeof(s->run), s->run);
    fields_text(&f, "command", FIELDS_OPTIONAL, 0, sizeof(s->command), s->command);
    fields_int(&f, "milliseconds", FIELDS_REQUIRED, 1, JOB_SAMPLE_MS_MAX, &s->ms);
    processes = fields_object(&f, "processes", FIELDS_REQUIRED);
    progress = fields_object(&f, "progress", FIELDS_OPTIONAL);
    peers = fields_array(&f, "peers", FIELDS_REQUIRED, 0, JOB_SAMPLE_PEERS_MAX);
    if (f.failed == 0)
        decode_processes(&s->processes, processes, &f);
    if (f.failed == 0 && progress)
        decode_progress(&s->progress, progress, s->ms, &f);
    nccl_faults_read(&s->nccl, &f, "nccl");
    ras_ranks_read(&s->ras, &f, "ras");
    flight_places_read(&s->flight, &f, "flight");
    for (size_t i = 0; f.failed == 0 && i < json_array_size(peers); i++)
        decode_peer(&s->peers[s->n_peers++], json_array_get(peers, i), s->ms, &f);
    r = fields_give(&f, ret, s, sizeof(*s));
    free(s);
    return r;
}
