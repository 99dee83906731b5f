/*
 * objects_edge.c - MeshEdges as an administrator reads and writes them; see objects.h.
 *
 * There is one for each pair that an administrator has said something about, or of which one of the
 * two nodes reports something.
 */
#include <string.h>

#include "hub/handlers/objects.h"
#include "hub/model/model.h"
#include "hub/watch/edge_view.h"
#include "os/clock.h"

/* All edges that somebody said or observed something about. */
static void list(const struct model_network *net, const struct object_kind *kind, json_t *items)
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
    const char *to_a = a->pub.spec.meta.name;
    const char *to_b = b->pub.spec.meta.name;

    return model_find_edge(a->net, to_a, to_b) || edge_parts_find(&a->heard.report.edges, to_b) ||
           edge_parts_find(&b->heard.report.edges, to_a) ||
           edge_parts_find(&a->heard.probed, to_b) || edge_parts_find(&b->heard.probed, to_a);
}

/* The edge of that name, see above; NULL: there is none. */
static json_t *get(
    const struct model_network *net, const struct object_kind *kind, const char *name)
{
    const char *middle = strstr(name, "--");
    char first[ROUTE_PARAM_MAX + 1];
    struct edge_pair pair;

    if (!middle)
        return NULL;
    memcpy(first, name, (size_t)(middle - name));
    first[middle - name] = '\0';
    pair.nodes[0] = model_find_node(net, first);
    pair.nodes[1] = model_find_node(net, middle + 2);
    if (!pair.nodes[0] || !pair.nodes[1] || strcmp(first, middle + 2) >= 0 || !is_known(&pair))
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

static void put(struct object_call *call, struct model_network *net, struct response *rs)
{
    const struct request *rq = &call->later.rq;
    const struct mesh_edge *given = &call->object.edge;
    char key[RECORD_KEY_MAX];
    struct store_op op = {.key = record_key(key, RECORD_EDGE, rq->params[0], rq->params[2])};
    char ends[2][RECORD_KEY_MAX];
    struct store_op checks[2];

    for (unsigned i = 0; i < 2; i++) {
        const struct model_node *node =
            objects_hold_node(call, net, given->nodes[i], &checks[i], ends[i], rs);

        if (!node)
            return;
        if (node->pub.spec.hub && given->path == EDGE_PATH_OFF) {
            response_refuse(rs, 400,
                "an edge to the hub cannot be off: \"weft node rm %s\" cuts "
                "that node off",
                given->nodes[1 - i]);
            return;
        }
        if (node->pub.spec.hub && given->rate != 0) {
            response_refuse(rs, 400,
                "an edge to the hub has no rate: \"weft node set %s --rate\" limits all that this "
                "node sends, to the hub as well",
                given->nodes[1 - i]);
            return;
        }
        if (node->pub.spec.hub && has_pins(given)) {
            response_refuse(rs, 400,
                "an edge to the hub pins nothing: where \"%s\" is, \"weft hub move\" says, and its "
                "key is in each join token",
                given->nodes[i]);
            return;
        }
    }
    objects_write(
        call, rs, op, record_edge_encode(given), model_revision(net->model, key), checks, 2);
}

const struct objects_row objects_edge = {
    .kind = &mesh_edge_kind,
    .list = list,
    .get = get,
    .put = put,
    .remove = objects_remove,
};
