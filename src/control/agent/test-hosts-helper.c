/* test-hosts-helper.c - what the helper writes for the agent, and what it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
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

/* Exits with 0 when the agent has ended, and with 2 when it was told what cannot be, or nothing. */
static _Noreturn void be_helper(void)
{
    struct err e = ERR_NULL;
    int r = hosts_helper_serve(path, state_dir, &e);

    if (r == -EPIPE && strcmp(e.text, "nobody says on standard input whose names they are") != 0)
        _exit(3);
    _exit(r < 0 && e.text[0] != '\0' ? 2 : 4);
}

/* What a service manager does for one connection to @listener. */
static pid_t serve_one(int listener)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct pollfd ready = {.fd = listener, .events = POLLIN};
        int fd = -1;

        /* Another one that waits may have been sooner. */
        do {
            errno = ETIMEDOUT;
            if (poll(&ready, 1, 10000) == 1)
                fd = accept(listener, NULL, NULL);
        } while (fd < 0 && errno == EAGAIN);
        if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
            _exit(1);
        (void)close(fd);
        (void)close(listener);
        be_helper();
    }
    return pid;
}

static void end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int exit_status(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
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
static int ask_as(int listener, const char *place, const struct hosts_rules *rules,
    const char *owner, const char *block, struct err *e)
{
    struct hosts_helper *h = NULL;
    pid_t pid = serve_one(listener);
    bool changed;
    int r;

    assert_int_equal(hosts_helper_find(&h, place, rules, NULL), 0);
    r = hosts_helper_put(h, owner, block, &changed, e);
    /* One that takes no lines ends by itself, so that the next one looks again. */
    if (r == -EPERM)
        assert_int_equal(exit_status(pid), 0);
    assert_null(hosts_helper_free(h));
    if (r != -EPERM)
        assert_int_equal(exit_status(pid), 0);
    return r;
}

static int ask_with(int listener, const char *place, const struct hosts_rules *rules,
    const char *block, struct err *e)
{
    return ask_as(listener, place, rules, OWNER, block, e);
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

static int listen_at(char place[static 96])
{
    int listener;

    (void)snprintf(place, 96, "%s/helper.sock", folder);
    listener = unix_socket_listen(place, SOCK_STREAM, 0600);
    assert_true(listener >= 0);
    return listener;
}

/* All that root has written has to be the same. */
static void test_each_part_of_what_root_says(void **state)
{
    const struct hosts_rules said = rules_with("10.42.0.0/16");
    struct hosts_rules others[] = {said, said, said, said, said};
    const char *const owners[] = {OWNER, OWNER, OWNER, "default/n2/5f02a1b3", "other/n1/5f02a1b3"};
    struct err e = ERR_NULL;
    char place[96];
    int listener = listen_at(place);

    others[0].cidr4 = rules_with("10.43.0.0/16").cidr4;
    others[1].cidr4.len = 17;
    others[2].cidr6.len = 65;
    (void)snprintf(others[3].node, sizeof(others[3].node), "n2");
    (void)snprintf(others[4].network, sizeof(others[4].network), "other");
    assert_int_equal(blocks_file_write(&said, state_dir, NULL), 0);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(ask_as(listener, place, &others[i], owners[i], "", &e), -EPERM);
    assert_int_equal(ask_with(listener, place, &said, "", &e), 0);
    (void)close(listener);
    (void)unlink(place);
}

/* What root has written is damaged: it says nothing then. */
static void test_a_damaged_file_of_root(void **state)
{
    const struct hosts_rules rules = rules_with("10.42.0.0/16");
    struct err e = ERR_NULL;
    char place[96];
    char blocks[96];
    int listener = listen_at(place);

    (void)snprintf(blocks, sizeof(blocks), "%s.blocks", state_dir);
    assert_int_equal(statefile_replace(blocks, "{", 1, 0644, NULL), 0);
    assert_int_equal(ask_with(listener, place, &rules, "10.42.0.2\tn1\n", &e), -EINVAL);
    assert_non_null(strstr(e.text, blocks));
    assert_file("127.0.0.1 localhost\n");
    (void)close(listener);
    (void)unlink(place);
}

/* Does a helper take these rules, as they come over a socket? Root has said nothing, so no lines
 * are taken in any case. */
static bool takes_rules(int listener, const char *place, const struct hosts_rules *rules)
{
    struct hosts_helper *h = NULL;
    pid_t pid = serve_one(listener);
    int status;

    assert_int_equal(hosts_helper_find(&h, place, rules, NULL), 0);
    assert_null(hosts_helper_free(h));
    status = exit_status(pid);
    assert_true(status == 0 || status == 2);
    return status == 0;
}

static void test_rules_that_can_be(void **state)
{
    struct hosts_rules rules = rules_with("10.42.0.0/16");
    char place[96];
    int listener = listen_at(place);

    assert_true(takes_rules(listener, place, &rules));
    rules.cidr4.len = 32;
    rules.cidr6.len = 128;
    assert_true(takes_rules(listener, place, &rules));
    rules.cidr4.len = 33;
    assert_false(takes_rules(listener, place, &rules));
    rules.cidr4.len = 32;
    rules.cidr6.len = 129;
    assert_false(takes_rules(listener, place, &rules));
    rules.cidr6.len = 128;
    /* Names that do not end are cut where there is no more room. */
    memset(rules.network, 'a', sizeof(rules.network));
    memset(rules.node, 'b', sizeof(rules.node));
    assert_true(takes_rules(listener, place, &rules));
    rules.network[0] = '-';
    assert_false(takes_rules(listener, place, &rules));
    rules.network[0] = 'a';
    rules.node[0] = '-';
    assert_false(takes_rules(listener, place, &rules));
    (void)close(listener);
    (void)unlink(place);
}

/* As the agent sends it. */
struct raw_ask {
    char owner[HOSTS_OWNER_MAX];
    uint32_t len;
};

/* What no agent sends ends the helper, without an answer. */
static void test_requests_that_no_agent_sends(void **state)
{
    const struct hosts_rules rules = rules_with("10.42.0.0/16");
    const struct raw_ask asks[] = {
        {.owner = OWNER, .len = (32u << 20) + 1}, {.owner = OWNER, .len = 8}};
    char place[96];
    int listener = listen_at(place);

    for (unsigned i = 0; i < 2; i++) {
        pid_t pid = serve_one(listener);
        int fd = unix_socket_connect(place, SOCK_STREAM);
        char byte;

        assert_true(fd >= 0);
        assert_int_equal(file_write_all(fd, &rules, sizeof(rules)), 0);
        assert_int_equal(file_write_all(fd, &asks[i], sizeof(asks[i])), 0);
        assert_int_equal(file_write_all(fd, "short", 5), 0);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        assert_true(read(fd, &byte, 1) <= 0);
        assert_int_equal(exit_status(pid), 0);
        (void)close(fd);
    }
    (void)close(listener);
    (void)unlink(place);
}

static void test_nobody_on_standard_input(void **state)
{
    pid_t pid = fork();

    if (pid == 0) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        (void)dup2(null, STDIN_FILENO);
        be_helper();
    }
    assert_int_equal(exit_status(pid), 2);
}

/* As many lines as there may be, and one byte more. */
static void test_how_much_is_taken(void **state)
{
    const size_t most = 32u << 20;
    char *block = malloc(most + 2);
    struct hosts_helper *h = start();
    struct err e = ERR_NULL;
    bool changed;

    assert_non_null(block);
    memset(block, 'x', most + 1);
    block[most + 1] = '\0';
    assert_int_equal(hosts_helper_put(h, OWNER, block, &changed, &e), -E2BIG);
    assert_string_equal(e.text, "33554433 bytes of names are more than 33554432");
    block[most] = '\0';
    assert_int_equal(hosts_helper_put(h, OWNER, block, &changed, &e), -EINVAL);
    assert_string_equal(e.text, "line 1 is not a line of text");
    free(block);
    assert_null(hosts_helper_free(h));
}

static void test_one_that_a_service_manager_starts(void **state)
{
    struct hosts_rules rules = rules_with("10.42.0.0/16");
    struct hosts_helper *h = NULL;
    struct err e = ERR_NULL;
    char words[256];
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
    assert_int_equal(hosts_helper_put(h, OWNER, NULL, &changed, &e), -ECONNREFUSED);
    (void)snprintf(words, sizeof(words),
        "nobody who writes the hosts file listens on %s: Connection refused", place);
    assert_string_equal(e.text, words);
    assert_null(hosts_helper_free(h));
    assert_int_equal(waitpid(second, NULL, 0), second);
    (void)unlink(place);
}

/* Two times, and there is no third. */
static void test_a_helper_that_hangs_up(void **state)
{
    struct hosts_rules rules = rules_with("10.42.0.0/16");
    struct hosts_helper *h = NULL;
    struct err e = ERR_NULL;
    pid_t pids[2];
    char place[96];
    bool changed;
    int listener = listen_at(place);

    rules.cidr4.len = 200;
    for (unsigned i = 0; i < 2; i++)
        pids[i] = serve_one(listener);
    assert_int_equal(hosts_helper_find(&h, place, &rules, NULL), 0);
    assert_int_equal(hosts_helper_put(h, OWNER, NULL, &changed, &e), -EPIPE);
    assert_string_equal(e.text, "the process that writes the hosts file ends without an answer");
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(exit_status(pids[i]), 2);
    assert_null(hosts_helper_free(h));
    (void)close(listener);
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
    struct err e = ERR_NULL;
    bool changed;

    assert_int_not_equal(pid, 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(hosts_helper_put(h, OWNER, NULL, &changed, &e), -EPIPE);
    assert_string_equal(e.text,
        "the process that writes the hosts file has ended; it comes back with the next start of "
        "the agent");
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
        cmocka_unit_test_setup_teardown(test_each_part_of_what_root_says, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_damaged_file_of_root, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rules_that_can_be, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_requests_that_no_agent_sends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nobody_on_standard_input, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_how_much_is_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_helper_that_hangs_up, set_up, tear_down),
    };

    if (emulated_lacks("seccomp"))
        return EMULATED_SKIPPED;
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
