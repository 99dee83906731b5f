/* peer_doubt.c - see peer_doubt.h. */
#include "agent/peer_doubt.h"

#include "agent/paths/edge/path_driver.h"
#include "agent/reconcile/observe.h"
#include "agent/reconcile/reconcile.h"
#include "mesh/snapshot/snapshot.h"

/* Those whose paths this node finds. */
static bool doubt_found(struct peer_doubt *pd, const struct snapshot *s, const struct observe *seen,
    const struct path_driver *paths, struct reconcile *rc, nsec_t now)
{
    char text[ENDPOINT_TEXT_MAX];
    bool is_any = false;

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        const struct observation *ob = node->side ? observe_find(seen, &node->key) : NULL;

        if (!ob || node->hub || endpoint_is_none(&ob->endpoint) ||
            path_driver_is_relay_at(paths, node->meta.name, &ob->endpoint) ||
            !reconcile_doubt(rc, &ob->key, &ob->endpoint))
            continue;
        log_limited(&pd->limit, now, LOG_LEVEL_INFO,
            "the engine sends to %s at %s, which is not its path: back to that", node->meta.name,
            endpoint_format(&ob->endpoint, text));
        is_any = true;
    }
    return is_any;
}

static bool doubt_silent(
    struct peer_doubt *pd, const struct observe *seen, struct reconcile *rc, nsec_t now)
{
    char text[ENDPOINT_TEXT_MAX];
    char key[X25519_BASE64_MAX];
    bool is_any = false;

    for (size_t i = 0; i < seen->n; i++) {
        const struct observation *ob = &seen->items[i];

        if (!observation_is_silent(ob, now) || !reconcile_doubt(rc, &ob->key, &ob->endpoint))
            continue;
        log_limited(&pd->limit, now, LOG_LEVEL_INFO,
            "no answer from %s at %s, where it seemed to have moved: back to where it was",
            x25519_public_format(&ob->key, key), endpoint_format(&ob->endpoint, text));
        is_any = true;
    }
    return is_any;
}

bool peer_doubt_poll(struct peer_doubt *pd, const struct snapshot *s, const struct observe *seen,
    const struct path_driver *paths, struct reconcile *rc, nsec_t now)
{
    bool found = doubt_found(pd, s, seen, paths, rc, now);

    return doubt_silent(pd, seen, rc, now) || found;
}
