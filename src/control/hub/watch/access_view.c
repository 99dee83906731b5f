/* access_view.c - see access_view.h. */
#include "access_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/metrics.h"
#include "hub/model/reported.h"
#include "mesh/object/fields.h"
#include "mesh/object/rule.h"

/* Most rules of which one node's numbers are kept. */
#define NODE_RULES_MAX 1024

/* The sums of one rule. */
struct access_sum {
    struct keyed keyed; /* by its name */
    uint64_t passed;
    uint64_t refused;
};

struct access_network {
    struct keyed keyed; /* by its name */
    struct keys sums;
    int64_t minute;    /* in which the next have happened, since 1970 */
    unsigned n_events; /* that were noted */
    uint64_t n_more;   /* that were not */
};

static void forget(struct access_view *v, struct access_network *of)
{
    keys_free_all(&of->sums);
    keys_free(&v->networks, &of->keyed);
}

void access_view_deinit(struct access_view *v)
{
    while (v->networks.n > 0)
        forget(v, container_of(v->networks.items[0], struct access_network, keyed));
    keys_deinit(&v->networks);
    *v = (struct access_view){.networks = KEYS_NULL};
}

/* ---- sums ----------------------------------------------------------------------------------- */

static bool is_rule(const struct model_network *net, const char *name)
{
    return name[0] == '\0' || model_find_object(net, &rule_kind, name) != NULL;
}

/* What the node has said of the rule before; NULL: no room. */
static struct access_count *before_of(struct reported_node *r, const char *rule)
{
    struct access_count *all;

    for (unsigned i = 0; i < r->n_access; i++)
        if (strcmp(r->access[i].rule, rule) == 0)
            return &r->access[i];
    all =
        r->n_access < NODE_RULES_MAX ? realloc(r->access, (r->n_access + 1) * sizeof(*all)) : NULL;
    if (!all)
        return NULL;
    r->access = all;
    all += r->n_access++;
    *all = (struct access_count){.passed = 0};
    (void)snprintf(all->rule, sizeof(all->rule), "%s", rule);
    return all;
}

/* A number that has shrunk is that of an agent that was started anew. */
static void add(uint64_t *sum, uint64_t before, uint64_t now)
{
    uint64_t by = now >= before ? now - before : now;

    *sum = by > ACCESS_COUNT_MAX - *sum ? ACCESS_COUNT_MAX : *sum + by;
}

static void take_counts(
    struct access_network *of, const struct model_node *node, const struct access_report *report)
{
    for (unsigned i = 0; i < report->n_rules; i++) {
        const struct access_count *now = &report->rules[i];
        struct access_count *before =
            is_rule(node->net, now->rule) ? before_of(node->reported, now->rule) : NULL;
        struct access_sum *sum =
            before ? keys_open(&of->sums, now->rule, sizeof(struct access_sum)) : NULL;

        if (!sum)
            continue;
        add(&sum->passed, before->passed, now->passed);
        add(&sum->refused, before->refused, now->refused);
        *before = *now;
    }
}

/* ---- events --------------------------------------------------------------------------------- */

static void note(struct edge_events *events, const char *network, const char *object,
    const char *text, int64_t wall_s)
{
    edge_events_add(events, &(struct edge_event){.kind = EDGE_EVENT_REFUSED,
                                .at = wall_s,
                                .network = network,
                                .object = object,
                                .text = text});
}

static void say_more(
    struct access_network *of, struct edge_events *events, const char *network, int64_t wall_s)
{
    char text[EDGE_EVENT_TEXT_MAX];

    if (wall_s / 60 == of->minute)
        return;
    of->minute = wall_s / 60;
    of->n_events = 0;
    if (of->n_more == 0)
        return;
    (void)snprintf(text, sizeof(text),
        "nodes have refused packets of %" PRIu64 " more pairs and ports; weft rule ls has the sums",
        of->n_more);
    of->n_more = 0;
    note(events, network, network, text, wall_s);
}

/* The job whose port it was, where other rules allow it, or none are there; NULL: that was not why.
 */
static const char *closing_job(const struct model_network *net, const struct access_refusal *x)
{
    const struct model_node *from = model_find_node(net, x->from);
    const struct model_node *to = model_find_node(net, x->to);
    _cleanup_(freep) const struct object **rules = calloc(net->objects.n + 1, sizeof(*rules));
    struct rule_packet p = {.from.node = from ? &from->spec : NULL};
    struct rule_answer answer;
    const struct object *o;
    size_t n = 0;
    size_t i = 0;

    if (!rules || !from || !to || rule_service_parse(&p.service, x->service, NULL) != 0)
        return NULL;
    p.to.node = &to->spec;
    while (n < net->objects.n && (o = model_each_object(net, &rule_kind, &i)))
        rules[n++] = o;
    answer = rules_decide(rules, n, net->spec.isolation == ISOLATION_STRICT, &p);
    return answer.is_allowed && answer.job ? rule_of(answer.job)->job : NULL;
}

static void note_refusal(struct access_network *of, struct edge_events *events,
    const struct model_node *node, const struct access_refusal *x, int64_t wall_s)
{
    const char *name = node->spec.meta.name;
    bool is_from = strcmp(x->from, name) == 0;
    const char *other = is_from ? x->to : x->from;
    bool is_edge = (is_from || strcmp(x->to, name) == 0) && model_find_node(node->net, other);
    char edge[OBJECT_NAME_MAX + 1];
    char text[EDGE_EVENT_TEXT_MAX];
    char why[NAME_MAX_LEN + 48];
    const char *job;

    if (of->n_events == ACCESS_EVENTS_MAX) {
        of->n_more++;
        return;
    }
    of->n_events++;
    job = closing_job(node->net, x);
    if (job)
        (void)snprintf(why, sizeof(why), "the port is for members of the job %s", job);
    else
        (void)snprintf(why, sizeof(why), "no rule allows %s", x->packets == 1 ? "it" : "them");
    (void)snprintf(text, sizeof(text), "%s refused %" PRIu64 " packet%s from %s to %s, %s: %s",
        name, x->packets, x->packets == 1 ? "" : "s", x->from, x->to, x->service, why);
    note(events, node->net->spec.meta.name, is_edge ? edge_name(name, other, edge) : name, text,
        wall_s);
}

void access_view_take(struct access_view *v, struct edge_events *events,
    const struct model_node *node, const struct access_report *report, int64_t wall_s)
{
    const char *network = node->net->spec.meta.name;
    struct access_network *of = keys_open(&v->networks, network, sizeof(*of));

    if (!of)
        return;
    say_more(of, events, network, wall_s);
    take_counts(of, node, report);
    for (unsigned i = 0; i < report->n_refused; i++)
        note_refusal(of, events, node, &report->refused[i], wall_s);
}

void access_view_look(
    struct access_view *v, struct edge_events *events, const struct model *model, int64_t wall_s)
{
    for (size_t i = v->networks.n; i-- > 0;) {
        struct access_network *of =
            container_of(v->networks.items[i], struct access_network, keyed);
        const struct model_network *net = model_find_network(model, of->keyed.key);

        if (!net) {
            forget(v, of);
            continue;
        }
        say_more(of, events, net->spec.meta.name, wall_s);
        for (size_t k = of->sums.n; k-- > 0;)
            if (!is_rule(net, of->sums.items[k]->key))
                keys_free(&of->sums, of->sums.items[k]);
    }
}

/* ---- what is shown -------------------------------------------------------------------------- */

/* The sums of a rule, or of none with ""; zeroes where nothing was said. */
static struct access_sum sum_of(
    const struct access_view *v, const struct model_network *net, const char *rule)
{
    const struct access_network *of = keys_find(&v->networks, net->spec.meta.name);
    const struct access_sum *sum = of ? keys_find(&of->sums, rule) : NULL;

    return sum ? *sum : (struct access_sum){.passed = 0};
}

json_t *access_view_encode(const struct access_view *v, const struct model_network *net)
{
    json_t *rules = json_array();
    const struct object *o;
    size_t i = 0;

    while ((o = model_each_object(net, &rule_kind, &i))) {
        struct access_sum sum = sum_of(v, net, o->meta.name);

        fields_append(&rules, json_pack("{s:s, s:I, s:I}", "name", o->meta.name, "passed",
                                  (json_int_t)sum.passed, "refused", (json_int_t)sum.refused));
    }
    return json_pack(
        "{s:o, s:I}", "rules", rules, "refused", (json_int_t)sum_of(v, net, "").refused);
}

void access_view_add_metrics(
    const struct access_view *v, const struct model_network *net, struct metrics *m)
{
    const char *network = net->spec.meta.name;
    const struct object *o;
    size_t i = 0;
    bool has_rules = false;

    while ((o = model_each_object(net, &rule_kind, &i))) {
        struct access_sum sum = sum_of(v, net, o->meta.name);
        const char *const *labels = METRIC_LABELS(network, o->meta.name);

        metrics_add_labelled(m, METRIC_RULE_PASSED, labels, (double)sum.passed);
        metrics_add_labelled(m, METRIC_RULE_REFUSED, labels, (double)sum.refused);
        has_rules = true;
    }
    if (has_rules || net->spec.isolation == ISOLATION_STRICT)
        metrics_add_labelled(
            m, METRIC_RULE_REFUSED, METRIC_LABELS(network, ""), (double)sum_of(v, net, "").refused);
}
