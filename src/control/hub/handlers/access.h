/*
 * access.h - around each request: who makes it, and what the audit log is told of it.
 *
 * The hub hands these to its server (api/server/server.h); their ctx is the hub.
 */
#pragma once

#include <stdbool.h>

#include "api/content/route.h"

struct audit_before;
struct handlers;
struct model_node;
struct token_secret;

/** access_identify() - who has this admin token? */
enum caller_verdict access_identify(
    void *ctx, const char *bearer, const struct endpoint *from, nsec_t now, struct caller *ret);

/** access_begin() - from now on what is committed is this request's doing. */
void access_begin(void *ctx, const struct request *rq);

/** access_admits() - does an admin token keep its pace? Of changes only; reading is free. */
bool access_admits(
    void *ctx, const struct route *row, const struct request *rq, struct response *rs);

/** access_end() - it is over; a refusal that is worth knowing of is noted. */
void access_end(
    void *ctx, const struct request *rq, const struct route *row, const struct response *rs);

/** access_before() - what a record is before it is changed: of audit.h; @ctx is the hub. */
void access_before(void *ctx, const char *key, struct audit_before *ret);

/** access_refused() - a request that @rs refuses is noted; @operation: its route. */
void access_refused(
    struct handlers *h, const struct request *rq, const char *operation, const struct response *rs);

/** access_by_node() - the request turned out to be that member's. */
void access_by_node(struct handlers *h, const struct request *rq, const struct model_node *node);

/** access_by_token() - it came with the secret of a join token, if the hub knows it. */
void access_by_token(
    struct handlers *h, const struct request *rq, const struct token_secret *secret);
