/* kind_watch.c - see kind_watch.h. */
#include "kind_watch.h"

#include <stdio.h>
#include <string.h>

#include "hub/resources/projection.h"
#include "hub/resources/resource_api.h"

void kind_watch_init(struct kind_watch *k, struct resource_api *api, struct projection *projection,
    const struct object_kind *kind)
{
    *k = (struct kind_watch){.api = api, .projection = projection, .kind = kind};
}

void kind_watch_forget(struct kind_watch *k)
{
    k->stream = remote_http_close(k->stream);
    k->version[0] = '\0';
    k->is_over = false;
}

static void note_version(struct kind_watch *k, const json_t *meta)
{
    const char *version = json_string_value(json_object_get(meta, "resourceVersion"));

    if (version)
        (void)snprintf(k->version, sizeof(k->version), "%s", version);
}

/* An event of a watch. */
static void on_line(void *ctx, const char *line, size_t len)
{
    struct kind_watch *k = ctx;
    json_t *json = json_loadb(line, len, 0, NULL);
    const json_t *object = json_object_get(json, "object");
    const json_t *meta = json_object_get(object, "metadata");
    const char *type = json_string_value(json_object_get(json, "type"));
    const char *name = json_string_value(json_object_get(meta, "name"));

    if (!type || strcmp(type, "ERROR") == 0) {
        /* 410, or anything else: what the watch began from cannot be gone on from. */
        k->is_over = true;
        k->version[0] = '\0';
    } else {
        note_version(k, meta);
        if (strcmp(type, "DELETED") == 0 && name)
            projection_gone(k->projection, k->kind, name);
        else if (strcmp(type, "BOOKMARK") != 0)
            (void)projection_saw(k->projection, k->kind, object);
    }
    json_decref(json);
}

/* All resources of the kind, in pages. */
static int read_list(struct kind_watch *k, struct err *e)
{
    char more[RESOURCE_API_MORE_MAX] = "";
    json_t *page = NULL;
    json_t *one;
    size_t i;
    int r;

    projection_list_begin(k->projection, k->kind);
    do {
        r = resource_api_list(k->api, k->kind, more, &page, e);
        if (r != 0)
            return r;
        json_array_foreach(json_object_get(page, "items"), i, one)
            (void)projection_saw(k->projection, k->kind, one);
        if (!resource_api_more(page, more))
            note_version(k, json_object_get(page, "metadata"));
        json_decref(page);
        page = NULL;
    } while (more[0]);
    projection_list_end(k->projection, k->kind);
    return 0;
}

int kind_watch_tend(struct kind_watch *k, nsec_t now, struct err *e)
{
    struct remote_http_end end = {.status = 0};
    int r = 0;

    if (k->stream && !k->is_over && !remote_http_has_ended(k->stream, &end, e))
        return 0;
    /* A watch that never began, or that the server refused, is not opened again at once. */
    if (k->stream && (end.r != 0 || (end.status != 0 && end.status != 200)))
        k->failed_at = now;
    if (end.status == 410)
        k->version[0] = '\0';
    k->stream = remote_http_close(k->stream);
    k->is_over = false;
    if (k->failed_at && now - k->failed_at < KIND_WATCH_PAUSE)
        return 0;
    k->failed_at = 0;
    if (k->version[0] == '\0')
        r = read_list(k, e);
    if (r == 0)
        r = resource_api_watch(k->api, k->kind, k->version, on_line, k, &k->stream, e);
    if (r != 0) {
        k->version[0] = '\0';
        k->failed_at = now;
    }
    return r;
}
