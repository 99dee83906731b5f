/* sample_mesh.c - see sample_mesh.h. */
#include "test/support/sample_mesh.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"

struct x25519_public sample_key(unsigned n)
{
    return (struct x25519_public){.b = {(uint8_t)n, (uint8_t)(n >> 8), 7}};
}

static void name_node(char name[static NAME_MAX_LEN + 1], unsigned n)
{
    if (n == 1)
        (void)snprintf(name, NAME_MAX_LEN + 1, "hub");
    else
        (void)snprintf(name, NAME_MAX_LEN + 1, "n%u", n);
}

static struct endpoint endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

static struct network network(void)
{
    struct network n = {
        .meta = {.name = "default", .resource_version = 1},
        .mtu = NETWORK_MTU_DEFAULT,
        .keepalive = NETWORK_KEEPALIVE_AUTO,
    };

    assert_int_equal(ip_prefix_parse(&n.cidr4, "10.42.0.0/16", NULL), 0);
    assert_int_equal(ip_prefix_parse(&n.cidr6, "fd5a:1::/64", NULL), 0);
    return n;
}

struct object sample_node(unsigned n)
{
    struct network net = network();
    struct object o = {.kind = &node_kind};

    name_node(o.node.meta.name, n);
    (void)snprintf(o.node.meta.network, sizeof(o.node.meta.network), "default");
    o.node.meta.resource_version = n;
    o.node.key = sample_key(n);
    assert_true(ip_prefix_nth(&net.cidr4, n, &o.node.address4));
    assert_true(ip_prefix_nth(&net.cidr6, n, &o.node.address6));
    if (n == 1) {
        o.node.hub = calloc(1, sizeof(*o.node.hub));
        assert_non_null(o.node.hub);
        o.node.hub->endpoints[0] = endpoint("203.0.113.10:51820");
        o.node.hub->endpoints[1] = endpoint("[2001:db8::10]:51820");
        o.node.hub->n_endpoints = 2;
        (void)snprintf(o.node.hub->names[0], sizeof(o.node.hub->names[0]), "hub.example.org:51820");
        o.node.hub->n_names = 1;
        o.node.hub->api_port = 8443;
    }
    return o;
}

struct object sample_edge(unsigned a, unsigned b, enum edge_path path)
{
    struct object o = {.kind = &mesh_edge_kind, .edge.path = path};
    struct mesh_edge *edge = &o.edge;

    name_node(edge->nodes[0], a);
    name_node(edge->nodes[1], b);
    if (strcmp(edge->nodes[0], edge->nodes[1]) > 0) {
        name_node(edge->nodes[0], b);
        name_node(edge->nodes[1], a);
    }
    (void)edge_name(edge->nodes[0], edge->nodes[1], edge->meta.name);
    (void)snprintf(edge->meta.network, sizeof(edge->meta.network), "default");
    return o;
}

void sample_put(struct snapshot *s, struct object o)
{
    struct err e = ERR_NULL;

    if (snapshot_put(s, &o, &e) < 0)
        fail_msg("%s", err_text(&e));
}

struct snapshot sample_snapshot(unsigned n, unsigned self)
{
    struct snapshot s = {.revision = 40, .network = network()};

    name_node(s.self, self);
    for (unsigned i = 1; i <= n; i++)
        sample_put(&s, sample_node(i));
    return s;
}

const char *sample_sentence(const char *text, char buf[static SAMPLE_SENTENCE_MAX])
{
    static const char mark[] = "@kinds";
    const char *at = strstr(text, mark);
    char all[OBJECT_KINDS_TEXT_MAX];

    if (at)
        (void)snprintf(buf, SAMPLE_SENTENCE_MAX, "%.*s%s%s", (int)(at - text), text,
            object_kinds_text(all), at + sizeof(mark) - 1);
    else
        (void)snprintf(buf, SAMPLE_SENTENCE_MAX, "%s", text);
    return buf;
}
