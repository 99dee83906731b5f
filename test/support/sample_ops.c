/* sample_ops.c - see sample_ops.h. */
#include "test/support/sample_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "hub/handlers/handlers.h"
#include "os/clock.h"
#include "test/support/sample_enrol.h"
#include "test/support/sample_hub.h"

#define BODY_SIZE 16384

unsigned choices_below(struct choices *c, unsigned n)
{
    unsigned v = 0;

    for (unsigned i = 0; i < (n > 256 ? 2 : 1) && c->n > 0; i++) {
        v = v << 8 | *c->bytes++;
        c->n--;
    }
    return v % n;
}

/* One of several texts. */
#define PICK(c, ...)                                                                               \
    ({                                                                                             \
        static const char *const words_[] = {__VA_ARGS__};                                         \
        words_[choices_below(c, sizeof(words_) / sizeof(*words_))];                                \
    })

/* ---- texts ---------------------------------------------------------------------------------- */

static const char *a_name(struct choices *c)
{
    return PICK(c, "a", "b", "c", "d", "gpu-1", "gpu-2", "hub", "", "a--b", "A", "-", "localhost",
        "x23456789012345678901234567890123456789012345678901234567890123",
        "x234567890123456789012345678901234567890123456789012345678901234", "\\u0000", "\\u009b",
        "..", "a.b", "\\ud83d\\ude00", "node");
}

static const char *a_network(struct choices *c)
{
    return PICK(c, "default", "default", "default", "other", "third", "none");
}

static const char *a_value(struct choices *c)
{
    return PICK(c, "1", "0", "-1", "null", "true", "\"\"", "[]", "{}", "1e308", "1e15", "0.1",
        "9223372036854775807", "-9223372036854775808", "65536", "4294967296", "\"auto\"",
        "\"\\u0000\"", "\"\\u0001\"", "\"\\u009b31m\"", "\"\\ud83d\\ude00\"", "[1]",
        "[[[[[[[[1]]]]]]]]", "{\"a\":{\"b\":{\"c\":1}}}", "\"192.0.2.1:1\"", "\"[::1]:65535\"",
        "\"10.42.0.2\"", "[null]",
        "\"x234567890x234567890x234567890x234567890x234567890x234567890x234567890\"",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
}

static void add_labels(struct str *s, struct choices *c)
{
    unsigned n = choices_below(c, 5);

    str_add(s, "{");
    for (unsigned i = 0; i < n; i++)
        str_addf(s, "%s\"%s%u\":%s", i ? "," : "", PICK(c, "gpu", "k", "x/y", "", "a b"), i,
            PICK(c, "\"h100\"", "\"\"", "\"\\u202e\"", "1", "\"\\u009b\"", "\"a\\nb\""));
    str_add(s, "}");
}

/* Lists of them, so that nodes come to want parts of each other's. */
static const char *some_routes(struct choices *c)
{
    return PICK(c, "[]", "[\"10.9.0.0/24\"]", "[\"10.9.0.0/16\"]", "[\"10.9.0.128/25\"]",
        "[\"10.8.0.0/24\",\"fd09::/64\"]", "[\"fd09::/48\"]", "[\"192.0.2.0/24\"]",
        "[\"10.9.0.0/24\",\"10.8.0.0/25\"]", "[\"10.0.0.0/8\"]", "[\"10.9.0.1/24\"]",
        "[\"0.0.0.0/0\"]", "[1]", "null");
}

static void add_candidates(struct str *s, struct choices *c)
{
    unsigned n = choices_below(c, 5);

    if (choices_below(c, 10) == 0)
        n = 33;
    str_add(s, "[");
    for (unsigned i = 0; i < n; i++)
        str_addf(s, "%s{\"type\":%s,\"endpoint\":%s,\"x\":%s}", i ? "," : "",
            PICK(c, "\"host\"", "\"given\"", "\"mapped\"", "\"reflexive\"", "\"future\"", "1"),
            PICK(c, "\"192.0.2.1:1\"", "\"[2001:db8::1]:65535\"", "\"127.0.0.1:1\"",
                "\"0.0.0.0:0\"", "\"224.0.0.1:5\"", "\"nowhere\""),
            a_value(c));
    str_add(s, "]");
}

static void add_facts(struct str *s, struct choices *c)
{
    static const char *const fields[] = {"generation", "mapping", "filtering", "natted", "blocked",
        "portStep", "lastPort", "keepaliveMs", "canSpray", "relayRun", "relays", "future"};
    bool any = false;

    str_add(s, "{");
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        if (choices_below(c, 4) != 0)
            continue;
        str_addf(s, "%s\"%s\":%s", any ? "," : "", fields[i],
            choices_below(c, 4) == 0 ? a_value(c) : PICK(c, "1", "true", "\"unknown\"", "[]", "0"));
        any = true;
    }
    str_add(s, "}");
}

static void add_status(struct str *s, struct choices *c)
{
    str_add(s, "{\"node\":{\"engine\":\"kernel\",\"version\":\"1\"");
    if (choices_below(c, 3) != 0) {
        str_add(s, ",\"candidates\":");
        add_candidates(s, c);
    }
    if (choices_below(c, 3) != 0) {
        str_add(s, ",\"paths\":");
        add_facts(s, c);
    }
    if (choices_below(c, 3) == 0)
        str_addf(s, ",\"aead\":{\"%s\":%s}", PICK(c, "aes256gcm", "chacha20poly1305", "future", ""),
            a_value(c));
    if (choices_below(c, 4) == 0)
        str_addf(s, ",\"routes\":%s", some_routes(c));
    str_addf(s, "},\"edges\":{\"%s\":{\"path\":%s,\"alarm\":%s},\"%s\":%s}}", a_name(c), a_value(c),
        PICK(c, "true", "false", "1"), PICK(c, "q", "a", "b"), PICK(c, "{}", "1", "{\"x\":[]}"));
}

/* Where a text becomes another one than was meant. */
static char *spoil(struct str *s, struct choices *c)
{
    char *text = str_take(s, NULL);
    size_t len = strlen(text);
    unsigned n = choices_below(c, 4) == 0 ? 1 + choices_below(c, 3) : 0;

    for (unsigned i = 0; i < n && len > 0; i++) {
        size_t at = choices_below(c, (unsigned)len);
        struct str other = STR_NULL;
        size_t skip = choices_below(c, 3) == 0 ? choices_below(c, 8) : 0;

        if (at + skip > len)
            skip = len - at;
        str_add_bytes(&other, text, at);
        switch (choices_below(c, 3)) {
        case 0:
            str_add(&other, a_value(c));
            break;
        case 1:
            str_addf(&other, "%c", 32 + (int)choices_below(c, 95));
            break;
        default:
            break;
        }
        str_add(&other, text + at + skip);
        free(text);
        text = str_take(&other, NULL);
        len = strlen(text);
    }
    return text;
}

/* ---- who ------------------------------------------------------------------------------------ */

/* A member of some network, not the hub; NULL: there is none. */
static struct model_node *a_member(struct sample_hub *s, struct choices *c)
{
    struct model *m = &s->hub->model;
    struct model_network *net;
    struct model_node *node;

    if (m->networks.n == 0)
        return NULL;
    net = model_network_at(m, choices_below(c, (unsigned)m->networks.n));
    if (net->nodes.n == 0)
        return NULL;
    node = model_node_at(net, choices_below(c, (unsigned)net->nodes.n));
    return node->spec.hub ? NULL : node;
}

/* A secret that lets somebody into @network; false: no token was given. */
static bool a_secret(struct sample_hub *s, struct choices *c, const char *network, char ret[64])
{
    struct model_network *net = model_find_network(&s->hub->model, network);
    struct token_request rq = {.ttl_seconds = 3600,
        .uses = 1 + choices_below(c, 3),
        .ephemeral = choices_below(c, 4) == 0,
        .relay = choices_below(c, 4) == 0};
    struct token_secret secret;
    struct err e = ERR_NULL;

    if (choices_below(c, 3) != 0)
        (void)subnets_parse(&rq.routes, PICK(c, "10.0.0.0/8", "10.9.0.0/24,fd09::/32"), NULL);
    if (!net || sample_enrol_token(&s->hub->enrol, net, &rq, clock_wall_s(), &secret, &e) != 0)
        return false;
    base64url_encode(secret.b, sizeof(secret.b), ret);
    return true;
}

/* ---- operations ----------------------------------------------------------------------------- */

static void submit(struct sample_hub *s, struct choices *c, enum api_access access,
    struct model_node *member, const char *method, const char *path, struct str *body)
{
    char *text = spoil(body, c);

    (void)sample_hub_ask(s, access, member, method, path, text, NULL);
    free(text);
}

static void op_enrol(struct sample_hub *s, struct choices *c)
{
    struct str body = STR_NULL;
    char secret[64] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    struct x25519_public key = {{1 + (uint8_t)choices_below(c, 255)}};
    char key_text[X25519_BASE64_MAX];

    if (choices_below(c, 8) != 0)
        (void)a_secret(s, c, a_network(c), secret);
    str_addf(&body,
        "{\"secret\":\"%s\",\"publicKey\":\"%s\",\"name\":\"%s\",\"engine\":%s,\"routes\":%s,"
        "\"labels\":",
        secret, x25519_public_format(&key, key_text), a_name(c),
        PICK(c, "\"kernel\"", "\"\"", "\"\\u009b\"", "1", "\"stock\""), some_routes(c));
    add_labels(&body, c);
    str_add(&body, "}");
    submit(s, c, API_ACCESS_PUBLIC, NULL, "POST", "/v1/enrol", &body);
}

static void op_add(struct sample_hub *s, struct choices *c)
{
    struct str body = STR_NULL;
    struct x25519_public key = {{1 + (uint8_t)choices_below(c, 255)}};
    char key_text[X25519_BASE64_MAX];
    char path[128];

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/nodes", a_network(c));
    str_addf(&body, "{\"name\":\"%s\",\"publicKey\":\"%s\",\"routes\":%s,\"labels\":", a_name(c),
        x25519_public_format(&key, key_text), some_routes(c));
    add_labels(&body, c);
    str_add(&body, "}");
    submit(s, c, API_ACCESS_ADMIN, NULL, "POST", path, &body);
}

static void op_wg(struct sample_hub *s, struct choices *c)
{
    struct model_node *member = a_member(s, c);

    if (member)
        (void)sample_hub_ask(s, API_ACCESS_OVERLAY, member, "GET", "/v1/wg", NULL, NULL);
}

/* Nothing is wrong with what these two say but, perhaps, the routes: so that many nodes want some.
 */
static void op_enrol_routed(struct sample_hub *s, struct choices *c)
{
    struct x25519_public key = {{1 + (uint8_t)choices_below(c, 255)}};
    char key_text[X25519_BASE64_MAX];
    char body[512];
    char secret[64];

    if (!a_secret(s, c, "default", secret))
        return;
    (void)snprintf(body, sizeof(body),
        "{\"secret\":\"%s\",\"publicKey\":\"%s\",\"name\":\"%s\",\"routes\":%s}", secret,
        x25519_public_format(&key, key_text), PICK(c, "a", "b", "c", "d", "gpu-1", "gpu-2"),
        some_routes(c));
    (void)sample_hub_ask(s, API_ACCESS_PUBLIC, NULL, "POST", "/v1/enrol", body, NULL);
}

static void op_admit(struct sample_hub *s, struct choices *c)
{
    struct model_node *member = a_member(s, c);
    char key[X25519_BASE64_MAX];
    char a4[IP_ADDR_TEXT_MAX];
    char a6[IP_ADDR_TEXT_MAX];
    char path[256];
    char body[768];

    if (!member)
        return;
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/Node/%s", member->net->keyed.key,
        member->keyed.key);
    (void)snprintf(body, sizeof(body),
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"publicKey\":\"%s\","
        "\"address4\":\"%s\",\"address6\":\"%s\",\"routes\":%s}}",
        member->keyed.key, x25519_public_format(&member->spec.key, key),
        ip_addr_format(&member->spec.address4, a4), ip_addr_format(&member->spec.address6, a6),
        some_routes(c));
    (void)sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "PUT", path, body, NULL);
}

static void op_status(struct sample_hub *s, struct choices *c)
{
    struct model_node *member = a_member(s, c);
    struct str body = STR_NULL;

    if (!member)
        return;
    add_status(&body, c);
    submit(s, c, API_ACCESS_OVERLAY, member, "PUT", "/v1/status", &body);
}

static void op_put_node(struct sample_hub *s, struct choices *c)
{
    struct model_node *member = a_member(s, c);
    struct str body = STR_NULL;
    char key[X25519_BASE64_MAX];
    char a4[IP_ADDR_TEXT_MAX];
    char a6[IP_ADDR_TEXT_MAX];
    char path[256];

    if (!member)
        return;
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/Node/%s", member->net->keyed.key,
        member->keyed.key);
    str_addf(&body,
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"publicKey\":\"%s\","
        "\"address4\":"
        "\"%s\",\"address6\":\"%s\",\"island\":%s,\"ephemeral\":%s,\"relay\":%s,"
        "\"routes\":%s,\"labels\":",
        member->keyed.key, x25519_public_format(&member->spec.key, key),
        ip_addr_format(&member->spec.address4, a4), ip_addr_format(&member->spec.address6, a6),
        PICK(c, "\"\"", "\"rack-1\"", "1"), PICK(c, "false", "true", "1"),
        PICK(c, "false", "true", "null"), some_routes(c));
    add_labels(&body, c);
    str_addf(&body, "},\"status\":%s}", a_value(c));
    submit(s, c, API_ACCESS_ADMIN, NULL, "PUT", path, &body);
}

static void op_put_edge(struct sample_hub *s, struct choices *c)
{
    struct model_node *a = a_member(s, c);
    struct model_node *b = a_member(s, c);
    char name[OBJECT_NAME_MAX + 1];
    struct str body = STR_NULL;
    char path[256];

    if (!a || !b || a->net != b->net)
        return;
    (void)edge_name(a->keyed.key, b->keyed.key, name);
    (void)snprintf(
        path, sizeof(path), "/v1/networks/%s/objects/MeshEdge/%s", a->net->keyed.key, name);
    if (strcmp(a->keyed.key, b->keyed.key) > 0) {
        struct model_node *t = a;

        a = b;
        b = t;
    }
    str_addf(&body,
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"nodes\":[\"%s\",\"%s\"],"
        "\"path\":%s}}",
        name, a->keyed.key, b->keyed.key,
        PICK(c, "\"off\"", "\"auto\"", "\"relay\"", "\"direct\"", "1"));
    submit(s, c, API_ACCESS_ADMIN, NULL, "PUT", path, &body);
}

static void op_delete_object(struct sample_hub *s, struct choices *c)
{
    struct model_node *a = a_member(s, c);
    struct model_node *b = a_member(s, c);
    char edge[OBJECT_NAME_MAX + 1];
    char path[256];

    if (!a || !b || a->net != b->net)
        return;
    (void)edge_name(a->keyed.key, b->keyed.key, edge);
    if (choices_below(c, 4) == 0)
        (void)snprintf(
            path, sizeof(path), "/v1/networks/%s/objects/Node/%s", a->net->keyed.key, a->keyed.key);
    else
        (void)snprintf(
            path, sizeof(path), "/v1/networks/%s/objects/MeshEdge/%s", a->net->keyed.key, edge);
    (void)sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "DELETE", path, NULL, NULL);
}

static void op_put_network(struct sample_hub *s, struct choices *c)
{
    struct model_network *net = model_find_network(&s->hub->model, a_network(c));
    char cidr4[IP_PREFIX_TEXT_MAX];
    char cidr6[IP_PREFIX_TEXT_MAX];
    struct str body = STR_NULL;
    char path[256];

    if (!net)
        return;
    (void)snprintf(
        path, sizeof(path), "/v1/networks/%s/objects/Network/%s", net->keyed.key, net->keyed.key);
    str_addf(&body,
        "{\"kind\":\"Network\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"cidr4\":\"%s\",\"cidr6\":"
        "\"%s\","
        "\"mtu\":%s,\"keepalive\":%s,\"topology\":%s,\"cipher\":%s,\"keyRotation\":%s,"
        "\"drainShare\":%s}}",
        net->keyed.key, ip_prefix_format(&net->spec.cidr4, cidr4),
        ip_prefix_format(&net->spec.cidr6, cidr6), PICK(c, "1420", "1280", "65455", "1"),
        PICK(c, "\"auto\"", "0", "3600", "3601"), PICK(c, "\"auto\"", "\"mesh\"", "\"hub\"", "1"),
        PICK(c, "\"auto\"", "\"aes256gcm\"", "\"x\""), PICK(c, "0", "0", "3600"),
        PICK(c, "0", "50", "100", "101"));
    submit(s, c, API_ACCESS_ADMIN, NULL, "PUT", path, &body);
}

static void op_drain(struct sample_hub *s, struct choices *c)
{
    struct model_node *member = a_member(s, c);
    struct str body = STR_NULL;

    if (!member)
        return;
    str_addf(&body, "{\"failed\":%s,\"everySeconds\":%s", PICK(c, "0", "3", "4", "-1"),
        PICK(c, "300", "1", "0"));
    str_addf(&body, "%s%s}", PICK(c, "", ",\"ask\":\"drain\"", ",\"ask\":\"undrain\""),
        PICK(c, "", ",\"codes\":\"WEFT-DISK-002\",\"reason\":\"it is full\"",
            ",\"codes\":\"A\",\"reason\":\"\\ud83d\\ude00\",\"hook\":\"\\u009b\""));
    submit(s, c, API_ACCESS_OVERLAY, member, "PUT", "/v1/drain", &body);
}

static void op_token(struct sample_hub *s, struct choices *c)
{
    struct str body = STR_NULL;
    char path[128];

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/tokens", a_network(c));
    str_addf(&body, "{\"ttlSeconds\":%s,\"uses\":%s,\"ephemeral\":%s,\"routes\":%s}",
        PICK(c, "60", "1", "0", "1e9"), PICK(c, "1", "1000000", "0", "-1"),
        PICK(c, "true", "false", "1"), some_routes(c));
    submit(s, c, API_ACCESS_ADMIN, NULL, "POST", path, &body);
}

static void op_network(struct sample_hub *s, struct choices *c)
{
    struct str body = STR_NULL;
    char path[128];

    if (choices_below(c, 4) == 0) {
        (void)snprintf(path, sizeof(path), "/v1/networks/%s", PICK(c, "other", "third", "none"));
        (void)sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "DELETE", path, NULL, NULL);
        return;
    }
    str_addf(&body, "{\"name\":\"%s\",\"cidr4\":%s,\"mtu\":%s}", PICK(c, "other", "third", "A", ""),
        PICK(c, "\"10.50.0.0/16\"", "\"10.60.0.0/29\"", "\"10.0.0.0/31\"", "\"0.0.0.0/0\"", "1"),
        PICK(c, "1420", "1e3", "1280"));
    submit(s, c, API_ACCESS_ADMIN, NULL, "POST", "/v1/networks", &body);
}

static void op_remove(struct sample_hub *s, struct choices *c)
{
    struct model_node *member = a_member(s, c);
    char path[256];

    if (!member)
        return;
    if (choices_below(c, 2) == 0) {
        (void)sample_hub_ask(s, API_ACCESS_OVERLAY, member, "POST", "/v1/leave", NULL, NULL);
        return;
    }
    (void)snprintf(
        path, sizeof(path), "/v1/networks/%s/nodes/%s", member->net->keyed.key, member->keyed.key);
    (void)sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "DELETE", path, NULL, NULL);
}

/* Any route with any body, but for those that need a server around them. */
static void op_any(struct sample_hub *s, struct choices *c)
{
    unsigned n = 0;
    const struct route *row;
    struct model_node *member = a_member(s, c);
    struct str body = STR_NULL;
    char path[512] = "";
    size_t used = 0;

    while (routes[n].method)
        n++;
    row = &routes[choices_below(c, n)];
    if (strstr(row->path, "jobs") || strstr(row->path, "metrics") || strstr(row->path, "stream") ||
        strstr(row->path, "watch") || strstr(row->path, "admin-token") ||
        ((row->access & API_ACCESS_OVERLAY) && !member))
        return;
    for (const char *p = row->path; *p; p++) {
        if (*p == '{') {
            used += (size_t)snprintf(path + used, sizeof(path) - used, "%s",
                PICK(
                    c, "default", "other", "a", "b", "hub", "Node", "MeshEdge", "Network", "a--b"));
            p = strchr(p, '}');
        } else {
            path[used++] = *p;
            path[used] = '\0';
        }
    }
    str_addf(&body, "{\"%s\":%s,\"%s\":%s}", PICK(c, "kind", "name", "secret", "node", "key"),
        a_value(c), PICK(c, "metadata", "spec", "edges", "ttlSeconds"), a_value(c));
    submit(s, c,
        row->access & API_ACCESS_OVERLAY  ? API_ACCESS_OVERLAY
        : row->access & API_ACCESS_PUBLIC ? API_ACCESS_PUBLIC
                                          : API_ACCESS_ADMIN,
        member, row->method, path, &body);
}

static void op_listen(struct sample_hub *s, struct choices *c)
{
    struct model_node *member = a_member(s, c);

    if (member)
        sample_hub_listen(s, member);
}

static void op_wait(struct sample_hub *s, struct choices *c)
{
    sample_hub_wait(s, 1 + choices_below(c, 4));
}

void sample_ops_run(struct sample_hub *s, struct choices *c)
{
    static void (*const ops[])(struct sample_hub *, struct choices *) = {op_wait, op_enrol,
        op_enrol, op_status, op_status, op_status, op_status, op_put_node, op_put_edge, op_put_edge,
        op_put_network, op_token, op_network, op_remove, op_any, op_any, op_listen, op_listen,
        op_enrol_routed, op_admit, op_add, op_wg, op_delete_object, op_drain};

    while (c->n > 0) {
        ops[choices_below(c, sizeof(ops) / sizeof(*ops))](s, c);
        sample_hub_hear(s);
    }
    sample_hub_compare(s);
}
