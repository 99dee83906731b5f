/*
 * said_agent.h - an agent that is a thread of the test: each request gets the next answer of a
 * list.
 */
#pragma once

#include <pthread.h>

#define SAID_ANSWERS_MAX 4

struct said {
    unsigned status;
    const char *body;
};

struct said_agent {
    struct said answers[SAID_ANSWERS_MAX]; /* status 0: no more */
    char requests[SAID_ANSWERS_MAX][512];
    unsigned n;
    char path[108]; /* of its socket */
    int fd;
    pthread_t thread;
};

/** said_agent_start() - @a: with its answers set. */
void said_agent_start(struct said_agent *a);

/** said_agent_end() - wait until it has given all answers. */
void said_agent_end(struct said_agent *a);
