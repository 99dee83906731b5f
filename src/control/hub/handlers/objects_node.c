/* objects_node.c - Nodes as an administrator reads and writes them; see objects.h. */
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "hub/enrol/enrol.h"
#include "hub/handlers/node_removal.h"
#include "hub/handlers/objects.h"
#include "hub/model/model.h"
#include "hub/model/node_routes.h"
#include "hub/watch/reports.h"

static json_t *node_json(const struct model_node *node)
{
    struct node spec = node->pub.spec;
    json_t *json;

    spec.status = reports_of_node(node);
    json = node_encode(&spec);
    json_decref(spec.status);
    return json;
}

static void list(const struct model_network *net, const struct object_kind *kind, json_t *items)
{
    for (size_t i = 0; i < net->nodes.n; i++)
        json_array_append_new(items, node_json(model_node_at(net, i)));
}

static json_t *get(
    const struct model_network *net, const struct object_kind *kind, const char *name)
{
    const struct model_node *node = model_find_node(net, name);

    return node ? node_json(node) : NULL;
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
    if (r == NODE_ROUTES_E_TAKEN)
        response_refuse(rs, 409, "%s", err_text(&e));
    else if (r != 0)
        response_fail(rs, &e);
    return r == 0;
}

/*
 * Two nodes may not have the same route, and an enrolment that is on its way may be giving one of
 * these to its node. Each enrolment changes the record of the network's address cursor; so a node
 * that gets routes is written together with that record, unchanged, at the revision that it has
 * now.
 *
 * @value:	for the caller to free()
 *
 * Return: how many operations that is, 0 or 1.
 */
static size_t hold_routes(const struct model_network *net, const struct node *given,
    struct store_op *op, char key[static RECORD_KEY_MAX], char **value)
{
    *value = NULL;
    /* A damaged record of the cursor stays as it is, for a person to see. */
    if (!given->routes || net->ipam.forgot)
        return 0;
    *value = record_ipam_encode(net->ipam.next, net->ipam.high);
    *op = (struct store_op){.kind = *value ? STORE_OP_PUT : STORE_OP_CHECK,
        .key = record_key(key, RECORD_IPAM, net->pub.spec.meta.name, ""),
        .value = *value,
        .expect = net->ipam_revision};
    return 1;
}

static void put(struct object_call *call, struct model_network *net, struct response *rs)
{
    const struct request *rq = &call->later.rq;
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
            "labels, island, ephemeral, relay, routes, rate, classRates and showDscp may change",
            rq->params[2]);
        return;
    }
    if (!may_have_rates(rs, given, &node->pub.spec))
        return;
    if (!may_have_routes(net, rs, given))
        return;
    /* Where the hub is reached comes from its own command line. */
    spec.hub = node->pub.spec.hub;
    /* A file that was written before there was this field does not say it. */
    spec.stock = node->pub.spec.stock;
    op.ttl_seconds = given->ephemeral && !spec.hub ? ENROL_EPHEMERAL_SECONDS : 0;
    n_others = hold_routes(net, given, &other, cursor_key, &cursor);
    objects_write(call, rs, op, record_node_encode(&spec, &node->token),
        node->pub.spec.meta.resource_version, &other, n_others);
}

static void remove_node(
    struct handlers *h, struct model_network *net, const struct request *rq, struct response *rs)
{
    const struct model_node *node = model_find_node(net, rq->params[2]);

    if (node)
        node_removal_by_admin(h, rq, rs, node);
    else
        objects_refuse_missing(rq, rs);
}

const struct objects_row objects_node = {
    .kind = &node_kind,
    .list = list,
    .get = get,
    .put = put,
    .remove = remove_node,
};
