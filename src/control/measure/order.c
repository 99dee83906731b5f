/* order.c - see order.h. */
#include "measure/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "mesh/object/fields.h"

static const char *const kind_names[] = {"none", "session", "facts", "names", "warm", "light",
    "bulk", "heard", "underlay", "allreduce", "sink", "source", "hop", "port"};
static const char *const way_names[] = {"out", "in", "both"};
static const char *const algorithm_names[] = {"ring", "tree"};

_Static_assert(sizeof(kind_names) / sizeof(*kind_names) == ORDER_N, "a name each");
_Static_assert(sizeof(way_names) / sizeof(*way_names) == ORDER_DIRECTION_N, "a name each");
_Static_assert(sizeof(algorithm_names) / sizeof(*algorithm_names) == ORDER_ALGORITHM_N, "the same");

const char *order_algorithm_name(enum order_algorithm a)
{
    return algorithm_names[a];
}

bool order_is_data(enum order_kind kind)
{
    return kind == ORDER_SINK || kind == ORDER_SOURCE || kind == ORDER_HOP || kind == ORDER_PORT;
}

bool session_id_equal(const struct session_id *a, const struct session_id *b)
{
    return secret_equal(a->b, b->b, sizeof(a->b));
}

void order_deinit(struct order *o)
{
    free(o->addrs);
    free(o->names);
    *o = (struct order)ORDER_NULL;
}

/* ---- proofs -------------------------------------------------------------------------------- */

struct measure_proof order_proof_input(const struct order *o, const struct order_challenge *c)
{
    struct measure_proof p = {.seconds = o->seconds};

    memcpy(p.challenge, c->b, sizeof(p.challenge));
    memcpy(p.id, o->id.b, sizeof(p.id));
    /* Behind its end the text may be anything. */
    memcpy(p.purpose, o->purpose, strnlen(o->purpose, sizeof(p.purpose) - 1));
    return p;
}

json_t *order_challenge_encode(const struct order_challenge *c, const char *sentence)
{
    char text[2 * sizeof(c->b) + 1];

    hex_encode(c->b, sizeof(c->b), text);
    return json_pack("{s:s, s:s}", "error", sentence, "challenge", text);
}

bool order_challenge_decode(struct order_challenge *ret, const json_t *answer)
{
    const char *text = json_string_value(json_object_get(answer, "challenge"));

    return text && hex_decode(text, ret->b, sizeof(ret->b));
}

/* ---- decoding ------------------------------------------------------------------------------ */

static void get_u32(struct fields *f, const char *name, uint64_t min, uint64_t max, uint32_t *ret)
{
    uint64_t v = *ret;

    fields_u64(f, name, FIELDS_REQUIRED, min, max, &v);
    *ret = (uint32_t)v;
}

static void get_id(struct fields *f, struct session_id *ret)
{
    size_t len = 2 * sizeof(ret->b);
    const char *text = fields_string(f, "id", FIELDS_REQUIRED, len, len);

    if (text && !hex_decode(text, ret->b, sizeof(ret->b)))
        fields_fail(f, "\"id\" is not %zu hex digits", len);
}

/* Allocates @size zero bytes for each item of @list. NULL: there are no items, or no memory. */
static void *alloc_items(struct fields *f, const json_t *list, size_t size)
{
    size_t n = list ? json_array_size(list) : 0;
    void *items = n > 0 ? calloc(n, size) : NULL;

    if (n > 0 && !items)
        f->failed = -ENOMEM;
    return items;
}

static void get_addrs(struct fields *f, size_t min, struct order *o)
{
    const json_t *list = fields_array(f, "addresses", FIELDS_REQUIRED, min, ORDER_NODES_MAX);
    const json_t *item;
    struct err e = ERR_NULL;
    size_t i;

    o->addrs = alloc_items(f, list, sizeof(*o->addrs));
    if (!o->addrs)
        return;
    json_array_foreach(list, i, item) {
        if (!json_is_string(item) ||
            ip_addr_parse(&o->addrs[i], json_string_value(item), &e) != 0) {
            fields_fail(f, "address %zu of \"addresses\" is none", i);
            return;
        }
    }
    o->n_addrs = json_array_size(list);
}

static void get_names(struct fields *f, struct order *o)
{
    const json_t *list = fields_array(f, "names", FIELDS_REQUIRED, 0, ORDER_NODES_MAX);
    const json_t *item;
    size_t i;

    o->names = alloc_items(f, list, sizeof(*o->names));
    if (!o->names)
        return;
    json_array_foreach(list, i, item) {
        struct fields g = fields_make(item, "a name", f->e);

        fields_name(&g, "name", FIELDS_REQUIRED, o->names[i].name);
        fields_address(&g, "address", FIELDS_REQUIRED, true, &o->names[i].address);
        if (fields_end(&g) != 0) {
            f->failed = fields_end(&g);
            return;
        }
    }
    o->n_names = json_array_size(list);
}

static void get_bulk(struct fields *f, struct order *o)
{
    unsigned way = ORDER_OUT;

    fields_address(f, "peer", FIELDS_REQUIRED, true, &o->peer);
    get_u32(f, "streams", 1, ORDER_STREAMS_MAX, &o->streams);
    get_u32(f, "ms", 1, ORDER_MS_MAX, &o->ms);
    fields_u64(f, "bytes", FIELDS_REQUIRED, 1, ORDER_BYTES_MAX, &o->bytes);
    fields_enum(f, "way", FIELDS_REQUIRED, way_names, ORDER_DIRECTION_N, &way);
    fields_bool(f, "underlay", FIELDS_OPTIONAL, &o->underlay);
    o->way = way;
}

static void get_allreduce(struct fields *f, struct order *o)
{
    unsigned algorithm = ORDER_RING;

    get_addrs(f, 2, o);
    get_u32(f, "rank", 0, o->n_addrs > 0 ? o->n_addrs - 1 : 0, &o->rank);
    fields_u64(f, "bytes", FIELDS_REQUIRED, 4, ORDER_VECTOR_MAX, &o->bytes);
    get_u32(f, "repeats", 1, ORDER_REPEATS_MAX, &o->repeats);
    get_u32(f, "ms", 1, ORDER_MS_MAX, &o->ms);
    fields_enum(f, "algorithm", FIELDS_REQUIRED, algorithm_names, ORDER_ALGORITHM_N, &algorithm);
    o->algorithm = algorithm;
}

static void get_proof(struct fields *f, struct order *o)
{
    size_t len = 2 * sizeof(o->proof.mac);
    const char *text = fields_string(f, "proof", FIELDS_OPTIONAL, len, len);

    if (!text)
        return;
    o->has_proof = true;
    if (!hex_decode(text, o->proof.mac, sizeof(o->proof.mac)))
        fields_fail(f, "\"proof\" is not %zu hex digits", len);
}

static void get_session(struct fields *f, struct order *o)
{
    get_proof(f, o);
    fields_text(f, "purpose", FIELDS_REQUIRED, 1, sizeof(o->purpose), o->purpose);
    get_id(f, &o->id);
    get_u32(f, "seconds", 1, ORDER_SECONDS_MAX, &o->seconds);
}

static void get_source(struct fields *f, struct order *o)
{
    get_id(f, &o->id);
    get_u32(f, "ms", 1, ORDER_MS_MAX, &o->ms);
    fields_u64(f, "bytes", FIELDS_REQUIRED, 1, ORDER_BYTES_MAX, &o->bytes);
}

static void get_fields(struct fields *f, struct order *o)
{
    switch (o->kind) {
    case ORDER_SESSION:
        get_session(f, o);
        break;
    case ORDER_NAMES:
        get_names(f, o);
        break;
    case ORDER_WARM:
        get_addrs(f, 1, o);
        break;
    case ORDER_IDLE_TEST:
        fields_address(f, "peer", FIELDS_REQUIRED, true, &o->peer);
        get_u32(f, "pings", 1, ORDER_PINGS_MAX, &o->pings);
        break;
    case ORDER_BULK:
        get_bulk(f, o);
        break;
    case ORDER_ALLREDUCE:
        get_allreduce(f, o);
        break;
    case ORDER_SINK:
        get_id(f, &o->id);
        get_u32(f, "ms", 1, ORDER_MS_MAX, &o->ms);
        break;
    case ORDER_SOURCE:
        get_source(f, o);
        break;
    case ORDER_HOP:
        get_id(f, &o->id);
        get_u32(f, "rank", 0, ORDER_NODES_MAX - 1, &o->rank);
        break;
    case ORDER_PORT:
        get_id(f, &o->id);
        break;
    case ORDER_NONE:
    case ORDER_FACTS:
    case ORDER_HEARD:
    case ORDER_UNDERLAY:
    case ORDER_N:
        break;
    }
}

int order_decode(struct order *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the order", e);
    struct order o = ORDER_NULL;
    unsigned kind = ORDER_NONE;

    fields_enum(&f, "op", FIELDS_REQUIRED, kind_names, ORDER_N, &kind);
    o.kind = kind;
    if (fields_end(&f) == 0 && kind == ORDER_NONE)
        fields_fail(&f, "\"op\" is \"none\", which is no order");
    if (fields_end(&f) == 0)
        get_fields(&f, &o);
    if (fields_end(&f) != 0) {
        order_deinit(&o);
        return fields_end(&f);
    }
    *ret = o;
    return 0;
}

/* ---- encoding ------------------------------------------------------------------------------ */

static json_t *encode_addrs(const struct order *o)
{
    json_t *list = json_array();
    char text[IP_ADDR_TEXT_MAX];

    for (size_t i = 0; list && i < o->n_addrs; i++)
        if (json_array_append_new(list, json_string(ip_addr_format(&o->addrs[i], text))) < 0)
            list = (json_decref(list), NULL);
    return list;
}

static json_t *encode_names(const struct order *o)
{
    json_t *list = json_array();
    char text[IP_ADDR_TEXT_MAX];

    for (size_t i = 0; list && i < o->n_names; i++)
        if (json_array_append_new(list, json_pack("{s:s, s:s}", "name", o->names[i].name, "address",
                                            ip_addr_format(&o->names[i].address, text))) < 0)
            list = (json_decref(list), NULL);
    return list;
}

static json_t *encode_bulk(const struct order *o, const char *op)
{
    char peer[IP_ADDR_TEXT_MAX];
    json_t *json = json_pack("{s:s, s:s, s:i, s:i, s:I, s:s}", "op", op, "peer",
        ip_addr_format(&o->peer, peer), "streams", (int)o->streams, "ms", (int)o->ms, "bytes",
        (json_int_t)o->bytes, "way", way_names[o->way]);

    if (json && o->underlay && json_object_set_new(json, "underlay", json_true()) < 0)
        json = (json_decref(json), NULL);
    return json;
}

static json_t *encode_session(const struct order *o, const char *op, const char *id)
{
    char proof[2 * sizeof(o->proof.mac) + 1];

    hex_encode(o->proof.mac, sizeof(o->proof.mac), proof);
    return json_pack("{s:s, s:s, s:s, s:i, s:s*}", "op", op, "id", id, "purpose", o->purpose,
        "seconds", (int)o->seconds, "proof", o->has_proof ? proof : NULL);
}

json_t *order_encode(const struct order *o)
{
    const char *op = kind_names[o->kind];
    char peer[IP_ADDR_TEXT_MAX];
    char id[2 * sizeof(o->id.b) + 1];

    hex_encode(o->id.b, sizeof(o->id.b), id);
    switch (o->kind) {
    case ORDER_SESSION:
        return encode_session(o, op, id);
    case ORDER_NAMES:
        return json_pack("{s:s, s:o}", "op", op, "names", encode_names(o));
    case ORDER_WARM:
        return json_pack("{s:s, s:o}", "op", op, "addresses", encode_addrs(o));
    case ORDER_IDLE_TEST:
        return json_pack("{s:s, s:s, s:i}", "op", op, "peer", ip_addr_format(&o->peer, peer),
            "pings", (int)o->pings);
    case ORDER_BULK:
        return encode_bulk(o, op);
    case ORDER_ALLREDUCE:
        return json_pack("{s:s, s:o, s:i, s:I, s:i, s:i, s:s}", "op", op, "addresses",
            encode_addrs(o), "rank", (int)o->rank, "bytes", (json_int_t)o->bytes, "repeats",
            (int)o->repeats, "ms", (int)o->ms, "algorithm", algorithm_names[o->algorithm]);
    case ORDER_SINK:
        return json_pack("{s:s, s:s, s:i}", "op", op, "id", id, "ms", (int)o->ms);
    case ORDER_SOURCE:
        return json_pack("{s:s, s:s, s:i, s:I}", "op", op, "id", id, "ms", (int)o->ms, "bytes",
            (json_int_t)o->bytes);
    case ORDER_HOP:
        return json_pack("{s:s, s:s, s:i}", "op", op, "id", id, "rank", (int)o->rank);
    case ORDER_PORT:
        return json_pack("{s:s, s:s}", "op", op, "id", id);
    case ORDER_NONE:
    case ORDER_FACTS:
    case ORDER_HEARD:
    case ORDER_UNDERLAY:
    case ORDER_N:
        break;
    }
    return json_pack("{s:s}", "op", op);
}
