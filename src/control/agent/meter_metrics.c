/* meter_metrics.c - see meter_metrics.h. */
#include "agent/meter_metrics.h"

#include <inttypes.h>

#include "agent/meter.h"
#include "base/str.h"

enum metric { METRIC_BYTES, METRIC_N };

static const struct {
    const char *name;
    const char *type;
    const char *help;
    const char *labels; /* of each sample, for the documents */
} metrics[METRIC_N] = {
    [METRIC_BYTES] = {"weft_agent_traffic_bytes_total", "counter",
        "bytes of WireGuard's messages, by the other node; begins anew each day (UTC)",
        "peer, job, path, direction"},
};

static void add_sample(
    struct str *out, const struct traffic_flow *f, const char *direction, uint64_t bytes)
{
    /* Names have no character that would have to be escaped. */
    str_addf(out, "%s{peer=\"%s\",job=\"%s\",path=\"%s\",direction=\"%s\"} %" PRIu64 "\n",
        metrics[METRIC_BYTES].name, f->peer, f->job, path_kind_name(f->path), direction, bytes);
}

void meter_metrics_format(const struct meter *m, struct str *out)
{
    const struct traffic *day = m->n_days > 0 ? &m->days[m->n_days - 1] : NULL;

    str_addf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[METRIC_BYTES].name,
        metrics[METRIC_BYTES].help, metrics[METRIC_BYTES].name, metrics[METRIC_BYTES].type);
    for (size_t i = 0; day && i < day->n; i++) {
        /* Another meter is of before this node has lost its state. */
        if (day->flows[i].meter != m->id)
            continue;
        add_sample(out, &day->flows[i], "sent", day->flows[i].sent);
        add_sample(out, &day->flows[i], "received", day->flows[i].received);
    }
}
