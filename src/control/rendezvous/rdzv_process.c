/* rdzv_process.c - see rdzv_process.h: the loop of a rendezvous process, and what the hub says. */
#include "rdzv_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/rng.h"
#include "rendezvous/rdzv_internal.h"
#include "os/clock.h"
#include "os/rng_kernel.h"

#define TICK_MS 1000

struct rdzv_member {
    struct htab_link link; /* in the network's */
    struct ip_addr address;
};

/* ---- members -------------------------------------------------------------------------------- */

static struct rdzv_member *find_member(
    const struct rdzv_network *n, const struct ip_addr *address, uint64_t hash)
{
    for (struct htab_link *l = htab_first(&n->members, hash); l; l = htab_next(l, hash)) {
        struct rdzv_member *m = container_of(l, struct rdzv_member, link);

        if (ip_addr_equal(&m->address, address))
            return m;
    }
    return NULL;
}

static uint64_t hash_of(const struct rdzv_network *n, const struct ip_addr *address)
{
    return hash_bytes(n->members.seed, address, sizeof(*address));
}

bool rdzv__is_member(const struct rdzv_network *n, const struct ip_addr *address)
{
    return find_member(n, address, hash_of(n, address)) != NULL;
}

static void add_member(struct rdzv *rz, const struct ip_addr *address)
{
    uint64_t hash = hash_of(&rz->network, address);
    struct rdzv_member *m;

    if (find_member(&rz->network, address, hash))
        return;
    m = calloc(1, sizeof(*m));
    if (!m || htab_add(&rz->network.members, &m->link, hash) != 0) {
        free(m);
        return;
    }
    m->address = *address;
}

static void remove_member(struct rdzv *rz, const struct ip_addr *address)
{
    struct rdzv_member *m = find_member(&rz->network, address, hash_of(&rz->network, address));
    struct rdzv_job *job;

    if (m) {
        htab_remove(&rz->network.members, &m->link);
        free(m);
    }
    list_foreach(job, &rz->network.jobs, link)
        rdzv__hang_up_all(job, address);
}

static void forget_members(struct rdzv *rz)
{
    struct htab_link *next;
    size_t cursor = 0;

    for (struct htab_link *l = htab_each(&rz->network.members, &cursor, NULL); l; l = next) {
        next = htab_each(&rz->network.members, &cursor, l);
        htab_remove(&rz->network.members, l);
        free(container_of(l, struct rdzv_member, link));
    }
    htab_deinit(&rz->network.members);
}

/* ---- times to live -------------------------------------------------------------------------- */

static void on_ttl(uv_timer_t *timer)
{
    struct rdzv *rz = container_of(timer, struct rdzv, ttl);
    struct rdzv_when when = {.now = clock_now(), .wall = clock_wall()};
    struct rdzv_job *job;

    list_foreach(job, &rz->network.jobs, link) {
        rdzv_tree_expire(&job->tree, when);
        rdzv__arm_ttl(job);
    }
}

void rdzv__arm_ttl(struct rdzv_job *job)
{
    uv_timer_t *timer = &job->rz->ttl;
    nsec_t left = rdzv_tree_due(&job->tree);
    uint64_t ms;

    if (left == NSEC_NEVER || job->rz->is_ending)
        return;
    left -= clock_now();
    ms = left > 0 ? (uint64_t)(left / NSEC_PER_MSEC) + 1 : 0;
    if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > ms)
        (void)uv_timer_start(timer, on_ttl, ms, 0);
}

/* ---- what the hub says ---------------------------------------------------------------------- */

static void begin(struct rdzv *rz, const struct rdzv_wire *m)
{
    struct rdzv_network *n = &rz->network;

    if (m->len > NAME_MAX_LEN)
        return;
    memcpy(n->name, m->data, m->len);
    n->address4 = m->address;
    n->address6 = m->address6;
}

static void on_job(struct rdzv_job *job, const struct rdzv_wire *m, int fd)
{
    if (m->type == RDZV_WIRE_LOAD)
        rdzv__job_load(job, m);
    if (m->type == RDZV_WIRE_CLEAR)
        rdzv__job_clear(job, m->run);
    if (m->type == RDZV_WIRE_FORGET)
        rdzv__job_free(job);
    if (m->type == RDZV_WIRE_LISTENER) {
        rdzv__listen(job, fd);
        rdzv__arm_ttl(job);
    }
}

static void on_told(void *ctx, const struct rdzv_wire *m, int fd)
{
    struct rdzv *rz = ctx;
    struct rdzv_job *job;

    switch (m->type) {
    case RDZV_WIRE_NETWORK:
        begin(rz, m);
        return;
    case RDZV_WIRE_JOB:
        /* Without one of its jobs it would be half a rendezvous: the next has more luck. */
        if (!rdzv__job_new(rz, m))
            rz->link.failed = true;
        return;
    case RDZV_WIRE_MEMBER:
        add_member(rz, &m->address);
        return;
    case RDZV_WIRE_NO_MEMBER:
        remove_member(rz, &m->address);
        return;
    case RDZV_WIRE_SAVED:
        rdzv_save_on_saved(&rz->save, m->seq, m->error);
        return;
    case RDZV_WIRE_END:
        rz->is_ending = true;
        return;
    case RDZV_WIRE_LOAD:
    case RDZV_WIRE_LISTENER:
    case RDZV_WIRE_CLEAR:
    case RDZV_WIRE_FORGET:
        job = rdzv__find_job(rz, m->job);
        if (job)
            on_job(job, m, fd);
        else if (fd >= 0)
            (void)close(fd);
        return;
    case RDZV_WIRE_NONE:
    case RDZV_WIRE_PUT:
    case RDZV_WIRE_DROP:
    case RDZV_WIRE_SYNC:
    case RDZV_WIRE_FACTS:
    case RDZV_WIRE_COUNTS:
    case RDZV_WIRE_DAMAGED:
    case RDZV_WIRE_N:
        return;
    }
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void on_hub(uv_poll_t *poll, int status, int events)
{
    rdzv_link_read(&container_of(poll, struct rdzv, hub)->link);
}

static void tell_counts(struct rdzv *rz)
{
    rdzv_link_say(&rz->link, &(struct rdzv_wire){.type = RDZV_WIRE_COUNTS,
                                 .n_connections = rz->network.admission.n,
                                 .n_store_requests = rz->n_requests,
                                 .n_etcd_requests = rz->http.n_requests,
                                 .n_hung_up = rz->n_hung_up,
                                 .n_accepts_deferred = rz->n_accepts_deferred});
}

static void on_tick(uv_timer_t *timer)
{
    struct rdzv *rz = container_of(timer, struct rdzv, tick);
    nsec_t now = clock_now();
    struct rdzv_job *job;

    rdzv__hang_up_silent(rz, now);
    rdzv_http_tick(&rz->http, now);
    list_foreach(job, &rz->network.jobs, link)
        rdzv__tell_facts(job, now);
    tell_counts(rz);
}

static void close_handle(void *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void stop(struct rdzv *rz)
{
    struct rdzv_job *job;

    rz->is_ending = true;
    list_foreach(job, &rz->network.jobs, link)
        rdzv__unlisten(job);
    rdzv_http_stop(&rz->http);
    close_handle(&rz->hub);
    close_handle(&rz->turn);
    close_handle(&rz->tick);
    close_handle(&rz->facts);
    close_handle(&rz->ttl);
    close_handle(&rz->retry);
    close_handle(&rz->later);
}

/* Before the loop waits: all that was said in this turn goes to the hub. */
static void on_turn(uv_prepare_t *prepare)
{
    struct rdzv *rz = container_of(prepare, struct rdzv, turn);

    rdzv__flush(rz);
    if (rz->link.failed || rz->is_ending)
        stop(rz);
}

static int start(struct rdzv *rz, int fd, struct err *e)
{
    int r = rdzv_link_init(&rz->link, fd);
    struct rng rng;

    if (r == 0)
        r = uv_loop_init(&rz->loop);
    if (r != 0)
        return err_set(e, r, "no memory for a rendezvous");
    rng = rng_kernel();
    rz->seed = rng_u64(&rng);
    rz->link.ctx = rz;
    rz->link.told = on_told;
    rdzv_save_init(&rz->save, &rz->link);
    list_init(&rz->network.jobs);
    list_init(&rz->silent);
    htab_init(&rz->network.members, rz->seed);
    admission_init(
        &rz->network.admission, RDZV_CONNECTIONS_MAX, RDZV_CONNECTIONS_MAX_BY_MEMBER, rz->seed);
    rz->network.quota = (struct rdzv_quota){
        .bytes_max = RDZV_NETWORK_BYTES_MAX, .entries_max = RDZV_NETWORK_ENTRIES_MAX};
    rdzv__store_start(rz);
    r = rdzv_http_start(&rz->http, &rz->loop, e);
    if (r != 0)
        return r;
    (void)uv_poll_init(&rz->loop, &rz->hub, fd);
    (void)uv_prepare_init(&rz->loop, &rz->turn);
    (void)uv_timer_init(&rz->loop, &rz->tick);
    (void)uv_timer_init(&rz->loop, &rz->facts);
    (void)uv_timer_init(&rz->loop, &rz->ttl);
    (void)uv_timer_init(&rz->loop, &rz->retry);
    (void)uv_poll_start(&rz->hub, UV_READABLE, on_hub);
    (void)uv_prepare_start(&rz->turn, on_turn);
    (void)uv_timer_start(&rz->tick, on_tick, TICK_MS, TICK_MS);
    return 0;
}

int rdzv_process_run(int fd, struct err *e)
{
    struct rdzv *rz = calloc(1, sizeof(*rz));
    struct rdzv_job *job;
    struct rdzv_job *tmp;
    int r = rz ? start(rz, fd, e) : err_set(e, -ENOMEM, "no memory for a rendezvous");

    if (r != 0) {
        free(rz);
        return r;
    }
    (void)uv_run(&rz->loop, UV_RUN_DEFAULT);
    list_foreach_safe(job, tmp, &rz->network.jobs, link)
        rdzv__job_free(job);
    (void)uv_loop_close(&rz->loop);
    forget_members(rz);
    admission_deinit(&rz->network.admission);
    rdzv_link_deinit(&rz->link);
    str_deinit(&rz->blob);
    free(rz);
    return 0;
}
