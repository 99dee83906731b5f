/* samples.c - see samples.h. */
#include "train/job/samples.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/containers.h"
#include "health/job_sample.h"
#include "os/child.h"
#include "os/clock.h"
#include "os/file.h"
#include "train/job/lost.h"
#include "train/job/node.h"
#include "train/job/rendezvous.h"
#include "train/job/script_reports.h"
#include "train/job/run.h"

#define LOOK_EACH NSEC_PER_SEC

/* A hub, or an agent, of a version that does not know the call is tried again after so long. */
#define UNKNOWN_FOR (600 * NSEC_PER_SEC)

/* Less is nothing: what has moved in a sample, bytes, and which part of the most in one. The job
 * stands still when there was no more for so long, or when NCCL's RAS has said for so long that no
 * rank starts anything, ms. */
#define MOVED_MIN  16384
#define MOVED_PART 200
#define STILL_MIN  (5 * NSEC_PER_SEC)
#define IDLE_MIN   60000

/* Sockets of the command's processes that are looked at. */
#define SOCKETS_MAX 16384

/* ---- processes ------------------------------------------------------------------------------ */

void samples_see(struct samples_processes *p, int pid, const struct process_stat *stat)
{
    unsigned i = 0;
    struct samples_process *one;

    while (i < p->n && p->items[i].pid != pid)
        i++;
    if (i == SAMPLES_PROCESSES_MAX)
        return;
    one = &p->items[i];
    p->n += i == p->n;
    /* A new one, which may have the pid of one that has ended. */
    if (one->pid != pid || stat->user_ticks < one->user_now || stat->kernel_ticks < one->kernel_now)
        *one = (struct samples_process){
            .pid = pid, .user_ticks = stat->user_ticks, .kernel_ticks = stat->kernel_ticks};
    one->user_now = stat->user_ticks;
    one->kernel_now = stat->kernel_ticks;
    one->n_running += stat->state == 'R';
    one->n_waiting += stat->state == 'D';
    one->is_stopped = stat->state == 'T' || stat->state == 't';
    one->seen_at = p->look;
}

void samples_looked(struct samples_processes *p, nsec_t now)
{
    bool is_stopped = false;

    for (unsigned i = 0; i < p->n;) {
        if (p->items[i].seen_at != p->look) {
            p->items[i] = p->items[--p->n];
            continue;
        }
        is_stopped |= p->items[i++].is_stopped;
    }
    if (!is_stopped)
        p->stopped_since = 0;
    else if (p->stopped_since == 0)
        p->stopped_since = now;
    p->n_looks++;
    p->look++;
}

static uint32_t share_of(uint64_t part, uint64_t whole)
{
    uint64_t share = whole > 0 ? part * JOB_SAMPLE_WHOLE / whole : 0;

    return share < JOB_SAMPLE_MOST ? (uint32_t)share : JOB_SAMPLE_MOST;
}

static void raise_to(uint32_t *most, uint32_t share)
{
    if (share > *most)
        *most = share;
}

void samples_add_processes(
    struct job_sample *ret, struct samples_processes *p, nsec_t now, long ticks_per_s)
{
    struct job_processes *sum = &ret->processes;
    uint64_t ticks = (uint64_t)ret->ms * (uint64_t)ticks_per_s / 1000;

    *sum = (struct job_processes){.n = p->n};
    for (unsigned i = 0; i < p->n; i++) {
        struct samples_process *one = &p->items[i];
        uint64_t user = one->user_now - one->user_ticks;
        uint64_t kernel = one->kernel_now - one->kernel_ticks;
        uint32_t cpu = share_of(user + kernel, ticks);

        if (cpu > sum->cpu) {
            sum->cpu = cpu;
            sum->kernel = share_of(kernel, ticks);
        }
        raise_to(&sum->running, share_of(one->n_running, p->n_looks));
        raise_to(&sum->waiting, share_of(one->n_waiting, p->n_looks));
        sum->n_stopped += one->is_stopped;
        one->user_ticks = one->user_now;
        one->kernel_ticks = one->kernel_now;
        one->n_running = 0;
        one->n_waiting = 0;
    }
    p->n_looks = 0;
    if (sum->n_stopped > 0)
        sum->stopped_ms = (uint32_t)nsec_min((now - p->stopped_since) / NSEC_PER_MSEC, UINT32_MAX);
}

/* A descendants_fn. */
static bool see_process(void *ctx, int pid)
{
    struct samples *s = ctx;
    struct process_stat stat;

    if (descendants_stat(pid, &stat))
        samples_see(&s->processes, pid, &stat);
    return true;
}

/* ---- connections ---------------------------------------------------------------------------- */

static int compare_cookie(const void *a, const void *b)
{
    const struct samples_flow *x = a;
    const struct samples_flow *y = b;

    return (x->flow.cookie > y->flow.cookie) - (x->flow.cookie < y->flow.cookie);
}

static const struct samples_flow *find_flow(
    const struct samples_flows *all, const struct samples_flow *wanted)
{
    return all->n > 0 ? bsearch(wanted, all->items, all->n, sizeof(*wanted), compare_cookie) : NULL;
}

static struct job_flow *flow_to(
    struct job_sample_peer *peers, size_t *n, const struct ip_addr *address)
{
    size_t i = 0;

    while (i < *n && !ip_addr_equal(&peers[i].address, address))
        i++;
    if (i == *n)
        peers[(*n)++] = (struct job_sample_peer){.address = *address};
    return &peers[i].flow;
}

/* What has moved; a connection never counts for longer than the sample is. */
static void add_flow(
    struct job_flow *sum, const struct tcp_flow *before, const struct tcp_flow *now, uint32_t ms)
{
    uint64_t busy = (now->busy_us - before->busy_us) / 1000;
    uint64_t window = (now->window_us - before->window_us) / 1000;

    sum->sent += now->acked - before->acked;
    sum->received += now->received - before->received;
    sum->segments += now->segments - before->segments;
    sum->repeated += now->repeated - before->repeated;
    sum->queued += now->queued;
    sum->unread += now->unread;
    /* Connections of one pair are busy at the same time. */
    raise_to(&sum->busy_ms, (uint32_t)(busy < ms ? busy : ms));
    raise_to(&sum->window_ms, (uint32_t)(window < ms ? window : ms));
    if (sum->window_ms > sum->busy_ms)
        sum->window_ms = sum->busy_ms;
}

static int compare_moved(const void *a, const void *b)
{
    const struct job_flow *x = &((const struct job_sample_peer *)a)->flow;
    const struct job_flow *y = &((const struct job_sample_peer *)b)->flow;
    uint64_t moved_x = x->sent + x->received;
    uint64_t moved_y = y->sent + y->received;

    return (moved_x < moved_y) - (moved_x > moved_y);
}

void samples_add_flows(
    struct job_sample *ret, const struct samples_flows *before, const struct samples_flows *now)
{
    struct job_sample_peer *peers = calloc(now->n + 1, sizeof(*peers));
    size_t n = 0;

    for (size_t i = 0; peers && i < now->n; i++) {
        const struct samples_flow *f = &now->items[i];
        const struct samples_flow *b = f->owner == SAMPLES_OWNER_JOB ? find_flow(before, f) : NULL;

        if (b)
            add_flow(flow_to(peers, &n, &f->flow.remote.addr), &b->flow, &f->flow, ret->ms);
    }
    if (peers)
        qsort(peers, n, sizeof(*peers), compare_moved);
    ret->n_peers = n < JOB_SAMPLE_PEERS_MAX ? (unsigned)n : JOB_SAMPLE_PEERS_MAX;
    for (unsigned i = 0; i < ret->n_peers; i++)
        ret->peers[i] = peers[i];
    free(peers);
}

static bool is_local(const struct samples *s, const struct ip_addr *address)
{
    for (unsigned i = 0; i < s->n_locals; i++)
        if (ip_addr_equal(&s->locals[i], address))
            return true;
    return false;
}

/** Where what the kernel lists goes. */
struct listing {
    const struct samples *s;
    struct samples_flows *flows;
};

/* A tcp_flow_fn. */
static int take_flow(void *ctx, const struct tcp_flow *flow)
{
    const struct listing *l = ctx;
    struct samples_flows *flows = l->flows;
    struct samples_flow *items;

    if (is_local(l->s, &flow->remote.addr) || flows->n == SAMPLES_FLOWS_MAX)
        return 0;
    items = sorted_open(flows->items, flows->n, sizeof(*items), flows->n, &flows->cap);
    if (!items)
        return -ENOMEM;
    flows->items = items;
    items[flows->n++] = (struct samples_flow){.flow = *flow};
    return 0;
}

/* Sorted, each once. */
static void sort_flows(struct samples_flows *flows)
{
    size_t n = 0;

    if (flows->n > 0)
        qsort(flows->items, flows->n, sizeof(*flows->items), compare_cookie);
    for (size_t i = 0; i < flows->n; i++)
        if (n == 0 || flows->items[n - 1].flow.cookie != flows->items[i].flow.cookie)
            flows->items[n++] = flows->items[i];
    flows->n = n;
}

static int compare_inode(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;

    return (*x > *y) - (*x < *y);
}

/** The sockets of the command's processes. */
struct sockets {
    uint32_t *items; /* SOCKETS_MAX of them */
    unsigned n;
};

/* A descendants_fn. */
static bool take_sockets(void *ctx, int pid)
{
    struct sockets *all = ctx;

    all->n += descendants_sockets(pid, all->items + all->n, SOCKETS_MAX - all->n);
    return all->n < SOCKETS_MAX;
}

/* Finds out whose the connections are that were not seen before. */
static void find_owners(const struct samples_flows *before, struct samples_flows *flows)
{
    _cleanup_(freep) uint32_t *items = NULL;
    struct sockets all = {.n = 0};
    bool is_new = false;

    for (size_t i = 0; i < flows->n; i++) {
        struct samples_flow *f = &flows->items[i];
        const struct samples_flow *b = find_flow(before, f);

        f->owner = b ? b->owner : SAMPLES_OWNER_UNKNOWN;
        is_new |= f->owner == SAMPLES_OWNER_UNKNOWN && f->flow.inode != 0;
    }
    items = is_new ? calloc(SOCKETS_MAX, sizeof(*items)) : NULL;
    if (!items)
        return;
    all.items = items;
    descendants_walk(getpid(), take_sockets, &all);
    qsort(items, all.n, sizeof(*items), compare_inode);
    for (size_t i = 0; i < flows->n; i++) {
        struct samples_flow *f = &flows->items[i];

        if (f->owner == SAMPLES_OWNER_UNKNOWN && f->flow.inode != 0)
            f->owner = bsearch(&f->flow.inode, items, all.n, sizeof(*items), compare_inode)
                           ? SAMPLES_OWNER_JOB
                           : SAMPLES_OWNER_OTHER;
    }
}

/* The connections that there are; released by the caller. False: the kernel does not tell. */
static bool list_flows(struct samples *s, struct samples_flows *ret)
{
    struct listing l = {.s = s, .flows = ret};

    for (unsigned i = 0; i < s->n_locals; i++)
        if (tcp_flows_list(&s->nl, &s->locals[i], take_flow, &l) < 0)
            return false;
    sort_flows(ret);
    find_owners(&s->flows, ret);
    return true;
}

/* ---- does it stand still? -------------------------------------------------------------------- */

void samples_note_moved(struct samples *s, const struct job_sample *sample, nsec_t now)
{
    uint64_t moved = 0;

    for (unsigned i = 0; i < sample->n_peers; i++)
        moved += sample->peers[i].flow.sent + sample->peers[i].flow.received;
    if (moved > s->most_moved)
        s->most_moved = moved;
    if (moved >= MOVED_MIN && moved > s->most_moved / MOVED_PART) {
        s->moved_at = now;
        s->n_still = 0;
    } else {
        s->n_still++;
    }
}

bool samples_is_still(const struct samples *s, nsec_t now)
{
    struct ras_ranks ras = {.n = 0};

    if (s->moved_at > 0)
        return s->n_still > 0 && now - s->moved_at >= STILL_MIN;
    /* What goes over a fabric is not seen. */
    ras_watch_add(&ras, &s->ras, now);
    return ras.is_known && ras.still_ms >= IDLE_MIN;
}

/* ---- a sample ------------------------------------------------------------------------------- */

/* Lines of NCCL's log that say that something is wrong. */
static uint64_t count_nccl(const struct samples *s)
{
    uint64_t n = 0;

    for (unsigned i = 0; s->nccl && i < NCCL_FAULT_N; i++)
        n += s->nccl->kinds[i].n;
    return n;
}

/* Return: false: nobody takes it. */
static bool send_sample(struct samples *s, nsec_t now)
{
    _cleanup_(freep) struct job_sample *sample = calloc(1, sizeof(*sample));
    struct samples_flows flows = {.n = 0};

    if (!sample)
        return true;
    (void)snprintf(
        sample->run, sizeof(sample->run), "%.*s", JOB_SAMPLE_RUN_MAX, s->run->rendezvous.id);
    (void)snprintf(sample->command, sizeof(sample->command), "%s", s->run->command_id);
    sample->ms = (uint32_t)nsec_max((now - s->begun_at) / NSEC_PER_MSEC, 1);
    s->begun_at = now;
    if (!list_flows(s, &flows)) {
        free(flows.items);
        return true;
    }
    samples_add_flows(sample, &s->flows, &flows);
    samples_note_moved(s, sample, now);
    free(s->flows.items);
    s->flows = flows;
    script_reports_add(sample, s->reports);
    samples_add_processes(sample, &s->processes, now, sysconf(_SC_CLK_TCK));
    if (s->nccl)
        sample->nccl = *s->nccl;
    ras_watch_add(&sample->ras, &s->ras, now);
    flight_watch_add(&sample->flight, &s->flight, s->moved_at, now);
    s->n_nccl = count_nccl(s);
    /* One that took longer, as when the machine slept, says nothing. */
    return sample->ms > JOB_SAMPLE_MS_MAX ||
           rendezvous_say_sample(s->run->socket_path, s->run->job, job_sample_encode(sample));
}

/* A ras_own_fn. */
static bool is_own_process(const void *arg, uint32_t pid)
{
    const struct samples_processes *p = arg;

    for (unsigned i = 0; i < p->n; i++)
        if ((uint32_t)p->items[i].pid == pid)
            return true;
    return false;
}

void samples_look(struct samples *s)
{
    nsec_t now = clock_now();

    if (now < s->look_at)
        return;
    script_reports_read(s->reports);
    descendants_walk(getpid(), see_process, s);
    samples_looked(&s->processes, now);
    ras_watch_look(&s->ras, is_own_process, &s->processes, now);
    flight_watch_look(&s->flight, samples_is_still(s, now), now);
    s->look_at = now + LOOK_EACH;
    if (now - s->begun_at >= (nsec_t)lost_each_ms(s->run) * NSEC_PER_MSEC && !send_sample(s, now))
        s->look_at = now + UNKNOWN_FOR;
}

/* The value that the command sees of a variable of the plan; NULL: it is not set. */
static const char *value_of(const struct run *run, const char *name)
{
    const struct env_entry *entry = env_plan_find(&run->plan, name);

    return entry && entry->verdict != ENV_VERDICT_UNNEEDED ? entry->value : getenv(name);
}

/* Of its two names for the file the new one goes first. */
static void begin_flight(struct samples *s)
{
    const char *records = getenv("TORCH_FR_DUMP_TEMP_FILE");

    flight_watch_begin(&s->flight,
        records ? records : value_of(s->run, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"),
        value_of(s->run, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"));
}

bool samples_has_records(struct samples *s)
{
    size_t len = strlen(s->run->dir);

    return len > 0 && strncmp(s->flight.records, s->run->dir, len) == 0 &&
           flight_watch_has_records(&s->flight);
}

void samples_begin(struct samples *s, const struct run *run, struct script_reports *reports)
{
    nsec_t now = clock_now();

    *s = (struct samples){.run = run,
        .reports = reports,
        .ras = RAS_WATCH_NULL,
        .look_at = NSEC_NEVER,
        .begun_at = now};
    begin_flight(s);
    if (run->rendezvous.id[0] == '\0')
        return;
    s->n_locals = train_node_locals(run->node.interface, s->locals, SAMPLES_LOCALS_MAX);
    if (s->n_locals == 0 || netlink_open(&s->nl, NETLINK_SOCK_DIAG) != 0)
        return;
    s->look_at = now + LOOK_EACH;
    ras_watch_begin(&s->ras, getenv("NCCL_RAS_ADDR"), now);
}

void samples_end(struct samples *s)
{
    if (s->look_at != NSEC_NEVER && count_nccl(s) != s->n_nccl)
        (void)send_sample(s, clock_now());
}

void samples_deinit(struct samples *s)
{
    netlink_close(&s->nl);
    ras_watch_end(&s->ras);
    free(s->flows.items);
    s->flows = (struct samples_flows){.n = 0};
    s->look_at = NSEC_NEVER;
}
