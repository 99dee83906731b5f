/* test-request-bodies.c - where a hub is reached, and what each call takes and refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/record/request.h"
#include "test/support/sample_mesh.h"

/* 32 bytes of 7, and the same of 33 bytes. */
#define SECRET    "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc"
#define SECRET_33 "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH"

#define NAME_OF_63 "a23456789012345678901234567890123456789012345678901234567890123"
#define TEXT_OF_79 "a234567890123456789012345678901234567890123456789012345678901234567890123456789"

/* JSON with ' for ", and the key of number 1 in the place of %s. */
static json_t *body(const char *format)
{
    char text[2048];
    char key[X25519_BASE64_MAX];
    struct x25519_public public = sample_key(1);
    json_t *json;

    (void)x25519_public_format(&public, key);
    (void)snprintf(text, sizeof(text), format, key);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json = json_loads(text, 0, NULL);
    assert_non_null(json);
    return json;
}

struct case_refused {
    const char *body;
    const char *says;
};

#define N(cases) (sizeof(cases) / sizeof(*(cases)))

/* Each of the bodies is refused with its words, and what was there stays. */
#define EXPECT_REFUSALS(decode, type, cases)                                                       \
    for (size_t i = 0; i < N(cases); i++) {                                                        \
        json_t *refused = body((cases)[i].body);                                                   \
        struct err why = ERR_NULL;                                                                 \
        type ret;                                                                                  \
        type before;                                                                               \
                                                                                                   \
        memset(&ret, 0x5a, sizeof(ret));                                                           \
        memset(&before, 0x5a, sizeof(before));                                                     \
        assert_int_equal(decode(&ret, refused, &why), -EINVAL);                                    \
        assert_string_equal(err_text(&why), (cases)[i].says);                                      \
        assert_memory_equal(&ret, &before, sizeof(ret));                                           \
        json_decref(refused);                                                                      \
    }

/* ---- where a hub is reached ------------------------------------------------------------------ */

static void test_places(void **state)
{
    static const struct {
        const char *text;
        const char *says;
        bool is_name;
    } cases[] = {
        {"hub.example", "hub.example:51820", true},
        {"hub.example:443", "hub.example:443", true},
        {"192.0.2.1", "192.0.2.1:51820", false},
        {"192.0.2.1:443", "192.0.2.1:443", false},
        {"2001:db8::1", "[2001:db8::1]:51820", false},
        {"[2001:db8::1]:443", "[2001:db8::1]:443", false},
    };

    for (size_t i = 0; i < N(cases); i++) {
        struct hub_public p;
        struct endpoint at;
        struct err e = ERR_NULL;

        assert_int_equal(hub_public_parse(&p, cases[i].text, 51820, &e), 0);
        assert_string_equal(p.text, cases[i].says);
        assert_int_equal(p.is_name, cases[i].is_name);
        assert_int_equal(p.n, cases[i].is_name ? 0 : 1);
        if (!cases[i].is_name) {
            assert_int_equal(endpoint_parse(&at, cases[i].says, NULL), 0);
            assert_true(endpoint_equal(&p.at[0], &at));
        }
    }
}

static void test_texts_that_are_no_places(void **state)
{
    static const struct case_refused cases[] = {
        {"", "\"\" is not HOST or HOST:PORT"},
        {"a b", "\"a b\" is not HOST or HOST:PORT"},
        {"hub.example:0", "port \"0\" is not a number from 1 to 65535"},
        {"[x]", "\"[x]\" is not HOST or HOST:PORT"},
        {"127.0.0.1",
            "127.0.0.1 is in 127.0.0.0/8, where no other machine reaches this one: nodes need an "
            "address of it that they can send to"},
        {"[fe80::1]:443",
            "[fe80::1]:443 is in fe80::/10, where no other machine reaches this one: nodes need an "
            "address of it that they can send to"},
    };

    for (size_t i = 0; i < N(cases); i++) {
        struct hub_public p = {.text = "as before", .n = 3};
        struct err e = ERR_NULL;

        assert_int_equal(hub_public_parse(&p, cases[i].body, 51820, &e), -EINVAL);
        assert_string_equal(err_text(&e), cases[i].says);
        assert_string_equal(p.text, "as before");
        assert_int_equal(p.n, 3);
    }
}

/* A port is not cut short: with its last digit it does not fit any more. */
static void test_longest_place(void **state)
{
    char text[HOST_PORT_MAX + 2] = "hub.example:";
    struct hub_public p;

    memset(text + 12, '0', sizeof(text) - 12);
    memcpy(text + HOST_PORT_MAX - 2, "443", 4);
    assert_int_equal(strlen(text), HOST_PORT_MAX + 1);
    assert_int_equal(hub_public_parse(&p, text, 51820, NULL), -EINVAL);
    text[HOST_PORT_MAX] = '\0';
    assert_int_equal(hub_public_parse(&p, text, 51820, NULL), 0);
    assert_string_equal(p.text, text);
}

/* A name that was looked up, with its two addresses, and others. */
static struct hub_places places_of(const char *const texts[], unsigned n)
{
    struct hub_places places = {.n = n};

    for (unsigned i = 0; i < n; i++)
        assert_int_equal(hub_public_parse(&places.items[i], texts[i], 51820, NULL), 0);
    return places;
}

static void expect_endpoints(const struct node_hub *hub, const char *const texts[], unsigned n)
{
    assert_int_equal(hub->n_endpoints, n);
    for (unsigned i = 0; i < n; i++) {
        char buf[ENDPOINT_TEXT_MAX];

        assert_string_equal(endpoint_format(&hub->endpoints[i], buf), texts[i]);
    }
}

static void test_what_nodes_are_told(void **state)
{
    static const char *const here_texts[] = {"hub.example", "192.0.2.1"};
    static const char *const next_texts[] = {"192.0.2.9", "192.0.2.1", "hub.example", "b.example"};
    static const char *const told[] = {"192.0.2.7:51820", "192.0.2.1:51820", "192.0.2.9:51820"};
    static const char *const told_back[] = {"192.0.2.9:51820", "192.0.2.1:51820"};
    struct hub_places here = places_of(here_texts, 2);
    struct hub_places next = places_of(next_texts, 4);
    struct hub_places none = next;
    struct node_hub hub = {.api_port = 443, .n_endpoints = 5, .n_names = 3};
    json_t *list = hub_places_encode(&next);
    char *text = json_dumps(list, JSON_COMPACT);

    none.n = 0;
    assert_int_equal(endpoint_parse(&here.items[0].at[0], "192.0.2.7:51820", NULL), 0);
    here.items[0].at[1] = here.items[1].at[0];
    here.items[0].n = 2;
    hub_places_tell(&hub, &here, &next);
    expect_endpoints(&hub, told, 3);
    assert_int_equal(hub.n_names, 2);
    assert_string_equal(hub.names[0], "hub.example:51820");
    assert_string_equal(hub.names[1], "b.example:51820");
    assert_int_equal(hub.api_port, 443);
    /* What was told before is not told any more, nor does it hide what is. */
    hub_places_tell(&hub, &next, &none);
    expect_endpoints(&hub, told_back, 2);
    assert_int_equal(hub.n_names, 2);
    hub_places_tell(&hub, &none, &none);
    assert_int_equal(hub.n_endpoints, 0);
    assert_int_equal(hub.n_names, 0);
    hub_places_tell(&hub, &next, &none);
    expect_endpoints(&hub, told_back, 2);
    assert_int_equal(hub.n_names, 2);
    assert_string_equal(text,
        "[\"192.0.2.9:51820\",\"192.0.2.1:51820\",\"hub.example:51820\",\"b.example:51820\"]");
    free(text);
    json_decref(list);
}

/* As many as an object has room for: what is too many is left out. */
static void test_more_than_nodes_are_told(void **state)
{
    struct hub_places here = {.n = OBJECT_ENDPOINTS_MAX};
    struct hub_places next = {.n = 1};
    struct node_hub hub = {.api_port = 443};
    char text[HOST_PORT_MAX + 1];

    for (unsigned i = 0; i < OBJECT_ENDPOINTS_MAX; i++) {
        (void)snprintf(text, sizeof(text), i < 5 ? "hub%u.example:1" : "192.0.2.%u:1", i);
        assert_int_equal(hub_public_parse(&here.items[i], text, 1, NULL), 0);
        here.items[i].at[0] = (struct endpoint){.port = (uint16_t)(i + 1)};
        here.items[i].n = 1;
    }
    assert_int_equal(hub_public_parse(&next.items[0], "192.0.2.99:1", 1, NULL), 0);
    hub_places_tell(&hub, &here, &next);
    assert_int_equal(hub.n_endpoints, OBJECT_ENDPOINTS_MAX);
    assert_int_equal(hub.endpoints[OBJECT_ENDPOINTS_MAX - 1].port, OBJECT_ENDPOINTS_MAX);
    assert_int_equal(hub.n_names, OBJECT_HUB_NAMES_MAX);
    assert_string_equal(hub.names[OBJECT_HUB_NAMES_MAX - 1], "hub3.example:1");
    assert_int_equal(hub.api_port, 443);
}

/* Which of several places is meant, whoever reads the sentence has to be told. */
static void test_moves(void **state)
{
    static const struct case_refused cases[] = {
        {"{'public':['192.0.2.1',1]}", "move: entry 2 of \"public\" is not a text"},
        {"{'public':['192.0.2.1','hub.example','127.0.0.1']}",
            "move: entry 3 of \"public\": 127.0.0.1 is in 127.0.0.0/8, where no other machine "
            "reaches this one: nodes need an address of it that they can send to"},
        {"{'public':['a b']}", "move: entry 1 of \"public\": \"a b\" is not HOST or HOST:PORT"},
        {"{'public':[],'when':1}", "move: \"when\" is not a field of it"},
        {"{}", "move: \"public\" is missing"},
        {"{'public':['a','b','c','d','e','f','g','h','i']}",
            "move: \"public\" is not an array of 0 to 8 items"},
    };
    struct hub_places places = {.n = 7};
    struct err e = ERR_NULL;
    json_t *json;

    for (size_t i = 0; i < N(cases); i++) {
        json = body(cases[i].body);
        assert_int_equal(move_request_decode(&places, json, 51820, &e), -EINVAL);
        assert_string_equal(err_text(&e), cases[i].says);
        assert_int_equal(places.n, 7);
        json_decref(json);
    }
    json = body("{'public':['192.0.2.1','hub.example']}");
    assert_int_equal(move_request_decode(&places, json, 443, &e), 0);
    assert_int_equal(places.n, 2);
    assert_string_equal(places.items[0].text, "192.0.2.1:443");
    assert_string_equal(places.items[1].text, "hub.example:443");
    json_decref(json);
    json = body("{'public':[]}");
    assert_int_equal(move_request_decode(&places, json, 443, &e), 0);
    assert_int_equal(places.n, 0);
    json_decref(json);
}

/* ---- machines that join ---------------------------------------------------------------------- */

static void test_enrolment(void **state)
{
    json_t *json = body("{'secret':'" SECRET "','publicKey':'%s','name':'gpu-1','labels':{'a':'b'},"
                        "'engine':'kernel','routes':['10.9.0.0/24'],'peers':false,'dryRun':true,"
                        "'future':1}");
    json_t *least = body("{'secret':'" SECRET "','publicKey':'%s','name':''}");
    struct x25519_public key = sample_key(1);
    struct token_secret secret;
    struct enrol_request rq;
    struct err e = ERR_NULL;

    memset(&secret, 7, sizeof(secret));
    memset(&rq, 0x5a, sizeof(rq));
    assert_int_equal(enrol_request_decode(&rq, json, &e), 0);
    assert_memory_equal(&rq.secret, &secret, sizeof(secret));
    assert_memory_equal(&rq.key, &key, sizeof(key));
    assert_string_equal(rq.name, "gpu-1");
    assert_ptr_equal(rq.labels, json_object_get(json, "labels"));
    assert_string_equal(rq.engine, "kernel");
    assert_int_equal(rq.routes.n, 1);
    assert_true(rq.wants_no_peers);
    assert_true(rq.is_dry_run);

    assert_int_equal(enrol_request_decode(&rq, least, &e), 0);
    assert_string_equal(rq.name, "");
    assert_null(rq.labels);
    assert_string_equal(rq.engine, "");
    assert_int_equal(rq.routes.n, 0);
    assert_false(rq.wants_no_peers);
    assert_false(rq.is_dry_run);
    json_decref(json);
    json_decref(least);
}

#define NO_SECRET "enrolment: \"secret\" is not that of a join token: base64url of 32 bytes"

static void test_refused_enrolments(void **state)
{
    static const struct case_refused cases[] = {
        {"{}", "enrolment: \"secret\" is missing"},
        {"{'secret':'','publicKey':'%s'}",
            "enrolment: \"secret\" has 0 bytes, and 1 to 64 are allowed"},
        {"{'secret':'+','publicKey':'%s'}", NO_SECRET},
        {"{'secret':'BwcH','publicKey':'%s'}", NO_SECRET},
        {"{'secret':'" SECRET_33 "','publicKey':'%s'}", NO_SECRET},
        {"{'secret':'" SECRET "'}", "enrolment: \"publicKey\" is missing"},
        {"{'secret':'" SECRET "','publicKey':'%s','name':'a--b'}",
            "enrolment: node name \"a--b\" has two '-' in a row, which separate the names in an "
            "edge's"},
        {"{'secret':'" SECRET "','publicKey':'%s','labels':1}",
            "enrolment: \"labels\" is not an object"},
        {"{'secret':'" SECRET "','publicKey':'%s','engine':'" NAME_OF_63 "'}",
            "enrolment: \"engine\" has 63 bytes, and 0 to 31 are allowed"},
        {"{'secret':'" SECRET "','publicKey':'%s','routes':1}",
            "enrolment: \"routes\" is not an array of 0 to 16 items"},
        {"{'secret':'" SECRET "','publicKey':'%s','peers':1}",
            "enrolment: \"peers\" is neither true nor false"},
        {"{'secret':'" SECRET "','publicKey':'%s','dryRun':1}",
            "enrolment: \"dryRun\" is neither true nor false"},
    };

    EXPECT_REFUSALS(enrol_request_decode, struct enrol_request, cases);
}

static void test_nodes_without_an_agent(void **state)
{
    static const struct case_refused cases[] = {
        {"{}", "node: \"name\" is missing: the name of the node"},
        {"{'name':'','publicKey':'%s'}", "node: \"name\" is missing: the name of the node"},
        {"{'name':'-','publicKey':'%s'}",
            "node: node name \"-\" is not a name: 1 to 63 of a-z, 0-9 and '-', not first or last a "
            "'-'"},
        {"{'name':'a'}", "node: \"publicKey\" is missing"},
        {"{'name':'a','publicKey':'%s','engine':'stock'}", "node: \"engine\" is not a field of it"},
    };
    json_t *json = body("{'name':'" NAME_OF_63 "','publicKey':'%s','labels':{},"
                        "'routes':['10.9.0.0/24','10.8.0.0/24']}");
    struct x25519_public key = sample_key(1);
    struct enrol_request rq;
    struct err e = ERR_NULL;

    memset(&rq, 0x5a, sizeof(rq));
    assert_int_equal(node_request_decode(&rq, json, &e), 0);
    assert_string_equal(rq.name, NAME_OF_63);
    assert_memory_equal(&rq.key, &key, sizeof(key));
    assert_ptr_equal(rq.labels, json_object_get(json, "labels"));
    assert_int_equal(rq.routes.n, 2);
    assert_string_equal(rq.engine, "");
    assert_false(rq.wants_no_peers);
    assert_false(rq.is_dry_run);
    json_decref(json);
    EXPECT_REFUSALS(node_request_decode, struct enrol_request, cases);
}

static void test_tokens(void **state)
{
    static const struct case_refused cases[] = {
        {"{'ttlSeconds':0}", "token: \"ttlSeconds\" is not a whole number from 1 to 31622400"},
        {"{'ttlSeconds':31622401}",
            "token: \"ttlSeconds\" is not a whole number from 1 to 31622400"},
        {"{'uses':0}", "token: \"uses\" is not a whole number from 1 to 1000000"},
        {"{'uses':1000001}", "token: \"uses\" is not a whole number from 1 to 1000000"},
        {"{'ephemeral':1}", "token: \"ephemeral\" is neither true nor false"},
        {"{'relay':1}", "token: \"relay\" is neither true nor false"},
        {"{'routes':1}", "token: \"routes\" is not an array of 0 to 16 items"},
        {"{'x':1}", "token: \"x\" is not a field of it"},
    };
    json_t *json = body("{'ttlSeconds':31622400,'uses':1000000,'ephemeral':true,'relay':false,"
                        "'routes':['10.9.0.0/24']}");
    struct token_request rq;
    struct err e = ERR_NULL;

    assert_int_equal(token_request_decode(&rq, NULL, &e), 0);
    assert_int_equal(rq.ttl_seconds, 3600);
    assert_int_equal(rq.uses, 1);
    assert_false(rq.ephemeral);
    assert_false(rq.relay);
    assert_int_equal(rq.routes.n, 0);
    assert_int_equal(token_request_decode(&rq, json, &e), 0);
    assert_int_equal(rq.ttl_seconds, 31622400);
    assert_int_equal(rq.uses, 1000000);
    assert_true(rq.ephemeral);
    assert_false(rq.relay);
    assert_int_equal(rq.routes.n, 1);
    json_decref(json);
    json = body("{'relay':true}");
    assert_int_equal(token_request_decode(&rq, json, &e), 0);
    assert_false(rq.ephemeral);
    assert_true(rq.relay);
    json_decref(json);
    EXPECT_REFUSALS(token_request_decode, struct token_request, cases);
}

static void test_networks(void **state)
{
    static const struct case_refused cases[] = {
        {"{}", "network: \"name\" is missing"},
        {"{'name':'a','cidr4':'fd77::/48'}",
            "network: \"cidr4\" is \"fd77::/48\", which is not IPv4"},
        {"{'name':'a','cidr6':'10.7.0.0/16'}",
            "network: \"cidr6\" is \"10.7.0.0/16\", which is not IPv6"},
        {"{'name':'a','topology':'star'}",
            "network: \"topology\" is \"star\", and one of auto, hub, mesh is allowed"},
        {"{'name':'a','mtu':1279}", "network: \"mtu\" is not a whole number from 1280 to 65455"},
        {"{'name':'a','keepalive':'x'}",
            "network: \"keepalive\" is neither \"auto\" nor a number from 0 to 3600"},
        {"{'name':'a','cipher':'auto'}", "network: \"cipher\" is not a field of it"},
    };
    json_t *json = body("{'name':'net','cidr4':'10.7.0.0/16','cidr6':'fd77::/48','topology':'mesh',"
                        "'mtu':9000,'keepalive':25}");
    json_t *least = body("{'name':'net'}");
    struct network rq;
    struct err e = ERR_NULL;
    char buf[IP_PREFIX_TEXT_MAX];

    assert_int_equal(network_request_decode(&rq, json, &e), 0);
    assert_string_equal(rq.meta.name, "net");
    assert_string_equal(ip_prefix_format(&rq.cidr4, buf), "10.7.0.0/16");
    assert_string_equal(ip_prefix_format(&rq.cidr6, buf), "fd77::/48");
    assert_int_equal(rq.topology, TOPOLOGY_MESH);
    assert_int_equal(rq.mtu, 9000);
    assert_int_equal(rq.keepalive, 25);
    assert_int_equal(network_request_decode(&rq, least, &e), 0);
    assert_string_equal(rq.meta.name, "net");
    assert_int_equal(rq.cidr4.len, 0);
    assert_int_equal(rq.cidr6.len, 0);
    assert_int_equal(rq.topology, TOPOLOGY_AUTO);
    assert_int_equal(rq.mtu, NETWORK_MTU_DEFAULT);
    assert_int_equal(rq.keepalive, NETWORK_KEEPALIVE_AUTO);
    json_decref(json);
    json_decref(least);
    EXPECT_REFUSALS(network_request_decode, struct network, cases);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void test_jobs(void **state)
{
    static const struct case_refused cases[] = {
        {"{'brokenRun':''}", "job: \"brokenRun\" has 0 bytes, and 1 to 79 are allowed"},
        {"{'brokenRun':'" TEXT_OF_79 "0'}",
            "job: \"brokenRun\" has 80 bytes, and 1 to 79 are allowed"},
        {"{'nnodes':'4,2'}",
            "job: \"nnodes\" is \"4,2\", and neither a number of nodes nor MIN:MAX"},
        {"{'nnodes':'1234567890123456'}", "job: \"nnodes\" has 16 bytes, and 1 to 15 are allowed"},
        {"{'dryRun':0}", "job: \"dryRun\" is neither true nor false"},
        {"{'brokenRun':'a.1','dryRun':true}",
            "job: \"brokenRun\" begins a run, and with \"dryRun\" nothing is begun"},
        {"{'x':1}", "job: \"x\" is not a field of it"},
    };
    json_t *json = body("{'brokenRun':'" TEXT_OF_79 "','nnodes':'2:4','dryRun':false}");
    json_t *dry = body("{'dryRun':true,'nnodes':'0123456789'}");
    struct job_request rq;
    struct err e = ERR_NULL;

    assert_int_equal(job_request_decode(&rq, NULL, &e), 0);
    assert_string_equal(rq.broken_run, "");
    assert_string_equal(rq.nnodes, "");
    assert_false(rq.is_dry_run);
    assert_int_equal(job_request_decode(&rq, json, &e), 0);
    assert_string_equal(rq.broken_run, TEXT_OF_79);
    assert_string_equal(rq.nnodes, "2:4");
    assert_false(rq.is_dry_run);
    assert_int_equal(job_request_decode(&rq, dry, &e), 0);
    assert_string_equal(rq.broken_run, "");
    assert_string_equal(rq.nnodes, "0123456789");
    assert_true(rq.is_dry_run);
    json_decref(json);
    json_decref(dry);
    EXPECT_REFUSALS(job_request_decode, struct job_request, cases);
}

static void test_what_nccl_took(void **state)
{
    static const struct case_refused cases[] = {
        {"{}", "NCCL's network: \"run\" is missing"},
        {"{'run':'a.1'}", "NCCL's network: \"verdict\" is missing"},
        {"{'run':'a.1','verdict':'none'}",
            "NCCL's network: \"verdict\" is \"none\", and one of wanted, other, unknown is "
            "allowed"},
        {"{'run':'a.1','verdict':'other'}", "NCCL's network: \"profile\" is missing"},
        {"{'run':'a.1','verdict':'other','profile':'ib'}", "NCCL's network: \"text\" is missing"},
        {"{'run':'a.1','verdict':'other','profile':'ib','text':'t','network':1}",
            "NCCL's network: \"network\" is not a string"},
        {"{'run':'a.1','verdict':'other','profile':'ib','text':'t','x':1}",
            "NCCL's network: \"x\" is not a field of it"},
    };
    json_t *json = body("{'run':'a.1','verdict':'unknown','profile':'ib','network':'Socket',"
                        "'text':'It took Socket.'}");
    json_t *least = body("{'run':'a.1','verdict':'other','profile':'ib','text':'t'}");
    struct nccl_request rq;
    struct err e = ERR_NULL;
    json_t *shown;
    char *text;

    assert_int_equal(nccl_request_decode(&rq, json, &e), 0);
    assert_string_equal(rq.run, "a.1");
    shown = nccl_request_encode(&rq);
    text = json_dumps(shown, JSON_COMPACT);
    assert_string_equal(text, "{\"verdict\":\"unknown\",\"profile\":\"ib\",\"network\":\"Socket\","
                              "\"text\":\"It took Socket.\"}");
    free(text);
    json_decref(shown);
    assert_int_equal(nccl_request_decode(&rq, least, &e), 0);
    assert_string_equal(rq.verdict, "other");
    assert_string_equal(rq.network, "");
    json_decref(json);
    json_decref(least);
    EXPECT_REFUSALS(nccl_request_decode, struct nccl_request, cases);
}

static void test_presence(void **state)
{
    static const struct case_refused cases[] = {
        {"{}", "presence: \"run\" is missing"},
        {"{'run':'a.1'}", "presence: \"command\" is missing"},
        {"{'run':'a.1','command':'c'}", "presence: \"everySeconds\" is missing"},
        {"{'run':'a.1','command':'c','everySeconds':0}",
            "presence: \"everySeconds\" is not a whole number from 1 to 60"},
        {"{'run':'a.1','command':'c','everySeconds':61}",
            "presence: \"everySeconds\" is not a whole number from 1 to 60"},
        {"{'run':'a.1','command':'c','everySeconds':1,'ended':1}",
            "presence: \"ended\" is neither true nor false"},
        {"{'run':'a.1','command':'c','everySeconds':1,'x':1}",
            "presence: \"x\" is not a field of it"},
    };
    json_t *json = body("{'run':'a.1','command':'c-7','everySeconds':60,'ended':true}");
    json_t *least = body("{'run':'a.1','command':'c-7','everySeconds':1}");
    struct presence_request rq;
    struct err e = ERR_NULL;

    assert_int_equal(presence_request_decode(&rq, json, &e), 0);
    assert_string_equal(rq.run, "a.1");
    assert_string_equal(rq.command, "c-7");
    assert_int_equal(rq.every_seconds, 60);
    assert_true(rq.ended);
    assert_int_equal(presence_request_decode(&rq, least, &e), 0);
    assert_int_equal(rq.every_seconds, 1);
    assert_false(rq.ended);
    json_decref(json);
    json_decref(least);
    EXPECT_REFUSALS(presence_request_decode, struct presence_request, cases);
}

static void test_drains(void **state)
{
    static const struct case_refused cases[] = {
        {"{}", "drain: \"failed\" is missing"},
        {"{'failed':0}", "drain: \"everySeconds\" is missing"},
        {"{'failed':0,'everySeconds':0}",
            "drain: \"everySeconds\" is not a whole number from 1 to 86400"},
        {"{'failed':0,'everySeconds':86401}",
            "drain: \"everySeconds\" is not a whole number from 1 to 86400"},
        {"{'failed':1,'everySeconds':1,'codes':'A-1'}",
            "drain: a check that has failed has \"codes\" and a \"reason\""},
        {"{'failed':1,'everySeconds':1,'reason':'x'}",
            "drain: a check that has failed has \"codes\" and a \"reason\""},
        {"{'failed':1,'everySeconds':1,'codes':'a b','reason':'x'}",
            "drain: \"codes\" is not a list of codes as WEFT-DISK-002, with commas"},
        {"{'failed':0,'everySeconds':1,'codes':'A-1','reason':'x'}",
            "drain: a check that has passed has neither \"codes\" nor a \"reason\""},
        {"{'failed':2,'everySeconds':1,'codes':'A-1','reason':'x','ask':'drain'}",
            "drain: \"ask\" is \"drain\" after 2 failed checks, and 3 in a row are needed"},
        {"{'failed':1,'everySeconds':1,'codes':'A-1','reason':'x','ask':'undrain'}",
            "drain: \"ask\" is \"undrain\" after a check that has failed"},
        {"{'failed':0,'everySeconds':1,'ask':'more'}",
            "drain: \"ask\" is \"more\", and one of nothing, drain, undrain is allowed"},
        {"{'failed':0,'everySeconds':1,'x':1}", "drain: \"x\" is not a field of it"},
    };
    json_t *json = body("{'failed':3,'everySeconds':86400,'codes':'WEFT-DISK-002,WEFT-NIC-002',"
                        "'reason':'the disk is full','ask':'drain','hook':'no scontrol'}");
    json_t *least = body("{'failed':0,'everySeconds':1,'ask':'undrain'}");
    struct drain_request rq;
    struct err e = ERR_NULL;

    assert_int_equal(drain_request_decode(&rq, json, &e), 0);
    assert_int_equal(rq.n_failed, 3);
    assert_int_equal(rq.every_seconds, 86400);
    assert_int_equal(rq.ask, DRAIN_ASK_DRAIN);
    assert_string_equal(rq.codes, "WEFT-DISK-002,WEFT-NIC-002");
    assert_string_equal(rq.reason, "the disk is full");
    assert_string_equal(rq.hook, "no scontrol");
    assert_int_equal(drain_request_decode(&rq, least, &e), 0);
    assert_int_equal(rq.ask, DRAIN_ASK_UNDRAIN);
    assert_string_equal(rq.reason, "");
    json_decref(json);
    json_decref(least);
    EXPECT_REFUSALS(drain_request_decode, struct drain_request, cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_texts_that_are_no_places),
        cmocka_unit_test(test_longest_place),
        cmocka_unit_test(test_what_nodes_are_told),
        cmocka_unit_test(test_more_than_nodes_are_told),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_enrolment),
        cmocka_unit_test(test_refused_enrolments),
        cmocka_unit_test(test_nodes_without_an_agent),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_networks),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_what_nccl_took),
        cmocka_unit_test(test_presence),
        cmocka_unit_test(test_drains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
