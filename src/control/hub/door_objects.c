/* door_objects.c - objects as an administrator reads and writes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "os/log.h"
#include "hub/doors.h"
#include "hub/hub_internal.h"
#include "hub/later.h"
#include "hub/networks.h"
#include "hub/node_routes.h"

/* The kind in the path's second part; NULL: @rs says 404. */
static const struct object_kind *find_kind(const struct request *rq, struct response *rs)
{
    const struct object_kind *kind = object_kind_find(rq->params[1]);
    char all[OBJECT_KINDS_TEXT_MAX];

    if (!kind)
        response_refuse(
            rs, 404, "kind \"%s\" is none of %s", rq->params[1], object_kinds_text(all));
    return kind;
}

/* ---- reading -------------------------------------------------------------------------------- */

static json_t *node_json(const struct model_node *node)
{
    struct node spec = node->pub.spec;
    json_t *json;

    spec.status = reports_of_node(node);
    json = node_encode(&spec);
    json_decref(spec.status);
    return json;
}

static json_t *edge_json(const struct model_edge *edge)
{
    struct mesh_edge spec = edge->spec;
    json_t *json;

    if (edge->ends[0].node && edge->ends[1].node)
        spec.status = reports_of_edge(edge->ends[0].node, edge->ends[1].node);
    json = mesh_edge_encode(&spec);
    json_decref(spec.status);
    return json;
}

/* The edge between two nodes in @map; put there if somebody only observed something on it. */
static json_t *edge_in(
    json_t *map, const struct model_network *net, const char *from, const char *to)
{
    struct mesh_edge spec = MESH_EDGE_NULL;
    const char *a = strcmp(from, to) < 0 ? from : to;
    const char *b = a == from ? to : from;
    json_t *json;

    json = json_object_get(map, edge_name(a, b, spec.meta.name));
    if (json)
        return json;
    memcpy(spec.meta.network, net->pub.spec.meta.name, sizeof(spec.meta.network));
    memcpy(spec.nodes[0], a, strlen(a) + 1);
    memcpy(spec.nodes[1], b, strlen(b) + 1);
    json_object_set_new(map, spec.meta.name, mesh_edge_encode(&spec));
    return json_object_get(map, spec.meta.name);
}

/* Put what @node reports on its edges under its field owner. */
static void add_reported(
    json_t *map, const struct model_network *net, const struct model_node *node)
{
    const char *name = node->pub.spec.meta.name;
    json_t *edges = json_loads(node->heard.report.edges ? node->heard.report.edges : "{}", 0, NULL);
    char owner[OBJECT_NAME_MAX + sizeof("agent/")];
    const char *peer;
    json_t *said;

    (void)snprintf(owner, sizeof(owner), "agent/%s", name);
    json_object_foreach(edges, peer, said) {
        json_t *edge;
        json_t *status;

        if (strcmp(peer, name) == 0 || !model_find_node(net, peer))
            continue;
        edge = edge_in(map, net, name, peer);
        status = json_object_get(edge, "status");
        if (!status) {
            json_object_set_new(edge, "status", json_object());
            status = json_object_get(edge, "status");
        }
        json_object_set(status, owner, said);
    }
    json_decref(edges);
}

/* All edges that somebody said or observed something about. Each report is read once. */
static json_t *edges_json(const struct model_network *net)
{
    json_t *map = json_object();
    json_t *items = json_array();
    const char *name;
    json_t *edge;

    for (size_t i = 0; i < net->edges.n; i++) {
        const struct mesh_edge *spec = &model_edge_at(net, i)->spec;

        json_object_set_new(map, spec->meta.name, mesh_edge_encode(spec));
    }
    for (size_t i = 0; i < net->nodes.n; i++)
        add_reported(map, net, model_node_at(net, i));
    json_object_foreach(map, name, edge)
        json_array_append(items, edge);
    json_decref(map);
    return items;
}

void door_objects_list(void *ctx, const struct request *rq, struct response *rs)
{
    struct model_network *net = door_find_network(ctx, rq, rs);
    const struct object_kind *kind = net ? find_kind(rq, rs) : NULL;
    json_t *items;

    if (!kind)
        return;
    items = kind == &mesh_edge_kind ? edges_json(net) : json_array();
    if (kind == &network_kind)
        json_array_append_new(items, network_encode(&net->pub.spec));
    for (size_t i = 0; kind == &node_kind && i < net->nodes.n; i++)
        json_array_append_new(items, node_json(model_node_at(net, i)));
    response_json(rs, 200, json_pack("{s:o}", "items", items));
}

/* The edge of that name, said or only observed; NULL if it is neither. */
static json_t *named_edge_json(const struct model_network *net, const char *name)
{
    const struct keyed *k = keys_find(&net->edges, name);
    const char *middle = strstr(name, "--");
    char first[ROUTE_PARAM_MAX + 1];
    const struct model_node *a;
    const struct model_node *b;
    json_t *map;
    json_t *json;

    if (k)
        return edge_json(container_of(k, struct model_edge, keyed));
    if (!middle)
        return NULL;
    memcpy(first, name, (size_t)(middle - name));
    first[middle - name] = '\0';
    a = model_find_node(net, first);
    b = model_find_node(net, middle + 2);
    if (!a || !b || strcmp(first, middle + 2) >= 0)
        return NULL;
    map = json_object();
    add_reported(map, net, a);
    add_reported(map, net, b);
    json = json_incref(json_object_get(map, name));
    json_decref(map);
    return json;
}

/* NULL if there is none of that name. */
static json_t *named_json(
    const struct model_network *net, const struct object_kind *kind, const char *name)
{
    if (kind == &network_kind && strcmp(name, net->pub.spec.meta.name) == 0)
        return network_encode(&net->pub.spec);
    if (kind == &node_kind && model_find_node(net, name))
        return node_json(model_find_node(net, name));
    return kind == &mesh_edge_kind ? named_edge_json(net, name) : NULL;
}

void door_objects_get(void *ctx, const struct request *rq, struct response *rs)
{
    struct model_network *net = door_find_network(ctx, rq, rs);
    const struct object_kind *kind = net ? find_kind(rq, rs) : NULL;
    const char *name = rq->params[2];
    json_t *json;

    if (!kind)
        return;
    json = named_json(net, kind, name);
    if (json)
        response_json(rs, 200, json);
    else
        response_refuse(rs, 404, "network \"%s\" has no %s \"%s\"", net->pub.spec.meta.name,
            rq->params[1], name);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* An object that is being written. */
struct put_call {
    struct later later;
    struct object object; /* owns; as it was given */
};

static void forget_object(struct later *l)
{
    object_deinit(&container_of(l, struct put_call, later)->object);
}

static uint64_t given_version(const struct put_call *call)
{
    return call->object.meta.resource_version;
}

static void refuse_version(const struct put_call *call, struct response *rs)
{
    const struct request *rq = &call->later.rq;

    response_refuse(rs, 409,
        "%s \"%s\" is not at version %llu any more: somebody changed it meanwhile", rq->params[1],
        rq->params[2], (unsigned long long)given_version(call));
}

/* The object as it is now. */
static void written(struct later *l, const struct store_answer *a, struct response *rs)
{
    const struct put_call *call = container_of(l, struct put_call, later);
    const struct request *rq = &l->rq;
    const struct model_network *net = model_find_network(&l->hub->model, rq->params[0]);
    json_t *json;

    if (a->r != 0) {
        later_fail(rs, a);
        return;
    }
    log_info("%s \"%s\" of network \"%s\" is changed", rq->params[1], rq->params[2], rq->params[0]);
    json = net ? named_json(net, call->object.kind, rq->params[2]) : NULL;
    if (json)
        response_json(rs, 200, json);
    else
        response_refuse(rs, 409, "%s \"%s\" was written, and somebody has removed it at once",
            rq->params[1], rq->params[2]);
}

/*
 * Write one record; @value is taken. @held: its version now, 0 for none, which it has to be at.
 * With it goes what is in @checks: others that it speaks of have to be there when it is written.
 */
static void write_record(struct put_call *call, struct response *rs, struct store_op op,
    char *value, uint64_t held, const struct store_op *checks, size_t n_checks)
{
    _cleanup_(freep) char *text = value;
    struct store_op ops[3];

    if (!text) {
        response_refuse(rs, 500, "no memory for the object");
        return;
    }
    if (given_version(call) != 0 && given_version(call) != held) {
        refuse_version(call, rs);
        return;
    }
    op.kind = STORE_OP_PUT;
    op.value = text;
    op.expect = held ? held : STORE_EXPECT_ABSENT;
    ops[0] = op;
    for (size_t i = 0; i < n_checks; i++)
        ops[i + 1] = checks[i];
    later_commit(&call->later, ops, n_checks + 1, written, rs);
}

static void write_network(struct put_call *call, struct model_network *net, struct response *rs)
{
    const struct network *given = &call->object.network;
    char key[RECORD_KEY_MAX];
    struct store_op op = {.key = record_key(key, RECORD_NETWORK, net->pub.spec.meta.name, "")};

    write_record(call, rs, op, record_network_encode(given, &net->pub.public),
        net->pub.spec.meta.resource_version, NULL, 0);
}

/* It was made; what else the object says is written now. */
static void on_network_made(void *ctx, int r, struct model_network *net, const struct err *e)
{
    struct later *l = ctx;
    struct response rs = {0};

    if (r == 0) {
        later_again(l);
        return;
    }
    door_refuse_network(&rs, r, e);
    later_end(l, &rs);
}

static void make_network(struct put_call *call, struct response *rs)
{
    const struct network *given = &call->object.network;
    struct network_request nr = {.cidr4 = given->cidr4,
        .cidr6 = given->cidr6,
        .topology = given->topology,
        .mtu = given->mtu,
        .keepalive = given->keepalive};
    struct err e = ERR_NULL;
    int r;

    memcpy(nr.name, call->later.rq.params[0], sizeof(nr.name));
    nr.name[NAME_MAX_LEN] = '\0';
    if (given_version(call) != 0) {
        refuse_version(call, rs);
        return;
    }
    r = networks_add(call->later.hub, &nr, on_network_made, &call->later, &e);
    if (r == 0)
        later_wait(&call->later);
    else
        door_refuse_network(rs, r, &e);
}

static void put_network(struct put_call *call, const struct request *rq, struct response *rs)
{
    struct model_network *net = model_find_network(&call->later.hub->model, rq->params[0]);
    const struct network *given = &call->object.network;

    if (strcmp(rq->params[0], rq->params[2]) != 0)
        response_refuse(
            rs, 400, "network \"%s\" is no object of network \"%s\"", rq->params[2], rq->params[0]);
    else if (!net)
        make_network(call, rs);
    else if (!ip_prefix_equal(&given->cidr4, &net->pub.spec.cidr4) ||
             !ip_prefix_equal(&given->cidr6, &net->pub.spec.cidr6))
        response_refuse(rs, 400,
            "the address blocks of network \"%s\" are fixed: its nodes have their addresses for "
            "good",
            rq->params[0]);
    else
        write_network(call, net, rs);
}

/* What is a node's own, or was given to it for good, cannot be said by somebody else. */
static bool keeps_identity(const struct node *given, const struct node *held)
{
    return x25519_public_equal(&given->key, &held->key) &&
           ip_addr_equal(&given->address4, &held->address4) &&
           ip_addr_equal(&given->address6, &held->address6) && !given->hub == !held->hub &&
           (!given->stock || held->stock);
}

/* Otherwise @rs says why not. */
static bool may_have_routes(
    const struct model_network *net, struct response *rs, const struct node *given)
{
    struct err e = ERR_NULL;
    int r;

    if (given->routes && given->hub) {
        response_refuse(rs, 400,
            "node \"%s\" is the hub itself, which forwards nobody's packets in the clear: a subnet "
            "is reached through another node",
            given->meta.name);
        return false;
    }
    r = node_routes_check(net, given->meta.name, given->routes, &e);
    if (r == NODE_ROUTES_E_TAKEN)
        response_refuse(rs, 409, "%s", err_text(&e));
    else if (r != 0)
        response_fail(rs, &e);
    return r == 0;
}

/*
 * Two nodes may not have the same routes, whoever is being given them just now: by this or by an
 * enrolment, which moves the network's cursor. So with routes it is written as it is. How many more
 * operations that is; @value: owned by the caller.
 */
static size_t hold_routes(const struct model_network *net, const struct node *given,
    struct store_op *op, char key[static RECORD_KEY_MAX], char **value)
{
    *value = NULL;
    /* One that is damaged stays as it is, for a person to see. */
    if (!given->routes || net->ipam.forgot)
        return 0;
    *value = record_ipam_encode(net->ipam.next, net->ipam.high);
    *op = (struct store_op){.kind = *value ? STORE_OP_PUT : STORE_OP_CHECK,
        .key = record_key(key, RECORD_IPAM, net->pub.spec.meta.name, ""),
        .value = *value,
        .expect = net->ipam_revision};
    return 1;
}

static void put_node(
    struct put_call *call, struct model_network *net, const struct request *rq, struct response *rs)
{
    const struct node *given = &call->object.node;
    struct model_node *node = model_find_node(net, rq->params[2]);
    struct node spec = *given;
    char key[RECORD_KEY_MAX];
    struct store_op op = {.key = record_key(key, RECORD_NODE, rq->params[0], rq->params[2])};
    _cleanup_(freep) char *cursor = NULL;
    char cursor_key[RECORD_KEY_MAX];
    struct store_op other;
    size_t n_others;

    if (!node) {
        response_refuse(rs, 404,
            "network \"%s\" has no node \"%s\": a node is made by \"weft join\"", rq->params[0],
            rq->params[2]);
        return;
    }
    if (!keeps_identity(given, &node->pub.spec)) {
        response_refuse(rs, 400,
            "the key and addresses of node \"%s\" are fixed, and so is whether it is stock; "
            "labels, "
            "island, ephemeral, relay and routes may change",
            rq->params[2]);
        return;
    }
    if (!may_have_routes(net, rs, given))
        return;
    /* Where the hub is reached comes from its own command line. */
    spec.hub = node->pub.spec.hub;
    /* A file that was written before there was this field does not say it. */
    spec.stock = node->pub.spec.stock;
    op.ttl_seconds = given->ephemeral && !spec.hub ? ENROL_EPHEMERAL_SECONDS : 0;
    n_others = hold_routes(net, given, &other, cursor_key, &cursor);
    write_record(call, rs, op, record_node_encode(&spec, &node->token),
        node->pub.spec.meta.resource_version, &other, n_others);
}

static uint64_t edge_version(
    const struct model_network *net, const struct mesh_edge *given, const char *key)
{
    const struct model_edge *edge = model_find_edge(net, given->nodes[0], given->nodes[1]);
    const struct damaged_record *damaged = damaged_find(&net->model->damaged, key);

    if (damaged)
        return damaged->revision;
    return edge ? edge->spec.meta.resource_version : 0;
}

static void put_edge(
    struct put_call *call, struct model_network *net, const struct request *rq, struct response *rs)
{
    const struct mesh_edge *given = &call->object.edge;
    char key[RECORD_KEY_MAX];
    struct store_op op = {.key = record_key(key, RECORD_EDGE, rq->params[0], rq->params[2])};
    char ends[2][RECORD_KEY_MAX];
    struct store_op checks[2];

    for (unsigned i = 0; i < 2; i++) {
        const struct model_node *node = model_find_node(net, given->nodes[i]);

        if (!node) {
            response_refuse(
                rs, 404, "network \"%s\" has no node \"%s\"", rq->params[0], given->nodes[i]);
            return;
        }
        if (node->pub.spec.hub && given->path == EDGE_PATH_OFF) {
            response_refuse(rs, 400,
                "an edge to the hub cannot be off: \"weft node rm %s\" cuts "
                "that node off",
                given->nodes[1 - i]);
            return;
        }
        checks[i] = (struct store_op){.kind = STORE_OP_CHECK,
            .key = record_key(ends[i], RECORD_NODE, rq->params[0], given->nodes[i]),
            .expect = node->pub.spec.meta.resource_version};
    }
    write_record(call, rs, op, record_edge_encode(given), edge_version(net, given, key), checks, 2);
}

/* Does the object say the same name and network as the path does? */
static bool is_where_it_says(const struct request *rq, struct response *rs, const struct object *o)
{
    const struct object_meta *m = &o->meta;

    if (strcmp(m->name, rq->params[2]) == 0 &&
        (o->kind->is_network || strcmp(m->network, rq->params[0]) == 0))
        return true;
    response_refuse(rs, 400, "the object is \"%s\" of network \"%s\", not \"%s\" of \"%s\"",
        m->name, m->network, rq->params[2], rq->params[0]);
    return false;
}

/* An administrator may leave the network out: the path says it. */
static json_t *with_network(const json_t *body, const struct object_kind *kind, const char *network)
{
    json_t *json = json_deep_copy(body);
    json_t *meta = json_object_get(json, "metadata");

    if (!kind->is_network && json_is_object(meta) && !json_object_get(meta, "network"))
        json_object_set_new(meta, "network", json_string(network));
    /* What nodes have reported is theirs to say; it comes back in what was printed before. */
    json_object_del(json, "status");
    return json;
}

static void put_object(struct later *l, const struct request *rq, struct response *rs)
{
    struct put_call *call = container_of(l, struct put_call, later);
    struct model_network *net;

    if (call->object.kind == &network_kind) {
        put_network(call, rq, rs);
        return;
    }
    net = door_find_network(l->hub, rq, rs);
    if (net && call->object.kind == &node_kind)
        put_node(call, net, rq, rs);
    else if (net)
        put_edge(call, net, rq, rs);
}

/* @o is taken. */
static void begin_put(
    struct hub *hub, const struct request *rq, struct response *rs, struct object *o)
{
    struct put_call *call = later_new(hub, rq, rs, sizeof(*call), put_object);

    if (!call) {
        object_deinit(o);
        return;
    }
    call->object = *o;
    call->later.deinit = forget_object;
    later_begin(&call->later, rq, rs);
}

void door_objects_put(void *ctx, const struct request *rq, struct response *rs)
{
    const struct object_kind *kind = find_kind(rq, rs);
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;
    json_t *json;
    bool is_good;

    if (!kind)
        return;
    json = with_network(rq->body, kind, rq->params[0]);
    if (object_decode(&o, json, OBJECT_STRICT, &e) != 0) {
        response_fail(rs, &e);
    } else {
        is_good = o.kind == kind && is_where_it_says(rq, rs, &o);
        if (o.kind != kind)
            response_refuse(rs, 400, "the object is a %s, not a %s", o.kind->name, rq->params[1]);
        if (is_good)
            begin_put(ctx, rq, rs, &o);
        else
            object_deinit(&o);
    }
    json_decref(json);
}
