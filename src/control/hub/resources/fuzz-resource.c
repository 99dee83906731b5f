/*
 * fuzz-resource.c - resources as an API server sends them, and people have written them. After what
 * the hub would apply then, nothing is a wish any more.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hub/resources/resource.h"

#define AT 1767225600 /* 2026-01-01T00:00:00Z */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const struct object_kind *kind, const json_t *resource)
{
    struct resource_verdict verdict = {.now = "2026-01-01T00:00:00Z"};
    json_auto_t *heard = json_object();
    struct resource_part parts[RESOURCE_PARTS_MAX];
    struct resource_want none = {.spec = NULL};
    struct resource_seen s = {.is_there = false};
    char network[NAME_MAX_LEN + 1];
    char name[OBJECT_NAME_MAX + 1];
    const char *text =
        json_string_value(json_object_get(json_object_get(resource, "metadata"), "name"));
    bool clash;
    size_t n;

    if (resource_seen_set(&s, kind, resource) != 0)
        return;
    (void)resource_decide(&none, &s, false);
    if (resource_name_parse(kind, text, network, name)) {
        char again[RESOURCE_NAME_MAX + 1];

        assert(strcmp(resource_name(again, kind, network, name), text) == 0);
        json_decref(resource_request(kind, network, name, &s));
    }
    json_decref(resource_apply(kind, text, &none, &s, RESOURCE_YIELD_ALL, &clash));
    own_parts_hear(heard, json_object_get(resource, "status"));
    assert(own_parts_assess(&s.own_parts, heard, AT) <= s.own_parts.n);
    json_decref(own_parts_stale(&s.own_parts, heard, AT));
    verdict.own_parts = &s.own_parts;
    n = resource_parts(parts, kind, text, json_object_get(resource, "status"), s.status, &verdict);
    for (size_t i = 0; i < n; i++)
        resource_part_deinit(&parts[i]);
    resource_seen_deinit(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, 0, NULL);

    for (unsigned i = 0; json && object_kinds[i]; i++)
        check(object_kinds[i], json);
    json_decref(json);
    return 0;
}
