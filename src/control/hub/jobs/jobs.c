/*
 * jobs.c - see jobs.h: all networks, their turn of the loop, and the functions that the hub calls.
 *
 * Which part does what, from the bottom:
 *
 *     change_queue.c  changes, on their way to the store
 *     job.c           one job: its sockets, its blobs and their changes
 *     job_network.c   the jobs of one network, and their records on their way to the store
 *     job_runs.c      jobs are made, and their runs begin and end
 *     rdzv_child.c    a process, and the socket to it
 *     job_host.c      a network's process: started, told, heard, ended
 *
 * None of them calls one that stands below it in this list. What has come up in one of them is
 * carried on by on_turn(), once in each turn of the loop, before the loop sleeps.
 */
#include "jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/containers.h"
#include "base/err.h"
#include "base/text.h"
#include "health/job_health.h"
#include "hub/jobs/job.h"
#include "hub/jobs/job_host.h"
#include "hub/jobs/job_network.h"
#include "hub/jobs/job_runs.h"
#include "hub/jobs/rdzv_child.h"
#include "os/clock.h"
#include "os/log.h"
#include "rendezvous/shared/rdzv_record.h"
#include "store/keys.h"
#include "store/store.h"

/* How long a process that is told to end is waited for. */
#define JOBS_END_MAX (3 * NSEC_PER_SEC)

/* ---- loading jobs from the store ------------------------------------------------------------- */

/* The walk over the store. */
struct load {
    struct list *networks; /* borrowed */
    struct jobs_env *env;  /* borrowed */
    nsec_t now;
};

static int load_item(void *ctx, const struct store_item *item)
{
    struct load *load = ctx;
    struct rdzv_key k = rdzv_key_parse(item->key);
    bool is_job = k.kind == RDZV_KEY_JOB;
    struct rdzv_job_record record;
    struct err e = ERR_NULL;
    struct job_network *n;
    struct job *job;
    int r = 0;

    if (k.kind == RDZV_KEY_NONE)
        return 0;
    if (is_job)
        r = rdzv_job_decode(&record, item->value, &e);
    if (r == 0) {
        n = job_network_get(load->networks, load->env, k.network);
        job = n && !is_job ? job_network_find_job(n, k.job) : NULL;
        /* Blobs without a job are what a hub left behind that died while it forgot the job: they
         * go. */
        if (n && !job)
            job = job_network_add(n, k.job, is_job ? &record : NULL, load->now);
        if (!job)
            r = err_set(&e, -ENOMEM, "no memory for job \"%s\"", k.job);
        else if (!is_job)
            r = job_blobs_load(&job->blobs, &k, item->key, item->value, load->now, &e);
    }
    if (r != 0)
        load->env->records.damaged(load->env->records.ctx, item->key, err_text(&e));
    return 0;
}

int job_loader_run(struct list *networks, struct jobs_env *env, struct err *e)
{
    struct load load = {.networks = networks, .env = env, .now = env->clock()};

    return store_now_list(env->store, RDZV_KEY_PREFIX, load_item, &load, NULL, e);
}

/* ---- the networks that are served ------------------------------------------------------------ */

/** A network that is or was served. */
struct jobs_served {
    struct list link;             /* in the jobs' */
    struct jobs *jobs;            /* pins */
    struct job_host host;         /* see there; its network is in the jobs' */
    struct jobs_service *service; /* pins: the handle that it has now; NULL: it is not served */
    bool admits_own;              /* who connects from the hub's own addresses may come */
};

struct jobs {
    struct jobs_env env;
    struct list networks; /* owns struct job_network; who commits next is first */
    struct list served;   /* owns struct jobs_served */
    uv_prepare_t turn;    /* before the loop sleeps */
    uv_timer_t wake;      /* so that it sleeps no longer than until something is due */
    bool is_started;      /* between jobs_start() and jobs_stop() */
};

/* ---- a turn of the loop --------------------------------------------------------------------- */

/* Begin one commit at most in a turn. The network that commits goes to the end of the list. */
static void commit_one(struct jobs *jobs, nsec_t now)
{
    struct job_network *n;

    list_foreach(n, &jobs->networks, link) {
        if (job_network_due(n) > now)
            continue;
        list_remove(&n->link);
        list_add_tail(&jobs->networks, &n->link);
        job_network_commit(n, now);
        return;
    }
}

static void on_wake(uv_timer_t *timer)
{
    /* The loop does not sleep now: on_turn() is next. */
}

static void wake_when_due(struct jobs *jobs, nsec_t now)
{
    nsec_t due = NSEC_NEVER;
    struct job_network *n;
    struct jobs_served *served;

    list_foreach(n, &jobs->networks, link)
        due = nsec_min(due, job_network_due(n));
    list_foreach(served, &jobs->served, link)
        due = nsec_min(due, job_host_due(&served->host));
    if (due == NSEC_NEVER) {
        (void)uv_timer_stop(&jobs->wake);
        return;
    }
    due -= now;
    (void)uv_timer_start(&jobs->wake, on_wake,
        due > 0 ? (uint64_t)((due + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC) : 0, 0);
}

static void on_turn(uv_prepare_t *turn)
{
    struct jobs *jobs = container_of(turn, struct jobs, turn);
    nsec_t now = jobs->env.clock();
    struct jobs_served *served;

    commit_one(jobs, now);
    list_foreach(served, &jobs->served, link)
        job_host_turn(&served->host, now);
    wake_when_due(jobs, now);
}

void jobs_tick(struct jobs *jobs, nsec_t now)
{
    struct job_network *n;
    struct job *job;

    list_foreach(n, &jobs->networks, link) {
        if (n->is_foreign)
            continue;
        job_runs_tick(n, now);
        list_foreach(job, &n->jobs, link)
            job_network_look(job, now);
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

int jobs_new(struct jobs **ret, struct uv_loop_s *loop, struct store *store,
    const struct jobs_records *records, uint64_t seed, uint64_t epoch, struct err *e)
{
    struct jobs *jobs = calloc(1, sizeof(*jobs));
    int r;

    if (!jobs)
        return err_set(e, -ENOMEM, "no memory for rendezvous");
    jobs->env = (struct jobs_env){.loop = loop,
        .store = store,
        .clock = clock_now,
        .records = *records,
        .seed = seed,
        .epoch = epoch,
        .pace = CHANGE_PACE_INIT};
    list_init(&jobs->networks);
    list_init(&jobs->served);
    /* What several hubs share is read when it is to be served here; see jobs_load(). */
    r = store_is_shared(store) ? 0 : job_loader_run(&jobs->networks, &jobs->env, e);
    if (r == 0)
        *ret = jobs;
    else
        jobs_free(jobs);
    return r;
}

void jobs_start(struct jobs *jobs, const struct keys *networks)
{
    struct job_network *n;

    jobs->is_started = true;
    (void)uv_timer_init(jobs->env.loop, &jobs->wake);
    (void)uv_prepare_init(jobs->env.loop, &jobs->turn);
    (void)uv_prepare_start(&jobs->turn, on_turn);
    list_foreach(n, &jobs->networks, link) {
        if (!keys_find(networks, n->name))
            job_network_forget(n, jobs->env.clock());
    }
}

void jobs_stop(struct jobs *jobs)
{
    nsec_t deadline = jobs->env.clock() + JOBS_END_MAX;
    struct job_network *n;
    struct jobs_served *served;

    if (!jobs->is_started)
        return;
    list_foreach(served, &jobs->served, link)
        job_host_stop(&served->host);
    list_foreach(served, &jobs->served, link)
        job_host_end(&served->host, deadline);
    list_foreach(n, &jobs->networks, link) {
        struct err e = ERR_NULL;

        if (job_network_commit_all(n, &e) != 0)
            log_warning("rendezvous of network \"%s\": the last changes are lost: %s", n->name,
                err_text(&e));
    }
    store_wait(jobs->env.store);
    jobs->is_started = false;
    uv_close((uv_handle_t *)&jobs->turn, NULL);
    uv_close((uv_handle_t *)&jobs->wake, NULL);
}

struct jobs *jobs_free(struct jobs *jobs)
{
    struct job_network *n;
    struct job_network *next;
    struct jobs_served *served;
    struct jobs_served *other;

    if (!jobs)
        return NULL;
    list_foreach_safe(served, other, &jobs->served, link) {
        free(served->host.members);
        free(served);
    }
    list_foreach_safe(n, next, &jobs->networks, link)
        job_network_free(n);
    free(jobs);
    return NULL;
}

/* ---- who is served -------------------------------------------------------------------------- */

/* The part that serves that network, made if the network was never served. NULL: no memory. */
static struct jobs_served *served_of(struct jobs *jobs, const char *network)
{
    struct job_network *n = job_network_get(&jobs->networks, &jobs->env, network);
    struct jobs_served *served;

    if (!n)
        return NULL;
    list_foreach(served, &jobs->served, link) {
        if (served->host.network == n)
            return served;
    }
    served = calloc(1, sizeof(*served));
    if (!served)
        return NULL;
    served->jobs = jobs;
    job_host_init(&served->host, n);
    list_add_tail(&jobs->served, &served->link);
    return served;
}

/* Jobs that are being read, a page at a time. */
struct loading {
    struct jobs *jobs;           /* pins */
    struct job_network *network; /* pins */
    char prefix[RDZV_KEY_MAX];
    char last[STORE_KEY_MAX + 1]; /* the last key that was read; "": none yet */
};

static void on_page(void *ctx, const struct store_answer *a);

/* @x: taken. */
static void read_page(struct loading *x)
{
    struct store_range range = {.prefix = x->prefix, .from = x->last[0] ? x->last : NULL};

    if (store_list(x->jobs->env.store, &range, on_page, x, NULL) == 0)
        return;
    x->network->is_loading = false;
    free(x);
}

static void on_page(void *ctx, const struct store_answer *a)
{
    struct loading *x = ctx;
    struct jobs_env *env = &x->jobs->env;
    struct load load = {.networks = &x->jobs->networks, .env = env, .now = env->clock()};

    for (size_t i = 0; a->r == 0 && i < a->n_items; i++) {
        (void)load_item(&load, &a->items[i]);
        (void)snprintf(x->last, sizeof(x->last), "%s", a->items[i].key);
    }
    if (a->r == 0 && a->has_more && a->n_items > 0) {
        read_page(x);
        return;
    }
    x->network->is_loading = false;
    x->network->is_foreign = a->r != 0;
    free(x);
}

/* Is nothing of the network on its way to the store? */
static bool may_clear(const struct job_network *n)
{
    const struct job *job;

    list_foreach(job, &n->jobs, link) {
        if (job->save)
            return false;
    }
    return n->queue.sent_at == 0;
}

/* Forget everything in memory, and nothing in the store. The network has no process. */
static void clear_network(struct job_network *n)
{
    struct job *job;
    struct job *tmp;

    list_foreach_safe(job, tmp, &n->jobs, link)
        job_network_free_job(job);
    change_queue_deinit(&n->queue);
    change_queue_init(&n->queue, n->env->seed);
    n->totals = (struct blob_totals){0};
    n->upload = (struct blob_upload){0};
    str_deinit(&n->to_process);
}

bool jobs_load(struct jobs *jobs, const char *network, nsec_t now)
{
    struct job_network *n = job_network_find(&jobs->networks, network);
    struct loading *x;

    if (!store_is_shared(jobs->env.store))
        return true;
    if (n && !n->is_foreign)
        return true;
    if (!n && (n = job_network_get(&jobs->networks, &jobs->env, network)))
        n->is_foreign = true;
    if (!n || n->is_loading || !may_clear(n))
        return false;
    x = calloc(1, sizeof(*x));
    if (!x)
        return false;
    clear_network(n);
    x->jobs = jobs;
    x->network = n;
    (void)snprintf(x->prefix, sizeof(x->prefix), "%s%s/", RDZV_KEY_PREFIX, network);
    n->is_loading = true;
    read_page(x);
    return false;
}

/* Close the ports of all jobs; from now on nothing is served, nor known of how they go. */
static void end_service(struct job_network *n)
{
    struct job *job;

    n->is_served = false;
    list_foreach(job, &n->jobs, link) {
        job_ports_close(&job->ports);
        job_network_forget_health(job);
    }
}

void jobs_drop(struct jobs_service *s)
{
    struct jobs_served *served = s->served;

    if (!served)
        return;
    job_host_kill(&served->host);
    end_service(served->host.network);
    served->host.network->is_foreign = true;
    served->service = NULL;
    s->served = NULL;
}

uint64_t jobs_fence(const struct jobs_service *s)
{
    return s->served ? s->served->host.network->fence_revision : 0;
}

/* Open the ports of all jobs. @place: borrowed; its name is the network's. */
static void serve_network(struct job_network *n, const struct jobs_place *place)
{
    struct job *job;

    n->is_served = true;
    (void)snprintf(n->interface, sizeof(n->interface), "%s", place->interface);
    n->address4 = place->address4;
    n->address6 = place->address6;
    (void)snprintf(n->fence, sizeof(n->fence), "%s", place->fence ? place->fence : "");
    n->fence_revision = place->fence_revision;
    n->epoch = place->epoch;
    list_foreach(job, &n->jobs, link) {
        if (job_exists(job))
            job_network_open_ports(job);
    }
}

int jobs_open(
    struct jobs_service *s, struct jobs *jobs, const struct jobs_place *place, struct err *e)
{
    struct jobs_served *served = served_of(jobs, place->network);
    nsec_t now = jobs->env.clock();

    if (!served)
        return err_set(e, -ENOMEM, "no memory for rendezvous");
    /* A removed network of the same name is still served: it has not been taken down yet. */
    if (served->service)
        jobs_close(served->service, true);
    s->served = served;
    served->service = s;
    served->host.n_members = 0;
    served->admits_own = false;
    serve_network(served->host.network, place);
    job_runs_make_default(served->host.network, now);
    served->host.start_at = now;
    return 0;
}

void jobs_close(struct jobs_service *s, bool is_removed)
{
    struct jobs_served *served = s->served;

    if (!served)
        return;
    if (is_removed) {
        job_host_kill(&served->host);
        job_network_forget(served->host.network, served->jobs->env.clock());
    } else {
        job_host_stop(&served->host);
    }
    end_service(served->host.network);
    served->service = NULL;
    s->served = NULL;
}

/* Programs of the hub's machine connect from the hub's own addresses, whichever user's they are. So
 * these may come while that machine is a member, and are what programs of any member are. */
static void admit_own(struct jobs_served *served, bool admits)
{
    const struct job_network *n = served->host.network;
    const struct ip_addr *own[] = {&n->address4, &n->address6};

    if (served->admits_own == admits)
        return;
    served->admits_own = admits;
    for (unsigned i = 0; i < 2; i++) {
        if (admits)
            job_host_add_member(&served->host, own[i]);
        else
            job_host_remove_member(&served->host, own[i]);
    }
}

void jobs_add_member(struct jobs_service *s, const struct ip_addr *address)
{
    if (!s->served)
        return;
    job_host_add_member(&s->served->host, address);
    /* Known from when the network was served before. */
    if (ip_addr_equal(&s->served->host.network->own_member, address))
        admit_own(s->served, true);
}

/* The hub's machine is the member with this address; none: it is none any more. Its programs then
 * reach the ports of all jobs. */
static void set_own_member(struct job_network *n, const struct ip_addr *address)
{
    struct job *job;

    if (ip_addr_equal(&n->own_member, address))
        return;
    n->own_member = *address;
    list_foreach(job, &n->jobs, link) {
        if (job_exists(job))
            job_network_open_ports(job);
    }
}

void jobs_set_own_member(struct jobs_service *s, const struct ip_addr *address)
{
    if (!s->served)
        return;
    set_own_member(s->served->host.network, address);
    admit_own(s->served, !ip_addr_is_none(address));
}

void jobs_end_member(struct jobs_service *s, const struct ip_addr *address)
{
    static const struct ip_addr none;

    if (!s->served)
        return;
    job_host_remove_member(&s->served->host, address);
    if (ip_addr_equal(&s->served->host.network->own_member, address))
        jobs_set_own_member(s, &none);
}

/* ---- jobs ----------------------------------------------------------------------------------- */

static int refuse_unserved(struct err *e)
{
    return err_set(e, -ENOENT, "the network's rendezvous is not served");
}

int jobs_join(struct jobs_service *s, const char *name, const char *member, const char *broken,
    nsec_t now, jobs_done_fn done, void *ctx, struct job **ret, struct err *e)
{
    if (!s->served)
        return refuse_unserved(e);
    return job_runs_join(s->served->host.network, name, member, broken, now, done, ctx, ret, e);
}

struct job *jobs_find(const struct jobs_service *s, const char *name)
{
    struct job *job = s->served ? job_network_find_job(s->served->host.network, name) : NULL;

    return job && job_exists(job) ? job : NULL;
}

/* @nccl: taken; NULL: it is left out. */
static json_t *describe_run(const struct job_network *n, const char *name,
    const struct rdzv_job_record *record, const struct job_facts *facts, json_t *nccl)
{
    uint16_t port = record->port;
    uint16_t etcd = strcmp(name, JOBS_DEFAULT) == 0 ? JOBS_DEFAULT_ETCD : port;
    char run[NAME_MAX_LEN + 16];
    char address[IP_ADDR_TEXT_MAX];
    char address6[IP_ADDR_TEXT_MAX];
    char c10d_at[IP_ADDR_TEXT_MAX + 8];
    char etcd_at[IP_ADDR_TEXT_MAX + 8];
    char epoch[2 * sizeof(uint64_t) + 1];

    ip_addr_format(&n->address4, address);
    ip_addr_format(&n->address6, address6);
    (void)snprintf(run, sizeof(run), "%s.%u", name, record->run);
    (void)snprintf(c10d_at, sizeof(c10d_at), "%s:%u", address, port);
    (void)snprintf(etcd_at, sizeof(etcd_at), "%s:%u", address, etcd);
    (void)snprintf(epoch, sizeof(epoch), "%016" PRIx64, n->env->epoch + n->epoch);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:i}, s:{s:s, s:i}, s:I, s:I, s:I, "
                     "s:I, s:s*, s:o*}",
        "job", name, "network", n->name, "run", run, "epoch", epoch, "address4", address,
        "address6", address6, "c10d", "endpoint", c10d_at, "port", port, "etcdV2", "endpoint",
        etcd_at, "port", etcd, "idleSeconds", (json_int_t)(JOBS_IDLE / NSEC_PER_SEC), "keys",
        (json_int_t)facts->n_keys, "bytes", (json_int_t)facts->n_bytes, "limitHits",
        (json_int_t)facts->n_refused, "lastLimit", facts->last_limit[0] ? facts->last_limit : NULL,
        "nccl", nccl);
}

json_t *jobs_json(const struct job *job, bool is_brief)
{
    return describe_run(job->network, job->name, &job->record, &job->facts,
        is_brief ? NULL : job_members_nccl(&job->members));
}

int jobs_look(
    const struct jobs_service *s, const char *name, nsec_t now, json_t **ret, struct err *e)
{
    static const struct job_facts nothing = {0};
    struct job_outlook o;
    json_t *json;
    int r;

    if (!s->served)
        return refuse_unserved(e);
    r = job_runs_look(s->served->host.network, name, now, &o, e);
    if (r != 0)
        return r;
    json = describe_run(
        s->served->host.network, name, &o.record, o.begins ? &nothing : &o.job->facts, NULL);
    if (!json || json_object_set_new(json, "begins", json_boolean(o.begins)) < 0) {
        json_decref(json);
        return err_set(e, -ENOMEM, "no memory for job \"%s\"", name);
    }
    *ret = json;
    return 0;
}

bool jobs_has_others(
    const struct job *job, const char *member, const struct ip_addr *address, nsec_t now)
{
    return job_is_busy(job, address) || job_members_has_others(&job->members, member, now);
}

bool jobs_is_full(const struct job *job, const char *member, const char *broken, unsigned n_nodes,
    nsec_t now, struct str *ret_names)
{
    struct job_outlook o;

    return !(broken && job_is_run(job, broken)) &&
           job_runs_look(job->network, job->name, now, &o, NULL) == 0 && !o.begins &&
           job_members_is_full(&job->members, member, n_nodes, now, ret_names);
}

void jobs_take_sample(struct job *job, const char *member, const struct job_sample *s, nsec_t now)
{
    job_network_take_sample(job, member, s, now);
}

void jobs_end_samples(struct job *job, const char *member)
{
    if (job->health)
        job_health_end(job->health, member);
}

const struct findings *jobs_findings(const struct jobs_service *s)
{
    return s->served ? job_network_findings(s->served->host.network) : NULL;
}

/* How it goes, as its nodes say. */
static void add_health(json_t *json, const struct job *job, nsec_t now)
{
    uint64_t bytes;
    uint64_t usual;
    uint64_t step;
    double rate;

    (void)json_object_set_new(json, "heldUpBy",
        job_health_encode(
            job->health, job->name, job_network_findings(job->network), clock_wall_s()));
    if (job_health_step(job->health, &step, &rate)) {
        (void)json_object_set_new(json, "step", json_integer((json_int_t)step));
        (void)json_object_set_new(json, "stepsPerSecond", json_real(rate));
    }
    if (job_health_rate(job->health, now, &bytes, &usual)) {
        (void)json_object_set_new(json, "bytesPerSecond", json_integer((json_int_t)bytes));
        if (usual > 0)
            (void)json_object_set_new(json, "usualBytesPerSecond", json_integer((json_int_t)usual));
    }
}

static void add_jobs(struct str *text, struct job_network *n)
{
    nsec_t now = n->env->clock();
    const char *between = "";
    const struct job *job;

    list_foreach(job, &n->jobs, link) {
        json_auto_t *json = NULL;
        char *one;

        if (!job_exists(job))
            continue;
        json = jobs_json(job, false);
        (void)json_object_set_new(json, "present",
            job_is_over(job, now) ? json_array() : job_members_present(&job->members, now));
        if (!job_is_over(job, now) && job->members.isolated)
            (void)json_object_set_new(json, "isolated", job_members_isolated(&job->members));
        add_health(json, job, now);
        one = json_dumps(json, JSON_COMPACT);
        if (!one)
            continue;
        str_add(text, between);
        str_add(text, one);
        between = ",";
        free(one);
    }
}

void jobs_each_rate(const struct jobs_service *s,
    void (*fn)(void *arg, const char *from, const char *to, uint64_t rate), void *arg)
{
    const struct job_network *n = s->served ? s->served->host.network : NULL;
    const struct job *job;

    if (!n)
        return;
    list_foreach(job, &n->jobs, link)
        job_health_each_rate(job->health, n->env->clock(), fn, arg);
}

void jobs_each(
    const struct jobs_service *s, void (*fn)(void *arg, const struct job *job), void *arg)
{
    const struct job *job;

    if (!s->served)
        return;
    list_foreach(job, &s->served->host.network->jobs, link)
        if (job_exists(job))
            fn(arg, job);
}

/* Who takes the slow lines of a job. */
struct slow_taker {
    void (*fn)(void *arg, const char *job, const struct job_slow_line *line);
    void *arg;
    const char *job;
};

/* A job_slow_fn. */
static void take_slow(void *arg, const struct job_slow_line *line)
{
    const struct slow_taker *taker = arg;

    taker->fn(taker->arg, taker->job, line);
}

void jobs_each_slow(const struct jobs_service *s,
    void (*fn)(void *arg, const char *job, const struct job_slow_line *line), void *arg)
{
    const struct job_network *n = s->served ? s->served->host.network : NULL;
    const struct job *job;

    if (!n)
        return;
    list_foreach(job, &n->jobs, link)
        job_health_each_slow(job->health, n->env->clock(), take_slow,
            &(struct slow_taker){.fn = fn, .arg = arg, .job = job->name});
}

char *jobs_list(const struct jobs_service *s)
{
    struct str text = STR_NULL;

    str_add(&text, "{\"jobs\":[");
    if (s->served)
        add_jobs(&text, s->served->host.network);
    str_add(&text, "]}\n");
    return str_take(&text, NULL);
}

/* ---- counts --------------------------------------------------------------------------------- */

struct jobs_counts jobs_count(const struct jobs *jobs)
{
    struct jobs_counts c = {0};
    const struct job_network *n;
    const struct jobs_served *served;
    const struct job *job;

    list_foreach(n, &jobs->networks, link) {
        job_counts_add(&c.processes, &n->counts_now);
        job_counts_add(&c.processes, &n->counts_before);
        c.n_unsaved += change_queue_count(&n->queue);
        c.n_commits += n->queue.n_commits;
        c.n_failed += n->queue.n_failed;
        list_foreach(job, &n->jobs, link) {
            c.n_jobs += job_exists(job);
            c.n_connections += job->facts.n_connections;
        }
    }
    list_foreach(served, &jobs->served, link) {
        c.n_unsaved += served->host.child && rdzv_child_has_unread(served->host.child);
        c.n_restarts += served->host.n_restarts;
    }
    return c;
}
