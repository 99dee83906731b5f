/* kube_spec.c - see kube_spec.h. */
#include "backends/kubernetes/kube_spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "crypto/blake2s.h"

void kube_spec_hash_json(char ret[static KUBE_SPEC_HASH_MAX], const json_t *json)
{
    char *text = json_dumps(json, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
    struct blake2s_digest digest;

    blake2s_hash(text ? text : "", text ? strlen(text) : 0, NULL, 0, &digest);
    hex_encode(digest.b, (KUBE_SPEC_HASH_MAX - 1) / 2, ret);
    free(text);
}

/* A new reference: the spec as the kind itself writes it. NULL: it is no spec of that kind. */
static json_t *normal_spec(
    const struct object_kind *kind, const char *network, const char *name, const json_t *spec)
{
    json_t *json = json_pack("{s:s, s:{s:s, s:s*}, s:O}", "kind", kind->name, "metadata", "name",
        name, "network", kind->is_network ? NULL : network, "spec", spec);
    struct object o = OBJECT_NULL;
    json_t *normal = NULL;
    json_t *ret = NULL;

    if (json && object_decode(&o, json, OBJECT_STRICT, NULL) == 0) {
        normal = object_encode(&o);
        ret = json_incref(json_object_get(normal, "spec"));
        object_deinit(&o);
    }
    json_decref(normal);
    json_decref(json);
    return ret;
}

void kube_spec_hash(char ret[static KUBE_SPEC_HASH_MAX], const struct object_kind *kind,
    const char *network, const char *name, const json_t *spec)
{
    json_t *normal = normal_spec(kind, network, name, spec);

    kube_spec_hash_json(ret, normal ? normal : spec);
    json_decref(normal);
}
