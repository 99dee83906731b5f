/* rdzv_process.c - see rdzv_process.h: its confinement, its loop, and what the hub tells it. */
#include "rendezvous/process/rdzv_process.h"

#include <errno.h>
#include <grp.h>
#include <jansson.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/version.h"
#include "net/address/sockaddr.h"
#include "os/clock.h"
#include "os/sandbox.h"
#include "rendezvous/job/rdzv_link.h"

/* Limit of the process' data, bytes (RLIMIT_DATA); rdzv_quota.h has what it is used for. */
#define RDZV_MEMORY_MAX (112u << 20)

/* Limit of its descriptors: connections, 256 jobs with two ports on two addresses each, the same
 * for a member on the hub's own machine, and its own. */
#define RDZV_FILES_MAX (RDZV_CONNECTIONS_MAX + 2048)

/* ==== the ports of jobs ====================================================================== */

/*
 * Accepts connections, and gives each to the protocol that it speaks.
 *
 * A port serves both protocols: the first byte of a connection says which. HTTP begins with a
 * capital letter, a TCPStore's request with a number below 32.
 *
 * Theory of operation. The hub's messages are read before connections are accepted, so that a
 * client which the hub has sent here finds what the hub told before that. Such a message may end
 * the job, and the listener with it.
 *
 * Threads: the process has one.
 */

/** A job has at most two ports, each on two addresses, and both for the hub's own machine too. */
#define RDZV_LISTEN_MAX 8

/* Most connections that are accepted in one turn of the loop. */
#define TAKE_AT_ONCE 64

/* Time until the next try to accept after descriptors ran out. */
#define RETRY_MS 100

/** The process. It carries facts between the parts, each of which has its own header. */
struct process {
    struct uv_loop_s loop;          /* owns */
    struct rdzv_link link;          /* to the hub */
    struct rdzv_jobs jobs;          /* of the network whose rendezvous this is */
    struct keys members;            /* who may connect: overlay addresses, as the hub says */
    struct rdzv_conns conns;        /* their connections */
    struct tcpstore_conns tcpstore; /* the connections that speak TCPStore */
    struct etcd2_http http;         /* the connections that speak HTTP */
    struct list listeners;          /* of struct rdzv_listener */
    uv_timer_t retry;               /* until accepting again, after descriptors ran out */
    uint64_t n_deferred;            /* how often accepting had to wait for want of descriptors */
    uv_poll_t hub;                  /* of the link's descriptor */
    uv_prepare_t turn;              /* at the end of each turn of the loop */
    uv_timer_t tick;                /* each second */
    uv_timer_t facts;               /* until the hub is told new facts of jobs */
    uv_timer_t ttl;                 /* until the next node of some tree ends */
    bool is_ending;                 /* the hub has told it to end, or is gone */
};

struct rdzv_listener {
    struct list link;     /* in process.listeners, while it is open */
    struct process *p;    /* pins */
    struct rdzv_job *job; /* pins, while it is open */
    int fd;               /* owns */
    uv_poll_t poll;       /* of the descriptor; its close frees this */
};

/* ---- connections ---------------------------------------------------------------------------- */

static void on_first(uv_poll_t *poll, int status, int events);

/* Begins a connection at @fd, which is taken. One that is not from a member's address is closed. */
static void take_connection(struct rdzv_listener *li, int fd, const struct ip_addr *from)
{
    char address[IP_ADDR_TEXT_MAX];
    struct rdzv_conn *c;

    if (!keys_find(&li->p->members, ip_addr_format(from, address))) {
        li->p->conns.n_hung_up++;
        (void)close(fd);
        return;
    }
    c = rdzv_conn_new(&li->p->conns, li->job, fd, from, clock_now());
    if (!c)
        return;
    /* on_first() needs it; the protocol sets its own state later. */
    c->state = li->p;
    rdzv_conn_poll(c, UV_READABLE, on_first);
}

/* The first byte has come, or the end: finds out which protocol the connection speaks. */
static void on_first(uv_poll_t *poll, int status, int events)
{
    struct rdzv_conn *c = poll->data;
    struct process *p = c->state;
    uint8_t first;
    ssize_t n = recv(c->fd, &first, 1, MSG_PEEK);
    size_t charged;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    list_remove(&c->silent);
    /* One that was silent for long is charged for already. */
    charged = c->charged;
    if (n == 1 && first < ' ' && rdzv_conn_charge(c, RDZV_COST_CONN - charged))
        tcpstore_conn_begin(&p->tcpstore, c);
    else if (n == 1 && first >= 'A' && first <= 'Z' &&
             rdzv_conn_charge(c, RDZV_COST_CONN + RDZV_COST_HTTP - charged))
        etcd2_http_begin(&p->http, c);
    else
        rdzv_conn_hang_up(c);
}

/* ---- accepting ------------------------------------------------------------------------------ */

static void on_connectable(uv_poll_t *poll, int status, int events);

static void on_retry(uv_timer_t *timer)
{
    struct process *p = container_of(timer, struct process, retry);
    struct rdzv_listener *li;

    list_foreach(li, &p->listeners, link)
        (void)uv_poll_start(&li->poll, UV_READABLE, on_connectable);
}

static void on_connectable(uv_poll_t *poll, int status, int events)
{
    struct rdzv_listener *li = poll->data;

    rdzv_link_read(&li->p->link);
    for (int i = 0; i < TAKE_AT_ONCE && !uv_is_closing((uv_handle_t *)poll); i++) {
        struct endpoint from = {0};
        union sockaddr_inet sa;
        socklen_t len = sizeof(sa);
        int fd = accept4(li->fd, &sa.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

        /* When there is no free descriptor, the socket stays readable. It is not polled for a while
         * then, or the loop would do nothing else. */
        if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            li->p->n_deferred++;
            (void)uv_poll_stop(&li->poll);
            if (!uv_is_active((uv_handle_t *)&li->p->retry))
                (void)uv_timer_start(&li->p->retry, on_retry, RETRY_MS, 0);
        }
        if (fd < 0)
            return;
        (void)sockaddr_to_endpoint(&sa, &from);
        take_connection(li, fd, &from.addr);
    }
}

/* ---- sockets -------------------------------------------------------------------------------- */

static void on_listener_closed(uv_handle_t *h)
{
    free(container_of((uv_poll_t *)h, struct rdzv_listener, poll));
}

/* Serve the job at @fd, a listening socket, which is taken. */
static void listen_add(struct process *p, struct rdzv_job *job, int fd)
{
    struct rdzv_listener *li;
    unsigned n = 0;

    list_foreach(li, &p->listeners, link)
        n += li->job == job;
    li = n < RDZV_LISTEN_MAX ? calloc(1, sizeof(*li)) : NULL;
    if (!li) {
        (void)close(fd);
        return;
    }
    li->p = p;
    li->job = job;
    li->fd = fd;
    (void)uv_poll_init(&p->loop, &li->poll, fd);
    li->poll.data = li;
    (void)uv_poll_start(&li->poll, UV_READABLE, on_connectable);
    list_add_tail(&p->listeners, &li->link);
}

/* Close a job's sockets, at once, and its connections. */
static void unserve(struct process *p, struct rdzv_job *job)
{
    struct rdzv_listener *li;
    struct rdzv_listener *tmp;

    list_foreach_safe(li, tmp, &p->listeners, link) {
        if (li->job != job)
            continue;
        list_remove(&li->link);
        uv_close((uv_handle_t *)&li->poll, on_listener_closed);
        /* At once, since another network may need the address in this turn of the loop. */
        (void)close(li->fd);
    }
    rdzv_conns_hang_up(job, NULL);
}

/* ==== the process ============================================================================ */

#define TICK_MS 1000

/* How long the hub is not told a job's new facts, so that several changes become one message. */
#define FACTS_MS 20

/* The user "nobody" and the group "nogroup" on every distribution. */
#define NOBODY 65534

/* The hub and the data planes of all networks get processor time before this process. */
#define NICE 5

/* Memory of longer values is given back to the kernel when they are freed. */
#define MAP_FROM (64 << 10)

/* ---- confinement ----------------------------------------------------------------------------- */

static int fail(const char *what, struct err *e)
{
    return err_set(e, -errno, "a rendezvous cannot %s: %s", what, strerror(errno));
}

static int limit_resources(struct err *e)
{
    static const struct {
        __rlimit_resource_t resource;
        rlim_t max;
    } limits[] = {
        {RLIMIT_DATA, RDZV_MEMORY_MAX},
        {RLIMIT_NOFILE, RDZV_FILES_MAX},
        {RLIMIT_NPROC, 0},
        {RLIMIT_MEMLOCK, 0},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        struct rlimit now;

        /* A sanitizer maps more than that when the process starts. */
        if (HAS_SANITIZER && limits[i].resource == RLIMIT_DATA)
            continue;
        if (getrlimit(limits[i].resource, &now) < 0)
            return fail("learn its limits", e);
        if (now.rlim_max > limits[i].max)
            now.rlim_max = limits[i].max;
        now.rlim_cur = now.rlim_max;
        if (setrlimit(limits[i].resource, &now) < 0)
            return fail("limit itself", e);
    }
    (void)mallopt(M_MMAP_THRESHOLD, MAP_FROM);
    (void)mallopt(M_ARENA_MAX, 1);
    return 0;
}

/* A container's root may lack CAP_SETUID. It then stays the user 0, which without any capability
 * and without calls that open files has no more rights than another. */
static int become_nobody(struct err *e)
{
    if (geteuid() != 0)
        return 0;
    if (setgroups(0, NULL) < 0 && errno == EPERM)
        return 0;
    if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
        return fail("become another user", e);
    return 0;
}

/*
 * Gives up what the process does not need, for good, before it reads the first byte from a member.
 * It ends with its parent, cannot be traced, leaves no core file, keeps no capability and cannot
 * gain one, and is bounded in memory and descriptors. As root it becomes the user "nobody" if it
 * may.
 */
static int confine(struct err *e)
{
    struct sandbox sandbox = {.kind = SANDBOX_RENDEZVOUS};
    struct rng rng = rng_kernel();
    pid_t parent = getppid();
    int r;

    /* The C library and jansson open files when they are first used, which the sandbox forbids
     * later. */
    tzset();
    json_object_seed((size_t)rng_u64(&rng) | 1);
    r = limit_resources(e);
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    /* What ends the hub comes to all its processes, be it from a service manager or a terminal; a
     * hub that still runs would take this one's end for a failure. */
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    /* No program that might be started from here may get capabilities. It takes CAP_SETPCAP, so it
     * comes before the change of user. Without that capability no_new_privs has the same effect. */
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    if (r == 0)
        r = become_nobody(e);
    if (r != 0)
        return r;
    /* The change of user would undo this, so it comes after. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return fail("end with its hub", e);
    /* If the hub has ended before the call above, no signal comes. */
    if (getppid() != parent)
        return err_set(e, -ESRCH, "the hub of a rendezvous has ended");
    /* It has become who it is to be. */
    sandbox.uid = geteuid();
    sandbox.gid = getegid();
    return sandbox_enter(&sandbox, NULL, e);
}

/* ---- times to live -------------------------------------------------------------------------- */

static void on_ttl(uv_timer_t *timer)
{
    struct process *p = container_of(timer, struct process, ttl);
    struct etcd2_when when = {.now = clock_now(), .wall = clock_wall()};
    struct rdzv_job *job;

    list_foreach(job, &p->jobs.all, link) {
        etcd2_tree_expire(&job->etcd2, when);
        rdzv_job_note_expiry(job);
    }
}

/* Sets the timer earlier if some node ends before it. */
static void arm_ttl(struct process *p)
{
    nsec_t left = p->jobs.expires_at;
    uint64_t ms;

    if (left == NSEC_NEVER)
        return;
    p->jobs.expires_at = NSEC_NEVER;
    left -= clock_now();
    ms = left > 0 ? (uint64_t)(left / NSEC_PER_MSEC) + 1 : 0;
    if (!uv_is_active((uv_handle_t *)&p->ttl) || uv_timer_get_due_in(&p->ttl) > ms)
        (void)uv_timer_start(&p->ttl, on_ttl, ms, 0);
}

/* ---- what the hub is told ------------------------------------------------------------------- */

/* Tell the hub the job's facts, RDZV_WIRE_FACTS, if it does not know some. */
static void tell_facts(struct rdzv_job *job, nsec_t now)
{
    struct rdzv_wire m = {.type = RDZV_WIRE_FACTS,
        .job = job->number,
        .run = job->run,
        .quiet_ms = (uint64_t)((now - job->heard_at) / NSEC_PER_MSEC),
        .n_keys = job->quota.entries - job->when_empty.entries,
        .n_bytes = job->quota.bytes - job->when_empty.bytes,
        .n_refused = job->quota.n_refused};
    struct rdzv_conn *c;

    if (!job->has_updates && job->heard_at == job->reported_heard_at &&
        job->quota.n_refused == job->reported_refused)
        return;
    list_foreach(c, &job->conns, link) {
        m.n_connections++;
        if (m.n_members == 0)
            m.address = c->from;
        if (m.n_members < 2 && (m.n_members == 0 || !ip_addr_equal(&m.address, &c->from)))
            m.n_members++;
    }
    job->has_updates = false;
    job->reported_heard_at = job->heard_at;
    job->reported_refused = job->quota.n_refused;
    if (job->quota.last_refusal) {
        m.data = (const uint8_t *)job->quota.last_refusal;
        m.len = strlen(job->quota.last_refusal);
    }
    rdzv_link_say(job->jobs->link, &m);
}

static void on_facts(uv_timer_t *timer)
{
    struct process *p = container_of(timer, struct process, facts);
    nsec_t now = clock_now();
    struct rdzv_job *job;

    p->jobs.has_updates = false;
    list_foreach(job, &p->jobs.all, link) {
        if (job->has_updates)
            tell_facts(job, now);
    }
}

/* ---- what the hub says ---------------------------------------------------------------------- */

static void remove_member(struct process *p, const struct ip_addr *address)
{
    char text[IP_ADDR_TEXT_MAX];
    struct keyed *member = keys_find(&p->members, ip_addr_format(address, text));
    struct rdzv_job *job;

    if (member)
        keys_free(&p->members, member);
    list_foreach(job, &p->jobs.all, link)
        rdzv_conns_hang_up(job, address);
}

static void on_job(struct process *p, struct rdzv_job *job, const struct rdzv_wire *m, int fd)
{
    struct etcd2_when when = {.now = clock_now(), .wall = clock_wall()};

    if (m->type == RDZV_WIRE_LOAD)
        rdzv_job_load(job, m, when);
    if (m->type == RDZV_WIRE_CLEAR) {
        rdzv_conns_hang_up(job, NULL);
        rdzv_job_clear(job, m->run, when.now);
    }
    if (m->type == RDZV_WIRE_FORGET) {
        unserve(p, job);
        rdzv_job_free(job);
    }
    if (m->type == RDZV_WIRE_LISTENER) {
        listen_add(p, job, fd);
        rdzv_job_note_expiry(job);
    }
}

/* Lends the job of that number; NULL if there is none. */
static struct rdzv_job *find_job(struct rdzv_jobs *jobs, uint32_t number)
{
    struct rdzv_job *job;

    /* O(jobs): a network has at most 256, and the hub does not ask often. */
    list_foreach(job, &jobs->all, link) {
        if (job->number == number)
            return job;
    }
    return NULL;
}

static void on_message(void *ctx, const struct rdzv_wire *m, int fd)
{
    struct process *p = ctx;
    char address[IP_ADDR_TEXT_MAX];
    struct rdzv_job *job;

    switch (m->type) {
    case RDZV_WIRE_NETWORK:
        if (m->len > NAME_MAX_LEN)
            return;
        memcpy(p->jobs.network, m->data, m->len);
        p->jobs.address4 = m->address;
        p->jobs.address6 = m->address6;
        return;
    case RDZV_WIRE_JOB:
        /* A job that cannot be served ends the process, and the hub starts another one. */
        if (!rdzv_job_new(&p->jobs, m, clock_now()))
            p->link.failed = true;
        return;
    case RDZV_WIRE_MEMBER:
        /* Without memory for it the member may not connect. */
        (void)keys_open(&p->members, ip_addr_format(&m->address, address), sizeof(struct keyed));
        return;
    case RDZV_WIRE_NO_MEMBER:
        remove_member(p, &m->address);
        return;
    case RDZV_WIRE_SAVED:
        rdzv_save_on_saved(&p->link, m->seq, m->error);
        return;
    case RDZV_WIRE_END:
        p->is_ending = true;
        return;
    case RDZV_WIRE_LOAD:
    case RDZV_WIRE_LISTENER:
    case RDZV_WIRE_CLEAR:
    case RDZV_WIRE_FORGET:
        job = find_job(&p->jobs, m->job);
        if (job)
            on_job(p, job, m, fd);
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
    rdzv_link_read(&container_of(poll, struct process, hub)->link);
}

static void on_tick(uv_timer_t *timer)
{
    struct process *p = container_of(timer, struct process, tick);
    nsec_t now = clock_now();
    struct rdzv_job *job;

    rdzv_conns_hang_up_silent(&p->conns, now);
    etcd2_http_tick(&p->http, now);
    list_foreach(job, &p->jobs.all, link)
        tell_facts(job, now);
    rdzv_link_say(&p->link, &(struct rdzv_wire){.type = RDZV_WIRE_COUNTS,
                                .n_connections = p->conns.admission.n,
                                .n_store_requests = p->tcpstore.n_requests,
                                .n_etcd_requests = p->http.n_requests,
                                .n_hung_up = p->conns.n_hung_up,
                                .n_accepts_deferred = p->n_deferred});
}

static void close_handle(void *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void stop(struct process *p)
{
    struct rdzv_job *job;

    p->is_ending = true;
    list_foreach(job, &p->jobs.all, link)
        unserve(p, job);
    mhd_loop_stop(&p->http.mhd);
    close_handle(&p->tcpstore.next);
    close_handle(&p->retry);
    close_handle(&p->hub);
    close_handle(&p->turn);
    close_handle(&p->tick);
    close_handle(&p->facts);
    close_handle(&p->ttl);
}

/* Called before the loop waits: sends all messages of this turn to the hub. */
static void on_turn(uv_prepare_t *prepare)
{
    struct process *p = container_of(prepare, struct process, turn);

    rdzv_jobs_flush(&p->jobs);
    if (p->link.failed || p->is_ending) {
        stop(p);
        return;
    }
    if (p->jobs.has_updates && !uv_is_active((uv_handle_t *)&p->facts))
        (void)uv_timer_start(&p->facts, on_facts, FACTS_MS, 0);
    arm_ttl(p);
}

/* The parts, from the bottom up. */
static int start_parts(struct process *p, struct err *e)
{
    struct rng rng = rng_kernel();
    uint64_t seed = rng_u64(&rng);

    p->link.ctx = p;
    p->link.on_message = on_message;
    rdzv_jobs_init(&p->jobs, &p->link, seed);
    rdzv_conns_init(&p->conns, &p->loop, seed);
    tcpstore_conns_start(&p->tcpstore, &p->loop);
    list_init(&p->listeners);
    (void)uv_timer_init(&p->loop, &p->retry);
    return etcd2_http_start(&p->http, &p->loop, e);
}

static int start(struct process *p, int fd, struct err *e)
{
    int r = rdzv_link_init(&p->link, fd);

    if (r == 0)
        r = uv_loop_init(&p->loop);
    if (r != 0)
        return err_set(e, r, "no memory for a rendezvous");
    r = start_parts(p, e);
    if (r != 0)
        return r;
    (void)uv_poll_init(&p->loop, &p->hub, fd);
    (void)uv_prepare_init(&p->loop, &p->turn);
    (void)uv_timer_init(&p->loop, &p->tick);
    (void)uv_timer_init(&p->loop, &p->facts);
    (void)uv_timer_init(&p->loop, &p->ttl);
    (void)uv_poll_start(&p->hub, UV_READABLE, on_hub);
    (void)uv_prepare_start(&p->turn, on_turn);
    (void)uv_timer_start(&p->tick, on_tick, TICK_MS, TICK_MS);
    return 0;
}

static int serve(int fd, struct err *e)
{
    struct process *p = calloc(1, sizeof(*p));
    struct rdzv_job *job;
    struct rdzv_job *tmp;
    int r = p ? start(p, fd, e) : err_set(e, -ENOMEM, "no memory for a rendezvous");

    if (r != 0) {
        free(p);
        return r;
    }
    (void)uv_run(&p->loop, UV_RUN_DEFAULT);
    list_foreach_safe(job, tmp, &p->jobs.all, link)
        rdzv_job_free(job);
    (void)uv_loop_close(&p->loop);
    str_deinit(&p->jobs.blob);
    keys_free_all(&p->members);
    admission_deinit(&p->conns.admission);
    rdzv_link_deinit(&p->link);
    free(p);
    return 0;
}

int rdzv_process_run(int fd, struct err *e)
{
    int r = confine(e);

    return r == 0 ? serve(fd, e) : r;
}
