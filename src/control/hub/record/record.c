/* record.c - see record.h. */
#include "record.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "base/err.h"
#include "base/text.h"
#include "mesh/object/fields.h"

/* ---- the sum in a record --------------------------------------------------------------------- */

#define FIELD     ",\"sum\":\""
#define FIELD_LEN (sizeof(FIELD) - 1)
#define SUM_BYTES 8
#define SUM_LEN   (2 * SUM_BYTES)
#define END       "\"}"
#define END_LEN   (sizeof(END) - 1)
#define TAIL_LEN  (FIELD_LEN + SUM_LEN + END_LEN)

/* Of @key and of the object whose first @len bytes are at @text, all but the closing brace. */
static bool make_sum(const char *key, const char *text, size_t len, char ret[static SUM_LEN + 1])
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    char *both;
    int n = asprintf(&both, "%s\n%.*s", key, (int)len, text);

    if (n < 0)
        return false;
    SHA256((const uint8_t *)both, (size_t)n, digest);
    free(both);
    hex_encode(digest, SUM_BYTES, ret);
    return true;
}

char *seal_add(const char *key, const char *text)
{
    size_t len = strlen(text);
    char sum[SUM_LEN + 1];
    char *sealed = NULL;

    /* An object without fields would need no comma; no record is one. */
    if (len < sizeof("{\"a\":0}") - 1 || text[len - 1] != '}')
        return NULL;
    if (!make_sum(key, text, len - 1, sum) ||
        asprintf(&sealed, "%.*s" FIELD "%s" END, (int)(len - 1), text, sum) < 0)
        return NULL;
    return sealed;
}

/* Is there a sum, however the text ends behind it? */
static bool has_field(const char *text, size_t len)
{
    return len >= TAIL_LEN && memcmp(text + len - TAIL_LEN, FIELD, FIELD_LEN) == 0;
}

static bool has_end(const char *text, size_t len)
{
    return memcmp(text + len - END_LEN, END, END_LEN) == 0;
}

bool seal_is_there(const char *text)
{
    size_t len = strlen(text);

    return has_field(text, len) && has_end(text, len);
}

int seal_check(const char *key, const char *text, struct err *e)
{
    size_t len = strlen(text);
    char sum[SUM_LEN + 1];
    const char *tail;

    if (!has_field(text, len))
        return 0;
    if (!has_end(text, len))
        return err_set(
            e, -EINVAL, "its last characters are %s, and not %s", text + len - END_LEN, END);
    tail = text + len - TAIL_LEN;
    if (!make_sum(key, text, len - TAIL_LEN, sum))
        return err_set(e, -ENOMEM, "no memory for a sum");
    if (memcmp(tail + FIELD_LEN, sum, SUM_LEN) == 0)
        return 0;
    return err_set(e, -EINVAL, "the sum in it is \"%.*s\", and that of its key and text is \"%s\"",
        (int)SUM_LEN, tail + FIELD_LEN, sum);
}

/* ---- networks, nodes, edges, tokens, reports and other objects ------------------------------- */

/* The prefixes of the records that hold no object. */
static const char *const prefixes[RECORD_N] = {
    [RECORD_IPAM] = "ipam/",
    [RECORD_TOKEN] = "token/",
    [RECORD_REPORT] = "report/",
};

/* The kinds of object whose records have more to them than the object. */
static const struct object_kind *const objects[RECORD_N] = {
    [RECORD_NETWORK] = &network_kind,
    [RECORD_NODE] = &node_kind,
    [RECORD_EDGE] = &mesh_edge_kind,
};

/* ---- keys ----------------------------------------------------------------------------------- */

const char *record_prefix(enum record_kind kind)
{
    if (objects[kind])
        return objects[kind]->prefix;
    return prefixes[kind] ? prefixes[kind] : "";
}

static bool has_prefix(const char *key, const char *prefix)
{
    return prefix[0] && strncmp(key, prefix, strlen(prefix)) == 0;
}

enum record_kind record_kind_of(const struct object_kind *object)
{
    for (int kind = RECORD_NONE + 1; kind < RECORD_N; kind++)
        if (objects[kind] == object)
            return (enum record_kind)kind;
    return RECORD_OBJECT;
}

/* The kind that the beginning of @key says, of record and of object. */
static enum record_kind find_kind(const char *key, const struct object_kind **ret_object)
{
    *ret_object = NULL;
    for (int kind = RECORD_NONE + 1; kind < RECORD_N; kind++)
        if (prefixes[kind] && has_prefix(key, prefixes[kind]))
            return (enum record_kind)kind;
    for (unsigned i = 0; object_kinds[i]; i++)
        if (has_prefix(key, object_kinds[i]->prefix)) {
            *ret_object = object_kinds[i];
            return record_kind_of(object_kinds[i]);
        }
    return RECORD_NONE;
}

const char *record_key_prefix(const char *key)
{
    const struct object_kind *object;
    enum record_kind kind = find_kind(key, &object);

    if (object)
        return object->prefix;
    return kind == RECORD_NONE ? NULL : prefixes[kind];
}

struct record_key record_key_parse(const char *key)
{
    struct record_key k = {.kind = RECORD_NONE};
    const struct object_kind *object;
    enum record_kind kind = find_kind(key, &object);
    const char *rest = kind == RECORD_NONE ? NULL : key + strlen(record_key_prefix(key));

    if (rest && kind != RECORD_TOKEN)
        rest = text_part(rest, '/', k.network, sizeof(k.network));
    if (rest && *rest)
        rest = text_part(rest, '\0', k.name, sizeof(k.name));
    if (rest) {
        k.kind = kind;
        k.object = object;
    }
    return k;
}

const char *record_object_key(char buf[static RECORD_KEY_MAX], const struct object_kind *kind,
    const char *network, const char *name)
{
    (void)snprintf(buf, RECORD_KEY_MAX, "%s%s/%s", kind->prefix, network, name);
    return buf;
}

const char *record_key(
    char buf[static RECORD_KEY_MAX], enum record_kind kind, const char *network, const char *name)
{
    (void)snprintf(buf, RECORD_KEY_MAX, "%s%s%s%s", record_prefix(kind), network,
        network[0] && name[0] ? "/" : "", name);
    return buf;
}

struct token_hash token_hash_of(const struct token_secret *secret)
{
    struct token_hash h;

    SHA256(secret->b, sizeof(secret->b), h.b);
    return h;
}

const char *token_hash_key(char buf[static RECORD_KEY_MAX], const struct token_hash *hash)
{
    char hex[2 * sizeof(hash->b) + 1];

    hex_encode(hash->b, sizeof(hash->b), hex);
    return record_key(buf, RECORD_TOKEN, "", hex);
}

/* ---- values --------------------------------------------------------------------------------- */

/* @json as text; it is taken. NULL: it is NULL, or no memory. */
static char *finish(json_t *json)
{
    char *text = body_format(json);

    json_decref(json);
    return text;
}

/* @json with the fields of @more; both are taken. NULL: no memory. */
static json_t *with(json_t *json, json_t *more)
{
    if (json_object_update_new(json, more) == 0)
        return json;
    json_decref(json);
    return NULL;
}

/* Begin to read a record, whose JSON @ret owns; what is none is the first failure. */
static struct fields parse(json_t **ret, const char *text, const char *where, struct err *e)
{
    int r = body_parse(ret, text, strlen(text), e);

    return r == 0 ? fields_make(*ret, where, e)
                  : (struct fields){.where = where, .e = e, .failed = r};
}

/* The same of a record that may have a sum, at @key. */
static struct fields parse_sealed(
    json_t **ret, const char *key, const char *text, const char *where, struct err *e)
{
    int r = seal_check(key, text, e);

    return r == 0 ? parse(ret, text, where, e)
                  : (struct fields){.where = where, .e = e, .failed = r};
}

char *record_network_encode(const struct network *n, const struct network_maker *maker)
{
    struct network plain = *n;
    char key[X25519_BASE64_MAX];

    plain.meta.resource_version = 0;
    return finish(
        with(network_encode(&plain), json_pack("{s:s, s:s}", "hubName", maker->name, "hubKey",
                                         x25519_public_format(&maker->key, key))));
}

int record_network_decode(
    struct network *ret, struct network_maker *ret_maker, const char *text, struct err *e)
{
    json_auto_t *json = NULL;
    struct network_maker maker = {.name = HUB_NAME_DEFAULT};
    struct fields f = parse(&json, text, "network", e);
    int r;

    fields_public_key(&f, "hubKey", FIELDS_REQUIRED, &maker.key);
    fields_name(&f, "hubName", FIELDS_OPTIONAL, maker.name);
    r = fields_end(&f);
    if (r == 0)
        r = network_decode(ret, json, OBJECT_LENIENT, e);
    if (r == 0)
        *ret_maker = maker;
    return r;
}

char *record_node_encode(const struct node *n, const struct token_hash *token)
{
    struct node plain = *n;
    char hex[2 * sizeof(token->b) + 1];

    plain.meta.resource_version = 0;
    plain.status = NULL;
    hex_encode(token->b, sizeof(token->b), hex);
    return finish(with(node_encode(&plain), json_pack("{s:s}", "token", hex)));
}

int record_node_decode(
    struct node *ret, struct token_hash *ret_token, const char *text, struct err *e)
{
    json_auto_t *json = NULL;
    struct token_hash token;
    const char *hex;
    int r = body_parse(&json, text, strlen(text), e);

    if (r != 0)
        return r;
    hex = json_string_value(json_object_get(json, "token"));
    if (!hex || !hex_decode(hex, token.b, sizeof(token.b)))
        return err_set(e, -EINVAL, "\"token\" of a stored node is not the hex of 32 bytes");
    r = node_decode(ret, json, OBJECT_LENIENT, e);
    if (r == 0)
        *ret_token = token;
    return r;
}

char *record_object_encode(const struct object *o)
{
    struct object plain = *o;

    plain.meta.resource_version = 0;
    if (o->kind == &mesh_edge_kind)
        plain.edge.status = NULL;
    return finish(object_encode(&plain));
}

int record_object_decode(
    struct object *ret, const struct object_kind *kind, const char *text, struct err *e)
{
    json_auto_t *json = NULL;
    struct object o = {.kind = kind};
    int r = body_parse(&json, text, strlen(text), e);

    if (r == 0)
        r = kind->decode(&o, json, OBJECT_LENIENT, e);
    if (r == 0)
        *ret = o;
    return r;
}

char *record_ipam_encode(uint32_t next, uint32_t high)
{
    return finish(json_pack("{s:I, s:I}", "next", (json_int_t)next, "high", (json_int_t)high));
}

int record_ipam_decode(uint32_t *ret_next, uint32_t *ret_high, const char *text, struct err *e)
{
    json_auto_t *json = NULL;
    struct fields f = parse(&json, text, "address cursor", e);
    uint32_t next = 0;
    uint32_t high = 0;

    fields_int(&f, "next", FIELDS_REQUIRED, 1, UINT32_MAX, &next);
    /* Without it the record is an earlier version's, which began again where the block ended. */
    high = next > 0 ? next - 1 : 0;
    fields_int(&f, "high", FIELDS_OPTIONAL, 0, UINT32_MAX, &high);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    *ret_next = next;
    *ret_high = high;
    return 0;
}

char *record_token_encode(const struct token_record *t)
{
    char key[X25519_BASE64_MAX];

    return finish(json_pack("{s:s, s:s, s:I, s:I, s:b, s:b, s:I, s:s, s:o*}", "network", t->network,
        "hubKey", x25519_public_format(&t->hub_key, key), "expires", (json_int_t)t->expires_at,
        "uses", (json_int_t)t->uses, "ephemeral", (int)t->ephemeral, "relay", (int)t->relay,
        "created", (json_int_t)t->created_at, "createdBy", t->created_by, "routes",
        t->routes.n ? subnets_encode(&t->routes) : NULL));
}

int record_token_decode(struct token_record *ret, const char *text, struct err *e)
{
    json_auto_t *json = NULL;
    struct token_record t = {.uses = 0};
    struct fields f = parse(&json, text, "token", e);

    fields_name(&f, "network", FIELDS_REQUIRED, t.network);
    fields_public_key(&f, "hubKey", FIELDS_REQUIRED, &t.hub_key);
    fields_int(&f, "expires", FIELDS_REQUIRED, 0, INT64_MAX, &t.expires_at);
    fields_int(&f, "uses", FIELDS_REQUIRED, 0, REQUEST_USES_MAX, &t.uses);
    fields_bool(&f, "ephemeral", FIELDS_REQUIRED, &t.ephemeral);
    fields_bool(&f, "relay", FIELDS_OPTIONAL, &t.relay);
    fields_int(&f, "created", FIELDS_OPTIONAL, 0, INT64_MAX, &t.created_at);
    subnets_decode(&f, "routes", &t.routes);
    fields_text(&f, "createdBy", FIELDS_OPTIONAL, 0, sizeof(t.created_by), t.created_by);
    return fields_give(&f, ret, &t, sizeof(t));
}

/* Room for the edges in a record, bytes: with all else that a report may hold they stay below what
 * the store takes. */
#define EDGES_SIZE  (32u << 10)
#define PROBES_SIZE (6u << 10)
#define DAILY_SIZE  (8u << 10)

void report_record_deinit(struct report_record *r)
{
    report_deinit(&r->report);
    edge_parts_deinit(&r->probed);
}

/* Of a node with more edges than there is room for, those that somebody should look at first. The
 * agent says all of them again to a hub that does not have them. */
char *record_report_encode(const struct report_record *r)
{
    const struct report *rp = &r->report;
    json_t *node = json_pack("{s:s, s:s, s:s*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}",
        "engine", rp->engine, "version", rp->version, "hostname",
        rp->hostname[0] ? rp->hostname : NULL, "candidates", json_loads(rp->candidates, 0, NULL),
        "paths", json_loads(rp->paths, 0, NULL), "aead", json_loads(rp->aead, 0, NULL), "fabric",
        json_loads(rp->fabric, 0, NULL), "routes",
        rp->routes.n ? subnets_encode(&rp->routes) : NULL, "metricsPort",
        rp->metrics_port ? json_integer(rp->metrics_port) : NULL, "nat",
        report_nat_encode(&rp->nat), "uplink", uplink_report_encode(&rp->uplink));
    json_t *applied = rp->has_applied ? json_pack("{s:I, s:s*}", "revision",
                                            (json_int_t)rp->applied, "error", rp->error)
                                      : NULL;
    json_t *edges =
        rp->has_edges ? edge_parts_encode(&rp->edges, EDGES_SIZE, r->last_seen_at) : NULL;
    json_t *probes =
        r->probed.n > 0 ? edge_parts_encode(&r->probed, PROBES_SIZE, r->last_seen_at) : NULL;

    return finish(json_pack("{s:I, s:I, s:o*, s:o, s:o*, s:o*, s:o*, s:o*}", "lastSeen",
        (json_int_t)r->last_seen_at, "by", (json_int_t)r->by, "reported",
        r->has_reported ? json_true() : NULL, "node", node, "applied", applied, "edges", edges,
        "probes", probes, "daily", rp->daily.n > 0 ? daily_encode(&rp->daily, DAILY_SIZE) : NULL));
}

int record_report_decode(struct report_record *ret, const char *text, struct err *e)
{
    struct report_record heard = {.probed = {.owner = EDGE_OWNER_PROBE}};
    json_auto_t *json = NULL;
    struct fields f = parse(&json, text, "report", e);
    const json_t *probes;
    int r;

    fields_int(&f, "lastSeen", FIELDS_REQUIRED, 0, INT64_MAX, &heard.last_seen_at);
    fields_u64(&f, "by", FIELDS_OPTIONAL, 0, INT64_MAX, &heard.by);
    fields_bool(&f, "reported", FIELDS_OPTIONAL, &heard.has_reported);
    probes = fields_object(&f, "probes", FIELDS_OPTIONAL);
    r = fields_end(&f);
    if (r == 0)
        r = edge_parts_decode(&heard.probed, probes, heard.last_seen_at, e);
    if (r == 0)
        r = report_decode(&heard.report, json, heard.last_seen_at, e);
    /* Earlier hubs did not look at what is said about edges. The agent says it again. */
    if (r == -EINVAL && json_object_del(json, "edges") == 0)
        r = report_decode(&heard.report, json, heard.last_seen_at, e);
    /* Earlier hubs did not write that there was a report; that of an agent says its version. */
    heard.has_reported |= heard.report.version[0] != '\0';
    if (r == 0)
        *ret = heard;
    else
        report_record_deinit(&heard);
    return r;
}

/* ---- admin tokens ---------------------------------------------------------------------------- */

static enum role read_role(struct fields *f)
{
    const char *text = fields_string(f, "role", FIELDS_REQUIRED, 1, 40);
    enum role role = text ? role_parse(text) : ROLE_NONE;

    if (text && role == ROLE_NONE)
        fields_fail(f, "role \"%s\" is not viewer, operator or admin", text);
    return role;
}

int admin_request_decode(struct admin_request *ret, const json_t *json, struct err *e)
{
    json_auto_t *none = json ? NULL : json_object();
    struct fields f = fields_make(json ? json : none, "admin token", e);
    struct admin_request rq = {.role = ROLE_NONE, .ttl_seconds = ADMIN_TTL_DEFAULT};

    fields_name(&f, "name", FIELDS_REQUIRED, rq.name);
    rq.role = read_role(&f);
    fields_name(&f, "network", FIELDS_OPTIONAL, rq.network);
    fields_int(&f, "ttlSeconds", FIELDS_OPTIONAL, ADMIN_TTL_MIN, ADMIN_TTL_MAX, &rq.ttl_seconds);
    fields_refuse_unknown(&f);
    return fields_give(&f, ret, &rq, sizeof(rq));
}

const char *admin_record_key(char buf[static RECORD_KEY_MAX], const char *name)
{
    (void)snprintf(buf, RECORD_KEY_MAX, ADMIN_RECORD_PREFIX "%s", name);
    return buf;
}

char *admin_record_encode(const struct admin_record *a)
{
    char hex[2 * sizeof(a->hash.b) + 1];
    char hub_key[X25519_BASE64_MAX];
    char key[RECORD_KEY_MAX];
    _cleanup_(freep) char *text = NULL;

    hex_encode(a->hash.b, sizeof(a->hash.b), hex);
    text = finish(
        json_pack("{s:s, s:s, s:I, s:I, s:s, s:s*, s:s*}", "hash", hex, "role", role_names[a->role],
            "created", (json_int_t)a->created_at, "expires", (json_int_t)a->expires_at, "createdBy",
            a->created_by, "network", a->network[0] ? a->network : NULL, "hubKey",
            a->network[0] ? x25519_public_format(&a->hub_key, hub_key) : NULL));
    return text ? seal_add(admin_record_key(key, a->name), text) : NULL;
}

int admin_record_decode(struct admin_record *ret, const char *key, const char *text, struct err *e)
{
    const char *name = key + strlen(ADMIN_RECORD_PREFIX);
    json_auto_t *json = NULL;
    struct admin_record a = {.role = ROLE_NONE};
    struct fields f;
    const char *hash;
    int r;

    if (strncmp(key, ADMIN_RECORD_PREFIX, strlen(ADMIN_RECORD_PREFIX)) != 0)
        return err_set(e, -EINVAL, "\"%.80s\" is not the key of an admin token", key);
    r = parse_name(name, "admin token", e);
    if (r != 0)
        return r;
    f = parse_sealed(&json, key, text, "admin token", e);
    hash = fields_string(&f, "hash", FIELDS_REQUIRED, 1, 2 * sizeof(a.hash.b));
    if (hash && !hex_decode(hash, a.hash.b, sizeof(a.hash.b)))
        fields_fail(&f, "\"hash\" is not the hex of %zu bytes", sizeof(a.hash.b));
    a.role = read_role(&f);
    fields_name(&f, "network", FIELDS_OPTIONAL, a.network);
    if (a.network[0])
        fields_public_key(&f, "hubKey", FIELDS_REQUIRED, &a.hub_key);
    fields_int(&f, "created", FIELDS_REQUIRED, 0, INT64_MAX, &a.created_at);
    fields_int(&f, "expires", FIELDS_REQUIRED, 0, INT64_MAX, &a.expires_at);
    fields_text(&f, "createdBy", FIELDS_REQUIRED, 0, sizeof(a.created_by), a.created_by);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    memcpy(a.name, name, strlen(name) + 1);
    *ret = a;
    return 0;
}

/* ---- entries of the audit log ---------------------------------------------------------------- */

const char *const audit_prefixes[] = {
    [AUDIT_CHANGE] = "audit/",
    [AUDIT_REFUSAL] = "refused/",
};
_Static_assert(
    sizeof(audit_prefixes) / sizeof(*audit_prefixes) == AUDIT_KIND_N, "a prefix per kind");

/* ---- keys ----------------------------------------------------------------------------------- */

const char *audit_id(char buf[static AUDIT_ID_MAX], uint64_t number, unsigned n)
{
    (void)snprintf(buf, AUDIT_ID_MAX, "%016" PRIx64 "-%03x", number, n & 0xfff);
    return buf;
}

uint64_t audit_id_number(const char *id)
{
    return audit_id_check(id) ? strtoull(id, NULL, 16) : 0;
}

bool audit_id_check(const char *text)
{
    static const char digits[] = "0123456789abcdef";

    return strlen(text) == AUDIT_ID_MAX - 1 && strspn(text, digits) == 16 && text[16] == '-' &&
           strspn(text + 17, digits) == 3;
}

const char *audit_record_key(char buf[static RECORD_KEY_MAX], enum audit_kind kind, const char *id)
{
    (void)snprintf(buf, RECORD_KEY_MAX, "%s%s", audit_prefixes[kind], id);
    return buf;
}

/* Its parts; AUDIT_KIND_N when it is none. */
static enum audit_kind parse_key(const char *key, char id[static AUDIT_ID_MAX])
{
    for (int kind = 0; kind < AUDIT_KIND_N; kind++) {
        size_t len = strlen(audit_prefixes[kind]);

        if (strncmp(key, audit_prefixes[kind], len) != 0 || !audit_id_check(key + len))
            continue;
        memcpy(id, key + len, AUDIT_ID_MAX);
        return (enum audit_kind)kind;
    }
    return AUDIT_KIND_N;
}

/* ---- values --------------------------------------------------------------------------------- */

static const char *text_of(const char *text)
{
    return text[0] ? text : NULL;
}

static json_t *number_of(uint64_t n)
{
    return n > 0 ? json_integer((json_int_t)n) : NULL;
}

/* What is empty, or 0, is not there. */
static json_t *encode(const struct audit_record *a)
{
    json_t *json = json_pack("{s:I, s:s, s:s, s:s*, s:s*, s:s*, s:o*, s:o*, s:o*}", "time",
        (json_int_t)a->time, "actor", a->actor, "operation", a->operation, "from", text_of(a->from),
        "object", text_of(a->object), "network", text_of(a->network), "oldRevision",
        number_of(a->old_revision), "newRevision", number_of(a->new_revision), "others",
        number_of(a->others));

    if (a->kind != AUDIT_REFUSAL)
        return json;
    return with(json, json_pack("{s:o*, s:s*, s:o*, s:o*}", "status", number_of(a->status), "why",
                          text_of(a->why), "count", number_of(a->count), "firstTime",
                          number_of((uint64_t)a->first)));
}

char *audit_record_encode(const struct audit_record *a)
{
    _cleanup_(freep) char *text = finish(encode(a));
    char key[RECORD_KEY_MAX];

    return text ? seal_add(audit_record_key(key, a->kind, a->id), text) : NULL;
}

json_t *audit_record_json(const struct audit_record *a)
{
    return with(encode(a), json_pack("{s:s, s:s}", "id", a->id, "answer",
                               a->kind == AUDIT_CHANGE ? "done" : "refused"));
}

int audit_record_decode(struct audit_record *ret, const char *key, const char *text, struct err *e)
{
    json_auto_t *json = NULL;
    struct audit_record a = {.time = 0};
    struct fields f;

    a.kind = parse_key(key, a.id);
    if (a.kind == AUDIT_KIND_N)
        return err_set(e, -EINVAL, "\"%.80s\" is not the key of an audit entry", key);
    f = parse_sealed(&json, key, text, "audit entry", e);
    fields_int(&f, "time", FIELDS_REQUIRED, 0, INT64_MAX, &a.time);
    fields_text(&f, "actor", FIELDS_REQUIRED, 1, sizeof(a.actor), a.actor);
    fields_text(&f, "operation", FIELDS_REQUIRED, 1, sizeof(a.operation), a.operation);
    fields_text(&f, "from", FIELDS_OPTIONAL, 0, sizeof(a.from), a.from);
    fields_text(&f, "object", FIELDS_OPTIONAL, 0, sizeof(a.object), a.object);
    fields_text(&f, "network", FIELDS_OPTIONAL, 0, sizeof(a.network), a.network);
    fields_u64(&f, "oldRevision", FIELDS_OPTIONAL, 0, INT64_MAX, &a.old_revision);
    fields_u64(&f, "newRevision", FIELDS_OPTIONAL, 0, INT64_MAX, &a.new_revision);
    fields_int(&f, "others", FIELDS_OPTIONAL, 0, UINT32_MAX, &a.others);
    if (a.kind == AUDIT_REFUSAL) {
        fields_int(&f, "status", FIELDS_REQUIRED, 400, 599, &a.status);
        fields_text(&f, "why", FIELDS_OPTIONAL, 0, sizeof(a.why), a.why);
        fields_u64(&f, "count", FIELDS_REQUIRED, 1, INT64_MAX, &a.count);
        fields_int(&f, "firstTime", FIELDS_OPTIONAL, 0, INT64_MAX, &a.first);
    }
    return fields_give(&f, ret, &a, sizeof(a));
}

/* ---- what hubs tell each other --------------------------------------------------------------- */

const char *owner_key(char buf[static RECORD_KEY_MAX], const char *prefix, const char *name)
{
    (void)snprintf(buf, RECORD_KEY_MAX, "%s%s", prefix, name);
    return buf;
}

char *heartbeat_record_encode(const struct heartbeat_record *b)
{
    return finish(
        json_pack("{s:I, s:I}", "boot", (json_int_t)b->boot, "beat", (json_int_t)b->heartbeat));
}

int heartbeat_record_decode(struct heartbeat_record *ret, const char *text, struct err *e)
{
    json_auto_t *json = NULL;
    struct heartbeat_record b = {0};
    struct fields f = parse(&json, text, "hub's heartbeat", e);

    fields_u64(&f, "boot", FIELDS_REQUIRED, 1, INT64_MAX, &b.boot);
    fields_u64(&f, "beat", FIELDS_REQUIRED, 0, INT64_MAX, &b.heartbeat);
    return fields_give(&f, ret, &b, sizeof(b));
}

char *owner_record_encode(const struct owner_record *o)
{
    char key[X25519_BASE64_MAX];

    return finish(
        json_pack("{s:s*, s:I, s:s*}", "hub", text_of(o->hub), "epoch", (json_int_t)o->epoch,
            "network", o->has_network ? x25519_public_format(&o->network, key) : NULL));
}

int owner_record_decode(struct owner_record *ret, const char *text, struct err *e)
{
    json_auto_t *json = NULL;
    struct owner_record o = {.hub = ""};
    struct fields f = parse(&json, text, "owner of a rendezvous", e);

    fields_name(&f, "hub", FIELDS_OPTIONAL, o.hub);
    fields_u64(&f, "epoch", FIELDS_REQUIRED, 1, INT64_MAX, &o.epoch);
    o.has_network = fields_get(&f, "network", FIELDS_OPTIONAL) != NULL;
    if (o.has_network)
        fields_public_key(&f, "network", FIELDS_REQUIRED, &o.network);
    return fields_give(&f, ret, &o, sizeof(o));
}
