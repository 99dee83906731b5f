/* model.c - the structs and their indexes; see model.h. What the store says goes through apply.c.
 */
#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "base/text.h"
#include "hub/model/key_course.h"
#include "hub/model/model_internal.h"
#include "mesh/keys/key_node.h"

/* Others have a node and a network const; see model.h. */
static struct model_node *writable(const struct model_node *node)
{
    return (struct model_node *)node;
}

static struct model_network *writable_network(const struct model_network *net)
{
    return (struct model_network *)net;
}

/* ---- lookups -------------------------------------------------------------------------------- */

struct model_network *model_find_network(const struct model *m, const char *name)
{
    return keys_find(&m->networks, name);
}

struct model_node *model_find_node(const struct model_network *net, const char *name)
{
    return net ? keys_find(&net->nodes, name) : NULL;
}

struct model_node *model_find_key(const struct model_network *net, const struct x25519_public *key)
{
    uint64_t hash = hash_bytes(net->model->seed, key->b, sizeof(key->b));

    for (struct htab_link *l = htab_first(&net->by_key, hash); l; l = htab_next(l, hash)) {
        struct model_key *k = container_of(l, struct model_key, link);

        if (x25519_public_equal(&k->key, key))
            return writable(k->node);
    }
    return NULL;
}

struct model_node *model_find_address(
    const struct model_network *net, const struct ip_addr *address)
{
    uint64_t hash = hash_bytes(net->model->seed, address->b, sizeof(address->b));

    for (struct htab_link *l = htab_first(&net->by_address, hash); l; l = htab_next(l, hash)) {
        struct model_address *a = container_of(l, struct model_address, link);

        if (ip_addr_equal(&a->address, address))
            return writable(a->node);
    }
    return NULL;
}

struct model_edge *model_find_edge(const struct model_network *net, const char *a, const char *b)
{
    char name[OBJECT_NAME_MAX + 1];

    return keys_find(&net->edges, edge_name(a, b, name));
}

/* The key of an object in the index of its network. */
static const char *object_key(
    char buf[static RECORD_KEY_MAX], const struct object_kind *kind, const char *name)
{
    (void)snprintf(buf, RECORD_KEY_MAX, "%s%s", kind->prefix, name);
    return buf;
}

struct model_object *model_find_object(
    const struct model_network *net, const struct object_kind *kind, const char *name)
{
    char key[RECORD_KEY_MAX];

    return keys_find(&net->objects, object_key(key, kind, name));
}

const struct object *model_each_object(
    const struct model_network *net, const struct object_kind *kind, size_t *i)
{
    const struct object *o;

    if (*i == 0)
        *i = keys_lower(&net->objects, kind->prefix);
    if (*i >= net->objects.n)
        return NULL;
    o = &container_of(net->objects.items[*i], struct model_object, keyed)->object;
    ++*i;
    return o->kind == kind ? o : NULL;
}

struct model_token *model_find_token(const struct model *m, const struct token_hash *hash)
{
    uint64_t h = hash_bytes(m->seed, hash->b, sizeof(hash->b));

    for (struct htab_link *l = htab_first(&m->tokens, h); l; l = htab_next(l, h)) {
        struct model_token *t = container_of(l, struct model_token, link);

        if (secret_equal(t->hash.b, hash->b, sizeof(hash->b)))
            return t;
    }
    return NULL;
}

bool model_is_damaged(
    const struct model *m, enum record_kind kind, const char *network, const char *name)
{
    char key[RECORD_KEY_MAX];

    return damaged_find(&m->damaged, record_key(key, kind, network, name)) != NULL;
}

/* The revision of a record that belongs to a network; 0: there is none. */
static uint64_t revision_in(const struct model_network *net, const struct record_key *k)
{
    const struct model_node *node = k->kind == RECORD_NODE ? model_find_node(net, k->name) : NULL;
    const struct model_edge *edge = k->kind == RECORD_EDGE ? keys_find(&net->edges, k->name) : NULL;
    const struct model_object *o =
        k->kind == RECORD_OBJECT ? model_find_object(net, k->object, k->name) : NULL;

    if (k->kind == RECORD_NETWORK)
        return net->spec.meta.resource_version;
    if (node)
        return node->spec.meta.resource_version;
    if (o)
        return o->object.meta.resource_version;
    return edge ? edge->spec.meta.resource_version : 0;
}

uint64_t model_revision(const struct model *m, const char *key)
{
    struct record_key k = record_key_parse(key);
    const struct model_network *net = model_find_network(m, k.network);
    const struct damaged_record *damaged = damaged_find(&m->damaged, key);
    const struct model_token *t = NULL;
    struct token_hash hash;

    if (damaged)
        return damaged->revision;
    if (k.kind == RECORD_TOKEN && hex_decode(k.name, hash.b, sizeof(hash.b)))
        t = model_find_token(m, &hash);
    if (t)
        return t->revision;
    return net ? revision_in(net, &k) : 0;
}

bool model_is_wary(const struct model_network *net)
{
    char prefix[RECORD_KEY_MAX];

    (void)snprintf(
        prefix, sizeof(prefix), "%s%s/", record_prefix(RECORD_NODE), net->spec.meta.name);
    return damaged_find_below(&net->model->damaged, prefix) != NULL;
}

uint32_t model_next_number(const struct model_network *net)
{
    return ipam_next(&net->ipam, model_is_wary(net));
}

uint32_t model_hold_number(const struct model_network *net, uint32_t number)
{
    struct ipam *ipam = &writable_network(net)->ipam;
    uint32_t cursor = ipam->next;

    (void)ipam_take(ipam, number);
    ipam->next = number + 1;
    return cursor;
}

void model_give_number(const struct model_network *net, uint32_t number, uint32_t cursor)
{
    struct ipam *ipam = &writable_network(net)->ipam;

    (void)ipam_release(ipam, number);
    ipam->next = cursor;
}

bool model_may_talk(const struct model_node *a, const struct model_node *b)
{
    const struct model_edge *edge;

    /* Most networks have no objects about edges at all, and the relay asks often. */
    if (a->net->edges.n == 0)
        return true;
    edge = model_find_edge(a->net, a->spec.meta.name, b->spec.meta.name);
    return !edge || edge->spec.path != EDGE_PATH_OFF;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static int index_address(struct model_node *node, unsigned i, const struct ip_addr *address)
{
    struct model_network *net = writable_network(node->net);
    struct model_address *a = &node->by_address[i];

    a->node = node;
    a->address = *address;
    return htab_add(
        &net->by_address, &a->link, hash_bytes(net->model->seed, address->b, sizeof(address->b)));
}

static int index_key(struct model_node *node, unsigned i, const struct x25519_public *key)
{
    struct model_network *net = writable_network(node->net);
    struct model_key *k = &node->by_key[i];

    k->node = node;
    k->key = *key;
    return htab_add(&net->by_key, &k->link, hash_bytes(net->model->seed, key->b, sizeof(key->b)));
}

static void unindex_keys(struct model_node *node)
{
    for (unsigned i = 0; i < 2; i++) {
        struct model_key *k = &node->by_key[i];

        if (!x25519_public_is_none(&k->key))
            htab_remove(&writable_network(node->net)->by_key, &k->link);
        k->key = (struct x25519_public){{0}};
    }
}

static int index_node(struct model_node *node)
{
    struct model_network *net = writable_network(node->net);
    const struct node *spec = &node->spec;
    int r = keys_add(&net->nodes, &node->keyed);
    struct x25519_public other;

    if (r == 0)
        r = index_key(node, 0, &spec->key);
    if (r == 0 && key_node_other(spec, &other))
        r = index_key(node, 1, &other);
    if (r == 0)
        r = index_address(node, 0, &spec->address4);
    if (r == 0)
        r = index_address(node, 1, &spec->address6);
    if (r == 0)
        r = ipam_take(&net->ipam, ipam_number(&net->spec.cidr4, &spec->address4));
    if (spec->hub)
        list_add_tail(&net->hubs, &node->of_hubs);
    return r;
}

static void unindex_node(struct model_node *node)
{
    struct model_network *net = writable_network(node->net);

    keys_remove(&net->nodes, &node->keyed);
    unindex_keys(node);
    for (unsigned i = 0; i < 2; i++)
        htab_remove(&net->by_address, &node->by_address[i].link);
    /* Without memory the number stays taken until the next start, which harms nobody. */
    (void)ipam_release(&net->ipam, ipam_number(&net->spec.cidr4, &node->spec.address4));
    list_remove(&node->of_hubs);
}

/* A node and what others keep of it, in one piece of memory: made and gone together. */
struct whole_node {
    struct model_node node;
    struct watched_node watched;
    struct reported_node reported;
    struct served_node served;
    struct proof_state proof;
};

static struct model_node *node_new(void)
{
    struct whole_node *whole = calloc(1, sizeof(*whole));

    if (!whole)
        return NULL;
    whole->node = (struct model_node){.watched = &whole->watched,
        .reported = &whole->reported,
        .served = &whole->served,
        .proof = &whole->proof};
    whole->reported =
        (struct reported_node){.node = &whole->node, .heard.probed.owner = EDGE_OWNER_PROBE};
    list_init(&whole->reported.unsaved);
    watched_node_init(&whole->watched, &whole->node);
    list_init(&whole->served.streams);
    list_init(&whole->node.of_hubs);
    list_init(&whole->node.edges);
    list_init(&whole->node.reap);
    return &whole->node;
}

void model_reap(const struct model_node *removed)
{
    struct model_node *node = writable(removed);

    node_deinit(&node->spec);
    report_record_deinit(&node->reported->heard);
    findings_deinit(&node->reported->own);
    free(node->reported->access);
    free(node->reported->fitness);
    node->served->key_course = key_course_free(node->served->key_course);
    list_remove(&node->reported->unsaved);
    list_remove(&node->reap);
    watched_node_deinit(node->watched);
    free(node->keyed.key);
    secret_wipe(node->proof, sizeof(*node->proof));
    free(container_of(node, struct whole_node, node));
}

int model__add_node(struct model_network *net, struct node *spec, const struct token_hash *token,
    struct model_node **ret)
{
    struct model_node *node = node_new();
    int r = -ENOMEM;

    if (!node) {
        node_deinit(spec);
        return r;
    }
    node->spec = *spec;
    node->net = net;
    node->token = *token;
    node->keyed.key = strdup(node->spec.meta.name);
    if (node->keyed.key)
        r = index_node(node);
    if (r == 0)
        r = watched_node_add(net->watched, node->watched);
    if (r == 0)
        *ret = node;
    /* Without memory for one index others may have it already, so it is not freed. Then the load
     * fails, or the listener hears that a change could not be taken in. */
    return r;
}

int model__replace_node(struct model_node *node, struct node *spec)
{
    unindex_node(node);
    node->spec = *spec;
    watched_node_changed(node->watched);
    return index_node(node);
}

void model__remove_node(struct model_node *node)
{
    struct model_network *net = writable_network(node->net);
    struct model_edge_end *end;
    struct model_edge_end *tmp;

    unindex_node(node);
    watched_node_remove(node->watched);
    list_foreach_safe(end, tmp, &node->edges, link) {
        list_remove(&end->link);
        end->node = NULL;
    }
    list_remove(&node->reported->unsaved);
    list_add_tail(&net->removed, &node->reap);
    node->is_removed = true;
    if (net->own == node)
        net->own = NULL;
}

/* ---- edges ---------------------------------------------------------------------------------- */

void model__link_edge(struct model_network *net, struct model_edge *edge)
{
    for (unsigned i = 0; i < 2; i++) {
        struct model_edge_end *end = &edge->ends[i];
        struct model_node *node;

        if (end->node)
            continue;
        node = model_find_node(net, edge->spec.nodes[i]);
        end->edge = edge;
        end->node = node;
        list_init(&end->link);
        if (node)
            list_add_tail(&node->edges, &end->link);
    }
}

int model__add_edge(struct model_network *net, struct mesh_edge *spec, struct model_edge **ret)
{
    *ret = keys_open(&net->edges, spec->meta.name, sizeof(**ret));
    if (!*ret) {
        mesh_edge_deinit(spec);
        return -ENOMEM;
    }
    (*ret)->net = net;
    (*ret)->spec = *spec;
    list_init(&(*ret)->change.link);
    model__link_edge(net, *ret);
    return 0;
}

void model__free_edge(struct model_edge *edge)
{
    list_remove(&edge->change.link);
    mesh_edge_deinit(&edge->spec);
    free(edge->keyed.key);
    free(edge);
}

/* ---- objects of other kinds ----------------------------------------------------------------- */

const struct object *model__put_object(
    struct model_network *net, struct object *o, struct object *ret_before)
{
    char key[RECORD_KEY_MAX];
    size_t n = net->objects.n;
    struct model_object *held =
        keys_open(&net->objects, object_key(key, o->kind, o->meta.name), sizeof(*held));

    if (!held) {
        object_deinit(o);
        return NULL;
    }
    if (net->objects.n > n)
        list_init(&held->change.link);
    *ret_before = held->object;
    held->object = *o;
    return &held->object;
}

void model__remove_object(struct model_network *net, struct model_object *o)
{
    list_remove(&o->change.link);
    object_deinit(&o->object);
    keys_free(&net->objects, &o->keyed);
}

/* ---- networks ------------------------------------------------------------------------------- */

/* As for a node. */
struct whole_network {
    struct model_network net;
    struct watched_network watched;
    struct served_network served;
    uint64_t sent_bytes[PATH_KIND_N];
};

struct model_network *model__new_network(struct model *m, const struct network *spec)
{
    struct whole_network *whole = calloc(1, sizeof(*whole));
    struct model_network *net;

    if (!whole)
        return NULL;
    net = &whole->net;
    net->watched = &whole->watched;
    net->served = &whole->served;
    net->sent_bytes = whole->sent_bytes;
    net->keyed.key = strdup(spec->meta.name);
    if (!net->keyed.key || keys_add(&m->networks, &net->keyed) != 0) {
        free(net->keyed.key);
        free(whole);
        return NULL;
    }
    net->model = m;
    net->spec = *spec;
    net->address4 = ipam_address(&spec->cidr4, IPAM_HUB);
    net->address6 = ipam_address(&spec->cidr6, IPAM_HUB);
    htab_init(&net->by_key, m->seed);
    htab_init(&net->by_address, m->seed);
    ipam_init(&net->ipam, ipam_capacity(&spec->cidr4, &spec->cidr6));
    list_init(&net->hubs);
    watched_network_init(net->watched, store_revision(m->store));
    list_init(&net->removed);
    list_init(&net->reap);
    return net;
}

static void free_members(struct model_network *net)
{
    struct model_node *node;
    struct model_node *tmp;

    for (size_t i = 0; i < net->edges.n; i++)
        model__free_edge(model_edge_at(net, i));
    while (net->objects.n > 0)
        model__remove_object(
            net, container_of(net->objects.items[net->objects.n - 1], struct model_object, keyed));
    for (size_t i = 0; i < net->nodes.n; i++)
        model_reap(model_node_at(net, i));
    list_foreach_safe(node, tmp, &net->removed, reap)
        model_reap(node);
}

void model__remove_network(struct model_network *net)
{
    keys_remove(&net->model->networks, &net->keyed);
    list_add_tail(&net->model->removed, &net->reap);
}

void model_count_given_back(const struct model_token *t)
{
    ((struct model_token *)t)->n_given_back++;
}

void model_set_network_leaving(const struct model_network *net, const char *why)
{
    writable_network(net)->leaving = why;
}

void model_retire(const struct model_network *net)
{
    writable_network(net)->is_retired = true;
    writable_network(net)->has_key = false;
}

void model_reap_network(const struct model_network *removed)
{
    struct model_network *net = writable_network(removed);

    list_remove(&net->reap);
    free_members(net);
    keys_deinit(&net->nodes);
    keys_deinit(&net->edges);
    keys_deinit(&net->objects);
    htab_deinit(&net->by_key);
    htab_deinit(&net->by_address);
    ipam_deinit(&net->ipam);
    watched_network_deinit(net->watched);
    network_deinit(&net->spec);
    secret_wipe(&net->secret, sizeof(net->secret));
    free(net->keyed.key);
    free(container_of(net, struct whole_network, net));
}

/* ---- tokens --------------------------------------------------------------------------------- */

/* The network that a token is for; NULL: it is gone, and another one may have its name. */
static struct model_network *network_of(const struct model *m, const struct token_record *record)
{
    struct model_network *net = model_find_network(m, record->network);

    return net && x25519_public_equal(&net->maker.key, &record->hub_key) ? net : NULL;
}

int model__put_token(struct model *m, const struct token_hash *hash,
    const struct token_record *record, uint64_t revision)
{
    struct model_token *t = model_find_token(m, hash);
    struct model_network *net;

    if (!t) {
        t = calloc(1, sizeof(*t));
        if (!t)
            return -ENOMEM;
        t->hash = *hash;
        if (htab_add(&m->tokens, &t->link, hash_bytes(m->seed, hash->b, sizeof(hash->b))) != 0) {
            free(t);
            return -ENOMEM;
        }
        net = network_of(m, record);
        if (net)
            net->n_tokens++;
    }
    t->record = *record;
    t->revision = revision;
    return 0;
}

void model__remove_token(struct model *m, struct model_token *t)
{
    struct model_network *net = network_of(m, &t->record);

    if (net && net->n_tokens > 0)
        net->n_tokens--;
    htab_remove(&m->tokens, &t->link);
    free(t);
}

/* ---- all of it ------------------------------------------------------------------------------ */

void model_init(
    struct model *m, struct store *store, const struct model_listener *listener, uint64_t seed)
{
    *m = (struct model){
        .self = HUB_NAME_DEFAULT, .store = store, .listener = *listener, .seed = seed};
    htab_init(&m->tokens, seed);
    list_init(&m->removed);
}

void model_deinit(struct model *m)
{
    struct model_network *net;
    struct model_network *tmp;
    struct htab_link *next;
    size_t cursor = 0;

    m->watch = store_watch_close(m->watch);
    while (m->networks.n > 0)
        model__remove_network(model_network_at(m, m->networks.n - 1));
    list_foreach_safe(net, tmp, &m->removed, reap)
        model_reap_network(net);
    keys_deinit(&m->networks);
    for (struct htab_link *l = htab_each(&m->tokens, &cursor, NULL); l; l = next) {
        next = htab_each(&m->tokens, &cursor, l);
        model__remove_token(m, container_of(l, struct model_token, link));
    }
    htab_deinit(&m->tokens);
    keys_free_all(&m->damaged);
}

/* ---- records that are set aside -------------------------------------------------------------- */

bool damaged_add(struct keys *damaged, const char *key, uint64_t revision, const struct err *why)
{
    size_t n = damaged->n;
    struct damaged_record *record = keys_open(damaged, key, sizeof(*record));

    if (record) {
        record->why = *why;
        record->revision = revision;
    }
    return !record || damaged->n > n;
}

bool damaged_remove(struct keys *damaged, const char *key)
{
    struct keyed *k = keys_find(damaged, key);

    if (k)
        keys_free(damaged, k);
    return k;
}

const struct damaged_record *damaged_find(const struct keys *damaged, const char *key)
{
    return keys_find(damaged, key);
}

const struct damaged_record *damaged_find_below(const struct keys *damaged, const char *prefix)
{
    size_t i = keys_lower(damaged, prefix);

    if (i == damaged->n || strncmp(damaged->items[i]->key, prefix, strlen(prefix)) != 0)
        return NULL;
    return container_of(damaged->items[i], struct damaged_record, keyed);
}
