/* objects.c - what writing and removing objects of any kind has in common; see objects.h. */
#include "objects.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "hub/handlers/handlers.h"
#include "hub/model/model.h"
#include "os/log.h"

uint64_t objects_given_version(const struct object_call *call)
{
    return call->object.meta.resource_version;
}

void objects_refuse_version(const struct object_call *call, struct response *rs)
{
    const struct request *rq = &call->later.rq;

    response_refuse(rs, 409,
        "%s \"%s\" is not at version %llu any more: somebody changed it meanwhile", rq->params[1],
        rq->params[2], (unsigned long long)objects_given_version(call));
}

struct model_node *objects_hold_node(const struct object_call *call,
    const struct model_network *net, const char *name, struct store_op *ret,
    char key[static RECORD_KEY_MAX], struct response *rs)
{
    const char *network = call->later.rq.params[0];
    struct model_node *node = model_find_node(net, name);

    if (!node) {
        response_refuse(rs, 404, "network \"%s\" has no node \"%s\"", network, name);
        return NULL;
    }
    *ret = (struct store_op){.kind = STORE_OP_CHECK,
        .key = record_key(key, RECORD_NODE, network, name),
        .expect = node->pub.spec.meta.resource_version};
    return node;
}

/* The object as it is now. */
static void written(struct later *l, const struct store_answer *a, struct response *rs)
{
    const struct object_call *call = container_of(l, struct object_call, later);
    const struct request *rq = &l->rq;
    const struct model_network *net = model_find_network(l->h->model, rq->params[0]);
    json_t *json;

    if (a->r != 0) {
        later_fail(rs, a);
        return;
    }
    log_info("%s \"%s\" of network \"%s\" is changed", rq->params[1], rq->params[2], rq->params[0]);
    json = net ? call->row->get(net, call->object.kind, rq->params[2]) : NULL;
    if (json)
        response_json(rs, 200, json);
    else
        response_refuse(rs, 409, "%s \"%s\" was written, and somebody has removed it at once",
            rq->params[1], rq->params[2]);
}

void objects_write(struct object_call *call, struct response *rs, struct store_op op, char *value,
    uint64_t held, const struct store_op *checks, size_t n_checks)
{
    _cleanup_(freep) char *text = value;
    struct store_op ops[1 + OBJECT_ABOUT_MAX];
    uint64_t given = objects_given_version(call);

    if (!text) {
        response_refuse(rs, 500, "no memory for the object");
        return;
    }
    if (given != 0 && given != held) {
        objects_refuse_version(call, rs);
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

/* ---- removing ------------------------------------------------------------------------------- */

void objects_refuse_missing(const struct request *rq, struct response *rs)
{
    response_refuse(
        rs, 404, "network \"%s\" has no %s \"%s\"", rq->params[0], rq->params[1], rq->params[2]);
}

static void removed(struct later *l, const struct store_answer *a, struct response *rs)
{
    const struct request *rq = &l->rq;

    if (a->r != 0) {
        later_fail(rs, a);
        return;
    }
    log_info("%s \"%s\" of network \"%s\" is removed", rq->params[1], rq->params[2], rq->params[0]);
    response_empty(rs);
}

/* Also a record that is set aside because it cannot be understood. */
static void begin_removal(struct later *l, const struct request *rq, struct response *rs)
{
    const struct object_kind *kind = object_kind_find(rq->params[1]);
    char key[RECORD_KEY_MAX];
    struct store_op op = {
        .kind = STORE_OP_DELETE, .key = record_object_key(key, kind, rq->params[0], rq->params[2])};

    op.expect = model_revision(l->h->model, key);
    if (op.expect != 0)
        later_commit(l, &op, 1, removed, rs);
    else
        objects_refuse_missing(rq, rs);
}

void objects_remove(
    struct handlers *h, struct model_network *net, const struct request *rq, struct response *rs)
{
    struct later *l = later_new(h, rq, rs, sizeof(*l), begin_removal);

    if (l)
        later_begin(l, rq, rs);
}
