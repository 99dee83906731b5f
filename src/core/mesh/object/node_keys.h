/*
 * node_keys.h - how the key of a Node changes: what `spec.keys` of it says; see node.h.
 *
 * Statements are carried here as text. Who believes them checks them (mesh/keys/key_statement.h),
 * and nobody else has to.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/x25519.h"
#include "mesh/object/object_meta.h"

struct fields;

/** Most statements that are kept of a node: the newest. Who was away while its key changed more
 * often knows it like a node that has joined anew. */
#define NODE_KEYS_STATEMENTS_MAX 8

/** Most characters of a statement: 357 bytes in base64. */
#define NODE_KEYS_STATEMENT_MAX 476

struct node_keys {
    struct x25519_public next; /* that the node goes on with; none: it does not change its key now.
                                  From when it makes it known until it has erased the one before */
    uint64_t wanted_serial; /* of the statement that it was last asked to make; 0: it never was */
    bool is_forced;         /* and it waits for nobody */
    char *statements[NODE_KEYS_STATEMENTS_MAX]; /* owns; @n_statements, the newest last */
    unsigned n_statements;

    /* Not in JSON: what the reader knows by itself. */
    struct x25519_public other;  /* a handshake under this key is the node's as well; none: it has
                                    one key */
    struct x25519_public former; /* that it had before; none: it is not known */
};

#define NODE_KEYS_NULL                                                                             \
    {                                                                                              \
        .n_statements = 0                                                                          \
    }

/** node_keys_free() - NULL is fine. Always NULL. */
struct node_keys *node_keys_free(struct node_keys *k);

/** node_keys_copy() - gives a copy; NULL: there is no memory, or @k is NULL. */
struct node_keys *node_keys_copy(const struct node_keys *k);

/** node_keys_last() - lends the newest statement; NULL: there is none. @k may be NULL. */
const char *node_keys_last(const struct node_keys *k);

/** node_keys_add() - a newer statement; the oldest goes where there are too many. 0 or -ENOMEM. */
int node_keys_add(struct node_keys *k, const char *statement);

/**
 * node_keys_decode() - the field "keys"
 * @ret:	gives; untouched when the field is absent, and on failure
 *
 * Return: 0 or -ENOMEM; what is wrong with it @f says.
 */
int node_keys_decode(struct node_keys **ret, struct fields *f, enum object_mode mode);

/** node_keys_encode() - a new reference; NULL: no memory. */
json_t *node_keys_encode(const struct node_keys *k);
