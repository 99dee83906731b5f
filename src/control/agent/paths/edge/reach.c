/* reach.c - see reach.h. */
#include "agent/paths/edge/reach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/reconcile/observe.h"

/* A direct path that has died takes with it all that the peer's machine would answer: of the
 * handshakes that are then begun each second some would have been answered by now. */
#define DEAF_AFTER_DEATH (10 * NSEC_PER_SEC)

void reach_deinit(struct reach *r)
{
    free(r->items);
    *r = (struct reach){0};
}

static int compare_reach(const void *name, const void *path)
{
    return strcmp(name, ((const struct reach_peer *)path)->node);
}

const struct reach_peer *reach_find(const struct reach *r, const char *node)
{
    return r->n > 0 ? bsearch(node, r->items, r->n, sizeof(*r->items), compare_reach) : NULL;
}

static void apply_rule(struct reach_peer *peer, const struct render_decision *decision,
    const struct render_path *found, const struct reach_facts *facts)
{
    bool hub_heard = facts->hub_heard;
    const char *stream_why = facts->stream_why;
    bool is_other = found && found->via[0] != '\0'; /* than the hub */
    const char *why = decision->why;

    switch (decision->route) {
    case RENDER_ROUTE_RELAY:
        if (is_other)
            peer->kind = PATH_KIND_RELAY;
        else if (hub_heard)
            peer->kind = stream_why ? PATH_KIND_STREAM : PATH_KIND_RELAY;
        if (!is_other && hub_heard && stream_why)
            why = stream_why;
        peer->awaits_hub = !is_other && !hub_heard;
        if (peer->awaits_hub)
            why = "the hub does not answer, and packets to this peer go through it";
        break;
    case RENDER_ROUTE_DIRECT:
        peer->kind = PATH_KIND_DIRECT;
        break;
    case RENDER_ROUTE_NONE:
    case RENDER_ROUTE_N:
        break;
    }
    (void)snprintf(peer->why, sizeof(peer->why), "%s", why);
}

/* Who looks for paths knows more than the rule does. */
static void apply_found(
    struct reach_peer *peer, const struct path_view *view, enum render_route route)
{
    peer->is_measured = view->rtt != 0;
    peer->rtt = view->rtt;
    peer->least_rtt = view->least_rtt;
    peer->spread = view->spread;
    peer->longer = view->longer;
    /* What a relay loses is not measured. */
    peer->has_loss = view->rtt != 0 && view->kind != PATH_KIND_RELAY &&
                     view->kind != PATH_KIND_STREAM && view->kind != PATH_KIND_NONE;
    peer->loss_permille = view->loss_permille;
    peer->lost_lately_permille = view->lost_lately_permille;
    peer->answered_at = view->answered_at;
    peer->is_alarm = view->is_alarm;
    peer->is_relay_better = view->is_relay_better;
    if (view->died_at != 0 && !view->is_better &&
        (view->kind == PATH_KIND_RELAY || view->kind == PATH_KIND_STREAM))
        peer->fell_back_at = view->died_at;
    /* The edge may be direct only: the rule says what else could be done. */
    if (route == RENDER_ROUTE_NONE && view->why[0] != '\0') {
        (void)snprintf(peer->why, sizeof(peer->why),
            "the edge is set to direct, and %.200s; set to auto it is relayed meanwhile",
            view->why);
        return;
    }
    if (peer->kind == PATH_KIND_NONE || view->kind == PATH_KIND_NONE)
        return;
    /* Who looks for paths knows nothing of streams: to it that is the relay. */
    if (peer->kind == PATH_KIND_STREAM && view->kind == PATH_KIND_RELAY)
        return;
    peer->kind = view->kind;
    /* The engine sends to this machine's own end of that socket. */
    if (view->socket != PATH_SOCKET_MAIN)
        peer->remote = view->remote;
    if (view->why[0] != '\0' || view->kind == PATH_KIND_LAN || view->kind == PATH_KIND_DIRECT)
        memcpy(peer->why, view->why, sizeof(peer->why));
}

/* A mesh demands direct paths, and this peer's agent does not say yet where it may be reached. One
 * without an agent never will, and is relayed without an alarm. */
static bool is_mute_in_mesh(
    const struct snapshot *s, const struct node *node, enum render_route route)
{
    const struct mesh_edge *edge = snapshot_find_edge(s, s->self, node->meta.name);

    return s->network.topology == TOPOLOGY_MESH && node_has_agent(node) && !node->side &&
           route == RENDER_ROUTE_RELAY && (!edge || edge->path == EDGE_PATH_AUTO);
}

/* Nothing answers, so nothing that was measured holds any more. */
static void forget_measured(struct reach_peer *peer)
{
    peer->is_measured = peer->has_loss = false;
    peer->spread = (struct rtt_spread){.samples = 0};
    peer->longer = (struct rtt_longer){.since = 0};
}

/* Whether it answers, as the engine shows it. What both ends have measured of their ways to a relay
 * says nothing of that. */
static void apply_seen(struct reach_peer *peer, const struct observe *seen,
    const struct x25519_public *key, nsec_t died_at, nsec_t now)
{
    const struct observation *ob = observe_find(seen, key);
    bool has_died = ob && died_at != 0 && ob->unanswered_since >= died_at;

    peer->silent_since =
        observation_deaf_since(ob, has_died ? DEAF_AFTER_DEATH : OBSERVE_DEAF_AFTER, now);
    if (peer->silent_since != 0)
        forget_measured(peer);
}

static struct reach_peer decide_reach(
    const struct reach_facts *facts, const struct node *node, const struct path_view *view)
{
    const struct render_input *in = facts->in;
    const struct render_path *found = render_find_path(in, node->meta.name);
    struct render_decision decision = render_decide(in->snapshot, node, found);
    const struct node *hub = render_relay(in);
    struct reach_peer peer = {.kind = PATH_KIND_NONE};

    (void)snprintf(peer.node, sizeof(peer.node), "%.*s", NAME_MAX_LEN, node->meta.name);
    apply_rule(&peer, &decision, found, facts);
    /* Where somebody wants it so, the rule says who. */
    if ((decision.is_open || decision.route == RENDER_ROUTE_DIRECT) && view)
        apply_found(&peer, view, decision.route);
    else
        peer.is_alarm = is_mute_in_mesh(in->snapshot, node, decision.route);
    if (peer.kind == PATH_KIND_NONE)
        forget_measured(&peer);
    if (facts->seen)
        apply_seen(&peer, facts->seen, &node->key, view ? view->died_at : 0, facts->now);
    if (view && (peer.kind == PATH_KIND_LAN || peer.kind == PATH_KIND_DIRECT))
        peer.underlay = view->remote.addr;
    if (peer.kind == PATH_KIND_RELAY || peer.kind == PATH_KIND_STREAM)
        (void)snprintf(peer.relay, sizeof(peer.relay), "%.*s", NAME_MAX_LEN,
            found && found->via[0] != '\0' ? found->via
            : hub                          ? hub->meta.name
                                           : "");
    return peer;
}

int reach_update(
    struct reach *r, const struct reach_facts *facts, reach_view_fn view, const void *ctx)
{
    const struct snapshot *s = facts->in->snapshot;
    struct reach next = {.items = calloc(s->nodes.n + 1, sizeof(*next.items))};

    if (!next.items)
        return -ENOMEM;
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        const struct reach_peer *before = reach_find(r, node->meta.name);
        struct reach_peer *peer = &next.items[next.n];
        struct path_view found;

        if (node->hub || strcmp(node->meta.name, s->self) == 0)
            continue;
        next.n++;
        *peer = decide_reach(
            facts, node, view && view(ctx, node->meta.name, &found, facts->now) ? &found : NULL);
        peer->since = before && before->kind == peer->kind ? before->since : facts->now;
        next.n_alarms += peer->is_alarm ? 1 : 0;
    }
    free(r->items);
    *r = next;
    return 0;
}
