/* islands.c - see islands.h: who is with whom. */
#include "train/islands/islands.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALONE SIZE_MAX

/* What is being found out. Each node leads to the first node that it is known to be with. */
struct finding {
    const struct islands_node *nodes;
    size_t n_nodes;
    const struct islands_pair *pairs;
    size_t n_pairs;
    size_t *root; /* owns */
    const char *
        *keys; /* owns; why the group that the node leads is one; NULL: a label, a network */
};

static size_t find_root(const struct finding *f, size_t i)
{
    while (f->root[i] != i) {
        f->root[i] = f->root[f->root[i]];
        i = f->root[i];
    }
    return i;
}

/* The lower one leads. @key: why; NULL: as before. */
static void join(struct finding *f, size_t a, size_t b, const char *key)
{
    size_t ra = find_root(f, a);
    size_t rb = find_root(f, b);
    size_t first = ra < rb ? ra : rb;

    f->root[ra] = first;
    f->root[rb] = first;
    if (key && !f->keys[first])
        f->keys[first] = key;
}

static bool has_label(const struct islands_node *n)
{
    return n->label[0] != '\0';
}

/* A key that both have; NULL: they have none in common. */
static const char *common_key(const struct islands_node *a, const struct islands_node *b)
{
    if (!a->has_fabric || !b->has_fabric || strcmp(a->fabric.kind, b->fabric.kind) != 0)
        return NULL;
    for (size_t i = 0; i < a->fabric.n_keys; i++)
        for (size_t k = 0; k < b->fabric.n_keys; k++)
            if (strcmp(a->fabric.keys[i].text, b->fabric.keys[k].text) == 0)
                return a->fabric.keys[i].text;
    return NULL;
}

/* ---- who is together ------------------------------------------------------------------------ */

/* Something that puts nodes together which have it in common. */
struct claim {
    const char *kind; /* of the fabric; "": a label, which puts any kinds together */
    const char *key;
    size_t node;
};

static int compare_claims(const void *a, const void *b)
{
    const struct claim *ca = a;
    const struct claim *cb = b;
    int r = strcmp(ca->key, cb->key);

    if (r == 0)
        r = strcmp(ca->kind, cb->kind);
    return r != 0 ? r : (ca->node > cb->node) - (ca->node < cb->node);
}

static size_t list_claims(struct claim *claims, const struct finding *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n_nodes; i++) {
        const struct islands_node *node = &f->nodes[i];

        if (has_label(node)) {
            claims[n++] = (struct claim){.kind = "", .key = node->label, .node = i};
            continue;
        }
        for (size_t k = 0; node->has_fabric && k < node->fabric.n_keys; k++)
            if (node->fabric.keys[k].is_exact)
                claims[n++] = (struct claim){
                    .kind = node->fabric.kind, .key = node->fabric.keys[k].text, .node = i};
    }
    return n;
}

static int join_by_claims(struct finding *f)
{
    struct claim *claims = calloc(f->n_nodes * FABRIC_KEYS_MAX + 1, sizeof(*claims));
    size_t n;

    if (!claims)
        return -ENOMEM;
    n = list_claims(claims, f);
    qsort(claims, n, sizeof(*claims), compare_claims);
    for (size_t i = 1; i < n; i++)
        if (strcmp(claims[i - 1].key, claims[i].key) == 0 &&
            strcmp(claims[i - 1].kind, claims[i].kind) == 0)
            join(f, claims[i - 1].node, claims[i].node,
                claims[i].kind[0] != '\0' ? claims[i].key : NULL);
    free(claims);
    return 0;
}

static bool is_plain(const struct islands_node *n)
{
    return !n->has_fabric || strcmp(n->fabric.kind, "ethernet") == 0 ||
           strcmp(n->fabric.kind, "gvnic") == 0;
}

static bool is_near(const struct islands_pair *p)
{
    return p->rtt_ms >= 0 && p->rtt_ms <= ISLANDS_NEAR_MS;
}

/* What counts only together with a short round trip. */
static void join_by_pairs(struct finding *f)
{
    for (size_t i = 0; i < f->n_pairs; i++) {
        const struct islands_pair *p = &f->pairs[i];
        const struct islands_node *a = &f->nodes[p->a];
        const struct islands_node *b = &f->nodes[p->b];
        const char *key = common_key(a, b);

        if (has_label(a) || has_label(b) || !is_near(p))
            continue;
        if (key || (p->is_lan && is_plain(a) && is_plain(b)))
            join(f, p->a, p->b, key);
    }
}

/* ---- what is known of an island ------------------------------------------------------------- */

static void describe(struct island *island, const struct islands_node *first, const char *key)
{
    bool is_plain_network = !key && !has_label(first);
    const char *kind = first->has_fabric ? first->fabric.kind : "ethernet";

    island->is_declared = has_label(first);
    (void)snprintf(island->kind, sizeof(island->kind), "%s", kind);
    if (island->is_declared) {
        (void)snprintf(island->name, sizeof(island->name), "%s", first->label);
        (void)snprintf(
            island->evidence, sizeof(island->evidence), "its nodes' island is %s", first->label);
        return;
    }
    (void)snprintf(island->name, sizeof(island->name), "%.60s-%.63s",
        is_plain_network ? "lan" : kind, first->name);
    if (is_plain_network)
        (void)snprintf(island->evidence, sizeof(island->evidence),
            "one private network, and round trips within %.0f ms", ISLANDS_NEAR_MS);
    else
        (void)snprintf(island->evidence, sizeof(island->evidence), "they have %s", key);
}

static void add_node(struct island *island, const struct islands_node *node)
{
    const char *kind = node->has_fabric ? node->fabric.kind : "ethernet";

    if (strcmp(island->kind, kind) != 0)
        (void)snprintf(island->kind, sizeof(island->kind), "mixed");
    island->asked_together |= node->has_fabric && node->fabric.asked_together;
    island->n_nodes++;
}

static void add_pair(struct island *island, const struct islands_pair *p)
{
    if (p->rtt_ms < 0)
        return;
    island->n_pairs++;
    if (p->rtt_ms > island->max_rtt_ms)
        island->max_rtt_ms = p->rtt_ms;
    if (!is_near(p))
        island->nearness = ISLANDS_NEARNESS_FAR;
    else if (island->nearness == ISLANDS_NEARNESS_UNKNOWN)
        island->nearness = ISLANDS_NEARNESS_NEAR;
}

static void conclude(struct island *island)
{
    bool is_plain_network =
        strcmp(island->kind, "ethernet") == 0 || strcmp(island->kind, "gvnic") == 0;

    if (island->nearness == ISLANDS_NEARNESS_FAR)
        island->state = ISLANDS_CONTRADICTED;
    else if (is_plain_network && island->nearness == ISLANDS_NEARNESS_NEAR)
        island->state = ISLANDS_VERIFIED;
}

/* Numbers the groups of two or more, in order of their first nodes. */
static int collect(struct islands *ret, const struct finding *f)
{
    size_t *sizes = calloc(f->n_nodes + 1, sizeof(*sizes));

    ret->of = calloc(f->n_nodes + 1, sizeof(*ret->of));
    ret->items = calloc(f->n_nodes / 2 + 1, sizeof(*ret->items));
    if (!sizes || !ret->of || !ret->items) {
        free(sizes);
        return -ENOMEM;
    }
    for (size_t i = 0; i < f->n_nodes; i++)
        sizes[find_root(f, i)]++;
    for (size_t i = 0; i < f->n_nodes; i++) {
        size_t root = find_root(f, i);

        ret->of[i] = ALONE;
        if (sizes[root] < 2)
            continue;
        if (root == i) {
            ret->of[i] = ret->n;
            describe(&ret->items[ret->n++], &f->nodes[i], f->keys[i]);
        }
        ret->of[i] = ret->of[root];
        add_node(&ret->items[ret->of[i]], &f->nodes[i]);
    }
    free(sizes);
    return 0;
}

static int find(struct islands *ret, struct finding *f)
{
    int r = join_by_claims(f);

    if (r == 0) {
        join_by_pairs(f);
        r = collect(ret, f);
    }
    for (size_t i = 0; r == 0 && i < f->n_pairs; i++)
        if (ret->of[f->pairs[i].a] != ALONE && ret->of[f->pairs[i].a] == ret->of[f->pairs[i].b])
            add_pair(&ret->items[ret->of[f->pairs[i].a]], &f->pairs[i]);
    for (size_t i = 0; r == 0 && i < ret->n; i++)
        conclude(&ret->items[i]);
    return r;
}

int islands_find(struct islands *ret, const struct islands_node *nodes, size_t n_nodes,
    const struct islands_pair *pairs, size_t n_pairs)
{
    struct finding f = {.nodes = nodes, .n_nodes = n_nodes, .pairs = pairs, .n_pairs = n_pairs};
    struct islands s = ISLANDS_NULL;
    int r = -ENOMEM;

    f.root = calloc(n_nodes + 1, sizeof(*f.root));
    f.keys = calloc(n_nodes + 1, sizeof(*f.keys));
    if (f.root && f.keys) {
        for (size_t i = 0; i < n_nodes; i++)
            f.root[i] = i;
        r = find(&s, &f);
    }
    free(f.root);
    free(f.keys);
    if (r < 0) {
        islands_deinit(&s);
        return r;
    }
    *ret = s;
    return 0;
}

void islands_deinit(struct islands *s)
{
    free(s->items);
    free(s->of);
    *s = (struct islands)ISLANDS_NULL;
}
