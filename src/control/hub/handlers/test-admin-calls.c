/*
 * test-admin-calls.c - what administrators may ask: networks, join tokens, nodes and other objects;
 * what they are told, and what is refused. A whole hub in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/content/token.h"
#include "api/server/server.h"
#include "base/err.h"
#include "hub/handlers/handlers.h"
#include "hub/record/record.h"
#include "mesh/object/object.h"
#include "store/store.h"
#include "test/support/sample_hub.h"
#include "test/support/store_now.h"

#define NET     "/v1/networks/default"
#define OBJECTS NET "/objects/"

static struct sample_hub hub;

static int begin(void **state)
{
    sample_hub_begin(&hub);
    sample_hub_add_node(&hub, "a");
    sample_hub_add_node(&hub, "b");
    return 0;
}

static int end(void **state)
{
    sample_hub_end(&hub);
    return 0;
}

/* A new reference to the answer. */
static json_t *get_as(const char *method, const char *path, const char *body, int status)
{
    return sample_hub_insist(&hub, method, path, body, status);
}

static json_t *get(const char *path)
{
    return get_as("GET", path, NULL, 200);
}

/* @words: of the answer; NULL: any. */
static void ask(
    const char *method, const char *path, const char *body, int status, const char *words)
{
    json_t *json = get_as(method, path, body, status);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

    if (words && (!text || !strstr(text, words)))
        fail_msg("%s %s: %s", method, path, text ? text : "");
    free(text);
    json_decref(json);
}

/* ---- networks ---------------------------------------------------------------------------------
 */

static void test_networks(void **state)
{
    ask("POST", "/v1/networks", "{\"name\":\"lab\"}", 201, "\"nodes\":1");
    ask("POST", "/v1/networks", "{\"name\":\"lab\"}", 409, "lab");
    ask("POST", "/v1/networks", "{\"name\":\"L B\"}", 400, "name");
    ask("GET", "/v1/networks", NULL, 200, "\"name\":\"lab\"");
    ask("GET", "/v1/networks", NULL, 200, "\"nodes\":3");
    ask("DELETE", "/v1/networks/lab", NULL, 204, NULL);
    ask("DELETE", "/v1/networks/lab", NULL, 404, "there is no network \\\"lab\\\" on this hub");
}

/* Who administers one network sees that one only. */
static void test_networks_of_a_caller(void **state)
{
    struct request rq = {.access = API_ACCESS_ADMIN, .now = hub.now};
    struct response rs = {0};
    json_t *list;

    ask("POST", "/v1/networks", "{\"name\":\"lab\"}", 201, NULL);
    (void)snprintf(rq.caller.network, sizeof(rq.caller.network), "lab");
    handlers_networks_list(&hub.hub->handlers, &rq, &rs);
    list = json_object_get(rs.body, "networks");
    assert_int_equal(json_array_size(list), 1);
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(json_array_get(list, 0), "metadata"), "name")),
        "lab");
    response_deinit(&rs);
}

/* ---- join tokens ------------------------------------------------------------------------------
 */

static void make_token(const char *network, const char *body, struct token *ret)
{
    char path[128];
    json_t *json;

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/tokens", network);
    json = get_as("POST", path, body, 201);
    assert_int_equal(token_decode(ret, json_string_value(json_object_get(json, "token")), NULL), 0);
    json_decref(json);
}

static void test_join_tokens(void **state)
{
    const json_t *first;
    struct token t;
    char path[128];
    json_t *json;

    ask("POST", "/v1/networks", "{\"name\":\"lab\"}", 201, NULL);
    ask("POST", "/v1/networks/none/tokens", "{}", 404, "no network");
    ask("POST", NET "/tokens", "{\"uses\":0}", 400, "uses");
    make_token("default", "{\"uses\":3,\"ephemeral\":true,\"routes\":[\"10.1.0.0/16\"]}", &t);
    make_token("lab", "{}", &t);
    json = get(NET "/tokens");
    assert_int_equal(json_array_size(json_object_get(json, "tokens")), 1);
    first = json_array_get(json_object_get(json, "tokens"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "network")), "default");
    assert_int_equal(json_integer_value(json_object_get(first, "usesLeft")), 3);
    assert_true(json_is_true(json_object_get(first, "ephemeral")));
    assert_true(json_is_false(json_object_get(first, "relay")));
    assert_int_equal(json_array_size(json_object_get(first, "routes")), 1);
    assert_true(json_integer_value(json_object_get(first, "created")) > 0);
    (void)snprintf(path, sizeof(path), "/v1/networks/lab/tokens/%s",
        json_string_value(json_object_get(first, "id")));
    ask("DELETE", path, NULL, 404, "network \\\"lab\\\" has no join token");
    (void)snprintf(
        path, sizeof(path), NET "/tokens/%s", json_string_value(json_object_get(first, "id")));
    json_decref(json);
    ask("DELETE", path, NULL, 204, NULL);
    ask("DELETE", path, NULL, 404, "network \\\"default\\\" has no join token");
    ask("DELETE", "/v1/networks/none/tokens/x", NULL, 404, "no network \\\"none\\\"");
    json = get("/v1/networks/lab/tokens");
    assert_null(json_object_get(json_array_get(json_object_get(json, "tokens"), 0), "routes"));
    json_decref(json);
    ask("GET", "/v1/networks/none/tokens", NULL, 404, "no network \\\"none\\\"");
}

/* All that is told of a token, but for what is of this moment. */
static void expect_told(const char *path, const char *list, const char *expected)
{
    static const char *const momentary[] = {"id", "created", "expires"};
    json_t *json = get(path);
    json_t *first = json_array_get(json_object_get(json, list), 0);
    char *text;

    assert_true(json_integer_value(json_object_get(first, "expires")) >
                json_integer_value(json_object_get(first, "created")));
    for (size_t i = 0; i < sizeof(momentary) / sizeof(*momentary); i++)
        (void)json_object_del(first, momentary[i]);
    text = json_dumps(first, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

static void test_what_is_told_of_tokens(void **state)
{
    ask("POST", NET "/tokens", "{\"uses\":3,\"relay\":true,\"routes\":[\"10.1.0.0/16\"]}", 201,
        NULL);
    expect_told(NET "/tokens", "tokens",
        "{\"createdBy\":\"\",\"ephemeral\":false,\"network\":\"default\",\"relay\":true,"
        "\"routes\":[\"10.1.0.0/16\"],\"usesLeft\":3}");
    ask("POST", "/v1/admin-tokens",
        "{\"name\":\"op\",\"role\":\"operator\",\"network\":\"default\"}", 201, NULL);
    expect_told("/v1/admin-tokens", "adminTokens",
        "{\"createdBy\":\"\",\"name\":\"op\",\"network\":\"default\",\"role\":\"operator\"}");
}

static void test_no_token_of_what_is_not_served(void **state)
{
    struct model_network *net = sample_hub_network(&hub);

    hub.may_fail = true;
    net->has_key = false;
    ask("POST", NET "/tokens", "{}", 503, "this hub does not serve network \\\"default\\\" yet");
    net->has_key = true;
}

/* As another hub of the same store writes its own node. */
static void add_hub(const char *name, const char *host, bool has_pin)
{
    static const struct token_hash none;
    struct model_network *net = sample_hub_network(&hub);
    struct node_hub places = {.n_endpoints = 1, .api_port = 9443, .has_tls_pin = has_pin};
    struct node spec = {.hub = &places};
    struct store_op op = {.kind = STORE_OP_PUT, .expect = STORE_EXPECT_ABSENT};
    char key[RECORD_KEY_MAX];
    struct err e = ERR_NULL;
    char *text;

    (void)snprintf(spec.meta.name, sizeof(spec.meta.name), "%s", name);
    (void)snprintf(spec.meta.network, sizeof(spec.meta.network), "default");
    spec.key.b[5] = (uint8_t)name[3];
    spec.address4 = net->address4;
    spec.address4.b[15] = (uint8_t)(200 + name[3] % 8);
    spec.address6 = net->address6;
    spec.address6.b[15] = (uint8_t)(200 + name[3] % 8);
    places.tls_pin.b[0] = 7;
    assert_int_equal(endpoint_parse(&places.endpoints[0], "203.0.113.9:51820", &e), 0);
    if (host) {
        places.n_names = 1;
        (void)snprintf(places.names[0], sizeof(places.names[0]), "%s", host);
    }
    op.key = record_key(key, RECORD_NODE, "default", name);
    op.value = text = record_node_encode(&spec, &none);
    assert_int_equal(store_now_commit(hub.hub->store, &op, 1, 1, NULL, NULL, &e), 0);
    free(text);
    store_wait(hub.hub->store);
    assert_non_null(model_find_node(net, name));
}

/* Where the network's other hubs are, of those that say by what they are trusted. */
static void test_a_token_names_the_other_hubs(void **state)
{
    struct token t;

    add_hub("far1", "far.example.org:51820", true);
    add_hub("far2", NULL, false);
    add_hub("far3", NULL, true);
    make_token("default", "{}", &t);
    assert_int_equal(t.n_others, 2);
    assert_int_equal(t.others[0].n_api, 2);
    assert_string_equal(t.others[0].api[0], "far.example.org:9443");
    assert_string_equal(t.others[0].api[1], "203.0.113.9:9443");
    assert_int_equal(t.others[0].pin.b[0], 7);
    assert_int_equal(t.others[0].key.b[5], '1');
    assert_int_equal(t.others[1].n_api, 1);
    assert_int_equal(t.others[1].key.b[5], '3');
    add_hub("far4", NULL, true);
    add_hub("far5", NULL, true);
    add_hub("far6", NULL, true);
    make_token("default", "{}", &t);
    assert_int_equal(t.n_others, TOKEN_OTHERS_MAX < 5 ? TOKEN_OTHERS_MAX : 5);
}

/* ---- nodes ------------------------------------------------------------------------------------
 */

/* The node of that name in the list; lent as long as @list. */
static const json_t *node_in(const json_t *list, const char *name)
{
    const json_t *node;
    size_t i;

    json_array_foreach(json_object_get(list, "nodes"), i, node)
        if (strcmp(json_string_value(json_object_get(json_object_get(node, "metadata"), "name")),
                name) == 0)
            return node;
    return NULL;
}

static void test_nodes(void **state)
{
    const char *self = hub.hub->model.self;
    json_t *json = get(NET "/nodes");
    char path[128];

    assert_int_equal(json_array_size(json_object_get(json, "nodes")), 3);
    assert_true(json_is_false(json_object_get(node_in(json, "a"), "reachable")));
    assert_true(json_is_true(json_object_get(node_in(json, self), "reachable")));
    assert_null(json_object_get(node_in(json, self), "servesJobs"));
    assert_null(json_object_get(node_in(json, "a"), "rxBytes"));
    assert_null(json_object_get(node_in(json, "a"), "copies"));
    json_decref(json);
    sample_hub_listen(&hub, sample_hub_node(&hub, "a"));
    json = get(NET "/nodes");
    assert_true(json_is_true(json_object_get(node_in(json, "a"), "reachable")));
    assert_true(json_is_false(json_object_get(node_in(json, "b"), "reachable")));
    json_decref(json);
    ask("GET", "/v1/networks/none/nodes", NULL, 404, "no network \\\"none\\\"");
    ask("GET", NET "/snapshots/a", NULL, 200, "\"b\"");
    ask("GET", NET "/snapshots/z", NULL, 404, "network \\\"default\\\" has no node \\\"z\\\"");
    ask("GET", "/v1/networks/none/snapshots/a", NULL, 404, "no network \\\"none\\\"");
    ask("DELETE", NET "/nodes/z", NULL, 404, "network \\\"default\\\" has no node \\\"z\\\"");
    (void)snprintf(path, sizeof(path), NET "/nodes/%s", self);
    ask("DELETE", path, NULL, 400, "is the hub itself");
    ask("DELETE", NET "/nodes/a", NULL, 204, NULL);
    ask("DELETE", NET "/nodes/a", NULL, 404, "has no node");
}

static void test_nodes_are_added_once(void **state)
{
    static const char body[] =
        "{\"name\":\"a\",\"publicKey\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"}";

    ask("POST", NET "/nodes", body, 409, "\\\"a\\\"");
    ask("POST", NET "/nodes", "{\"name\":\"c\",\"publicKey\":\"AAEC\"}", 400, "publicKey");
    ask("POST", "/v1/networks/none/nodes", body, 404, "no network \\\"none\\\"");
}

/* Another hub of the network is one that is alive only if it is heard. */
static void test_another_hub_in_the_list(void **state)
{
    json_t *json;

    add_hub("far1", NULL, true);
    json = get(NET "/nodes");
    assert_true(json_is_false(json_object_get(node_in(json, "far1"), "reachable")));
    json_decref(json);
    ask("DELETE", NET "/nodes/far1", NULL, 204, NULL);
}

/* ---- objects ----------------------------------------------------------------------------------
 */

/* PUT of @spec as an object of that kind and name. */
static void put(const char *kind, const char *name, const char *spec, int status, const char *words)
{
    char body[2048];
    char path[256];

    (void)snprintf(path, sizeof(path), OBJECTS "%s/%s", kind, name);
    (void)snprintf(body, sizeof(body),
        "{\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"},\"spec\":%s}", kind, name, spec);
    ask("PUT", path, body, status, words);
}

static void test_edges(void **state)
{
    static const char off[] = "{\"nodes\":[\"a\",\"b\"],\"path\":\"off\"}";

    ask("GET", OBJECTS "MeshEdge/a--b", NULL, 404, "network \\\"default\\\" has no MeshEdge");
    ask("GET", OBJECTS "MeshEdge", NULL, 200, "\"items\":[]");
    put("MeshEdge", "a--b", off, 200, "\"path\":\"off\"");
    ask("GET", OBJECTS "MeshEdge/a--b", NULL, 200, "\"path\":\"off\"");
    ask("GET", OBJECTS "MeshEdge", NULL, 200, "\"name\":\"a--b\"");
    ask("GET", OBJECTS "MeshEdge/b--a", NULL, 404, "has no MeshEdge");
    ask("GET", OBJECTS "MeshEdge/a", NULL, 404, "has no MeshEdge");
    ask("GET", OBJECTS "MeshEdge/a--z", NULL, 404, "has no MeshEdge");
    ask("GET", OBJECTS "MeshEdge/z--a", NULL, 404, "has no MeshEdge");
    put("MeshEdge", "a--z", "{\"nodes\":[\"a\",\"z\"],\"path\":\"off\"}", 404,
        "network \\\"default\\\" has no node \\\"z\\\"");
    ask("DELETE", OBJECTS "MeshEdge/a--b", NULL, 204, NULL);
    ask("DELETE", OBJECTS "MeshEdge/a--b", NULL, 404, "has no MeshEdge");
    ask("GET", OBJECTS "MeshEdge/a--b", NULL, 404, "has no MeshEdge");
}

/* To the hub there has to be a way, which is as it is. */
static void test_edges_to_the_hub(void **state)
{
    const char *self = hub.hub->model.self;
    bool is_first = strcmp(self, "a") < 0;
    const char *first = is_first ? self : "a";
    const char *second = is_first ? "a" : self;
    char name[OBJECT_NAME_MAX + 1];
    static const struct {
        const char *says;
        int status;
        const char *words;
    } cases[] = {
        {"\"path\":\"off\"", 400, "an edge to the hub cannot be off: \\\"weft node rm a\\\""},
        {"\"rate\":\"1Gbit\"", 400, "\\\"weft node set a --rate\\\""},
        {"\"path\":\"relay\"", 200, "\"path\":\"relay\""},
    };

    (void)edge_name(self, "a", name);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char spec[256];

        (void)snprintf(
            spec, sizeof(spec), "{\"nodes\":[\"%s\",\"%s\"],%s}", first, second, cases[i].says);
        put("MeshEdge", name, spec, cases[i].status, cases[i].words);
    }
}

/* PUT of @object, which is taken, as it is but for @value as its @field, if any. */
static void put_changed(const char *path, json_t *object, const char *field, const char *value,
    int status, const char *words)
{
    char *text;

    if (field)
        json_object_set_new(
            json_object_get(object, "spec"), field, json_loads(value, JSON_DECODE_ANY, NULL));
    text = json_dumps(object, 0);
    ask("PUT", path, text, status, words);
    free(text);
    json_decref(object);
}

/* The object, of whichever version. */
static json_t *get_unversioned(const char *path)
{
    json_t *object = get(path);

    json_object_del(json_object_get(object, "metadata"), "resourceVersion");
    return object;
}

/* Who says which version it has changed is refused when there is another one by now. */
static void test_versions(void **state)
{
    static const char path[] = OBJECTS "Node/a";
    json_t *node = get(path);

    put_changed(path, json_incref(node), "labels", "{\"k\":\"v\"}", 200, "\"k\":\"v\"");
    put_changed(path, json_incref(node), NULL, NULL, 409, "Node \\\"a\\\" is not at version");
    json_object_del(json_object_get(node, "metadata"), "resourceVersion");
    put_changed(path, node, "labels", "{\"k\":\"w\"}", 200, "\"k\":\"w\"");
}

/* PUT of the node as it is, with @value as its @field. */
static void change_node(
    const char *name, const char *field, const char *value, int status, const char *words)
{
    char path[128];

    (void)snprintf(path, sizeof(path), OBJECTS "Node/%s", name);
    put_changed(path, get_unversioned(path), field, value, status, words);
}

static void test_what_of_a_node_may_change(void **state)
{
    static const char fixed[] = "the key and addresses of node \\\"a\\\" are fixed";
    struct model_network before;
    const char *self = hub.hub->model.self;

    change_node("a", "publicKey", "\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"", 400, fixed);
    change_node("a", "address4", "\"10.77.0.99\"", 400, fixed);
    change_node("a", "address6", "\"fd00::99\"", 400, fixed);
    change_node("a", "rate", "\"1Gbit\"", 400, "is a stock WireGuard, which keeps no rates");
    change_node("a", "showDscp", "true", 400, "is a stock WireGuard, which keeps no rates");
    change_node(self, "rate", "\"1Gbit\"", 400, "is a hub, which keeps no rates");
    change_node(self, "routes", "[\"10.1.0.0/16\"]", 400, "is the hub itself, which forwards");
    /* Who gives it routes writes the network's address cursor again, as it is, against those who
     * enrol meanwhile. */
    before = *sample_hub_network(&hub);
    change_node("a", "labels", "{\"k\":\"v\"}", 200, NULL);
    assert_int_equal(sample_hub_network(&hub)->ipam_revision, before.ipam_revision);
    change_node("a", "routes", "[\"10.1.0.0/16\"]", 200, "10.1.0.0/16");
    assert_true(sample_hub_network(&hub)->ipam_revision > before.ipam_revision);
    assert_int_equal(sample_hub_network(&hub)->ipam.next, before.ipam.next);
    assert_int_equal(sample_hub_network(&hub)->ipam.high, before.ipam.high);
    change_node("b", "routes", "[\"10.1.0.0/16\"]", 409, "10.1.0.0/16");
    change_node("b", "routes", "[\"10.77.0.0/16\"]", 400, "10.77.0.0/16");
    change_node("a", "island", "\"rack\"", 200, "\"island\":\"rack\"");
    assert_true(sample_hub_node(&hub, "a")->spec.stock);
    sample_hub_node(&hub, "b")->spec.stock = false;
    change_node("b", "stock", "true", 400, "are fixed");
    change_node("b", "rate", "\"1Gbit\"", 200, "1Gbit");
    ask("PUT", OBJECTS "Node/z",
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"z\"},\"spec\":{\"publicKey\":"
        "\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\",\"address4\":\"10.77.0.9\","
        "\"address6\":\"fd00::9\"}}",
        404, "has no node \\\"z\\\": a node is made by \\\"weft join\\\"");
}

static void test_node_objects(void **state)
{
    json_t *json = get(OBJECTS "Node");

    assert_int_equal(json_array_size(json_object_get(json, "items")), 3);
    json_decref(json);
    ask("GET", OBJECTS "Node/z", NULL, 404, "network \\\"default\\\" has no Node \\\"z\\\"");
    ask("DELETE", OBJECTS "Node/z", NULL, 404, "network \\\"default\\\" has no Node \\\"z\\\"");
    ask("DELETE", OBJECTS "Node/a", NULL, 204, NULL);
    assert_null(model_find_node(sample_hub_network(&hub), "a"));
    assert_non_null(model_find_node(sample_hub_network(&hub), "b"));
}

/* PUT of the network default as it is, with @value as its @field, under another path. */
static void change_network(const char *path, const char *name, const char *field, const char *value,
    int status, const char *words)
{
    json_t *net = get_unversioned(OBJECTS "Network/default");

    json_object_set_new(json_object_get(net, "metadata"), "name", json_string(name));
    put_changed(path, net, field, value, status, words);
}

static void test_the_network_as_an_object(void **state)
{
    static const char path[] = OBJECTS "Network/default";

    ask("GET", OBJECTS "Network", NULL, 200, "\"name\":\"default\"");
    ask("GET", OBJECTS "Network/lab", NULL, 404, "has no Network \\\"lab\\\"");
    change_network(path, "default", "mtu", "1300", 200, "\"mtu\":1300");
    change_network(path, "default", "cidr4", "\"10.78.0.0/16\"", 400, "are fixed");
    change_network(path, "default", "cidr6", "\"fd00::/64\"", 400, "are fixed");
    change_network(OBJECTS "Network/lab", "lab", NULL, NULL, 400,
        "network \\\"lab\\\" is no object of network \\\"default\\\"");
    ask("DELETE", OBJECTS "Network/lab", NULL, 404, "has no Network \\\"lab\\\"");
    ask("DELETE", path, NULL, 204, NULL);
    ask("GET", path, NULL, 404, "no network \\\"default\\\"");
}

/* A network that is not there is made, with all that the object says. */
static void test_a_network_is_made_by_an_object(void **state)
{
    static const char path[] = "/v1/networks/lab/objects/Network/lab";
    static const char body[] =
        "{\"kind\":\"Network\",\"metadata\":{\"name\":\"lab\"%s},\"spec\":{\"cidr4\":"
        "\"10.90.0.0/24\",\"cidr6\":\"fd00:9::/64\",\"mtu\":1290,\"topology\":\"hub\","
        "\"keepalive\":33,\"budgets\":[{\"bytesPerDay\":5}]}}";
    char text[512];

    (void)snprintf(text, sizeof(text), body, ",\"resourceVersion\":77");
    ask("PUT", path, text, 409, "Network \\\"lab\\\" is not at version 77 any more");
    (void)snprintf(text, sizeof(text), body, "");
    ask("PUT", path, text, 200, "\"bytesPerDay\":5");
    ask("GET", path, NULL, 200, "\"cidr4\":\"10.90.0.0/24\"");
    ask("GET", path, NULL, 200, "\"cidr6\":\"fd00:9::/64\"");
    ask("GET", path, NULL, 200, "\"mtu\":1290");
    ask("GET", path, NULL, 200, "\"topology\":\"hub\"");
    ask("GET", path, NULL, 200, "\"keepalive\":33");
}

static void test_what_is_no_object(void **state)
{
    ask("GET", OBJECTS "Cat", NULL, 404, "kind \\\"Cat\\\" is none of");
    ask("GET", OBJECTS "Cat/a", NULL, 404, "kind \\\"Cat\\\" is none of");
    ask("DELETE", OBJECTS "Cat/a", NULL, 404, "kind \\\"Cat\\\" is none of");
    ask("PUT", OBJECTS "Cat/a", "{}", 404, "kind \\\"Cat\\\" is none of");
    ask("GET", "/v1/networks/none/objects/Node", NULL, 404, "no network \\\"none\\\"");
    ask("GET", "/v1/networks/none/objects/Node/a", NULL, 404, "no network \\\"none\\\"");
    ask("DELETE", "/v1/networks/none/objects/Node/a", NULL, 404, "no network \\\"none\\\"");
    ask("PUT", OBJECTS "Node/a", "{}", 400, "kind");
    ask("PUT", OBJECTS "Node/a",
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\"},\"spec\":{\"nodes\":[\"a\","
        "\"b\"],\"path\":\"off\"}}",
        400, "the object is a MeshEdge, not a Node");
    ask("PUT", OBJECTS "MeshEdge/a--c",
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\"},\"spec\":{\"nodes\":[\"a\","
        "\"b\"],\"path\":\"off\"}}",
        400, "the object is \\\"a--b\\\" of network \\\"default\\\", not \\\"a--c\\\"");
    ask("PUT", OBJECTS "MeshEdge/a--b",
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\",\"network\":\"lab\"},\"spec\":{"
        "\"nodes\":[\"a\",\"b\"],\"path\":\"off\"}}",
        400, "of network \\\"lab\\\", not \\\"a--b\\\" of \\\"default\\\"");
    ask("PUT", "/v1/networks/none/objects/MeshEdge/a--b",
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\"},\"spec\":{\"nodes\":[\"a\","
        "\"b\"],\"path\":\"off\"}}",
        404, "no network \\\"none\\\"");
}

/* What has happened, and how the edges are, is of a network that is there. */
static void test_edges_and_events(void **state)
{
    ask("GET", NET "/edges", NULL, 200, "\"edges\"");
    ask("GET", NET "/edges/b--a/history", NULL, 200, "\"minutes\":[");
    ask("GET", NET "/edges/a--z/history", NULL, 404, "has no node \\\"z\\\"");
    ask("GET", NET "/edges/y--a/history", NULL, 404, "has no node \\\"y\\\"");
    ask("GET", NET "/edges/a--a/history", NULL, 404, "\\\"a--a\\\" is no pair of two nodes");
    ask("GET", NET "/edges/a/history", NULL, 404, "\\\"a\\\" is no pair of two nodes");
    ask("GET", "/v1/networks/none/edges/a--b/history", NULL, 404, "no network \\\"none\\\"");
    ask("GET", NET "/events", NULL, 200, "\"events\"");
    ask("GET", NET "/findings", NULL, 200, "\"findings\":[],\"leftOut\":0");
    ask("GET", NET "/nat", NULL, 200, "\"providers\":[");
    ask("GET", "/v1/networks/none/nat", NULL, 404, "no network \\\"none\\\"");
    ask("GET", "/v1/networks/none/edges", NULL, 404, "no network \\\"none\\\"");
    ask("GET", "/v1/networks/none/events", NULL, 404, "no network \\\"none\\\"");
    ask("GET", "/v1/networks/none/findings", NULL, 404, "no network \\\"none\\\"");
}

/* ---- who administers, and who did what --------------------------------------------------------
 */

static void test_admin_tokens_are_listed(void **state)
{
    ask("POST", "/v1/admin-tokens", "{\"name\":\"ci\",\"role\":\"viewer\"}", 201, "\"token\":");
    ask("POST", "/v1/admin-tokens",
        "{\"name\":\"op\",\"role\":\"operator\",\"network\":\"default\"}", 201,
        "\"network\":\"default\"");
    ask("GET", "/v1/admin-tokens", NULL, 200, "\"name\":\"ci\",\"role\":\"viewer\"");
    ask("GET", "/v1/admin-tokens", NULL, 200, "\"network\":\"default\",\"role\":\"operator\"");
    hub.hub->admins.items[0].last_used_at = 12345;
    ask("GET", "/v1/admin-tokens", NULL, 200, "\"lastUsed\":12345");
    ask("POST", "/v1/admin-tokens", "{\"name\":\"x\"}", 400, "role");
}

/* The answer is one entry, about that object; its ID in @ret. */
static void expect_one_entry(const char *path, const char *object, char ret[static AUDIT_ID_MAX])
{
    json_t *json = get(path);
    const json_t *entries = json_object_get(json, "entries");
    const json_t *entry = json_array_get(entries, 0);

    assert_int_equal(json_array_size(entries), 1);
    assert_string_equal(json_string_value(json_object_get(entry, "object")), object);
    (void)snprintf(ret, AUDIT_ID_MAX, "%s", json_string_value(json_object_get(entry, "id")));
    json_decref(json);
}

/* The newest entries are told, or those that are asked for. */
static void test_the_audit_log(void **state)
{
    char id[AUDIT_ID_MAX];
    char path[128];

    expect_one_entry("/v1/audit?limit=1", "node/default/b", id);
    (void)snprintf(path, sizeof(path), "/v1/audit?limit=1&before=%s", id);
    expect_one_entry(path, "node/default/a", id);
    (void)snprintf(path, sizeof(path), "/v1/audit?after=%s", id);
    expect_one_entry(path, "node/default/b", id);
    ask("GET", "/v1/audit?network=none", NULL, 200, "\"entries\":[]");
    ask("GET", "/v1/audit?since=99999999999", NULL, 200, "\"entries\":[]");
    ask("GET", "/v1/audit?after=x", NULL, 400, "after \\\"x\\\" is not the id of an entry");
    ask("GET", "/v1/audit?before=x", NULL, 400, "before \\\"x\\\" is not the id of an entry");
    ask("GET", "/v1/audit?limit=0", NULL, 400, "limit");
    ask("GET", "/v1/audit?limit=many", NULL, 400, "limit");
    ask("GET", "/v1/audit?since=-1", NULL, 400, "since");
    ask("GET", "/v1/audit?network=A%20b", NULL, 400, "network");
}

/* Who administers one network reads of that one. */
static void test_the_audit_log_of_one_network(void **state)
{
    struct request rq = {.access = API_ACCESS_ADMIN,
        .now = hub.now,
        .query = "network=lab\0",
        .query_value = sample_hub_query_value};
    static const char *const queries[] = {"network=default\0", ""};
    struct response rs = {0};

    ask("POST", "/v1/networks", "{\"name\":\"lab\"}", 201, NULL);
    (void)snprintf(rq.caller.name, sizeof(rq.caller.name), "admin:ci");
    (void)snprintf(rq.caller.network, sizeof(rq.caller.network), "default");
    handlers_audit(&hub.hub->handlers, &rq, &rs);
    assert_int_equal(rs.status, 403);
    assert_string_equal(json_string_value(json_object_get(rs.body, "error")),
        "admin:ci is for network \"default\" only");
    response_deinit(&rs);
    for (unsigned i = 0; i < 2; i++) {
        const json_t *entries;
        const json_t *entry;
        size_t n;

        rs = (struct response){0};
        rq.query = queries[i];
        handlers_audit(&hub.hub->handlers, &rq, &rs);
        assert_non_null(rs.deferred);
        store_wait(hub.hub->store);
        assert_int_equal(rs.deferred->rs.status, 200);
        entries = json_object_get(rs.deferred->rs.body, "entries");
        assert_int_equal(json_array_size(entries), 3);
        json_array_foreach(entries, n, entry)
            assert_string_equal(json_string_value(json_object_get(entry, "network")), "default");
        response_deinit(&rs.deferred->rs);
        rs.deferred->on_closed(rs.deferred);
    }
}

static void test_routes_are_listed(void **state)
{
    ask("GET", "/v1/routes", NULL, 200,
        "\"doors\":[\"public\",\"overlay\",\"admin\"],\"help\":\"is the hub there?\"");
    ask("GET", "/v1/routes", NULL, 200,
        "\"doors\":[\"overlay\"],\"help\":\"what a node reports\",\"method\":\"PUT\","
        "\"path\":\"/v1/status\",\"role\":\"none\",\"scope\":\"hub\"}");
    ask("GET", "/v1/routes", NULL, 200, "\"scope\":\"filtered\"");
    ask("GET", "/v1/routes", NULL, 200, "\"scope\":\"network\"");
}

/* ---- what is in files -------------------------------------------------------------------------
 */

/* The new token in the file is the one that is taken from now on. */
static void test_the_file_is_replaced(void **state)
{
    struct token_hash before = hub.hub->admins.file;
    const struct sample_question both[2] = {
        {"POST", "/v1/admin-token-file", NULL}, {"POST", "/v1/admin-token-file", NULL}};
    struct endpoint from = {.port = 1};
    struct caller caller;
    int statuses[2];
    char path[128];
    char text[128];
    FILE *f;

    ask("POST", "/v1/admin-token-file", NULL, 200, "/admin.token\"");
    assert_true(hub.hub->admins.has_file);
    assert_memory_not_equal(&before, &hub.hub->admins.file, sizeof(before));
    (void)snprintf(path, sizeof(path), "%s/admin.token", hub.dir);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    (void)fclose(f);
    text[strcspn(text, "\n")] = '\0';
    assert_int_equal(
        access_identify(&hub.hub->handlers, text, &from, hub.now, &caller), CALLER_KNOWN);
    assert_int_equal(access_identify(&hub.hub->handlers, "weft-admin1.x", &from, hub.now, &caller),
        CALLER_UNKNOWN);
    sample_hub_ask_both(&hub, both, statuses);
    assert_int_equal(statuses[0], 200);
    assert_int_equal(statuses[1], 409);
    assert_false(hub.hub->handlers.is_rotating);
    ask("POST", "/v1/admin-token-file", NULL, 200, "/admin.token\"");
}

/* A store in memory has no file that could be copied. */
static void test_no_copy_of_a_store_in_memory(void **state)
{
    ask("POST", "/v1/backup", NULL, 409, NULL);
    assert_false(hub.hub->networks.held_keys);
}

static void test_two_moves_at_once(void **state)
{
    const struct sample_question both[2] = {{"PUT", "/v1/move", "{\"public\":[\"203.0.113.5\"]}"},
        {"PUT", "/v1/move", "{\"public\":[\"203.0.113.6\"]}"}};
    int statuses[2];

    sample_hub_ask_both(&hub, both, statuses);
    assert_int_equal(statuses[0], 200);
    assert_int_equal(statuses[1], 409);
    ask("GET", "/v1/move", NULL, 200, "\"next\":[\"203.0.113.5:51820\"]");
    ask("PUT", "/v1/move", "{\"public\":[]}", 200, "\"next\":[]");
    ask("PUT", "/v1/move", "{}", 400, "public");
    ask("PUT", "/v1/move?force=1", "{\"public\":[\"nowhere.invalid\"]}", 200,
        "nowhere.invalid:51820");
}

static void test_health(void **state)
{
    ask("GET", "/v1/health", NULL, 200, "\"ok\":true");
    ask("GET", "/v1/health?live=1", NULL, 200, "\"ok\":true");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_networks, begin, end),
        cmocka_unit_test_setup_teardown(test_networks_of_a_caller, begin, end),
        cmocka_unit_test_setup_teardown(test_join_tokens, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_told_of_tokens, begin, end),
        cmocka_unit_test_setup_teardown(test_no_token_of_what_is_not_served, begin, end),
        cmocka_unit_test_setup_teardown(test_a_token_names_the_other_hubs, begin, end),
        cmocka_unit_test_setup_teardown(test_nodes, begin, end),
        cmocka_unit_test_setup_teardown(test_nodes_are_added_once, begin, end),
        cmocka_unit_test_setup_teardown(test_another_hub_in_the_list, begin, end),
        cmocka_unit_test_setup_teardown(test_edges, begin, end),
        cmocka_unit_test_setup_teardown(test_edges_to_the_hub, begin, end),
        cmocka_unit_test_setup_teardown(test_versions, begin, end),
        cmocka_unit_test_setup_teardown(test_what_of_a_node_may_change, begin, end),
        cmocka_unit_test_setup_teardown(test_node_objects, begin, end),
        cmocka_unit_test_setup_teardown(test_the_network_as_an_object, begin, end),
        cmocka_unit_test_setup_teardown(test_a_network_is_made_by_an_object, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_no_object, begin, end),
        cmocka_unit_test_setup_teardown(test_edges_and_events, begin, end),
        cmocka_unit_test_setup_teardown(test_admin_tokens_are_listed, begin, end),
        cmocka_unit_test_setup_teardown(test_the_audit_log, begin, end),
        cmocka_unit_test_setup_teardown(test_the_audit_log_of_one_network, begin, end),
        cmocka_unit_test_setup_teardown(test_routes_are_listed, begin, end),
        cmocka_unit_test_setup_teardown(test_the_file_is_replaced, begin, end),
        cmocka_unit_test_setup_teardown(test_no_copy_of_a_store_in_memory, begin, end),
        cmocka_unit_test_setup_teardown(test_two_moves_at_once, begin, end),
        cmocka_unit_test_setup_teardown(test_health, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
