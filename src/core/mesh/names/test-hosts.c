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

/* An owner that names no hub has no older form: its own block is all that is replaced. */
static void test_an_owner_without_a_hub(void **state)
{
    struct str out = STR_NULL;
    static const char old[] =
        OTHERS "# weft begin default/n2\nold\n# weft end default/n2\n# weft begin default\n";

    hosts_replace(&out, old, sizeof(old) - 1, "default/n2", BLOCK);
    assert_string_equal(str_text(&out), OTHERS
        "# weft begin default/n2\n" BLOCK "# weft end default/n2\nold\n# weft begin default\n");
    str_deinit(&out);
}

/* Somebody's editor has damaged it: what is not ours stays. */
static void test_damaged(void **state)
{
    check(BEGIN BLOCK "192.168.1.1 mine\n", BLOCK, WHOLE "192.168.1.1 mine\n");
    check(BEGIN BLOCK, NULL, "");
    check(BEGIN "1.1.1.1 mine\n" BLOCK END "more\n", BLOCK, WHOLE "1.1.1.1 mine\nmore\n");
    check(WHOLE "middle\n" WHOLE, BLOCK, WHOLE "middle\n");
    check(END, NULL, END);
    check("", NULL, "");
    check("x", NULL, "x");
}

/* A block that has lost its end holds what could be of a node of that network, and no more. */
static void test_lines_of_a_block_without_end(void **state)
{
    static const struct {
        const char *line;
        bool is_ours;
    } cases[] = {
        {"10.42.0.2\ta.default.weft\n", true},
        {"10.42.0.2\ta.default.weft b\n", true},
        {"10.42.0.2\tn2.default.weft", true},
        {"10.42.0.2\t.default.weft\n", false},
        {"10.42.0.2\tdefault.weft\n", false},
        {"10.42.0.2\tweft\n", false},
        {"10.42.0.2\tn2.default.wefx\n", false},
        {"10.42.0.2\tn2.default-weft\n", false},
        {"10.42.0.2\tn2.defaulx.weft\n", false},
        {"10.42.0.2\tn2-default.weft\n", false},
        {"10.42.0.2 n2.default.weft\n", false},
        {"10.42.0.2\tb n2.default.weft\n", false},
        {"# a remark\n", false},
        {"\n", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char old[256];

        (void)snprintf(old, sizeof(old), BEGIN BLOCK "%s", cases[i].line);
        check(old, NULL, cases[i].is_ours ? "" : cases[i].line);
    }
    /* The next block of the same owner ends it, too. */
    check(BEGIN "mine\n" WHOLE, NULL, "mine\n");
}

/* A name is another one's only where all of it is the same, whatever its case. */
static void test_names_that_begin_alike(void **state)
{
    static const char *const names[] = {"n", "n2", "N22", "n222", "m2", "o2"};
    static const char mixed[] = "1.1.1.1 z n222 y n\n1.1.1.2 x w N22 v a\n1.1.1.3 b n2\n";
    struct hosts_extra extras[6] = {{.name = NULL}};

    for (size_t i = 0; i < 6; i++)
        extras[i] = (struct hosts_extra){.name = names[i], .verdict = HOSTS_KEPT};
    extras[5].verdict = HOSTS_CLAIMED;
    extras[4].verdict = HOSTS_RESERVED;
    assert_true(hosts_mark_taken(extras, 6, "1.1.1.1 n22 o2 m2#n\n", 20, OWNER));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(extras[i].verdict, i == 2 ? HOSTS_IN_FILE : HOSTS_KEPT);
    assert_int_equal(extras[4].verdict, HOSTS_RESERVED);
    assert_int_equal(extras[5].verdict, HOSTS_CLAIMED);
    assert_true(hosts_mark_taken(extras, 6, "", 0, OWNER));
    /* The address of a line is none of its names. */
    assert_true(hosts_mark_taken(extras, 6, "n2\tn222\r\n\n", 11, OWNER));
    assert_int_equal(extras[1].verdict, HOSTS_KEPT);
    assert_int_equal(extras[3].verdict, HOSTS_IN_FILE);
    /* In whatever order they stand there. */
    for (size_t i = 0; i < 4; i++)
        extras[i].verdict = HOSTS_KEPT;
    assert_true(hosts_mark_taken(extras, 6, mixed, sizeof(mixed) - 1, OWNER));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(extras[i].verdict, HOSTS_IN_FILE);
}

static void test_words_for_each_verdict(void **state)
{
    static const char *const words[HOSTS_VERDICT_N] = {
        [HOSTS_KEPT] = "",
        [HOSTS_RESERVED] = "the name is reserved",
        [HOSTS_CLAIMED] = "it is the name of another node or of its machine, too",
        [HOSTS_IN_FILE] = "another line of the hosts file has it",
        [HOSTS_ELSEWHERE] = "this machine's name server knows it",
        [HOSTS_PENDING] = "this machine's resolver is being asked whether it knows it",
    };
    struct hosts_extra x = {.name = "a"};
    char buf[128];

    for (unsigned i = 0; i < HOSTS_VERDICT_N; i++) {
        x.verdict = i;
        assert_string_equal(hosts_describe(&x, buf), words[i]);
    }
    assert_int_equal(ip_addr_parse(&x.elsewhere, "192.0.2.7", NULL), 0);
    assert_string_equal(hosts_describe(&x, buf), words[HOSTS_PENDING]);
    x.verdict = HOSTS_ELSEWHERE;
    assert_string_equal(hosts_describe(&x, buf), "this machine's resolver leads it to 192.0.2.7");
}

/* The name "hub" is a hub's alone, and a hub may have no other reserved one. */
static void test_reserved_names_of_hubs(void **state)
{
    struct snapshot s = sample_snapshot(2, 2);
    struct object hub = sample_node(1);
    struct hosts_extra *extras;
    size_t n;

    hub.node.key = sample_key(9);
    (void)snprintf(hub.node.meta.name, sizeof(hub.node.meta.name), "minio");
    sample_put(&s, hub);
    extras = hosts_list_extras(&s, &n);
    assert_int_equal(n, 3);
    assert_int_equal(verdict_on(extras, n, "hub", false), HOSTS_KEPT);
    assert_int_equal(verdict_on(extras, n, "minio", false), HOSTS_RESERVED);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(extras[i].node, i);
    free(extras);
    snapshot_deinit(&s);
}

/* Beyond 2048 nodes there are qualified names alone. */
static void test_extras_of_a_large_network(void **state)
{
    struct snapshot s = sample_snapshot(2048, 2);
    size_t n;
    struct hosts_extra *extras = hosts_list_extras(&s, &n);

    assert_non_null(extras);
    assert_int_equal(n, 2048);
    free(extras);
    sample_put(&s, sample_node(2049));
    assert_null(hosts_list_extras(&s, &n));
    assert_int_equal(n, 0);
    snapshot_deinit(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_extras),
        cmocka_unit_test(test_rendezvous),
        cmocka_unit_test(test_others_come_first),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_an_owner_without_a_hub),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_lines_of_a_block_without_end),
        cmocka_unit_test(test_names_that_begin_alike),
        cmocka_unit_test(test_words_for_each_verdict),
        cmocka_unit_test(test_reserved_names_of_hubs),
        cmocka_unit_test(test_extras_of_a_large_network),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
