/*
 * rdzv.c - networks and their jobs: which there are, and when they begin anew and end.
 *
 * What is in a job is in rdzv_kv.c (TCPStore), how it is reached in rdzv_listen.c, how it
 * comes back after a restart in rdzv_load.c.
 */
#include "rdzv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
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

/* Where a job of that name goes in the list, which is in the order of names. */
static struct list *behind(struct rdzv_network *n, const char *name)
{
    struct rdzv_job *job;

    list_foreach(job, &n->jobs, link) {
        if (strcmp(job->name, name) > 0)
            return &job->link;
    }
    return &n->jobs;
}

static struct rdzv_job *job_new(
    struct rdzv_network *n, const char *name, const struct rdzv_job_record *record, nsec_t now)
{
    struct rdzv_job *job = calloc(1, sizeof(*job));
    struct rdzv_tree_saver tree_saver;
    struct rdzv_kv_saver saver;

    if (!job)
        return NULL;
    job->rz = n->rz;
    job->network = n;
    job->record = *record;
    job->heard = now;
    job->quota = (struct rdzv_quota){
        .parent = &n->quota, .bytes_max = RDZV_JOB_BYTES_MAX, .entries_max = RDZV_JOB_ENTRIES_MAX};
    (void)snprintf(job->name, sizeof(job->name), "%s", name);
    list_init(&job->conns);
    saver = rdzv__store_saver(job);
    rdzv_kv_init(&job->kv, &saver, &job->quota, n->rz->seed);
    tree_saver = rdzv__tree_saver(job);
    if (rdzv_tree_init(&job->tree, &tree_saver, &job->quota) != 0) {
        free(job);
        return NULL;
    }
    list_add_tail(behind(n, name), &job->link);
    return job;
}

int rdzv__add_job(struct rdzv *rz, const char *network, const char *name,
    const struct rdzv_job_record *record, nsec_t now)
{
    struct rdzv_network *n = acquire_network(rz, network);

    return n && job_new(n, name, record, now) ? 0 : -ENOMEM;
}

/* Its connections have been hung up. */
static void job_free(struct rdzv_job *job)
{
    rdzv_kv_deinit(&job->kv);
    rdzv_tree_deinit(&job->tree);
    list_remove(&job->link);
    free(job);
}

static int save_job(struct rdzv_job *job, struct err *e)
{
    char key[RDZV_KEY_MAX];
    char *text = rdzv_job_encode(&job->record);

    (void)rdzv_key_of_job(key, job->network->name, job->name);
    if (!text || rdzv_save_put(&job->rz->save, key, text) != 0)
        return err_set(e, -ENOMEM, "no memory for job \"%s\"", job->name);
    return 0;
}

/* A job and all that is in it goes, from the disk too. */
static void forget(struct rdzv_job *job)
{
    char key[RDZV_KEY_MAX];

    rdzv__unlisten(job);
    rdzv_kv_clear(&job->kv);
    rdzv_tree_clear(&job->tree);
    rdzv_tree_forget_index(&job->tree);
    (void)rdzv_save_put(&job->rz->save, rdzv_key_of_job(key, job->network->name, job->name), NULL);
    job_free(job);
}

static bool is_port_taken(struct rdzv_network *n, uint16_t port)
{
    struct rdzv_job *job;

    list_foreach(job, &n->jobs, link) {
        if (job->record.port == port)
            return true;
    }
    return false;
}

/* A free port; 0: there is none. The search begins where the name says, so that a job that was
 * forgotten most likely comes back where it was. */
static uint16_t choose_port(struct rdzv_network *n, const char *name)
{
    unsigned first = (unsigned)(hash_bytes(0, name, strlen(name)) % RDZV_JOBS_MAX);

    if (strcmp(name, RDZV_DEFAULT) == 0)
        return RDZV_DEFAULT_C10D;
    for (unsigned i = 0; i < RDZV_JOBS_MAX; i++) {
        uint16_t port = (uint16_t)(RDZV_PORT_FIRST + (first + i) % RDZV_JOBS_MAX);

        if (!is_port_taken(n, port))
            return port;
    }
    return 0;
}

/* Made, served, and to be saved. */
static int make(
    struct rdzv_network *n, const char *name, nsec_t now, struct rdzv_job **ret, struct err *e)
{
    struct rdzv_job_record record = {.port = choose_port(n, name), .run = 1};
    struct rdzv_job *job;
    int r;

    if (record.port == 0)
        return err_set(e, RDZV_E_FULL,
            "network \"%s\" has %d jobs already; one is forgotten %d hours after its last member "
            "has gone",
            n->name, RDZV_JOBS_MAX, (int)(RDZV_IDLE / NSEC_PER_SEC / 3600));
    job = job_new(n, name, &record, now);
    r = job ? save_job(job, e) : err_set(e, -ENOMEM, "no memory for job \"%s\"", name);
    if (r != 0)
        return r;
    rdzv__listen(job);
    *ret = job;
    return 0;
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* Is somebody connected but @who, who may be nobody? */
static bool is_busy(const struct rdzv_job *job, const struct ip_addr *who)
{
    struct rdzv_conn *c;

    list_foreach(c, &job->conns, link) {
        if (!who || !ip_addr_equal(&c->from, who))
            return true;
    }
    return false;
}

static void hang_up_all(struct rdzv_job *job)
{
    struct rdzv_conn *c;
    struct rdzv_conn *tmp;

    list_foreach_safe(c, tmp, &job->conns, link)
        rdzv__hang_up(c);
}

static int begin_run(struct rdzv_job *job, struct err *e)
{
    hang_up_all(job);
    rdzv_kv_clear(&job->kv);
    rdzv_tree_clear(&job->tree);
    job->record.run++;
    job->record.ended = false;
    log_info("job \"%s\" of network \"%s\": run %u begins", job->name, job->network->name,
        job->record.run);
    return save_job(job, e);
}

static bool is_over(const struct rdzv_job *job, nsec_t now)
{
    return job->record.ended || (now - job->heard > RDZV_QUIET && !is_busy(job, NULL));
}

int rdzv_join(struct rdzv *rz, struct model_network *net, const char *name, nsec_t now,
    struct rdzv_job **ret, struct err *e)
{
    struct rdzv_network *n = acquire_network(rz, net->pub.spec.meta.name);
    struct rdzv_job *job = n ? find_job(n, name) : NULL;
    int r = n ? 0 : err_set(e, -ENOMEM, "no memory for job \"%s\"", name);

    if (r == 0 && !job)
        r = make(n, name, now, &job, e);
    else if (r == 0 && is_over(job, now))
        r = begin_run(job, e);
    if (r == 0)
        r = rdzv_save_now(&rz->save, e);
    if (r != 0)
        return r;
    job->heard = now;
    *ret = job;
    return 0;
}

int rdzv_end(struct rdzv_job *job, const struct ip_addr *who, struct err *e)
{
    int r;

    if (is_busy(job, who))
        return err_set(
            e, RDZV_E_BUSY, "other members of job \"%s\" are still connected", job->name);
    job->record.ended = true;
    r = save_job(job, e);
    return r == 0 ? rdzv_save_now(&job->rz->save, e) : r;
}

void rdzv_tick(struct rdzv *rz, nsec_t now)
{
    struct rdzv_network *n;
    struct rdzv_job *job;
    struct rdzv_job *tmp;

    list_foreach(n, &rz->networks, link) {
        list_foreach_safe(job, tmp, &n->jobs, link) {
            if (now - job->heard <= RDZV_IDLE || is_busy(job, NULL))
                continue;
            if (strcmp(job->name, RDZV_DEFAULT) != 0) {
                forget(job);
            } else {
                rdzv_kv_clear(&job->kv);
                rdzv_tree_clear(&job->tree);
            }
        }
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

/* ---- saving the tree ------------------------------------------------------------------------ */

static void on_put(
    void *ctx, const void *name, size_t name_len, const void *p, size_t len, size_t before)
{
    struct rdzv_job *job = ctx;
    char key[RDZV_KEY_MAX];

    /* Without memory for it the change is in the answers only. */
    (void)rdzv_save_blob(&job->rz->save,
        rdzv_key_of_blob(key, RDZV_KEY_NODE, job->network->name, job->name, name, name_len), p, len,
        before);
}

static void on_drop(void *ctx, const void *name, size_t name_len, size_t before)
{
    struct rdzv_job *job = ctx;
    char key[RDZV_KEY_MAX];

    (void)rdzv_save_drop_blob(&job->rz->save,
        rdzv_key_of_blob(key, RDZV_KEY_NODE, job->network->name, job->name, name, name_len),
        before);
}

struct rdzv_tree_saver rdzv__tree_saver(struct rdzv_job *job)
{
    return (struct rdzv_tree_saver){.ctx = job, .put = on_put, .drop = on_drop};
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
    r = rdzv__load(rz, e);
    if (r == 0)
        *ret = rz;
    else
        rdzv_free(rz);
    return r;
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
    return 0;
}

void rdzv_stop(struct rdzv *rz)
{
    if (!rz->started)
        return;
    rz->started = false;
    rdzv_save_stop(&rz->save);
    rdzv_http_stop(&rz->http);
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
            job_free(job);
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
    return find_job(n, RDZV_DEFAULT) ? 0 : make(n, RDZV_DEFAULT, clock_now(), &job, e);
}

void rdzv_close(struct rdzv *rz, struct model_network *net, bool is_removed)
{
    struct rdzv_network *n = find_network(rz, net->pub.spec.meta.name);
    struct rdzv_job *job;
    struct rdzv_job *tmp;

    if (!n || n->net != net)
        return;
    list_foreach_safe(job, tmp, &n->jobs, link) {
        rdzv__unlisten(job);
        if (is_removed)
            forget(job);
    }
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

json_t *rdzv_job_json(const struct rdzv_job *job)
{
    const struct hub_network *net = &job->network->net->pub;
    uint16_t port = job->record.port;
    uint16_t etcd = strcmp(job->name, RDZV_DEFAULT) == 0 ? RDZV_DEFAULT_ETCD : port;
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
    (void)snprintf(epoch, sizeof(epoch), "%016" PRIx64, job->rz->epoch);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:i}, s:{s:s, s:i}, s:I, s:I, s:I}",
        "job", job->name, "network", job->network->name, "run", run, "epoch", epoch, "address4",
        address, "address6", address6, "c10d", "endpoint", c10d_at, "port", port, "etcdV2",
        "endpoint", etcd_at, "port", etcd, "idleSeconds", (json_int_t)(RDZV_IDLE / NSEC_PER_SEC),
        "keys", (json_int_t)job->quota.entries, "bytes", (json_int_t)job->quota.bytes);
}

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

    list_foreach(n, &rz->networks, link) {
        struct rdzv_job *job;

        connections += n->admission.n;
        list_foreach(job, &n->jobs, link)
            jobs++;
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
        (double)rz->save.by_key.n);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_commits_total", "commits of changes in jobs",
        "", (double)rz->save.n_commits);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_commits_failed_total",
        "of them, those that the disk refused", "", (double)rz->save.n_failed);
}
