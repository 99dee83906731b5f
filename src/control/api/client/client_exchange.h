/*
 * client_exchange.h - one HTTP exchange by libcurl: the request, and what its answer means.
 *
 * client.c has libcurl perform it, waiting or on a loop; client_exchange.c keeps its connection.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>

#include "api/client/client.h"

struct err;

/** Bytes that are appended to. */
struct client_buffer {
    char *p;    /* owns */
    size_t len; /* used */
    size_t cap; /* room */
};

/** A request and what has come back so far. */
struct client_exchange {
    CURL *easy;                 /* owns */
    struct curl_slist *headers; /* owns */
    char *address;              /* owns; for messages */
    char *sent;                 /* owns; the body, may hold a secret */
    struct client_buffer got;   /* the answer, or the unfinished line of a stream */
    size_t max;                 /* most bytes in @got */
    bool too_long;              /* there was more than that */
    bool is_overlay;            /* by the overlay: control traffic */
    int n_probes; /* keepalives without an answer that end the connection; 0: the kernel's */
    char reason[CURL_ERROR_SIZE]; /* libcurl's words on a failure */
};

/**
 * client_exchange_init() - prepare the request; nothing moves yet
 * @body:	borrowed for this call
 *
 * Return: 0; or negative errno with words, and nothing is to be released.
 */
int client_exchange_init(struct client_exchange *x, const struct client_target *target,
    const char *method, const char *path, const json_t *body, struct err *e);

/** client_exchange_deinit() - release everything; wipes what was sent. Once. */
void client_exchange_deinit(struct client_exchange *x);

/** client_buffer_add() - append @len bytes at @p, if the whole stays within @max. */
bool client_buffer_add(struct client_buffer *b, const void *p, size_t len, size_t max);

/**
 * client_exchange_end() - what the end of an exchange means
 * @code:	libcurl's result
 * @ret:	as client_call() sets it
 *
 * Return: as client_call().
 */
int client_exchange_end(
    struct client_exchange *x, CURLcode code, struct client_answer *ret, struct err *e);
