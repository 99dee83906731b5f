/*
 * join_ask.h - asks the hubs of a token to take this machine in, for join.c.
 *
 * The request can be repeated: a hub that has taken the key in already answers with the same node,
 * and takes no further use from the token. So a hub that does not answer, or whose answer was lost,
 * is asked again for a while, as is one that says itself that it cannot answer now. What would be
 * the same a second time, a refusal or a wrong key of the hub, ends it at once.
 *
 * Threads: any; waits for the answer.
 */
#pragma once

#include "base/clock.h"
#include "crypto/x25519.h"

struct client_answer;
struct err;
struct join_wish;

/** For how long a hub that does not answer is asked again. */
#define JOIN_ASK_FOR (20 * NSEC_PER_SEC)

/**
 * join_ask() - ask until a hub answers
 * @wish:	its token, what is said about the machine, and its on_wait
 * @secret:	of the node's key @public; signs the request
 * @patience:	no request begins later than that; one that has begun ends by its own time-out
 * @ret:	client_answer_deinit() after use, also on failure
 * @ret_key:	WireGuard key of the hub that has answered; borrowed from the token
 *
 * Return: as client_call(), with words.
 */
int join_ask(const struct join_wish *wish, const struct x25519_secret *secret,
    const struct x25519_public *public, nsec_t patience, struct client_answer *ret,
    const struct x25519_public **ret_key, struct err *e);
