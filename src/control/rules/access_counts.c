/* access_counts.c - see access_counts.h. */
#include "rules/access_counts.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/metrics.h"
#include "mesh/object/rule.h"
#include "mesh/snapshot/snapshot.h"

void access_counts_deinit(struct access_counts *c)
{
    free(c->totals);
    free(c->kinds);
    *c = (struct access_counts){.n_totals = 0};
}

void access_counts_restart(struct access_counts *c)
{
    for (size_t i = 0; i < c->n_totals; i++)
        c->totals[i].seen = 0;
    for (size_t i = 0; i < c->n_kinds; i++)
        c->kinds[i].seen = 0;
    c->seen = 0;
    c->unsorted = 0;
}

/* ---- readings ------------------------------------------------------------------------------- */

/* By how much a counter has grown; one that has shrunk has begun anew. */
static uint64_t growth(uint64_t *seen, uint64_t now)
{
    uint64_t by = now >= *seen ? now - *seen : now;

    *seen = now;
    return by;
}

static int compare_total(const void *item, const void *rule)
{
    const struct access_total *t = item;

    return strcmp(t->count.rule, rule);
}

/* NULL: no memory. */
static struct access_total *total_of(struct access_counts *c, const char *rule)
{
    bool is_there = false;
    size_t at =
        sorted_place(c->totals, c->n_totals, sizeof(*c->totals), compare_total, rule, &is_there);
    struct access_total *totals;

    if (is_there)
        return &c->totals[at];
    totals = sorted_open(c->totals, c->n_totals, sizeof(*totals), at, &c->cap_totals);
    if (!totals)
        return NULL;
    c->totals = totals;
    c->n_totals++;
    totals[at] = (struct access_total){.seen = 0};
    (void)snprintf(totals[at].count.rule, sizeof(totals[at].count.rule), "%s", rule);
    return &totals[at];
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return b > ACCESS_COUNT_MAX - a ? ACCESS_COUNT_MAX : a + b;
}

static void add_refused(struct access_counts *c, const char *rule, uint64_t n)
{
    struct access_total *t = n > 0 ? total_of(c, rule) : NULL;

    if (!t)
        return;
    t->count.refused = sum(t->count.refused, n);
    t->seq = ++c->seq;
}

static uint64_t packets_of(const json_t *json)
{
    json_int_t n = json_integer_value(json_object_get(json, "packets"));

    return n > 0 ? (uint64_t)n : 0;
}

void access_counts_begin(struct access_counts *c)
{
    for (size_t i = 0; i < c->n_totals; i++)
        c->totals[i].is_listed = false;
}

void access_counts_take_passed(struct access_counts *c, const char *rule, uint64_t packets)
{
    /* A rule that has let nothing in has no entry. */
    struct access_total *t = packets > 0 ? total_of(c, rule) : NULL;

    if (!t)
        return;
    t->is_listed = true;
    packets = growth(&t->seen, packets);
    if (packets == 0)
        return;
    t->count.passed = sum(t->count.passed, packets);
    t->seq = ++c->seq;
}

void access_counts_take_refused(struct access_counts *c, uint64_t packets)
{
    c->unsorted += (int64_t)growth(&c->seen, packets);
}

/* An end as the rules have it: a node, or an address. */
static struct rule_end end_of(const struct snapshot *s, const struct ip_addr *a)
{
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *n = &s->nodes.items[i]->node;

        if (ip_addr_equal(&n->address4, a) || ip_addr_equal(&n->address6, a))
            return (struct rule_end){.node = n};
    }
    return (struct rule_end){.address = *a};
}

static struct rule_service service_of(const struct access_kind *k)
{
    struct rule_service service = {
        .protocol = RULE_PROTOCOL_ANY, .first = k->port, .last = k->port};

    if (k->protocol == IPPROTO_TCP)
        service.protocol = RULE_PROTOCOL_TCP;
    else if (k->protocol == IPPROTO_UDP)
        service.protocol = RULE_PROTOCOL_UDP;
    else if (k->protocol == IPPROTO_ICMP || k->protocol == IPPROTO_ICMPV6)
        service.protocol = RULE_PROTOCOL_ICMP;
    return service;
}

/* The name of the job's rule that refuses what others allow, else of the first rule that names
 * both; "": none does. */
static const char *rule_between(const struct snapshot *s, const struct access_kind *k)
{
    const struct snapshot_list *rules = snapshot_list(s, &rule_kind);
    struct rule_end from = end_of(s, &k->from);
    struct rule_end to = end_of(s, &k->to);
    const struct rule_packet p = {.from = from, .to = to, .service = service_of(k)};
    struct rule_answer answer = rules_decide((const struct object *const *)rules->items, rules->n,
        s->network.isolation == ISOLATION_STRICT, &p);

    if (answer.is_allowed && answer.job)
        return answer.job->meta.name;
    for (size_t i = 0; i < rules->n; i++) {
        if (rule_names(rule_of(rules->items[i]), &from, &to))
            return rules->items[i]->meta.name;
    }
    return "";
}

static bool is_same_kind(const struct access_kind *a, const struct access_kind *b)
{
    return a->protocol == b->protocol && a->port == b->port && ip_addr_equal(&a->from, &b->from) &&
           ip_addr_equal(&a->to, &b->to);
}

/* The place of a new kind: one more, or that of the oldest. NULL: no memory. */
static struct access_kind *next_kind(struct access_counts *c)
{
    struct access_kind *oldest;

    if (!c->kinds)
        c->kinds = calloc(ACCESS_KINDS_MAX, sizeof(*c->kinds));
    if (!c->kinds)
        return NULL;
    if (c->n_kinds < ACCESS_KINDS_MAX)
        return &c->kinds[c->n_kinds++];
    oldest = c->kinds;
    for (size_t i = 1; i < c->n_kinds; i++)
        if (c->kinds[i].at < oldest->at)
            oldest = &c->kinds[i];
    return oldest;
}

static struct access_kind *kind_of(struct access_counts *c, const struct access_kind *like)
{
    struct access_kind *k = NULL;

    for (size_t i = 0; i < c->n_kinds; i++)
        if (is_same_kind(&c->kinds[i], like))
            return &c->kinds[i];
    k = next_kind(c);
    if (k)
        *k = *like;
    return k;
}

void access_counts_take_kind(struct access_counts *c, const struct access_kind *like,
    uint64_t packets, const struct snapshot *s, nsec_t now)
{
    struct access_kind *k = kind_of(c, like);

    packets = k ? growth(&k->seen, packets) : 0;
    if (packets == 0)
        return;
    k->at = now;
    k->pending = sum(k->pending, packets);
    c->unsorted -= (int64_t)packets;
    add_refused(c, rule_between(s, k), packets);
    if (k->seq != 0 && now - k->reported_at < ACCESS_REPORT_EACH)
        return;
    k->reported = k->pending;
    k->pending = 0;
    k->reported_at = now;
    k->seq = c->refusals = ++c->seq;
}

/* {"val": {"concat": ["10.42.0.2", "10.42.0.3", 6, 2300]}, "counter": {"packets": 5}}; of other
 * protocols than TCP and UDP without a port. */
static void take_element(
    struct access_counts *c, const json_t *element, const struct snapshot *s, nsec_t now)
{
    const json_t *key = json_object_get(json_object_get(element, "val"), "concat");
    struct access_kind like = {
        .protocol = (uint8_t)json_integer_value(json_array_get(key, 2)),
        .port = (uint16_t)json_integer_value(json_array_get(key, 3)),
    };
    const char *from = json_string_value(json_array_get(key, 0));
    const char *to = json_string_value(json_array_get(key, 1));

    if (from && to && ip_addr_parse(&like.from, from, NULL) == 0 &&
        ip_addr_parse(&like.to, to, NULL) == 0)
        access_counts_take_kind(c, &like, packets_of(json_object_get(element, "counter")), s, now);
}

void access_counts_take_sets(
    struct access_counts *c, const json_t *list, const struct snapshot *s, nsec_t now)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *set = json_object_get(json_array_get(list, i), "set");
        const json_t *elements = json_object_get(set, "elem");

        for (size_t k = 0; k < json_array_size(elements); k++)
            take_element(c, json_object_get(json_array_get(elements, k), "elem"), s, now);
    }
}

void access_counts_end(struct access_counts *c)
{
    for (size_t i = 0; i < c->n_totals; i++)
        if (!c->totals[i].is_listed)
            c->totals[i].seen = 0;
    /* A set may be full. */
    if (c->unsorted > 0) {
        add_refused(c, "", (uint64_t)c->unsorted);
        c->unsorted = 0;
    }
}

/* ---- reports -------------------------------------------------------------------------------- */

static void say_end(
    const struct snapshot *s, const struct ip_addr *a, char ret[static ACCESS_END_MAX])
{
    struct rule_end end = end_of(s, a);
    char text[IP_ADDR_TEXT_MAX];

    (void)snprintf(ret, ACCESS_END_MAX, "%.*s", NAME_MAX_LEN,
        end.node ? end.node->meta.name : ip_addr_format(a, text));
}

static void say_kind(
    const struct snapshot *s, const struct access_kind *k, struct access_refusal *ret)
{
    struct rule_service service = service_of(k);
    char text[RULE_TEXT_MAX];

    *ret = (struct access_refusal){.packets = k->reported};
    say_end(s, &k->from, ret->from);
    say_end(s, &k->to, ret->to);
    (void)snprintf(ret->service, sizeof(ret->service), "%s", rule_service_format(&service, text));
}

/* Something with a sequence number. */
struct change {
    uint64_t seq;
    const struct access_total *total; /* or */
    const struct access_kind *kind;
};

static int by_seq(const void *a, const void *b)
{
    const struct change *x = a;
    const struct change *y = b;

    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* All changes behind @known, the first ones first. */
static struct change *changes_behind(
    const struct access_counts *c, uint64_t known, nsec_t now, size_t *ret_n)
{
    struct change *all = calloc(c->n_totals + c->n_kinds + 1, sizeof(*all));
    size_t n = 0;

    for (size_t i = 0; all && i < c->n_totals; i++)
        if (c->totals[i].seq > known)
            all[n++] = (struct change){.seq = c->totals[i].seq, .total = &c->totals[i]};
    for (size_t i = 0; all && i < c->n_kinds; i++)
        if (c->kinds[i].seq > known && now - c->kinds[i].reported_at < ACCESS_REPORT_EACH)
            all[n++] = (struct change){.seq = c->kinds[i].seq, .kind = &c->kinds[i]};
    if (all)
        qsort(all, n, sizeof(*all), by_seq);
    *ret_n = n;
    return all;
}

bool access_counts_report(const struct access_counts *c, const struct snapshot *s, uint64_t known,
    nsec_t now, struct access_report *ret, uint64_t *ret_seq)
{
    size_t n = 0;
    struct change *all = c->seq > known ? changes_behind(c, known, now, &n) : NULL;

    *ret = (struct access_report){.n_rules = 0};
    for (size_t i = 0; all && i < n; i++) {
        const struct change *x = &all[i];

        if (x->total ? ret->n_rules == ACCESS_RULES_MAX : ret->n_refused == ACCESS_REFUSED_MAX)
            break;
        if (x->total)
            ret->rules[ret->n_rules++] = x->total->count;
        else
            say_kind(s, x->kind, &ret->refused[ret->n_refused++]);
        *ret_seq = x->seq;
    }
    free(all);
    return ret->n_rules + ret->n_refused > 0;
}

void access_counts_add_metrics(const struct access_counts *c, struct metrics *m)
{
    for (size_t i = 0; i < c->n_totals; i++) {
        const struct access_count *count = &c->totals[i].count;
        const char *const *labels = METRIC_LABELS(count->rule);

        if (count->rule[0] != '\0')
            metrics_add_labelled(m, METRIC_AGENT_RULE_PASSED, labels, (double)count->passed);
        metrics_add_labelled(m, METRIC_AGENT_RULE_REFUSED, labels, (double)count->refused);
    }
}
