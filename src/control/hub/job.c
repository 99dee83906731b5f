/*
 * job.c - one job: made, begun anew, ended, forgotten; its ports; and as others see it.
 *
 * Which jobs a network has is jobs.c's. What is in a job only the network's rendezvous process
 * knows; here is what of it is in the store (blob_index.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/fd_cleanup.h"
#include "base/err.h"
#include "os/log.h"
#include "hub/jobs_internal.h"
#include "net/tcp_listener.h"

#define BACKLOG 1024

/* Tries to open a port before it is said that it cannot be; one each second. */
#define TRIES_MAX 3

static struct rdzv_wire message(enum rdzv_wire_type type, const struct job *job)
{
    return (struct rdzv_wire){.type = type, .job = job->number, .run = job->record.run};
}

/* ---- life ----------------------------------------------------------------------------------- */

/* Where a job of that name goes in the list, which is in the order of names. */
static struct list *behind(struct jobs_network *n, const char *name)
{
    struct job *job;

    list_foreach(job, &n->list, link) {
        if (strcmp(job->name, name) > 0)
            return &job->link;
    }
    return &n->list;
}

struct job *jobs__new(
    struct jobs_network *n, const char *name, const struct rdzv_job_record *record, nsec_t now)
{
    struct job *job = calloc(1, sizeof(*job));

    if (!job)
        return NULL;
    job->network = n;
    job->number = ++n->jobs->next_number;
    job->record = *record;
    job->heard = now;
    (void)snprintf(job->name, sizeof(job->name), "%s", name);
    htab_init(&job->items, n->jobs->seed);
    for (unsigned i = 0; i < JOBS__LISTENERS_MAX; i++)
        job->listeners[i] = -1;
    list_add_tail(behind(n, name), &job->link);
    return job;
}

void jobs__free(struct job *job)
{
    jobs__unlisten(job);
    jobs__forget_items(job);
    list_remove(&job->link);
    free(job);
}

void jobs__forget(struct job *job)
{
    struct jobs_network *n = job->network;
    struct rdzv_wire m = message(RDZV_WIRE_FORGET, job);

    jobs__unlisten(job);
    jobs__host_say(n, &m);
    if (job->saving)
        jobs__save_in_vain(job);
    job->is_told = false;
    if (n->partial.job == job)
        jobs__forget_partial(n);
    jobs__end_runs(job);
}

static bool is_port_taken(struct jobs_network *n, uint16_t port)
{
    struct job *job;

    list_foreach(job, &n->list, link) {
        if (job->record.port == port && !job->is_forgotten)
            return true;
    }
    return false;
}

/* A free port; 0: there is none. The search begins where the name says, so that a job that was
 * forgotten most likely comes back where it was. */
static uint16_t choose_port(struct jobs_network *n, const char *name)
{
    unsigned first = (unsigned)(hash_bytes(0, name, strlen(name)) % JOBS_JOBS_MAX);

    if (strcmp(name, JOBS_DEFAULT) == 0)
        return JOBS_DEFAULT_C10D;
    for (unsigned i = 0; i < JOBS_JOBS_MAX; i++) {
        uint16_t port = (uint16_t)(JOBS_PORT_FIRST + (first + i) % JOBS_JOBS_MAX);

        if (!is_port_taken(n, port))
            return port;
    }
    return 0;
}

int jobs__make(
    struct jobs_network *n, const char *name, nsec_t now, struct job **ret, struct err *e)
{
    struct rdzv_job_record record = {.port = choose_port(n, name), .run = 1, .has_heads = true};
    struct job *job = jobs__find(n, name);
    int r;

    if (record.port == 0)
        return err_set(e, JOBS_E_FULL,
            "network \"%s\" has %d jobs already; one is forgotten %d hours after its last member "
            "has gone",
            n->name, JOBS_JOBS_MAX, (int)(JOBS_IDLE / NSEC_PER_SEC / 3600));
    *ret = job;
    if (job) {
        /* It was forgotten, and something of it is left: it goes on with its runs. */
        record.run = job->record.run + 1;
        return jobs__save(job, JOBS_SAVE_REVIVED, &record, now, e);
    }
    *ret = job = jobs__new(n, name, &record, now);
    if (!job)
        return err_set(e, -ENOMEM, "no memory for job \"%s\"", name);
    job->is_unsaved = true;
    r = jobs__save(job, JOBS_SAVE_NEW, &record, now, e);
    if (r != 0)
        jobs__free(job);
    return r;
}

void jobs__is_made(struct job *job)
{
    job->is_unsaved = false;
    if (job->network->net)
        jobs__listen(job);
}

void jobs__is_revived(struct job *job, const struct rdzv_job_record *record, nsec_t now)
{
    jobs__begin_run(job, record->run);
    job->record = *record;
    job->number = ++job->network->jobs->next_number;
    job->is_loaded = false;
    job->loaded = 0;
    job->handed = 0;
    job->heard = now;
    job->n_connections = 0;
    job->n_members = 0;
    job->n_keys = 0;
    job->n_bytes = 0;
    jobs__is_made(job);
}

/* ---- ports ---------------------------------------------------------------------------------- */

static int open_one(int *ret, struct job *job, const struct endpoint *at, struct err *e)
{
    _cleanup_(closep) int fd = -1;
    int r = tcp_listener_open(&fd, at, job->network->interface, false, e);

    if (r != 0)
        return r;
    if (listen(fd, BACKLOG) < 0)
        return err_set(e, -errno, "a port cannot be served: %s", strerror(errno));
    *ret = TAKE_FD(fd);
    return 0;
}

void jobs__listen(struct job *job)
{
    const struct hub_network *net = &job->network->net->pub;
    bool is_default = strcmp(job->name, JOBS_DEFAULT) == 0;
    struct endpoint at[JOBS__LISTENERS_MAX] = {
        {.addr = net->address4, .port = job->record.port},
        {.addr = net->address6, .port = job->record.port},
        {.addr = net->address4, .port = JOBS_DEFAULT_ETCD},
        {.addr = net->address6, .port = JOBS_DEFAULT_ETCD},
    };
    struct err e = ERR_NULL;
    bool failed = false;

    for (unsigned i = 0; i < (is_default ? 4 : 2); i++)
        if (job->listeners[i] < 0 && open_one(&job->listeners[i], job, &at[i], &e) != 0)
            failed = true;
    job->n_tries = failed ? job->n_tries + 1 : 0;
    /* A process that served it and is ending may still have the port for a moment. */
    if (job->n_tries == TRIES_MAX)
        log_warning("job \"%s\" of network \"%s\" is not served at one of its addresses: %s",
            job->name, job->network->name, err_text(&e));
    jobs__host_feed(job->network);
}

void jobs__unlisten(struct job *job)
{
    /* Closed at once: another network may want the address in this very turn. */
    for (unsigned i = 0; i < JOBS__LISTENERS_MAX; i++) {
        closep(&job->listeners[i]);
        job->listeners[i] = -1;
    }
    job->handed = 0;
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* Is somebody connected but @who, who may be nobody? */
static bool is_busy(const struct job *job, const struct ip_addr *who)
{
    return job->n_members > 1 ||
           (job->n_members == 1 && (!who || !ip_addr_equal(&job->member, who)));
}

static int begin_run(struct job *job, nsec_t now, struct err *e)
{
    struct rdzv_job_record next = job->record;

    next.run++;
    next.ended = false;
    next.has_heads = true;
    return jobs__save(job, JOBS_SAVE_RUN, &next, now, e);
}

void jobs__has_begun(struct job *job, const struct rdzv_job_record *record)
{
    struct rdzv_wire m;

    if (job->network->partial.job == job)
        jobs__forget_partial(job->network);
    jobs__begin_run(job, record->run);
    job->n_members = 0;
    job->n_connections = 0;
    job->n_keys = 0;
    job->n_bytes = 0;
    m = message(RDZV_WIRE_CLEAR, job);
    jobs__host_say(job->network, &m);
    log_info("job \"%s\" of network \"%s\": run %u begins", job->name, job->network->name,
        job->record.run);
}

static bool is_over(const struct job *job, nsec_t now)
{
    return job->record.ended || (now - job->heard > JOBS_QUIET && !is_busy(job, NULL));
}

int jobs__enter(struct job *job, nsec_t now, struct err *e)
{
    if (!is_over(job, now))
        return 0;
    if (!jobs__keeps_pace(job->network, now))
        return err_set(e, JOBS_E_PACE, "jobs of network \"%s\" begin and end too often: try again",
            job->network->name);
    return begin_run(job, now, e);
}

int jobs__leave(struct job *job, const struct ip_addr *who, nsec_t now, struct err *e)
{
    struct rdzv_job_record over = job->record;

    if (is_busy(job, who))
        return err_set(
            e, JOBS_E_BUSY, "other members of job \"%s\" are still connected", job->name);
    if (job->record.ended)
        return 0;
    if (!jobs__keeps_pace(job->network, now))
        return err_set(e, JOBS_E_PACE, "jobs of network \"%s\" begin and end too often: try again",
            job->network->name);
    over.ended = true;
    return jobs__save(job, JOBS_SAVE_END, &over, now, e);
}

void jobs__job_tick(struct job *job, nsec_t now)
{
    struct err e = ERR_NULL;

    if (job->is_forgotten || job->saving)
        return;
    if (job->n_tries > 0 && job->network->net)
        jobs__listen(job);
    if (now - job->heard <= JOBS_IDLE || is_busy(job, NULL))
        return;
    if (strcmp(job->name, JOBS_DEFAULT) != 0) {
        jobs__forget(job);
    } else if (job->n_keys > 0 && begin_run(job, now, &e) != 0) {
        log_limited(&job->network->jobs->limit, now, LOG_LEVEL_WARNING,
            "job \"%s\" of network \"%s\" stays as it is: %s", job->name, job->network->name,
            err_text(&e));
    }
}

/* ---- as others see it ----------------------------------------------------------------------- */

json_t *job_json(const struct job *job)
{
    const struct hub_network *net = &job->network->net->pub;
    uint16_t port = job->record.port;
    uint16_t etcd = strcmp(job->name, JOBS_DEFAULT) == 0 ? JOBS_DEFAULT_ETCD : port;
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
    (void)snprintf(epoch, sizeof(epoch), "%016" PRIx64, job->network->jobs->epoch);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:i}, s:{s:s, s:i}, s:I, s:I, s:I, s:I, s:s*}",
        "job", job->name, "network", job->network->name, "run", run, "epoch", epoch, "address4",
        address, "address6", address6, "c10d", "endpoint", c10d_at, "port", port, "etcdV2",
        "endpoint", etcd_at, "port", etcd, "idleSeconds", (json_int_t)(JOBS_IDLE / NSEC_PER_SEC),
        "keys", (json_int_t)job->n_keys, "bytes", (json_int_t)job->n_bytes, "limitHits",
        (json_int_t)job->n_refused, "lastLimit", job->last_limit[0] ? job->last_limit : NULL);
}
