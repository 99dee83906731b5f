/* own_parts.c - see own_parts.h. */
#include "hub/resources/own_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/object/edge_status.h"
#include "os/clock.h"

/* A part that was written so long after the hub heard its writer last is of a writer that runs. */
#define UNHEARD_S 90

/* ---- what is there --------------------------------------------------------------------------- */

void own_parts_deinit(struct own_parts *o)
{
    free(o->items);
    *o = (struct own_parts){.n = 0};
}

/* The node in the name of a part, "agent/NAME"; NULL: it is no part of an agent's or a probe's. */
static const char *node_of(const char *name)
{
    for (unsigned i = 0; i < EDGE_OWNER_N; i++) {
        size_t len = strlen(edge_owner_names[i]);

        if (strncmp(name, edge_owner_names[i], len) == 0 && name[len] == '/' && name[len + 1])
            return name + len + 1;
    }
    return NULL;
}

/* Is it an end of the edge "NETWORK.A--B"? */
static bool is_end(const char *edge, const char *node)
{
    const char *first = strchr(edge, '.');
    const char *middle = first ? strstr(first, "--") : NULL;
    size_t len = strlen(node);

    if (!middle)
        return false;
    first++;
    return ((size_t)(middle - first) == len && memcmp(first, node, len) == 0) ||
           strcmp(middle + 2, node) == 0;
}

/* Who has written the part, if it is not the manager of that name. */
static void find_writer(struct own_part *p, const json_t *managed)
{
    char field[OWN_PART_NAME_MAX + 3];
    json_t *entry;
    size_t i;

    (void)snprintf(field, sizeof(field), "f:%s", p->name);
    json_array_foreach((json_t *)managed, i, entry) {
        const json_t *status = json_object_get(json_object_get(entry, "fieldsV1"), "f:status");
        const char *manager = json_string_value(json_object_get(entry, "manager"));

        if (!manager || !json_object_get(json_object_get(status, field), "f:" KUBE_PART_AT))
            continue;
        if (strcmp(manager, p->name) == 0) {
            p->by[0] = '\0';
            return;
        }
        (void)snprintf(p->by, sizeof(p->by), "%s", manager);
    }
}

int own_parts_set(
    struct own_parts *o, const char *edge, const json_t *status, const json_t *managed)
{
    const char *name;
    json_t *part;

    own_parts_deinit(o);
    json_object_foreach((json_t *)status, name, part) {
        const char *node = node_of(name);
        struct own_part p = {.at = 0};

        if (!node || strlen(name) > OWN_PART_NAME_MAX || o->n == OWN_PARTS_MAX ||
            !kube_part_is_own(part, &p.at, &p.every_s))
            continue;
        (void)snprintf(p.name, sizeof(p.name), "%s", name);
        kube_part_says(p.says, part);
        p.is_of_no_end = !is_end(edge, node);
        find_writer(&p, managed);
        if (!o->items && !(o->items = calloc(OWN_PARTS_MAX, sizeof(*o->items))))
            return -ENOMEM;
        o->items[o->n++] = p;
    }
    return 0;
}

/* ---- whom to believe ------------------------------------------------------------------------- */

void own_parts_hear(json_t *heard, const json_t *status)
{
    char says[KUBE_PART_SAYS_MAX];
    const char *name;
    json_t *part;
    void *tmp;

    json_object_foreach_safe(heard, tmp, name, part)
        if (!json_object_get(status, name))
            (void)json_object_del(heard, name);
    json_object_foreach((json_t *)status, name, part) {
        json_t *held = json_object_get(heard, name);

        kube_part_says(says, part);
        if (!node_of(name) || says[0] == '\0' || json_is_true(json_object_get(part, "stale"))) {
            (void)json_object_del(heard, name);
            continue;
        }
        if (!held && json_object_set_new(heard, name, json_object()) == 0)
            held = json_object_get(heard, name);
        (void)json_object_set_new(held, "says", json_string(says));
    }
}

/* Has it contradicted its node for too long? */
static bool contradicts(struct own_part *p, json_t *heard, int64_t now)
{
    json_t *held = json_object_get(heard, p->name);
    const char *says = json_string_value(json_object_get(held, "says"));
    int64_t since = json_integer_value(json_object_get(held, "since"));

    if (!says || p->says[0] == '\0' || strcmp(says, p->says) == 0) {
        (void)json_object_del(held, "since");
        return false;
    }
    (void)snprintf(p->heard, sizeof(p->heard), "%s", says);
    if (since == 0) {
        (void)json_object_set_new(held, "since", json_integer(now));
        return false;
    }
    return now - since >= OWN_PARTS_DIFFER_S && p->at >= since + OWN_PARTS_DIFFER_S / 2;
}

size_t own_parts_assess(struct own_parts *o, json_t *heard, int64_t now)
{
    size_t n = 0;

    for (size_t i = 0; i < o->n; i++) {
        struct own_part *p = &o->items[i];
        bool differs = contradicts(p, heard, now);

        p->is_aside = p->is_of_no_end || p->by[0] != '\0' || differs;
        n += !own_parts_has(o, p->name, now);
    }
    return n;
}

const struct own_part *own_parts_find(const struct own_parts *o, const char *name)
{
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->items[i].name, name) == 0)
            return &o->items[i];
    return NULL;
}

bool own_parts_has(const struct own_parts *o, const char *name, int64_t now)
{
    const struct own_part *p = own_parts_find(o, name);

    return p && !p->is_aside && !kube_part_is_old(p->at, p->every_s, now);
}

const char *own_part_explain(const struct own_part *p, char buf[static OWN_PART_WHY_MAX])
{
    if (p->is_of_no_end)
        (void)snprintf(buf, OWN_PART_WHY_MAX,
            "the part \"%s\" is set aside: its node is no end of the edge", p->name);
    else if (p->by[0] != '\0')
        (void)snprintf(buf, OWN_PART_WHY_MAX,
            "the part \"%s\" is set aside: \"%s\" has written it, which is not its writer", p->name,
            p->by);
    else
        (void)snprintf(buf, OWN_PART_WHY_MAX,
            "the part \"%s\" is set aside: it says \"%s\", and its node says \"%s\" to the hub",
            p->name, p->says, p->heard);
    return buf;
}

/* ---- the condition --------------------------------------------------------------------------- */

json_t *own_parts_stale(const struct own_parts *o, const json_t *silent, int64_t now)
{
    char text[OWN_PARTS_MAX * (OWN_PART_NAME_MAX + 64)] = "";
    const char *name;
    json_t *heard_at;
    size_t len = 0;

    json_object_foreach((json_t *)silent, name, heard_at) {
        const struct own_part *p = own_parts_find(o, name);

        if (p && own_parts_has(o, name, now) && p->at > json_integer_value(heard_at) + UNHEARD_S)
            continue;
        if (len < sizeof(text))
            len += (size_t)snprintf(text + len, sizeof(text) - len,
                "%s%.70s: its writer is not heard", len > 0 ? "; " : "", name);
    }
    for (size_t i = 0; i < o->n && len < sizeof(text); i++) {
        const struct own_part *p = &o->items[i];
        char at[CLOCK_TEXT_MAX];

        if (kube_part_is_old(p->at, p->every_s, now) && !json_object_get(silent, p->name))
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s: observed at %s",
                len > 0 ? "; " : "", p->name, clock_text(at, p->at));
    }
    return json_pack("{s:s, s:s, s:s, s:s}", "type", "Stale", "status", len > 0 ? "True" : "False",
        "reason", len > 0 ? "Old" : "Current", "message", text);
}
