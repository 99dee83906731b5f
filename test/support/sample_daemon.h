/*
 * sample_daemon.h - a server in a child process, for the tests of server and client.
 *
 * As in a daemon: one loop, ended by a signal, which must close everything in
 * order; sample_stop() looks at how it ended.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "api/client/client.h"
#include "base/err.h"

#define SAMPLE_BEARER "the-admin-token"
#define SAMPLE_VIEWER "the-viewer-token"

struct sample_daemon {
    pid_t pid;
    char dir[64];
    char sock[96];  /* of the admin API */
    char https[64]; /* "127.0.0.1:PORT" of the public one */
    uint16_t port;
    struct tls_pin pin;
};

extern struct sample_daemon sample_daemon;

/** sample_start(), sample_stop() - a group's set-up and teardown. */
int sample_start(void **state);
int sample_stop(void **state);

/** The two ways to the daemon. */
struct client_target sample_by_unix(void);
struct client_target sample_by_https(void);

/** What the last sample_call() gave. */
extern struct client_answer sample_answer;
extern struct err sample_words;

/** sample_call() - client_call() with five seconds; @body is taken. */
int sample_call(struct client_target t, const char *method, const char *path, json_t *body);
