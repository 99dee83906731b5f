/* meter.c - see meter.h. */
#include "agent/meter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "base/metrics.h"
#include "mesh/object/fields.h"
#include "mesh/snapshot/snapshot.h"

/* How often what moves is reported while a job runs here; else it goes with other reports. */
#define JOB_EACH (15 * NSEC_PER_SEC)

/* Between two writes of the file, unless a job has ended. */
#define WRITE_EACH (10 * NSEC_PER_SEC)

/* Flows of one report. */
#define REPORT_MAX 64

/* ---- life ----------------------------------------------------------------------------------- */

void meter_deinit(struct meter *m)
{
    for (unsigned i = 0; i < m->n_days; i++)
        traffic_deinit(&m->days[i]);
    for (unsigned i = 0; i < m->n_jobs; i++)
        free(m->jobs[i].members);
    free(m->counters);
    *m = (struct meter){.id = 0};
}

/* ---- days ----------------------------------------------------------------------------------- */

static void drop_day(struct meter *m, unsigned i)
{
    traffic_deinit(&m->days[i]);
    m->n_days--;
    memmove(&m->days[i], &m->days[i + 1], (m->n_days - i) * sizeof(m->days[0]));
}

/* The day's sums; lends. Of too many days the oldest goes. */
static struct traffic *day_of(struct meter *m, int32_t day)
{
    unsigned i = 0;

    while (i < m->n_days && m->days[i].day < day)
        i++;
    if (i < m->n_days && m->days[i].day == day)
        return &m->days[i];
    if (m->n_days == METER_DAYS_MAX) {
        drop_day(m, 0);
        i -= i > 0;
    }
    memmove(&m->days[i + 1], &m->days[i], (m->n_days - i) * sizeof(m->days[0]));
    m->days[i] = (struct traffic){.day = day};
    m->n_days++;
    return &m->days[i];
}

void meter_forget(struct meter *m, uint64_t above, int64_t wall_s)
{
    int32_t today = traffic_day(wall_s);

    while (m->n_days > 0 && m->days[0].day < today - 1) {
        for (size_t i = 0; i < m->days[0].n; i++)
            if (m->days[0].flows[i].is_changed || m->days[0].flows[i].seq > above)
                return;
        drop_day(m, 0);
    }
}

/* ---- jobs ----------------------------------------------------------------------------------- */

struct meter_job *meter_job_find(struct meter *m, const char *job)
{
    for (unsigned i = 0; i < m->n_jobs; i++)
        if (strcmp(m->jobs[i].name, job) == 0)
            return &m->jobs[i];
    return NULL;
}

void meter_job_begin(struct meter *m, const char *job)
{
    struct meter_job *known = meter_job_find(m, job);

    if (known) {
        known->n_runs++;
    } else if (m->n_jobs < METER_JOBS_MAX) {
        struct meter_job *j = &m->jobs[m->n_jobs++];

        *j = (struct meter_job){.n_runs = 1};
        (void)snprintf(j->name, sizeof(j->name), "%s", job);
    }
}

void meter_job_end(struct meter *m, const char *job)
{
    struct meter_job *known = meter_job_find(m, job);

    if (!known || --known->n_runs > 0)
        return;
    free(known->members);
    *known = m->jobs[--m->n_jobs];
}

void meter_job_members(struct meter_job *job, const json_t *names)
{
    size_t len = 0;
    char *members;

    for (size_t i = 0; i < json_array_size(names); i++)
        len += json_string_length(json_array_get(names, i)) + 1;
    members = malloc(len + 1);
    if (!members)
        return;
    len = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        size_t n = name ? strlen(name) + 1 : 0;

        if (name)
            memcpy(members + len, name, n);
        len += n;
    }
    free(job->members);
    job->members = members;
    job->len = len;
}

static bool is_member(const struct meter_job *job, const char *node)
{
    for (size_t i = 0; i < job->len; i += strlen(job->members + i) + 1)
        if (strcmp(job->members + i, node) == 0)
            return true;
    return false;
}

json_t *meter_jobs_encode(const struct meter *m)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < m->n_jobs; i++) {
        const struct meter_job *job = &m->jobs[i];
        json_t *nodes = json_array();

        for (size_t at = 0; at < job->len; at += strlen(job->members + at) + 1)
            (void)json_array_append_new(nodes, json_string(job->members + at));
        (void)json_array_append_new(
            list, json_pack("{s:s, s:o}", "job", job->name, "nodes", nodes));
    }
    return list;
}

/* The jobs of the edge to that node. */
static unsigned jobs_of(
    const struct meter *m, const char *node, const char *ret[static METER_JOBS_MAX])
{
    unsigned n = 0;

    for (unsigned i = 0; i < m->n_jobs; i++)
        if (is_member(&m->jobs[i], node))
            ret[n++] = m->jobs[i].name;
    return n;
}

/* ---- counting ------------------------------------------------------------------------------- */

static int compare_counters(const void *a, const void *b)
{
    const struct meter_counter *x = a;
    const struct meter_counter *y = b;

    return x25519_public_compare(&x->key, &y->key);
}

static const struct meter_counter *find_counter(
    const struct meter *m, const struct x25519_public *key)
{
    struct meter_counter wanted = {.key = *key};

    return m->counters ? bsearch(&wanted, m->counters, m->n_counters, sizeof(*m->counters),
                             compare_counters)
                       : NULL;
}

/* The engine counts on when a node goes on with its next key. */
static const struct meter_counter *find_counter_of(const struct meter *m, const struct node *node)
{
    const struct meter_counter *found = find_counter(m, &node->key);

    if (!found && node->keys)
        found = find_counter(m, &node->keys->other);
    if (!found && node->keys)
        found = find_counter(m, &node->keys->former);
    return found;
}

/* By how much a counter has grown. One that is less than before has begun at 0 meanwhile. */
static uint64_t growth(uint64_t before, uint64_t now)
{
    return now >= before ? now - before : now;
}

/* Of nobody's path it is known only that bytes were sent; they went to where the peer was last. */
static enum path_kind path_to(
    const struct meter_facts *facts, const struct node *node, const struct reach_peer *peer)
{
    if (node->hub)
        return facts->is_streamed ? PATH_KIND_STREAM : PATH_KIND_DIRECT;
    return peer && peer->kind != PATH_KIND_NONE ? peer->kind : PATH_KIND_DIRECT;
}

/* Add to the day's sums; what does not divide goes to the first job. */
static int add_bytes(struct meter *m, struct traffic *day, const char *node, enum path_kind path,
    uint64_t sent, uint64_t received)
{
    const char *jobs[METER_JOBS_MAX] = {""};
    unsigned n = jobs_of(m, node, jobs);
    unsigned n_parts = n > 0 ? n : 1;

    for (unsigned i = 0; i < n_parts; i++) {
        struct traffic_flow *flow = traffic_at(day, m->id, node, jobs[i], path);

        if (!flow)
            return -ENOMEM;
        traffic_add(flow, sent / n_parts + (i == 0 ? sent % n_parts : 0),
            received / n_parts + (i == 0 ? received % n_parts : 0));
        flow->is_changed = true;
    }
    return 0;
}

/* Return: the counters up to which the peer's bytes are counted. */
static struct meter_counter look_at(struct meter *m, const struct meter_facts *facts,
    struct traffic *day, const struct node *node, const struct observation *ob)
{
    const struct meter_counter *before = find_counter_of(m, node);
    struct meter_counter zero = {.key = node->key};
    struct meter_counter now = {
        .key = node->key, .sent = ob->facts.tx_bytes, .received = ob->facts.rx_bytes};
    uint64_t sent = growth(before ? before->sent : 0, now.sent);
    uint64_t received = growth(before ? before->received : 0, now.received);

    if (!m->has_counters || (sent == 0 && received == 0))
        return now;
    if (add_bytes(m, day, node->meta.name,
            path_to(facts, node, reach_find(facts->reach, node->meta.name)), sent, received) == 0)
        return now;
    /* Without memory for it, the next look counts it. */
    if (before) {
        zero.sent = before->sent;
        zero.received = before->received;
    }
    return zero;
}

int meter_look(struct meter *m, const struct meter_facts *facts)
{
    size_t n = facts->snapshot->nodes.n;
    struct meter_counter *counters = m->id != 0 ? calloc(n + 1, sizeof(*counters)) : NULL;
    struct traffic *day;
    size_t n_counters = 0;

    if (!counters)
        return m->id != 0 ? -ENOMEM : 0;
    day = day_of(m, traffic_day(facts->wall_s));
    for (size_t i = 0; i < n; i++) {
        const struct node *node = &facts->snapshot->nodes.items[i]->node;
        const struct observation *ob = observe_find(facts->seen, &node->key);

        if (ob && (ob->facts.tx_bytes > 0 || ob->facts.rx_bytes > 0))
            counters[n_counters++] = look_at(m, facts, day, node, ob);
    }
    qsort(counters, n_counters, sizeof(*counters), compare_counters);
    free(m->counters);
    m->counters = counters;
    m->n_counters = n_counters;
    m->has_counters = true;
    return 0;
}

bool meter_settle(struct meter *m)
{
    bool has_changed = false;

    for (unsigned d = 0; d < m->n_days; d++)
        for (size_t i = 0; i < m->days[d].n; i++) {
            struct traffic_flow *flow = &m->days[d].flows[i];

            if (!flow->is_changed)
                continue;
            flow->is_changed = false;
            flow->seq = ++m->seq;
            has_changed = true;
        }
    return has_changed;
}

/* ---- reports -------------------------------------------------------------------------------- */

/* A flow that is to be told. */
struct unreported {
    const struct traffic_flow *flow; /* borrowed */
    unsigned day;                    /* index */
};

static int by_seq(const void *a, const void *b)
{
    const struct unreported *x = a;
    const struct unreported *y = b;

    return x->flow->seq < y->flow->seq ? -1 : x->flow->seq > y->flow->seq;
}

/* All flows above @above, in the order of their numbers; free(). NULL: no memory. */
static struct unreported *collect(const struct meter *m, uint64_t above, size_t *ret_n)
{
    size_t n = 0;
    struct unreported *all;

    for (unsigned d = 0; d < m->n_days; d++)
        n += m->days[d].n;
    all = calloc(n + 1, sizeof(*all));
    n = 0;
    for (unsigned d = 0; all && d < m->n_days; d++)
        for (size_t i = 0; i < m->days[d].n; i++)
            if (m->days[d].flows[i].seq > above)
                all[n++] = (struct unreported){.flow = &m->days[d].flows[i], .day = d};
    if (all)
        qsort(all, n, sizeof(*all), by_seq);
    *ret_n = n;
    return all;
}

json_t *meter_report(const struct meter *m, uint64_t above, uint64_t *ret_up_to, bool *ret_more)
{
    size_t n;
    struct unreported *all = collect(m, above, &n);
    struct traffic part = {.n = 0};
    json_t *json = NULL;
    size_t k = 0;

    *ret_up_to = above;
    *ret_more = false;
    part.flows = all && n > 0 ? calloc(REPORT_MAX, sizeof(*part.flows)) : NULL;
    if (part.flows) {
        part.day = m->days[all[0].day].day;
        while (k < n && k < REPORT_MAX && all[k].day == all[0].day)
            part.flows[part.n++] = *all[k++].flow;
        json = traffic_encode(&part);
    }
    if (json) {
        *ret_up_to = all[k - 1].flow->seq;
        *ret_more = k < n;
    }
    free(part.flows);
    free(all);
    return json;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

json_t *meter_encode(const struct meter *m)
{
    json_t *days = json_array();
    json_t *counters = json_object();
    char key[X25519_BASE64_MAX];

    for (unsigned i = 0; i < m->n_days; i++)
        (void)json_array_append_new(days, traffic_encode(&m->days[i]));
    for (size_t i = 0; i < m->n_counters; i++)
        (void)json_object_set_new(counters, x25519_public_format(&m->counters[i].key, key),
            json_pack(
                "[I, I]", (json_int_t)m->counters[i].sent, (json_int_t)m->counters[i].received));
    return json_pack(
        "{s:I, s:o, s:o}", "meter", (json_int_t)m->id, "days", days, "counters", counters);
}

static int decode_counter(
    struct meter *m, const char *text, const json_t *json, const char *where, struct err *e)
{
    struct meter_counter *c = &m->counters[m->n_counters];
    json_int_t sent = json_integer_value(json_array_get(json, 0));
    json_int_t received = json_integer_value(json_array_get(json, 1));

    if (x25519_public_parse(&c->key, text, NULL) != 0)
        return err_set(e, -EINVAL, "%s: \"%.60s\" is no public key", where, text);
    if (json_array_size(json) != 2 || sent < 0 || received < 0)
        return err_set(
            e, -EINVAL, "%s: the counters of \"%.60s\" are not two numbers", where, text);
    c->sent = (uint64_t)sent;
    c->received = (uint64_t)received;
    m->n_counters++;
    return 0;
}

static int decode_counters(
    struct meter *m, const json_t *counters, const char *where, struct err *e)
{
    const char *text;
    json_t *json;
    int r = 0;

    m->counters = calloc(json_object_size(counters) + 1, sizeof(*m->counters));
    if (!m->counters)
        return err_set(e, -ENOMEM, "no memory for the meter");
    json_object_foreach((json_t *)counters, text, json)
        if (r == 0)
            r = decode_counter(m, text, json, where, e);
    qsort(m->counters, m->n_counters, sizeof(*m->counters), compare_counters);
    m->has_counters = true;
    return r;
}

static int decode_day(struct meter *m, const json_t *json, const char *where, struct err *e)
{
    struct traffic *t = &m->days[m->n_days];
    int r = traffic_decode(t, json, where, e);

    if (r != 0)
        return r;
    m->n_days++;
    if (m->n_days > 1 && t[-1].day >= t->day)
        return err_set(e, -EINVAL, "%s: the days are not in order", where);
    /* All of it is to be told once more: which hub has it is not in the file. */
    for (size_t i = 0; i < t->n; i++)
        t->flows[i].seq = ++m->seq;
    return 0;
}

int meter_decode(struct meter *ret, const json_t *json, const char *where, struct err *e)
{
    struct meter m = {.id = 0};
    struct fields f = fields_make(json, where, e);
    const json_t *days = fields_array(&f, "days", FIELDS_REQUIRED, 0, METER_DAYS_MAX);
    const json_t *counters = fields_object(&f, "counters", FIELDS_REQUIRED);
    int r;

    fields_u64(&f, "meter", FIELDS_REQUIRED, 1, INT64_MAX, &m.id);
    r = fields_end(&f);
    for (size_t i = 0; r == 0 && i < json_array_size(days); i++)
        r = decode_day(&m, json_array_get(days, i), where, e);
    if (r == 0)
        r = decode_counters(&m, counters, where, e);
    if (r == 0)
        *ret = m;
    else
        meter_deinit(&m);
    return r;
}

/* ---- metrics -------------------------------------------------------------------------------- */

void meter_add_metrics(const struct meter *m, struct metrics *out)
{
    const struct traffic *day = m->n_days > 0 ? &m->days[m->n_days - 1] : NULL;

    for (size_t i = 0; day && i < day->n; i++) {
        const struct traffic_flow *f = &day->flows[i];
        const char *path = path_kind_names[f->path];

        /* Another meter is of before this node has lost its state. */
        if (f->meter != m->id)
            continue;
        metrics_add_labelled(out, METRIC_AGENT_TRAFFIC_BYTES,
            METRIC_LABELS(f->peer, f->job, path, "sent"), (double)f->sent);
        metrics_add_labelled(out, METRIC_AGENT_TRAFFIC_BYTES,
            METRIC_LABELS(f->peer, f->job, path, "received"), (double)f->received);
    }
}

/* ---- the file ------------------------------------------------------------------------------- */

void node_meter_open(struct node_meter *nm, const char *dir, uint64_t id)
{
    struct err e = ERR_NULL;
    json_t *json = NULL;
    int r = state_read_traffic(&json, dir, &e);

    *nm = (struct node_meter){.dir = dir};
    if (r == 0)
        r = meter_decode(&nm->meter, json, "traffic.json", &e);
    json_decref(json);
    if (r == 0)
        return;
    if (r < 0) {
        nm->is_damaged = true;
        log_error("%s; it is left as it is, and what is counted is not kept until it is removed",
            err_text(&e));
    }
    /* 53 bits: more are not exact as a number in JSON. */
    nm->meter = (struct meter){.id = id >> 11 | 1};
}

static void write_sums(struct node_meter *nm, nsec_t now)
{
    struct err e = ERR_NULL;

    if (nm->is_damaged)
        return;
    if (state_write_traffic(meter_encode(&nm->meter), nm->dir, &e) != 0)
        log_limited(&nm->limit, now, LOG_LEVEL_WARNING,
            "what this node has moved is not kept, trying again: %s", err_text(&e));
}

static void settle_and_write(struct node_meter *nm, nsec_t now)
{
    nm->settled_at = now;
    if (meter_settle(&nm->meter))
        write_sums(nm, now);
}

void node_meter_close(struct node_meter *nm, bool is_kept, nsec_t now)
{
    if (nm->meter.id != 0 && is_kept)
        settle_and_write(nm, now);
    meter_deinit(&nm->meter);
}

void node_meter_look(struct node_meter *nm, const struct meter_facts *facts, nsec_t now)
{
    if (meter_look(&nm->meter, facts) != 0)
        log_limited(&nm->limit, now, LOG_LEVEL_WARNING, "no memory to count what this node moves");
}

void node_meter_settle(struct node_meter *nm, nsec_t now)
{
    if (nm->is_urgent || nm->settled_at == 0 || now - nm->settled_at >= WRITE_EACH)
        settle_and_write(nm, now);
    nm->is_urgent = false;
}

bool node_meter_is_due(const struct node_meter *nm, nsec_t now)
{
    return nm->is_urgent || (nm->meter.n_jobs > 0 && now - nm->settled_at >= JOB_EACH);
}
