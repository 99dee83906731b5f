/*
 * etcd_client.h - sends requests to etcd's gateway, and repeats them until they are answered.
 *
 * A request is repeated, at another server where there is one, until it is answered or its time is
 * over. So each request has to be safe to repeat: what it writes, it writes only where a key is at
 * an expected revision. When etcd no longer accepts the token, the client gets a new one.
 *
 * Threads: one at a time.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "backends/etcd/etcd_url.h"
#include "backends/remote/remote_http.h"
#include "base/clock.h"
#include "base/rng.h"

struct err;

/* Outcomes of a request. */
#define ETCD_E_AWAY     1 /* no server has answered in time; nothing was done */
#define ETCD_E_LOST     2 /* no server has answered in time; perhaps it was done */
#define ETCD_E_NO_LEASE 3 /* the lease that it names has ended */
#define ETCD_E_TOO_BIG  4 /* the answer is longer than the client accepts */

struct etcd_client {
    struct remote_http *http; /* owns */
    char prefix[ETCD_PREFIX_MAX + 1];
    char user[ETCD_USER_MAX + 1]; /* "": none */
    char password[ETCD_USER_MAX + 1];
    struct rng rng;
    struct remote_http_backoff backoff;
    unsigned n_unanswered; /* tries since the last one that was answered */
};

#define ETCD_CLIENT_NULL                                                                           \
    {                                                                                              \
        0                                                                                          \
    }

/** etcd_client_init() - nothing is asked yet. 0 or negative errno with words. */
int etcd_client_init(struct etcd_client *c, const struct etcd_url *url, struct err *e);

/** etcd_client_deinit() - idempotent. */
void etcd_client_deinit(struct etcd_client *c);

/**
 * etcd_client_ask() - ask, and wait for the answer
 * @path:	"/v3/..."
 * @body:	JSON
 * @until:	monotonic time; one try is made however late it is. That is a short one, and twice
 *		as long after each that got no answer, so that a slow etcd is not taken for one
 *		that is away
 * @ret:	gives the answer, an object; json_decref()
 *
 * Lines of the watch are given out meanwhile (remote_http.h).
 *
 * Return: 0; ETCD_E_..., or negative errno (-EACCES: etcd forbids it; -ENOSPC: its space is used
 * up), with words.
 */
int etcd_client_ask(struct etcd_client *c, const char *path, const char *body, nsec_t until,
    json_t **ret, struct err *e);
