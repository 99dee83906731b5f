/* islands_text.c - islands.h: the facts from an agent's status, and the islands as JSON and text.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "train/islands/islands.h"

static const char *const state_names[] = {
    [ISLANDS_FOUND] = "found",
    [ISLANDS_VERIFIED] = "verified",
    [ISLANDS_CONTRADICTED] = "contradicted",
};

static const char *const nearness_names[] = {
    [ISLANDS_NEARNESS_UNKNOWN] = "unknown",
    [ISLANDS_NEARNESS_NEAR] = "near",
    [ISLANDS_NEARNESS_FAR] = "far",
};

/* ---- from a status -------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));

    return text ? text : "";
}

/* A name that is too long is of no node of ours; it is cut. */
static void take_node(struct islands_node *ret, const json_t *json)
{
    const json_t *fabric = json_object_get(json, "fabric");

    (void)snprintf(ret->name, sizeof(ret->name), "%s", text_of(json, "name"));
    (void)snprintf(ret->label, sizeof(ret->label), "%s", text_of(json, "island"));
    ret->has_fabric =
        json_is_object(fabric) && fabric_report_decode(&ret->fabric, fabric, ret->name, NULL) == 0;
}

/* How far a peer is, ms. A busy machine answers late, and is as near as before. An agent of an
 * earlier version does not say the least round trip. */
static const json_t *distance_to(const json_t *peer)
{
    const json_t *least = json_object_get(peer, "leastRttMs");

    return least ? least : json_object_get(peer, "rttMs");
}

int islands_facts_of_status(struct islands_facts *ret, const json_t *status)
{
    const json_t *peers = json_object_get(status, "peers");
    size_t n = json_array_size(peers) + 1;
    struct islands_facts f = {
        .nodes = calloc(n, sizeof(*f.nodes)), .n_nodes = n, .pairs = calloc(n, sizeof(*f.pairs))};
    const json_t *peer;
    size_t i;

    if (!f.nodes || !f.pairs) {
        islands_facts_deinit(&f);
        return -ENOMEM;
    }
    take_node(&f.nodes[0], json_object_get(status, "self"));
    json_array_foreach(peers, i, peer) {
        const json_t *rtt = distance_to(peer);

        take_node(&f.nodes[i + 1], peer);
        if (json_is_number(rtt))
            f.pairs[f.n_pairs++] = (struct islands_pair){.b = i + 1,
                .rtt_ms = json_number_value(rtt),
                .is_lan = strcmp(text_of(peer, "path"), "lan") == 0};
    }
    *ret = f;
    return 0;
}

/* ---- from measurements of all pairs --------------------------------------------------------- */

#define RTT_US_MAX 60e6 /* no round trip takes a minute */

static size_t find_node(const struct islands_facts *f, const char *name)
{
    for (size_t i = 0; i < f->n_nodes; i++)
        if (name && strcmp(f->nodes[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

/* The median of a pair: `weft bench` has it in the pair, `weft preflight` in each of its ways. */
static double median_us(const json_t *pair)
{
    const json_t *in_pair = json_object_get(pair, "rttMedianUs");
    const json_t *way = json_array_get(json_object_get(pair, "ways"), 0);
    double us = json_number_value(in_pair ? in_pair : json_object_get(way, "rttMedianUs"));

    return us > 0 && us <= RTT_US_MAX ? us : 0;
}

static bool is_measured(const struct islands_facts *f, size_t n_own, size_t a, size_t b)
{
    for (size_t i = 0; i < n_own; i++)
        if ((f->pairs[i].a == a && f->pairs[i].b == b) ||
            (f->pairs[i].a == b && f->pairs[i].b == a))
            return true;
    return false;
}

int islands_facts_add_measured(struct islands_facts *f, const json_t *json)
{
    const json_t *pairs = json_object_get(json, "pairs");
    size_t n_own = f->n_pairs;
    struct islands_pair *more =
        reallocarray(f->pairs, n_own + json_array_size(pairs) + 1, sizeof(*more));
    const json_t *pair;
    size_t i;

    if (!more)
        return -ENOMEM;
    f->pairs = more;
    json_array_foreach(pairs, i, pair) {
        const json_t *names = json_object_get(pair, "nodes");
        size_t a = find_node(f, json_string_value(json_array_get(names, 0)));
        size_t b = find_node(f, json_string_value(json_array_get(names, 1)));
        double us = median_us(pair);

        if (a == SIZE_MAX || b == SIZE_MAX || a == b || us <= 0 || is_measured(f, n_own, a, b))
            continue;
        f->pairs[f->n_pairs++] = (struct islands_pair){.a = a,
            .b = b,
            .rtt_ms = us / 1000,
            .is_lan = strcmp(text_of(pair, "path"), "lan") == 0};
    }
    return 0;
}

void islands_facts_deinit(struct islands_facts *f)
{
    free(f->nodes);
    free(f->pairs);
    *f = (struct islands_facts){.n_nodes = 0};
}

/* ---- as JSON -------------------------------------------------------------------------------- */

/* The names of the nodes of one island, or of those that are alone (SIZE_MAX). */
static json_t *encode_names(const struct islands *s, const struct islands_facts *f, size_t index)
{
    json_t *names = json_array();

    for (size_t i = 0; names && i < f->n_nodes; i++)
        if (s->of[i] == index && json_array_append_new(names, json_string(f->nodes[i].name)) < 0)
            names = (json_decref(names), NULL);
    return names;
}

static json_t *encode_island(const struct islands *s, const struct islands_facts *f, size_t i)
{
    const struct island *island = &s->items[i];

    return json_pack("{s:s, s:s, s:b, s:s, s:s, s:s, s:b, s:o, s:i, s:o}", "name", island->name,
        "fabric", island->kind, "declared", (int)island->is_declared, "evidence", island->evidence,
        "state", state_names[island->state], "nearness", nearness_names[island->nearness],
        "askedTogether", (int)island->asked_together, "maxRttMs",
        island->n_pairs > 0 ? json_real(island->max_rtt_ms) : json_null(), "measuredPairs",
        (int)island->n_pairs, "nodes", encode_names(s, f, i));
}

json_t *islands_encode(const struct islands *s, const struct islands_facts *f)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < s->n; i++)
        if (json_array_append_new(list, encode_island(s, f, i)) < 0)
            list = (json_decref(list), NULL);
    return json_pack("{s:o, s:o}", "islands", list, "alone", encode_names(s, f, SIZE_MAX));
}

/* ---- for people ----------------------------------------------------------------------------- */

static void add_names(struct str *out, const json_t *names)
{
    const json_t *name;
    size_t i;

    json_array_foreach(names, i, name)
        str_addf(out, "%s%s", i > 0 ? " " : "", json_string_value(name));
}

/* What a person has to know of it, in a sentence. */
static void add_verdict(struct str *out, const json_t *island)
{
    const char *state = text_of(island, "state");
    const json_t *rtt = json_object_get(island, "maxRttMs");
    long long n = json_integer_value(json_object_get(island, "measuredPairs"));

    if (strcmp(state, "contradicted") == 0)
        str_addf(out, "contradicted: a round trip takes %.2f ms%s", json_number_value(rtt),
            json_is_true(json_object_get(island, "askedTogether"))
                ? ", though the machines were asked to be placed together"
                : "");
    else if (strcmp(state, "verified") == 0)
        str_addf(out, "verified: %lld measured, %.2f ms at most", n, json_number_value(rtt));
    else if (json_is_number(rtt))
        str_addf(out, "found, not verified; near: %lld measured, %.2f ms at most", n,
            json_number_value(rtt));
    else
        str_add(out, "found, not verified; no round trip is measured from here");
}

void islands_format(struct str *out, const json_t *json)
{
    const json_t *alone = json_object_get(json, "alone");
    const json_t *island;
    size_t i;

    json_array_foreach(json_object_get(json, "islands"), i, island) {
        str_addf(out, "%s (%s)\n  nodes: ", text_of(island, "name"), text_of(island, "fabric"));
        add_names(out, json_object_get(island, "nodes"));
        str_addf(out, "\n  because %s\n  ", text_of(island, "evidence"));
        add_verdict(out, island);
        str_add(out, "\n");
    }
    if (json_array_size(alone) > 0) {
        str_add(out, "in no island: ");
        add_names(out, alone);
        str_add(out, "\n");
    }
}
