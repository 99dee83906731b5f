/*
 * join_ask.h - asks the hubs of a token to take this machine in, for join.c.
 *
 * Threads: any; waits for the answer.
 */
#pragma once

#include "crypto/x25519.h"

struct client_answer;
struct err;
struct join_wish;

/**
 * join_ask() - ask the hub that made the token and, when it does not answer, the further ones
 * @wish:	its token, and what is said about the machine
 * @secret:	of the node's key @public; signs the request
 * @ret:	client_answer_deinit() after use, also on failure
 * @ret_key:	WireGuard key of the hub that has answered; borrowed from the token
 *
 * Return: as client_call(), with words, which are about the first hub when none answers.
 */
int join_ask(const struct join_wish *wish, const struct x25519_secret *secret,
    const struct x25519_public *public, struct client_answer *ret,
    const struct x25519_public **ret_key, struct err *e);
