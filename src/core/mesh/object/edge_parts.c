/* edge_parts.c - see edge_parts.h. */
#include "edge_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "mesh/object/node.h"

/* Most parts that are kept of one writer. */
#define EDGE_PARTS_MAX 16384

static void free_part(struct edge_part *part, enum edge_owner owner)
{
    if (part && owner == EDGE_OWNER_AGENT && !part->is_gone)
        free(part->said.error);
    free(part);
}

void edge_parts_deinit(struct edge_parts *p)
{
    for (size_t i = 0; i < p->n; i++)
        free_part(p->items[i], p->owner);
    free(p->items);
    *p = (struct edge_parts){.owner = p->owner};
}

static int compare_peer(const void *item, const void *wanted)
{
    const struct edge_part *const *part = item;

    return strcmp((*part)->peer, wanted);
}

/* Where @peer is, or belongs. */
static size_t place_of(const struct edge_parts *p, const char *peer, bool *ret_found)
{
    *ret_found = false;
    /* Reports come in order, so the end is the likeliest place. */
    if (p->n > 0 && strcmp(p->items[p->n - 1]->peer, peer) < 0)
        return p->n;
    return sorted_place(p->items, p->n, sizeof(struct edge_part *), compare_peer, peer, ret_found);
}

struct edge_part *edge_parts_find(const struct edge_parts *p, const char *peer)
{
    bool found;
    size_t i = place_of(p, peer, &found);

    return found ? p->items[i] : NULL;
}

int edge_parts_put(struct edge_parts *p, struct edge_part *part)
{
    bool found;
    size_t i = place_of(p, part->peer, &found);
    bool is_full = !found && p->n >= EDGE_PARTS_MAX;
    struct edge_part **items = p->items;

    if (!found)
        items = is_full ? NULL : sorted_open(items, p->n, sizeof(struct edge_part *), i, &p->cap);
    if (!items) {
        free_part(part, p->owner);
        return is_full ? -ENOSPC : -ENOMEM;
    }
    p->items = items;
    if (found)
        free_part(items[i], p->owner);
    else
        p->n++;
    items[i] = part;
    return 0;
}

void edge_parts_remove(struct edge_parts *p, const char *peer)
{
    bool found;
    size_t i = place_of(p, peer, &found);

    if (!found)
        return;
    free_part(p->items[i], p->owner);
    p->n--;
    memmove(&p->items[i], &p->items[i + 1], (p->n - i) * sizeof(struct edge_part *));
}

void edge_parts_begin(struct edge_parts *p)
{
    for (size_t i = 0; i < p->n; i++)
        p->items[i]->is_old = true;
}

void edge_parts_end(struct edge_parts *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++) {
        if (p->items[i]->is_old)
            free_part(p->items[i], p->owner);
        else
            p->items[n++] = p->items[i];
    }
    p->n = n;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static int decode_part(
    struct edge_parts *p, const char *peer, const json_t *json, int64_t at, struct err *e)
{
    size_t len = strlen(peer) + 1;
    struct edge_part *part = calloc(1, sizeof(*part) + len);
    char where[96];
    int r = 0;

    (void)snprintf(where, sizeof(where), "the edge to \"%.63s\"", peer);
    if (!part)
        return err_set(e, -ENOMEM, "no memory for %s", where);
    memcpy(part->peer, peer, len);
    part->is_gone = json_is_null(json);
    if (!part->is_gone && p->owner == EDGE_OWNER_AGENT)
        r = edge_said_decode(&part->said, json, where, at, e);
    else if (!part->is_gone)
        r = edge_probed_decode(&part->probed, json, where, e);
    if (r < 0) {
        free(part);
        return r;
    }
    r = edge_parts_put(p, part);
    return r < 0 ? err_set(e, r, "no room for %s", where) : 0;
}

int edge_parts_decode(struct edge_parts *ret, const json_t *json, int64_t at, struct err *e)
{
    struct edge_parts p = {.owner = ret->owner};
    const char *peer;
    json_t *value;

    /* The iterator wants a mutable object; nothing is changed. */
    json_object_foreach((json_t *)json, peer, value) {
        int r = node_check_name(peer, e);

        if (r == 0)
            r = decode_part(&p, peer, value, at, e);
        if (r < 0) {
            edge_parts_deinit(&p);
            return r;
        }
    }
    *ret = p;
    return 0;
}

json_t *edge_part_encode(const struct edge_part *part, enum edge_owner owner, int64_t at)
{
    if (part->is_gone)
        return json_null();
    return owner == EDGE_OWNER_AGENT ? edge_said_encode(&part->said, at)
                                     : edge_probed_encode(&part->probed);
}

json_t *edge_parts_encode(const struct edge_parts *p, size_t max, int64_t at)
{
    json_t *json = json_object();
    size_t left = max;

    for (unsigned round = 0; json && round < 2; round++)
        for (size_t i = 0; json && i < p->n; i++) {
            const struct edge_part *part = p->items[i];
            const struct edge_said *s = &part->said;
            bool is_trouble = p->owner == EDGE_OWNER_PROBE
                                  ? part->probed.tunnel == EDGE_REACH_SILENT
                                  : s->is_alarm || s->error || s->fell_at != 0;
            json_t *said;
            size_t need;

            if (is_trouble != (round == 0))
                continue;
            said = edge_part_encode(part, p->owner, at);
            need = strlen(part->peer) + sizeof("\"\":,") + json_dumpb(said, NULL, 0, JSON_COMPACT);
            if (said && need > left) {
                json_decref(said);
                continue;
            }
            left -= need;
            if (json_object_set_new(json, part->peer, said) < 0)
                json = (json_decref(json), NULL);
        }
    return json;
}

/* ---- which report follows which ------------------------------------------------------------- */

enum edge_turn edge_sequence_assess(struct edge_sequence *s, uint64_t run, uint64_t n, bool begins)
{
    bool follows = run == s->run && (n == s->last || n - 1 == s->last);

    if (!begins && !follows)
        return EDGE_TURN_AGAIN;
    *s = (struct edge_sequence){.run = run, .last = n};
    return EDGE_TURN_TAKE;
}
