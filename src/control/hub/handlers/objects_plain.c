/*
 * objects_plain.c - objects of the kinds that mean nothing in particular to the hub; see objects.h.
 *
 * They are kept, shown, and told to the nodes that may see them, as the kind's row says.
 */
#include "base/err.h"
#include "hub/handlers/objects.h"
#include "hub/model/model.h"

static void list(const struct model_network *net, const struct object_kind *kind, json_t *items)
{
    const struct object *o;
    size_t i = 0;

    while ((o = model_each_object(net, kind, &i)))
        json_array_append_new(items, object_encode(o));
}

static json_t *get(
    const struct model_network *net, const struct object_kind *kind, const char *name)
{
    const struct model_object *o = model_find_object(net, kind, name);

    return o ? object_encode(&o->object) : NULL;
}

static void put(struct object_call *call, struct model_network *net, struct response *rs)
{
    const struct request *rq = &call->later.rq;
    const struct object *o = &call->object;
    char key[RECORD_KEY_MAX];
    struct store_op op = {.key = record_object_key(key, o->kind, rq->params[0], rq->params[2])};
    char keys[OBJECT_ABOUT_MAX][RECORD_KEY_MAX];
    struct store_op checks[OBJECT_ABOUT_MAX];
    const char *node;
    unsigned n = 0;

    while (n < OBJECT_ABOUT_MAX && o->kind->node && (node = o->kind->node(o, n))) {
        if (!objects_hold_node(call, net, node, &checks[n], keys[n], rs))
            return;
        n++;
    }
    objects_write(
        call, rs, op, record_object_encode(o), model_revision(net->model, key), checks, n);
}

const struct objects_row objects_plain = {
    .list = list,
    .get = get,
    .put = put,
    .remove = objects_remove,
};
