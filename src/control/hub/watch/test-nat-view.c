/* test-nat-view.c - whose NATs forget after how long, by provider. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/watch/nat_view.h"
#include "hub/watch/reports.h"
#include "test/support/audience.h"

#define WALL 1800000000

static struct reports reports;

static int enter(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    int r = audience_enter(state);

    assert_int_equal(reports_flush(&audience_hub.hub->reports, NSEC_PER_SEC, NULL), 0);
    reports_init(&reports, audience_network()->model);
    for (unsigned i = 0; i < 3; i++)
        audience_node(names[i])->spec.stock = false;
    return r;
}

static int leave(void **state)
{
    reports_deinit(&reports);
    return audience_leave(state);
}

/* A report with ' for ". */
static void say(const char *name, const char *text)
{
    struct report rp = REPORT_NULL;
    struct err e = ERR_NULL;
    char copy[512];
    json_t *json;

    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json = json_loads(copy, 0, NULL);
    if (!json || report_decode(&rp, json, WALL, &e) != 0)
        fail_msg("%s: %s", text, err_text(&e));
    json_decref(json);
    (void)reports_take(&reports, audience_node(name), &rp, WALL);
}

static void set_labels(const char *name, const char *provider, const char *region)
{
    struct node *node = &audience_node(name)->spec;

    free(node->labels);
    node->labels = calloc(2, sizeof(*node->labels));
    assert_non_null(node->labels);
    node->n_labels = 1 + (region != NULL);
    (void)snprintf(node->labels[0].key, sizeof(node->labels[0].key), "provider");
    (void)snprintf(node->labels[0].value, sizeof(node->labels[0].value), "%s", provider);
    if (!region)
        return;
    (void)snprintf(node->labels[1].key, sizeof(node->labels[1].key), "region");
    (void)snprintf(node->labels[1].value, sizeof(node->labels[1].value), "%s", region);
}

static void expect(const char *expected)
{
    static struct nat_view view;
    json_t *json;
    char *text;

    nat_view_make(&view, audience_network());
    json = nat_view_encode(&view, &audience_network()->spec);
    text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6));
    assert_non_null(text);
    for (char *c = text; *c; c++)
        *c = *c == '"' ? '\'' : *c;
    assert_non_null(strstr(text, "'providers':["));
    if (strcmp(strstr(text, "["), expected) != 0)
        fail_msg("%s\nnot %s", text, expected);
    free(text);
    json_decref(json);
}

static void test_nothing_is_measured_yet(void **state)
{
    expect("[{'provider':'','region':'','nodes':3,'natted':0,'measured':0,"
           "'forgottenSeconds':null,'survivedSeconds':null}],'leftOut':0}");
}

/* By label, else by the cloud that the agent has found; a machine that is down is left out. */
static void test_by_provider(void **state)
{
    set_labels("a", "neo", "eu-1");
    set_labels("b", "neo", "eu-1");
    say("a", "{'node':{'nat':{'natted':true,'survivedMs':24000,'forgottenMs':28500}}}");
    say("b", "{'node':{'nat':{'natted':true,'survivedMs':28000,'forgottenMs':30000}}}");
    say("c", "{'node':{'fabric':{'kind':'efa','keys':[{'key':'aws-zone/use1-az4'}]},"
             "'nat':{'natted':false,'survivedMs':80000}}}");
    expect("[{'provider':'aws','region':'','nodes':1,'natted':0,'measured':1,"
           "'forgottenSeconds':null,'survivedSeconds':{'least':80.0,'most':80.0}},"
           "{'provider':'neo','region':'eu-1','nodes':2,'natted':2,'measured':2,"
           "'forgottenSeconds':{'least':28.5,'most':30.0},"
           "'survivedSeconds':{'least':24.0,'most':28.0}}],'leftOut':0}");
    audience_node("a")->reported->is_down = true;
    set_labels("b", "neo", NULL);
    set_labels("c", "other", NULL);
    expect("[{'provider':'neo','region':'','nodes':1,'natted':1,'measured':1,"
           "'forgottenSeconds':{'least':30.0,'most':30.0},"
           "'survivedSeconds':{'least':28.0,'most':28.0}},"
           "{'provider':'other','region':'','nodes':1,'natted':0,'measured':1,"
           "'forgottenSeconds':null,'survivedSeconds':{'least':80.0,'most':80.0}}],'leftOut':0}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_is_measured_yet, enter, leave),
        cmocka_unit_test_setup_teardown(test_by_provider, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
