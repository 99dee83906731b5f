/* watch_event.c - see watch_event.h. */
#include "watch_event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "mesh/object/fields.h"

static const char *const kind_names[] = {"", "snapshot", "put", "delete", "heartbeat", "removed"};

/* Longest time to the next heartbeat, in s. */
#define NEXT_MAX_S 3600

_Static_assert(sizeof(kind_names) / sizeof(*kind_names) == WATCH_EVENT_N, "a name each");

void watch_event_deinit(struct watch_event *ev)
{
    if (ev->kind == WATCH_EVENT_SNAPSHOT)
        snapshot_deinit(&ev->snapshot);
    else if (ev->kind == WATCH_EVENT_PUT)
        object_deinit(&ev->object);
    ev->kind = WATCH_EVENT_NONE;
}

static int decode_deleted(struct watch_event *ev, struct fields *f)
{
    const char *kind = fields_string(f, "kind", FIELDS_REQUIRED, 1, 40);
    const char *name = fields_string(f, "name", FIELDS_REQUIRED, 1, OBJECT_NAME_MAX);
    char all[OBJECT_KINDS_TEXT_MAX];

    if (kind && name) {
        ev->deleted.kind = object_kind_find(kind);
        if (!ev->deleted.kind)
            fields_fail(f, "\"kind\" is \"%s\", and %s are allowed", kind, object_kinds_text(all));
        memcpy(ev->deleted.name, name, strlen(name) + 1);
    }
    return fields_end(f);
}

static int decode_json(struct watch_event *ev, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the event", e);
    const char *type = fields_string(&f, "type", FIELDS_REQUIRED, 1, 40);
    const char *reason;
    int r;

    ev->kind = parse_word(type, kind_names, WATCH_EVENT_N);
    if (ev->kind == WATCH_EVENT_N)
        ev->kind = WATCH_EVENT_NONE;
    if (ev->kind != WATCH_EVENT_REMOVED && ev->kind != WATCH_EVENT_NONE)
        fields_u64(&f, "revision", FIELDS_REQUIRED, 0, INT64_MAX, &ev->revision);
    if (ev->kind == WATCH_EVENT_HEARTBEAT) {
        fields_u64(&f, "boot", FIELDS_OPTIONAL, 1, INT64_MAX, &ev->boot);
        fields_int(&f, "next", FIELDS_OPTIONAL, 1, NEXT_MAX_S, &ev->next_s);
        fields_u64(&f, "storeBehind", FIELDS_OPTIONAL, 1, UINT32_MAX, &ev->store_behind_s);
    }
    r = fields_end(&f);
    if (r < 0)
        return r;
    switch (ev->kind) {
    case WATCH_EVENT_SNAPSHOT:
        return snapshot_decode(&ev->snapshot, json, &ev->skips, e);
    case WATCH_EVENT_PUT:
        return snapshot_decode_object(
            &ev->object, fields_get(&f, "object", FIELDS_OPTIONAL), &ev->skips, e);
    case WATCH_EVENT_DELETE:
        return decode_deleted(ev, &f);
    case WATCH_EVENT_REMOVED:
        reason = fields_string(&f, "reason", FIELDS_OPTIONAL, 0, WATCH_EVENT_REASON_MAX);
        (void)snprintf(ev->reason, sizeof(ev->reason), "%s", reason ? reason : "");
        return fields_end(&f);
    case WATCH_EVENT_HEARTBEAT:
    case WATCH_EVENT_NONE:
    case WATCH_EVENT_N:
        break;
    }
    return 0;
}

int watch_event_decode(struct watch_event *ret, const char *line, size_t len, struct err *e)
{
    struct watch_event ev = WATCH_EVENT_NULL;
    json_error_t error;
    int r;

    if (len > WATCH_EVENT_LINE_MAX)
        return err_set(
            e, -EINVAL, "the event has %zu bytes, and %u are allowed", len, WATCH_EVENT_LINE_MAX);
    _cleanup_(json_decrefp) json_t *json = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        return err_set(
            e, -EINVAL, "the event is not JSON: %s at byte %d", error.text, error.position);
    r = decode_json(&ev, json, e);
    if (r == 0)
        *ret = ev;
    return r;
}

static int apply_delta(struct snapshot *s, struct watch_event *ev, struct err *e)
{
    struct err why = ERR_NULL;
    int r = 0;

    if (s->self[0] == '\0')
        return err_set(e, -EINVAL, "the hub sent a change before its first snapshot");
    if (ev->revision < s->revision)
        return err_set(e, -EINVAL, "the hub sent revision %" PRIu64 " after revision %" PRIu64,
            ev->revision, s->revision);
    if (ev->kind == WATCH_EVENT_PUT && ev->object.kind) {
        r = snapshot_put(s, &ev->object, &why);
        if (r == -EINVAL) {
            snapshot_skip(&ev->skips, &why);
            r = 0;
        }
    } else if (ev->kind == WATCH_EVENT_DELETE) {
        r = snapshot_delete(s, ev->deleted.kind, ev->deleted.name, e);
    }
    if (r != 0)
        return r;
    s->revision = ev->revision;
    if (ev->boot != 0)
        s->boot = ev->boot;
    return 0;
}

int watch_event_apply(struct snapshot *s, struct watch_event *ev, struct err *e)
{
    int r = 0;

    switch (ev->kind) {
    case WATCH_EVENT_SNAPSHOT:
        snapshot_deinit(s);
        *s = ev->snapshot;
        ev->snapshot = (struct snapshot)SNAPSHOT_NULL;
        break;
    case WATCH_EVENT_PUT:
    case WATCH_EVENT_DELETE:
    case WATCH_EVENT_HEARTBEAT:
        r = apply_delta(s, ev, e);
        break;
    case WATCH_EVENT_REMOVED:
    case WATCH_EVENT_NONE:
    case WATCH_EVENT_N:
        break;
    }
    watch_event_deinit(ev);
    return r;
}
