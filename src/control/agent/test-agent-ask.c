/* test-agent-ask.c - a command asks the agent of its machine, and says what is wrong if it cannot.
 */
#include "agent/agent_ask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

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

/* @format: of the whole sentence, with the socket's path. */
static __attribute__((format(printf, 1, 0))) void cannot_ask(const char *format)
{
    struct err e = ERR_NULL;
    char words[384];

    assert_int_equal(agent_ask(path, "GET", "/v1/status", 5000, NULL, &e), AGENT_ASK_E_NONE);
    (void)snprintf(words, sizeof(words), format, path);
    assert_string_equal(e.text, words);
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

/* As an agent that answers one request, and then ends. Whoever waits for its end connects first.
 * @ready: is told when it listens. */
static _Noreturn void answer_and_end(int ready)
{
    static const char answer[] =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n"
        "{\"is\":\"down\"}";
    char request[512] = "";
    int listener = unix_socket_listen(path, SOCK_STREAM, 0600);
    int fd = -1;
    bool is_right;

    (void)fcntl(listener, F_SETFL, 0);
    (void)!write(ready, "", 1);
    if (accept(listener, NULL, NULL) >= 0)
        fd = accept(listener, NULL, NULL);
    is_right = fd >= 0 && read(fd, request, sizeof(request) - 1) > 0 &&
               strncmp(request, "POST /v1/down ", 14) == 0;

    (void)!write(fd, answer, sizeof(answer) - 1);
    _exit(is_right ? 0 : 1);
}

static void test_an_agent_that_is_asked_to_end(void **state)
{
    json_t *answer = NULL;
    int ready[2];
    int status;
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0)
        answer_and_end(ready[1]);
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    assert_int_equal(agent_ask_to_end(path, "/v1/down", 20000, &answer, NULL), 0);
    assert_string_equal(json_string_value(json_object_get(answer, "is")), "down");
    json_decref(answer);
    assert_int_equal(waitpid(pid, &status, WNOHANG), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
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
        cmocka_unit_test_setup_teardown(test_an_agent_that_dies_meanwhile, enter, leave),
        cmocka_unit_test_setup_teardown(test_an_agent_that_is_asked_to_end, enter, leave),
        cmocka_unit_test_setup_teardown(test_no_agent_to_end, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
