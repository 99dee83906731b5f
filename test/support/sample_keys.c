/* sample_keys.c - see sample_keys.h. */
#include "test/support/sample_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "base/containers.h"
#include "mesh/keys/key_statement.h"

void sample_keys_make(struct sample_keys *ret, const char *network, const char *node)
{
    uint64_t seed = hash_bytes(1, node, strlen(node));
    struct rng rng = rng_seeded(&seed);

    memset(ret, 0, sizeof(*ret));
    (void)snprintf(ret->network, sizeof(ret->network), "%s", network);
    (void)snprintf(ret->node, sizeof(ret->node), "%s", node);
    for (unsigned i = 0; i < SAMPLE_KEYS_N; i++) {
        x25519_secret_make(&ret->secrets[i], &rng);
        assert_true(x25519_derive_public(&ret->secrets[i], &ret->keys[i]));
    }
    for (unsigned i = 0; i + 1 < SAMPLE_KEYS_N; i++) {
        struct key_statement s = {.kind = KEY_KIND_NODE,
            .old_key = ret->keys[i],
            .new_key = ret->keys[i + 1],
            .serial = i + 1,
            .made_at = 1700000000 + i};

        memcpy(s.network, ret->network, sizeof(s.network));
        memcpy(s.subject, ret->node, sizeof(s.subject));
        assert_int_equal(
            key_statement_sign(&s, &ret->secrets[i], &ret->secrets[i + 1], &rng, NULL), 0);
        (void)key_statement_format(&s, ret->statements[i]);
    }
}

void sample_keys_say(
    struct node *node, const struct sample_keys *keys, int key, int next, unsigned n)
{
    node->key = keys->keys[key];
    (void)node_keys_free(node->keys);
    node->keys = calloc(1, sizeof(*node->keys));
    assert_non_null(node->keys);
    if (next >= 0)
        node->keys->next = keys->keys[next];
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(node_keys_add(node->keys, keys->statements[i]), 0);
}
