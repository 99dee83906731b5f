/*
 * hub.c - puts the hub together: opens and closes it, and does what is done by the clock.
 *
 * What a change of the model leads to is in changes.c, the doors' handlers in door_*.c.
 */
#include "hub.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "api/stream.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "os/log.h"
#include "base/secret.h"
#include "base/text.h"
#include "hub/hub_internal.h"
#include "hub/networks.h"
#include "os/clock.h"
#include "os/rng_kernel.h"
#include "os/statefile.h"
#include "store/store_open.h"

/* How often the leases of ephemeral nodes that are there are begun anew. */
#define KEEP_EACH (10 * NSEC_PER_SEC)

/* A node whose last handshake is younger is there: WireGuard makes a new one every 120 s. */
#define HANDSHAKE_FRESH (180 * NSEC_PER_SEC)

const char *hub__path(const struct hub *hub, char buf[static 512], const char *fmt, ...)
{
    int n = snprintf(buf, 512, "%s/", hub->config.state_dir);
    va_list ap;

    if (n < 0 || n >= 512)
        return buf;
    va_start(ap, fmt);
    (void)vsnprintf(buf + n, 512 - (size_t)n, fmt, ap);
    va_end(ap);
    return buf;
}

int64_t hub__wall(void)
{
    return clock_wall() / NSEC_PER_SEC;
}

/* ---- the clock ------------------------------------------------------------------------------ */

/*
 * When the node was heard last, by a request, its watch or its WireGuard session; 0: not lately.
 * Of a node without an agent nothing but its handshakes is known.
 */
static nsec_t heard_at(struct hub *hub, const struct model_node *node, nsec_t now)
{
    nsec_t at = node->seen > 0 && now - node->seen < 2 * KEEP_EACH ? node->seen : 0;
    struct hub_facts facts = {0};

    if (watch_is_open(node))
        return now;
    if (hub->hooks.facts && hub->hooks.facts(hub->hooks.ctx, &node->pub, &facts) &&
        facts.handshake > at && now - facts.handshake < HANDSHAKE_FRESH)
        at = facts.handshake;
    return at;
}

/* Those who are there were seen; and the ephemeral among them stay. */
static void keep_nodes(struct hub *hub, struct model_network *net, nsec_t now, int64_t wall)
{
    for (size_t i = 0; i < net->nodes.n; i++) {
        struct model_node *node = model_node_at(net, i);
        nsec_t at = node->pub.spec.hub ? 0 : heard_at(hub, node, now);
        int64_t wall_at = wall - (now - at) / NSEC_PER_SEC;
        char key[RECORD_KEY_MAX];

        if (at == 0)
            continue;
        /* The same handshake, a second off by rounding, is no news. */
        if (at > node->seen || wall_at > node->heard.last_seen + 1)
            reports_seen(&hub->reports, node, at, wall_at);
        if (node->pub.spec.ephemeral)
            (void)store_keep(hub->store,
                record_key(key, RECORD_NODE, net->pub.spec.meta.name, node->pub.spec.meta.name),
                now, NULL);
    }
}

static void expire(struct hub *hub, nsec_t now)
{
    struct err e = ERR_NULL;

    if (store_due(hub->store) > now)
        return;
    if (model_expire(&hub->model, now, &e) != 0)
        log_warning("what has expired stays until the next try: %s", err_text(&e));
}

static void on_tick(uv_timer_t *timer)
{
    struct hub *hub = timer->data;
    struct err e = ERR_NULL;
    nsec_t now = clock_now();

    if (now - hub->kept >= KEEP_EACH) {
        hub->kept = now;
        for (size_t i = 0; i < hub->model.networks.n; i++)
            keep_nodes(hub, model_network_at(&hub->model, i), now, hub__wall());
    }
    if ((publics_tick(&hub->publics, now) || hub->refresh_failure.code != 0) &&
        networks_refresh(hub, now, &e) != 0)
        log_warning("nodes are not told where this hub is now: %s", err_text(&e));
    expire(hub, now);
    if (reports_tick(&hub->reports, now, &e) != 0)
        log_warning("reports are kept in memory: %s", err_text(&e));
    if (audit_tick(&hub->audit, now, false, &e) != 0)
        log_warning("the audit log waits for the next try: %s", err_text(&e));
    watch_tick(&hub->watcher, now);
    jobs_tick(hub->jobs, now);
    streams_tick(&hub->streams, now);
}

void hub_node_seen(struct hub_node *node)
{
    struct model_node *n = model_node_of(node);

    /* Whoever calls this has no hub at hand; keep_nodes() takes it from here. */
    n->seen = clock_now();
}

/* ---- opening -------------------------------------------------------------------------------- */

static int open_files(struct hub *hub, struct err *e)
{
    char key[512];
    char certificate[512];
    int r = statefile_make_dir(hub->config.state_dir, 0700, e);

    if (r == 0)
        r = statefile_make_dir(hub__path(hub, key, "keys"), 0700, e);
    if (r == 0)
        r = identity_open(&hub->identity, hub__path(hub, key, "tls.key"),
            hub__path(hub, certificate, "tls.crt"), e);
    return r;
}

static void on_stream(void *ctx, struct model_node *node, const struct endpoint *ep)
{
    struct hub *hub = ctx;

    if (node->net->is_up && hub->hooks.node_at)
        hub->hooks.node_at(hub->hooks.ctx, &node->pub, ep);
}

static void init_parts(struct hub *hub)
{
    struct model_listener listener = hub__changes(hub);

    model_init(&hub->model, hub->store, &listener, rng_u64(&hub->rng));
    audit_init(&hub->audit, hub->store, hub__wall, access_before, hub);
    if (hub->config.audit_age_s > 0)
        hub->audit.age_s = hub->config.audit_age_s;
    hub->model.audit = &hub->audit;
    /* As many bits as a number in JSON keeps. */
    hub->model.boot = rng_u64(&hub->rng) >> 11 | 1;
    reports_init(&hub->reports, &hub->model);
    watcher_init(&hub->watcher, &hub->model);
    enrol_init(&hub->enrol, &hub->model, &hub->rng);
    admin_tokens_init(&hub->admins, &hub->model, &hub->rng);
    streams_init(&hub->streams, hub->loop, hub->config.udp_port);
    hub->streams.on_open = on_stream;
    hub->streams.ctx = hub;
}

/* The list of records that are set aside is shown to people, and a rendezvous process may say so of
 * all that it is told: beyond so many, those of jobs are not listed. */
#define DAMAGED_MAX 1000

static void on_job_damaged(void *ctx, const char *key, const char *why)
{
    struct hub *hub = ctx;
    struct err e;

    if (hub->model.damaged.records.n >= DAMAGED_MAX)
        return;
    (void)err_set(&e, -EUCLEAN, "%s", why);
    model_set_aside(&hub->model, key, 0, &e);
}

static void on_job_written(void *ctx, const char *key)
{
    struct hub *hub = ctx;

    (void)damaged_remove(&hub->model.damaged, key);
}

static int load_jobs(struct hub *hub, struct err *e)
{
    struct jobs_records records = {
        .ctx = hub, .damaged = on_job_damaged, .written = on_job_written};

    return jobs_new(
        &hub->jobs, hub->loop, hub->store, &records, rng_u64(&hub->rng), rng_u64(&hub->rng), e);
}

int hub_new(struct hub **ret, struct uv_loop_s *loop, const struct hub_config *config,
    const struct hub_hooks *hooks, struct err *e)
{
    struct hub *hub = calloc(1, sizeof(*hub));
    char path[512];
    int r;

    if (!hub || disk_works_init(&hub->disk, loop) != 0) {
        free(hub);
        return err_set(e, -ENOMEM, "no memory for a hub");
    }
    hub->config = *config;
    hub->publics.here = config->publics;
    hub->loop = loop;
    hub->rng = rng_kernel();
    if (hooks) {
        hub->hooks = *hooks;
        hub->has_hooks = true;
    }
    r = open_files(hub, e);
    if (r == 0)
        publics_load(&hub->publics, hub__path(hub, path, "move.json"), config->udp_port);
    hub->store = config->store;
    if (r == 0 && !hub->store)
        r = store_open(&hub->store, config->store_url, clock_now(), e);
    init_parts(hub);
    if (r == 0)
        r = audit_open(&hub->audit, e);
    if (r == 0)
        r = model_load(&hub->model, e);
    if (r == 0)
        r = admin_tokens_load(&hub->admins, e);
    if (r == 0)
        r = admin_tokens_open_file(&hub->admins, hub__path(hub, path, "admin.token"), e);
    if (r == 0)
        r = load_jobs(hub, e);
    if (r != 0) {
        hub_free(hub);
        return r;
    }
    *ret = hub;
    return 0;
}

/* ---- starting and stopping ------------------------------------------------------------------ */

static void on_store(uv_poll_t *poll, int status, int events)
{
    struct hub *hub = container_of(poll, struct hub, answers);

    store_dispatch(hub->store);
}

void hub__start_loop(struct hub *hub)
{
    (void)uv_timer_init(hub->loop, &hub->tick);
    (void)uv_timer_init(hub->loop, &hub->bury);
    (void)uv_poll_init(hub->loop, &hub->answers, store_fd(hub->store));
    (void)uv_poll_start(&hub->answers, UV_READABLE, on_store);
    hub->tick.data = hub;
    hub->bury.data = hub;
    hub->has_handles = true;
}

static int open_server(struct hub *hub, struct err *e)
{
    struct server_config config = {
        .loop = hub->loop,
        .routes = hub__routes,
        .ctx = hub,
        .identity = &hub->identity,
        .identify = access_identify,
        .begin = access_begin,
        .end = access_end,
    };
    int r = server_new(&hub->server, &config, e);

    if (r == 0)
        r = server_listen_tls(hub->server, &hub->config.api_listen, &hub->api_port, e);
    if (r == 0)
        r = server_listen_unix(hub->server, hub->config.socket_path, e);
    /* To look, for members of the group. */
    return r == 0 ? server_listen_users(hub->server, hub->config.socket_path, ROLE_VIEWER, e) : r;
}

/* Nodes get by without it. */
static void open_stun(struct hub *hub)
{
    struct err e = ERR_NULL;

    if (stun_port_new(&hub->stun, hub->loop, hub->api_port, rng_u64(&hub->rng), &e) < 0)
        log_info("nodes cannot tell what kind of NAT they are behind: %s", err_text(&e));
}

static int bring_up_all(struct hub *hub, struct err *e)
{
    for (size_t i = 0; i < hub->model.networks.n; i++) {
        struct model_network *net = model_network_at(&hub->model, i);

        if (net->is_up)
            continue;
        hub__bring_up(hub, net);
        if (net->is_up)
            continue;
        if (e)
            *e = net->failure;
        return err_prefix(e, "network \"%s\"", net->pub.spec.meta.name);
    }
    return 0;
}

/* The hub has networks already, so what was given for the first one changes nothing. */
static void compare_first(const struct hub *hub, const char *name, const struct ip_prefix *cidr4)
{
    const char *asked = name ? name : NETWORKS_NAME_DEFAULT;
    const struct model_network *net = model_find_network(&hub->model, asked);
    char given[IP_PREFIX_TEXT_MAX];
    char held[IP_PREFIX_TEXT_MAX];

    if (name && !net)
        log_warning("--network %s is for the first start only, and this hub has other networks "
                    "already: \"weft network add %s\" makes it",
            name, name);
    if (cidr4->len > 0 && net && !ip_prefix_equal(cidr4, &net->pub.spec.cidr4))
        log_warning(
            "--cidr4 %s is for the first start only: network \"%s\" has %s already, for good",
            ip_prefix_format(cidr4, given), asked, ip_prefix_format(&net->pub.spec.cidr4, held));
}

/* What networks_add() said later. */
struct first {
    int r;
    struct err *e; /* borrowed */
};

static void on_first(void *ctx, int r, struct model_network *net, const struct err *e)
{
    struct first *first = ctx;

    first->r = r;
    if (r != 0 && first->e)
        *first->e = *e;
}

/* Waits for it. */
static int add_first(
    struct hub *hub, const char *name, const struct ip_prefix *cidr4, struct err *e)
{
    struct network_request rq = {
        .cidr4 = *cidr4, .mtu = NETWORK_MTU_DEFAULT, .keepalive = NETWORK_KEEPALIVE_AUTO};
    struct first first = {.e = e};
    int r;

    /* One whose record is damaged is there, too. */
    if (hub->model.networks.n > 0 ||
        damaged_find_below(&hub->model.damaged, record_prefix(RECORD_NETWORK))) {
        compare_first(hub, name, cidr4);
        return 0;
    }
    (void)snprintf(rq.name, sizeof(rq.name), "%s", name ? name : NETWORKS_NAME_DEFAULT);
    r = networks_add(hub, &rq, on_first, &first, e);
    store_wait(hub->store);
    return r == 0 ? first.r : r;
}

int hub_start(
    struct hub *hub, const char *first_network, const struct ip_prefix *first_cidr4, struct err *e)
{
    nsec_t now = clock_now();
    int r;

    hub__start_loop(hub);
    jobs_start(hub->jobs, &hub->model.networks);
    r = open_server(hub, e);
    if (r == 0)
        open_stun(hub);
    if (r == 0)
        r = add_first(hub, first_network, first_cidr4, e);
    if (r == 0)
        r = networks_refresh(hub, now, e);
    store_wait(hub->store);
    if (r == 0 && hub->refresh_failure.code != 0)
        r = err_set(e, -EIO, "%s", err_text(&hub->refresh_failure));
    hub->is_running = r == 0;
    if (r == 0)
        r = bring_up_all(hub, e);
    /* What has begun with this is there when somebody asks. */
    store_wait(hub->store);
    if (r == 0)
        (void)uv_timer_start(&hub->tick, on_tick, 1000, 1000);
    return r;
}

/* Who still waits for an answer gets it: from the store, or of what is written to other files. Each
 * may lead to the other. */
static void finish_requests(struct hub *hub)
{
    do {
        store_wait(hub->store);
        disk_works_wait(&hub->disk);
    } while (store_pending(hub->store) > 0);
}

void hub_stop(struct hub *hub)
{
    struct err e = ERR_NULL;
    struct model_network *net;
    struct model_network *tmp;

    if (!hub->has_handles)
        return;
    hub->has_handles = false;
    finish_requests(hub);
    if (reports_flush(&hub->reports, clock_now(), &e) != 0)
        log_warning("the last reports are lost: %s", err_text(&e));
    (void)audit_tick(&hub->audit, clock_now(), true, &e);
    store_wait(hub->store);
    if (audit_tick(&hub->audit, clock_now(), true, &e) != 0)
        log_warning("the last refusals are not in the audit log: %s", err_text(&e));
    streams_stop(&hub->streams);
    for (size_t i = 0; i < hub->model.networks.n; i++) {
        net = model_network_at(&hub->model, i);
        for (size_t k = 0; net->is_up && k < net->nodes.n; k++) {
            struct hub_node *node = &model_node_at(net, k)->pub;

            if (node->spec.hub)
                continue;
            if (hub->hooks.node_cut)
                hub->hooks.node_cut(hub->hooks.ctx, node);
            if (hub->hooks.node_gone)
                hub->hooks.node_gone(hub->hooks.ctx, node);
        }
        hub__take_down(hub, net);
    }
    list_foreach_safe(net, tmp, &hub->model.buried, bury)
        hub__take_down(hub, net);
    hub->is_running = false;
    jobs_stop(hub->jobs);
    hub->stun = stun_port_free(hub->stun);
    uv_close((uv_handle_t *)&hub->tick, NULL);
    uv_close((uv_handle_t *)&hub->bury, NULL);
    store_wait(hub->store);
    uv_close((uv_handle_t *)&hub->answers, NULL);
    if (hub->server)
        server_stop(hub->server);
}

struct hub *hub_free(struct hub *hub)
{
    if (!hub)
        return NULL;
    server_free(hub->server);
    arrivals_deinit(&hub->arrivals);
    json_decref(hub->held_keys);
    jobs_free(hub->jobs);
    publics_deinit(&hub->publics);
    enrol_deinit(&hub->enrol);
    admin_tokens_deinit(&hub->admins);
    model_deinit(&hub->model);
    store_free(hub->store);
    identity_close(&hub->identity);
    disk_works_deinit(&hub->disk);
    free(hub);
    return NULL;
}

/* ---- for the hooks -------------------------------------------------------------------------- */

const struct hub_config *hub_config(const struct hub *hub)
{
    return &hub->config;
}

uint16_t hub_api_port(const struct hub *hub)
{
    return hub->api_port;
}

const char *hub_pin(const struct hub *hub, char buf[static HUB_PIN_TEXT_MAX])
{
    _Static_assert(BASE64_ROOM(sizeof(hub->identity.pin.b)) == HUB_PIN_TEXT_MAX, "it fits");
    base64_encode(hub->identity.pin.b, sizeof(hub->identity.pin.b), buf);
    return buf;
}

struct uv_loop_s *hub_loop(struct hub *hub)
{
    return hub->loop;
}

/* The item of @k behind the one with @key, or the first. */
static struct keyed *next_of(const struct keys *k, const struct keyed *after)
{
    size_t i = after ? keys_lower(k, after->key) + 1 : 0;

    return i < k->n ? k->items[i] : NULL;
}

struct hub_network *hub_next_network(struct hub *hub, struct hub_network *after)
{
    struct keyed *k = next_of(&hub->model.networks, after ? &model_network_of(after)->keyed : NULL);

    return k ? &container_of(k, struct model_network, keyed)->pub : NULL;
}

struct hub_network *hub_find_network(struct hub *hub, const char *name)
{
    struct model_network *net = model_find_network(&hub->model, name);

    return net ? &net->pub : NULL;
}

struct hub_node *hub_next_node(struct hub_network *net, struct hub_node *after)
{
    struct keyed *k =
        next_of(&model_network_of(net)->nodes, after ? &model_node_of(after)->keyed : NULL);

    return k ? &container_of(k, struct model_node, keyed)->pub : NULL;
}

static struct hub_node *public_half(struct model_node *node)
{
    return node ? &node->pub : NULL;
}

struct hub_node *hub_find_node(struct hub_network *net, const char *name)
{
    return public_half(model_find_node(model_network_of(net), name));
}

struct hub_node *hub_find_node_by_key(struct hub_network *net, const struct x25519_public *key)
{
    return public_half(model_find_key(model_network_of(net), key));
}

struct hub_node *hub_find_node_by_address(struct hub_network *net, const struct ip_addr *address)
{
    return public_half(model_find_address(model_network_of(net), address));
}

bool hub_node_is_self(const struct hub_node *node)
{
    return node->spec.hub != NULL;
}

bool hub_may_talk(const struct hub_node *a, const struct hub_node *b)
{
    return model_may_talk(model_node_of(a), model_node_of(b));
}

static int open_jobs(
    struct hub *hub, struct model_network *net, const char *interface, struct err *e)
{
    struct jobs_place place = {.network = net->pub.spec.meta.name,
        .interface = interface,
        .address4 = net->pub.address4,
        .address6 = net->pub.address6};
    int r = jobs_open(&net->jobs, hub->jobs, &place, e);

    for (size_t i = 0; r == 0 && i < net->nodes.n; i++) {
        const struct node *node = &model_node_at(net, i)->pub.spec;

        jobs_add_member(&net->jobs, &node->address4);
        jobs_add_member(&net->jobs, &node->address6);
    }
    return r;
}

int hub_open_door(struct hub *hub, struct hub_network *net, const char *interface, struct err *e)
{
    struct model_network *n = model_network_of(net);
    struct endpoint at4 = {.addr = net->address4, .port = hub->api_port};
    struct endpoint at6 = {.addr = net->address6, .port = hub->api_port};
    int r = server_listen_overlay(hub->server, &at4, interface, n, &n->doors[0], e);

    if (r == 0)
        r = server_listen_overlay(hub->server, &at6, interface, n, &n->doors[1], e);
    if (r == 0)
        r = open_jobs(hub, n, interface, e);
    if (r != 0) {
        n->doors[0] = server_listener_close(n->doors[0]);
        n->doors[1] = server_listener_close(n->doors[1]);
    }
    return r;
}
