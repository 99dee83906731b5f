/* sample_lock.c - see sample_lock.h. */
#include "test/support/sample_lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <openssl/sha.h>

#include "base/text.h"
#include "mesh/object/rule.h"

static void make_seed(const char *name, uint8_t ret[static 32])
{
    char text[128];
    int len = snprintf(text, sizeof(text), "weft lock sample %s", name);

    assert_true(len > 0 && (size_t)len < sizeof(text));
    (void)SHA256((const uint8_t *)text, (size_t)len, ret);
}

struct ed25519_secret sample_lock_secret(const char *name)
{
    struct ed25519_secret secret;

    make_seed(name, secret.b);
    return secret;
}

struct ed25519_public sample_lock_signing(const char *name)
{
    struct ed25519_secret secret = sample_lock_secret(name);
    struct ed25519_public public;

    assert_true(ed25519_derive_public(&secret, &public));
    return public;
}

struct x25519_secret sample_lock_node_secret(const char *name)
{
    struct x25519_secret secret;

    make_seed(name, secret.b);
    return secret;
}

struct x25519_public sample_lock_key(const char *name)
{
    struct x25519_secret secret = sample_lock_node_secret(name);
    struct x25519_public public;

    assert_true(x25519_derive_public(&secret, &public));
    return public;
}

/* ---- bodies ---- */

struct node sample_lock_node(const char *name, unsigned host)
{
    struct node n = NODE_NULL;
    const uint8_t v4[4] = {10, 7, (uint8_t)(host >> 8), (uint8_t)host};
    uint8_t v6[16] = {0xfd, 0x07, [14] = (uint8_t)(host >> 8), [15] = (uint8_t)host};

    (void)snprintf(n.meta.name, sizeof(n.meta.name), "%s", name);
    (void)snprintf(n.meta.network, sizeof(n.meta.network), "lab");
    n.key = sample_lock_key(name);
    n.address4 = ip_addr_v4(v4);
    n.address6 = ip_addr_v6(v6);
    return n;
}

void sample_lock_label(struct node *node, const char *key, const char *value)
{
    struct label *labels = reallocarray(node->labels, node->n_labels + 1, sizeof(*labels));

    assert_non_null(labels);
    node->labels = labels;
    labels[node->n_labels] = (struct label){.key = ""};
    (void)snprintf(labels[node->n_labels].key, OBJECT_LABEL_MAX + 1, "%s", key);
    (void)snprintf(labels[node->n_labels].value, OBJECT_LABEL_MAX + 1, "%s", value);
    node->n_labels++;
}

void sample_lock_route(struct node *node, const char *route)
{
    if (!node->routes)
        node->routes = calloc(1, sizeof(*node->routes));
    assert_non_null(node->routes);
    assert_int_equal(subnets_parse(node->routes, route, NULL), 0);
}

static int compare_signers(const void *a, const void *b)
{
    return ed25519_public_compare(
        &((const struct lock_signer *)a)->key, &((const struct lock_signer *)b)->key);
}

static int compare_publics(const void *a, const void *b)
{
    return ed25519_public_compare(a, b);
}

struct lock_signers sample_lock_signers(unsigned threshold, const char *names, const char *codes)
{
    struct lock_signers s = {.threshold = threshold};
    char name[NAME_MAX_LEN + 1];

    while (names && names[0] != '\0') {
        names = text_part(names, ' ', name, sizeof(name));
        memcpy(s.items[s.n].name, name, sizeof(name));
        s.items[s.n++].key = sample_lock_signing(name);
    }
    while (codes && codes[0] != '\0') {
        codes = text_part(codes, ' ', name, sizeof(name));
        s.recovery[s.n_recovery++] = sample_lock_signing(name);
    }
    qsort(s.items, s.n, sizeof(*s.items), compare_signers);
    qsort(s.recovery, s.n_recovery, sizeof(*s.recovery), compare_publics);
    return s;
}

struct mesh_edge sample_lock_edge(const char *a, const char *b)
{
    struct mesh_edge edge = MESH_EDGE_NULL;

    edge_name(a, b, edge.meta.name);
    (void)snprintf(edge.meta.network, sizeof(edge.meta.network), "lab");
    (void)snprintf(edge.nodes[0], sizeof(edge.nodes[0]), "%s", a);
    (void)snprintf(edge.nodes[1], sizeof(edge.nodes[1]), "%s", b);
    return edge;
}

struct object sample_lock_rule(
    const char *name, const char *from, const char *to, const char *service)
{
    json_t *json =
        json_pack("{s:s, s:{s:s, s:s}, s:{s:[s], s:[s], s:[s]}}", "kind", "Rule", "metadata",
            "name", name, "network", "lab", "spec", "from", from, "to", to, "allow", service);
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;

    if (object_decode(&o, json, OBJECT_STRICT, &e) != 0)
        fail_msg("%s", err_text(&e));
    json_decref(json);
    return o;
}

struct lock_token sample_lock_token(const struct sample_lock *s, const char *name, uint32_t uses)
{
    return (struct lock_token){
        .key = sample_lock_signing(name), .uses = uses, .until = s->now + 86400};
}

struct lock_genesis sample_lock_genesis(void)
{
    struct lock_genesis g = {.settings = {.topology = TOPOLOGY_HUB,
                                 .cipher = CIPHER_AES256GCM,
                                 .isolation = ISOLATION_STRICT,
                                 .demand = LOCK_DEMAND_PSK,
                                 .key_rotation = 604800,
                                 .trust_for = 86400},
        .signers = sample_lock_signers(2, "alice bob carol", "code-1 code-2"),
        .valid_until = SAMPLE_LOCK_UNTIL};

    assert_int_equal(ip_prefix_parse(&g.cidr4, "10.7.0.0/16", NULL), 0);
    assert_int_equal(ip_prefix_parse(&g.cidr6, "fd07::/64", NULL), 0);
    return g;
}

/* ---- chains ---- */

void sample_lock_init(struct sample_lock *s, const struct lock_pins *pins)
{
    *s = (struct sample_lock){.now = SAMPLE_LOCK_BEGUN_AT};
    lock_chain_init(&s->chain, "lab", pins);
}

void sample_lock_begin(struct sample_lock *s)
{
    sample_lock_init(s, NULL);
    sample_lock_put(
        s, (struct lock_body){.kind = LOCK_GENESIS, .genesis = sample_lock_genesis()}, "alice bob");
    sample_lock_put_node(s, sample_lock_node("gpu-1", 2));
    sample_lock_put_node(s, sample_lock_node("gpu-2", 3));
}

void sample_lock_deinit(struct sample_lock *s)
{
    lock_chain_deinit(&s->chain);
    free(s->bytes);
    free(s->ends);
    s->bytes = NULL;
    s->ends = NULL;
}

struct lock_entry sample_lock_make(struct sample_lock *s, struct lock_body *body, const char *by)
{
    struct lock_entry entry = LOCK_ENTRY_NULL;
    struct err e = ERR_NULL;
    char name[NAME_MAX_LEN + 1];

    lock_chain_next(&s->chain, s->now, &entry);
    entry.body = *body;
    *body = (struct lock_body)LOCK_BODY_NULL;
    while (by && by[0] != '\0') {
        struct ed25519_secret secret;

        by = text_part(by, ' ', name, sizeof(name));
        secret = sample_lock_secret(name);
        if (lock_entry_sign(&entry, &secret, &e) != 0)
            fail_msg("%s", err_text(&e));
    }
    return entry;
}

static void keep_bytes(struct sample_lock *s, const struct lock_entry *entry)
{
    struct writer w;

    if (s->cap - s->len < LOCK_ENTRY_MAX) {
        s->cap = 2 * s->cap + LOCK_ENTRY_MAX;
        s->bytes = realloc(s->bytes, s->cap);
    }
    s->ends = reallocarray(s->ends, s->chain.n + 1, sizeof(*s->ends));
    assert_non_null(s->bytes);
    assert_non_null(s->ends);
    w = writer_make(s->bytes + s->len, s->cap - s->len);
    lock_entry_encode(&w, entry);
    assert_false(w.failed);
    s->len += writer_len(&w);
    s->ends[s->chain.n] = s->len;
}

void sample_lock_take(struct sample_lock *s, struct lock_entry *entry)
{
    struct err e = ERR_NULL;

    keep_bytes(s, entry);
    if (lock_chain_apply(&s->chain, entry, &e) != 0)
        fail_msg("%s", err_text(&e));
    lock_entry_deinit(entry);
    s->now += 10;
}

void sample_lock_put(struct sample_lock *s, struct lock_body body, const char *by)
{
    struct lock_entry entry = sample_lock_make(s, &body, by);

    sample_lock_take(s, &entry);
}

void sample_lock_put_node(struct sample_lock *s, struct node node)
{
    sample_lock_put(s, (struct lock_body){.kind = LOCK_NODE, .node = node}, "alice bob");
}

void sample_lock_refuse(
    struct sample_lock *s, struct lock_body body, const char *by, const char *words)
{
    struct lock_entry entry = sample_lock_make(s, &body, by);
    struct err e = ERR_NULL;
    size_t n = s->chain.n;

    if (lock_chain_apply(&s->chain, &entry, &e) == 0)
        fail_msg("applied, instead of \"%s\"", words);
    if (!strstr(e.text, words))
        fail_msg("\"%s\" instead of \"%s\"", e.text, words);
    assert_int_equal(s->chain.n, n);
    assert_false(s->chain.is_broken);
    lock_entry_deinit(&entry);
}
