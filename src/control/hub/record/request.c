/* request.c - see request.h. */
#include "request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "api/content/route.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "health/self.h"
#include "mesh/object/fields.h"
#include "mesh/object/node_status.h"
#include "net/address/resolve.h"
#include "relay/line.h"

/* Longest time after which a command of a job says again that it is there, s. */
#define REQUEST_PRESENCE_MAX 60

/* Longest time between two health checks of a node, s. */
#define REQUEST_DRAIN_EVERY_MAX 86400

/* Longest text of a node's candidates, and of what goes with them, bytes: all of it has to fit a
 * record and an event, in which texts may be longer than in the body. */
#define REQUEST_CANDIDATES_MAX (8u << 10)
#define REQUEST_PATHS_MAX      4096
#define REQUEST_FABRIC_MAX     2048

/* How deep objects and arrays may be nested in a report. What other nodes are told nests deeper.
 */
#define REQUEST_DEPTH_MAX 16

/* ---- where a hub is reached ------------------------------------------------------------------ */

int hub_public_parse(struct hub_public *ret, const char *text, uint16_t dflt_port, struct err *e)
{
    struct hub_public p = {.n = 0};
    struct ip_addr address;
    char buf[ENDPOINT_TEXT_MAX];
    const char *block;
    int n;
    int r = resolve_check(text, &address, e);

    if (r == 0 && ip_addr_is_none(&address)) {
        p.is_name = true;
        n = strchr(text, ':') ? snprintf(p.text, sizeof(p.text), "%s", text)
                              : snprintf(p.text, sizeof(p.text), "%s:%u", text, dflt_port);
        if (n > HOST_PORT_MAX || host_port_check(p.text, NULL) != 0)
            r = err_set(e, -EINVAL, "\"%.80s\" is not HOST or HOST:PORT", text);
    } else if (r == 0) {
        r = resolve_host(text, dflt_port, p.at, 1, &p.n, e);
        block = r == 0 ? block_find_reserved(&p.at[0].addr) : NULL;
        if (block)
            r = err_set(e, -EINVAL,
                "%.60s is in %s, where no other machine reaches this one: nodes need an address of "
                "it that they can send to",
                text, block);
        (void)snprintf(p.text, sizeof(p.text), "%s", endpoint_format(&p.at[0], buf));
    }
    if (r == 0)
        *ret = p;
    return r;
}

/* ---- as nodes are told them ------------------------------------------------------------------ */

static void tell_endpoint(struct node_hub *hub, const struct endpoint *ep)
{
    for (unsigned i = 0; i < hub->n_endpoints; i++)
        if (endpoint_equal(&hub->endpoints[i], ep))
            return;
    if (hub->n_endpoints < OBJECT_ENDPOINTS_MAX)
        hub->endpoints[hub->n_endpoints++] = *ep;
}

static void tell_name(struct node_hub *hub, const char *text)
{
    for (unsigned i = 0; i < hub->n_names; i++)
        if (strcmp(hub->names[i], text) == 0)
            return;
    /* One too many is told by its addresses only. */
    if (hub->n_names < OBJECT_HUB_NAMES_MAX)
        (void)snprintf(hub->names[hub->n_names++], sizeof(hub->names[0]), "%s", text);
}

static void tell_places(struct node_hub *hub, const struct hub_places *places)
{
    for (unsigned i = 0; i < places->n; i++) {
        const struct hub_public *p = &places->items[i];

        if (p->is_name)
            tell_name(hub, p->text);
        for (unsigned k = 0; k < p->n; k++)
            tell_endpoint(hub, &p->at[k]);
    }
}

void hub_places_tell(
    struct node_hub *ret, const struct hub_places *here, const struct hub_places *next)
{
    ret->n_endpoints = 0;
    ret->n_names = 0;
    tell_places(ret, here);
    tell_places(ret, next);
}

json_t *hub_places_encode(const struct hub_places *places)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < places->n; i++)
        json_array_append_new(list, json_string(places->items[i].text));
    return list;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* Start reading @json; no body at all reads as one without fields. */
static struct fields body_fields(
    const json_t *json, json_t **owner, const char *where, struct err *e)
{
    *owner = json ? NULL : json_object();
    return fields_make(json ? json : *owner, where, e);
}

/* What was read is given if nothing else is in the body, and nothing was wrong. */
static int give(struct fields *f, void *ret, const void *rq, size_t size)
{
    fields_refuse_unknown(f);
    return fields_give(f, ret, rq, size);
}

static void read_node_name(struct fields *f, char ret[NAME_MAX_LEN + 1])
{
    const char *text = fields_string(f, "name", FIELDS_OPTIONAL, 0, 200);
    struct err e = ERR_NULL;

    if (!text || text[0] == '\0')
        return;
    if (node_check_name(text, &e) < 0)
        fields_fail(f, "%s", err_text(&e));
    else
        (void)snprintf(ret, NAME_MAX_LEN + 1, "%s", text);
}

int enrol_request_decode(struct enrol_request *ret, const json_t *json, struct err *e)
{
    json_auto_t *owner = NULL;
    struct fields f = body_fields(json, &owner, "enrolment", e);
    struct enrol_request rq = {0};
    bool peers = true;
    const char *secret;
    size_t len;

    secret = fields_string(&f, "secret", FIELDS_REQUIRED, 1, 64);
    if (secret &&
        (!base64url_decode(secret, strlen(secret), rq.secret.b, sizeof(rq.secret.b), &len) ||
            len != sizeof(rq.secret.b)))
        fields_fail(&f, "\"secret\" is not that of a join token: base64url of 32 bytes");
    fields_public_key(&f, "publicKey", FIELDS_REQUIRED, &rq.key);
    read_node_name(&f, rq.name);
    rq.labels = fields_object(&f, "labels", FIELDS_OPTIONAL);
    fields_text(&f, "engine", FIELDS_OPTIONAL, 0, sizeof(rq.engine), rq.engine);
    subnets_decode(&f, "routes", &rq.routes);
    fields_bool(&f, "peers", FIELDS_OPTIONAL, &peers);
    rq.wants_no_peers = !peers;
    fields_bool(&f, "dryRun", FIELDS_OPTIONAL, &rq.is_dry_run);
    if (fields_end(&f) == 0)
        *ret = rq;
    secret_wipe(&rq.secret, sizeof(rq.secret));
    return fields_end(&f);
}

int node_request_decode(struct enrol_request *ret, const json_t *json, struct err *e)
{
    json_auto_t *owner = NULL;
    struct fields f = body_fields(json, &owner, "node", e);
    struct enrol_request rq = {.labels = NULL};

    read_node_name(&f, rq.name);
    if (rq.name[0] == '\0')
        fields_fail(&f, "\"name\" is missing: the name of the node");
    fields_public_key(&f, "publicKey", FIELDS_REQUIRED, &rq.key);
    rq.labels = fields_object(&f, "labels", FIELDS_OPTIONAL);
    subnets_decode(&f, "routes", &rq.routes);
    return give(&f, ret, &rq, sizeof(rq));
}

int token_request_decode(struct token_request *ret, const json_t *json, struct err *e)
{
    json_auto_t *owner = NULL;
    struct fields f = body_fields(json, &owner, "token", e);
    struct token_request rq = {.ttl_seconds = REQUEST_TTL_DEFAULT, .uses = 1};

    fields_int(
        &f, "ttlSeconds", FIELDS_OPTIONAL, REQUEST_TTL_MIN, REQUEST_TTL_MAX, &rq.ttl_seconds);
    fields_int(&f, "uses", FIELDS_OPTIONAL, 1, REQUEST_USES_MAX, &rq.uses);
    fields_bool(&f, "ephemeral", FIELDS_OPTIONAL, &rq.ephemeral);
    fields_bool(&f, "relay", FIELDS_OPTIONAL, &rq.relay);
    subnets_decode(&f, "routes", &rq.routes);
    return give(&f, ret, &rq, sizeof(rq));
}

int web_request_decode(struct web_request *ret, const json_t *json, struct err *e)
{
    /* Without the first of enum role, which is none. */
    const unsigned n_roles = ROLE_N - ROLE_VIEWER;
    json_auto_t *owner = NULL;
    struct fields f = body_fields(json, &owner, "login", e);
    struct web_request rq = {.ttl_seconds = REQUEST_LOGIN_TTL_DEFAULT};
    unsigned role = n_roles;

    fields_enum(&f, "role", FIELDS_OPTIONAL, role_names + ROLE_VIEWER, n_roles, &role);
    rq.role = role < n_roles ? role + ROLE_VIEWER : 0;
    fields_name(&f, "network", FIELDS_OPTIONAL, rq.network);
    fields_int(&f, "ttlSeconds", FIELDS_OPTIONAL, REQUEST_LOGIN_TTL_MIN, REQUEST_LOGIN_TTL_MAX,
        &rq.ttl_seconds);
    return give(&f, ret, &rq, sizeof(rq));
}

int web_login_request_decode(struct web_login_request *ret, const json_t *json, struct err *e)
{
    json_auto_t *owner = NULL;
    struct fields f = body_fields(json, &owner, "login", e);
    struct web_login_request rq = {.login = ""};

    fields_text(&f, "login", FIELDS_REQUIRED, 1, sizeof(rq.login), rq.login);
    return give(&f, ret, &rq, sizeof(rq));
}

int job_request_decode(struct job_request *ret, const json_t *json, struct err *e)
{
    json_auto_t *owner = NULL;
    struct fields f = body_fields(json, &owner, "job", e);
    struct job_request rq = {.broken_run = ""};

    fields_text(&f, "brokenRun", FIELDS_OPTIONAL, 1, sizeof(rq.broken_run), rq.broken_run);
    fields_text(&f, "nnodes", FIELDS_OPTIONAL, 1, sizeof(rq.nnodes), rq.nnodes);
    fields_bool(&f, "dryRun", FIELDS_OPTIONAL, &rq.is_dry_run);
    if (rq.is_dry_run && rq.broken_run[0])
        fields_fail(&f, "\"brokenRun\" begins a run, and with \"dryRun\" nothing is begun");
    if (rq.nnodes[strspn(rq.nnodes, "0123456789:")] != '\0')
        fields_fail(
            &f, "\"nnodes\" is \"%s\", and neither a number of nodes nor MIN:MAX", rq.nnodes);
    return give(&f, ret, &rq, sizeof(rq));
}

int nccl_request_decode(struct nccl_request *ret, const json_t *json, struct err *e)
{
    static const char *const verdicts[] = {"wanted", "other", "unknown"};
    json_auto_t *owner = NULL;
    struct fields f = body_fields(json, &owner, "NCCL's network", e);
    struct nccl_request rq = {.network = ""};
    unsigned verdict = 0;

    fields_text(&f, "run", FIELDS_REQUIRED, 1, sizeof(rq.run), rq.run);
    fields_enum(&f, "verdict", FIELDS_REQUIRED, verdicts, 3, &verdict);
    fields_name(&f, "profile", FIELDS_REQUIRED, rq.profile);
    fields_text(&f, "network", FIELDS_OPTIONAL, 0, sizeof(rq.network), rq.network);
    fields_text(&f, "text", FIELDS_REQUIRED, 1, sizeof(rq.text), rq.text);
    (void)snprintf(rq.verdict, sizeof(rq.verdict), "%s", verdicts[verdict]);
    return give(&f, ret, &rq, sizeof(rq));
}

json_t *nccl_request_encode(const struct nccl_request *rq)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "verdict", rq->verdict, "profile", rq->profile,
        "network", rq->network, "text", rq->text);
}

int presence_request_decode(struct presence_request *ret, const json_t *json, struct err *e)
{
    json_auto_t *owner = NULL;
    struct fields f = body_fields(json, &owner, "presence", e);
    struct presence_request rq = {.run = ""};

    fields_text(&f, "run", FIELDS_REQUIRED, 1, sizeof(rq.run), rq.run);
    fields_text(&f, "command", FIELDS_REQUIRED, 1, sizeof(rq.command), rq.command);
    fields_int(&f, "everySeconds", FIELDS_REQUIRED, 1, REQUEST_PRESENCE_MAX, &rq.every_seconds);
    fields_bool(&f, "ended", FIELDS_OPTIONAL, &rq.ended);
    return give(&f, ret, &rq, sizeof(rq));
}

int drain_request_decode(struct drain_request *ret, const json_t *json, struct err *e)
{
    static const char *const asks[] = {"nothing", "drain", "undrain"};
    _Static_assert(sizeof(asks) / sizeof(*asks) == DRAIN_ASK_N, "a word each");
    json_auto_t *owner = NULL;
    struct fields f = body_fields(json, &owner, "drain", e);
    struct drain_request rq = {.codes = ""};
    unsigned ask = DRAIN_ASK_NOTHING;

    fields_int(&f, "failed", FIELDS_REQUIRED, 0, UINT32_MAX, &rq.n_failed);
    fields_int(&f, "everySeconds", FIELDS_REQUIRED, 1, REQUEST_DRAIN_EVERY_MAX, &rq.every_seconds);
    fields_enum(&f, "ask", FIELDS_OPTIONAL, asks, DRAIN_ASK_N, &ask);
    fields_text(&f, "codes", FIELDS_OPTIONAL, 1, sizeof(rq.codes), rq.codes);
    fields_text(&f, "reason", FIELDS_OPTIONAL, 1, sizeof(rq.reason), rq.reason);
    fields_text(&f, "hook", FIELDS_OPTIONAL, 1, sizeof(rq.hook), rq.hook);
    if (rq.n_failed > 0 && (rq.codes[0] == '\0' || rq.reason[0] == '\0'))
        fields_fail(&f, "a check that has failed has \"codes\" and a \"reason\"");
    if (rq.n_failed == 0 && (rq.codes[0] != '\0' || rq.reason[0] != '\0'))
        fields_fail(&f, "a check that has passed has neither \"codes\" nor a \"reason\"");
    if (rq.codes[strspn(rq.codes, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-,")] != '\0')
        fields_fail(&f, "\"codes\" is not a list of codes as WEFT-DISK-002, with commas");
    if (ask == DRAIN_ASK_DRAIN && rq.n_failed < FITNESS_CHECKS)
        fields_fail(&f, "\"ask\" is \"drain\" after %u failed checks, and %u in a row are needed",
            (unsigned)rq.n_failed, FITNESS_CHECKS);
    if (ask == DRAIN_ASK_UNDRAIN && rq.n_failed > 0)
        fields_fail(&f, "\"ask\" is \"undrain\" after a check that has failed");
    rq.ask = (enum drain_ask)ask;
    return give(&f, ret, &rq, sizeof(rq));
}

int move_request_decode(
    struct hub_places *ret, const json_t *json, uint16_t dflt_port, struct err *e)
{
    json_auto_t *owner = NULL;
    struct fields f = body_fields(json, &owner, "move", e);
    const json_t *list = fields_array(&f, "public", FIELDS_REQUIRED, 0, OBJECT_ENDPOINTS_MAX);
    struct hub_places places = {.n = 0};
    struct err why = ERR_NULL;

    fields_refuse_unknown(&f);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));

        if (!text)
            fields_fail(&f, "entry %zu of \"public\" is not a text", i + 1);
        else if (hub_public_parse(&places.items[places.n++], text, dflt_port, &why) != 0)
            fields_fail(&f, "entry %zu of \"public\": %s", i + 1, err_text(&why));
    }
    return fields_give(&f, ret, &places, sizeof(places));
}

int network_request_decode(struct network *ret, const json_t *json, struct err *e)
{
    json_auto_t *owner = NULL;
    struct fields f = body_fields(json, &owner, "network", e);
    struct network rq = {.mtu = NETWORK_MTU_DEFAULT, .keepalive = NETWORK_KEEPALIVE_AUTO};
    unsigned topology = TOPOLOGY_AUTO;

    fields_name(&f, "name", FIELDS_REQUIRED, rq.meta.name);
    fields_block(&f, "cidr4", FIELDS_OPTIONAL, true, &rq.cidr4);
    fields_block(&f, "cidr6", FIELDS_OPTIONAL, false, &rq.cidr6);
    fields_enum(&f, "topology", FIELDS_OPTIONAL, topology_names, TOPOLOGY_N, &topology);
    rq.topology = (enum topology)topology;
    fields_int(&f, "mtu", FIELDS_OPTIONAL, NETWORK_MTU_MIN, NETWORK_MTU_MAX, &rq.mtu);
    network_keepalive_decode(&f, &rq.keepalive);
    return give(&f, ret, &rq, sizeof(rq));
}

void report_deinit(struct report *r)
{
    free(r->candidates);
    free(r->paths);
    free(r->aead);
    free(r->fabric);
    free(r->line);
    free(r->error);
    edge_parts_deinit(&r->edges);
    traffic_deinit(&r->traffic);
    findings_deinit(&r->found);
    daily_deinit(&r->daily);
    *r = (struct report)REPORT_NULL;
}

bool report_is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Of the line of a relay others see what it tells its users. */
static bool is_notice_same(const struct relay_line_report *a, const struct relay_line_report *b)
{
    static const struct relay_line_report none = {.rate = 0};

    return path_relay_notice_equal(a ? &a->notice : &none.notice, b ? &b->notice : &none.notice);
}

bool report_is_seen_otherwise(const struct report *a, const struct report *b)
{
    return !is_notice_same(a->line, b->line) || strcmp(a->hostname, b->hostname) != 0 ||
           !report_is_same_text(a->candidates, b->candidates) ||
           !report_is_same_text(a->paths, b->paths) || !report_is_same_text(a->aead, b->aead) ||
           !report_is_same_text(a->fabric, b->fabric);
}

/* @json as text, if that is not longer than @max; NULL without a failure when @json is NULL. */
static char *read_text(struct fields *f, const char *name, const json_t *json, size_t max)
{
    char *text = json ? body_format(json) : NULL;

    if (text && strlen(text) > max) {
        fields_fail(f, "\"%s\" is longer than %zu bytes", name, max);
        free(text);
        return NULL;
    }
    if (json && !text)
        fields_fail(f, "no memory for \"%s\"", name);
    return text;
}

static void check_aead(struct fields *f, const json_t *aead)
{
    const char *cipher;
    json_t *speed;

    if (json_object_size(aead) > REQUEST_CIPHERS_MAX)
        fields_fail(f, "\"aead\" names %zu ciphers, and %d are allowed", json_object_size(aead),
            REQUEST_CIPHERS_MAX);
    json_object_foreach((json_t *)aead, cipher, speed) {
        if (strlen(cipher) > REQUEST_WORD_MAX || !text_is_plain(cipher, strlen(cipher)) ||
            !json_is_integer(speed) || json_integer_value(speed) < 0 ||
            json_integer_value(speed) > OBJECT_SPEED_MAX)
            fields_fail(f, "the speed of cipher \"%.40s\" is not a number from 0 to %d", cipher,
                OBJECT_SPEED_MAX);
    }
}

/* Longest rest that may be told, ms. */
#define NAT_MS_MAX 3600000

bool report_nat_equal(const struct report_nat *a, const struct report_nat *b)
{
    return a->is_measured == b->is_measured && a->is_natted == b->is_natted &&
           a->survived_ms == b->survived_ms && a->forgotten_ms == b->forgotten_ms;
}

json_t *report_nat_encode(const struct report_nat *n)
{
    if (!n->is_measured)
        return NULL;
    return json_pack("{s:b, s:o*, s:o*}", "natted", (int)n->is_natted, "survivedMs",
        n->survived_ms ? json_integer(n->survived_ms) : NULL, "forgottenMs",
        n->forgotten_ms ? json_integer(n->forgotten_ms) : NULL);
}

static int read_nat(struct report_nat *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "report: nat", e);

    ret->is_measured = true;
    fields_bool(&f, "natted", FIELDS_OPTIONAL, &ret->is_natted);
    fields_int(&f, "survivedMs", FIELDS_OPTIONAL, 0, NAT_MS_MAX, &ret->survived_ms);
    fields_int(&f, "forgottenMs", FIELDS_OPTIONAL, 0, NAT_MS_MAX, &ret->forgotten_ms);
    return fields_end(&f);
}

static int read_node(struct report *rp, const json_t *node, struct err *e)
{
    struct fields f = fields_make(node, "report", e);
    const json_t *candidates =
        fields_array(&f, "candidates", FIELDS_OPTIONAL, 0, OBJECT_CANDIDATES_MAX);
    const json_t *paths = fields_object(&f, "paths", FIELDS_OPTIONAL);
    const json_t *aead = fields_object(&f, "aead", FIELDS_OPTIONAL);
    const json_t *fabric = fields_object(&f, "fabric", FIELDS_OPTIONAL);
    const json_t *machine = fields_object(&f, "machine", FIELDS_OPTIONAL);
    const json_t *line = fields_object(&f, "relayLine", FIELDS_OPTIONAL);
    const json_t *nat = fields_object(&f, "nat", FIELDS_OPTIONAL);
    const json_t *uplink = fields_object(&f, "uplink", FIELDS_OPTIONAL);

    rp->has_node = true;
    fields_text(&f, "engine", FIELDS_OPTIONAL, 0, sizeof(rp->engine), rp->engine);
    fields_text(&f, "version", FIELDS_OPTIONAL, 0, sizeof(rp->version), rp->version);
    fields_name(&f, "hostname", FIELDS_OPTIONAL, rp->hostname);
    subnets_decode(&f, "routes", &rp->routes);
    fields_int(&f, "metricsPort", FIELDS_OPTIONAL, 1, UINT16_MAX, &rp->metrics_port);
    rp->candidates = read_text(&f, "candidates", candidates, REQUEST_CANDIDATES_MAX);
    rp->paths = read_text(&f, "paths", paths, REQUEST_PATHS_MAX);
    check_aead(&f, aead);
    rp->aead = read_text(&f, "aead", aead, REQUEST_CANDIDATES_MAX);
    rp->fabric = read_text(&f, "fabric", fabric, REQUEST_FABRIC_MAX);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    if (nat && read_nat(&rp->nat, nat, e) != 0)
        return -EINVAL;
    if (uplink && uplink_report_decode(&rp->uplink, uplink, "report: uplink", e) != 0)
        return -EINVAL;
    if (machine) {
        struct report_machine *m = &rp->machine;

        f = fields_make(machine, "report: machine", e);
        fields_text(&f, "place", FIELDS_OPTIONAL, 0, sizeof(m->place), m->place);
        fields_text(&f, "host", FIELDS_OPTIONAL, 0, sizeof(m->host), m->host);
        m->has_origin = json_object_get(machine, "joinedHere") != NULL;
        fields_bool(&f, "joinedHere", FIELDS_OPTIONAL, &m->is_origin);
        if (fields_end(&f) != 0)
            return fields_end(&f);
    }
    if (line) {
        int r;

        rp->line = calloc(1, sizeof(*rp->line));
        r = rp->line ? relay_line_decode(rp->line, line, "report: relayLine", e)
                     : err_set(e, -ENOMEM, "no memory for a report");
        if (r != 0)
            return r;
    }
    /* Checked with the decoder that the other nodes' agents have. */
    return node_check_status(node, "report", e);
}

/* "agent/gpu-1": whose part it is. Without it, the part of the caller's agent. */
static void read_owner(struct fields *f, struct report *rp)
{
    const char *text = fields_string(f, "owner", FIELDS_OPTIONAL, 1, OBJECT_NAME_MAX);
    const char *slash = text ? strchr(text, '/') : NULL;

    if (!text)
        return;
    for (unsigned o = 0; slash && o < EDGE_OWNER_N; o++) {
        const char *name = edge_owner_names[o];

        if (strlen(name) != (size_t)(slash - text) || strncmp(name, text, strlen(name)) != 0)
            continue;
        if (node_check_name(slash + 1, NULL) < 0)
            break;
        rp->edges.owner = (enum edge_owner)o;
        (void)snprintf(rp->owner_node, sizeof(rp->owner_node), "%.*s", NAME_MAX_LEN, slash + 1);
        return;
    }
    fields_fail(f, "\"owner\" is \"%.100s\", and agent/NODE or probe/NODE is allowed", text);
}

static int read_applied(struct report *rp, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "report: applied", e);
    const char *error;

    fields_u64(&f, "revision", FIELDS_REQUIRED, 0, INT64_MAX, &rp->applied);
    error = fields_string(&f, "error", FIELDS_OPTIONAL, 1, EDGE_ERROR_MAX);
    rp->has_applied = true;
    if (error && !(rp->error = strdup(error)))
        return err_set(e, -ENOMEM, "no memory for a report");
    return fields_end(&f);
}

int report_drop_candidates(
    struct report *rp, const struct ip_prefix *cidr4, const struct ip_prefix *cidr6, struct err *e)
{
    json_auto_t *items = rp->candidates ? json_loads(rp->candidates, 0, NULL) : NULL;
    size_t n = json_array_size(items);
    char *text;

    for (size_t i = n; i-- > 0;) {
        const char *at = json_string_value(json_object_get(json_array_get(items, i), "endpoint"));
        struct endpoint ep;

        if (at && endpoint_parse(&ep, at, NULL) == 0 &&
            (ip_prefix_has(cidr4, &ep.addr) || ip_prefix_has(cidr6, &ep.addr)))
            (void)json_array_remove(items, i);
    }
    if (json_array_size(items) == n)
        return 0;
    text = body_format(items);
    if (!text)
        return err_set(e, -ENOMEM, "no memory for the report");
    free(rp->candidates);
    rp->candidates = text;
    return 0;
}

int report_decode(struct report *ret, const json_t *json, int64_t at, struct err *e)
{
    _cleanup_(report_deinit) struct report rp = REPORT_NULL;
    json_auto_t *owner = NULL;
    struct fields f = body_fields(json, &owner, "report", e);
    const json_t *node = fields_object(&f, "node", FIELDS_OPTIONAL);
    const json_t *applied = fields_object(&f, "applied", FIELDS_OPTIONAL);
    const json_t *edges = fields_object(&f, "edges", FIELDS_OPTIONAL);
    const json_t *traffic = fields_object(&f, "traffic", FIELDS_OPTIONAL);
    const json_t *found = fields_array(&f, "findings", FIELDS_OPTIONAL, 0, SELF_SAID_MAX);
    const json_t *daily = fields_object(&f, "daily", FIELDS_OPTIONAL);
    int r;

    read_owner(&f, &rp);
    /* Which of the writer's reports this is. */
    fields_u64(&f, "run", FIELDS_OPTIONAL, 1, INT64_MAX, &rp.run);
    if (rp.run != 0) {
        fields_u64(&f, "number", FIELDS_REQUIRED, 1, INT64_MAX, &rp.number);
        fields_bool(&f, "begins", FIELDS_OPTIONAL, &rp.begins);
        fields_bool(&f, "ends", FIELDS_OPTIONAL, &rp.ends);
    }
    fields_int(&f, "everySeconds", FIELDS_OPTIONAL, 1, REQUEST_EVERY_MAX, &rp.every_seconds);
    rp.has_cpu = fields_get(&f, "cpuPercent", FIELDS_OPTIONAL) != NULL;
    fields_int(&f, "cpuPercent", FIELDS_OPTIONAL, 0, 100, &rp.cpu_percent);
    if (rp.edges.owner != EDGE_OWNER_AGENT && (node || applied || traffic || found || daily))
        fields_fail(&f, "\"%s\" is the agent's to say, and this is a probe's report",
            node      ? "node"
            : applied ? "applied"
            : traffic ? "traffic"
            : found   ? "findings"
                      : "daily");
    rp.has_edges = edges != NULL;
    r = fields_end(&f);
    if (r == 0)
        r = body_check_depth(json ? json : owner, REQUEST_DEPTH_MAX, e);
    if (r == 0)
        r = edge_parts_decode(&rp.edges, edges, at, e);
    if (r == 0 && node)
        r = read_node(&rp, node, e);
    if (r == 0 && applied)
        r = read_applied(&rp, applied, e);
    if (r == 0 && traffic)
        r = traffic_decode(&rp.traffic, traffic, "report: traffic", e);
    rp.has_traffic = r == 0 && traffic;
    if (r == 0 && found)
        r = self_decode(&rp.found, found, at, e);
    rp.has_findings = r == 0 && found;
    if (r == 0)
        r = daily_decode(&rp.daily, daily, "report: daily", e);
    if (r != 0)
        return r;
    *ret = rp;
    rp = (struct report)REPORT_NULL;
    return 0;
}
