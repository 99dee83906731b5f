/* test-hosts-helper.c - what the helper writes for the agent, and what it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/hosts_helper.h"
#include "agent/state/blocks_file.h"
#include "base/err.h"
#include "net/socket/unix_socket.h"
#include "os/file.h"
#include "test/support/emulated.h"

#define OWNER "default/n1/5f02a1b3"

static char folder[64];
static char path[80];
static char state_dir[80];

static int set_up(void **state)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/weft-hosts-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(path, sizeof(path), "%s/hosts", folder);
    (void)snprintf(state_dir, sizeof(state_dir), "%s/node", folder);
    return statefile_replace(path, "127.0.0.1 localhost\n", 20, 0644, NULL);
}

static int tear_down(void **state)
{
    (void)unlink(path);
    blocks_file_remove(state_dir);
    return rmdir(folder);
}

static struct hosts_helper *start(void)
{
    struct hosts_rules rules = {.network = "default", .node = "n1"};
    struct hosts_helper *h = NULL;
    struct err e = ERR_NULL;

    assert_int_equal(ip_prefix_parse(&rules.cidr4, "10.42.0.0/16", NULL), 0);
    assert_int_equal(ip_prefix_parse(&rules.cidr6, "fd5a:1::/64", NULL), 0);
    if (hosts_helper_start(&h, path, &rules, &e) != 0)
        fail_msg("%s", err_text(&e));
    return h;
}

static void assert_file(const char *text)
{
    char *have = NULL;

    assert_int_equal(statefile_read(path, 65536, &have, NULL, NULL), 0);
    assert_string_equal(have, text);
    free(have);
}

/* What a service manager does for one connection to @listener. */
static pid_t serve_one(int listener)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct pollfd ready = {.fd = listener, .events = POLLIN};
        int fd = poll(&ready, 1, 10000) == 1 ? accept(listener, NULL, NULL) : -1;

        if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
            _exit(1);
        (void)close(fd);
        (void)close(listener);
        (void)hosts_helper_serve(path, state_dir, NULL);
        _exit(2);
    }
    return pid;
}

static void end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Of this node, with these blocks. */
static struct hosts_rules rules_with(const char *cidr4)
{
    struct hosts_rules rules = {.network = "default", .node = "n1"};

    assert_int_equal(ip_prefix_parse(&rules.cidr4, cidr4, NULL), 0);
    assert_int_equal(ip_prefix_parse(&rules.cidr6, "fd5a:1::/64", NULL), 0);
    return rules;
}

/* What a helper that a service manager has started answers to an agent that says @rules. */
static int ask_with(int listener, const char *place, const struct hosts_rules *rules,
    const char *block, struct err *e)
{
    struct hosts_helper *h = NULL;
    pid_t pid = serve_one(listener);
    bool changed;
    int r;

    assert_int_equal(hosts_helper_find(&h, place, rules, NULL), 0);
    r = hosts_helper_put(h, OWNER, block, &changed, e);
    assert_null(hosts_helper_free(h));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return r;
}

/* Which addresses may be written is root's to say, and not who connects. */
static void test_blocks_are_not_the_callers(void **state)
{
    const struct hosts_rules true_rules = rules_with("10.42.0.0/16");
    const struct hosts_rules lies = rules_with("8.0.0.0/8");
    struct err e = ERR_NULL;
    char place[96];
    int listener;

    (void)snprintf(place, sizeof(place), "%s/helper.sock", folder);
    listener = unix_socket_listen(place, SOCK_STREAM, 0600);
    assert_true(listener >= 0);

    /* Nobody has said anything yet: nothing is written, and the words name the way out. */
    assert_int_equal(ask_with(listener, place, &true_rules, "10.42.0.2\tn1\n", &e), -EPERM);
    assert_non_null(strstr(err_text(&e), "node.blocks"));
    assert_non_null(strstr(err_text(&e), "restart the agent"));

    assert_int_equal(blocks_file_write(&true_rules, state_dir, NULL), 0);
    assert_int_equal(ask_with(listener, place, &lies, "8.8.8.8\tn1.default.weft\n", &e), -EPERM);
    assert_string_equal(err_text(&e),
        "names are those of n1 in default with addresses of 10.42.0.0/16 and fd5a:1::/64, as root "
        "wrote at the join; the agent says something else");
    assert_int_equal(
        ask_with(listener, place, &true_rules, "8.8.8.8\tn1.default.weft\n", &e), -EINVAL);
    assert_file("127.0.0.1 localhost\n");
    assert_int_equal(ask_with(listener, place, &true_rules, "10.42.0.2\tn1.default.weft\n", &e), 0);

    /* What was written can be taken away by whoever asks, as at an end of everything. */
    blocks_file_remove(state_dir);
    assert_int_equal(ask_with(listener, place, &true_rules, NULL, &e), 0);
    assert_file("127.0.0.1 localhost\n");
    (void)close(listener);
    (void)unlink(place);
}

static void test_one_that_a_service_manager_starts(void **state)
{
    struct hosts_rules rules = rules_with("10.42.0.0/16");
    struct hosts_helper *h = NULL;
    char place[96];
    bool changed;
    int listener;
    pid_t first;
    pid_t second;

    assert_int_equal(blocks_file_write(&rules, state_dir, NULL), 0);
    (void)snprintf(place, sizeof(place), "%s/helper.sock", folder);
    assert_int_equal(hosts_helper_find(&h, place, &rules, NULL), -ENOENT);
    listener = unix_socket_listen(place, SOCK_STREAM, 0600);
    assert_true(listener >= 0);
    first = serve_one(listener);
    assert_int_equal(hosts_helper_find(&h, place, &rules, NULL), 0);
    assert_int_equal(
        hosts_helper_put(h, OWNER, "10.42.0.2\tn1.default.weft n1\n", &changed, NULL), 0);
    assert_true(changed);
    assert_int_equal(hosts_helper_put(h, OWNER, "192.0.2.1\tn1\n", &changed, NULL), -EINVAL);

    end(first);
    second = serve_one(listener);
    assert_int_equal(hosts_helper_put(h, OWNER, NULL, &changed, NULL), 0);
    assert_file("127.0.0.1 localhost\n");
    assert_null(hosts_helper_free(h));
    assert_int_equal(waitpid(second, NULL, 0), second);

    /* Rules that cannot be: it hangs up, and so does the next. */
    rules.cidr4.len = 200;
    second = serve_one(listener);
    assert_int_equal(hosts_helper_find(&h, place, &rules, NULL), 0);
    (void)close(listener);
    assert_int_equal(hosts_helper_put(h, OWNER, NULL, &changed, NULL), -ECONNREFUSED);
    assert_null(hosts_helper_free(h));
    assert_int_equal(waitpid(second, NULL, 0), second);
    (void)unlink(place);
}

/* The helper that is a child of this process; 0: there is no child. */
static int child_of_ours(void)
{
    char place[64];
    int pid = 0;
    FILE *f;

    (void)snprintf(place, sizeof(place), "/proc/self/task/%d/children", (int)getpid());
    f = fopen(place, "re");
    assert_non_null(f);
    if (fscanf(f, "%d", &pid) != 1)
        pid = 0;
    (void)fclose(f);
    return pid;
}

/* One that is killed stays no zombie of the agent, once the agent has noticed. */
static void test_a_killed_one_is_waited_for(void **state)
{
    struct hosts_helper *h = start();
    int pid = child_of_ours();
    bool changed;

    assert_int_not_equal(pid, 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(hosts_helper_put(h, OWNER, NULL, &changed, NULL), -EPIPE);
    assert_int_equal(child_of_ours(), 0);
    assert_int_equal(hosts_helper_put(h, OWNER, NULL, &changed, NULL), -EPIPE);
    assert_null(hosts_helper_free(h));
}

static void test_puts_and_takes_away(void **state)
{
    struct hosts_helper *h = start();
    bool changed = false;

    assert_int_equal(
        hosts_helper_put(h, OWNER, "10.42.0.2\tn1.default.weft n1\n", &changed, NULL), 0);
    assert_true(changed);
    assert_file("127.0.0.1 localhost\n# weft begin " OWNER "\n10.42.0.2\tn1.default.weft n1\n"
                "# weft end " OWNER "\n");
    assert_int_equal(
        hosts_helper_put(h, OWNER, "10.42.0.2\tn1.default.weft n1\n", &changed, NULL), 0);
    assert_false(changed);
    assert_int_equal(hosts_helper_put(h, OWNER, NULL, &changed, NULL), 0);
    assert_file("127.0.0.1 localhost\n");
    assert_null(hosts_helper_free(h));
}

static void test_refuses(void **state)
{
    struct hosts_helper *h = start();
    struct err e = ERR_NULL;
    bool changed;

    assert_int_equal(hosts_helper_put(h, OWNER, "192.0.2.1\texample.org\n", &changed, &e), -EINVAL);
    assert_string_equal(err_text(&e), "line 1: \"192.0.2.1\" is no address of the network");
    assert_int_equal(
        hosts_helper_put(h, "default/n2/5f02a1b3", "10.42.0.2\tn1\n", &changed, NULL), -EINVAL);
    assert_file("127.0.0.1 localhost\n");
    /* It lives, and does what it may. */
    assert_int_equal(hosts_helper_put(h, OWNER, "10.42.0.2\tn1\n", &changed, NULL), 0);
    assert_null(hosts_helper_free(h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_puts_and_takes_away, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refuses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_killed_one_is_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_that_a_service_manager_starts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_blocks_are_not_the_callers, set_up, tear_down),
    };

    if (emulated_lacks("seccomp"))
        return EMULATED_SKIPPED;
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
