/* etcd.c - see etcd_internal.h: life, the thread, and which job comes next. */
#include "backends/etcd/etcd_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"

/* How long opening waits for etcd. */
#define OPEN_NS (5 * NSEC_PER_SEC)

/* The layout below the prefix, see etcd_codec.h. */
#define LAYOUT "weft store 1"

/* ---- the thread ----------------------------------------------------------------------------- */

/* Commits that may be in one transaction with others write something, so that they are seen. */
static bool can_share(const struct store_job *job)
{
    for (size_t i = 0; i < job->n_ops; i++)
        if (job->ops[i].kind == STORE_OP_PUT)
            return true;
    return false;
}

static const struct store_queue_limits limits = {
    .ops_max = ETCD_TXN_OPS_MAX,
    .bytes_max = ETCD_TXN_BYTES_MAX,
    .is_apart = true,
    .can_share = can_share,
};

static void do_jobs(struct etcd *q, struct list *jobs)
{
    struct store_job *job = list_first(jobs, struct store_job, link);

    if (job->kind == STORE_JOB_COMMIT && job->n_ops <= limits.ops_max &&
        job->bytes <= limits.bytes_max) {
        etcd__commit(q, jobs);
        return;
    }
    list_remove(&job->link);
    switch (job->kind) {
    case STORE_JOB_COMMIT:
        etcd__large_commit(q, job);
        return;
    case STORE_JOB_GET:
    case STORE_JOB_LIST:
        etcd__read(q, job);
        return;
    case STORE_JOB_DELETED:
        etcd__deleted(q, job);
        return;
    case STORE_JOB_CHANGES:
        job->r = store_log_read(&q->updates.log, job);
        break;
    case STORE_JOB_COPY:
        job->r = err_set(&job->e, STORE_E_NO_FILES,
            "the store is etcd at \"%s\": copy it with etcdctl snapshot save",
            remote_http_server(q->client.http));
        break;
    }
    job->revision = q->updates.revision;
    store__finish(&q->base, job);
}

static void run(struct worker *w, void *ctx)
{
    struct etcd *q = ctx;
    struct list jobs;
    bool is_ending = false;

    list_init(&jobs);
    for (;;) {
        etcd__drain(q);
        etcd__tend(q, clock_now());
        if (store_queue_take(w, &limits, &jobs, &is_ending))
            do_jobs(q, &jobs);
        else if (is_ending)
            break;
        else
            etcd__wait(q, worker_fd(w), 500);
    }
    etcd_session_end(&q->session, &q->client, clock_now());
}

/* ---- the owner's side ------------------------------------------------------------------------ */

static void etcd_free(struct store *s)
{
    struct etcd *q = container_of(s, struct etcd, base);

    s->worker = worker_stop(s->worker);
    etcd_feed_deinit(&q->feed);
    etcd_updates_deinit(&q->updates);
    remote_http_free(q->client.http);
    secret_wipe(q->client.password, sizeof(q->client.password));
    store__deinit(s);
    free(q);
}

static const struct store_ops etcd_ops = {
    .free = etcd_free,
    .submit = store_queue_submit,
};

/* ---- opening -------------------------------------------------------------------------------- */

/* The key "about" is there: is it ours? */
static int check_about(struct etcd *q, const struct etcd_kvs *kvs, struct err *e)
{
    if (kvs->n == 0)
        return err_set(e, -EINVAL,
            "the prefix \"%s\" holds something else in etcd: there are keys and no \"%sabout\"; "
            "name another prefix",
            q->url.prefix, q->url.prefix);
    if (strcmp(kvs->items[0].value, LAYOUT) != 0)
        return err_set(e, -EINVAL,
            "the prefix \"%s\" holds something else in etcd: \"%sabout\" is \"%.40s\" and not "
            "\"" LAYOUT "\"; name another prefix",
            q->url.prefix, q->url.prefix, kvs->items[0].value);
    q->updates.base = kvs->items[0].create;
    return 0;
}

/* Find the layout's mark, or make it where nothing is below the prefix. Then the revision at which
 * it was made is the store's 0. */
static int open_prefix(struct etcd *q, nsec_t until, struct err *e)
{
    const char *prefix = q->client.prefix;
    _cleanup_(str_deinit) struct str body = STR_NULL;
    _cleanup_(etcd_kvs_deinit) struct etcd_kvs kvs = ETCD_KVS_NULL;
    json_auto_t *answer = NULL;
    int r;

    str_add(&body, "{\"compare\":[");
    etcd_add_empty(&body, prefix);
    str_add(&body, "],\"success\":[");
    etcd_add_put(&body, prefix, "about", LAYOUT, strlen(LAYOUT), 0);
    etcd_add_range(&body, prefix, "about");
    str_add(&body, "],\"failure\":[");
    etcd_add_range(&body, prefix, "about");
    str_add(&body, "]}");
    r = etcd__ask(q, "/v3/kv/txn", &body, until, &answer, e);
    if (r == 0)
        r = etcd_answer_nth(answer, etcd_answer_succeeded(answer) ? 1 : 0, prefix, &kvs, e);
    return r == 0 ? check_about(q, &kvs, e) : r;
}

static int connect_etcd(struct etcd *q, nsec_t now, struct err *e)
{
    nsec_t until = clock_now() + OPEN_NS;
    int r = etcd_client_init(&q->client, &q->url, e);

    if (r != 0)
        return r;
    etcd_feed_init(&q->feed, &q->client, 0);
    r = open_prefix(q, until, e);
    if (r == 0) {
        etcd_updates_init(&q->updates, q->updates.base, q->updates.base);
        r = etcd__load(q, now, until, e);
    }
    if (r == 0)
        etcd__large_clean(q, until);
    if (r == ETCD_E_AWAY || r == ETCD_E_LOST)
        (void)err_prefix(e, "etcd is away (most of its members must be up)");
    return r > 0 ? -EIO : r;
}

static int open_any(struct store **ret, const char *where, bool is_tls, nsec_t now, struct err *e)
{
    struct etcd *q = calloc(1, sizeof(*q));
    int r;

    if (!q)
        return err_set(e, -ENOMEM, "no memory for a store");
    list_init(&q->feed.revisions);
    r = store__init(&q->base, &etcd_ops, e);
    q->base.is_shared = true;
    if (r == 0)
        r = etcd_url_parse(&q->url, where, is_tls, e);
    if (r == 0)
        r = connect_etcd(q, now, e);
    if (r == 0)
        r = store_queue_start(&q->base.worker, run, q, e);
    if (r != 0) {
        etcd_free(&q->base);
        return r;
    }
    *ret = &q->base;
    return 0;
}

int etcd_open(struct store **ret, const char *where, nsec_t now, struct err *e)
{
    return open_any(ret, where, false, now, e);
}

int etcd_open_tls(struct store **ret, const char *where, nsec_t now, struct err *e)
{
    return open_any(ret, where, true, now, e);
}

static int check_any(const char *where, bool is_tls, struct err *e)
{
    struct etcd_url *url = calloc(1, sizeof(*url));
    int r = url ? etcd_url_parse(url, where, is_tls, e) : -ENOMEM;

    free(url);
    return r;
}

int etcd_check(const char *where, struct err *e)
{
    return check_any(where, false, e);
}

int etcd_check_tls(const char *where, struct err *e)
{
    return check_any(where, true, e);
}
