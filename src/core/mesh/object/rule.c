/* rule.c - see rule.h. */
#include "mesh/object/rule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "mesh/object/fields.h"
#include "mesh/object/object.h"
#include "mesh/object/subnets.h"

#define PORT_MAX UINT16_MAX

static const char *const protocol_names[] = {"any", "icmp", "tcp", "udp"};
_Static_assert(sizeof(protocol_names) / sizeof(*protocol_names) == RULE_PROTOCOL_N, "a name each");

static bool has_ports(enum rule_protocol p)
{
    return p == RULE_PROTOCOL_TCP || p == RULE_PROTOCOL_UDP;
}

/* ---- peers as text -------------------------------------------------------------------------- */

/* What follows "node:" or "island:"; NULL: @text begins with something else. */
static const char *after(const char *text, const char *head)
{
    size_t len = strlen(head);

    return strncmp(text, head, len) == 0 ? text + len : NULL;
}

static int parse_named(
    struct rule_peer *ret, enum rule_peer_kind kind, const char *name, struct err *e)
{
    int r = kind == RULE_PEER_NODE ? node_check_name(name, e) : parse_name(name, "island", e);

    if (r != 0)
        return r;
    *ret = (struct rule_peer){.kind = kind};
    (void)snprintf(ret->label.value, sizeof(ret->label.value), "%s", name);
    return 0;
}

static int parse_label(struct rule_peer *ret, const char *text, struct err *e)
{
    const char *equals = strchr(text, '=');
    struct rule_peer peer = {.kind = RULE_PEER_LABEL};
    size_t len = (size_t)(equals - text);
    int r;

    if (len > OBJECT_LABEL_MAX || strlen(equals + 1) > OBJECT_LABEL_MAX)
        return err_set(e, -EINVAL,
            "the label \"%.80s\" has more than %d bytes before or behind the =", text,
            OBJECT_LABEL_MAX);
    memcpy(peer.label.key, text, len);
    (void)snprintf(peer.label.value, sizeof(peer.label.value), "%s", equals + 1);
    r = label_check(peer.label.key, peer.label.value, e);
    if (r == 0)
        *ret = peer;
    return r;
}

static int parse_subnet(struct rule_peer *ret, const char *text, bool is_destination, struct err *e)
{
    struct rule_peer peer = {.kind = RULE_PEER_SUBNET};

    if (subnet_parse(&peer.subnet, text, NULL) != 0)
        return err_set(e, -EINVAL,
            "\"%.80s\" is none of members, hub, node:NAME, island:NAME, KEY=VALUE%s", text,
            is_destination ? " and a block of addresses such as 10.9.0.0/24" : "");
    if (!is_destination)
        return err_set(e, -EINVAL,
            "\"%.80s\" is a block of addresses, which a rule can name as a destination only", text);
    *ret = peer;
    return 0;
}

int rule_peer_parse(struct rule_peer *ret, const char *text, bool is_destination, struct err *e)
{
    const char *name;

    if (strcmp(text, "members") == 0 || strcmp(text, "hub") == 0) {
        *ret = (struct rule_peer){.kind = text[0] == 'm' ? RULE_PEER_MEMBERS : RULE_PEER_HUB};
        return 0;
    }
    name = after(text, "node:");
    if (name)
        return parse_named(ret, RULE_PEER_NODE, name, e);
    name = after(text, "island:");
    if (name)
        return parse_named(ret, RULE_PEER_ISLAND, name, e);
    if (strchr(text, '='))
        return parse_label(ret, text, e);
    return parse_subnet(ret, text, is_destination, e);
}

const char *rule_peer_format(const struct rule_peer *peer, char buf[static RULE_TEXT_MAX])
{
    char block[IP_PREFIX_TEXT_MAX];

    switch (peer->kind) {
    case RULE_PEER_MEMBERS:
    case RULE_PEER_HUB:
        (void)snprintf(buf, RULE_TEXT_MAX, "%s", peer->kind == RULE_PEER_HUB ? "hub" : "members");
        break;
    case RULE_PEER_NODE:
    case RULE_PEER_ISLAND:
        (void)snprintf(buf, RULE_TEXT_MAX, "%s:%s",
            peer->kind == RULE_PEER_NODE ? "node" : "island", peer->label.value);
        break;
    case RULE_PEER_LABEL:
        (void)snprintf(buf, RULE_TEXT_MAX, "%s=%s", peer->label.key, peer->label.value);
        break;
    case RULE_PEER_SUBNET:
        (void)snprintf(buf, RULE_TEXT_MAX, "%s", ip_prefix_format(&peer->subnet, block));
        break;
    }
    return buf;
}

/* ---- services as text ----------------------------------------------------------------------- */

static int refuse_service(const char *text, struct err *e)
{
    return err_set(e, -EINVAL,
        "\"%.80s\" is none of any, icmp, tcp, udp, and of these two with a port or ports: tcp/22, "
        "udp/5000-5999",
        text);
}

/* "22" or "5000-5999" */
static int parse_ports(struct rule_service *s, const char *text)
{
    char first[8];
    const char *dash = strchr(text, '-');
    size_t len = dash ? (size_t)(dash - text) : strlen(text);
    uint64_t a;
    uint64_t b;

    if (len >= sizeof(first))
        return -EINVAL;
    memcpy(first, text, len);
    first[len] = '\0';
    if (parse_u64(&a, first, 0, PORT_MAX, "port", NULL) != 0 ||
        parse_u64(&b, dash ? dash + 1 : first, 0, PORT_MAX, "port", NULL) != 0 || b < a)
        return -EINVAL;
    s->first = (uint16_t)a;
    s->last = (uint16_t)b;
    return 0;
}

int rule_service_parse(struct rule_service *ret, const char *text, struct err *e)
{
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);

    for (unsigned p = 0; p < RULE_PROTOCOL_N; p++) {
        struct rule_service s = {.protocol = (enum rule_protocol)p, .last = PORT_MAX};

        if (strlen(protocol_names[p]) != len || strncmp(protocol_names[p], text, len) != 0)
            continue;
        if (slash && (!has_ports(s.protocol) || parse_ports(&s, slash + 1) != 0))
            break;
        *ret = s;
        return 0;
    }
    return refuse_service(text, e);
}

const char *rule_service_format(const struct rule_service *s, char buf[static RULE_TEXT_MAX])
{
    const char *name = protocol_names[s->protocol];

    if (!has_ports(s->protocol) || (s->first == 0 && s->last == PORT_MAX))
        (void)snprintf(buf, RULE_TEXT_MAX, "%s", name);
    else if (s->first == s->last)
        (void)snprintf(buf, RULE_TEXT_MAX, "%s/%u", name, s->first);
    else
        (void)snprintf(buf, RULE_TEXT_MAX, "%s/%u-%u", name, s->first, s->last);
    return buf;
}

/* ---- from JSON ------------------------------------------------------------------------------ */

const struct rule *rule_of(const struct object *o)
{
    return o->plain.spec;
}

static void rule_free(struct rule *r)
{
    free(r->from);
    free(r->to);
    free(r->services);
    free(r);
}

/* The text number @i of a list; NULL: it is none, and @f has failed. */
static const char *text_at(struct fields *f, const char *name, const json_t *list, size_t i)
{
    const char *text = json_string_value(json_array_get(list, i));

    if (!text)
        fields_fail(f, "an item of \"%s\" is not a string", name);
    return text;
}

static struct rule_peer *peers_decode(
    struct fields *f, const char *name, bool is_destination, unsigned *ret_n)
{
    const json_t *list = fields_array(f, name, FIELDS_REQUIRED, 1, RULE_PEERS_MAX);
    size_t n = json_array_size(list);
    struct rule_peer *peers = calloc(n + 1, sizeof(*peers));
    struct err e = ERR_NULL;

    if (!peers)
        fields_fail(f, "no memory for \"%s\"", name);
    for (size_t i = 0; peers && i < n && fields_end(f) == 0; i++) {
        const char *text = text_at(f, name, list, i);

        if (text && rule_peer_parse(&peers[i], text, is_destination, &e) != 0)
            fields_fail(f, "%s", err_text(&e));
    }
    *ret_n = (unsigned)n;
    return peers;
}

static struct rule_service *services_decode(struct fields *f, unsigned *ret_n)
{
    const json_t *list = fields_array(f, "allow", FIELDS_REQUIRED, 1, RULE_SERVICES_MAX);
    size_t n = json_array_size(list);
    struct rule_service *services = calloc(n + 1, sizeof(*services));
    struct err e = ERR_NULL;

    if (!services)
        fields_fail(f, "no memory for \"allow\"");
    for (size_t i = 0; services && i < n && fields_end(f) == 0; i++) {
        const char *text = text_at(f, "allow", list, i);

        if (text && rule_service_parse(&services[i], text, &e) != 0)
            fields_fail(f, "%s", err_text(&e));
    }
    *ret_n = (unsigned)n;
    return services;
}

static int decode(struct object *ret, const json_t *json, enum object_mode mode, struct err *e)
{
    struct object_frame frame;
    struct fields f;
    struct rule *r;
    uint64_t run = 0;
    int failed = object_frame_decode(&frame, json, &rule_kind, mode, e);

    if (failed == 0)
        failed = parse_name(frame.meta.name, "rule name", e);
    if (failed != 0)
        return failed;
    r = calloc(1, sizeof(*r));
    if (!r)
        return err_set(e, -ENOMEM, "no memory for %s", frame.where);
    f = fields_make(frame.spec, frame.where, e);
    r->from = peers_decode(&f, "from", false, &r->n_from);
    r->to = peers_decode(&f, "to", true, &r->n_to);
    r->services = services_decode(&f, &r->n_services);
    fields_name(&f, "job", FIELDS_OPTIONAL, r->job);
    fields_u64(&f, "run", FIELDS_OPTIONAL, 1, UINT32_MAX, &run);
    r->run = (uint32_t)run;
    if ((r->job[0] != '\0') != (run != 0))
        fields_fail(&f, "\"job\" and \"run\" go with each other");
    failed = object_fields_end(&f, mode);
    if (failed != 0) {
        rule_free(r);
        return failed;
    }
    ret->plain = (struct object_plain){.meta = frame.meta, .spec = r};
    return 0;
}

/* ---- to JSON -------------------------------------------------------------------------------- */

static json_t *peers_encode(const struct rule_peer *peers, unsigned n)
{
    json_t *list = json_array();
    char text[RULE_TEXT_MAX];

    for (unsigned i = 0; i < n; i++)
        fields_append(&list, json_string(rule_peer_format(&peers[i], text)));
    return list;
}

static json_t *encode(const struct object *o)
{
    const struct rule *r = rule_of(o);
    json_t *services = json_array();
    char text[RULE_TEXT_MAX];

    for (unsigned i = 0; i < r->n_services; i++)
        fields_append(&services, json_string(rule_service_format(&r->services[i], text)));
    return object_frame_encode(&o->meta, &rule_kind,
        json_pack("{s:o, s:o, s:o, s:s*, s:o*}", "from", peers_encode(r->from, r->n_from), "to",
            peers_encode(r->to, r->n_to), "allow", services, "job",
            r->job[0] != '\0' ? r->job : NULL, "run",
            r->run != 0 ? json_integer((json_int_t)r->run) : NULL),
        NULL);
}

static void deinit(struct object *o)
{
    rule_free(o->plain.spec);
}

/* ---- what is allowed ------------------------------------------------------------------------ */

static bool has_label(const struct node *node, const struct label *label)
{
    for (unsigned i = 0; i < node->n_labels; i++)
        if (strcmp(node->labels[i].key, label->key) == 0)
            return strcmp(node->labels[i].value, label->value) == 0;
    return false;
}

static bool is_end(const struct rule_peer *peer, const struct rule_end *end)
{
    const struct node *node = end->node;

    if (!node)
        return peer->kind == RULE_PEER_SUBNET && ip_prefix_has(&peer->subnet, &end->address);
    switch (peer->kind) {
    case RULE_PEER_MEMBERS:
        return node->hub == NULL;
    case RULE_PEER_HUB:
        return node->hub != NULL;
    case RULE_PEER_NODE:
        return strcmp(node->meta.name, peer->label.value) == 0;
    case RULE_PEER_ISLAND:
        return strcmp(node->island, peer->label.value) == 0;
    case RULE_PEER_LABEL:
        return has_label(node, &peer->label);
    default:
        return false;
    }
}

bool rule_is_about(const struct rule_peer *peers, unsigned n, const struct rule_end *end)
{
    for (unsigned i = 0; i < n; i++)
        if (is_end(&peers[i], end))
            return true;
    return false;
}

static bool has_service(const struct rule *r, const struct rule_service *s)
{
    for (unsigned i = 0; i < r->n_services; i++) {
        const struct rule_service *has = &r->services[i];

        if (has->protocol == RULE_PROTOCOL_ANY ||
            (has->protocol == s->protocol &&
                (!has_ports(s->protocol) || (s->first >= has->first && s->first <= has->last))))
            return true;
    }
    return false;
}

bool rule_names(const struct rule *r, const struct rule_end *from, const struct rule_end *to)
{
    return rule_is_about(r->from, r->n_from, from) && rule_is_about(r->to, r->n_to, to);
}

bool rule_allows(const struct rule *r, const struct rule_packet *p)
{
    return has_service(r, &p->service) && rule_names(r, &p->from, &p->to);
}

bool rules_are_open(const struct object *const *rules, size_t n, bool is_strict)
{
    for (size_t i = 0; i < n; i++)
        is_strict |= rule_of(rules[i])->job[0] == '\0';
    return !is_strict;
}

/* Is the packet for a port that may be one of the job's, from somebody who is not in the job? */
static bool is_closed(const struct rule *r, const struct rule_packet *p)
{
    return r->job[0] != '\0' && p->service.protocol == RULE_PROTOCOL_TCP &&
           has_service(r, &p->service) && rule_is_about(r->to, r->n_to, &p->to) &&
           !rule_is_about(r->from, r->n_from, &p->from);
}

struct rule_answer rules_decide(
    const struct object *const *rules, size_t n, bool is_strict, const struct rule_packet *p)
{
    struct rule_answer answer = {.is_allowed = false};

    for (size_t i = 0; i < n; i++) {
        const struct rule *r = rule_of(rules[i]);

        if (!answer.rule && rule_allows(r, p))
            answer.rule = rules[i];
        if (!answer.job && is_closed(r, p))
            answer.job = rules[i];
    }
    answer.is_allowed = answer.rule || rules_are_open(rules, n, is_strict);
    return answer;
}

/* All do: a node that saw none would take the network for an open one. */
static bool can_see(const struct object *o, const struct node *self)
{
    return true;
}

const struct object_kind rule_kind = {
    .name = "Rule",
    .list = "rules",
    .prefix = "rule/",
    .plural = "rules",
    .short_name = "wrule",
    .decode = decode,
    .encode = encode,
    .deinit = deinit,
    .can_see = can_see,
};
