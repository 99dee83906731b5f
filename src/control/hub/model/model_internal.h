/*
 * model_internal.h - how apply.c changes what model.c holds.
 *
 * Structs passed in by pointer to be kept (@spec) are taken, also on failure.
 */
#pragma once

#include "hub/model/model.h"

/**
 * model__add_node() - put a node into all indexes
 * @ret:	the node, lent
 *
 * Its edges find it by model__link_edge(). Return: 0 or -ENOMEM.
 */
int model__add_node(struct model_network *net, struct node *spec, const struct token_hash *token,
    struct model_node **ret);

/**
 * model__replace_node() - give a node another spec, and index it by its new key and addresses
 *
 * The caller has a copy of the former spec, and releases that. Return: 0 or -ENOMEM.
 */
int model__replace_node(struct model_node *node, struct node *spec);

/** model__remove_node() - take it out of all indexes, and into the network's removed ones. */
void model__remove_node(struct model_node *node);

/** model__add_edge() - put an edge into the index and into its nodes' lists; @ret: lent. 0 or
 * -ENOMEM. */
int model__add_edge(struct model_network *net, struct mesh_edge *spec, struct model_edge **ret);

/** model__link_edge() - put the edge into the lists of those of its nodes that it did not find
 * before. */
void model__link_edge(struct model_network *net, struct model_edge *edge);

/** model__free_edge() - free an edge that is in no index any more. */
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

/** model__remove_object() - take the object out of the index, and free it. */
void model__remove_object(struct model_network *net, struct model_object *o);

/** model__new_network() - indexed, empty, without its keys; NULL: no memory. */
struct model_network *model__new_network(struct model *m, const struct network *spec);

/** model__remove_network() - take it out of the index, and put it into the model's removed ones. */
void model__remove_network(struct model_network *net);

/** model__put_token() - add it, or put it in the place of the one with that hash. 0 or -ENOMEM. */
int model__put_token(struct model *m, const struct token_hash *hash,
    const struct token_record *record, uint64_t revision);
/** model__remove_token() - take the token out of the index, and free it. */
void model__remove_token(struct model *m, struct model_token *t);
