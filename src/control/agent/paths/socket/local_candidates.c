/* local_candidates.c - see local_candidates.h. */
#include "agent/paths/socket/local_candidates.h"

#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/containers.h"
#include "base/err.h"
#include "base/secret.h"
#include "mesh/snapshot/snapshot.h"
#include "net/netlink/link_watch.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "os/file.h"
#include "uapi/uapi.h"

/* ---- asking STUN servers --------------------------------------------------------------------- */

/* Time between tries. RFC 8489 section 6.2.1 begins with 500 ms and doubles it; a hub is near, so
 * ours begins with half of that. After TRIES it is asked as seldom as a server that answers. */
#define RETRY_FIRST   (250 * NSEC_PER_MSEC)
#define TRIES         5
#define REFRESH_AFTER (30 * NSEC_PER_SEC)
/* So many of the last eight requests that are lost are no accident. */
#define LOST_MANY 2

static struct stun_view *find_view(struct stun_client *sc, const struct endpoint *server)
{
    for (unsigned i = 0; i < sc->n_views; i++)
        if (endpoint_equal(&sc->views[i].server, server))
            return &sc->views[i];
    return NULL;
}

void stun_client_set_servers(
    struct stun_client *sc, const struct endpoint *servers, unsigned n_servers, nsec_t now)
{
    struct stun_client next = {0};

    for (unsigned i = 0; i < n_servers && next.n_views < STUN_CLIENT_SERVERS_MAX; i++) {
        const struct stun_view *before = find_view(sc, &servers[i]);

        if (find_view(&next, &servers[i]))
            continue;
        next.views[next.n_views++] =
            before ? *before : (struct stun_view){.server = servers[i], .due_at = now};
    }
    *sc = next;
}

bool stun_view_is_full(const struct stun_view *v)
{
    return __builtin_popcount(v->lost) >= LOST_MANY;
}

void stun_client_restart(struct stun_client *sc, nsec_t now)
{
    for (unsigned i = 0; i < sc->n_views; i++) {
        sc->views[i].due_at = now;
        sc->views[i].n_tries = 0;
    }
}

void stun_client_forget(struct stun_client *sc, nsec_t now)
{
    for (unsigned i = 0; i < sc->n_views; i++)
        sc->views[i] = (struct stun_view){.server = sc->views[i].server, .due_at = now};
}

bool stun_client_next(struct stun_client *sc, nsec_t now, const struct rng *rng,
    struct endpoint *ret_to, uint8_t out[static STUN_REQUEST_SIZE])
{
    for (unsigned i = 0; i < sc->n_views; i++) {
        struct stun_view *v = &sc->views[i];

        if (v->due_at > now)
            continue;
        if (v->asked[1].sent_at != 0)
            v->lost = (uint8_t)(v->lost << 1 | 1);
        v->asked[1] = v->asked[0];
        v->asked[0].sent_at = now;
        rng_fill(rng, v->asked[0].id.b, sizeof(v->asked[0].id.b));
        v->due_at = now + (v->n_tries < TRIES ? RETRY_FIRST << v->n_tries : REFRESH_AFTER);
        v->n_tries++;
        *ret_to = v->server;
        stun_encode_request(&v->asked[0].id, 0, out);
        return true;
    }
    return false;
}

nsec_t stun_client_due(const struct stun_client *sc)
{
    nsec_t due = NSEC_NEVER;

    for (unsigned i = 0; i < sc->n_views; i++)
        due = nsec_min(due, sc->views[i].due_at);
    return due;
}

/* The one that @id answers, and that waits for its answer; NULL: none. */
static struct stun_asked *find_request(struct stun_view *v, const struct stun_transaction *id)
{
    for (unsigned i = 0; i < 2; i++)
        if (v->asked[i].sent_at != 0 && memcmp(&v->asked[i].id, id, sizeof(*id)) == 0)
            return &v->asked[i];
    return NULL;
}

const struct stun_view *stun_client_take(
    struct stun_client *sc, const uint8_t *msg, size_t len, const struct endpoint *from, nsec_t at)
{
    struct stun_view *v = find_view(sc, from);
    struct stun_asked *rq;
    struct stun_response resp;

    if (!v || stun_decode_response(&resp, msg, len) != 0 || !(rq = find_request(v, &resp.id)))
        return NULL;
    /* An answer to an earlier request than the one that was answered is late, and not lost. */
    v->lost = (uint8_t)(v->lost << 1);
    if (rq != v->asked && v->asked[0].sent_at == 0) {
        rq->sent_at = 0;
        return NULL;
    }
    v->mapped = resp.mapped;
    v->heard_at = at;
    v->rtt = nsec_max(at - rq->sent_at, 0);
    rq->sent_at = 0;
    v->n_tries = 0;
    v->due_at = at + REFRESH_AFTER;
    return v;
}

/* ---- this machine's addresses ---------------------------------------------------------------- */

#define DIGEST_SEED 0x9e3779b97f4a7c15u

/* ---- a look --------------------------------------------------------------------------------- */

/* Most other networks of this machine that are known. */
#define OVERLAYS_MAX 64

struct address_look {
    unsigned overlay;              /* our own interface; 0: it is not there */
    unsigned others[OVERLAYS_MAX]; /* interfaces of other overlays */
    unsigned n_others;
    const struct candidate_blocks *blocks;
    struct addresses found;
};

/* Does somebody run a WireGuard in user space there, such as another agent of ours? */
static bool is_served(const char *interface)
{
    char path[sizeof(UAPI_SOCKET_DIR) + IFNAMSIZ + sizeof("/.sock")];

    (void)snprintf(path, sizeof(path), "%s/%s.sock", UAPI_SOCKET_DIR, interface);
    return access(path, F_OK) == 0;
}

/* What has an address in a WireGuard of this machine is reached through that, whichever network's
 * it is: a path there would lead through another overlay. Other tunnels may be the only way. */
static int take_link(const struct rtnl_link *link, void *ctx)
{
    struct address_look *look = ctx;

    if (look->n_others < OVERLAYS_MAX &&
        (strcmp(link->kind, "wireguard") == 0 ||
            (strcmp(link->kind, "tun") == 0 && is_served(link->name))))
        look->others[look->n_others++] = link->ifindex;
    return 0;
}

static bool is_overlay(const struct address_look *look, unsigned ifindex)
{
    bool found = ifindex == look->overlay;

    for (unsigned i = 0; i < look->n_others && !found; i++)
        found = look->others[i] == ifindex;
    return found;
}

static int take_address(const struct rtnl_entry *entry, void *ctx)
{
    struct address_look *look = ctx;
    struct addresses *found = &look->found;
    /* The port does not matter here, but one is needed. */
    struct endpoint ep = {.addr = entry->prefix.addr, .port = 1};

    if (is_overlay(look, entry->ifindex) || found->n >= ADDRESSES_MAX ||
        ip_addr_is_link_local(&ep.addr) || !candidate_is_possible(&ep) ||
        candidate_blocks_have(look->blocks, &ep.addr))
        return 0;
    found->items[found->n++] = ep.addr;
    found->digest = hash_bytes(found->digest, &ep.addr, sizeof(ep.addr));
    return 0;
}

/* Does it lead a block of the overlay, or a part of one, elsewhere, or the whole block into it? */
static bool concerns_overlay(const struct address_look *look, const struct rtnl_entry *entry)
{
    for (unsigned i = 0; i < look->blocks->n; i++)
        if (ip_prefix_equal(&entry->prefix, &look->blocks->items[i]))
            return true;
    return entry->ifindex != look->overlay &&
           candidate_blocks_have(look->blocks, &entry->prefix.addr);
}

/* A WireGuard that takes everything, or half of it, is this machine's way out, and no network. */
#define BLOCK_LEN_MIN 7

static int take_other_block(const struct rtnl_entry *entry, void *ctx)
{
    struct address_look *look = ctx;

    if (entry->ifindex != look->overlay && is_overlay(look, entry->ifindex) &&
        entry->prefix.len >= BLOCK_LEN_MIN && !ip_addr_is_link_local(&entry->prefix.addr))
        (void)candidate_blocks_add(&look->found.others, &entry->prefix);
    return 0;
}

/* Where a part of a block leads to no overlay it is reached as ever. */
static int take_outside(const struct rtnl_entry *entry, void *ctx)
{
    struct address_look *look = ctx;

    if (!is_overlay(look, entry->ifindex))
        candidate_blocks_exclude(&look->found.others, &entry->prefix);
    return 0;
}

/* Only default routes count, because others come and go with containers; and those that lead to the
 * overlay, which somebody may have taken from it. */
static int take_route(const struct rtnl_entry *entry, void *ctx)
{
    struct address_look *look = ctx;
    struct addresses *found = &look->found;

    if (concerns_overlay(look, entry)) {
        found->block_routes =
            hash_bytes(found->block_routes, &entry->ifindex, sizeof(entry->ifindex));
        found->block_routes =
            hash_bytes(found->block_routes, &entry->prefix, sizeof(entry->prefix));
    }

    if (entry->ifindex != look->overlay && entry->prefix.len == 0)
        look->found.digest =
            hash_bytes(look->found.digest, &entry->ifindex, sizeof(entry->ifindex));
    return 0;
}

int address_watch_look(struct address_watch *aw, const char *interface,
    const struct candidate_blocks *blocks, struct addresses *ret)
{
    struct address_look look = {
        .blocks = blocks, .found = {.digest = DIGEST_SEED, .block_routes = DIGEST_SEED}};
    struct rtnl_link link;
    int r = rtnl_find_link(&aw->nl, interface, &link);

    if (r == 0)
        look.overlay = link.ifindex;
    if (r >= 0)
        r = rtnl_each_link(&aw->nl, 0, take_link, &look);
    if (r >= 0)
        r = rtnl_each_address(&aw->nl, 0, take_address, &look);
    if (r >= 0)
        r = rtnl_each_route(&aw->nl, 0, false, take_route, &look);
    if (r >= 0 && look.n_others > 0)
        r = rtnl_each_route(&aw->nl, 0, false, take_other_block, &look);
    if (r >= 0 && look.found.others.n > 0)
        r = rtnl_each_route(&aw->nl, 0, false, take_outside, &look);
    if (r >= 0)
        *ret = look.found;
    return r < 0 ? r : 0;
}

/* ---- changes -------------------------------------------------------------------------------- */

static void on_change_readable(uv_poll_t *poll, int status, int events)
{
    struct address_watch *aw = poll->data;

    if (net_watch_read(aw->fd))
        aw->fn(aw->ctx);
}

int address_watch_start(
    struct address_watch *aw, struct uv_loop_s *loop, address_watch_fn fn, void *ctx, struct err *e)
{
    int r = netlink_open(&aw->nl, NETLINK_ROUTE);

    aw->fn = fn;
    aw->ctx = ctx;
    if (r == 0)
        r = aw->fd = net_watch_open();
    if (r >= 0 && !(aw->poll = calloc(1, sizeof(*aw->poll))))
        r = -ENOMEM;
    if (r < 0)
        return err_set(e, r, "this machine's addresses cannot be watched: %s", strerror(-r));
    (void)uv_poll_init(loop, aw->poll, aw->fd);
    aw->poll->data = aw;
    (void)uv_poll_start(aw->poll, UV_READABLE, on_change_readable);
    return 0;
}

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle);
}

void address_watch_stop(struct address_watch *aw)
{
    if (aw->poll)
        uv_close((uv_handle_t *)aw->poll, on_poll_closed);
    aw->poll = NULL;
    closep(&aw->fd);
    netlink_close(&aw->nl);
}

/* ---- the router ------------------------------------------------------------------------------ */

/* A router that grants nothing is asked again after so long: there may be another one by then, or
 * it may have been configured to. */
#define ASK_AGAIN_AFTER (600 * NSEC_PER_SEC)

/*
 * A router that was restarted has forgotten what it granted. By NAT-PMP it takes two small packets
 * to have it again (RFC 6886 section 3.6); UPnP's search is noisier, and left to RETRY.
 */
#define NAT_PMP_CHECK (30 * NSEC_PER_SEC)

/* Shortest pause between two requests, whatever lifetime the router grants. */
#define ASK_PAUSE_MIN (30 * NSEC_PER_SEC)

struct port_map {
    port_map_fn fn;
    void *ctx; /* pins */
    uv_async_t answered;
    uv_thread_t thread;

    uv_mutex_t lock; /* guards what follows; no other lock is taken while it is held */
    uv_cond_t wake;
    uint16_t wanted_port; /* 0: none */
    bool is_asked;        /* the router is to be asked now */
    bool is_ending;
    bool gives_back;
    unsigned n_holders;           /* the thread, and the loop's handle: the last one frees */
    struct port_mapping granted;  /* the last answer */
    struct port_mapping held;     /* the last that was granted; the router may still have it */
    struct port_mapping reported; /* what the listener was told last; the loop's alone */
};

static void port_map_unref(struct port_map *pm)
{
    bool last;

    uv_mutex_lock(&pm->lock);
    last = --pm->n_holders == 0;
    uv_mutex_unlock(&pm->lock);
    if (!last)
        return;
    uv_cond_destroy(&pm->wake);
    uv_mutex_destroy(&pm->lock);
    free(pm);
}

nsec_t port_map_pause_after(const struct port_mapping *pm)
{
    nsec_t most = pm->kind == PORT_MAPPING_NAT_PMP ? NAT_PMP_CHECK : ASK_AGAIN_AFTER;

    if (pm->kind == PORT_MAPPING_NONE)
        return ASK_AGAIN_AFTER;
    return nsec_min(most, nsec_max(pm->lifetime / 2, ASK_PAUSE_MIN));
}

/* Holds the lock, but not while the router is being asked. */
static nsec_t ask_router(struct port_map *pm)
{
    struct port_mapping before = pm->granted;
    struct port_mapping now = {.kind = PORT_MAPPING_NONE};
    uint16_t port = pm->wanted_port;

    pm->is_asked = false;
    uv_mutex_unlock(&pm->lock);
    /* What is not granted stays of no kind. */
    (void)port_mapping_ask(&now, port,
        before.kind != PORT_MAPPING_NONE && before.internal_port == port ? &before : NULL, NULL);
    uv_mutex_lock(&pm->lock);
    pm->granted = now;
    if (now.kind != PORT_MAPPING_NONE)
        pm->held = now;
    /* The handle may be closed by then. */
    if (!pm->is_ending)
        (void)uv_async_send(&pm->answered);
    return port_map_pause_after(&now);
}

static void run_port_map(void *arg)
{
    struct port_map *pm = arg;
    nsec_t due = NSEC_NEVER;

    uv_mutex_lock(&pm->lock);
    while (!pm->is_ending) {
        nsec_t now = clock_now();

        if (pm->wanted_port != 0 && (pm->is_asked || now >= due))
            due = clock_now() + ask_router(pm);
        else if (due == NSEC_NEVER)
            uv_cond_wait(&pm->wake, &pm->lock);
        else
            (void)uv_cond_timedwait(&pm->wake, &pm->lock, (uint64_t)(due - now));
    }
    uv_mutex_unlock(&pm->lock);
    if (pm->gives_back)
        port_mapping_remove(&pm->held);
    port_map_unref(pm);
}

static void on_answered(uv_async_t *async)
{
    struct port_map *pm = async->data;
    struct port_mapping granted;

    uv_mutex_lock(&pm->lock);
    granted = pm->granted;
    uv_mutex_unlock(&pm->lock);
    if (granted.kind == pm->reported.kind &&
        endpoint_equal(&granted.external, &pm->reported.external))
        return;
    pm->reported = granted;
    pm->fn(pm->ctx, &granted);
}

int port_map_new(
    struct port_map **ret, struct uv_loop_s *loop, port_map_fn fn, void *ctx, struct err *e)
{
    struct port_map *pm = calloc(1, sizeof(*pm));
    int r;

    if (!pm)
        return err_set(e, -ENOMEM, "no memory for port mappings");
    pm->fn = fn;
    pm->ctx = ctx;
    if (uv_mutex_init(&pm->lock) != 0 || uv_cond_init(&pm->wake) != 0) {
        free(pm);
        return err_set(e, -ENOMEM, "no memory for port mappings");
    }
    (void)uv_async_init(loop, &pm->answered, on_answered);
    pm->answered.data = pm;
    /* This handle alone does not keep the loop running. */
    uv_unref((uv_handle_t *)&pm->answered);
    pm->n_holders = 2;
    r = uv_thread_create(&pm->thread, run_port_map, pm);
    if (r < 0) {
        pm->thread = 0;
        pm->n_holders = 1;
        (void)port_map_free(pm, false);
        return err_set(e, r, "a thread for port mappings cannot be started: %s", uv_strerror(r));
    }
    *ret = pm;
    return 0;
}

void port_map_ask(struct port_map *pm, uint16_t internal_port)
{
    uv_mutex_lock(&pm->lock);
    pm->wanted_port = internal_port;
    pm->is_asked = true;
    uv_cond_signal(&pm->wake);
    uv_mutex_unlock(&pm->lock);
}

static void on_async_closed(uv_handle_t *handle)
{
    port_map_unref(handle->data);
}

struct port_map *port_map_free(struct port_map *pm, bool give_back)
{
    bool waits;

    if (!pm)
        return NULL;
    uv_mutex_lock(&pm->lock);
    waits = give_back && pm->held.kind != PORT_MAPPING_NONE;
    pm->is_ending = true;
    pm->gives_back = give_back;
    uv_cond_signal(&pm->wake);
    uv_mutex_unlock(&pm->lock);
    if (waits)
        (void)uv_thread_join(&pm->thread);
    else if (pm->thread)
        (void)pthread_detach(pm->thread);
    uv_close((uv_handle_t *)&pm->answered, on_async_closed);
    return NULL;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* A round trip is taken for the present one for so long: three times what it takes to be measured
 * anew (REFRESH_AFTER). */
#define RTT_LIFE (90 * NSEC_PER_SEC)

/* ---- the servers ----------------------------------------------------------------------------- */

void local_candidates_set_servers(struct local_candidates *lc, const struct snapshot *s, nsec_t now)
{
    struct endpoint servers[STUN_CLIENT_SERVERS_MAX];
    unsigned n = 0;

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node_hub *hub = s->nodes.items[i]->node.hub;

        for (unsigned k = 0; hub && k < hub->n_endpoints && n + 2 <= STUN_CLIENT_SERVERS_MAX; k++) {
            servers[n++] = hub->endpoints[k];
            servers[n] = hub->endpoints[k];
            servers[n++].port = hub->api_port;
        }
    }
    stun_client_set_servers(&lc->stun, servers, n, now);
}

void local_candidates_set_addresses(
    struct local_candidates *lc, const struct ip_addr *addrs, unsigned n, uint16_t port, nsec_t now)
{
    lc->port = port;
    lc->n_own = 0;
    for (unsigned i = 0; i < n && i < CANDIDATES_MAX; i++)
        lc->own[lc->n_own++] = (struct endpoint){.addr = addrs[i], .port = port};
    lc->survey.n = 0;
    lc->fresh.port = 0;
    stun_client_forget(&lc->stun, now);
}

/* Has the NAT given us another port towards that server since? Then that port is the newest. */
static bool is_moved(const struct local_candidates *lc, const struct stun_view *v)
{
    for (unsigned i = 0; i < lc->survey.n; i++)
        if (endpoint_equal(&lc->survey.samples[i].server, &v->server))
            return !endpoint_equal(&lc->survey.samples[i].mapped, &v->mapped);
    return true;
}

bool local_candidates_on_answer(struct local_candidates *lc, const uint8_t *msg, size_t len,
    const struct endpoint *from, nsec_t at)
{
    const struct stun_view *v = stun_client_take(&lc->stun, msg, len, from, at);

    if (!v)
        return false;
    if (is_moved(lc, v))
        lc->fresh.port = 0;
    behavior_survey_add(&lc->survey, &v->server, &v->mapped, v->heard_at);
    return true;
}

/* ---- the newest port of a NAT that counts --------------------------------------------------- */

/* Where a server has answered over IPv4; NULL: none has. */
static const struct endpoint *find_server(const struct local_candidates *lc)
{
    for (unsigned i = 0; i < lc->stun.n_views; i++)
        if (lc->stun.views[i].heard_at != 0 && ip_addr_is_v4(&lc->stun.views[i].server.addr))
            return &lc->stun.views[i].server;
    return NULL;
}

bool local_candidates_begin_fresh(
    struct local_candidates *lc, const struct rng *rng, struct local_request *ret)
{
    const struct endpoint *server = find_server(lc);

    if (!server || behavior_of(&lc->survey, lc->own, lc->n_own).port_step == 0)
        return false;
    lc->fresh.server = *server;
    rng_fill(rng, lc->fresh.id.b, sizeof(lc->fresh.id.b));
    ret->to = *server;
    stun_encode_request(&lc->fresh.id, 0, ret->bytes);
    return true;
}

bool local_candidates_on_fresh(
    struct local_candidates *lc, const uint8_t *msg, size_t len, const struct endpoint *from)
{
    struct stun_response resp;

    if (!endpoint_equal(from, &lc->fresh.server) || stun_decode_response(&resp, msg, len) != 0 ||
        memcmp(resp.id.b, lc->fresh.id.b, sizeof(resp.id.b)) != 0)
        return false;
    lc->fresh.server = (struct endpoint){.port = 0};
    lc->fresh.port = resp.mapped.port;
    return true;
}

/* ---- what is known -------------------------------------------------------------------------- */

/* The overlay's own addresses are left out, whatever an interface that has one is called, and
 * whoever has given or seen it. */
static void add_candidate(const struct local_candidates *lc, struct candidates *c,
    enum candidate_kind kind, const struct endpoint *ep)
{
    if (!candidate_blocks_have(&lc->blocks, &ep->addr))
        (void)candidates_add(c, kind, ep);
}

static void add_candidates(const struct local_candidates *lc, struct candidates *c)
{
    for (unsigned i = 0; i < lc->n_own; i++)
        add_candidate(lc, c, CANDIDATE_HOST, &lc->own[i]);
    for (unsigned i = 0; i < lc->n_given; i++) {
        struct endpoint ep = lc->given[i];

        if (ep.port == 0)
            ep.port = lc->port;
        add_candidate(lc, c, CANDIDATE_GIVEN, &ep);
    }
    if (lc->mapping.kind != PORT_MAPPING_NONE)
        add_candidate(lc, c, CANDIDATE_MAPPED, &lc->mapping.external);
    for (unsigned i = 0; i < lc->stun.n_views; i++)
        if (lc->stun.views[i].heard_at != 0)
            add_candidate(lc, c, CANDIDATE_REFLEXIVE, &lc->stun.views[i].mapped);
}

void local_candidates_fill(const struct local_candidates *lc, struct path_side *side)
{
    side->candidates = (struct candidates){.n = 0};
    add_candidates(lc, &side->candidates);
    side->nat = behavior_of(&lc->survey, lc->own, lc->n_own);
    side->nat.is_blocked = lc->is_blocked;
    if (side->nat.port_step != 0 && lc->fresh.port != 0)
        side->nat.last_port = lc->fresh.port;
    side->keepalive = lc->keepalive;
    side->can_guess = true;
}

struct ip_addr local_candidates_outside(
    const struct local_candidates *lc, const struct endpoint *server)
{
    for (unsigned i = 0; i < lc->stun.n_views; i++)
        if (lc->stun.views[i].heard_at != 0 && endpoint_equal(&lc->stun.views[i].server, server))
            return lc->stun.views[i].mapped.addr;
    return (struct ip_addr){{0}};
}

/* It was measured, not too long ago, and loses nothing. */
static bool is_rtt_known(const struct stun_view *v, nsec_t now)
{
    return v->heard_at != 0 && now - v->heard_at < RTT_LIFE && !stun_view_is_full(v);
}

nsec_t local_candidates_hub_rtt(
    const struct local_candidates *lc, const struct endpoint *hub, nsec_t now)
{
    nsec_t least = 0;

    for (unsigned i = 0; i < lc->stun.n_views; i++) {
        const struct stun_view *v = &lc->stun.views[i];

        if (endpoint_equal(&v->server, hub))
            return is_rtt_known(v, now) ? nsec_max(v->rtt, 1) : 0;
        if (is_rtt_known(v, now) && (least == 0 || v->rtt < least))
            least = nsec_max(v->rtt, 1);
    }
    return least;
}
