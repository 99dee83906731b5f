/* lock_body.c - see lock_body.h. The bytes are in docs/wire/lock.md. */
#include "mesh/lock/lock_body.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/fields.h"
#include "mesh/object/rule.h"

/* A label's two halves and what is between them, with a byte of length. */
#define PEER_MAX (1 + OBJECT_LABEL_MAX + 1 + OBJECT_LABEL_MAX)
_Static_assert(1 + NAME_MAX_LEN + 2 * (2 + RULE_PEERS_MAX * PEER_MAX) + 1 +
                       RULE_SERVICES_MAX * RULE_TEXT_MAX <=
                   LOCK_BODY_MAX,
    "the longest body, a rule");

#define V4_SIZE         4
#define PORT_NAME_WIDTH 2 /* bytes of the length of a hub's name, which may have more than 255 */

/* Bits of a node's flags, and of a token's. */
#define FLAG_RELAY     1
#define FLAG_STOCK     2
#define FLAG_EPHEMERAL 4
#define FLAG_HUB       8

const char *const lock_demand_names[] = {"none", "psk", "ml-kem"};
_Static_assert(
    sizeof(lock_demand_names) / sizeof(*lock_demand_names) == LOCK_DEMAND_N, "a name each");

const char *const lock_kind_names[] = {"none", "genesis", "signers", "recover", "settings", "renew",
    "node", "keys", "hubs", "edge", "rule", "rule-end", "tombstone", "token", "token-end", "join"};
_Static_assert(sizeof(lock_kind_names) / sizeof(*lock_kind_names) == LOCK_KIND_N, "a name each");

/* ---- writing -------------------------------------------------------------------------------- */

static void write_text(struct writer *w, const char *text)
{
    size_t len = strlen(text);

    writer_u8(w, (uint8_t)len);
    writer_put(w, text, len);
}

static void write_signing(struct writer *w, const struct ed25519_public *key)
{
    writer_put(w, key->b, sizeof(key->b));
}

static void write_public(struct writer *w, const struct x25519_public *key)
{
    writer_put(w, key->b, sizeof(key->b));
}

static void write_prefix(struct writer *w, const struct ip_prefix *p)
{
    writer_put(w, p->addr.b, sizeof(p->addr.b));
    writer_u8(w, p->len);
}

static void write_endpoint(struct writer *w, const struct endpoint *ep)
{
    writer_put(w, ep->addr.b, sizeof(ep->addr.b));
    writer_be32(w, ep->scope);
    writer_be16(w, ep->port);
}

static void write_settings(struct writer *w, const struct lock_settings *s)
{
    writer_u8(w, (uint8_t)s->topology);
    writer_u8(w, (uint8_t)s->cipher);
    writer_u8(w, (uint8_t)s->isolation);
    writer_u8(w, (uint8_t)s->demand);
    writer_be32(w, s->key_rotation);
    writer_be32(w, s->trust_for);
}

static void write_signers(struct writer *w, const struct lock_signers *s)
{
    writer_u8(w, (uint8_t)s->threshold);
    writer_u8(w, (uint8_t)s->n);
    for (unsigned i = 0; i < s->n; i++) {
        write_signing(w, &s->items[i].key);
        write_text(w, s->items[i].name);
    }
    writer_u8(w, (uint8_t)s->n_recovery);
    for (unsigned i = 0; i < s->n_recovery; i++)
        write_signing(w, &s->recovery[i]);
}

static void write_genesis(struct writer *w, const struct lock_genesis *g)
{
    write_prefix(w, &g->cidr4);
    write_prefix(w, &g->cidr6);
    write_settings(w, &g->settings);
    write_signers(w, &g->signers);
    writer_be64(w, g->valid_until);
}

static void write_labels(struct writer *w, const struct label *labels, unsigned n)
{
    writer_u8(w, (uint8_t)n);
    for (unsigned i = 0; i < n; i++) {
        write_text(w, labels[i].key);
        write_text(w, labels[i].value);
    }
}

static void write_routes(struct writer *w, const struct subnets *s)
{
    unsigned n = s ? s->n : 0;

    writer_u8(w, (uint8_t)n);
    for (unsigned i = 0; i < n; i++)
        write_prefix(w, &s->items[i]);
}

static void write_hub(struct writer *w, const struct node_hub *hub)
{
    writer_u8(w, (uint8_t)hub->n_endpoints);
    for (unsigned i = 0; i < hub->n_endpoints; i++)
        write_endpoint(w, &hub->endpoints[i]);
    writer_u8(w, (uint8_t)hub->n_names);
    for (unsigned i = 0; i < hub->n_names; i++) {
        writer_be16(w, (uint16_t)strlen(hub->names[i]));
        writer_put(w, hub->names[i], strlen(hub->names[i]));
    }
    writer_be16(w, hub->api_port);
    writer_u8(w, hub->has_tls_pin);
    if (hub->has_tls_pin)
        writer_put(w, hub->tls_pin.b, sizeof(hub->tls_pin.b));
}

static void write_node(struct writer *w, const struct node *n)
{
    write_text(w, n->meta.name);
    write_public(w, &n->key);
    writer_put(w, n->address4.b + sizeof(n->address4.b) - V4_SIZE, V4_SIZE);
    writer_put(w, n->address6.b, sizeof(n->address6.b));
    writer_u8(w, (uint8_t)((n->relay ? FLAG_RELAY : 0) | (n->stock ? FLAG_STOCK : 0) |
                           (n->ephemeral ? FLAG_EPHEMERAL : 0) | (n->hub ? FLAG_HUB : 0)));
    write_text(w, n->island);
    write_labels(w, n->labels, n->n_labels);
    write_routes(w, n->routes);
    if (n->hub)
        write_hub(w, n->hub);
}

static void write_keys(struct writer *w, const struct lock_keys *keys)
{
    writer_be16(w, (uint16_t)keys->n);
    for (unsigned i = 0; i < keys->n; i++) {
        write_text(w, keys->items[i].name);
        write_public(w, &keys->items[i].key);
    }
}

static void write_hubs(struct writer *w, const struct lock_hubs *hubs)
{
    writer_u8(w, (uint8_t)hubs->n);
    for (unsigned i = 0; i < hubs->n; i++)
        write_text(w, hubs->names[i]);
}

static void write_edge(struct writer *w, const struct mesh_edge *edge)
{
    writer_u8(w, edge->path == EDGE_PATH_OFF);
    for (unsigned i = 0; i < 2; i++) {
        write_text(w, edge->nodes[i]);
        write_endpoint(w, &edge->pins[i].endpoint);
        write_public(w, &edge->pins[i].key);
    }
}

static void write_peers(struct writer *w, const struct rule_peer *peers, unsigned n)
{
    char text[RULE_TEXT_MAX];

    writer_be16(w, (uint16_t)n);
    for (unsigned i = 0; i < n; i++)
        write_text(w, rule_peer_format(&peers[i], text));
}

static void write_rule(struct writer *w, const struct object *o)
{
    const struct rule *r = rule_of(o);
    char text[RULE_TEXT_MAX];

    write_text(w, o->meta.name);
    write_peers(w, r->from, r->n_from);
    write_peers(w, r->to, r->n_to);
    writer_u8(w, (uint8_t)r->n_services);
    for (unsigned i = 0; i < r->n_services; i++)
        write_text(w, rule_service_format(&r->services[i], text));
}

static void write_token(struct writer *w, const struct lock_token *t)
{
    write_signing(w, &t->key);
    writer_be32(w, t->uses);
    writer_be64(w, t->until);
    writer_u8(w, (uint8_t)((t->relay ? FLAG_RELAY : 0) | (t->ephemeral ? FLAG_EPHEMERAL : 0)));
    write_text(w, t->island);
    write_labels(w, t->labels, t->n_labels);
    write_routes(w, &t->routes);
}

void lock_body_write(struct writer *w, const struct lock_body *b)
{
    switch (b->kind) {
    case LOCK_GENESIS:
        write_genesis(w, &b->genesis);
        break;
    case LOCK_SIGNERS:
        write_signers(w, &b->signers);
        break;
    case LOCK_RECOVER:
        write_signing(w, &b->recover.key);
        write_signers(w, &b->recover.signers);
        break;
    case LOCK_SETTINGS:
        write_settings(w, &b->settings);
        break;
    case LOCK_RENEW:
        writer_be64(w, b->renew.version);
        writer_be64(w, b->renew.valid_until);
        break;
    case LOCK_NODE:
        write_node(w, &b->node);
        break;
    case LOCK_KEYS:
        write_keys(w, &b->keys);
        break;
    case LOCK_HUBS:
        write_hubs(w, &b->hubs);
        break;
    case LOCK_EDGE:
        write_edge(w, &b->edge);
        break;
    case LOCK_RULE:
        write_rule(w, &b->rule);
        break;
    case LOCK_RULE_END:
        write_text(w, b->rule_end);
        break;
    case LOCK_TOMBSTONE:
        write_text(w, b->tombstone.name);
        write_public(w, &b->tombstone.key);
        writer_be64(w, b->tombstone.counter);
        break;
    case LOCK_TOKEN:
        write_token(w, &b->token);
        break;
    case LOCK_TOKEN_END:
        write_signing(w, &b->token_end);
        break;
    case LOCK_JOIN:
        write_signing(w, &b->join.token);
        write_node(w, &b->join.node);
        break;
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Bytes being read, and the first thing that was wrong with them: after it nothing is read. */
struct input {
    struct reader *in; /* pins */
    struct err *e;     /* pins; may be NULL */
    int failed;        /* what the decoder returns */
};

static void refuse(struct input *in, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void refuse(struct input *in, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    if (in->failed)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    in->failed = err_set(in->e, -EINVAL, "%s", text);
}

/* The next @len bytes; NULL: it has failed. */
static const uint8_t *take(struct input *in, size_t len, const char *what)
{
    const uint8_t *p = in->failed ? NULL : reader_take(in->in, len);

    if (!p)
        refuse(in, "the entry ends within %s", what);
    return p;
}

static void take_bytes(struct input *in, void *ret, size_t len, const char *what)
{
    const uint8_t *p = take(in, len, what);

    if (p)
        memcpy(ret, p, len);
}

/* The next @len bytes as a number, big endian. */
static uint64_t take_number(struct input *in, size_t len, const char *what)
{
    const uint8_t *p = take(in, len, what);
    uint64_t v = 0;

    for (size_t i = 0; p && i < len; i++)
        v = v << 8 | p[i];
    return v;
}

/* A number within bounds; @min on failure. */
static uint64_t take_within(
    struct input *in, size_t len, uint64_t min, uint64_t max, const char *what)
{
    uint64_t v = take_number(in, len, what);

    if (!in->failed && (v < min || v > max))
        refuse(in, "%s is %llu, and %llu to %llu are allowed", what, (unsigned long long)v,
            (unsigned long long)min, (unsigned long long)max);
    return in->failed ? min : v;
}

static uint64_t take_time(struct input *in, const char *what)
{
    return take_within(in, 8, 0, LOCK_TIME_MAX, what);
}

/* A text of up to @max bytes, whose length is in @width bytes before it; @ret has room for a zero
 * as well. */
static void take_text(struct input *in, size_t width, char *ret, size_t max, const char *what)
{
    size_t len = (size_t)take_within(in, width, 0, max, what);
    const uint8_t *p = take(in, len, what);

    if (p && memchr(p, '\0', len))
        refuse(in, "%s has a zero inside", what);
    if (in->failed)
        return;
    memcpy(ret, p, len);
    ret[len] = '\0';
}

static void take_name(struct input *in, char ret[static NAME_MAX_LEN + 1], const char *what)
{
    char name[NAME_MAX_LEN + 1] = "";
    struct err e = ERR_NULL;

    take_text(in, 1, name, NAME_MAX_LEN, what);
    if (!in->failed && parse_name(name, what, &e) < 0)
        refuse(in, "%s", err_text(&e));
    memcpy(ret, name, sizeof(name));
}

static void take_node_name(struct input *in, char ret[static NAME_MAX_LEN + 1])
{
    struct err e = ERR_NULL;

    take_name(in, ret, "node name");
    if (!in->failed && node_check_name(ret, &e) < 0)
        refuse(in, "%s", err_text(&e));
}

static void take_signing(struct input *in, struct ed25519_public *ret, const char *what)
{
    char text[ED25519_BASE64_MAX];

    take_bytes(in, ret->b, sizeof(ret->b), what);
    if (!in->failed && !ed25519_public_can_be(ret))
        refuse(
            in, "%s, %s, is none that a private key has", what, ed25519_public_format(ret, text));
}

static void take_public(struct input *in, struct x25519_public *ret, const char *what)
{
    char text[X25519_BASE64_MAX];

    take_bytes(in, ret->b, sizeof(ret->b), what);
    if (!in->failed && !x25519_public_can_be(ret))
        refuse(in, "%s, %s, is none that a private key has", what, x25519_public_format(ret, text));
}

static struct ip_prefix take_prefix(struct input *in, const char *what)
{
    struct ip_prefix p = {.len = 0};
    unsigned most;

    take_bytes(in, p.addr.b, sizeof(p.addr.b), what);
    most = ip_addr_is_v4(&p.addr) ? 32 : 128;
    p.len = (uint8_t)take_within(in, 1, 0, most, what);
    return p;
}

/* As "ADDRESS:PORT" has it; if @may_be_none, zeroes as well. */
static void take_endpoint(struct input *in, struct endpoint *ret, bool may_be_none)
{
    struct endpoint ep = {.port = 0}, parsed = {.port = 0};
    char text[ENDPOINT_TEXT_MAX];
    struct err e = ERR_NULL;

    take_bytes(in, ep.addr.b, sizeof(ep.addr.b), "an endpoint");
    ep.scope = (uint32_t)take_number(in, 4, "an endpoint");
    ep.port = (uint16_t)take_number(in, 2, "an endpoint");
    if (in->failed)
        return;
    if (!(may_be_none && endpoint_equal(&ep, &parsed)) &&
        (endpoint_is_none(&ep) || endpoint_parse(&parsed, endpoint_format(&ep, text), &e) < 0 ||
            !endpoint_equal(&ep, &parsed)))
        refuse(in, "an endpoint, \"%s\", has no port, or is no address of UDP",
            endpoint_format(&ep, text));
    *ret = ep;
}

/* ---- who signs, and settings ---- */

static void take_settings(struct input *in, struct lock_settings *ret)
{
    ret->topology = (enum topology)take_within(in, 1, 0, TOPOLOGY_N - 1, "the topology");
    ret->cipher = (enum cipher)take_within(in, 1, 0, CIPHER_N - 1, "the cipher");
    ret->isolation = (enum isolation)take_within(in, 1, 0, ISOLATION_N - 1, "the isolation");
    ret->demand = (enum lock_demand)take_within(in, 1, 0, LOCK_DEMAND_N - 1, "the demand");
    ret->key_rotation = (uint32_t)take_number(in, 4, "the key rotation");
    ret->trust_for = (uint32_t)take_number(in, 4, "the time of trust");
}

static void take_recovery(struct input *in, struct lock_signers *s)
{
    s->n_recovery = (unsigned)take_within(in, 1, 0, LOCK_RECOVERY_MAX, "the number of codes");
    for (unsigned i = 0; !in->failed && i < s->n_recovery; i++) {
        take_signing(in, &s->recovery[i], "the key of a code");
        if (i > 0 && ed25519_public_compare(&s->recovery[i - 1], &s->recovery[i]) >= 0)
            refuse(in, "the keys of the codes are not in order, or one is there twice");
        for (unsigned k = 0; k < s->n; k++)
            if (ed25519_public_compare(&s->items[k].key, &s->recovery[i]) == 0)
                refuse(in, "the key of a code is the signer \"%s\"'s as well", s->items[k].name);
    }
}

static void take_signers(struct input *in, struct lock_signers *ret)
{
    struct lock_signers s = {.n = 0};

    s.threshold = (unsigned)take_within(in, 1, 1, LOCK_SIGNERS_MAX, "the threshold");
    s.n = (unsigned)take_within(in, 1, 1, LOCK_SIGNERS_MAX, "the number of signers");
    if (s.threshold > s.n)
        refuse(in, "%u signatures are demanded of %u signers", s.threshold, s.n);
    for (unsigned i = 0; !in->failed && i < s.n; i++) {
        take_signing(in, &s.items[i].key, "a signer's key");
        take_name(in, s.items[i].name, "signer name");
        if (i > 0 && ed25519_public_compare(&s.items[i - 1].key, &s.items[i].key) >= 0)
            refuse(in, "the signers are not in the order of their keys, or one is there twice");
        for (unsigned k = 0; k < i; k++)
            if (strcmp(s.items[k].name, s.items[i].name) == 0)
                refuse(in, "two signers are called \"%s\"", s.items[i].name);
    }
    take_recovery(in, &s);
    *ret = s;
}

static void take_block(struct input *in, struct ip_prefix *ret, bool v4)
{
    struct ip_prefix p = take_prefix(in, v4 ? "the IPv4 block" : "the IPv6 block");
    struct err e = ERR_NULL;
    char text[IP_PREFIX_TEXT_MAX];

    if (!in->failed && block_parse(ret, ip_prefix_format(&p, text), v4, "the block", &e) < 0)
        refuse(in, "%s", err_text(&e));
}

static void take_genesis(struct input *in, struct lock_genesis *ret)
{
    take_block(in, &ret->cidr4, true);
    take_block(in, &ret->cidr6, false);
    take_settings(in, &ret->settings);
    take_signers(in, &ret->signers);
    ret->valid_until = take_time(in, "the time until which it is good");
}

/* ---- nodes ---- */

static void take_labels(struct input *in, struct label **ret, unsigned *ret_n)
{
    unsigned n = (unsigned)take_within(in, 1, 0, OBJECT_LABELS_MAX, "the number of labels");
    struct label *labels = n > 0 ? calloc(n, sizeof(*labels)) : NULL;
    struct err e = ERR_NULL;

    *ret = labels;
    *ret_n = n;
    if (n > 0 && !labels) {
        *ret_n = 0;
        in->failed = err_set(in->e, -ENOMEM, "no memory for %u labels", n);
    }
    for (unsigned i = 0; !in->failed && i < n; i++) {
        take_text(in, 1, labels[i].key, OBJECT_LABEL_MAX, "a label's key");
        take_text(in, 1, labels[i].value, OBJECT_LABEL_MAX, "a label's value");
        if (!in->failed && label_check(labels[i].key, labels[i].value, &e) < 0)
            refuse(in, "%s", err_text(&e));
        if (i > 0 && strcmp(labels[i - 1].key, labels[i].key) >= 0)
            refuse(in, "the labels are not in the order of their keys, or one is there twice");
    }
}

static void take_routes(struct input *in, struct subnets *ret)
{
    unsigned n = (unsigned)take_within(in, 1, 0, SUBNETS_MAX, "the number of routes");
    struct err e = ERR_NULL;

    for (unsigned i = 0; !in->failed && i < n; i++) {
        struct ip_prefix p = take_prefix(in, "a route"), parsed;
        char text[IP_PREFIX_TEXT_MAX];

        if (!in->failed && (subnet_parse(&parsed, ip_prefix_format(&p, text), &e) < 0 ||
                               subnets_add(ret, &parsed, &e) < 0))
            refuse(in, "%s", err_text(&e));
    }
}

static void take_hub_names(struct input *in, struct node_hub *hub)
{
    struct err e = ERR_NULL;

    hub->n_names =
        (unsigned)take_within(in, 1, 0, OBJECT_HUB_NAMES_MAX, "the number of a hub's names");
    for (unsigned i = 0; !in->failed && i < hub->n_names; i++) {
        take_text(in, PORT_NAME_WIDTH, hub->names[i], HOST_PORT_MAX, "a hub's name");
        if (!in->failed && host_port_check(hub->names[i], &e) < 0)
            refuse(in, "a hub's name: %s", err_text(&e));
    }
}

/* Into @n->hub, which the caller releases also on failure. */
static void take_hub(struct input *in, struct node *n)
{
    struct node_hub *hub = calloc(1, sizeof(*hub));

    n->hub = hub;
    if (!hub) {
        in->failed = err_set(in->e, -ENOMEM, "no memory for a hub");
        return;
    }
    hub->n_endpoints =
        (unsigned)take_within(in, 1, 1, OBJECT_ENDPOINTS_MAX, "the number of a hub's endpoints");
    for (unsigned i = 0; !in->failed && i < hub->n_endpoints; i++)
        take_endpoint(in, &hub->endpoints[i], false);
    take_hub_names(in, hub);
    hub->api_port = (uint16_t)take_within(in, 2, 1, UINT16_MAX, "a hub's API port");
    hub->has_tls_pin = take_within(in, 1, 0, 1, "whether a hub's TLS key is known") == 1;
    if (hub->has_tls_pin)
        take_bytes(in, hub->tls_pin.b, sizeof(hub->tls_pin.b), "a hub's TLS pin");
}

static void take_addresses(struct input *in, struct node *n)
{
    uint8_t v4[V4_SIZE] = {0};
    uint8_t v6[16] = {0};

    take_bytes(in, v4, sizeof(v4), "a node's IPv4 address");
    take_bytes(in, v6, sizeof(v6), "a node's IPv6 address");
    n->address4 = ip_addr_v4(v4);
    n->address6 = ip_addr_v6(v6);
    if (!in->failed && ip_addr_is_v4(&n->address6))
        refuse(in, "the IPv6 address of \"%s\" is one of IPv4", n->meta.name);
}

static void take_island(struct input *in, char ret[static NAME_MAX_LEN + 1])
{
    struct err e = ERR_NULL;

    take_text(in, 1, ret, NAME_MAX_LEN, "the island");
    if (!in->failed && ret[0] != '\0' && parse_name(ret, "island", &e) < 0)
        refuse(in, "%s", err_text(&e));
}

/* What was made so far is in @n, also on failure. */
static void take_node(struct input *in, const char *network, struct node *n)
{
    struct subnets routes = SUBNETS_NULL;
    unsigned flags;

    (void)snprintf(n->meta.network, sizeof(n->meta.network), "%s", network);
    take_node_name(in, n->meta.name);
    take_public(in, &n->key, "a node's key");
    take_addresses(in, n);
    flags = (unsigned)take_within(
        in, 1, 0, FLAG_RELAY | FLAG_STOCK | FLAG_EPHEMERAL | FLAG_HUB, "a node's flags");
    n->relay = (flags & FLAG_RELAY) != 0;
    n->stock = (flags & FLAG_STOCK) != 0;
    n->ephemeral = (flags & FLAG_EPHEMERAL) != 0;
    take_island(in, n->island);
    take_labels(in, &n->labels, &n->n_labels);
    take_routes(in, &routes);
    n->routes = routes.n > 0 ? malloc(sizeof(*n->routes)) : NULL;
    if (n->routes)
        *n->routes = routes;
    else if (routes.n > 0)
        in->failed = err_set(in->e, -ENOMEM, "no memory for the routes of \"%s\"", n->meta.name);
    if ((flags & FLAG_HUB) != 0)
        take_hub(in, n);
}

static void take_keys(struct input *in, struct lock_keys *keys)
{
    unsigned n = (unsigned)take_within(in, 2, 1, LOCK_KEYS_MAX, "the number of keys");

    keys->items = calloc(n, sizeof(*keys->items));
    keys->n = keys->items ? n : 0;
    if (!keys->items)
        in->failed = err_set(in->e, -ENOMEM, "no memory for %u keys", n);
    for (unsigned i = 0; !in->failed && i < keys->n; i++) {
        take_node_name(in, keys->items[i].name);
        take_public(in, &keys->items[i].key, "a node's key");
        if (i > 0 && strcmp(keys->items[i - 1].name, keys->items[i].name) >= 0)
            refuse(in, "the keys are not in the order of the nodes' names, or one is there twice");
    }
}

static void take_hubs(struct input *in, struct lock_hubs *hubs)
{
    hubs->n = (unsigned)take_within(in, 1, 1, LOCK_HUBS_MAX, "the number of hubs");
    for (unsigned i = 0; !in->failed && i < hubs->n; i++) {
        take_node_name(in, hubs->names[i]);
        for (unsigned k = 0; k < i; k++)
            if (strcmp(hubs->names[k], hubs->names[i]) == 0)
                refuse(in, "\"%s\" is twice among the hubs", hubs->names[i]);
    }
}

/* ---- edges and rules ---- */

static void take_edge(struct input *in, const char *network, struct mesh_edge *edge)
{
    bool is_off = take_within(in, 1, 0, 1, "whether an edge is off") == 1;

    edge->path = is_off ? EDGE_PATH_OFF : EDGE_PATH_AUTO;
    for (unsigned i = 0; i < 2; i++) {
        static const struct x25519_public none = {{0}};

        take_node_name(in, edge->nodes[i]);
        take_endpoint(in, &edge->pins[i].endpoint, true);
        take_bytes(in, edge->pins[i].key.b, sizeof(edge->pins[i].key.b), "a pinned key");
        if (!in->failed && !x25519_public_equal(&edge->pins[i].key, &none) &&
            !x25519_public_can_be(&edge->pins[i].key))
            refuse(in, "a pinned key is none that a private key has");
    }
    if (in->failed)
        return;
    if (strcmp(edge->nodes[0], edge->nodes[1]) >= 0)
        refuse(in, "the names \"%s\" and \"%s\" of an edge are not two in byte order",
            edge->nodes[0], edge->nodes[1]);
    edge_name(edge->nodes[0], edge->nodes[1], edge->meta.name);
    (void)snprintf(edge->meta.network, sizeof(edge->meta.network), "%s", network);
}

static struct rule_peer *take_peers(struct input *in, bool is_destination, unsigned *ret_n)
{
    unsigned n = (unsigned)take_within(in, 2, 1, RULE_PEERS_MAX, "the number of a rule's peers");
    struct rule_peer *peers = calloc(n, sizeof(*peers));
    struct err e = ERR_NULL;

    *ret_n = n;
    if (!peers)
        in->failed = err_set(in->e, -ENOMEM, "no memory for %u peers of a rule", n);
    for (unsigned i = 0; !in->failed && i < n; i++) {
        char text[RULE_TEXT_MAX] = "";

        take_text(in, 1, text, RULE_TEXT_MAX - 1, "a rule's peer");
        if (!in->failed && rule_peer_parse(&peers[i], text, is_destination, &e) < 0)
            refuse(in, "%s", err_text(&e));
    }
    return peers;
}

static struct rule_service *take_services(struct input *in, unsigned *ret_n)
{
    unsigned n =
        (unsigned)take_within(in, 1, 1, RULE_SERVICES_MAX, "the number of a rule's services");
    struct rule_service *services = calloc(n, sizeof(*services));
    struct err e = ERR_NULL;

    *ret_n = n;
    if (!services)
        in->failed = err_set(in->e, -ENOMEM, "no memory for %u services of a rule", n);
    for (unsigned i = 0; !in->failed && i < n; i++) {
        char text[RULE_TEXT_MAX] = "";

        take_text(in, 1, text, RULE_TEXT_MAX - 1, "a rule's service");
        if (!in->failed && rule_service_parse(&services[i], text, &e) < 0)
            refuse(in, "%s", err_text(&e));
    }
    return services;
}

static void take_rule(struct input *in, const char *network, struct object *o)
{
    struct rule *r = calloc(1, sizeof(*r));

    if (!r) {
        in->failed = err_set(in->e, -ENOMEM, "no memory for a rule");
        return;
    }
    o->kind = &rule_kind;
    o->plain.spec = r;
    take_name(in, o->meta.name, "rule name");
    (void)snprintf(o->meta.network, sizeof(o->meta.network), "%s", network);
    r->from = take_peers(in, false, &r->n_from);
    r->to = take_peers(in, true, &r->n_to);
    r->services = take_services(in, &r->n_services);
}

/* ---- tokens ---- */

static void take_token(struct input *in, struct lock_token *t)
{
    unsigned flags;

    take_signing(in, &t->key, "a token's key");
    t->uses = (uint32_t)take_within(in, 4, 1, LOCK_TOKEN_USES_MAX, "the number of a token's uses");
    t->until = take_time(in, "the time until which a token is good");
    flags = (unsigned)take_within(in, 1, 0, FLAG_RELAY | FLAG_EPHEMERAL, "a token's flags");
    t->relay = (flags & FLAG_RELAY) != 0;
    t->ephemeral = (flags & FLAG_EPHEMERAL) != 0;
    take_island(in, t->island);
    take_labels(in, &t->labels, &t->n_labels);
    take_routes(in, &t->routes);
}

/* Into @b, of which the kind is set; the caller releases it also on failure. */
static void take_body(struct input *in, const char *network, struct lock_body *b)
{
    switch (b->kind) {
    case LOCK_GENESIS:
        take_genesis(in, &b->genesis);
        break;
    case LOCK_SIGNERS:
        take_signers(in, &b->signers);
        break;
    case LOCK_RECOVER:
        take_signing(in, &b->recover.key, "the key of a code");
        take_signers(in, &b->recover.signers);
        break;
    case LOCK_SETTINGS:
        take_settings(in, &b->settings);
        break;
    case LOCK_RENEW:
        b->renew.version = take_number(in, 8, "the version");
        b->renew.valid_until = take_time(in, "the time until which it is good");
        break;
    case LOCK_NODE:
        take_node(in, network, &b->node);
        break;
    case LOCK_KEYS:
        take_keys(in, &b->keys);
        break;
    case LOCK_HUBS:
        take_hubs(in, &b->hubs);
        break;
    case LOCK_EDGE:
        take_edge(in, network, &b->edge);
        break;
    case LOCK_RULE:
        take_rule(in, network, &b->rule);
        break;
    case LOCK_RULE_END:
        take_name(in, b->rule_end, "rule name");
        break;
    case LOCK_TOMBSTONE:
        take_node_name(in, b->tombstone.name);
        take_public(in, &b->tombstone.key, "a node's key");
        b->tombstone.counter = take_number(in, 8, "the tombstone's counter");
        break;
    case LOCK_TOKEN:
        take_token(in, &b->token);
        break;
    case LOCK_TOKEN_END:
        take_signing(in, &b->token_end, "a token's key");
        break;
    case LOCK_JOIN:
        take_signing(in, &b->join.token, "a token's key");
        take_node(in, network, &b->join.node);
        break;
    }
}

int lock_body_read(struct lock_body *ret, enum lock_kind kind, struct reader *in,
    const char *network, struct err *e)
{
    struct lock_body b = {.kind = kind};
    struct input input = {.in = in, .e = e};

    take_body(&input, network, &b);
    if (input.failed) {
        lock_body_deinit(&b);
        return input.failed;
    }
    *ret = b;
    return 0;
}

void lock_body_deinit(struct lock_body *b)
{
    switch (b->kind) {
    case LOCK_NODE:
        node_deinit(&b->node);
        break;
    case LOCK_JOIN:
        node_deinit(&b->join.node);
        break;
    case LOCK_KEYS:
        free(b->keys.items);
        break;
    case LOCK_RULE:
        object_deinit(&b->rule);
        break;
    case LOCK_TOKEN:
        free(b->token.labels);
        break;
    case LOCK_GENESIS:
    case LOCK_SIGNERS:
    case LOCK_RECOVER:
    case LOCK_SETTINGS:
    case LOCK_RENEW:
    case LOCK_HUBS:
    case LOCK_EDGE:
    case LOCK_RULE_END:
    case LOCK_TOMBSTONE:
    case LOCK_TOKEN_END:
        break;
    }
    b->kind = 0;
}

bool lock_body_equal(const struct lock_body *a, const struct lock_body *b)
{
    uint8_t *bytes = malloc(2 * (size_t)LOCK_BODY_MAX);
    struct writer x = writer_make(bytes, bytes ? LOCK_BODY_MAX : 0);
    struct writer y = writer_make(bytes ? bytes + LOCK_BODY_MAX : NULL, bytes ? LOCK_BODY_MAX : 0);
    bool is_same = bytes && a->kind == b->kind;

    if (is_same) {
        lock_body_write(&x, a);
        lock_body_write(&y, b);
        is_same = !x.failed && !y.failed && writer_len(&x) == writer_len(&y) &&
                  memcmp(x.start, y.start, writer_len(&x)) == 0;
    }
    free(bytes);
    return is_same;
}

const struct label *lock_label_find(const struct label *labels, unsigned n, const char *key)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(labels[i].key, key) == 0)
            return &labels[i];
    return NULL;
}
