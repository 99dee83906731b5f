/*
 * watch_fill.c - what has changed before a hub was started, by what its store knows; see watch.h.
 *
 * Theory of operation. Each object that there is has the revision that wrote it, which is that of
 * its last change. What others see of a node has changed with its last report at the latest: a
 * report is written later than it is noted as a change, so whoever was told of a later revision was
 * told of it. Only of what was deleted there is no record; the store has a list of that, which
 * begins somewhere. What happened before is forgotten.
 */

#include "base/err.h"
#include "hub/record/record.h"
#include "hub/watch/watch.h"
#include "os/log.h"

static void add_network(const struct model_network *net)
{
    struct watched_network *w = net->watched;
    const struct object_meta *meta = &net->spec.meta;

    watched_add(w, &w->change, &network_kind, meta->name, meta->resource_version);
    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);
        uint64_t reported = node->reported->stored_revision;

        meta = &node->spec.meta;
        watched_add(w, &node->watched->change, &node_kind, meta->name,
            meta->resource_version > reported ? meta->resource_version : reported);
    }
    for (size_t i = 0; i < net->edges.n; i++) {
        struct model_edge *edge = model_edge_at(net, i);

        meta = &edge->spec.meta;
        watched_add(w, &edge->change, &mesh_edge_kind, meta->name, meta->resource_version);
    }
    for (size_t i = 0; i < net->objects.n; i++) {
        struct model_object *o = container_of(net->objects.items[i], struct model_object, keyed);

        meta = &o->object.meta;
        watched_add(w, &o->change, o->object.kind, meta->name, meta->resource_version);
    }
}

static void on_deleted(void *ctx, const struct store_answer *a)
{
    const struct model *m = ctx;

    if (a->r != 0) {
        log_info("all watches begin with a snapshot: %s", err_text(a->e));
        return;
    }
    for (size_t i = 0; i < m->networks.n; i++) {
        model_network_at(m, i)->watched->forgotten = a->since - 1;
        add_network(model_network_at(m, i));
    }
    for (size_t i = 0; i < a->n_items; i++) {
        struct record_key k = record_key_parse(a->items[i].key);
        const struct model_network *net = model_find_network(m, k.network);

        if (net && k.object && k.name[0] != '\0')
            watched_add_gone(net->watched, k.object, k.name, a->items[i].revision);
    }
    for (size_t i = 0; i < m->networks.n; i++) {
        struct watched_network *net = model_network_at(m, i)->watched;

        if (watched_sort(net) != 0)
            net->forgotten = store_revision(m->store);
        net->ready = net->serial;
    }
}

void watch_fill(struct watcher *w)
{
    struct err e = ERR_NULL;

    for (size_t i = 0; i < w->model->networks.n; i++)
        model_network_at(w->model, i)->watched->forgotten = store_revision(w->model->store);
    if (store_deleted(w->model->store, on_deleted, w->model, &e) != 0)
        log_info("all watches begin with a snapshot: %s", err_text(&e));
    store_wait(w->model->store);
}
