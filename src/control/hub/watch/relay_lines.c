/* relay_lines.c - see relay_lines.h. */
#include "hub/watch/relay_lines.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_own_hub(const struct model_node *node)
{
    return node == node->net->own;
}

/* What the two are called; false: not both are nodes of the network. */
static bool find_names(const struct model_network *net, const struct relay_pair *pair,
    const struct model_node *ret[static 2])
{
    for (unsigned i = 0; i < 2; i++) {
        ret[i] = model_find_key(net, &pair->keys[i]);
        if (!ret[i])
            return false;
    }
    return true;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_away(const struct relay_line_report *line, const struct relay_pair *pair)
{
    return line &&
           path_relay_notice_is_away(&line->notice, path_pair_tag(&pair->keys[0], &pair->keys[1]));
}

/* Tells of the pairs that are away by @in, and not by @out. */
static void tell(struct edge_events *events, const struct model_node *node,
    const struct relay_line_report *in, const struct relay_line_report *out,
    enum edge_event_kind kind, int64_t wall_s)
{
    const struct model_network *net = node->net;
    const char *relay = node->spec.meta.name;

    for (unsigned i = 0; in && i < in->n_pairs; i++) {
        const struct relay_pair *pair = &in->pairs[i].pair;
        const struct model_node *nodes[2];
        char name[OBJECT_NAME_MAX + 1];
        char text[EDGE_EVENT_TEXT_MAX];

        if (!in->pairs[i].is_away || is_away(out, pair) || !find_names(net, pair, nodes))
            continue;
        if (kind == EDGE_EVENT_ASKED_AWAY)
            (void)snprintf(text, sizeof(text),
                "the line of %s is full (%.1f of %.1f Mbit/s), and the pair is asked to go "
                "directly or through another relay",
                relay, (double)in->rate / 1e6, (double)in->capacity / 1e6);
        else
            (void)snprintf(text, sizeof(text),
                "the line of %s carries more again, and the pair may come back to it", relay);
        edge_events_add(events,
            &(struct edge_event){.kind = kind,
                .at = wall_s,
                .network = net->spec.meta.name,
                .object = edge_name(nodes[0]->spec.meta.name, nodes[1]->spec.meta.name, name),
                .text = text});
    }
}

void relay_lines_changed(struct edge_events *events, const struct model_node *node,
    const struct relay_line_report *before, const struct relay_line_report *now, int64_t wall_s)
{
    tell(events, node, now, before, EDGE_EVENT_ASKED_AWAY, wall_s);
    tell(events, node, before, now, EDGE_EVENT_LET_BACK, wall_s);
}

/* ---- findings -------------------------------------------------------------------------------- */

void relay_lines_facts(const struct model_node *node, struct line_facts *ret)
{
    const struct relay_line_report *line = node->reported->heard.report.line;

    *ret =
        (struct line_facts){.node = is_own_hub(node) ? NULL : node->spec.meta.name, .line = line};
    for (unsigned i = 0; i < line->n_pairs; i++) {
        const struct model_node *nodes[2];

        if (!find_names(node->net, &line->pairs[i].pair, nodes))
            continue;
        ret->pairs[ret->n_pairs++] =
            (struct line_pair){.nodes = {nodes[0]->spec.meta.name, nodes[1]->spec.meta.name},
                .rate = line->pairs[i].pair.rate,
                .is_away = line->pairs[i].is_away};
    }
}

/* ---- edges ----------------------------------------------------------------------------------- */

void relay_lines_asking(const struct model_network *net, struct relay_lines_asking *ret)
{
    ret->n = 0;
    for (size_t i = 0; i < net->nodes.n && ret->n < RELAY_LINES_ASKING_MAX; i++) {
        const struct model_node *node = model_node_at(net, i);
        const struct relay_line_report *line = node->reported->heard.report.line;

        if (line && line->notice.n_away > 0 && !node->reported->is_down &&
            (node->spec.relay || is_own_hub(node)))
            ret->items[ret->n++] = node;
    }
}

const struct model_node *relay_lines_asks(
    const struct relay_lines_asking *asking, const struct model_node *a, const struct model_node *b)
{
    uint64_t tag = asking->n > 0 ? path_pair_tag(&a->spec.key, &b->spec.key) : 0;

    for (unsigned i = 0; i < asking->n; i++)
        if (path_relay_notice_is_away(&asking->items[i]->reported->heard.report.line->notice, tag))
            return asking->items[i];
    return NULL;
}

/* ---- this hub's own -------------------------------------------------------------------------- */

/* Only what concerns the network: its own pairs, and whether the line is full. */
static void keep_own(struct relay_line_report *line, const struct model_network *net)
{
    unsigned n = 0;

    line->notice.n_away = 0;
    for (unsigned i = 0; i < line->n_pairs; i++) {
        const struct relay_reported_pair *pair = &line->pairs[i];
        const struct model_node *nodes[2];

        if (!find_names(net, &pair->pair, nodes))
            continue;
        if (pair->is_away)
            line->notice.away[line->notice.n_away++] =
                path_pair_tag(&pair->pair.keys[0], &pair->pair.keys[1]);
        line->pairs[n++] = *pair;
    }
    line->n_pairs = n;
}

bool hub_line_take(const struct relay_line *line, const struct model_network *net,
    struct edge_events *events, int64_t wall_s)
{
    struct relay_line_report *report;
    struct report *said;
    bool is_other;

    if (!line || !net->own)
        return false;
    report = calloc(1, sizeof(*report));
    if (!report)
        return false;
    said = &net->own->reported->heard.report;
    relay_line_tell(line, report);
    keep_own(report, net);
    /* Nodes may still know what an earlier run of this hub has told them. */
    is_other = !said->line || !path_relay_notice_equal(&said->line->notice, &report->notice);
    if (is_other)
        relay_lines_changed(events, net->own, said->line, report, wall_s);
    free(said->line);
    said->line = report;
    return is_other;
}

bool hub_line_is_busy(const struct relay_line *line)
{
    return line && line->level != RELAY_LINE_OPEN;
}

void hub_line_find(const struct model_network *net, struct findings *set, int64_t wall_s)
{
    struct line_facts facts;

    if (!net->own || !net->own->reported->heard.report.line)
        return;
    relay_lines_facts(net->own, &facts);
    line_find(&facts, set, wall_s);
}
