/*
 * client_internal.h - one HTTP exchange, as client.c and client_loop.c share it.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>

#include "api/client/client.h"

struct err;

/** Bytes that grow. */
struct client__buffer {
    char *p;    /* owns */
    size_t len; /* used */
    size_t cap; /* room */
};

/** A request and what has come back so far. */
struct client__exchange {
    CURL *easy;                   /* owns */
    struct curl_slist *headers;   /* owns */
    char *address;                /* owns; for the words */
    char *sent;                   /* owns; the body, may hold a secret */
    struct client__buffer got;    /* the answer, or the unfinished line of a stream */
    size_t max;                   /* most bytes in @got */
    bool too_long;                /* @got would have outgrown that */
    char reason[CURL_ERROR_SIZE]; /* curl's words */
};

/**
 * client__exchange_init() - prepare the request; nothing moves yet
 * @body:	borrowed for this call
 *
 * Return: 0; or negative errno with words, and nothing is to be released.
 */
int client__exchange_init(struct client__exchange *x, const struct client_target *target,
    const char *method, const char *path, const json_t *body, struct err *e);

/** client__exchange_deinit() - release everything; wipes what was sent. */
void client__exchange_deinit(struct client__exchange *x);

/** client__buffer_add() - append @len bytes at @p, if the whole stays within @max. */
bool client__buffer_add(struct client__buffer *b, const void *p, size_t len, size_t max);

/** client__result() - what the end of an exchange means: as client_call() says. Sets @ret. */
int client__result(
    struct client__exchange *x, CURLcode code, struct client_answer *ret, struct err *e);
