/* plan_text.c - a plan as JSON and in words; see plan.h. */
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "plan/plan.h"

#define GB        1e9
#define EDGES_MAX 16 /* with more the list would be too long to read */

/* ---- JSON ---------------------------------------------------------------------------------- */

/* JSON has no infinity: null stands for what cannot be. */
static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static const char *name_of(const struct plan *p, size_t node)
{
    return p->matrix->nodes[node].name;
}

static json_t *names(const struct plan *p, const size_t *nodes, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(list, json_string(name_of(p, nodes[i])));
    return list;
}

static json_t *encode_inside(const struct plan *p)
{
    const struct model_cut *c = &p->inside.cut;
    const struct model_memory *m = &p->inside.memory;
    const struct model_waits *w = &p->inside.waits;

    return json_pack("{s:{s:i, s:i, s:i, s:i, s:i, s:b, s:b}, s:{s:b, s:f, s:f, s:f, s:f, s:f},"
                     " s:{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}}",
        "degrees", "tensor", (int)c->tensor, "pipeline", (int)c->pipeline, "sequence",
        (int)c->sequence, "expert", (int)c->expert, "data", (int)c->replicas, "sharded",
        (int)c->sharded, "recompute", (int)c->recompute, "memory", "fits", (int)p->inside.fits,
        "gpuBytes", p->opt.gpu->memory, "totalBytes", m->total, "statesBytes", m->states,
        "activationsBytes", m->activations, "reserveBytes", m->reserve, "step", "seconds",
        p->inside.step, "workSeconds", p->inside.work, "tensorSeconds", w->tensor, "bubbleSeconds",
        w->bubble, "stagesSeconds", w->stages, "dataSeconds", w->data, "sequenceSeconds",
        w->sequence, "expertSeconds", w->expert);
}

/* Who is in which group: neighbours in the ring are in the same tensor group, then in the same
 * sequence, then in the next stage, then in the next replica, as model_waits() reckons. */
static json_t *encode_replicas(const struct plan *p, const struct plan_island *i)
{
    unsigned n_stage =
        p->inside.cut.tensor * p->inside.cut.sequence; /* GPUs of one stage of a replica */
    unsigned gpu = 0;
    json_t *replicas = json_array();

    for (unsigned r = 0; !p->lacks_batch && r < i->data; r++) {
        json_t *stages = json_array();

        for (unsigned s = 0; s < p->inside.cut.pipeline; s++) {
            json_t *stage = json_array();

            for (unsigned k = 0; k < n_stage; k++, gpu++)
                (void)json_array_append_new(stage,
                    json_sprintf("%s:%u", name_of(p, p->members[i->first + gpu / p->opt.gpus]),
                        gpu % p->opt.gpus));
            (void)json_array_append_new(stages, stage);
        }
        (void)json_array_append_new(replicas, stages);
    }
    return replicas;
}

static json_t *encode_islands(const struct plan *p)
{
    json_t *list = json_array();

    for (size_t k = 0; k < p->n_islands; k++) {
        const struct plan_island *i = &p->islands[k];

        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:i, s:o, s:o}", "name", i->name, "leader",
                      name_of(p, i->leader), "replicas", (int)i->data, "ring",
                      names(p, p->members + i->first, i->n), "groups", encode_replicas(p, i)));
    }
    return list;
}

static json_t *encode_each_step(const struct plan *p)
{
    json_t *kinds = json_object();

    for (unsigned k = 0; k < PLAN_KIND_N; k++)
        (void)json_object_set_new(kinds, plan_kind_names[k],
            json_pack(
                "{s:o, s:f}", "seconds", number(p->average_s[k]), "share", p->average_share[k]));
    return json_pack("{s:b, s:s, s:f, s:o}", "advised", (int)p->is_synchronous, "best",
        plan_kind_names[p->best], "bytes",
        p->opt.model.params * model_dtype_bytes(p->opt.model.dtype), "kinds", kinds);
}

static json_t *encode_exchange(const struct plan *p)
{
    json_t *forms;

    if (p->n_islands < 2)
        return json_null();
    forms = json_object();
    for (unsigned f = 0; f < PLAN_FORM_N; f++) {
        const struct plan_exchange *x = &p->exchange[f];

        (void)json_object_set_new(forms, plan_form_names[f],
            json_pack("{s:f, s:o, s:o, s:f, s:b}", "bytes", x->bytes, "seconds", number(x->seconds),
                "interval", number(x->interval), "share", x->share, "pays", (int)x->pays));
    }
    return json_pack("{s:s, s:o, s:o, s:{s:f, s:o, s:f, s:o}}", "form", plan_form_names[p->form],
        "interval", number(p->exchange[p->form].interval), "forms", forms, "streaming", "fragments",
        p->fragments, "fragmentSeconds", number(p->fragment_s), "overlapSteps", p->fragment_steps,
        "interval", number(p->stream_interval));
}

static json_t *encode_money(const struct plan *p)
{
    const struct prices *prices = p->opt.prices;
    json_t *lines = json_array();

    for (size_t i = 0; i < prices->n_lines; i++)
        (void)json_array_append_new(lines,
            json_pack("{s:s, s:o, s:f}", "name", prices->lines[i].name, "breakEvenGBPerMonth",
                number(p->lines[i].break_even_gb), "moneyPerMonth", p->lines[i].money_per_month));
    return json_pack("{s:s, s:b, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "currency",
        prices->currency, "tableGiven", (int)p->opt.prices_given, "trafficPerDay", p->traffic_money,
        "gpusPerDay", p->gpu_money, "everyStepTrafficPerDay", p->flat_money, "crossZoneBytesPerDay",
        p->zone_bytes, "crossZonePerDay", p->zone_money, "natPerDay", p->nat_money, "stepsPerDay",
        p->steps_per_day, "onePlacePerDay",
        prices->one_place[0] != '\0' ? json_real(p->one_place_money) : json_null(), "lines", lines);
}

static json_t *encode_syncs(const struct plan *p)
{
    json_t *list = json_array();

    for (size_t i = 0; i < p->opt.n_syncs; i++) {
        json_t *kinds = json_object();
        json_t *forms = json_object();

        for (unsigned k = 0; k < PLAN_KIND_N; k++)
            (void)json_object_set_new(kinds, plan_kind_names[k], number(p->syncs[i].kinds[k]));
        for (unsigned f = 0; f < PLAN_FORM_N; f++)
            (void)json_object_set_new(forms, plan_form_names[f], number(p->syncs[i].exchange[f]));
        (void)json_array_append_new(
            list, json_pack("{s:f, s:o, s:o}", "bytes", p->opt.sync_bytes[i], "averageSeconds",
                      kinds, "exchangeSeconds", forms));
    }
    return list;
}

json_t *plan_encode(const struct plan *p)
{
    const struct model *m = &p->opt.model;
    json_t *parents = json_object();
    json_t *edges = json_array();
    json_t *model = json_pack("{s:f, s:f, s:s, s:f, s:f, s:f, s:f, s:i, s:i}", "params", m->params,
        "active", m->active, "dtype", model_dtype_names[m->dtype], "layers", m->layers, "hidden",
        m->hidden, "sequence", m->seq, "batch", m->batch, "experts", (int)m->experts,
        "chosenExperts", (int)m->chosen);

    for (size_t i = 0; i < p->matrix->n; i++)
        (void)json_object_set_new(parents, name_of(p, i),
            p->parent[i] == i ? json_null() : json_string(name_of(p, p->parent[i])));
    for (size_t i = 0; i < p->n_edges; i++)
        (void)json_array_append_new(
            edges, json_pack("{s:s, s:s, s:f, s:f}", "from", name_of(p, p->edges[i].from), "to",
                       name_of(p, p->edges[i].to), "bytesPerDay", p->edges[i].bytes_per_day,
                       "moneyPerDay", p->edges[i].money_per_day));
    return json_pack(
        "{s:b, s:s, s:s, s:i, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "good",
        (int)plan_is_good(p), "transport", sync_transport_names[p->opt.transport], "gpu",
        p->opt.gpu->name, "gpusPerNode", (int)p->opt.gpus, "maxShare", p->opt.share, "model", model,
        "inside", encode_inside(p), "islands", encode_islands(p), "leaders",
        names(p, p->leaders, p->n_islands), "ring", names(p, p->ring, p->matrix->n), "tree",
        parents, "everyStep", encode_each_step(p), "syncs", encode_syncs(p), "exchange",
        encode_exchange(p), "edges", edges, "money", encode_money(p));
}

/* ---- for people ---------------------------------------------------------------------------- */

/* A time as people say it: "12 ms", "3.4 s", "2.1 h". */
static const char *say_time(double s, char buf[static 32])
{
    static const struct {
        double from;
        double unit;
        const char *name;
    } units[] = {{172800, 86400, "days"}, {7200, 3600, "h"}, {120, 60, "min"}, {1, 1, "s"},
        {1e-3, 1e-3, "ms"}, {0, 1e-6, "us"}};
    size_t i = 0;

    if (!isfinite(s)) {
        (void)snprintf(buf, 32, "not measured");
        return buf;
    }
    while (s < units[i].from)
        i++;
    (void)snprintf(buf, 32, "%.3g %s", s / units[i].unit, units[i].name);
    return buf;
}

static const char *say_bytes(double bytes, char buf[static 32])
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    unsigned i = 0;

    for (; bytes >= 1000 && i + 1 < sizeof(units) / sizeof(*units); i++)
        bytes /= 1000;
    (void)snprintf(buf, 32, "%.3g %s", bytes, units[i]);
    return buf;
}

static void say_assumptions(const struct plan *p, struct str *out)
{
    const struct model *m = &p->opt.model;
    char bytes[32];

    str_addf(out,
        "Model: %.3g weights in %s, %.0f layers of width %.0f; %.0f sequences of %.0f "
        "tokens a step.\n",
        m->params, model_dtype_names[m->dtype], m->layers, m->hidden, m->batch, m->seq);
    str_addf(out,
        "GPUs: %u on each of %zu nodes, %s, %s; %.0f %% of their operations are "
        "reached.\n",
        p->opt.gpus, p->matrix->n, p->opt.gpu->about, say_bytes(p->opt.gpu->memory, bytes),
        p->opt.efficiency * 100);
    if (p->opt.fabric_bps > 0)
        str_addf(out, "Between nodes of an island: %.3g Gbit/s, as --fabric says.\n",
            p->opt.fabric_bps / GB);
    else
        str_add(out, "Between nodes of an island: as measured over the overlay; --fabric names "
                     "another fabric.\n");
}

static void say_list(
    const struct plan *p, const size_t *nodes, size_t n, const char *between, struct str *out)
{
    for (size_t i = 0; i < n; i++)
        str_addf(out, "%s%s", i > 0 ? between : "", name_of(p, nodes[i]));
}

static void say_islands(const struct plan *p, struct str *out)
{
    for (size_t k = 0; k < p->n_islands; k++) {
        const struct plan_island *i = &p->islands[k];

        str_addf(out, "Island %s: %u replica%s, leader %s, ring ", i->name, i->data,
            i->data == 1 ? "" : "s", name_of(p, i->leader));
        say_list(p, p->members + i->first, i->n, " - ", out);
        str_add(out, "\n");
    }
    str_add(out, "Ring of all: ");
    say_list(p, p->ring, p->matrix->n, " - ", out);
    str_add(out, "\nTree of all:");
    for (size_t i = 0; i < p->matrix->n; i++)
        if (p->parent[i] != i)
            str_addf(out, " %s>%s", name_of(p, p->parent[i]), name_of(p, i));
    str_add(out, "\n");
}

static void say_inside(const struct plan *p, struct str *out)
{
    const struct model_cut *c = &p->inside.cut;
    char total[32];
    char have[32];
    char step[32];
    char work[32];

    str_addf(out,
        "\nInside islands: tensor %u, pipeline %u, sequence %u, expert %u, data %u%s%s.\n",
        c->tensor, c->pipeline, c->sequence, c->expert, c->replicas,
        c->sharded ? ", sharded (FSDP)" : "", c->recompute ? ", activations recomputed" : "");
    if (p->lacks_batch) {
        str_addf(out,
            "no: a batch of %.0f is too small for %zu islands of %zu nodes together: each island "
            "trains at least one sequence of it (--batch).\n",
            p->opt.model.batch, p->n_islands, p->matrix->n);
        return;
    }
    str_addf(out, "GPUs in the order of the ring: %u share each matrix", c->tensor);
    if (c->sequence > 1)
        str_addf(out, ", %u such groups each sequence", c->sequence);
    if (c->pipeline > 1)
        str_addf(out, ", then come those of the next of %u stages", c->pipeline);
    str_add(out, ", then the next replica; --json names each.\n");
    str_addf(out, "%s: %s of %s on each GPU%s.\n",
        p->inside.fits ? "It fits" : "no: it does not fit",
        say_bytes(p->inside.memory.total, total), say_bytes(p->opt.gpu->memory, have),
        p->inside.fits ? "" : ", at the least; an island has to hold a whole replica");
    str_addf(out, "A step takes %s, %s of it computing.\n", say_time(p->inside.step, step),
        say_time(p->inside.work, work));
}

/* Why averaging in each step is not advised, with the numbers. */
static void say_no(const struct plan *p, struct str *out)
{
    const struct matrix_link *l = matrix_link(p->matrix, p->slow[0], p->slow[1]);
    char bytes[32];
    char sync[32];
    char step[32];

    str_addf(out,
        "no: averaging gradients in each step across islands. %s of gradients take the %s way at "
        "%.4g Mbit/s and "
        "%.4g ms between %s and %s: %s for each step of %s, so the GPUs would wait %.1f %% of the "
        "time.\n",
        say_bytes(p->opt.model.params * model_dtype_bytes(p->opt.model.dtype), bytes),
        plan_kind_names[p->best], l->one_bps / 1e6, l->rtt * 1e3, name_of(p, p->slow[0]),
        name_of(p, p->slow[1]), say_time(p->average_s[p->best], sync),
        say_time(p->inside.step, step), p->average_share[p->best] * 100);
}

static void say_each_step(const struct plan *p, struct str *out)
{
    char s[32];

    str_add(out, "\nAveraging gradients of all nodes in each step:\n");
    for (unsigned k = 0; k < PLAN_KIND_N; k++)
        str_addf(out, "  %-13s %14s  %5.1f %% of the time\n", plan_kind_names[k],
            say_time(p->average_s[k], s), p->average_share[k] * 100);
    if (!p->is_synchronous)
        say_no(p, out);
    else
        str_addf(out, "yes: at most %.0f %% of the time was allowed.\n", p->opt.share * 100);
}

static void say_exchange(const struct plan *p, struct str *out)
{
    char bytes[32];
    char s[32];

    if (p->n_islands < 2 || p->is_synchronous)
        return;
    str_addf(out,
        "\nExchanging between islands every H steps (DiLoCo), in at most %.0f %% of the "
        "time:\n",
        p->opt.share * 100);
    for (unsigned f = 0; f < PLAN_FORM_N; f++) {
        const struct plan_exchange *x = &p->exchange[f];

        str_addf(out, "  %-5s H >= %-9.0f %9s in %12s%s\n", plan_form_names[f], x->interval,
            say_bytes(x->bytes, bytes), say_time(x->seconds, s),
            p->form == f ? "  <- advised" : "");
    }
    str_addf(out,
        "  streaming: %.0f fragments of %d layers, %s each, behind %.0f steps of "
        "computing: H >= %.0f\n",
        p->fragments, PLAN_FRAGMENT_LAYERS, say_time(p->fragment_s, s), p->fragment_steps,
        p->stream_interval);
    if (p->exchange[p->form].interval > PLAN_INTERVAL_GOOD)
        str_addf(out,
            "warning: DiLoCo was tried with up to %d steps without much loss; this is "
            "more.\n",
            PLAN_INTERVAL_GOOD);
}

static void say_syncs(const struct plan *p, struct str *out)
{
    char text[32];

    if (p->opt.n_syncs == 0)
        return;
    str_add(out,
        "\nA vector of so many bytes, averaged by all nodes, and exchanged between islands "
        "after a pause:\n          ");
    for (unsigned k = 0; k < PLAN_KIND_N; k++)
        str_addf(out, " %12s", plan_kind_names[k]);
    for (unsigned f = 0; f < PLAN_FORM_N; f++)
        str_addf(out, " %12s", plan_form_names[f]);
    str_add(out, "\n");
    for (size_t i = 0; i < p->opt.n_syncs; i++) {
        str_addf(out, "  %8s", say_bytes(p->opt.sync_bytes[i], text));
        for (unsigned k = 0; k < PLAN_KIND_N; k++)
            str_addf(out, " %12s", say_time(p->syncs[i].kinds[k], text));
        for (unsigned f = 0; f < PLAN_FORM_N; f++)
            str_addf(out, " %12s", say_time(p->syncs[i].exchange[f], text));
        str_add(out, "\n");
    }
}

static void say_lines(const struct plan *p, struct str *out)
{
    const struct prices *prices = p->opt.prices;

    for (size_t i = 0; i < prices->n_lines; i++) {
        if (isfinite(p->lines[i].break_even_gb))
            str_addf(out, "  %s: %.2f a month; cheaper from %.0f GB a month on\n",
                prices->lines[i].name, p->lines[i].money_per_month, p->lines[i].break_even_gb);
        else
            str_addf(out, "  %s: %.2f a month; never cheaper\n", prices->lines[i].name,
                p->lines[i].money_per_month);
    }
}

static void say_money(const struct plan *p, struct str *out)
{
    const struct prices *prices = p->opt.prices;
    char bytes[32];

    str_addf(out, "\nA day (%.0f steps), in %s%s:\n", p->steps_per_day, prices->currency,
        p->opt.prices_given
            ? ""
            : ", by a table of examples; --price-table, or prices of the Network, names yours");
    for (size_t i = 0; i < p->n_edges && i < EDGES_MAX; i++)
        str_addf(out, "  %s to %s: %s, %.2f\n", name_of(p, p->edges[i].from),
            name_of(p, p->edges[i].to), say_bytes(p->edges[i].bytes_per_day, bytes),
            p->edges[i].money_per_day);
    if (p->zone_bytes > 0)
        str_addf(out, "  between zones inside islands: %s, %.2f\n", say_bytes(p->zone_bytes, bytes),
            p->zone_money);
    if (p->nat_money > 0)
        str_addf(out, "  NAT gateways, beside their bytes: %.2f\n", p->nat_money);
    str_addf(out, "  traffic %.2f, GPUs %.2f", p->traffic_money + p->zone_money + p->nat_money,
        p->gpu_money);
    if (p->n_islands > 1 && !p->is_synchronous)
        str_addf(out, "; by one ring in each step, traffic would be %.2f for as many steps",
            p->flat_money);
    str_add(out, "\n");
    if (prices->one_place[0] != '\0')
        str_addf(
            out, "  all in %s: %.2f for as many tokens\n", prices->one_place, p->one_place_money);
    if (p->n_islands > 1)
        say_lines(p, out);
}

void plan_format(const struct plan *p, struct str *out)
{
    say_assumptions(p, out);
    say_islands(p, out);
    say_inside(p, out);
    say_each_step(p, out);
    say_exchange(p, out);
    say_syncs(p, out);
    say_money(p, out);
    str_addf(out, "\n%s\n",
        plan_is_good(p) ? "yes: this plan can work" : "no: no plan was found, see above");
}
