/* said_agent.c - see said_agent.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/support/said_agent.h"

/* A POST, or a PUT, has a JSON object behind its head. */
static bool is_whole(const char *request)
{
    size_t len = strlen(request);

    return strstr(request, "\r\n\r\n") &&
           (strncmp(request, "P", 1) != 0 || request[len - 1] == '}');
}

/* False: who asked has gone before it was said. */
static bool read_request(int fd, char *request, size_t cap)
{
    size_t len = 0;
    ssize_t n;

    request[0] = '\0';
    while (!is_whole(request)) {
        n = recv(fd, request + len, cap - 1 - len, 0);
        if (n <= 0)
            return false;
        len += (size_t)n;
        request[len] = '\0';
    }
    return true;
}

/* Who asks closes the connection: when it has read all of the answer, that is an end; else it has
 * given up meanwhile, as on a machine that is busy, and what it has not read resets it. */
static bool is_taken(int fd)
{
    char byte;

    return shutdown(fd, SHUT_WR) == 0 && recv(fd, &byte, 1, 0) == 0;
}

/* An answer that nobody has waited for is given to the next who asks. */
static void *serve(void *arg)
{
    struct said_agent *a = arg;

    while (a->n < SAID_ANSWERS_MAX && a->answers[a->n].status != 0) {
        const struct said *said = &a->answers[a->n];
        char answer[1024];
        int len = snprintf(answer, sizeof(answer),
            "HTTP/1.1 %u Said\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
            "Connection: close\r\n\r\n%s",
            said->status, strlen(said->body), said->body);
        int fd;

        /* A child of the test's may end meanwhile. */
        do
            fd = accept(a->fd, NULL, NULL);
        while (fd < 0 && errno == EINTR);
        if (fd < 0) /* nobody asks any more: the test has fewer answers than it awaits */
            return NULL;
        if (read_request(fd, a->requests[a->n], sizeof(a->requests[0])) &&
            send(fd, answer, (size_t)len, MSG_NOSIGNAL) == len && is_taken(fd))
            a->n++;
        (void)close(fd);
    }
    return NULL;
}

void said_agent_start(struct said_agent *a)
{
    const struct timeval patience = {.tv_sec = 60};
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    (void)snprintf(a->path, sizeof(a->path), "/tmp/weft-test-agent.%d", (int)getpid());
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", a->path);
    (void)unlink(a->path);
    a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(a->fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(setsockopt(a->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(listen(a->fd, 4), 0);
    assert_int_equal(pthread_create(&a->thread, NULL, serve, a), 0);
}

void said_agent_end(struct said_agent *a)
{
    assert_int_equal(pthread_join(a->thread, NULL), 0);
    (void)close(a->fd);
    (void)unlink(a->path);
}
