/* ring.c - see ring.h. */
#include "plan/ring.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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

static struct quality judge(const double *cost, size_t n, const size_t *order)
{
    struct quality q = {0};

    for (size_t i = 0; i < n; i++)
        add_link(&q, cost[order[i] * n + order[(i + 1) % n]]);
    return q;
}

double ring_bottleneck(const double *cost, size_t n, const size_t *order)
{
    return judge(cost, n, order).worst;
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
            q = judge(cost, n, order);
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
    now = judge(cost, n, ret);
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
