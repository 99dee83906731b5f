/* test-agent-ask.c - a command asks the agent of its machine, and says what is wrong if it cannot.
 */
#include "agent/agent_ask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/state/state.h"
#include "base/err.h"
#include "net/socket/unix_socket.h"
#include "test/support/said_agent.h"

static char path[80];

static int enter(void **state)
{
    (void)snprintf(path, sizeof(path), "/tmp/weft-test-ask.%d", (int)getpid());
    (void)unlink(path);
    return 0;
}

static int leave(void **state)
{
    (void)unlink(path);
    return 0;
}

static void test_an_answer(void **state)
{
    struct said_agent a = {.answers = {{200, "{\"is\":\"there\"}"}}};
    json_t *answer = NULL;

    said_agent_start(&a);
    assert_int_equal(agent_ask(a.path, "GET", "/v1/status", 60000, &answer, NULL), 0);
    said_agent_end(&a);
    assert_memory_equal(a.requests[0], "GET /v1/status ", 15);
    assert_string_equal(json_string_value(json_object_get(answer, "is")), "there");
    json_decref(answer);
}

static void test_an_answer_that_nobody_wants(void **state)
{
    struct said_agent a = {.answers = {{200, "{\"is\":\"there\"}"}}};

    said_agent_start(&a);
    assert_int_equal(agent_ask(a.path, "GET", "/v1/status", 60000, NULL, NULL), 0);
    said_agent_end(&a);
}

static void test_a_request_with_a_body(void **state)
{
    struct said_agent a = {.answers = {{200, "{}"}}};
    json_t *body = json_pack("{s:i}", "nodes", 2);

    said_agent_start(&a);
    assert_int_equal(agent_ask_with(a.path, "POST", "/v1/x", body, 60000, NULL, NULL), 0);
    said_agent_end(&a);
    json_decref(body);
    assert_non_null(strstr(a.requests[0], "{\"nodes\":2}"));
}

/* The agent's own words. */
static void test_a_refusal(void **state)
{
    struct said_agent a = {.answers = {{409, "{\"error\":\"it is ending already\"}"}}};
    json_t *answer = NULL;
    struct err e = ERR_NULL;

    said_agent_start(&a);
    assert_int_equal(agent_ask(a.path, "GET", "/v1/down", 60000, &answer, &e), -EIO);
    said_agent_end(&a);
    assert_string_equal(e.text, "it is ending already");
    assert_null(answer);
}

static void expect_words(const char *words)
{
    struct err e = ERR_NULL;

    assert_int_equal(agent_ask(path, "GET", "/v1/status", 5000, NULL, &e), AGENT_ASK_E_NONE);
    assert_string_equal(e.text, words);
}

/* @format: of the whole sentence, with the socket's path. */
static __attribute__((format(printf, 1, 0))) void cannot_ask(const char *format)
{
    char words[384];

    (void)snprintf(words, sizeof(words), format, path);
    expect_words(words);
}

static void test_no_socket(void **state)
{
    cannot_ask(
        "there is no agent on %s: this machine has not joined a network (weft join TOKEN), or "
        "its agent does not run (systemctl start weft-agent, or without systemd weft agent "
        "--background) or has another --socket");
}

/* The agent was killed. */
static void test_a_socket_that_nobody_serves(void **state)
{
    int fd = unix_socket_listen(path, SOCK_STREAM, 0600);

    assert_true(fd >= 0);
    (void)close(fd);
    cannot_ask(
        "no agent answers on %s: it has ended (systemctl start weft-agent, or without systemd "
        "weft agent --background)");
}

/* In a process of its own, which may be another user, or have other files. */
static void expect_of_child(void (*child)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        child();
        exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

static void ask_as_nobody(void)
{
    if (setgroups(0, NULL) < 0 || setresuid(65534, 65534, 65534) < 0)
        exit(77);
    cannot_ask("the agent's socket %s is not for this user: run it as root, or with sudo -E, or "
               "become a member of the group weft");
}

static void test_a_socket_that_is_not_for_this_user(void **state)
{
    int fd = unix_socket_listen(path, SOCK_STREAM, 0600);

    assert_true(fd >= 0);
    expect_of_child(ask_as_nobody);
    (void)close(fd);
}

/* On a machine whose node the hub has removed. */
static void ask_after_removal(void)
{
    struct removed rm = {.node = "n2", .network = "default", .reason = "it is sold", .at = 1};
    char text[REMOVED_TEXT_MAX];
    char words[512];

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/var/lib", "tmpfs", 0, NULL) < 0)
        exit(77);
    assert_int_equal(mkdir("/var/lib/weft", 0755), 0);
    assert_int_equal(mkdir(STATE_DIR_DEFAULT, 0755), 0);
    (void)snprintf(rm.socket_path, sizeof(rm.socket_path), "%s", path);
    assert_int_equal(removed_write(&rm, STATE_DIR_DEFAULT, NULL), 0);
    (void)snprintf(words, sizeof(words), "%s; join again with a new token (weft join TOKEN)",
        removed_explain(&rm, text));
    expect_words(words);
    /* Its agent had another socket. */
    (void)snprintf(rm.socket_path, sizeof(rm.socket_path), "/run/other");
    assert_int_equal(removed_write(&rm, STATE_DIR_DEFAULT, NULL), 0);
    cannot_ask(
        "there is no agent on %s: this machine has not joined a network (weft join TOKEN), or "
        "its agent does not run (systemctl start weft-agent, or without systemd weft agent "
        "--background) or has another --socket");
}

static void test_a_node_that_was_removed(void **state)
{
    expect_of_child(ask_after_removal);
}

static void *hang_up(void *arg)
{
    int fd = accept(*(int *)arg, NULL, NULL);
    char request[256];

    (void)!read(fd, request, sizeof(request));
    (void)close(fd);
    return NULL;
}

static void test_an_agent_that_dies_meanwhile(void **state)
{
    int fd = unix_socket_listen(path, SOCK_STREAM, 0600);
    pthread_t thread;

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, hang_up, &fd), 0);
    cannot_ask("the agent on %s was asked, and no answer came: it stands still, it has ended "
               "meanwhile, or the machine has too much to do (systemctl restart weft-agent)");
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(fd);
}

/* ---- until it has ended ---------------------------------------------------------------------- */

/* As an agent that answers one request, and then ends when nobody is connected, if it @ends.
 * Whoever waits for its end connects first. @ready: is told when it listens. */
static _Noreturn void answer_and_end(int ready, bool ends)
{
    static const char answer[] =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n"
        "{\"is\":\"down\"}";
    char request[512] = "";
    int listener = unix_socket_listen(path, SOCK_STREAM, 0600);
    int fd = -1;
    int first;
    bool is_right;

    (void)fcntl(listener, F_SETFL, 0);
    (void)!write(ready, "", 1);
    first = accept(listener, NULL, NULL);
    if (first >= 0)
        fd = accept(listener, NULL, NULL);
    is_right = fd >= 0 && read(fd, request, sizeof(request) - 1) > 0 &&
               strncmp(request, "POST /v1/down ", 14) == 0;

    (void)!write(fd, answer, sizeof(answer) - 1);
    while (!ends)
        (void)pause();
    _exit(is_right && read(first, request, 1) == 0 ? 0 : 1);
}

/* Returns when it listens. */
static pid_t start_agent(bool ends)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0)
        answer_and_end(ready[1], ends);
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    return pid;
}

static void test_an_agent_that_is_asked_to_end(void **state)
{
    json_t *answer = NULL;
    pid_t pid = start_agent(true);
    struct err e = ERR_NULL;
    int status;

    assert_int_equal(agent_ask_to_end(path, "/v1/down", 10000, &answer, &e), 0);
    assert_string_equal(e.text, "");
    assert_string_equal(json_string_value(json_object_get(answer, "is")), "down");
    json_decref(answer);
    assert_int_equal(waitpid(pid, &status, WNOHANG), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_an_agent_that_does_not_end(void **state)
{
    pid_t pid = start_agent(false);
    struct err e = ERR_NULL;
    char words[128];

    assert_int_equal(agent_ask_to_end(path, "/v1/down", 1000, NULL, &e), -ETIMEDOUT);
    (void)snprintf(words, sizeof(words),
        "the interface is gone, but the agent (process %d) has not ended: Connection timed out",
        (int)pid);
    assert_string_equal(e.text, words);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_no_agent_to_end(void **state)
{
    struct err e = ERR_NULL;

    assert_int_equal(agent_ask_to_end(path, "/v1/down", 5000, NULL, &e), AGENT_ASK_E_NONE);
    assert_string_not_equal(e.text, "");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer),
        cmocka_unit_test(test_an_answer_that_nobody_wants),
        cmocka_unit_test(test_a_request_with_a_body),
        cmocka_unit_test(test_a_refusal),
        cmocka_unit_test_setup_teardown(test_no_socket, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_socket_that_nobody_serves, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_socket_that_is_not_for_this_user, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_node_that_was_removed, enter, leave),
        cmocka_unit_test_setup_teardown(test_an_agent_that_dies_meanwhile, enter, leave),
        cmocka_unit_test_setup_teardown(test_an_agent_that_is_asked_to_end, enter, leave),
        cmocka_unit_test_setup_teardown(test_an_agent_that_does_not_end, enter, leave),
        cmocka_unit_test_setup_teardown(test_no_agent_to_end, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
