/* rdzv_job.c - see rdzv_job.h. */
#include "rendezvous/job/rdzv_job.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "os/clock.h"

/* A buffer for blobs that is larger than this is freed after use. */
#define BLOB_KEEP (64u << 10)

/* ---- saving --------------------------------------------------------------------------------- */

/* Note that the hub has to be told the job's facts. */
static void rdzv_job_changed(struct rdzv_job *job)
{
    job->has_updates = true;
    job->jobs->has_updates = true;
}

static void on_put(void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len,
    const void *p, size_t len, size_t before)
{
    struct rdzv_job *job = ctx;

    rdzv_save_blob(job->jobs->link, job->number, job->run, kind, name, name_len, p, len);
    rdzv_job_changed(job);
}

static void on_drop(
    void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len, size_t before)
{
    struct rdzv_job *job = ctx;

    if (job->is_clearing)
        return;
    rdzv_save_drop_blob(job->jobs->link, job->number, job->run, kind, name, name_len);
    rdzv_job_changed(job);
}

static void on_unsaved(void *ctx)
{
    struct rdzv_job *job = ctx;

    job->is_unsaved = true;
    job->jobs->has_unsaved = true;
}

void rdzv_jobs_flush(struct rdzv_jobs *jobs)
{
    struct rdzv_job *job;

    if (jobs->has_unsaved) {
        jobs->has_unsaved = false;
        list_foreach(job, &jobs->all, link) {
            if (!job->is_unsaved)
                continue;
            job->is_unsaved = false;
            (void)tcpstore_server_flush(&job->tcpstore, SIZE_MAX);
        }
    }
    rdzv_link_flush(jobs->link);
}

/* ---- life ----------------------------------------------------------------------------------- */

void rdzv_jobs_init(struct rdzv_jobs *jobs, struct rdzv_link *link, uint64_t seed)
{
    *jobs = (struct rdzv_jobs){.link = link,
        .seed = seed,
        .quota = {.bytes_max = RDZV_NETWORK_BYTES_MAX, .entries_max = RDZV_NETWORK_ENTRIES_MAX},
        .expires_at = NSEC_NEVER};
    list_init(&jobs->all);
}

struct rdzv_job *rdzv_job_new(struct rdzv_jobs *jobs, const struct rdzv_wire *m, nsec_t now)
{
    struct rdzv_job *job = m->len <= NAME_MAX_LEN ? calloc(1, sizeof(*job)) : NULL;
    struct rdzv_saver saver = {.ctx = job, .unsaved = on_unsaved, .put = on_put, .drop = on_drop};

    if (!job)
        return NULL;
    job->jobs = jobs;
    job->number = m->job;
    job->run = m->run;
    job->port = m->port;
    job->etcd_port = m->etcd_port;
    job->heard_at = now;
    memcpy(job->name, m->data, m->len);
    job->quota = (struct rdzv_quota){.parent = &jobs->quota,
        .bytes_max = RDZV_JOB_BYTES_MAX,
        .entries_max = RDZV_JOB_ENTRIES_MAX};
    list_init(&job->conns);
    tcpstore_server_init(&job->tcpstore, &saver, &job->quota, jobs->seed);
    if (etcd2_tree_init(&job->etcd2, &saver, &job->quota) != 0) {
        free(job);
        return NULL;
    }
    job->when_empty = job->quota;
    list_add_tail(&jobs->all, &job->link);
    return job;
}

void rdzv_job_free(struct rdzv_job *job)
{
    assert(list_is_empty(&job->conns));
    job->is_clearing = true;
    tcpstore_server_deinit(&job->tcpstore);
    etcd2_tree_deinit(&job->etcd2);
    list_remove(&job->link);
    free(job);
}

void rdzv_job_clear(struct rdzv_job *job, uint32_t run, nsec_t now)
{
    assert(list_is_empty(&job->conns));
    job->is_clearing = true;
    tcpstore_server_clear(&job->tcpstore);
    etcd2_tree_clear(&job->etcd2);
    job->is_clearing = false;
    job->run = run;
    job->heard_at = now;
    /* The index goes on from run to run, but the hub has dropped its blob with all others. */
    if (job->etcd2.index > 0)
        etcd2_index_save(&job->etcd2.nodes, job->etcd2.index);
    rdzv_job_changed(job);
}

/* ---- loading -------------------------------------------------------------------------------- */

static int load(struct rdzv_job *job, enum rdzv_key_kind kind, const struct rdzv_hash *hash,
    struct etcd2_when when, struct err *e)
{
    const struct str *blob = &job->jobs->blob;

    if (blob->failed || blob->len > RDZV_BLOB_MAX)
        return err_set(e, -EINVAL, "it is longer than %u bytes", RDZV_BLOB_MAX);
    return kind == RDZV_KEY_ENTRY
               ? tcpstore_server_load(&job->tcpstore, str_text(blob), blob->len, hash, e)
               : etcd2_tree_load(&job->etcd2, str_text(blob), blob->len, hash, when, e);
}

void rdzv_job_load(struct rdzv_job *job, const struct rdzv_wire *m, struct etcd2_when when)
{
    struct str *blob = &job->jobs->blob;
    struct rdzv_wire damaged = *m;
    struct err e = ERR_NULL;

    str_add_bytes(blob, (const char *)m->data, m->len);
    if (m->has_more)
        return;
    if (load(job, m->kind, &m->hash, when, &e) != 0) {
        damaged.type = RDZV_WIRE_DAMAGED;
        damaged.data = (const uint8_t *)err_text(&e);
        damaged.len = strlen(err_text(&e));
        rdzv_link_say(job->jobs->link, &damaged);
    }
    if (blob->failed || blob->cap > BLOB_KEEP)
        str_deinit(blob);
    blob->failed = false;
    blob->len = 0;
}

/* ---- facts ---------------------------------------------------------------------------------- */

void rdzv_job_note_expiry(struct rdzv_job *job)
{
    job->jobs->expires_at = nsec_min(heap_due(&job->etcd2.nodes.ttls), job->jobs->expires_at);
}

/* ==== members' connections =================================================================== */

/* TCP's keepalive: after a minute of silence the other end is probed, then each half minute; six
 * minutes without an answer end the connection. A client of a store may be silent for hours, and a
 * node may be unreachable for minutes, while its job goes on. */
#define KEEPALIVE_IDLE_S 60
#define KEEPALIVE_EACH_S 30
#define KEEPALIVE_PROBES 10
#define TCP_GIVE_UP_MS   360000

/* Silent connections that are judged in one call. Each takes a walk through its job's. */
#define JUDGED_AT_ONCE 256

void rdzv_conns_init(struct rdzv_conns *conns, struct uv_loop_s *loop, uint64_t seed)
{
    *conns = (struct rdzv_conns){.loop = loop};
    list_init(&conns->silent);
    admission_init(&conns->admission, RDZV_CONNECTIONS_MAX, RDZV_CONNECTIONS_MAX_BY_MEMBER, seed);
}

/* The address under which admission.h counts a member. For IPv6 it counts by the first half of an
 * address, which is the same for all members, so the second half is put in its place. */
static struct ip_addr counted(const struct ip_addr *from)
{
    struct ip_addr a = *from;

    if (!ip_addr_is_v4(from))
        memcpy(a.b, from->b + 8, 8);
    return a;
}

/* ---- beginning ------------------------------------------------------------------------------ */

static void set_options(int fd)
{
    static const struct {
        int level;
        int name;
        int value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EACH_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, TCP_GIVE_UP_MS},
    };

    /* Answers are right without any of these options, so failures are ignored. */
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

struct rdzv_conn *rdzv_conn_new(
    struct rdzv_conns *conns, struct rdzv_job *job, int fd, const struct ip_addr *from, nsec_t now)
{
    struct admission *a = &conns->admission;
    struct ip_addr who = counted(from);
    struct rdzv_conn *c = NULL;
    bool is_in;

    /* A member may have more connections while there are many for the others. */
    a->max_by_address =
        a->n < a->max / 2 ? RDZV_CONNECTIONS_MAX_OF_MANY : RDZV_CONNECTIONS_MAX_BY_MEMBER;
    is_in = admission_enter(a, &who);
    if (is_in)
        c = calloc(1, sizeof(*c));
    if (!c) {
        if (is_in)
            admission_leave(a, &who);
        conns->n_hung_up++;
        (void)close(fd);
        return NULL;
    }
    set_options(fd);
    c->conns = conns;
    c->job = job;
    c->fd = fd;
    c->from = *from;
    c->judged_at = now;
    /* Cannot fail on a descriptor that is open and watched by nobody else. */
    (void)uv_poll_init(conns->loop, &c->poll, fd);
    c->poll.data = c;
    list_add_tail(&job->conns, &c->link);
    list_add_tail(&conns->silent, &c->silent);
    job->heard_at = now;
    rdzv_job_changed(job);
    return c;
}

bool rdzv_conn_charge(struct rdzv_conn *c, size_t cost)
{
    if (!rdzv_quota_has(&c->job->jobs->quota, cost, 0)) {
        rdzv_quota_refuse(&c->job->quota, "the network has no room for a connection");
        return false;
    }
    rdzv_quota_take(&c->job->jobs->quota, cost, 0);
    c->charged += cost;
    return true;
}

void rdzv_conn_poll(struct rdzv_conn *c, int events, uv_poll_cb cb)
{
    if (c->events == events || uv_is_closing((uv_handle_t *)&c->poll))
        return;
    c->events = events;
    if (events == 0)
        (void)uv_poll_stop(&c->poll);
    else
        (void)uv_poll_start(&c->poll, events, cb);
}

/* ---- ending --------------------------------------------------------------------------------- */

static void on_conn_closed(uv_handle_t *h)
{
    struct rdzv_conn *c = container_of((uv_poll_t *)h, struct rdzv_conn, poll);

    if (c->protocol)
        c->protocol->free(c);
    if (c->fd >= 0)
        (void)close(c->fd);
    free(c);
}

void rdzv_conn_close(struct rdzv_conn *c)
{
    if (!uv_is_closing((uv_handle_t *)&c->poll))
        uv_close((uv_handle_t *)&c->poll, on_conn_closed);
}

void rdzv_conn_detach(struct rdzv_conn *c)
{
    struct ip_addr who = counted(&c->from);

    if (!c->job)
        return;
    if (c->protocol)
        c->protocol->detach(c);
    rdzv_quota_give(&c->job->jobs->quota, c->charged, 0);
    c->charged = 0;
    list_remove(&c->silent);
    rdzv_job_changed(c->job);
    admission_leave(&c->conns->admission, &who);
    c->job->heard_at = clock_now();
    list_remove(&c->link);
    c->job = NULL;
}

void rdzv_conn_hang_up(struct rdzv_conn *c)
{
    if (!c->job)
        return;
    rdzv_conn_detach(c);
    if (c->protocol && c->protocol->end)
        c->protocol->end(c);
    else
        rdzv_conn_close(c);
}

/* Has its member no more silent ones than others in the job? */
static bool is_second(const struct rdzv_conn *c)
{
    const struct rdzv_conn *other;
    unsigned n_speaking = 0;
    unsigned n_silent = 1;

    list_foreach(other, &c->job->conns, link) {
        if (other == c || !ip_addr_equal(&other->from, &c->from))
            continue;
        n_speaking += other->protocol != NULL;
        n_silent += !other->protocol && other->charged > 0;
    }
    return n_silent <= n_speaking;
}

void rdzv_conns_hang_up_silent(struct rdzv_conns *conns, nsec_t now)
{
    const struct admission *a = &conns->admission;
    struct rdzv_conn *c;

    for (unsigned i = 0; i < JUDGED_AT_ONCE; i++) {
        bool is_nearly_full = a->n >= a->max - a->max / 8;

        c = list_first(&conns->silent, struct rdzv_conn, silent);
        if (!c || now - c->judged_at <= RDZV_SILENT_MAX)
            return;
        if ((!is_nearly_full || is_second(c)) &&
            (c->charged > 0 || rdzv_conn_charge(c, RDZV_COST_CONN))) {
            c->judged_at = now;
            list_remove(&c->silent);
            list_add_tail(&conns->silent, &c->silent);
            continue;
        }
        conns->n_hung_up++;
        rdzv_conn_hang_up(c);
    }
}

void rdzv_conns_hang_up(struct rdzv_job *job, const struct ip_addr *from)
{
    struct rdzv_conn *c;
    struct rdzv_conn *tmp;

    list_foreach_safe(c, tmp, &job->conns, link) {
        if (!from || ip_addr_equal(&c->from, from))
            rdzv_conn_hang_up(c);
    }
}
