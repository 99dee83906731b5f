/* plan_money.c - the bytes and the money of a plan, a day and an edge; see plan_internal.h. */
#include <math.h>
#include <string.h>

#include "plan/plan_internal.h"

#define DAY   86400.0
#define MONTH 30.0 /* days */
#define GB    1e9

bool plan__is_inside(const struct matrix *m, size_t a, size_t b)
{
    return strcmp(m->nodes[a].island, m->nodes[b].island) == 0;
}

double plan__gradient_bytes(const struct plan *p)
{
    return p->wish.model.params * model_dtype_bytes(p->wish.model.dtype);
}

const char *plan__island_of(const struct plan *p, size_t node)
{
    return p->matrix->nodes[node].island;
}

static void count_edges(struct plan *p)
{
    const struct plan_exchange *x = &p->exchange[p->form];
    double n = (double)p->n_islands;
    double bytes = p->is_synchronous ? 2 * (n - 1) / n * plan__gradient_bytes(p) : x->bytes;
    double interval = p->is_synchronous ? 1 : x->interval;
    double open = p->is_synchronous
                      ? p->step * p->each_step[p->best].share / (1 - p->each_step[p->best].share)
                      : x->seconds / interval;

    p->steps_per_day = DAY / (p->step + open);
    for (size_t i = 0; p->n_islands > 1 && i < p->n_islands; i++) {
        struct plan_edge *e = &p->edges[p->n_edges++];
        double price;

        e->from = p->leaders[i];
        e->to = p->leaders[(i + 1) % p->n_islands];
        price = prices_per_gb(p->wish.prices, plan__island_of(p, e->from));
        e->bytes_per_day = bytes * p->steps_per_day / interval;
        e->money_per_day = e->bytes_per_day / GB * price;
        p->traffic_money += e->money_per_day;
    }
}

/* What one ring of all nodes, in each step, would cost for as many steps. */
static double flat_money(const struct plan *p)
{
    size_t n = p->matrix->n;
    double bytes = 2 * (double)(n - 1) / (double)n * plan__gradient_bytes(p);
    double money = 0;

    for (size_t i = 0; i < n; i++)
        if (!plan__is_inside(p->matrix, p->ring[i], p->ring[(i + 1) % n]))
            money += bytes / GB * prices_per_gb(p->wish.prices, plan__island_of(p, p->ring[i]));
    return money * p->steps_per_day;
}

/*
 * A ring inside an island that has nodes in several zones passes from one zone to the next as often
 * as there are zones. However the model is cut, all gradients together pass each such place, and
 * with FSDP the weights as well (ZeRO, arXiv:1910.02054, section 7).
 */
static void count_zones(struct plan *p)
{
    for (size_t k = 0; k < p->n_islands; k++) {
        const struct plan_island *i = &p->islands[k];
        const struct prices_island *price = prices_of(p->wish.prices, i->name);
        double n = (double)i->n;
        double zones = fmin(price->zones, n);
        double bytes = 2 * (n - 1) / n * plan__gradient_bytes(p) * (p->cut.sharded ? 1.5 : 1);

        p->nat_money += price->nat_hour * 24;
        if (zones < 2)
            continue;
        p->zone_bytes += zones * bytes * p->steps_per_day;
        p->zone_money += zones * bytes * p->steps_per_day / GB * price->cross_zone;
    }
}

void plan__count_money(struct plan *p)
{
    const struct prices *prices = p->wish.prices;
    double gpus = (double)p->matrix->n * p->wish.gpus;
    double gb = 0;
    double dearest = 0;

    count_edges(p);
    count_zones(p);
    for (size_t i = 0; i < p->matrix->n; i++)
        p->gpu_money += prices_of(prices, plan__island_of(p, i))->gpu_hour * 24 * p->wish.gpus;
    p->flat_money = flat_money(p);
    /* In one place no exchange is waited for, so fewer hours give as many tokens. */
    if (prices->one_place[0] != '\0')
        p->one_place_money =
            prices->one_place_gpu_hour * 24 * gpus * p->steps_per_day * p->step / DAY;
    for (size_t i = 0; i < p->n_edges; i++) {
        gb += p->edges[i].bytes_per_day * MONTH / GB;
        dearest = fmax(dearest, prices_per_gb(prices, plan__island_of(p, p->edges[i].from)));
    }
    for (size_t i = 0; i < prices->n_lines; i++) {
        p->lines[i].break_even_gb = prices_break_even(&prices->lines[i], dearest);
        p->lines[i].money_per_month = prices->lines[i].month + gb * prices->lines[i].gb;
    }
}
