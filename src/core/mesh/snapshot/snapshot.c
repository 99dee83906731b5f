/* snapshot.c - see snapshot.h. */
#include "snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "mesh/object/fields.h"

#define SNAPSHOT_NODES_MAX  65536
#define SNAPSHOT_EDGES_MAX  65536
#define SNAPSHOT_OTHERS_MAX 65536

#define REVISION_MAX INT64_MAX /* what a JSON integer holds */

/* ---- sorted lists --------------------------------------------------------------------------- */

static void list_deinit(struct snapshot_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        object_deinit(l->items[i]);
        free(l->items[i]);
    }
    free(l->items);
    *l = (struct snapshot_list){0};
}

static int compare_items(const void *a, const void *b)
{
    const struct object *const *x = a;
    const struct object *const *y = b;

    return strcmp((*x)->meta.name, (*y)->meta.name);
}

static int compare_name(const void *item, const void *name)
{
    return strcmp((*(struct object *const *)item)->meta.name, name);
}

/* Where @name is, or would have to be put. */
static size_t list_place(const struct snapshot_list *l, const char *name, bool *ret_found)
{
    return sorted_place(l->items, l->n, sizeof(struct object *), compare_name, name, ret_found);
}

static const struct object *list_find(const struct snapshot_list *l, const char *name)
{
    bool found;
    size_t place = list_place(l, name, &found);

    return found ? l->items[place] : NULL;
}

/* Takes what is inside @o, unless it fails. */
static int list_insert(
    struct snapshot_list *l, size_t place, size_t max, struct object *o, struct err *e)
{
    struct object **items;
    struct object *item;

    if (l->n >= max)
        return err_set(e, -EINVAL, "%s \"%s\" is one more than the %zu that a snapshot may have",
            o->kind->name, o->meta.name, max);
    item = malloc(sizeof(*item));
    items = item ? sorted_open(l->items, l->n, sizeof(struct object *), place, &l->cap) : NULL;
    if (!items) {
        free(item);
        return -ENOMEM;
    }
    *item = *o;
    *o = (struct object)OBJECT_NULL;
    l->items = items;
    items[place] = item;
    l->n++;
    return 0;
}

/* Takes what is inside @o, unless it fails. */
static int list_put(struct snapshot_list *l, size_t max, struct object *o, struct err *e)
{
    bool found;
    size_t place = list_place(l, o->meta.name, &found);

    if (!found)
        return list_insert(l, place, max, o, e);
    object_deinit(l->items[place]);
    *l->items[place] = *o;
    *o = (struct object)OBJECT_NULL;
    return 0;
}

/* Sorts, and passes over all but one of those with the same name. */
static void list_sort(struct snapshot_list *l, struct snapshot_skips *skips)
{
    struct err why = ERR_NULL;
    size_t n = 0;

    if (l->n > 0)
        qsort(l->items, l->n, sizeof(*l->items), compare_items);
    for (size_t i = 0; i < l->n; i++) {
        if (n > 0 && compare_items(&l->items[n - 1], &l->items[i]) == 0) {
            (void)err_set(&why, -EINVAL, "the snapshot has %s \"%s\" twice",
                l->items[i]->kind->name, l->items[i]->meta.name);
            snapshot_skip(skips, &why);
            object_deinit(l->items[i]);
            free(l->items[i]);
        } else {
            l->items[n++] = l->items[i];
        }
    }
    l->n = n;
}

static size_t list_max(const struct object_kind *kind)
{
    if (kind == &node_kind)
        return SNAPSHOT_NODES_MAX;
    return kind == &mesh_edge_kind ? SNAPSHOT_EDGES_MAX : SNAPSHOT_OTHERS_MAX;
}

/* ---- lookups -------------------------------------------------------------------------------- */

const struct node *snapshot_find_node(const struct snapshot *s, const char *name)
{
    const struct object *o = list_find(&s->nodes, name);

    return o ? &o->node : NULL;
}

const struct mesh_edge *snapshot_find_edge(const struct snapshot *s, const char *a, const char *b)
{
    char name[OBJECT_NAME_MAX + 1];
    const struct object *o = list_find(&s->edges, edge_name(a, b, name));

    return o ? &o->edge : NULL;
}

/* Of a kind that has a list. */
static struct snapshot_list *list_of(struct snapshot *s, const struct object_kind *kind)
{
    if (kind == &node_kind)
        return &s->nodes;
    return kind == &mesh_edge_kind ? &s->edges : &s->others[object_kind_index(kind)];
}

const struct snapshot_list *snapshot_list(const struct snapshot *s, const struct object_kind *kind)
{
    return list_of((struct snapshot *)s, kind);
}

const struct node *snapshot_self(const struct snapshot *s)
{
    return snapshot_find_node(s, s->self);
}

/* ---- changes -------------------------------------------------------------------------------- */

void snapshot_deinit(struct snapshot *s)
{
    network_deinit(&s->network);
    list_deinit(&s->nodes);
    list_deinit(&s->edges);
    for (unsigned i = 0; i < OBJECT_KINDS_MAX; i++)
        list_deinit(&s->others[i]);
    *s = (struct snapshot)SNAPSHOT_NULL;
}

static int check_network(const struct snapshot *s, const struct object *o, struct err *e)
{
    const struct object_meta *m = &o->meta;
    const char *network = o->kind->is_network ? m->name : m->network;

    if (strcmp(network, s->network.meta.name) == 0)
        return 0;
    return err_set(e, -EINVAL, "%s \"%s\" belongs to the network \"%s\", not to \"%s\"",
        o->kind->name, m->name, network, s->network.meta.name);
}

int snapshot_put(struct snapshot *s, struct object *o, struct err *e)
{
    int r = check_network(s, o, e);

    if (r == 0 && o->kind->is_network) {
        network_deinit(&s->network);
        s->network = o->network;
        *o = (struct object)OBJECT_NULL;
    } else if (r == 0) {
        r = list_put(list_of(s, o->kind), list_max(o->kind), o, e);
    }
    object_deinit(o);
    return r;
}

int snapshot_delete(
    struct snapshot *s, const struct object_kind *kind, const char *name, struct err *e)
{
    struct snapshot_list *l;
    bool found;
    size_t place;

    if (kind->is_network || (kind == &node_kind && strcmp(name, s->self) == 0))
        return err_set(e, -EINVAL, "%s \"%.130s\" cannot be deleted from the view of \"%s\"",
            kind->name, name, s->self);
    l = list_of(s, kind);
    place = list_place(l, name, &found);
    if (!found)
        return 0;
    object_deinit(l->items[place]);
    free(l->items[place]);
    l->n--;
    memmove(l->items + place, l->items + place + 1, (l->n - place) * sizeof(*l->items));
    return 0;
}

/* ---- decode and encode ---------------------------------------------------------------------- */

void snapshot_skip(struct snapshot_skips *skips, const struct err *why)
{
    if (skips && skips->n++ == 0)
        skips->first = *why;
}

int snapshot_decode_object(
    struct object *ret, const json_t *json, struct snapshot_skips *skips, struct err *e)
{
    struct object o = OBJECT_NULL;
    struct err why = ERR_NULL;
    int r = object_decode(&o, json, OBJECT_LENIENT, &why);

    if (r == -ENOMEM)
        return err_set(e, r, "no memory for an object");
    if (r != 0) {
        /* The node without its status, when that is all that is wrong with it. */
        json_t *plain = json_object_get(json, "status") ? json_copy((json_t *)json) : NULL;

        snapshot_skip(skips, &why);
        if (plain && json_object_del(plain, "status") == 0)
            r = object_decode(&o, plain, OBJECT_LENIENT, NULL);
        json_decref(plain);
    }
    if (r == -ENOMEM)
        return err_set(e, r, "no memory for an object");
    *ret = o;
    return 0;
}

/* Appends all and sorts once: inserting each in its place would take n² moves. */
static int list_decode(struct snapshot *s, const struct object_kind *kind, const json_t *json,
    struct snapshot_skips *skips, struct err *e)
{
    struct snapshot_list *l = list_of(s, kind);

    for (size_t i = 0; i < json_array_size(json); i++) {
        _cleanup_(object_deinit) struct object o = OBJECT_NULL;
        struct err why = ERR_NULL;
        int r = snapshot_decode_object(&o, json_array_get(json, i), skips, e);

        if (r == 0 && !o.kind)
            continue;
        if (r == 0 && o.kind != kind) {
            (void)err_set(&why, -EINVAL, "the snapshot has %s \"%s\" where a %s is expected",
                o.kind->name, o.meta.name, kind->name);
            snapshot_skip(skips, &why);
            continue;
        }
        if (r == 0 && check_network(s, &o, &why) != 0) {
            snapshot_skip(skips, &why);
            continue;
        }
        if (r == 0)
            r = list_insert(l, l->n, json_array_size(json), &o, e);
        if (r < 0)
            return r;
    }
    list_sort(l, skips);
    return 0;
}

int snapshot_decode(
    struct snapshot *ret, const json_t *json, struct snapshot_skips *skips, struct err *e)
{
    _cleanup_(snapshot_deinit) struct snapshot s = SNAPSHOT_NULL;
    struct fields f = fields_make(json, "the snapshot", e);
    const json_t *lists[OBJECT_KINDS_MAX] = {NULL}; /* NULL: the snapshot has none of that kind */
    const json_t *network;
    int r;

    fields_u64(&f, "revision", FIELDS_REQUIRED, 0, REVISION_MAX, &s.revision);
    fields_u64(&f, "boot", FIELDS_OPTIONAL, 0, REVISION_MAX, &s.boot);
    fields_name(&f, "self", FIELDS_REQUIRED, s.self);
    network = fields_object(&f, "network", FIELDS_REQUIRED);
    for (unsigned i = 0; object_kinds[i]; i++) {
        const struct object_kind *kind = object_kinds[i];
        bool is_node = kind == &node_kind;
        bool is_always = is_node || kind == &mesh_edge_kind;

        if (kind->list)
            lists[i] = fields_array(&f, kind->list, is_always ? FIELDS_REQUIRED : FIELDS_OPTIONAL,
                is_node ? 1 : 0, list_max(kind));
    }
    r = fields_end(&f);
    if (r == 0)
        r = network_decode(&s.network, network, OBJECT_LENIENT, e);
    for (unsigned i = 0; r == 0 && object_kinds[i]; i++)
        if (lists[i])
            r = list_decode(&s, object_kinds[i], lists[i], skips, e);
    if (r == 0 && !snapshot_self(&s))
        r = err_set(e, -EINVAL, "the snapshot of \"%s\" does not hold that node", s.self);
    if (r < 0)
        return r;
    *ret = s;
    s = (struct snapshot)SNAPSHOT_NULL;
    return 0;
}

static json_t *list_encode(const struct snapshot_list *l)
{
    json_t *array = json_array();

    for (size_t i = 0; i < l->n; i++)
        fields_append(&array, object_encode(l->items[i]));
    return array;
}

json_t *snapshot_encode(const struct snapshot *s)
{
    json_t *json = json_pack("{s:s, s:I, s:I, s:s, s:o, s:o, s:o}", "type", "snapshot", "revision",
        (json_int_t)s->revision, "boot", (json_int_t)s->boot, "self", s->self, "network",
        network_encode(&s->network), "nodes", list_encode(&s->nodes), "edges",
        list_encode(&s->edges));

    /* Lists of other kinds are there only where something is in them. */
    for (unsigned i = 0; object_kinds[i]; i++)
        if (s->others[i].n > 0)
            fields_set(&json, object_kinds[i]->list, list_encode(&s->others[i]));
    return json;
}
