/*
 * apply.c - takes the store's records into the model: all at the start, then each change.
 *
 * The one place where the model changes; see model.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/stream.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "hub/model_internal.h"

/* Leases that end in one commit. */
#define EXPIRE_MAX 256

/* ---- networks ------------------------------------------------------------------------------- */

static int add_network(
    struct model *m, const struct network *spec, const struct x25519_public *hub_key, struct err *e)
{
    struct x25519_secret secret;
    struct model_network *net;
    int r = m->listener.network_key(m->listener.ctx, spec->meta.name, hub_key, &secret, e);

    if (r != 0)
        return r;
    net = model__new_network(m, spec);
    if (!net) {
        r = err_set(e, -ENOMEM, "no memory for network \"%s\"", spec->meta.name);
    } else {
        net->pub.secret = secret;
        net->pub.public = *hub_key;
        m->listener.network_added(m->listener.ctx, net);
    }
    secret_wipe(&secret, sizeof(secret));
    return r;
}

static int put_network(struct model *m, const struct store_item *item, struct err *e)
{
    struct x25519_public hub_key;
    struct model_network *net;
    struct network spec;
    int r = record_network_decode(&spec, &hub_key, item->value, e);

    if (r != 0)
        return r;
    spec.meta.resource_version = item->revision;
    net = model_find_network(m, spec.meta.name);
    if (!net)
        return add_network(m, &spec, &hub_key, e);
    net->pub.spec = spec;
    net->self = line_unref(net->self);
    m->listener.network_changed(m->listener.ctx, net);
    return 0;
}

static void delete_network(struct model *m, const char *name)
{
    struct model_network *net = model_find_network(m, name);

    if (!net)
        return;
    model__remove_network(net);
    m->listener.network_removed(m->listener.ctx, net);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static int change_node(struct model_node *node, struct node *spec, struct err *e)
{
    const struct model_listener *l = &node->net->model->listener;
    struct node before = node->pub.spec;
    int r = model__replace_node(node, spec);

    if (r == 0)
        l->node_changed(l->ctx, node, &before);
    else
        (void)err_set(e, r, "no memory for node \"%s\"", spec->meta.name);
    node_deinit(&before);
    return r;
}

static int put_node(
    struct model *m, struct model_network *net, const struct store_item *item, struct err *e)
{
    struct token_hash token;
    struct model_node *node;
    struct node spec;
    int r = record_node_decode(&spec, &token, item->value, e);

    if (r != 0)
        return r;
    spec.meta.resource_version = item->revision;
    net->everybody = line_unref(net->everybody);
    node = model_find_node(net, spec.meta.name);
    if (node) {
        node->token = token;
        return change_node(node, &spec, e);
    }
    r = model__add_node(net, &spec, &token, &node);
    if (r != 0)
        return err_set(e, r, "no memory for a node");
    /* An edge may have been read before its nodes. */
    for (size_t i = 0; i < net->edges.n; i++)
        model__link_edge(net, model_edge_at(net, i));
    m->listener.node_added(m->listener.ctx, node);
    return 0;
}

static void delete_node(struct model *m, struct model_network *net, const char *name)
{
    struct model_node *node = model_find_node(net, name);

    if (!node)
        return;
    net->everybody = line_unref(net->everybody);
    model__remove_node(node);
    m->listener.node_removed(m->listener.ctx, node);
}

/* ---- edges ---------------------------------------------------------------------------------- */

static int put_edge(
    struct model *m, struct model_network *net, const struct store_item *item, struct err *e)
{
    enum edge_path before = EDGE_PATH_AUTO;
    struct model_edge *edge;
    struct mesh_edge spec;
    int r = record_edge_decode(&spec, item->value, e);

    if (r != 0)
        return r;
    spec.meta.resource_version = item->revision;
    edge = model_find_edge(net, spec.nodes[0], spec.nodes[1]);
    if (edge) {
        before = edge->spec.path;
        mesh_edge_deinit(&edge->spec);
        edge->spec = spec;
    } else {
        r = model__add_edge(net, &spec, &edge);
        if (r != 0)
            return err_set(e, r, "no memory for an edge");
    }
    m->listener.edge_changed(m->listener.ctx, edge, before);
    return 0;
}

static void delete_edge(struct model *m, struct model_network *net, const char *name)
{
    struct keyed *k = keys_find(&net->edges, name);
    struct model_edge *edge;
    enum edge_path before;

    if (!k)
        return;
    edge = container_of(k, struct model_edge, keyed);
    before = edge->spec.path;
    model__unlink_edge(net, edge);
    edge->spec.path = EDGE_PATH_AUTO;
    m->listener.edge_changed(m->listener.ctx, edge, before);
    model__free_edge(edge);
}

/* ---- the rest ------------------------------------------------------------------------------- */

static int put_ipam(struct model_network *net, const struct store_item *item, struct err *e)
{
    int r = record_ipam_decode(&net->ipam.next, item->value, e);

    if (r == 0)
        net->ipam_revision = item->revision;
    return r;
}

static int change_token(
    struct model *m, const char *hex, const struct store_item *item, struct err *e)
{
    struct token_record record;
    struct token_hash hash;
    struct model_token *t;
    int r;

    if (!hex_decode(hex, hash.b, sizeof(hash.b)))
        return err_set(e, -EINVAL, "the key is not the hex of 32 bytes");
    if (!item->value) {
        t = model_find_token(m, &hash);
        if (t)
            model__remove_token(m, t);
        return 0;
    }
    r = record_token_decode(&record, item->value, e);
    return r == 0 ? model__put_token(m, &hash, &record, item->revision) : r;
}

static int put_report(
    struct model_network *net, const char *name, const struct store_item *item, struct err *e)
{
    struct model_node *node = model_find_node(net, name);
    struct report_record heard = {0};
    int r;

    /* What is not saved yet is newer than what is. */
    if (!node || node->is_unsaved)
        return 0;
    r = record_report_decode(&heard, item->value, e);
    if (r != 0)
        return r;
    report_deinit(&node->heard.report);
    node->heard = heard;
    node->text = line_unref(node->text);
    net->everybody = line_unref(net->everybody);
    return 0;
}

static int apply_in_network(
    struct model *m, const struct record_key *k, const struct store_item *item, struct err *e)
{
    struct model_network *net = model_find_network(m, k->network);

    if (!net)
        return 0;
    switch (k->kind) {
    case RECORD_NODE:
        if (item->value)
            return put_node(m, net, item, e);
        delete_node(m, net, k->name);
        return 0;
    case RECORD_EDGE:
        if (item->value)
            return put_edge(m, net, item, e);
        delete_edge(m, net, k->name);
        return 0;
    case RECORD_IPAM:
        return item->value ? put_ipam(net, item, e) : 0;
    case RECORD_REPORT:
        return item->value ? put_report(net, k->name, item, e) : 0;
    case RECORD_NONE:
    case RECORD_NETWORK:
    case RECORD_TOKEN:
    case RECORD_N:
        break;
    }
    return 0;
}

static int apply(struct model *m, const struct store_item *item, struct err *e)
{
    struct record_key k = record_key_parse(item->key);

    switch (k.kind) {
    case RECORD_NONE:
    case RECORD_N:
        return 0;
    case RECORD_NETWORK:
        if (item->value)
            return put_network(m, item, e);
        delete_network(m, k.network);
        return 0;
    case RECORD_TOKEN:
        return change_token(m, k.name, item, e);
    case RECORD_NODE:
    case RECORD_EDGE:
    case RECORD_IPAM:
    case RECORD_REPORT:
        break;
    }
    return apply_in_network(m, &k, item, e);
}

/* ---- from the store ------------------------------------------------------------------------- */

static void on_change(void *ctx, const struct store_item *item)
{
    struct model *m = ctx;
    struct err e = ERR_NULL;

    if (!item)
        (void)err_set(&e, -ESTALE, "the hub fell behind its store; it has to be started again");
    else if (apply(m, item, &e) == 0)
        return;
    m->listener.broken(m->listener.ctx, item ? item->key : "", &e);
}

/* What a read of one kind at the start needs. */
struct load {
    struct model *m; /* borrowed */
    struct err *e;   /* borrowed */
};

static int load_item(void *ctx, const struct store_item *item)
{
    struct load *load = ctx;
    int r = apply(load->m, item, load->e);

    return r == 0 ? 0 : err_prefix(load->e, "record \"%s\"", item->key);
}

int model_load(struct model *m, struct err *e)
{
    /* What others refer to comes first. Hence not one list of everything: the store's order is
     * that of the keys. */
    static const enum record_kind order[] = {
        RECORD_NETWORK, RECORD_IPAM, RECORD_NODE, RECORD_EDGE, RECORD_TOKEN, RECORD_REPORT};
    uint64_t from = store_revision(m->store) + 1;
    struct load load = {.m = m, .e = e};
    int r = store_watch(m->store, "", from, on_change, m, &m->watch, e);

    for (size_t i = 0; r == 0 && i < sizeof(order) / sizeof(*order); i++)
        r = store_list(m->store, record_prefix(order[i]), load_item, &load, NULL, e);
    return r;
}

int model_sync(struct model *m, struct err *e)
{
    return store_poll(m->store, e);
}

int model_commit(struct model *m, const struct store_op *ops, size_t n_ops, nsec_t now,
    size_t *ret_failed, struct err *e)
{
    struct err sync = ERR_NULL;
    int r = store_commit(m->store, ops, n_ops, now, NULL, ret_failed, e);

    if (r == 0 && model_sync(m, &sync) != 0)
        m->listener.broken(m->listener.ctx, "", &sync);
    return r;
}

int model_expire(struct model *m, nsec_t now, struct err *e)
{
    const char *ended[EXPIRE_MAX];
    struct store_op ops[EXPIRE_MAX];
    size_t n;
    int r = 0;

    while (r == 0 && (n = store_ended(m->store, now, ended, EXPIRE_MAX)) > 0) {
        for (size_t i = 0; i < n; i++)
            ops[i] = (struct store_op){
                .kind = STORE_OP_DELETE, .key = ended[i], .expect = STORE_EXPECT_ANY};
        r = model_commit(m, ops, n, now, NULL, e);
    }
    return r;
}
