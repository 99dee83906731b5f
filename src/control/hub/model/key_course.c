/* key_course.c - see key_course.h. */
#include "hub/model/key_course.h"

#include <stdlib.h>

#include "hub/model/model.h"
#include "hub/record/keys_request.h"
#include "mesh/keys/key_node.h"
#include "mesh/object/fields.h"

struct key_course *key_course_free(struct key_course *c)
{
    if (c) {
        json_decref(c->acks);
        json_decref(c->said);
    }
    free(c);
    return NULL;
}

/* What is known of the change that goes on; NULL: nothing, or none does. */
static struct key_course *find(const struct model_node *node)
{
    const struct x25519_public *next = key_node_next(&node->spec);
    struct key_course *c = node->served->key_course;

    return c && next && x25519_public_equal(&c->next, next) ? c : NULL;
}

static struct key_course *acquire(const struct model_node *node)
{
    const struct x25519_public *next = key_node_next(&node->spec);
    struct served_node *served = node->served;

    if (!next || find(node))
        return next ? served->key_course : NULL;
    /* Of an earlier change nobody asks any more. */
    served->key_course = key_course_free(served->key_course);
    served->key_course = calloc(1, sizeof(*served->key_course));
    if (served->key_course)
        *served->key_course = (struct key_course){.next = *next, .acks = json_object()};
    return served->key_course;
}

void key_course_ack(const struct model_node *node, const char *member, const char *ack)
{
    struct key_course *c = acquire(node);

    if (c)
        (void)json_object_set_new(c->acks, member, json_string(ack));
}

void key_course_say(const struct model_node *node, const struct keys_request *rq)
{
    struct key_course *c = acquire(node);
    json_t *names = json_array();

    for (unsigned i = 0; i < KEYS_REQUEST_NAMES_MAX && rq->waits[i][0] != '\0'; i++)
        fields_append(&names, json_string(rq->waits[i]));
    if (!c) {
        json_decref(names);
        return;
    }
    json_decref(c->said);
    c->said = json_pack("{s:s, s:I, s:i, s:o, s:s*}", "stage", keys_stage_names[rq->stage],
        "serial", (json_int_t)rq->statement.serial, "waits", (int)rq->n_waits, "waitsFor", names,
        "why", rq->why[0] != '\0' ? rq->why : NULL);
}

json_t *key_course_acks(const struct model_node *node)
{
    const struct key_course *c = find(node);

    return c ? c->acks : NULL;
}

json_t *key_course_said(const struct model_node *node)
{
    const struct key_course *c = find(node);

    return c ? c->said : NULL;
}
