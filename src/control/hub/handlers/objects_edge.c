/*
 * objects_edge.c - MeshEdges as an administrator reads and writes them; see objects.h.
 *
 * There is one for each pair that an administrator has said something about, or of which one of the
 * two nodes reports something.
 */
#include <stdio.h>
#include <string.h>

#include "hub/handlers/objects.h"
#include "hub/model/model.h"
#include "hub/watch/reports.h"

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

/* The edge between two nodes in @map. It is added if there is none, for what a node reports of it.
 */
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

/* Add what @node reports of its edges, under its field owner. */
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

/* All edges, see above. Each report is read once. */
static void list(const struct model_network *net, const struct object_kind *kind, json_t *items)
{
    json_t *map = json_object();
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
}

/* The edge of that name, see above; NULL: there is none. */
static json_t *get(
    const struct model_network *net, const struct object_kind *kind, const char *name)
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

/* ---- writing -------------------------------------------------------------------------------- */

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
