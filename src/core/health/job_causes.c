/* job_causes.c - see job_causes.h. */
#include "health/job_causes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "base/text.h"
#include "health/flight_causes.h"
#include "health/job_health.h"
#include "health/job_known.h"

/* What is concluded rests on the samples of so many ms ... */
#define WINDOW_MS 8000

/* ... and has to be so in each of the last. */
#define LAST 2

/* A sample is late after this time, or two of its lengths and a half. What is said of a line needs
 * samples of its ends that are not farther apart than this, or a length and a half. */
#define LATE  (9 * NSEC_PER_SEC)
#define APART (5 * NSEC_PER_SEC)

/* So often a line's rate has to have been seen before it may be called slow. */
#define SEEN_MIN 5

/* More is taken as a burst that a reader has not come to yet. */
#define UNREAD_MIN 16384

/* The job is stuck after this time without a byte, or twice the longest pause that it made; where
 * its processes compute, after the second one. */
#define STUCK_MIN      (10 * NSEC_PER_SEC)
#define STUCK_BUSY_MIN (20 * NSEC_PER_SEC)

/* For so long the same node has to compute alone. */
#define ALONE_MIN (9 * NSEC_PER_SEC)

/* So long has one process to be stopped, ms. */
#define STOPPED_MIN 2000

/* What NCCL's log has said holds for so long; and on, if the job has not moved since then, but for
 * what was on its way. */
#define NCCL_FOR   (60 * NSEC_PER_SEC)
#define NCCL_DRAIN (10 * NSEC_PER_SEC)

/* Where the job's connections are not seen, as on a fabric, it stands still when NCCL's RAS has
 * said for so long that nothing is started, ms. */
#define STILL_MIN 120000

/* Where the RAS answers, or PyTorch's flight recorder is there, it has said by then whom the others
 * wait for. */
#define RAS_AWAITED    (25 * NSEC_PER_SEC)
#define FLIGHT_AWAITED (25 * NSEC_PER_SEC)

/* Where the job's connections are not seen, a record holds for so long, ms. */
#define FLIGHT_HOLDS 90000

#define SLOW_MAX  64
#define NAMED_MAX 4

/* ---- a look --------------------------------------------------------------------------------- */

static struct verdict *add(
    struct look *l, enum finding_code code, const struct health_node *node, nsec_t since)
{
    struct verdict *v = l->n < JOB_CAUSES_MAX ? &l->verdicts[l->n++] : NULL;

    if (v)
        *v = (struct verdict){.code = code, .node = node, .since = since};
    return v;
}

static void say(struct verdict *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct verdict *v, const char *fmt, ...)
{
    va_list args;

    if (!v)
        return;
    va_start(args, fmt);
    (void)vsnprintf(v->text, sizeof(v->text), fmt, args);
    va_end(args);
}

/* Is something of that kind said of the node already? One rank of it stands for all. */
static bool is_said(const struct look *l, enum finding_code code, const struct health_node *node)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->verdicts[i].code == code && l->verdicts[i].node == node)
            return true;
    return false;
}

const char *job_causes_format_rate(uint64_t rate, char buf[static 32])
{
    double mb = (double)rate / 1e6;

    (void)snprintf(buf, 32, "%.*f MB/s", mb < 1 ? 2 : mb < 10 ? 1 : 0, mb);
    return buf;
}

static const struct period *newest(const struct health_node *node)
{
    return &node->last[(node->n - 1) % JOB_KNOWN_KEPT];
}

static nsec_t patience(const struct health_node *node, nsec_t least, unsigned halves)
{
    return nsec_max(least, (nsec_t)newest(node)->ms * halves * NSEC_PER_MSEC / 2);
}

/* When the last samples began. */
static nsec_t began(const struct look *l, const struct health_node *node)
{
    return l->now - (nsec_t)newest(node)->ms * LAST * NSEC_PER_MSEC;
}

static bool is_gone(const struct health_node *node, nsec_t now)
{
    return now - node->heard_at >= patience(node, JOB_HEALTH_GONE, 7);
}

/** The last samples of a node together, WINDOW_MS of them. */
struct window {
    unsigned n; /* samples */
    uint32_t ms;
    uint64_t sent;
    uint32_t cpu; /* shares: their mean */
    uint32_t kernel;
    uint32_t running;
    uint32_t waiting;
    unsigned n_reported; /* samples in which ranks have told of themselves, ... */
    uint32_t n_steps;    /* ... the steps that they have made, ... */
    uint32_t comm_ms;    /* ... and how long they were in collectives */
};

/* Its last @most samples, as far as they are in that time. */
static struct window last_of(const struct health_node *node, unsigned most)
{
    struct window w = {.n = 0};

    while (w.n < most && w.n < node->n && w.ms < WINDOW_MS) {
        const struct period *p = &node->last[(node->n - 1 - w.n) % JOB_KNOWN_KEPT];

        w.ms += p->ms;
        w.sent += p->sent;
        w.cpu += p->processes.cpu;
        w.kernel += p->processes.kernel;
        w.running += p->processes.running;
        w.waiting += p->processes.waiting;
        w.n_reported += p->progress.n_ranks > 0;
        w.n_steps += p->progress.n_steps;
        w.comm_ms += p->progress.comm_ms;
        w.n++;
    }
    if (w.n > 0) {
        w.cpu /= w.n;
        w.kernel /= w.n;
        w.running /= w.n;
        w.waiting /= w.n;
    }
    return w;
}

static struct window window_of(const struct health_node *node)
{
    return last_of(node, JOB_KNOWN_KEPT);
}

/* Is it long enough to conclude something from it? */
static bool is_full(const struct window *w)
{
    return w->ms >= WINDOW_MS;
}

/* Have its ranks told of all that time how long they were in collectives? */
static bool has_reported(const struct window *w)
{
    return w->n > 0 && w->n_reported == w->n && w->n_steps > 0 && w->comm_ms > 0;
}

/* Share of the time in which the node's process had something to do. What its ranks say goes before
 * what is seen: they may compute while they wait. */
static uint32_t occupied(const struct window *w)
{
    if (has_reported(w))
        return JOB_SAMPLE_WHOLE - (uint32_t)((uint64_t)w->comm_ms * JOB_SAMPLE_WHOLE / w->ms);
    uint32_t share = (w->cpu > w->running ? w->cpu : w->running) + w->waiting;

    return share < JOB_SAMPLE_WHOLE ? share : JOB_SAMPLE_WHOLE;
}

/* Of a line, its last @n samples; not more than there are. */
static struct job_flow sum_of(const struct health_node *from, const struct line *line, unsigned n)
{
    struct job_flow sum = {.unread = UINT64_MAX};

    for (unsigned i = 0; i < n; i++) {
        const struct job_flow *f = &line->last[(from->n - 1 - i) % JOB_KNOWN_KEPT];

        sum.sent += f->sent;
        sum.received += f->received;
        sum.busy_ms += f->busy_ms;
        sum.window_ms += f->window_ms;
        sum.segments += f->segments;
        sum.repeated += f->repeated;
        /* The least: what was there all the time. */
        sum.unread = f->unread < sum.unread ? f->unread : sum.unread;
    }
    return sum;
}

/* Does what @from sends lie unread at @to, at the ends of the last two samples? */
static bool lies_unread(const struct health_node *from, const struct health_node *to)
{
    const struct line *line = job_known_find_line(to, from);
    struct job_flow in;

    if (!line || to->n < LAST)
        return false;
    in = sum_of(to, line, LAST);
    return in.unread >= UNREAD_MIN || (in.unread > 0 && in.received == 0);
}

static void survey(struct look *l)
{
    for (size_t i = 0; i < l->h->n; i++) {
        const struct health_node *node = l->h->nodes[i];
        struct window w;

        if (!job_known_is_there(node))
            continue;
        l->n_there++;
        if (is_gone(node, l->now))
            l->n_gone++;
        else if (l->now - node->heard_at > patience(node, LATE, 5))
            l->is_late = true;
        w = window_of(node);
        l->rate += job_known_rate(w.sent, w.ms);
        if (node->usual.total >= SEEN_MIN)
            l->usual += rate_memory_median(&node->usual);
    }
    l->is_slow = l->usual > 0 && l->rate < l->usual / 5 * 3;
}

/* ---- gone, stopped -------------------------------------------------------------------------- */

static void find_gone(struct look *l)
{
    for (size_t i = 0; l->n_gone > 0 && i < l->h->n; i++) {
        const struct health_node *node = l->h->nodes[i];

        if (job_known_is_there(node) && is_gone(node, l->now))
            say(add(l, FINDING_RANK_GONE, node, node->heard_at),
                "%s: nothing is heard of the job there, which has not ended", node->name);
    }
}

static void find_stopped(struct look *l)
{
    for (size_t i = 0; i < l->h->n; i++) {
        const struct health_node *node = l->h->nodes[i];
        const struct job_processes *p = job_known_is_there(node) ? &newest(node)->processes : NULL;

        if (p && p->n_stopped > 0 && p->stopped_ms >= STOPPED_MIN)
            say(add(l, FINDING_RANK_STOPPED, node,
                    node->heard_at - (nsec_t)p->stopped_ms * NSEC_PER_MSEC),
                "%s: %u of the job's %u processes there %s stopped, by a signal or a debugger",
                node->name, p->n_stopped, p->n, p->n_stopped == 1 ? "is" : "are");
    }
}

/* ---- what NCCL's log says ------------------------------------------------------------------- */

/* But for NCCL_FAULT_NETWORK, which holds up nobody. */
static const enum finding_code nccl_codes[] = {
    [NCCL_FAULT_POLL] = FINDING_NCCL_POLL,
    [NCCL_FAULT_COMPLETION] = FINDING_NCCL_COMPLETION,
    [NCCL_FAULT_UNREACHED] = FINDING_NCCL_UNREACHED,
    [NCCL_FAULT_CLOSED] = FINDING_NCCL_CLOSED,
    [NCCL_FAULT_TIMEOUT] = FINDING_NCCL_TIMEOUT,
};
_Static_assert(sizeof(nccl_codes) / sizeof(*nccl_codes) == NCCL_FAULT_N, "a code each");

static bool holds(const struct look *l, const struct health_node *node, unsigned kind)
{
    nsec_t at = node->nccl_at[kind];

    return node->nccl.kinds[kind].n > 0 &&
           (l->now - at < NCCL_FOR || l->h->moved_at <= at + NCCL_DRAIN);
}

/* Of each node the kind that says most. A command may have ended by it: those of the others wait.
 */
static void find_nccl(struct look *l)
{
    for (size_t i = 0; i < l->h->n; i++) {
        const struct health_node *node = l->h->nodes[i];
        unsigned kind = NCCL_FAULT_NETWORK + 1;

        while (kind < NCCL_FAULT_N && !holds(l, node, kind))
            kind++;
        if (kind < NCCL_FAULT_N && node->n > 0)
            say(add(l, nccl_codes[kind], node, node->nccl_at[kind]), "%s: NCCL says \"%s\"%s",
                node->name, node->nccl.kinds[kind].text,
                node->nccl.kinds[kind].n > 1 ? ", and more like it" : "");
    }
}

/* ---- slow lines ----------------------------------------------------------------------------- */

/** A line that is slow. */
struct slow {
    const struct health_node *from;
    const struct health_node *to;
    struct line *line;
    uint64_t rate;     /* bytes/s, while it is busy */
    uint64_t usual;    /* likewise, before */
    uint32_t busy;     /* share of the time */
    uint32_t repeated; /* share of the segments */
    uint32_t lost_ms;  /* what it was busy for longer than it had been before */
    bool is_said;      /* it is named, or explained by one that is */
};

/* Were the last samples, each, at most at that rate, while there was something to send? */
static bool is_below(const struct health_node *from, const struct line *line, uint64_t rate)
{
    for (unsigned i = 0; i < LAST && i < from->n; i++) {
        const struct job_flow *f = &line->last[(from->n - 1 - i) % JOB_KNOWN_KEPT];

        if (f->busy_ms == 0 || job_known_rate(f->sent, f->busy_ms) > rate)
            return false;
    }
    return true;
}

/* Fills in @ret, and is it slow? One that was slow stays so a little longer. */
static bool is_slow(const struct health_node *from, const struct line *line, const struct window *w,
    struct slow *ret)
{
    struct job_flow sum = sum_of(from, line, w->n);
    /* What is said of it is of the time in which it is slow, as far as that is known. */
    struct job_flow last = sum_of(from, line, w->n < LAST ? w->n : LAST);
    uint64_t usual = rate_memory_median(&line->usual);
    uint64_t rate = job_known_rate(sum.sent, sum.busy_ms);
    double needed_ms = usual > 0 ? (double)sum.sent * 1000 / (double)usual : 0;
    unsigned part = line->is_slow ? 2 : 3;
    uint32_t least = line->is_slow ? w->ms / 5 : w->ms / 10 * 3;

    if (line->usual.total < SEEN_MIN || needed_ms >= sum.busy_ms ||
        (sum.sent > 0 && !job_known_is_bulk(&sum)))
        return false;
    *ret = (struct slow){.from = from,
        .to = line->to,
        .rate = job_known_rate(last.sent, last.busy_ms),
        .usual = usual,
        .busy = (uint32_t)((uint64_t)sum.busy_ms * JOB_SAMPLE_WHOLE / w->ms),
        .repeated = last.segments > 0
                        ? (uint32_t)((uint64_t)last.repeated * JOB_SAMPLE_WHOLE / last.segments)
                        : 0,
        .lost_ms = sum.busy_ms - (uint32_t)needed_ms};
    return rate <= usual / part && ret->lost_ms >= least && is_below(from, line, usual / part);
}

static int compare_lost(const void *a, const void *b)
{
    const struct slow *x = a;
    const struct slow *y = b;

    return (x->lost_ms < y->lost_ms) - (x->lost_ms > y->lost_ms);
}

/* The slow lines, the worst first. */
static unsigned collect_slow(struct look *l, struct slow ret[static SLOW_MAX])
{
    unsigned n = 0;

    for (size_t i = 0; i < l->h->n; i++) {
        struct health_node *from = l->h->nodes[i];
        struct window w = window_of(from);

        if (!job_known_is_there(from) || !is_full(&w))
            continue;
        for (size_t k = 0; k < from->n_lines; k++) {
            struct line *line = &from->lines[k];

            line->is_slow = n < SLOW_MAX && job_known_is_there(line->to) &&
                            from->heard_at - line->to->heard_at <= patience(line->to, APART, 3) &&
                            is_slow(from, line, &w, &ret[n]) && !lies_unread(from, line->to);
            if (line->is_slow)
                ret[n++].line = line;
        }
    }
    qsort(ret, n, sizeof(*ret), compare_lost);
    /* Those that cost far less than the worst do not hold up anybody. */
    while (n > 0 && ret[n - 1].lost_ms < ret[0].lost_ms / 2)
        n--;
    return n;
}

static void add_name(struct str *names, unsigned *n, const char *name)
{
    if (*n < NAMED_MAX)
        str_addf(names, "%s%s", *n > 0 ? ", " : "", name);
    else if (*n == NAMED_MAX)
        str_add(names, ", ...");
    (*n)++;
}

/* How many of the lines that nobody has named begin, or end, at the same node as @s? */
static unsigned count_like(const struct slow *all, unsigned n, const struct slow *s, bool begin)
{
    unsigned like = 0;

    for (unsigned i = 0; i < n; i++)
        like += !all[i].is_said && (begin ? all[i].from == s->from : all[i].to == s->to);
    return like;
}

/* Does a process there want a core, and not get it? Then its line may be held up by that. */
static bool wants_core(const struct health_node *node)
{
    struct window w = last_of(node, LAST);

    return w.running >= JOB_SAMPLE_WHOLE / 10 * 3 && w.running > w.cpu / 2 * 3;
}

static void note_named(const struct slow *s)
{
    s->line->is_named = !wants_core(s->from) && !wants_core(s->to);
    s->line->rate = s->rate;
    s->line->repeated = s->repeated;
}

/* Names the worst line, with those that begin, or else end, at the same node; and takes away what
 * these explain. */
static void name_slow(struct look *l, struct slow *all, unsigned n, struct slow *worst)
{
    bool is_out = count_like(all, n, worst, true) >= count_like(all, n, worst, false);
    const struct health_node *node = is_out ? worst->from : worst->to;
    struct verdict *v = add(l, FINDING_RANK_LINE_SLOW, node, began(l, worst->from));
    _cleanup_(str_deinit) struct str names = STR_NULL;
    char repeated[64] = "";
    char rate[32];
    char usual[32];
    unsigned n_names = 0;

    for (unsigned i = 0; i < n; i++)
        if (!all[i].is_said && (is_out ? all[i].from == worst->from : all[i].to == worst->to)) {
            add_name(&names, &n_names, is_out ? all[i].to->name : all[i].from->name);
            note_named(&all[i]);
        }
    if (worst->repeated >= JOB_SAMPLE_WHOLE / 100)
        (void)snprintf(repeated, sizeof(repeated), "; %.1f %% of its segments are sent again",
            worst->repeated / 10.0);
    say(v, "%s > %s: %s while it sends, was %s; it is busy %u %% of the time%s",
        is_out ? worst->from->name : str_text(&names), is_out ? str_text(&names) : worst->to->name,
        job_causes_format_rate(worst->rate, rate), job_causes_format_rate(worst->usual, usual),
        worst->busy / 10, repeated);
    if (v)
        (void)snprintf(v->fix, sizeof(v->fix),
            "On %s: weft paths %s says how these packets go; look at what else fills the line of "
            "%s.",
            worst->from->name, worst->to->name, node->name);
    for (unsigned i = 0; i < n; i++)
        all[i].is_said |= all[i].from == worst->from || all[i].to == worst->to ||
                          all[i].to == worst->from || all[i].from == worst->to;
}

static void find_slow_lines(struct look *l)
{
    struct slow all[SLOW_MAX];
    unsigned n = collect_slow(l, all);

    for (unsigned i = 0; i < n; i++)
        if (!all[i].is_said)
            name_slow(l, all, n, &all[i]);
}

/* ---- who does not read ---------------------------------------------------------------------- */

/* Is the line held up by the other end's full window? */
static bool is_held(const struct health_node *from, const struct line *line)
{
    struct window w = window_of(from);
    struct job_flow sum = sum_of(from, line, w.n);

    return is_full(&w) && job_known_is_there(line->to) && sum.window_ms * 2 > sum.busy_ms &&
           sum.busy_ms > w.ms / 2;
}

/* Does the node itself wait for one that does not read? */
static bool waits_for_reader(const struct health_node *node)
{
    for (size_t i = 0; i < node->n_lines; i++)
        if (is_held(node, &node->lines[i]) || lies_unread(node, node->lines[i].to))
            return true;
    return false;
}

/* Has it something to do, by its last sample, while all others have not? Then that is why it does
 * not read, and is named when it has lasted. */
static bool is_busy_alone(const struct look *l, const struct health_node *node)
{
    struct window w = last_of(node, 1);
    uint32_t share = occupied(&w);

    for (size_t i = 0; i < l->h->n; i++) {
        w = last_of(l->h->nodes[i], 1);
        if (l->h->nodes[i] != node && job_known_is_there(l->h->nodes[i]) &&
            occupied(&w) > share / 5 * 2)
            return false;
    }
    return share >= JOB_SAMPLE_WHOLE / 10 * 6;
}

static void find_unread(struct look *l)
{
    for (size_t i = 0; l->is_slow && i < l->h->n; i++) {
        const struct health_node *node = l->h->nodes[i];
        _cleanup_(str_deinit) struct str names = STR_NULL;
        unsigned n = 0;

        if (!job_known_is_there(node) || waits_for_reader(node) || is_busy_alone(l, node))
            continue;
        for (size_t k = 0; k < l->h->n; k++)
            if (job_known_is_there(l->h->nodes[k]) && lies_unread(l->h->nodes[k], node))
                add_name(&names, &n, l->h->nodes[k]->name);
        if (n > 0)
            say(add(l, FINDING_RANK_UNREAD, node, began(l, node)),
                "%s does not read what has come from %s, who wait%s for it", node->name,
                str_text(&names), n == 1 ? "s" : "");
    }
}

/* ---- who computes while the others wait ----------------------------------------------------- */

/* The node that has something to do, while all others have not; NULL: none, or it is not known. */
static const struct health_node *find_alone(const struct look *l, struct window *ret)
{
    const struct health_node *first = NULL;
    uint32_t most = 0;
    uint32_t second = 0;

    for (size_t i = 0; i < l->h->n; i++) {
        const struct health_node *node = l->h->nodes[i];
        struct window w = window_of(node);
        uint32_t share = occupied(&w);

        if (!job_known_is_there(node))
            continue;
        if (!is_full(&w))
            return NULL;
        if (share > most) {
            second = most;
            most = share;
            first = node;
            *ret = w;
        } else if (share > second) {
            second = share;
        }
    }
    return most >= JOB_SAMPLE_WHOLE / 10 * 7 && second <= most / 5 * 2 ? first : NULL;
}

static void find_straggler(struct look *l)
{
    struct window w = {.n = 0};
    const struct health_node *node = l->is_slow ? find_alone(l, &w) : NULL;
    uint32_t share = occupied(&w);
    /* Of the time that it gets, whether or not it gets all that it wants. */
    bool is_kernel = w.cpu >= JOB_SAMPLE_WHOLE / 10 * 3 && w.kernel >= w.cpu / 5 * 4;
    char rate[32];
    char usual[32];

    if (node != l->h->alone) {
        l->h->alone = node;
        l->h->alone_since = l->now;
    }
    if (!node || l->now - l->h->alone_since < ALONE_MIN)
        return;
    say(add(l, is_kernel ? FINDING_RANK_KERNEL : FINDING_RANK_SLOW, node, l->h->alone_since),
        "%s %s %u %% of the time while the others wait; the job moves %s, was %s", node->name,
        is_kernel                   ? "is in the kernel"
        : has_reported(&w)          ? "is outside of collectives"
        : w.waiting * 2 >= share    ? "waits for a disk, or another device,"
        : w.running > w.cpu / 2 * 3 ? "wants a core, and does not get it, for"
                                    : "computes",
        (is_kernel ? w.kernel : share) / 10, job_causes_format_rate(l->rate, rate),
        job_causes_format_rate(l->usual, usual));
}

static nsec_t longest_pause(const struct look *l)
{
    return nsec_max(l->h->pauses[0], l->h->pauses[1]);
}

/* Do the processes of some node compute? */
static bool is_any_busy(const struct look *l)
{
    for (size_t i = 0; i < l->h->n; i++) {
        struct window w = window_of(l->h->nodes[i]);

        if (job_known_is_there(l->h->nodes[i]) && occupied(&w) >= JOB_SAMPLE_WHOLE / 2)
            return true;
    }
    return false;
}

/* Does nothing move between its nodes, for longer than it ever paused? */
static bool is_stuck(const struct look *l)
{
    nsec_t least = is_any_busy(l) ? STUCK_BUSY_MIN : STUCK_MIN;

    return l->h->moved_at != 0 && l->usual != 0 &&
           l->now - l->h->moved_at >= nsec_max(least, 2 * longest_pause(l));
}

/* ---- whom the others wait for, as PyTorch's flight recorder says ---------------------------- */

/* Was it written since the job stands still? */
static bool is_fresh(
    const struct look *l, const struct health_node *node, const struct flight_place *place)
{
    if (l->usual == 0)
        return place->age_ms < FLIGHT_HOLDS;
    return node->heard_at - (nsec_t)place->age_ms * NSEC_PER_MSEC > l->h->moved_at;
}

static const struct flight_places *flight_of(const struct health_node *node)
{
    return job_known_is_there(node) && node->flight && node->flight->is_known ? node->flight : NULL;
}

/* Is there a recorder of which all records are of the time before the job stood still, and that
 * will write soon? */
static bool awaits_flight(const struct look *l)
{
    for (size_t i = 0; l->now - l->h->moved_at < FLIGHT_AWAITED && i < l->h->n; i++) {
        const struct flight_places *flight = flight_of(l->h->nodes[i]);
        unsigned k = 0;

        while (flight && k < flight->n && !is_fresh(l, l->h->nodes[i], &flight->items[k]))
            k++;
        if (flight && k == flight->n)
            return true;
    }
    return false;
}

/* All places that hold, of all nodes. @ret_longest: how long one of them has waited, ms. Return:
 * @ret_n of them, released by the caller; NULL: none, or no memory. */
static struct flight_heard *collect_places(
    const struct look *l, size_t *ret_n, uint32_t *ret_longest)
{
    struct flight_heard *all = NULL;
    size_t cap = 0;

    *ret_n = 0;
    *ret_longest = 0;
    for (size_t i = 0; i < l->h->n; i++) {
        const struct health_node *node = l->h->nodes[i];
        const struct flight_places *flight = flight_of(node);

        for (unsigned k = 0; flight && k < flight->n; k++) {
            const struct flight_place *place = &flight->items[k];
            uint32_t waits = place->waits_in > 0 ? place->wait_ms + place->age_ms : 0;
            struct flight_heard *more = is_fresh(l, node, place)
                                            ? sorted_open(all, *ret_n, sizeof(*all), *ret_n, &cap)
                                            : NULL;

            if (!more)
                continue;
            all = more;
            all[(*ret_n)++] = (struct flight_heard){.place = place, .who = node};
            *ret_longest = waits > *ret_longest ? waits : *ret_longest;
        }
    }
    return all;
}

/* "all_reduce number 1812 of default_pg (262144 elements of Float)" */
static const char *format_operation(const struct flight_place *p, char buf[static 160])
{
    char size[64] = "";

    if (p->elements > 0)
        (void)snprintf(size, sizeof(size), " (%llu elements%s%s)", (unsigned long long)p->elements,
            p->type[0] != '\0' ? " of " : "", p->type);
    (void)snprintf(buf, 160, "%s number %llu of %s%s",
        p->operation[0] != '\0' ? p->operation : "an operation", (unsigned long long)p->waits_in,
        p->group, size);
    return buf;
}

static void say_flight(struct look *l, const struct flight_cause *c)
{
    bool differs = c->fault == FLIGHT_DIFFERS;
    enum finding_code code = differs ? FINDING_RANK_DIFFERS : FINDING_RANK_BEHIND;
    const struct health_node *node = c->rank.who;
    nsec_t since = nsec_max(
        l->h->moved_at, l->now - ((nsec_t)c->most->wait_ms + c->most->age_ms) * NSEC_PER_MSEC);
    char most[160];
    char own[160] = "";
    char of[24] = "";
    struct verdict *v = is_said(l, code, node) ? NULL : add(l, code, node, since);

    if (c->rank.place->n_ranks > 0)
        (void)snprintf(of, sizeof(of), " of %u", c->rank.place->n_ranks);
    (void)format_operation(c->most, most);
    if (differs)
        say(v, "rank %u%s on %s waits in %s, and %u other%s in %s", c->rank.place->rank, of,
            node->name, format_operation(c->rank.place, own), c->n_waiting,
            c->n_waiting == 1 ? "" : "s", most);
    else
        say(v, "rank %u%s on %s has not entered %s, in which %u other%s wait%s%s%s",
            c->rank.place->rank, of, node->name, most, c->n_waiting, c->n_waiting == 1 ? "" : "s",
            c->n_waiting == 1 ? "s" : "", c->own ? ", and waits itself in " : "",
            c->own ? format_operation(c->own, own) : "");
}

static void find_flight(struct look *l)
{
    struct flight_cause causes[JOB_CAUSES_MAX];
    uint32_t longest;
    size_t n;
    struct flight_heard *all;

    if (awaits_flight(l) || (l->usual > 0 && !is_stuck(l)))
        return;
    all = collect_places(l, &n, &longest);
    if (l->usual > 0 || longest >= STILL_MIN) {
        n = flight_causes_find(all, n, causes, JOB_CAUSES_MAX);
        for (size_t i = 0; i < n; i++)
            say_flight(l, &causes[i]);
    }
    free(all);
}

/* ---- whom the others wait for, as NCCL's RAS says ------------------------------------------- */

/* What a node that is there has been told by it, for the longest time; NULL: nothing. Of all nodes
 * of a job the RAS says the same. */
static const struct health_node *find_ras(const struct look *l)
{
    const struct health_node *found = NULL;

    for (size_t i = 0; i < l->h->n; i++) {
        const struct health_node *node = l->h->nodes[i];

        if (job_known_is_there(node) && node->ras.n > 0 && node->ras.still_ms > 0 &&
            (!found || node->ras.still_ms > found->ras.still_ms))
            found = node;
    }
    return found;
}

static void say_missed(struct look *l, const struct health_node *from, const struct ras_rank *rank)
{
    bool is_behind = rank->operation[0] != '\0';
    enum finding_code code = is_behind ? FINDING_NCCL_BEHIND : FINDING_NCCL_SILENT;
    const struct health_node *node =
        rank->node[0] != '\0' ? job_known_find_node(l->h, rank->node) : NULL;
    nsec_t since = l->now - (nsec_t)from->ras.still_ms * NSEC_PER_MSEC;
    char address[IP_ADDR_TEXT_MAX] = "an unknown node";
    char process[32] = "";
    struct verdict *v;

    if (!ip_addr_is_none(&rank->address))
        (void)ip_addr_format(&rank->address, address);
    if (rank->pid != 0)
        (void)snprintf(process, sizeof(process), ", process %u", rank->pid);
    /* Of one that the hub does not know, it is said of who has asked. */
    if (is_said(l, code, node ? node : from))
        return;
    v = add(l, code, node ? node : from, l->usual > 0 ? l->h->moved_at : since);
    if (is_behind)
        say(v,
            "rank %u of %u on %s%s has not started %s number %llu, for which %u others wait; no "
            "rank starts anything",
            rank->rank, rank->n_ranks, node ? node->name : address, process, rank->operation,
            (unsigned long long)rank->n_started + 1, rank->n_waiting);
    else
        say(v, "rank %u of %u on %s%s does not answer NCCL, and no rank starts anything",
            rank->rank, rank->n_ranks, node ? node->name : address, process);
}

static void find_missed(struct look *l)
{
    const struct health_node *from = find_ras(l);
    bool is_still =
        from && !awaits_flight(l) && (l->usual > 0 ? is_stuck(l) : from->ras.still_ms >= STILL_MIN);

    for (unsigned i = 0; is_still && i < from->ras.n; i++)
        say_missed(l, from, &from->ras.items[i]);
}

/* ---- stuck, and nobody knows why ------------------------------------------------------------ */

/* Will NCCL's RAS say soon whom the others wait for? */
static bool awaits_ras(const struct look *l)
{
    bool is_known = false;

    for (size_t i = 0; i < l->h->n; i++) {
        const struct health_node *node = l->h->nodes[i];

        if (!job_known_is_there(node) || !node->ras.is_known)
            continue;
        if (node->ras.still_ms > 0)
            return false;
        is_known = true;
    }
    return is_known && l->now - l->h->moved_at < RAS_AWAITED;
}

static void find_stuck(struct look *l)
{
    nsec_t longest = longest_pause(l);

    if (!is_stuck(l) || awaits_ras(l) || awaits_flight(l))
        return;
    say(add(l, FINDING_JOB_STUCK, NULL, l->h->moved_at),
        "nothing moves between its %zu nodes%s; its longest pause was %lld s", l->n_there,
        is_any_busy(l) ? "" : ", and none of its processes computes",
        (long long)((longest + NSEC_PER_SEC - 1) / NSEC_PER_SEC));
}

/* ---- lines that were named ------------------------------------------------------------------ */

static void begin_naming(struct job_health *h)
{
    for (size_t i = 0; i < h->n; i++)
        for (size_t k = 0; k < h->nodes[i]->n_lines; k++)
            h->nodes[i]->lines[k].is_named = false;
}

static void end_naming(struct job_health *h, nsec_t now)
{
    for (size_t i = 0; i < h->n; i++)
        for (size_t k = 0; k < h->nodes[i]->n_lines; k++) {
            struct line *line = &h->nodes[i]->lines[k];

            if (!line->is_named)
                line->named_since = 0;
            else if (line->named_since == 0)
                line->named_since = now;
        }
}

/* ---- all of it ------------------------------------------------------------------------------ */

bool job_causes_find(struct look *l)
{
    /* In the order of causes. Those from the third on are of several nodes that exchange
     * something. */
    static void (*const finds[])(struct look *) = {find_stopped, find_nccl, find_slow_lines,
        find_unread, find_straggler, find_flight, find_missed, find_stuck};
    const size_t n_finds = sizeof(finds) / sizeof(*finds);
    bool is_heard;

    survey(l);
    /* Where nobody is heard it is the hub that does not hear. */
    is_heard = l->n_there > 0 && l->n_gone < l->n_there;
    if (is_heard)
        find_gone(l);
    if (is_heard && l->n == 0 && l->is_late)
        return false;
    begin_naming(l->h);
    for (size_t i = 0; is_heard && l->n == 0 && i < (l->n_there > 1 ? n_finds : 2); i++)
        finds[i](l);
    end_naming(l->h, l->now);
    return true;
}
