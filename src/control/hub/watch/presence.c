/* presence.c - see presence.h. */
#include "hub/watch/presence.h"

#include "hub/model/model.h"
#include "hub/overlay/overlay.h"
#include "hub/watch/reports.h"
#include "hub/watch/watch.h"
#include "store/store.h"

/* How often all nodes are checked. */
#define LOOK_EACH (10 * NSEC_PER_SEC)

/* A session whose handshake is younger than this is in use: WireGuard makes a new one each 120 s.
 */
#define HANDSHAKE_FRESH (180 * NSEC_PER_SEC)

bool presence_has_session(const struct overlay_facts *facts, nsec_t now)
{
    return facts->handshake_at > 0 && now - facts->handshake_at < HANDSHAKE_FRESH;
}

/* When the node was heard last, monotonic time; 0: not recently. */
static nsec_t heard_at(const struct model_node *node, nsec_t now)
{
    nsec_t at = node->reported->seen_at > 0 && now - node->reported->seen_at < 2 * LOOK_EACH
                    ? node->reported->seen_at
                    : 0;
    struct overlay_facts facts = {0};

    if (watch_is_open(node))
        return now;
    if (overlay_read_facts(node, now, &facts) && facts.handshake_at > at &&
        presence_has_session(&facts, now))
        at = facts.handshake_at;
    return at;
}

/* Of several hubs any may hear a node, and writes in twice the usual time at the latest when it
 * did. So a node that was heard elsewhere in three times that is not away. The hubs' clocks may
 * differ a little. */
#define ELSEWHERE_TIMES 3

static void look_at(struct presence *p, const struct model_node *node, nsec_t now, int64_t wall_s)
{
    const struct node *spec = &node->spec;
    nsec_t at = spec->hub ? 0 : heard_at(node, now);
    int64_t wall_at = wall_s - (now - at) / NSEC_PER_SEC;
    bool is_heard_elsewhere =
        store_is_shared(p->model->store) && !spec->hub &&
        wall_s - node->reported->stored_at < ELSEWHERE_TIMES * reports_seen_each(node->net);
    char key[RECORD_KEY_MAX];

    if (spec->ephemeral && (at != 0 || is_heard_elsewhere))
        (void)store_keep(p->model->store,
            record_key(key, RECORD_NODE, spec->meta.network, spec->meta.name), now, NULL);
    if (at == 0)
        return;
    /* The wall-clock time of one handshake may differ by a second from call to call, by rounding.
     */
    if (at > node->reported->seen_at || wall_at > node->reported->heard.last_seen_at + 1)
        reports_seen(p->reports, node, at, wall_at);
}

void presence_tick(struct presence *p, nsec_t now, int64_t wall_s)
{
    if (now - p->looked_at < LOOK_EACH)
        return;
    p->looked_at = now;
    for (size_t i = 0; i < p->model->networks.n; i++) {
        const struct model_network *net = model_network_at(p->model, i);

        for (size_t k = 0; k < net->nodes.n; k++)
            look_at(p, model_node_at(net, k), now, wall_s);
    }
}
