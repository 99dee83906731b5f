/* cluster_merge.c - see cluster_merge.h. */
#include "agent/cluster/cluster_merge.h"

#include <string.h>

#include "base/err.h"

/* What a node has reported, as the hub or the cluster shows it. With another key it is another
 * machine's. */
static bool is_of(const struct node *report, const struct node *n)
{
    return report && report->status && x25519_public_equal(&report->key, &n->key);
}

/* Without memory the node stays as it is. True: it has got the report. */
static bool copy_report(struct object *to, const struct node *from)
{
    struct object made = OBJECT_NULL;
    struct err e = ERR_NULL;
    json_t *json;

    if (!is_of(from, &to->node) || (to->node.status && json_equal(to->node.status, from->status)))
        return false;
    json = object_encode(to);
    if (json && json_object_set(json, "status", from->status) == 0)
        (void)snapshot_decode_object(&made, json, NULL, &e);
    json_decref(json);
    if (made.kind != &node_kind)
        return false;
    object_deinit(to);
    *to = made;
    return true;
}

/* @to is what the cluster says now. */
static void add_report(
    struct object *to, const struct snapshot *s, const struct snapshot *hub, bool is_heard)
{
    const char *name = to->meta.name;
    const struct node *heard = snapshot_find_node(hub, name);

    if (is_heard && is_of(heard, &to->node))
        (void)copy_report(to, heard);
    else if (!node_speeds_known(&to->node.speeds) && !to->node.side)
        (void)copy_report(to, snapshot_find_node(s, name));
}

static void keep_objects(struct snapshot *s, struct snapshot *to, const json_t *kept)
{
    const struct object_kind *const kinds[] = {&node_kind, &mesh_edge_kind};

    for (size_t k = 0; k < 2; k++) {
        const json_t *names = json_object_get(kept, kinds[k]->plural);
        const struct snapshot_list *had = snapshot_list(s, kinds[k]);

        for (size_t i = 0; i < json_array_size(names); i++)
            for (size_t j = 0; j < had->n; j++) {
                const char *name = json_string_value(json_array_get(names, i));

                if (!name || strcmp(had->items[j]->meta.name, name) != 0)
                    continue;
                /* The snapshot that it is taken from is replaced as a whole. */
                (void)snapshot_put(to, had->items[j], NULL);
                *had->items[j] = (struct object)OBJECT_NULL;
                break;
            }
    }
}

void cluster_merge_cluster(struct snapshot *s, const struct snapshot *hub, struct watch_event *ev,
    const json_t *kept, bool is_heard)
{
    if (ev->revision < s->revision)
        ev->revision = s->revision;
    if (ev->kind == WATCH_EVENT_PUT && ev->object.kind == &node_kind)
        add_report(&ev->object, s, hub, is_heard);
    if (ev->kind != WATCH_EVENT_SNAPSHOT)
        return;
    ev->snapshot.boot = s->boot;
    if (ev->snapshot.revision < s->revision)
        ev->snapshot.revision = s->revision;
    for (size_t i = 0; i < ev->snapshot.nodes.n; i++)
        add_report(ev->snapshot.nodes.items[i], s, hub, is_heard);
    keep_objects(s, &ev->snapshot, kept);
}

/* Of all nodes, or of the one called @name. */
static bool take_reports(struct snapshot *s, const struct snapshot *hub, const char *name)
{
    bool has_changed = false;

    for (size_t i = 0; i < s->nodes.n; i++) {
        struct object *to = s->nodes.items[i];

        if (!name || strcmp(to->meta.name, name) == 0)
            has_changed |= copy_report(to, snapshot_find_node(hub, to->meta.name));
    }
    return has_changed;
}

int cluster_merge_hub(struct snapshot *s, struct snapshot *hub, struct watch_event *ev,
    bool *ret_changed, struct err *e)
{
    char name[OBJECT_NAME_MAX + 1] = "";
    bool is_all = ev->kind == WATCH_EVENT_SNAPSHOT;
    int r;

    if (ev->kind == WATCH_EVENT_PUT && ev->object.kind == &node_kind)
        memcpy(name, ev->object.meta.name, sizeof(name));
    r = watch_event_apply(hub, ev, e);
    if (r != 0)
        return r;
    *ret_changed = (is_all || name[0] != '\0') && take_reports(s, hub, is_all ? NULL : name);
    s->boot = hub->boot;
    if (s->revision < hub->revision)
        s->revision = hub->revision;
    return 0;
}
