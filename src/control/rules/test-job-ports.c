/* test-job-ports.c - what jobs say of their ports, what becomes of it in the packet filter, and
 * that it takes that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rules/job_ports.h"
#include "rules/access_rules.h"
#include "rules/access_table.h"
#include "base/err.h"
#include "base/text.h"
#include "mesh/object/rule.h"
#include "mesh/snapshot/snapshot.h"
#include "test/support/emulated.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

static bool has(const struct str *out, const char *text)
{
    return strstr(str_text(out), text) != NULL;
}

static int decode(struct job_ports_word *ret, const char *text, struct err *e)
{
    json_auto_t *json = json_loads(text, 0, NULL);

    return job_ports_word_decode(ret, json, e);
}

/* The rule of a job whose member is @from, and that closes ports of @to. */
static void put_job(struct snapshot *s, const char *job, const char *from, const char *to)
{
    char name[64];
    char a[80];
    char b[80];
    json_t *json;
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;

    (void)snprintf(name, sizeof(name), "job-%s", job);
    (void)snprintf(a, sizeof(a), "node:%s", from);
    (void)snprintf(b, sizeof(b), "node:%s", to);
    json = json_pack("{s:s, s:{s:s, s:s}, s:{s:[s], s:[s], s:[s], s:s, s:i}}", "kind", "Rule",
        "metadata", "name", name, "network", "default", "spec", "from", a, "to", b, "allow",
        "tcp/1024-65535", "job", job, "run", 1);
    if (object_decode(&o, json, OBJECT_STRICT, &e) != 0)
        fail_msg("%s", err_text(&e));
    json_decref(json);
    sample_put(s, o);
}

static void say(struct job_ports *jp, const char *job, const char *text, nsec_t now)
{
    struct job_ports_word w = JOB_PORTS_WORD_NULL;
    struct err e = ERR_NULL;

    if (decode(&w, text, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_true(job_ports_set(jp, job, &w, now));
}

static void test_what_a_job_says(void **state)
{
    static const char text[] = "{\"own\":[40002,40001,40002],\"others\":[],\"first\":32768,"
                               "\"last\":60999}";
    static const struct {
        const char *text;
        const char *words;
    } bad[] = {
        {"{\"own\":[22],\"others\":[],\"first\":32768,\"last\":60999}", "no port from 1024"},
        {"{\"own\":[70000],\"others\":[],\"first\":32768,\"last\":60999}", "\"own\""},
        {"{\"own\":[],\"others\":[\"a\"],\"first\":32768,\"last\":60999}", "\"others\""},
        {"{\"own\":[],\"others\":[],\"first\":5000,\"last\":4000}", "less than"},
        {"{\"own\":[],\"others\":[],\"first\":1,\"last\":4000}", "\"first\""},
        {"{\"own\":[],\"others\":[]}", "\"first\""},
    };
    struct job_ports_word w = JOB_PORTS_WORD_NULL;
    struct job_ports_word again = JOB_PORTS_WORD_NULL;
    json_t *json;

    assert_int_equal(decode(&w, text, NULL), 0);
    assert_int_equal(w.own.n, 2);
    assert_int_equal(w.own.items[0], 40001);
    json = job_ports_word_encode(&w);
    assert_int_equal(job_ports_word_decode(&again, json, NULL), 0);
    assert_true(job_ports_word_equal(&w, &again));
    json_decref(json);
    job_ports_word_deinit(&again);
    job_ports_word_deinit(&w);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct err e = ERR_NULL;

        assert_true(decode(&w, bad[i].text, &e) < 0);
        if (!strstr(err_text(&e), bad[i].words))
            fail_msg("%s: %s", bad[i].text, err_text(&e));
    }
}

/* Sample nodes are n0001 (a hub), ...; @s.self is the one whose table it is. */
static void test_what_is_closed(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    const char *other = s.nodes.items[s.nodes.n - 1]->node.meta.name;
    struct job_ports jp = {.n = 0};
    struct str out = STR_NULL;

    /* A job elsewhere is none of this node's business. */
    put_job(&s, "far", other, other);
    assert_false(job_ports_is_any(&s));
    assert_false(access_rules_are_wanted(&s));
    put_job(&s, "train", other, s.self);
    assert_true(job_ports_is_here(&s, "train"));
    assert_false(job_ports_is_here(&s, "far"));
    assert_true(access_rules_are_wanted(&s));

    /* Before the job has said anything all that the kernel chooses is its own. */
    access_table_format(&out, "weft0", &s, &jp, SEC);
    assert_true(has(&out, "tcp dport != 32768-60999 return\nip saddr @job1_4 return\n"));
    assert_true(has(&out, "jump jobs\n"));
    assert_false(has(&out, "hook output"));
    assert_false(has(&out, "chain job0"));
    str_deinit(&out);

    say(&jp, "train",
        "{\"own\":[29500,40001],\"others\":[9100,40002],\"first\":40000,"
        "\"last\":50000}",
        SEC);
    out = (struct str)STR_NULL;
    access_table_format(&out, "weft0", &s, &jp, SEC);
    assert_true(has(&out, "tcp dport { 29500, 40001 } goto job1\n"));
    assert_true(has(&out, "tcp dport != 40000-50000 return\ntcp dport { 9100, 40002 } return\n"));
    str_deinit(&out);

    /* What one job calls another's is not open while that one has not said so. */
    put_job(&s, "eval", s.self, s.self);
    out = (struct str)STR_NULL;
    access_table_format(&out, "weft0", &s, &jp, SEC);
    assert_false(has(&out, "40002 } return"));
    str_deinit(&out);
    say(&jp, "eval", "{\"own\":[40002],\"others\":[9100,40001],\"first\":40000,\"last\":50000}",
        SEC);
    out = (struct str)STR_NULL;
    access_table_format(&out, "weft0", &s, &jp, SEC);
    assert_true(has(&out, "tcp dport { 9100 } return\n"));
    str_deinit(&out);

    /* One whose weft run is gone keeps its own ports closed, and has no say in others. */
    say(&jp, "train",
        "{\"own\":[40001],\"others\":[9100,9200,40002],\"first\":40000,"
        "\"last\":50000}",
        2 * JOB_PORTS_SILENT);
    out = (struct str)STR_NULL;
    access_table_format(&out, "weft0", &s, &jp, 2 * JOB_PORTS_SILENT);
    assert_true(has(&out, "tcp dport { 40002 } goto job"));
    assert_true(has(&out, "tcp dport { 9100, 9200, 40002 } return\n"));
    str_deinit(&out);
    job_ports_deinit(&jp);
    snapshot_deinit(&s);
}

static void test_what_is_forgotten(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    struct job_ports jp = {.n = 0};
    char job[16];

    say(&jp, "gone", "{\"own\":[40001],\"others\":[],\"first\":40000,\"last\":50000}", SEC);
    put_job(&s, "train", s.self, s.self);
    say(&jp, "train", "{\"own\":[40002],\"others\":[],\"first\":40000,\"last\":50000}", SEC);
    job_ports_tick(&jp, &s, SEC);
    assert_int_equal(jp.n, 2);
    job_ports_tick(&jp, &s, SEC + JOB_PORTS_SILENT);
    assert_int_equal(jp.n, 1);
    assert_string_equal(jp.items[0].job, "train");
    for (unsigned i = 1; i < JOB_PORTS_JOBS_MAX; i++) {
        (void)snprintf(job, sizeof(job), "j%u", i);
        say(&jp, job, "{\"own\":[],\"others\":[],\"first\":40000,\"last\":50000}", SEC);
    }
    assert_false(job_ports_set(
        &jp, "one-more", &(struct job_ports_word){.first = 40000, .last = 50000}, SEC));
    job_ports_deinit(&jp);
    snapshot_deinit(&s);
}

/* The kernel's filter takes what is made, beside other rules and alone. */
static void test_the_filter_takes_it(void **state)
{
    struct netlink *nl = netns_need(state);
    struct snapshot s = sample_snapshot(4, 2);
    struct access_rules ar = {.fault = ERR_NULL};

    if (emulated_lacks("nf_tables"))
        skip();
    (void)nl;
    put_job(&s, "train", s.self, s.self);
    put_job(&s, "eval", s.nodes.items[s.nodes.n - 1]->node.meta.name, s.self);
    access_rules_apply(&ar, "weft0", NULL, &s, SEC);
    assert_string_equal(ar.fault.text, "");
    say(&ar.jobs, "train", "{\"own\":[40001],\"others\":[9100],\"first\":32768,\"last\":60999}",
        SEC);
    say(&ar.jobs, "eval", "{\"own\":[40003],\"others\":[9100],\"first\":32768,\"last\":60999}",
        SEC);
    access_rules_apply(&ar, "weft0", NULL, &s, SEC);
    assert_string_equal(ar.fault.text, "");
    assert_non_null(ar.table.body);
    s.network.isolation = ISOLATION_STRICT;
    access_rules_apply(&ar, "weft0", NULL, &s, SEC);
    assert_string_equal(ar.fault.text, "");
    access_rules_remove("weft0");
    access_rules_deinit(&ar);
    snapshot_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_job_says),
        cmocka_unit_test(test_what_is_closed),
        cmocka_unit_test(test_what_is_forgotten),
        cmocka_unit_test_setup_teardown(test_the_filter_takes_it, netns_enter, netns_leave),
    };

    return cmocka_run_group_tests_name("job-ports", tests, NULL, NULL);
}
