/* peer_doubt.c - see peer_doubt.h. */
#include "agent/peer_doubt.h"

#include "agent/reconcile/observe.h"
#include "mesh/snapshot/snapshot.h"

/* Is that node one whose path this node finds, and has the engine it anywhere but on that? */
static bool is_elsewhere(
    const struct peer_doubt_facts *facts, const struct node *node, const struct observation **ret)
{
    *ret = node->side && !node->hub ? observe_find(facts->seen, &node->key) : NULL;
    return *ret && !endpoint_is_none(&(*ret)->endpoint) &&
           !facts->may_be_at(facts->ctx, node->meta.name, &(*ret)->endpoint);
}

bool peer_doubt_next(
    struct peer_doubt *pd, const struct peer_doubt_facts *facts, struct peer_doubt_wish *ret)
{
    const struct snapshot *s = facts->snapshot;

    while (pd->next < s->nodes.n) {
        const struct node *node = &s->nodes.items[pd->next++]->node;
        const struct observation *ob;

        if (!is_elsewhere(facts, node, &ob))
            continue;
        *ret = (struct peer_doubt_wish){.peer = ob, .node = node->meta.name};
        return true;
    }
    while (pd->next < s->nodes.n + facts->seen->n) {
        const struct observation *ob = &facts->seen->items[pd->next++ - s->nodes.n];

        if (!observation_is_silent(ob, facts->now))
            continue;
        *ret = (struct peer_doubt_wish){.peer = ob};
        return true;
    }
    pd->next = 0;
    return false;
}

void peer_doubt_log(struct peer_doubt *pd, const struct peer_doubt_wish *wish, nsec_t now)
{
    const struct endpoint *at = &wish->peer->endpoint;
    char text[ENDPOINT_TEXT_MAX];
    char key[X25519_BASE64_MAX];

    if (wish->node)
        log_limited(&pd->limit, now, LOG_LEVEL_INFO,
            "the engine sends to %s at %s, which is not its path: back to that", wish->node,
            endpoint_format(at, text));
    else
        log_limited(&pd->limit, now, LOG_LEVEL_INFO,
            "no answer from %s at %s, where it seemed to have moved: back to where it was",
            x25519_public_format(&wish->peer->key, key), endpoint_format(at, text));
}
