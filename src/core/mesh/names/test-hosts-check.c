/* test-hosts-check.c - which lines may go into the hosts file, and whose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/names/hosts.h"
#include "test/support/sample_mesh.h"

static struct hosts_rules make_rules(void)
{
    struct hosts_rules rules = {.network = "default", .node = "gpu-1"};

    assert_int_equal(ip_prefix_parse(&rules.cidr4, "10.42.0.0/16", NULL), 0);
    assert_int_equal(ip_prefix_parse(&rules.cidr6, "fd5a:1::/64", NULL), 0);
    return rules;
}

static void test_lines(void **state)
{
    static const struct {
        const char *block;
        bool is_taken;
    } rows[] = {
        {"", true},
        {"10.42.0.2\tgpu-1.default.weft gpu-1\n", true},
        {"fd5a:1::2\tgpu-1.default.weft gpu-1\n10.42.0.3\tn2.default.weft\n", true},
        {"10.42.0.2\tlocalhost.default.weft\n", true},
        {"10.42.0.2\tgpu-1.default.weft gpu-1", false},
        {"10.43.0.2\tgpu-1.default.weft\n", false},
        {"127.0.0.1\tgpu-1.default.weft\n", false},
        {"fe80::1\tgpu-1.default.weft\n", false},
        {"10.42.0.2\tlocalhost\n", false},
        {"10.42.0.2\tgpu-1.default.weft localhost\n", false},
        {"10.42.0.2\t.weft\n", false},
        {"10.42.0.2\tgithub.com\n", false},
        {"10.42.0.2\tgpu-1.default.weft github.com\n", false},
        {"10.42.0.2\tgpu-1.other.weft\n", false},
        {"10.42.0.2\tgpu-1.weft\n", false},
        {"10.42.0.2\ta.gpu-1.default.weft\n", false},
        {"10.42.0.2\tgpu-1.default.weft.\n", false},
        {"10.42.0.2\tgpu-1.default\n", false},
        {"10.42.0.2\thub.default.weft hub rendezvous.default.weft\n", true},
        {"10.42.0.2\tGPU_1\n", false},
        {"10.42.0.2\n", false},
        {"\n", false},
        {"# weft end default/gpu-1/00\n", false},
        {"10.42.0.2\tn1 # weft end\n", false},
    };
    struct hosts_rules rules = make_rules();

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct err e = ERR_NULL;
        int r = hosts_check_block(&rules, rows[i].block, strlen(rows[i].block), &e);

        if ((r == 0) != rows[i].is_taken)
            fail_msg("row %zu: %d %s", i, r, err_text(&e));
    }
    assert_int_not_equal(hosts_check_block(&rules, "10.42.0.2\tn1\0 n2\n", 17, NULL), 0);
}

/* A line has at most 1023 bytes before its end. */
static void test_long_line(void **state)
{
    struct hosts_rules rules = make_rules();
    char line[1025];
    struct err e = ERR_NULL;

    memset(line, ' ', sizeof(line));
    memcpy(line, "10.42.0.2 n1", 12);
    line[1023] = '\n';
    assert_int_equal(hosts_check_block(&rules, line, 1024, NULL), 0);
    line[1023] = ' ';
    line[1024] = '\n';
    assert_int_equal(hosts_check_block(&rules, line, 1025, &e), -EINVAL);
    assert_string_equal(err_text(&e), "line 1 is not a line of text");
}

static void test_long_names(void **state)
{
    struct hosts_rules rules = make_rules();

    for (unsigned len = NAME_MAX_LEN; len <= NAME_MAX_LEN + 1; len++) {
        char name[NAME_MAX_LEN + 2] = "";
        char line[256];

        memset(name, 'a', len);
        (void)snprintf(line, sizeof(line), "10.42.0.2\t%s.default.weft %s\n", name, name);
        assert_int_equal(
            hosts_check_block(&rules, line, strlen(line), NULL), len > NAME_MAX_LEN ? -EINVAL : 0);
    }
}

/* The sentence for each fault. */
static void test_sentences(void **state)
{
    static const struct {
        const char *block;
        const char *says;
    } cases[] = {
        {"10.42.0.2\tn1\n10.42.0.3\tn2", "line 2 is not a line of text"},
        {"\n", "line 1: \"\" is no address of the network"},
        {"n1\n", "line 1: \"n1\" is no address of the network"},
        {"10.43.0.2 n1\n", "line 1: \"10.43.0.2\" is no address of the network"},
        {"10.42.0.2 n1 -n\n", "line 1: \"-n\" is no name for a node"},
        {"10.42.0.2 minio\n", "line 1: \"minio\" is no name for a node"},
        {"10.42.0.2 n1,default.weft\n", "line 1: \"n1,default.weft\" is no name for a node"},
        {"10.42.0.2\t \n", "line 1: an address has no name"},
    };
    struct hosts_rules rules = make_rules();

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;

        assert_int_equal(
            hosts_check_block(&rules, cases[i].block, strlen(cases[i].block), &e), -EINVAL);
        assert_string_equal(err_text(&e), cases[i].says);
    }
}

static void test_owners(void **state)
{
    struct hosts_rules rules = make_rules();
    char longest[HOSTS_OWNER_MAX + 1];
    struct err e = ERR_NULL;

    assert_int_equal(hosts_check_owner(&rules, "default/gpu-1/5f02a1b3", NULL), 0);
    assert_int_not_equal(hosts_check_owner(&rules, "default/gpu-2/5f02a1b3", NULL), 0);
    assert_int_not_equal(hosts_check_owner(&rules, "other/gpu-1/5f02a1b3", NULL), 0);
    assert_int_not_equal(hosts_check_owner(&rules, "default/gpu-1/5f\n10.0.0.1 x", NULL), 0);
    assert_int_not_equal(hosts_check_owner(&rules, "default/gpu-1", NULL), 0);
    assert_int_not_equal(hosts_check_owner(&rules, "default/gpu-1/5F", NULL), 0);
    assert_int_equal(hosts_check_owner(&rules, "default/gpu-1/", NULL), 0);
    assert_int_equal(hosts_check_owner(&rules, "x", &e), -EINVAL);
    assert_string_equal(err_text(&e), "\"x\" is not the owner of lines of this node");
    /* As long as there is room for, with the zero at its end. */
    memset(longest, '0', sizeof(longest));
    memcpy(longest, "default/gpu-1/", 14);
    longest[HOSTS_OWNER_MAX] = '\0';
    assert_int_equal(hosts_check_owner(&rules, longest, NULL), -EINVAL);
    longest[HOSTS_OWNER_MAX - 1] = '\0';
    assert_int_equal(hosts_check_owner(&rules, longest, NULL), 0);
}

/* What the agent makes is taken. */
static void test_own_block(void **state)
{
    struct snapshot s = sample_snapshot(5, 2);
    _cleanup_(str_deinit) struct str block = STR_NULL;
    struct hosts_rules rules = {.cidr4 = s.network.cidr4, .cidr6 = s.network.cidr6};
    struct hosts_extra *extras;
    char owner[HOSTS_OWNER_MAX];
    struct err e = ERR_NULL;
    size_t n = 0;

    (void)snprintf(rules.network, sizeof(rules.network), "%.*s", NAME_MAX_LEN, s.network.meta.name);
    (void)snprintf(rules.node, sizeof(rules.node), "%.*s", NAME_MAX_LEN, s.self);
    extras = hosts_list_extras(&s, &n);
    hosts_add_block(&block, &s, extras, n, true);
    assert_true(block.len > 0);
    if (hosts_check_block(&rules, str_text(&block), block.len, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(hosts_check_owner(&rules, hosts_owner(&s, owner), NULL), 0);
    free(extras);
    snapshot_deinit(&s);
}

/* Each line is looked at, and the sentence says which is at fault. */
static void test_every_line_is_looked_at(void **state)
{
    struct hosts_rules rules = make_rules();

    for (unsigned bad = 1; bad <= 3; bad++) {
        struct err e = ERR_NULL;
        char block[256] = "";
        char says[16];

        for (unsigned i = 1; i <= 3; i++)
            (void)snprintf(block + strlen(block), sizeof(block) - strlen(block),
                "10.%u.0.2\tn1.default.weft\n", i == bad ? 43 : 42);
        assert_int_not_equal(hosts_check_block(&rules, block, strlen(block), &e), 0);
        (void)snprintf(says, sizeof(says), "line %u: ", bad);
        assert_memory_equal(e.text, says, strlen(says));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_owners),
        cmocka_unit_test(test_own_block),
        cmocka_unit_test(test_every_line_is_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
