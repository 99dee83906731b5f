/* preflight_text.c - see preflight.h: a report as JSON and as text. */
#include "train/preflight/preflight.h"

#include "base/text.h"
#include "health/finding.h"
#include "mesh/object/fields.h"

const char *const preflight_fault_names[] = {
#define X(id, code, name, help) name,
    PREFLIGHT_FAULTS(X)
#undef X
};
static const enum finding_code codes[] = {
#define X(id, code, name, help) FINDING_##code,
    PREFLIGHT_FAULTS(X)
#undef X
};
const char *const preflight_level_names[] = {"ok", "note", "warn", "no"};

_Static_assert(sizeof(preflight_level_names) / sizeof(*preflight_level_names) == PREFLIGHT_LEVEL_N,
    "a name each");

#define PAIRS_SHOWN 40 /* with more pairs the table would be too long to read */

/* ---- JSON ---------------------------------------------------------------------------------- */

/* Its code in docs/HEALTH.md; NULL: it has none. */
static const char *code_of(const struct preflight_finding *f)
{
    enum finding_code code = codes[f->fault];

    if (code == FINDING_WAY_LOSS && f->level == PREFLIGHT_NO)
        code = FINDING_WAY_LOSS_CRITICAL;
    return code < FINDING_CODE_N ? finding_kinds[code].code : NULL;
}

static json_t *encode_finding(const struct preflight_finding *f, const struct preflight_input *in)
{
    json_t *nodes = json_array();

    if (f->a != PREFLIGHT_NOBODY)
        (void)json_array_append_new(nodes, json_string(in->nodes[f->a].name));
    if (f->b != PREFLIGHT_NOBODY)
        (void)json_array_append_new(nodes, json_string(in->nodes[f->b].name));
    return json_pack("{s:s, s:s*, s:s, s:o, s:s, s:s}", "fault", preflight_fault_names[f->fault],
        "code", code_of(f), "level", preflight_level_names[f->level], "nodes", nodes, "text",
        f->text, "fix", f->fix);
}

static json_t *encode_way(const struct preflight_pair *p, unsigned way)
{
    json_t *json;

    if (!p->has_idle[way])
        return json_null();
    json = idle_test_encode(&p->idle[way]);
    fields_set(&json, "reached", json_boolean(p->heard[way] > 0));
    return json;
}

static json_t *encode_loss(const struct preflight_pair *p, bool from_b)
{
    struct preflight_loss l;

    if (!preflight_find_loss(p, from_b, &l))
        return json_null();
    return json_pack("{s:s, s:I, s:I, s:I}", "by", l.by_datagrams ? "datagrams" : "pings", "sent",
        (json_int_t)l.sent, "lost", (json_int_t)l.lost, "ppm", (json_int_t)l.ppm);
}

json_t *preflight_encode_rates(bool has, const struct bulk *b)
{
    if (!has)
        return json_null();
    return json_pack("{s:I, s:I}", "outBitsPerSecond", (json_int_t)b->out.bits_per_s,
        "inBitsPerSecond", (json_int_t)b->in.bits_per_s);
}

static json_t *encode_pair(const struct preflight_report *r, const struct preflight_input *in,
    const struct preflight_pair *p, size_t index)
{
    return json_pack("{s:[s,s], s:s, s:s, s:b, s:[s,s], s:[o,o], s:o, s:o, s:o, s:o}", "nodes",
        in->nodes[p->a].name, in->nodes[p->b].name, "verdict",
        preflight_level_names[r->pair_levels[index]], "path", p->idle[0].path, "tcpRestarts",
        (int)preflight_restarts(p, &in->nodes[p->a], &in->nodes[p->b]), "congestion",
        p->idle[0].congestion, p->idle[1].congestion, "ways", encode_way(p, 0), encode_way(p, 1),
        "lossAToB", encode_loss(p, false), "lossBToA", encode_loss(p, true), "oneStream",
        preflight_encode_rates(p->has_bulk, &p->one), "streams",
        preflight_encode_rates(p->has_bulk, &p->many));
}

json_t *preflight_encode(
    const struct preflight_report *r, const struct preflight_input *in, nsec_t elapsed)
{
    json_t *findings = json_array();
    json_t *pairs = json_array();
    json_t *nodes = json_array();

    for (size_t i = 0; i < r->n; i++)
        (void)json_array_append_new(findings, encode_finding(&r->items[i], in));
    for (size_t i = 0; i < in->n_pairs; i++)
        (void)json_array_append_new(pairs, encode_pair(r, in, &in->pairs[i], i));
    for (size_t i = 0; i < in->n_nodes; i++) {
        const struct preflight_node *n = &in->nodes[i];
        char address[IP_ADDR_TEXT_MAX];

        (void)json_array_append_new(
            nodes, json_pack("{s:s, s:s, s:b, s:o}", "name", n->name, "address",
                       ip_addr_format(&n->address, address), "present", (int)n->present, "facts",
                       n->present ? facts_encode(&n->facts) : json_null()));
    }
    return json_pack("{s:s, s:f, s:o, s:o, s:o}", "verdict", preflight_level_names[r->level],
        "seconds", (double)elapsed / NSEC_PER_SEC, "findings", findings, "pairs", pairs, "nodes",
        nodes);
}

/* ---- for people ---------------------------------------------------------------------------- */

/* Of the notes of one kind only the first is printed, and the others are counted. */
static void format_findings(const struct preflight_report *r, struct str *out)
{
    size_t reported[PREFLIGHT_FAULT_N] = {0};

    for (size_t i = 0; i < r->n; i++) {
        const struct preflight_finding *f = &r->items[i];

        if (f->level > PREFLIGHT_NOTE || reported[f->fault] == 0) {
            str_addf(out, "%-5s %s: %s.\n", preflight_level_names[f->level],
                preflight_fault_names[f->fault], f->text);
            if (f->fix[0] != '\0')
                str_addf(out, "      fix: %s.\n", f->fix);
        }
        reported[f->fault] += f->level == PREFLIGHT_NOTE;
        if (f->level == PREFLIGHT_NOTE && reported[f->fault] > 1 &&
            (i + 1 == r->n || r->items[i + 1].fault != f->fault))
            str_addf(out, "      and %zu more of the kind\n", reported[f->fault] - 1);
    }
}

static void format_pair(const struct preflight_report *r, const struct preflight_input *in,
    size_t index, struct str *out)
{
    const struct preflight_pair *p = &in->pairs[index];
    const struct idle_test *l = &p->idle[0];

    str_addf(out, "%-5s %-14s %-14s %-7s", preflight_level_names[r->pair_levels[index]],
        in->nodes[p->a].name, in->nodes[p->b].name, l->path[0] ? l->path : "-");
    if (!p->has_idle[0] || l->back == 0) {
        str_add(out, "       -       -       -\n");
        return;
    }
    str_addf(out, " %7.2f %7u %7u", l->rtt_median_us / 1000.0, l->packet_max, l->mss);
    if (p->has_bulk)
        str_addf(out, " %9.1f %9.1f %9.1f %9.1f", (double)p->one.out.bits_per_s / 1e6,
            (double)p->one.in.bits_per_s / 1e6, (double)p->many.out.bits_per_s / 1e6,
            (double)p->many.in.bits_per_s / 1e6);
    str_add(out, "\n");
}

/* Prints all pairs of a small network, but of a large one only those with a warning or worse. */
static void format_pairs(
    const struct preflight_report *r, const struct preflight_input *in, struct str *out)
{
    size_t hidden = 0;

    str_addf(out, "%-5s %-14s %-14s %-7s %7s %7s %7s %9s %9s %9s %9s\n", "", "", "", "PATH",
        "RTT ms", "PACKET", "MSS", "1 Mbit/s", "back", "n Mbit/s", "back");
    for (size_t i = 0; i < in->n_pairs; i++) {
        if (in->n_pairs > PAIRS_SHOWN && r->pair_levels[i] <= PREFLIGHT_NOTE)
            hidden++;
        else
            format_pair(r, in, i, out);
    }
    if (hidden > 0)
        str_addf(out, "%zu pairs are well and not shown; --json has them\n", hidden);
}

static const char *verdict_text(enum preflight_level level)
{
    switch (level) {
    case PREFLIGHT_OK:
    case PREFLIGHT_NOTE:
        return "yes: a job would run";
    case PREFLIGHT_WARN:
        return "yes, but: a job would run, and the warnings above are worth a look";
    case PREFLIGHT_NO:
    case PREFLIGHT_LEVEL_N:
        break;
    }
    return "no: a job would not run, see the fixes above";
}

void preflight_format(const struct preflight_report *r, const struct preflight_input *in,
    nsec_t elapsed, struct str *out)
{
    format_pairs(r, in, out);
    str_add(out, "\n");
    format_findings(r, out);
    if (r->n > 0)
        str_add(out, "\n");
    str_addf(out, "%zu member%s, %zu pair%s, %.1f s. %s\n", in->n_nodes,
        in->n_nodes == 1 ? "" : "s", in->n_pairs, in->n_pairs == 1 ? "" : "s",
        (double)elapsed / NSEC_PER_SEC, verdict_text(r->level));
}
