/*
 * notice.c - the example of a kind of object, as a new one is written; see notice.h.
 *
 * {"kind": "Notice", "metadata": {"name": "power", "network": "default"},
 *  "spec": {"nodes": ["gpu-1", "gpu-2"], "text": "no power on Sunday"}}
 */
#include "test/support/notice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/fields.h"
#include "mesh/object/object_meta.h"

const struct notice *notice_of(const struct object *o)
{
    return o->plain.spec;
}

/* ---- from JSON ------------------------------------------------------------------------------ */

static void nodes_decode(struct notice *n, const json_t *nodes, struct fields *f)
{
    struct err e = ERR_NULL;

    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const char *text = json_string_value(json_array_get(nodes, i));

        if (!text || node_check_name(text, &e) < 0) {
            fields_fail(f, "%s", text ? err_text(&e) : "a node's name is not a string");
            return;
        }
        memcpy(n->nodes[n->n_nodes++], text, strlen(text) + 1);
    }
}

static int spec_decode(
    struct notice *n, const struct object_frame *frame, enum object_mode mode, struct err *e)
{
    struct fields f = fields_make(frame->spec, frame->where, e);
    const json_t *nodes = fields_array(&f, "nodes", FIELDS_REQUIRED, 1, NOTICE_NODES_MAX);

    fields_text(&f, "text", FIELDS_REQUIRED, 1, sizeof(n->text), n->text);
    if (mode == OBJECT_STRICT)
        fields_refuse_unknown(&f);
    nodes_decode(n, nodes, &f);
    return fields_end(&f);
}

static int decode(struct object *ret, const json_t *json, enum object_mode mode, struct err *e)
{
    struct object_frame frame;
    struct notice *n;
    int r = object_frame_decode(&frame, json, &notice_kind, mode, e);

    if (r == 0)
        r = parse_name(frame.meta.name, "notice name", e);
    if (r != 0)
        return r;
    n = calloc(1, sizeof(*n));
    if (!n)
        return -ENOMEM;
    r = spec_decode(n, &frame, mode, e);
    if (r != 0) {
        free(n);
        return r;
    }
    ret->plain = (struct object_plain){.meta = frame.meta, .spec = n};
    return 0;
}

/* ---- to JSON -------------------------------------------------------------------------------- */

static json_t *encode(const struct object *o)
{
    const struct notice *n = notice_of(o);
    json_t *nodes = json_array();

    for (unsigned i = 0; nodes && i < n->n_nodes; i++)
        if (json_array_append_new(nodes, json_string(n->nodes[i])) < 0)
            nodes = (json_decref(nodes), NULL);
    return object_frame_encode(
        &o->meta, &notice_kind, json_pack("{s:o, s:s}", "nodes", nodes, "text", n->text), NULL);
}

static void deinit(struct object *o)
{
    free(o->plain.spec);
}

/* ---- who has to do with it ------------------------------------------------------------------ */

static const char *node(const struct object *o, unsigned i)
{
    return i < notice_of(o)->n_nodes ? notice_of(o)->nodes[i] : NULL;
}

static bool can_see(const struct object *o, const struct node *self)
{
    for (unsigned i = 0; i < notice_of(o)->n_nodes; i++)
        if (strcmp(notice_of(o)->nodes[i], self->meta.name) == 0)
            return true;
    return false;
}

const struct object_kind notice_kind = {
    .name = "Notice",
    .list = "notices",
    .prefix = "notice/",
    .plural = "notices",
    .short_name = "wnotice",
    .decode = decode,
    .encode = encode,
    .deinit = deinit,
    .node = node,
    .can_see = can_see,
};
