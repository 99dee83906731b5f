/* node_status.c - see node_status.h. */
#include "mesh/object/node_status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/object/fields.h"
#include "path/path.h"
#include "relay/line.h"

#define FABRIC_GBIT_MAX 1000000

#define RTT_MAX              (60 * NSEC_PER_SEC)
#define KEEPALIVE_REPORT_MAX (3600 * NSEC_PER_SEC)

/* ---- candidates and paths: decoding
 * ------------------------------------------------------------------------------- */

static int decode_candidate(
    struct candidates *c, const json_t *json, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    const char *type = fields_string(&f, "type", FIELDS_REQUIRED, 1, 31);
    const char *text = fields_string(&f, "endpoint", FIELDS_REQUIRED, 1, ENDPOINT_TEXT_MAX);
    struct err parsed = ERR_NULL;
    enum candidate_kind kind;
    struct endpoint ep;

    if (text && endpoint_parse(&ep, text, &parsed) < 0)
        fields_fail(&f, "a candidate's endpoint: %s", err_text(&parsed));
    if (fields_end(&f) != 0)
        return fields_end(&f);
    kind = candidate_kind_parse(type);
    if (kind != CANDIDATE_NONE)
        (void)candidates_add(c, kind, &ep);
    return 0;
}

static int decode_relay(struct path_side *s, const json_t *json, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    struct path_relay relay = {.rtt = 0};
    uint64_t rtt_us = 0;

    fields_public_key(&f, "key", FIELDS_REQUIRED, &relay.key);
    fields_u64(&f, "rttUs", FIELDS_OPTIONAL, 0, RTT_MAX / NSEC_PER_USEC, &rtt_us);
    fields_bool(&f, "stream", FIELDS_OPTIONAL, &relay.is_stream);
    fields_int(&f, "mtu", FIELDS_OPTIONAL, 0, UINT16_MAX, &relay.mtu);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    relay.rtt = (nsec_t)rtt_us * NSEC_PER_USEC;
    s->relays[s->n_relays++] = relay;
    return 0;
}

static void decode_nat(struct fields *f, struct behavior *nat)
{
    const char *mapping = fields_string(f, "mapping", FIELDS_OPTIONAL, 0, 63);
    const char *filtering = fields_string(f, "filtering", FIELDS_OPTIONAL, 0, 63);
    const json_t *step = fields_get(f, "portStep", FIELDS_OPTIONAL);

    nat->mapping = behavior_rule_parse(mapping);
    nat->filtering = behavior_rule_parse(filtering);
    fields_bool(f, "natted", FIELDS_OPTIONAL, &nat->is_natted);
    fields_bool(f, "blocked", FIELDS_OPTIONAL, &nat->is_blocked);
    fields_int(f, "lastPort", FIELDS_OPTIONAL, 0, UINT16_MAX, &nat->last_port);
    if (step && (!json_is_integer(step) || json_integer_value(step) < INT16_MIN ||
                    json_integer_value(step) > INT16_MAX))
        fields_fail(f, "\"portStep\" is not a number from %d to %d", INT16_MIN, INT16_MAX);
    else if (step)
        nat->port_step = (int16_t)json_integer_value(step);
}

static int decode_facts(struct path_side *s, const json_t *json, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    const json_t *relays = fields_array(&f, "relays", FIELDS_OPTIONAL, 0, PATH_RELAYS_MAX);
    uint64_t keepalive_ms = 0;
    int r;

    fields_u64(&f, "generation", FIELDS_OPTIONAL, 0, INT64_MAX, &s->generation);
    fields_u64(
        &f, "keepaliveMs", FIELDS_OPTIONAL, 0, KEEPALIVE_REPORT_MAX / NSEC_PER_MSEC, &keepalive_ms);
    fields_bool(&f, "canSpray", FIELDS_OPTIONAL, &s->can_guess);
    fields_u64(&f, "relayRun", FIELDS_OPTIONAL, 0, INT64_MAX, &s->relay_run);
    decode_nat(&f, &s->nat);
    s->keepalive = (nsec_t)keepalive_ms * NSEC_PER_MSEC;
    r = fields_end(&f);
    for (size_t i = 0; r == 0 && i < json_array_size(relays); i++)
        r = decode_relay(s, json_array_get(relays, i), where, e);
    return r;
}

int path_report_decode(struct path_side *ret, const json_t *candidates, const json_t *facts,
    const char *where, struct err *e)
{
    struct path_side side = {.generation = 0};
    int r = 0;

    if (json_array_size(candidates) > CANDIDATES_MAX)
        return err_set(e, -EINVAL, "%s has %zu candidates, and %d are allowed", where,
            json_array_size(candidates), CANDIDATES_MAX);
    for (size_t i = 0; r == 0 && i < json_array_size(candidates); i++)
        r = decode_candidate(&side.candidates, json_array_get(candidates, i), where, e);
    if (r == 0 && facts)
        r = decode_facts(&side, facts, where, e);
    if (r == 0)
        *ret = side;
    return r;
}

/* ---- candidates and paths: encoding
 * ------------------------------------------------------------------------------- */

json_t *path_report_encode_candidates(const struct path_side *side)
{
    json_t *items = json_array();
    char text[ENDPOINT_TEXT_MAX];

    for (unsigned i = 0; items && i < side->candidates.n; i++) {
        const struct candidate *c = &side->candidates.items[i];

        fields_append(&items, json_pack("{s:s, s:s}", "type", candidate_kind_names[c->kind],
                                  "endpoint", endpoint_format(&c->endpoint, text)));
    }
    return items;
}

static json_t *encode_relays(const struct path_side *side)
{
    json_t *relays = json_array();
    char key[X25519_BASE64_MAX];

    for (unsigned i = 0; relays && i < side->n_relays; i++) {
        const struct path_relay *relay = &side->relays[i];

        fields_append(&relays,
            json_pack("{s:s, s:I, s:b, s:i}", "key", x25519_public_format(&relay->key, key),
                "rttUs", (json_int_t)(relay->rtt / NSEC_PER_USEC), "stream", (int)relay->is_stream,
                "mtu", (int)relay->mtu));
    }
    return relays;
}

json_t *path_report_encode_facts(const struct path_side *side)
{
    const struct behavior *nat = &side->nat;

    return json_pack("{s:I, s:s, s:s, s:b, s:b, s:i, s:i, s:I, s:b, s:I, s:o}", "generation",
        (json_int_t)side->generation, "mapping", behavior_rule_names[nat->mapping], "filtering",
        behavior_rule_names[nat->filtering], "natted", (int)nat->is_natted, "blocked",
        (int)nat->is_blocked, "portStep", (int)nat->port_step, "lastPort", (int)nat->last_port,
        "keepaliveMs", (json_int_t)(side->keepalive / NSEC_PER_MSEC), "canSpray",
        (int)side->can_guess, "relayRun", (json_int_t)side->relay_run, "relays",
        encode_relays(side));
}

/* ---- the fabric ---- */

static int decode_key(struct fabric_key *ret, const json_t *json, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    const char *text = fields_string(&f, "key", FIELDS_REQUIRED, 1, FABRIC_KEY_MAX - 1);

    fields_bool(&f, "exact", FIELDS_OPTIONAL, &ret->is_exact);
    if (text)
        (void)snprintf(ret->text, sizeof(ret->text), "%s", text);
    return fields_end(&f);
}

static void take_text(struct fields *f, const char *name, char ret[static FABRIC_REPORT_TEXT_MAX])
{
    const char *text = fields_string(f, name, FIELDS_OPTIONAL, 0, FABRIC_REPORT_TEXT_MAX - 1);

    if (text)
        (void)snprintf(ret, FABRIC_REPORT_TEXT_MAX, "%s", text);
}

int fabric_report_decode(
    struct fabric_report *ret, const json_t *json, const char *where, struct err *e)
{
    struct fabric_report r = {.gbit = 0};
    struct fields f = fields_make(json, where, e);
    const char *kind = fields_string(&f, "kind", FIELDS_REQUIRED, 1, FABRIC_REPORT_TEXT_MAX - 1);
    const json_t *keys = fields_array(&f, "keys", FIELDS_OPTIONAL, 0, FABRIC_KEYS_MAX);
    int end;

    if (kind)
        (void)snprintf(r.kind, sizeof(r.kind), "%s", kind);
    take_text(&f, "machine", r.machine);
    take_text(&f, "gpu", r.gpu);
    fields_int(&f, "gbit", FIELDS_OPTIONAL, 0, FABRIC_GBIT_MAX, &r.gbit);
    fields_int(&f, "gpus", FIELDS_OPTIONAL, 0, FABRIC_GPUS_MAX, &r.n_gpus);
    fields_bool(&f, "askedTogether", FIELDS_OPTIONAL, &r.asked_together);
    end = fields_end(&f);
    for (size_t i = 0; end == 0 && i < json_array_size(keys); i++)
        end = decode_key(&r.keys[r.n_keys++], json_array_get(keys, i), where, e);
    if (end != 0)
        return end;
    *ret = r;
    return 0;
}

json_t *fabric_report_encode(const struct fabric_report *r)
{
    json_t *keys = json_array();

    for (size_t i = 0; i < r->n_keys; i++)
        fields_append(&keys,
            json_pack("{s:s, s:b}", "key", r->keys[i].text, "exact", (int)r->keys[i].is_exact));
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:b, s:o}", "kind", r->kind, "machine", r->machine,
        "gpu", r->gpu, "gpus", (int)r->n_gpus, "gbit", (int)r->gbit, "askedTogether",
        (int)r->asked_together, "keys", keys);
}

/* ---- the line of a relay ---- */

/* A number of 64 bits in hex, which JSON has no exact number for. */
#define TAG_DIGITS 16

static void decode_away(struct fields *f, struct path_relay_notice *notice)
{
    const json_t *away = fields_array(f, "away", FIELDS_OPTIONAL, 0, PATH_AWAY_MAX);

    for (size_t i = 0; i < json_array_size(away); i++) {
        const char *text = json_string_value(json_array_get(away, i));
        uint8_t bytes[TAG_DIGITS / 2];
        uint64_t tag = 0;

        if (!text || !hex_decode(text, bytes, sizeof(bytes))) {
            fields_fail(f, "\"away\" holds something that is not %d hex digits", TAG_DIGITS);
            return;
        }
        for (unsigned k = 0; k < sizeof(bytes); k++)
            tag = tag << 8 | bytes[k];
        notice->away[notice->n_away++] = tag;
    }
}

/* Where the capacity of a line is from, if it was not typed; and how long such a word is at most.
 */
static const char from_measured[] = "measured";
#define FROM_MAX 16

static int decode_relay_pair(
    struct relay_reported_pair *ret, const json_t *json, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    struct relay_reported_pair r = {.is_away = false};

    fields_public_key(&f, "a", FIELDS_REQUIRED, &r.pair.keys[0]);
    fields_public_key(&f, "b", FIELDS_REQUIRED, &r.pair.keys[1]);
    fields_u64(&f, "rate", FIELDS_REQUIRED, 0, INT64_MAX, &r.pair.rate);
    fields_bool(&f, "away", FIELDS_OPTIONAL, &r.is_away);
    return fields_give(&f, ret, &r, sizeof(r));
}

int relay_line_decode(
    struct relay_line_report *ret, const json_t *json, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    struct relay_line_report r = {.rate = 0};
    const json_t *pairs = fields_array(&f, "pairs", FIELDS_OPTIONAL, 0, RELAY_LINE_REPORTED_MAX);
    /* A relay of an earlier version does not say it: its capacity is typed. */
    const char *from = fields_string(&f, "capacityFrom", FIELDS_OPTIONAL, 1, FROM_MAX);
    unsigned level = RELAY_LINE_OPEN;
    int end;

    fields_enum(&f, "level", FIELDS_OPTIONAL, relay_line_level_names, RELAY_LINE_LEVEL_N, &level);
    fields_u64(&f, "rate", FIELDS_OPTIONAL, 0, INT64_MAX, &r.rate);
    fields_u64(&f, "capacity", FIELDS_OPTIONAL, 0, INT64_MAX, &r.capacity);
    fields_bool(&f, "closed", FIELDS_OPTIONAL, &r.notice.is_closed);
    decode_away(&f, &r.notice);
    r.level = (enum relay_line_level)level;
    r.is_measured = from && strcmp(from, from_measured) == 0;
    end = fields_end(&f);
    for (size_t i = 0; end == 0 && i < json_array_size(pairs); i++)
        end = decode_relay_pair(&r.pairs[r.n_pairs++], json_array_get(pairs, i), where, e);
    if (end == 0)
        *ret = r;
    return end;
}

static json_t *encode_away(const struct path_relay_notice *notice)
{
    json_t *away = json_array();
    char text[TAG_DIGITS + 1];

    for (unsigned i = 0; away && i < notice->n_away; i++) {
        (void)snprintf(text, sizeof(text), "%016" PRIx64, notice->away[i]);
        fields_append(&away, json_string(text));
    }
    return away;
}

json_t *relay_notice_encode(const struct path_relay_notice *notice)
{
    if (!notice->is_closed && notice->n_away == 0)
        return NULL;
    return json_pack("{s:b, s:o}", "closed", (int)notice->is_closed, "away", encode_away(notice));
}

json_t *relay_line_encode(const struct relay_line_report *r)
{
    json_t *pairs = json_array();
    char keys[2][X25519_BASE64_MAX];

    for (unsigned i = 0; pairs && i < r->n_pairs; i++) {
        const struct relay_pair *pair = &r->pairs[i].pair;

        fields_append(&pairs,
            json_pack("{s:s, s:s, s:I, s:b}", "a", x25519_public_format(&pair->keys[0], keys[0]),
                "b", x25519_public_format(&pair->keys[1], keys[1]), "rate", (json_int_t)pair->rate,
                "away", (int)r->pairs[i].is_away));
    }
    return json_pack("{s:s, s:I, s:I, s:s*, s:b, s:o, s:o}", "level",
        relay_line_level_names[r->level], "rate", (json_int_t)r->rate, "capacity",
        (json_int_t)r->capacity, "capacityFrom",
        r->capacity == 0 ? NULL
        : r->is_measured ? from_measured
                         : "typed",
        "closed", (int)r->notice.is_closed, "away", encode_away(&r->notice), "pairs", pairs);
}

/* ---- its uplink ------------------------------------------------------------------------------ */

#define UPLINK_WORD_MAX 16

const char *const uplink_from_names[] = {"nobody", "typed", "found"};
_Static_assert(
    sizeof(uplink_from_names) / sizeof(*uplink_from_names) == UPLINK_FROM_N, "a name each");

int uplink_report_decode(
    struct uplink_report *ret, const json_t *json, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    struct uplink_report r = {.is_said = true};
    const char *state = fields_string(&f, "state", FIELDS_OPTIONAL, 1, UPLINK_WORD_MAX);
    const char *from = fields_string(&f, "from", FIELDS_OPTIONAL, 1, UPLINK_WORD_MAX);
    uint64_t at = 0;

    fields_u64(&f, "bitsPerSecond", FIELDS_OPTIONAL, 0, INT64_MAX, &r.bits_per_s);
    fields_u64(&f, "rateBitsPerSecond", FIELDS_OPTIONAL, 0, INT64_MAX, &r.rate);
    fields_u64(&f, "at", FIELDS_OPTIONAL, 0, INT64_MAX, &at);
    /* A word of a newer node means nothing here. */
    r.state =
        (enum uplink_state)(parse_word(state, uplink_state_names, UPLINK_STATE_N) % UPLINK_STATE_N);
    r.from = (enum uplink_from)(parse_word(from, uplink_from_names, UPLINK_FROM_N) % UPLINK_FROM_N);
    r.at_s = (int64_t)at;
    return fields_give(&f, ret, &r, sizeof(r));
}

/* What is not known is left out. */
json_t *uplink_report_encode(const struct uplink_report *r)
{
    if (!r->is_said)
        return NULL;
    return json_pack("{s:s, s:s, s:o*, s:o*, s:o*}", "state", uplink_state_names[r->state], "from",
        uplink_from_names[r->from], "bitsPerSecond",
        r->bits_per_s ? json_integer((json_int_t)r->bits_per_s) : NULL, "rateBitsPerSecond",
        r->rate ? json_integer((json_int_t)r->rate) : NULL, "at",
        r->at_s ? json_integer((json_int_t)r->at_s) : NULL);
}

bool uplink_report_equal(const struct uplink_report *a, const struct uplink_report *b)
{
    return a->is_said == b->is_said && a->state == b->state && a->bits_per_s == b->bits_per_s &&
           a->at_s == b->at_s && a->rate == b->rate && a->from == b->from;
}
