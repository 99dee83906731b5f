/* test-access.c - around each request: how often an admin token may ask for a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "hub/enrol/admin_tokens.h"
#include "hub/handlers/access.h"
#include "test/support/sample_hub.h"

static void make(struct sample_hub *s, const char *name)
{
    char body[128];

    (void)snprintf(
        body, sizeof(body), "{\"name\":\"%s\",\"role\":\"operator\",\"ttlSeconds\":3600}", name);
    assert_int_equal(
        sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "POST", "/v1/admin-tokens", body, NULL), 201);
}

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
        assert_non_null(strstr(json_string_value(json_object_get(rs.body, "error")),
            "of admin:ci has asked for more than 2000 changes at once"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pace)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
