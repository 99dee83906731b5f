/* resource.c - see resource.h. */
#include "resource.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/model/model.h"
#include "hub/watch/edge_view.h"
#include "hub/watch/reports.h"
#include "os/clock.h"

/* ---- names ----------------------------------------------------------------------------------- */

const char *resource_name(char buf[static RESOURCE_NAME_MAX + 1], const struct object_kind *kind,
    const char *network, const char *name)
{
    if (kind->is_network)
        (void)snprintf(buf, RESOURCE_NAME_MAX + 1, "%s", name);
    else
        (void)snprintf(buf, RESOURCE_NAME_MAX + 1, "%s.%s", network, name);
    return buf;
}

bool resource_name_parse(const struct object_kind *kind, const char *text,
    char ret_network[static NAME_MAX_LEN + 1], char ret_name[static OBJECT_NAME_MAX + 1])
{
    size_t len = kind->is_network ? strlen(text) : strcspn(text, ".");
    const char *name = kind->is_network ? text : text + len + (text[len] == '.');
    char network[NAME_MAX_LEN + 1];

    if (len == 0 || len > NAME_MAX_LEN || name[0] == '\0' || strlen(name) > OBJECT_NAME_MAX)
        return false;
    memcpy(network, text, len);
    network[len] = '\0';
    if (parse_name(network, "network", NULL) != 0)
        return false;
    memcpy(ret_network, network, len + 1);
    memcpy(ret_name, name, strlen(name) + 1);
    return true;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static void hash_spec(char ret[static RESOURCE_HASH_MAX], const struct object_kind *kind,
    const char *resource, const json_t *spec)
{
    char network[NAME_MAX_LEN + 1];
    char name[OBJECT_NAME_MAX + 1];

    if (resource_name_parse(kind, resource, network, name))
        kube_spec_hash(ret, kind, network, name, spec);
    else
        kube_spec_hash_json(ret, spec);
}

/* ---- what the hub has ------------------------------------------------------------------------ */

void resource_want_deinit(struct resource_want *w)
{
    json_decref(w->spec);
    *w = (struct resource_want){0};
}

int resource_want_set(struct resource_want *w, const struct object_kind *kind, const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata");
    const char *network = json_string_value(json_object_get(meta, "network"));
    const char *name = json_string_value(json_object_get(meta, "name"));
    char text[RESOURCE_NAME_MAX + 1];

    resource_want_deinit(w);
    if (!object)
        return 0;
    w->spec = json_deep_copy(json_object_get(object, "spec"));
    if (!w->spec || !name)
        return -ENOMEM;
    w->revision = (uint64_t)json_integer_value(json_object_get(meta, "resourceVersion"));
    hash_spec(w->hash, kind, resource_name(text, kind, network ? network : "", name), w->spec);
    return 0;
}

/* ---- what the API server has ----------------------------------------------------------------- */

/* Of a status as it is seen the conditions are kept, and of all else the hashes. */
static json_t *digest_status(const json_t *status)
{
    json_t *ret = json_is_object(status) ? json_object() : NULL;
    char hash[RESOURCE_HASH_MAX];
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)status, key, value) {
        kube_part_hash(hash, value);
        (void)json_object_set_new(
            ret, key, strcmp(key, "conditions") == 0 ? json_deep_copy(value) : json_string(hash));
    }
    return ret;
}

void resource_seen_deinit(struct resource_seen *s)
{
    free(s->version);
    free(s->uid);
    json_decref(s->spec);
    json_decref(s->others);
    json_decref(s->finalizers);
    json_decref(s->status);
    own_parts_deinit(&s->own_parts);
    *s = (struct resource_seen){0};
}

static void copy_text(char *to, size_t size, const json_t *text)
{
    const char *from = json_string_value(text);

    (void)snprintf(to, size, "%s", from ? from : "");
}

/* Add the fields of @more to those in @to. Both are FieldsV1: objects of objects. */
static void add_fields(json_t *to, const json_t *more)
{
    const char *key;
    json_t *below;

    json_object_foreach((json_t *)more, key, below) {
        json_t *held = json_object_get(to, key);

        if (held)
            add_fields(held, below);
        else
            (void)json_object_set_new(to, key, json_deep_copy(below));
    }
}

/* Which fields of the spec do others own, and who of them wrote last? */
static void find_others(struct resource_seen *s, const json_t *managed)
{
    const char *last = "";
    json_t *entry;
    size_t i;

    json_array_foreach((json_t *)managed, i, entry) {
        const char *manager = json_string_value(json_object_get(entry, "manager"));
        const char *at = json_string_value(json_object_get(entry, "time"));
        const json_t *spec = json_object_get(json_object_get(entry, "fieldsV1"), "f:spec");

        if (!spec || !manager || strcmp(manager, RESOURCE_MANAGER) == 0)
            continue;
        if (!s->others)
            s->others = json_object();
        add_fields(s->others, spec);
        if (at && strcmp(at, last) >= 0) {
            last = at;
            (void)snprintf(s->by, sizeof(s->by), "%s", manager);
        }
    }
}

static void find_finalizers(struct resource_seen *s, const json_t *finalizers)
{
    json_t *one;
    size_t i;

    s->finalizers = s->is_deleting ? json_array() : NULL;
    json_array_foreach((json_t *)finalizers, i, one) {
        if (json_string_value(one) && strcmp(json_string_value(one), RESOURCE_FINALIZER) == 0)
            s->has_finalizer = true;
        else if (s->finalizers)
            (void)json_array_append(s->finalizers, one);
    }
}

int resource_seen_set(
    struct resource_seen *s, const struct object_kind *kind, const json_t *resource)
{
    const json_t *meta = json_object_get(resource, "metadata");
    const json_t *annotations = json_object_get(meta, "annotations");
    const char *version = json_string_value(json_object_get(meta, "resourceVersion"));
    const char *name = json_string_value(json_object_get(meta, "name"));
    const char *uid = json_string_value(json_object_get(meta, "uid"));
    json_t *spec = json_object_get(resource, "spec");

    resource_seen_deinit(s);
    if (!version || !name || !json_is_object(spec))
        return -EINVAL;
    s->version = strdup(version);
    s->uid = strdup(uid ? uid : "");
    if (!s->version || !s->uid) {
        resource_seen_deinit(s);
        return -ENOMEM;
    }
    s->is_there = true;
    s->is_deleting = json_object_get(meta, "deletionTimestamp") != NULL;
    s->generation = json_integer_value(json_object_get(meta, "generation"));
    copy_text(s->done, sizeof(s->done), json_object_get(annotations, RESOURCE_SPEC));
    copy_text(s->revision, sizeof(s->revision), json_object_get(annotations, KUBE_SPEC_REVISION));
    copy_text(s->accepted, sizeof(s->accepted), json_object_get(annotations, KUBE_SPEC_ACCEPTED));
    hash_spec(s->hash, kind, name, spec);
    find_others(s, json_object_get(meta, "managedFields"));
    find_finalizers(s, json_object_get(meta, "finalizers"));
    s->status = digest_status(json_object_get(resource, "status"));
    if (kind == &mesh_edge_kind &&
        own_parts_set(&s->own_parts, name, json_object_get(resource, "status"),
            json_object_get(meta, "managedFields")) != 0) {
        resource_seen_deinit(s);
        return -ENOMEM;
    }
    if (s->others || strcmp(s->hash, s->done) != 0 ||
        strcmp(s->revision, KUBE_SPEC_NO_REVISION) == 0)
        s->spec = json_incref(spec);
    return 0;
}

/* ---- deciding -------------------------------------------------------------------------------- */

static bool is_at(const struct resource_seen *s, uint64_t revision)
{
    char text[RESOURCE_REVISION_MAX];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)revision);
    return strcmp(s->revision, text) == 0;
}

enum resource_step resource_decide(
    const struct resource_want *w, const struct resource_seen *s, bool is_kept)
{
    bool is_done = strcmp(s->hash, s->done) == 0;

    if (!s->is_there)
        return w->spec ? RESOURCE_APPLY : RESOURCE_NOTHING;
    if (s->is_deleting) {
        if (!s->has_finalizer)
            return RESOURCE_NOTHING;
        return w->spec && !is_kept ? RESOURCE_ASK_REMOVE : RESOURCE_RELEASE;
    }
    if (!w->spec && !is_done)
        return RESOURCE_ASK_PUT;
    /* What was refused stays: its writer's text is not thrown away. */
    if (!w->spec)
        return strcmp(s->revision, KUBE_SPEC_NO_REVISION) == 0 ? RESOURCE_NOTHING : RESOURCE_DELETE;
    if (strcmp(s->hash, w->hash) == 0)
        return is_done && is_at(s, w->revision) && s->has_finalizer &&
                       strcmp(s->accepted, w->hash) == 0
                   ? RESOURCE_NOTHING
                   : RESOURCE_APPLY;
    if (!is_done)
        return RESOURCE_ASK_PUT;
    return is_at(s, w->revision) ? RESOURCE_NOTHING : RESOURCE_APPLY;
}

json_t *resource_request(const struct object_kind *kind, const char *network, const char *name,
    const struct resource_seen *s)
{
    json_t *json = json_pack(
        "{s:s, s:{s:s}, s:O*}", "kind", kind->name, "metadata", "name", name, "spec", s->spec);
    json_t *meta = json_object_get(json, "metadata");
    unsigned long long revision = strtoull(s->revision, NULL, 10);

    if (!kind->is_network)
        (void)json_object_set_new(meta, "network", json_string(network));
    if (revision > 0 && revision < INT64_MAX)
        (void)json_object_set_new(meta, "resourceVersion", json_integer((json_int_t)revision));
    return json;
}

/* ---- what the hub applies -------------------------------------------------------------------- */

/* Drop fields that are an empty text: the same as none, and Kubernetes 1.20 takes them for null. */
static void drop_empty(json_t *json)
{
    const char *key;
    json_t *value;
    void *tmp;

    json_object_foreach_safe(json, tmp, key, value)
        if (json_is_string(value) && json_string_length(value) == 0)
            (void)json_object_del(json, key);
}

static bool has_fields_below(const json_t *fields)
{
    const char *key;
    json_t *below;

    json_object_foreach((json_t *)fields, key, below)
        if (strncmp(key, "f:", 2) == 0)
            return true;
    return false;
}

/*
 * Take the fields that others own out of what is applied.
 *
 * @apply:	what is applied
 * @then:	what there will be when it was applied
 * @seen:	what there is; NULL: nothing
 */
static void leave_out(json_t *apply, json_t *then, const json_t *seen, const json_t *others,
    enum resource_yield yield)
{
    const char *key;
    json_t *below;

    json_object_foreach((json_t *)others, key, below) {
        const char *field = strncmp(key, "f:", 2) == 0 ? key + 2 : NULL;
        json_t *held = field ? json_object_get(seen, field) : NULL;
        json_t *wanted = field ? json_object_get(apply, field) : NULL;
        json_t *after;

        if (!held)
            continue;
        if (has_fields_below(below) && json_is_object(held) &&
            (!wanted || json_is_object(wanted))) {
            after = json_object_get(then, field);
            if (!after) {
                after = json_object();
                (void)json_object_set_new(then, field, after);
            }
            leave_out(wanted, after, held, below, yield);
            if (wanted && json_object_size(wanted) == 0)
                (void)json_object_del(apply, field);
        } else if (!wanted || yield == RESOURCE_YIELD_ALL || json_equal(wanted, held)) {
            (void)json_object_del(apply, field);
            (void)json_object_set_new(then, field, json_deep_copy(held));
        }
    }
}

json_t *resource_apply(const struct object_kind *kind, const char *name,
    const struct resource_want *w, const struct resource_seen *s, enum resource_yield yield,
    bool *ret_clash)
{
    json_t *apply = w->spec ? json_deep_copy(w->spec) : NULL;
    json_t *then = w->spec ? json_deep_copy(w->spec) : NULL;
    char revision[RESOURCE_REVISION_MAX] = KUBE_SPEC_NO_REVISION;
    char hash[RESOURCE_HASH_MAX];
    json_t *json;

    *ret_clash = false;
    memcpy(hash, s->hash, sizeof(hash));
    if (w->spec) {
        leave_out(apply, then, s->spec, s->others, yield);
        drop_empty(apply);
        hash_spec(hash, kind, name, then);
        *ret_clash = strcmp(hash, w->hash) != 0;
        (void)snprintf(revision, sizeof(revision), "%llu", (unsigned long long)w->revision);
    }
    json = json_pack("{s:s, s:s, s:{s:s, s:s*, s:{s:s, s:s, s:s*}}}", "apiVersion", KUBE_API,
        "kind", kind->name, "metadata", "name", name, "resourceVersion", s->version, "annotations",
        RESOURCE_SPEC, hash, KUBE_SPEC_REVISION, revision, KUBE_SPEC_ACCEPTED,
        w->spec ? w->hash : NULL);
    if (w->spec)
        (void)json_object_set_new(
            json_object_get(json, "metadata"), "finalizers", json_pack("[s]", RESOURCE_FINALIZER));
    if (apply && json_object_size(apply) > 0)
        (void)json_object_set(json, "spec", apply);
    json_decref(apply);
    json_decref(then);
    return json;
}

/* ---- status ---------------------------------------------------------------------------------- */

void resource_part_deinit(struct resource_part *p)
{
    json_decref(p->status);
    *p = (struct resource_part){.status = NULL};
}

const json_t *resource_condition(const json_t *status, const char *type)
{
    const json_t *all = json_object_get(status, "conditions");
    json_t *one;
    size_t i;

    json_array_foreach((json_t *)all, i, one) {
        const char *is = json_string_value(json_object_get(one, "type"));

        if (is && strcmp(is, type) == 0)
            return one;
    }
    return NULL;
}

/* Append a condition to @list. It has the time of the last change of its status. */
static void add_condition(
    json_t *list, json_t *condition, const json_t *seen, const struct resource_verdict *verdict)
{
    const char *type = json_string_value(json_object_get(condition, "type"));
    const json_t *before = type ? resource_condition(seen, type) : NULL;
    json_t *at = json_object_get(before, "lastTransitionTime");

    if (at && json_equal(json_object_get(before, "status"), json_object_get(condition, "status")))
        (void)json_object_set(condition, "lastTransitionTime", at);
    else
        (void)json_object_set_new(condition, "lastTransitionTime", json_string(verdict->now));
    (void)json_object_set_new(condition, "observedGeneration", json_integer(verdict->generation));
    (void)json_array_append_new(list, condition);
}

/* When the verdict is, s since 1970; 0: it does not say. */
static int64_t time_of(const struct resource_verdict *v)
{
    int64_t at = 0;

    (void)clock_text_parse(v->now, &at);
    return at;
}

/* "Stale" of what the hub knows is joined with what the API server shows. */
static json_t *finish_condition(const json_t *given, const struct resource_verdict *v)
{
    static const struct own_parts none = {.n = 0};
    const json_t *silent = json_object_get(given, "silent");

    return silent ? own_parts_stale(v->own_parts ? v->own_parts : &none, silent, time_of(v))
                  : json_deep_copy(given);
}

static json_t *conditions(
    const json_t *status, const json_t *seen, const struct resource_verdict *v)
{
    json_t *list = json_array();
    json_t *one;
    size_t i;

    add_condition(list,
        json_pack("{s:s, s:s, s:s, s:s}", "type", "Accepted", "status",
            v->refused ? "False" : "True", "reason", v->refused ? v->reason : "Accepted", "message",
            v->refused ? v->refused : ""),
        seen, v);
    json_array_foreach(json_object_get(status, "conditions"), i, one)
        add_condition(list, finish_condition(one, v), seen, v);
    return list;
}

/* The part called @key, where its writer writes it; NULL: the hub does. */
static const struct own_part *own_part(const struct resource_verdict *v, const char *key)
{
    return v->own_parts ? own_parts_find(v->own_parts, key) : NULL;
}

/* Is it the hub's to write? What its writer writes in time is not, nor is to take away what
 * somebody else has written, which is not possible. */
static bool is_to_write(const struct resource_verdict *v, const char *key, bool is_there)
{
    const struct own_part *p = own_part(v, key);

    return !p || (!own_parts_has(v->own_parts, key, time_of(v)) && (is_there || p->by[0] == '\0'));
}

/* What the hub writes in place of another one must not look as if that one wrote it. */
static json_t *edge_part(const struct resource_verdict *v, const char *key, json_t *value)
{
    const struct own_part *p = own_part(v, key);
    json_t *copy = json_deep_copy(value);

    if (p && p->is_aside)
        (void)json_object_set_new(copy, KUBE_PART_EVERY, json_integer(0));
    return json_pack("{s:o}", key, copy);
}

/* @status is taken. */
static void add_part(struct resource_part *p, const char *manager, json_t *status)
{
    json_t *copy = json_deep_copy(status);

    json_decref(status);
    status = copy;
    kube_part_drop_empty(status);
    (void)snprintf(p->manager, sizeof(p->manager), "%s", manager);
    p->status = status;
    kube_part_hash(p->hash, status);
}

size_t resource_parts(struct resource_part ret[static RESOURCE_PARTS_MAX],
    const struct object_kind *kind, const char *name, const json_t *status, const json_t *seen,
    const struct resource_verdict *verdict)
{
    json_t *own = json_pack("{s:o}", "conditions", conditions(status, seen, verdict));
    json_t *rest = json_object();
    const char *key;
    json_t *value;
    size_t n = 0;

    json_object_foreach((json_t *)status, key, value) {
        if (strcmp(key, "conditions") == 0)
            continue;
        if (kind == &node_kind)
            (void)json_object_set(rest, key, value);
        else if (kind != &mesh_edge_kind || strcmp(key, "hub") == 0)
            (void)json_object_set(own, key, value);
        else if (n < RESOURCE_PARTS_MAX - 1 && is_to_write(verdict, key, true))
            add_part(&ret[n++], key, edge_part(verdict, key, value));
    }
    json_object_foreach((json_t *)seen, key, value)
        if (kind == &mesh_edge_kind && strchr(key, '/') && !json_object_get(status, key) &&
            n < RESOURCE_PARTS_MAX - 1 && is_to_write(verdict, key, false))
            add_part(&ret[n++], key, json_object());
    if (json_object_size(rest) > 0) {
        char manager[RESOURCE_BY_MAX + 1];
        const char *node = strchr(name, '.');

        (void)snprintf(manager, sizeof(manager), "agent/%s", node ? node + 1 : name);
        add_part(&ret[n++], manager, rest);
    } else {
        json_decref(rest);
    }
    add_part(&ret[n++], RESOURCE_MANAGER_STATUS, own);
    return n;
}

bool resource_part_is_shown(const struct resource_part *p, const json_t *seen)
{
    char wanted[RESOURCE_HASH_MAX];
    char shown[RESOURCE_HASH_MAX];
    const char *key;
    json_t *value;

    json_object_foreach(p->status, key, value) {
        const json_t *there = json_object_get(seen, key);

        if (kube_part_is_restless(key))
            continue;
        if (!there)
            return false;
        kube_part_hash(wanted, value);
        if (json_is_string(there))
            (void)snprintf(shown, sizeof(shown), "%s", json_string_value(there));
        else
            kube_part_hash(shown, there);
        if (strcmp(wanted, shown) != 0)
            return false;
    }
    /* An empty part takes away what its manager said before. */
    return json_object_size(p->status) > 0;
}

/* ---- the status of an object ----------------------------------------------------------------- */

/* What "Ready" says of a node: does its agent do what it is told? */
static json_t *ready_condition(const struct model_node *node)
{
    const char *error = node->reported->heard.report.error;
    const char *status = "True";
    const char *reason = "Reported";
    const char *text = "";

    if (node->spec.hub) {
        reason = "Hub";
    } else if (node->spec.stock) {
        status = "Unknown";
        reason = "Stock";
        text = "a WireGuard without an agent reports nothing";
    } else if (node->reported->is_down) {
        status = "False";
        reason = "Down";
        text = "its machine is down, or cut off";
    } else if (node->reported->was_silent) {
        status = "False";
        reason = "Silent";
        text = "its agent has stopped to report";
    } else if (node->reported->reported_at == 0) {
        status = "Unknown";
        reason = "NotReported";
        text = "its agent has not reported yet";
    } else if (error || node->reported->was_unapplied) {
        status = "False";
        reason = error ? "Failing" : "NeverApplied";
        text = error ? error : "its agent has applied nothing yet";
    }
    return json_pack("{s:s, s:s, s:s, s:s}", "type", "Ready", "status", status, "reason", reason,
        "message", text);
}

/* An edge's, with the writers that are not heard any more, and when each was: of them its condition
 * is made. */
static json_t *edge_status(const struct edge_pair *pair)
{
    json_t *status = edge_view_status(pair, clock_wall_s());
    json_t *silent = json_object();
    const char *name;
    json_t *part;

    json_object_foreach(status, name, part) {
        int64_t at = 0;

        if (!json_is_true(json_object_get(part, "stale")))
            continue;
        (void)clock_text_parse(json_string_value(json_object_get(part, KUBE_PART_AT)), &at);
        (void)json_object_set_new(silent, name, json_integer(at));
    }
    (void)json_object_set_new(
        status, "conditions", json_pack("[{s:s, s:o}]", "type", "Stale", "silent", silent));
    return status;
}

json_t *resource_status(const struct model *m, const struct object_kind *kind, const char *of)
{
    char network[NAME_MAX_LEN + 1];
    char name[OBJECT_NAME_MAX + 1];
    const struct model_network *net;
    const struct model_node *node;
    struct edge_pair pair;
    json_t *status;

    if (!resource_name_parse(kind, of, network, name))
        return NULL;
    net = model_find_network(m, network);
    if (!net)
        return NULL;
    if (kind == &network_kind)
        return json_pack("{s:I}", "nodes", (json_int_t)net->nodes.n);
    if (kind == &mesh_edge_kind)
        return edge_pair_find(&pair, net, name) ? edge_status(&pair) : NULL;
    /* Others have none but whether their specs are taken. */
    if (kind != &node_kind)
        return model_find_object(net, kind, name) ? json_object() : NULL;
    node = model_find_node(net, name);
    status = node ? reports_of_node(node) : NULL;
    /* It is never the same, and would be written again and again. */
    (void)json_object_del(status, "relayLine");
    if (status)
        (void)json_object_set_new(status, "conditions", json_pack("[o]", ready_condition(node)));
    return status;
}
