/*
 * route.h - requests, answers, and the table that leads from one to the other.
 *
 * A daemon has one table of routes: method, path, who may ask, handler, help.
 * Nothing here knows a socket; server.c feeds it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/parse.h"

/* ---- who asks as administrator, and what that allows ----------------------------------------- */

/*
 * A role holds all that the ones before it hold. A route names the least role that may call it, and
 * route_admits() is the one place that compares the two. Pure.
 */

enum role {
    ROLE_NONE,     /* is no administrator */
    ROLE_VIEWER,   /* reads */
    ROLE_OPERATOR, /* reads, and changes nodes, edges and join tokens */
    ROLE_ADMIN,    /* may do everything, also with networks and admin tokens */
    ROLE_N,
};

/** What became of the admin token that came with a request. */
enum caller_verdict {
    CALLER_NONE,    /* none was sent */
    CALLER_KNOWN,   /* it is valid */
    CALLER_UNKNOWN, /* nobody has it, or it was removed */
    CALLER_EXPIRED, /* its time is over */
    CALLER_LIMITED, /* it was not checked, since that address has sent too many wrong ones */
};

/** Longest name of a caller: "admin:" and a name. */
#define CALLER_NAME_MAX (NAME_MAX_LEN + 16)

/** Who asks. */
struct caller {
    enum role role;
    enum caller_verdict verdict;
    char name[CALLER_NAME_MAX + 1]; /* "admin:ci", "uid:0"; as the audit log has it */
    int32_t pid;                    /* of a process on this machine; 0: not known */
    uint64_t session;               /* of the page that it asks through; 0: through none */
    char network[NAME_MAX_LEN + 1]; /* the only one that it may see and change; "": all */
};

/** role_names - "viewer"; "none" for ROLE_NONE. */
extern const char *const role_names[];

/** role_parse() - "viewer", "operator" or "admin"; anything else is ROLE_NONE. */
enum role role_parse(const char *text);

/** How a request reached the daemon; a route names the ways by which it may be called. */
enum api_access {
    API_ACCESS_PUBLIC = 1,  /* anybody, over TLS */
    API_ACCESS_OVERLAY = 2, /* a member, over the network's interface */
    API_ACCESS_ADMIN = 4,   /* root's unix socket, or TLS with the admin token */
    API_ACCESS_METRICS = 8, /* anybody who reaches the address for figures, over plain HTTP */
};

/** Most variable parts of a path. */
#define ROUTE_PARAMS_MAX 3

/** Longest path, and longest variable part. */
#define ROUTE_PATH_MAX  512
#define ROUTE_PARAM_MAX 159

/** A request as a handler sees it. Everything is borrowed. */
struct request {
    enum api_access access;                             /* see there */
    void *listener_ctx;                                 /* of the listener it came through */
    struct endpoint from;                               /* the other end; none: unix socket */
    char params[ROUTE_PARAMS_MAX][ROUTE_PARAM_MAX + 1]; /* the path's variable parts, in order */
    const char *method;                                 /* "GET" */
    const char *path;                                   /* decoded, without a query */
    const char *authorization;                          /* that header; NULL: none was sent */
    const char *last_event;                             /* Last-Event-ID; NULL: none was sent */
    bool is_from_page;    /* the hub's own page asks, by what the browser says of it */
    struct caller caller; /* as administrator; see there */
    const void *query;    /* for request_query(); NULL: it has none */
    const char *(*query_value)(const void *query, const char *name);
    const void *bytes;  /* the body as sent; NULL: none was */
    size_t n_bytes;     /* of that */
    const json_t *body; /* an object; NULL: none was sent */
    nsec_t now;         /* monotonic time of this turn */
};

/** What a handler answers. It starts as zeroes; if that is left so, the answer is status 500. */
struct response {
    int status;                /* HTTP's */
    json_t *body;              /* owns a reference; NULL: none */
    char *text;                /* owns; what to send instead of a body */
    const char *type;          /* of @text, as in Content-Type; a constant */
    const char *policy;        /* Content-Security-Policy, of a page for browsers; a constant */
    char *cookie;              /* owns; Set-Cookie, with a body or a text; NULL: none */
    bool is_asked_who;         /* with 401: a browser asks its user for a name and a password */
    struct stream *stream;     /* pins; lines without an end instead of a body (stream.h) */
    struct upgrade *upgrade;   /* pins; bytes both ways instead of an answer (server.h) */
    struct deferred *deferred; /* pins; the answer comes later (server.h) */
};

/** response_deinit() - release what it owns. */
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

/** response_fail() - an unexpected failure: 507 for a full disk, 503 for -EAGAIN, 400 for -EINVAL,
 * else 500. */
void response_fail(struct response *rs, const struct err *e);

/** Answers a request. @ctx is the table's owner. */
typedef void (*route_fn)(void *ctx, const struct request *rq, struct response *rs);

/** Which administrators may call a route, of those whose token is for one network only. */
enum route_scope {
    ROUTE_SCOPE_HUB,      /* none: it is about the whole hub */
    ROUTE_SCOPE_NETWORK,  /* those whose network is the path's first variable part */
    ROUTE_SCOPE_FILTERED, /* all: the handler tells about the caller's network only */
};

struct route {
    const char *method;     /* "GET" */
    const char *path;       /* "/v1/networks/{network}": braces hold a variable part; "{kind=Node}"
                             * one that must be that word. The first row that matches is taken. */
    unsigned access;        /* enum api_access, or-ed */
    route_fn handle;        /* see there */
    const char *help;       /* one clause */
    enum role role;         /* the least that may call it as administrator */
    enum route_scope scope; /* see there */
    bool is_page;           /* people open it in a browser, which asks them who they are */
    bool is_for_page;       /* the hub's page may make this call, though it changes something */
};

/** The last row of a table. */
#define ROUTES_END {0}

/**
 * route_find() - the row for a request
 * @path:	as sent, without a query; a variable part is 1 to ROUTE_PARAM_MAX of the characters
 *		that names are made of, and '.', '_', ':'
 * @params:	filled in as far as the row has variable parts
 * @rs:		when there is no row: 404, or 405 for another method, each with a sentence
 *
 * Return: NULL when @rs has the answer already.
 */
const struct route *route_find(const struct route *table, const char *method, const char *path,
    char params[ROUTE_PARAMS_MAX][ROUTE_PARAM_MAX + 1], struct response *rs);

/**
 * route_admits() - may the caller make this call? The one place that decides by access, role
 *		    and network
 * @rq:	its access, caller and parameters are looked at
 * @rs:	when not: 401 without a valid admin token; 403 for another access, too low a role or
 *		another network; 404 where only figures are; 429 after too many failures. Each has a
 *		sentence that says what is needed
 *
 * Return: false when @rs has the answer already.
 */
bool route_admits(const struct route *row, const struct request *rq, struct response *rs);

/**
 * route_check() - is each row of a table fit to be served?
 *
 * A row that only administrators may call must name a role.
 *
 * Return: 0, or -EINVAL with the row.
 */
int route_check(const struct route *table, struct err *e);

/* ---- does a request come from a program that means this daemon, or from a web page? ---------- */

/*
 * A browser on a node reaches the hub's overlay address, and a page of any site can make it send
 * there; with a name that the page's owner points to that address (DNS rebinding) it can even read
 * the answers. But a browser says in "Host" which name it was given, and in "Origin" that a page
 * asks. No program of Weft sends an "Origin".
 */

/** What a request says about where it comes from, and where it arrived. Texts: NULL if not sent. */
struct origin {
    const char *host;
    const char *origin;
    enum api_access access;
    bool is_unix;       /* it came through a unix socket */
    bool is_page;       /* the daemon's own page asks, with a session */
    struct ip_addr own; /* API_ACCESS_OVERLAY: the address that the listener is bound to */
};

/**
 * origin_check() - is the request one for this listener?
 *
 * The public API takes any: what counts there is a secret in the request; and so does a session of
 * the daemon's own page. On the overlay "Host" is
 * the listener's own address, with or without a port; on a unix socket a name without a dot; where
 * figures are any address, a name without a dot, or one in .weft, which no stranger can own.
 *
 * Return: 0; or -EPERM with words.
 */
int origin_check(const struct origin *o, struct err *e);
