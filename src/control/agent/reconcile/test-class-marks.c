/* test-class-marks.c - which packets are marked, and when the rules are there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/reconcile/filter_rules.h"
#include "base/text.h"
#include "mesh/config/wg_config.h"
#include "net/socket/socket.h"
#include "test/support/emulated.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

#define BEGIN "chain out {\ntype filter hook postrouting priority mangle;\n"
#define MEASURING                                                                                  \
    "oifname \"weft0\" tcp sport 51829 return\noifname \"weft0\" tcp dport 51829 return\n"
#define COLLECTIVES(family)                                                                        \
    "oifname \"weft0\" " family " dscp cs0 tcp sport 40000-50000 tcp dport 40000-50000 " family    \
    " dscp set af21\n"

static const struct local_ports ports = {.first = 40000, .last = 50000};

static const struct wg_config plain = {.rates = {.all = TRAFFIC_RATE_MIN}};
static const struct wg_config none = WG_CONFIG_NULL;

/* The hub's addresses, of both families, and nobody else's; a mark that is there stays. */
static void test_rules(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    struct str out = STR_NULL;

    class_marks_format(&s, "weft0", &ports, &out);
    assert_string_equal(str_text(&out),
        BEGIN "oifname \"weft0\" ip daddr { 10.42.0.1 } ip dscp cs0 ip dscp set cs6\n"
              "oifname \"weft0\" ip6 daddr { fd5a:1::1 } ip6 dscp cs0 ip6 dscp set cs6\n" //
        MEASURING COLLECTIVES("ip") COLLECTIVES("ip6") "}");
    str_deinit(&out);
    snapshot_deinit(&s);
}

/* Each of several hubs. */
static void test_two_hubs(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    struct object second = sample_node(3);
    struct str out = STR_NULL;

    second.node.hub = calloc(1, sizeof(*second.node.hub));
    assert_non_null(second.node.hub);
    sample_put(&s, second);
    class_marks_format(&s, "weft0", &ports, &out);
    assert_string_equal(str_text(&out),
        BEGIN "oifname \"weft0\" ip daddr { 10.42.0.1, 10.42.0.3 } ip dscp cs0 ip dscp set cs6\n"
              "oifname \"weft0\" ip6 daddr { fd5a:1::1, fd5a:1::3 } ip6 dscp cs0 ip6 dscp set "
              "cs6\n" MEASURING COLLECTIVES("ip") COLLECTIVES("ip6") "}");
    str_deinit(&out);
    snapshot_deinit(&s);
}

/* A network of which no hub is known: an empty set would be no rule that nft takes. */
static void test_no_hub(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    struct str out = STR_NULL;

    for (size_t i = 0; i < s.nodes.n; i++) {
        free(s.nodes.items[i]->node.hub);
        s.nodes.items[i]->node.hub = NULL;
    }
    class_marks_format(&s, "weft0", &ports, &out);
    assert_string_equal(str_text(&out), BEGIN MEASURING COLLECTIVES("ip") COLLECTIVES("ip6") "}");
    str_deinit(&out);
    snapshot_deinit(&s);
}

static void test_while_there_is_a_rate(void **state)
{
    struct netlink *nl = netns_need(state);
    struct class_marks cm = {.has_failed = false};
    struct snapshot s = sample_snapshot(4, 2);

    if (emulated_lacks("nf_tables"))
        skip();
    (void)nl;
    class_marks_apply(&cm, "weft0", &s, &none, SEC);
    assert_true(cm.table.is_removed);
    assert_null(cm.table.body);
    /* What cannot be put is said once, and again when it has worked in between. */
    class_marks_apply(&cm, "weft\"0", &s, &plain, SEC);
    assert_true(cm.has_failed);
    class_marks_apply(&cm, "weft0", &s, &plain, 2 * SEC);
    assert_false(cm.has_failed);
    assert_non_null(cm.table.body);
    assert_true(cm.table.put_at == 2 * SEC);
    /* They are put again when another program may have flushed them, and not in each pass. */
    class_marks_apply(&cm, "weft0", &s, &plain, 3 * SEC);
    assert_true(cm.table.put_at == 2 * SEC);
    class_marks_apply(&cm, "weft0", &s, &plain, 2 * SEC + KEPT_TABLE_PERIOD);
    assert_true(cm.table.put_at == 2 * SEC + KEPT_TABLE_PERIOD);
    class_marks_apply(&cm, "weft0", &s, &none, 70 * SEC);
    assert_null(cm.table.body);
    assert_true(cm.table.is_removed);
    class_marks_forget(&cm);
    snapshot_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_two_hubs),
        cmocka_unit_test(test_no_hub),
        cmocka_unit_test_setup_teardown(test_while_there_is_a_rate, netns_enter, netns_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
