/* network.c - the Network among the objects; see network.h. The JSON is described in docs/API.md.
 */
#include "network.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "mesh/object/fields.h"
#include "mesh/object/object.h"
#include "mesh/object/object_meta.h"
#include "mesh/object/prices.h"

const char *const topology_names[] = {"auto", "hub", "mesh"};
_Static_assert(sizeof(topology_names) / sizeof(*topology_names) == TOPOLOGY_N, "a name each");
const char *const isolation_names[] = {"open", "strict"};
_Static_assert(sizeof(isolation_names) / sizeof(*isolation_names) == ISOLATION_N, "a name each");
const char *const trust_policy_names[] = {"wait", "ask"};
_Static_assert(
    sizeof(trust_policy_names) / sizeof(*trust_policy_names) == TRUST_POLICY_N, "a name each");
const char *const cipher_names[] = {"auto", "chacha20poly1305", "aes256gcm"};

_Static_assert(sizeof(cipher_names) / sizeof(*cipher_names) == CIPHER_N, "a name each");

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

/* ---- budgets --------------------------------------------------------------------------------- */

/* What is there has to be a number above 0. */
static void take_amount(struct fields *f, const char *name, double *ret)
{
    const json_t *json = fields_get(f, name, FIELDS_OPTIONAL);
    double value = fields_decimal(json);

    if (json && (!isfinite(value) || value <= 0 || value > BUDGET_MAX))
        fields_fail(f, "\"%s\" of a budget is no number above 0 up to %.0g", name, BUDGET_MAX);
    else if (json)
        *ret = value;
}

/* 0, or -EINVAL with words. */
static int take_budget(
    struct budgets *b, const json_t *json, enum object_mode mode, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    struct budget budget = {.cost = 0};
    double bytes = 0;

    fields_name(&f, "job", FIELDS_OPTIONAL, budget.job);
    take_amount(&f, "costPerDay", &budget.cost);
    take_amount(&f, "bytesPerDay", &bytes);
    if ((budget.cost > 0) == (bytes > 0))
        fields_fail(&f, "a budget has either \"costPerDay\" or \"bytesPerDay\"");
    /* A budget had a rate once, for when it is spent. A stored one loads. */
    fields_text(&f, "cap", FIELDS_OPTIONAL, 1, sizeof(budget.ignored_cap), budget.ignored_cap);
    if (mode == OBJECT_STRICT && budget.ignored_cap[0])
        fields_fail(&f, "\"cap\" of a budget has no effect any more: leave it out");
    budget.bytes = (uint64_t)bytes;
    if (bytes > 0 && budget.bytes == 0)
        fields_fail(&f, "\"bytesPerDay\" of a budget is less than a byte");
    for (unsigned i = 0; i < b->n; i++)
        if (strcmp(b->items[i].job, budget.job) == 0)
            fields_fail(
                &f, "%s%s has two budgets", budget.job[0] ? "job " : "the network", budget.job);
    b->items[b->n++] = budget;
    return object_fields_end(&f, mode);
}

void budgets_decode(struct fields *f, enum object_mode mode, struct budgets *ret)
{
    const json_t *list = fields_array(f, "budgets", FIELDS_OPTIONAL, 0, BUDGETS_MAX);
    struct budgets b = {.n = 0};

    for (size_t i = 0; !f->failed && i < json_array_size(list); i++)
        f->failed = take_budget(&b, json_array_get(list, i), mode, f->where, f->e);
    if (!f->failed)
        *ret = b;
}

json_t *budget_encode(const struct budget *b)
{
    bool is_cost = b->cost > 0;

    return json_pack("{s:s*, s:o}", "job", b->job[0] ? b->job : NULL,
        is_cost ? "costPerDay" : "bytesPerDay",
        is_cost ? json_real(b->cost) : json_integer((json_int_t)b->bytes));
}

json_t *budgets_encode(const struct budgets *b)
{
    json_t *list = b->n > 0 ? json_array() : NULL;

    for (unsigned i = 0; list && i < b->n; i++)
        fields_append(&list, budget_encode(&b->items[i]));
    return list;
}

/* ---- the Network ----------------------------------------------------------------------------- */

/* Seconds, or a text such as "30d"; 0: never. An earlier hub may have stored any number. */
static void key_rotation_decode(struct fields *f, enum object_mode mode, uint32_t *ret)
{
    const json_t *json = fields_get(f, "keyRotation", FIELDS_OPTIONAL);
    struct err e = ERR_NULL;
    nsec_t every = 0;

    if (!json_is_string(json))
        fields_int(f, "keyRotation", FIELDS_OPTIONAL, 0, UINT32_MAX, ret);
    else if (parse_duration(&every, json_string_value(json), 0,
                 NETWORK_KEY_ROTATION_MAX * NSEC_PER_SEC, "\"keyRotation\"", &e) != 0)
        fields_fail(f, "%s", err_text(&e));
    else
        *ret = (uint32_t)(every / NSEC_PER_SEC);
    if (mode == OBJECT_STRICT && !f->failed && *ret != 0 &&
        (*ret < NETWORK_KEY_ROTATION_MIN || *ret > NETWORK_KEY_ROTATION_MAX))
        fields_fail(f, "\"keyRotation\" is %u s, and only 0 or %d to %d s are allowed",
            (unsigned)*ret, NETWORK_KEY_ROTATION_MIN, NETWORK_KEY_ROTATION_MAX);
}

static int spec_decode(
    struct network *n, const struct object_frame *frame, enum object_mode mode, struct err *e)
{
    struct fields f = fields_make(frame->spec, frame->where, e);
    unsigned topology = TOPOLOGY_AUTO;
    unsigned cipher = CIPHER_AUTO;
    unsigned isolation = ISOLATION_OPEN;
    unsigned trust_policy = TRUST_POLICY_WAIT;
    const json_t *prices;
    struct err why = ERR_NULL;

    n->mtu = NETWORK_MTU_DEFAULT;
    n->keepalive = NETWORK_KEEPALIVE_AUTO;
    fields_block(&f, "cidr4", FIELDS_REQUIRED, true, &n->cidr4);
    fields_block(&f, "cidr6", FIELDS_REQUIRED, false, &n->cidr6);
    fields_enum(&f, "topology", FIELDS_OPTIONAL, topology_names, TOPOLOGY_N, &topology);
    fields_int(&f, "mtu", FIELDS_OPTIONAL, NETWORK_MTU_MIN, NETWORK_MTU_MAX, &n->mtu);
    network_keepalive_decode(&f, &n->keepalive);
    fields_enum(&f, "cipher", FIELDS_OPTIONAL, cipher_names, CIPHER_N, &cipher);
    fields_enum(&f, "isolation", FIELDS_OPTIONAL, isolation_names, ISOLATION_N, &isolation);
    fields_enum(
        &f, "trustPolicy", FIELDS_OPTIONAL, trust_policy_names, TRUST_POLICY_N, &trust_policy);
    key_rotation_decode(&f, mode, &n->key_rotation);
    fields_bool(&f, "showDscp", FIELDS_OPTIONAL, &n->shows_dscp);
    fields_int(&f, "drainShare", FIELDS_OPTIONAL, 0, NETWORK_DRAIN_SHARE_MAX, &n->drain_share);
    budgets_decode(&f, mode, &n->budgets);
    prices = fields_object(&f, "prices", FIELDS_OPTIONAL);
    n->prices = prices ? malloc(sizeof(*n->prices)) : NULL;
    if (prices && !n->prices)
        return err_set(e, -ENOMEM, "no memory for %s", frame->where);
    if (prices && prices_decode(n->prices, prices, mode, &why) != 0)
        fields_fail(&f, "%s", err_text(&why));
    n->topology = topology;
    n->cipher = cipher;
    n->isolation = isolation;
    n->trust_policy = trust_policy;
    return object_fields_end(&f, mode);
}

int network_decode(struct network *ret, const json_t *json, enum object_mode mode, struct err *e)
{
    struct network n = NETWORK_NULL;
    struct object_frame frame;
    int r = object_frame_decode(&frame, json, &network_kind, mode, e);

    if (r != 0)
        return r;
    n.meta = frame.meta;
    r = parse_name(n.meta.name, "network name", e);
    if (r == 0)
        r = spec_decode(&n, &frame, mode, e);
    if (r == 0)
        *ret = n;
    else
        network_deinit(&n);
    return r;
}

void network_deinit(struct network *n)
{
    free(n->prices);
    n->prices = NULL;
}

json_t *network_encode(const struct network *n)
{
    char cidr4[IP_PREFIX_TEXT_MAX];
    char cidr6[IP_PREFIX_TEXT_MAX];
    json_t *spec = json_pack("{s:s, s:s, s:s, s:i, s:o, s:s, s:I, s:o*, s:o*, s:s*}", "cidr4",
        ip_prefix_format(&n->cidr4, cidr4), "cidr6", ip_prefix_format(&n->cidr6, cidr6), "topology",
        topology_names[n->topology], "mtu", (int)n->mtu, "keepalive",
        n->keepalive == NETWORK_KEEPALIVE_AUTO ? json_string("auto") : json_integer(n->keepalive),
        "cipher", cipher_names[n->cipher], "keyRotation", (json_int_t)n->key_rotation, "showDscp",
        n->shows_dscp ? json_true() : NULL, "drainShare",
        n->drain_share ? json_integer(n->drain_share) : NULL, "isolation",
        n->isolation == ISOLATION_OPEN ? NULL : isolation_names[n->isolation]);

    if (n->trust_policy != TRUST_POLICY_WAIT)
        fields_set(&spec, "trustPolicy", json_string(trust_policy_names[n->trust_policy]));
    if (n->budgets.n > 0)
        fields_set(&spec, "budgets", budgets_encode(&n->budgets));
    if (n->prices)
        fields_set(&spec, "prices", prices_encode(n->prices));
    return object_frame_encode(&n->meta, &network_kind, spec, NULL);
}

/* ---- the row -------------------------------------------------------------------------------- */

static int decode(struct object *ret, const json_t *json, enum object_mode mode, struct err *e)
{
    return network_decode(&ret->network, json, mode, e);
}

static json_t *encode(const struct object *o)
{
    return network_encode(&o->network);
}

static void deinit(struct object *o)
{
    network_deinit(&o->network);
}

const struct object_kind network_kind = {
    .name = "Network",
    .prefix = "network/",
    .plural = "networks",
    .short_name = "wnet",
    .is_network = true,
    .decode = decode,
    .encode = encode,
    .deinit = deinit,
};
