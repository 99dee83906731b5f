/* manifest.c - libyaml's documents to jansson's values; see manifest.h. */
#include "manifest.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/err.h"
#include "os/file.h"

/* Longest file, bytes; most objects in one file; deepest nesting. */
#define MANIFEST_MAX         (8u << 20)
#define MANIFEST_OBJECTS_MAX 10000
#define MANIFEST_DEPTH_MAX   16

/** What is being read, for messages. */
struct place {
    const char *name;     /* of the file */
    yaml_document_t *doc; /* borrows */
    struct err *e;
};

static int refuse(const struct place *at, const yaml_mark_t *mark, const char *what)
{
    return err_set(at->e, -EINVAL, "%s, line %zu: %s", at->name, mark->line + 1, what);
}

static json_t *convert(const struct place *at, const yaml_node_t *node, unsigned depth);

/* The value of a plain scalar by YAML's core schema; NULL: it is text. A number has to be decimal
 * digits and nothing else, so that 10.0.0.1 and 1h stay text. */
static json_t *convert_plain(const char *text)
{
    char *end;
    long long v;

    if (strcmp(text, "true") == 0)
        return json_true();
    if (strcmp(text, "false") == 0)
        return json_false();
    if (strcmp(text, "null") == 0 || strcmp(text, "~") == 0 || *text == '\0')
        return json_null();
    errno = 0;
    v = strtoll(text, &end, 10);
    if (errno == 0 && *end == '\0' && end != text)
        return json_integer(v);
    return NULL;
}

static json_t *convert_scalar(const struct place *at, const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;
    json_t *value = NULL;

    if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        value = convert_plain(text);
    if (!value)
        value = json_stringn(text, node->data.scalar.length);
    if (!value)
        (void)refuse(at, &node->start_mark, "the text is not UTF-8");
    return value;
}

static json_t *convert_sequence(const struct place *at, const yaml_node_t *node, unsigned depth)
{
    json_t *array = json_array();

    for (yaml_node_item_t *i = node->data.sequence.items.start;
         array && i < node->data.sequence.items.top; i++) {
        json_t *item = convert(at, yaml_document_get_node(at->doc, *i), depth);

        if (!item || json_array_append_new(array, item) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *convert_mapping(const struct place *at, const yaml_node_t *node, unsigned depth)
{
    json_t *object = json_object();

    for (yaml_node_pair_t *p = node->data.mapping.pairs.start;
         object && p < node->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(at->doc, p->key);
        const char *name = (const char *)key->data.scalar.value;
        json_t *value = NULL;

        if (key->type != YAML_SCALAR_NODE)
            (void)refuse(at, &key->start_mark, "a key must be text");
        else if (json_object_get(object, name))
            (void)refuse(at, &key->start_mark, "this key is there twice");
        else
            value = convert(at, yaml_document_get_node(at->doc, p->value), depth);
        if (!value || json_object_set_new(object, name, value) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* NULL with words on failure. */
static json_t *convert(const struct place *at, const yaml_node_t *node, unsigned depth)
{
    if (depth > MANIFEST_DEPTH_MAX) {
        (void)refuse(at, &node->start_mark, "nested more than 16 deep");
        return NULL;
    }
    switch (node->type) {
    case YAML_SCALAR_NODE:
        return convert_scalar(at, node);
    case YAML_SEQUENCE_NODE:
        return convert_sequence(at, node, depth + 1);
    case YAML_MAPPING_NODE:
        return convert_mapping(at, node, depth + 1);
    case YAML_NO_NODE:
        break;
    }
    return NULL;
}

/* Aliases are expanded by the loader, so they are looked for before it runs. */
static int refuse_aliases(const char *text, size_t len, const char *name, struct err *e)
{
    struct place at = {.name = name, .e = e};
    yaml_parser_t parser;
    yaml_event_type_t type;
    int r = 0;

    if (!yaml_parser_initialize(&parser))
        return -ENOMEM;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    do {
        yaml_event_t event;

        if (!yaml_parser_parse(&parser, &event)) {
            r = refuse(&at, &parser.problem_mark, parser.problem ? parser.problem : "not YAML");
            break;
        }
        type = event.type;
        if (type == YAML_ALIAS_EVENT)
            r = refuse(&at, &event.start_mark, "aliases are not taken");
        yaml_event_delete(&event);
    } while (r == 0 && type != YAML_STREAM_END_EVENT);
    yaml_parser_delete(&parser);
    return r;
}

/* ---- what kubectl takes as well -------------------------------------------------------------- */

#define KUBE_VERSION "weft.dev/v1alpha1"

/* "default.n1--n2" of a resource is "n1--n2" of the network "default"; a Network is in itself. */
static int take_resource_name(json_t *meta)
{
    const char *name = json_string_value(json_object_get(meta, "name"));
    const char *dot = name ? strchr(name, '.') : NULL;
    json_t *network;
    json_t *rest;

    if (!dot || json_object_get(meta, "network"))
        return 0;
    network = json_stringn(name, (size_t)(dot - name));
    rest = json_string(dot + 1);
    return json_object_set_new(meta, "network", network) | json_object_set_new(meta, "name", rest);
}

/* Takes a resource of Kubernetes for the object that it shows. */
static int take_resource(json_t *object, const struct place *at, const yaml_mark_t *mark)
{
    static const char *const kept[] = {"name", "network"};
    const char *version = json_string_value(json_object_get(object, "apiVersion"));
    json_t *meta = json_object_get(object, "metadata");
    json_auto_t *own = json_object();
    int r = 0;

    if (!version || strcmp(version, KUBE_VERSION) != 0)
        return refuse(at, mark, "the apiVersion is none of Weft's, which is " KUBE_VERSION);
    for (size_t i = 0; r == 0 && i < sizeof(kept) / sizeof(*kept); i++)
        if (json_object_get(meta, kept[i]))
            r = json_object_set(own, kept[i], json_object_get(meta, kept[i]));
    (void)json_object_del(object, "apiVersion");
    (void)json_object_del(object, "status");
    if (r == 0)
        r = take_resource_name(own);
    if (r == 0 && meta)
        r = json_object_set(object, "metadata", own);
    return r == 0 ? 0 : -ENOMEM;
}

/* The nodes of an edge, and with them its name, in the order in which the hub has them. */
static int order_nodes(const json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    json_t *meta = json_object_get(object, "metadata");
    const char *name = json_string_value(json_object_get(meta, "name"));
    json_t *nodes = json_object_get(json_object_get(object, "spec"), "nodes");
    const char *a = json_string_value(json_array_get(nodes, 0));
    const char *b = json_string_value(json_array_get(nodes, 1));
    json_t *turned;
    json_t *first;

    if (!kind || strcmp(kind, "MeshEdge") != 0 || json_array_size(nodes) != 2 || !a || !b ||
        strcmp(a, b) <= 0)
        return 0;
    turned = json_sprintf("%s--%s", b, a);
    if (name && strlen(name) == strlen(a) + 2 + strlen(b) && strncmp(name, a, strlen(a)) == 0 &&
        strncmp(name + strlen(a), "--", 2) == 0 && strcmp(name + strlen(a) + 2, b) == 0 &&
        json_object_set(meta, "name", turned) < 0)
        turned = (json_decref(turned), NULL);
    if (!turned)
        return -ENOMEM;
    json_decref(turned);
    first = json_incref(json_array_get(nodes, 0));
    return json_array_remove(nodes, 0) | json_array_append_new(nodes, first) ? -ENOMEM : 0;
}

static int add_object(
    json_t *objects, json_t *object, const struct place *at, const yaml_mark_t *mark)
{
    int r = json_object_get(object, "apiVersion") ? take_resource(object, at, mark) : 0;

    if (r == 0 && json_array_size(objects) >= MANIFEST_OBJECTS_MAX)
        return refuse(at, mark, "more than 10000 objects in one file");
    if (r == 0)
        r = order_nodes(object);
    return r == 0 && json_array_append(objects, object) < 0 ? -ENOMEM : r;
}

/* Appends @object, or, if it is a list, as `weft get KIND` prints one, what is in it. */
static int append(json_t *objects, json_t *object, const struct place *at, const yaml_mark_t *mark)
{
    json_t *items = json_object_get(object, "items");
    json_t *item;
    size_t i;
    int r = 0;

    if (!json_is_array(items) || json_object_size(object) != 1)
        return add_object(objects, object, at, mark);
    json_array_foreach(items, i, item) {
        if (!json_is_object(item))
            return refuse(at, mark, "one of the items is no object");
        r = add_object(objects, item, at, mark);
        if (r < 0)
            break;
    }
    return r;
}

static int add_document(json_t *objects, yaml_document_t *doc, const char *name, struct err *e)
{
    struct place at = {.name = name, .doc = doc, .e = e};
    yaml_node_t *root = yaml_document_get_root_node(doc);
    json_auto_t *object = NULL;

    /* Nothing between two "---": templates leave such documents behind. */
    if (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0 &&
        root->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        return 0;
    if (root->type != YAML_MAPPING_NODE)
        return refuse(&at, &root->start_mark, "a document must be one object");
    object = convert(&at, root, 0);
    if (!object)
        return e->code ? e->code : -ENOMEM;
    return append(objects, object, &at, &root->start_mark);
}

static int load_documents(json_t *objects, yaml_parser_t *parser, const char *name, struct err *e)
{
    for (;;) {
        struct place at = {.name = name, .e = e};
        yaml_document_t doc;
        bool is_end;
        int r = 0;

        if (!yaml_parser_load(parser, &doc))
            return refuse(
                &at, &parser->problem_mark, parser->problem ? parser->problem : "not YAML");
        is_end = !yaml_document_get_root_node(&doc);
        if (!is_end)
            r = add_document(objects, &doc, name, e);
        yaml_document_delete(&doc);
        if (is_end || r < 0)
            return r;
    }
}

int manifest_parse(json_t **ret, const char *text, size_t len, const char *name, struct err *e)
{
    yaml_parser_t parser;
    json_auto_t *objects = json_array();
    int r = refuse_aliases(text, len, name, e);

    if (r < 0)
        return r;
    if (!objects || !yaml_parser_initialize(&parser))
        return -ENOMEM;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    r = load_documents(objects, &parser, name, e);
    yaml_parser_delete(&parser);
    if (r == 0 && json_array_size(objects) == 0)
        r = err_set(e, -EINVAL, "%s holds no object", name);
    if (r == 0)
        *ret = json_incref(objects);
    return r;
}

int manifest_read(json_t **ret, const char *path, struct err *e)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "standard input" : path;
    _cleanup_(fclosep) FILE *file = is_stdin ? NULL : fopen(path, "re");
    _cleanup_(freep) char *text = malloc(MANIFEST_MAX + 1);
    FILE *in = is_stdin ? stdin : file;
    size_t len;

    if (!in)
        return err_set(e, -errno, "%s: %s", path, strerror(errno));
    if (!text)
        return -ENOMEM;
    len = fread(text, 1, MANIFEST_MAX + 1, in);
    if (ferror(in))
        return err_set(e, -EIO, "%s cannot be read: %s", name, strerror(errno));
    if (len > MANIFEST_MAX)
        return err_set(e, -EFBIG, "%s is longer than 8 MiB", name);
    return manifest_parse(ret, text, len, name, e);
}
