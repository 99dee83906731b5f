/*
 * model_internal.h - how apply.c changes what model.c holds.
 *
 * Structs passed in by pointer to be kept (@spec) are taken, also on failure.
 */
#pragma once

#include "hub/model/model.h"

/**
 * model__add_node() - into all indexes
 * @ret:	the node, lent
 *
 * Its edges find it by model__link_edge(). Return: 0 or -ENOMEM.
 */
int model__add_node(struct model_network *net, struct node *spec, const struct token_hash *token,
    struct model_node **ret);

/**
 * model__replace_node() - another spec, and its key and addresses in the indexes
 *
 * The caller has a copy of the former spec, and releases that. Return: 0 or -ENOMEM.
 */
int model__replace_node(struct model_node *node, struct node *spec);

/** model__remove_node() - out of all indexes, into the network's buried. */
void model__remove_node(struct model_node *node);

/** model__add_edge() - into the index and its nodes' lists; @ret: lent. 0 or -ENOMEM. */
int model__add_edge(struct model_network *net, struct mesh_edge *spec, struct model_edge **ret);

/** model__link_edge() - into the lists of those of its nodes that have been added since. */
void model__link_edge(struct model_network *net, struct model_edge *edge);

/** model__unlink_edge() - out of the index and of its nodes' lists; its ends still name them. */
void model__unlink_edge(struct model_network *net, struct model_edge *edge);

/** model__free_edge() - one that is in no index any more. */
void model__free_edge(struct model_edge *edge);

/**
 * model__put_object() - add it, or put it in the place of the one of that kind and name
 * @o:		taken, also on failure
 * @ret_before:	gives what was there before, OBJECT_NULL if nothing was
 *
 * Return: the object, lent; NULL: no memory.
 */
const struct object *model__put_object(
    struct model_network *net, struct object *o, struct object *ret_before);

/** model__remove_object() - out of the index, and freed. */
void model__remove_object(struct model_network *net, struct model_object *o);

/** model__new_network() - indexed, empty, without its keys; NULL: no memory. */
struct model_network *model__new_network(struct model *m, const struct network *spec);

/** model__remove_network() - out of the index, into the model's buried. */
void model__remove_network(struct model_network *net);

/** model__put_token() - add it, or put it in the place of the one with that hash. 0 or -ENOMEM. */
int model__put_token(struct model *m, const struct token_hash *hash,
    const struct token_record *record, uint64_t revision);
/** model__remove_token() - out of the index, and freed. */
void model__remove_token(struct model *m, struct model_token *t);
