/*
 * test-leave.c - a node leaves, or is taken down, while no agent runs.
 *
 * In a network namespace without any way to a hub.
 */
#include "agent/leave.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/agent.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "mesh/names/hosts.h"
#include "net/netlink/rtnl.h"
#include "net/socket/unix_socket.h"
#include "net/tun/offload.h"
#include "net/tun/tun.h"
#include "os/file.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"

static char dir[64];
static char socket_path[96];
static char owner[HOSTS_OWNER_MAX];

static int enter(void **state)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/weft-test-leave.XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(socket_path, sizeof(socket_path), "%s/sock", dir);
    return netns_enter(state);
}

/* Nothing else is left there than what the lock was taken of. */
static int leave(void **state)
{
    char path[96];

    (void)state_remove(dir, NULL);
    (void)snprintf(path, sizeof(path), "%s/lock", dir);
    (void)unlink(path);
    (void)rmdir(dir);
    return netns_leave(state);
}

/* The node n2 of three. */
static void write_state_of(bool has_hub, bool keeps_hosts)
{
    struct state st = {.secret = {.b = {5, [31] = 0x40}}, .engine = ENGINE_KIND_KERNEL};
    struct object self = sample_node(2);
    struct err e = ERR_NULL;

    st.snapshot = sample_snapshot(3, 2);
    assert_true(x25519_derive_public(&st.secret, &self.node.key));
    sample_put(&st.snapshot, self);
    if (!has_hub)
        assert_int_equal(snapshot_delete(&st.snapshot, &node_kind, "hub", NULL), 0);
    (void)snprintf(st.interface, sizeof(st.interface), "weft0");
    st.keeps_hosts = keeps_hosts;
    if (state_write_snapshot(&st.snapshot, dir, &e) != 0 || state_write(&st, dir, &e) != 0)
        fail_msg("%s", err_text(&e));
    (void)hosts_owner(&st.snapshot, owner);
    state_deinit(&st);
}

static void write_state(bool has_hub)
{
    write_state_of(has_hub, false);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void check_result(const struct leave_result *lr)
{
    assert_string_equal(lr->network, "default");
    assert_string_equal(lr->node, "n2");
    assert_string_equal(lr->interface, "weft0");
    assert_string_equal(lr->hosts_owner, owner);
    assert_string_equal(lr->names_why, "");
    assert_false(lr->has_reported_hub);
}

/* Sockets that an agent has left, and a file that is none. */
static void leave_sockets_behind(void)
{
    static const char *const suffixes[] = {"", AGENT_MEASURE_SUFFIX};
    char path[128];

    for (unsigned i = 0; i < 2; i++) {
        int fd;

        (void)snprintf(path, sizeof(path), "%s%s", socket_path, suffixes[i]);
        fd = unix_socket_listen(path, SOCK_STREAM, 0600);
        assert_true(fd >= 0);
        (void)close(fd);
    }
    (void)snprintf(path, sizeof(path), "%s" UNIX_SOCKET_USERS_SUFFIX, socket_path);
    assert_int_equal(statefile_replace(path, "x", 1, 0600, NULL), 0);
}

static void check_sockets(bool are_there)
{
    char path[128];

    assert_int_equal(exists(socket_path), are_there);
    (void)snprintf(path, sizeof(path), "%s%s", socket_path, AGENT_MEASURE_SUFFIX);
    assert_int_equal(exists(path), are_there);
    (void)snprintf(path, sizeof(path), "%s" UNIX_SOCKET_USERS_SUFFIX, socket_path);
    assert_true(exists(path));
    if (!are_there)
        (void)unlink(path);
}

static void test_a_machine_that_has_not_joined(void **state)
{
    struct leave_result lr;
    struct err e = ERR_NULL;
    char words[200];

    assert_int_equal(leave_without_agent(dir, socket_path, false, &lr, &e), STATE_E_ABSENT);
    (void)snprintf(
        words, sizeof(words), "this machine has not joined a network (%s has no node.json)", dir);
    assert_string_equal(e.text, words);
}

static void test_a_node_that_was_removed(void **state)
{
    const struct removed rm = {
        .node = "n2", .network = "default", .reason = "by a test", .socket_path = "/x", .at = 1};
    struct leave_result lr;
    struct err e = ERR_NULL;

    assert_int_equal(removed_write(&rm, dir, NULL), 0);
    assert_int_equal(leave_without_agent(dir, socket_path, false, &lr, &e), LEAVE_E_REMOVED);
    assert_memory_equal(e.text, "nothing of it is left here: ", 28);
    assert_non_null(strstr(e.text, ": by a test"));
}

/* It is the agent's to do. */
static void test_an_agent_that_runs(void **state)
{
    struct leave_result lr;
    int fd;

    write_state(true);
    assert_int_equal(state_lock(dir, &fd, NULL), 0);
    assert_int_equal(leave_without_agent(dir, socket_path, false, &lr, NULL), -EBUSY);
    assert_true(state_is_there(dir));
    (void)close(fd);
}

static void test_it_is_taken_down(void **state)
{
    struct leave_result lr;

    (void)netns_need(state);
    write_state(true);
    leave_sockets_behind();
    check_sockets(true);
    assert_int_equal(leave_without_agent(dir, socket_path, true, &lr, NULL), 0);
    check_result(&lr);
    assert_string_equal(lr.why, "");
    assert_true(state_is_there(dir));
    check_sockets(false);
}

/* What an agent has left of it; but not what somebody else has made. */
static void test_the_interface_is_removed(void **state)
{
    struct netlink *nl = netns_need(state);
    struct offloads offloads = offloads_all();
    struct tun tun = TUN_NULL;
    struct leave_result lr;
    struct rtnl_link link;

    write_state(true);
    assert_int_equal(rtnl_add_link(nl, "weft0", "bridge"), 0);
    assert_int_equal(leave_without_agent(dir, socket_path, true, &lr, NULL), 0);
    assert_int_equal(rtnl_find_link(nl, "weft0", &link), 0);
    assert_int_equal(rtnl_remove_link(nl, link.ifindex), 0);
    if (tun_open(&tun, "weft0", 1, &offloads, NULL) != 0)
        skip();
    assert_int_equal(leave_without_agent(dir, socket_path, true, &lr, NULL), 0);
    assert_int_equal(rtnl_find_link(nl, "weft0", &link), RTNL_E_ABSENT);
    tun_close(&tun);
}

/* Also when no hub can be told. */
static void test_it_leaves(void **state)
{
    struct leave_result lr;

    (void)netns_need(state);
    write_state(true);
    leave_sockets_behind();
    assert_int_equal(leave_without_agent(dir, socket_path, false, &lr, NULL), 0);
    check_result(&lr);
    assert_string_not_equal(lr.why, "");
    assert_string_not_equal(lr.why, "it is not known");
    assert_false(state_is_there(dir));
    check_sockets(false);
}

/* What the names' file has after this node was taken down where it keeps them; on a machine of its
 * own, as far as that file goes. */
static void take_down_with_names(bool can_be_taken_away)
{
    struct leave_result lr;
    char block[512];

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/etc", "tmpfs", 0, NULL) < 0)
        exit(77);
    (void)snprintf(block, sizeof(block),
        "127.0.0.1 localhost\n# weft begin %s\n10.42.0.3\tn3.default.weft n3\n# weft end %s\n",
        owner, owner);
    if (can_be_taken_away)
        assert_int_equal(statefile_replace("/etc/hosts", block, strlen(block), 0644, NULL), 0);
    else
        assert_int_equal(mkdir("/etc/hosts", 0755), 0);
    assert_int_equal(leave_without_agent(dir, socket_path, true, &lr, NULL), 0);
    assert_int_equal(lr.names_why[0] == '\0', can_be_taken_away);
    if (can_be_taken_away) {
        char *text = NULL;

        assert_int_equal(statefile_read("/etc/hosts", 4096, &text, NULL, NULL), 0);
        assert_string_equal(text, "127.0.0.1 localhost\n");
        free(text);
    }
    exit(0);
}

/* That names stay is no failure. */
static void test_names_are_taken_away(void **state)
{
    (void)netns_need(state);
    for (unsigned i = 0; i < 2; i++) {
        int status;
        pid_t pid;

        write_state_of(true, true);
        pid = fork();
        if (pid == 0)
            take_down_with_names(i == 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            skip();
        assert_int_equal(status, 0);
    }
}

static void test_a_network_without_a_hub(void **state)
{
    struct leave_result lr;

    (void)netns_need(state);
    write_state(false);
    assert_int_equal(leave_without_agent(dir, socket_path, false, &lr, NULL), 0);
    check_result(&lr);
    assert_string_equal(lr.why, "it is not known");
    assert_false(state_is_there(dir));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_a_machine_that_has_not_joined),
        TEST(test_a_node_that_was_removed),
        TEST(test_an_agent_that_runs),
        TEST(test_it_is_taken_down),
        TEST(test_the_interface_is_removed),
        TEST(test_it_leaves),
        TEST(test_names_are_taken_away),
        TEST(test_a_network_without_a_hub),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
