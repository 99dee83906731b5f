/* test-state.c - what a node keeps survives, and what is damaged is named and left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

#include "agent/state/state.h"
#include "base/err.h"
#include "os/file.h"
#include "test/support/sample_mesh.h"

static char dir[64];

static int enter(void **state)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/weft-state-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int leave(void **state)
{
    static const char *const files[] = {"node.json", "public.json", "snapshot.json", "join.key",
        "lock", "keepalive.json", "timestamp", "traffic.json"};
    char path[128];

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        (void)unlink(path);
    }
    return rmdir(dir);
}

static void write_file(const char *name, const char *text)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(statefile_replace(path, text, strlen(text), 0600, NULL), 0);
}

static char *read_file(const char *name)
{
    char path[128];
    char *text = NULL;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(statefile_read(path, 1 << 20, &text, NULL, NULL), 0);
    return text;
}

static mode_t mode_of(const char *name)
{
    struct stat st;
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

/* The node "n2" of four, with a key that fits. */
static struct state make_state(void)
{
    struct state st = {.secret = {.b = {5, [31] = 0x40}},
        .interface = "weft7",
        .keeps_hosts = true,
        .answers_dns = true,
        .engine = ENGINE_KIND_USERSPACE,
        .snapshot = sample_snapshot(4, 2)};
    struct object self = sample_node(2);

    assert_true(x25519_derive_public(&st.secret, &self.node.key));
    sample_put(&st.snapshot, self);
    return st;
}

static void test_node_round_trip(void **state)
{
    struct state a = make_state();
    struct state b = STATE_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(subnets_parse(&a.routes, "10.9.0.0/24,fd09::/64", &e), 0);
    a.keeps_sources = true;
    a.accepts = SUBNETS_ACCEPT_ALL;
    assert_int_equal(state_read(&b, dir, &e), STATE_E_ABSENT);
    assert_int_equal(state_write(&a, dir, &e), 0);
    assert_int_equal(mode_of("node.json"), 0600);
    assert_int_equal(state_read(&b, dir, &e), 0);
    assert_memory_equal(&a.secret, &b.secret, sizeof(a.secret));
    assert_string_equal(b.interface, "weft7");
    assert_true(b.keeps_hosts);
    assert_true(b.answers_dns);
    assert_true(b.keeps_sources);
    assert_int_equal(b.accepts, SUBNETS_ACCEPT_ALL);
    assert_true(subnets_equal(&a.routes, &b.routes));
    assert_int_equal(b.engine, ENGINE_KIND_USERSPACE);
    assert_string_equal(b.snapshot.self, "n2");
    /* What it takes to reach the hub, and no more. */
    assert_int_equal(b.snapshot.nodes.n, 2);
    assert_int_equal(b.snapshot.revision, a.snapshot.revision);
    assert_non_null(snapshot_find_node(&b.snapshot, "hub"));
    assert_string_equal(e.text, "");
    state_deinit(&a);
    state_deinit(&b);
    /* Nothing of it stays in memory. */
    assert_memory_equal(&b, &(struct state)STATE_NULL, sizeof(b));
}

static void test_damaged_node(void **state)
{
    struct state a = make_state();
    struct err e = ERR_NULL;
    char *whole;
    size_t len;

    assert_int_equal(state_write(&a, dir, &e), 0);
    whole = read_file("node.json");
    len = strlen(whole);
    for (size_t cut = 0; cut < len; cut += len / 40 + 1) {
        struct state b = STATE_NULL;
        char *kept;
        char saved = whole[cut];

        whole[cut] = '\0';
        write_file("node.json", whole);
        assert_true(state_read(&b, dir, &e) < 0);
        assert_non_null(strstr(e.text, "/node.json is damaged: "));
        kept = read_file("node.json");
        assert_string_equal(kept, whole);
        free(kept);
        whole[cut] = saved;
    }
    free(whole);
    state_deinit(&a);
}

static void test_foreign_key(void **state)
{
    struct state a = make_state();
    struct state b = STATE_NULL;
    struct err e = ERR_NULL;

    a.secret.b[0]++;
    a.secret.b[1]++;
    assert_int_equal(state_write(&a, dir, &e), 0);
    assert_true(state_read(&b, dir, &e) < 0);
    assert_non_null(strstr(e.text, "is damaged: its private key is not that of its node"));
    state_deinit(&a);
}

/* As long as node.json is not there the machine has not joined. */
static void test_node_is_written_last(void **state)
{
    struct state a = make_state();
    struct err e = ERR_NULL;
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/public.json", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(state_write(&a, dir, &e), -EISDIR);
    assert_non_null(strstr(err_text(&e), "/public.json"));
    assert_false(state_is_there(dir));
    assert_int_equal(rmdir(path), 0);
    state_deinit(&a);
    /* Whether there is one cannot be told of what is no directory. */
    write_file("snapshot.json", "{}");
    (void)snprintf(path, sizeof(path), "%s/snapshot.json", dir);
    assert_true(state_is_there(path));
}

/* What is no secret is beside it, and read without it. */
static void test_public(void **state)
{
    struct state st = make_state();
    struct state p = STATE_NULL;
    struct err e = ERR_NULL;
    char path[128];
    char *text;

    assert_int_equal(state_read_public(&p, dir, NULL), STATE_E_ABSENT);
    assert_int_equal(state_write(&st, dir, NULL), 0);
    (void)snprintf(path, sizeof(path), "%s/node.json", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(state_read_public(&p, dir, NULL), 0);
    assert_string_equal(p.interface, "weft7");
    assert_int_equal(p.engine, ENGINE_KIND_USERSPACE);
    assert_string_equal(p.snapshot.self, "n2");
    text = read_file("public.json");
    assert_null(strstr(text, "privateKey"));
    assert_null(strstr(text, "proxy"));
    free(text);
    state_deinit(&p);
    state_deinit(&st);
    assert_int_equal(p.snapshot.nodes.n, 0);
    write_file("public.json", "{\"interface\": \"\"}");
    assert_int_equal(state_read_public(&p, dir, &e), -EINVAL);
    assert_non_null(strstr(err_text(&e), "/public.json"));
    write_file(
        "public.json", "{\"interface\": \"weft7\", \"engine\": \"userspace\", \"joined\": {}}");
    assert_int_equal(state_read_public(&p, dir, NULL), -EINVAL);
    assert_string_equal(p.interface, "");
}

static void test_snapshot(void **state)
{
    struct snapshot a = sample_snapshot(9, 2);
    struct snapshot b = SNAPSHOT_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(state_read_snapshot(&b, dir, &e), STATE_E_ABSENT);
    assert_int_equal(state_write_snapshot(&a, dir, &e), 0);
    assert_int_equal(state_read_snapshot(&b, dir, &e), 0);
    assert_int_equal(b.nodes.n, 9);
    assert_string_equal(e.text, "");
    snapshot_deinit(&b);
    write_file("snapshot.json", "{\"revision\": 1,");
    assert_true(state_read_snapshot(&b, dir, &e) < 0);
    assert_non_null(strstr(e.text, "/snapshot.json is damaged: "));
    write_file("snapshot.json", "{\"revision\": 1}");
    assert_true(state_read_snapshot(&b, dir, &e) < 0);
    assert_non_null(strstr(e.text, "/snapshot.json is damaged: the snapshot: \"self\" is missing"));
    snapshot_deinit(&a);
}

static void test_traffic(void **state)
{
    struct err e = ERR_NULL;
    json_t *json = NULL;

    assert_int_equal(state_read_traffic(&json, dir, &e), STATE_E_ABSENT);
    assert_int_equal(state_write_traffic(json_pack("{s:[i]}", "hours", 7), dir, &e), 0);
    assert_int_equal(mode_of("traffic.json"), 0600);
    assert_int_equal(state_read_traffic(&json, dir, &e), 0);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(json, "hours"), 0)), 7);
    json_decref(json);
    json = NULL;
    write_file("traffic.json", "{\"a\": 1,\n\"a\": 2}");
    assert_int_equal(state_read_traffic(&json, dir, &e), -EINVAL);
    assert_non_null(strstr(err_text(&e), "/traffic.json is damaged: duplicate object key"));
    assert_non_null(strstr(err_text(&e), " in line 2"));
    assert_null(json);
    assert_int_equal(state_write_traffic(NULL, dir, &e), -ENOMEM);
    assert_non_null(strstr(err_text(&e), "no memory to write "));
    assert_non_null(strstr(err_text(&e), "/traffic.json"));
    /* Whatever is written, a key in it is wiped, also if somebody else has the JSON still. */
    json = json_pack("{s:s}", "privateKey", "abc");
    assert_int_equal(state_write_traffic(json_incref(json), dir, &e), 0);
    assert_string_not_equal(json_string_value(json_object_get(json, "privateKey")), "abc");
    json_decref(json);
}

/* A join that is tried again uses the same key. */
static void test_join_key(void **state)
{
    struct x25519_secret a;
    struct x25519_secret b = {.b = {7}};
    struct err e = ERR_NULL;
    char text[X25519_BASE64_MAX];
    char line[X25519_BASE64_MAX + 1];
    bool is_old = true;

    assert_int_equal(state_join_key(&b, &is_old, "/proc/weft", &e), -ENOENT);
    assert_int_equal(b.b[0], 7);
    assert_int_equal(state_join_key(&a, &is_old, dir, &e), 0);
    assert_false(is_old);
    assert_int_equal(mode_of("join.key"), 0600);
    assert_int_equal(state_join_key(&b, &is_old, dir, &e), 0);
    assert_true(is_old);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_int_equal(state_forget_join_key(dir, &e), 0);
    assert_int_equal(state_join_key(&b, &is_old, dir, &e), 0);
    assert_false(is_old);
    assert_memory_not_equal(&a, &b, sizeof(a));
    /* With the end of its line, and not with more. */
    x25519_secret_write(&a, text);
    (void)snprintf(line, sizeof(line), "%s\n", text);
    write_file("join.key", line);
    assert_int_equal(state_join_key(&b, &is_old, dir, &e), 0);
    assert_memory_equal(&a, &b, sizeof(a));
    write_file("join.key", "not a key");
    assert_int_equal(state_join_key(&b, &is_old, dir, &e), -EINVAL);
    assert_false(is_old);
    assert_non_null(strstr(e.text, "/join.key is damaged: it does not hold a key"));
    write_file("join.key", "a file of more bytes than there are in any key");
    assert_true(state_join_key(&b, &is_old, dir, &e) < 0);
    assert_memory_equal(&a, &b, sizeof(a));
}

static void test_keepalive(void **state)
{
    static const char *const damaged[] = {
        "{}",
        "{\"livesMs\": 0, \"measuredAt\": 1790000000, \"address\": \"192.0.2.1\"}",
        "{\"livesMs\": 80001, \"measuredAt\": 1790000000, \"address\": \"192.0.2.1\"}",
        "{\"livesMs\": 9000, \"diesMs\": 0, \"measuredAt\": 1790000000, \"address\": "
        "\"192.0.2.1\"}",
        "{\"livesMs\": 9000, \"measuredAt\": 1790000000}",
        "{\"livesMs\": 9000, \"measuredAt\": 1790000000, \"address\": \"here\"}",
        "{\"livesMs\": 9000, \"measuredAt\": 0, \"address\": \"192.0.2.1\"}",
    };
    struct keepalive_known known = {.measured_at = 1790000000 * NSEC_PER_SEC,
        .bounds = {.lives = 27 * NSEC_PER_SEC, .dies = 30 * NSEC_PER_SEC}};
    struct keepalive_known again = KEEPALIVE_KNOWN_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(state_read_keepalive(&again, dir, &e), STATE_E_ABSENT);
    assert_int_equal(ip_addr_parse(&known.outside, "198.51.100.7", NULL), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(state_write_keepalive(&known, dir, &e), 0);
        assert_int_equal(state_read_keepalive(&again, dir, &e), 0);
        assert_memory_equal(&again, &known, sizeof(known));
        known.bounds.dies = NSEC_NEVER;
    }
    /* No pause was survived, but one that is too long is known; and the longest that is tried. */
    known.bounds = (struct keepalive_bounds){.lives = 0, .dies = KEEPALIVE_LONGEST};
    assert_int_equal(state_write_keepalive(&known, dir, &e), 0);
    assert_int_equal(state_read_keepalive(&again, dir, &e), 0);
    assert_memory_equal(&again, &known, sizeof(known));
    for (size_t i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
        write_file("keepalive.json", damaged[i]);
        assert_int_equal(state_read_keepalive(&again, dir, &e), -EINVAL);
        assert_non_null(strstr(err_text(&e), "keepalive.json"));
        assert_memory_equal(&again, &known, sizeof(known));
    }
}

static void test_remove(void **state)
{
    static const char *const others[] = {
        "public.json", "snapshot.json", "keepalive.json", "traffic.json", "join.key", "timestamp"};
    struct state a = make_state();
    struct err e = ERR_NULL;
    char path[PATH_MAX];
    char words[160];

    assert_string_equal(state_timestamp_path(path, "/somewhere"), "/somewhere/timestamp");
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        write_file(others[i], "{}");
    assert_int_equal(state_write(&a, dir, &e), 0);
    state_deinit(&a);
    /* With one of the others still there this machine is a node. */
    (void)state_timestamp_path(path, dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(state_remove(dir, &e), -EISDIR);
    (void)snprintf(words, sizeof(words), "%.100s cannot be removed: Is a directory", path);
    assert_string_equal(err_text(&e), words);
    assert_true(state_is_there(dir));
    assert_int_equal(rmdir(path), 0);
    for (unsigned again = 0; again < 2; again++)
        assert_int_equal(state_remove(dir, &e), 0);
    assert_false(state_is_there(dir));
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, others[i]);
        assert_int_equal(access(path, F_OK), -1);
    }
}

static void test_lock(void **state)
{
    struct err e = ERR_NULL;
    int first = -1;
    int second = -1;

    assert_int_equal(state_lock(dir, &first, &e), 0);
    assert_int_equal(state_lock(dir, &second, &e), -EBUSY);
    (void)close(first);
    assert_int_equal(state_lock(dir, &second, &e), 0);
    (void)close(second);
}

static void test_names(void **state)
{
    static const struct {
        const char *name;
        bool good;
    } cases[] = {{"weft0", true}, {"wg.7", true}, {"fifteen-letters", true}, {"", false},
        {"sixteen-letters!", false}, {"a/b", false}, {"a:b", false}, {".", false}, {"..", false},
        {"...", true}, {"a b", false}, {"a!b", true}, {"a~b", true}, {"a\x7f", false},
        {"weft%d", false}};
    struct err e = ERR_NULL;
    char long_dir[STATE_DIR_MAX + 2];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(state_check_interface(cases[i].name, &e) == 0, cases[i].good);
    assert_string_equal(err_text(&e), "interface \"weft%d\" is not a name: 1 to 15 printable "
                                      "characters other than '/', ':', '%'");
    assert_int_equal(state_check_dir("", &e), -EINVAL);
    assert_string_equal(err_text(&e), "the state directory \"\" is not 1 to 4032 bytes long");
    assert_int_equal(state_check_dir("/var/lib/weft/node", &e), 0);
    memset(long_dir, 'a', sizeof(long_dir));
    long_dir[STATE_DIR_MAX + 1] = '\0';
    assert_int_equal(state_check_dir(long_dir, &e), -EINVAL);
    long_dir[STATE_DIR_MAX] = '\0';
    assert_int_equal(state_check_dir(long_dir, &e), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_node_round_trip, enter, leave),
        cmocka_unit_test_setup_teardown(test_damaged_node, enter, leave),
        cmocka_unit_test_setup_teardown(test_foreign_key, enter, leave),
        cmocka_unit_test_setup_teardown(test_node_is_written_last, enter, leave),
        cmocka_unit_test_setup_teardown(test_public, enter, leave),
        cmocka_unit_test_setup_teardown(test_snapshot, enter, leave),
        cmocka_unit_test_setup_teardown(test_traffic, enter, leave),
        cmocka_unit_test_setup_teardown(test_join_key, enter, leave),
        cmocka_unit_test_setup_teardown(test_keepalive, enter, leave),
        cmocka_unit_test_setup_teardown(test_remove, enter, leave),
        cmocka_unit_test_setup_teardown(test_lock, enter, leave),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
