/* resource_status.c - see resource_status.h. */
#include "resource_status.h"

#include <string.h>

#include "hub/model/model.h"
#include "hub/resources/resource.h"
#include "hub/watch/edge_view.h"
#include "hub/watch/reports.h"
#include "os/clock.h"

/* What "Ready" says of a node: does its agent do what it is told? */
static json_t *ready_condition(const struct model_node *node)
{
    const char *error = node->heard.report.error;
    const char *status = "True";
    const char *reason = "Reported";
    const char *text = "";

    if (node->pub.spec.hub) {
        reason = "Hub";
    } else if (node->pub.spec.stock) {
        status = "Unknown";
        reason = "Stock";
        text = "a WireGuard without an agent reports nothing";
    } else if (node->was_silent) {
        status = "False";
        reason = "Silent";
        text = "its agent has stopped to report";
    } else if (node->reported_at == 0) {
        status = "Unknown";
        reason = "NotReported";
        text = "its agent has not reported yet";
    } else if (error || node->was_unapplied) {
        status = "False";
        reason = error ? "Failing" : "NeverApplied";
        text = error ? error : "its agent has applied nothing yet";
    }
    return json_pack("{s:s, s:s, s:s, s:s}", "type", "Ready", "status", status, "reason", reason,
        "message", text);
}

static json_t *node_status(const struct model_node *node)
{
    json_t *status = reports_of_node(node);

    (void)json_object_set_new(status, "conditions", json_pack("[o]", ready_condition(node)));
    return status;
}

static json_t *edge_status(const struct model_network *net, const char *name)
{
    const char *middle = strstr(name, "--");
    char first[NAME_MAX_LEN + 1];
    struct edge_pair pair;

    if (!middle || middle - name > NAME_MAX_LEN)
        return NULL;
    memcpy(first, name, (size_t)(middle - name));
    first[middle - name] = '\0';
    pair.nodes[0] = model_find_node(net, first);
    pair.nodes[1] = model_find_node(net, middle + 2);
    return pair.nodes[0] && pair.nodes[1] ? edge_view_status(&pair, clock_wall_s()) : NULL;
}

json_t *resource_status(const struct model *m, const struct object_kind *kind, const char *of)
{
    char network[NAME_MAX_LEN + 1];
    char name[OBJECT_NAME_MAX + 1];
    const struct model_network *net;
    const struct model_node *node;

    if (!resource_name_parse(kind, of, network, name))
        return NULL;
    net = model_find_network(m, network);
    if (!net)
        return NULL;
    if (kind == &network_kind)
        return json_pack("{s:I}", "nodes", (json_int_t)net->nodes.n);
    if (kind == &mesh_edge_kind)
        return edge_status(net, name);
    node = model_find_node(net, name);
    return node ? node_status(node) : NULL;
}
