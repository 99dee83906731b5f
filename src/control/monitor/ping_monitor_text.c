/* ping_monitor_text.c - see ping_monitor_text.h. */
#include "monitor/ping_monitor_text.h"

#include "base/metrics.h"
#include "base/table.h"

static const char *const family_names[] = {"ipv4", "ipv6"};

_Static_assert(
    sizeof(family_names) / sizeof(*family_names) == PING_MONITOR_FAMILY_N, "a name each");

const char *ping_monitor_family_name(enum ping_monitor_family f)
{
    return family_names[f];
}

/* ---- for people ----------------------------------------------------------------------------- */

static void add_reachability(struct table *t, const struct reachability *r, nsec_t now)
{
    if (r->state == REACHABILITY_REACHED)
        table_add(t, "%.1f ms", (double)r->rtt / NSEC_PER_MSEC);
    else
        table_add(t, "%s", r->state == REACHABILITY_SILENT ? "no answer" : "-");
    table_add(t, "%.1f %%", reachability_loss_permille(r, now) / 10.0);
}

void ping_monitor_format(const struct ping_monitor *p, nsec_t now, struct str *out)
{
    bool v6 = p->fd[PING_MONITOR_V6] >= 0;
    struct table t;

    table_init(&t, v6 ? 5 : 3);
    table_add(&t, "NODE");
    table_add(&t, "IPV4");
    table_add(&t, "LOSS");
    if (v6) {
        table_add(&t, "IPV6");
        table_add(&t, "LOSS");
    }
    for (size_t i = 0; i < p->n; i++) {
        table_add(&t, "%s", p->members[i].name);
        add_reachability(&t, &p->members[i].reach[PING_MONITOR_V4], now);
        if (v6)
            add_reachability(&t, &p->members[i].reach[PING_MONITOR_V6], now);
    }
    table_format(&t, out);
    table_deinit(&t);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *encode_reachability(
    const struct ping_monitor_member *m, enum ping_monitor_family f, nsec_t now)
{
    const struct reachability *r = &m->reach[f];
    char address[IP_ADDR_TEXT_MAX];

    return json_pack("{s:s, s:s, s:o, s:f, s:I, s:I, s:o}", "address",
        ip_addr_format(&m->address[f], address), "state", reachability_state_name(r->state),
        "rttMs", r->rtt > 0 ? json_real((double)r->rtt / NSEC_PER_MSEC) : json_null(), "loss",
        reachability_loss_permille(r, now) / 1000.0, "pings", (json_int_t)r->n_pings, "answers",
        (json_int_t)r->n_answers, "stateAgeSeconds",
        r->state_since > 0 ? json_integer((now - r->state_since) / NSEC_PER_SEC) : json_null());
}

json_t *ping_monitor_encode(const struct ping_monitor *p, nsec_t now)
{
    json_t *members = json_array();

    for (size_t i = 0; members && i < p->n; i++) {
        const struct ping_monitor_member *m = &p->members[i];
        json_t *json = json_pack("{s:s}", "name", m->name);

        for (unsigned f = 0; f < PING_MONITOR_FAMILY_N; f++)
            (void)json_object_set_new(json, family_names[f],
                p->fd[f] >= 0 ? encode_reachability(m, (enum ping_monitor_family)f, now)
                              : json_null());
        if (json_array_append_new(members, json) < 0)
            members = (json_decref(members), NULL);
    }
    return json_pack("{s:s, s:o}", "interface", p->interface, "members", members);
}

/* ---- metrics -------------------------------------------------------------------------------- */

void ping_monitor_add_metrics(const struct ping_monitor *p, struct metrics *m)
{
    for (size_t i = 0; i < p->n; i++)
        for (unsigned f = 0; f < PING_MONITOR_FAMILY_N; f++) {
            const char *const *labels = METRIC_LABELS(p->members[i].name, family_names[f]);
            const struct reachability *r = &p->members[i].reach[f];

            if (p->fd[f] < 0)
                continue;
            /* There is no line for a value that is not known. */
            if (r->state != REACHABILITY_UNKNOWN)
                metrics_add_labelled(
                    m, METRIC_PROBE_REACHED, labels, r->state == REACHABILITY_REACHED);
            if (r->rtt != 0)
                metrics_add_labelled(
                    m, METRIC_PROBE_RTT_SECONDS, labels, (double)r->rtt / NSEC_PER_SEC);
            metrics_add_labelled(m, METRIC_PROBE_PINGS, labels, (double)r->n_pings);
            metrics_add_labelled(m, METRIC_PROBE_ANSWERS, labels, (double)r->n_answers);
        }
}
