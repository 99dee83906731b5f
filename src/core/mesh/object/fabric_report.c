/* fabric_report.c - see fabric_report.h. */
#include "mesh/object/fabric_report.h"

#include <stdio.h>

#include "mesh/object/fields.h"

static int decode_key(struct fabric_key *ret, const json_t *json, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    const char *text = fields_string(&f, "key", FIELDS_REQUIRED, 1, FABRIC_KEY_MAX - 1);

    fields_bool(&f, "exact", FIELDS_OPTIONAL, &ret->is_exact);
    if (text)
        (void)snprintf(ret->text, sizeof(ret->text), "%s", text);
    return fields_end(&f);
}

static void take_text(struct fields *f, const char *name, char ret[static FABRIC_REPORT_TEXT_MAX])
{
    const char *text = fields_string(f, name, FIELDS_OPTIONAL, 0, FABRIC_REPORT_TEXT_MAX - 1);

    if (text)
        (void)snprintf(ret, FABRIC_REPORT_TEXT_MAX, "%s", text);
}

int fabric_report_decode(
    struct fabric_report *ret, const json_t *json, const char *where, struct err *e)
{
    struct fabric_report r = {.gbit = 0};
    struct fields f = fields_make(json, where, e);
    const char *kind = fields_string(&f, "kind", FIELDS_REQUIRED, 1, FABRIC_REPORT_TEXT_MAX - 1);
    const json_t *keys = fields_array(&f, "keys", FIELDS_OPTIONAL, 0, FABRIC_KEYS_MAX);
    uint64_t gbit = 0;
    uint64_t gpus = 0;
    int end;

    if (kind)
        (void)snprintf(r.kind, sizeof(r.kind), "%s", kind);
    take_text(&f, "machine", r.machine);
    take_text(&f, "gpu", r.gpu);
    fields_u64(&f, "gbit", FIELDS_OPTIONAL, 0, FABRIC_GBIT_MAX, &gbit);
    fields_u64(&f, "gpus", FIELDS_OPTIONAL, 0, FABRIC_GPUS_MAX, &gpus);
    fields_bool(&f, "askedTogether", FIELDS_OPTIONAL, &r.asked_together);
    end = fields_end(&f);
    for (size_t i = 0; end == 0 && i < json_array_size(keys); i++)
        end = decode_key(&r.keys[r.n_keys++], json_array_get(keys, i), where, e);
    if (end != 0)
        return end;
    r.gbit = (unsigned)gbit;
    r.n_gpus = (unsigned)gpus;
    *ret = r;
    return 0;
}

json_t *fabric_report_encode(const struct fabric_report *r)
{
    json_t *keys = json_array();

    for (size_t i = 0; keys && i < r->n_keys; i++)
        if (json_array_append_new(keys, json_pack("{s:s, s:b}", "key", r->keys[i].text, "exact",
                                            (int)r->keys[i].is_exact)) < 0)
            keys = (json_decref(keys), NULL);
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:b, s:o}", "kind", r->kind, "machine", r->machine,
        "gpu", r->gpu, "gpus", (int)r->n_gpus, "gbit", (int)r->gbit, "askedTogether",
        (int)r->asked_together, "keys", keys);
}
