/*
 * rdzv.c - jobs: which there are, where they are served, and when they begin anew and end.
 *
 * What is in a job is in rdzv_kv.c (TCPStore) and rdzv_etcd.c.
 */
#include "rdzv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "hub/rdzv_internal.h"
#include "sys/clock.h"

/* ---- finding and making --------------------------------------------------------------------- */

static struct rdzv_job *find(struct rdzv *rz, const char *network, const char *name)
{
    struct rdzv_job *job;

    /* There are at most RDZV_JOBS_MAX in a network, and nobody looks often. */
    list_foreach(job, &rz->jobs, link) {
        if (strcmp(job->name, name) == 0 && strcmp(job->network, network) == 0)
            return job;
    }
    return NULL;
}

struct rdzv_job *rdzv_find(struct rdzv *rz, const struct model_network *net, const char *name)
{
    return find(rz, net->pub.spec.meta.name, name);
}

/* Where a job of that name goes in the list, which is in their order. */
static struct list *behind(struct rdzv *rz, const char *name)
{
    struct rdzv_job *job;

    list_foreach(job, &rz->jobs, link) {
        if (strcmp(job->name, name) > 0)
            return &job->link;
    }
    return &rz->jobs;
}

static struct rdzv_job *job_new(struct rdzv *rz, const char *network, const char *name,
    const struct rdzv_job_record *record, nsec_t now)
{
    struct rdzv_job *job = calloc(1, sizeof(*job));

    if (!job)
        return NULL;
    job->rz = rz;
    job->record = *record;
    job->heard = now;
    (void)snprintf(job->network, sizeof(job->network), "%s", network);
    (void)snprintf(job->name, sizeof(job->name), "%s", name);
    list_add_tail(behind(rz, name), &job->link);
    return job;
}

static void job_free(struct rdzv_job *job)
{
    list_remove(&job->link);
    free(job);
}

static int save_job(struct rdzv_job *job)
{
    char key[RDZV_KEY_MAX];
    char *text = rdzv_job_encode(&job->record);

    return text ? rdzv_save_put(&job->rz->save, rdzv_key_of_job(key, job->network, job->name), text)
                : -ENOMEM;
}

static bool is_port_taken(struct rdzv *rz, const char *network, uint16_t port)
{
    struct rdzv_job *job;

    list_foreach(job, &rz->jobs, link) {
        if (job->record.port == port && strcmp(job->network, network) == 0)
            return true;
    }
    return false;
}

/* A free port; 0: there is none. The search begins where the name says, so that a job that was
 * forgotten most likely comes back where it was. */
static uint16_t choose_port(struct rdzv *rz, const char *network, const char *name)
{
    unsigned first = (unsigned)(hash_bytes(0, name, strlen(name)) % RDZV_JOBS_MAX);

    for (unsigned i = 0; i < RDZV_JOBS_MAX; i++) {
        uint16_t port = (uint16_t)(RDZV_PORT_FIRST + (first + i) % RDZV_JOBS_MAX);

        if (!is_port_taken(rz, network, port))
            return port;
    }
    return 0;
}

static int make(struct rdzv *rz, const char *network, const char *name, nsec_t now,
    struct rdzv_job **ret, struct err *e)
{
    bool is_default = strcmp(name, RDZV_DEFAULT) == 0;
    struct rdzv_job_record record = {
        .port = is_default ? RDZV_DEFAULT_C10D : choose_port(rz, network, name), .run = 1};

    if (record.port == 0)
        return err_set(e, RDZV_E_FULL,
            "network \"%s\" has %d jobs already; one is forgotten %d "
            "hours after its last member has gone",
            network, RDZV_JOBS_MAX, (int)(RDZV_IDLE / NSEC_PER_SEC / 3600));
    *ret = job_new(rz, network, name, &record, now);
    return *ret ? 0 : err_set(e, -ENOMEM, "no memory for job \"%s\"", name);
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* Is somebody there but @who, who may be nobody? */
static bool is_busy(const struct rdzv_job *job, const struct ip_addr *who, nsec_t now)
{
    return false;
}

static int begin_run(struct rdzv_job *job, nsec_t now)
{
    job->record.run++;
    job->ended = false;
    log_info(
        "job \"%s\" of network \"%s\": run %u begins", job->name, job->network, job->record.run);
    return save_job(job);
}

int rdzv_join(struct rdzv *rz, struct model_network *net, const char *name, nsec_t now,
    struct rdzv_job **ret, struct err *e)
{
    struct rdzv_job *job = rdzv_find(rz, net, name);
    int r = 0;

    if (!job) {
        r = make(rz, net->pub.spec.meta.name, name, now, &job, e);
        if (r == 0)
            r = save_job(job);
    } else if (job->ended || (now - job->heard > RDZV_QUIET && !is_busy(job, NULL, now))) {
        r = begin_run(job, now);
    }
    if (r == 0)
        r = rdzv_save_now(&rz->save, e);
    if (r != 0)
        return r;
    job->net = net;
    job->heard = now;
    *ret = job;
    return 0;
}

int rdzv_end(struct rdzv_job *job, const struct ip_addr *who, nsec_t now, struct err *e)
{
    if (is_busy(job, who, now))
        return err_set(e, RDZV_E_BUSY, "job \"%s\" has other members that are there", job->name);
    job->ended = true;
    return 0;
}

/* ---- life ----------------------------------------------------------------------------------- */

struct load {
    struct rdzv *rz; /* borrowed */
    nsec_t now;
    struct err *e; /* borrowed */
};

static int load_item(void *ctx, const struct store_item *item)
{
    struct load *load = ctx;
    struct rdzv_key k = rdzv_key_parse(item->key);
    struct rdzv_job_record record;
    int r;

    if (k.kind != RDZV_KEY_JOB)
        return 0;
    r = rdzv_job_decode(&record, item->value, load->e);
    if (r != 0)
        return err_prefix(load->e, "record \"%s\"", item->key);
    return job_new(load->rz, k.network, k.job, &record, load->now) ? 0 : -ENOMEM;
}

int rdzv_new(
    struct rdzv **ret, struct uv_loop_s *loop, struct model *model, uint64_t seed, struct err *e)
{
    struct rdzv *rz = calloc(1, sizeof(*rz));
    struct load load = {.rz = rz, .now = clock_now(), .e = e};
    int r;

    if (!rz)
        return err_set(e, -ENOMEM, "no memory for rendezvous");
    rz->loop = loop;
    rz->model = model;
    rz->seed = seed;
    list_init(&rz->jobs);
    rdzv_save_init(&rz->save, model, seed);
    r = store_list(model->store, RDZV_KEY_PREFIX, load_item, &load, NULL, e);
    if (r == 0)
        *ret = rz;
    else
        rdzv_free(rz);
    return r;
}

void rdzv_start(struct rdzv *rz)
{
    rz->started = true;
    rdzv_save_start(&rz->save, rz->loop);
}

void rdzv_stop(struct rdzv *rz)
{
    if (!rz->started)
        return;
    rz->started = false;
    rdzv_save_stop(&rz->save);
}

struct rdzv *rdzv_free(struct rdzv *rz)
{
    struct rdzv_job *job;
    struct rdzv_job *tmp;

    if (!rz)
        return NULL;
    list_foreach_safe(job, tmp, &rz->jobs, link)
        job_free(job);
    rdzv_save_deinit(&rz->save);
    free(rz);
    return NULL;
}

/* ---- networks ------------------------------------------------------------------------------- */

int rdzv_open(struct rdzv *rz, struct model_network *net, const char *interface, struct err *e)
{
    struct rdzv_job *job;

    int r = 0;

    if (!rdzv_find(rz, net, RDZV_DEFAULT))
        r = make(rz, net->pub.spec.meta.name, RDZV_DEFAULT, clock_now(), &job, e);
    if (r != 0)
        return r;
    list_foreach(job, &rz->jobs, link) {
        if (strcmp(job->network, net->pub.spec.meta.name) == 0)
            job->net = net;
    }
    return 0;
}

/* A job and all that is in it goes. */
static void forget(struct rdzv_job *job)
{
    char key[RDZV_KEY_MAX];

    (void)rdzv_save_put(&job->rz->save, rdzv_key_of_job(key, job->network, job->name), NULL);
    job_free(job);
}

void rdzv_close(struct rdzv *rz, struct model_network *net, bool is_removed)
{
    struct rdzv_job *job;
    struct rdzv_job *tmp;

    list_foreach_safe(job, tmp, &rz->jobs, link) {
        if (strcmp(job->network, net->pub.spec.meta.name) != 0)
            continue;
        job->net = NULL;
        if (is_removed)
            forget(job);
    }
}

void rdzv_tick(struct rdzv *rz, nsec_t now)
{
    struct rdzv_job *job;
    struct rdzv_job *tmp;

    list_foreach_safe(job, tmp, &rz->jobs, link) {
        if (now - job->heard > RDZV_IDLE && !is_busy(job, NULL, now) &&
            strcmp(job->name, RDZV_DEFAULT) != 0)
            forget(job);
    }
}

/* ---- as others see it ----------------------------------------------------------------------- */

json_t *rdzv_job_json(const struct rdzv_job *job, nsec_t now)
{
    uint16_t port = job->record.port;
    uint16_t etcd = strcmp(job->name, RDZV_DEFAULT) == 0 ? RDZV_DEFAULT_ETCD : port;
    char run[NAME_MAX_LEN + 16];
    char address[IP_ADDR_TEXT_MAX];
    char address6[IP_ADDR_TEXT_MAX];
    char c10d_at[IP_ADDR_TEXT_MAX + 8];
    char etcd_at[IP_ADDR_TEXT_MAX + 8];

    ip_addr_format(&job->net->pub.address4, address);
    ip_addr_format(&job->net->pub.address6, address6);
    (void)snprintf(run, sizeof(run), "%s.%u", job->name, job->record.run);
    (void)snprintf(c10d_at, sizeof(c10d_at), "%s:%u", address, port);
    (void)snprintf(etcd_at, sizeof(etcd_at), "%s:%u", address, etcd);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:s, s:i}, s:{s:s, s:i}, s:I}", "job", job->name,
        "network", job->network, "run", run, "address4", address, "address6", address6, "c10d",
        "endpoint", c10d_at, "port", port, "etcdV2", "endpoint", etcd_at, "port", etcd,
        "idleSeconds", (json_int_t)(RDZV_IDLE / NSEC_PER_SEC));
}

json_t *rdzv_list_json(struct rdzv *rz, const struct model_network *net, nsec_t now)
{
    json_t *list = json_array();
    struct rdzv_job *job;

    list_foreach(job, &rz->jobs, link) {
        if (job->net == net)
            json_array_append_new(list, rdzv_job_json(job, now));
    }
    return list;
}

void rdzv_metrics(const struct rdzv *rz, struct hub_metrics *m)
{
    struct rdzv_job *job;
    size_t n = 0;

    list_foreach(job, &rz->jobs, link)
        n++;
    hub_metric(
        m, HUB_METRIC_GAUGE, "weft_rendezvous_jobs", "jobs with a rendezvous", "", (double)n);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_commits_total",
        "commits of changes in rendezvous", "", (double)rz->save.n_commits);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_commits_failed_total",
        "of them, those that the disk refused", "", (double)rz->save.n_failed);
}
