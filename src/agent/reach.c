/* reach.c - see reach.h. */
#include "agent/reach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void reach_deinit(struct reach *p)
{
    free(p->items);
    *p = (struct reach)REACH_NULL;
}

static int compare(const void *name, const void *path)
{
    return strcmp(name, ((const struct reach_peer *)path)->node);
}

const struct reach_peer *reach_find(const struct reach *p, const char *node)
{
    return p->n > 0 ? bsearch(node, p->items, p->n, sizeof(*p->items), compare) : NULL;
}

static struct reach_peer judge(
    const struct render_input *in, const struct node *node, bool hub_heard, const char *stream_why)
{
    struct render_decision decision =
        render_decide(in->snapshot, node, render_find_path(in, node->meta.name));
    struct reach_peer path = {.why = decision.why};

    (void)snprintf(path.node, sizeof(path.node), "%.*s", NAME_MAX_LEN, node->meta.name);
    switch (decision.route) {
    case RENDER_ROUTE_RELAY:
        if (hub_heard)
            path.kind = stream_why ? PATH_KIND_STREAM : PATH_KIND_RELAY;
        if (hub_heard && stream_why)
            path.why = stream_why;
        if (!hub_heard)
            path.why = "the hub does not answer, and packets to this peer go through it";
        break;
    case RENDER_ROUTE_DIRECT:
        path.kind = PATH_KIND_DIRECT;
        break;
    case RENDER_ROUTE_NONE:
    case RENDER_ROUTE_N:
        break;
    }
    return path;
}

int reach_take(struct reach *p, const struct render_input *in, bool hub_heard,
    const char *stream_why, nsec_t now)
{
    const struct snapshot *s = in->snapshot;
    struct reach_peer *items = calloc(s->nodes.n + 1, sizeof(*items));
    size_t n = 0;

    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        const struct reach_peer *before = reach_find(p, node->meta.name);

        if (node->hub || strcmp(node->meta.name, s->self) == 0)
            continue;
        items[n] = judge(in, node, hub_heard, stream_why);
        items[n].since = before && before->kind == items[n].kind ? before->since : now;
        n++;
    }
    free(p->items);
    p->items = items;
    p->n = n;
    return 0;
}
