/*
 * rdzv.c - networks, and which jobs they have; the functions of rdzv.h.
 *
 * One job's life is in rdzv_job.c, how it is reached in rdzv_listen.c, how it comes back after a
 * restart in rdzv_load.c.
 */
#include "rdzv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/rdzv_internal.h"
#include "sys/clock.h"

/* ---- networks ------------------------------------------------------------------------------- */

static struct rdzv_network *find_network(struct rdzv *rz, const char *name)
{
    struct rdzv_network *n;

    list_foreach(n, &rz->networks, link) {
        if (strcmp(n->name, name) == 0)
            return n;
    }
    return NULL;
}

static struct rdzv_network *acquire_network(struct rdzv *rz, const char *name)
{
    struct rdzv_network *n = find_network(rz, name);

    if (n)
        return n;
    n = calloc(1, sizeof(*n));
    if (!n)
        return NULL;
    n->rz = rz;
    n->quota = (struct rdzv_quota){.bytes_max = RDZV_NETWORK_BYTES_MAX, .entries_max = SIZE_MAX};
    (void)snprintf(n->name, sizeof(n->name), "%s", name);
    list_init(&n->jobs);
    list_add_tail(&rz->networks, &n->link);
    return n;
}

/* ---- jobs ----------------------------------------------------------------------------------- */

/* A network has at most RDZV_JOBS_MAX, and nobody looks often. */
static struct rdzv_job *find_job(struct rdzv_network *n, const char *name)
{
    struct rdzv_job *job;

    list_foreach(job, &n->jobs, link) {
        if (strcmp(job->name, name) == 0)
            return job;
    }
    return NULL;
}

struct rdzv_job *rdzv__find_job(struct rdzv *rz, const char *network, const char *name)
{
    struct rdzv_network *n = find_network(rz, network);

    return n ? find_job(n, name) : NULL;
}

struct rdzv_job *rdzv_find(struct rdzv *rz, const struct model_network *net, const char *name)
{
    return rdzv__find_job(rz, net->pub.spec.meta.name, name);
}

int rdzv__add_job(struct rdzv *rz, const char *network, const char *name,
    const struct rdzv_job_record *record, nsec_t now)
{
    struct rdzv_network *n = acquire_network(rz, network);

    return n && rdzv__job_new(n, name, record, now) ? 0 : -ENOMEM;
}

/* ---- members come, and time passes ---------------------------------------------------------- */

int rdzv_join(struct rdzv *rz, struct model_network *net, const char *name, nsec_t now,
    struct rdzv_job **ret, struct err *e)
{
    struct rdzv_network *n = acquire_network(rz, net->pub.spec.meta.name);
    struct rdzv_job *job = n ? find_job(n, name) : NULL;
    int r = n ? 0 : err_set(e, -ENOMEM, "no memory for job \"%s\"", name);

    if (r == 0 && !job)
        r = rdzv__job_make(n, name, now, &job, e);
    else if (r == 0)
        r = rdzv__job_enter(job, now, e);
    if (r == 0)
        r = rdzv_save_now(&rz->save, e);
    if (r != 0)
        return r;
    job->heard = now;
    *ret = job;
    return 0;
}

void rdzv_tick(struct rdzv *rz, nsec_t now)
{
    struct rdzv_network *n;
    struct rdzv_job *job;
    struct rdzv_job *tmp;

    list_foreach(n, &rz->networks, link) {
        list_foreach_safe(job, tmp, &n->jobs, link)
            rdzv__job_tick(job, now);
    }
    rdzv_http_tick(&rz->http, now);
}

/* ---- times to live -------------------------------------------------------------------------- */

static void on_ttl(uv_timer_t *timer)
{
    struct rdzv *rz = timer->data;
    struct rdzv_when when = {.now = clock_now(), .wall = clock_wall()};
    struct rdzv_network *n;
    struct rdzv_job *job;

    list_foreach(n, &rz->networks, link) {
        list_foreach(job, &n->jobs, link) {
            rdzv_tree_expire(&job->tree, when);
            rdzv__arm_ttl(job);
        }
    }
}

void rdzv__arm_ttl(struct rdzv_job *job)
{
    uv_timer_t *timer = &job->rz->ttl;
    nsec_t left = rdzv_tree_due(&job->tree);
    uint64_t ms;

    if (left == NSEC_NEVER || !job->rz->started)
        return;
    left -= clock_now();
    ms = left > 0 ? (uint64_t)(left / NSEC_PER_MSEC) + 1 : 0;
    if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > ms)
        (void)uv_timer_start(timer, on_ttl, ms, 0);
}

/* What has changed in TCPStores since the last commit goes with the next. */
static void gather(void *ctx)
{
    struct rdzv *rz = ctx;
    struct rdzv_network *n;
    struct rdzv_job *job;

    list_foreach(n, &rz->networks, link) {
        list_foreach(job, &n->jobs, link)
            (void)rdzv_kv_flush(&job->kv, SIZE_MAX);
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

int rdzv_new(struct rdzv **ret, struct uv_loop_s *loop, struct model *model, uint64_t seed,
    uint64_t epoch, struct err *e)
{
    struct rdzv *rz = calloc(1, sizeof(*rz));
    int r;

    if (!rz)
        return err_set(e, -ENOMEM, "no memory for rendezvous");
    rz->loop = loop;
    rz->model = model;
    rz->seed = seed;
    rz->epoch = epoch;
    list_init(&rz->networks);
    rdzv_save_init(&rz->save, model, seed);
    rz->save.gather = gather;
    rz->save.gather_ctx = rz;
    r = rdzv__load(rz, e);
    if (r == 0)
        *ret = rz;
    else
        rdzv_free(rz);
    return r;
}

static void forget_jobs(struct rdzv_network *n)
{
    struct rdzv_job *job;
    struct rdzv_job *tmp;

    list_foreach_safe(job, tmp, &n->jobs, link)
        rdzv__job_forget(job);
}

/* Jobs of networks that are gone: the hub ended after one was removed, and before its jobs were.
 * The next network of that name would have them. */
static void forget_orphans(struct rdzv *rz)
{
    struct rdzv_network *n;

    list_foreach(n, &rz->networks, link) {
        if (!model_find_network(rz->model, n->name))
            forget_jobs(n);
    }
}

int rdzv_start(struct rdzv *rz, struct err *e)
{
    int r = rdzv_http_start(&rz->http, rz->loop, e);

    if (r != 0)
        return r;
    rz->started = true;
    rdzv_save_start(&rz->save, rz->loop);
    (void)uv_timer_init(rz->loop, &rz->ttl);
    rz->ttl.data = rz;
    rdzv__store_start(rz);
    forget_orphans(rz);
    return 0;
}

void rdzv_stop(struct rdzv *rz)
{
    if (!rz->started)
        return;
    rz->started = false;
    rdzv_save_stop(&rz->save);
    rdzv_http_stop(&rz->http);
    rdzv__store_stop(rz);
    uv_close((uv_handle_t *)&rz->ttl, NULL);
}

struct rdzv *rdzv_free(struct rdzv *rz)
{
    struct rdzv_network *n;
    struct rdzv_network *tmp;

    if (!rz)
        return NULL;
    list_foreach_safe(n, tmp, &rz->networks, link) {
        struct rdzv_job *job;
        struct rdzv_job *next;

        list_foreach_safe(job, next, &n->jobs, link)
            rdzv__job_free(job);
        list_remove(&n->link);
        free(n);
    }
    rdzv_save_deinit(&rz->save);
    free(rz);
    return NULL;
}

int rdzv_open(struct rdzv *rz, struct model_network *net, const char *interface, struct err *e)
{
    struct rdzv_network *n = acquire_network(rz, net->pub.spec.meta.name);
    struct rdzv_job *job;

    if (!n)
        return err_set(e, -ENOMEM, "no memory for rendezvous");
    /* One of that name that was removed and is not yet taken down. */
    if (n->net && n->net != net)
        rdzv_close(rz, n->net, true);
    n->net = net;
    (void)snprintf(n->interface, sizeof(n->interface), "%s", interface);
    admission_init(&n->admission, RDZV__CONNECTIONS_MAX, RDZV__CONNECTIONS_MAX_BY_MEMBER, rz->seed);
    list_foreach(job, &n->jobs, link) {
        rdzv__listen(job);
        rdzv__arm_ttl(job);
    }
    return find_job(n, RDZV_DEFAULT) ? 0 : rdzv__job_make(n, RDZV_DEFAULT, clock_now(), &job, e);
}

void rdzv_close(struct rdzv *rz, struct model_network *net, bool is_removed)
{
    struct rdzv_network *n = find_network(rz, net->pub.spec.meta.name);
    struct rdzv_job *job;

    /* Another one of that name is served, and has the jobs. */
    if (!n || (n->net && n->net != net))
        return;
    list_foreach(job, &n->jobs, link)
        rdzv__unlisten(job);
    if (is_removed)
        forget_jobs(n);
    admission_deinit(&n->admission);
    n->net = NULL;
}

void rdzv_end_member(
    struct rdzv *rz, const struct model_network *net, const struct ip_addr *address)
{
    struct rdzv_network *n = find_network(rz, net->pub.spec.meta.name);
    struct rdzv_job *job;
    struct rdzv_conn *c;
    struct rdzv_conn *tmp;

    if (!n || n->net != net)
        return;
    list_foreach(job, &n->jobs, link) {
        list_foreach_safe(c, tmp, &job->conns, link) {
            if (ip_addr_equal(&c->from, address))
                rdzv__hang_up(c);
        }
    }
}

/* ---- as others see it ----------------------------------------------------------------------- */

json_t *rdzv_list_json(struct rdzv *rz, const struct model_network *net)
{
    struct rdzv_network *n = find_network(rz, net->pub.spec.meta.name);
    json_t *list = json_array();
    struct rdzv_job *job;

    if (!n)
        return list;
    list_foreach(job, &n->jobs, link)
        json_array_append_new(list, rdzv_job_json(job));
    return list;
}

void rdzv_metrics(const struct rdzv *rz, struct hub_metrics *m)
{
    struct rdzv_network *n;
    size_t connections = 0;
    size_t jobs = 0;
    size_t unsaved = rz->save.by_key.n;

    list_foreach(n, &rz->networks, link) {
        struct rdzv_job *job;

        connections += n->admission.n;
        list_foreach(job, &n->jobs, link) {
            jobs++;
            unsaved += job->kv.n_unsaved;
        }
    }
    hub_metric(m, HUB_METRIC_GAUGE, "weft_rendezvous_jobs", "jobs, the default ones included", "",
        (double)jobs);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_rendezvous_connections", "connections to jobs", "",
        (double)connections);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_store_requests_total",
        "requests of TCPStore", "", (double)rz->n_requests);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_etcd_requests_total", "requests of etcd", "",
        (double)rz->http.n_requests);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_hung_up_total",
        "connections that were ended or refused", "", (double)rz->n_hung_up);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_rendezvous_unsaved", "changes not on the disk yet", "",
        (double)unsaved);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_commits_total", "commits of changes in jobs",
        "", (double)rz->save.n_commits);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_commits_failed_total",
        "of them, those that the disk refused", "", (double)rz->save.n_failed);
}
