/*
 * mail.h - what the hub's loop and the thread that writes the resources tell each other.
 *
 * Each of the two has a queue, into which the other one puts. A mail belongs to who has it; what is
 * inside is nobody else's, so the JSON in it is not shared between threads.
 */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/list.h"
#include "hub/resources/resource.h"

enum mail_what {
    /* From the loop. */
    MAIL_OBJECT, /* what the hub has: @json; NULL: no such object */
    MAIL_STATUS, /* its status: @json */
    MAIL_ALL,    /* everything has been told, after the MAIL_TELL_ALL of that @status */
    MAIL_KEEP,   /* projection_keep_all(), if @status is not 0 */
    MAIL_ANSWER, /* to MAIL_PUT or MAIL_REMOVE: @status, @text or @json */

    /* From the thread. */
    MAIL_TELL_ALL, /* it begins: tell everything; @status: a number for MAIL_ALL */
    MAIL_TELL,     /* tell this object and its status again */
    MAIL_QUIET,    /* another hub writes the resources: tell nothing */
    MAIL_PUT,      /* a wish: put @json, written by @by */
    MAIL_REMOVE,   /* a wish: remove the object */
};

struct mail {
    struct list link;
    enum mail_what what;
    const struct object_kind *kind;
    char name[RESOURCE_NAME_MAX + 1]; /* of the resource */
    json_t *json;                     /* owns; NULL: none */
    int status;                       /* of an answer, as HTTP has it; else see there */
    bool is_remove;                   /* it is the answer to MAIL_REMOVE */
    char *text;                       /* owns; of an answer that refuses; NULL: none */
    char by[RESOURCE_BY_MAX + 1];     /* field manager who wishes it */
};

struct mail_queue {
    pthread_mutex_t lock; /* guards what follows */
    struct list mails;    /* of struct mail, the oldest first */
};

/** mail_queue_init() - empty. */
void mail_queue_init(struct mail_queue *q);

/** mail_queue_deinit() - with what is inside. Call once. */
void mail_queue_deinit(struct mail_queue *q);

/** mail_new() - @name: NULL: none. NULL: no memory. */
struct mail *mail_new(enum mail_what what, const struct object_kind *kind, const char *name);

/** mail_free() - NULL is fine. */
void mail_free(struct mail *m);

/** mail_put() - @m is taken. Who reads the queue is to be woken. */
void mail_put(struct mail_queue *q, struct mail *m);

/** mail_take() - gives the oldest one; NULL: there is none. */
struct mail *mail_take(struct mail_queue *q);
