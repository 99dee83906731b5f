/* node_findings.c - see node_findings.h. */
#include "agent/node_findings.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_core.h"
#include "agent/cluster/cluster_writer.h"
#include "agent/resolver.h"
#include "base/containers.h"
#include "base/text.h"
#include "health/self.h"
#include "net/tun/offload.h"
#include "os/nic.h"

/* Most names that are said to be left out: as many as there are in the status. */
#define NAMES_MAX 64

/* Most peers of which it is shown that the hub says something else. */
#define TRUST_MAX 64

/* What the facts point to. */
struct seen {
    char at[ENDPOINT_TEXT_MAX];
    char offloads[FINDING_TEXT_MAX];
    char apart_at[IFNAMSIZ];
    char foreign[X25519_BASE64_MAX];
    struct self_other_hub others[HUB_CHOICE_MAX];
    char other_why[HUB_CHOICE_MAX][STATUS_HUB_WHY_MAX];
    struct status_subnet subnets[STATUS_SUBNETS_MAX];
    struct self_subnet self_subnets[STATUS_SUBNETS_MAX];
    struct self_name names[NAMES_MAX];
    struct self_trust trust[TRUST_MAX];
    char trust_key[TRUST_MAX][X25519_BASE64_MAX];
    char trust_change[TRUST_MAX][FIRST_SIGHT_TEXT_MAX];
    struct self_peer *peers; /* owns */
    json_t *dns;             /* owns */
};

static int64_t seconds(nsec_t t)
{
    return t / NSEC_PER_SEC;
}

/* ---- this machine --------------------------------------------------------------------------- */

static void see_offloads(const struct status_input *in, struct seen *seen, struct self_facts *facts)
{
    const struct observe *engine = &in->agent->seen;
    bool is_apart = observe_arrives_apart(engine);
    size_t len = 0;

    /* Whether datagrams come merged is of their device: below. */
    for (int i = 0; in->offloads && i < OFFLOAD_N && len < sizeof(seen->offloads); i++)
        if (!in->offloads->on[i] && !(i == OFFLOAD_UDP_GRO && is_apart))
            len += (size_t)snprintf(seen->offloads + len, sizeof(seen->offloads) - len,
                "%sthe offload %s is off: %s", len > 0 ? "; " : "", offload_names[i],
                in->offloads->why[i]);
    facts->offloads = seen->offloads;
    if (is_apart && if_indextoname(engine->merging_ifindex, seen->apart_at) &&
        nic_lacks_merging(seen->apart_at))
        facts->apart_at = seen->apart_at;
}

static void see_names(const struct agent *a, struct seen *seen, struct self_facts *facts)
{
    const json_t *item;
    size_t i;

    if (a->names.failure.code != 0)
        facts->names_unwritten = err_text(&a->names.failure);
    seen->dns = a->resolver ? resolver_encode(a->resolver) : NULL;
    facts->names_unanswered = json_string_value(json_object_get(seen->dns, "why"));
    json_array_foreach(a->names.left_out, i, item) {
        const char *name = json_string_value(json_object_get(item, "name"));
        const char *node = json_string_value(json_object_get(item, "node"));
        const char *why = json_string_value(json_object_get(item, "why"));

        if (facts->n_names < NAMES_MAX && name && node && why)
            seen->names[facts->n_names++] = (struct self_name){name, node, why};
    }
    facts->names = seen->names;
}

static void see_subnets(const struct status_input *in, struct seen *seen, struct self_facts *facts)
{
    facts->n_subnets = status_own_subnets(in, seen->subnets);
    for (size_t i = 0; i < facts->n_subnets; i++)
        seen->self_subnets[i] =
            (struct self_subnet){.route = seen->subnets[i].route, .why = seen->subnets[i].why};
    facts->subnets = seen->self_subnets;
}

static void see_keepalive(const struct status_input *in, struct self_facts *facts)
{
    const struct keepalive_plan *plan = &in->agent->keepalive.probe.plan;

    facts->keepalive_s = render_keepalive(in->render);
    facts->is_fixed = in->render->snapshot->network.keepalive != NETWORK_KEEPALIVE_AUTO;
    facts->is_natted = plan->view.is_natted;
    if (keepalive_plan_is_known(plan) && plan->known.bounds.dies != NSEC_NEVER)
        facts->nat_forgets_s = seconds(plan->known.bounds.dies);
}

static void see_machine(const struct status_input *in, struct seen *seen, struct self_facts *facts)
{
    const struct agent *a = in->agent;

    facts->fault = a->pass.fault.text;
    facts->n_failed = a->pass.n_failed;
    facts->copied = a->copy.why;
    facts->clock_off = a->time.off;
    facts->lockout = a->time.lockout;
    facts->drained = snapshot_self(&a->snapshot)->drained;
    facts->rates = a->reconcile.rates_why;
    facts->rules = a->access.fault.text;
    facts->n_foreign = a->reconcile.n_foreign;
    facts->foreign_age_s = a->reconcile.n_foreign > 0 ? seconds(in->now - a->foreign_at) : -1;
    facts->foreign = x25519_public_format(&a->reconcile.foreign, seen->foreign);
    if (a->cluster && !a->cluster_seen.is_heard) {
        facts->cluster = a->cluster_seen.why.text;
        facts->cluster_s = seconds(in->now - a->cluster_seen.since);
    }
    if (a->edge_parts) {
        nsec_t since = in->now;

        facts->edges_unwritten = cluster_writer_fault(a->edge_parts, &since);
        facts->edges_unwritten_s = seconds(in->now - since);
    }
    see_offloads(in, seen, facts);
    see_names(a, seen, facts);
    see_subnets(in, seen, facts);
    see_keepalive(in, facts);
}

/* ---- hubs ----------------------------------------------------------------------------------- */

static void see_hub(const struct status_input *in, struct seen *seen, struct self_facts *facts)
{
    const struct node *node = render_relay(in->render);
    const struct agent_hub *serving = in->agent->hubs.serving;
    const struct hub_transport *transport = &serving->transport.transport;
    const struct observation *ob;
    struct self_hub *hub = &facts->hub;

    if (!node)
        return;
    ob = observe_find(&in->agent->seen, &node->key);
    hub->name = node->meta.name;
    hub->at = ob && !endpoint_is_none(&ob->endpoint) ? endpoint_format(&ob->endpoint, seen->at)
                                                     : "an unknown place";
    hub->is_heard = in->hub.is_heard;
    hub->silent_s = in->hub.silent_for == NSEC_NEVER ? -1 : seconds(in->hub.silent_for);
    hub->quiet_s = seconds(in->hub.quiet_max);
    hub->has_session = observation_has_session(ob, in->now);
    hub->by_tls =
        hub_transport_is_settled(transport, in->now) ? hub_transport_why(transport) : NULL;
    hub->is_one_way = udp_asymmetry_of(&transport->asymmetry) != UDP_ASYMMETRY_UNKNOWN;
    hub->tls_fails = in->hub.is_heard ? NULL : in->tls_failure;
    hub->is_refused = serving->transport.now.status.is_refused && !in->hub.is_heard;
    hub->store_behind_s = (int64_t)in->hub.store_behind_s;
    hub->refused = serving->refused.code != 0 ? serving->refused.text : NULL;
}

static void see_other_hubs(
    const struct status_input *in, struct seen *seen, struct self_facts *facts)
{
    const struct hub_set *set = &in->agent->hubs;

    for (unsigned i = 0; i < set->n && i < HUB_CHOICE_MAX; i++) {
        if (set->items[i] == set->serving)
            continue;
        status_explain_hub(in, set->items[i], seen->other_why[i]);
        seen->others[facts->n_others++] =
            (struct self_other_hub){.name = set->items[i]->name, .why = seen->other_why[i]};
    }
    facts->others = seen->others;
}

/* ---- who peers are -------------------------------------------------------------------------- */

static enum finding_code code_of(enum first_sight_state state)
{
    switch (state) {
    case FIRST_SIGHT_REFUSED:
        return FINDING_TRUST_REFUSED;
    case FIRST_SIGHT_TAKEN:
        return FINDING_TRUST_CHANGED;
    case FIRST_SIGHT_NEW_HUB:
        return FINDING_TRUST_HUB;
    case FIRST_SIGHT_SILENCE:
    case FIRST_SIGHT_ASKS:
    case FIRST_SIGHT_WELL:
    case FIRST_SIGHT_STATE_N:
        break;
    }
    return FINDING_TRUST_WAITS;
}

static void see_trust_of(const struct first_sight *fs, const struct first_sight_peer *peer,
    struct seen *seen, struct self_facts *facts)
{
    enum first_sight_state state = first_sight_state(fs, peer, facts->at);
    size_t i = facts->n_trust;
    bool is_offered = peer->offered_at != 0;
    /* A node that never was believed has another's address. */
    unsigned changes = peer->seen_at == 0 ? FIRST_SIGHT_ADDRESS
                       : is_offered       ? first_sight_changes(&peer->held, &peer->offered)
                                          : peer->changed;
    int64_t since = is_offered                   ? peer->offered_at
                    : state == FIRST_SIGHT_TAKEN ? peer->changed_at
                                                 : peer->hub_at;
    int64_t left = first_sight_silent_at(fs, peer) - facts->at;

    if (state == FIRST_SIGHT_WELL || i == TRUST_MAX)
        return;
    facts->n_trust++;
    seen->trust[i] = (struct self_trust){.name = peer->name,
        .code = code_of(state),
        .change = first_sight_text(changes, seen->trust_change[i]),
        .key = x25519_public_format(
            is_offered ? &peer->offered.key : &peer->held.key, seen->trust_key[i]),
        .for_s = facts->at - since,
        .left_s = state == FIRST_SIGHT_ASKS ? 0
                  : left > 0                ? left
                                            : 1};
}

static void see_trust(const struct first_sight *fs, struct seen *seen, struct self_facts *facts)
{
    for (size_t i = 0; i < fs->n; i++)
        see_trust_of(fs, &fs->peers[i], seen, facts);
    facts->trust = seen->trust;
}

/* ---- pairs ---------------------------------------------------------------------------------- */

static struct self_session see_session(
    const struct observation *ob, const struct reach_peer *peer, nsec_t now)
{
    return (struct self_session){
        .handshake_age_s = observation_age_seconds(ob, now),
        .silent_s = peer->silent_since != 0 ? seconds(now - peer->silent_since) : 0,
        .renewal_due_s = seconds(observation_renewal_due(ob, now)),
        .heard_s = ob && ob->heard_at != 0 ? seconds(now - ob->heard_at) : -1,
    };
}

static enum self_path path_of(const struct reach_peer *peer, const char *hub)
{
    switch (peer->kind) {
    case PATH_KIND_LAN:
    case PATH_KIND_DIRECT:
        return SELF_PATH_DIRECT;
    case PATH_KIND_RELAY:
    case PATH_KIND_STREAM:
        return hub && strcmp(peer->relay, hub) == 0 ? SELF_PATH_BY_HUB : SELF_PATH_BY_OTHER;
    case PATH_KIND_NONE:
    case PATH_KIND_N:
        break;
    }
    return SELF_PATH_NONE;
}

static struct self_peer see_peer(const struct status_input *in, const struct node *node,
    const struct reach_peer *peer, const char *hub)
{
    const struct snapshot *s = in->render->snapshot;
    const struct mesh_edge *edge = snapshot_find_edge(s, s->self, node->meta.name);
    const struct render_path *found = render_find_path(in->render, node->meta.name);
    const struct observation *ob = observe_find(&in->agent->seen, &node->key);

    return (struct self_peer){
        .name = node->meta.name,
        .path = path_of(peer, hub),
        .kind = path_kind_names[peer->kind],
        .relay = peer->relay,
        .why = peer->why,
        .is_off = edge && edge->path == EDGE_PATH_OFF,
        .is_key_refused = peer->kind == PATH_KIND_NONE && strcmp(peer->why, render_why_key) == 0,
        .awaits_hub = peer->awaits_hub,
        .is_alarm = peer->is_alarm,
        .fell_back_s = peer->fell_back_at != 0 ? seconds(in->now - peer->fell_back_at) : 0,
        .since_s = seconds(in->now - peer->since),
        .mtu = found ? found->mtu : 0,
        .longer_s = peer->longer.since != 0 ? seconds(in->now - peer->longer.since) : 0,
        .longer_ms = peer->longer.least_us / 1000.0,
        .usual_ms = peer->longer.usual_us / 1000.0,
        .session = see_session(ob, peer, in->now),
    };
}

static int see_peers(const struct status_input *in, struct seen *seen, struct self_facts *facts)
{
    const struct reach *reach = &in->agent->reach;

    seen->peers = calloc(reach->n + 1, sizeof(*seen->peers));
    if (!seen->peers)
        return -1;
    for (size_t i = 0; i < reach->n; i++) {
        const struct node *node = snapshot_find_node(in->render->snapshot, reach->items[i].node);

        if (node)
            seen->peers[facts->n_peers++] = see_peer(in, node, &reach->items[i], facts->hub.name);
    }
    facts->peers = seen->peers;
    return 0;
}

void node_findings_look(struct findings *f, const struct status_input *in)
{
    struct self_facts facts = {
        .name = in->render->snapshot->self,
        .at = seconds(in->wall),
        .running_s = seconds(in->now - in->agent->begun_at),
        .machine = node_watch_look(in->agent->watch, in->now),
        .gpus = node_gpus_look(in->agent->gpus, in->now, seconds(in->wall)),
    };
    struct seen *seen = calloc(1, sizeof(*seen));

    if (!seen)
        return;
    see_machine(in, seen, &facts);
    see_hub(in, seen, &facts);
    see_other_hubs(in, seen, &facts);
    see_trust(&in->agent->trust.memory, seen, &facts);
    if (see_peers(in, seen, &facts) == 0)
        self_find(f, &facts, NULL, NULL);
    json_decref(seen->dns);
    free(seen->peers);
    free(seen);
}
