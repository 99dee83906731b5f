/*
 * key_node.h - what the object of a node says of its keys (mesh/object/node_keys.h), read.
 *
 * What is said is not verified here: that is done by who believes it, against the key that he
 * knows, or, at a hub, once, when it takes a statement in.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mesh/keys/key_statement.h"
#include "mesh/object/node.h"

struct err;

/** key_node_chain() - the statements of @node, the newest last
 *
 * Return: how many; of several in a row that can be read, the last ones. */
size_t key_node_chain(
    const struct node *node, struct key_statement ret[static NODE_KEYS_STATEMENTS_MAX]);

/** key_node_last() - the newest statement; false: there is none that can be read. */
bool key_node_last(const struct node *node, struct key_statement *ret);

/** key_node_serial() - of the newest statement; 0: there is none. */
uint64_t key_node_serial(const struct node *node);

/** key_node_next() - the key that it goes on with, while it changes its key: its own already when
 * only the one before is still to be erased. NULL: it does not change. Lends. */
const struct x25519_public *key_node_next(const struct node *node);

/**
 * key_node_other() - the second key under which a node is to be known while it changes its key
 *
 * That is its next one, or, when that has become its own, the one before.
 *
 * Return: false: it has one key.
 */
bool key_node_other(const struct node *node, struct x25519_public *ret);

/** key_node_follows() - has @before's node itself gone on with the key of @now? */
bool key_node_follows(const struct node *before, const struct node *now);

/** key_node_subject() - whose keys those statements are about; borrows @network and @node. */
struct key_subject key_node_subject(const char *network, const struct node *node);
