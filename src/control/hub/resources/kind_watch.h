/*
 * kind_watch.h - reads the resources of one kind for a projection: a list in pages, and then a
 * watch.
 *
 * The watch goes on from the version that was seen last, which bookmarks keep young. When the
 * server says that this is too old (410), the list is read again.
 *
 * Threads: the writer's (writer.h).
 */
#pragma once

#include <stdbool.h>

#include "backends/remote/remote_http.h"
#include "base/clock.h"

struct err;
struct object_kind;
struct projection;
struct resource_api;

/** Longest resourceVersion that is kept. */
#define KIND_WATCH_VERSION_MAX 128

/** A watch that could not be opened, or that was refused, is not opened again before. */
#define KIND_WATCH_PAUSE (1 * NSEC_PER_SEC)

struct kind_watch {
    struct resource_api *api;      /* pins */
    struct projection *projection; /* pins */
    const struct object_kind *kind;
    struct remote_http_stream *stream;    /* owns; NULL: to be opened */
    char version[KIND_WATCH_VERSION_MAX]; /* to go on from; "": the list is to be read */
    bool is_over;                         /* the server has said so in the stream */
    nsec_t failed_at;                     /* when it could not be opened; 0: it was */
};

/** kind_watch_init() - nothing is read yet. */
void kind_watch_init(struct kind_watch *k, struct resource_api *api, struct projection *projection,
    const struct object_kind *kind);

/**
 * kind_watch_tend() - have a watch that is open, and all that was there before it
 *
 * Return: 0; or as of kube_client_ask(), with words, when that failed just now.
 */
int kind_watch_tend(struct kind_watch *k, nsec_t now, struct err *e);

/** kind_watch_forget() - close it; what was read is to be read again. Idempotent. */
void kind_watch_forget(struct kind_watch *k);
