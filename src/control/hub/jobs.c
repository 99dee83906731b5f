/*
 * jobs.c - networks, and which jobs they have; the functions of jobs.h.
 *
 * One job's life is in job.c, the processes that serve them in job_host.c.
 */
#include "jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "hub/hub.h"
#include "hub/jobs_internal.h"
#include "store/store.h"
#include "os/clock.h"

/* Runs of a network that may begin and end at once, and then one each so often: each is a commit
 * of its own on the hub's loop. */
#define PACE_BURST 21
#define PACE_EACH  (100 * NSEC_PER_MSEC)

/* Records of all kinds that are set aside, beyond which those of jobs are not listed. */
#define DAMAGED_MAX 1000

/* ---- networks ------------------------------------------------------------------------------- */

static struct jobs_network *find_network(struct jobs *jobs, const char *name)
{
    struct jobs_network *n;

    list_foreach(n, &jobs->networks, link) {
        if (strcmp(n->name, name) == 0)
            return n;
    }
    return NULL;
}

struct jobs_network *jobs__network(struct jobs *jobs, const char *name)
{
    struct jobs_network *n = find_network(jobs, name);

    if (n)
        return n;
    n = calloc(1, sizeof(*n));
    if (!n)
        return NULL;
    n->jobs = jobs;
    n->start_at = NSEC_NEVER;
    (void)snprintf(n->name, sizeof(n->name), "%s", name);
    list_init(&n->list);
    jobs__commit_init(&n->commit, jobs->seed);
    list_add_tail(&jobs->networks, &n->link);
    return n;
}

static struct jobs_network *find_served(struct jobs *jobs, const struct model_network *net)
{
    struct jobs_network *n = find_network(jobs, net->pub.spec.meta.name);

    return n && n->net == net ? n : NULL;
}

bool jobs__keeps_pace(struct jobs_network *n, nsec_t now)
{
    return rate_take(&n->pace, now, PACE_EACH, PACE_BURST);
}

void jobs__set_aside(struct jobs *jobs, const char *key, const char *why)
{
    struct err e;

    /* The list is shown to people, and a process may say so of all that it is told. */
    if (jobs->model->damaged.records.n >= DAMAGED_MAX)
        return;
    (void)err_set(&e, -EUCLEAN, "%s", why);
    model_set_aside(jobs->model, key, 0, &e);
}

/* ---- jobs ----------------------------------------------------------------------------------- */

/* A network has at most JOBS_JOBS_MAX, and nobody looks often. */
struct job *jobs__find(struct jobs_network *n, const char *name)
{
    struct job *job;

    list_foreach(job, &n->list, link) {
        if (strcmp(job->name, name) == 0)
            return job;
    }
    return NULL;
}

struct job *jobs__find_number(struct jobs_network *n, uint32_t number)
{
    struct job *job;

    list_foreach(job, &n->list, link) {
        if (job->number == number && !job->is_forgotten)
            return job;
    }
    return NULL;
}

struct job *jobs_find(struct jobs *jobs, const struct model_network *net, const char *name)
{
    struct jobs_network *n = find_network(jobs, net->pub.spec.meta.name);
    struct job *job = n ? jobs__find(n, name) : NULL;

    return job && !job->is_forgotten && !job->is_unsaved ? job : NULL;
}

/* @job: may be NULL. JOBS_E_LATER, and @done will be called, or 0 when it is not being saved. */
static int wait_for(struct job *job, jobs_done_fn done, void *ctx, struct err *e)
{
    if (!job || !job->saving)
        return 0;
    return jobs__wait(job, done, ctx) == 0
               ? JOBS_E_LATER
               : err_set(e, -ENOMEM, "no memory for job \"%s\"", job->name);
}

int jobs_join(struct jobs *jobs, struct model_network *net, const char *name, nsec_t now,
    jobs_done_fn done, void *ctx, struct job **ret, struct err *e)
{
    struct jobs_network *n = find_served(jobs, net);
    struct job *job = n ? jobs__find(n, name) : NULL;
    int r;

    if (!n)
        return err_set(e, -ENOENT, "the network's rendezvous is not served");
    r = wait_for(job, done, ctx, e);
    if (r != 0)
        return r;
    if (job && !job->is_forgotten)
        r = jobs__enter(job, now, e);
    else if (jobs__keeps_pace(n, now))
        r = jobs__make(n, name, now, &job, e);
    else
        r = err_set(
            e, JOBS_E_PACE, "jobs of network \"%s\" are made too often: try again", n->name);
    if (r == 0)
        r = wait_for(job, done, ctx, e);
    if (r != 0)
        return r;
    job->heard = now;
    *ret = job;
    return 0;
}

int jobs_end(struct job *job, const struct ip_addr *who, nsec_t now, jobs_done_fn done, void *ctx,
    struct err *e)
{
    int r = wait_for(job, done, ctx, e);

    if (r == 0)
        r = jobs__leave(job, who, now, e);
    return r == 0 ? wait_for(job, done, ctx, e) : r;
}

/* The job that is always there; when it cannot be saved, it is tried again by the clock. */
static void make_default(struct jobs_network *n, nsec_t now)
{
    struct err e = ERR_NULL;
    struct job *job = jobs__find(n, JOBS_DEFAULT);

    if (!n->net || (job && (job->saving || !job->is_forgotten)))
        return;
    if (jobs__make(n, JOBS_DEFAULT, now, &job, &e) != 0)
        log_limited(&n->jobs->limit, now, LOG_LEVEL_WARNING,
            "job \"%s\" of network \"%s\" is not served: %s", JOBS_DEFAULT, n->name, err_text(&e));
}

void jobs_tick(struct jobs *jobs, nsec_t now)
{
    struct jobs_network *n;
    struct job *job;
    struct job *tmp;

    list_foreach(n, &jobs->networks, link) {
        make_default(n, now);
        list_foreach_safe(job, tmp, &n->list, link)
            jobs__job_tick(job, now);
        jobs__sweep(n);
        jobs__host_tick(n, now);
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

int jobs_new(struct jobs **ret, struct uv_loop_s *loop, struct model *model, uint64_t seed,
    uint64_t epoch, struct err *e)
{
    struct jobs *jobs = calloc(1, sizeof(*jobs));
    int r;

    if (!jobs)
        return err_set(e, -ENOMEM, "no memory for rendezvous");
    jobs->loop = loop;
    jobs->model = model;
    jobs->seed = seed;
    jobs->epoch = epoch;
    jobs->batch = 64;
    list_init(&jobs->networks);
    r = jobs__load(jobs, e);
    if (r == 0)
        *ret = jobs;
    else
        jobs_free(jobs);
    return r;
}

static void forget_jobs(struct jobs_network *n)
{
    struct job *job;
    struct job *tmp;

    list_foreach_safe(job, tmp, &n->list, link) {
        if (!job->is_forgotten)
            jobs__forget(job);
    }
    jobs__sweep(n);
}

/* Jobs of networks that are gone: the hub ended after one was removed, and before its jobs were.
 * The next network of that name would have them. */
static void forget_orphans(struct jobs *jobs)
{
    struct jobs_network *n;

    list_foreach(n, &jobs->networks, link) {
        if (!model_find_network(jobs->model, n->name))
            forget_jobs(n);
    }
}

int jobs_start(struct jobs *jobs, struct err *e)
{
    jobs->started = true;
    (void)uv_timer_init(jobs->loop, &jobs->timer);
    forget_orphans(jobs);
    jobs__arm(jobs);
    return 0;
}

void jobs_stop(struct jobs *jobs)
{
    nsec_t deadline = clock_now() + JOBS_END_MAX;
    struct jobs_network *n;

    if (!jobs->started)
        return;
    list_foreach(n, &jobs->networks, link)
        jobs__host_say(n, &(struct rdzv_wire){.type = RDZV_WIRE_END});
    list_foreach(n, &jobs->networks, link) {
        struct err e = ERR_NULL;

        jobs__host_end(n, deadline);
        if (jobs__commit_all(n, &e) != 0)
            log_warning("rendezvous of network \"%s\": the last changes are lost: %s", n->name,
                err_text(&e));
    }
    store_wait(jobs->model->store);
    jobs->started = false;
    uv_close((uv_handle_t *)&jobs->timer, NULL);
}

struct jobs *jobs_free(struct jobs *jobs)
{
    struct jobs_network *n;
    struct jobs_network *tmp;

    if (!jobs)
        return NULL;
    list_foreach_safe(n, tmp, &jobs->networks, link) {
        struct job *job;
        struct job *next;

        list_foreach_safe(job, next, &n->list, link)
            jobs__free(job);
        jobs__commit_deinit(&n->commit);
        list_remove(&n->link);
        free(n);
    }
    free(jobs);
    return NULL;
}

int jobs_open(struct jobs *jobs, struct model_network *net, const char *interface, struct err *e)
{
    struct jobs_network *n = jobs__network(jobs, net->pub.spec.meta.name);
    struct job *job;

    if (!n)
        return err_set(e, -ENOMEM, "no memory for rendezvous");
    /* One of that name that was removed and is not yet taken down. */
    if (n->net && n->net != net)
        jobs_close(jobs, n->net, true);
    n->net = net;
    (void)snprintf(n->interface, sizeof(n->interface), "%s", interface);
    list_foreach(job, &n->list, link) {
        if (!job->is_forgotten && !job->is_unsaved)
            jobs__listen(job);
    }
    make_default(n, clock_now());
    n->start_at = clock_now();
    jobs__host_tick(n, n->start_at);
    return 0;
}

void jobs_close(struct jobs *jobs, struct model_network *net, bool is_removed)
{
    struct jobs_network *n = find_served(jobs, net);
    struct job *job;

    /* Another one of that name is served, and has the jobs. */
    if (!n)
        return;
    n->start_at = NSEC_NEVER;
    if (is_removed) {
        jobs__host_kill(n);
        forget_jobs(n);
    } else {
        jobs__host_say(n, &(struct rdzv_wire){.type = RDZV_WIRE_END});
        list_foreach(job, &n->list, link)
            jobs__unlisten(job);
    }
    n->net = NULL;
}

/* ---- members -------------------------------------------------------------------------------- */

static void tell_member(struct jobs *jobs, const struct model_network *net,
    const struct ip_addr *address, enum rdzv_wire_type what)
{
    struct jobs_network *n = find_served(jobs, net);

    if (n)
        jobs__host_say(n, &(struct rdzv_wire){.type = what, .address = *address});
}

void jobs_add_member(
    struct jobs *jobs, const struct model_network *net, const struct ip_addr *address)
{
    tell_member(jobs, net, address, RDZV_WIRE_MEMBER);
}

void jobs_end_member(
    struct jobs *jobs, const struct model_network *net, const struct ip_addr *address)
{
    tell_member(jobs, net, address, RDZV_WIRE_NO_MEMBER);
}

/* ---- as others see it ----------------------------------------------------------------------- */

char *jobs_list(struct jobs *jobs, const struct model_network *net)
{
    struct jobs_network *n = find_served(jobs, net);
    struct str text = STR_NULL;
    const char *between = "";
    struct job *job;

    str_add(&text, "{\"jobs\":[");
    if (n) {
        list_foreach(job, &n->list, link) {
            json_t *json = job->is_forgotten || job->is_unsaved ? NULL : job_json(job);
            char *one = json ? json_dumps(json, JSON_COMPACT) : NULL;

            json_decref(json);
            if (!one)
                continue;
            str_add(&text, between);
            str_add(&text, one);
            between = ",";
            free(one);
        }
    }
    str_add(&text, "]}\n");
    return str_take(&text, NULL);
}

/* What all processes of a hub have counted. */
struct sums {
    size_t jobs;
    double connections;
    double store_requests;
    double etcd_requests;
    double hung_up;
    double deferred;
    double unsaved;
};

static struct sums sum_up(const struct jobs *jobs)
{
    struct sums s = {0};
    struct jobs_network *n;
    struct job *job;

    list_foreach(n, &jobs->networks, link) {
        s.store_requests += (double)(n->n_store_requests + n->counts.n_store_requests);
        s.etcd_requests += (double)(n->n_etcd_requests + n->counts.n_etcd_requests);
        s.hung_up += (double)(n->n_hung_up + n->counts.n_hung_up);
        s.deferred += (double)(n->n_deferred + n->counts.n_accepts_deferred);
        s.unsaved += (double)(n->commit.by_key.n + n->commit.n_coming + jobs__host_unread(n));
        list_foreach(job, &n->list, link) {
            s.jobs += !job->is_forgotten && !job->is_unsaved;
            s.connections += job->n_connections;
        }
    }
    return s;
}

void jobs_metrics(const struct jobs *jobs, struct hub_metrics *m)
{
    struct sums s = sum_up(jobs);

    hub_metric(m, HUB_METRIC_GAUGE, "weft_rendezvous_jobs", "jobs, the default ones included", "",
        (double)s.jobs);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_rendezvous_connections", "connections to jobs", "",
        s.connections);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_store_requests_total",
        "requests of TCPStore", "", s.store_requests);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_etcd_requests_total", "requests of etcd", "",
        s.etcd_requests);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_hung_up_total",
        "connections that were ended or refused", "", s.hung_up);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_accepts_deferred_total",
        "times that nothing was accepted for a while, for want of descriptors", "", s.deferred);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_rendezvous_unsaved", "changes not on the disk yet", "",
        s.unsaved);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_commits_total", "commits of changes in jobs",
        "", (double)jobs->n_commits);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_commits_failed_total",
        "of them, those that the disk refused", "", (double)jobs->n_failed);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_restarts_total",
        "processes of rendezvous that ended, and were started again", "", (double)jobs->n_restarts);
}
