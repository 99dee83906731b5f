/* node.c - the Node among the objects; see node.h. The JSON is described in docs/API.md. */
#include "node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "base/traffic.h"
#include "mesh/object/fields.h"
#include "mesh/object/node_status.h"
#include "mesh/object/object.h"
#include "mesh/object/object_meta.h"
#include "mesh/object/subnets.h"
#include "path/path.h"
#include "relay/line.h"

int node_check_name(const char *text, struct err *e)
{
    int r = parse_name(text, "node name", e);

    if (r < 0)
        return r;
    if (strstr(text, "--"))
        return err_set(e, -EINVAL,
            "node name \"%.70s\" has two '-' in a row, which separate the names in an edge's",
            text);
    return 0;
}

int label_check(const char *key, const char *value, struct err *e)
{
    size_t len = strnlen(key, OBJECT_LABEL_MAX + 1);
    bool good = len >= 1 && len <= OBJECT_LABEL_MAX;

    for (size_t i = 0; good && i < len; i++) {
        char c = key[i];

        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.' || c == '/';
    }
    if (!good)
        return err_set(e, -EINVAL,
            "label key \"%.70s\" is not 1 to %d of letters, digits, '-', '_', '.', '/'", key,
            OBJECT_LABEL_MAX);
    len = strnlen(value, OBJECT_LABEL_MAX + 1);
    good = len <= OBJECT_LABEL_MAX && text_is_plain(value, len);
    if (!good)
        return err_set(e, -EINVAL,
            "the value of label \"%s\" is not 0 to %d bytes of UTF-8 without control characters",
            key, OBJECT_LABEL_MAX);
    return 0;
}

/* ---- decoding ------------------------------------------------------------------------------ */

static int compare_labels(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

/* Into @n->labels, which the caller releases also on failure. */
static int labels_decode(struct node *n, const json_t *json, struct fields *f)
{
    size_t count = json_object_size(json);
    struct err e = ERR_NULL;
    const char *key;
    json_t *value;

    if (count == 0)
        return 0;
    if (count > OBJECT_LABELS_MAX) {
        fields_fail(f, "has %zu labels, and %d are allowed", count, OBJECT_LABELS_MAX);
        return 0;
    }
    n->labels = calloc(count, sizeof(*n->labels));
    if (!n->labels)
        return -ENOMEM;
    /* The iterator wants a mutable object; nothing is changed. */
    json_object_foreach((json_t *)json, key, value) {
        struct label *l = &n->labels[n->n_labels];

        if (!json_is_string(value)) {
            fields_fail(f, "label \"%.70s\" is not a string", key);
            return 0;
        }
        if (label_check(key, json_string_value(value), &e) < 0) {
            fields_fail(f, "%s", err_text(&e));
            return 0;
        }
        (void)snprintf(l->key, sizeof(l->key), "%s", key);
        (void)snprintf(l->value, sizeof(l->value), "%s", json_string_value(value));
        n->n_labels++;
    }
    qsort(n->labels, n->n_labels, sizeof(*n->labels), compare_labels);
    return 0;
}

static void hub_names_decode(struct node_hub *hub, struct fields *f)
{
    const json_t *names = fields_array(f, "names", FIELDS_OPTIONAL, 0, OBJECT_HUB_NAMES_MAX);
    struct err parsed = ERR_NULL;

    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *text = json_string_value(json_array_get(names, i));

        if (!text)
            fields_fail(f, "a hub's name is not a string");
        else if (host_port_check(text, &parsed) < 0)
            fields_fail(f, "a hub's name: %s", err_text(&parsed));
        else
            (void)snprintf(hub->names[hub->n_names++], sizeof(hub->names[0]), "%s", text);
    }
}

/* Into @n->hub, which the caller releases also on failure. */
static int hub_decode(
    struct node *n, const json_t *json, enum object_mode mode, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    const json_t *endpoints =
        fields_array(&f, "endpoints", FIELDS_REQUIRED, 1, OBJECT_ENDPOINTS_MAX);
    const char *pin;
    struct err parsed = ERR_NULL;

    n->hub = calloc(1, sizeof(*n->hub));
    if (!n->hub)
        return -ENOMEM;
    fields_int(&f, "apiPort", FIELDS_REQUIRED, 1, 65535, &n->hub->api_port);
    hub_names_decode(n->hub, &f);
    pin = fields_string(&f, "tlsPin", FIELDS_OPTIONAL, 1, TLS_PIN_TEXT_MAX);
    n->hub->has_tls_pin = pin && base64_decode(pin, n->hub->tls_pin.b, sizeof(n->hub->tls_pin.b));
    if (pin && !n->hub->has_tls_pin)
        fields_fail(&f, "a hub's tlsPin \"%s\" is not the base64 of 32 bytes", pin);
    fields_u64(&f, "rendezvousEpoch", FIELDS_OPTIONAL, 1, INT64_MAX, &n->hub->rendezvous_epoch);
    (void)object_fields_end(&f, mode);
    for (size_t i = 0; i < json_array_size(endpoints); i++) {
        const char *text = json_string_value(json_array_get(endpoints, i));

        if (!text)
            fields_fail(&f, "a hub's endpoint is not a string");
        else if (endpoint_parse(&n->hub->endpoints[i], text, &parsed) < 0)
            fields_fail(&f, "a hub's endpoint: %s", err_text(&parsed));
        n->hub->n_endpoints++;
    }
    return fields_end(&f);
}

/* A cipher that is left out keeps its 0, and one that this version does not know is passed over. */
static int speeds_decode(
    struct node_speeds *ret, const json_t *json, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);

    for (unsigned c = 0; c < AEAD_CIPHER_N; c++)
        fields_int(
            &f, aead_cipher_names[c], FIELDS_OPTIONAL, 0, OBJECT_SPEED_MAX, &ret->mb_per_s[c]);
    return fields_end(&f);
}

/* Of what a relay says of its line others need the notice alone. */
static int notice_decode(struct node *n, const json_t *json, const char *where, struct err *e)
{
    struct relay_line_report line;
    int r = relay_line_decode(&line, json, where, e);

    if (r != 0)
        return r;
    n->notice = malloc(sizeof(*n->notice));
    if (!n->notice)
        return -ENOMEM;
    *n->notice = line.notice;
    return 0;
}

/* The parts of a status that others rely on; the rest is its owner's. */
static int node_status_decode(struct node *n, const json_t *json, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    const json_t *candidates =
        fields_array(&f, "candidates", FIELDS_OPTIONAL, 0, OBJECT_CANDIDATES_MAX);
    const json_t *paths = fields_object(&f, "paths", FIELDS_OPTIONAL);
    const json_t *speeds = fields_object(&f, "aead", FIELDS_OPTIONAL);
    const json_t *fabric = fields_object(&f, "fabric", FIELDS_OPTIONAL);
    const json_t *line = fields_object(&f, "relayLine", FIELDS_OPTIONAL);
    char hostname[NAME_MAX_LEN + 1] = "";
    int r;

    fields_name(&f, "hostname", FIELDS_OPTIONAL, hostname);
    r = fields_end(&f);
    if (r == 0 && hostname[0] != '\0') {
        n->hostname = strdup(hostname);
        r = n->hostname ? 0 : -ENOMEM;
    }
    if (r == 0 && json_array_size(candidates) > 0) {
        n->side = calloc(1, sizeof(*n->side));
        r = n->side ? path_report_decode(n->side, candidates, paths, where, e) : -ENOMEM;
    }
    if (r == 0 && fabric) {
        n->fabric = calloc(1, sizeof(*n->fabric));
        r = n->fabric ? fabric_report_decode(n->fabric, fabric, where, e) : -ENOMEM;
    }
    if (r == 0 && line)
        r = notice_decode(n, line, where, e);
    return r == 0 && speeds ? speeds_decode(&n->speeds, speeds, where, e) : r;
}

int node_check_status(const json_t *status, const char *where, struct err *e)
{
    struct node n = NODE_NULL;
    struct path_side side;
    int r = node_status_decode(&n, status, where, e);

    /* Above, `paths` was looked at only if there are candidates; another version may read it
     * always. */
    if (r == 0)
        r = path_report_decode(&side, NULL, json_object_get(status, "paths"), where, e);
    node_deinit(&n);
    return r;
}

/* "" is the same as none. */
static void island_decode(struct node *n, struct fields *f)
{
    const char *text = fields_string(f, "island", FIELDS_OPTIONAL, 0, NAME_MAX_LEN);
    struct err e = ERR_NULL;

    if (!text || text[0] == '\0')
        return;
    if (parse_name(text, "island", &e) < 0)
        fields_fail(f, "%s", err_text(&e));
    else
        memcpy(n->island, text, strlen(text) + 1);
}

/* Into @n->routes, which the caller releases also on failure. */
static int routes_decode(struct node *n, struct fields *f)
{
    struct subnets routes = SUBNETS_NULL;

    subnets_decode(f, "routes", &routes);
    if (routes.n == 0)
        return 0;
    n->routes = malloc(sizeof(*n->routes));
    if (!n->routes)
        return -ENOMEM;
    *n->routes = routes;
    return 0;
}

/* Into @n->drained, which the caller releases also on failure. */
static int drained_decode(struct node *n, struct fields *f)
{
    const char *text = fields_string(f, "drained", FIELDS_OPTIONAL, 1, NODE_DRAINED_MAX - 1);

    n->drained = text ? strdup(text) : NULL;
    return text && !n->drained ? -ENOMEM : 0;
}

/* {"bulk": "20Mbit"} */
static void class_rates_decode(
    struct traffic_rates *rates, const json_t *json, enum object_mode mode, struct fields *f)
{
    char where[OBJECT_NAME_MAX + 40];
    struct fields one;

    (void)snprintf(where, sizeof(where), "%s: classRates", f->where);
    one = fields_make(json, where, f->e);
    for (unsigned i = 0; i < TRAFFIC_CLASS_N; i++)
        fields_rate(&one, traffic_class_names[i], FIELDS_OPTIONAL, &rates->classes[i]);
    f->failed = object_fields_end(&one, mode);
}

/* Into @n->rates, which the caller releases also on failure. */
static int rates_decode(struct node *n, enum object_mode mode, struct fields *f)
{
    const json_t *classes = fields_object(f, "classRates", FIELDS_OPTIONAL);
    struct traffic_rates rates = {0};

    fields_rate(f, "rate", FIELDS_OPTIONAL, &rates.all);
    if (classes && !f->failed)
        class_rates_decode(&rates, classes, mode, f);
    if (f->failed || !traffic_rates_any(&rates))
        return 0;
    n->rates = malloc(sizeof(*n->rates));
    if (!n->rates)
        return -ENOMEM;
    *n->rates = rates;
    return 0;
}

static int node_spec_decode(
    struct node *n, const json_t *spec, enum object_mode mode, const char *where, struct err *e)
{
    struct fields f = fields_make(spec, where, e);
    const json_t *labels;
    const json_t *hub;
    bool finds_rate = true;
    int r;

    fields_public_key(&f, "publicKey", FIELDS_REQUIRED, &n->key);
    fields_address(&f, "address4", FIELDS_REQUIRED, true, &n->address4);
    fields_address(&f, "address6", FIELDS_REQUIRED, false, &n->address6);
    labels = fields_object(&f, "labels", FIELDS_OPTIONAL);
    island_decode(n, &f);
    fields_bool(&f, "ephemeral", FIELDS_OPTIONAL, &n->ephemeral);
    fields_bool(&f, "relay", FIELDS_OPTIONAL, &n->relay);
    fields_bool(&f, "showDscp", FIELDS_OPTIONAL, &n->shows_dscp);
    fields_bool(&f, "findRate", FIELDS_OPTIONAL, &finds_rate);
    n->finds_no_rate = !finds_rate;
    fields_bool(&f, "stock", FIELDS_OPTIONAL, &n->stock);
    hub = fields_object(&f, "hub", FIELDS_OPTIONAL);
    r = routes_decode(n, &f);
    if (r == 0)
        r = rates_decode(n, mode, &f);
    if (r == 0)
        r = drained_decode(n, &f);
    if (object_fields_end(&f, mode) != 0)
        return fields_end(&f);
    if (r == 0)
        r = labels_decode(n, labels, &f);
    if (r == 0)
        r = fields_end(&f);
    if (r == 0 && hub)
        r = hub_decode(n, hub, mode, where, e);
    return r;
}

/* Into @n, which the caller releases also on failure. */
static int node_decode_into(
    struct node *n, const json_t *json, enum object_mode mode, struct err *e)
{
    struct object_frame frame;
    int r = object_frame_decode(&frame, json, &node_kind, mode, e);

    if (r != 0)
        return r;
    n->meta = frame.meta;
    r = node_check_name(n->meta.name, e);
    if (r == 0)
        r = node_spec_decode(n, frame.spec, mode, frame.where, e);
    if (r == 0 && frame.status)
        r = node_status_decode(n, frame.status, frame.where, e);
    n->status = json_incref((json_t *)frame.status);
    return r;
}

int node_decode(struct node *ret, const json_t *json, enum object_mode mode, struct err *e)
{
    struct node n = NODE_NULL;
    int r = node_decode_into(&n, json, mode, e);

    if (r == 0)
        *ret = n;
    else
        node_deinit(&n);
    return r;
}

/* ---- encoding ------------------------------------------------------------------------------ */

bool node_has_agent(const struct node *n)
{
    return !n->hub && !n->stock;
}

bool node_speeds_known(const struct node_speeds *s)
{
    for (unsigned c = 0; c < AEAD_CIPHER_N; c++)
        if (s->mb_per_s[c] == 0)
            return false;
    return true;
}

json_t *node_speeds_encode(const struct node_speeds *s)
{
    json_t *json = json_object();

    for (unsigned c = 0; c < AEAD_CIPHER_N; c++)
        fields_set(&json, aead_cipher_names[c], json_integer(s->mb_per_s[c]));
    return json;
}

static json_t *hub_encode(const struct node_hub *hub)
{
    json_t *endpoints = json_array();
    json_t *names = hub->n_names > 0 ? json_array() : NULL;
    char text[ENDPOINT_TEXT_MAX];
    char pin[BASE64_SIZE(sizeof(hub->tls_pin.b))];

    base64_encode(hub->tls_pin.b, sizeof(hub->tls_pin.b), pin);
    for (unsigned i = 0; i < hub->n_endpoints; i++)
        fields_append(&endpoints, json_string(endpoint_format(&hub->endpoints[i], text)));
    for (unsigned i = 0; i < hub->n_names; i++)
        fields_append(&names, json_string(hub->names[i]));
    /* What is not known is left out. */
    return json_pack("{s:o, s:o*, s:i, s:s*, s:o*}", "endpoints", endpoints, "names", names,
        "apiPort", (int)hub->api_port, "tlsPin", hub->has_tls_pin ? pin : NULL, "rendezvousEpoch",
        hub->rendezvous_epoch ? json_integer((json_int_t)hub->rendezvous_epoch) : NULL);
}

/* Absent where there are none. */
static int rates_encode(json_t *spec, const struct traffic_rates *rates)
{
    char text[TRAFFIC_RATE_TEXT_MAX];
    json_auto_t *classes = json_object();
    int r = 0;

    for (unsigned i = 0; i < TRAFFIC_CLASS_N; i++)
        if (rates->classes[i] != 0)
            r |= json_object_set_new(classes, traffic_class_names[i],
                json_string(traffic_rate_format(rates->classes[i], text)));
    if (rates->all != 0)
        r |= json_object_set_new(spec, "rate", json_string(traffic_rate_format(rates->all, text)));
    if (json_object_size(classes) > 0)
        r |= json_object_set(spec, "classRates", classes);
    return r;
}

json_t *node_encode(const struct node *n)
{
    char key[X25519_BASE64_MAX];
    char a4[IP_ADDR_TEXT_MAX];
    char a6[IP_ADDR_TEXT_MAX];
    json_t *labels = json_object();
    json_t *spec;

    for (unsigned i = 0; i < n->n_labels; i++)
        fields_set(&labels, n->labels[i].key, json_string(n->labels[i].value));
    spec = json_pack("{s:s, s:s, s:s, s:o, s:s, s:b, s:o*, s:o*, s:o*, s:o*, s:s*}", "publicKey",
        x25519_public_format(&n->key, key), "address4", ip_addr_format(&n->address4, a4),
        "address6", ip_addr_format(&n->address6, a6), "labels", labels, "island", n->island,
        "ephemeral", (int)n->ephemeral, "relay", n->relay ? json_true() : NULL, "showDscp",
        n->shows_dscp ? json_true() : NULL, "findRate", n->finds_no_rate ? json_false() : NULL,
        "stock", n->stock ? json_true() : NULL, "drained", n->drained);
    if (n->hub)
        fields_set(&spec, "hub", hub_encode(n->hub));
    if (n->routes)
        fields_set(&spec, "routes", subnets_encode(n->routes));
    if (spec && n->rates && rates_encode(spec, n->rates) < 0)
        spec = (json_decref(spec), NULL);
    return object_frame_encode(&n->meta, &node_kind, spec, json_incref(n->status));
}

void node_deinit(struct node *n)
{
    free(n->labels);
    free(n->hub);
    free(n->routes);
    free(n->rates);
    free(n->side);
    free(n->fabric);
    free(n->notice);
    free(n->hostname);
    free(n->drained);
    json_decref(n->status);
    *n = (struct node)NODE_NULL;
}

/* ---- the row -------------------------------------------------------------------------------- */

static int decode(struct object *ret, const json_t *json, enum object_mode mode, struct err *e)
{
    return node_decode(&ret->node, json, mode, e);
}

static json_t *encode(const struct object *o)
{
    return node_encode(&o->node);
}

static void deinit(struct object *o)
{
    node_deinit(&o->node);
}

const struct object_kind node_kind = {
    .name = "Node",
    .list = "nodes",
    .prefix = "node/",
    .plural = "nodes",
    .short_name = "wnode",
    .decode = decode,
    .encode = encode,
    .deinit = deinit,
};
