/* test-hosts.c - the block of a network in a hosts file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "mesh/names/hosts.h"
#include "test/support/sample_mesh.h"

#define OTHERS "127.0.0.1\tlocalhost\n::1 ip6-localhost\n"
#define OWNER  "default/n2/01000700"
#define BLOCK  "10.42.0.2\tn2.default.weft n2\n"
#define BEGIN  "# weft begin " OWNER "\n"
#define END    "# weft end " OWNER "\n"
#define WHOLE  BEGIN BLOCK END

static void check(const char *old, const char *block, const char *expected)
{
    struct str out = STR_NULL;

    hosts_replace(&out, old, strlen(old), OWNER, block);
    assert_string_equal(str_text(&out), expected);
    str_deinit(&out);
}

static void test_block(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    char owner[HOSTS_OWNER_MAX];
    struct str out = STR_NULL;
    size_t n;
    struct hosts_extra *extras = hosts_list_extras(&s, &n);

    assert_int_equal(n, 3);
    hosts_add_block(&out, &s, extras, n, true);
    assert_string_equal(str_text(&out),
        "10.42.0.1\thub.default.weft hub\nfd5a:1::1\thub.default.weft hub\n"
        "10.42.0.2\tn2.default.weft n2\nfd5a:1::2\tn2.default.weft n2\n"
        "10.42.0.3\tn3.default.weft n3\nfd5a:1::3\tn3.default.weft n3\n");
    str_deinit(&out);
    extras[2].verdict = HOSTS_ELSEWHERE;
    hosts_add_block(&out, &s, extras, n, false);
    assert_string_equal(str_text(&out),
        "10.42.0.1\thub.default.weft hub\n10.42.0.2\tn2.default.weft n2\n"
        "10.42.0.3\tn3.default.weft\n");
    assert_string_equal(hosts_owner(&s, owner), OWNER);
    free(extras);
    str_deinit(&out);
    snapshot_deinit(&s);
}

/* Number @n says that its machine is called so, or that the node is. */
static void put_node(struct snapshot *s, unsigned n, const char *name, const char *hostname)
{
    struct object o = sample_node(n);

    if (name)
        (void)snprintf(o.node.meta.name, sizeof(o.node.meta.name), "%s", name);
    o.node.hostname = hostname ? strdup(hostname) : NULL;
    sample_put(s, o);
}

static enum hosts_verdict verdict_on(
    const struct hosts_extra *extras, size_t n, const char *name, bool is_hostname)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(extras[i].name, name) == 0 && extras[i].is_hostname == is_hostname)
            return extras[i].verdict;
    fail_msg("\"%s\" is none of them", name);
    return HOSTS_VERDICT_N;
}

/* Of several hubs the one that took over last is found under one name by all. */
static void test_rendezvous(void **state)
{
    struct snapshot s = sample_snapshot(2, 2);
    struct str out = STR_NULL;

    for (unsigned n = 8; n <= 9; n++) {
        struct object hub = sample_node(1);

        hub.node.key = sample_key(n);
        hub.node.address4.b[15] = (uint8_t)n;
        hub.node.hub->rendezvous_epoch = 17 - n;
        (void)snprintf(hub.node.meta.name, sizeof(hub.node.meta.name), "hub-%u", n);
        sample_put(&s, hub);
    }
    hosts_add_block(&out, &s, NULL, 0, false);
    assert_string_equal(str_text(&out),
        "10.42.0.1\thub.default.weft\n"
        "10.42.0.8\thub-8.default.weft rendezvous.default.weft\n"
        "10.42.0.9\thub-9.default.weft\n10.42.0.2\tn2.default.weft\n");
    str_deinit(&out);
    put_node(&s, 10, "rendezvous", NULL);
    hosts_add_block(&out, &s, NULL, 0, false);
    assert_null(strstr(str_text(&out), "hub-8.default.weft rendezvous"));
    str_deinit(&out);
    snapshot_deinit(&s);
}

/* What members may not take from each other, nor from anybody else. */
static void test_extras(void **state)
{
    static const char file[] =
        "10.0.0.1\tother A1 # n2\n" BEGIN "1.2.3.4\tn4.default.weft n4\n192.0.2.1 n5\n" END
        "# weft begin default/n2\n10.42.0.6\tn6.default.weft n6\n# weft end default/n2\n";
    struct snapshot s = sample_snapshot(7, 2);
    struct hosts_extra *extras;
    char words[128];
    size_t n;

    put_node(&s, 2, NULL, "a1");
    put_node(&s, 3, NULL, "n2");
    put_node(&s, 4, NULL, "twice");
    put_node(&s, 5, NULL, "twice");
    put_node(&s, 6, NULL, "registry");
    put_node(&s, 7, NULL, "n7");
    put_node(&s, 8, "minio", NULL);
    extras = hosts_list_extras(&s, &n);
    assert_int_equal(n, 8 + 5);
    assert_int_equal(verdict_on(extras, n, "hub", false), HOSTS_KEPT);
    assert_int_equal(verdict_on(extras, n, "n2", false), HOSTS_KEPT);
    assert_int_equal(verdict_on(extras, n, "a1", true), HOSTS_KEPT);
    assert_int_equal(verdict_on(extras, n, "n2", true), HOSTS_CLAIMED);
    assert_int_equal(verdict_on(extras, n, "twice", true), HOSTS_CLAIMED);
    assert_int_equal(verdict_on(extras, n, "registry", true), HOSTS_RESERVED);
    assert_int_equal(verdict_on(extras, n, "minio", false), HOSTS_RESERVED);
    /* What the rest of the file has, in whatever case; what is in a comment does not count. */
    assert_true(hosts_mark_taken(extras, n, file, sizeof(file) - 1, OWNER));
    assert_int_equal(verdict_on(extras, n, "a1", true), HOSTS_IN_FILE);
    assert_int_equal(verdict_on(extras, n, "n2", false), HOSTS_KEPT);
    assert_int_equal(verdict_on(extras, n, "n4", false), HOSTS_KEPT);
    assert_int_equal(verdict_on(extras, n, "n5", false), HOSTS_IN_FILE);
    assert_int_equal(verdict_on(extras, n, "n6", false), HOSTS_KEPT);
    assert_string_equal(hosts_describe(&extras[0], words), "");
    for (size_t i = 0; i < n; i++)
        assert_int_equal(
            hosts_describe(&extras[i], words)[0] == '\0', extras[i].verdict == HOSTS_KEPT);
    free(extras);
    snapshot_deinit(&s);
}

/* A file whose other lines have a name keeps it: also another network's of this machine. */
static void test_others_come_first(void **state)
{
    check("127.0.1.1 N2\n", BLOCK "10.42.0.3\tn3.default.weft n3 a1\n",
        "127.0.1.1 N2\n" BEGIN
        "10.42.0.2\tn2.default.weft\n10.42.0.3\tn3.default.weft n3 a1\n" END);
    check("# weft begin default/n2/ffffffff\n" BLOCK "# weft end default/n2/ffffffff\n", BLOCK,
        "# weft begin default/n2/ffffffff\n" BLOCK "# weft end default/n2/ffffffff\n" BEGIN
        "10.42.0.2\tn2.default.weft\n" END);
    check("# weft begin default/n2/ffffffff\n" BLOCK "# weft end default/n2/ffffffff\n" BEGIN
          "10.42.0.2\tn2.default.weft\n" END,
        NULL, "# weft begin default/n2/ffffffff\n" BLOCK "# weft end default/n2/ffffffff\n");
    /* What an older version has left goes. */
    check("# weft begin default/n2\n" BLOCK "# weft end default/n2\n" OTHERS, BLOCK, OTHERS WHOLE);
    check("# weft begin default/n2\n" BLOCK "# weft end default/n2\n" OTHERS, NULL, OTHERS);
}

static void test_replace(void **state)
{
    check(OTHERS, BLOCK, OTHERS WHOLE);
    check("", BLOCK, WHOLE);
    check("1.2.3.4 no-newline", BLOCK, "1.2.3.4 no-newline\n" WHOLE);
    check(OTHERS BEGIN END "more\n", BLOCK, OTHERS WHOLE "more\n");
    check(OTHERS WHOLE "more\n", NULL, OTHERS "more\n");
    check(OTHERS, NULL, OTHERS);
    /* Another node's block, and another network's. */
    check("# weft begin default/n22\nx\n", NULL, "# weft begin default/n22\nx\n");
    check("# weft begin other/n2\nx\n# weft end other/n2\n", BLOCK,
        "# weft begin other/n2\nx\n# weft end other/n2\n" WHOLE);
}

/* Somebody's editor has damaged it: what is not ours stays. */
static void test_damaged(void **state)
{
    check(BEGIN BLOCK "192.168.1.1 mine\n", BLOCK, WHOLE "192.168.1.1 mine\n");
    check(BEGIN BLOCK, NULL, "");
    check(BEGIN "1.1.1.1 mine\n" BLOCK END "more\n", BLOCK, WHOLE "1.1.1.1 mine\nmore\n");
    check(WHOLE "middle\n" WHOLE, BLOCK, WHOLE "middle\n");
    check(END, NULL, END);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_extras),
        cmocka_unit_test(test_rendezvous),
        cmocka_unit_test(test_others_come_first),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
