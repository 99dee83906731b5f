/*
 * test-handlers.c - what the handlers of the API decide: limits, conflicts, what tokens say, and
 * which refusals the audit log tells of. A whole hub in this process, on a clock of its own.
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
#include "base/err.h"
#include "base/text.h"
#include "hub/handlers/handlers.h"
#include "store/store.h"
#include "test/support/sample_hub.h"
#include "test/support/sample_late.h"
#include "test/support/store_now.h"

static struct model_network *network(struct sample_hub *s)
{
    return model_find_network(&s->hub->model, "default");
}

static int ask(struct sample_hub *s, const char *method, const char *path, const char *body)
{
    return sample_hub_ask(s, API_ACCESS_ADMIN, NULL, method, path, body, NULL);
}

/* A stock WireGuard of that name. */
static struct model_node *add_node(struct sample_hub *s, const char *name)
{
    uint8_t key[32] = {[1] = (uint8_t)name[0], [2] = 1};
    char text[BASE64_SIZE(32)];
    char body[256];

    base64_encode(key, sizeof(key), text);
    (void)snprintf(body, sizeof(body), "{\"name\":\"%s\",\"publicKey\":\"%s\"}", name, text);
    assert_int_equal(ask(s, "POST", "/v1/networks/default/nodes", body), 201);
    return model_find_node(network(s), name);
}

/* ---- two requests at once -------------------------------------------------------------------- */

/* The second request finds the node changed by the first, begins again, and removes it. */
static void test_removal_begins_again(void **state)
{
    struct sample_question both[2] = {
        {"PUT", "/v1/networks/default/objects/Node/a", NULL},
        {"DELETE", "/v1/networks/default/nodes/a", NULL},
    };
    int statuses[2];
    struct sample_hub s;
    json_t *node;
    char *text;

    sample_hub_begin(&s);
    add_node(&s, "a");
    assert_int_equal(
        sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "GET", both[0].path, NULL, &node), 200);
    json_object_del(json_object_get(node, "metadata"), "resourceVersion");
    json_object_set_new(json_object_get(node, "spec"), "labels", json_pack("{s:s}", "k", "v"));
    both[0].body = text = json_dumps(node, JSON_COMPACT);
    json_decref(node);
    sample_hub_ask_both(&s, both, statuses);
    free(text);
    assert_int_equal(statuses[1], 204);
    assert_null(model_find_node(network(&s), "a"));
    sample_hub_end(&s);
}

/* A removal that the store has refused leaves an ordinary node, of which reports are kept. */
static void test_removal_fails(void **state)
{
    unsigned n_failed = 0;

    for (uint64_t seed = 1; seed < 20; seed++) {
        struct sample_hub s = {.store = sample_late_open(seed, 0), .may_fail = true};
        struct model_node *node;
        json_t *json;
        int status;

        sample_hub_make_dir(&s, false);
        sample_hub_open(&s);
        node = add_node(&s, "a");
        sample_late_set_loss(s.store, 1);
        status = sample_hub_ask(
            &s, API_ACCESS_ADMIN, NULL, "DELETE", "/v1/networks/default/nodes/a", NULL, &json);
        assert_true(status >= 500);
        /* Only when it is not known what has become of the commit may the node still go. */
        if (!strstr(json_string_value(json_object_get(json, "error")), "not known")) {
            assert_null(node->served->leaving);
            n_failed++;
        }
        json_decref(json);
        sample_late_set_loss(s.store, 0);
        sample_hub_end(&s);
    }
    assert_true(n_failed > 0);
}

/* ---- administrators ------------------------------------------------------------------------- */

static void test_admin_token(void **state)
{
    static const char path[] = "/v1/admin-tokens";
    static const char body[] = "{\"name\":\"ci\",\"role\":\"viewer\"}";
    struct sample_hub s;
    json_t *json;

    sample_hub_begin(&s);
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "POST", path, body, &json), 201);
    assert_memory_equal(json_string_value(json_object_get(json, "token")), "weft-admin1.", 12);
    json_decref(json);
    assert_int_equal(ask(&s, "POST", path, body), 409);
    assert_int_equal(ask(&s, "POST", path, "{\"name\":\"x\",\"role\":\"king\"}"), 400);
    assert_int_equal(
        ask(&s, "POST", path, "{\"name\":\"x\",\"role\":\"viewer\",\"network\":\"none\"}"), 404);
    assert_int_equal(ask(&s, "DELETE", "/v1/admin-tokens/ci", NULL), 204);
    assert_int_equal(ask(&s, "DELETE", "/v1/admin-tokens/ci", NULL), 404);
    sample_hub_end(&s);
}

/* Two at once, of one name: the first is made, the second is refused when it begins again. */
static void test_admin_token_twice(void **state)
{
    static const struct sample_question one = {
        "POST", "/v1/admin-tokens", "{\"name\":\"ci\",\"role\":\"viewer\"}"};
    const struct sample_question both[2] = {one, one};
    struct sample_hub s;
    int statuses[2];

    sample_hub_begin(&s);
    sample_hub_ask_both(&s, both, statuses);
    assert_int_equal(statuses[0], 201);
    assert_int_equal(statuses[1], 409);
    assert_int_equal(s.hub->admins.n, 1);
    assert_int_equal(s.hub->admins.n_coming, 0);
    sample_hub_end(&s);
}

/* A token that is gone when its commit is answered is not given out. Here the hub does not hear of
 * it at all, which looks the same. */
static void test_admin_token_gone_at_once(void **state)
{
    struct sample_hub s;
    json_t *json;

    sample_hub_begin(&s);
    s.hub->admins.watch = store_watch_close(s.hub->admins.watch);
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "POST", "/v1/admin-tokens",
                         "{\"name\":\"ci\",\"role\":\"viewer\"}", &json),
        409);
    assert_non_null(strstr(json_string_value(json_object_get(json, "error")), "removed it"));
    assert_null(json_object_get(json, "token"));
    json_decref(json);
    sample_hub_end(&s);
}

/* ---- join tokens ---------------------------------------------------------------------------- */

static void make_token(struct sample_hub *s, struct token *ret)
{
    struct err e = ERR_NULL;
    json_t *json;

    assert_int_equal(sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "POST",
                         "/v1/networks/default/tokens", "{}", &json),
        201);
    assert_int_equal(token_decode(ret, json_string_value(json_object_get(json, "token")), &e), 0);
    json_decref(json);
}

static void add_place(struct hub_places *places, const char *text, const char *found)
{
    struct hub_public *p = &places->items[places->n++];
    struct err e = ERR_NULL;

    assert_int_equal(hub_public_parse(p, text, 51820, &e), 0);
    if (found) {
        assert_int_equal(endpoint_parse(&p->at[0], found, &e), 0);
        p->n = 1;
    }
}

/* Names come first, with the API's port; then the addresses; and what was announced last. */
static void test_token_says_where(void **state)
{
    struct hub_places *here;
    char text[ENDPOINT_TEXT_MAX];
    struct sample_hub s;
    struct token t;

    sample_hub_begin(&s);
    here = &s.hub->public_addresses.here;
    add_place(here, "hub.example.org", "203.0.113.7:51820");
    add_place(&s.hub->public_addresses.next, "198.51.100.9:4000", NULL);
    make_token(&s, &t);
    assert_string_equal(t.network, "default");
    assert_int_equal(t.n_api, 4);
    assert_string_equal(t.api[0], "hub.example.org:8443");
    assert_string_equal(t.api[1], "192.0.2.1:8443");
    assert_string_equal(t.api[2], "203.0.113.7:8443");
    assert_string_equal(t.api[3], "198.51.100.9:8443");
    assert_int_equal(t.n_udp, 3);
    assert_string_equal(endpoint_format(&t.udp[0], text), "192.0.2.1:51820");
    assert_string_equal(endpoint_format(&t.udp[2], text), "198.51.100.9:4000");
    assert_memory_equal(&t.pin, &s.hub->identity.pin, sizeof(t.pin));
    assert_true(x25519_public_equal(&t.hub_key, &network(&s)->public));
    sample_hub_end(&s);
}

/* A hub with more places than a token has room for: it holds the first ones. */
static void test_token_is_full(void **state)
{
    struct sample_hub s;
    struct token t;

    sample_hub_begin(&s);
    while (s.hub->public_addresses.here.n < OBJECT_ENDPOINTS_MAX) {
        char text[32];

        (void)snprintf(text, sizeof(text), "h%u.example.org", s.hub->public_addresses.here.n);
        add_place(&s.hub->public_addresses.here, text, NULL);
        (void)snprintf(text, sizeof(text), "203.0.113.%u:51820", s.hub->public_addresses.here.n);
        assert_int_equal(
            endpoint_parse(
                &s.hub->public_addresses.here.items[s.hub->public_addresses.here.n - 1].at[0], text,
                NULL),
            0);
        s.hub->public_addresses.here.items[s.hub->public_addresses.here.n - 1].n = 1;
    }
    make_token(&s, &t);
    assert_int_equal(t.n_api, TOKEN_ENDPOINTS_MAX);
    assert_string_equal(t.api[0], "h1.example.org:8443");
    assert_string_equal(t.api[OBJECT_HUB_NAMES_MAX], "192.0.2.1:8443");
    assert_true(t.n_udp <= TOKEN_ENDPOINTS_MAX);
    sample_hub_end(&s);
}

/* ---- what members may ask, and how often ----------------------------------------------------- */

static int ask_as(
    struct sample_hub *s, const char *node, const char *method, const char *path, const char *body)
{
    return sample_hub_ask(
        s, API_ACCESS_OVERLAY, model_find_node(network(s), node), method, path, body, NULL);
}

static void test_reports_are_limited(void **state)
{
    struct sample_hub s;

    sample_hub_begin(&s);
    add_node(&s, "a");
    add_node(&s, "b");
    for (unsigned i = 0; i < REPORTS_BURST; i++)
        assert_int_equal(ask_as(&s, "a", "PUT", "/v1/status", "{}"), 204);
    assert_int_equal(ask_as(&s, "a", "PUT", "/v1/status", "{}"), 429);
    assert_int_equal(ask_as(&s, "b", "PUT", "/v1/status", "{}"), 204);
    s.now += REPORTS_EACH;
    assert_int_equal(ask_as(&s, "a", "PUT", "/v1/status", "{}"), 204);
    assert_int_equal(ask_as(&s, "a", "PUT", "/v1/status", "{}"), 429);
    sample_hub_end(&s);
}

/* The peers of a stock WireGuard, as wg(8) takes them: nothing of its own interface is in them. */
static void test_peers_as_text(void **state)
{
    struct model_node *node;
    struct sample_hub s;
    char *text;

    sample_hub_begin(&s);
    node = add_node(&s, "a");
    add_node(&s, "b");
    text = sample_hub_ask_text(&s, node, "/v1/wg");
    assert_non_null(text);
    assert_non_null(strstr(text, "[Peer]\n# hub\n"));
    assert_non_null(strstr(text, "AllowedIPs = "));
    assert_non_null(strstr(text, "Endpoint = 192.0.2.1:51820\n"));
    assert_null(strstr(text, "Interface"));
    assert_null(strstr(text, "PrivateKey"));
    free(text);
    sample_hub_end(&s);
}

static void test_peers_are_limited(void **state)
{
    struct sample_hub s;
    unsigned n = 0;

    sample_hub_begin(&s);
    add_node(&s, "a");
    while (n < 100 && ask_as(&s, "a", "GET", "/v1/wg", NULL) == 200)
        n++;
    assert_int_equal(n, 10);
    s.now += NSEC_PER_SEC - 1;
    assert_int_equal(ask_as(&s, "a", "GET", "/v1/wg", NULL), 429);
    s.now += 1;
    assert_int_equal(ask_as(&s, "a", "GET", "/v1/wg", NULL), 200);
    assert_int_equal(ask_as(&s, "a", "GET", "/v1/wg", NULL), 429);
    sample_hub_end(&s);
}

static void test_heard(void **state)
{
    struct sample_hub s;

    sample_hub_begin(&s);
    add_node(&s, "a");
    assert_int_equal(ask_as(&s, "a", "GET", "/v1/heard/0102030405060708090a0b0c", NULL), 200);
    assert_int_equal(ask_as(&s, "a", "GET", "/v1/heard/0102030405060708090a0b", NULL), 400);
    assert_int_equal(ask_as(&s, "a", "GET", "/v1/heard/x102030405060708090a0b0c", NULL), 400);
    sample_hub_end(&s);
}

/* ---- moving --------------------------------------------------------------------------------- */

/* A node that listens has been told where the hub will be; another one is named. */
static void test_move_names_who_is_not_told(void **state)
{
    struct sample_hub s;
    json_t *json;

    sample_hub_begin(&s);
    add_node(&s, "a");
    add_node(&s, "b");
    sample_hub_listen(&s, model_find_node(network(&s), "a"));
    sample_hub_hear(&s);
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "PUT", "/v1/move",
                         "{\"public\":[\"203.0.113.5\"]}", &json),
        200);
    assert_int_equal(json_integer_value(json_object_get(json, "nodes")), 2);
    assert_int_equal(json_integer_value(json_object_get(json, "told")), 1);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(json, "untold"), 0)), "default/b");
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(json, "next"), 0)), "203.0.113.5:51820");
    json_decref(json);
    assert_int_equal(ask(&s, "PUT", "/v1/move", "{\"public\":[\"127.0.0.1\"]}"), 400);
    sample_hub_end(&s);
}

/* So many are named, and all are counted. */
static void test_move_names_some(void **state)
{
    struct sample_hub s;
    json_t *json;
    char name[8];

    sample_hub_begin(&s);
    for (unsigned i = 0; i < 101; i++) {
        (void)snprintf(name, sizeof(name), "%c%c", (int)('a' + i % 20), (int)('a' + i / 20));
        sample_hub_add_node(&s, name);
    }
    assert_int_equal(
        sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "GET", "/v1/move", NULL, &json), 200);
    assert_int_equal(json_integer_value(json_object_get(json, "nodes")), 101);
    assert_int_equal(json_integer_value(json_object_get(json, "told")), 0);
    assert_int_equal(json_array_size(json_object_get(json, "untold")), 100);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(json, "public"), 0)), "192.0.2.1:51820");
    json_decref(json);
    sample_hub_end(&s);
}

/* ---- refusals in the audit log --------------------------------------------------------------- */

/* As the server does around a request: is its refusal with @status noted? */
static bool is_noted(
    struct sample_hub *s, const char *method, const char *path, const char *caller, int status)
{
    struct handlers *h = &s->hub->handlers;
    struct request rq = {.access = API_ACCESS_PUBLIC, .now = s->now};
    struct response rs = {0};
    const struct route *row = route_find(routes, method, path, rq.params, &rs);
    size_t before = h->audit->n_pending;
    bool is_noted;

    assert_non_null(row);
    (void)endpoint_parse(&rq.from, "198.51.100.7:4000", NULL);
    (void)snprintf(rq.caller.name, sizeof(rq.caller.name), "%s", caller);
    access_begin(h, &rq);
    assert_string_equal(h->audit->by.actor, caller[0] ? caller : "stranger");
    response_refuse(&rs, status, "a sentence of some length");
    access_end(h, &rq, row, &rs);
    assert_string_equal(h->audit->by.actor, "hub");
    response_deinit(&rs);
    is_noted = h->audit->n_pending > before;
    return is_noted;
}

static void test_which_refusals_are_noted(void **state)
{
    struct sample_hub s;

    sample_hub_begin(&s);
    assert_true(is_noted(&s, "GET", "/v1/networks", "", 401));
    assert_true(is_noted(&s, "POST", "/v1/networks", "admin:ci", 403));
    assert_true(is_noted(&s, "GET", "/v1/audit", "", 429));
    assert_true(is_noted(&s, "POST", "/v1/enrol", "", 401));
    assert_true(is_noted(&s, "POST", "/v1/enrol", "", 409));
    assert_false(is_noted(&s, "POST", "/v1/enrol", "", 400));
    assert_false(is_noted(&s, "GET", "/v1/networks", "admin:ci", 404));
    assert_false(is_noted(&s, "GET", "/v1/watch", "", 401));
    assert_false(is_noted(&s, "GET", "/v1/health", "", 401));
    sample_hub_end(&s);
}

static void test_before_a_change(void **state)
{
    struct audit_before before = {.revision = 0};
    struct sample_hub s;
    struct model_node *node;

    sample_hub_begin(&s);
    node = add_node(&s, "a");
    access_before(&s.hub->handlers, "node/default/a", &before);
    assert_int_equal(before.revision, node->spec.meta.resource_version);
    before = (struct audit_before){.revision = 0};
    access_before(&s.hub->handlers, "node/default/none", &before);
    assert_int_equal(before.revision, 0);
    assert_int_equal(ask(&s, "POST", "/v1/admin-tokens",
                         "{\"name\":\"ci\",\"role\":\"viewer\",\"network\":\"default\"}"),
        201);
    access_before(&s.hub->handlers, "admin/ci", &before);
    assert_int_equal(before.revision, s.hub->admins.items[0].revision);
    assert_string_equal(before.network, "default");
    /* Of one that is not there nothing is known. */
    before = (struct audit_before){.revision = 0};
    access_before(&s.hub->handlers, "admin/none", &before);
    assert_int_equal(before.revision, 0);
    assert_string_equal(before.network, "");
    sample_hub_end(&s);
}

/* A join token's record is named by its hash; what names none, or is damaged, is of no network. */
static void test_before_a_change_of_a_token(void **state)
{
    struct store_op op = {.kind = STORE_OP_PUT, .value = "{", .expect = STORE_EXPECT_ANY};
    struct audit_before before = {.revision = 0};
    char key[RECORD_KEY_MAX];
    struct token_hash hash;
    struct sample_hub s;
    struct token t;

    sample_hub_begin(&s);
    make_token(&s, &t);
    hash = token_hash_of(&t.secret);
    access_before(&s.hub->handlers, token_hash_key(key, &hash), &before);
    assert_int_equal(before.revision, model_find_token(&s.hub->model, &hash)->revision);
    assert_string_equal(before.network, "default");
    before = (struct audit_before){.revision = 0};
    access_before(&s.hub->handlers, "token/x", &before);
    assert_string_equal(before.network, "");
    op.key = key;
    assert_int_equal(store_now_commit(s.hub->store, &op, 1, s.now, NULL, NULL, NULL), 0);
    assert_int_equal(s.hub->model.damaged.n, 1);
    access_before(&s.hub->handlers, key, &before);
    assert_int_equal(before.revision, store_revision(s.hub->store));
    assert_string_equal(before.network, "");
    token_wipe(&t);
    sample_hub_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_removal_begins_again),
        cmocka_unit_test(test_removal_fails),
        cmocka_unit_test(test_admin_token),
        cmocka_unit_test(test_admin_token_twice),
        cmocka_unit_test(test_admin_token_gone_at_once),
        cmocka_unit_test(test_token_says_where),
        cmocka_unit_test(test_token_is_full),
        cmocka_unit_test(test_reports_are_limited),
        cmocka_unit_test(test_peers_as_text),
        cmocka_unit_test(test_peers_are_limited),
        cmocka_unit_test(test_heard),
        cmocka_unit_test(test_move_names_who_is_not_told),
        cmocka_unit_test(test_move_names_some),
        cmocka_unit_test(test_which_refusals_are_noted),
        cmocka_unit_test(test_before_a_change),
        cmocka_unit_test(test_before_a_change_of_a_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
