/* edge_status.c - see edge_status.h. The JSON is in docs/EDGES.md. */
#include "edge_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "base/parse.h"
#include "mesh/object/fields.h"
#include "mesh/object/node.h"

/* Oldest age of a handshake that is accepted: a hundred years, s. */
#define AGE_MAX (100ull * 366 * 86400)

#define RTT_US_MAX (60u * 1000 * 1000)

/* Most parts that are kept of one writer. */
#define EDGE_PARTS_MAX 16384

const char *const edge_owner_names[] = {"agent", "probe"};
_Static_assert(sizeof(edge_owner_names) / sizeof(*edge_owner_names) == EDGE_OWNER_N, "a name each");
static const char *const reach_names[] = {"unknown", "reached", "silent"};

_Static_assert(sizeof(reach_names) / sizeof(*reach_names) == EDGE_REACH_N, "a name each");

/* ---- the parts of one writer ----------------------------------------------------------------- */

static void free_part(struct edge_part *part, enum edge_owner owner)
{
    if (part && owner == EDGE_OWNER_AGENT && !part->is_gone) {
        free(part->said.error);
        free(part->said.why);
    }
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

/* ---- parts ---------------------------------------------------------------------------------- */

static void decode_endpoint(struct fields *f, const char *name, struct endpoint *ret)
{
    const char *text = fields_string(f, name, FIELDS_OPTIONAL, 1, ENDPOINT_TEXT_MAX);
    struct err why = ERR_NULL;

    if (text && endpoint_parse(ret, text, &why) < 0)
        fields_fail(f, "\"%s\": %s", name, err_text(&why));
}

/* {"lost", "packets", "seconds", "periods", "usualPpm"?, "isWorse"?} */
static void decode_loss(struct fields *f, struct loss_rate *ret)
{
    const json_t *json = fields_object(f, "lossIn", FIELDS_OPTIONAL);
    struct loss_rate r = {.packets = 0};
    struct fields one;

    if (!json)
        return;
    one = fields_make(json, f->where, f->e);
    fields_u64(&one, "packets", FIELDS_REQUIRED, 0, INT64_MAX, &r.packets);
    fields_u64(&one, "lost", FIELDS_REQUIRED, 0, r.packets, &r.lost);
    fields_int(&one, "seconds", FIELDS_REQUIRED, 0, UINT32_MAX, &r.seconds);
    fields_int(&one, "periods", FIELDS_REQUIRED, 0, UINT32_MAX, &r.periods);
    r.has_usual = json_object_get(json, "usualPpm") != NULL;
    fields_int(&one, "usualPpm", FIELDS_OPTIONAL, 0, 1000000, &r.usual_ppm);
    fields_bool(&one, "isWorse", FIELDS_OPTIONAL, &r.is_worse);
    f->failed = fields_end(&one);
    *ret = r;
}

json_t *edge_loss_encode(const struct loss_rate *r)
{
    if (!loss_rate_is_known(r))
        return NULL;
    return json_pack("{s:I, s:I, s:I, s:I, s:o*, s:o*}", "lost", (json_int_t)r->lost, "packets",
        (json_int_t)r->packets, "seconds", (json_int_t)r->seconds, "periods",
        (json_int_t)r->periods, "usualPpm", r->has_usual ? json_integer(r->usual_ppm) : NULL,
        "isWorse", r->is_worse ? json_true() : NULL);
}

static uint32_t decode_rtt(struct fields *f, const char *name)
{
    const json_t *ms = fields_get(f, name, FIELDS_OPTIONAL);
    double us = json_number_value(ms) * 1000;

    if (ms && (!json_is_number(ms) || !(us >= 0 && us <= RTT_US_MAX))) {
        fields_fail(
            f, "\"%s\" is not a number of milliseconds from 0 to %u", name, RTT_US_MAX / 1000);
        return 0;
    }
    return ms ? (uint32_t)(us + 0.5) : 0;
}

static json_t *encode_rtt(uint32_t us)
{
    return us > 0 ? json_real(us / 1000.0) : NULL;
}

/* {"p50Ms", "p99Ms", "jitterMs", "samples", "usualMs"?} */
static void decode_spread(struct fields *f, struct rtt_spread *ret)
{
    const json_t *json = fields_object(f, "rtt", FIELDS_OPTIONAL);
    struct rtt_spread s = {.samples = 0};
    struct fields one;

    if (!json)
        return;
    one = fields_make(json, f->where, f->e);
    s.p50_us = decode_rtt(&one, "p50Ms");
    s.p99_us = decode_rtt(&one, "p99Ms");
    s.jitter_us = decode_rtt(&one, "jitterMs");
    s.usual_us = decode_rtt(&one, "usualMs");
    fields_int(&one, "samples", FIELDS_REQUIRED, 0, UINT32_MAX, &s.samples);
    f->failed = fields_end(&one);
    *ret = s;
}

json_t *edge_spread_encode(const struct rtt_spread *s)
{
    if (!rtt_spread_is_known(s))
        return NULL;
    return json_pack("{s:f, s:f, s:f, s:I, s:o*}", "p50Ms", s->p50_us / 1000.0, "p99Ms",
        s->p99_us / 1000.0, "jitterMs", s->jitter_us / 1000.0, "samples", (json_int_t)s->samples,
        "usualMs", encode_rtt(s->usual_us));
}

static int decode_said(
    struct edge_said *ret, const json_t *json, const char *where, int64_t at, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    struct edge_said s = EDGE_SAID_NULL;
    uint64_t age = UINT64_MAX;
    const char *error;
    const char *why;
    size_t path;

    /* A kind of path that this version does not know counts as not reported. */
    path =
        parse_word(fields_string(&f, "path", FIELDS_OPTIONAL, 1, 31), path_kind_names, PATH_KIND_N);
    if (path < PATH_KIND_N)
        s.path = (uint8_t)path;
    s.has_handshake = json_object_get(json, "handshakeAgeSeconds") != NULL;
    fields_u64(&f, "handshakeAgeSeconds", FIELDS_OPTIONAL, 0, AGE_MAX, &age);
    if (age != UINT64_MAX)
        s.handshake_at = at > (int64_t)age ? at - (int64_t)age : 1;
    decode_endpoint(&f, "endpoint", &s.endpoint);
    fields_public_key(&f, "publicKey", FIELDS_OPTIONAL, &s.key);
    fields_bool(&f, "alarm", FIELDS_OPTIONAL, &s.is_alarm);
    fields_bool(&f, "relayIsBetter", FIELDS_OPTIONAL, &s.is_relay_better);
    decode_loss(&f, &s.loss);
    decode_spread(&f, &s.spread);
    fields_int(&f, "fellAt", FIELDS_OPTIONAL, 0, INT64_MAX, &s.fell_at);
    fields_int(&f, "pathSince", FIELDS_OPTIONAL, 0, INT64_MAX, &s.path_at);
    error = fields_string(&f, "error", FIELDS_OPTIONAL, 1, EDGE_ERROR_MAX);
    why = fields_string(&f, "why", FIELDS_OPTIONAL, 1, EDGE_SAID_WHY_MAX);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    s.error = error ? strdup(error) : NULL;
    s.why = why ? strdup(why) : NULL;
    if ((error && !s.error) || (why && !s.why)) {
        free(s.error);
        free(s.why);
        return err_set(e, -ENOMEM, "no memory for %s", where);
    }
    *ret = s;
    return 0;
}

static json_t *encode_endpoint(const struct endpoint *ep)
{
    char text[ENDPOINT_TEXT_MAX];

    return endpoint_is_none(ep) ? NULL : json_string(endpoint_format(ep, text));
}

static json_t *encode_said(const struct edge_said *s, int64_t at)
{
    char key[X25519_BASE64_MAX];
    json_t *age = NULL;

    if (s->has_handshake && s->handshake_at == 0)
        age = json_null();
    else if (s->has_handshake)
        age = json_integer(at > s->handshake_at ? at - s->handshake_at : 0);
    return json_pack("{s:s*, s:o*, s:o*, s:s*, s:o*, s:o*, s:o*, s:o*, s:o*, s:s*, s:s*}", "path",
        s->path < PATH_KIND_N ? path_kind_names[s->path] : NULL, "handshakeAgeSeconds", age,
        "endpoint", encode_endpoint(&s->endpoint), "publicKey",
        x25519_public_is_none(&s->key) ? NULL : x25519_public_format(&s->key, key), "alarm",
        s->is_alarm ? json_true() : NULL, "relayIsBetter", s->is_relay_better ? json_true() : NULL,
        "lossIn", edge_loss_encode(&s->loss), "rtt", edge_spread_encode(&s->spread), "fellAt",
        s->fell_at > 0 ? json_integer(s->fell_at) : NULL, "error", s->error, "why", s->why);
}

static int decode_probed(
    struct edge_probed *ret, const json_t *json, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    struct edge_probed p = {.rtt_us = 0};
    unsigned tunnel = EDGE_REACH_UNKNOWN;
    unsigned underlay = EDGE_REACH_UNKNOWN;

    fields_enum(&f, "tunnel", FIELDS_OPTIONAL, reach_names, EDGE_REACH_N, &tunnel);
    fields_enum(&f, "underlay", FIELDS_OPTIONAL, reach_names, EDGE_REACH_N, &underlay);
    p.rtt_us = decode_rtt(&f, "tunnelRttMs");
    p.underlay_rtt_us = decode_rtt(&f, "underlayRttMs");
    decode_endpoint(&f, "underlayEndpoint", &p.endpoint);
    fields_bool(&f, "underlayHeard", FIELDS_OPTIONAL, &p.is_heard);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    p.tunnel = (uint8_t)tunnel;
    p.underlay = (uint8_t)underlay;
    *ret = p;
    return 0;
}

json_t *edge_probed_encode(const struct edge_probed *p)
{
    return json_pack("{s:s, s:o*, s:s, s:o*, s:o*, s:o*}", "tunnel", reach_names[p->tunnel],
        "tunnelRttMs", encode_rtt(p->rtt_us), "underlay", reach_names[p->underlay], "underlayRttMs",
        encode_rtt(p->underlay_rtt_us), "underlayEndpoint", encode_endpoint(&p->endpoint),
        "underlayHeard", p->is_heard ? json_true() : NULL);
}

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
        r = decode_said(&part->said, json, where, at, e);
    else if (!part->is_gone)
        r = decode_probed(&part->probed, json, where, e);
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
    return owner == EDGE_OWNER_AGENT ? encode_said(&part->said, at)
                                     : edge_probed_encode(&part->probed);
}

/* As it is stored: why a path is no better one is said again, and since when it is there is not. */
static json_t *encode_stored(const struct edge_part *part, enum edge_owner owner, int64_t at)
{
    json_t *json = edge_part_encode(part, owner, at);

    if (owner == EDGE_OWNER_AGENT && !part->is_gone) {
        (void)json_object_del(json, "why");
        if (part->said.path_at > 0)
            (void)json_object_set_new(json, "pathSince", json_integer(part->said.path_at));
    }
    return json;
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
            said = encode_stored(part, p->owner, at);
            need = strlen(part->peer) + sizeof("\"\":,") + json_dumpb(said, NULL, 0, JSON_COMPACT);
            if (said && need > left) {
                json_decref(said);
                continue;
            }
            left -= need;
            fields_set(&json, part->peer, said);
        }
    return json;
}

/* ---- which report follows which ------------------------------------------------------------- */

bool edge_sequence_takes(struct edge_sequence *s, uint64_t run, uint64_t n, bool begins)
{
    bool follows = run == s->run && (n == s->last || n - 1 == s->last);

    if (!begins && !follows)
        return false;
    *s = (struct edge_sequence){.run = run, .last = n};
    return true;
}
