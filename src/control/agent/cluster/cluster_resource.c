/* cluster_resource.c - see cluster_resource.h. */
#include "agent/cluster/cluster_resource.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/kubernetes/kube_client.h"
#include "base/err.h"
#include "base/parse.h"
#include "mesh/object/rule.h"

/* ---- resources ------------------------------------------------------------------------------- */

const struct object_kind *const cluster_kinds[CLUSTER_KINDS] = {
    &network_kind, &node_kind, &mesh_edge_kind, &rule_kind};

/* The object's name in a resource's; NULL: the resource is of another network. */
static const char *name_in(
    const struct object_kind *kind, const struct cluster_self *self, const char *text)
{
    size_t len = strlen(self->network);

    if (!text || strncmp(text, self->network, len) != 0)
        return NULL;
    if (kind->is_network)
        return text[len] == '\0' ? text : NULL;
    text += len;
    return text[0] == '.' && text[1] != '\0' && strlen(text + 1) <= OBJECT_NAME_MAX ? text + 1
                                                                                    : NULL;
}

static bool is_about(const json_t *spec, const char *node)
{
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(spec, "nodes"), i, one)
        if (json_is_string(one) && strcmp(json_string_value(one), node) == 0)
            return true;
    return false;
}

/* Does the condition "Accepted" speak of this very spec, and say so? */
static bool is_accepted_by_status(const json_t *meta, const json_t *status)
{
    json_int_t generation = json_integer_value(json_object_get(meta, "generation"));
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(status, "conditions"), i, one) {
        const char *type = json_string_value(json_object_get(one, "type"));
        const char *is = json_string_value(json_object_get(one, "status"));

        if (type && is && strcmp(type, "Accepted") == 0)
            return strcmp(is, "True") == 0 && generation > 0 &&
                   json_integer_value(json_object_get(one, "observedGeneration")) == generation;
    }
    return false;
}

/*
 * Is the spec the hub's? The annotation is written together with the spec, and so it is there
 * first. The condition says so, too, for a spec that has fields of a later version: their normal
 * form is not known here.
 */
static bool is_accepted(const struct object_kind *kind, const struct cluster_self *self,
    const char *name, const json_t *resource)
{
    const json_t *meta = json_object_get(resource, "metadata");
    const char *accepted = json_string_value(
        json_object_get(json_object_get(meta, "annotations"), KUBE_SPEC_ACCEPTED));
    char hash[KUBE_SPEC_HASH_MAX];

    kube_spec_hash(hash, kind, self->network, name, json_object_get(resource, "spec"));
    return (accepted && strcmp(accepted, hash) == 0) ||
           is_accepted_by_status(meta, json_object_get(resource, "status"));
}

enum cluster_verdict cluster_object(const struct object_kind *kind, const struct cluster_self *self,
    const json_t *resource, json_t **ret, char ret_name[static OBJECT_NAME_MAX + 1])
{
    const json_t *meta = json_object_get(resource, "metadata");
    const json_t *notes = json_object_get(meta, "annotations");
    const char *name = name_in(kind, self, json_string_value(json_object_get(meta, "name")));
    const char *text = json_string_value(json_object_get(notes, KUBE_SPEC_REVISION));
    json_t *spec = json_object_get(resource, "spec");
    json_t *status = json_object_get(resource, "status");
    uint64_t revision;
    json_t *made;

    if (!name || (kind == &mesh_edge_kind && !is_about(spec, self->node)))
        return CLUSTER_OTHER;
    (void)snprintf(ret_name, OBJECT_NAME_MAX + 1, "%s", name);
    if (text && strcmp(text, KUBE_SPEC_NO_REVISION) == 0)
        return kind->is_network ? CLUSTER_OTHER : CLUSTER_GONE;
    if (!text || parse_u64(&revision, text, 1, INT64_MAX, KUBE_SPEC_REVISION, NULL) < 0 ||
        !is_accepted(kind, self, name, resource))
        return CLUSTER_KEPT;
    made = json_pack("{s:s, s:{s:s, s:s*, s:I}, s:O*, s:O*}", "kind", kind->name, "metadata",
        "name", name, "network", kind->is_network ? NULL : self->network, "resourceVersion",
        (json_int_t)revision, "spec", spec, "status", kind == &node_kind ? status : NULL);
    if (!made)
        return CLUSTER_KEPT;
    *ret = made;
    return CLUSTER_TAKEN;
}

int cluster_version(char ret[static CLUSTER_VERSION_MAX + 1], const json_t *resource, struct err *e)
{
    const char *text = json_string_value(
        json_object_get(json_object_get(resource, "metadata"), "resourceVersion"));
    size_t len = text ? strlen(text) : 0;

    if (len == 0 || len > CLUSTER_VERSION_MAX ||
        strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.") != len)
        return err_set(e, -EINVAL,
            "the API server's answer has no resourceVersion of 1 to %d letters and digits",
            CLUSTER_VERSION_MAX);
    memcpy(ret, text, len + 1);
    return 0;
}

/* ---- lines of a watch ------------------------------------------------------------------------ */

void cluster_line_deinit(struct cluster_line *l)
{
    if (l->kind == CLUSTER_LINE_EVENT)
        watch_event_deinit(&l->event);
    *l = (struct cluster_line)CLUSTER_LINE_NULL;
}

static int take_change(struct cluster_line *l, const struct object_kind *kind,
    const struct cluster_self *self, const json_t *resource, bool is_delete, struct err *e)
{
    char name[OBJECT_NAME_MAX + 1];
    json_t *object = NULL;
    enum cluster_verdict verdict = cluster_object(kind, self, resource, &object, name);
    int r = 0;

    if (verdict == CLUSTER_OTHER || (verdict == CLUSTER_KEPT && !is_delete))
        return 0;
    if (is_delete || verdict == CLUSTER_GONE) {
        l->event.kind = WATCH_EVENT_DELETE;
        l->event.deleted.kind = kind;
        memcpy(l->event.deleted.name, name, sizeof(name));
    } else {
        l->event.kind = WATCH_EVENT_PUT;
        r = snapshot_decode_object(&l->event.object, object, &l->event.skips, e);
        l->event.revision = l->event.object.kind ? l->event.object.meta.resource_version : 0;
    }
    json_decref(object);
    if (r == 0)
        l->kind = CLUSTER_LINE_EVENT;
    return r;
}

static int decode_json(struct cluster_line *l, const struct object_kind *kind,
    const struct cluster_self *self, const json_t *json, struct err *e)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    const json_t *resource = json_object_get(json, "object");
    const char *text;
    json_int_t code;
    bool is_delete;
    int r;

    if (!type || !json_is_object(resource))
        return err_set(e, -EINVAL, "a line of the API server's watch has no type or no object");
    if (strcmp(type, "ERROR") == 0) {
        text = json_string_value(json_object_get(resource, "message"));
        code = json_integer_value(json_object_get(resource, "code"));
        l->kind = code == 410 ? CLUSTER_LINE_OLD : CLUSTER_LINE_FAILED;
        (void)err_set(e, -EIO, "the API server ends a watch with %" JSON_INTEGER_FORMAT ": %.200s",
            code, text ? text : "");
        return 0;
    }
    r = cluster_version(l->version, resource, e);
    if (r != 0 || strcmp(type, "BOOKMARK") == 0)
        return r;
    is_delete = strcmp(type, "DELETED") == 0;
    if (!is_delete && strcmp(type, "ADDED") != 0 && strcmp(type, "MODIFIED") != 0)
        return 0;
    return take_change(l, kind, self, resource, is_delete, e);
}

int cluster_line_decode(struct cluster_line *ret, const struct object_kind *kind,
    const struct cluster_self *self, const char *line, size_t len, struct err *e)
{
    struct cluster_line l = CLUSTER_LINE_NULL;
    json_t *json = json_loadb(line, len, 0, NULL);
    int r;

    if (!json)
        return err_set(e, -EINVAL, "a line of the API server's watch is not JSON");
    r = decode_json(&l, kind, self, json, e);
    json_decref(json);
    if (r == 0)
        *ret = l;
    return r;
}

/* ---- two sources ----------------------------------------------------------------------------- */

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
    for (size_t k = 1; k < CLUSTER_KINDS; k++) {
        const struct snapshot_list *had = snapshot_list(s, cluster_kinds[k]);
        const json_t *one;
        size_t i;

        json_array_foreach(json_object_get(kept, cluster_kinds[k]->plural), i, one)
            for (size_t j = 0; j < had->n; j++) {
                const char *name = json_string_value(one);

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
