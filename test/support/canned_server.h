/*
 * canned_server.h - a server of HTTP on this machine that answers what a test has written down.
 *
 * It is a thread with a listening socket: it takes one connection after the other, reads a request,
 * writes the bytes that the test gave for it, and hangs up.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/** What an answer of status 200 begins with. */
#define CANNED_OK "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"

/** And one of another status, such as "404 Not Found". */
#define CANNED_STATUS(status) "HTTP/1.1 " status "\r\nConnection: close\r\n\r\n"

struct canned_server {
    const char *const *answers; /* pins; one a connection; NULL: hang up without a byte */
    size_t n_answers;
    int fd; /* listens */
    pthread_t thread;
    char url[64];

    /* The thread's until canned_server_join(), or until the answer to the request has come. */
    char got[4096];   /* the last request, as it came */
    char asked[4096]; /* of all of them method and path, "GET /a|GET /b|" */
};

/** canned_server_start() - from now on it is at @s->url; the caller keeps @s where it is. */
void canned_server_start(struct canned_server *s, const char *const *answers, size_t n_answers);

/** canned_server_start_at() - the same at an address of this machine's; @port: 0: any. */
void canned_server_start_at(struct canned_server *s, const char *address, uint16_t port,
    const char *const *answers, size_t n_answers);

/** canned_server_join() - wait until it has given all its answers; nobody is there any more. */
void canned_server_join(struct canned_server *s);
