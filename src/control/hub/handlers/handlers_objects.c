/* handlers_objects.c - objects as an administrator reads, writes and removes them: the calls, for
 * any kind.
 */
#include <string.h>

#include "base/err.h"
#include "hub/handlers/handlers.h"
#include "hub/handlers/objects.h"
#include "hub/model/model.h"
#include "hub/watch/edge_view.h"
#include "hub/watch/reports.h"
#include "os/clock.h"

/* The kinds of object that mean more to the hub than their rows in mesh/ say. */
static const struct objects_row *const rows[] = {
    &objects_network,
    &objects_node,
    &objects_edge,
};

static const struct objects_row *row_of(const struct object_kind *kind)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (rows[i]->kind == kind)
            return rows[i];
    return &objects_plain;
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
    struct model_network *net = handlers_find_network(ctx, rq, rs);
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
    struct model_network *net = handlers_find_network(ctx, rq, rs);
    const struct object_kind *kind = net ? find_kind(rq, rs) : NULL;
    const char *name = rq->params[2];
    json_t *json;

    if (!kind)
        return;
    json = row_of(kind)->get(net, kind, name);
    if (json)
        response_json(rs, 200, json);
    else
        objects_refuse_missing(rq, rs);
}

void handlers_edges(void *ctx, const struct request *rq, struct response *rs)
{
    struct model_network *net = handlers_find_network(ctx, rq, rs);

    if (net)
        response_json(rs, 200, edge_view_list(net, clock_wall_s()));
}

void handlers_events(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    struct model_network *net = handlers_find_network(h, rq, rs);

    if (net)
        response_json(rs, 200,
            json_pack("{s:o}", "events",
                edge_events_encode(&h->reports->events, net->pub.spec.meta.name)));
}

/* ---- writing -------------------------------------------------------------------------------- */

static void forget_object(struct later *l)
{
    object_deinit(&container_of(l, struct object_call, later)->object);
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
    /* Who prints an object, edits it and applies it gives the status back, which is the nodes' own
     * word. */
    json_object_del(json, "status");
    return json;
}

static void put_object(struct later *l, const struct request *rq, struct response *rs)
{
    struct object_call *call = container_of(l, struct object_call, later);
    struct model_network *net;

    /* A network that is not there is made. */
    if (call->object.kind->is_network)
        net = model_find_network(l->h->model, rq->params[0]);
    else
        net = handlers_find_network(l->h, rq, rs);
    if (net || call->object.kind->is_network)
        call->row->put(call, net, rs);
}

/* @o is taken. */
static void begin_put(
    struct handlers *h, const struct request *rq, struct response *rs, struct object *o)
{
    struct object_call *call = later_new(h, rq, rs, sizeof(*call), put_object);

    if (!call) {
        object_deinit(o);
        return;
    }
    call->row = row_of(o->kind);
    call->object = *o;
    call->later.deinit = forget_object;
    later_begin(&call->later, rq, rs);
}

void handlers_objects_put(void *ctx, const struct request *rq, struct response *rs)
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

/* ---- removing ------------------------------------------------------------------------------- */

void handlers_objects_remove(void *ctx, const struct request *rq, struct response *rs)
{
    struct model_network *net = handlers_find_network(ctx, rq, rs);
    const struct object_kind *kind = net ? find_kind(rq, rs) : NULL;

    if (kind)
        row_of(kind)->remove(ctx, net, rq, rs);
}
