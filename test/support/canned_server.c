/* canned_server.c - see canned_server.h. */
#include "test/support/canned_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Read a request: the head, and as much body as it says. */
static void take_request(struct canned_server *s, int fd)
{
    size_t len = 0;
    const char *end = NULL;

    s->got[0] = '\0';
    while (len < sizeof(s->got) - 1) {
        ssize_t n = read(fd, s->got + len, sizeof(s->got) - 1 - len);
        const char *length;

        if (n <= 0)
            return;
        len += (size_t)n;
        s->got[len] = '\0';
        end = strstr(s->got, "\r\n\r\n");
        length = strstr(s->got, "Content-Length: ");
        if (end &&
            len >= (size_t)(end + 4 - s->got) + (length ? strtoul(length + 16, NULL, 10) : 0))
            return;
    }
}

static void note_request(struct canned_server *s)
{
    const char *path = strchr(s->got, ' ');
    size_t len = strlen(s->asked);
    size_t n = path ? (size_t)(path - s->got) + 1 + strcspn(path + 1, " ") : 0;

    (void)snprintf(s->asked + len, sizeof(s->asked) - len, "%.*s|", (int)n, s->got);
}

static void *serve(void *arg)
{
    struct canned_server *s = arg;

    for (size_t i = 0; i < s->n_answers; i++) {
        int fd = accept(s->fd, NULL, NULL);

        take_request(s, fd);
        note_request(s);
        if (s->answers[i])
            (void)!write(fd, s->answers[i], strlen(s->answers[i]));
        (void)close(fd);
    }
    return NULL;
}

void canned_server_start(struct canned_server *s, const char *const *answers, size_t n_answers)
{
    canned_server_start_at(s, "127.0.0.1", 0, answers, n_answers);
}

void canned_server_start_at(struct canned_server *s, const char *address, uint16_t port,
    const char *const *answers, size_t n_answers)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t len = sizeof(at);

    *s = (struct canned_server){.answers = answers, .n_answers = n_answers};
    assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(s->url, sizeof(s->url), "http://%s:%u", address, ntohs(at.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

void canned_server_join(struct canned_server *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    (void)close(s->fd);
}
