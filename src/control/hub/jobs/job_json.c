/* job_json.c - see job_json.h. */
#include "job_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "hub/jobs/job.h"
#include "hub/jobs/job_network.h"
#include "hub/jobs/jobs.h"

json_t *job_json(const struct job *job, uint64_t epoch_number)
{
    const struct job_network *n = job->network;
    const struct job_facts *facts = &job->facts;
    uint16_t port = job->record.port;
    uint16_t etcd = job_is_default(job) ? JOBS_DEFAULT_ETCD : port;
    char run[NAME_MAX_LEN + 16];
    char address[IP_ADDR_TEXT_MAX];
    char address6[IP_ADDR_TEXT_MAX];
    char c10d_at[IP_ADDR_TEXT_MAX + 8];
    char etcd_at[IP_ADDR_TEXT_MAX + 8];
    char epoch[2 * sizeof(uint64_t) + 1];

    ip_addr_format(&n->address4, address);
    ip_addr_format(&n->address6, address6);
    (void)snprintf(run, sizeof(run), "%s.%u", job->name, job->record.run);
    (void)snprintf(c10d_at, sizeof(c10d_at), "%s:%u", address, port);
    (void)snprintf(etcd_at, sizeof(etcd_at), "%s:%u", address, etcd);
    (void)snprintf(epoch, sizeof(epoch), "%016" PRIx64, epoch_number);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:i}, s:{s:s, s:i}, s:I, s:I, s:I, s:I, s:s*}",
        "job", job->name, "network", n->name, "run", run, "epoch", epoch, "address4", address,
        "address6", address6, "c10d", "endpoint", c10d_at, "port", port, "etcdV2", "endpoint",
        etcd_at, "port", etcd, "idleSeconds", (json_int_t)(JOBS_IDLE / NSEC_PER_SEC), "keys",
        (json_int_t)facts->n_keys, "bytes", (json_int_t)facts->n_bytes, "limitHits",
        (json_int_t)facts->n_refused, "lastLimit", facts->last_limit[0] ? facts->last_limit : NULL);
}
