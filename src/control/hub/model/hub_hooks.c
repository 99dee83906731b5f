/* hub_hooks.c - see hub_hooks.h. */
#include "hub/model/hub_hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "hub/model/model.h"

struct hub_node *hub_next_node(struct hub_network *net, struct hub_node *after)
{
    const struct keys *nodes = &model_network_of(net)->nodes;
    size_t i = after ? keys_lower(nodes, model_node_of(after)->keyed.key) + 1 : 0;

    return i < nodes->n ? &model_node_at(model_network_of(net), i)->pub : NULL;
}

bool hub_may_talk(const struct hub_node *a, const struct hub_node *b)
{
    return model_may_talk(model_node_of(a), model_node_of(b));
}

/* ---- metrics -------------------------------------------------------------------------------- */

struct hub_metrics {
    struct str text;
    char last[96]; /* the name whose help has been said */
};

void hub_metric(struct hub_metrics *m, enum hub_metric_type type, const char *name,
    const char *help, const char *labels, double value)
{
    const char *word = type == HUB_METRIC_COUNTER ? "counter" : "gauge";

    if (strcmp(m->last, name) != 0) {
        str_addf(&m->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, word);
        (void)snprintf(m->last, sizeof(m->last), "%s", name);
    }
    if (labels[0])
        str_addf(&m->text, "%s{%s} %.17g\n", name, labels, value);
    else
        str_addf(&m->text, "%s %.17g\n", name, value);
}

struct hub_metrics *hub_metrics_new(void)
{
    return calloc(1, sizeof(struct hub_metrics));
}

char *hub_metrics_finish(struct hub_metrics *m)
{
    char *text = str_take(&m->text, NULL);

    free(m);
    return text;
}
