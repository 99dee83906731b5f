/* key_node.c - see key_node.h. */
#include "mesh/keys/key_node.h"

size_t key_node_chain(
    const struct node *node, struct key_statement ret[static NODE_KEYS_STATEMENTS_MAX])
{
    const struct node_keys *k = node->keys;
    size_t n = 0;

    for (unsigned i = 0; k && i < k->n_statements; i++)
        n = key_statement_parse(&ret[n], k->statements[i], NULL) == 0 ? n + 1 : 0;
    return n;
}

bool key_node_last(const struct node *node, struct key_statement *ret)
{
    const char *last = node_keys_last(node->keys);

    return last && key_statement_parse(ret, last, NULL) == 0;
}

uint64_t key_node_serial(const struct node *node)
{
    struct key_statement last;

    return key_node_last(node, &last) ? last.serial : 0;
}

const struct x25519_public *key_node_next(const struct node *node)
{
    return node->keys && !x25519_public_is_none(&node->keys->next) ? &node->keys->next : NULL;
}

bool key_node_other(const struct node *node, struct x25519_public *ret)
{
    const struct x25519_public *next = key_node_next(node);
    struct key_statement last;

    if (!next)
        return false;
    if (!x25519_public_equal(next, &node->key)) {
        *ret = *next;
        return true;
    }
    if (!key_node_last(node, &last) || !x25519_public_equal(&last.new_key, next))
        return false;
    *ret = last.old_key;
    return true;
}

bool key_node_follows(const struct node *before, const struct node *now)
{
    struct key_statement last;

    return key_node_last(now, &last) && x25519_public_equal(&last.new_key, &now->key) &&
           x25519_public_equal(&last.old_key, &before->key);
}

struct key_subject key_node_subject(const char *network, const struct node *node)
{
    return (struct key_subject){.kind = KEY_KIND_NODE, .network = network, .name = node->meta.name};
}
