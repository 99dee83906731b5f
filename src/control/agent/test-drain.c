/* test-drain.c - checks of a node, by what its agent finds, and what they have the hook and the hub
 * do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/drain.h"
#include "base/containers.h"
#include "base/text.h"
#include "os/file.h"
#include "test/support/said_agent.h"

#define WELL "{\"self\":{\"name\":\"n1\",\"network\":\"default\"},\"findings\":[]}"
#define FULL                                                                                       \
    "{\"self\":{\"name\":\"n1\",\"network\":\"default\"},\"findings\":[{\"code\":\"WEFT-DISK-"     \
    "002\","                                                                                       \
    "\"severity\":\"critical\",\"about\":\"node\",\"subject\":\"n1\",\"text\":\"it is full\"}]}"
#define WELL_DRAINED                                                                               \
    "{\"self\":{\"name\":\"n1\",\"network\":\"default\"},\"findings\":[{\"code\":"                 \
    "\"WEFT-HEALTH-002\",\"severity\":\"warning\",\"about\":\"node\",\"subject\":\"n1\","          \
    "\"text\":\"this node is drained\"}]}"
#define DRAINED "{\"drained\":true,\"dryRun\":false,\"why\":\"\"}"

static char dir[32];
static char hook[64];
static char said[64]; /* what the hook was called with */

static int enter(void **state)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/weft-drain.XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(hook, sizeof(hook), "%s/hook", dir);
    (void)snprintf(said, sizeof(said), "%s/said", dir);
    return 0;
}

static int leave(void **state)
{
    (void)unlink(hook);
    (void)unlink(said);
    return rmdir(dir);
}

/* A hook that writes down how it was called, and ends with that status. */
static void write_hook(int status, mode_t mode)
{
    char text[256];

    (void)snprintf(text, sizeof(text), "#!/bin/sh\necho \"$@\" >>%s\necho no luck >&2\nexit %d\n",
        said, status);
    assert_int_equal(statefile_replace(hook, text, strlen(text), mode, NULL), 0);
    assert_int_equal(chmod(hook, mode), 0);
}

/* What it was called with since then. */
static void expect_hook(const char *expected)
{
    _cleanup_(freep) char *text = NULL;

    (void)statefile_read(said, 4096, &text, NULL, NULL);
    assert_string_equal(text ? text : "", expected);
    (void)unlink(said);
}

/* A check with an agent that gives these answers, and its counts kept from @count to @count. */
static void check(
    struct said_agent *a, struct fitness_count *count, struct drain_report *ret, bool acts)
{
    struct drain_options opt = {.state_dir = dir, .hook = hook, .every_s = 300, .acts = acts};
    _cleanup_(freep) char *text = NULL;
    json_t *json = fitness_count_encode(count);
    char *kept = json_dumps(json, JSON_COMPACT);
    char path[128];

    said_agent_start(a);
    opt.socket = a->path;
    (void)snprintf(path, sizeof(path), "%s.health", a->path);
    assert_int_equal(statefile_replace(path, kept, strlen(kept), 0644, NULL), 0);
    free(kept);
    json_decref(json);
    assert_int_equal(drain_check(&opt, ret), 0);
    said_agent_end(a);
    assert_int_equal(statefile_read(path, 4096, &text, NULL, NULL), 0);
    json = json_loads(text, 0, NULL);
    assert_true(fitness_count_decode(count, json));
    json_decref(json);
    (void)unlink(path);
}

static void expect_done(struct drain_report *r, const char *words)
{
    if (!strstr(r->done, words) || (words[0] == '\0') != (r->done[0] == '\0'))
        fail_msg("\"%s\" has no \"%s\"", r->done, words);
    drain_report_deinit(r);
}

/* Without --drain nothing is counted, and nobody is asked. */
static void test_a_look(void **state)
{
    struct said_agent a = {.answers = {{200, FULL}}};
    struct fitness_count c = {.n_failed = 7};
    struct drain_report r;
    struct str out = STR_NULL;
    json_t *json;

    check(&a, &c, &r, false);
    assert_int_equal(c.n_failed, 7);
    drain_format(&r, &out);
    assert_non_null(strstr(str_text(&out), "disk     failed: WEFT-DISK-002: it is full\n"));
    assert_non_null(strstr(str_text(&out), "fabric   ok\n"));
    assert_non_null(strstr(str_text(&out), "7 checks in a row have failed"));
    str_deinit(&out);
    json = drain_encode(&r);
    assert_string_equal(json_string_value(json_object_get(json, "verdict")), "failed");
    assert_int_equal(json_array_size(json_object_get(json, "parts")), FITNESS_PART_N);
    json_decref(json);
    expect_done(&r, "");
}

static void test_the_third_drains(void **state)
{
    struct said_agent first = {.answers = {{200, FULL}}};
    struct said_agent third = {.answers = {{200, FULL}, {200, DRAINED}}};
    struct said_agent fourth = {.answers = {{200, FULL}, {200, DRAINED}}};
    struct fitness_count c = {.n_failed = 1};
    struct drain_report r;

    write_hook(0, 0755);
    check(&first, &c, &r, true);
    assert_int_equal(c.n_failed, 2);
    expect_done(&r, "");
    check(&third, &c, &r, true);
    assert_true(r.is_drained && !r.has_failed);
    assert_non_null(strstr(third.requests[1], "PUT /v1/drain "));
    assert_non_null(strstr(third.requests[1], "\"ask\":\"drain\""));
    assert_non_null(strstr(third.requests[1], "\"codes\":\"WEFT-DISK-002\""));
    expect_done(&r, "n1 is drained");
    expect_hook("drain n1 default WEFT-DISK-002: it is full WEFT-DISK-002\n");
    assert_true(c.is_hooked && c.is_reported);
    /* It is drained already, and its scheduler knows. */
    check(&fourth, &c, &r, true);
    expect_done(&r, "");
    expect_hook("");
}

static void test_what_is_not_allowed(void **state)
{
    struct said_agent dry = {
        .answers = {{200, FULL}, {200, "{\"drained\":false,\"dryRun\":true,\"why\":\"it is "
                                       "off\"}"}}};
    struct said_agent full = {
        .answers = {{200, FULL}, {200, "{\"drained\":false,\"dryRun\":false,\"why\":\"1 of 3 "
                                       "are\"}"}}};
    struct said_agent away = {.answers = {{200, FULL}, {502, "{\"error\":\"no hub answers\"}"}}};
    struct fitness_count c = {.n_failed = 3};
    struct drain_report r;

    write_hook(0, 0755);
    check(&dry, &c, &r, true);
    assert_true(r.is_dry_run && !r.is_drained && !r.has_failed);
    expect_done(&r, "n1 is not drained: it is off; then this is called: ");
    check(&full, &c, &r, true);
    assert_false(r.is_dry_run);
    expect_done(&r, "n1 is not drained: 1 of 3 are");
    check(&away, &c, &r, true);
    assert_true(r.has_failed);
    expect_done(&r, "since the hub was not asked");
    assert_int_equal(c.n_failed, 6);
    expect_hook("");
}

/* Nobody is asked to drain a node whose scheduler could not be told. */
static void test_no_hook(void **state)
{
    struct said_agent none = {
        .answers = {{200, FULL}, {200, "{\"drained\":false,\"dryRun\":false,\"why\":\"\"}"}}};
    struct said_agent writable = none;
    struct fitness_count c = {.n_failed = 3};
    struct drain_report r;

    check(&none, &c, &r, true);
    assert_null(strstr(none.requests[1], "\"ask\""));
    expect_done(&r, "there is no hook at");
    write_hook(0, 0777);
    check(&writable, &c, &r, true);
    assert_null(strstr(writable.requests[1], "\"ask\""));
    expect_done(&r, "may be written by others");
    expect_hook("");
}

static void test_a_hook_that_fails(void **state)
{
    struct said_agent a = {.answers = {{200, FULL}, {200, DRAINED}, {200, DRAINED}}};
    struct said_agent again = {.answers = {{200, FULL}, {200, DRAINED}}};
    struct fitness_count c = {.n_failed = 3};
    struct drain_report r;

    write_hook(3, 0755);
    check(&a, &c, &r, true);
    assert_true(r.has_failed && r.is_drained && !c.is_hooked);
    assert_non_null(strstr(a.requests[2], "\"hook\":\"no luck\""));
    expect_done(&r, "has failed, which is called again with the next check: no luck");
    write_hook(0, 0755);
    check(&again, &c, &r, true);
    assert_true(c.is_hooked);
    expect_done(&r, "n1 is drained");
}

static void test_it_is_given_back(void **state)
{
    struct said_agent first = {.answers = {{200, WELL_DRAINED}, {200, DRAINED}}};
    struct said_agent failing = {.answers = {{200, WELL_DRAINED}, {200, DRAINED}}};
    struct said_agent third = {.answers = {{200, WELL_DRAINED},
                                   {200, "{\"drained\":false,\"dryRun\":false,\"why\":\"\"}"}}};
    struct said_agent well = {.answers = {{200, WELL}}};
    struct fitness_count c = {.n_failed = 9, .is_reported = true, .is_hooked = true};
    struct drain_report r;

    /* The hub hears at once that it fails no more. */
    check(&first, &c, &r, true);
    assert_non_null(strstr(first.requests[1], "\"failed\":0"));
    assert_null(strstr(first.requests[1], "\"ask\""));
    assert_true(r.is_drained && !c.is_reported && c.is_hooked);
    expect_done(&r, "");
    c.n_passed = 2;
    write_hook(1, 0755);
    check(&failing, &c, &r, true);
    assert_true(c.is_hooked);
    expect_done(&r, "n1 is well again, and the hook");
    (void)unlink(said);
    write_hook(0, 0755);
    check(&third, &c, &r, true);
    assert_non_null(strstr(third.requests[1], "\"ask\":\"undrain\""));
    assert_false(c.is_hooked);
    expect_done(&r, "n1 is well again");
    expect_hook("undrain n1 default  \n");
    check(&well, &c, &r, true);
    expect_done(&r, "");
    expect_hook("");
}

/* Without an agent the hub cannot be asked, and a machine that has not joined has no hub. */
static void test_no_agent(void **state)
{
    char socket[64];
    struct drain_options opt = {
        .state_dir = dir, .hook = hook, .every_s = 300, .acts = true, .socket = socket};
    struct drain_report r;

    (void)snprintf(socket, sizeof(socket), "%s/none.sock", dir);
    assert_int_equal(drain_check(&opt, &r), 0);
    assert_int_equal(fitness_worst(&r.fitness), FITNESS_FAILED);
    assert_int_equal(r.count.n_failed, 0);
    expect_done(&r, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_look, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_third_drains, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_not_allowed, enter, leave),
        cmocka_unit_test_setup_teardown(test_no_hook, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_hook_that_fails, enter, leave),
        cmocka_unit_test_setup_teardown(test_it_is_given_back, enter, leave),
        cmocka_unit_test_setup_teardown(test_no_agent, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
