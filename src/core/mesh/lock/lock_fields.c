/* lock_fields.c - see lock_fields.h. */
#include "mesh/lock/lock_fields.h"

#include <string.h>

#include "base/text.h"
#include "base/traffic.h"
#include "mesh/lock/lock_body.h"
#include "mesh/object/rule.h"
#include "mesh/object/traffic.h"

#define MINUTE 60u
#define HOUR   (60u * MINUTE)
#define DAY    (24u * HOUR)

void lock_time_format(uint64_t at, struct str *out)
{
    char day[TRAFFIC_DAY_TEXT_MAX];
    unsigned of_day = (unsigned)(at % DAY);

    str_addf(out, "%s %02u:%02u:%02u UTC", traffic_day_format(traffic_day((int64_t)at), day),
        of_day / HOUR, of_day / MINUTE % 60, of_day % MINUTE);
}

static void add_yes(bool is_so, struct str *out)
{
    str_add(out, is_so ? "yes" : "no");
}

/* ", " before all but the first. */
static void add_item(struct str *out, unsigned i, const char *text)
{
    str_add(out, i > 0 ? ", " : "");
    str_add(out, text);
}

static void add_none(struct str *out, unsigned n)
{
    if (n == 0)
        str_add(out, "none");
}

static void add_public(const struct x25519_public *key, struct str *out)
{
    char text[X25519_BASE64_MAX];

    str_add(out, x25519_public_is_none(key) ? "any" : x25519_public_format(key, text));
}

static void add_signing(const struct ed25519_public *key, struct str *out)
{
    char text[ED25519_BASE64_MAX];

    str_add(out, ed25519_public_format(key, text));
}

static void add_address(const struct ip_addr *a, struct str *out)
{
    char text[IP_ADDR_TEXT_MAX];

    str_add(out, ip_addr_format(a, text));
}

/* A value may have anything in it: in quotes where a label or a list could be seen in it. */
static void add_labels(const struct label *labels, unsigned n, struct str *out)
{
    add_none(out, n);
    for (unsigned i = 0; i < n; i++) {
        bool is_plain = labels[i].value[strcspn(labels[i].value, ", \"=")] == '\0';

        add_item(out, i, labels[i].key);
        str_addf(out, is_plain ? "=%s" : "=\"%s\"", labels[i].value);
    }
}

static void add_routes(const struct subnets *routes, struct str *out)
{
    char text[SUBNETS_TEXT_MAX];

    add_none(out, routes ? routes->n : 0);
    if (routes)
        str_add(out, subnets_format(routes, text));
}

static void add_island(const char *island, struct str *out)
{
    str_add(out, island[0] != '\0' ? island : "none");
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static void node_key(const void *object, struct str *out)
{
    add_public(&((const struct node *)object)->key, out);
}

static void node_address4(const void *object, struct str *out)
{
    add_address(&((const struct node *)object)->address4, out);
}

static void node_address6(const void *object, struct str *out)
{
    add_address(&((const struct node *)object)->address6, out);
}

static void node_routes(const void *object, struct str *out)
{
    add_routes(((const struct node *)object)->routes, out);
}

static void node_labels(const void *object, struct str *out)
{
    const struct node *n = object;

    add_labels(n->labels, n->n_labels, out);
}

static void node_island(const void *object, struct str *out)
{
    add_island(((const struct node *)object)->island, out);
}

static void node_relay(const void *object, struct str *out)
{
    add_yes(((const struct node *)object)->relay, out);
}

static void node_stock(const void *object, struct str *out)
{
    add_yes(((const struct node *)object)->stock, out);
}

static void node_ephemeral(const void *object, struct str *out)
{
    add_yes(((const struct node *)object)->ephemeral, out);
}

static void node_hub(const void *object, struct str *out)
{
    add_yes(((const struct node *)object)->hub != NULL, out);
}

static void node_hub_endpoints(const void *object, struct str *out)
{
    const struct node_hub *hub = ((const struct node *)object)->hub;
    char text[ENDPOINT_TEXT_MAX];

    add_none(out, hub ? hub->n_endpoints : 0);
    for (unsigned i = 0; hub && i < hub->n_endpoints; i++)
        add_item(out, i, endpoint_format(&hub->endpoints[i], text));
}

static void node_hub_names(const void *object, struct str *out)
{
    const struct node_hub *hub = ((const struct node *)object)->hub;

    add_none(out, hub ? hub->n_names : 0);
    for (unsigned i = 0; hub && i < hub->n_names; i++)
        add_item(out, i, hub->names[i]);
}

static void node_hub_port(const void *object, struct str *out)
{
    const struct node_hub *hub = ((const struct node *)object)->hub;

    str_addf(out, "%u", hub ? (unsigned)hub->api_port : 0);
}

static void node_hub_pin(const void *object, struct str *out)
{
    const struct node_hub *hub = ((const struct node *)object)->hub;
    char text[BASE64_SIZE(sizeof(hub->tls_pin.b))];

    if (hub && hub->has_tls_pin)
        base64_encode(hub->tls_pin.b, sizeof(hub->tls_pin.b), text);
    str_add(out, hub && hub->has_tls_pin ? text : "none");
}

const struct lock_field lock_node_fields[] = {
    {"key", node_key},
    {"IPv4 address", node_address4},
    {"IPv6 address", node_address6},
    {"routes", node_routes},
    {"labels", node_labels},
    {"island", node_island},
    {"relay", node_relay},
    {"stock", node_stock},
    {"ephemeral", node_ephemeral},
    {"hub", node_hub},
    {"hub's endpoints", node_hub_endpoints},
    {"hub's names", node_hub_names},
    {"hub's API port", node_hub_port},
    {"hub's TLS pin", node_hub_pin},
    {NULL, NULL},
};

/* ---- edges ---------------------------------------------------------------------------------- */

static void edge_off(const void *object, struct str *out)
{
    add_yes(((const struct mesh_edge *)object)->path == EDGE_PATH_OFF, out);
}

static void edge_endpoints(const void *object, struct str *out)
{
    const struct mesh_edge *edge = object;
    char text[ENDPOINT_TEXT_MAX];

    for (unsigned i = 0; i < 2; i++) {
        const struct endpoint *ep = &edge->pins[i].endpoint;

        add_item(out, i, edge->nodes[i]);
        str_addf(out, " at %s", endpoint_is_none(ep) ? "any" : endpoint_format(ep, text));
    }
}

static void edge_keys(const void *object, struct str *out)
{
    const struct mesh_edge *edge = object;

    for (unsigned i = 0; i < 2; i++) {
        add_item(out, i, edge->nodes[i]);
        str_add(out, " with ");
        add_public(&edge->pins[i].key, out);
    }
}

const struct lock_field lock_edge_fields[] = {
    {"off", edge_off},
    {"pinned endpoints", edge_endpoints},
    {"pinned keys", edge_keys},
    {NULL, NULL},
};

/* ---- rules ---------------------------------------------------------------------------------- */

static void add_peers(const struct rule_peer *peers, unsigned n, struct str *out)
{
    char text[RULE_TEXT_MAX];

    for (unsigned i = 0; i < n; i++)
        add_item(out, i, rule_peer_format(&peers[i], text));
}

static void rule_from(const void *object, struct str *out)
{
    const struct rule *r = rule_of(object);

    add_peers(r->from, r->n_from, out);
}

static void rule_to(const void *object, struct str *out)
{
    const struct rule *r = rule_of(object);

    add_peers(r->to, r->n_to, out);
}

static void rule_services(const void *object, struct str *out)
{
    const struct rule *r = rule_of(object);
    char text[RULE_TEXT_MAX];

    for (unsigned i = 0; i < r->n_services; i++)
        add_item(out, i, rule_service_format(&r->services[i], text));
}

const struct lock_field lock_rule_fields[] = {
    {"from", rule_from},
    {"to", rule_to},
    {"allows", rule_services},
    {NULL, NULL},
};

/* ---- settings ------------------------------------------------------------------------------- */

static void settings_topology(const void *object, struct str *out)
{
    str_add(out, topology_names[((const struct lock_settings *)object)->topology]);
}

static void settings_cipher(const void *object, struct str *out)
{
    str_add(out, cipher_names[((const struct lock_settings *)object)->cipher]);
}

static void settings_isolation(const void *object, struct str *out)
{
    str_add(out, isolation_names[((const struct lock_settings *)object)->isolation]);
}

static void settings_demand(const void *object, struct str *out)
{
    str_add(out, lock_demand_names[((const struct lock_settings *)object)->demand]);
}

static void add_seconds(uint32_t seconds, const char *none, struct str *out)
{
    char text[32];

    if (seconds == 0)
        str_add(out, none);
    else
        str_add(out, format_duration((nsec_t)seconds * NSEC_PER_SEC, text));
}

static void settings_rotation(const void *object, struct str *out)
{
    add_seconds(((const struct lock_settings *)object)->key_rotation, "never", out);
}

static void settings_trust(const void *object, struct str *out)
{
    add_seconds(((const struct lock_settings *)object)->trust_for, "not at all", out);
}

const struct lock_field lock_settings_fields[] = {
    {"topology", settings_topology},
    {"cipher", settings_cipher},
    {"isolation", settings_isolation},
    {"demanded of handshakes", settings_demand},
    {"key rotation", settings_rotation},
    {"peers believed after the lock has expired", settings_trust},
    {NULL, NULL},
};

/* ---- who signs ------------------------------------------------------------------------------ */

static void signers_names(const void *object, struct str *out)
{
    const struct lock_signers *s = object;

    for (unsigned i = 0; i < s->n; i++) {
        add_item(out, i, s->items[i].name);
        str_add(out, " ");
        add_signing(&s->items[i].key, out);
    }
}

static void signers_threshold(const void *object, struct str *out)
{
    const struct lock_signers *s = object;

    str_addf(out, "%u of %u", s->threshold, s->n);
}

static void signers_codes(const void *object, struct str *out)
{
    const struct lock_signers *s = object;

    add_none(out, s->n_recovery);
    for (unsigned i = 0; i < s->n_recovery; i++) {
        add_item(out, i, "");
        add_signing(&s->recovery[i], out);
    }
}

const struct lock_field lock_signers_fields[] = {
    {"signers", signers_names},
    {"signatures demanded", signers_threshold},
    {"keys of recovery codes", signers_codes},
    {NULL, NULL},
};

/* ---- tokens --------------------------------------------------------------------------------- */

static void token_uses(const void *object, struct str *out)
{
    str_addf(out, "%u", ((const struct lock_token *)object)->uses);
}

static void token_until(const void *object, struct str *out)
{
    lock_time_format(((const struct lock_token *)object)->until, out);
}

static void token_labels(const void *object, struct str *out)
{
    const struct lock_token *t = object;

    add_labels(t->labels, t->n_labels, out);
}

static void token_island(const void *object, struct str *out)
{
    add_island(((const struct lock_token *)object)->island, out);
}

static void token_routes(const void *object, struct str *out)
{
    add_routes(&((const struct lock_token *)object)->routes, out);
}

static void token_relay(const void *object, struct str *out)
{
    add_yes(((const struct lock_token *)object)->relay, out);
}

static void token_ephemeral(const void *object, struct str *out)
{
    add_yes(((const struct lock_token *)object)->ephemeral, out);
}

const struct lock_field lock_token_fields[] = {
    {"nodes that it lets in", token_uses},
    {"until", token_until},
    {"labels that they may have", token_labels},
    {"island that they may be in", token_island},
    {"routes that they may have", token_routes},
    {"they may be relays", token_relay},
    {"they are ephemeral", token_ephemeral},
    {NULL, NULL},
};

/* ---- two of them ---------------------------------------------------------------------------- */

const struct lock_field *lock_field_differing(const struct lock_field *fields, const void *a,
    const void *b, struct str *ret_a, struct str *ret_b)
{
    for (; fields->name; fields++) {
        fields->format(a, ret_a);
        fields->format(b, ret_b);
        if (strcmp(str_text(ret_a), str_text(ret_b)) != 0)
            return fields;
        str_deinit(ret_a);
        str_deinit(ret_b);
    }
    return NULL;
}
