/*
 * route.h - requests, answers, and the table that leads from one to the other.
 *
 * A daemon has one table of routes: method, path, who may ask, handler, help.
 * Nothing here knows a socket; server.c feeds it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/addr.h"
#include "base/clock.h"

struct err;
struct stream;
struct upgrade;

/** Through which door a request came; a route names those that it opens to. */
enum door {
    DOOR_PUBLIC = 1,  /* anybody, over TLS */
    DOOR_OVERLAY = 2, /* a member, over the network's interface */
    DOOR_ADMIN = 4,   /* root's unix socket, or TLS with the admin token */
};

/** Most variable parts of a path. */
#define ROUTE_PARAMS_MAX 3

/** Longest path, and longest variable part. */
#define ROUTE_PATH_MAX  512
#define ROUTE_PARAM_MAX 159

/** A request as a handler sees it. Everything is borrowed. */
struct request {
    enum door door;                                     /* see there */
    void *door_ctx;                                     /* of the listener it came through */
    struct endpoint from;                               /* the other end; none: unix socket */
    char params[ROUTE_PARAMS_MAX][ROUTE_PARAM_MAX + 1]; /* the path's variable parts, in order */
    const char *authorization;                          /* that header; NULL: none was sent */
    const json_t *body;                                 /* an object; NULL: none was sent */
    nsec_t now;                                         /* monotonic time of this turn */
};

/** What a handler answers. Starts as zeroes, which is 500. */
struct response {
    int status;              /* HTTP's */
    json_t *body;            /* owns a reference; NULL: none */
    char *text;              /* owns; what to send instead of a body */
    const char *type;        /* of @text, as in Content-Type; a constant */
    struct stream *stream;   /* pins; lines for ever instead of a body (stream.h) */
    struct upgrade *upgrade; /* pins; bytes both ways, and no answer (upgrade.h) */
};

/** response_deinit() - release what it owns. Idempotent. */
void response_deinit(struct response *rs);

/** response_json() - @status with @body, which is taken; NULL (no memory) becomes 500. */
void response_json(struct response *rs, int status, json_t *body);

/** response_text() - @status with @text of @type; it is taken; NULL (no memory) becomes 500. */
void response_text(struct response *rs, int status, char *text, const char *type);

/** response_empty() - 204: done, nothing to say. */
void response_empty(struct response *rs);

/** response_refuse() - @status with one sentence that names the value and what is allowed. */
void response_refuse(struct response *rs, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** response_fail() - an unexpected failure: 507 for a full disk, 400 for -EINVAL, else 500. */
void response_fail(struct response *rs, const struct err *e);

/** Answers a request. @ctx is the table's owner. */
typedef void (*route_fn)(void *ctx, const struct request *rq, struct response *rs);

struct route {
    const char *method; /* "GET" */
    const char *path;   /* "/v1/networks/{network}": braces hold a variable part */
    unsigned doors;     /* enum door, or-ed */
    route_fn handle;    /* see there */
    const char *help;   /* one clause */
};

/** The last row of a table. */
#define ROUTES_END {0}

/**
 * route_find() - the row for a request
 * @path:	as sent, without a query; a variable part is 1 to ROUTE_PARAM_MAX of the characters
 *		that names are made of, and '.', '_', ':'
 * @params:	filled in as far as the row has variable parts
 * @rs:		when there is no row: 404, or 405 for another method, or 401 or 403 for another
 *		door, each with a sentence
 *
 * Return: NULL when @rs has the answer already.
 */
const struct route *route_find(const struct route *table, enum door door, const char *method,
    const char *path, char params[ROUTE_PARAMS_MAX][ROUTE_PARAM_MAX + 1], struct response *rs);
