/* test-access.c - around each request: who acts, and how often an admin token may change things. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "api/content/token.h"
#include "hub/enrol/admin_tokens.h"
#include "hub/handlers/handlers.h"
#include "test/support/sample_hub.h"

static void make(struct sample_hub *s, const char *name)
{
    char body[128];

    (void)snprintf(
        body, sizeof(body), "{\"name\":\"%s\",\"role\":\"operator\",\"ttlSeconds\":3600}", name);
    assert_int_equal(
        sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "POST", "/v1/admin-tokens", body, NULL), 201);
}

static const char too_many[] =
    "the admin token of admin:ci has asked for more than 2000 changes at once, and for more than "
    "10 a second since: try again in a minute";

/* May "admin:ci" do that now? The answer's status when not, else 0. */
static int admits(struct sample_hub *s, const char *caller, const char *method)
{
    const struct route row = {.method = method, .path = "/v1/networks"};
    struct request rq = {.access = API_ACCESS_ADMIN, .method = method, .now = s->now};
    struct response rs = {0};
    int status;

    (void)snprintf(rq.caller.name, sizeof(rq.caller.name), "%s", caller);
    status = access_admits(&s->hub->handlers, &row, &rq, &rs) ? 0 : rs.status;
    if (status != 0)
        assert_string_equal(json_string_value(json_object_get(rs.body, "error")), too_many);
    json_decref(rs.body);
    return status;
}

/* A token keeps a pace with what it changes, and no other one pays for it. */
static void test_pace(void **state)
{
    struct sample_hub s;

    sample_hub_begin(&s);
    make(&s, "ci");
    make(&s, "other");
    for (unsigned i = 0; i < ADMIN_PACE_BURST; i++)
        assert_int_equal(admits(&s, "admin:ci", "POST"), 0);
    assert_int_equal(admits(&s, "admin:ci", "DELETE"), 429);
    assert_int_equal(admits(&s, "admin:ci", "GET"), 0);
    assert_int_equal(admits(&s, "admin:other", "POST"), 0);
    assert_int_equal(admits(&s, "uid:0", "POST"), 0);
    assert_int_equal(admits(&s, "file:admin.token", "POST"), 0);
    s.now += 3 * ADMIN_PACE_EACH;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(admits(&s, "admin:ci", "POST"), 0);
    assert_int_equal(admits(&s, "admin:ci", "POST"), 429);
    sample_hub_end(&s);
}

/* Who acts from the beginning of such a request on. */
static const char *actor(
    struct sample_hub *s, enum api_access access, const char *from, const char *caller)
{
    struct request rq = {.access = access, .listener_ctx = sample_hub_network(s)};

    assert_int_equal(endpoint_parse(&rq.from, from, NULL), 0);
    (void)snprintf(rq.caller.name, sizeof(rq.caller.name), "%s", caller);
    audit_act_hub(&s->hub->audit);
    access_begin(&s->hub->handlers, &rq);
    assert_true(ip_addr_equal(&s->hub->audit.by.from, &rq.from.addr));
    return s->hub->audit.by.actor;
}

static void test_who_acts(void **state)
{
    struct sample_hub s;
    struct endpoint at = {.port = 1};
    char text[ENDPOINT_TEXT_MAX];

    sample_hub_begin(&s);
    sample_hub_add_node(&s, "a");
    at.addr = sample_hub_node(&s, "a")->spec.address4;
    (void)endpoint_format(&at, text);
    /* In the overlay the address says who it is, and only there. */
    assert_string_equal(actor(&s, API_ACCESS_OVERLAY, text, ""), "node:default/a");
    assert_string_equal(actor(&s, API_ACCESS_OVERLAY, "192.0.2.1:1", ""), "stranger");
    assert_string_equal(actor(&s, API_ACCESS_PUBLIC, text, ""), "stranger");
    assert_string_equal(actor(&s, API_ACCESS_ADMIN, text, "admin:ci"), "admin:ci");
    sample_hub_end(&s);
}

/* Only a token that the hub knows is somebody. */
static void test_a_token_acts(void **state)
{
    const struct token_secret stranger = {.b = {9}};
    struct sample_hub s;
    struct request rq = {.access = API_ACCESS_PUBLIC};
    struct token t;
    json_t *json = NULL;
    char expected[AUDIT_ACTOR_MAX + 1];
    char id[AUDIT_TOKEN_ID_LEN + 1];
    struct token_hash hash;

    sample_hub_begin(&s);
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "POST",
                         "/v1/networks/default/tokens", "{}", &json),
        201);
    assert_int_equal(token_decode(&t, json_string_value(json_object_get(json, "token")), NULL), 0);
    json_decref(json);
    assert_int_equal(endpoint_parse(&rq.from, "192.0.2.1:1", NULL), 0);
    audit_act_hub(&s.hub->audit);
    access_by_token(&s.hub->handlers, &rq, &stranger);
    assert_string_equal(s.hub->audit.by.actor, "hub");
    access_by_token(&s.hub->handlers, &rq, &t.secret);
    hash = token_hash_of(&t.secret);
    (void)snprintf(expected, sizeof(expected), "join:%s", audit_token_id(id, &hash));
    assert_string_equal(s.hub->audit.by.actor, expected);
    assert_true(ip_addr_equal(&s.hub->audit.by.from, &rq.from.addr));
    token_wipe(&t);
    sample_hub_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_who_acts),
        cmocka_unit_test(test_a_token_acts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
