/*
 * test-web-calls.c - the page's calls: its files and their policy, logins by whom, for whom and
 * until when, and what a session may. A whole hub in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "api/server/stream.h"
#include "base/err.h"
#include "hub/enrol/admin_tokens.h"
#include "hub/handlers/handlers.h"
#include "hub/web/live.h"
#include "hub/web/web_access.h"
#include "hub/web/web_files.h"
#include "test/support/sample_hub.h"

#define NET "/v1/networks/default"

static struct sample_hub s;
static struct response rs; /* the last one */

static int enter(void **state)
{
    sample_hub_begin(&s);
    handlers_web_begin(&s.hub->handlers, &s.hub->web, &s.hub->live);
    return 0;
}

static int leave(void **state)
{
    response_deinit(&rs);
    sample_hub_end(&s);
    return 0;
}

/* As the server asks: by whom, and with which body. The status; the answer is @rs. */
static int call(const struct caller *caller, bool is_from_page, const char *method,
    const char *path, const char *body)
{
    struct request rq = {.access = caller ? API_ACCESS_ADMIN : API_ACCESS_PUBLIC,
        .method = method,
        .path = path,
        .is_from_page = is_from_page,
        .now = s.now};
    const struct route *row;
    struct err e = ERR_NULL;
    json_t *json = NULL;

    response_deinit(&rs);
    if (caller)
        rq.caller = *caller;
    (void)endpoint_parse(&rq.from, "198.51.100.7:4000", NULL);
    if (body && body_parse(&json, body, strlen(body), &e) != 0)
        fail_msg("%s", body);
    rq.body = json;
    row = route_find(routes, method, path, rq.params, &rs);
    if (row && route_admits(row, &rq, &rs))
        row->handle(&s.hub->handlers, &rq, &rs);
    json_decref(json);
    return rs.status;
}

static struct caller caller_of(const char *name, enum role role, const char *network)
{
    struct caller c = {.role = role, .verdict = CALLER_KNOWN};

    (void)snprintf(c.name, sizeof(c.name), "%s", name);
    (void)snprintf(c.network, sizeof(c.network), "%s", network);
    return c;
}

static const char *sentence(void)
{
    return rs.body && body_refusal_text(rs.body) ? body_refusal_text(rs.body) : "";
}

/* A login that @who makes with @body; its secret, until the next call. */
static const char *offer(const struct caller *who, const char *body)
{
    static char secret[WEB_SECRET_MAX];
    const char *url;

    if (call(who, false, "POST", "/v1/web/logins", body) != 201)
        fail_msg("%d %s", rs.status, sentence());
    url = json_string_value(json_object_get(rs.body, "url"));
    assert_memory_equal(url, "https://192.0.2.1:8443/web/#login=", 34);
    (void)snprintf(secret, sizeof(secret), "%s", url + 34);
    return secret;
}

static int login(const char *secret)
{
    char body[128];

    (void)snprintf(body, sizeof(body), "{\"login\":\"%s\"}", secret);
    return call(NULL, true, "POST", "/v1/web/login", body);
}

/* Who has the session that the last login has begun; false: nobody has. */
static bool identify(const char *cookie, struct caller *ret)
{
    *ret = (struct caller){.role = ROLE_NONE};
    return access_identify_page(&s.hub->handlers, cookie, s.now, ret);
}

/* The cookie that a browser sends from now on. */
static const char *cookie_of(void)
{
    static char cookie[128];

    assert_non_null(rs.cookie);
    (void)snprintf(cookie, sizeof(cookie), "%.*s", (int)strcspn(rs.cookie, ";"), rs.cookie);
    return cookie;
}

static void test_files(void **state)
{
    static const char *const paths[] = {"/web", "/web/", "/web/index.html"};

    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(call(NULL, false, "GET", paths[i], NULL), 200);
        assert_string_equal(rs.text, web_file_find("index.html")->text);
        assert_string_equal(rs.type, "text/html; charset=utf-8");
        assert_non_null(strstr(rs.policy, "default-src 'none'"));
        assert_non_null(strstr(rs.policy, "script-src 'self';"));
        assert_non_null(strstr(rs.policy, "style-src 'self';"));
        assert_non_null(strstr(rs.policy, "frame-ancestors 'none'"));
        assert_null(strstr(rs.policy, "unsafe"));
    }
    assert_int_equal(call(NULL, false, "GET", "/web/app.js", NULL), 200);
    assert_string_equal(rs.type, "text/javascript; charset=utf-8");
    assert_non_null(rs.policy);
    assert_int_equal(call(NULL, false, "GET", "/web/nothing", NULL), 404);
    assert_int_equal(call(NULL, false, "GET", "/web/codes.json", NULL), 200);
    assert_non_null(json_object_get(json_object_get(rs.body, "WEFT-NODE-001"), "means"));
    s.hub->handlers.web = NULL;
    assert_int_equal(call(NULL, false, "GET", "/web/", NULL), 404);
    assert_string_equal(sentence(), "this hub shows no page: it was started without --web");
    assert_int_equal(login("x"), 404);
}

static void test_a_login(void **state)
{
    const struct caller root = caller_of("uid:0", ROLE_ADMIN, "");
    struct caller who;
    char secret[WEB_SECRET_MAX];
    const char *cookie;

    (void)snprintf(secret, sizeof(secret), "%s", offer(&root, NULL));
    assert_string_equal(json_string_value(json_object_get(rs.body, "role")), "admin");
    assert_int_equal(login(secret), 200);
    assert_string_equal(json_string_value(json_object_get(rs.body, "name")), "page:uid:0");
    assert_non_null(
        strstr(rs.cookie, "; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=43200"));
    cookie = cookie_of();
    assert_true(identify(cookie, &who));
    assert_int_equal(who.role, ROLE_ADMIN);
    assert_string_equal(who.name, "page:uid:0");
    assert_true(who.session != 0);
    assert_int_equal(call(&who, true, "GET", "/v1/web/session", NULL), 200);
    assert_string_equal(json_string_value(json_object_get(rs.body, "hub")), "hub");
    /* Once, and no more. */
    assert_int_equal(login(secret), 401);
    assert_null(rs.cookie);
    assert_non_null(strstr(sentence(), "was used already"));
    /* The page logs out, and its cookie is taken from it. */
    assert_int_equal(call(&who, true, "DELETE", "/v1/web/session", NULL), 204);
    assert_non_null(strstr(rs.cookie, "Max-Age=0"));
    assert_false(identify(cookie, &who));
}

static void test_logins_that_are_none(void **state)
{
    const struct caller root = caller_of("uid:0", ROLE_ADMIN, "");
    char secret[WEB_SECRET_MAX];
    char body[128];

    (void)snprintf(secret, sizeof(secret), "%s", offer(&root, "{\"ttlSeconds\":60}"));
    /* Of another site's page, or a program: it is not looked at. */
    (void)snprintf(body, sizeof(body), "{\"login\":\"%s\"}", secret);
    assert_int_equal(call(NULL, false, "POST", "/v1/web/login", body), 403);
    s.now += 60 * NSEC_PER_SEC;
    assert_int_equal(login(secret), 401);
    assert_non_null(strstr(sentence(), "not used in time"));
    assert_int_equal(call(NULL, true, "POST", "/v1/web/login", NULL), 400);
    assert_int_equal(call(NULL, true, "POST", "/v1/web/login", "{\"login\":7}"), 400);
    for (unsigned i = 1; i < GUESSES_BURST; i++)
        assert_int_equal(login("guess"), 401);
    assert_int_equal(login("guess"), 429);
    assert_non_null(strstr(sentence(), "try again in a minute"));
}

/* Nobody gives a role or a network that they do not have. */
static void test_who_offers_what(void **state)
{
    const struct caller helper = caller_of("admin:op", ROLE_OPERATOR, "default");
    struct caller who;

    json_decref(sample_hub_insist(&s, "POST", "/v1/admin-tokens",
        "{\"name\":\"op\",\"role\":\"operator\",\"network\":\"default\"}", 201));
    assert_int_equal(call(&helper, false, "POST", "/v1/web/logins", "{\"role\":\"admin\"}"), 403);
    assert_int_equal(
        call(&helper, false, "POST", "/v1/web/logins", "{\"network\":\"other\"}"), 403);
    assert_int_equal(call(&helper, false, "POST", "/v1/web/logins", "{\"role\":\"king\"}"), 400);
    assert_int_equal(call(&helper, false, "POST", "/v1/web/logins", "{\"ttlSeconds\":1}"), 400);
    assert_int_equal(login(offer(&helper, "{\"role\":\"viewer\"}")), 200);
    assert_true(identify(cookie_of(), &who));
    assert_int_equal(who.role, ROLE_VIEWER);
    assert_string_equal(who.network, "default");
    assert_int_equal(call(&who, true, "GET", NET "/nodes", NULL), 200);
    assert_int_equal(call(&who, true, "GET", "/v1/networks/other/nodes", NULL), 403);
    assert_int_equal(call(&who, true, "POST", NET "/tokens", "{}"), 403);
    assert_int_equal(call(&who, true, "GET", "/v1/admin-tokens", NULL), 403);
}

/* It ends with the token of who made the login. */
static void test_the_end_of_a_maker(void **state)
{
    const struct caller maker = caller_of("admin:ci", ROLE_OPERATOR, "");
    struct caller who;
    char cookie[128];

    json_decref(sample_hub_insist(
        &s, "POST", "/v1/admin-tokens", "{\"name\":\"ci\",\"role\":\"operator\"}", 201));
    assert_int_equal(login(offer(&maker, NULL)), 200);
    (void)snprintf(cookie, sizeof(cookie), "%s", cookie_of());
    assert_true(identify(cookie, &who));
    assert_string_equal(who.name, "page:admin:ci");
    json_decref(sample_hub_insist(&s, "DELETE", "/v1/admin-tokens/ci", NULL, 204));
    assert_false(identify(cookie, &who));
    /* Nor is it that of another one of the same name. */
    json_decref(sample_hub_insist(
        &s, "POST", "/v1/admin-tokens", "{\"name\":\"ci\",\"role\":\"operator\"}", 201));
    assert_false(identify(cookie, &who));
}

/* A session changes tokens, and nothing else of the hub. */
static void test_what_a_session_may(void **state)
{
    struct caller who = caller_of("page:uid:0", ROLE_ADMIN, "");
    unsigned n = 0;

    who.session = 1;
    for (const struct route *row = routes; row->method; row++) {
        struct request rq = {.access = API_ACCESS_ADMIN, .method = row->method, .caller = who};

        response_deinit(&rs);
        if (!(row->access & API_ACCESS_ADMIN) || strcmp(row->method, "GET") == 0)
            continue;
        if (route_admits(row, &rq, &rs) && !(row->access & API_ACCESS_PUBLIC)) {
            assert_true(strstr(row->path, "token") || strcmp(row->path, "/v1/web/session") == 0);
            n++;
        }
    }
    assert_int_equal(n, 5);
    assert_int_equal(call(&who, true, "DELETE", NET, NULL), 403);
    assert_non_null(strstr(sentence(), "is not for the page"));
    assert_int_equal(call(&who, true, "POST", "/v1/web/logins", NULL), 403);
}

static void test_what_is_live(void **state)
{
    const struct caller viewer = caller_of("admin:eyes", ROLE_VIEWER, "");

    assert_int_equal(call(NULL, true, "GET", NET "/live", NULL), 401);
    assert_int_equal(call(&viewer, true, "GET", "/v1/networks/nowhere/live", NULL), 404);
    assert_int_equal(call(&viewer, true, "GET", NET "/live", NULL), 200);
    assert_non_null(rs.stream);
    assert_string_equal(rs.stream->type, "text/event-stream");
    rs.stream->on_closed(rs.stream);
    assert_int_equal(call(&viewer, true, "DELETE", "/v1/web/session", NULL), 409);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_login, enter, leave),
        cmocka_unit_test_setup_teardown(test_logins_that_are_none, enter, leave),
        cmocka_unit_test_setup_teardown(test_who_offers_what, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_end_of_a_maker, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_a_session_may, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_live, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
