/* view.c - see view.h. */
#include "view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "api/server/stream.h"
#include "base/text.h"
#include "base/traffic.h"

/* What closes the list of nodes, and the snapshot. */
#define END_OF_NODES "]}"

/* A line of @json, which is taken. NULL: no memory. */
static struct line *part_of(json_t *json)
{
    char *text = json ? body_format(json) : NULL;
    struct line *l = text ? line_new_part(text, strlen(text)) : NULL;

    free(text);
    json_decref(json);
    return l;
}

static json_t *reparse(const char *text)
{
    return text ? json_loads(text, 0, NULL) : NULL;
}

/* The node as others see it: of its status only what they need to reach it. */
static struct line *node_text(struct model_node *node)
{
    const struct report *said = &node->heard.report;
    struct node spec = node->pub.spec;

    if (node->text)
        return node->text;
    if (said->candidates || said->paths || said->aead || said->fabric || said->hostname[0])
        spec.status = json_pack("{s:o*, s:o*, s:o*, s:o*, s:s*}", "candidates",
            reparse(said->candidates), "paths", reparse(said->paths), "aead", reparse(said->aead),
            "fabric", reparse(said->fabric), "hostname", said->hostname[0] ? said->hostname : NULL);
    node->text = part_of(node_encode(&spec));
    json_decref(spec.status);
    return node->text;
}

static struct line *network_text(struct model_network *net)
{
    if (!net->self)
        net->self = part_of(network_encode(&net->pub.spec));
    return net->self;
}

static void add_line(struct str *s, const struct line *l)
{
    if (l)
        str_add_bytes(s, l->text, l->len);
    else
        s->failed = true;
}

/* A line of the text in @s, which is taken. NULL: no memory. */
static struct line *finish(struct str *s, bool is_part)
{
    size_t len;
    char *text = str_take(s, &len);
    struct line *l = NULL;

    if (text)
        l = is_part ? line_new_part(text, len) : line_new(text, len);
    free(text);
    str_deinit(s);
    return l;
}

bool view_can_see(const struct model_node *self, const struct model_node *other)
{
    return self == other || other->pub.spec.hub || self->pub.spec.hub ||
           model_may_talk(self, other);
}

bool view_sees_all(const struct model_node *self)
{
    const struct model_edge_end *end;

    if (self->pub.spec.hub)
        return true;
    list_foreach(end, &self->edges, link) {
        if (end->edge->spec.path == EDGE_PATH_OFF)
            return false;
    }
    return true;
}

bool view_can_see_object(const struct model_node *self, const struct object *o)
{
    return self->pub.spec.hub || !o->kind->can_see || o->kind->can_see(o, &self->pub.spec);
}

/* ---- parts ---------------------------------------------------------------------------------- */

/* Takes @part; NULL: there was no memory for it. */
static void add_part(struct view_parts *parts, struct line *part)
{
    if (part && parts->n < parts->cap)
        parts->items[parts->n++] = part;
    else
        parts->failed = true;
    if (parts->failed)
        (void)line_unref(part);
}

void view_parts_deinit(struct view_parts *parts)
{
    for (size_t i = 0; i < parts->n; i++)
        (void)line_unref(parts->items[i]);
    free(parts->items);
    *parts = (struct view_parts){.items = NULL};
}

/* ---- nodes ---------------------------------------------------------------------------------- */

/* Any node may see it, as far as the node that asks sees all. */
static bool sees_any(const struct model_node *self, const struct model_node *other)
{
    return true;
}

typedef bool (*sees_fn)(const struct model_node *self, const struct model_node *other);

/* "NODE,NODE,...": those of a block that @self sees; empty if it sees none. NULL: no memory. */
static struct line *make_block(
    const struct roster_block *b, const struct model_node *self, sees_fn sees)
{
    struct str s = STR_NULL;
    struct roster_place *place;
    bool any = false;

    list_foreach(place, &b->places, link) {
        struct model_node *node = container_of(place, struct model_node, place);

        if (!sees(self, node))
            continue;
        if (any)
            str_add(&s, ",");
        any = true;
        add_line(&s, node_text(node));
    }
    return finish(&s, true);
}

/* Does @self see all nodes of the block? If no edge of its own is off, it does. */
static bool sees_block(const struct model_node *self, const struct roster_block *b)
{
    const struct model_edge_end *end;

    if (self->pub.spec.hub)
        return true;
    list_foreach(end, &self->edges, link) {
        const struct model_edge_end *ends = end->edge->ends;
        const struct model_node *other = ends[0].node == self ? ends[1].node : ends[0].node;

        if (end->edge->spec.path == EDGE_PATH_OFF && other && other->place.block == b)
            return false;
    }
    return true;
}

/* The block as @self sees it: what all those who see all of it share, or one of its own. */
static struct line *block_text(struct roster_block *b, const struct model_node *self)
{
    if (!sees_block(self, b))
        return make_block(b, self, view_can_see);
    if (!b->text)
        b->text = make_block(b, NULL, sees_any);
    return b->text ? line_ref(b->text) : NULL;
}

static size_t count_blocks(const struct roster *r)
{
    const struct roster_block *b;
    size_t n = 0;

    list_foreach(b, &r->blocks, link)
        n++;
    return n;
}

/* "NODE,NODE,...": all that @self sees, block by block. */
static void add_nodes(struct view_parts *parts, const struct model_node *self)
{
    struct line *comma = line_new_part(",", 1);
    struct roster_block *b;
    bool any = false;

    list_foreach(b, &self->net->roster.blocks, link) {
        struct line *text = block_text(b, self);

        if (text && text->len == 0) {
            (void)line_unref(text);
            continue;
        }
        if (any)
            add_part(parts, comma ? line_ref(comma) : NULL);
        any = true;
        add_part(parts, text);
    }
    (void)line_unref(comma);
}

static struct line *edge_text(const struct model_edge *edge)
{
    return part_of(mesh_edge_encode(&edge->spec));
}

/* ","notices":[OBJECT,...]": the objects of a kind that @self sees; nothing if it sees none. */
static void add_objects(
    struct str *s, const struct model_node *self, const struct object_kind *kind)
{
    const struct object *o;
    bool any = false;
    size_t i = 0;

    while ((o = model_each_object(self->net, kind, &i))) {
        struct line *text;

        if (!view_can_see_object(self, o))
            continue;
        if (any)
            str_add(s, ",");
        else
            str_addf(s, ",\"%s\":[", kind->list);
        any = true;
        text = part_of(object_encode(o));
        add_line(s, text);
        line_unref(text);
    }
    if (any)
        str_add(s, "]");
}

/* "{"type":"snapshot", ... "nodes":[": all but the nodes. */
static struct line *head_of(struct model_node *self)
{
    struct model_network *net = self->net;
    struct model_edge_end *end;
    struct str s = STR_NULL;
    bool any = false;

    str_addf(&s,
        "{\"type\":\"snapshot\",\"revision\":%llu,\"boot\":%llu,\"self\":\"%s\",\"network\":",
        (unsigned long long)store_revision(net->model->store), (unsigned long long)net->model->boot,
        self->pub.spec.meta.name);
    add_line(&s, network_text(net));
    str_add(&s, ",\"edges\":[");
    list_foreach(end, &self->edges, link) {
        struct line *text = edge_text(end->edge);

        if (any)
            str_add(&s, ",");
        any = true;
        add_line(&s, text);
        line_unref(text);
    }
    str_add(&s, "]");
    for (unsigned i = 0; object_kinds[i]; i++)
        if (record_kind_of(object_kinds[i]) == RECORD_OBJECT)
            add_objects(&s, self, object_kinds[i]);
    str_add(&s, ",\"nodes\":[");
    return finish(&s, true);
}

bool view_snapshot(struct model_node *self, struct view_parts *ret)
{
    size_t cap = 2 * count_blocks(&self->net->roster) + 2;
    struct view_parts parts = {.items = calloc(cap, sizeof(struct line *)), .cap = cap};

    if (!parts.items)
        return false;
    add_part(&parts, head_of(self));
    add_nodes(&parts, self);
    add_part(&parts, line_new(END_OF_NODES, strlen(END_OF_NODES)));
    if (parts.failed) {
        view_parts_deinit(&parts);
        return false;
    }
    *ret = parts;
    return true;
}

char *view_snapshot_text(struct model_node *self)
{
    struct view_parts parts;
    struct str s = STR_NULL;
    char *text;

    if (!view_snapshot(self, &parts))
        return NULL;
    for (size_t i = 0; i < parts.n; i++)
        str_add_bytes(&s, parts.items[i]->text, parts.items[i]->len - (i + 1 == parts.n));
    view_parts_deinit(&parts);
    text = str_take(&s, NULL);
    str_deinit(&s);
    return text;
}

char *view_introduction_text(struct model_node *self)
{
    struct str s = STR_NULL;
    struct model_node *hub;
    struct line *head;
    char *text;

    if (!list_is_empty(&self->edges))
        return view_snapshot_text(self);
    head = head_of(self);
    add_line(&s, head);
    (void)line_unref(head);
    add_line(&s, node_text(self));
    list_foreach(hub, &self->net->hubs, of_hubs) {
        if (hub == self)
            continue;
        str_add(&s, ",");
        add_line(&s, node_text(hub));
    }
    str_add(&s, END_OF_NODES);
    text = str_take(&s, NULL);
    str_deinit(&s);
    return text;
}

/* One block of memory: the pointers, and behind them the objects, which own nothing. */
static bool make_list(struct snapshot_list *l, size_t cap)
{
    struct object *objects;

    l->items = calloc(cap, sizeof(struct object *) + sizeof(struct object));
    if (!l->items)
        return false;
    l->cap = cap;
    objects = (struct object *)(void *)(l->items + cap);
    for (size_t i = 0; i < cap; i++)
        l->items[i] = &objects[i];
    return true;
}

static size_t count_edges(const struct model_node *self)
{
    struct model_edge_end *end;
    size_t n = 0;

    list_foreach(end, &self->edges, link)
        n++;
    return n;
}

static int compare_edges(const void *a, const void *b)
{
    const struct object *const *x = a;
    const struct object *const *y = b;

    return strcmp((*x)->edge.meta.name, (*y)->edge.meta.name);
}

bool view_lend_snapshot(const struct model_node *self, struct snapshot *ret)
{
    const struct model_network *net = self->net;
    struct snapshot *s = ret;
    struct model_edge_end *end;

    if (!make_list(&s->nodes, net->nodes.n + 1) || !make_list(&s->edges, count_edges(self) + 1))
        return false;
    s->revision = store_revision(net->model->store);
    s->boot = net->model->boot;
    (void)snprintf(s->self, sizeof(s->self), "%.*s", NAME_MAX_LEN, self->pub.spec.meta.name);
    s->network = net->pub.spec;
    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);

        if (view_can_see(self, node))
            *s->nodes.items[s->nodes.n++] =
                (struct object){.kind = &node_kind, .node = node->pub.spec};
    }
    list_foreach(end, &self->edges, link) {
        *s->edges.items[s->edges.n++] =
            (struct object){.kind = &mesh_edge_kind, .edge = end->edge->spec};
    }
    qsort(s->edges.items, s->edges.n, sizeof(*s->edges.items), compare_edges);
    return true;
}

void view_return_snapshot(struct snapshot *s)
{
    free(s->nodes.items);
    free(s->edges.items);
    *s = (struct snapshot)SNAPSHOT_NULL;
}

/* {"type":"put", ...} around an object's text. */
static void add_put(struct str *s, const struct model *m, const struct line *object)
{
    str_addf(s, "{\"type\":\"put\",\"revision\":%llu,\"object\":",
        (unsigned long long)store_revision(m->store));
    add_line(s, object);
    str_add(s, "}");
}

static struct line *put_event(const struct model *m, const struct line *object)
{
    struct str s = STR_NULL;

    add_put(&s, m, object);
    return finish(&s, false);
}

struct line *view_put_network(struct model_network *net)
{
    return put_event(net->model, network_text(net));
}

struct line *view_put_nodes(struct model_node *const *nodes, size_t n)
{
    struct str s = STR_NULL;

    for (size_t i = 0; i < n; i++) {
        str_add(&s, i > 0 ? "\n" : "");
        add_put(&s, nodes[i]->net->model, node_text(nodes[i]));
    }
    return finish(&s, false);
}

struct line *view_put_edge(const struct model_network *net, const struct model_edge *edge)
{
    struct line *text = edge_text(edge);
    struct line *event = put_event(net->model, text);

    line_unref(text);
    return event;
}

struct line *view_put_object(const struct model *m, const struct object *o)
{
    struct line *text = part_of(object_encode(o));
    struct line *event = put_event(m, text);

    line_unref(text);
    return event;
}

/* Takes @json: an event without an object's text in it. */
static struct line *small_event(json_t *json)
{
    char *text = json ? body_format(json) : NULL;
    struct line *l = text ? line_new(text, strlen(text)) : NULL;

    free(text);
    json_decref(json);
    return l;
}

struct line *view_delete(const struct model *m, const struct object_kind *kind, const char *name)
{
    return small_event(json_pack("{s:s, s:I, s:s, s:s}", "type", "delete", "revision",
        (json_int_t)store_revision(m->store), "kind", kind->name, "name", name));
}

struct line *view_heartbeat(const struct model *m, unsigned next_s, nsec_t now)
{
    json_int_t revision = (json_int_t)store_revision(m->store);
    nsec_t behind = store_lag(m->store, now).behind_for;

    return small_event(json_pack("{s:s, s:I, s:o*, s:o*}", "type", "heartbeat", "revision",
        revision, "next", next_s ? json_integer((json_int_t)next_s) : NULL, "storeBehind",
        behind > STORE_LAG_MAX ? json_integer((json_int_t)(behind / NSEC_PER_SEC)) : NULL));
}

struct line *view_removed(const char *reason)
{
    return small_event(json_pack("{s:s, s:s}", "type", "removed", "reason", reason));
}
