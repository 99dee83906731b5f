/*
 * test-filter-rules.c - what the packet filter is told, and when.
 *
 * It is this program's own, which writes down what it is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/reconcile/filter_rules.h"
#include "base/text.h"
#include "mesh/config/wg_config.h"
#include "net/netlink/nft.h"
#include "net/socket/socket.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

#define CLAMP                                                                                      \
    "inet weft_mss_weft0 {chain forward {\ntype filter hook forward priority mangle;\n"            \
    "oifname \"weft0\" tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu\n"           \
    "iifname \"weft0\" tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu\n}}\n"

static struct str told; /* since it was asked for last */
static bool refuses;

int nft_replace_table(const char *family, const char *table, const char *body, struct err *e)
{
    if (body)
        str_addf(&told, "%s %s {%s}\n", family, table, body);
    else
        str_addf(&told, "no %s %s\n", family, table);
    return refuses ? err_set(e, -EINVAL, "it does not like it") : 0;
}

/* Nothing is counted here. */
int nft_list(const char *family, const char *table, const char *const *what, size_t n, json_t **ret,
    struct err *e)
{
    return err_set(e, -ENOENT, "there is no table %s", table);
}

/* What differs is not taken, so that the table is put whole. */
int nft_run(const char *commands, struct err *e)
{
    return err_set(e, -EINVAL, "only whole tables are taken here");
}

int nft_each_counter(
    const char *family, const char *table, nft_counter_fn fn, void *ctx, struct err *e)
{
    return 0;
}

static void assert_told(const char *expected)
{
    assert_string_equal(str_text(&told), expected);
    str_deinit(&told);
    told = (struct str)STR_NULL;
}

/* ---- the log --------------------------------------------------------------------------------- */

static int terminal;
static int file;

static int begin_log(void **state)
{
    refuses = false;
    terminal = dup(STDERR_FILENO);
    file = memfd_create("log", 0);
    return file < 0 || dup2(file, STDERR_FILENO) < 0 ? -1 : 0;
}

static int end_log(void **state)
{
    (void)dup2(terminal, STDERR_FILENO);
    (void)close(terminal);
    return close(file);
}

/* What was logged since this was asked for last. */
static void assert_logged(const char *expected)
{
    char buf[1024];
    ssize_t n = pread(file, buf, sizeof(buf) - 1, 0);

    assert_true(n >= 0);
    buf[n] = '\0';
    assert_string_equal(buf, expected);
    assert_int_equal(ftruncate(file, 0), 0);
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
}

/* ---- what is forwarded ----------------------------------------------------------------------- */

static void apply(struct forward_rules *fr, const char *interface, const char *routes, nsec_t now)
{
    struct subnets s = SUBNETS_NULL;

    if (routes)
        assert_int_equal(subnets_parse(&s, routes, NULL), 0);
    forward_rules_apply(fr, interface, &s, routes != NULL, true, now);
}

static void test_rules_of_a_node_that_forwards_nothing(void **state)
{
    struct forward_rules fr = {.clamped_at = 0};

    apply(&fr, "weft0", NULL, SEC);
    assert_told(CLAMP "no inet weft_route_weft0\n");
    assert_int_equal(fr.clamped_at, SEC);
    apply(&fr, "weft0", NULL, 61 * SEC - 1);
    assert_told("");
    apply(&fr, "weft0", NULL, 61 * SEC);
    assert_told(CLAMP);
    assert_logged("");
    assert_false(fr.cannot_clamp);
}

static void test_rules_of_a_router(void **state)
{
    struct forward_rules fr = {.clamped_at = SEC};
    struct str guard = STR_NULL;
    struct subnets s = SUBNETS_NULL;

    assert_int_equal(subnets_parse(&s, "10.9.0.0/24,fd09::/64", NULL), 0);
    str_add(&guard, "inet weft_route_weft0 {");
    route_guard_format(&guard, "weft0", &s, true);
    str_add(&guard, "}\n");
    assert_non_null(
        strstr(str_text(&guard), "srcnat;\niifname \"weft0\" ip daddr { 10.9.0.0/24 } masquerade\n"
                                 "iifname \"weft0\" ip6 daddr { fd09::/64 } masquerade\n}\n"));
    apply(&fr, "weft0", "10.9.0.0/24,fd09::/64", 2 * SEC);
    assert_told(str_text(&guard));
    apply(&fr, "weft0", "10.9.0.0/24,fd09::/64", 3 * SEC);
    assert_told("");
    assert_int_equal(fr.guarded_at, 2 * SEC);
    apply(&fr, "weft0", NULL, 4 * SEC);
    assert_told("no inet weft_route_weft0\n");
    assert_logged("");
    str_deinit(&guard);
}

/* It is said once, and again after it has worked. */
static void test_rules_that_are_refused(void **state)
{
    static const char not_limited[] =
        "warning: weft: what is forwarded to the subnets behind this node is not limited: it does "
        "not like it\n";
    struct forward_rules fr = {.clamped_at = 0};

    refuses = true;
    apply(&fr, "weft0", NULL, SEC);
    assert_logged("info: weft: the segment size of connections that are forwarded is not clamped: "
                  "it does not like it\n");
    assert_true(fr.cannot_clamp);
    apply(&fr, "weft0", "10.9.0.0/24", 2 * SEC);
    assert_logged(not_limited);
    assert_string_equal(fr.guard_fault.text, "it does not like it");
    apply(&fr, "weft0", "10.9.0.0/24", 70 * SEC);
    assert_logged("");
    refuses = false;
    apply(&fr, "weft0", "10.9.0.0/24", 140 * SEC);
    assert_int_equal(fr.guard_fault.code, 0);
    refuses = true;
    apply(&fr, "weft0", "10.9.0.0/24", 210 * SEC);
    assert_logged(not_limited);
    str_deinit(&told);
    told = (struct str)STR_NULL;
}

/* The name of an interface becomes a part of the rules. */
static void test_interfaces_that_the_filter_takes(void **state)
{
    struct forward_rules fr = {.clamped_at = SEC};

    apply(&fr, "a.b_c-d", NULL, SEC);
    assert_told("no inet weft_route_a.b_c-d\n");
    apply(&fr, "we\"ft0", "10.9.0.0/24", SEC);
    assert_told("");
    assert_string_equal(fr.guard_fault.text,
        "the packet filter takes no interface \"we\"ft0\", only letters, digits, '_', '.', '-'");
    assert_int_equal(fr.guard_fault.code, -EINVAL);
}

static void test_all_rules_are_removed(void **state)
{
    filter_rules_remove("weft0");
    assert_told("no inet weft_mss_weft0\nno inet weft_route_weft0\nno inet weft_class_weft0\n"
                "no inet weft_access_weft0\n");
}

/* ---- marks by class -------------------------------------------------------------------------- */

static const struct wg_config rated = {.rates = {.all = TRAFFIC_RATE_MIN}};
static const struct wg_config free_of_rates = WG_CONFIG_NULL;

/* They are those of the snapshot, and of the kernel's range of ports. */
static void assert_told_marks(const struct snapshot *s)
{
    struct local_ports ports = local_ports_read();
    struct str out = STR_NULL;

    str_add(&out, "inet weft_class_weft0 {");
    class_marks_format(s, "weft0", &ports, &out);
    str_add(&out, "}\n");
    assert_told(str_text(&out));
    str_deinit(&out);
}

static void test_when_marks_are_put(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    struct snapshot without = sample_snapshot(4, 2);
    struct class_marks cm = {.table.body = NULL};

    free(without.nodes.items[0]->node.hub);
    without.nodes.items[0]->node.hub = NULL;
    class_marks_apply(&cm, "weft0", &s, &rated, SEC);
    assert_told_marks(&s);
    assert_int_equal(cm.table.put_at, SEC);
    class_marks_apply(&cm, "weft0", &s, &rated, SEC + KEPT_TABLE_PERIOD - 1);
    assert_told("");
    /* Others are not waited with. */
    class_marks_apply(&cm, "weft0", &without, &rated, SEC + KEPT_TABLE_PERIOD - 1);
    assert_told_marks(&without);
    class_marks_apply(&cm, "weft0", &without, &rated, SEC + 2 * KEPT_TABLE_PERIOD - 1);
    assert_told_marks(&without);
    class_marks_forget(&cm);
    assert_told("");
    class_marks_apply(&cm, "weft0", &without, &rated, SEC + 2 * KEPT_TABLE_PERIOD);
    assert_told_marks(&without);
    assert_logged("");
    class_marks_forget(&cm);
    snapshot_deinit(&s);
    snapshot_deinit(&without);
}

/* What an earlier run has left is removed; one that cannot be is tried again. */
static void test_when_marks_are_removed(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    struct class_marks cm = {.table.body = NULL};

    for (unsigned i = 0; i < 2; i++) {
        refuses = i == 0;
        class_marks_apply(&cm, "weft0", &s, &free_of_rates, SEC);
        assert_told("no inet weft_class_weft0\n");
        assert_int_equal(cm.table.is_removed, !refuses);
    }
    class_marks_apply(&cm, "weft0", &s, &free_of_rates, 2 * SEC);
    assert_told("");
    class_marks_apply(&cm, "weft0", &s, &rated, 3 * SEC);
    assert_told_marks(&s);
    assert_false(cm.table.is_removed);
    class_marks_apply(&cm, "weft0", &s, &free_of_rates, 4 * SEC);
    assert_told("no inet weft_class_weft0\n");
    assert_true(cm.table.is_removed);
    assert_null(cm.table.body);
    class_marks_forget(&cm);
    assert_false(cm.table.is_removed);
    snapshot_deinit(&s);
}

static void test_marks_that_are_refused(void **state)
{
    static const char words[] =
        "info: weft: what other programs send to the hub, and what a job's processes send each "
        "other, has no mark that lets it go first: it does not like it\n";
    struct snapshot s = sample_snapshot(4, 2);
    struct class_marks cm = {.table.body = NULL};

    refuses = true;
    class_marks_apply(&cm, "weft0", &s, &rated, SEC);
    assert_told_marks(&s);
    assert_logged(words);
    assert_true(cm.has_failed);
    class_marks_apply(&cm, "weft0", &s, &rated, 2 * SEC);
    assert_told("");
    class_marks_apply(&cm, "weft0", &s, &rated, SEC + KEPT_TABLE_PERIOD);
    assert_told_marks(&s);
    assert_logged("");
    refuses = false;
    class_marks_apply(&cm, "weft0", &s, &rated, SEC + 2 * KEPT_TABLE_PERIOD);
    assert_told_marks(&s);
    assert_false(cm.has_failed);
    refuses = true;
    class_marks_apply(&cm, "weft0", &s, &rated, SEC + 3 * KEPT_TABLE_PERIOD);
    assert_told_marks(&s);
    assert_logged(words);
    class_marks_forget(&cm);
    snapshot_deinit(&s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_log, end_log)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rules_of_a_node_that_forwards_nothing),
        TEST(test_rules_of_a_router),
        TEST(test_rules_that_are_refused),
        TEST(test_interfaces_that_the_filter_takes),
        TEST(test_all_rules_are_removed),
        TEST(test_when_marks_are_put),
        TEST(test_when_marks_are_removed),
        TEST(test_marks_that_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
