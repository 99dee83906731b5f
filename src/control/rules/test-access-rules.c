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
#include "rules/access_table.h"
#include "base/err.h"
#include "base/text.h"
#include "mesh/object/rule.h"
#include "mesh/snapshot/snapshot.h"
#include "net/netlink/nft.h"
#include "test/support/emulated.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

static const struct job_ports no_jobs = {.n = 0};

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
    access_table_format(&out, "weft0", &s, &no_jobs, SEC);
    assert_true(has(&out, "set hubs_4 {\ntype ipv4_addr;\nelements = { 10.42.0.1 }\n}\n"));
    assert_true(has(&out, "counter pass_a { }\nchain in_a {\n"
                          "tcp dport 22-22 counter name \"pass_a\" accept\n"
                          "meta l4proto { icmp, ipv6-icmp } counter name \"pass_a\" accept\n}\n"));
    assert_true(has(&out, "chain out_b {\naccept\n}\n"));
    assert_true(
        has(&out, "ip daddr 10.42.0.2 ip saddr 10.42.0.0/16 ip saddr != @hubs_4 jump in_a\n"));
    assert_true(has(&out, "ip daddr 10.9.0.0/24 jump out_b\n"));
    /* Nobody may come to it by the second. It is a member, so it may go by the first, to itself. */
    assert_false(has(&out, "jump in_b"));
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
    access_table_format(&out, "weft0", &s, &no_jobs, SEC);
    assert_false(has(&out, "in_a"));
    assert_false(has(&out, "out_a"));
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
    access_rules_apply(&ar, "weft0", NULL, &s, SEC);
    assert_true(ar.table.is_removed);
    put_rule(&s, "a", "{\"from\":[\"members\"],\"to\":[\"members\",\"hub\"],\"allow\":[\"any\"]}");
    access_rules_apply(&ar, "weft0", NULL, &s, 2 * SEC);
    if (ar.fault.code != 0)
        fail_msg("%s", err_text(&ar.fault));
    assert_int_equal(ar.table.put_at, 2 * SEC);
    access_rules_apply(&ar, "weft0", NULL, &s, 3 * SEC);
    assert_int_equal(ar.table.put_at, 2 * SEC);
    assert_int_equal(snapshot_delete(&s, &rule_kind, "a", NULL), 0);
    access_rules_apply(&ar, "weft0", NULL, &s, 4 * SEC);
    assert_true(ar.table.is_removed);
    s.network.isolation = ISOLATION_STRICT;
    access_rules_apply(&ar, "weft0", NULL, &s, 5 * SEC);
    assert_int_equal(ar.fault.code, 0);
    assert_int_equal(ar.table.put_at, 5 * SEC);
    access_rules_deinit(&ar);
    snapshot_deinit(&s);
}

/* The changes between two tables, and whether they are enough. */
static void check_changes(const char *before, const char *after, const char *wanted, bool is_enough)
{
    struct str out = STR_NULL;

    assert_int_equal(kept_table_changes("t", before, after, &out), is_enough);
    if (wanted)
        assert_string_equal(str_text(&out), wanted);
    str_deinit(&out);
}

static void test_what_differs(void **state)
{
    static const char a[] = "set s {\ntype ipv4_addr;\n}\ncounter c { }\nchain x {\naccept\n}\n"
                            "chain y {\njump x\n}\n";

    check_changes(a, "set s {\ntype ipv4_addr;\n}\nchain y {\ndrop\n}\n",
        "flush chain inet t y\ndelete chain inet t x\ndelete counter inet t c\n"
        "table inet t {\nchain y {\ndrop\n}\n}\n",
        true);
    check_changes("chain y {\ndrop\n}\n",
        "counter c { }\nchain x {\naccept\n}\nchain y {\njump x\n}\n",
        "flush chain inet t y\ntable inet t {\ncounter c { }\nchain x {\naccept\n}\n"
        "chain y {\njump x\n}\n}\n",
        true);
    /* A name that begins like another one. */
    check_changes("chain x {\n}\nchain xy {\n}\n", "chain xy {\ndrop\n}\nchain x {\n}\n",
        "flush chain inet t xy\ntable inet t {\nchain xy {\ndrop\n}\n}\n", true);
    check_changes("", a, NULL, false);
    check_changes(a, "", NULL, false);
    check_changes("chain x", "set", NULL, false);
}

/* Adds an object of the table as the kernel has it, without what it numbers it by. */
static void list(const char *what, struct str *ret)
{
    static const char handle[] = "\"handle\":";
    json_t *json = NULL;
    struct err e = ERR_NULL;
    char *text;
    char *at;

    if (nft_list("inet", "weft_access_weft0", &what, 1, &json, &e) != 0)
        fail_msg("%s", err_text(&e));
    text = json_dumps(json, JSON_COMPACT);
    for (at = text; (at = strstr(at, handle)) != NULL;) {
        at += sizeof(handle) - 1;
        memmove(at, at + strspn(at, "0123456789"), strlen(at + strspn(at, "0123456789")) + 1);
    }
    str_add(ret, text);
    free(text);
    json_decref(json);
}

static void list_all(struct str *ret)
{
    static const char *const what[] = {"chain in", "chain out", "chain forward", "chain in_b"};
    char part[16];

    for (unsigned i = 0; i < sizeof(what) / sizeof(*what); i++)
        list(what[i], ret);
    for (unsigned i = 0; i < 64; i++) {
        (void)snprintf(part, sizeof(part), "chain %ss%u", i % 2 == 0 ? "in" : "out", i / 2);
        list(part, ret);
    }
}

/* A change of one rule makes the table that one put whole would be; after a flush by somebody else
 * it is put whole at once. */
static void test_one_rule_changes(void **state)
{
    static const char *const specs[] = {
        "{\"from\":[\"members\"],\"to\":[\"members\"],\"allow\":[\"tcp/22\"]}",
        "{\"from\":[\"role=a\"],\"to\":[\"members\",\"hub\"],\"allow\":[\"udp/9\",\"icmp\"]}",
    };
    struct netlink *nl = netns_need(state);
    struct snapshot s = sample_snapshot(4, 2);
    struct access_rules ar = {.fault = ERR_NULL};
    nsec_t now = SEC;

    if (emulated_lacks("nf_tables"))
        skip();
    (void)nl;
    put_rule(&s, "a", specs[0]);
    put_rule(&s, "b", specs[1]);
    access_rules_apply(&ar, "weft0", NULL, &s, now);
    for (unsigned i = 0; i < 6; i++) {
        struct str changed = STR_NULL;
        struct str whole = STR_NULL;
        struct access_rules other = {.fault = ERR_NULL};

        if (i == 3)
            assert_int_equal(snapshot_delete(&s, &rule_kind, "a", NULL), 0);
        else if (i == 4)
            put_rule(&s, "a", specs[1]);
        else
            put_rule(&s, i == 0 ? "c" : "b", specs[i % 2]);
        access_rules_apply(&ar, "weft0", NULL, &s, ++now);
        assert_int_equal(ar.fault.code, 0);
        assert_int_equal(ar.table.put_at, SEC);
        list_all(&changed);
        access_rules_apply(&other, "weft0", NULL, &s, now);
        assert_int_equal(other.fault.code, 0);
        list_all(&whole);
        assert_non_null(strstr(str_text(&whole), "in_b"));
        assert_string_equal(str_text(&changed), str_text(&whole));
        str_deinit(&changed);
        str_deinit(&whole);
        access_rules_deinit(&other);
    }
    access_rules_remove("weft0");
    put_rule(&s, "d", specs[0]);
    access_rules_apply(&ar, "weft0", NULL, &s, ++now);
    assert_int_equal(ar.fault.code, 0);
    assert_int_equal(ar.table.put_at, now);
    access_rules_deinit(&ar);
    snapshot_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_node_lets_pass),
        cmocka_unit_test(test_what_concerns_others),
        cmocka_unit_test(test_what_differs),
        cmocka_unit_test_setup_teardown(test_one_rule_changes, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_when_there_is_a_table, netns_enter, netns_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
