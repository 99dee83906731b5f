/*
 * remote_http.h - how a back end asks a store elsewhere: JSON over HTTP or HTTPS, and streams of
 * lines, on a thread of the back end's own.
 *
 * The back ends for etcd and for Kubernetes use it. The client of the hub's own API
 * (api/client/client.h) shares http_exchange.h with it, and no more: it runs on the hub's loop,
 * trusts a pinned key and no authority, signs requests as a member, and has one server.
 *
 * Theory of operation. One libcurl multi handle. remote_http_call() sends a request and runs the
 * multi handle until the answer is whole, so a back end's steps are written one after the other.
 * The lines of open streams are given out meanwhile, by remote_http_call() and by
 * remote_http_wait(). There is one list of servers, and one of them is the current one: a request
 * goes to that server, or to the next one if it cannot be sent there. When a request was sent and
 * no answer came, the server may have done it. So it is not repeated here. The caller is told
 * REMOTE_HTTP_E_LOST and knows whether its request may be done twice, and the next server becomes
 * the current one.
 *
 * libcurl sends a request once more by itself in one case: on a connection that had been used
 * before and that the server closed before it answered a byte. Requests therefore have to be safe
 * to repeat, or name the revision that they expect.
 *
 * Threads: one at a time for each struct remote_http.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/secret.h"

struct err;

/** Most servers to turn to. */
#define REMOTE_HTTP_SERVERS_MAX 16

/** Longest URL of a server, bytes: "https://HOST:PORT", and perhaps a path without '/' at its end.
 */
#define REMOTE_HTTP_SERVER_MAX 300

/* Outcomes. */
#define REMOTE_HTTP_E_UNSENT   1 /* the request reached no server: nothing was done */
#define REMOTE_HTTP_E_LOST     2 /* it was sent, and no whole answer came: perhaps it was done */
#define REMOTE_HTTP_E_TOO_BIG  3 /* the answer is longer than the request allows */
#define REMOTE_HTTP_E_DISTRUST 4 /* unsent too: a certificate or a key is not as it has to be */

struct remote_http;
struct remote_http_stream;

/** How servers are reached. All texts are copied. */
struct remote_http_config {
    const char *servers[REMOTE_HTTP_SERVERS_MAX]; /* the first @n_servers are set */
    size_t n_servers;                             /* at least 1 */
    const char *ca_file;   /* PEM: the authorities to trust; NULL: the system's */
    const char *cert_file; /* PEM: the client's certificate; NULL: none */
    const char *key_file;  /* PEM: its key; NULL: none */
    unsigned connect_ms;   /* most time for a connection, TLS included */
};

/** A request. Everything is borrowed, for the length of the call. */
struct remote_http_request {
    const char *method;       /* "GET", "POST", ... */
    const char *path;         /* begins with '/'; is put behind the server's URL */
    const char *body;         /* NULL: none */
    size_t body_len;          /* bytes */
    const char *content_type; /* of the body; NULL: "application/json" */
    const char *accept;       /* what the answer may be; NULL: anything */
    unsigned timeout_ms;      /* for all of it; a stream has none: its caller watches for silence */
    size_t max;               /* most bytes of the answer; of a stream: of one line */
};

/** What came back. */
struct remote_http_answer {
    int status; /* HTTP status */
    char *body; /* owns; zero-terminated; never NULL after a success */
    size_t len; /* bytes, without the zero */
};

#define REMOTE_HTTP_ANSWER_NULL {0}

/** remote_http_answer_deinit() - idempotent; wipes the body. */
void remote_http_answer_deinit(struct remote_http_answer *a);

/**
 * remote_http_new() - nothing is connected yet
 * @ret:	gives it; remote_http_free()
 *
 * Return: 0; -EINVAL with words for a server's URL that is none, or a file that cannot be read;
 * negative errno with words.
 */
int remote_http_new(
    struct remote_http **ret, const struct remote_http_config *config, struct err *e);

/** remote_http_free() - streams must be closed before. */
struct remote_http *remote_http_free(struct remote_http *h);

/**
 * remote_http_set_authorization() - the value of the header "Authorization" from now on
 * @value:	"Bearer ..." or a token; copied, and wiped after use; NULL: no such header
 *
 * Return: 0 or -ENOMEM.
 */
int remote_http_set_authorization(struct remote_http *h, const char *value);

/** remote_http_server() - the URL of the current server; borrowed. */
const char *remote_http_server(const struct remote_http *h);

/** remote_http_turn() - make the next server the current one. */
void remote_http_turn(struct remote_http *h);

/**
 * remote_http_call() - ask, and wait for the answer; give out lines of streams meanwhile
 * @ret:	set after a success; deinit after use
 *
 * Return: 0 when a server has answered, with whatever status; REMOTE_HTTP_E_UNSENT or
 * REMOTE_HTTP_E_DISTRUST when none of the servers could be asked, REMOTE_HTTP_E_LOST or
 * REMOTE_HTTP_E_TOO_BIG, with words that name the server; -ENOMEM with words.
 */
int remote_http_call(struct remote_http *h, const struct remote_http_request *rq,
    struct remote_http_answer *ret, struct err *e);

/**
 * remote_http_line_fn - one line of a stream, without its newline
 * @line:	borrowed; zero-terminated behind @len bytes
 *
 * It is called from inside remote_http_call() and remote_http_wait(), and may call nothing here.
 */
typedef void (*remote_http_line_fn)(void *ctx, const char *line, size_t len);

/**
 * remote_http_open() - a request to the current server whose answer is a stream of lines
 * @ret:	gives it; remote_http_close()
 *
 * Nothing is waited for. A line that is longer than the request's max ends the stream.
 *
 * Return: 0; or -ENOMEM with words.
 */
int remote_http_open(struct remote_http *h, const struct remote_http_request *rq,
    remote_http_line_fn fn, void *ctx, struct remote_http_stream **ret, struct err *e);

/** remote_http_is_answered() - has the server begun to answer a stream, with whatever status? */
bool remote_http_is_answered(const struct remote_http_stream *s);

/** What became of a stream. */
struct remote_http_end {
    int r;              /* 0: the server ended it; or as of remote_http_call() */
    int status;         /* HTTP status; 0: none came */
    const char *answer; /* zero-terminated; the body of a status that is not 200, else "" */
};

/**
 * remote_http_has_ended() - is the stream over?
 * @ret:	set when it is; its text is borrowed until remote_http_close()
 * @e:		the words, when the result in @ret is not 0
 */
bool remote_http_has_ended(
    const struct remote_http_stream *s, struct remote_http_end *ret, struct err *e);

/** remote_http_close() - end a stream; not from its line function. NULL is fine. Always NULL. */
struct remote_http_stream *remote_http_close(struct remote_http_stream *s);

/**
 * remote_http_wait() - give out lines of streams, until something has happened or time is over
 * @wake_fd:	a descriptor whose being readable ends the wait too; -1: none
 *
 * It may also return for something that the caller does not wait for, so the caller checks and
 * waits again.
 */
void remote_http_wait(struct remote_http *h, int wake_fd, unsigned timeout_ms);

/** How long to wait before the next try. */
struct remote_http_backoff {
    unsigned n; /* tries that have failed since the last success */
};

/** The first wait and the longest, ms. */
#define REMOTE_HTTP_BACKOFF_FIRST_MS 50
#define REMOTE_HTTP_BACKOFF_MAX_MS   2000

/**
 * remote_http_backoff_next() - a try has failed: wait so long, ms
 *
 * Twice as long each time up to the longest, and of that a random part between a half and all, so
 * that many who lost the same server do not come back together.
 */
unsigned remote_http_backoff_next(struct remote_http_backoff *b, const struct rng *rng);
