/*
 * key_course.h - the keys by which a node is found, and what a hub has heard of a change of them
 * while it goes on: what others have acknowledged, and for whom the node waits.
 *
 * That is in memory alone: members acknowledge again what a hub that was started anew does not
 * have.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>

#include "base/containers.h"
#include "crypto/x25519.h"

struct keys_request;
struct model_node;

/** One of the keys of a node, in its network's table. */
struct model_key {
    struct htab_link link;
    const struct model_node *node; /* pins */
    struct x25519_public key;      /* none: it is not in the table */
};

struct key_course {
    struct x25519_public next; /* the key that all of it is about */
    json_t *acks;              /* owns; {"MEMBER": "base64"}, as they were given */
    json_t *said;              /* owns; what the node says of it, as its status shows it */
};

/** key_course_free() - NULL is fine. Always NULL. */
struct key_course *key_course_free(struct key_course *c);

/** key_course_ack() - @member acknowledges the next key of @node; nothing where it has none. */
void key_course_ack(const struct model_node *node, const char *member, const char *ack);

/** key_course_say() - @node says how far it is; nothing where it does not change its key. */
void key_course_say(const struct model_node *node, const struct keys_request *rq);

/** key_course_acks() - lends what was acknowledged of the key that @node goes on with; NULL:
 * nothing was. */
json_t *key_course_acks(const struct model_node *node);

/** key_course_said() - lends what @node says of its change; NULL: it does not change its key, or
 * has said nothing. */
json_t *key_course_said(const struct model_node *node);
