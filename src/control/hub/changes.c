/*
 * changes.c - lets each change of the model reach the hooks and the watches, in that order.
 *
 * Also who waits to be forgotten: a removed node keeps its WireGuard session with the hub for a
 * moment, and a removed network its interface, so that nodes can be told why.
 */
#include <net/if.h>
#include <string.h>
#include <uv.h>

#include "base/err.h"
#include "os/log.h"
#include "hub/hub_internal.h"
#include "hub/networks.h"
#include "os/clock.h"

/* How long that moment is. */
#define BURY_AFTER (700 * NSEC_PER_MSEC)

/* ---- the model's changes -------------------------------------------------------------------- */

static bool is_self(const struct model_node *node)
{
    return node->pub.spec.hub != NULL;
}

/* Without a data half somebody else made the interface, or there is none. */
static int open_door_without_hooks(struct hub *hub, struct model_network *net, struct err *e)
{
    if (if_nametoindex(net->pub.interface) == 0)
        return 0;
    return hub_open_door(hub, &net->pub, net->pub.interface, e);
}

/* Edges of @node that are off already, in case somebody asks only when told to. */
static void tell_hooks_of_edges(struct hub *hub, struct model_node *node)
{
    struct model_edge_end *end;

    if (!hub->hooks.edge_changed)
        return;
    list_foreach(end, &node->edges, link) {
        struct model_edge *edge = end->edge;

        if (edge->spec.path == EDGE_PATH_OFF && edge->ends[0].node && edge->ends[1].node)
            hub->hooks.edge_changed(
                hub->hooks.ctx, &edge->ends[0].node->pub, &edge->ends[1].node->pub);
    }
}

static void tell_hooks_of_members(struct hub *hub, struct model_network *net)
{
    for (size_t i = 0; hub->hooks.node_added && i < net->nodes.n; i++)
        if (!is_self(model_node_at(net, i)))
            hub->hooks.node_added(hub->hooks.ctx, &model_node_at(net, i)->pub);
    for (size_t i = 0; i < net->nodes.n; i++)
        tell_hooks_of_edges(hub, model_node_at(net, i));
}

/* A network of that name that is still to be forgotten has the interface. */
static void take_down_former(struct hub *hub, const struct model_network *net)
{
    struct model_network *old;
    struct model_network *tmp;

    list_foreach_safe(old, tmp, &hub->model.buried, bury) {
        if (strcmp(old->pub.interface, net->pub.interface) == 0)
            hub__take_down(hub, old);
    }
}

void hub__bring_up(struct hub *hub, struct model_network *net)
{
    struct err *e = &net->failure;
    int r = 0;

    take_down_former(hub, net);
    if (hub->hooks.network_added)
        r = hub->hooks.network_added(hub->hooks.ctx, &net->pub, e);
    if (r == 0 && !hub->has_hooks)
        r = open_door_without_hooks(hub, net, e);
    net->is_up = r == 0;
    net->failure.code = r;
    if (net->is_up)
        tell_hooks_of_members(hub, net);
}

static int on_network_key(void *ctx, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e)
{
    return networks_key(ctx, name, public, ret, e);
}

static void on_network_added(void *ctx, struct model_network *net)
{
    struct hub *hub = ctx;

    networks_interface(hub->config.interface_prefix, net->pub.spec.meta.name, net->pub.interface);
    if (hub->is_running)
        hub__bring_up(hub, net);
}

static void on_network_changed(void *ctx, struct model_network *net)
{
    struct hub *hub = ctx;

    watch_tell_network(&hub->watcher, net, clock_now());
}

static void bury(struct hub *hub, struct model_node *node)
{
    if (node->net->is_up && !is_self(node) && hub->hooks.node_gone)
        hub->hooks.node_gone(hub->hooks.ctx, &node->pub);
    streams_end_node(node);
    model_bury(node);
}

static void bury_all(struct hub *hub, struct model_network *net)
{
    struct model_node *node;
    struct model_node *tmp;

    list_foreach_safe(node, tmp, &net->buried, bury)
        bury(hub, node);
}

static void close_doors(struct model_network *net)
{
    for (unsigned i = 0; i < 2; i++)
        net->doors[i] = server_listener_close(net->doors[i]);
}

void hub__take_down(struct hub *hub, struct model_network *net)
{
    close_doors(net);
    jobs_close(&net->jobs, !list_is_empty(&net->bury));
    bury_all(hub, net);
    if (net->is_up && hub->hooks.network_removed)
        hub->hooks.network_removed(hub->hooks.ctx, &net->pub);
    net->is_up = false;
    if (!list_is_empty(&net->bury))
        model_bury_network(net);
}

/* Forget the nodes whose time has come; when the next one's comes. */
static nsec_t bury_due(struct hub *hub, struct model_network *net, nsec_t now)
{
    nsec_t next = NSEC_NEVER;
    struct model_node *node;
    struct model_node *tmp;

    list_foreach_safe(node, tmp, &net->buried, bury) {
        if (node->bury_at <= now)
            bury(hub, node);
        else
            next = nsec_min(next, node->bury_at);
    }
    return next;
}

static void on_bury(uv_timer_t *timer)
{
    struct hub *hub = timer->data;
    nsec_t now = clock_now();
    nsec_t next = NSEC_NEVER;
    struct model_network *net;
    struct model_network *tmp;

    for (size_t i = 0; i < hub->model.networks.n; i++)
        next = nsec_min(next, bury_due(hub, model_network_at(&hub->model, i), now));
    list_foreach_safe(net, tmp, &hub->model.buried, bury) {
        if (net->bury_at <= now)
            hub__take_down(hub, net);
        else
            next = nsec_min(next, net->bury_at);
    }
    if (next != NSEC_NEVER)
        (void)uv_timer_start(timer, on_bury, (uint64_t)((next - now) / NSEC_PER_MSEC) + 1, 0);
}

/* The moment begins; when it ends. */
static nsec_t begin_burial(struct hub *hub, nsec_t now)
{
    if (!uv_is_active((uv_handle_t *)&hub->bury))
        (void)uv_timer_start(&hub->bury, on_bury, (uint64_t)(BURY_AFTER / NSEC_PER_MSEC), 0);
    return now + BURY_AFTER;
}

static void on_network_removed(void *ctx, struct model_network *net)
{
    net->bury_at = begin_burial(ctx, clock_now());
}

/* A key or address that comes back at once: its last owner has to be gone first. */
static void bury_former_owners(struct hub *hub, const struct model_node *node)
{
    const struct node *spec = &node->pub.spec;
    struct model_node *old;
    struct model_node *tmp;

    list_foreach_safe(old, tmp, &node->net->buried, bury) {
        if (x25519_public_equal(&old->pub.spec.key, &spec->key) ||
            ip_addr_equal(&old->pub.spec.address4, &spec->address4) ||
            ip_addr_equal(&old->pub.spec.address6, &spec->address6))
            bury(hub, old);
    }
}

static void on_node_added(void *ctx, struct model_node *node)
{
    struct hub *hub = ctx;

    if (!hub->is_running)
        return;
    jobs_add_member(&node->net->jobs, &node->pub.spec.address4);
    jobs_add_member(&node->net->jobs, &node->pub.spec.address6);
    bury_former_owners(hub, node);
    if (node->net->is_up && !is_self(node)) {
        if (hub->hooks.node_added)
            hub->hooks.node_added(hub->hooks.ctx, &node->pub);
        tell_hooks_of_edges(hub, node);
    }
    watch_tell_node(&hub->watcher, node, clock_now());
}

static void on_node_changed(void *ctx, struct model_node *node, const struct node *before)
{
    struct hub *hub = ctx;
    const struct node *spec = &node->pub.spec;
    bool rekeyed = !x25519_public_equal(&spec->key, &before->key);
    bool moved4 = !ip_addr_equal(&spec->address4, &before->address4);
    bool moved6 = !ip_addr_equal(&spec->address6, &before->address6);

    if (rekeyed)
        streams_end_node(node);
    if (moved4)
        jobs_end_member(&node->net->jobs, &before->address4);
    if (moved6)
        jobs_end_member(&node->net->jobs, &before->address6);
    if (moved4)
        jobs_add_member(&node->net->jobs, &spec->address4);
    if (moved6)
        jobs_add_member(&node->net->jobs, &spec->address6);
    if ((rekeyed || moved4 || moved6) && node->net->is_up && !is_self(node) &&
        hub->hooks.node_changed)
        hub->hooks.node_changed(hub->hooks.ctx, &node->pub, before);
    watch_tell_node(&hub->watcher, node, clock_now());
}

static void on_deleted(void *ctx, const struct store_answer *a)
{
    if (a->r != 0)
        log_warning("what was known about a removed node stays in the store: %s", err_text(a->e));
}

static void delete_record(struct hub *hub, enum record_kind kind, const struct model_network *net,
    const char *name, nsec_t now)
{
    char key[RECORD_KEY_MAX];
    struct store_op op = {.kind = STORE_OP_DELETE,
        .key = record_key(key, kind, net->pub.spec.meta.name, name),
        .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;

    if (store_commit(hub->store, &op, 1, now, on_deleted, NULL, &e) != 0)
        log_warning("\"%s\" stays in the store: %s", key, err_text(&e));
}

/* Nothing of a node may be left for the next one of its name. Usually it went with it, but for what
 * was on its way to the store at the same time. */
static void delete_leftovers(struct hub *hub, struct model_node *node, nsec_t now)
{
    struct model_network *net = node->net;
    const char *name = node->pub.spec.meta.name;

    if (!node->leaving)
        delete_record(hub, RECORD_REPORT, net, name, now);
    for (size_t i = 0; i < net->edges.n; i++) {
        const struct mesh_edge *edge = &model_edge_at(net, i)->spec;

        if (strcmp(edge->nodes[0], name) == 0 || strcmp(edge->nodes[1], name) == 0)
            delete_record(hub, RECORD_EDGE, net, edge->meta.name, now);
    }
}

static const char *reason_of(const struct model_node *node)
{
    if (node->leaving)
        return node->leaving;
    return node->net->leaving ? node->net->leaving : "it was away for too long";
}

static void on_node_removed(void *ctx, struct model_node *node)
{
    struct hub *hub = ctx;
    nsec_t now = clock_now();
    const char *reason = reason_of(node);

    if (node->net->is_up && !is_self(node) && hub->hooks.node_cut)
        hub->hooks.node_cut(hub->hooks.ctx, &node->pub);
    watch_tell_node_removed(&hub->watcher, node, reason, now);
    jobs_end_member(&node->net->jobs, &node->pub.spec.address4);
    jobs_end_member(&node->net->jobs, &node->pub.spec.address6);
    if (!node->net->leaving)
        delete_leftovers(hub, node, now);
    if (!node->leaving && !node->net->leaving)
        log_info("node \"%s\" of network \"%s\" is removed: %s", node->pub.spec.meta.name,
            node->net->pub.spec.meta.name, reason);
    node->bury_at = begin_burial(hub, now);
}

static void on_edge_changed(void *ctx, struct model_edge *edge, enum edge_path before)
{
    struct hub *hub = ctx;
    struct model_node *a = edge->ends[0].node;
    struct model_node *b = edge->ends[1].node;

    if (!hub->is_running || (!a && !b))
        return;
    if (a && b && a->net->is_up && hub->hooks.edge_changed)
        hub->hooks.edge_changed(hub->hooks.ctx, &a->pub, &b->pub);
    watch_tell_edge(&hub->watcher, edge, before, clock_now());
}

static void on_object_changed(
    void *ctx, struct model_network *net, const struct object *before, const struct object *now)
{
    struct hub *hub = ctx;

    if (hub->is_running)
        watch_tell_object(&hub->watcher, net, before, now, clock_now());
}

static void on_broken(void *ctx, const char *key, const struct err *e)
{
    if (key[0])
        log_error("the record \"%s\" is set aside and left as it is (see weft-hub(8)): %s", key,
            err_text(e));
    else
        log_error("%s", err_text(e));
}

struct model_listener hub__changes(struct hub *hub)
{
    return (struct model_listener){
        .ctx = hub,
        .network_key = on_network_key,
        .network_added = on_network_added,
        .network_changed = on_network_changed,
        .network_removed = on_network_removed,
        .node_added = on_node_added,
        .node_changed = on_node_changed,
        .node_removed = on_node_removed,
        .edge_changed = on_edge_changed,
        .object_changed = on_object_changed,
        .broken = on_broken,
    };
}
