/* resume.c - see resume.h. */
#include "hub/watch/resume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/server/stream.h"
#include "hub/watch/view.h"
#include "hub/watch/watch.h"

/* What is being collected for one node. */
struct resume {
    struct model_node *self;   /* borrowed; NULL: for all who see every node */
    struct model_network *net; /* borrowed */
    const struct model *m;     /* borrowed */
    struct view_parts *parts;
    struct model_node *nodes[2 * RESUME_MAX]; /* borrowed: to be put */
    size_t n_nodes;
};

/* Takes @l; NULL: there was no memory for it. */
static void add(struct resume *rs, struct line *l)
{
    struct view_parts *parts = rs->parts;

    if (l && parts->n < parts->cap)
        parts->items[parts->n++] = l;
    else
        parts->failed = true;
    if (parts->failed)
        (void)line_unref(l);
}

static void add_delete(struct resume *rs, const struct object_kind *kind, const char *name)
{
    add(rs, view_delete(rs->m, kind, name));
}

static void add_node(struct resume *rs, struct model_node *node)
{
    for (size_t i = 0; i < rs->n_nodes; i++)
        if (rs->nodes[i] == node)
            return;
    rs->nodes[rs->n_nodes++] = node;
}

/* ---- edges ---------------------------------------------------------------------------------- */

/* The edge's other end, if @self is one of its two; NULL: it is not. */
static const char *other_end(
    const struct model_node *self, const char *edge, char buf[static NAME_MAX_LEN + 1])
{
    const char *own = self->pub.spec.meta.name;
    size_t n_own = strlen(own);
    size_t n = strlen(edge);
    size_t n_other = n > n_own + 2 ? n - n_own - 2 : 0;
    char name[OBJECT_NAME_MAX + 1];

    if (n_other == 0 || n_other > NAME_MAX_LEN)
        return NULL;
    for (unsigned is_last = 0; is_last < 2; is_last++) {
        memcpy(buf, is_last ? edge : edge + n - n_other, n_other);
        buf[n_other] = '\0';
        if (strcmp(edge_name(own, buf, name), edge) == 0)
            return buf;
    }
    return NULL;
}

/* The node at the other end may have come into view. */
static void collect_other_end(struct resume *rs, const struct history_change *c)
{
    char name[NAME_MAX_LEN + 1];
    struct model_node *other = NULL;

    if (c->kind == &mesh_edge_kind && other_end(rs->self, c->name, name))
        other = model_find_node(rs->self->net, name);
    if (other && view_can_see(rs->self, other))
        add_node(rs, other);
}

static void add_edge(struct resume *rs, const char *edge_name)
{
    const struct model_network *net = rs->self->net;
    char name[NAME_MAX_LEN + 1];
    const struct model_edge *edge;

    if (!other_end(rs->self, edge_name, name))
        return;
    edge = model_find_edge(net, rs->self->pub.spec.meta.name, name);
    if (edge)
        add(rs, view_put_edge(net, edge));
    else
        add_delete(rs, &mesh_edge_kind, edge_name);
}

/* Or it may have gone out of view. */
static void hide_other_end(struct resume *rs, const char *edge_name)
{
    char name[NAME_MAX_LEN + 1];
    const struct model_node *other;

    if (!other_end(rs->self, edge_name, name))
        return;
    other = model_find_node(rs->self->net, name);
    if (other && !view_can_see(rs->self, other))
        add_delete(rs, &node_kind, name);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

/* What has to be there before anything that names it; the nodes are put by put_nodes(). */
static void add_network_and_nodes(struct resume *rs, const struct history_change *first)
{
    struct model_network *net = rs->net;

    for (const struct history_change *c = first; c; c = history_next(&net->history, c)) {
        struct model_node *node = c->kind == &node_kind ? model_find_node(net, c->name) : NULL;

        if (c->kind == &network_kind)
            add(rs, view_put_network(net));
        if (node && (!rs->self || view_can_see(rs->self, node)))
            add_node(rs, node);
    }
}

static void put_nodes(struct resume *rs)
{
    for (size_t i = 0; i < rs->n_nodes; i += WATCH_NEWS_MAX) {
        size_t n = rs->n_nodes - i < WATCH_NEWS_MAX ? rs->n_nodes - i : WATCH_NEWS_MAX;

        add(rs, view_put_nodes(rs->nodes + i, n));
    }
    rs->n_nodes = 0;
}

/* Nodes that are gone. Whoever did not see one of them, because of an edge that was off, knows its
 * name from that edge. */
static void add_gone(struct resume *rs, const struct history_change *first)
{
    for (const struct history_change *c = first; c; c = history_next(&rs->net->history, c))
        if (c->kind == &node_kind && !model_find_node(rs->net, c->name))
            add_delete(rs, c->kind, c->name);
}

/* ---- what is the same for all who see every node --------------------------------------------- */

/* NULL: no memory. */
static const struct catch_up_entry *make_shared(
    struct model_network *net, uint64_t revision, const struct history_change *first, size_t cap)
{
    struct view_parts parts = {.items = calloc(cap, sizeof(struct line *)), .cap = cap};
    struct resume rs = {.net = net, .m = net->model, .parts = &parts};
    struct catch_up_entry entry = {.revision = revision};

    if (!parts.items)
        return NULL;
    add_network_and_nodes(&rs, first);
    put_nodes(&rs);
    entry.n_first = parts.n;
    add_gone(&rs, first);
    add(&rs, view_heartbeat(rs.m, 0, 0));
    if (parts.failed) {
        view_parts_deinit(&parts);
        return NULL;
    }
    entry.lines = parts.items;
    entry.n = parts.n;
    return catch_up_put(&net->catch_up, &entry);
}

static void add_shared(
    struct resume *rs, const struct catch_up_entry *shared, size_t from, size_t end)
{
    for (size_t i = from; i < end; i++)
        add(rs, line_ref(shared->lines[i]));
}

/* ---- all kinds ------------------------------------------------------------------------------ */

static void add_object(struct resume *rs, const struct history_change *c)
{
    const struct model_object *found = model_find_object(rs->net, c->kind, c->name);

    if (found && view_can_see_object(rs->self, &found->object))
        add(rs, view_put_object(rs->m, &found->object));
    else
        add_delete(rs, c->kind, c->name);
}

/* The other ends of its edges that may have come into view; before the edges, which name them. */
static void add_other_ends(struct resume *rs, const struct history_change *first)
{
    for (const struct history_change *c = first; c; c = history_next(&rs->net->history, c))
        collect_other_end(rs, c);
}

static void add_others(struct resume *rs, const struct history_change *first)
{
    const struct history *h = &rs->net->history;

    for (const struct history_change *c = first; c; c = history_next(h, c)) {
        if (c->kind == &mesh_edge_kind)
            add_edge(rs, c->name);
        else if (c->kind != &network_kind && c->kind != &node_kind)
            add_object(rs, c);
    }
}

static void hide_other_ends(struct resume *rs, const struct history_change *first)
{
    for (const struct history_change *c = first; c; c = history_next(&rs->net->history, c))
        if (c->kind == &mesh_edge_kind)
            hide_other_end(rs, c->name);
}

/* First what has to be there before anything that names it, last what nothing names any more. */
static void add_all(
    struct resume *rs, const struct history_change *first, const struct catch_up_entry *shared)
{
    if (shared)
        add_shared(rs, shared, 0, shared->n_first);
    else
        add_network_and_nodes(rs, first);
    add_other_ends(rs, first);
    put_nodes(rs);
    add_others(rs, first);
    if (shared) {
        /* No edge of its own is off, so nothing is hidden from it. */
        add_shared(rs, shared, shared->n_first, shared->n);
        return;
    }
    add_gone(rs, first);
    hide_other_ends(rs, first);
    add(rs, view_heartbeat(rs->m, 0, 0));
}

/* How many objects have changed, or more than RESUME_MAX. */
static size_t count(const struct history *h, const struct history_change *first)
{
    size_t n = 0;

    for (const struct history_change *c = first; c && n <= RESUME_MAX; c = history_next(h, c))
        n++;
    return n;
}

int resume_make(struct model_node *self, uint64_t revision, struct view_parts *ret)
{
    struct model_network *net = self->net;
    const struct history_change *first = history_since(&net->history, revision);
    size_t n = count(&net->history, first);
    /* Of an edge two lines; of all else one; and a heartbeat. */
    struct view_parts parts = {.cap = 2 * n + 2};
    struct resume rs = {.self = self, .net = net, .m = net->model, .parts = &parts};
    const struct catch_up_entry *shared = NULL;

    if (!history_holds(&net->history, revision) || n > RESUME_MAX ||
        2 * n > net->nodes.n + RESUME_FEW)
        return RESUME_E_GONE;
    if (view_sees_all(self)) {
        shared = catch_up_find(&net->catch_up, revision);
        if (!shared)
            shared = make_shared(net, revision, first, parts.cap);
        if (!shared)
            return -ENOMEM;
    }
    parts.items = calloc(parts.cap, sizeof(struct line *));
    if (!parts.items)
        return -ENOMEM;
    add_all(&rs, first, shared);
    if (parts.failed) {
        view_parts_deinit(&parts);
        return -ENOMEM;
    }
    *ret = parts;
    return 0;
}
