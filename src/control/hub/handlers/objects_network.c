/* objects_network.c - the Network as an administrator reads and writes it; see objects.h. */
#include <string.h>

#include "base/err.h"
#include "hub/handlers/handlers.h"
#include "hub/handlers/objects.h"
#include "hub/model/model.h"
#include "hub/networks/networks.h"

static void list(const struct model_network *net, const struct object_kind *kind, json_t *items)
{
    json_array_append_new(items, network_encode(&net->pub.spec));
}

static json_t *get(
    const struct model_network *net, const struct object_kind *kind, const char *name)
{
    bool is_it = strcmp(name, net->pub.spec.meta.name) == 0;

    return is_it ? network_encode(&net->pub.spec) : NULL;
}

static void change(struct object_call *call, struct model_network *net, struct response *rs)
{
    const struct network *given = &call->object.network;
    char key[RECORD_KEY_MAX];
    struct store_op op = {.key = record_key(key, RECORD_NETWORK, net->pub.spec.meta.name, "")};

    objects_write(call, rs, op, record_network_encode(given, &net->maker),
        net->pub.spec.meta.resource_version, NULL, 0);
}

/* It was made; what else the object says is written now. */
static void on_made(void *ctx, int r, struct model_network *net, const struct err *e)
{
    struct later *l = ctx;
    struct response rs = {0};

    if (r == 0) {
        later_again(l);
        return;
    }
    handlers_refuse_network(&rs, r, e);
    later_end(l, &rs);
}

static void make(struct object_call *call, struct response *rs)
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
    if (objects_given_version(call) != 0) {
        objects_refuse_version(call, rs);
        return;
    }
    r = networks_add(call->later.h->networks, &nr, on_made, &call->later, &e);
    if (r == 0)
        later_wait(&call->later);
    else
        handlers_refuse_network(rs, r, &e);
}

static void put(struct object_call *call, struct model_network *net, struct response *rs)
{
    const struct request *rq = &call->later.rq;
    const struct network *given = &call->object.network;

    if (strcmp(rq->params[0], rq->params[2]) != 0)
        response_refuse(
            rs, 400, "network \"%s\" is no object of network \"%s\"", rq->params[2], rq->params[0]);
    else if (!net)
        make(call, rs);
    else if (!ip_prefix_equal(&given->cidr4, &net->pub.spec.cidr4) ||
             !ip_prefix_equal(&given->cidr6, &net->pub.spec.cidr6))
        response_refuse(rs, 400,
            "the address blocks of network \"%s\" are fixed: its nodes have their addresses for "
            "good",
            rq->params[0]);
    else
        change(call, net, rs);
}

static void remove_network(
    struct handlers *h, struct model_network *net, const struct request *rq, struct response *rs)
{
    if (strcmp(rq->params[0], rq->params[2]) == 0)
        handlers_networks_remove(h, rq, rs);
    else
        objects_refuse_missing(rq, rs);
}

const struct objects_row objects_network = {
    .kind = &network_kind,
    .list = list,
    .get = get,
    .put = put,
    .remove = remove_network,
};
