/*
 * writer.h - the thread that writes and watches the resources of a namespace.
 *
 * It holds the Lease (resource_api.h), and while it does, a projection (projection.h) of all
 * objects. It reads the resources of each kind by a list in pages and then by a watch with
 * bookmarks, which goes on from the version that it saw last; when that is too old (410) the list
 * is read again. What is due is done by one request after the other. Wishes go to the hub's loop by
 * mail, and the loop judges them as it judges any administrator's request.
 *
 * The hub does not depend on it: without the resources, or without the rights to write them, it
 * says so once and tries again each half minute.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/containers.h"
#include "hub/resources/resource.h"

struct resource_counts;
struct writer;

/* ---- what the hub's loop and the thread that writes the resources tell each other ------------ */

/*
 * A mail is a job of the thread's worker (os/worker.h), in either direction. What is inside belongs
 * to who has it, so the JSON is not shared between threads.
 */

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

/** mail_new() - @name: NULL: none; @json: taken, also on failure. NULL: no memory. */
struct mail *mail_new(enum mail_what what, const struct object_kind *kind, const char *name,
    int status, json_t *json);

/** mail_free() - NULL is fine. */
void mail_free(struct mail *m);

/* ---- the thread ------------------------------------------------------------------------------ */

/**
 * writer_start() - read the store's files, and start the thread
 * @where:	what follows "kubernetes:" in the store's URL
 * @me:		names this hub among those of the store
 * @counts:	pinned: counted from the thread
 */
int writer_start(struct writer **ret, const char *where, const char *me,
    struct resource_counts *counts, struct err *e);

/** writer_put() - mail for the thread; @m is taken. The loop's thread only. */
void writer_put(struct writer *w, struct mail *m);

/** writer_collect() - gives the oldest mail for the loop; NULL: there is none. */
struct mail *writer_collect(struct writer *w);

/** writer_fd() - readable while there is mail for the loop. */
int writer_fd(const struct writer *w);

/** writer_stop() - give the Lease back, and join the thread. NULL is fine. Always NULL. */
struct writer *writer_stop(struct writer *w);

/* ---- reading the resources of one kind for a projection: a list in pages, then a watch ------- */

/*
 * The watch goes on from the version that was seen last, which bookmarks keep young. When the
 * server says that this is too old (410), the list is read again.
 *
 * Threads: the writer's.
 */

/** Longest resourceVersion that is kept. */
#define KIND_WATCH_VERSION_MAX 128

/** A watch that could not be opened, or that was refused, is not opened again before. */
#define KIND_WATCH_PAUSE (1 * NSEC_PER_SEC)

/** The first three are set by whoever has it; the rest is zero at first. */
struct kind_watch {
    struct kube_client *api;       /* pins */
    struct projection *projection; /* pins */
    const struct object_kind *kind;
    struct remote_http_stream *stream;    /* owns; NULL: to be opened */
    char version[KIND_WATCH_VERSION_MAX]; /* to go on from; "": the list is to be read */
    bool is_over;                         /* the server has said so in the stream */
    nsec_t failed_at;                     /* when it could not be opened; 0: it was */
};

/**
 * kind_watch_tend() - have a watch that is open, and all that was there before it
 *
 * Return: 0; or as of kube_client_ask(), with words, when that failed just now.
 */
int kind_watch_tend(struct kind_watch *k, nsec_t now, struct err *e);

/** kind_watch_forget() - close it; what was read is to be read again. Idempotent. */
void kind_watch_forget(struct kind_watch *k);
