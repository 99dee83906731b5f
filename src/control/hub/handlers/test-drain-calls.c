/*
 * test-drain-calls.c - nodes whose health checks fail ask to be drained, and how many at once. A
 * whole hub in this process.
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
#include "health/finding.h"
#include "hub/watch/health.h"
#include "os/clock.h"
#include "test/support/sample_hub.h"

#define NET "/v1/networks/default"

#define FAILS(n)                                                                                   \
    "{\"failed\":" n ",\"everySeconds\":300,\"codes\":\"WEFT-DISK-002\",\"reason\":\"it is full\""
#define ASKS   FAILS("3") ",\"ask\":\"drain\"}"
#define PASSES "{\"failed\":0,\"everySeconds\":300,\"ask\":\"undrain\"}"

static struct sample_hub hub;

static int begin(void **state)
{
    sample_hub_begin(&hub);
    for (char name[] = "a"; name[0] <= 'd'; name[0]++) {
        sample_hub_add_node(&hub, name);
        sample_hub_node(&hub, name)->spec.stock = false;
    }
    return 0;
}

static int end(void **state)
{
    sample_hub_end(&hub);
    return 0;
}

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

static void drain(const char *member, const char *body, int status, const char *words)
{
    ask(member, "PUT", "/v1/drain", body, status, words);
}

/* How many nodes of the network may be drained, in percent. */
static void set_share(unsigned percent)
{
    json_t *json = NULL;
    char *text;

    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "GET",
                         NET "/objects/Network/default", NULL, &json),
        200);
    (void)json_object_set_new(
        json_object_get(json, "spec"), "drainShare", json_integer((json_int_t)percent));
    text = json_dumps(json, JSON_COMPACT);
    ask(NULL, "PUT", NET "/objects/Network/default", text, 200, NULL);
    free(text);
    json_decref(json);
}

static const char *drained(const char *name)
{
    return sample_hub_node(&hub, name)->spec.drained;
}

/* All codes that are found of that node now. */
static void expect_found(const char *name, const char *codes)
{
    struct health *h = &hub.hub->reports.health;
    const struct findings *f;
    char is[256] = "";

    h->passed_at = 0;
    health_pass(h, &(struct health_time){
                       .now = hub.now, .wall_s = clock_wall_s(), .started_at = clock_wall_s()});
    f = health_of(h, "default");
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->items[i]->subject, name) == 0) {
            size_t len = strlen(is);

            (void)snprintf(is + len, sizeof(is) - len, "%s%s", len > 0 ? " " : "",
                finding_kinds[f->items[i]->code].code);
        }
    assert_string_equal(is, codes);
}

/* ---- dry run ----------------------------------------------------------------------------------
 */

/* Where no share is set nothing is drained, and it is said what would be; in the audit log once. */
static void test_dry_run(void **state)
{
    uint64_t n_before = hub.hub->audit.n_written[AUDIT_CHANGE];

    drain("a", ASKS, 200, "\"drained\":false,\"dryRun\":true");
    drain("a", ASKS, 200, "--drain-share PERCENT");
    assert_null(drained("a"));
    ask(NULL, "GET", "/v1/audit?limit=1", NULL, 200,
        "\"operation\":\"drain, dry run, WEFT-DISK-002\"");
    ask(NULL, "GET", "/v1/audit?limit=1", NULL, 200, "\"object\":\"node/default/a\"");
    assert_int_equal(hub.hub->audit.n_written[AUDIT_CHANGE], n_before + 1);
    expect_found("a", "WEFT-HEALTH-001");
    /* One that passes a check is noted anew when it fails again. */
    drain("a", "{\"failed\":0,\"everySeconds\":300}", 200, "\"drained\":false");
    expect_found("a", "");
}

/* ---- how many at once --------------------------------------------------------------------------
 */

static void test_share(void **state)
{
    /* Of four nodes one is 25 %. */
    set_share(24);
    drain("a", ASKS, 200, "0 of the 4 nodes of network default are drained");
    assert_null(drained("a"));
    ask(NULL, "GET", "/v1/audit?limit=1", NULL, 200, "drain, above the share, WEFT-DISK-002");
    set_share(49);
    drain("a", ASKS, 200, "\"drained\":true,\"dryRun\":false,\"why\":\"\"");
    assert_string_equal(drained("a"), "it is full");
    ask(NULL, "GET", "/v1/audit?limit=1", NULL, 200, "\"operation\":\"drain WEFT-DISK-002\"");
    expect_found("a", "WEFT-HEALTH-001 WEFT-HEALTH-002");
    /* It asks again with each check that fails, and is drained already. */
    drain("a", ASKS, 200, "\"drained\":true");
    drain("b", ASKS, 200, "1 of the 4 nodes of network default are drained");
    assert_null(drained("b"));
    set_share(50);
    drain("b", ASKS, 200, "\"drained\":true");
    drain("c", ASKS, 200, "\"drained\":false,\"dryRun\":false");
    /* One that is well again makes place for another one. */
    drain("a", PASSES, 200, "\"drained\":false");
    assert_null(drained("a"));
    ask(NULL, "GET", "/v1/audit?limit=1", NULL, 200, "\"operation\":\"undrain\"");
    expect_found("a", "");
    drain("c", ASKS, 200, "\"drained\":true");
    /* It is given back also where nothing is drained any more. */
    set_share(0);
    drain("b", PASSES, 200, "\"drained\":false");
    drain("b", PASSES, 200, "\"drained\":false");
    assert_null(drained("b"));
}

/* Its hook could not tell the scheduler. */
static void test_hook_that_failed(void **state)
{
    set_share(100);
    drain("a", ASKS, 200, "\"drained\":true");
    drain("a", FAILS("4") ",\"hook\":\"no scontrol\"}", 200, "\"drained\":true");
    expect_found("a", "WEFT-HEALTH-001 WEFT-HEALTH-002");
    assert_non_null(strstr(
        findings_find(health_of(&hub.hub->reports.health, "default"), FINDING_NODE_DRAINED, "a")
            ->text,
        "could not be told: no scontrol"));
}

/* ---- who may say it ----------------------------------------------------------------------------
 */

/* Neither an administrator by an object, nor a member of another one. */
static void test_whose_word_it_is(void **state)
{
    json_t *json = NULL;
    char *text;

    set_share(100);
    drain("a", ASKS, 200, "\"drained\":true");
    assert_int_equal(
        sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "GET", NET "/objects/Node/a", NULL, &json),
        200);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(json, "spec"), "drained")), "it is full");
    (void)json_object_del(json_object_get(json, "spec"), "drained");
    (void)json_object_del(json_object_get(json, "metadata"), "resourceVersion");
    text = json_dumps(json, JSON_COMPACT);
    ask(NULL, "PUT", NET "/objects/Node/a", text, 200, NULL);
    free(text);
    json_decref(json);
    assert_string_equal(drained("a"), "it is full");
}

static void test_what_is_refused(void **state)
{
    drain("a", "{}", 400, "\\\"failed\\\" is missing");
    drain("a", FAILS("2") ",\"ask\":\"drain\"}", 400, "after 2 failed checks");
    assert_null(sample_hub_node(&hub, "a")->reported->fitness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_dry_run, begin, end),
        cmocka_unit_test_setup_teardown(test_share, begin, end),
        cmocka_unit_test_setup_teardown(test_hook_that_failed, begin, end),
        cmocka_unit_test_setup_teardown(test_whose_word_it_is, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_refused, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
