/* mesh_edge.c - the MeshEdge among the objects; see mesh_edge.h. The JSON is in docs/API.md. */
#include "mesh_edge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/traffic.h"
#include "mesh/object/fields.h"
#include "mesh/object/object.h"

#define OBJECT_OWNERS_MAX 8 /* of an edge's status: two agents, two probes, hubs */

static const char *const edge_path_names[] = {"auto", "direct", "relay", "off"};

_Static_assert(sizeof(edge_path_names) / sizeof(*edge_path_names) == EDGE_PATH_N, "a name each");

const char *edge_name(const char *a, const char *b, char buf[static OBJECT_NAME_MAX + 1])
{
    bool in_order = strcmp(a, b) < 0;

    (void)snprintf(buf, OBJECT_NAME_MAX + 1, "%s--%s", in_order ? a : b, in_order ? b : a);
    return buf;
}

/* Exactly two names, different and in byte order, and the object's name made of them. */
static void nodes_decode(struct mesh_edge *edge, const json_t *nodes, struct fields *f)
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

const struct edge_pin *mesh_edge_pin(const struct mesh_edge *edge, const char *node)
{
    for (unsigned i = 0; edge && i < 2; i++)
        if (strcmp(edge->nodes[i], node) == 0)
            return &edge->pins[i];
    return NULL;
}

bool mesh_edge_refuses_key(
    const struct mesh_edge *edge, unsigned i, const struct x25519_public *key)
{
    const struct x25519_public *pinned = &edge->pins[i].key;

    return !x25519_public_is_none(pinned) && !x25519_public_equal(pinned, key);
}

/* The end that is called so, NULL with words if none is. */
static struct edge_pin *find_end(struct mesh_edge *edge, const char *name, struct fields *f)
{
    for (unsigned i = 0; i < 2; i++)
        if (strcmp(edge->nodes[i], name) == 0)
            return &edge->pins[i];
    fields_fail(f, "\"%.70s\" is neither of its nodes, \"%s\" and \"%s\"", name, edge->nodes[0],
        edge->nodes[1]);
    return NULL;
}

/* What is fixed: {"NODE": "ADDRESS:PORT"} and {"NODE": "base64"}. */
static void pins_decode(struct mesh_edge *edge, struct fields *f)
{
    const json_t *endpoints = fields_object(f, "endpoints", FIELDS_OPTIONAL);
    const json_t *keys = fields_object(f, "publicKeys", FIELDS_OPTIONAL);
    struct err why = ERR_NULL;
    const char *name;
    json_t *value;

    /* The iterator wants a mutable object; nothing is changed. */
    json_object_foreach((json_t *)endpoints, name, value) {
        struct edge_pin *pin = find_end(edge, name, f);
        const char *text = json_string_value(value);

        if (pin && !text)
            fields_fail(f, "the endpoint of \"%s\" is not a string", name);
        else if (pin && endpoint_parse(&pin->endpoint, text, &why) < 0)
            fields_fail(f, "the endpoint of \"%s\": %s", name, err_text(&why));
    }
    json_object_foreach((json_t *)keys, name, value) {
        struct edge_pin *pin = find_end(edge, name, f);
        struct fields one = fields_make(keys, f->where, f->e);

        if (!pin)
            continue;
        fields_public_key(&one, name, FIELDS_REQUIRED, &pin->key);
        f->failed = f->failed ? f->failed : fields_end(&one);
    }
    if (edge->path == EDGE_PATH_RELAY &&
        !(endpoint_is_none(&edge->pins[0].endpoint) && endpoint_is_none(&edge->pins[1].endpoint)))
        fields_fail(f, "\"path\" is \"relay\", and then no endpoint is used: leave \"endpoints\" "
                       "out, or set \"path\" to \"auto\" or \"direct\"");
}

/* An object of at most OBJECT_OWNERS_MAX objects, one for each field owner. */
static int status_check(const json_t *json, const char *where, struct err *e)
{
    const char *owner;
    json_t *value;

    if (json_object_size(json) > OBJECT_OWNERS_MAX)
        return err_set(e, -EINVAL, "%s: its status has %zu owners, and %d are allowed", where,
            json_object_size(json), OBJECT_OWNERS_MAX);
    /* The iterator wants a mutable object; nothing is changed. */
    json_object_foreach((json_t *)json, owner, value)
        if (!json_is_object(value))
            return err_set(
                e, -EINVAL, "%s: the status of \"%.70s\" is not an object", where, owner);
    return 0;
}

static int decode(struct object *ret, const json_t *json, enum object_mode mode, struct err *e)
{
    struct mesh_edge edge = MESH_EDGE_NULL;
    unsigned path = EDGE_PATH_AUTO;
    struct object_frame frame;
    const json_t *nodes;
    struct fields f;
    int r = object_frame_decode(&frame, json, &mesh_edge_kind, mode, e);

    if (r != 0)
        return r;
    edge.meta = frame.meta;
    f = fields_make(frame.spec, frame.where, e);
    nodes = fields_array(&f, "nodes", FIELDS_REQUIRED, 2, 2);
    if (nodes)
        nodes_decode(&edge, nodes, &f);
    fields_enum(&f, "path", FIELDS_OPTIONAL, edge_path_names, EDGE_PATH_N, &path);
    edge.path = path;
    pins_decode(&edge, &f);
    fields_rate(&f, "rate", FIELDS_OPTIONAL, &edge.rate);
    r = object_fields_end(&f, mode);
    if (r == 0 && frame.status)
        r = status_check(frame.status, frame.where, e);
    if (r < 0)
        return r;
    edge.status = json_incref((json_t *)frame.status);
    ret->edge = edge;
    return 0;
}

/* Absent where nothing is fixed. */
static void encode_pins(json_t *spec, const struct mesh_edge *edge)
{
    char text[ENDPOINT_TEXT_MAX];
    char key[X25519_BASE64_MAX];
    json_auto_t *endpoints = json_object();
    json_auto_t *keys = json_object();

    for (unsigned i = 0; i < 2; i++) {
        const struct edge_pin *pin = &edge->pins[i];

        if (!endpoint_is_none(&pin->endpoint))
            (void)json_object_set_new(
                endpoints, edge->nodes[i], json_string(endpoint_format(&pin->endpoint, text)));
        if (!x25519_public_is_none(&pin->key))
            (void)json_object_set_new(
                keys, edge->nodes[i], json_string(x25519_public_format(&pin->key, key)));
    }
    if (json_object_size(endpoints) > 0)
        (void)json_object_set(spec, "endpoints", endpoints);
    if (json_object_size(keys) > 0)
        (void)json_object_set(spec, "publicKeys", keys);
}

bool mesh_edge_wants_direct(const struct mesh_edge *edge, bool wants_relay)
{
    enum edge_path path = edge ? edge->path : EDGE_PATH_AUTO;

    return path == EDGE_PATH_DIRECT || (path == EDGE_PATH_AUTO && !wants_relay);
}

json_t *mesh_edge_encode(const struct mesh_edge *edge)
{
    char rate[TRAFFIC_RATE_TEXT_MAX];
    json_t *spec = json_pack("{s:[s, s], s:s}", "nodes", edge->nodes[0], edge->nodes[1], "path",
        edge_path_names[edge->path]);

    encode_pins(spec, edge);
    if (edge->rate != 0)
        fields_set(&spec, "rate", json_string(traffic_rate_format(edge->rate, rate)));
    return object_frame_encode(&edge->meta, &mesh_edge_kind, spec, json_incref(edge->status));
}

void mesh_edge_deinit(struct mesh_edge *edge)
{
    json_decref(edge->status);
    *edge = (struct mesh_edge)MESH_EDGE_NULL;
}

/* ---- the row -------------------------------------------------------------------------------- */

static json_t *encode(const struct object *o)
{
    return mesh_edge_encode(&o->edge);
}

static void deinit(struct object *o)
{
    mesh_edge_deinit(&o->edge);
}

static const char *node(const struct object *o, unsigned i)
{
    return i < 2 ? o->edge.nodes[i] : NULL;
}

/* Its two ends, of which the hub may be one. */
static bool can_see(const struct object *o, const struct node *self)
{
    return strcmp(o->edge.nodes[0], self->meta.name) == 0 ||
           strcmp(o->edge.nodes[1], self->meta.name) == 0;
}

const struct object_kind mesh_edge_kind = {
    .name = "MeshEdge",
    .list = "edges",
    .prefix = "edge/",
    .plural = "meshedges",
    .short_name = "wedge",
    .decode = decode,
    .encode = encode,
    .deinit = deinit,
    .node = node,
    .can_see = can_see,
};
