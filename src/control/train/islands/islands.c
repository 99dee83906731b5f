/* islands.c - see islands.h: who is with whom. */
#include "train/islands/islands.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/object/fields.h"

#define ISLANDS_NEAR_MS 1.0 /* machines of one place answer within this, in ms */

#define ALONE SIZE_MAX

/* What is being found out. Each node leads to the first node that it is known to be with. */
struct finding {
    const struct islands *s; /* its nodes and pairs */
    size_t *root;            /* owns */
    const char **keys;       /* owns; why the group of the node is one; NULL: a label, a network */
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

    for (size_t i = 0; i < f->s->n_nodes; i++) {
        const struct islands_node *node = &f->s->nodes[i];

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
    _cleanup_(freep) struct claim *claims =
        calloc(f->s->n_nodes * FABRIC_KEYS_MAX + 1, sizeof(*claims));
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
    return 0;
}

static bool is_plain(const struct islands_node *n)
{
    return !n->has_fabric || strcmp(n->fabric.kind, "ethernet") == 0 ||
           strcmp(n->fabric.kind, "gvnic") == 0;
}

/* What counts only together with a short round trip. */
static void join_by_pairs(struct finding *f)
{
    for (size_t i = 0; i < f->s->n_pairs; i++) {
        const struct islands_pair *p = &f->s->pairs[i];
        const struct islands_node *a = &f->s->nodes[p->a];
        const struct islands_node *b = &f->s->nodes[p->b];
        const char *key = common_key(a, b);

        if (has_label(a) || has_label(b) || p->rtt_ms < 0 || p->rtt_ms > ISLANDS_NEAR_MS)
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

/* Numbers the groups of two or more, in order of their first nodes. */
static int collect(struct islands *ret, const struct finding *f)
{
    size_t n_nodes = f->s->n_nodes;
    _cleanup_(freep) size_t *sizes = calloc(n_nodes + 1, sizeof(*sizes));

    ret->of = calloc(n_nodes + 1, sizeof(*ret->of));
    ret->items = calloc(n_nodes / 2 + 1, sizeof(*ret->items));
    if (!sizes || !ret->of || !ret->items)
        return -ENOMEM;
    for (size_t i = 0; i < n_nodes; i++)
        sizes[find_root(f, i)]++;
    for (size_t i = 0; i < n_nodes; i++) {
        const struct islands_node *node = &f->s->nodes[i];
        const char *kind = node->has_fabric ? node->fabric.kind : "ethernet";
        size_t root = find_root(f, i);
        struct island *island;

        ret->of[i] = ALONE;
        if (sizes[root] < 2)
            continue;
        if (root == i) {
            ret->of[i] = ret->n;
            describe(&ret->items[ret->n++], node, f->keys[i]);
        }
        ret->of[i] = ret->of[root];
        island = &ret->items[ret->of[i]];
        if (strcmp(island->kind, kind) != 0)
            (void)snprintf(island->kind, sizeof(island->kind), "mixed");
        island->asked_together |= node->has_fabric && node->fabric.asked_together;
        island->n_nodes++;
    }
    return 0;
}

static int find(struct islands *ret, struct finding *f)
{
    int r = join_by_claims(f);

    if (r == 0) {
        join_by_pairs(f);
        r = collect(ret, f);
    }
    for (size_t i = 0; r == 0 && i < f->s->n_pairs; i++) {
        const struct islands_pair *p = &f->s->pairs[i];
        struct island *island;

        if (p->rtt_ms < 0 || ret->of[p->a] == ALONE || ret->of[p->a] != ret->of[p->b])
            continue;
        island = &ret->items[ret->of[p->a]];
        island->n_pairs++;
        if (p->rtt_ms > island->max_rtt_ms)
            island->max_rtt_ms = p->rtt_ms;
    }
    for (size_t i = 0; r == 0 && i < ret->n; i++) {
        struct island *island = &ret->items[i];
        bool is_plain_network =
            strcmp(island->kind, "ethernet") == 0 || strcmp(island->kind, "gvnic") == 0;

        if (island->max_rtt_ms > ISLANDS_NEAR_MS)
            island->state = ISLANDS_CONTRADICTED;
        else if (is_plain_network && island->n_pairs > 0)
            island->state = ISLANDS_VERIFIED;
    }
    return r;
}

void islands_deinit(struct islands *s)
{
    free(s->nodes);
    free(s->pairs);
    free(s->items);
    free(s->of);
    *s = (struct islands)ISLANDS_NULL;
}

/* ==== from a status and to text ============================================================== */

static const char *const state_names[] = {
    [ISLANDS_FOUND] = "found",
    [ISLANDS_VERIFIED] = "verified",
    [ISLANDS_CONTRADICTED] = "contradicted",
};

/* ---- from a status -------------------------------------------------------------------------- */

/* A name that is too long is of no node of ours; it is cut. */
static void take_node(struct islands_node *ret, const json_t *json)
{
    const json_t *fabric = json_object_get(json, "fabric");

    (void)snprintf(ret->name, sizeof(ret->name), "%s", fields_text_of(json, "name"));
    (void)snprintf(ret->label, sizeof(ret->label), "%s", fields_text_of(json, "island"));
    ret->has_fabric =
        json_is_object(fabric) && fabric_report_decode(&ret->fabric, fabric, ret->name, NULL) == 0;
}

static int take_status(struct islands *ret, const json_t *status)
{
    const json_t *peers = json_object_get(status, "peers");
    size_t n = json_array_size(peers) + 1;
    const json_t *peer;
    size_t i;

    ret->nodes = calloc(n, sizeof(*ret->nodes));
    ret->pairs = calloc(n, sizeof(*ret->pairs));
    if (!ret->nodes || !ret->pairs)
        return -ENOMEM;
    ret->n_nodes = n;
    take_node(&ret->nodes[0], json_object_get(status, "self"));
    json_array_foreach(peers, i, peer) {
        /* A busy machine answers late, and is as near as before. An agent of an earlier version
         * does not say the least round trip. */
        const json_t *least = json_object_get(peer, "leastRttMs");
        const json_t *rtt = least ? least : json_object_get(peer, "rttMs");

        take_node(&ret->nodes[i + 1], peer);
        if (json_is_number(rtt))
            ret->pairs[ret->n_pairs++] = (struct islands_pair){.b = i + 1,
                .rtt_ms = json_number_value(rtt),
                .is_lan = strcmp(fields_text_of(peer, "path"), "lan") == 0};
    }
    return 0;
}

/* ---- from measurements of all pairs --------------------------------------------------------- */

#define RTT_US_MAX 60e6 /* no round trip takes a minute */

static size_t find_node(const struct islands *s, const char *name)
{
    for (size_t i = 0; i < s->n_nodes; i++)
        if (name && strcmp(s->nodes[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

static int add_measured(struct islands *s, const json_t *json)
{
    const json_t *pairs = json_object_get(json, "pairs");
    size_t n_own = s->n_pairs;
    struct islands_pair *more =
        reallocarray(s->pairs, n_own + json_array_size(pairs) + 1, sizeof(*more));
    const json_t *pair;
    size_t i;

    if (!more)
        return -ENOMEM;
    s->pairs = more;
    json_array_foreach(pairs, i, pair) {
        const json_t *names = json_object_get(pair, "nodes");
        size_t a = find_node(s, json_string_value(json_array_get(names, 0)));
        size_t b = find_node(s, json_string_value(json_array_get(names, 1)));
        /* `weft bench` has the median in the pair, `weft preflight` in each of its ways. */
        const json_t *in_pair = json_object_get(pair, "rttMedianUs");
        const json_t *way = json_array_get(json_object_get(pair, "ways"), 0);
        double us = json_number_value(in_pair ? in_pair : json_object_get(way, "rttMedianUs"));
        bool is_measured = false;

        for (size_t k = 0; k < n_own && !is_measured; k++)
            is_measured = (s->pairs[k].a == a && s->pairs[k].b == b) ||
                          (s->pairs[k].a == b && s->pairs[k].b == a);
        if (a == SIZE_MAX || b == SIZE_MAX || a == b || !(us > 0 && us <= RTT_US_MAX) ||
            is_measured)
            continue;
        s->pairs[s->n_pairs++] = (struct islands_pair){.a = a,
            .b = b,
            .rtt_ms = us / 1000,
            .is_lan = strcmp(fields_text_of(pair, "path"), "lan") == 0};
    }
    return 0;
}

int islands_find(struct islands *ret, const json_t *status, const json_t *measured)
{
    struct islands s = ISLANDS_NULL;
    struct finding f = {.s = &s};
    int r = take_status(&s, status);

    if (r == 0)
        r = add_measured(&s, measured);
    f.root = calloc(s.n_nodes + 1, sizeof(*f.root));
    f.keys = calloc(s.n_nodes + 1, sizeof(*f.keys));
    if (!f.root || !f.keys)
        r = -ENOMEM;
    for (size_t i = 0; r == 0 && i < s.n_nodes; i++)
        f.root[i] = i;
    if (r == 0)
        r = find(&s, &f);
    free(f.root);
    free(f.keys);
    if (r == 0)
        *ret = s;
    else
        islands_deinit(&s);
    return r;
}

/* ---- as JSON -------------------------------------------------------------------------------- */

/* The names of the nodes of one island, or of those that are alone (SIZE_MAX). */
static json_t *encode_names(const struct islands *s, size_t index)
{
    json_t *names = json_array();

    for (size_t i = 0; i < s->n_nodes; i++)
        if (s->of[i] == index)
            fields_append(&names, json_string(s->nodes[i].name));
    return names;
}

static const char *nearness(const struct island *island)
{
    if (island->n_pairs == 0)
        return "unknown";
    return island->max_rtt_ms > ISLANDS_NEAR_MS ? "far" : "near";
}

json_t *islands_encode(const struct islands *s)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < s->n; i++) {
        const struct island *island = &s->items[i];
        json_t *item = json_pack("{s:s, s:s, s:b, s:s, s:s, s:s, s:b, s:o, s:i, s:o}", "name",
            island->name, "fabric", island->kind, "declared", (int)island->is_declared, "evidence",
            island->evidence, "state", state_names[island->state], "nearness", nearness(island),
            "askedTogether", (int)island->asked_together, "maxRttMs",
            island->n_pairs > 0 ? json_real(island->max_rtt_ms) : json_null(), "measuredPairs",
            (int)island->n_pairs, "nodes", encode_names(s, i));

        fields_append(&list, item);
    }
    return json_pack("{s:o, s:o}", "islands", list, "alone", encode_names(s, SIZE_MAX));
}

/* ---- for people ----------------------------------------------------------------------------- */

static void add_names(struct str *out, const json_t *names)
{
    const json_t *name;
    size_t i;

    json_array_foreach(names, i, name)
        str_addf(out, "%s%s", i > 0 ? " " : "", json_string_value(name));
}

/* What a person has to know of it, in a sentence. */
static void add_verdict(struct str *out, const json_t *island)
{
    const char *state = fields_text_of(island, "state");
    const json_t *rtt = json_object_get(island, "maxRttMs");
    long long n = json_integer_value(json_object_get(island, "measuredPairs"));

    if (strcmp(state, "contradicted") == 0)
        str_addf(out, "contradicted: a round trip takes %.2f ms%s", json_number_value(rtt),
            json_is_true(json_object_get(island, "askedTogether"))
                ? ", though the machines were asked to be placed together"
                : "");
    else if (strcmp(state, "verified") == 0)
        str_addf(out, "verified: %lld measured, %.2f ms at most", n, json_number_value(rtt));
    else if (json_is_number(rtt))
        str_addf(out, "found, not verified; near: %lld measured, %.2f ms at most", n,
            json_number_value(rtt));
    else
        str_add(out, "found, not verified; no round trip is measured from here");
}

void islands_format(struct str *out, const json_t *json)
{
    const json_t *alone = json_object_get(json, "alone");
    const json_t *island;
    size_t i;

    json_array_foreach(json_object_get(json, "islands"), i, island) {
        str_addf(out, "%s (%s)\n  nodes: ", fields_text_of(island, "name"),
            fields_text_of(island, "fabric"));
        add_names(out, json_object_get(island, "nodes"));
        str_addf(out, "\n  because %s\n  ", fields_text_of(island, "evidence"));
        add_verdict(out, island);
        str_add(out, "\n");
    }
    if (json_array_size(alone) > 0) {
        str_add(out, "in no island: ");
        add_names(out, alone);
        str_add(out, "\n");
    }
}
