/* test-blocks-file.c - what root says of the network's blocks: written, believed, and when not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/state/blocks_file.h"
#include "base/err.h"
#include "os/file.h"
#include "test/support/sample_mesh.h"

static char folder[64];
static char state_dir[80];
static char path[96];
static char node_json[96];

static int set_up(void **state)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/weft-blocks-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(state_dir, sizeof(state_dir), "%s/node", folder);
    (void)snprintf(path, sizeof(path), "%s.blocks", state_dir);
    (void)snprintf(node_json, sizeof(node_json), "%s/node.json", state_dir);
    return mkdir(state_dir, 0700);
}

static int tear_down(void **state)
{
    (void)unlink(path);
    (void)unlink(node_json);
    (void)rmdir(state_dir);
    return rmdir(folder);
}

static struct hosts_rules rules_with(const char *cidr4, const char *cidr6)
{
    struct hosts_rules rules = {.network = "default", .node = "n1"};

    assert_int_equal(ip_prefix_parse(&rules.cidr4, cidr4, NULL), 0);
    assert_int_equal(ip_prefix_parse(&rules.cidr6, cidr6, NULL), 0);
    return rules;
}

static void assert_same(const struct hosts_rules *a, const struct hosts_rules *b)
{
    assert_string_equal(a->network, b->network);
    assert_string_equal(a->node, b->node);
    assert_true(ip_addr_equal(&a->cidr4.addr, &b->cidr4.addr));
    assert_int_equal(a->cidr4.len, b->cidr4.len);
    assert_true(ip_addr_equal(&a->cidr6.addr, &b->cidr6.addr));
    assert_int_equal(a->cidr6.len, b->cidr6.len);
}

static void test_comes_back(void **state)
{
    const struct hosts_rules rules = rules_with("203.0.113.0/24", "fd5a:1::/64");
    struct hosts_rules have = {.network = ""};
    struct err e = ERR_NULL;
    struct stat st;
    char slash[100];

    assert_int_equal(blocks_file_read(&have, state_dir, NULL), BLOCKS_FILE_E_ABSENT);
    assert_int_equal(blocks_file_read(&have, "/", &e), BLOCKS_FILE_E_ABSENT);
    assert_string_equal(err_text(&e),
        "there is no /.blocks, in which root says which addresses are the network's: restart the "
        "agent, which writes it");
    (void)snprintf(slash, sizeof(slash), "%s//", state_dir);
    assert_int_equal(blocks_file_write(&rules, slash, NULL), 0);
    assert_int_equal(blocks_file_read(&have, state_dir, NULL), 0);
    assert_same(&have, &rules);
    /* For everybody to read, as names of nodes are looked up by everybody. */
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    blocks_file_remove(state_dir);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_what_is_known_from_the_join(void **state)
{
    struct snapshot born = sample_snapshot(2, 2);
    struct hosts_rules rules = blocks_file_rules(&born);
    struct hosts_rules want = {.cidr4 = born.network.cidr4, .cidr6 = born.network.cidr6};

    (void)snprintf(want.network, sizeof(want.network), "default");
    (void)snprintf(want.node, sizeof(want.node), "n2");
    assert_same(&rules, &want);
    snapshot_deinit(&born);
}

static void refuse(const char *text, mode_t mode, int code)
{
    struct hosts_rules have = {.node = "untouched"};
    struct err e = ERR_NULL;

    assert_int_equal(statefile_replace(path, text, strlen(text), mode, NULL), 0);
    assert_int_equal(chmod(path, mode), 0);
    assert_int_equal(blocks_file_read(&have, state_dir, &e), code);
    assert_non_null(strstr(err_text(&e), "node.blocks"));
    assert_string_equal(have.node, "untouched");
}

#define LINE(cidr4)                                                                                \
    "{\"network\": \"default\", \"node\": \"n1\", \"cidr4\": \"" cidr4                             \
    "\", \"cidr6\": \"fd5a:1::/64\"}"

/* The longest that is read, and one byte more. */
static void test_length(void **state)
{
    struct hosts_rules have;
    struct err e = ERR_NULL;
    char text[1026];

    memset(text, ' ', sizeof(text));
    memcpy(text, LINE("10.77.0.0/16"), strlen(LINE("10.77.0.0/16")));
    assert_int_equal(statefile_replace(path, text, 1024, 0644, NULL), 0);
    assert_int_equal(blocks_file_read(&have, state_dir, NULL), 0);
    assert_int_equal(statefile_replace(path, text, 1025, 0644, NULL), 0);
    assert_int_equal(blocks_file_read(&have, state_dir, &e), -EINVAL);
    assert_non_null(strstr(err_text(&e), "cannot be read, or has more than 1024 bytes"));
}

/* Somebody who is not root believes root and himself. */
static void test_owners(void **state)
{
    static const struct {
        uid_t owner;
        int code;
    } rows[] = {{0, 0}, {65534, 0}, {65533, -EPERM}};
    struct hosts_rules have;

    if (geteuid() != 0)
        skip();
    assert_int_equal(
        statefile_replace(path, LINE("10.77.0.0/16"), strlen(LINE("10.77.0.0/16")), 0644, NULL), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        int r;

        assert_int_equal(chown(path, rows[i].owner, 0), 0);
        assert_int_equal(seteuid(65534), 0);
        r = blocks_file_read(&have, state_dir, NULL);
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(r, rows[i].code);
    }
}

static void test_not_believed(void **state)
{
    struct hosts_rules have;
    struct err e = ERR_NULL;

    refuse("{\"network\": \"default\", \"node\": \"n1\"}", 0644, -EINVAL);
    refuse("{\"network\": \"default\", \"node\": \"n1\", \"cidr4\": \"10.77.0.0/16\", "
           "\"cidr6\": \"10.78.0.0/16\"}",
        0644, -EINVAL);
    refuse("{", 0644, -EINVAL);
    refuse("", 0644, -EINVAL);
    refuse(LINE("0.0.0.0/0"), 0644, -EINVAL);
    refuse(LINE("127.0.0.0/8"), 0644, -EINVAL);
    refuse(LINE("10.0.0.0"), 0644, -EINVAL);
    refuse(LINE("10.77.0.0/16"), 0666, -EPERM);
    refuse(LINE("10.77.0.0/16"), 0664, -EPERM);
    if (geteuid() == 0) {
        assert_int_equal(
            statefile_replace(path, LINE("10.77.0.0/16"), strlen(LINE("10.77.0.0/16")), 0644, NULL),
            0);
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(blocks_file_read(&have, state_dir, &e), -EPERM);
        assert_non_null(strstr(err_text(&e), "is not believed"));
    }
    /* A link leads to what its maker chooses, whoever owns that. */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/hostname", path), 0);
    assert_int_equal(blocks_file_read(&have, state_dir, &e), -ELOOP);
    assert_non_null(strstr(err_text(&e), "node.blocks cannot be opened: "));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(blocks_file_read(&have, state_dir, &e), -EPERM);
    assert_int_equal(rmdir(path), 0);
}

/* An upgrade: the node has joined by a version that wrote no such file. */
static void test_kept_from_before(void **state)
{
    struct hosts_rules private = rules_with("10.77.0.0/16", "fd5a:1::/64");
    struct hosts_rules public = rules_with("8.0.0.0/8", "fd5a:1::/64");
    struct hosts_rules wide = rules_with("172.0.0.0/11", "fd5a:1::/64");
    struct hosts_rules public6 = rules_with("10.77.0.0/16", "2001:db8::/32");
    struct hosts_rules wide_end = rules_with("10.0.0.0/7", "fd5a:1::/64");
    struct hosts_rules wide6 = rules_with("10.77.0.0/16", "fc00::/6");
    struct hosts_rules have;
    struct err e = ERR_NULL;

    /* There is no node.json of root's: the blocks are somebody else's word. */
    assert_int_equal(blocks_file_keep(&public, state_dir, &e), -EPERM);
    assert_non_null(strstr(err_text(&e), "weft leave and weft join"));
    assert_int_equal(blocks_file_keep(&public6, state_dir, NULL), -EPERM);
    assert_int_equal(blocks_file_keep(&wide, state_dir, NULL), -EPERM);
    assert_int_equal(blocks_file_keep(&wide_end, state_dir, NULL), -EPERM);
    assert_int_equal(blocks_file_keep(&wide6, state_dir, NULL), -EPERM);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(blocks_file_keep(&private, state_dir, NULL), 0);
    assert_int_equal(blocks_file_read(&have, state_dir, NULL), 0);
    assert_same(&have, &private);

    /* Beside a directory that takes no file the blocks are good for this start. */
    assert_int_equal(blocks_file_keep(&private, "/proc/weft/node", &e), BLOCKS_FILE_E_UNKEPT);
    assert_int_equal(blocks_file_keep(&wide, "/proc/weft/node", &e), -EPERM);

    /* What there is counts, whatever is said later. */
    assert_int_equal(blocks_file_keep(&public, state_dir, NULL), 0);
    assert_same(&public, &private);

    /* Unless it is damaged. */
    refuse("{", 0644, -EINVAL);
    assert_int_equal(blocks_file_keep(&wide, state_dir, NULL), -EINVAL);
    assert_int_equal(wide.cidr4.len, 11);

    if (geteuid() != 0)
        return;
    blocks_file_remove(state_dir);
    public = rules_with("8.0.0.0/8", "fd5a:1::/64");
    assert_int_equal(statefile_replace(node_json, "{}", 2, 0600, NULL), 0);
    assert_int_equal(chown(node_json, 65534, 65534), 0);
    assert_int_equal(blocks_file_keep(&public, state_dir, NULL), -EPERM);
    assert_int_equal(chown(node_json, 0, 0), 0);
    assert_int_equal(blocks_file_keep(&public, state_dir, NULL), 0);
    assert_int_equal(blocks_file_read(&have, state_dir, NULL), 0);
    assert_same(&have, &public);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_comes_back, set_up, tear_down),
        cmocka_unit_test(test_what_is_known_from_the_join),
        cmocka_unit_test_setup_teardown(test_length, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_owners, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_not_believed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_kept_from_before, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
