/* changes.c - see changes.h. */
#include "hub/changes.h"

#include <net/if.h>
#include <string.h>
#include <uv.h>

#include "api/server/server.h"
#include "base/err.h"
#include "hub/jobs/jobs.h"
#include "hub/networks/networks.h"
#include "hub/overlay/overlay.h"
#include "hub/streams/streams.h"
#include "hub/watch/edge_events.h"
#include "hub/watch/health.h"
#include "hub/watch/hub_access.h"
#include "hub/watch/watch.h"
#include "mesh/keys/key_node.h"
#include "mesh/object/rule.h"
#include "os/clock.h"
#include "os/log.h"

/* How long something that was removed keeps its session or interface; see changes.h. */
#define REAP_AFTER (700 * NSEC_PER_MSEC)

void changes_init(struct changes *c, struct model *model, struct networks *networks,
    struct watcher *watcher, struct overlay *overlay, const char *interface_prefix)
{
    *c = (struct changes){.model = model,
        .networks = networks,
        .watcher = watcher,
        .overlay = overlay,
        .interface_prefix = interface_prefix};
}

void changes_start_timer(struct changes *c, struct uv_loop_s *loop)
{
    (void)uv_timer_init(loop, &c->reap_timer);
    c->reap_timer.data = c;
    c->has_timer = true;
}

/* ---- the model's changes -------------------------------------------------------------------- */

/* Hubs have no sessions with each other: what one has to tell another is in the store. */
static bool is_member(const struct model_node *node)
{
    return node->spec.hub == NULL;
}

static void close_listeners(const struct model_network *net)
{
    for (unsigned i = 0; i < 2; i++)
        net->served->listeners[i] = server_listener_close(net->served->listeners[i]);
}

/* A hub comes to no job: who connects from its own address is some program of its machine, which
 * jobs_set_own_member() lets come where that is a member. */
static void let_come(const struct model_network *net, const struct ip_addr *address, bool may_come)
{
    if (may_come)
        jobs_add_member(&net->served->jobs, address);
}

/* To those who are its members now. */
int changes_open_jobs(struct changes *c, const struct model_network *net, const char *fence,
    uint64_t revision, uint64_t epoch, struct err *e)
{
    struct jobs_place place = {.network = net->spec.meta.name,
        .interface = net->served->interface,
        .address4 = net->address4,
        .address6 = net->address6,
        .fence = fence,
        .fence_revision = revision,
        .epoch = epoch};
    int r = jobs_open(&net->served->jobs, c->jobs, &place, e);

    for (size_t i = 0; r == 0 && i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);

        let_come(net, &node->spec.address4, is_member(node));
        let_come(net, &node->spec.address6, is_member(node));
    }
    return r;
}

/* Answer the network's members, at both addresses that the hub has on its interface. */
static int listen_to_members(struct changes *c, const struct model_network *net, struct err *e)
{
    const char *interface = net->served->interface;
    void *ctx = (void *)net; /* which access.c gets back, const again */
    struct endpoint at4 = {.addr = net->address4, .port = c->api_port};
    struct endpoint at6 = {.addr = net->address6, .port = c->api_port};
    int r;

    /* Without a data half somebody else made the interface, or there is none. */
    if (!c->overlay && if_nametoindex(interface) == 0)
        return 0;
    r = server_listen_overlay(c->server, &at4, interface, ctx, &net->served->listeners[0], e);
    if (r == 0)
        r = server_listen_overlay(c->server, &at6, interface, ctx, &net->served->listeners[1], e);
    /* Of several hubs one serves the jobs, which owners.h says. */
    if (r == 0 && !store_is_shared(c->model->store))
        r = changes_open_jobs(c, net, NULL, 0, 0, e);
    if (r != 0)
        close_listeners(net);
    return r;
}

/* Tell the data half of the edges of @node that are off already: it does not ask by itself. */
static void add_edges(const struct model_node *node)
{
    struct model_edge_end *end;

    list_foreach(end, &node->edges, link) {
        const struct model_edge *edge = end->edge;

        if (edge->spec.path == EDGE_PATH_OFF && edge->ends[0].node && edge->ends[1].node)
            overlay_change_edge(edge->ends[0].node, edge->ends[1].node);
    }
}

/* Of two stock WireGuards no agent refuses anything: the relay does, by pair. */
static void tell_relay_of(const struct changes *c, const struct model_node *node)
{
    for (size_t i = 0; c->overlay && node->spec.stock && i < node->net->nodes.n; i++)
        if (model_node_at(node->net, i) != node && model_node_at(node->net, i)->spec.stock)
            overlay_change_edge(node, model_node_at(node->net, i));
}

static void reap(const struct model_node *node)
{
    overlay_remove_node(node);
    streams_end_node(node);
    model_reap(node);
}

/* Stop answering the network's members, free its removed nodes, and end its data half. If the
 * network itself was removed, it is freed too. */
static void take_down(const struct model_network *net)
{
    const struct model_node *node;
    const struct model_node *tmp;

    close_listeners(net);
    jobs_close(&net->served->jobs, !list_is_empty(&net->reap));
    list_foreach_safe(node, tmp, &net->removed, reap)
        reap(node);
    hub_access_end(net);
    overlay_remove_network(net);
    net->served->is_up = false;
    if (!list_is_empty(&net->reap))
        model_reap_network(net);
}

static void cut_members(const struct model_network *net)
{
    for (size_t i = 0; i < net->nodes.n; i++) {
        overlay_cut_node(model_node_at(net, i));
        overlay_remove_node(model_node_at(net, i));
    }
}

void changes_bring_up(struct changes *c, const struct model_network *net)
{
    struct err *e = &net->served->failure;
    const struct model_network *old;
    const struct model_network *tmp;
    int r = 0;

    /* Removed networks may still have the interface which @net is to have. */
    list_foreach_safe(old, tmp, &c->model->removed, reap) {
        if (strcmp(old->served->interface, net->served->interface) == 0)
            take_down(old);
    }
    if (c->overlay)
        r = overlay_add_network(c->overlay, net, e);
    if (r == 0) {
        r = listen_to_members(c, net, e);
        if (r != 0)
            overlay_remove_network(net);
    }
    net->served->is_up = r == 0;
    net->served->failure.code = r;
    for (size_t i = 0; r == 0 && c->overlay && i < net->nodes.n; i++)
        if (is_member(model_node_at(net, i)))
            overlay_add_node(c->overlay, model_node_at(net, i), clock_now());
    for (size_t i = 0; r == 0 && i < net->nodes.n; i++)
        add_edges(model_node_at(net, i));
}

static int on_network_key(void *ctx, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e)
{
    const struct changes *c = ctx;

    int r = networks_key(c->networks, name, public, ret, e);

    if (r != 0 && e)
        c->networks->key_failure = *e;
    return r;
}

static void on_network_added(void *ctx, const struct model_network *net)
{
    struct changes *c = ctx;

    networks_interface(c->interface_prefix, net->spec.meta.name, net->served->interface);
    /* It is brought up when this hub's own node has come, which usually is in the same commit. */
}

static void on_network_changed(void *ctx, const struct model_network *net)
{
    struct changes *c = ctx;

    hub_access_mark_rules(net);
    watch_tell_object(
        c->watcher, net, &net->watched->change, &network_kind, net->spec.meta.name, clock_now());
}

/* Free the removed nodes whose time has come. Returns when the time of the next one comes. */
static nsec_t reap_due(struct changes *c, const struct model_network *net, nsec_t now)
{
    nsec_t next = NSEC_NEVER;
    const struct model_node *node;
    const struct model_node *tmp;

    list_foreach_safe(node, tmp, &net->removed, reap) {
        if (node->served->reap_at <= now)
            reap(node);
        else
            next = nsec_min(next, node->served->reap_at);
    }
    return next;
}

static void on_reap(uv_timer_t *timer)
{
    struct changes *c = timer->data;
    nsec_t now = clock_now();
    nsec_t next = NSEC_NEVER;
    const struct model_network *net;
    const struct model_network *tmp;

    for (size_t i = 0; i < c->model->networks.n; i++)
        next = nsec_min(next, reap_due(c, model_network_at(c->model, i), now));
    list_foreach_safe(net, tmp, &c->model->removed, reap) {
        if (net->served->reap_at <= now)
            take_down(net);
        else
            next = nsec_min(next, net->served->reap_at);
    }
    if (next != NSEC_NEVER)
        (void)uv_timer_start(timer, on_reap, (uint64_t)((next - now) / NSEC_PER_MSEC) + 1, 0);
}

/* Something was removed at @now: let the timer run. Returns when that is to be freed. */
static nsec_t plan_reaping(struct changes *c, nsec_t now)
{
    if (!uv_is_active((uv_handle_t *)&c->reap_timer))
        (void)uv_timer_start(&c->reap_timer, on_reap, (uint64_t)(REAP_AFTER / NSEC_PER_MSEC), 0);
    return now + REAP_AFTER;
}

static void on_network_removed(void *ctx, const struct model_network *net)
{
    const struct changes *c = ctx;

    networks_forget(c->networks, net->spec.meta.name);
    if (c->events)
        edge_events_forget(c->events, net->spec.meta.name);
    if (c->health)
        health_forget(c->health, net->spec.meta.name);
    net->served->reap_at = plan_reaping(ctx, clock_now());
}

/* Free removed nodes whose key or address @node has: the data half knows each of them only once. */
static void reap_former_owners(struct changes *c, const struct model_node *node)
{
    const struct node *spec = &node->spec;
    const struct model_node *old;
    const struct model_node *tmp;

    list_foreach_safe(old, tmp, &node->net->removed, reap) {
        if (x25519_public_equal(&old->spec.key, &spec->key) ||
            ip_addr_equal(&old->spec.address4, &spec->address4) ||
            ip_addr_equal(&old->spec.address6, &spec->address6))
            reap(old);
    }
}

static void on_node_added(void *ctx, const struct model_node *node)
{
    struct changes *c = ctx;

    if (!c->is_running)
        return;
    hub_access_mark(node->net);
    let_come(node->net, &node->spec.address4, is_member(node));
    let_come(node->net, &node->spec.address6, is_member(node));
    reap_former_owners(c, node);
    if (model_is_self(node) && !node->net->served->is_up)
        changes_bring_up(c, node->net);
    if (node->net->served->is_up && is_member(node)) {
        if (c->overlay)
            overlay_add_node(c->overlay, node, clock_now());
        add_edges(node);
        tell_relay_of(c, node);
    }
    watch_tell_newcomer(c->watcher, node, clock_now());
}

/* Is it known by another second key, while it changes its key, than before? */
static bool has_other_keys(const struct node *before, const struct node *now)
{
    struct x25519_public keys[2] = {{{0}}};

    (void)key_node_other(before, &keys[0]);
    (void)key_node_other(now, &keys[1]);
    return !x25519_public_equal(&keys[0], &keys[1]);
}

static void on_node_changed(void *ctx, const struct model_node *node, const struct node *before)
{
    struct changes *c = ctx;
    const struct node *spec = &node->spec;
    bool is_changed = !x25519_public_equal(&spec->key, &before->key);
    /* Under a key that it has signed itself it is the same node. */
    bool rekeyed = is_changed && !key_node_follows(before, spec);
    bool has_new_keys = is_changed || has_other_keys(before, spec);
    bool moved4 = !ip_addr_equal(&spec->address4, &before->address4);
    bool moved6 = !ip_addr_equal(&spec->address6, &before->address6);

    hub_access_mark(node->net);
    if (rekeyed)
        streams_end_node(node);
    /* One that is pinned for an edge may be another one now. */
    if (rekeyed && c->health)
        health_look_again(c->health, node->net);
    if (moved4)
        jobs_end_member(&node->net->served->jobs, &before->address4);
    if (moved6)
        jobs_end_member(&node->net->served->jobs, &before->address6);
    if (moved4)
        let_come(node->net, &spec->address4, is_member(node));
    if (moved6)
        let_come(node->net, &spec->address6, is_member(node));
    if (has_new_keys || moved4 || moved6)
        overlay_change_node(node, before);
    tell_relay_of(c, node);
    if (has_new_keys)
        watch_tell_rekeyed(c->watcher, node, clock_now());
    else
        watch_tell_node(c->watcher, node);
}

static void on_status_changed(void *ctx, const struct model_node *node)
{
    struct changes *c = ctx;

    if (c->is_running)
        watch_tell_status(c->watcher, node, clock_now());
}

static void on_deleted(void *ctx, const struct store_answer *a)
{
    if (a->r != 0)
        log_warning("what was known about a removed node stays in the store: %s", err_text(a->e));
}

static void delete_record(struct changes *c, enum record_kind kind, const struct model_network *net,
    const char *name, nsec_t now)
{
    char key[RECORD_KEY_MAX];
    struct store_op op = {.kind = STORE_OP_DELETE,
        .key = record_key(key, kind, net->spec.meta.name, name),
        .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;

    if (store_commit(c->model->store, &op, 1, now, on_deleted, NULL, &e) != 0)
        log_warning("\"%s\" stays in the store: %s", key, err_text(&e));
}

/* Delete what the store still has of a removed node, or the next node of that name would have it.
 * Usually that went in the same commit; what was on its way to the store then is left. */
static void delete_orphans(struct changes *c, const struct model_node *node, nsec_t now)
{
    const struct model_network *net = node->net;
    const char *name = node->spec.meta.name;

    if (!node->served->leaving)
        delete_record(c, RECORD_REPORT, net, name, now);
    for (size_t i = 0; i < net->edges.n; i++) {
        const struct mesh_edge *edge = &model_edge_at(net, i)->spec;

        if (strcmp(edge->nodes[0], name) == 0 || strcmp(edge->nodes[1], name) == 0)
            delete_record(c, RECORD_EDGE, net, edge->meta.name, now);
    }
}

/* This hub's own node was removed, by another hub: serve the network no more. Frees all removed
 * nodes of the network. */
static void retire(struct changes *c, const struct model_network *net)
{
    if (!net->served->is_up)
        return;
    log_error(
        "hub \"%s\" was removed from network \"%s\" by an administrator: it serves the network "
        "no more, until it is started again",
        c->model->self, net->spec.meta.name);
    model_retire(net);
    cut_members(net);
    take_down(net);
}

static void on_node_removed(void *ctx, const struct model_node *node)
{
    struct changes *c = ctx;
    nsec_t now = clock_now();
    const char *reason = node->served->leaving ? node->served->leaving : node->net->leaving;

    if (!reason)
        reason = "it was away for too long";
    hub_access_mark(node->net);
    overlay_cut_node(node);
    watch_tell_node_removed(c->watcher, node, reason, now);
    jobs_end_member(&node->net->served->jobs, &node->spec.address4);
    jobs_end_member(&node->net->served->jobs, &node->spec.address6);
    if (!node->net->leaving)
        delete_orphans(c, node, now);
    if (!node->served->leaving && !node->net->leaving)
        log_info("node \"%s\" of network \"%s\" is removed: %s", node->spec.meta.name,
            node->net->spec.meta.name, reason);
    if (c->health && !node->net->leaving)
        health_node_gone(c->health, node, clock_wall_s());
    node->served->reap_at = plan_reaping(c, now);
    if (strcmp(node->spec.meta.name, c->model->self) == 0 && !node->net->leaving)
        retire(c, node->net);
}

static void on_edge_changed(void *ctx, struct model_edge *edge, enum edge_path before)
{
    struct changes *c = ctx;
    const struct model_node *a = edge->ends[0].node;
    const struct model_node *b = edge->ends[1].node;

    if (!c->is_running)
        return;
    if (a && b)
        overlay_change_edge(a, b);
    if (a && b && c->health)
        health_edge_changed(c->health, a, b, clock_wall_s());
    watch_tell_edge(c->watcher, edge, clock_now());
}

static void on_object_changed(void *ctx, const struct model_network *net,
    const struct object *before, const struct object *now)
{
    struct model_object *object;
    struct changes *c = ctx;

    if (!c->is_running)
        return;
    if ((now ? now->kind : before->kind) == &rule_kind)
        hub_access_mark_rules(net);
    object = now ? model_find_object(net, now->kind, now->meta.name) : NULL;
    watch_tell_object(c->watcher, net, object ? &object->change : NULL,
        now ? now->kind : before->kind, now ? now->meta.name : before->meta.name, clock_now());
}

static void on_broken(void *ctx, const char *key, const struct err *e)
{
    if (key[0])
        log_error("the record \"%s\" is set aside and left as it is (see weft-hub(8)): %s", key,
            err_text(e));
    else
        log_error("%s", err_text(e));
}

struct model_listener changes_listener(struct changes *c)
{
    return (struct model_listener){
        .ctx = c,
        .network_key = on_network_key,
        .network_added = on_network_added,
        .network_changed = on_network_changed,
        .network_removed = on_network_removed,
        .node_added = on_node_added,
        .node_changed = on_node_changed,
        .node_removed = on_node_removed,
        .status_changed = on_status_changed,
        .edge_changed = on_edge_changed,
        .object_changed = on_object_changed,
        .broken = on_broken,
    };
}

/* ---- the end -------------------------------------------------------------------------------- */

void changes_stop(struct changes *c)
{
    const struct model_network *net;
    const struct model_network *tmp;

    if (!c->has_timer)
        return;
    c->has_timer = false;
    for (size_t i = 0; i < c->model->networks.n; i++) {
        net = model_network_at(c->model, i);
        cut_members(net);
        take_down(net);
    }
    list_foreach_safe(net, tmp, &c->model->removed, reap)
        take_down(net);
    c->is_running = false;
    uv_close((uv_handle_t *)&c->reap_timer, NULL);
}
