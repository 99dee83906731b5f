/*
 * test-job-rules.c - the rules of jobs that are isolated: who is in them, while members come, runs
 * end and a hub begins anew. A whole hub in this process, which serves jobs but starts no process
 * for them.
 */
#include "hub/watch/job_rules.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hub/jobs/jobs.h"
#include "hub/record/record.h"
#include "mesh/object/rule.h"
#include "os/clock.h"
#include "store/store.h"
#include "test/support/sample_hub.h"

static struct sample_hub hub;

/* So much later than it is everything happens. */
static nsec_t ahead;

static struct model_network *network(void)
{
    return sample_hub_network(&hub);
}

static void serve(void)
{
    struct err e = ERR_NULL;

    if (changes_open_jobs(&hub.hub->changes, network(), NULL, 0, 0, &e) != 0)
        fail_msg("%s", err_text(&e));
}

/* The nodes a, b and c. */
static int begin(void **state)
{
    sample_hub_begin(&hub);
    ahead = 0;
    sample_hub_add_node(&hub, "a");
    sample_hub_add_node(&hub, "b");
    sample_hub_add_node(&hub, "c");
    serve();
    return 0;
}

static int end(void **state)
{
    sample_hub_end(&hub);
    return 0;
}

/* What is on its way to the store is there. */
static void settle(void)
{
    for (unsigned i = 0; i < 10; i++) {
        store_wait(hub.hub->store);
        (void)uv_run(&hub.loop, UV_RUN_NOWAIT);
    }
}

static void look(void)
{
    job_rules_look(network(), clock_now() + ahead);
    settle();
}

static void ask(const char *node, const char *method, const char *job, const char *body, int status,
    const char *words)
{
    json_t *json = NULL;
    char path[NAME_MAX_LEN + 32];
    char *text;
    int is;

    (void)snprintf(path, sizeof(path), "/v1/jobs/%s/rendezvous", job);
    hub.now = clock_now() + ahead;
    is = sample_hub_ask(
        &hub, API_ACCESS_OVERLAY, sample_hub_node(&hub, node), method, path, body, &json);
    text = json_dumps(json, JSON_COMPACT);
    if (is != status || (words && !strstr(text, words)))
        fail_msg("%s %s by %s: %d %s", method, path, node, is, text);
    free(text);
    json_decref(json);
    settle();
}

static void join(const char *node, const char *job, bool is_isolated)
{
    ask(node, "POST", job, is_isolated ? "{\"isolated\":true}" : "{}", 200, NULL);
}

/* "from > to: what it allows; job, run", of a rule; "": there is none. */
static const char *text_of(const char *name)
{
    static char text[512];
    const struct model_object *o = model_find_object(network(), &rule_kind, name);
    const struct rule *r = o ? rule_of(&o->object) : NULL;
    char word[RULE_TEXT_MAX];
    struct str out = STR_NULL;

    for (unsigned i = 0; r && i < r->n_from; i++)
        str_addf(&out, "%s ", rule_peer_format(&r->from[i], word));
    for (unsigned i = 0; r && i < r->n_to; i++)
        str_addf(&out, "%s%s", i == 0 ? "> " : " ", rule_peer_format(&r->to[i], word));
    for (unsigned i = 0; r && i < r->n_services; i++)
        str_addf(&out, "%s%s", i == 0 ? ": " : " ", rule_service_format(&r->services[i], word));
    if (r)
        str_addf(&out, "; %s, %u", r->job, r->run);
    (void)snprintf(text, sizeof(text), "%s", str_text(&out));
    str_deinit(&out);
    return text;
}

#define ALLOWED ": tcp/1024-65535 udp/1024-65535 icmp; train, "

static void test_who_comes_is_let_in(void **state)
{
    join("a", "train", true);
    assert_string_equal(text_of("job-train"), "node:a > node:a" ALLOWED "1");
    assert_non_null(strstr(text_of("jobhub-train"), "node:a > hub: tcp/"));
    join("b", "train", true);
    assert_string_equal(text_of("job-train"), "node:a node:b > node:a node:b" ALLOWED "1");
    /* One that runs it without is let in, and is not closed itself. */
    join("c", "train", false);
    assert_string_equal(text_of("job-train"), "node:a node:b node:c > node:a node:b" ALLOWED "1");
    assert_non_null(strstr(text_of("jobhub-train"), "node:a node:b node:c > hub: tcp/"));
    /* Nothing is written that is there already. */
    {
        uint64_t revision = store_revision(hub.hub->store);

        look();
        assert_int_equal(store_revision(hub.hub->store), revision);
    }
}

static void test_a_job_that_is_not_isolated(void **state)
{
    join("a", "train", false);
    join("b", "train", false);
    look();
    assert_string_equal(text_of("job-train"), "");
    assert_string_equal(text_of("jobhub-train"), "");
}

static void test_a_run_that_is_over(void **state)
{
    join("a", "train", true);
    assert_string_not_equal(text_of("job-train"), "");
    ahead += JOBS_QUIET / 2;
    look();
    assert_string_not_equal(text_of("job-train"), "");
    ahead += JOBS_QUIET;
    look();
    assert_string_equal(text_of("job-train"), "");
    assert_string_equal(text_of("jobhub-train"), "");
    /* The next one has its own, of those that come to it. */
    join("b", "train", true);
    assert_string_equal(text_of("job-train"), "node:b > node:b" ALLOWED "2");
}

/* A hub that knows of no member yet keeps those that the rule of the same run names. */
static void test_a_hub_that_begins_anew(void **state)
{
    join("a", "train", true);
    join("b", "train", false);
    jobs_close(&network()->served->jobs, false);
    settle();
    look();
    assert_string_not_equal(text_of("job-train"), "");
    serve();
    settle();
    look();
    assert_string_equal(text_of("job-train"), "node:a node:b > node:a" ALLOWED "1");
    join("c", "train", true);
    assert_string_equal(text_of("job-train"), "node:a node:b node:c > node:a node:c" ALLOWED "1");
}

/* A rule of a job that is not known, as after it was forgotten. */
static void test_a_rule_that_is_left(void **state)
{
    struct object o = OBJECT_NULL;
    json_t *json = json_pack("{s:s, s:{s:s, s:s}, s:{s:[s], s:[s], s:[s], s:s, s:i}}", "kind",
        "Rule", "metadata", "name", "job-old", "network", "default", "spec", "from", "node:a", "to",
        "node:a", "allow", "any", "job", "old", "run", 3);
    char *value;

    assert_int_equal(object_decode(&o, json, OBJECT_STRICT, NULL), 0);
    json_decref(json);
    value = record_object_encode(&o);
    object_deinit(&o);
    sample_hub_write(&hub, "rule/default/job-old", value);
    free(value);
    assert_string_not_equal(text_of("job-old"), "");
    look();
    assert_string_equal(text_of("job-old"), "");
}

/* An administrator's rule is never written over, nor removed. */
static void test_a_name_that_is_taken(void **state)
{
    json_decref(sample_hub_insist(&hub, "PUT", "/v1/networks/default/objects/Rule/job-train",
        "{\"kind\":\"Rule\",\"metadata\":{\"name\":\"job-train\",\"network\":\"default\"},"
        "\"spec\":{\"from\":[\"members\"],\"to\":[\"members\"],\"allow\":[\"any\"]}}",
        200));
    settle();
    ask("a", "POST", "train", "{\"isolated\":true}", 409,
        "the network has a rule \\\"job-train\\\"");
    join("a", "train", false);
    look();
    assert_string_equal(text_of("job-train"), "members > members: any; , 0");
}

static void test_what_cannot_be_isolated(void **state)
{
    char longest[NAME_MAX_LEN + 1];
    char name[NAME_MAX_LEN + 16];
    struct err e = ERR_NULL;

    assert_int_equal(job_rules_check(network(), JOBS_DEFAULT, "a", &e), -EINVAL);
    assert_non_null(strstr(err_text(&e), "is for all members"));
    memset(longest, 'x', sizeof(longest));
    longest[57] = '\0';
    assert_int_equal(job_rules_check(network(), longest, "a", &e), -EINVAL);
    assert_non_null(strstr(err_text(&e), "too long"));
    longest[56] = '\0';
    assert_int_equal(job_rules_check(network(), longest, "a", &e), 0);
    join("a", longest, true);
    (void)snprintf(name, sizeof(name), "jobhub-%s", longest);
    assert_string_not_equal(text_of(name), "");
}

/* As many as one rule may have. Who is among them may come again. */
static void test_a_job_that_is_full(void **state)
{
    json_t *from = json_array();
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;
    json_t *json;
    char *value;

    json_array_append_new(from, json_string("node:a"));
    for (unsigned i = 1; i < RULE_PEERS_MAX; i++)
        json_array_append_new(from, json_sprintf("node:m%u", i));
    json = json_pack("{s:s, s:{s:s, s:s}, s:{s:o, s:[s], s:[s], s:s, s:i}}", "kind", "Rule",
        "metadata", "name", "job-big", "network", "default", "spec", "from", from, "to", "node:a",
        "allow", "any", "job", "big", "run", 1);
    if (object_decode(&o, json, OBJECT_STRICT, &e) != 0)
        fail_msg("%s", err_text(&e));
    json_decref(json);
    value = record_object_encode(&o);
    object_deinit(&o);
    sample_hub_write(&hub, "rule/default/job-big", value);
    free(value);
    assert_int_equal(job_rules_check(network(), "big", "b", &e), -E2BIG);
    assert_non_null(strstr(err_text(&e), "has 512 nodes"));
    assert_int_equal(job_rules_check(network(), "big", "a", &e), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    static const struct CMUnitTest tests[] = {
        TEST(test_who_comes_is_let_in),
        TEST(test_a_job_that_is_not_isolated),
        TEST(test_a_run_that_is_over),
        TEST(test_a_hub_that_begins_anew),
        TEST(test_a_rule_that_is_left),
        TEST(test_a_name_that_is_taken),
        TEST(test_what_cannot_be_isolated),
        TEST(test_a_job_that_is_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
