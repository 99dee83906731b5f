/* test-access-rules.c - what a network's rules become in the packet filter, and that it takes them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rules/access_rules.h"
#include "base/err.h"
#include "base/text.h"
#include "mesh/object/rule.h"
#include "mesh/snapshot/snapshot.h"
#include "test/support/emulated.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

static void put_rule(struct snapshot *s, const char *name, const char *spec)
{
    json_t *json = json_pack("{s:s, s:{s:s, s:s}, s:o}", "kind", "Rule", "metadata", "name", name,
        "network", "default", "spec", json_loads(spec, 0, NULL));
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;

    if (object_decode(&o, json, OBJECT_STRICT, &e) != 0)
        fail_msg("%s", err_text(&e));
    json_decref(json);
    sample_put(s, o);
}

static bool has(const struct str *out, const char *text)
{
    return strstr(str_text(out), text) != NULL;
}

/* Of 10.42.0.2, whose rules these are; the hub is .1. */
static void test_what_a_node_lets_pass(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    struct str out = STR_NULL;
    char spec[256];

    (void)snprintf(spec, sizeof(spec),
        "{\"from\":[\"members\"],\"to\":[\"node:%s\"],\"allow\":[\"tcp/22\",\"icmp\"]}", s.self);
    put_rule(&s, "a", spec);
    (void)snprintf(spec, sizeof(spec),
        "{\"from\":[\"node:%s\"],\"to\":[\"10.9.0.0/24\"],\"allow\":[\"any\"]}", s.self);
    put_rule(&s, "b", spec);
    access_rules_format(&out, "weft0", &s);
    assert_true(has(&out, "set hubs_4 {\ntype ipv4_addr;\nelements = { 10.42.0.1 }\n}\n"));
    assert_true(has(&out, "counter pass_a { }\nchain in0 {\n"
                          "tcp dport 22-22 counter name \"pass_a\" accept\n"
                          "meta l4proto { icmp, ipv6-icmp } counter name \"pass_a\" accept\n}\n"));
    assert_true(has(&out, "chain out1 {\naccept\n}\n"));
    assert_true(has(&out, "ip daddr 10.42.0.2 ip saddr 10.42.0.0/16 jump in0\n"));
    assert_true(has(&out, "ip daddr 10.9.0.0/24 jump out1\n"));
    /* Nobody may come to it by the second. It is a member, so it may go by the first, to itself. */
    assert_false(has(&out, "jump in1"));
    assert_false(has(&out, "pass_b"));
    assert_true(has(&out, "ip daddr 10.42.0.1 tcp dport "));
    str_deinit(&out);
    snapshot_deinit(&s);
}

/* Of two nodes that are none of its business a rule costs this one nothing. */
static void test_what_concerns_others(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    struct str out = STR_NULL;

    put_rule(&s, "a", "{\"from\":[\"role=a\"],\"to\":[\"role=b\"],\"allow\":[\"any\"]}");
    access_rules_format(&out, "weft0", &s);
    assert_false(has(&out, "jump"));
    assert_false(has(&out, "set g0_4"));
    str_deinit(&out);
    snapshot_deinit(&s);
}

static void test_when_there_is_a_table(void **state)
{
    struct netlink *nl = netns_need(state);
    struct snapshot s = sample_snapshot(4, 2);
    struct access_rules ar = {.fault = ERR_NULL};

    if (emulated_lacks("nf_tables"))
        skip();
    (void)nl;
    access_rules_apply(&ar, "weft0", &s, SEC);
    assert_true(ar.table.is_removed);
    put_rule(&s, "a", "{\"from\":[\"members\"],\"to\":[\"members\",\"hub\"],\"allow\":[\"any\"]}");
    access_rules_apply(&ar, "weft0", &s, 2 * SEC);
    if (ar.fault.code != 0)
        fail_msg("%s", err_text(&ar.fault));
    assert_int_equal(ar.table.put_at, 2 * SEC);
    access_rules_apply(&ar, "weft0", &s, 3 * SEC);
    assert_int_equal(ar.table.put_at, 2 * SEC);
    assert_int_equal(snapshot_delete(&s, &rule_kind, "a", NULL), 0);
    access_rules_apply(&ar, "weft0", &s, 4 * SEC);
    assert_true(ar.table.is_removed);
    s.network.isolation = ISOLATION_STRICT;
    access_rules_apply(&ar, "weft0", &s, 5 * SEC);
    assert_int_equal(ar.fault.code, 0);
    assert_int_equal(ar.table.put_at, 5 * SEC);
    access_rules_deinit(&ar);
    snapshot_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_node_lets_pass),
        cmocka_unit_test(test_what_concerns_others),
        cmocka_unit_test_setup_teardown(test_when_there_is_a_table, netns_enter, netns_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
