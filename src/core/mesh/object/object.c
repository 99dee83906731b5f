/* object.c - objects of any kind, by the rows of the table; see object.h. */
#include "object.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/fields.h"

const struct object_kind *object_kind_find(const char *name)
{
    for (unsigned i = 0; object_kinds[i]; i++)
        if (strcmp(name, object_kinds[i]->name) == 0)
            return object_kinds[i];
    return NULL;
}

unsigned object_kind_index(const struct object_kind *kind)
{
    unsigned i = 0;

    while (object_kinds[i] != kind) {
        assert(object_kinds[i]);
        i++;
    }
    assert(i < OBJECT_KINDS_MAX);
    return i;
}

const char *object_kinds_text(char buf[static OBJECT_KINDS_TEXT_MAX])
{
    size_t len = 0;

    for (unsigned i = 0; object_kinds[i]; i++) {
        len += (size_t)snprintf(buf + len, OBJECT_KINDS_TEXT_MAX - len, "%s%s", i > 0 ? ", " : "",
            object_kinds[i]->name);
        assert(len < OBJECT_KINDS_TEXT_MAX);
    }
    return buf;
}

int object_decode(struct object *ret, const json_t *json, enum object_mode mode, struct err *e)
{
    struct fields f = fields_make(json, "the object", e);
    const char *name = fields_string(&f, "kind", FIELDS_REQUIRED, 1, 40);
    struct object o = OBJECT_NULL;
    char all[OBJECT_KINDS_TEXT_MAX];
    int r;

    if (fields_end(&f) != 0)
        return fields_end(&f);
    o.kind = object_kind_find(name);
    if (!o.kind)
        return err_set(e, -EINVAL, "the object's kind is \"%s\", and %s are allowed", name,
            object_kinds_text(all));
    r = o.kind->decode(&o, json, mode, e);
    if (r == 0)
        *ret = o;
    return r;
}

json_t *object_encode(const struct object *o)
{
    return o->kind ? o->kind->encode(o) : NULL;
}

void object_deinit(struct object *o)
{
    if (o->kind && o->kind->deinit)
        o->kind->deinit(o);
    *o = (struct object)OBJECT_NULL;
}
