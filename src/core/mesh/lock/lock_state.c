/* lock_state.c - see lock_state.h. */
#include "mesh/lock/lock_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"

/* A block of addresses, and whose it is. */
struct lock_route {
    struct ip_prefix block;
    const struct lock_node *node; /* pins */
};

/* ---- sorted arrays of pointers -------------------------------------------------------------- */

/* Each compares *(ITEM **)item with what is wanted. */

static int by_name(const void *item, const void *name)
{
    return strcmp((*(struct lock_node *const *)item)->node.meta.name, name);
}

static int by_key(const void *item, const void *key)
{
    return x25519_public_compare(&(*(struct lock_node *const *)item)->node.key, key);
}

static int by_address4(const void *item, const void *address)
{
    return memcmp(
        &(*(struct lock_node *const *)item)->node.address4, address, sizeof(struct ip_addr));
}

static int by_address6(const void *item, const void *address)
{
    return memcmp(
        &(*(struct lock_node *const *)item)->node.address6, address, sizeof(struct ip_addr));
}

/* One family behind the other: an IPv6 block could have all of IPv4 inside where mapped. */
static int by_block(const void *item, const void *wanted)
{
    const struct ip_prefix *a = &(*(struct lock_route *const *)item)->block;
    const struct ip_prefix *b = wanted;
    bool a4 = ip_addr_is_v4(&a->addr);

    if (a4 != ip_addr_is_v4(&b->addr))
        return a4 ? -1 : 1;
    return memcmp(&a->addr, &b->addr, sizeof(a->addr));
}

static int by_edge(const void *item, const void *name)
{
    return strcmp((*(struct mesh_edge *const *)item)->meta.name, name);
}

static int by_rule(const void *item, const void *name)
{
    return strcmp((*(struct object *const *)item)->meta.name, name);
}

static int by_token(const void *item, const void *key)
{
    return ed25519_public_compare(&(*(struct lock_token *const *)item)->key, key);
}

static int by_public(const void *item, const void *key)
{
    return x25519_public_compare(*(struct x25519_public *const *)item, key);
}

static size_t place_of(
    const struct lock_list *l, sorted_compare_fn compare, const void *wanted, bool *ret_found)
{
    return sorted_place(l->items, l->n, sizeof(*l->items), compare, wanted, ret_found);
}

static void *find_item(const struct lock_list *l, sorted_compare_fn compare, const void *wanted)
{
    bool found;
    size_t at = place_of(l, compare, wanted, &found);

    return found ? l->items[at] : NULL;
}

/* @item is none that is there. False: no memory. */
static bool add_item(struct lock_list *l, sorted_compare_fn compare, const void *wanted, void *item)
{
    bool found;
    size_t at = place_of(l, compare, wanted, &found);
    void **items = item ? sorted_open(l->items, l->n, sizeof(*items), at, &l->cap) : NULL;

    if (!items)
        return false;
    l->items = items;
    items[at] = item;
    l->n++;
    return true;
}

/* Gives the item; NULL: there was none. */
static void *take_item(struct lock_list *l, sorted_compare_fn compare, const void *wanted)
{
    bool found;
    size_t at = place_of(l, compare, wanted, &found);
    void *item = found ? l->items[at] : NULL;

    if (!found)
        return NULL;
    l->n--;
    memmove(&l->items[at], &l->items[at + 1], (l->n - at) * sizeof(*l->items));
    return item;
}

static void release_items(struct lock_list *l, void (*release)(void *item))
{
    for (size_t i = 0; release && i < l->n; i++)
        release(l->items[i]);
    free(l->items);
    *l = (struct lock_list){.n = 0};
}

static void free_node(void *item)
{
    struct lock_node *node = item;

    node_deinit(&node->node);
    free(node);
}

static void free_rule(void *item)
{
    object_deinit(item);
    free(item);
}

static void free_token(void *item)
{
    struct lock_token *token = item;

    free(token->labels);
    free(token);
}

void lock_state_deinit(struct lock_state *s)
{
    release_items(&s->by_key, NULL);
    release_items(&s->by_address4, NULL);
    release_items(&s->by_address6, NULL);
    release_items(&s->routes, free);
    release_items(&s->nodes, free_node);
    release_items(&s->edges, free);
    release_items(&s->rules, free_rule);
    release_items(&s->tokens, free_token);
    release_items(&s->revoked, free);
    release_items(&s->joined, free);
    *s = (struct lock_state)LOCK_STATE_NULL;
}

/* ---- lookups -------------------------------------------------------------------------------- */

const struct lock_node *lock_state_node(const struct lock_state *s, const char *name)
{
    return find_item(&s->nodes, by_name, name);
}

const struct lock_node *lock_state_node_of(
    const struct lock_state *s, const struct x25519_public *key)
{
    return find_item(&s->by_key, by_key, key);
}

const struct mesh_edge *lock_state_edge(const struct lock_state *s, const char *a, const char *b)
{
    char name[OBJECT_NAME_MAX + 1];

    return find_item(&s->edges, by_edge, edge_name(a, b, name));
}

const struct object *lock_state_rule(const struct lock_state *s, const char *name)
{
    return find_item(&s->rules, by_rule, name);
}

const struct lock_token *lock_state_token(
    const struct lock_state *s, const struct ed25519_public *key)
{
    return find_item(&s->tokens, by_token, key);
}

bool lock_state_is_revoked(const struct lock_state *s, const struct x25519_public *key)
{
    return find_item(&s->revoked, by_public, key) != NULL;
}

/* ---- checks --------------------------------------------------------------------------------- */

static int check_count(size_t n, size_t max, const char *what, struct err *e)
{
    if (n < max)
        return 0;
    return err_set(e, -EINVAL, "there are %zu %s, and no more are allowed", n, what);
}

static int check_known(const struct lock_state *s, const char *name, struct err *e)
{
    if (lock_state_node(s, name))
        return 0;
    return err_set(e, -EINVAL, "no node \"%s\" is accepted", name);
}

/* May the node of that name have the key? */
static int check_key(
    const struct lock_state *s, const char *name, const struct x25519_public *key, struct err *e)
{
    const struct lock_node *other = lock_state_node_of(s, key);
    char text[X25519_BASE64_MAX];

    if (lock_state_is_revoked(s, key))
        return err_set(e, -EINVAL, "the key %s of \"%s\" was revoked with a node that is removed",
            x25519_public_format(key, text), name);
    if (other && strcmp(other->node.meta.name, name) != 0)
        return err_set(e, -EINVAL, "the key %s of \"%s\" is that of \"%s\"",
            x25519_public_format(key, text), name, other->node.meta.name);
    return 0;
}

static int check_address(const struct ip_prefix *block, const struct lock_node *other,
    const struct node *node, const struct ip_addr *address, struct err *e)
{
    char text[IP_ADDR_TEXT_MAX];
    char of[IP_PREFIX_TEXT_MAX];

    if (!ip_prefix_has(block, address))
        return err_set(e, -EINVAL, "the address %s of \"%s\" is not in the network's block %s",
            ip_addr_format(address, text), node->meta.name, ip_prefix_format(block, of));
    if (other && strcmp(other->node.meta.name, node->meta.name) != 0)
        return err_set(e, -EINVAL, "the address %s of \"%s\" is that of \"%s\"",
            ip_addr_format(address, text), node->meta.name, other->node.meta.name);
    return 0;
}

/* Another node's block that overlaps @p; NULL: there is none. */
static const struct lock_route *find_route(
    const struct lock_state *s, const char *name, const struct ip_prefix *p)
{
    bool found;
    size_t at = place_of(&s->routes, by_block, p, &found);

    /* No two overlap: so of those that begin before @p the last one alone can reach into it, and
     * those that begin in it follow each other. */
    for (size_t i = at > 0 ? at - 1 : 0; i < s->routes.n; i++) {
        const struct lock_route *route = s->routes.items[i];
        bool is_over = ip_prefix_overlaps(&route->block, p);

        if (is_over && strcmp(route->node->node.meta.name, name) != 0)
            return route;
        if (!is_over && i >= at)
            break;
    }
    return NULL;
}

static int check_no_block(const struct lock_state *s, const struct subnets *routes, struct err *e)
{
    struct network network = NETWORK_NULL;
    int r = 0;

    (void)snprintf(network.meta.name, sizeof(network.meta.name), "%s", s->network);
    network.cidr4 = s->cidr4;
    network.cidr6 = s->cidr6;
    for (unsigned i = 0; r == 0 && i < routes->n; i++)
        r = subnets_check_network(&routes->items[i], &network, e);
    return r;
}

static int check_routes(const struct lock_state *s, const struct node *node, struct err *e)
{
    int r = node->routes ? check_no_block(s, node->routes, e) : 0;
    char text[IP_PREFIX_TEXT_MAX];
    char other[IP_PREFIX_TEXT_MAX];

    for (unsigned i = 0; r == 0 && node->routes && i < node->routes->n; i++) {
        const struct ip_prefix *p = &node->routes->items[i];
        const struct lock_route *route = find_route(s, node->meta.name, p);

        if (route)
            r = err_set(e, -EINVAL, "the route %s of \"%s\" overlaps %s of \"%s\"",
                ip_prefix_format(p, text), node->meta.name, ip_prefix_format(&route->block, other),
                route->node->node.meta.name);
    }
    return r;
}

static int check_node(const struct lock_state *s, const struct node *node, struct err *e)
{
    int r = 0;

    if (!lock_state_node(s, node->meta.name))
        r = check_count(s->nodes.n, LOCK_NODES_MAX, "nodes", e);
    if (r == 0)
        r = check_key(s, node->meta.name, &node->key, e);
    if (r == 0)
        r = check_address(&s->cidr4, find_item(&s->by_address4, by_address4, &node->address4), node,
            &node->address4, e);
    if (r == 0)
        r = check_address(&s->cidr6, find_item(&s->by_address6, by_address6, &node->address6), node,
            &node->address6, e);
    return r == 0 ? check_routes(s, node, e) : r;
}

static int check_keys(const struct lock_state *s, const struct lock_keys *keys, struct err *e)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < keys->n; i++) {
        const struct lock_key *k = &keys->items[i];

        r = check_known(s, k->name, e);
        if (r == 0)
            r = check_key(s, k->name, &k->key, e);
        for (unsigned o = 0; r == 0 && o < i; o++)
            if (x25519_public_equal(&keys->items[o].key, &k->key))
                r = err_set(e, -EINVAL, "the keys of \"%s\" and \"%s\" are the same",
                    keys->items[o].name, k->name);
    }
    return r;
}

/* Is something fixed of that pair? */
static bool is_fixed(const struct mesh_edge *edge)
{
    bool is_pinned = false;

    for (unsigned i = 0; i < 2; i++)
        is_pinned |= !endpoint_is_none(&edge->pins[i].endpoint) ||
                     !x25519_public_is_none(&edge->pins[i].key);
    return is_pinned || edge->path == EDGE_PATH_OFF;
}

static int check_edge(const struct lock_state *s, const struct mesh_edge *edge, struct err *e)
{
    const struct mesh_edge *before = find_item(&s->edges, by_edge, edge->meta.name);
    int r = check_known(s, edge->nodes[0], e);

    if (r == 0)
        r = check_known(s, edge->nodes[1], e);
    if (r == 0 && !before)
        r = check_count(s->edges.n, LOCK_EDGES_MAX, "edges", e);
    if (r == 0 && !before && !is_fixed(edge))
        r = err_set(e, -EINVAL, "nothing is fixed of the edge \"%s\", nor was", edge->meta.name);
    return r;
}

static int check_recover(
    const struct lock_state *s, const struct lock_recover *recover, struct err *e)
{
    bool is_code = false;
    bool is_again = false;

    for (unsigned i = 0; i < s->signers.n_recovery; i++)
        is_code |= ed25519_public_compare(&s->signers.recovery[i], &recover->key) == 0;
    for (unsigned i = 0; i < recover->signers.n_recovery; i++)
        is_again |= ed25519_public_compare(&recover->signers.recovery[i], &recover->key) == 0;
    for (unsigned i = 0; i < recover->signers.n; i++)
        is_again |= ed25519_public_compare(&recover->signers.items[i].key, &recover->key) == 0;
    if (!is_code)
        return err_set(e, -EINVAL, "the code is none of the %u that recover this network",
            s->signers.n_recovery);
    if (is_again)
        return err_set(
            e, -EINVAL, "the code that was used is among the new keys, and is good once only");
    return 0;
}

static int check_tombstone(
    const struct lock_state *s, const struct lock_tombstone *t, struct err *e)
{
    const struct lock_node *other = lock_state_node_of(s, &t->key);
    int r = check_known(s, t->name, e);

    if (r == 0 && t->counter != s->n_tombstones + 1)
        r = err_set(e, -EINVAL, "the tombstone of \"%s\" is number %llu, and %llu is the next",
            t->name, (unsigned long long)t->counter, (unsigned long long)s->n_tombstones + 1);
    if (r == 0 && other && strcmp(other->node.meta.name, t->name) != 0)
        r = err_set(e, -EINVAL, "the tombstone of \"%s\" has the key of \"%s\"", t->name,
            other->node.meta.name);
    return r;
}

static int check_token(
    const struct lock_state *s, const struct lock_token *t, uint64_t at, struct err *e)
{
    int r = check_count(s->tokens.n, LOCK_TOKENS_MAX, "tokens", e);

    if (r == 0 && lock_state_token(s, &t->key))
        r = err_set(e, -EINVAL, "a token of that key is or was there already");
    if (r == 0 && t->until <= at)
        r = err_set(e, -EINVAL, "the token is over when it is made");
    return r == 0 ? check_no_block(s, &t->routes, e) : r;
}

static int check_token_end(
    const struct lock_state *s, const struct ed25519_public *key, struct err *e)
{
    const struct lock_token *token = lock_state_token(s, key);

    if (!token || token->uses == 0)
        return err_set(e, -EINVAL, "no token of that key is there, or it is over");
    return 0;
}

/* ---- who comes in by a token ---- */

/* May a node of the token be such a one? */
static int check_granted(const struct lock_token *t, const struct node *node, struct err *e)
{
    const char *name = node->meta.name;
    char text[IP_PREFIX_TEXT_MAX];

    if (node->hub || node->stock)
        return err_set(e, -EINVAL, "\"%s\" is a %s, and a token lets none in", name,
            node->hub ? "hub" : "stock WireGuard");
    if (node->relay && !t->relay)
        return err_set(e, -EINVAL, "\"%s\" may be a relay, and its token does not let it", name);
    if (node->ephemeral != t->ephemeral)
        return err_set(e, -EINVAL, "\"%s\" is %sephemeral, and its token wants it %s", name,
            node->ephemeral ? "" : "not ", t->ephemeral ? "to be" : "not to be");
    if (node->island[0] != '\0' && strcmp(node->island, t->island) != 0)
        return err_set(e, -EINVAL, "\"%s\" is in the island \"%s\", and its token does not let it",
            name, node->island);
    for (unsigned i = 0; i < node->n_labels; i++) {
        const struct label *l = &node->labels[i];
        const struct label *may = lock_label_find(t->labels, t->n_labels, l->key);

        if (!may || strcmp(may->value, l->value) != 0)
            return err_set(e, -EINVAL,
                "\"%s\" has the label \"%s=%s\", and its token does not let it", name, l->key,
                l->value);
    }
    for (unsigned i = 0; node->routes && i < node->routes->n; i++)
        if (!subnets_covers(&t->routes, &node->routes->items[i]))
            return err_set(e, -EINVAL, "\"%s\" has the route %s, and its token does not let it",
                name, ip_prefix_format(&node->routes->items[i], text));
    return 0;
}

static int check_join(
    const struct lock_state *s, const struct lock_join *join, uint64_t at, struct err *e)
{
    const struct node *node = &join->node;
    const struct lock_token *token = lock_state_token(s, &join->token);

    if (!token)
        return err_set(
            e, -EINVAL, "\"%s\" comes by a token that nobody has signed", node->meta.name);
    if (token->uses == 0)
        return err_set(
            e, -EINVAL, "\"%s\" comes by a token of which no uses are left", node->meta.name);
    if (at > token->until)
        return err_set(e, -EINVAL, "\"%s\" comes %llu s after its token was over", node->meta.name,
            (unsigned long long)(at - token->until));
    if (lock_state_node(s, node->meta.name))
        return err_set(e, -EINVAL, "a node \"%s\" is there already, and no token can change it",
            node->meta.name);
    if (find_item(&s->joined, by_public, &node->key))
        return err_set(
            e, -EINVAL, "\"%s\" comes with a key that has come by a token before", node->meta.name);
    if (check_granted(token, node, e) < 0)
        return -EINVAL;
    return check_node(s, node, e);
}

static int check_renew(
    const struct lock_state *s, const struct lock_renew *renew, uint64_t at, struct err *e)
{
    if (renew->version != s->version + 1)
        return err_set(e, -EINVAL, "it has the version %llu, and %llu is the next",
            (unsigned long long)renew->version, (unsigned long long)s->version + 1);
    if (renew->valid_until <= s->valid_until || renew->valid_until <= at)
        return err_set(e, -EINVAL, "it would be good for no longer than it is, or is over already");
    return 0;
}

/* Does nothing come in by an entry of that kind, so that it may be made when the lock is over? */
static bool is_harmless(enum lock_kind kind)
{
    return kind == LOCK_SIGNERS || kind == LOCK_RECOVER || kind == LOCK_RENEW ||
           kind == LOCK_TOMBSTONE || kind == LOCK_TOKEN_END;
}

static int check_hubs(const struct lock_state *s, const struct lock_hubs *hubs, struct err *e)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < hubs->n; i++)
        r = check_known(s, hubs->names[i], e);
    return r;
}

static int check_body(
    const struct lock_state *s, const struct lock_body *b, uint64_t at, struct err *e)
{
    switch (b->kind) {
    case LOCK_GENESIS:
    case LOCK_SIGNERS:
    case LOCK_SETTINGS:
        return 0;
    case LOCK_RECOVER:
        return check_recover(s, &b->recover, e);
    case LOCK_RENEW:
        return check_renew(s, &b->renew, at, e);
    case LOCK_NODE:
        return check_node(s, &b->node, e);
    case LOCK_KEYS:
        return check_keys(s, &b->keys, e);
    case LOCK_HUBS:
        return check_hubs(s, &b->hubs, e);
    case LOCK_EDGE:
        return check_edge(s, &b->edge, e);
    case LOCK_RULE:
        if (lock_state_rule(s, b->rule.meta.name))
            return 0;
        return check_count(s->rules.n, LOCK_RULES_MAX, "rules", e);
    case LOCK_RULE_END:
        if (lock_state_rule(s, b->rule_end))
            return 0;
        return err_set(e, -EINVAL, "there is no rule \"%s\"", b->rule_end);
    case LOCK_TOMBSTONE:
        return check_tombstone(s, &b->tombstone, e);
    case LOCK_TOKEN:
        return check_token(s, &b->token, at, e);
    case LOCK_TOKEN_END:
        return check_token_end(s, &b->token_end, e);
    case LOCK_JOIN:
        return check_join(s, &b->join, at, e);
    }
    return err_set(e, -EINVAL, "it is of no kind that is known");
}

int lock_state_check(
    const struct lock_state *s, const struct lock_entry *entry, uint64_t at, struct err *e)
{
    const struct lock_body *b = &entry->body;

    if ((s->version == 0) != (b->kind == LOCK_GENESIS))
        return err_set(e, -EINVAL,
            "it is a %s; the first entry is the genesis, and no other one is",
            lock_kind_names[b->kind]);
    if (s->version == 0 && b->genesis.valid_until <= at)
        return err_set(e, -EINVAL, "the lock would have expired when it is made");
    if (s->version == 0)
        return 0;
    if (at > s->valid_until && !is_harmless(b->kind))
        return err_set(e, -EINVAL,
            "it was made %llu s after the lock had expired, which has to be renewed first",
            (unsigned long long)(at - s->valid_until));
    return check_body(s, b, at, e);
}

/* ---- effects -------------------------------------------------------------------------------- */

/* A copy of @len bytes; NULL: no memory. */
static void *copy(const void *p, size_t len)
{
    void *made = malloc(len);

    if (made)
        memcpy(made, p, len);
    return made;
}

/* Into @l, if it is not there; false: no memory. */
static bool keep_key(struct lock_list *l, const struct x25519_public *key)
{
    struct x25519_public *made;

    if (find_item(l, by_public, key))
        return true;
    made = copy(key, sizeof(*key));
    if (add_item(l, by_public, key, made))
        return true;
    free(made);
    return false;
}

static void remove_routes(struct lock_state *s, const struct node *node)
{
    for (unsigned i = 0; node->routes && i < node->routes->n; i++)
        free(take_item(&s->routes, by_block, &node->routes->items[i]));
}

static void remove_node(struct lock_state *s, const char *name)
{
    struct lock_node *node = take_item(&s->nodes, by_name, name);

    if (!node)
        return;
    remove_routes(s, &node->node);
    (void)take_item(&s->by_key, by_key, &node->node.key);
    (void)take_item(&s->by_address4, by_address4, &node->node.address4);
    (void)take_item(&s->by_address6, by_address6, &node->node.address6);
    free_node(node);
}

static bool add_routes(struct lock_state *s, const struct lock_node *node)
{
    const struct subnets *routes = node->node.routes;

    for (unsigned i = 0; routes && i < routes->n; i++) {
        struct lock_route route = {.block = routes->items[i], .node = node};
        struct lock_route *made = copy(&route, sizeof(route));

        if (!add_item(&s->routes, by_block, &route.block, made)) {
            free(made);
            return false;
        }
    }
    return true;
}

/* @node: taken, also on failure. False: no memory. */
static bool put_node(struct lock_state *s, struct node *node, uint64_t signed_at)
{
    struct lock_node *made = malloc(sizeof(*made));

    remove_node(s, node->meta.name);
    if (!made) {
        node_deinit(node);
        return false;
    }
    *made = (struct lock_node){.node = *node, .signed_at = signed_at};
    *node = (struct node)NODE_NULL;
    if (!add_item(&s->nodes, by_name, made->node.meta.name, made)) {
        free_node(made);
        return false;
    }
    return add_item(&s->by_key, by_key, &made->node.key, made) &&
           add_item(&s->by_address4, by_address4, &made->node.address4, made) &&
           add_item(&s->by_address6, by_address6, &made->node.address6, made) &&
           add_routes(s, made);
}

static bool put_key(struct lock_state *s, const struct lock_key *k, uint64_t signed_at)
{
    struct lock_node *node = find_item(&s->nodes, by_name, k->name);

    (void)take_item(&s->by_key, by_key, &node->node.key);
    node->node.key = k->key;
    node->signed_at = signed_at;
    return add_item(&s->by_key, by_key, &node->node.key, node);
}

static bool put_keys(struct lock_state *s, const struct lock_keys *keys, uint64_t signed_at)
{
    bool ok = true;

    for (unsigned i = 0; ok && i < keys->n; i++)
        ok = put_key(s, &keys->items[i], signed_at);
    return ok;
}

static bool put_edge(struct lock_state *s, const struct mesh_edge *edge)
{
    struct mesh_edge *made;

    free(take_item(&s->edges, by_edge, edge->meta.name));
    if (!is_fixed(edge))
        return true;
    made = copy(edge, sizeof(*edge));
    if (add_item(&s->edges, by_edge, edge->meta.name, made))
        return true;
    free(made);
    return false;
}

static void remove_rule(struct lock_state *s, const char *name)
{
    struct object *rule = take_item(&s->rules, by_rule, name);

    if (rule)
        free_rule(rule);
}

/* @rule: taken, unless there is no memory. */
static bool put_rule(struct lock_state *s, struct object *rule)
{
    struct object *made = copy(rule, sizeof(*rule));

    remove_rule(s, rule->meta.name);
    if (!add_item(&s->rules, by_rule, rule->meta.name, made)) {
        free(made);
        return false;
    }
    *rule = (struct object)OBJECT_NULL;
    return true;
}

/* @token: taken, unless there is no memory. */
static bool put_token(struct lock_state *s, struct lock_token *token)
{
    struct lock_token *made = copy(token, sizeof(*token));

    if (!add_item(&s->tokens, by_token, &token->key, made)) {
        free(made);
        return false;
    }
    token->labels = NULL;
    token->n_labels = 0;
    return true;
}

static void remove_edges(struct lock_state *s, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < s->edges.n; i++) {
        struct mesh_edge *edge = s->edges.items[i];

        if (strcmp(edge->nodes[0], name) == 0 || strcmp(edge->nodes[1], name) == 0)
            free(edge);
        else
            s->edges.items[n++] = edge;
    }
    s->edges.n = n;
}

static void remove_hub(struct lock_hubs *hubs, const char *name)
{
    unsigned n = 0;

    for (unsigned i = 0; i < hubs->n; i++)
        if (strcmp(hubs->names[i], name) != 0)
            memmove(hubs->names[n++], hubs->names[i], sizeof(hubs->names[i]));
    hubs->n = n;
}

static bool take_tombstone(struct lock_state *s, const struct lock_tombstone *t)
{
    const struct lock_node *node = lock_state_node(s, t->name);
    bool ok = keep_key(&s->revoked, &node->node.key) && keep_key(&s->revoked, &t->key);

    s->n_tombstones++;
    remove_edges(s, t->name);
    remove_hub(&s->hubs, t->name);
    remove_node(s, t->name);
    return ok;
}

static bool take_join(struct lock_state *s, struct lock_join *join, uint64_t signed_at)
{
    struct lock_token *token = find_item(&s->tokens, by_token, &join->token);

    token->uses--;
    return keep_key(&s->joined, &join->node.key) && put_node(s, &join->node, signed_at);
}

static void take_genesis(
    struct lock_state *s, const char *network, const struct lock_genesis *genesis)
{
    (void)snprintf(s->network, sizeof(s->network), "%s", network);
    s->cidr4 = genesis->cidr4;
    s->cidr6 = genesis->cidr6;
    s->settings = genesis->settings;
    s->signers = genesis->signers;
    s->valid_until = genesis->valid_until;
    s->version = 1;
}

int lock_state_take(struct lock_state *s, struct lock_entry *entry)
{
    struct lock_body *b = &entry->body;
    bool ok = true;

    switch (b->kind) {
    case LOCK_GENESIS:
        take_genesis(s, entry->network, &b->genesis);
        break;
    case LOCK_SIGNERS:
        s->signers = b->signers;
        break;
    case LOCK_RECOVER:
        s->signers = b->recover.signers;
        break;
    case LOCK_SETTINGS:
        s->settings = b->settings;
        break;
    case LOCK_RENEW:
        s->version = b->renew.version;
        s->valid_until = b->renew.valid_until;
        break;
    case LOCK_NODE:
        ok = put_node(s, &b->node, entry->made_at);
        break;
    case LOCK_KEYS:
        ok = put_keys(s, &b->keys, entry->made_at);
        break;
    case LOCK_HUBS:
        s->hubs = b->hubs;
        break;
    case LOCK_EDGE:
        ok = put_edge(s, &b->edge);
        break;
    case LOCK_RULE:
        ok = put_rule(s, &b->rule);
        break;
    case LOCK_RULE_END:
        remove_rule(s, b->rule_end);
        break;
    case LOCK_TOMBSTONE:
        ok = take_tombstone(s, &b->tombstone);
        break;
    case LOCK_TOKEN:
        ok = put_token(s, &b->token);
        break;
    case LOCK_TOKEN_END:
        ((struct lock_token *)find_item(&s->tokens, by_token, &b->token_end))->uses = 0;
        break;
    case LOCK_JOIN:
        ok = take_join(s, &b->join, entry->made_at);
        break;
    }
    return ok ? 0 : -ENOMEM;
}
