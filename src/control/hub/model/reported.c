/* reported.c - see reported.h. */
#include "reported.h"

/* For how long what a node has reported to this hub counts for more than what it has reported to
 * another one. */
#define HEARD_HERE_FOR 60 /* s */

void reported_count_edges(struct reported_node *r)
{
    const struct edge_parts *said = &r->heard.report.edges;
    const struct edge_parts *probed = &r->heard.probed;
    struct reported_counts c = {.alarms = 0};

    for (size_t i = 0; i < said->n; i++) {
        const struct edge_said *s = &said->items[i]->said;

        if (s->path < PATH_KIND_N)
            c.by_path[s->path]++;
        c.alarms += s->is_alarm;
        c.fallen += s->fell_at != 0;
        c.failing += s->error != NULL;
    }
    for (size_t i = 0; i < probed->n; i++)
        c.unreached += probed->items[i]->probed.tunnel == EDGE_REACH_SILENT;
    r->counts = c;
}

/* The record of a node that reports to this hub as well: @heard says no more than is known here. */
static bool is_heard_here(struct reported_node *r, const struct report_record *heard)
{
    if (r->heard_here_at == 0 || heard->last_seen_at - r->heard_here_at >= HEARD_HERE_FOR)
        return false;
    if (heard->last_seen_at > r->heard.last_seen_at)
        r->heard.last_seen_at = heard->last_seen_at;
    return true;
}

enum reported_result reported_read(
    struct reported_node *r, struct report_record *heard, uint64_t revision, uint64_t boot)
{
    bool is_other;

    r->stored_at = heard->last_seen_at;
    r->stored_revision = revision;
    if (heard->by != boot)
        r->only_enrolled_at = 0;
    /* What is not saved yet is newer than what is. Of what this hub has written, and of a node that
     * it hears itself, there is more in memory. */
    if (r->is_unsaved || (heard->by != 0 && heard->by == boot && r->reported_at != 0) ||
        is_heard_here(r, heard)) {
        report_record_deinit(heard);
        return REPORTED_KNOWN;
    }
    is_other = report_is_seen_otherwise(&r->heard.report, &heard->report);
    report_record_deinit(&r->heard);
    r->heard = *heard;
    r->reported_at = heard->has_reported ? heard->last_seen_at : 0;
    reported_count_edges(r);
    for (unsigned o = 0; o < EDGE_OWNER_N; o++)
        r->said[o] = (struct edge_sequence){.run = 0};
    return is_other ? REPORTED_UPDATES : REPORTED_TAKEN;
}
