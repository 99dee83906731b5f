/*
 * objects.c - objects as an administrator reads, writes and removes them: one row a kind of object.
 *
 * A kind of object that has no row of its own here goes by its row in mesh/object/object.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/enrol/enrol.h"
#include "hub/handlers/handlers.h"
#include "hub/handlers/reply.h"
#include "hub/model/model.h"
#include "hub/model/node_routes.h"
#include "hub/networks/networks.h"
#include "hub/watch/edge_view.h"
#include "hub/watch/nat_view.h"
#include "hub/watch/reports.h"
#include "os/clock.h"
#include "os/log.h"

/* An object that is being written. */
struct object_call {
    struct reply reply;
    const struct objects_row *row; /* of its kind */
    struct object object;          /* owns; as it was given */
};

/* What is done with objects of a kind. */
struct objects_row {
    const struct object_kind *kind; /* NULL: any that has no row of its own */

    /* list() - append all of them to @items, as JSON. */
    void (*list)(const struct model_network *net, const struct object_kind *kind, json_t *items);

    /* get() - the one of that name as JSON, a new reference; NULL: there is none. */
    json_t *(*get)(
        const struct model_network *net, const struct object_kind *kind, const char *name);

    /*
     * put() - check what is written against what there is, and have it written
     * @call:	its name and network are those of the path
     * @net:	NULL, but only for a Network: it is not there yet
     * @rs:	the answer, unless it comes later (hub/handlers/reply.h)
     *
     * Called again when others have changed what it looked at.
     */
    void (*put)(struct object_call *call, const struct model_network *net, struct response *rs);

    /*
     * remove() - answer a request by removing the object of the path
     * @rs:	204, 404 if there is none, or another refusal; or that the answer comes later
     */
    void (*remove)(struct handlers *h, const struct model_network *net, const struct request *rq,
        struct response *rs);
};

/* ---- writing --------------------------------------------------------------------------------- */

/* The version at which the object has to be; 0: at any. */
static uint64_t given_version(const struct object_call *call)
{
    return call->object.meta.resource_version;
}

/* It is not at that version: @rs says 409. */
static void refuse_version(const struct object_call *call, struct response *rs)
{
    const struct request *rq = &call->reply.rq;

    response_refuse(rs, 409,
        "%s \"%s\" is not at version %llu any more: somebody changed it meanwhile", rq->params[1],
        rq->params[2], (unsigned long long)given_version(call));
}

/*
 * A node that the object speaks of has to be there when it is written
 * @ret:	the operation that checks it, for write_object(); with @key
 *
 * Return: the node, lent; NULL: there is none, and @rs says 404.
 */
static const struct model_node *hold_node(const struct object_call *call,
    const struct model_network *net, const char *name, struct store_op *ret,
    char key[static RECORD_KEY_MAX], struct response *rs)
{
    const char *network = call->reply.rq.params[0];
    const struct model_node *node = model_find_node(net, name);

    if (!node) {
        response_refuse(rs, 404, "network \"%s\" has no node \"%s\"", network, name);
        return NULL;
    }
    *ret = (struct store_op){.kind = STORE_OP_CHECK,
        .key = record_key(key, RECORD_NODE, network, name),
        .expect = node->spec.meta.resource_version};
    return node;
}

/* The object as it is now. */
static void written(struct reply *l, struct response *rs)
{
    const struct object_call *call = container_of(l, struct object_call, reply);
    const struct request *rq = &l->rq;
    const struct model_network *net = model_find_network(l->h->model, rq->params[0]);
    json_t *json;

    log_info("%s \"%s\" of network \"%s\" is changed", rq->params[1], rq->params[2], rq->params[0]);
    json = net ? call->row->get(net, call->object.kind, rq->params[2]) : NULL;
    if (json)
        response_json(rs, 200, json);
    else
        response_refuse(rs, 409, "%s \"%s\" was written, and somebody has removed it at once",
            rq->params[1], rq->params[2]);
}

/*
 * Have one record written
 * @op:		its key, and the lease
 * @value:	taken; NULL: there was no memory for it
 * @held:	the record's version now, at which it has to be; 0: there is none
 * @checks:	@n_checks operations that go with it, at most OBJECT_ABOUT_MAX
 *
 * The answer is the object as it is then, or why it was not written.
 */
static void write_object(struct object_call *call, struct response *rs, struct store_op op,
    char *value, uint64_t held, const struct store_op *checks, size_t n_checks)
{
    _cleanup_(freep) char *text = value;
    struct store_op ops[1 + OBJECT_ABOUT_MAX];
    uint64_t given = given_version(call);

    if (!text) {
        response_refuse(rs, 500, "no memory for the object");
        return;
    }
    if (given != 0 && given != held) {
        refuse_version(call, rs);
        return;
    }
    op.kind = STORE_OP_PUT;
    op.value = text;
    op.expect = held ? held : STORE_EXPECT_ABSENT;
    ops[0] = op;
    for (size_t i = 0; i < n_checks; i++)
        ops[i + 1] = checks[i];
    reply_commit(&call->reply, ops, n_checks + 1, written, rs);
}

/* ---- removing ------------------------------------------------------------------------------- */

/* There is no such object: @rs says 404. */
static void refuse_missing(const struct request *rq, struct response *rs)
{
    response_refuse(
        rs, 404, "network \"%s\" has no %s \"%s\"", rq->params[0], rq->params[1], rq->params[2]);
}

static void removed(struct reply *l, struct response *rs)
{
    const struct request *rq = &l->rq;

    log_info("%s \"%s\" of network \"%s\" is removed", rq->params[1], rq->params[2], rq->params[0]);
    response_empty(rs);
}

/* Also a record that is set aside because it cannot be understood. */
static void begin_removal(struct reply *l, const struct request *rq, struct response *rs)
{
    const struct object_kind *kind = object_kind_find(rq->params[1]);
    char key[RECORD_KEY_MAX];
    struct store_op op = {
        .kind = STORE_OP_DELETE, .key = record_object_key(key, kind, rq->params[0], rq->params[2])};

    op.expect = model_revision(l->h->model, key);
    if (op.expect != 0)
        reply_commit(l, &op, 1, removed, rs);
    else
        refuse_missing(rq, rs);
}

/* The remove of a kind whose object is one record, and nothing else. */
static void remove_object(struct handlers *h, const struct model_network *net,
    const struct request *rq, struct response *rs)
{
    reply_start(h, rq, rs, sizeof(struct reply), begin_removal, NULL);
}

/* ---- MeshEdges ------------------------------------------------------------------------------- */

/*
 * There is one for each pair that an administrator has said something about, or of which one of the
 * two nodes reports something.
 */

/* All edges that somebody said or observed something about. */
static void edge_list(
    const struct model_network *net, const struct object_kind *kind, json_t *items)
{
    struct edge_pairs pairs = EDGE_PAIRS_NULL;
    int64_t wall_s = clock_wall_s();

    (void)edge_pairs_known(&pairs, net, false);
    for (size_t i = 0; i < pairs.n; i++)
        json_array_append_new(items, edge_view_object(&pairs.items[i], wall_s));
    edge_pairs_deinit(&pairs);
}

static bool is_known(const struct edge_pair *pair)
{
    const struct model_node *a = pair->nodes[0];
    const struct model_node *b = pair->nodes[1];
    const char *to_a = a->spec.meta.name;
    const char *to_b = b->spec.meta.name;

    return model_find_edge(a->net, to_a, to_b) ||
           edge_parts_find(&a->reported->heard.report.edges, to_b) ||
           edge_parts_find(&b->reported->heard.report.edges, to_a) ||
           edge_parts_find(&a->reported->heard.probed, to_b) ||
           edge_parts_find(&b->reported->heard.probed, to_a);
}

/* The edge of that name, see above; NULL: there is none. */
static json_t *edge_get(
    const struct model_network *net, const struct object_kind *kind, const char *name)
{
    struct edge_pair pair;

    if (!edge_pair_find(&pair, net, name) ||
        strcmp(pair.nodes[0]->spec.meta.name, pair.nodes[1]->spec.meta.name) >= 0 ||
        !is_known(&pair))
        return NULL;
    return edge_view_object(&pair, clock_wall_s());
}

/* ---- writing -------------------------------------------------------------------------------- */

static bool has_pins(const struct mesh_edge *edge)
{
    for (unsigned i = 0; i < 2; i++)
        if (!endpoint_is_none(&edge->pins[i].endpoint) ||
            !x25519_public_is_none(&edge->pins[i].key))
            return true;
    return false;
}

static void edge_put(struct object_call *call, const struct model_network *net, struct response *rs)
{
    const struct request *rq = &call->reply.rq;
    const struct mesh_edge *given = &call->object.edge;
    char key[RECORD_KEY_MAX];
    struct store_op op = {.key = record_key(key, RECORD_EDGE, rq->params[0], rq->params[2])};
    char ends[2][RECORD_KEY_MAX];
    struct store_op checks[2];

    for (unsigned i = 0; i < 2; i++) {
        const struct model_node *node =
            hold_node(call, net, given->nodes[i], &checks[i], ends[i], rs);

        if (!node)
            return;
        if (node->spec.hub && given->path == EDGE_PATH_OFF) {
            response_refuse(rs, 400,
                "an edge to the hub cannot be off: \"weft node rm %s\" cuts "
                "that node off",
                given->nodes[1 - i]);
            return;
        }
        if (node->spec.hub && given->rate != 0) {
            response_refuse(rs, 400,
                "an edge to the hub has no rate: \"weft node set %s --rate\" limits all that this "
                "node sends, to the hub as well",
                given->nodes[1 - i]);
            return;
        }
        if (node->spec.hub && has_pins(given)) {
            response_refuse(rs, 400,
                "an edge to the hub pins nothing: where \"%s\" is, \"weft hub move\" says, and its "
                "key is in each join token",
                given->nodes[i]);
            return;
        }
    }
    write_object(call, rs, op, record_object_encode(&call->object), model_revision(net->model, key),
        checks, 2);
}

static const struct objects_row edge_row = {
    .kind = &mesh_edge_kind,
    .list = edge_list,
    .get = edge_get,
    .put = edge_put,
    .remove = remove_object,
};

/* ---- the Network ----------------------------------------------------------------------------- */

static void network_list(
    const struct model_network *net, const struct object_kind *kind, json_t *items)
{
    json_array_append_new(items, network_encode(&net->spec));
}

static json_t *network_get(
    const struct model_network *net, const struct object_kind *kind, const char *name)
{
    bool is_it = strcmp(name, net->spec.meta.name) == 0;

    return is_it ? network_encode(&net->spec) : NULL;
}

static void change(struct object_call *call, const struct model_network *net, struct response *rs)
{
    const struct network *given = &call->object.network;
    char key[RECORD_KEY_MAX];
    struct store_op op = {.key = record_key(key, RECORD_NETWORK, net->spec.meta.name, "")};

    write_object(call, rs, op, record_network_encode(given, &net->maker),
        net->spec.meta.resource_version, NULL, 0);
}

/* It was made; what else the object says is written now. */
static void on_made(void *ctx, int r, const struct model_network *net, const struct err *e)
{
    struct reply *l = ctx;
    struct response rs = {0};

    if (r == 0) {
        reply_again(l);
        return;
    }
    handlers_refuse(&rs, r, e, NULL);
    reply_end(l, &rs);
}

static void make(struct object_call *call, struct response *rs)
{
    const struct network *given = &call->object.network;
    struct network nr = {.cidr4 = given->cidr4,
        .cidr6 = given->cidr6,
        .topology = given->topology,
        .mtu = given->mtu,
        .keepalive = given->keepalive};
    struct err e = ERR_NULL;

    (void)snprintf(
        nr.meta.name, sizeof(nr.meta.name), "%.*s", NAME_MAX_LEN, call->reply.rq.params[0]);
    if (given_version(call) != 0) {
        refuse_version(call, rs);
        return;
    }
    reply_wait(&call->reply, networks_add(call->reply.h->networks, &nr, on_made, &call->reply, &e),
        &e, rs);
}

static void network_put(
    struct object_call *call, const struct model_network *net, struct response *rs)
{
    const struct request *rq = &call->reply.rq;
    const struct network *given = &call->object.network;

    if (strcmp(rq->params[0], rq->params[2]) != 0)
        response_refuse(
            rs, 400, "network \"%s\" is no object of network \"%s\"", rq->params[2], rq->params[0]);
    else if (!net)
        make(call, rs);
    else if (!ip_prefix_equal(&given->cidr4, &net->spec.cidr4) ||
             !ip_prefix_equal(&given->cidr6, &net->spec.cidr6))
        response_refuse(rs, 400,
            "the address blocks of network \"%s\" are fixed: its nodes have their addresses for "
            "good",
            rq->params[0]);
    else
        change(call, net, rs);
}

static void remove_network(struct handlers *h, const struct model_network *net,
    const struct request *rq, struct response *rs)
{
    if (strcmp(rq->params[0], rq->params[2]) == 0)
        handlers_networks_remove(h, rq, rs);
    else
        refuse_missing(rq, rs);
}

static const struct objects_row network_row = {
    .kind = &network_kind,
    .list = network_list,
    .get = network_get,
    .put = network_put,
    .remove = remove_network,
};

/* ---- Nodes ----------------------------------------------------------------------------------- */

static void node_list(
    const struct model_network *net, const struct object_kind *kind, json_t *items)
{
    for (size_t i = 0; i < net->nodes.n; i++)
        json_array_append_new(items, handlers_node(model_node_at(net, i)));
}

static json_t *node_get(
    const struct model_network *net, const struct object_kind *kind, const char *name)
{
    const struct model_node *node = model_find_node(net, name);

    return node ? handlers_node(node) : NULL;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Are the fields unchanged that an administrator may not change? */
static bool keeps_identity(const struct node *given, const struct node *held)
{
    return x25519_public_equal(&given->key, &held->key) &&
           ip_addr_equal(&given->address4, &held->address4) &&
           ip_addr_equal(&given->address6, &held->address6) && !given->hub == !held->hub &&
           (!given->stock || held->stock);
}

/* May the node have the rates that are given? If not, @rs says why. */
static bool may_have_rates(struct response *rs, const struct node *given, const struct node *held)
{
    bool is_asked = given->rates || given->shows_dscp;

    if (is_asked && held->stock)
        response_refuse(rs, 400,
            "node \"%s\" is a stock WireGuard, which keeps no rates and shows no DSCP",
            held->meta.name);
    else if (is_asked && held->hub)
        response_refuse(rs, 400,
            "node \"%s\" is a hub, which keeps no rates and shows no DSCP: what it relays is not "
            "its own",
            held->meta.name);
    else
        return true;
    return false;
}

/* May the node have the routes that are given? If not, @rs says why. */
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
    if (r != 0)
        handlers_refuse(rs, r, &e, NULL);
    return r == 0;
}

static void node_put(struct object_call *call, const struct model_network *net, struct response *rs)
{
    const struct request *rq = &call->reply.rq;
    const struct node *given = &call->object.node;
    const struct model_node *node = model_find_node(net, rq->params[2]);
    struct node spec = *given;
    char key[RECORD_KEY_MAX];
    struct store_op op = {.key = record_key(key, RECORD_NODE, rq->params[0], rq->params[2])};
    _cleanup_(freep) char *cursor = NULL;
    char cursor_key[RECORD_KEY_MAX];
    struct store_op other;
    size_t n_others = 0;

    if (!node) {
        response_refuse(rs, 404,
            "network \"%s\" has no node \"%s\": a node is made by \"weft join\"", rq->params[0],
            rq->params[2]);
        return;
    }
    if (!keeps_identity(given, &node->spec)) {
        response_refuse(rs, 400,
            "the key and addresses of node \"%s\" are fixed, and so is whether it is stock; "
            "labels, island, ephemeral, relay, routes, rate, classRates, findRate and showDscp may "
            "change",
            rq->params[2]);
        return;
    }
    if (!may_have_rates(rs, given, &node->spec))
        return;
    if (!may_have_routes(net, rs, given))
        return;
    /* Where the hub is reached comes from its own command line. */
    spec.hub = node->spec.hub;
    /* A file that was written before there was this field does not say it. */
    spec.stock = node->spec.stock;
    /* That is said by its own health check. */
    spec.drained = node->spec.drained;
    op.ttl_seconds = given->ephemeral && !spec.hub ? ENROL_EPHEMERAL_SECONDS : 0;
    /* Two nodes may not have the same route, and an enrolment may be giving one to its node. */
    if (given->routes)
        n_others = handlers_hold(net, &other, cursor_key, &cursor);
    write_object(call, rs, op, record_node_encode(&spec, &node->token),
        node->spec.meta.resource_version, &other, n_others);
}

static void remove_node(struct handlers *h, const struct model_network *net,
    const struct request *rq, struct response *rs)
{
    const struct model_node *node = model_find_node(net, rq->params[2]);

    if (node)
        node_removal_by_admin(h, rq, rs, node);
    else
        refuse_missing(rq, rs);
}

static const struct objects_row node_row = {
    .kind = &node_kind,
    .list = node_list,
    .get = node_get,
    .put = node_put,
    .remove = remove_node,
};

/* ---- objects of the kinds that mean nothing in particular to the hub ------------------------- */

/*
 * They are kept, shown, and told to the nodes that may see them, as the kind's row says.
 */

static void plain_list(
    const struct model_network *net, const struct object_kind *kind, json_t *items)
{
    const struct object *o;
    size_t i = 0;

    while ((o = model_each_object(net, kind, &i)))
        json_array_append_new(items, object_encode(o));
}

static json_t *plain_get(
    const struct model_network *net, const struct object_kind *kind, const char *name)
{
    const struct model_object *o = model_find_object(net, kind, name);

    return o ? object_encode(&o->object) : NULL;
}

static void plain_put(
    struct object_call *call, const struct model_network *net, struct response *rs)
{
    const struct request *rq = &call->reply.rq;
    const struct object *o = &call->object;
    char key[RECORD_KEY_MAX];
    struct store_op op = {.key = record_object_key(key, o->kind, rq->params[0], rq->params[2])};
    char keys[OBJECT_ABOUT_MAX][RECORD_KEY_MAX];
    struct store_op checks[OBJECT_ABOUT_MAX];
    const char *node;
    unsigned n = 0;

    while (n < OBJECT_ABOUT_MAX && o->kind->node && (node = o->kind->node(o, n))) {
        if (!hold_node(call, net, node, &checks[n], keys[n], rs))
            return;
        n++;
    }
    write_object(call, rs, op, record_object_encode(o), model_revision(net->model, key), checks, n);
}

static const struct objects_row plain_row = {
    .list = plain_list,
    .get = plain_get,
    .put = plain_put,
    .remove = remove_object,
};

/* ---- the calls: objects of any kind are read, written and removed ---------------------------- */

/* The kinds of object that mean more to the hub than their rows in mesh/ say. */
static const struct objects_row *const rows[] = {
    &network_row,
    &node_row,
    &edge_row,
};

static const struct objects_row *row_of(const struct object_kind *kind)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (rows[i]->kind == kind)
            return rows[i];
    return &plain_row;
}

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

void handlers_objects_list(void *ctx, const struct request *rq, struct response *rs)
{
    const struct model_network *net = handlers_find_network(ctx, rq, rs);
    const struct object_kind *kind = net ? find_kind(rq, rs) : NULL;
    json_t *items;

    if (!kind)
        return;
    items = json_array();
    row_of(kind)->list(net, kind, items);
    response_json(rs, 200, json_pack("{s:o}", "items", items));
}

void handlers_objects_get(void *ctx, const struct request *rq, struct response *rs)
{
    const struct model_network *net = handlers_find_network(ctx, rq, rs);
    const struct object_kind *kind = net ? find_kind(rq, rs) : NULL;
    const char *name = rq->params[2];
    json_t *json;

    if (!kind)
        return;
    json = row_of(kind)->get(net, kind, name);
    if (json)
        response_json(rs, 200, json);
    else
        refuse_missing(rq, rs);
}

void handlers_edges(void *ctx, const struct request *rq, struct response *rs)
{
    const struct model_network *net = handlers_find_network(ctx, rq, rs);
    const char *idle = request_query(rq, "idle");

    if (net && idle && strcmp(idle, "1") == 0)
        response_json(rs, 200, edge_view_list_all(net, clock_wall_s()));
    else if (net)
        response_json(rs, 200, edge_view_list(net, clock_wall_s()));
}

void handlers_events(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_network *net = handlers_find_network(h, rq, rs);

    if (net)
        response_json(rs, 200,
            json_pack(
                "{s:o}", "events", edge_events_encode(&h->reports->events, net->spec.meta.name)));
}

void handlers_findings(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_network *net = handlers_find_network(h, rq, rs);

    if (net)
        response_json(rs, 200,
            findings_encode(health_of(&h->reports->health, net->spec.meta.name), clock_wall_s()));
}

void handlers_nat(void *ctx, const struct request *rq, struct response *rs)
{
    const struct model_network *net = handlers_find_network(ctx, rq, rs);
    struct nat_view view;

    if (!net)
        return;
    nat_view_make(&view, net);
    response_json(rs, 200, nat_view_encode(&view, &net->spec));
}

/* ---- writing -------------------------------------------------------------------------------- */

static void forget_object(struct reply *l)
{
    object_deinit(&container_of(l, struct object_call, reply)->object);
}

static void put_object(struct reply *l, const struct request *rq, struct response *rs)
{
    struct object_call *call = container_of(l, struct object_call, reply);
    const struct model_network *net;

    /* A network that is not there is made. */
    if (call->object.kind->is_network)
        net = model_find_network(l->h->model, rq->params[0]);
    else
        net = handlers_find_network(l->h, rq, rs);
    if (net || call->object.kind->is_network)
        call->row->put(call, net, rs);
}

void handlers_objects_put(void *ctx, const struct request *rq, struct response *rs)
{
    _cleanup_(object_deinit) struct object o = OBJECT_NULL;
    const struct object_kind *kind = find_kind(rq, rs);
    struct object_call *call;
    struct err e = ERR_NULL;
    json_auto_t *json = NULL;
    json_t *meta;

    if (!kind)
        return;
    json = json_deep_copy(rq->body);
    meta = json_object_get(json, "metadata");
    /* An administrator may leave the network out: the path says it. */
    if (!kind->is_network && json_is_object(meta) && !json_object_get(meta, "network"))
        json_object_set_new(meta, "network", json_string(rq->params[0]));
    /* Who prints an object, edits it and applies it gives the status back, which is the nodes' own
     * word. */
    json_object_del(json, "status");
    if (object_decode(&o, json, OBJECT_STRICT, &e) != 0) {
        response_fail(rs, &e);
    } else if (o.kind != kind) {
        response_refuse(rs, 400, "the object is a %s, not a %s", o.kind->name, rq->params[1]);
    } else if (strcmp(o.meta.name, rq->params[2]) != 0 ||
               (!kind->is_network && strcmp(o.meta.network, rq->params[0]) != 0)) {
        response_refuse(rs, 400, "the object is \"%s\" of network \"%s\", not \"%s\" of \"%s\"",
            o.meta.name, o.meta.network, rq->params[2], rq->params[0]);
    } else if ((call = reply_new(ctx, rq, rs, sizeof(*call), put_object))) {
        call->row = row_of(kind);
        call->object = o;
        o = (struct object)OBJECT_NULL;
        call->reply.deinit = forget_object;
        reply_begin(&call->reply, rq, rs);
    }
}

/* ---- removing ------------------------------------------------------------------------------- */

void handlers_objects_remove(void *ctx, const struct request *rq, struct response *rs)
{
    const struct model_network *net = handlers_find_network(ctx, rq, rs);
    const struct object_kind *kind = net ? find_kind(rq, rs) : NULL;

    if (kind)
        row_of(kind)->remove(ctx, net, rq, rs);
}
