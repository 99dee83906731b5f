/*
 * client_exchange.h - one HTTP exchange by libcurl: the request, and what its answer means.
 *
 * client.c has libcurl perform it, waiting or on a loop; client_exchange.c keeps its connection.
 */
#pragma once

#include <stdbool.h>

#include "api/client/client.h"
#include "http/http_exchange.h"

/** A request and what has come back so far. */
struct client_exchange {
    struct http_exchange http; /* owns */
    char *address;             /* owns; for messages */
    char *sent;                /* owns; the body, may hold a secret */
    bool is_overlay;           /* by the overlay: control traffic */
    int n_probes; /* keepalives without an answer that end the connection; 0: the kernel's */
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

/**
 * client_exchange_end() - what the end of an exchange means
 * @code:	libcurl's result
 * @ret:	as client_call() sets it
 *
 * Return: as client_call().
 */
int client_exchange_end(
    struct client_exchange *x, CURLcode code, struct client_answer *ret, struct err *e);
