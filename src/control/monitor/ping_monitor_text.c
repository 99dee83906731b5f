/* ping_monitor_text.c - see ping_monitor_text.h. */
#include "monitor/ping_monitor_text.h"

#include <inttypes.h>

#include "base/str.h"
#include "base/table.h"

static const char *const family_names[] = {"ipv4", "ipv6"};

_Static_assert(sizeof(family_names) / sizeof(*family_names) == LOOKOUT_FAMILY_N, "a name each");

const char *lookout_family_name(enum lookout_family f)
{
    return family_names[f];
}

/* ---- for people ----------------------------------------------------------------------------- */

static void add_edge(struct table *t, const struct edge *e, nsec_t now)
{
    if (e->state == EDGE_REACHED)
        table_add(t, "%.1f ms", (double)e->rtt / NSEC_PER_MSEC);
    else
        table_add(t, "%s", e->state == EDGE_SILENT ? "no answer" : "-");
    table_add(t, "%.1f %%", edge_loss_permille(e, now) / 10.0);
}

void lookout_format(const struct lookout *l, nsec_t now, struct str *out)
{
    bool v6 = l->fd[LOOKOUT_V6] >= 0;
    struct table t;

    table_init(&t, v6 ? 5 : 3);
    table_add(&t, "NODE");
    table_add(&t, "IPV4");
    table_add(&t, "LOSS");
    if (v6) {
        table_add(&t, "IPV6");
        table_add(&t, "LOSS");
    }
    for (size_t i = 0; i < l->n; i++) {
        table_add(&t, "%s", l->members[i].name);
        add_edge(&t, &l->members[i].edge[LOOKOUT_V4], now);
        if (v6)
            add_edge(&t, &l->members[i].edge[LOOKOUT_V6], now);
    }
    table_format(&t, out);
    table_deinit(&t);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *encode_edge(const struct lookout_member *m, enum lookout_family f, nsec_t now)
{
    const struct edge *e = &m->edge[f];
    char address[IP_ADDR_TEXT_MAX];

    return json_pack("{s:s, s:s, s:o, s:f, s:I, s:I, s:o}", "address",
        ip_addr_format(&m->address[f], address), "state", edge_state_name(e->state), "rttMs",
        e->rtt > 0 ? json_real((double)e->rtt / NSEC_PER_MSEC) : json_null(), "loss",
        edge_loss_permille(e, now) / 1000.0, "pings", (json_int_t)e->n_pings, "answers",
        (json_int_t)e->n_answers, "stateAgeSeconds",
        e->since > 0 ? json_integer((now - e->since) / NSEC_PER_SEC) : json_null());
}

json_t *lookout_encode(const struct lookout *l, nsec_t now)
{
    json_t *members = json_array();

    for (size_t i = 0; members && i < l->n; i++) {
        const struct lookout_member *m = &l->members[i];
        json_t *json = json_pack("{s:s}", "name", m->name);

        for (unsigned f = 0; f < LOOKOUT_FAMILY_N; f++)
            (void)json_object_set_new(json, family_names[f],
                l->fd[f] >= 0 ? encode_edge(m, (enum lookout_family)f, now) : json_null());
        if (json_array_append_new(members, json) < 0)
            members = (json_decref(members), NULL);
    }
    return json_pack("{s:s, s:o}", "interface", l->interface, "members", members);
}

/* ---- metrics -------------------------------------------------------------------------------- */

enum metric { METRIC_REACHED, METRIC_RTT, METRIC_PINGS, METRIC_ANSWERS, METRIC_N };

static const struct {
    const char *name;
    const char *type;
    const char *help;
} metrics[METRIC_N] = {
    [METRIC_REACHED] = {"weft_probe_reached", "gauge",
        "1: the member answers pings, 0: it does not"},
    [METRIC_RTT] = {"weft_probe_rtt_seconds", "gauge", "round trip of the last answer"},
    [METRIC_PINGS] = {"weft_probe_pings_total", "counter", "pings sent"},
    [METRIC_ANSWERS] = {"weft_probe_answers_total", "counter", "pings answered"},
};

static void add_value(struct str *out, enum metric which, const struct edge *e)
{
    switch (which) {
    case METRIC_REACHED:
        str_addf(out, "%d\n", e->state == EDGE_REACHED);
        return;
    case METRIC_RTT:
        str_addf(out, "%.6f\n", (double)e->rtt / NSEC_PER_SEC);
        return;
    case METRIC_PINGS:
        str_addf(out, "%" PRIu64 "\n", e->n_pings);
        return;
    case METRIC_ANSWERS:
        str_addf(out, "%" PRIu64 "\n", e->n_answers);
        return;
    case METRIC_N:
        return;
    }
}

static void add_metric(struct str *out, enum metric which, const struct lookout *l)
{
    str_addf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[which].name, metrics[which].help,
        metrics[which].name, metrics[which].type);
    for (size_t i = 0; i < l->n; i++) {
        for (unsigned f = 0; f < LOOKOUT_FAMILY_N; f++) {
            const struct edge *e = &l->members[i].edge[f];

            /* Of what is not known nothing is said. */
            if (l->fd[f] < 0 || (which == METRIC_REACHED && e->state == EDGE_UNKNOWN) ||
                (which == METRIC_RTT && e->rtt == 0))
                continue;
            str_addf(out, "%s{node=\"%s\",family=\"%s\"} ", metrics[which].name, l->members[i].name,
                family_names[f]);
            add_value(out, which, e);
        }
    }
}

void lookout_format_metrics(const struct lookout *l, struct str *out)
{
    for (unsigned i = 0; i < METRIC_N; i++)
        add_metric(out, (enum metric)i, l);
}
