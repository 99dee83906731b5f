/*
 * resolver_upstream.h - questions that are not ours, taken to this machine's own name servers.
 *
 * c-ares sends them: it retries, turns to the next server, and asks again over TCP where an answer
 * did not fit. A query goes out as it came, with another ID; its answer comes back as it is.
 *
 * The servers are those of /etc/resolv.conf, which is read again when it has changed. Those that
 * are this resolver itself are left out, or a question would go round for ever.
 *
 * Threads: the resolver's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/addr.h"

/** Questions under way at most; more are answered with DNS_SERVER_FAILURE. */
#define RESOLVER_UPSTREAM_MAX 256

/**
 * resolver_upstream_new() - nothing is asked yet
 * @loop:	pinned
 * @path:	pinned: of resolv.conf
 *
 * Return: NULL for no memory.
 */
struct resolver_upstream *resolver_upstream_new(uv_loop_t *loop, const char *path);

/** resolver_upstream_set_own() - the addresses on which this resolver answers: never asked. */
void resolver_upstream_set_own(
    struct resolver_upstream *u, const struct ip_addr *addresses, size_t n);

/**
 * The answer to one question, or NULL for none, whatever the reason. Called once for each question
 * that was taken, perhaps before resolver_upstream_ask() returns.
 * @answer:	borrowed; @len bytes, at most 65,535, with an ID of no meaning
 */
typedef void (*resolver_upstream_fn)(void *ctx, const uint8_t *answer, size_t len);

/**
 * resolver_upstream_ask() - take a query to the name servers
 * @query:	@len bytes, that dns_decode_query() has taken
 * @ctx:	has to stay until @fn is called
 *
 * Return: false if there is nobody to ask, or too many questions are under way; @fn is not called.
 */
bool resolver_upstream_ask(struct resolver_upstream *u, const uint8_t *query, size_t len,
    resolver_upstream_fn fn, void *ctx);

/** resolver_upstream_cancel() - answer all questions under way with none. */
void resolver_upstream_cancel(struct resolver_upstream *u);

/**
 * resolver_upstream_free() - cancels; its handles are closed in the loop's next turns
 *
 */
struct resolver_upstream *resolver_upstream_free(struct resolver_upstream *u);
