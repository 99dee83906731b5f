/*
 * apply.c - takes the store's records into the model: all at the start, then each change.
 *
 * The one place where the model changes; see model.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/content/body.h"
#include "api/server/stream.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "hub/model/model_internal.h"
#include "hub/record/record.h"
#include "mesh/keys/key_node.h"
#include "store/store.h"

/* ---- networks ------------------------------------------------------------------------------- */

/* Find the key that this hub has in the network, whose public half is @public. 0, or negative errno
 * with words, and the network has none. */
static int take_key(struct model_network *net, const struct x25519_public *public, struct err *e)
{
    const struct model_listener *l = &net->model->listener;
    const char *name = net->spec.meta.name;
    int r = l->network_key(l->ctx, name, public, &net->secret, e);

    net->has_key = r == 0;
    if (r == 0)
        net->public = *public;
    return r;
}

/* What @spec owns is taken. A network that another hub has made is without a key until this hub has
 * a node in it. */
static int add_network(
    struct model *m, struct network *spec, const struct network_maker *maker, struct err *e)
{
    struct model_network *net = model__new_network(m, spec);
    int r = 0;

    if (!net) {
        network_deinit(spec);
        return err_set(e, -ENOMEM, "no memory for network \"%s\"", spec->meta.name);
    }
    net->maker = *maker;
    if (strcmp(maker->name, m->self) == 0)
        r = take_key(net, &maker->key, e);
    if (r != 0) {
        model__remove_network(net);
        model_reap_network(net);
        return r;
    }
    m->listener.network_added(m->listener.ctx, net);
    return 0;
}

/* Does the value speak of the object that its key names? */
static int check_name(const struct object_meta *meta, const char *network, const char *name,
    const struct object_kind *kind, struct err *e)
{
    if (strcmp(meta->name, name) == 0 && strcmp(meta->network, network) == 0)
        return 0;
    return err_set(e, -EINVAL, "it holds the %s \"%s\" of network \"%s\"", kind->name, meta->name,
        meta->network);
}

static int put_network(
    struct model *m, const char *name, const struct store_item *item, struct err *e)
{
    struct network_maker maker;
    struct model_network *net;
    struct network spec;
    int r = record_network_decode(&spec, &maker, item->value, e);

    if (r != 0)
        return r;
    r = check_name(&spec.meta, "", name, &network_kind, e);
    if (r != 0) {
        network_deinit(&spec);
        return r;
    }
    spec.meta.resource_version = item->revision;
    net = model_find_network(m, spec.meta.name);
    if (!net)
        return add_network(m, &spec, &maker, e);
    network_deinit(&net->spec);
    net->spec = spec;
    net->watched->text = line_unref(net->watched->text);
    m->listener.network_changed(m->listener.ctx, net);
    return 0;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static int change_node(struct model_node *node, struct node *spec, struct err *e)
{
    const struct model_listener *l = &node->net->model->listener;
    struct node before = node->spec;
    int r = model__replace_node(node, spec);

    if (r == 0)
        l->node_changed(l->ctx, node, &before);
    else
        (void)err_set(e, r, "no memory for node \"%s\"", spec->meta.name);
    node_deinit(&before);
    return r;
}

/* A key or an address is one node's only, and the addresses are of one number. */
static int check_node(const struct model_network *net, const struct node *spec, struct err *e)
{
    const struct network *n = &net->spec;
    struct x25519_public other = {{0}};
    const struct model_node *owners[] = {model_find_key(net, &spec->key),
        model_find_address(net, &spec->address4), model_find_address(net, &spec->address6),
        key_node_other(spec, &other) ? model_find_key(net, &other) : NULL};
    uint32_t number = ipam_number(&n->cidr4, &spec->address4);
    struct ip_addr address6 = ipam_address(&n->cidr6, number);

    if (number == 0 || !ip_addr_equal(&spec->address6, &address6))
        return err_set(
            e, -EINVAL, "its addresses are none of a node of network \"%s\"", n->meta.name);
    for (size_t i = 0; i < sizeof(owners) / sizeof(*owners); i++)
        if (owners[i] && strcmp(owners[i]->spec.meta.name, spec->meta.name) != 0)
            return err_set(e, -EINVAL, "its key or its addresses are those of node \"%s\"",
                owners[i]->spec.meta.name);
    return 0;
}

/*
 * The node of this hub's name has come. If it has this hub's key, it is the hub's own, and with its
 * addresses. Else it is somebody else's: then the network is not served, and the words stay.
 */
static void take_self(struct model_network *net, struct model_node *node)
{
    const struct node *spec = &node->spec;

    net->has_key = false;
    /* A member could have enrolled under this name, even with a public key that it has seen. */
    if (!spec->hub)
        (void)err_set(&net->key_failure, -EEXIST, "it is no hub");
    else if (take_key(net, &spec->key, &net->key_failure) == 0) {
        net->own = node;
        net->address4 = spec->address4;
        net->address6 = spec->address6;
    }
    if (!net->has_key)
        secret_wipe(&net->secret, sizeof(net->secret));
}

static int put_node(struct model *m, struct model_network *net, const char *name,
    const struct store_item *item, struct err *e)
{
    struct token_hash token;
    struct model_node *node;
    struct node spec;
    int r = record_node_decode(&spec, &token, item->value, e);

    if (r != 0)
        return r;
    r = check_name(&spec.meta, net->spec.meta.name, name, &node_kind, e);
    if (r == 0)
        r = check_node(net, &spec, e);
    if (r != 0) {
        node_deinit(&spec);
        return r;
    }
    spec.meta.resource_version = item->revision;
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
    if (strcmp(name, m->self) == 0)
        take_self(net, node);
    m->listener.node_added(m->listener.ctx, node);
    return 0;
}

static void remove_node(struct model *m, struct model_node *node)
{
    model__remove_node(node);
    m->listener.node_removed(m->listener.ctx, node);
}

/* ---- edges ---------------------------------------------------------------------------------- */

/* @spec is taken. */
static int take_edge(
    struct model *m, struct model_network *net, struct mesh_edge *spec, struct err *e)
{
    struct model_edge *edge = model_find_edge(net, spec->nodes[0], spec->nodes[1]);
    enum edge_path before = EDGE_PATH_AUTO;

    if (edge) {
        before = edge->spec.path;
        mesh_edge_deinit(&edge->spec);
        edge->spec = *spec;
    } else if (model__add_edge(net, spec, &edge) != 0) {
        return err_set(e, -ENOMEM, "no memory for an edge");
    }
    m->listener.edge_changed(m->listener.ctx, edge, before);
    return 0;
}

/*
 * What was said about an edge is not known any more. It may have been that the two shall not talk,
 * so they do not. The hub is everybody's peer, whatever was said.
 */
static void put_damaged_edge(
    struct model *m, struct model_network *net, const char *name, uint64_t revision)
{
    struct mesh_edge spec = {.path = EDGE_PATH_OFF, .meta.resource_version = revision};
    char expected[OBJECT_NAME_MAX + 1];
    const char *middle = strstr(name, "--");
    struct err e = ERR_NULL;

    if (!middle || middle - name > NAME_MAX_LEN || strlen(middle + 2) > NAME_MAX_LEN)
        return;
    (void)snprintf(spec.meta.name, sizeof(spec.meta.name), "%s", name);
    memcpy(spec.meta.network, net->spec.meta.name, sizeof(spec.meta.network));
    memcpy(spec.nodes[0], name, (size_t)(middle - name));
    memcpy(spec.nodes[1], middle + 2, strlen(middle + 2) + 1);
    for (unsigned i = 0; i < 2; i++) {
        const struct model_node *node = model_find_node(net, spec.nodes[i]);

        if (node_check_name(spec.nodes[i], &e) != 0 || (node && node->spec.hub))
            return;
    }
    if (strcmp(edge_name(spec.nodes[0], spec.nodes[1], expected), name) == 0 &&
        take_edge(m, net, &spec, &e) != 0)
        m->listener.broken(m->listener.ctx, "", &e);
}

/* Take the edge out of the index and of its nodes' lists. Its ends still point to the nodes. */
static void unlink_edge(struct model_network *net, struct model_edge *edge)
{
    keys_remove(&net->edges, &edge->keyed);
    list_remove(&edge->change.link);
    for (unsigned i = 0; i < 2; i++)
        if (edge->ends[i].node)
            list_remove(&edge->ends[i].link);
}

static void delete_edge(struct model *m, struct model_network *net, const char *name)
{
    struct model_edge *edge = keys_find(&net->edges, name);
    enum edge_path before;

    if (!edge)
        return;
    before = edge->spec.path;
    unlink_edge(net, edge);
    edge->spec.path = EDGE_PATH_AUTO;
    m->listener.edge_changed(m->listener.ctx, edge, before);
    model__free_edge(edge);
}

/* ---- objects -------------------------------------------------------------------------------- */

static int put_object(struct model *m, struct model_network *net, const struct record_key *k,
    const struct store_item *item, struct err *e)
{
    struct object before;
    const struct object *now;
    struct object o;
    int r = record_object_decode(&o, k->object, item->value, e);

    if (r != 0)
        return r;
    r = check_name(&o.meta, net->spec.meta.name, k->name, k->object, e);
    if (r != 0) {
        object_deinit(&o);
        return r;
    }
    o.meta.resource_version = item->revision;
    if (k->kind == RECORD_EDGE)
        return take_edge(m, net, &o.edge, e);
    now = model__put_object(net, &o, &before);
    if (!now)
        return err_set(e, -ENOMEM, "no memory for an object");
    m->listener.object_changed(m->listener.ctx, net, before.kind ? &before : NULL, now);
    object_deinit(&before);
    return 0;
}

/* ---- the rest ------------------------------------------------------------------------------- */

static int put_ipam(struct model_network *net, const struct store_item *item, struct err *e)
{
    uint32_t high = 0;
    int r = record_ipam_decode(&net->ipam.next, &high, item->value, e);

    if (r != 0)
        return r;
    if (high > net->ipam.high)
        net->ipam.high = high;
    net->ipam.forgot = false;
    net->ipam_revision = item->revision;
    return 0;
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

/* ---- reports --------------------------------------------------------------------------------- */

/* For how long what a node has reported to this hub counts for more than what it has reported to
 * another one. */
#define HEARD_HERE_FOR 60 /* s */

void reported_count_edges(struct reported_node *r)
{
    const struct edge_parts *said = &r->heard.report.edges;
    const struct edge_parts *probed = &r->heard.probed;
    struct reported_counts c = {.alarms = 0};

    for (size_t i = 0; i < said->n; i++) {
        const struct edge_said *s = &said->items[i]->said;

        if (s->path < PATH_KIND_N)
            c.by_path[s->path]++;
        c.alarms += s->is_alarm;
        c.fallen += s->fell_at != 0;
        c.failing += s->error != NULL;
    }
    for (size_t i = 0; i < probed->n; i++)
        c.unreached += probed->items[i]->probed.tunnel == EDGE_REACH_SILENT;
    r->counts = c;
}

/* The record of a node that reports to this hub as well: @heard says no more than is known here. */
static bool is_heard_here(struct reported_node *r, const struct report_record *heard)
{
    if (r->heard_here_at == 0 || heard->last_seen_at - r->heard_here_at >= HEARD_HERE_FOR)
        return false;
    if (heard->last_seen_at > r->heard.last_seen_at)
        r->heard.last_seen_at = heard->last_seen_at;
    return true;
}

static int put_report(
    struct model_network *net, const char *name, const struct store_item *item, struct err *e)
{
    const struct model_listener *l = &net->model->listener;
    struct model_node *node = model_find_node(net, name);
    uint64_t boot = net->model->boot;
    struct report_record heard = {0};
    struct reported_node *known;
    int64_t written_at;
    bool is_other;
    int r;

    if (!node)
        return 0;
    known = node->reported;
    /* Of what this hub has written there is more in memory. Most records that come are such, so
     * they are not decoded. */
    if (known->reported_at != 0 && record_report_is_by(item->value, boot, &written_at)) {
        known->stored_at = written_at;
        known->stored_revision = item->revision;
        return 0;
    }
    r = record_report_decode(&heard, item->value, e);
    if (r != 0)
        return r;
    known->stored_at = heard.last_seen_at;
    known->stored_revision = item->revision;
    if (heard.by != boot)
        known->only_enrolled_at = 0;
    /* What is not saved yet is newer than what is. Of a node that this hub hears itself there is
     * more in memory. */
    if (known->is_unsaved || is_heard_here(known, &heard)) {
        report_record_deinit(&heard);
        return 0;
    }
    /* How a line is, is not stored. */
    heard.report.line = known->heard.report.line;
    is_other = report_is_seen_otherwise(&known->heard.report, &heard.report);
    known->heard.report.line = NULL;
    report_record_deinit(&known->heard);
    known->heard = heard;
    known->reported_at = heard.has_reported ? heard.last_seen_at : 0;
    reported_count_edges(known);
    for (unsigned o = 0; o < EDGE_OWNER_N; o++)
        known->said[o] = (struct edge_sequence){.run = 0};
    watched_node_changed(node->watched);
    if (is_other)
        l->status_changed(l->ctx, node);
    return 0;
}

static int apply_in_network(
    struct model *m, const struct record_key *k, const struct store_item *item, struct err *e)
{
    struct model_network *net = model_find_network(m, k->network);
    struct model_object *o;
    struct model_node *node;

    if (!net)
        return 0;
    switch (k->kind) {
    case RECORD_NODE:
        if (item->value)
            return put_node(m, net, k->name, item, e);
        node = model_find_node(net, k->name);
        if (node)
            remove_node(m, node);
        return 0;
    case RECORD_EDGE:
        if (item->value)
            return put_object(m, net, k, item, e);
        delete_edge(m, net, k->name);
        return 0;
    case RECORD_OBJECT:
        if (item->value)
            return put_object(m, net, k, item, e);
        o = model_find_object(net, k->object, k->name);
        if (o) {
            m->listener.object_changed(m->listener.ctx, net, &o->object, NULL);
            model__remove_object(net, o);
        }
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

/* Is the record whole, as far as that can be seen without its kind? */
static int check_item(const struct model *m, const struct store_item *item, struct err *e)
{
    json_t *json = NULL;
    int r;

    if (strlen(item->value) != item->value_len)
        return err_set(e, -EINVAL, "there is a zero byte in it");
    if (item->revision == 0 || item->revision > store_revision(m->store))
        return err_set(e, -EINVAL, "its revision is %llu, and the store's is %llu",
            (unsigned long long)item->revision, (unsigned long long)store_revision(m->store));
    if (seal_is_there(item->value))
        return seal_check(item->key, item->value, e);
    /* It has no sum, or has lost the end of it: is it JSON at all? A record whose network is not
     * there is not read any further than here. */
    r = body_parse(&json, item->value, item->value_len, e);
    json_decref(json);
    return r;
}

/* Of a record that cannot be understood: what has to be so for safety's sake. */
static void apply_damaged(struct model *m, const struct store_item *item)
{
    struct record_key k = record_key_parse(item->key);
    struct model_network *net = model_find_network(m, k.network);
    struct token_hash hash;
    struct model_token *t;

    if (k.kind == RECORD_EDGE && net)
        put_damaged_edge(m, net, k.name, item->revision);
    if (k.kind == RECORD_IPAM && net) {
        net->ipam.forgot = true;
        net->ipam_revision = item->revision;
    }
    if (k.kind == RECORD_TOKEN && hex_decode(k.name, hash.b, sizeof(hash.b))) {
        t = model_find_token(m, &hash);
        if (t)
            model__remove_token(m, t);
    }
}

static int apply(struct model *m, const struct store_item *item, struct err *e)
{
    struct record_key k = record_key_parse(item->key);
    bool has_name = k.kind != RECORD_NETWORK && k.kind != RECORD_IPAM;
    bool is_whole = k.kind != RECORD_NONE && has_name == (k.name[0] != '\0');
    const char *prefix = record_key_prefix(item->key);
    struct model_network *net;
    int r = 0;

    /* A key of no kind is another version's, or somebody else's, unless it starts as one of ours.
     */
    if (item->value && prefix && !is_whole)
        return err_set(e, -EINVAL, "its key has not the parts that follow \"%s\"", prefix);
    if (item->value && k.kind != RECORD_NONE)
        r = check_item(m, item, e);
    if (r != 0)
        return r;
    switch (k.kind) {
    case RECORD_NONE:
    case RECORD_N:
        return 0;
    case RECORD_NETWORK:
        if (item->value)
            return put_network(m, k.network, item, e);
        net = model_find_network(m, k.network);
        if (!net)
            return 0;
        /* Its nodes may still be there: those of its hubs go in the same commit, and a machine may
         * have joined by another hub when all others had gone. Whoever knows them is told of each.
         */
        net->leaving = MODEL_NETWORK_REMOVED;
        while (net->nodes.n > 0)
            remove_node(m, model_node_at(net, net->nodes.n - 1));
        model__remove_network(net);
        m->listener.network_removed(m->listener.ctx, net);
        return 0;
    case RECORD_TOKEN:
        return change_token(m, k.name, item, e);
    case RECORD_NODE:
    case RECORD_EDGE:
    case RECORD_OBJECT:
    case RECORD_IPAM:
    case RECORD_REPORT:
        break;
    }
    return apply_in_network(m, &k, item, e);
}

/* ---- from the store ------------------------------------------------------------------------- */

void model_set_aside(struct model *m, const char *key, uint64_t revision, const struct err *why)
{
    if (damaged_add(&m->damaged, key, revision, why))
        m->listener.broken(m->listener.ctx, key, why);
}

/* Take it in, or set it aside. 0, or -ENOMEM with words. */
static int take(struct model *m, const struct store_item *item, struct err *e)
{
    int r = apply(m, item, e);

    if (r == -ENOMEM)
        return err_prefix(e, "record \"%s\"", item->key);
    if (r == 0) {
        (void)damaged_remove(&m->damaged, item->key);
        return 0;
    }
    apply_damaged(m, item);
    model_set_aside(m, item->key, item->revision, e);
    return 0;
}

static void on_change(void *ctx, const struct store_item *item)
{
    struct model *m = ctx;
    struct err e = ERR_NULL;

    /* It cannot be: the watch began behind what the store had told. */
    if (!item)
        (void)err_set(&e, -ESTALE, "the hub fell behind its store; it has to be started again");
    else if (take(m, item, &e) == 0)
        return;
    m->listener.broken(m->listener.ctx, "", &e);
}

/* What a read of one kind at the start needs. */
struct load {
    struct model *m; /* borrowed */
    struct err *e;   /* borrowed */
};

static int load_item(void *ctx, const struct store_item *item)
{
    struct load *load = ctx;

    return take(load->m, item, load->e);
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
        r = store_now_list(m->store, record_prefix(order[i]), load_item, &load, NULL, e);
    for (unsigned i = 0; r == 0 && object_kinds[i]; i++)
        if (record_kind_of(object_kinds[i]) == RECORD_OBJECT)
            r = store_now_list(m->store, object_kinds[i]->prefix, load_item, &load, NULL, e);
    return r;
}
