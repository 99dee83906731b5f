/* test-render.c - the rules by which a snapshot becomes a configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/config/diff.h"
#include "mesh/object/subnets.h"
#include "mesh/render/render.h"
#include "test/support/sample_mesh.h"

#define HUB_ENDPOINT "203.0.113.10:51820"

static struct wg_config render(
    const struct snapshot *s, const struct render_path *paths, size_t n_paths)
{
    struct render_input in = {.snapshot = s, .paths = paths, .n_paths = n_paths};
    struct wg_config c = WG_CONFIG_NULL;
    struct err e = ERR_NULL;

    if (render_config(&c, &in, &e) < 0)
        fail_msg("%s", err_text(&e));
    return c;
}

static const struct wg_peer *peer(const struct wg_config *c, unsigned n)
{
    struct x25519_public key = sample_key(n);

    return wg_config_find(c, &key);
}

static void check_endpoint(const struct wg_peer *p, const char *text)
{
    char buf[ENDPOINT_TEXT_MAX];

    assert_non_null(p);
    assert_string_equal(endpoint_format(&p->endpoint, buf), text);
}

static struct render_path found_path(const char *node, const char *endpoint, uint16_t keepalive)
{
    struct render_path p = {.keepalive = keepalive};

    (void)snprintf(p.node, sizeof(p.node), "%s", node);
    assert_int_equal(endpoint_parse(&p.endpoint, endpoint, NULL), 0);
    return p;
}

/* What each of two nodes announces, and the cipher that each then has for the other. */
struct cipher_case {
    enum cipher network;
    const char *self; /* status of the node whose view it is; NULL: it has none */
    const char *peer;
    const char *choice;
};

/* A node's object with that status, through JSON as it comes from a hub. */
static void put_status(struct snapshot *s, unsigned n, const char *status)
{
    struct object o = sample_node(n);
    json_t *json;
    struct err e = ERR_NULL;

    if (status) {
        o.node.status = json_loads(status, 0, NULL);
        assert_non_null(o.node.status);
    }
    json = object_encode(&o);
    object_deinit(&o);
    if (object_decode(&o, json, OBJECT_LENIENT, &e) < 0)
        fail_msg("%s", err_text(&e));
    json_decref(json);
    sample_put(s, o);
}

static void test_cipher(void **state)
{
    static const char aes[] = "{\"aead\": {\"chacha20poly1305\": 1300, \"aes256gcm\": 2900}}";
    static const char slow[] = "{\"aead\": {\"chacha20poly1305\": 300, \"aes256gcm\": 80}}";
    static const char half[] = "{\"aead\": {\"aes256gcm\": 80, \"rot13\": 99999}}";
    static const char even[] = "{\"aead\": {\"chacha20poly1305\": 900, \"aes256gcm\": 900}}";
    static const char none[] = "{\"engine\": \"kernel\"}";
    static const struct cipher_case cases[] = {
        {CIPHER_AUTO, aes, aes, "aes256gcm,chacha20poly1305"},
        {CIPHER_AUTO, aes, slow, "chacha20poly1305,aes256gcm"},
        {CIPHER_AUTO, slow, aes, "chacha20poly1305,aes256gcm"},
        {CIPHER_AUTO, even, aes, "chacha20poly1305,aes256gcm"},
        {CIPHER_AUTO, aes, even, "chacha20poly1305,aes256gcm"},
        {CIPHER_AUTO, aes, none, "chacha20poly1305,aes256gcm"},
        {CIPHER_AUTO, aes, half, "chacha20poly1305,aes256gcm"},
        {CIPHER_AUTO, none, aes, "chacha20poly1305"},
        {CIPHER_AUTO, NULL, NULL, "chacha20poly1305"},
        {CIPHER_AES256GCM, aes, aes, "aes256gcm"},
        {CIPHER_AES256GCM, slow, aes, "aes256gcm"},
        {CIPHER_AES256GCM, aes, none, "chacha20poly1305"},
        {CIPHER_AES256GCM, none, aes, "chacha20poly1305"},
        {CIPHER_AES256GCM, aes, NULL, "chacha20poly1305"},
        {CIPHER_CHACHA20POLY1305, aes, aes, "chacha20poly1305"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct snapshot s = sample_snapshot(3, 2);
        char text[NOISE_CHOICE_TEXT_MAX];
        struct wg_config c;

        s.network.cipher = cases[i].network;
        put_status(&s, 2, cases[i].self);
        put_status(&s, 3, cases[i].peer);
        c = render(&s, NULL, 0);
        assert_string_equal(noise_choice_format(peer(&c, 3)->cipher, text), cases[i].choice);
        wg_config_deinit(&c);
        snapshot_deinit(&s);
    }
}

static void test_node(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct wg_config c = render(&s, NULL, 0);
    char text[IP_PREFIX_TEXT_MAX];

    assert_int_equal(c.n_peers, 2);
    assert_string_equal(ip_prefix_format(&c.addresses[0], text), "10.42.0.2/16");
    assert_string_equal(ip_prefix_format(&c.addresses[1], text), "fd5a:1::2/64");
    assert_string_equal(ip_prefix_format(&c.routes[0], text), "10.42.0.0/16");
    assert_string_equal(ip_prefix_format(&c.routes[1], text), "fd5a:1::/64");
    assert_int_equal(c.n_addresses, 2);
    assert_int_equal(c.n_routes, 2);
    assert_true(x25519_public_equal(&c.public, &(struct x25519_public[]){sample_key(2)}[0]));
    assert_int_equal(c.mtu, 1420);
    assert_int_equal(c.link_mtu, 0);
    assert_int_equal(c.listen_port, 0);
    assert_false(c.is_relay);
    check_endpoint(peer(&c, 1), HUB_ENDPOINT);
    assert_int_equal(peer(&c, 1)->keepalive, 10);
    assert_int_equal(peer(&c, 1)->n_allowed, 2);
    assert_string_equal(ip_prefix_format(&peer(&c, 1)->allowed[0], text), "10.42.0.1/32");
    assert_string_equal(ip_prefix_format(&peer(&c, 1)->allowed[1], text), "fd5a:1::1/128");
    check_endpoint(peer(&c, 3), HUB_ENDPOINT);
    assert_int_equal(peer(&c, 3)->keepalive, 0);
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

/* What the machine has, beside what the snapshot says. */
static void test_own_facts(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct render_input in = {
        .snapshot = &s, .link_mtu = 1000, .listen_port = 4000, .relays = true};
    struct wg_config c = WG_CONFIG_NULL;

    assert_int_equal(render_config(&c, &in, NULL), 0);
    assert_int_equal(c.listen_port, 4000);
    assert_true(c.is_relay);
    assert_int_equal(c.link_mtu, 992);
    assert_int_equal(c.route_mtu, 992);
    assert_int_equal(c.mtu, 1420);
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

static void test_hub(void **state)
{
    struct snapshot s = sample_snapshot(4, 1);
    struct wg_config c = render(&s, NULL, 0);

    assert_int_equal(c.n_peers, 3);
    for (size_t i = 0; i < c.n_peers; i++) {
        assert_true(endpoint_is_none(&c.peers[i].endpoint));
        assert_int_equal(c.peers[i].keepalive, 0);
        assert_int_equal(c.peers[i].n_allowed, 2);
    }
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

/* An edge's rate is of what goes to its other end, and a node's of all that it sends itself. */
static void test_rates(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    struct object edge = sample_edge(2, 3, EDGE_PATH_AUTO);
    struct object other = sample_node(3);
    struct object self = sample_node(2);
    struct wg_config c;

    edge.edge.rate = 20000000;
    other.node.rates = calloc(1, sizeof(*other.node.rates));
    self.node.rates = calloc(1, sizeof(*self.node.rates));
    assert_true(other.node.rates && self.node.rates);
    other.node.rates->all = 1000000;
    self.node.rates->classes[TRAFFIC_CLASS_BULK] = 5000000;
    sample_put(&s, edge);
    sample_put(&s, other);
    c = render(&s, NULL, 0);
    assert_true(peer(&c, 3)->rate == 20000000);
    assert_true(peer(&c, 4)->rate == 0 && peer(&c, 1)->rate == 0);
    assert_false(traffic_rates_any(&c.rates) || c.shows_dscp);
    wg_config_deinit(&c);
    self.node.shows_dscp = true;
    sample_put(&s, self);
    c = render(&s, NULL, 0);
    assert_true(c.shows_dscp);
    assert_true(c.rates.all == 0 && c.rates.classes[TRAFFIC_CLASS_BULK] == 5000000);
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

/* Every rule of one edge, a line each. */
static void test_edges(void **state)
{
    static const struct {
        enum topology topology;
        enum edge_path edge;
        bool found;
        const char *endpoint; /* NULL: no peer at all */
    } cases[] = {
        {TOPOLOGY_AUTO, EDGE_PATH_AUTO, false, HUB_ENDPOINT},
        {TOPOLOGY_AUTO, EDGE_PATH_AUTO, true, "198.51.100.3:7"},
        {TOPOLOGY_AUTO, EDGE_PATH_RELAY, true, HUB_ENDPOINT},
        {TOPOLOGY_AUTO, EDGE_PATH_DIRECT, true, "198.51.100.3:7"},
        {TOPOLOGY_AUTO, EDGE_PATH_DIRECT, false, NULL},
        {TOPOLOGY_AUTO, EDGE_PATH_OFF, true, NULL},
        {TOPOLOGY_HUB, EDGE_PATH_AUTO, true, HUB_ENDPOINT},
        {TOPOLOGY_HUB, EDGE_PATH_DIRECT, true, "198.51.100.3:7"},
        {TOPOLOGY_HUB, EDGE_PATH_OFF, false, NULL},
        {TOPOLOGY_MESH, EDGE_PATH_AUTO, false, HUB_ENDPOINT},
        {TOPOLOGY_MESH, EDGE_PATH_AUTO, true, "198.51.100.3:7"},
    };
    struct render_path path = found_path("n3", "198.51.100.3:7", 25);

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct snapshot s = sample_snapshot(3, 2);
        struct wg_config c;

        s.network.topology = cases[i].topology;
        sample_put(&s, sample_edge(2, 3, cases[i].edge));
        c = render(&s, &path, cases[i].found ? 1 : 0);
        if (cases[i].endpoint) {
            check_endpoint(peer(&c, 3), cases[i].endpoint);
            /* A relayed edge lives on the one keepalive to the hub. */
            assert_int_equal(
                peer(&c, 3)->keepalive, strcmp(cases[i].endpoint, HUB_ENDPOINT) == 0 ? 0 : 25);
        } else {
            assert_null(peer(&c, 3));
            assert_true(strlen(render_decide(&s, snapshot_find_node(&s, "n3"), NULL).why) > 0);
        }
        /* No rule about an edge between two nodes cuts one off from the hub. */
        check_endpoint(peer(&c, 1), HUB_ENDPOINT);
        wg_config_deinit(&c);
        snapshot_deinit(&s);
    }
}

/* The hub's own path moves all that it relays. */
static void test_hub_path(void **state)
{
    struct render_path path = found_path("hub", "[2001:db8::10]:51820", 0);
    struct snapshot s = sample_snapshot(3, 2);
    struct wg_config c = render(&s, &path, 1);

    check_endpoint(peer(&c, 1), "[2001:db8::10]:51820");
    check_endpoint(peer(&c, 3), "[2001:db8::10]:51820");
    assert_int_equal(peer(&c, 1)->keepalive, 10);
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

static void test_mtu(void **state)
{
    struct render_path path = found_path("n3", "198.51.100.3:7", 0);
    struct snapshot s = sample_snapshot(4, 2);
    struct render_input in = {.snapshot = &s, .paths = &path, .n_paths = 1, .link_mtu = 8941};
    const struct node *n3 = snapshot_find_node(&s, "n3");
    struct wg_config c;

    /* Not measured: what every path carries. Only a peer that measures nothing is asked for no
     * more. */
    assert_int_equal(render_config(&c, &in, NULL), 0);
    assert_int_equal(c.mtu, 8941);
    assert_int_equal(c.route_mtu, RENDER_MTU_SAFE);
    assert_int_equal(peer(&c, 1)->mtu, RENDER_MTU_SAFE);
    assert_int_equal(peer(&c, 1)->mss_mtu, RENDER_MTU_SAFE);
    assert_int_equal(peer(&c, 3)->mtu, RENDER_MTU_SAFE);
    assert_int_equal(render_mtu(&in, n3), RENDER_MTU_SAFE);
    wg_config_deinit(&c);

    path.mtu = 8440;
    assert_int_equal(render_config(&c, &in, NULL), 0);
    assert_int_equal(peer(&c, 3)->mtu, 8432);
    assert_int_equal(peer(&c, 4)->mtu, RENDER_MTU_SAFE);
    assert_int_equal(render_mtu(&in, n3), 8432);
    assert_int_equal(render_mtu(&in, snapshot_find_node(&s, "n4")), RENDER_MTU_SAFE);
    wg_config_deinit(&c);

    /* What the hub relays, of which only that is known; not for a peer that goes another way. */
    path.endpoint = (struct endpoint){.port = 0};
    path.mtu = 1400;
    assert_int_equal(render_mtu(&in, n3), 1392);
    assert_null(render_find_path(&in, "n3"));
    assert_int_equal(render_decide(&s, n3, render_find_path(&in, "n3")).route, RENDER_ROUTE_RELAY);
    /* A stock WireGuard is sent what was measured, and asked for what every path carries. */
    assert_int_equal(render_config(&c, &in, NULL), 0);
    assert_int_equal(peer(&c, 3)->mtu, 1392);
    assert_int_equal(peer(&c, 3)->mss_mtu, RENDER_MTU_SAFE);
    wg_config_deinit(&c);
    path = found_path("hub", HUB_ENDPOINT, 0);
    path.mtu = 1400;
    assert_int_equal(render_config(&c, &in, NULL), 0);
    assert_int_equal(peer(&c, 1)->mtu, 1392);
    assert_int_equal(peer(&c, 1)->mss_mtu, 1392);
    assert_int_equal(peer(&c, 3)->mtu, RENDER_MTU_SAFE);
    wg_config_deinit(&c);
    path = found_path("n3", "198.51.100.3:7", 0);

    /* A machine whose links carry no more than the network says; a path with less than IPv6. */
    in.link_mtu = 1340;
    path.mtu = 1240;
    assert_int_equal(render_config(&c, &in, NULL), 0);
    assert_int_equal(c.mtu, 1420);
    assert_int_equal(c.link_mtu, 1328);
    assert_int_equal(peer(&c, 3)->mtu, 1232);
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

static void test_refusals(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct render_input in = {.snapshot = &s};
    struct wg_config c = WG_CONFIG_NULL;
    struct object duplicate = sample_node(4);
    struct err e = ERR_NULL;

    duplicate.node.address4 = snapshot_find_node(&s, "n3")->address4;
    sample_put(&s, duplicate);
    assert_true(render_config(&c, &in, &e) < 0);
    assert_string_equal(e.text, "two nodes have the address 10.42.0.3");

    duplicate = sample_node(4);
    duplicate.node.key = sample_key(3);
    sample_put(&s, duplicate);
    assert_true(render_config(&c, &in, &e) < 0);
    assert_non_null(strstr(e.text, "two peers have the public key "));

    assert_int_equal(snapshot_delete(&s, &node_kind, "hub", &e), 0);
    assert_true(render_config(&c, &in, &e) < 0);
    assert_string_equal(e.text, "the snapshot of \"n2\" has no hub");
    snapshot_deinit(&s);
}

/* With several hubs each is a peer, and the named one relays. */
static void test_hub_that_relays(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct object other = sample_node(1);
    struct render_input in = {.snapshot = &s};
    struct wg_config c = WG_CONFIG_NULL;

    other.node.key = sample_key(9);
    other.node.address4.b[15] = 9;
    other.node.address6.b[15] = 9;
    other.node.hub->endpoints[0].port = 9;
    (void)snprintf(other.node.meta.name, sizeof(other.node.meta.name), "hub-b");
    sample_put(&s, other);
    assert_int_equal(render_config(&c, &in, NULL), 0);
    check_endpoint(peer(&c, 3), HUB_ENDPOINT);
    wg_config_deinit(&c);
    in.relay = "hub-b";
    assert_string_equal(render_relay(&in)->meta.name, "hub-b");
    assert_int_equal(render_config(&c, &in, NULL), 0);
    check_endpoint(peer(&c, 1), HUB_ENDPOINT);
    check_endpoint(peer(&c, 3), "203.0.113.10:9");
    check_endpoint(peer(&c, 9), "203.0.113.10:9");
    wg_config_deinit(&c);
    /* One that is no hub, or that is gone. */
    in.relay = "n3";
    assert_string_equal(render_relay(&in)->meta.name, "hub");
    in.relay = "gone";
    assert_string_equal(render_relay(&in)->meta.name, "hub");
    snapshot_deinit(&s);
}

#define REPORTED(MS)                                                                               \
    "{\"candidates\": [{\"type\": \"host\", \"endpoint\": \"10.0.0.7:51820\"}], "                  \
    "\"paths\": {\"keepaliveMs\": " MS "}}"

static void test_keepalive(void **state)
{
    static const struct {
        uint16_t network;
        uint16_t measured;
        const char *status; /* what the node has reported */
        uint16_t keepalive;
    } cases[] = {
        {NETWORK_KEEPALIVE_AUTO, 0, NULL, NETWORK_KEEPALIVE_UNKNOWN},
        {NETWORK_KEEPALIVE_AUTO, 21, NULL, 21},
        {NETWORK_KEEPALIVE_AUTO, 0, REPORTED("17000"), 17},
        {NETWORK_KEEPALIVE_AUTO, 21, REPORTED("17000"), 21},
        {NETWORK_KEEPALIVE_AUTO, 0, REPORTED("0"), 10},
        {25, 21, REPORTED("17000"), 25},
        {0, 21, NULL, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct snapshot s = sample_snapshot(3, 2);
        struct render_input in = {.snapshot = &s, .keepalive = cases[i].measured};
        struct wg_config c;
        struct err e = ERR_NULL;

        s.network.keepalive = cases[i].network;
        put_status(&s, 2, cases[i].status);
        assert_int_equal(render_keepalive(&in), cases[i].keepalive);
        assert_int_equal(render_config(&c, &in, &e), 0);
        assert_int_equal(peer(&c, 1)->keepalive, cases[i].keepalive);
        /* One to the hub holds what all relayed edges share. */
        assert_int_equal(peer(&c, 3)->keepalive, 0);
        wg_config_deinit(&c);
        snapshot_deinit(&s);
    }
}

/* Keys that change are said of who changes them, and of nobody else. */
static void test_next_keys(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    const struct render_next_key keys[] = {
        {.node = "n3", .key = sample_key(50)}, {.node = "n4", .knows_one = true}};
    struct render_input in = {.snapshot = &s,
        .next_keys = keys,
        .n_next_keys = 2,
        .next_public = sample_key(60),
        .initiate_with_next = true};
    struct wg_config c;
    struct err e = ERR_NULL;

    assert_int_equal(render_config(&c, &in, &e), 0);
    assert_memory_equal(&c.next_public, &in.next_public, sizeof(c.next_public));
    assert_true(c.initiate_with_next);
    assert_memory_equal(&peer(&c, 3)->next_key, &keys[0].key, sizeof(keys[0].key));
    assert_false(peer(&c, 3)->initiate_with_current);
    assert_true(x25519_public_is_none(&peer(&c, 4)->next_key));
    assert_true(peer(&c, 4)->initiate_with_current);
    assert_true(x25519_public_is_none(&peer(&c, 1)->next_key));
    assert_false(peer(&c, 1)->initiate_with_current);
    wg_config_deinit(&c);
    in = (struct render_input){.snapshot = &s};
    assert_int_equal(render_config(&c, &in, &e), 0);
    assert_false(wg_config_has_next_keys(&c) || c.initiate_with_next);
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

/* A new measurement touches the hubs' keepalive and nothing else, of nobody else. */
static void test_new_keepalive_is_all_that_changes(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    struct render_path path = found_path("n3", "198.51.100.7:40000", 0);
    struct render_input in = {.snapshot = &s, .paths = &path, .n_paths = 1, .keepalive = 10};
    struct wg_config before;
    struct wg_config after;
    struct diff d = DIFF_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(render_config(&before, &in, &e), 0);
    in.keepalive = 21;
    assert_int_equal(render_config(&after, &in, &e), 0);
    assert_int_equal(diff_make(&d, &before, &after, &before), 0);
    assert_int_equal(d.n_peers, 1);
    assert_memory_equal(&d.peers[0].peer.key, &peer(&after, 1)->key, sizeof(d.peers[0].peer.key));
    assert_int_equal(d.peers[0].op, DIFF_OP_UPDATE);
    assert_int_equal(d.peers[0].peer.keepalive, 21);
    assert_true(d.peers[0].set_keepalive);
    assert_false(d.peers[0].set_endpoint || d.peers[0].set_allowed || d.peers[0].set_psk ||
                 d.peers[0].set_cipher || d.peers[0].set_pin || d.peers[0].set_mtu);
    assert_false(d.set_key || d.set_listen_port || d.set_fwmark);
    diff_deinit(&d);
    wg_config_deinit(&before);
    wg_config_deinit(&after);
    snapshot_deinit(&s);
}

static void put_routes(struct snapshot *s, unsigned n, const char *routes)
{
    struct object o = sample_node(n);
    struct err e = ERR_NULL;

    o.node.routes = calloc(1, sizeof(*o.node.routes));
    assert_non_null(o.node.routes);
    if (subnets_parse(o.node.routes, routes, &e) < 0)
        fail_msg("%s", err_text(&e));
    sample_put(s, o);
}

static void check_allowed(const struct wg_peer *p, const char *wanted)
{
    char all[512] = "";
    char text[IP_PREFIX_TEXT_MAX];

    assert_non_null(p);
    for (size_t i = 0; i < p->n_allowed; i++)
        (void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? " " : "",
            ip_prefix_format(&p->allowed[i], text));
    assert_string_equal(all, wanted);
}

/* What is behind a node goes to it, by whatever path; a hub forwards nothing. */
static void test_routes(void **state)
{
    static const struct wg_quick_style style = {.key_file = "/etc/key"};
    struct snapshot s = sample_snapshot(5, 2);
    struct wg_config c;
    size_t len;
    char *text;

    put_routes(&s, 3, "10.9.0.0/24,fd09::/64");
    put_routes(&s, 4, "10.9.0.0/16"); /* around another one's: the longer prefix wins */
    c = render(&s, NULL, 0);
    check_allowed(peer(&c, 3), "10.9.0.0/24 10.42.0.3/32 fd09::/64 fd5a:1::3/128");
    check_allowed(peer(&c, 4), "10.9.0.0/16 10.42.0.4/32 fd5a:1::4/128");
    check_allowed(peer(&c, 5), "10.42.0.5/32 fd5a:1::5/128");
    check_allowed(peer(&c, 1), "10.42.0.1/32 fd5a:1::1/128");
    text = wg_quick_format(&c, &s, &style, &len);
    assert_non_null(strstr(text, "AllowedIPs = 10.9.0.0/24, 10.42.0.3/32, fd09::/64, "));
    free(text);
    wg_config_deinit(&c);
    snapshot_deinit(&s);

    /* The hub admits none of these: not twice the same one, not the network's own addresses. */
    s = sample_snapshot(5, 2);
    put_routes(&s, 3, "10.9.0.0/24");
    put_routes(&s, 4, "10.9.0.0/24,10.42.0.0/24,10.8.0.0/24");
    c = render(&s, NULL, 0);
    check_allowed(peer(&c, 3), "10.9.0.0/24 10.42.0.3/32 fd5a:1::3/128");
    check_allowed(peer(&c, 4), "10.8.0.0/24 10.42.0.4/32 fd5a:1::4/128");
    wg_config_deinit(&c);
    snapshot_deinit(&s);

    s = sample_snapshot(3, 1);
    put_routes(&s, 3, "10.9.0.0/24");
    c = render(&s, NULL, 0);
    check_allowed(peer(&c, 3), "10.42.0.3/32 fd5a:1::3/128");
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

/* A subnet that comes or goes changes one peer's allowed-ips and nothing else. */
static void test_new_route_is_all_that_changes(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    struct wg_config before = render(&s, NULL, 0);
    struct wg_config after;
    struct diff d = DIFF_NULL;

    put_routes(&s, 3, "10.9.0.0/24");
    after = render(&s, NULL, 0);
    assert_int_equal(diff_make(&d, &before, &after, &before), 0);
    assert_int_equal(d.n_peers, 1);
    assert_int_equal(d.peers[0].op, DIFF_OP_UPDATE);
    assert_true(d.peers[0].set_allowed);
    assert_false(d.peers[0].set_endpoint || d.peers[0].set_keepalive || d.peers[0].set_mtu);
    diff_deinit(&d);
    wg_config_deinit(&before);
    wg_config_deinit(&after);
    snapshot_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cipher),
        cmocka_unit_test(test_node),
        cmocka_unit_test(test_own_facts),
        cmocka_unit_test(test_hub),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_hub_path),
        cmocka_unit_test(test_hub_that_relays),
        cmocka_unit_test(test_keepalive),
        cmocka_unit_test(test_new_keepalive_is_all_that_changes),
        cmocka_unit_test(test_next_keys),
        cmocka_unit_test(test_mtu),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_new_route_is_all_that_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
