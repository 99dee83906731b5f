/* sync.c - see sync.h. */
#include "plan/sync.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* Up to so many nodes the best cycle is found by trying all; for more, it is improved by 2-opt. */
#define RING_EXACT_MAX 9
/* Largest segment of Gloo's ring, bytes (gloo/allreduce.h, kMaxSegmentSize). */
#define SYNC_GLOO_SEGMENT 1048576.0

#define CHUNK_SEGMENTS_MAX 64     /* so many segments a chunk are played through */
#define INITIAL_WINDOW     14600. /* bytes: ten segments of 1460 (RFC 6928) */

const char *const sync_transport_names[SYNC_TRANSPORT_N] = {"gloo", "nccl"};

/*
 * Share of the line that TCP which a loss slows down gets between nodes far from each other.
 *
 * In a ring a node sends, waits for its neighbour's word, and sends again. While it waits, all that
 * it has sent is acknowledged, so nothing paces what comes next: a whole window leaves at once
 * (RFC 5681, section 4.1), and what the queue before the line cannot hold of it is lost. So the
 * window is at most what the queue holds, and @kept of that after a loss; between the two it grows
 * steadily. The queue's size is not measured; the rule of thumb is the bytes of one round trip
 * (Villamizar and Song, "High performance TCP in ANSNET", ACM CCR 24, 1994).
 *
 * The same comes the other way, so an acknowledgement waits behind half of such a window on average
 * (Zhang, Shenker and Clark, "Observations on the dynamics of a congestion control algorithm: the
 * effects of two-way traffic", SIGCOMM 1991), which makes each round trip longer.
 */
static double bursts(const struct matrix_link *l)
{
    double window = (1 + l->kept) / 2; /* of the bytes of a round trip, on average */

    return window / (1 + window / 2);
}

/* Bits per second that are left of @alone while as much comes back. */
static double duplex(const struct matrix_link *l, double alone)
{
    double rate = SYNC_DUPLEX * alone;

    /* In the short time of a measurement BBR finds less than it does later. */
    if (l->kept >= 1)
        return rate;
    /* So does any other TCP whose transfer was only some round trips long. Several connections
     * have found the line's rate by then. */
    if (l->rtt > MATRIX_ISLAND_RTT)
        return fmin(rate, bursts(l) * l->many_bps);
    if (l->both_bps > 0 && l->many_bps > 0)
        rate = fmin(rate, l->both_bps / l->many_bps * alone);
    return rate;
}

/* Bytes per second of @bps; NCCL keeps no more than its buffers in flight. */
static double carried(const struct matrix_link *l, double bps, enum sync_transport t)
{
    return t == SYNC_NCCL && l->rtt > 0 ? fmin(bps / 8, SYNC_NCCL_WINDOW / l->rtt) : bps / 8;
}

static double measured_bps(const struct matrix_link *l, enum sync_transport t)
{
    return t == SYNC_GLOO ? l->one_bps : l->many_bps;
}

double sync_rate(const struct matrix *m, size_t from, size_t to, enum sync_transport t)
{
    const struct matrix_link *l = matrix_link(m, from, to);

    return carried(l, duplex(l, measured_bps(l, t)), t);
}

/* Seconds for @bytes on the wire from one node to the other. */
static double wire(
    const struct matrix *m, size_t from, size_t to, double bytes, enum sync_transport t)
{
    double rate = sync_rate(m, from, to, t);

    return rate > 0 ? bytes / rate : INFINITY;
}

static double one_way(const struct matrix *m, size_t from, size_t to)
{
    return matrix_link(m, from, to)->rtt / 2;
}

void sync_costs(const struct matrix *m, const size_t *nodes, size_t n, double bytes,
    enum sync_transport t, double *ret)
{
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            ret[a * n + b] =
                a == b ? 0 : one_way(m, nodes[a], nodes[b]) + wire(m, nodes[a], nodes[b], bytes, t);
}

double sync_restart(
    const struct matrix *m, size_t from, size_t to, double bytes, enum sync_transport t)
{
    const struct matrix_link *l = matrix_link(m, from, to);
    double rate = sync_rate(m, from, to, t);
    double full = ceil(log2(rate * l->rtt / INITIAL_WINDOW)); /* round trips until the link is */
    double last = ceil(log2(bytes / INITIAL_WINDOW + 1)) - 1; /* or until the last byte leaves */
    double rounds = fmin(full, last);

    if (!l->restarts || !(rounds > 0))
        return 0;
    /* Meanwhile as many bytes have left as the windows had together. */
    return fmax(0, rounds * l->rtt - INITIAL_WINDOW * (exp2(rounds) - 1) / rate);
}

/* ---- NCCL's ring --------------------------------------------------------------------------- */

static double ring_steps(
    const struct matrix *m, const size_t *nodes, size_t n, double bytes, enum sync_transport t)
{
    double slowest = 0;

    for (size_t i = 0; i < n; i++) {
        size_t to = nodes[(i + 1) % n];

        slowest =
            fmax(slowest, one_way(m, nodes[i], to) + wire(m, nodes[i], to, bytes / (double)n, t));
    }
    return 2 * (double)(n - 1) * slowest;
}

/* ---- Gloo's ring, played through ----------------------------------------------------------- */

/* A node of the ring at one segment. It sends to the next node and receives from the one before. */
struct player {
    double ready;    /* when it is ready for the segment, and says so */
    double arrived;  /* when the segment before this one has arrived */
    double arrived2; /* when the one before that has arrived */
    double handed;   /* when the segment before this one was given to the socket to send */
    double sent;     /* when the last byte of it had left */
};

struct play {
    const struct matrix *m;
    const size_t *nodes;
    size_t n;
    double segment; /* bytes */
    struct player *players;
    double *arrivals; /* of the present segment, by node */
};

/*
 * When the sender at @i hears that the next node is ready. Between two nodes both directions have
 * one connection, so the word waits behind the data that the other one has given to it before.
 */
static double hears(const struct play *p, size_t i)
{
    size_t next = (i + 1) % p->n;
    const struct player *other = &p->players[next];
    double leaves = other->ready;

    if (p->n == 2 && other->handed <= leaves)
        leaves = fmax(leaves, other->sent);
    return leaves + one_way(p->m, p->nodes[next], p->nodes[i]);
}

static void play_segment(struct play *p)
{
    for (size_t i = 0; i < p->n; i++)
        p->players[i].ready = fmax(p->players[i].ready, p->players[i].arrived2);
    /* Each hears of its neighbour before anybody has sent this segment. */
    for (size_t i = 0; i < p->n; i++)
        p->arrivals[i] = hears(p, i);
    for (size_t i = 0; i < p->n; i++) {
        struct player *me = &p->players[i];

        me->handed = fmax(me->ready, p->arrivals[i]);
        me->sent = fmax(me->handed, me->sent) +
                   wire(p->m, p->nodes[i], p->nodes[(i + 1) % p->n], p->segment, SYNC_GLOO);
    }
    for (size_t i = 0; i < p->n; i++) {
        size_t before = (i + p->n - 1) % p->n;
        struct player *me = &p->players[i];

        me->arrived2 = me->arrived;
        me->arrived = p->players[before].sent + one_way(p->m, p->nodes[before], p->nodes[i]);
    }
}

/* @halves: of an all-reduce both, reduce-scatter and all-gather. Each passes @segments of every
 * chunk to all others. */
static double play_ring(const struct matrix *m, const size_t *nodes, size_t n, double segment,
    size_t segments, unsigned halves)
{
    _cleanup_(freep) struct player *players = calloc(n, sizeof(*players));
    _cleanup_(freep) double *arrivals = calloc(n, sizeof(*arrivals));
    struct play p = {.m = m,
        .nodes = nodes,
        .n = n,
        .segment = segment,
        .players = players,
        .arrivals = arrivals};
    double end = 0;

    if (!players || !arrivals)
        return INFINITY;
    for (unsigned half = 0; half < halves; half++) {
        for (size_t i = 0; i < (n - 1) * segments; i++)
            play_segment(&p);
        for (size_t i = 0; i < n; i++) {
            players[i].ready = fmax(players[i].arrived, players[i].arrived2);
            players[i].arrived2 = players[i].ready;
            end = fmax(end, players[i].ready);
        }
    }
    return end;
}

/* A long vector has many segments: the time of the later ones is that of those played through. */
static double gloo_ring(const struct matrix *m, const size_t *nodes, size_t n, double bytes)
{
    /* At least two for each node, and as many for each. */
    double segments = fmax(2, ceil(ceil(bytes / SYNC_GLOO_SEGMENT) / (double)n));
    double segment = bytes / (segments * (double)n);
    double all;
    double half;

    if (segments <= CHUNK_SEGMENTS_MAX)
        return play_ring(m, nodes, n, segment, (size_t)segments, 2);
    all = play_ring(m, nodes, n, segment, CHUNK_SEGMENTS_MAX, 2);
    half = play_ring(m, nodes, n, segment, CHUNK_SEGMENTS_MAX / 2, 2);
    return all + (all - half) * (segments - CHUNK_SEGMENTS_MAX) / (CHUNK_SEGMENTS_MAX / 2.0);
}

static bool is_ring_measured(const struct matrix *m, const size_t *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!matrix_is_measured(m, nodes[i], nodes[(i + 1) % n]))
            return false;
    return true;
}

double sync_gather(
    const struct matrix *m, const size_t *nodes, size_t n, double bytes, enum sync_transport t)
{
    if (n < 2 || bytes <= 0)
        return 0;
    if (!is_ring_measured(m, nodes, n))
        return INFINITY;
    /* An all-reduce of n times as much takes as many steps again. */
    return t == SYNC_GLOO ? play_ring(m, nodes, n, bytes / 2, 2, 1)
                          : ring_steps(m, nodes, n, bytes * (double)n, t) / 2;
}

double sync_ring(
    const struct matrix *m, const size_t *nodes, size_t n, double bytes, enum sync_transport t)
{
    if (n < 2 || bytes <= 0)
        return 0;
    if (!is_ring_measured(m, nodes, n))
        return INFINITY;
    return t == SYNC_GLOO ? gloo_ring(m, nodes, n, bytes) : ring_steps(m, nodes, n, bytes, t);
}

/* ---- trees --------------------------------------------------------------------------------- */

/* Seconds of latency from node @i to the root, and -1 when a link on the way was not measured. */
static double way_up(const struct matrix *m, size_t i, const size_t *parent)
{
    double latency = 0;

    for (; parent[i] != i; i = parent[i]) {
        if (!matrix_is_measured(m, i, parent[i]))
            return -1;
        latency += one_way(m, i, parent[i]);
    }
    return latency;
}

double sync_tree(const struct matrix *m, const size_t *parent, double bytes, enum sync_transport t)
{
    double deepest = 0;
    double fullest = 0;

    if (m->n < 2 || bytes <= 0)
        return 0;
    for (size_t i = 0; i < m->n; i++) {
        double latency = way_up(m, i, parent);
        double into = 0;
        double from = 0;

        if (latency < 0)
            return INFINITY;
        deepest = fmax(deepest, latency);
        for (size_t child = 0; child < m->n; child++)
            if (child != i && parent[child] == i) {
                into += wire(m, child, i, bytes, t);
                from += wire(m, i, child, bytes, t);
            }
        fullest = fmax(fullest, fmax(into, from));
    }
    return 2 * (deepest + fullest);
}

double sync_broadcast(
    const struct matrix *m, const size_t *nodes, size_t n, double bytes, enum sync_transport t)
{
    double slowest = 0;

    if (n < 2 || bytes <= 0)
        return 0;
    for (size_t i = 1; i < n; i++) {
        const struct matrix_link *l = matrix_link(m, nodes[0], nodes[i]);

        if (!matrix_is_measured(m, nodes[0], nodes[i]))
            return INFINITY;
        /* Nothing comes back meanwhile. */
        slowest = fmax(
            slowest, one_way(m, nodes[0], nodes[i]) + bytes / carried(l, measured_bps(l, t), t));
    }
    return ceil(log2((double)n)) * slowest;
}

/* ==== the order of a ring ==================================================================== */

#define PASSES_MAX 64 /* of 2-opt, which ends by itself long before */

/* How good a cycle is: its slowest link, and then the sum of all. */
struct quality {
    double worst;
    double sum;
};

static bool is_better(struct quality a, struct quality b)
{
    return a.worst < b.worst || (a.worst <= b.worst && a.sum < b.sum);
}

static void add_link(struct quality *q, double cost)
{
    q->worst = cost > q->worst ? cost : q->worst;
    q->sum += cost;
}

static struct quality assess_cycle(const double *cost, size_t n, const size_t *order)
{
    struct quality q = {0};

    for (size_t i = 0; i < n; i++)
        add_link(&q, cost[order[i] * n + order[(i + 1) % n]]);
    return q;
}

/* ---- all cycles ---------------------------------------------------------------------------- */

struct search {
    const double *cost;
    size_t n;
    size_t path[RING_EXACT_MAX];
    bool used[RING_EXACT_MAX];
    struct quality best;
    size_t *ret; /* the best cycle so far */
};

/* Tries all ways on from a path of @len nodes. The depth is at most RING_EXACT_MAX. */
static void extend(struct search *s, size_t len, struct quality so_far)
{
    if (len == s->n) {
        add_link(&so_far, s->cost[s->path[len - 1] * s->n + s->path[0]]);
        if (is_better(so_far, s->best)) {
            s->best = so_far;
            memcpy(s->ret, s->path, s->n * sizeof(*s->ret));
        }
        return;
    }
    for (size_t next = 1; next < s->n; next++) {
        struct quality q = so_far;

        if (s->used[next])
            continue;
        add_link(&q, s->cost[s->path[len - 1] * s->n + next]);
        if (q.worst > s->best.worst)
            continue;
        s->used[next] = true;
        s->path[len] = next;
        extend(s, len + 1, q);
        s->used[next] = false;
    }
}

/* ---- 2-opt --------------------------------------------------------------------------------- */

static void start_nearest(const double *cost, size_t n, size_t *ret)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = i;
    for (size_t i = 1; i + 1 < n; i++) {
        size_t best = i;
        size_t next;

        for (size_t j = i + 1; j < n; j++)
            if (cost[ret[i - 1] * n + ret[j]] < cost[ret[i - 1] * n + ret[best]])
                best = j;
        next = ret[best];
        ret[best] = ret[i];
        ret[i] = next;
    }
}

static void reverse(size_t *order, size_t from, size_t to)
{
    for (; from < to; from++, to--) {
        size_t other = order[from];

        order[from] = order[to];
        order[to] = other;
    }
}

/* Can reversing order[from..to] help? Only where one of the two links that go is replaced by a
 * cheaper one; the links in between are passed the other way round and may cost something else. */
static bool may_help(const double *cost, size_t n, const size_t *order, size_t from, size_t to)
{
    size_t before = order[from - 1];
    size_t after = order[(to + 1) % n];
    double old[2] = {cost[before * n + order[from]], cost[order[to] * n + after]};
    double new[2] = {cost[before * n + order[to]], cost[order[from] * n + after]};

    return new[0] < old[0] || new[1] < old[1];
}

static bool improve_once(const double *cost, size_t n, size_t *order, struct quality *now)
{
    bool improved = false;

    for (size_t from = 1; from + 1 < n; from++)
        for (size_t to = from + 1; to < n; to++) {
            struct quality q;

            if (!may_help(cost, n, order, from, to))
                continue;
            reverse(order, from, to);
            q = assess_cycle(cost, n, order);
            if (is_better(q, *now)) {
                *now = q;
                improved = true;
            } else {
                reverse(order, from, to);
            }
        }
    return improved;
}

void ring_order(const double *cost, size_t n, size_t *ret)
{
    struct quality now;

    start_nearest(cost, n, ret);
    now = assess_cycle(cost, n, ret);
    if (n <= RING_EXACT_MAX) {
        struct search s = {.cost = cost, .n = n, .best = now, .ret = ret};

        extend(&s, 1, (struct quality){0});
        return;
    }
    for (unsigned pass = 0; pass < PASSES_MAX && improve_once(cost, n, ret, &now); pass++)
        ;
}

/* ---- the tree ------------------------------------------------------------------------------ */

static double pair_cost(const double *cost, size_t n, size_t a, size_t b)
{
    double out = cost[a * n + b];
    double in = cost[b * n + a];

    return out > in ? out : in;
}

static size_t cheapest_root(const double *cost, size_t n)
{
    double least = 0;
    size_t root = 0;

    for (size_t i = 0; i < n; i++) {
        double sum = 0;

        for (size_t j = 0; j < n; j++)
            sum += i == j ? 0 : pair_cost(cost, n, i, j);
        if (i == 0 || sum < least) {
            least = sum;
            root = i;
        }
    }
    return root;
}

void ring_tree(const double *cost, size_t n, size_t *ret_parent)
{
    _cleanup_(freep) size_t *children = calloc(n + 1, sizeof(*children));
    size_t root = cheapest_root(cost, n);

    for (size_t i = 0; i < n; i++)
        ret_parent[i] = i == root || !children ? root : SIZE_MAX;
    for (size_t done = 1; children && done < n; done++) {
        size_t parent = SIZE_MAX;
        size_t child = 0;

        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++) {
                if (ret_parent[a] == SIZE_MAX || children[a] == RING_CHILDREN_MAX ||
                    ret_parent[b] != SIZE_MAX)
                    continue;
                if (parent == SIZE_MAX ||
                    pair_cost(cost, n, a, b) < pair_cost(cost, n, parent, child)) {
                    parent = a;
                    child = b;
                }
            }
        ret_parent[child] = parent;
        children[parent]++;
    }
}
