/* view.c - see view.h. */
#include "view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "api/server/stream.h"
#include "base/text.h"
#include "mesh/object/node_status.h"
#include "mesh/object/rule.h"
#include "relay/line.h"

/* What closes the list of nodes, and the snapshot. */
#define END_OF_NODES "]}"

/* A line of @json, or a part of one; @json is taken. NULL: no memory. */
static struct line *line_of(json_t *json, bool is_part)
{
    char *text = json ? body_format(json) : NULL;
    struct line *l = NULL;

    if (text)
        l = is_part ? line_new_part(text, strlen(text)) : line_new(text, strlen(text));
    free(text);
    json_decref(json);
    return l;
}

/* The node as others see it: of its status only what they need to reach it. */
static struct line *node_text(const struct model_node *node)
{
    const struct report *said = &node->reported->heard.report;
    struct node spec = node->spec;
    json_t *notice;

    if (node->watched->text)
        return node->watched->text;
    notice = said->line ? relay_notice_encode(&said->line->notice) : NULL;
    if (said->candidates || said->paths || said->aead || said->fabric || said->hostname[0] ||
        notice)
        spec.status = json_pack("{s:o*, s:o*, s:o*, s:o*, s:o*, s:s*}", "candidates",
            json_loads(said->candidates, 0, NULL), "paths", json_loads(said->paths, 0, NULL),
            "aead", json_loads(said->aead, 0, NULL), "fabric", json_loads(said->fabric, 0, NULL),
            "relayLine", notice, "hostname", said->hostname[0] ? said->hostname : NULL);
    node->watched->text = line_of(node_encode(&spec), true);
    json_decref(spec.status);
    return node->watched->text;
}

static struct line *network_text(const struct model_network *net)
{
    if (!net->watched->text)
        net->watched->text = line_of(network_encode(&net->spec), true);
    return net->watched->text;
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
    return l;
}

uint64_t view_revision(const struct model_network *net)
{
    const struct watched_network *w = net->watched;

    return w->ready != w->serial ? w->waits_from : store_revision(net->model->store);
}

bool view_can_see(const struct model_node *self, const struct model_node *other)
{
    return self == other || other->spec.hub || self->spec.hub || model_may_talk(self, other);
}

/* Is an object of another kind than Node in view? The hub's own node sees all of them. */
static bool can_see_object(const struct model_node *self, const struct object *o)
{
    return self->spec.hub || !o->kind->can_see || o->kind->can_see(o, &self->spec);
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

/* "NODE,NODE,...": those of a block that @self sees, NULL: all; empty if it sees none. NULL: no
 * memory. */
static struct line *make_block(const struct watched_block *b, const struct model_node *self)
{
    struct str s = STR_NULL;

    for (unsigned i = 0; i < b->n; i++) {
        const struct model_node *node = b->nodes[i]->node;

        if (self && !view_can_see(self, node))
            continue;
        str_add(&s, s.len > 0 ? "," : "");
        add_line(&s, node_text(node));
    }
    return finish(&s, true);
}

/* Does @self see all nodes of the block? If no edge of its own is off, it does. */
static bool sees_block(const struct model_node *self, const struct watched_block *b)
{
    const struct model_edge_end *end;

    if (self->spec.hub)
        return true;
    list_foreach(end, &self->edges, link) {
        const struct model_edge_end *ends = end->edge->ends;
        const struct model_node *other = ends[0].node == self ? ends[1].node : ends[0].node;

        if (end->edge->spec.path == EDGE_PATH_OFF && other && other->watched->block == b)
            return false;
    }
    return true;
}

/* "NODE,NODE,...": all that @self sees, block by block. */
static void add_nodes(struct view_parts *parts, const struct model_node *self)
{
    const struct watched_network *net = self->net->watched;
    struct line *comma = line_new_part(",", 1);
    bool any = false;

    for (size_t i = 0; i < net->n_blocks; i++) {
        struct watched_block *b = net->blocks[i];
        struct line *text;

        /* As @self sees the block: what all those who see all of it share, or one of its own. */
        if (sees_block(self, b)) {
            if (!b->text)
                b->text = make_block(b, NULL);
            text = b->text ? line_ref(b->text) : NULL;
        } else {
            text = make_block(b, self);
        }
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
    return line_of(mesh_edge_encode(&edge->spec), true);
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

        if (!can_see_object(self, o))
            continue;
        if (any)
            str_add(s, ",");
        else
            str_addf(s, ",\"%s\":[", kind->list);
        any = true;
        text = line_of(object_encode(o), true);
        add_line(s, text);
        line_unref(text);
    }
    if (any)
        str_add(s, "]");
}

/* "{"type":"snapshot", ... "nodes":[": all but the nodes. */
static struct line *head_of(const struct model_node *self)
{
    const struct model_network *net = self->net;
    struct model_edge_end *end;
    struct str s = STR_NULL;
    bool any = false;

    str_addf(&s,
        "{\"type\":\"snapshot\",\"revision\":%llu,\"boot\":%llu,\"self\":\"%s\",\"network\":",
        (unsigned long long)view_revision(net), (unsigned long long)net->model->boot,
        self->spec.meta.name);
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

bool view_snapshot(const struct model_node *self, struct view_parts *ret)
{
    size_t cap = 2 * self->net->watched->n_blocks + 2;
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

char *view_snapshot_text(const struct model_node *self)
{
    struct view_parts parts;
    struct str s = STR_NULL;

    if (!view_snapshot(self, &parts))
        return NULL;
    for (size_t i = 0; i < parts.n; i++)
        str_add_bytes(&s, parts.items[i]->text, parts.items[i]->len - (i + 1 == parts.n));
    view_parts_deinit(&parts);
    return str_take(&s, NULL);
}

char *view_introduction_text(const struct model_node *self)
{
    struct str s = STR_NULL;
    const struct model_node *hub;
    struct line *head;

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
    return str_take(&s, NULL);
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

static int compare_edges(const void *a, const void *b)
{
    const struct object *const *x = a;
    const struct object *const *y = b;

    return strcmp((*x)->edge.meta.name, (*y)->edge.meta.name);
}

static bool lend_rules(const struct model_network *net, struct snapshot_list *ret)
{
    const struct object *o;
    size_t n = 0;
    size_t i = 0;

    while (model_each_object(net, &rule_kind, &i))
        n++;
    if (!make_list(ret, n + 1))
        return false;
    i = 0;
    while (ret->n < n && (o = model_each_object(net, &rule_kind, &i)))
        *ret->items[ret->n++] = *o;
    return true;
}

bool view_lend_snapshot(const struct model_node *self, struct snapshot *ret)
{
    const struct model_network *net = self->net;
    struct snapshot *s = ret;
    struct model_edge_end *end;
    size_t n_edges = 0;

    list_foreach(end, &self->edges, link)
        n_edges++;
    if (!make_list(&s->nodes, net->nodes.n + 1) || !make_list(&s->edges, n_edges + 1))
        return false;
    for (unsigned i = 0; object_kinds[i]; i++)
        if (object_kinds[i] == &rule_kind && !lend_rules(net, &s->others[i]))
            return false;
    s->revision = view_revision(net);
    s->boot = net->model->boot;
    (void)snprintf(s->self, sizeof(s->self), "%.*s", NAME_MAX_LEN, self->spec.meta.name);
    s->network = net->spec;
    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);

        if (view_can_see(self, node))
            *s->nodes.items[s->nodes.n++] = (struct object){.kind = &node_kind, .node = node->spec};
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
    for (unsigned i = 0; object_kinds[i]; i++)
        if (object_kinds[i] == &rule_kind)
            free(s->others[i].items);
    *s = (struct snapshot)SNAPSHOT_NULL;
}

/* ---- changes -------------------------------------------------------------------------------- */

/* The name of the edge's other end, if @self is one of its two; NULL: it is not. */
static const char *other_end(
    const struct model_node *self, const char *edge, char buf[static NAME_MAX_LEN + 1])
{
    const char *own = self->spec.meta.name;
    size_t n_own = strlen(own);
    size_t n = strlen(edge);
    char name[OBJECT_NAME_MAX + 1];

    if (n <= n_own + 2 || n > n_own + 2 + NAME_MAX_LEN)
        return NULL;
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(
            buf, NAME_MAX_LEN + 1, "%.*s", (int)(n - n_own - 2), i == 0 ? edge : edge + n_own + 2);
        if (strcmp(edge_name(own, buf, name), edge) == 0)
            return buf;
    }
    return NULL;
}

bool view_are_special(const struct view_changes *changes, const struct model_node *self)
{
    char name[NAME_MAX_LEN + 1];

    for (size_t i = 0; i < changes->n; i++) {
        const struct watched_change *c = changes->items[i];

        if (c->kind == &mesh_edge_kind ? other_end(self, c->name, name) != NULL
                                       : c->kind->can_see != NULL)
            return true;
    }
    return false;
}

/* Lines that are being made. The revision is the last of each: that of the last line is another. */
struct lines {
    const struct view_changes *changes; /* borrowed */
    const struct model_node *self;      /* borrowed; NULL: for all who see all */
    struct str text;
};

static void end_line(struct lines *ls, uint64_t revision)
{
    str_addf(&ls->text, ",\"revision\":%llu}", (unsigned long long)revision);
}

static void begin_line(struct lines *ls, const char *type)
{
    if (ls->text.len > 0) {
        end_line(ls, ls->changes->items[0]->revision);
        str_add(&ls->text, "\n");
    }
    str_addf(&ls->text, "{\"type\":\"%s\",", type);
}

/* @object: NULL: no memory. */
static void add_put(struct lines *ls, const struct line *object)
{
    begin_line(ls, "put");
    str_add(&ls->text, "\"object\":");
    add_line(&ls->text, object);
}

/* As add_put(); @object is taken. */
static void add_put_of(struct lines *ls, struct line *object)
{
    add_put(ls, object);
    (void)line_unref(object);
}

static void add_delete(struct lines *ls, const struct object_kind *kind, const char *name)
{
    begin_line(ls, "delete");
    str_addf(&ls->text, "\"kind\":\"%s\",\"name\":\"%s\"", kind->name, name);
}

/* The other end of an own edge of @self; NULL: it is none, or the node is gone. */
static const struct model_node *find_other_end(
    const struct lines *ls, const struct watched_change *c)
{
    char name[NAME_MAX_LEN + 1];

    if (!ls->self || c->kind != &mesh_edge_kind || !other_end(ls->self, c->name, name))
        return NULL;
    return model_find_node(ls->changes->net, name);
}

/* What has to be there before anything that names it: the network, and nodes. The other end of an
 * edge may have come into view. */
static void tell_first(struct lines *ls, const struct watched_change *c)
{
    const struct model_network *net = ls->changes->net;
    const struct model_node *other = find_other_end(ls, c);

    if (c->kind == &network_kind)
        add_put(ls, network_text(net));
    if (c->kind == &node_kind && !c->is_gone) {
        const struct model_node *node = model_find_node(net, c->name);

        if (!ls->self || view_can_see(ls->self, node))
            add_put(ls, node_text(node));
    }
    for (size_t i = 0; other && i < ls->changes->n; i++)
        if (ls->changes->items[i] == &other->watched->change)
            other = NULL;
    if (other && view_can_see(ls->self, other))
        add_put(ls, node_text(other));
}

/* Edges, and objects of other kinds. */
static void tell_others(struct lines *ls, const struct watched_change *c)
{
    char name[NAME_MAX_LEN + 1];
    const struct object *o;

    if (c->kind == &mesh_edge_kind && ls->self && other_end(ls->self, c->name, name)) {
        if (c->is_gone)
            add_delete(ls, c->kind, c->name);
        /* Of an edge whose other node is gone the deletion follows. */
        else if (model_find_node(ls->changes->net, name))
            add_put_of(ls, edge_text(container_of(c, struct model_edge, change)));
    }
    if (c->kind == &mesh_edge_kind || c->kind == &node_kind || c->kind == &network_kind ||
        (!ls->self && c->kind->can_see))
        return;
    o = &container_of(c, const struct model_object, change)->object;
    if (c->is_gone || (ls->self && !can_see_object(ls->self, o)))
        add_delete(ls, c->kind, c->name);
    else
        add_put_of(ls, line_of(object_encode(o), true));
}

/* What nothing names any more: nodes that are gone, or that have gone out of view. Whoever did not
 * see one that is gone, because of an edge that was off, knows its name from that edge. */
static void tell_last(struct lines *ls, const struct watched_change *c)
{
    const struct model_node *other = find_other_end(ls, c);

    if (c->kind == &node_kind && c->is_gone)
        add_delete(ls, c->kind, c->name);
    if (other && !view_can_see(ls->self, other))
        add_delete(ls, &node_kind, other->spec.meta.name);
}

/* There is something again of the name of one that is gone: its own change tells of it, now or in
 * what is read next. A node's may not be ready yet, and a removal does not wait for it. */
static bool has_come_again(const struct model_network *net, const struct watched_change *c)
{
    const struct model_node *node;

    if (!c->is_gone)
        return false;
    if (c->kind == &node_kind) {
        node = model_find_node(net, c->name);
        return node && node->watched->change.serial <= net->watched->ready;
    }
    if (c->kind == &mesh_edge_kind)
        return keys_find(&net->edges, c->name) != NULL;
    return model_find_object(net, c->kind, c->name) != NULL;
}

bool view_tell(const struct view_changes *changes, const struct model_node *self, struct line **ret)
{
    void (*const tell[])(struct lines *, const struct watched_change *) = {
        tell_first, tell_others, tell_last};
    struct lines ls = {.changes = changes, .self = self, .text = STR_NULL};

    for (unsigned step = 0; step < sizeof(tell) / sizeof(*tell); step++)
        for (size_t i = 0; i < changes->n; i++)
            if (!has_come_again(changes->net, changes->items[i]))
                tell[step](&ls, changes->items[i]);
    *ret = NULL;
    if (ls.text.len == 0 && !ls.text.failed)
        return true;
    end_line(&ls, changes->end);
    *ret = finish(&ls.text, false);
    return *ret != NULL;
}

/* ---- other events --------------------------------------------------------------------------- */

static json_t *number_if(bool is_said, uint64_t number)
{
    return is_said ? json_integer((json_int_t)number) : NULL;
}

struct line *view_heartbeat(const struct heartbeat *heartbeat)
{
    return line_of(json_pack("{s:s, s:I, s:o*, s:o*, s:o*}", "type", "heartbeat", "revision",
                       (json_int_t)heartbeat->revision, "boot",
                       number_if(heartbeat->boot != 0, heartbeat->boot), "next",
                       number_if(heartbeat->next_s != 0, heartbeat->next_s), "storeBehind",
                       number_if(heartbeat->behind_for > STORE_LAG_MAX,
                           (uint64_t)(heartbeat->behind_for / NSEC_PER_SEC))),
        false);
}

struct line *view_removed(const char *reason)
{
    return line_of(json_pack("{s:s, s:s}", "type", "removed", "reason", reason), false);
}
