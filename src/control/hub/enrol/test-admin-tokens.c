/*
 * test-admin-tokens.c - whom an admin token identifies, until when, and how often one may guess.
 *
 * Tokens are made through the API of a hub in this process; times are arguments.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/enrol/enrol.h"
#include "os/clock.h"
#include "test/support/sample_hub.h"

#define HOUR 3600

/* The text of a new token for an hour; @network: "" for all. free() */
static char *make(struct sample_hub *s, const char *name, const char *role, const char *network)
{
    char body[256];
    json_t *json;
    char *text;

    (void)snprintf(body, sizeof(body), "{\"name\":\"%s\",\"role\":\"%s\",\"ttlSeconds\":%d%s%s%s}",
        name, role, HOUR, network[0] ? ",\"network\":\"" : "", network, network[0] ? "\"" : "");
    assert_int_equal(
        sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "POST", "/v1/admin-tokens", body, &json), 201);
    text = strdup(json_string_value(json_object_get(json, "token")));
    json_decref(json);
    return text;
}

static int ask(struct sample_hub *s, const char *method, const char *path, const char *body)
{
    return sample_hub_ask(s, API_ACCESS_ADMIN, NULL, method, path, body, NULL);
}

static enum caller_verdict identify(
    struct sample_hub *s, const char *text, const char *from, int64_t wall_s, struct caller *ret)
{
    struct endpoint ep;

    *ret = (struct caller){ROLE_NONE};
    assert_int_equal(endpoint_parse(&ep, from, NULL), 0);
    return admin_tokens_identify(&s->hub->admins, text, &ep.addr, s->now, wall_s, ret);
}

static const char here[] = "198.51.100.7:1";

static void test_known_until_its_end(void **state)
{
    struct caller caller;
    struct sample_hub s;
    int64_t expires;
    char *text;

    sample_hub_begin(&s);
    text = make(&s, "ci", "operator", "");
    expires = s.hub->admins.items[0].record.expires_at;
    assert_true(expires >= clock_wall_s() + HOUR - 60 && expires <= clock_wall_s() + HOUR);
    assert_int_equal(identify(&s, text, here, expires - 1, &caller), CALLER_KNOWN);
    assert_string_equal(caller.name, "admin:ci");
    assert_int_equal(caller.role, ROLE_OPERATOR);
    assert_string_equal(caller.network, "");
    assert_int_equal(s.hub->admins.items[0].last_used_at, expires - 1);
    assert_int_equal(identify(&s, text, here, expires, &caller), CALLER_EXPIRED);
    assert_int_equal(caller.role, ROLE_NONE);
    free(text);
    sample_hub_end(&s);
}

static void test_wrong_texts(void **state)
{
    struct caller caller;
    struct sample_hub s;
    char *text;

    sample_hub_begin(&s);
    text = make(&s, "ci", "admin", "");
    assert_int_equal(identify(&s, "", here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(identify(&s, "weft-admin1.", here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(identify(&s, text + 1, here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    text[strlen("weft-admin1.") + 3] ^= 1;
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(caller.role, ROLE_NONE);
    assert_int_equal(s.hub->admins.n_failed, 4);
    free(text);
    sample_hub_end(&s);
}

static void test_removed(void **state)
{
    struct caller caller;
    struct sample_hub s;
    char *text;

    sample_hub_begin(&s);
    text = make(&s, "ci", "admin", "");
    assert_int_equal(ask(&s, "DELETE", "/v1/admin-tokens/ci", NULL), 204);
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    free(text);
    sample_hub_end(&s);
}

/* A network that was made again under the same name is another one. */
static void test_for_one_network(void **state)
{
    struct caller caller;
    struct sample_hub s;
    char *text;

    sample_hub_begin(&s);
    assert_int_equal(
        ask(&s, "POST", "/v1/networks", "{\"name\":\"other\",\"cidr4\":\"10.60.0.0/16\"}"), 201);
    text = make(&s, "ci", "viewer", "other");
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_KNOWN);
    assert_string_equal(caller.network, "other");
    assert_int_equal(ask(&s, "DELETE", "/v1/networks/other", NULL), 204);
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(
        ask(&s, "POST", "/v1/networks", "{\"name\":\"other\",\"cidr4\":\"10.61.0.0/16\"}"), 201);
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(caller.role, ROLE_NONE);
    free(text);
    sample_hub_end(&s);
}

/* After ten failures not even the right token is looked at; elsewhere it is. */
static void test_guesses(void **state)
{
    struct caller caller;
    struct sample_hub s;
    char *text;

    sample_hub_begin(&s);
    text = make(&s, "ci", "admin", "");
    for (unsigned i = 0; i < GUESSES_BURST; i++)
        assert_int_equal(identify(&s, "guess", here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_LIMITED);
    assert_int_equal(caller.role, ROLE_NONE);
    assert_int_equal(identify(&s, text, "198.51.100.8:1", clock_wall_s(), &caller), CALLER_KNOWN);
    s.now += GUESSES_EACH;
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_KNOWN);
    free(text);
    sample_hub_end(&s);
}

/* The token of the file has no end; a new one takes its place at once. */
static void test_file(void **state)
{
    struct caller caller;
    struct sample_hub s;
    char path[128];
    char text[64] = "";
    FILE *file;

    sample_hub_begin(&s);
    (void)snprintf(path, sizeof(path), "%s/admin.token", s.dir);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    (void)fclose(file);
    text[strcspn(text, "\n")] = '\0';
    assert_int_equal(identify(&s, text, here, INT64_MAX, &caller), CALLER_KNOWN);
    assert_string_equal(caller.name, "file:admin.token");
    assert_int_equal(caller.role, ROLE_ADMIN);
    assert_int_equal(ask(&s, "POST", "/v1/admin-token-file", NULL), 200);
    assert_int_equal(identify(&s, text, here, 0, &caller), CALLER_UNKNOWN);
    sample_hub_end(&s);
}

static void test_bounded(void **state)
{
    struct sample_hub s;
    char body[64];

    sample_hub_begin(&s);
    for (unsigned i = 0; i < ADMIN_TOKENS_MAX; i++) {
        (void)snprintf(body, sizeof(body), "{\"name\":\"t%u\",\"role\":\"viewer\"}", i);
        assert_int_equal(ask(&s, "POST", "/v1/admin-tokens", body), 201);
    }
    assert_int_equal(
        ask(&s, "POST", "/v1/admin-tokens", "{\"name\":\"x\",\"role\":\"viewer\"}"), 409);
    assert_int_equal(ask(&s, "DELETE", "/v1/admin-tokens/t7", NULL), 204);
    assert_int_equal(
        ask(&s, "POST", "/v1/admin-tokens", "{\"name\":\"x\",\"role\":\"viewer\"}"), 201);
    sample_hub_end(&s);
}

/* Join tokens are bounded by network, and counted also when the hub is started anew. */
static void test_join_tokens_are_bounded(void **state)
{
    static const char path[] = "/v1/networks/default/tokens";
    struct model_network *net;
    struct sample_hub s;
    json_t *json = NULL;
    char one[128];

    sample_hub_begin(&s);
    assert_int_equal(
        ask(&s, "POST", "/v1/networks", "{\"name\":\"other\",\"cidr4\":\"10.60.0.0/16\"}"), 201);
    net = model_find_network(&s.hub->model, "default");
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask(&s, "POST", path, "{}"), 201);
    assert_int_equal(net->n_tokens, 3);
    assert_int_equal(model_find_network(&s.hub->model, "other")->n_tokens, 0);

    net->n_tokens = ENROL_TOKENS_MAX;
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "POST", path, "{}", &json), 409);
    assert_non_null(strstr(json_string_value(json_object_get(json, "error")),
        "network \"default\" has 16384 join tokens, as many as a hub keeps for one"));
    json_decref(json);
    assert_int_equal(ask(&s, "POST", "/v1/networks/other/tokens", "{}"), 201);

    /* One that is removed makes room for one. */
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "GET", path, NULL, &json), 200);
    (void)snprintf(one, sizeof(one), "%s/%s", path,
        json_string_value(
            json_object_get(json_array_get(json_object_get(json, "tokens"), 0), "id")));
    json_decref(json);
    assert_int_equal(ask(&s, "DELETE", one, NULL), 204);
    assert_int_equal(net->n_tokens, ENROL_TOKENS_MAX - 1);
    assert_int_equal(ask(&s, "POST", path, "{}"), 201);
    sample_hub_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_until_its_end),
        cmocka_unit_test(test_wrong_texts),
        cmocka_unit_test(test_removed),
        cmocka_unit_test(test_for_one_network),
        cmocka_unit_test(test_guesses),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_join_tokens_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
