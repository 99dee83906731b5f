/* object_meta.c - see object_meta.h. The JSON is described in docs/API.md. */
#include "mesh/object/object_meta.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/fields.h"
#include "mesh/object/object.h"

int object_fields_end(struct fields *f, enum object_mode mode)
{
    if (mode == OBJECT_STRICT)
        fields_refuse_unknown(f);
    return fields_end(f);
}

static int meta_decode(struct object_meta *ret, const json_t *json, const struct object_kind *kind,
    enum object_mode mode, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    struct object_meta m = {0};
    const char *name = fields_string(&f, "name", FIELDS_REQUIRED, 1, OBJECT_NAME_MAX);

    if (!kind->is_network)
        fields_name(&f, "network", FIELDS_REQUIRED, m.network);
    fields_u64(&f, "resourceVersion", FIELDS_OPTIONAL, 0, INT64_MAX, &m.resource_version);
    if (object_fields_end(&f, mode) != 0)
        return fields_end(&f);
    memcpy(m.name, name, strlen(name) + 1);
    *ret = m;
    return 0;
}

int object_frame_decode(struct object_frame *ret, const json_t *json,
    const struct object_kind *kind, enum object_mode mode, struct err *e)
{
    struct object_frame frame = {.spec = NULL};
    const json_t *meta;
    const char *name =
        json_string_value(json_object_get(json_object_get(json, "metadata"), "name"));
    const char *said;
    struct fields f;
    int r;

    /* Its name is not checked yet, and may be too long for a sentence. */
    if (name)
        (void)snprintf(
            frame.where, sizeof(frame.where), "%s \"%.*s\"", kind->name, OBJECT_NAME_MAX, name);
    else
        (void)snprintf(frame.where, sizeof(frame.where), "%s", kind->name);
    f = fields_make(json, frame.where, e);
    said = fields_string(&f, "kind", FIELDS_REQUIRED, 1, 40);
    meta = fields_object(&f, "metadata", FIELDS_REQUIRED);
    frame.spec = fields_object(&f, "spec", FIELDS_REQUIRED);
    frame.status = fields_object(&f, "status", FIELDS_OPTIONAL);
    if (said && strcmp(said, kind->name) != 0)
        fields_fail(&f, "\"kind\" is \"%s\", not \"%s\"", said, kind->name);
    r = object_fields_end(&f, mode);
    if (r == 0)
        r = meta_decode(&frame.meta, meta, kind, mode, frame.where, e);
    if (r == 0)
        *ret = frame;
    return r;
}

json_t *object_frame_encode(
    const struct object_meta *m, const struct object_kind *kind, json_t *spec, json_t *status)
{
    json_t *meta = json_pack("{s:s}", "name", m->name);

    if (m->network[0])
        fields_set(&meta, "network", json_string(m->network));
    if (m->resource_version > 0)
        fields_set(&meta, "resourceVersion", json_integer((json_int_t)m->resource_version));
    /* "o" fails on NULL and releases the rest; "o*" leaves the key out. */
    return json_pack("{s:s, s:o, s:o, s:o*}", "kind", kind->name, "metadata", meta, "spec", spec,
        "status", status);
}
