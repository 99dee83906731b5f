/* finder_self.c - see finder.h: where this machine may be reached, and what its NAT does. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/finder_internal.h"
#include "agent/state.h"
#include "base/err.h"
#include "base/htab.h"
#include "os/log.h"
#include "mesh/snapshot.h"
#include "os/clock.h"
#include "net/net_watch.h"
#include "net/rtnl.h"

/* A change of the network comes in many small pieces. */
#define SETTLE (200 * NSEC_PER_MSEC)

/* Host candidates, so that others have room beside them. */
#define HOST_MAX (CANDIDATES_MAX / 2)

#define DIGEST_SEED 0x9e3779b97f4a7c15u

/* ---- what is reported ----------------------------------------------------------------------- */

static void add_candidates(const struct finder *f, struct candidates *c)
{
    for (unsigned i = 0; i < f->n_own; i++)
        (void)candidates_add(c, CANDIDATE_HOST, &f->own[i]);
    for (unsigned i = 0; i < f->state->n_given; i++) {
        struct endpoint ep = f->state->given[i];

        if (ep.port == 0)
            ep.port = f->port.port;
        (void)candidates_add(c, CANDIDATE_GIVEN, &ep);
    }
    if (f->mapping.kind != PORT_MAPPING_NONE)
        (void)candidates_add(c, CANDIDATE_MAPPED, &f->mapping.external);
    for (unsigned i = 0; i < f->stun.n_views; i++)
        if (f->stun.views[i].heard_at != 0)
            (void)candidates_add(c, CANDIDATE_REFLEXIVE, &f->stun.views[i].mapped);
}

static bool is_nat_equal(const struct behavior *a, const struct behavior *b)
{
    return a->mapping == b->mapping && a->filtering == b->filtering &&
           a->is_natted == b->is_natted && a->is_blocked == b->is_blocked &&
           a->port_step == b->port_step && a->last_port == b->last_port;
}

static bool is_side_equal(const struct path_side *a, const struct path_side *b)
{
    bool same = candidates_equal(&a->candidates, &b->candidates) &&
                is_nat_equal(&a->nat, &b->nat) && a->keepalive == b->keepalive &&
                a->can_guess == b->can_guess && a->relay_run == b->relay_run &&
                a->n_relays == b->n_relays;

    for (unsigned i = 0; same && i < a->n_relays; i++)
        same = x25519_public_equal(&a->relays[i].key, &b->relays[i].key) &&
               a->relays[i].rtt == b->relays[i].rtt &&
               a->relays[i].is_stream == b->relays[i].is_stream;
    return same;
}

/* Put together what is known, and tell whoever wants to know when it is something new. */
void finder__update_self(struct finder *f, nsec_t now)
{
    struct path_side side = {
        .generation = f->self.generation, .keepalive = f->keepalive, .can_guess = true};

    add_candidates(f, &side.candidates);
    finder__tell_relays(f, &side, now);
    side.nat = behavior_of(&f->survey, f->own, f->n_own);
    side.nat.is_blocked = f->is_blocked;
    if (side.nat.port_step != 0 && f->fresh.port != 0)
        side.nat.last_port = f->fresh.port;
    if (is_side_equal(&side, &f->self))
        return;
    /* Greater than any of an earlier run: by the wall clock, unless that went back. */
    side.generation =
        (uint64_t)nsec_max((nsec_t)f->self.generation + 1, clock_wall() / NSEC_PER_MSEC);
    f->self = side;
    paths_set_self(f->paths, &f->self, now);
    f->listener.on_self(f->listener.ctx);
}

void finder_set_keepalive(struct finder *f, nsec_t keepalive, nsec_t now)
{
    if (keepalive == f->keepalive)
        return;
    f->keepalive = keepalive;
    finder__update_self(f, now);
    finder__run(f, now);
}

void finder_set_blocked(struct finder *f, bool blocked, nsec_t now)
{
    if (blocked == f->is_blocked)
        return;
    f->is_blocked = blocked;
    finder__update_self(f, now);
    finder__run(f, now);
}

struct ip_addr finder_outside(const struct finder *f, const struct endpoint *server)
{
    for (unsigned i = 0; i < f->stun.n_views; i++)
        if (f->stun.views[i].heard_at != 0 && endpoint_equal(&f->stun.views[i].server, server))
            return f->stun.views[i].mapped.addr;
    return (struct ip_addr){{0}};
}

/* ---- addresses ------------------------------------------------------------------------------ */

/** A look at the machine's addresses and routes. */
struct look {
    const struct finder *f;
    unsigned overlay; /* our own interface; 0: it is not there */
    struct endpoint own[CANDIDATES_MAX];
    unsigned n_own;
    uint64_t digest;
};

static int take_address(const struct rtnl_entry *entry, void *ctx)
{
    struct look *look = ctx;
    struct endpoint ep = {.addr = entry->prefix.addr, .port = look->f->port.port};

    if (entry->ifindex == look->overlay || look->n_own >= HOST_MAX ||
        ip_addr_is_link_local(&ep.addr) || !candidate_is_possible(&ep))
        return 0;
    look->own[look->n_own++] = ep;
    look->digest = hash_bytes(look->digest, &ep.addr, sizeof(ep.addr));
    return 0;
}

/* Only the ways out to the world: others come and go with containers. */
static int take_route(const struct rtnl_entry *entry, void *ctx)
{
    struct look *look = ctx;

    if (entry->ifindex != look->overlay && entry->prefix.len == 0)
        look->digest = hash_bytes(look->digest, &entry->ifindex, sizeof(entry->ifindex));
    return 0;
}

static int look_around(struct finder *f, struct look *look)
{
    struct rtnl_link link;
    int r;

    *look = (struct look){.f = f, .digest = DIGEST_SEED};
    r = rtnl_find_link(&f->nl, f->state->interface, &link);
    if (r == 0)
        look->overlay = link.ifindex;
    if (r >= 0)
        r = rtnl_each_address(&f->nl, 0, take_address, look);
    return r < 0 ? r : rtnl_each_route(&f->nl, 0, take_route, look);
}

void finder__gather(struct finder *f, bool force, nsec_t now)
{
    bool first = f->network == 0;
    struct look look;

    f->gather_due = NSEC_NEVER;
    if (f->port.port == 0)
        return;
    if (look_around(f, &look) < 0) {
        /* A dump that changed underneath, mostly. */
        f->gather_due = now + SETTLE;
        return;
    }
    if (!force && look.digest == f->network)
        return;
    f->network = look.digest;
    memcpy(f->own, look.own, sizeof(f->own));
    f->n_own = look.n_own;
    behavior_survey_clear(&f->survey);
    f->fresh.port = 0;
    stun_client_forget(&f->stun, now);
    port_map_ask(f->port_map, f->port.port);
    finder__update_self(f, now);
    if (!first) {
        paths_on_network_change(f->paths, now);
        f->listener.on_network(f->listener.ctx);
    }
    finder__ask_stun(f, now);
}

static void on_network(uv_poll_t *poll, int status, int events)
{
    struct finder *f = poll->data;

    if (!net_watch_read(f->net_fd))
        return;
    f->gather_due = nsec_min(f->gather_due, clock_now() + SETTLE);
    finder__run(f, clock_now());
}

/* ---- servers -------------------------------------------------------------------------------- */

void finder__ask_stun(struct finder *f, nsec_t now)
{
    struct engine_frame frame = {.len = STUN_REQUEST_SIZE};

    if (!frame_client_is_open(&f->port))
        return;
    while (stun_client_next(&f->stun, now, &f->rng, &frame.remote, frame.data))
        (void)frame_client_send(&f->port, &frame);
}

/* Has the NAT given us another port for that server since? Then it is the newest one. */
static bool is_moved(const struct finder *f, const struct stun_view *v)
{
    for (unsigned i = 0; i < f->survey.n; i++)
        if (endpoint_equal(&f->survey.samples[i].server, &v->server))
            return !endpoint_equal(&f->survey.samples[i].mapped, &v->mapped);
    return true;
}

void finder__take_stun(struct finder *f, const struct engine_frame *frame, nsec_t now)
{
    const struct stun_view *v;

    v = stun_client_take(&f->stun, frame->data, frame->len, &frame->remote, frame->received_at);
    if (!v)
        return;
    if (is_moved(f, v))
        f->fresh.port = 0;
    behavior_survey_add(&f->survey, &v->server, &v->mapped, v->heard_at);
    finder__update_self(f, now);
}

/* Where a server has answered over IPv4; NULL: none has. */
static const struct endpoint *find_server(const struct finder *f)
{
    for (unsigned i = 0; i < f->stun.n_views; i++)
        if (f->stun.views[i].heard_at != 0 && ip_addr_is_v4(&f->stun.views[i].server.addr))
            return &f->stun.views[i].server;
    return NULL;
}

void finder__refresh_stun(struct finder *f, nsec_t now)
{
    struct engine_frame frame = {.len = STUN_REQUEST_SIZE};
    const struct endpoint *server = find_server(f);

    stun_client_restart(&f->stun, now);
    finder__ask_stun(f, now);
    /* A symmetric NAT keeps its mappings to servers that our port has asked: what they say of its
     * newest port is old. */
    punch_sockets_close(f->punch, FINDER_FRESH_SOCKET);
    if (!server || f->self.nat.port_step == 0 ||
        punch_sockets_open(f->punch, FINDER_FRESH_SOCKET, NULL) < 0)
        return;
    f->fresh.server = *server;
    rng_fill(&f->rng, f->fresh.id.b, sizeof(f->fresh.id.b));
    stun_encode_request(&f->fresh.id, frame.data);
    frame.remote = *server;
    punch_sockets_send(f->punch, FINDER_FRESH_SOCKET, &frame);
}

void finder__take_fresh(struct finder *f, const struct engine_frame *frame, nsec_t now)
{
    struct stun_response resp;

    if (!endpoint_equal(&frame->remote, &f->fresh.server) ||
        stun_decode_response(&resp, frame->data, frame->len) != 0 ||
        memcmp(resp.id.b, f->fresh.id.b, sizeof(resp.id.b)) != 0)
        return;
    punch_sockets_close(f->punch, FINDER_FRESH_SOCKET);
    f->fresh.server = (struct endpoint){.port = 0};
    f->fresh.port = resp.mapped.port;
    finder__update_self(f, now);
}

void finder__set_servers(struct finder *f, const struct snapshot *s, nsec_t now)
{
    struct endpoint servers[STUN_CLIENT_SERVERS_MAX];
    const struct node *relay = render_hub(s);
    unsigned n = 0;

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node_hub *hub = s->nodes.items[i]->node.hub;

        for (unsigned k = 0; hub && k < hub->n_endpoints && n + 2 <= STUN_CLIENT_SERVERS_MAX; k++) {
            servers[n++] = hub->endpoints[k];
            servers[n] = hub->endpoints[k];
            servers[n++].port = hub->api_port;
        }
    }
    f->hub = relay ? relay->key : (struct x25519_public){{0}};
    (void)snprintf(
        f->hub_name, sizeof(f->hub_name), "%.*s", NAME_MAX_LEN, relay ? relay->meta.name : "");
    stun_client_set_servers(&f->stun, servers, n, now);
    finder__update_self(f, now);
    finder__ask_stun(f, now);
}

/* ---- the router ----------------------------------------------------------------------------- */

static void on_mapping(void *ctx, const struct port_mapping *pm)
{
    char text[ENDPOINT_TEXT_MAX];
    struct finder *f = ctx;
    nsec_t now = clock_now();

    if (pm->kind != PORT_MAPPING_NONE)
        log_info("the router has opened %s for this node (%s)",
            endpoint_format(&pm->external, text), port_mapping_kind_name(pm->kind));
    f->mapping = *pm;
    finder__update_self(f, now);
    finder__run(f, now);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

int finder__start_self(struct finder *f, struct err *e)
{
    int r = netlink_open(&f->nl, NETLINK_ROUTE);

    if (r == 0)
        r = f->net_fd = net_watch_open();
    if (r >= 0 && !(f->net_poll = calloc(1, sizeof(*f->net_poll))))
        r = -ENOMEM;
    if (r < 0)
        return err_set(e, r, "this machine's addresses cannot be watched: %s", strerror(-r));
    (void)uv_poll_init(f->loop, f->net_poll, f->net_fd);
    f->net_poll->data = f;
    (void)uv_poll_start(f->net_poll, UV_READABLE, on_network);
    return port_map_new(&f->port_map, f->loop, on_mapping, f, e);
}

void finder__stop_self(struct finder *f, bool leaving)
{
    f->port_map = port_map_free(f->port_map, leaving);
    if (f->net_poll)
        uv_close((uv_handle_t *)f->net_poll, on_closed);
    if (f->net_fd >= 0)
        (void)close(f->net_fd);
    netlink_close(&f->nl);
}
