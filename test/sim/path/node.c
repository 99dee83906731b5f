/* node.c - what nodes do: gather, report, carry out what path/paths says, send data. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/path/world_internal.h"

#define PORT       51820
#define N_SERVERS  3 /* addresses and ports that a node asks: see world__hub() */
#define KEEP_EVERY (10 * NSEC_PER_SEC)
#define FLOW_EVERY (250 * NSEC_PER_MSEC)
/* A node sees within this time that its addresses have changed, and then asks STUN. */
#define NOTICE (100 * NSEC_PER_MSEC)

static void take_actions(struct world *w, unsigned node);

/* ---- the node's own view -------------------------------------------------------------------- */

/* STUN, in no time: what the NAT makes of a packet to each server. */
static void ask_servers(struct world *w, struct world_node *n)
{
    struct site *s = &w->sites[n->site];

    n->survey.n = 0;
    for (unsigned i = 0; i < N_SERVERS; i++) {
        struct endpoint server = world__hub(i);
        struct endpoint mapped = n->inner;

        if (s->nat.kind.is_absent || sim_nat_out(&s->nat, &n->inner, &server, w->now, &mapped))
            behavior_survey_add(&n->survey, &server, &mapped, w->now);
    }
}

static void report(struct world *w, unsigned node);

static void gather(struct world *w, unsigned node)
{
    struct world_node *n = &w->nodes[node];
    struct path_side side = {.generation = n->side.generation + 1};

    ask_servers(w, n);
    side.nat = behavior_of(&n->survey, &n->inner, 1);
    side.nat.is_blocked = n->survey.n == 0;
    side.keepalive = w->opt.keepalive;
    side.can_guess = !w->opt.no_sockets;
    side.n_relays = 1;
    side.relays[0] = (struct path_relay){.key = {{1}}, .rtt = 2 * world__to_hub(w, n->site)};
    (void)candidates_add(&side.candidates, CANDIDATE_HOST, &n->inner);
    if (n->has_v6)
        (void)candidates_add(&side.candidates, CANDIDATE_HOST, &n->inner6);
    for (unsigned i = 0; i < n->survey.n && i < WORLD_HUBS; i++)
        (void)candidates_add(&side.candidates, CANDIDATE_REFLEXIVE, &n->survey.samples[i].mapped);
    n->side = side;
    paths_set_self(n->paths, &side, w->now);
    report(w, node);
    take_actions(w, node);
}

static void tell_peer(struct world *w, unsigned of, unsigned to)
{
    struct event *ev = world__event(EVENT_SIDE, to);

    ev->sender = of;
    ev->side = malloc(sizeof(*ev->side));
    assert(ev->side);
    *ev->side = w->nodes[of].side;
    world__push(w, ev,
        w->now + world__to_hub(w, w->nodes[of].site) + world__to_hub(w, w->nodes[to].site) +
            5 * NSEC_PER_MSEC);
}

static unsigned other_node(const struct edge *e, unsigned node)
{
    return e->nodes[0] == node ? e->nodes[1] : e->nodes[0];
}

static unsigned end_of(const struct edge *e, unsigned node)
{
    return e->nodes[0] == node ? 0 : 1;
}

static void report(struct world *w, unsigned node)
{
    for (unsigned i = 0; i < w->nodes[node].n_edges; i++)
        tell_peer(w, node, other_node(&w->edges[w->nodes[node].edges[i]], node));
}

static void keep(struct world *w, unsigned node)
{
    struct world_node *n = &w->nodes[node];
    struct site *s = &w->sites[n->site];
    struct endpoint server = world__hub(0);
    struct endpoint mapped;

    world__push(w, world__event(EVENT_KEEP, node), w->now + KEEP_EVERY);
    if (s->nat.kind.is_absent || !sim_nat_out(&s->nat, &n->inner, &server, w->now, &mapped))
        return;
    /* The STUN answer that comes back tells of a NAT that has forgotten us. */
    if (n->survey.n > 0 && !endpoint_equal(&mapped, &n->survey.samples[0].mapped))
        gather(w, node);
}

/* ---- actions -------------------------------------------------------------------------------- */

uint16_t world__socket_port(uint32_t socket)
{
    return (uint16_t)(10000 + socket % 30000);
}

static struct edge *edge_to(struct world *w, unsigned node, const struct x25519_public *key)
{
    for (unsigned i = 0; i < w->nodes[node].n_edges; i++) {
        struct edge *e = &w->edges[w->nodes[node].edges[i]];

        if (x25519_public_equal(&w->nodes[other_node(e, node)].key, key))
            return e;
    }
    return NULL;
}

static void send_frame(struct world *w, unsigned node, const struct path_action *a)
{
    struct event *ev = world__event(EVENT_FRAME, 0);

    w->n_frames++;
    check_sent(w, &w->nodes[node]);
    assert(a->len <= sizeof(ev->bytes));
    ev->sender = node;
    ev->meant_for = other_node(edge_to(w, node, &a->peer), node);
    ev->len = a->len;
    memcpy(ev->bytes, a->frame, a->len);
    world__route(w, node, a->socket, &a->remote, a->hops, ev);
}

static void open_socket(struct world *w, unsigned node, uint32_t socket)
{
    struct world_node *n = &w->nodes[node];

    if (n->n_sockets == n->cap_sockets) {
        n->cap_sockets = n->cap_sockets ? 2 * n->cap_sockets : 64;
        n->sockets = realloc(n->sockets, n->cap_sockets * sizeof(*n->sockets));
        assert(n->sockets);
    }
    n->sockets[n->n_sockets++] = socket;
    paths_on_socket(n->paths, socket, true);
}

static void close_socket(struct world *w, unsigned node, uint32_t socket)
{
    struct world_node *n = &w->nodes[node];

    for (unsigned i = 0; i < n->n_sockets; i++)
        if (n->sockets[i] == socket) {
            n->sockets[i] = n->sockets[--n->n_sockets];
            return;
        }
    check_fail(w, "node %u closes socket %u, which is not open", node, socket);
}

static bool find_socket(const struct world_node *n, uint16_t port, uint32_t *ret)
{
    *ret = PATH_SOCKET_MAIN;
    if (port == PORT)
        return true;
    for (unsigned i = 0; i < n->n_sockets; i++)
        if (world__socket_port(n->sockets[i]) == port) {
            *ret = n->sockets[i];
            return true;
        }
    return false;
}

static void use(struct world *w, unsigned node, const struct path_action *a)
{
    struct edge *e = edge_to(w, node, &a->peer);
    unsigned end = end_of(e, node);

    if (e->ends[end].used_at != 0 &&
        (e->ends[end].use.path != a->path || !endpoint_equal(&e->ends[end].use.remote, &a->remote)))
        check_switch(w, node, e, end);
    e->ends[end].use = *a;
    e->ends[end].used_at = w->now;
}

static void act(struct world *w, unsigned node, const struct path_action *a)
{
    switch (a->kind) {
    case PATH_ACTION_SEND:
        send_frame(w, node, a);
        break;
    case PATH_ACTION_USE:
        use(w, node, a);
        break;
    case PATH_ACTION_OPEN:
        open_socket(w, node, a->socket);
        break;
    case PATH_ACTION_CLOSE:
        close_socket(w, node, a->socket);
        break;
    case PATH_ACTION_FRESH:
        world__push(w, world__event(EVENT_GATHER, node), w->now + NOTICE);
        break;
    case PATH_ACTION_NONE:
    case PATH_ACTION_LOOK:
    case PATH_ACTION_FITS:
    case PATH_ACTION_EVENT:
    case PATH_ACTION_KIND_N:
        break;
    }
}

static void plan_tick(struct world *w, unsigned node)
{
    struct world_node *n = &w->nodes[node];
    nsec_t due = paths_due(n->paths);

    if (due == NSEC_NEVER || (n->tick_at > w->now && n->tick_at <= due))
        return;
    n->tick_at = nsec_max(due, w->now);
    world__push(w, world__event(EVENT_TICK, node), n->tick_at);
}

static void take_actions(struct world *w, unsigned node)
{
    struct path_action a;

    while (paths_next(w->nodes[node].paths, &a))
        act(w, node, &a);
    plan_tick(w, node);
}

/* ---- what arrives --------------------------------------------------------------------------- */

static void on_frame(struct world *w, struct event *ev)
{
    struct path_arrival in = {.from = ev->from, .at = w->now};
    struct endpoint inner;
    struct world_node *n = world__arrive(w, ev, &inner);
    uint64_t before;
    unsigned node;

    if (!n || !find_socket(n, inner.port, &in.socket))
        return;
    node = (unsigned)(n - w->nodes);
    before = paths_counters(n->paths)->frames_received;
    paths_on_frame(n->paths, &in, ev->bytes, ev->len, w->now);
    if (paths_counters(n->paths)->frames_received != before)
        check_frame_accepted(w, node, ev->sender, ev->meant_for);
    else if (node != ev->meant_for)
        w->n_foreign++;
    take_actions(w, node);
}

static void on_data(struct world *w, struct event *ev)
{
    struct endpoint inner;
    uint32_t socket;
    struct world_node *n =
        ev->kind == EVENT_RELAYED ? &w->nodes[ev->meant_for] : world__arrive(w, ev, &inner);
    struct edge *e = &w->edges[ev->edge];
    struct end *end = &e->ends[end_of(e, ev->meant_for)];

    /* At another node it is a packet under keys that that one does not have. */
    if (!n || n != &w->nodes[ev->meant_for] ||
        (ev->kind == EVENT_DATA && !find_socket(n, inner.port, &socket)))
        return;
    w->n_delivered++;
    end->rx += 1000;
    end->heard_at = w->now;
}

static void send_data(struct world *w, unsigned edge, unsigned end)
{
    struct edge *e = &w->edges[edge];
    struct end *d = &e->ends[end];
    unsigned from = e->nodes[end];
    unsigned to = e->nodes[1 - end];
    bool relayed = d->use.path == PATH_KIND_RELAY;
    struct event *ev = world__event(relayed ? EVENT_RELAYED : EVENT_DATA, 0);

    w->n_data++;
    d->tx += 1000;
    ev->sender = from;
    ev->meant_for = to;
    ev->edge = edge;
    if (!relayed) {
        world__route(w, from, d->use.socket, &d->use.remote, 0, ev);
    } else if (w->hub_is_up && !world_chance(w, w->is_lossless ? 0 : w->opt.loss_permille)) {
        world__push(w, ev,
            w->now + world__to_hub(w, w->nodes[from].site) + world__to_hub(w, w->nodes[to].site));
    } else {
        free(ev);
    }
}

/*
 * When something broke last for the edge. What breaks again just as data is about to flow takes
 * its time anew: nobody can have noticed the second break before it happened.
 */
static nsec_t broken_at(const struct world *w, const struct edge *e)
{
    nsec_t at = w->hub_changed_at;

    for (unsigned end = 0; end < 2; end++) {
        const struct world_node *n = &w->nodes[e->nodes[end]];

        at = nsec_max(at, nsec_max(n->moved_at, w->sites[n->site].broken_at));
    }
    return at;
}

static void flow(struct world *w, unsigned edge)
{
    struct edge *e = &w->edges[edge];
    nsec_t broken = broken_at(w, e);
    struct event *next;

    for (unsigned end = 0; end < 2; end++) {
        struct end *d = &e->ends[end];
        nsec_t since = nsec_max(nsec_max(e->active_from, d->heard_at), broken);

        if (w->hub_is_up)
            check_gap(w, e, end, w->now - since);
        send_data(w, edge, end);
        paths_on_traffic(
            w->nodes[e->nodes[end]].paths, &w->nodes[e->nodes[1 - end]].key, d->rx, d->tx, w->now);
        take_actions(w, e->nodes[end]);
    }
    if (w->now >= e->active_until) {
        e->active_from = 0;
        return;
    }
    next = world__event(EVENT_FLOW, 0);
    next->edge = edge;
    world__push(w, next, w->now + FLOW_EVERY);
}

static void tick(struct world *w, const struct event *ev)
{
    struct world_node *n = &w->nodes[ev->node];

    /* Another one was planned meanwhile. */
    if (n->tick_at != ev->at)
        return;
    n->tick_at = 0;
    paths_tick(n->paths, w->now);
    check_tick(w, n);
    take_actions(w, ev->node);
}

static void on_side(struct world *w, const struct event *ev)
{
    if (!w->hub_is_up)
        return;
    paths_set_peer_side(w->nodes[ev->node].paths, &w->nodes[ev->sender].key, ev->side, w->now);
    take_actions(w, ev->node);
}

void world__handle(struct world *w, struct event *ev)
{
    switch (ev->kind) {
    case EVENT_FRAME:
        on_frame(w, ev);
        break;
    case EVENT_DATA:
    case EVENT_RELAYED:
        on_data(w, ev);
        break;
    case EVENT_TICK:
        tick(w, ev);
        break;
    case EVENT_SIDE:
        on_side(w, ev);
        break;
    case EVENT_KEEP:
        keep(w, ev->node);
        break;
    case EVENT_GATHER:
        if (ev->is_change)
            paths_on_network_change(w->nodes[ev->node].paths, w->now);
        gather(w, ev->node);
        break;
    case EVENT_FLOW:
        flow(w, ev->edge);
        break;
    }
}

/* ---- nodes and edges ------------------------------------------------------------------------ */

static void settle(struct world *w, unsigned node, unsigned site)
{
    struct world_node *n = &w->nodes[node];
    struct site *s = &w->sites[site];
    unsigned host = s->n_hosts++;
    uint8_t private[4] = {192, 168, (uint8_t)(host >> 8), (uint8_t)(host + 2)};
    uint8_t public[4] = {61, (uint8_t)(node >> 8), (uint8_t)node, 1};

    s->hosts = realloc(s->hosts, s->n_hosts * sizeof(*s->hosts));
    assert(s->hosts && host < 250);
    s->hosts[host] = node;
    n->site = site;
    n->inner = (struct endpoint){
        .addr = ip_addr_v4(s->nat.kind.is_absent ? public : private), .port = PORT};
}

unsigned world_add_node(struct world *w, unsigned site, bool has_v6)
{
    static const struct sim_nat_kind firewall = {
        .mapping = BEHAVIOR_UNKNOWN, .filtering = BEHAVIOR_PORT_DEPENDENT};
    unsigned i = w->n_nodes++;
    uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [14] = (uint8_t)(i >> 8), [15] = (uint8_t)i};
    struct paths_options opt = {.rng = w->rng};
    struct world_node *n;

    w->nodes = realloc(w->nodes, w->n_nodes * sizeof(*w->nodes));
    assert(w->nodes);
    n = &w->nodes[i];
    memset(n, 0, sizeof(*n));
    settle(w, i, site);
    n->has_v6 = has_v6;
    n->inner6 = (struct endpoint){.addr = ip_addr_v6(v6), .port = PORT};
    sim_nat_init(&n->firewall6, &firewall, &n->inner6.addr, w->opt.nat_timeout, &w->seed);
    x25519_secret_make(&opt.secret, &w->rng);
    (void)snprintf(opt.name, sizeof(opt.name), "n%u", i);
    assert(x25519_derive_public(&opt.secret, &n->key));
    assert(paths_new(&n->paths, &opt, w->now) == 0);
    return i;
}

static void join_edge(struct world *w, unsigned node, unsigned edge, enum path_policy policy)
{
    struct world_node *n = &w->nodes[node];
    unsigned peer = other_node(&w->edges[edge], node);
    struct path_peer p = {.key = w->nodes[peer].key, .policy = policy};

    n->edges = realloc(n->edges, (n->n_edges + 1) * sizeof(*n->edges));
    assert(n->edges);
    n->edges[n->n_edges++] = edge;
    (void)snprintf(p.name, sizeof(p.name), "n%u", peer);
    assert(paths_put_peer(n->paths, &p, w->now) == 0);
    take_actions(w, node);
}

unsigned world_add_edge(struct world *w, unsigned a, unsigned b, enum path_policy policy)
{
    unsigned i = w->n_edges++;

    w->edges = realloc(w->edges, w->n_edges * sizeof(*w->edges));
    assert(w->edges && a != b);
    w->edges[i] = (struct edge){.nodes = {a, b}};
    join_edge(w, a, i, policy);
    join_edge(w, b, i, policy);
    return i;
}

void world_join(struct world *w, unsigned node)
{
    struct world_node *n = &w->nodes[node];

    gather(w, node);
    for (unsigned i = 0; i < n->n_edges; i++) {
        unsigned peer = other_node(&w->edges[n->edges[i]], node);

        if (w->nodes[peer].side.generation > 0)
            tell_peer(w, peer, node);
    }
    world__push(
        w, world__event(EVENT_KEEP, node), w->now + 1 + world_draw(w, 10000) * NSEC_PER_MSEC);
}

void world_move_node(struct world *w, unsigned node, unsigned site)
{
    struct event *ev = world__event(EVENT_GATHER, node);

    settle(w, node, site);
    w->nodes[node].moved_at = w->now;
    ev->is_change = true;
    world__push(w, ev, w->now + NOTICE);
}

void world_set_hub(struct world *w, bool is_up)
{
    w->hub_is_up = is_up;
    w->hub_changed_at = w->now;
    for (unsigned i = 0; i < w->n_nodes; i++) {
        paths_on_relay(w->nodes[i].paths, is_up, w->now);
        take_actions(w, i);
        if (is_up && w->nodes[i].side.generation > 0)
            report(w, i);
    }
}

void world_activate(struct world *w, unsigned edge, nsec_t time)
{
    struct edge *e = &w->edges[edge];
    struct event *ev;

    if (e->active_from != 0)
        return;
    e->active_from = w->now;
    e->active_until = w->now + time;
    ev = world__event(EVENT_FLOW, 0);
    ev->edge = edge;
    world__push(w, ev, w->now);
}

bool world_is_direct(const struct world *w, const struct edge *e)
{
    (void)w;
    for (unsigned i = 0; i < 2; i++)
        if (e->ends[i].use.path != PATH_KIND_LAN && e->ends[i].use.path != PATH_KIND_DIRECT)
            return false;
    return true;
}
