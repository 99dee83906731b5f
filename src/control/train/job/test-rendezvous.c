/*
 * test-rendezvous.c - what becomes of a job's meeting, as the hub's answers tell; and waiting until
 * one of several hubs serves it.
 *
 * The agent is a thread of this test, which answers each request with the next of a list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "train/job/rendezvous.h"

#define ANSWERS_MAX 4

struct said {
    unsigned status;
    const char *body;
};

struct agent {
    struct said answers[ANSWERS_MAX]; /* status 0: no more */
    char requests[ANSWERS_MAX][512];
    unsigned n;
    char path[108];
    int fd;
    pthread_t thread;
};

static const char *const meeting =
    "{\"run\":\"job.2\",\"epoch\":\"b\",\"c10d\":{\"endpoint\":\"10.0.0.1:1\"},"
    "\"etcdV2\":{\"endpoint\":\"10.0.0.1:2\"}}";

static const char *const not_served = "{\"error\":\"no hub serves it\"}";

/* A POST has a JSON object behind its head. */
static bool is_whole(const char *request)
{
    size_t len = strlen(request);

    return strstr(request, "\r\n\r\n") &&
           (strncmp(request, "POST", 4) != 0 || request[len - 1] == '}');
}

static void read_request(int fd, char *request, size_t cap)
{
    size_t len = 0;
    ssize_t n;

    request[0] = '\0';
    while (!is_whole(request)) {
        n = recv(fd, request + len, cap - 1 - len, 0);
        if (n <= 0)
            return;
        len += (size_t)n;
        request[len] = '\0';
    }
}

static void *serve(void *arg)
{
    struct agent *a = arg;

    while (a->n < ANSWERS_MAX && a->answers[a->n].status != 0) {
        const struct said *said = &a->answers[a->n];
        char answer[512];
        int len = snprintf(answer, sizeof(answer),
            "HTTP/1.1 %u Said\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
            "Connection: close\r\n\r\n%s",
            said->status, strlen(said->body), said->body);
        int fd = accept(a->fd, NULL, NULL);

        read_request(fd, a->requests[a->n], sizeof(a->requests[0]));
        if (send(fd, answer, (size_t)len, MSG_NOSIGNAL) != len)
            abort();
        (void)close(fd);
        a->n++;
    }
    return NULL;
}

static void start(struct agent *a)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    (void)snprintf(a->path, sizeof(a->path), "/tmp/weft-test-rendezvous.%d", (int)getpid());
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", a->path);
    (void)unlink(a->path);
    a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(a->fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(a->fd, 4), 0);
    assert_int_equal(pthread_create(&a->thread, NULL, serve, a), 0);
}

static void end(struct agent *a)
{
    assert_int_equal(pthread_join(a->thread, NULL), 0);
    (void)close(a->fd);
    (void)unlink(a->path);
}

/* Neither a hub that does not answer the agent nor one that does not serve the job is the end. */
static void test_wait(void **state)
{
    struct agent a = {
        .answers = {{502, "{\"error\":\"away\"}"}, {421, not_served}, {200, meeting}}};

    start(&a);
    assert_true(rendezvous_wait(a.path, "job", 60000));
    assert_int_equal(a.n, 3);
    end(&a);
    assert_false(rendezvous_wait(a.path, "job", 1));

    /* A hub that has forgotten the job can make it again. */
    a = (struct agent){.answers = {{404, "{\"error\":\"no job\"}"}}};
    start(&a);
    assert_true(rendezvous_wait(a.path, "job", 60000));
    end(&a);
}

static void test_ask(void **state)
{
    struct agent a = {.answers = {{421, not_served}, {200, meeting}}};
    struct env_meeting m;
    struct err e = ERR_NULL;

    start(&a);
    assert_int_equal(rendezvous_ask(a.path, "job", "job.1", &m, &e), 0);
    end(&a);
    assert_string_equal(m.id, "job.2");
    assert_string_equal(m.epoch, "b");
    for (unsigned i = 0; i < 2; i++) {
        assert_non_null(strstr(a.requests[i], "POST /v1/jobs/job/rendezvous "));
        assert_non_null(strstr(a.requests[i], "{\"brokenRun\":\"job.1\"}"));
    }
}

static void test_look(void **state)
{
    static const struct {
        struct env_meeting was;
        struct said now;
        enum rendezvous_state state;
    } cases[] = {
        {{.id = "job.2", .epoch = "b"}, {200, meeting}, RENDEZVOUS_STATE_SAME},
        {{.id = "job.2", .epoch = "a"}, {200, meeting}, RENDEZVOUS_STATE_MOVED},
        {{.id = "job.1", .epoch = "b"}, {200, meeting}, RENDEZVOUS_STATE_BROKEN},
        {{.id = "job.1", .epoch = "a"}, {200, meeting}, RENDEZVOUS_STATE_BROKEN},
        {{.id = "job.2", .epoch = "b"}, {421, not_served}, RENDEZVOUS_STATE_UNKNOWN},
        {{.id = "job.2", .epoch = "b"}, {404, not_served}, RENDEZVOUS_STATE_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct agent a = {.answers = {cases[i].now}};

        start(&a);
        assert_int_equal(rendezvous_look(a.path, "job", &cases[i].was), cases[i].state);
        end(&a);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_ask),
        cmocka_unit_test(test_look),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
