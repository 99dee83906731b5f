/*
 * token.h - the join token: what a machine needs to find, trust and enter a network.
 *
 * "weft1." and unpadded base64url of compact JSON (docs/API.md, "Join token").
 * It carries a secret: a text of it, and the struct, are wiped after use.
 */
#pragma once

#include <stdint.h>

#include "base/addr.h"
#include "base/parse.h"
#include "crypto/hash.h"
#include "crypto/x25519.h"

/** Longest token, characters. */
#define TOKEN_TEXT_MAX 4096

/** Longest "HOST:PORT". */
#define TOKEN_API_MAX HOST_PORT_MAX

/** Most ways to reach the hub. */
#define TOKEN_ENDPOINTS_MAX 8

/** The secret that admits to a network. The hub keeps only its SHA-256. */
struct token_secret {
    uint8_t b[32];
};

/** Most further hubs in a token, and most addresses of each. */
#define TOKEN_OTHERS_MAX          3
#define TOKEN_OTHER_ENDPOINTS_MAX 2

/** A further hub of the network, for when the token's own does not answer. */
struct token_other {
    char api[TOKEN_OTHER_ENDPOINTS_MAX][TOKEN_API_MAX + 1]; /* as of struct token */
    unsigned n_api;                                         /* at least 1 */
    struct tls_pin pin;
    struct x25519_public key; /* its WireGuard key in this network */
};

struct token {
    char network[NAME_MAX_LEN + 1];
    struct endpoint udp[TOKEN_ENDPOINTS_MAX]; /* the hub's WireGuard port, best first */
    unsigned n_udp;                           /* at least 1 */
    /* "HOST:PORT" of the public API, best first */
    char api[TOKEN_ENDPOINTS_MAX][TOKEN_API_MAX + 1];
    unsigned n_api;               /* at least 1 */
    struct tls_pin pin;           /* of the hub's TLS key */
    struct x25519_public hub_key; /* the hub's WireGuard key in this network */
    struct token_other others[TOKEN_OTHERS_MAX];
    unsigned n_others;
    struct token_secret secret;
    int64_t expires_at; /* s since 1970 */
};

#define TOKEN_NULL {0}

/** token_wipe() - overwrite all of it. */
void token_wipe(struct token *t);

/**
 * token_encode() - as text
 * @ret:	gives a zero-terminated text; secret_wipe() before free()
 *
 * Further hubs that do not fit are left out.
 *
 * Return: 0; -EINVAL with words when the ways to the hub are too long for a token; -ENOMEM.
 */
int token_encode(const struct token *t, char **ret, struct err *e);

/**
 * token_decode() - from text, as a person pasted it; white space around it is fine
 *
 * Return: 0; -EINVAL with words that never hold the secret; -ENOMEM.
 */
int token_decode(struct token *ret, const char *text, struct err *e);
