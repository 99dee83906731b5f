/* keys_request.c - see keys_request.h. */
#include "hub/record/keys_request.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/keys/key_ack.h"
#include "mesh/object/fields.h"
#include "mesh/object/node.h"

const char *const keys_stage_names[] = {"none", "prepared", "moved", "ended"};
_Static_assert(sizeof(keys_stage_names) / sizeof(*keys_stage_names) == KEYS_STAGE_N, "a name each");

static void read_acks(struct fields *f, struct keys_request *rq)
{
    const json_t *acks = fields_object(f, "acks", FIELDS_OPTIONAL);
    struct key_ack ack;
    const char *name;
    json_t *value;

    if (json_object_size(acks) > KEYS_REQUEST_ACKS_MAX)
        fields_fail(f, "has %zu acknowledgements, and %d are allowed", json_object_size(acks),
            KEYS_REQUEST_ACKS_MAX);
    /* The iterator wants a mutable object; nothing is changed. */
    json_object_foreach((json_t *)acks, name, value) {
        const char *text = json_string_value(value);

        if (node_check_name(name, NULL) != 0 || !text ||
            !base64_decode(text, ack.mac, sizeof(ack.mac)))
            fields_fail(f, "an acknowledgement of \"acks\" is not a node's name and 32 bytes in "
                           "base64");
    }
    rq->acks = acks;
}

static void read_waits(struct fields *f, struct keys_request *rq)
{
    const json_t *names = fields_array(f, "waitsFor", FIELDS_OPTIONAL, 0, KEYS_REQUEST_NAMES_MAX);

    fields_int(f, "waits", FIELDS_OPTIONAL, 0, INT32_MAX, &rq->n_waits);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));

        if (!name || node_check_name(name, NULL) != 0)
            fields_fail(f, "\"waitsFor\" has what is no node's name");
        else
            (void)snprintf(rq->waits[i], sizeof(rq->waits[i]), "%s", name);
    }
    fields_text(f, "why", FIELDS_OPTIONAL, 1, sizeof(rq->why), rq->why);
}

int keys_request_decode(struct keys_request *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "keys", e);
    struct keys_request rq = {.text = NULL};
    unsigned stage = KEYS_STAGE_NONE;
    struct err why = ERR_NULL;

    fields_enum(&f, "stage", FIELDS_OPTIONAL, keys_stage_names, KEYS_STAGE_N, &stage);
    rq.text = fields_string(&f, "statement",
        stage == KEYS_STAGE_NONE ? FIELDS_OPTIONAL : FIELDS_REQUIRED, 4, NODE_KEYS_STATEMENT_MAX);
    if (rq.text && key_statement_parse(&rq.statement, rq.text, &why) != 0)
        fields_fail(&f, "%s", err_text(&why));
    read_acks(&f, &rq);
    read_waits(&f, &rq);
    fields_refuse_unknown(&f);
    rq.stage = (enum keys_stage)stage;
    return fields_give(&f, ret, &rq, sizeof(rq));
}
