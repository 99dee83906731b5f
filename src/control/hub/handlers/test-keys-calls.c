/*
 * test-keys-calls.c - a node makes its next key known and goes on with it, others acknowledge it,
 * and administrators ask for it. A whole hub in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/server/server.h"
#include "hub/record/record.h"
#include "mesh/keys/key_node.h"
#include "os/clock.h"
#include "test/support/sample_hub.h"
#include "test/support/sample_keys.h"

#define NET "/v1/networks/default"
#define ACK "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static struct sample_hub hub;
static struct sample_keys keys; /* of the node x */

/* @words: of the answer; NULL: any. */
static void ask(const char *member, const char *method, const char *path, const char *body,
    int status, const char *words)
{
    json_t *json = NULL;
    int is = sample_hub_ask(&hub, member ? API_ACCESS_OVERLAY : API_ACCESS_ADMIN,
        member ? sample_hub_node(&hub, member) : NULL, method, path, body, &json);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

    if (is != status || (words && (!text || !strstr(text, words))))
        fail_msg("%s %s: %d %s", method, path, is, text ? text : "");
    free(text);
    json_decref(json);
}

/* What was added as a stock WireGuard runs an agent, or no more. */
static void set_stock(const char *name, bool is_stock)
{
    const struct model_node *node = sample_hub_node(&hub, name);
    char key[RECORD_KEY_MAX];
    struct node spec = node->spec;
    char *text;

    spec.stock = is_stock;
    text = record_node_encode(&spec, &node->token);
    sample_hub_write(&hub, record_key(key, RECORD_NODE, "default", name), text);
    free(text);
}

static int begin(void **state)
{
    char body[200];
    char key[X25519_BASE64_MAX];

    sample_keys_make(&keys, "default", "x");
    sample_hub_begin(&hub);
    for (char name[] = "a"; name[0] <= 'b'; name[0]++) {
        sample_hub_add_node(&hub, name);
        set_stock(name, false);
    }
    (void)snprintf(body, sizeof(body), "{\"name\":\"x\",\"publicKey\":\"%s\"}",
        x25519_public_format(&keys.keys[0], key));
    ask(NULL, "POST", NET "/nodes", body, 201, NULL);
    set_stock("x", false);
    return 0;
}

static int end(void **state)
{
    sample_hub_end(&hub);
    return 0;
}

static const struct node *x(void)
{
    return &sample_hub_node(&hub, "x")->spec;
}

/* x is in that stage of the change from key @n to the next one. */
static void say(const char *stage, int n, int status, const char *words)
{
    char body[1200];

    (void)snprintf(body, sizeof(body),
        "{\"stage\":\"%s\",\"statement\":\"%s\",\"waits\":1,\"waitsFor\":[\"a\"]}", stage,
        keys.statements[n]);
    ask("x", "POST", "/v1/keys", body, status, words);
}

static bool is_key(const struct x25519_public *key, int n)
{
    return x25519_public_equal(key, &keys.keys[n]);
}

/* From the first word of it to the last; each may be said again. */
static void test_the_course_of_a_change(void **state)
{
    sample_hub_listen(&hub, sample_hub_node(&hub, "a"));
    for (int i = 0; i < 2; i++) {
        say("prepared", 0, 200, "\"next\":");
        assert_true(is_key(&x()->key, 0));
        assert_true(is_key(key_node_next(x()), 1));
        assert_int_equal(key_node_serial(x()), 1);
    }
    /* Others see it, and say that they know it; only x is told. */
    sample_hub_hear(&hub);
    sample_hub_compare(&hub);
    assert_true(is_key(key_node_next(snapshot_find_node(&hub.ears[0].held, "x")), 1));
    ask("a", "POST", "/v1/keys", "{\"acks\":{\"x\":\"" ACK "\",\"nobody\":\"" ACK "\"}}", 200,
        "\"serial\":0}");
    say("prepared", 0, 200, "\"acks\":{\"a\":\"" ACK "\"}");
    ask(NULL, "GET", NET "/objects/Node/x", NULL, 200,
        "\"keyChange\":{\"serial\":1,\"stage\":\"prepared\",\"waits\":1,\"waitsFor\":[\"a\"]}");
    for (int i = 0; i < 2; i++) {
        say("moved", 0, 200, "\"serial\":1");
        assert_true(is_key(&x()->key, 1));
        assert_true(is_key(key_node_next(x()), 1));
        assert_ptr_equal(
            model_find_key(sample_hub_network(&hub), &keys.keys[0]), sample_hub_node(&hub, "x"));
    }
    for (int i = 0; i < 2; i++) {
        say("ended", 0, 200, "\"serial\":1");
        assert_true(is_key(&x()->key, 1));
        assert_null(key_node_next(x()));
        assert_null(model_find_key(sample_hub_network(&hub), &keys.keys[0]));
    }
    ask(NULL, "GET", "/v1/audit?limit=3", NULL, 200, "erase its old key");
}

/* The end of one was not heard, and the next one begins. */
static void test_the_next_change(void **state)
{
    say("moved", 0, 200, NULL);
    say("prepared", 1, 200, NULL);
    assert_true(is_key(&x()->key, 1));
    assert_true(is_key(key_node_next(x()), 2));
    assert_int_equal(x()->keys->n_statements, 2);
    say("moved", 1, 200, NULL);
    say("ended", 1, 200, NULL);
    for (int n = 2; n < SAMPLE_KEYS_N - 1; n++)
        say("moved", n, 200, NULL);
    /* The newest are kept. */
    assert_int_equal(x()->keys->n_statements, NODE_KEYS_STATEMENTS_MAX);
    assert_true(is_key(&x()->key, SAMPLE_KEYS_N - 1));
}

static void test_refusals(void **state)
{
    struct sample_keys others;
    char body[1200];

    say("prepared", 1, 409, "the statement is not of the key that node");
    say("ended", 0, 409, "has not made that key its own here");
    sample_keys_make(&others, "default", "y");
    (void)snprintf(
        body, sizeof(body), "{\"stage\":\"prepared\",\"statement\":\"%s\"}", others.statements[0]);
    ask("x", "POST", "/v1/keys", body, 403, "about \\\"y\\\"");
    sample_keys_make(&others, "other", "x");
    (void)snprintf(
        body, sizeof(body), "{\"stage\":\"prepared\",\"statement\":\"%s\"}", others.statements[0]);
    ask("x", "POST", "/v1/keys", body, 403, "of network \\\"other\\\"");
    ask("a", "POST", "/v1/keys", body, 403, NULL);
    ask("x", "POST", "/v1/keys", "{\"stage\":\"moved\"}", 400, "is missing");
    assert_null(x()->keys);
    say("prepared", 0, 200, NULL);
    say("prepared", 2, 409, "has made another next key known");
    assert_int_equal(x()->keys->n_statements, 1);
}

/* Which signatures are wrong is seen in the last bytes of a statement. */
static void test_a_forged_statement(void **state)
{
    char *last = keys.statements[0] + strlen(keys.statements[0]) - 8;
    char was = *last;

    *last = was == 'A' ? 'B' : 'A';
    say("prepared", 0, 400, "sign");
    *last = was;
    assert_null(x()->keys);
}

/* A hub that has just begun does not know who is there, and says so by saying nothing. */
static void test_who_is_there(void **state)
{
    struct reports *r = hub.hub->handlers.reports;

    r->started_at = clock_wall_s();
    say("prepared", 0, 200, "\"serial\":1}");
    ask("a", "POST", "/v1/keys", "{}", 200, NULL);
    say("prepared", 0, 200, "{\"acks\":{},\"next\":");
    r->started_at = clock_wall_s() - 61;
    say("prepared", 0, 200, "\"heard\":[\"a\"]");
    /* Who asks for nothing is told nothing. */
    ask("a", "POST", "/v1/keys", "{}", 200, "\"serial\":0}");
}

static void test_an_administrator_asks(void **state)
{
    ask(NULL, "POST", NET "/nodes/x/key", NULL, 200, "\"wantedSerial\":1");
    ask(NULL, "POST", NET "/nodes/x/key", "{}", 200, "\"changing\":false");
    assert_int_equal(x()->keys->wanted_serial, 1);
    assert_false(x()->keys->is_forced);
    say("prepared", 0, 200, NULL);
    ask(NULL, "POST", NET "/nodes/x/key", "{\"force\":true}", 200, "\"changing\":true");
    assert_int_equal(x()->keys->wanted_serial, 1);
    assert_true(x()->keys->is_forced);
    say("moved", 0, 200, NULL);
    say("ended", 0, 200, NULL);
    assert_false(x()->keys->is_forced);
    ask(NULL, "POST", NET "/nodes/x/key", "{}", 200, "\"wantedSerial\":2");
    ask(NULL, "POST", NET "/nodes/nobody/key", NULL, 404, "no node \\\"nobody\\\"");
    ask(NULL, "POST", NET "/nodes/hub/key", NULL, 400, "is a hub");
    ask(NULL, "POST", NET "/nodes/x/key", "{\"force\":1}", 400, "the body is");
    set_stock("a", true);
    ask(NULL, "POST", NET "/nodes/a/key", NULL, 400, "stock WireGuard");
}

static void test_a_key_that_is_pinned(void **state)
{
    char body[400];
    char key[X25519_BASE64_MAX];

    (void)snprintf(body, sizeof(body),
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--x\",\"network\":\"default\"},\"spec\":{"
        "\"nodes\":[\"a\",\"x\"],\"publicKeys\":{\"x\":\"%s\"}}}",
        x25519_public_format(&keys.keys[0], key));
    ask(NULL, "PUT", NET "/objects/MeshEdge/a--x", body, 200, NULL);
    ask(NULL, "POST", NET "/nodes/x/key", NULL, 409, "edge \\\"a--x\\\" fixes the key");
    ask(NULL, "POST", NET "/nodes/b/key", NULL, 200, NULL);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_course_of_a_change),
        TEST(test_the_next_change),
        TEST(test_refusals),
        TEST(test_a_forged_statement),
        TEST(test_who_is_there),
        TEST(test_an_administrator_asks),
        TEST(test_a_key_that_is_pinned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
