/*
 * sample_keys.h - keys that follow each other, with their statements, for tests of what changes.
 */
#pragma once

#include "crypto/x25519.h"
#include "mesh/object/node.h"

/** How many keys there are, one after the other. */
#define SAMPLE_KEYS_N 12

struct sample_keys {
    char network[NAME_MAX_LEN + 1];
    char node[NAME_MAX_LEN + 1];
    struct x25519_secret secrets[SAMPLE_KEYS_N];
    struct x25519_public keys[SAMPLE_KEYS_N];
    /* Of key i, that key i + 1 comes after it; serial i + 1. */
    char statements[SAMPLE_KEYS_N - 1][NODE_KEYS_STATEMENT_MAX + 1];
};

/** sample_keys_make() - the keys of that node of that network, the same ones each time. */
void sample_keys_make(struct sample_keys *ret, const char *network, const char *node);

/**
 * sample_keys_say() - @node has key @key, and has made its first @n statements known
 * @next:	which key it goes on with; a negative one: it does not change its key
 */
void sample_keys_say(
    struct node *node, const struct sample_keys *keys, int key, int next, unsigned n);
