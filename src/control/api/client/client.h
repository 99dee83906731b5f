/*
 * client.h - asks a hub or an agent, over TLS, the overlay or a unix socket (docs/API.md).
 *
 * Commands use client_call(), which blocks. A daemon on a libuv loop uses a
 * client_loop: the same calls, and the hub's watch as a stream of lines. Both
 * give the same outcomes in the same words.
 *
 * Over HTTPS nothing but the pin is trusted: no certificate authority, no name.
 *
 * Threads: client_call() any; a client_loop only its loop's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "crypto/hash.h"

struct client_loop;    /* the calls that are under way on one libuv loop */
struct client_request; /* a call that is under way */
struct client_upgrade; /* a connection that has become bytes both ways */
struct err;
struct tcp_traffic;
struct uv_loop_s;

/** Longest answer to a single call, bytes: a snapshot of a large network. */
#define CLIENT_ANSWER_MAX (64u << 20)

/* Outcomes of a call. */
#define CLIENT_E_REFUSED     1 /* it answered 4xx or 5xx; the words are its own */
#define CLIENT_E_UNREACHABLE 2 /* no answer: no connection, time-out, connection lost */
#define CLIENT_E_UNTRUSTED   3 /* the server's key is not the pinned one */

enum client_access {
    CLIENT_ACCESS_HTTPS,   /* the public API, or the admin API from another machine */
    CLIENT_ACCESS_OVERLAY, /* plain HTTP to the hub's overlay address */
    CLIENT_ACCESS_UNIX,    /* a daemon's socket */
};

/** Where to ask. All texts are borrowed for as long as the call lasts. */
struct client_target {
    enum client_access access;
    const char *address;                /* HTTPS, OVERLAY: "HOST:PORT"; UNIX: the socket's path */
    struct tls_pin pin;                 /* HTTPS */
    const char *proxy;                  /* HTTPS: through this one, see below; NULL: none */
    const char *bearer;                 /* HTTPS: the admin token; NULL: none */
    const char *interface;              /* OVERLAY: only through this one; NULL: as routed */
    struct member_proof_signer *signer; /* OVERLAY, HTTPS: signs each request; NULL: nobody does */
};

/** What came back. */
struct client_answer {
    int status;     /* HTTP status; 0 when there was no answer */
    int64_t date_s; /* when it was made, by the server's clock, s since 1970; 0: not said */
    json_t *body;   /* owns a reference; NULL when the answer had none; a page of HTML: a text */
    bool is_lost;   /* the request was sent, and no answer came: it may have been carried out */
    bool may_pass;  /* no answer came, as happens where the server, the proxy or the network is away
                     * for a moment: one may come to the same request a little later */
};

#define CLIENT_ANSWER_NULL {0}

/** client_answer_deinit() - idempotent. */
void client_answer_deinit(struct client_answer *a);

/**
 * client_call() - ask, and wait for the answer
 * @method:	"GET", "PUT", "POST" or "DELETE"
 * @path:	"/v1/..."
 * @body:	borrowed; NULL: none
 * @timeout_ms:	for the whole call
 * @ret:	set when there was an answer, also a refusal, or one was lost; deinit after use
 *
 * Return: 0 for 2xx; CLIENT_E_REFUSED, CLIENT_E_UNREACHABLE or CLIENT_E_UNTRUSTED
 * with words; negative errno with words (-EINVAL: an address that is none).
 */
int client_call(const struct client_target *target, const char *method, const char *path,
    const json_t *body, unsigned timeout_ms, struct client_answer *ret, struct err *e);

/**
 * client_done_fn - a call has ended
 * @result:	as client_call() returns it
 * @answer:	borrowed; an empty one when there was none
 * @e:		borrowed; the words when @result is not 0
 *
 * The request is released before: it may not be cancelled any more. New calls may be made.
 */
typedef void (*client_done_fn)(
    void *ctx, int result, const struct client_answer *answer, const struct err *e);

/** client_line_fn - one line of a stream, without its newline; borrowed, not zero-terminated. */
typedef void (*client_line_fn)(void *ctx, const char *line, size_t len);

/** client_loop_new() - for calls on @loop, which is pinned. 0 or negative errno with words. */
int client_loop_new(struct client_loop **ret, struct uv_loop_s *loop, struct err *e);

/**
 * client_loop_free() - cancel every call; no callback is called any more
 *
 * Its handles close in the loop's next turns: run the loop until it is empty
 * before closing it. Not from a callback of its own.
 */
struct client_loop *client_loop_free(struct client_loop *cl);

/**
 * client_start() - as client_call(), without waiting
 * @target:	copied, with its texts
 * @body:	borrowed for this call only
 * @done:	called once, never from inside this function
 * @ret:	the request, until @done; NULL if it will not be cancelled
 *
 * Return: 0 or negative errno with words, and then @done is not called.
 */
int client_start(struct client_loop *cl, const struct client_target *target, const char *method,
    const char *path, const json_t *body, unsigned timeout_ms, client_done_fn done, void *ctx,
    struct client_request **ret, struct err *e);

/**
 * TCP's keepalive probes of a stream's connection. The first comes after so many seconds of
 * silence. One that is not answered is repeated each second, so that client_traffic() soon shows
 * it; TCP itself gives up only after a minute, since the stream's owner knows better when to.
 */
#define CLIENT_WATCH_PROBE_S 4

/**
 * client_watch() - GET a stream of lines
 * @connect_ms:	how long connecting may take. The caller decides how long silence may last
 * @line_max:	a longer line ends the stream, as CLIENT_E_UNREACHABLE
 * @line:	called for each line; may cancel the request
 * @done:	called once, when the stream has ended; its result is 0 when the server ended it in
 * order
 *
 * Return: 0 or negative errno with words, and then @done is not called.
 */
int client_watch(struct client_loop *cl, const struct client_target *target, const char *path,
    unsigned connect_ms, size_t line_max, client_line_fn line, client_done_fn done, void *ctx,
    struct client_request **ret, struct err *e);

/**
 * client_set_probes() - begin TCP's keepalive probes of a stream after so many seconds of silence
 *
 * Nothing if there is no connection yet. A new stream's begin after CLIENT_WATCH_PROBE_S.
 */
void client_set_probes(const struct client_request *rq, unsigned idle_s);

/**
 * client_traffic() - what TCP knows of a request's connection, to see whether the other end is
 * there
 *
 * Return: false, and @ret is untouched, when there is no connection, or none by TCP.
 */
bool client_traffic(const struct client_request *rq, struct tcp_traffic *ret);

/** client_cancel() - end a call without calling its callbacks. NULL is fine. Always NULL. */
struct client_request *client_cancel(struct client_request *rq);

/* ---- a connection to a hub that stops being HTTP and becomes bytes both ways ----------------- */

/*
 * The hub's side is struct upgrade in server.h.
 *
 * For a thread of its own: opening blocks. Once open, reading and writing do
 * not, and the descriptor tells when to try. Nothing but the pin is trusted, as
 * in all calls.
 *
 * Threads: one at a time.
 */

/** What is asked for. Borrowed for the call. */
struct client_upgrade_options {
    const struct client_target *target;   /* HTTPS */
    const char *path;                     /* "/v1/..." */
    const char *protocol;                 /* of the Upgrade header */
    const char *authorization;            /* that header; NULL: none */
    unsigned timeout_ms;                  /* for all of it */
    bool (*is_unwanted)(const void *ctx); /* asked each 100 ms: give up? */
    const void *ctx;
};

/**
 * client_upgrade_open() - connect, through a proxy if the target has one, and ask
 *
 * Return: 0; CLIENT_E_REFUSED, CLIENT_E_UNREACHABLE or CLIENT_E_UNTRUSTED with words; negative
 * errno with words.
 */
int client_upgrade_open(
    struct client_upgrade **ret, const struct client_upgrade_options *opt, struct err *e);

/** client_upgrade_close() - NULL is fine. Always NULL. */
struct client_upgrade *client_upgrade_close(struct client_upgrade *u);

/** client_upgrade_fd() - to be polled; lent. */
int client_upgrade_fd(const struct client_upgrade *u);

/** client_upgrade_read() - how many bytes; 0: the other end has closed; -EAGAIN; other negative
 * errno. */
ssize_t client_upgrade_read(struct client_upgrade *u, void *buf, size_t cap);

/** client_upgrade_write() - how many bytes; -EAGAIN: call it with the same bytes later; other
 * negative errno. */
ssize_t client_upgrade_write(struct client_upgrade *u, const void *buf, size_t len);

/* ---- which HTTP proxy leads to the hub, where one has to be used ----------------------------- */

/*
 * "http://[USER:PASSWORD@]HOST:PORT", or https: for a proxy that speaks TLS
 * itself. A hub is asked through it with CONNECT, so the proxy sees the hub's
 * address and bytes of TLS. The environment is read as curl reads it: https_proxy
 * or HTTPS_PROXY, and no_proxy or NO_PROXY for what is to be reached without.
 */

/** Longest proxy, with its zero. */
#define PROXY_TEXT_MAX 512

/** proxy_check() - is @text a proxy, as above? 0, or -EINVAL with words that hold no password. */
int proxy_check(const char *text, struct err *e);

/**
 * proxy_from_environment() - what the environment says for a hub
 * @address:	"HOST:PORT"
 * @ret:	filled in when there is one
 *
 * Return: 0; PROXY_E_NONE; or -EINVAL with words that name the variable.
 */
int proxy_from_environment(const char *address, char ret[static PROXY_TEXT_MAX], struct err *e);

/** The environment names none, or excepts this address. */
#define PROXY_E_NONE 1

/** proxy_is_excepted() - does a list such as no_proxy's name the host of @address? */
bool proxy_is_excepted(const char *list, const char *address);

/** proxy_name() - without user and password, for people; into @buf; returns @buf. */
const char *proxy_name(const char *text, char buf[static PROXY_TEXT_MAX]);
