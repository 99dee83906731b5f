/* hub_access.c - see hub_access.h. */
#include "hub_access.h"

#include <stdlib.h>

#include "base/err.h"
#include "hub/overlay/overlay.h"
#include "hub/watch/view.h"
#include "mesh/snapshot/snapshot.h"

void hub_access_mark(const struct model_network *net)
{
    if (net->served->access)
        net->served->access->is_due = true;
}

void hub_access_mark_rules(const struct model_network *net)
{
    hub_access_mark(net);
    if (net->served->access)
        net->served->access->has_others = true;
}

/* NULL: no memory; the next tick tries again. */
static struct hub_access *open_access(const struct model_network *net)
{
    struct hub_access *ha = net->served->access;

    if (!ha) {
        ha = net->served->access = calloc(1, sizeof(*ha));
        if (ha)
            ha->is_due = ha->has_others = true;
    }
    return ha;
}

/* What this hub itself has let in and refused is summed up with what members report. */
static void report(struct hub_access *ha, struct access_view *v, struct edge_events *events,
    const struct model_network *net, const struct snapshot *s, nsec_t now, int64_t wall_s)
{
    struct access_report report;

    while (access_counts_report(&ha->rules.counts, s, ha->reported, now, &report, &ha->reported))
        access_view_take(v, events, net->own, &report, wall_s);
}

static void tell_relay(const struct model_network *net)
{
    for (size_t i = 0; i < net->nodes.n; i++)
        for (size_t k = 0; k < i && model_node_at(net, i)->spec.stock; k++)
            if (model_node_at(net, k)->spec.stock)
                overlay_change_edge(model_node_at(net, i), model_node_at(net, k));
}

static void look(struct access_view *v, struct edge_events *events, const struct model_network *net,
    nsec_t now, int64_t wall_s)
{
    struct hub_access *ha = open_access(net);
    const char *interface = net->served->interface;
    bool is_kept = ha && ha->rules.table.body;
    struct snapshot s = SNAPSHOT_NULL;

    /* A network without rules costs nothing. */
    if (!ha || (!ha->is_due && !is_kept))
        return;
    if (!ha->is_due && now - ha->rules.read_at < ACCESS_READ_EACH &&
        now - ha->rules.table.put_at < KEPT_TABLE_PERIOD)
        return;
    if (ha->has_others)
        tell_relay(net);
    ha->has_others = false;
    if (view_lend_snapshot(net->own, &s)) {
        access_rules_apply(&ha->rules, interface, overlay_engine(net), &s, now);
        access_rules_count(&ha->rules, interface, overlay_engine(net), &s, now);
        report(ha, v, events, net, &s, now, wall_s);
        ha->is_due = ha->rules.fault.code != 0;
    }
    view_return_snapshot(&s);
}

void hub_access_tick(struct access_view *v, struct edge_events *events, const struct model *model,
    nsec_t now, int64_t wall_s)
{
    for (size_t i = 0; i < model->networks.n; i++) {
        const struct model_network *net = model_network_at(model, i);

        if (net->own && net->served->overlay && net->served->is_up)
            look(v, events, net, now, wall_s);
    }
}

const char *hub_access_fault(const struct model_network *net)
{
    const struct hub_access *ha = net->served->access;

    return ha && ha->rules.fault.code != 0 ? err_text(&ha->rules.fault) : NULL;
}

void hub_access_end(const struct model_network *net)
{
    struct hub_access *ha = net->served->access;

    if (!ha)
        return;
    if (ha->rules.table.body)
        access_rules_remove(net->served->interface);
    access_rules_deinit(&ha->rules);
    free(ha);
    net->served->access = NULL;
}
