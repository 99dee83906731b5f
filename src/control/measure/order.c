/* order.c - see order.h. */
#include "measure/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/traffic.h"
#include "measure/table.h"
#include "mesh/object/fields.h"

/* Of one all-reduce. */
#define REPEATS_MAX 1000

static const char *const kind_names[] = {"none", "session", "facts", "names", "warm", "light",
    "bulk", "loss", "heard", "underlay", "allreduce", "sink", "source", "hop", "port", "burst",
    "catch"};
static const char *const way_names[] = {"out", "in", "both"};
const char *const order_algorithm_names[] = {"ring", "tree"};

_Static_assert(sizeof(kind_names) / sizeof(*kind_names) == ORDER_N, "a name each");
_Static_assert(sizeof(way_names) / sizeof(*way_names) == ORDER_DIRECTION_N, "a name each");
_Static_assert(sizeof(order_algorithm_names) / sizeof(*order_algorithm_names) == ORDER_ALGORITHM_N,
    "the same");

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

/* ---- fields --------------------------------------------------------------------------------- */

#define BIT(kind) (1u << ORDER_##kind)

static const struct row order_rows[] = {
    {ROW(HEX, "proof", struct order, proof), .is_optional = true,
        .has = offsetof(struct order, has_proof), .kinds = BIT(SESSION)},
    {ROW(TEXT, "purpose", struct order, purpose), .min = 1, .kinds = BIT(SESSION)},
    {ROW(HEX, "id", struct order, id),
        .kinds = BIT(SESSION) | BIT(SINK) | BIT(SOURCE) | BIT(HOP) | BIT(PORT) | BIT(CATCH)},
    {ROW(U32, "seconds", struct order, seconds), .min = 1, .max = ORDER_SECONDS_MAX,
        .kinds = BIT(SESSION)},
    {ROW(IPV4, "peer", struct order, peer),
        .kinds = BIT(IDLE_TEST) | BIT(BULK) | BIT(LOSS) | BIT(BURST)},
    {ROW(U32, "pings", struct order, pings), .min = 1, .max = ORDER_PINGS_MAX,
        .kinds = BIT(IDLE_TEST)},
    {ROW(U32, "datagrams", struct order, datagrams), .min = 1, .max = ORDER_DATAGRAMS_MAX,
        .kinds = BIT(LOSS)},
    {ROW(U32, "perSecond", struct order, per_second), .min = 1, .max = ORDER_PER_SECOND_MAX,
        .kinds = BIT(LOSS)},
    {ROW(U32, "streams", struct order, streams), .min = 1, .max = ORDER_STREAMS_MAX,
        .kinds = BIT(BULK)},
    {ROW(U32, "rank", struct order, rank), .max = ORDER_NODES_MAX - 1,
        .kinds = BIT(HOP) | BIT(ALLREDUCE)},
    {ROW(U32, "ms", struct order, ms), .min = 1, .max = ORDER_MS_MAX,
        .kinds = BIT(BULK) | BIT(LOSS) | BIT(SINK) | BIT(SOURCE) | BIT(ALLREDUCE)},
    {ROW(U32, "ms", struct order, ms), .min = 1, .max = ORDER_BURST_MS_MAX,
        .kinds = BIT(BURST) | BIT(CATCH)},
    {ROW(U64, "bytes", struct order, bytes), .min = 1, .max = ORDER_BURST_MAX, .kinds = BIT(BURST)},
    {ROW(U64, "bitsPerSecond", struct order, bits_per_s), .is_optional = true,
        .has = offsetof(struct order, is_paced), .min = TRAFFIC_RATE_MIN, .max = TRAFFIC_RATE_MAX,
        .kinds = BIT(BURST)},
    {ROW(U32, "atOnce", struct order, at_once), .is_optional = true,
        .has = offsetof(struct order, is_paced), .min = 1, .max = ORDER_AT_ONCE_MAX,
        .kinds = BIT(BURST)},
    {ROW(U32, "size", struct order, size), .min = FRAME_LEN, .max = ORDER_DATAGRAM_MAX,
        .kinds = BIT(CATCH)},
    {ROW(U32, "port", struct order, port), .min = 1, .max = UINT16_MAX, .kinds = BIT(CATCH)},
    {ROW(U32, "mapped", struct order, mapped), .max = UINT16_MAX, .kinds = BIT(CATCH)},
    {ROW(U64, "bytes", struct order, bytes), .min = 1, .max = ORDER_BYTES_MAX,
        .kinds = BIT(BULK) | BIT(SOURCE)},
    {ROW(U64, "bytes", struct order, bytes), .min = 4, .max = ORDER_VECTOR_MAX,
        .kinds = BIT(ALLREDUCE)},
    {ROW(U32, "repeats", struct order, repeats), .min = 1, .max = REPEATS_MAX,
        .kinds = BIT(ALLREDUCE)},
    {ROW(ENUM, "way", struct order, way), .names = way_names, .max = ORDER_DIRECTION_N,
        .kinds = BIT(BULK)},
    {ROW(BOOL, "underlay", struct order, underlay), .is_optional = true,
        .has = offsetof(struct order, underlay), .kinds = BIT(BULK) | BIT(BURST) | BIT(CATCH)},
    {ROW(BOOL, "tls", struct order, tls), .is_optional = true, .has = offsetof(struct order, tls),
        .kinds = BIT(BURST)},
    {ROW(ENUM, "algorithm", struct order, algorithm), .names = order_algorithm_names,
        .max = ORDER_ALGORITHM_N, .kinds = BIT(ALLREDUCE)},
    {.type = ROW_END},
};

static const struct row name_rows[] = {
    {ROW(NAME, "name", struct order_name, name)},
    {ROW(IPV4, "address", struct order_name, address)},
    {.type = ROW_END},
};

/* ---- decoding ------------------------------------------------------------------------------- */

/* Allocates @size zero bytes for each item of @list. NULL: there are no items, or no memory. */
static void *alloc_items(struct fields *f, const json_t *list, size_t size)
{
    size_t n = list ? json_array_size(list) : 0;
    void *items = n > 0 ? calloc(n, size) : NULL;

    if (n > 0 && !items)
        f->failed = -ENOMEM;
    return items;
}

static void decode_addresses(struct fields *f, size_t min, struct order *o)
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

static void decode_names(struct fields *f, struct order *o)
{
    const json_t *list = fields_array(f, "names", FIELDS_REQUIRED, 0, ORDER_NODES_MAX);

    o->names = alloc_items(f, list, sizeof(*o->names));
    if (!o->names)
        return;
    table_decode_list(f, list, "a name", name_rows, o->names, sizeof(*o->names));
    o->n_names = json_array_size(list);
}

int order_decode(struct order *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the order", e);
    struct order o = ORDER_NULL;
    unsigned kind = ORDER_NONE;
    uint64_t rank;

    fields_enum(&f, "op", FIELDS_REQUIRED, kind_names, ORDER_N, &kind);
    o.kind = kind;
    if (fields_end(&f) == 0 && kind == ORDER_NONE)
        fields_fail(&f, "\"op\" is \"none\", which is no order");
    if (kind == ORDER_NAMES)
        decode_names(&f, &o);
    if (kind == ORDER_WARM || kind == ORDER_ALLREDUCE)
        decode_addresses(&f, kind == ORDER_WARM ? 1 : 2, &o);
    /* A rank is one of the addresses. */
    if (kind == ORDER_ALLREDUCE)
        fields_u64(&f, "rank", FIELDS_REQUIRED, 0, o.n_addrs > 0 ? o.n_addrs - 1 : 0, &rank);
    table_decode(&f, order_rows, 1u << kind, &o);
    o.is_paced = o.bits_per_s != 0;
    if (o.is_paced && o.at_once == 0)
        o.at_once = 1;
    if (fields_end(&f) != 0) {
        order_deinit(&o);
        return fields_end(&f);
    }
    *ret = o;
    return 0;
}

/* ---- encoding ------------------------------------------------------------------------------ */

static json_t *encode_addresses(const struct order *o)
{
    json_t *list = json_array();
    char text[IP_ADDR_TEXT_MAX];

    for (size_t i = 0; i < o->n_addrs; i++)
        fields_append(&list, json_string(ip_addr_format(&o->addrs[i], text)));
    return list;
}

json_t *order_encode(const struct order *o)
{
    json_t *json =
        table_encode(json_pack("{s:s}", "op", kind_names[o->kind]), order_rows, 1u << o->kind, o);
    int r = 0;

    if (json && o->kind == ORDER_NAMES)
        r = json_object_set_new(
            json, "names", table_encode_list(name_rows, o->names, o->n_names, sizeof(*o->names)));
    else if (json && (o->kind == ORDER_WARM || o->kind == ORDER_ALLREDUCE))
        r = json_object_set_new(json, "addresses", encode_addresses(o));
    return r < 0 ? (json_decref(json), NULL) : json;
}

/* ---- pings ----------------------------------------------------------------------------------- */

#define FRAME_MAGIC   0x57667001u /* the last byte is the version */
#define FRAME_COUNTED 0x01u       /* bits of the flags */
#define FRAME_SILENT  0x02u

/* The layout on the wire; the numbers are offsets in bytes. */
struct frame_wire {
    struct be32 magic;   /* 0 */
    uint8_t kind;        /* 4 */
    uint8_t flags;       /* 5 */
    struct be16 size;    /* 6 */
    uint8_t id[16];      /* 8 */
    struct be32 seq;     /* 24 */
    struct be32 heard;   /* 28 */
    struct be64 sent;    /* 32 */
    struct be64 arrived; /* 40 */
    struct be64 spare;   /* 48 */
};

_Static_assert(sizeof(struct frame_wire) == FRAME_LEN, "as docs/PREFLIGHT.md draws it");

void frame_encode(const struct frame *f, uint8_t out[static FRAME_LEN])
{
    struct frame_wire w = {
        .magic = be32_make(FRAME_MAGIC),
        .kind = (uint8_t)f->kind,
        .flags = (uint8_t)((f->counted ? FRAME_COUNTED : 0) | (f->is_silent ? FRAME_SILENT : 0)),
        .size = be16_make(f->size),
        .seq = be32_make(f->seq),
        .heard = be32_make(f->heard),
        .sent = be64_make((uint64_t)f->sent_at),
        .arrived = be64_make((uint64_t)f->arrived_at),
    };

    memcpy(w.id, f->id.b, sizeof(w.id));
    memcpy(out, &w, sizeof(w));
}

bool frame_decode(struct frame *ret, const uint8_t *p, size_t len)
{
    struct frame_wire w;

    if (len < sizeof(w))
        return false;
    memcpy(&w, p, sizeof(w));
    if (be32_get(w.magic) != FRAME_MAGIC || (w.kind != FRAME_PING && w.kind != FRAME_PONG))
        return false;
    *ret = (struct frame){
        .kind = w.kind,
        .counted = (w.flags & FRAME_COUNTED) != 0,
        .is_silent = (w.flags & FRAME_SILENT) != 0,
        .size = be16_get(w.size),
        .seq = be32_get(w.seq),
        .heard = be32_get(w.heard),
        .sent_at = (nsec_t)be64_get(w.sent),
        .arrived_at = (nsec_t)be64_get(w.arrived),
    };
    memcpy(ret->id.b, w.id, sizeof(w.id));
    return true;
}
