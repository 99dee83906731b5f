/* edge_resource.c - see edge_resource.h. */
#include "test/support/edge_resource.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

json_t *edge_object(const char *path, int revision)
{
    return json_pack("{s:s, s:{s:s, s:s, s:i}, s:{s:[s, s], s:s}}", "kind", "MeshEdge", "metadata",
        "name", "a--b", "network", "default", "resourceVersion", revision, "spec", "nodes", "a",
        "b", "path", path);
}

json_t *edge_resource(const char *path, const char *version, const char *done, const char *revision)
{
    json_t *json =
        json_pack("{s:{s:s, s:s, s:s, s:i, s:{s:s*, s:s*, s:s*}, s:[s]}, s:{s:[s, s], s:s}}",
            "metadata", "name", EDGE_RESOURCE, "resourceVersion", version, "uid", "u", "generation",
            1, "annotations", RESOURCE_SPEC, done, KUBE_SPEC_ACCEPTED, done, KUBE_SPEC_REVISION,
            revision, "finalizers", RESOURCE_FINALIZER, "spec", "nodes", "a", "b", "path", path);

    assert_non_null(json);
    return json;
}

void edge_hash(const char *path, char ret[static RESOURCE_HASH_MAX])
{
    struct resource_want w = {.spec = NULL};
    json_t *o = edge_object(path, 1);

    assert_int_equal(resource_want_set(&w, &mesh_edge_kind, o), 0);
    memcpy(ret, w.hash, RESOURCE_HASH_MAX);
    resource_want_deinit(&w);
    json_decref(o);
}
