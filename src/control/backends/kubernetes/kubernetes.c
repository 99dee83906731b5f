/* kubernetes.c - see kubernetes_internal.h: life, the thread, and which job comes next. */
#include "backends/kubernetes/kubernetes_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "os/clock.h"

/* ---- removing Records that the journal does not need any more -------------------------------- */

/* Old entries, the state before, and what hubs have left that died. Which ones, kube_log.c notes
 * when it has moved the checkpoint. */

/* Records that one step removes, and how long it waits for an answer. */
#define TIDY_MAX 8
#define TIDY_NS  (2 * NSEC_PER_SEC)

/* Remove an entry; its parts are removed first. */
static int remove_entry(struct kubernetes *q, uint64_t seq, nsec_t until, struct err *e)
{
    struct kube_record record = KUBE_RECORD_NULL;
    char name[KUBE_RECORD_NAME_MAX];
    const char *writer;
    json_int_t n;
    json_t *json;
    int r = kube_client_read(&q->client, kube_entry_name(name, seq), until, &record, e);

    if (r != 0)
        return r == KUBE_E_ABSENT ? 0 : r;
    json = json_loads(record.data, 0, NULL);
    kube_record_deinit(&record);
    writer = json_string_value(json_object_get(json, "by"));
    n = json_integer_value(json_object_get(json, "parts"));
    for (json_int_t i = 0; writer && strlen(writer) < KUBE_WRITER_MAX && r == 0 && i < n; i++)
        r = kube_client_remove(&q->client, kube_piece_name(name, writer, 0, (uint64_t)i), until, e);
    json_decref(json);
    return r == 0 ? kube_client_remove(&q->client, kube_entry_name(name, seq), until, e) : r;
}

/* Remove some orphans. When one page of names has no more of them, the next one is read. */
static void clear_some(struct kubernetes *q, nsec_t until)
{
    struct err e = ERR_NULL;
    json_t *names = NULL;
    char *next = NULL;
    unsigned n = 0;
    json_t *one;
    size_t i;
    int r = kube_client_names(&q->client, q->clear_from, until, &names, &next, &e);

    json_array_foreach(names, i, one) {
        const char *name = json_string_value(one);

        if (r == 0 && n < TIDY_MAX && name && kube_is_orphan(name, &q->checkpoint)) {
            r = kube_client_remove(&q->client, name, until, &e);
            n++;
        }
    }
    json_decref(names);
    if (r == 0 && n == TIDY_MAX) {
        free(next);
        return;
    }
    free(q->clear_from);
    q->clear_from = next;
    /* After a failure it is begun again with the next state. */
    q->is_clearing = r == 0 && next;
}

/* One step of removing. True: there is more to remove. */
static bool tidy_step(struct kubernetes *q)
{
    nsec_t until = clock_now() + TIDY_NS;
    char name[KUBE_RECORD_NAME_MAX];
    struct err e = ERR_NULL;
    int r = 0;

    for (unsigned n = 0; r == 0 && n < TIDY_MAX && q->old_state.parts > 0; n++) {
        (void)kube_piece_name(name, NULL, q->old_state.next, q->old_state.parts - 1);
        r = kube_client_remove(&q->client, name, until, &e);
        q->old_state.parts--;
    }
    for (unsigned n = 0; r == 0 && n < TIDY_MAX && q->trim_next < q->trim_end; n++) {
        r = remove_entry(q, q->trim_next, until, &e);
        q->trim_next++;
    }
    if (r == 0 && q->is_clearing && q->old_state.parts == 0 && q->trim_next >= q->trim_end)
        clear_some(q, until);
    return q->old_state.parts > 0 || q->trim_next < q->trim_end || q->is_clearing;
}

/* ---- the store ------------------------------------------------------------------------------- */

/* How long opening waits for the server, and a request. */
#define OPEN_NS    (10 * NSEC_PER_SEC)
#define REQUEST_NS (8 * NSEC_PER_SEC)

/* While the server is away, one job in this time is tried; the others fail at once. */
#define AWAY_NS (1 * NSEC_PER_SEC)

/* How often the journal is read although the watch shows nothing new. */
#define LOOK_NS (10 * NSEC_PER_SEC)

/* Longest sleep of the thread, and most bytes of commits that become one entry with others. */
#define WAIT_MS         1000
#define ENTRY_BYTES_MAX (512u << 10)

/* ---- the watch ------------------------------------------------------------------------------- */

/* One event of the watch: does it name an entry that is new to us? */
static void on_line(void *ctx, const char *line, size_t len)
{
    struct kubernetes *q = ctx;
    json_t *json = json_loadb(line, len, 0, NULL);
    const json_t *meta = json_object_get(json_object_get(json, "object"), "metadata");
    const char *type = json_string_value(json_object_get(json, "type"));
    const char *name = json_string_value(json_object_get(meta, "name"));

    /* 410: what the watch began from is too old by now. */
    if (!type || strcmp(type, "ERROR") == 0)
        q->is_watch_over = true;
    else if (name && kube_entry_seq(name) > q->seq)
        q->has_more = true;
    else if (!q->has_more)
        store__set_current(&q->base, clock_now());
    json_decref(json);
}

/* Have a watch that is open. What happened before it began is read in any case. */
static void tend_watch(struct kubernetes *q, nsec_t now)
{
    struct remote_http_end end;
    struct err e = ERR_NULL;
    char *version = NULL;

    if (q->watch && !q->is_watch_over && !remote_http_has_ended(q->watch, &end, &e))
        return;
    q->watch = remote_http_close(q->watch);
    q->is_watch_over = false;
    /* Without a watch the journal is read each second. */
    q->has_more |= now - q->looked_at >= AWAY_NS;
    if (q->away_at && now - q->away_at < AWAY_NS)
        return;
    if (kube_client_version(&q->client, now, &version, &e) != 0) {
        q->away_at = now;
        q->away = e;
        return;
    }
    if (kube_client_watch(&q->client, version, on_line, q, &q->watch, &e) == 0)
        q->has_more = true;
    free(version);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void fail(struct kubernetes *q, struct store_job *job, int r, const struct err *e)
{
    if (r == KUBE_E_LOST && job->kind == STORE_JOB_COMMIT)
        job->r = err_set(&job->e, STORE_E_UNKNOWN,
            "the Kubernetes API may have done it, and has not said so: %s", err_text(e));
    else if (r == KUBE_E_AWAY || r == KUBE_E_LOST)
        job->r = err_set(&job->e, -EAGAIN, "the Kubernetes API is away: %s", err_text(e));
    else
        job->r = err_set(&job->e, r < 0 ? r : -EIO, "%s", err_text(e));
    job->revision = memory_revision(q->mirror);
    store__finish(&q->base, job);
}

/* The time until which a job may wait; an error if the server did not answer a moment ago. */
static int patience(struct kubernetes *q, nsec_t *ret_until, struct err *e)
{
    nsec_t now = clock_now();

    *ret_until = q->away_at ? now : now + REQUEST_NS;
    if (!q->away_at || now - q->away_at >= AWAY_NS)
        return 0;
    *e = q->away;
    return KUBE_E_AWAY;
}

static int note(struct kubernetes *q, int r, const struct err *e)
{
    q->away_at = r == KUBE_E_AWAY || r == KUBE_E_LOST ? clock_now() : 0;
    if (q->away_at)
        q->away = *e;
    return r;
}

static int follow(struct kubernetes *q, struct err *e)
{
    nsec_t until;
    int r = patience(q, &until, e);

    if (r != 0)
        return r;
    q->has_more = false;
    q->looked_at = clock_now();
    r = note(q, kube_log__follow(q, until, e), e);
    if (r == 0)
        store__set_current(&q->base, q->looked_at);
    q->has_more |= r != 0;
    return r;
}

static void commit(struct kubernetes *q, struct list *jobs)
{
    struct err e = ERR_NULL;
    struct store_job *job;
    nsec_t until;
    int r = patience(q, &until, &e);

    if (r == 0)
        r = note(q, kube_log__append(q, jobs, until, &e), &e);
    while ((job = list_first(jobs, struct store_job, link))) {
        list_remove(&job->link);
        fail(q, job, r, &e);
    }
}

static void do_jobs(struct kubernetes *q, struct list *jobs)
{
    struct store_job *job = list_first(jobs, struct store_job, link);
    struct err e = ERR_NULL;

    if (job->kind == STORE_JOB_COMMIT) {
        commit(q, jobs);
        return;
    }
    list_remove(&job->link);
    /* What is read is what there is when the server has said that there is nothing newer. */
    if (job->kind == STORE_JOB_GET || job->kind == STORE_JOB_LIST) {
        int r = follow(q, &e);

        if (r != 0) {
            fail(q, job, r, &e);
            return;
        }
    }
    if (job->kind == STORE_JOB_COPY) {
        job->r = err_set(&job->e, STORE_E_NO_FILES,
            "the store is in Kubernetes, namespace \"%s\": copy it with \"kubectl get "
            "records.weft.dev -o yaml\"",
            q->client.config.namespace);
        job->revision = memory_revision(q->mirror);
    } else {
        /* The mirror's log holds exactly the changes that watches were told of. */
        memory_run(q->mirror, job);
    }
    store__finish(&q->base, job);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Commits that become one entry. */
static const struct store_queue_limits limits = {
    .ops_max = STORE_OPS_MAX, .bytes_max = ENTRY_BYTES_MAX};

static void run(struct worker *w, void *ctx)
{
    struct kubernetes *q = ctx;
    struct list jobs;
    bool is_ending = false;

    list_init(&jobs);
    for (;;) {
        nsec_t now = clock_now();
        struct err e = ERR_NULL;
        bool is_idle = false;

        if (store_queue_take(w, &limits, &jobs, &is_ending)) {
            do_jobs(q, &jobs);
            continue;
        }
        if (is_ending)
            return;
        tend_watch(q, now);
        if (q->has_more || now - q->looked_at >= LOOK_NS)
            is_idle = follow(q, &e) != 0;
        else
            is_idle = q->away_at || !tidy_step(q);
        if (is_idle)
            remote_http_wait(q->client.http, worker_fd(w), WAIT_MS);
    }
}

/* ---- the owner's side ------------------------------------------------------------------------ */

static void kubernetes_free(struct store *s)
{
    struct kubernetes *q = container_of(s, struct kubernetes, base);

    s->worker = worker_stop(s->worker);
    remote_http_close(q->watch);
    kube_client_deinit(&q->client);
    store_free(q->mirror);
    free(q->clear_from);
    store__deinit(s);
    free(q);
}

static const struct store_ops kubernetes_ops = {
    .free = kubernetes_free,
    .submit = store_queue_submit,
};

/* Leases that were found inside. */
struct lease_start {
    struct kubernetes *q; /* pins */
    nsec_t now;           /* from which they count */
};

static int begin_lease(void *ctx, const struct store_item *item)
{
    const struct lease_start *ls = ctx;

    if (item->ttl_seconds == 0)
        return 0;
    return store__set_lease(&ls->q->base, item->key, item->ttl_seconds, ls->now);
}

static int begin(struct kubernetes *q, const char *where, nsec_t now, struct err *e)
{
    const struct rng rng = rng_kernel();
    int r = kube_client_init(&q->client, where, e);

    if (r != 0)
        return r;
    q->run = rng_u64(&rng);
    r = kube_log__load(q, clock_now() + OPEN_NS, e);
    if (r > 0)
        r = err_set(e, -EIO, "the Kubernetes API at \"%s\" does not answer: %s",
            q->client.config.server, err_text(e));
    if (r == 0 &&
        memory_walk(q->mirror, begin_lease, &(struct lease_start){.q = q, .now = now}) != 0)
        r = err_set(e, -ENOMEM, "no memory for a store");
    if (r != 0)
        return r;
    q->base.revision = memory_revision(q->mirror);
    return store_queue_start(&q->base.worker, run, q, e);
}

int kubernetes_open(struct store **ret, const char *where, nsec_t now, struct err *e)
{
    struct kubernetes *q = calloc(1, sizeof(*q));
    int r;

    if (!q)
        return err_set(e, -ENOMEM, "no memory for a store");
    q->client = (struct kube_client)KUBE_CLIENT_NULL;
    r = store__init(&q->base, &kubernetes_ops, e);
    q->base.is_shared = true;
    if (r == 0)
        r = begin(q, where, now, e);
    if (r != 0) {
        kubernetes_free(&q->base);
        return r;
    }
    *ret = &q->base;
    return 0;
}
