/* object.c - see object.h. The JSON is described in docs/API.md. */
#include "object.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "mesh/fields.h"
#include "mesh/object_internal.h"

static const char *const kind_names[] = {"", "Network", "Node", "MeshEdge"};
static const char *const topology_names[] = {"auto", "hub", "mesh"};
static const char *const cipher_names[] = {"auto", "chacha20poly1305", "aes256gcm"};
static const char *const edge_path_names[] = {"auto", "direct", "relay", "off"};

static_assert(sizeof(kind_names) / sizeof(*kind_names) == OBJECT_KIND_N, "a name each");
static_assert(sizeof(topology_names) / sizeof(*topology_names) == TOPOLOGY_N, "a name each");
static_assert(sizeof(cipher_names) / sizeof(*cipher_names) == CIPHER_N, "a name each");
static_assert(sizeof(edge_path_names) / sizeof(*edge_path_names) == EDGE_PATH_N, "a name each");

const char *object_kind_name(enum object_kind kind)
{
    return kind_names[kind];
}

enum object_kind object_kind_parse(const char *text)
{
    for (unsigned i = OBJECT_KIND_NONE + 1; i < OBJECT_KIND_N; i++)
        if (strcmp(text, kind_names[i]) == 0)
            return i;
    return OBJECT_KIND_NONE;
}

const char *topology_name(enum topology t)
{
    return topology_names[t];
}

const char *cipher_name(enum cipher c)
{
    return cipher_names[c];
}

const char *edge_path_name(enum edge_path p)
{
    return edge_path_names[p];
}

const char *edge_name(const char *a, const char *b, char buf[static OBJECT_NAME_MAX + 1])
{
    bool in_order = strcmp(a, b) < 0;

    (void)snprintf(buf, OBJECT_NAME_MAX + 1, "%s--%s", in_order ? a : b, in_order ? b : a);
    return buf;
}

/* ---- decoding ------------------------------------------------------------------------------ */

void object__describe(
    const json_t *json, enum object_kind kind, char where[static OBJECT__WHERE_MAX])
{
    const char *name =
        json_string_value(json_object_get(json_object_get(json, "metadata"), "name"));

    if (name)
        (void)snprintf(
            where, OBJECT__WHERE_MAX, "%s \"%.*s\"", kind_names[kind], OBJECT_NAME_MAX, name);
    else
        (void)snprintf(where, OBJECT__WHERE_MAX, "%s", kind_names[kind]);
}

static int meta_decode(struct object_meta *ret, const json_t *json, enum object_kind kind,
    enum object_mode mode, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    struct object_meta m = {0};
    const char *name = fields_string(&f, "name", FIELDS_REQUIRED, 1, OBJECT_NAME_MAX);

    if (kind != OBJECT_KIND_NETWORK)
        fields_name(&f, "network", FIELDS_REQUIRED, m.network);
    fields_u64(&f, "resourceVersion", FIELDS_OPTIONAL, 0, INT64_MAX, &m.resource_version);
    if (mode == OBJECT_STRICT)
        fields_refuse_unknown(&f);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    /* Which names are allowed is the kind's own question. */
    memcpy(m.name, name, strlen(name) + 1);
    *ret = m;
    return 0;
}

int object__decode_frame(struct object_meta *ret_meta, const json_t **ret_spec,
    const json_t **ret_status, const json_t *json, enum object_kind kind, enum object_mode mode,
    const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    const char *name = fields_string(&f, "kind", FIELDS_REQUIRED, 1, 40);
    const json_t *meta = fields_object(&f, "metadata", FIELDS_REQUIRED);
    const json_t *spec = fields_object(&f, "spec", FIELDS_REQUIRED);
    const json_t *status = fields_object(&f, "status", FIELDS_OPTIONAL);

    if (name && strcmp(name, kind_names[kind]) != 0)
        fields_fail(&f, "\"kind\" is \"%s\", not \"%s\"", name, kind_names[kind]);
    if (mode == OBJECT_STRICT)
        fields_refuse_unknown(&f);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    *ret_spec = spec;
    *ret_status = status;
    return meta_decode(ret_meta, meta, kind, mode, where, e);
}

void network_keepalive_decode(struct fields *f, uint16_t *ret)
{
    const json_t *json = fields_get(f, "keepalive", FIELDS_OPTIONAL);
    json_int_t seconds = json_integer_value(json);

    if (!json)
        return;
    if (json_is_string(json) && strcmp(json_string_value(json), "auto") == 0)
        *ret = NETWORK_KEEPALIVE_AUTO;
    else if (json_is_integer(json) && seconds >= 0 && seconds <= NETWORK_KEEPALIVE_MAX)
        *ret = (uint16_t)seconds;
    else
        fields_fail(f, "\"keepalive\" is neither \"auto\" nor a number from 0 to %d",
            NETWORK_KEEPALIVE_MAX);
}

static json_t *network_keepalive_encode(uint16_t keepalive)
{
    return keepalive == NETWORK_KEEPALIVE_AUTO ? json_string("auto") : json_integer(keepalive);
}

int network_decode(struct network *ret, const json_t *json, enum object_mode mode, struct err *e)
{
    struct network n = {.keepalive = NETWORK_KEEPALIVE_AUTO};
    unsigned topology = TOPOLOGY_AUTO;
    unsigned cipher = CIPHER_AUTO;
    uint64_t mtu = NETWORK_MTU_DEFAULT;
    uint64_t key_rotation = 0;
    const json_t *status = NULL;
    const json_t *spec = NULL;
    char where[OBJECT__WHERE_MAX];
    struct fields f;
    int r;

    object__describe(json, OBJECT_KIND_NETWORK, where);
    r = object__decode_frame(&n.meta, &spec, &status, json, OBJECT_KIND_NETWORK, mode, where, e);
    if (r != 0)
        return r;
    r = parse_name(n.meta.name, "network name", e);
    if (r < 0)
        return r;
    f = fields_make(spec, where, e);
    fields_block(&f, "cidr4", FIELDS_REQUIRED, true, &n.cidr4);
    fields_block(&f, "cidr6", FIELDS_REQUIRED, false, &n.cidr6);
    fields_enum(&f, "topology", FIELDS_OPTIONAL, topology_names, TOPOLOGY_N, &topology);
    fields_u64(&f, "mtu", FIELDS_OPTIONAL, NETWORK_MTU_MIN, NETWORK_MTU_MAX, &mtu);
    network_keepalive_decode(&f, &n.keepalive);
    fields_enum(&f, "cipher", FIELDS_OPTIONAL, cipher_names, CIPHER_N, &cipher);
    fields_u64(&f, "keyRotation", FIELDS_OPTIONAL, 0, UINT32_MAX, &key_rotation);
    /* An earlier hub may have taken another number in, which nobody has ever acted on. */
    if (mode == OBJECT_STRICT && key_rotation != 0)
        fields_fail(&f,
            "\"keyRotation\" is %llu, and only 0 is allowed: keys are not replaced by the "
            "clock yet",
            (unsigned long long)key_rotation);
    if (mode == OBJECT_STRICT)
        fields_refuse_unknown(&f);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    n.topology = topology;
    n.cipher = cipher;
    n.mtu = (uint16_t)mtu;
    n.key_rotation = (uint32_t)key_rotation;
    *ret = n;
    return 0;
}

/* Exactly two names, different and in byte order, and the object's name made of them. */
static void edge_nodes_decode(struct mesh_edge *edge, const json_t *nodes, struct fields *f)
{
    char expected[OBJECT_NAME_MAX + 1];
    struct err e = ERR_NULL;

    for (unsigned i = 0; i < 2; i++) {
        const char *text = json_string_value(json_array_get(nodes, i));

        if (!text || node_check_name(text, &e) < 0) {
            fields_fail(f, "%s", text ? err_text(&e) : "a node's name is not a string");
            return;
        }
        memcpy(edge->nodes[i], text, strlen(text) + 1);
    }
    if (strcmp(edge->nodes[0], edge->nodes[1]) >= 0) {
        fields_fail(f, "the names \"%s\" and \"%s\" are not two in byte order", edge->nodes[0],
            edge->nodes[1]);
        return;
    }
    if (strcmp(edge->meta.name, edge_name(edge->nodes[0], edge->nodes[1], expected)) != 0)
        fields_fail(f, "the edge of these nodes is called \"%s\"", expected);
}

/* An object of at most OBJECT_OWNERS_MAX objects, one for each field owner. */
static int edge_status_check(const json_t *json, const char *where, struct err *e)
{
    const char *owner;
    json_t *value;

    if (json_object_size(json) > OBJECT_OWNERS_MAX)
        return err_set(e, -EINVAL, "%s: its status has %zu owners, and %d are allowed", where,
            json_object_size(json), OBJECT_OWNERS_MAX);
    json_object_foreach((json_t *)json, owner, value)
        if (!json_is_object(value))
            return err_set(
                e, -EINVAL, "%s: the status of \"%.70s\" is not an object", where, owner);
    return 0;
}

int mesh_edge_decode(
    struct mesh_edge *ret, const json_t *json, enum object_mode mode, struct err *e)
{
    struct mesh_edge edge = MESH_EDGE_NULL;
    unsigned path = EDGE_PATH_AUTO;
    const json_t *status = NULL;
    const json_t *nodes;
    const json_t *spec = NULL;
    char where[OBJECT__WHERE_MAX];
    struct fields f;
    int r;

    object__describe(json, OBJECT_KIND_MESH_EDGE, where);
    r = object__decode_frame(
        &edge.meta, &spec, &status, json, OBJECT_KIND_MESH_EDGE, mode, where, e);
    if (r != 0)
        return r;
    f = fields_make(spec, where, e);
    nodes = fields_array(&f, "nodes", FIELDS_REQUIRED, 2, 2);
    if (nodes)
        edge_nodes_decode(&edge, nodes, &f);
    fields_enum(&f, "path", FIELDS_OPTIONAL, edge_path_names, EDGE_PATH_N, &path);
    if (mode == OBJECT_STRICT)
        fields_refuse_unknown(&f);
    r = fields_end(&f);
    if (r == 0 && status)
        r = edge_status_check(status, where, e);
    if (r < 0)
        return r;
    edge.path = path;
    edge.status = json_incref((json_t *)status);
    *ret = edge;
    return 0;
}

int object_decode(struct object *ret, const json_t *json, enum object_mode mode, struct err *e)
{
    struct fields f = fields_make(json, "the object", e);
    const char *name = fields_string(&f, "kind", FIELDS_REQUIRED, 1, 40);
    struct object o = {.kind = name ? object_kind_parse(name) : OBJECT_KIND_NONE};
    int r = fields_end(&f);

    switch (o.kind) {
    case OBJECT_KIND_NETWORK:
        r = network_decode(&o.network, json, mode, e);
        break;
    case OBJECT_KIND_NODE:
        r = node_decode(&o.node, json, mode, e);
        break;
    case OBJECT_KIND_MESH_EDGE:
        r = mesh_edge_decode(&o.edge, json, mode, e);
        break;
    case OBJECT_KIND_NONE:
    case OBJECT_KIND_N:
        if (r == 0)
            r = err_set(e, -EINVAL,
                "the object's kind is \"%s\", and Network, Node, MeshEdge are allowed", name);
        break;
    }
    if (r == 0)
        *ret = o;
    return r;
}

/* ---- encoding ------------------------------------------------------------------------------ */

json_t *object__encode_frame(
    const struct object_meta *m, enum object_kind kind, json_t *spec, json_t *status)
{
    json_t *meta = json_pack("{s:s}", "name", m->name);

    if (meta && m->network[0] && json_object_set_new(meta, "network", json_string(m->network)) < 0)
        meta = (json_decref(meta), NULL);
    if (meta && m->resource_version > 0 &&
        json_object_set_new(
            meta, "resourceVersion", json_integer((json_int_t)m->resource_version)) < 0)
        meta = (json_decref(meta), NULL);
    /* "o" fails on NULL and releases the rest; "o*" leaves the key out. */
    return json_pack("{s:s, s:o, s:o, s:o*}", "kind", kind_names[kind], "metadata", meta, "spec",
        spec, "status", status);
}

json_t *network_encode(const struct network *n)
{
    char cidr4[IP_PREFIX_TEXT_MAX];
    char cidr6[IP_PREFIX_TEXT_MAX];
    json_t *spec = json_pack("{s:s, s:s, s:s, s:i, s:o, s:s, s:I}", "cidr4",
        ip_prefix_format(&n->cidr4, cidr4), "cidr6", ip_prefix_format(&n->cidr6, cidr6), "topology",
        topology_names[n->topology], "mtu", (int)n->mtu, "keepalive",
        network_keepalive_encode(n->keepalive), "cipher", cipher_names[n->cipher], "keyRotation",
        (json_int_t)n->key_rotation);

    return object__encode_frame(&n->meta, OBJECT_KIND_NETWORK, spec, NULL);
}

json_t *mesh_edge_encode(const struct mesh_edge *edge)
{
    json_t *spec = json_pack("{s:[s, s], s:s}", "nodes", edge->nodes[0], edge->nodes[1], "path",
        edge_path_names[edge->path]);

    return object__encode_frame(
        &edge->meta, OBJECT_KIND_MESH_EDGE, spec, json_incref(edge->status));
}

json_t *object_encode(const struct object *o)
{
    switch (o->kind) {
    case OBJECT_KIND_NETWORK:
        return network_encode(&o->network);
    case OBJECT_KIND_NODE:
        return node_encode(&o->node);
    case OBJECT_KIND_MESH_EDGE:
        return mesh_edge_encode(&o->edge);
    case OBJECT_KIND_NONE:
    case OBJECT_KIND_N:
        break;
    }
    return NULL;
}

/* ---- the rest ------------------------------------------------------------------------------ */

void mesh_edge_deinit(struct mesh_edge *edge)
{
    json_decref(edge->status);
    *edge = (struct mesh_edge)MESH_EDGE_NULL;
}

void object_deinit(struct object *o)
{
    switch (o->kind) {
    case OBJECT_KIND_NODE:
        node_deinit(&o->node);
        break;
    case OBJECT_KIND_MESH_EDGE:
        mesh_edge_deinit(&o->edge);
        break;
    case OBJECT_KIND_NETWORK:
    case OBJECT_KIND_NONE:
    case OBJECT_KIND_N:
        break;
    }
    o->kind = OBJECT_KIND_NONE;
}

const struct object_meta *object_meta(const struct object *o)
{
    switch (o->kind) {
    case OBJECT_KIND_NETWORK:
        return &o->network.meta;
    case OBJECT_KIND_NODE:
        return &o->node.meta;
    case OBJECT_KIND_MESH_EDGE:
        return &o->edge.meta;
    case OBJECT_KIND_NONE:
    case OBJECT_KIND_N:
        break;
    }
    assert(false);
    return NULL;
}
