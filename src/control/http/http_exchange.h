/*
 * http_exchange.h - one request by HTTP or HTTPS, and what has come back of it: libcurl, used in
 * one way by all who ask others.
 *
 * The hub's API (api/client), stores elsewhere (backends/remote) and the cloud's metadata service
 * (fabric) are asked through it. Each adds what is its own to @easy: whom it trusts, by which way,
 * how long it waits; and runs it, waiting or on a loop. Each says in its own words what an end
 * means.
 *
 * Threads: one at a time.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/** A request and what has come back so far. */
struct http_exchange {
    CURL *easy;                   /* owns */
    struct curl_slist *headers;   /* owns */
    struct str got;               /* the answer, or the unfinished line of a stream */
    size_t max;                   /* most bytes in @got */
    bool is_too_long;             /* there was more than that */
    char reason[CURL_ERROR_SIZE]; /* libcurl's words on a failure */
};

/** http_exchange_multi() - a handle that turns several of them; curl_multi_cleanup() it. NULL
 * without memory. */
CURLM *http_exchange_multi(void);

/**
 * http_exchange_init() - prepare a request; nothing moves yet
 * @max:	most bytes of the answer; of a stream: of one line
 *
 * A proxy of the environment is not used, no redirection is followed, and the answer is gathered in
 * @got. CURLINFO_PRIVATE is the exchange.
 *
 * Return: false without memory; deinit in either case.
 */
bool http_exchange_init(struct http_exchange *x, const char *method, const char *url, size_t max);

/** http_exchange_deinit() - idempotent; wipes the headers and what was got. */
void http_exchange_deinit(struct http_exchange *x);

/** http_exchange_add_header() - "Name: value"; false without memory. */
bool http_exchange_add_header(struct http_exchange *x, const char *line);

/** http_exchange_take() - bytes of the answer have come; false: the exchange has to end. */
bool http_exchange_take(struct http_exchange *x, const char *p, size_t len);

/** http_exchange_line_fn - a line without its newline, zero-terminated; false: no more of them. */
typedef bool (*http_exchange_line_fn)(void *ctx, const char *line, size_t len);

/** http_exchange_take_lines() - as http_exchange_take(); gives out the whole lines, keeps the rest.
 */
bool http_exchange_take_lines(
    struct http_exchange *x, const char *p, size_t len, http_exchange_line_fn fn, void *ctx);

/** http_exchange_status() - of the answer; 0: none came. */
int http_exchange_status(const struct http_exchange *x);

/** http_exchange_was_sent() - did all or a part of the request go out? */
bool http_exchange_was_sent(const struct http_exchange *x);

/** http_exchange_reason() - libcurl's words for its result; borrowed. */
const char *http_exchange_reason(const struct http_exchange *x, CURLcode code);
