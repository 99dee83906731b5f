/* world.c - see world.h. The net: events, packets, and where they arrive. */
#include "test/sim/path/world.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/path/world_internal.h"

/* ---- chance --------------------------------------------------------------------------------- */

uint32_t world_draw(struct world *w, uint32_t below)
{
    return rng_u32(&w->rng) % below;
}

bool world_chance(struct world *w, unsigned permille)
{
    return permille > 0 && world_draw(w, 1000) < permille;
}

/* ---- the queue ------------------------------------------------------------------------------ */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void world__push(struct world *w, struct event *ev, nsec_t at)
{
    size_t i = w->n_queue++;

    ev->at = at;
    ev->order = w->order++;
    if (w->n_queue > w->cap_queue) {
        w->cap_queue = w->cap_queue ? 2 * w->cap_queue : 256;
        w->queue = realloc(w->queue, w->cap_queue * sizeof(struct event *));
        assert(w->queue);
    }
    for (; i > 0 && is_before(ev, w->queue[(i - 1) / 2]); i = (i - 1) / 2)
        w->queue[i] = w->queue[(i - 1) / 2];
    w->queue[i] = ev;
}

struct event *world__event(enum event_kind kind, unsigned node)
{
    struct event *ev = calloc(1, sizeof(*ev));

    assert(ev);
    ev->kind = kind;
    ev->node = node;
    return ev;
}

static struct event *pop(struct world *w)
{
    struct event *first = w->queue[0];
    struct event *last = w->queue[--w->n_queue];
    size_t i = 0;

    for (;;) {
        size_t c = 2 * i + 1;

        if (c + 1 < w->n_queue && is_before(w->queue[c + 1], w->queue[c]))
            c++;
        if (c >= w->n_queue || !is_before(w->queue[c], last))
            break;
        w->queue[i] = w->queue[c];
        i = c;
    }
    w->queue[i] = last;
    return first;
}

/* ---- places --------------------------------------------------------------------------------- */

static nsec_t distance(double x1, double y1, double x2, double y2)
{
    double ms = sqrt((x1 - x2) * (x1 - x2) + (y1 - y2) * (y1 - y2));

    return (nsec_t)((0.2 + ms) * (double)NSEC_PER_MSEC);
}

/* The hub is in the middle. */
nsec_t world__to_hub(const struct world *w, unsigned site)
{
    double middle = w->opt.plane / 2;

    return distance(w->sites[site].x, w->sites[site].y, middle, middle);
}

static nsec_t between(const struct world *w, unsigned a, unsigned b)
{
    return distance(w->sites[a].x, w->sites[a].y, w->sites[b].x, w->sites[b].y);
}

struct endpoint world__hub(unsigned i)
{
    uint8_t b[4] = {62, 0, 0, (uint8_t)(1 + i % WORLD_HUBS)};

    return (struct endpoint){.addr = ip_addr_v4(b), .port = (uint16_t)(51820 + i / WORLD_HUBS)};
}

unsigned world_add_site(struct world *w, const struct sim_nat_kind *kind)
{
    unsigned i = w->n_sites++;
    uint8_t b[4] = {60, (uint8_t)(i >> 8), (uint8_t)i, 1};
    struct ip_addr address = ip_addr_v4(b);
    struct site *s;

    w->sites = realloc(w->sites, w->n_sites * sizeof(*w->sites));
    assert(w->sites);
    s = &w->sites[i];
    memset(s, 0, sizeof(*s));
    s->x = w->opt.plane * world_draw(w, 1000) / 1000;
    s->y = w->opt.plane * world_draw(w, 1000) / 1000;
    sim_nat_init(&s->nat, kind, &address, w->opt.nat_timeout, &w->seed);
    return i;
}

/* ---- packets -------------------------------------------------------------------------------- */

/* Which node of a site has that private address? All sites number theirs alike. */
static struct world_node *inside(struct world *w, unsigned site, const struct ip_addr *addr)
{
    for (unsigned i = 0; i < w->sites[site].n_hosts; i++) {
        struct world_node *n = &w->nodes[w->sites[site].hosts[i]];

        if (n->site == site && ip_addr_equal(&n->inner.addr, addr))
            return n;
    }
    return NULL;
}

/* Who is reached at @to from @site, by what the address says: its site, or the node itself. */
static bool find_target(
    const struct world *w, unsigned site, const struct endpoint *to, struct event *ev)
{
    const uint8_t *b = to->addr.b;
    unsigned i = (unsigned)b[13] << 8 | b[14];

    ev->is_public = true;
    if (!ip_addr_is_v4(&to->addr)) {
        ev->node = (unsigned)b[14] << 8 | b[15];
        ev->site = ev->node < w->n_nodes ? w->nodes[ev->node].site : 0;
        return ev->node < w->n_nodes;
    }
    if (b[12] == 192) {
        ev->is_public = false;
        ev->site = site;
        return !w->sites[site].nat.kind.is_absent;
    }
    if (b[12] == 61) {
        ev->node = i;
        ev->site = i < w->n_nodes ? w->nodes[i].site : 0;
        return i < w->n_nodes;
    }
    ev->site = i;
    return b[12] == 60 && i < w->n_sites;
}

/* The packet leaves its site: false when it does not; else @ev has the source as it is seen. */
static bool leave_site(struct world *w, unsigned node, const struct endpoint *inner,
    const struct endpoint *to, struct event *ev)
{
    struct world_node *n = &w->nodes[node];
    struct site *s = &w->sites[n->site];

    ev->from = *inner;
    if (!ip_addr_is_v4(&to->addr))
        return n->has_v6 && sim_nat_out(&n->firewall6, inner, to, w->now, &ev->from);
    if (!ev->is_public || s->nat.kind.is_absent)
        return true;
    if (!sim_nat_out(&s->nat, inner, to, w->now, &ev->from))
        return false;
    return ev->site != n->site || s->nat.kind.hairpins;
}

static bool is_cut(const struct world *w, unsigned a, unsigned b)
{
    return a != b && (w->sites[a].cut_until > w->now || w->sites[b].cut_until > w->now);
}

/* Routers between the NATs of two sites: one, and more the farther they are. */
static unsigned routers_between(const struct world *w, unsigned a, unsigned b)
{
    return 1 + (unsigned)(between(w, a, b) / (8 * NSEC_PER_MSEC));
}

/* Does a packet with that time to live get as far as the NAT of the other site? */
static bool reaches(const struct world *w, unsigned from, unsigned to, uint8_t hops)
{
    return hops == 0 || hops >= 2 + routers_between(w, from, to);
}

void world__route(struct world *w, unsigned node, uint32_t socket, const struct endpoint *to,
    uint8_t hops, struct event *ev)
{
    struct world_node *n = &w->nodes[node];
    struct endpoint inner = ip_addr_is_v4(&to->addr) ? n->inner : n->inner6;
    nsec_t delay;

    ev->to = *to;
    if (socket != PATH_SOCKET_MAIN)
        inner.port = world__socket_port(socket);
    if (!find_target(w, n->site, to, ev) || !leave_site(w, node, &inner, to, ev) ||
        is_cut(w, n->site, ev->site) || !reaches(w, n->site, ev->site, hops) ||
        world_chance(w, w->is_lossless ? 0 : w->opt.loss_permille)) {
        free(ev);
        return;
    }
    delay = between(w, n->site, ev->site);
    if (w->opt.jitter > 0 && !w->is_lossless)
        delay += (nsec_t)world_draw(w, (uint32_t)(w->opt.jitter / 1000)) * 1000;
    if (world_chance(w, w->is_lossless ? 0 : w->opt.dup_permille)) {
        struct event *copy = world__event(ev->kind, ev->node);

        *copy = *ev;
        world__push(w, copy, w->now + delay + NSEC_PER_MSEC);
    }
    world__push(w, ev, w->now + delay);
}

/* The packet is at its target's site: which node gets it, at which of its addresses? */
struct world_node *world__arrive(struct world *w, const struct event *ev, struct endpoint *ret)
{
    struct site *s = &w->sites[ev->site];
    struct world_node *n = &w->nodes[ev->node];

    *ret = ev->to;
    if (!ip_addr_is_v4(&ev->to.addr))
        return n->has_v6 && endpoint_equal(&ev->to, &n->inner6) &&
                       sim_nat_in(&n->firewall6, &ev->from, &ev->to, w->now, ret)
                   ? n
                   : NULL;
    if (!ev->is_public)
        return inside(w, ev->site, &ev->to.addr);
    if (s->nat.kind.is_absent)
        return ip_addr_equal(&n->inner.addr, &ev->to.addr) ? n : NULL;
    if (!sim_nat_in(&s->nat, &ev->from, &ev->to, w->now, ret))
        return NULL;
    return inside(w, ev->site, &ret->addr);
}

/* ---- life ----------------------------------------------------------------------------------- */

struct world *world_new(const struct world_options *opt)
{
    struct world *w = calloc(1, sizeof(*w));

    assert(w);
    w->opt = *opt;
    w->seed = opt->seed * 1000003 + 17;
    w->rng = rng_seeded(&w->seed);
    w->now = 1000 * NSEC_PER_SEC;
    w->hub_is_up = true;
    return w;
}

static void event_free(struct event *ev)
{
    free(ev->side);
    free(ev);
}

void world_free(struct world *w)
{
    for (unsigned i = 0; i < w->n_nodes; i++) {
        struct world_node *n = &w->nodes[i];

        n->paths = paths_free(n->paths);
        sim_nat_reset(&n->firewall6);
        free(n->sockets);
        free(n->edges);
    }
    for (unsigned i = 0; i < w->n_sites; i++) {
        sim_nat_reset(&w->sites[i].nat);
        free(w->sites[i].hosts);
    }
    for (size_t i = 0; i < w->n_queue; i++)
        event_free(w->queue[i]);
    free(w->queue);
    free(w->sites);
    free(w->nodes);
    free(w->edges);
    free(w);
}

void world_run(struct world *w, nsec_t time)
{
    nsec_t end = w->now + time;

    while (w->n_queue > 0 && w->queue[0]->at <= end) {
        struct event *ev = pop(w);

        w->now = ev->at;
        w->n_events++;
        world__handle(w, ev);
        event_free(ev);
    }
    w->now = end;
}

/* ---- faults --------------------------------------------------------------------------------- */

void world_reset_nat(struct world *w, unsigned site)
{
    sim_nat_reset(&w->sites[site].nat);
    w->sites[site].broken_at = w->now;
}

void world_cut(struct world *w, unsigned site, nsec_t time)
{
    w->sites[site].cut_until = w->now + time;
    w->sites[site].broken_at = w->now;
}
