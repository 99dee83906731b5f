/* hub_set.c - see hub_set.h. */
#include "agent/hub_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/secret.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/snapshot.h"
#include "os/clock.h"
#include "os/log.h"

/* After a lost report a hub that does not serve this node is left alone for this time, unless it
 * completes a handshake. */
#define REPORT_PAUSE (30 * NSEC_PER_SEC)

static bool is_by_stream(const struct agent_hub *hub)
{
    struct endpoint stream = hub_transport_io_endpoint(&hub->transport);

    return !endpoint_is_none(&stream);
}

static const struct observation *seen_of(const struct agent_hub *hub)
{
    return hub->is_seen ? &hub->seen : NULL;
}

/* ---- the hubs there are --------------------------------------------------------------------- */

static struct agent_hub *free_hub(struct agent_hub *hub)
{
    hub->link = hub_link_free(hub->link);
    hub_transport_io_stop(&hub->transport);
    hub_endpoints_deinit(&hub->health.endpoints);
    node_report_deinit(&hub->report);
    secret_wipe(&hub->signer, sizeof(hub->signer));
    free(hub);
    return NULL;
}

/* @node: NULL: a network without a hub. */
static int new_hub(
    struct agent_hub **ret, struct hub_set *hs, const struct node *node, struct err *e)
{
    struct agent_hub *hub = calloc(1, sizeof(*hub));
    struct hub_link_listener listener = hs->listener;
    int r = 0;

    if (!hub)
        return err_set(e, -ENOMEM, "no memory for a hub");
    hub->owner = hs->listener.ctx;
    listener.ctx = hub;
    node_report_init(&hub->report, (uint64_t)clock_wall());
    if (node) {
        (void)snprintf(hub->name, sizeof(hub->name), "%.*s", NAME_MAX_LEN, node->meta.name);
        hub->key = node->key;
    }
    if (node && !member_proof_signer_init(&hub->signer, &hs->state->secret, &node->key))
        r = err_set(e, -EINVAL, "the key of the hub \"%s\" is one that nobody can have", hub->name);
    if (r == 0)
        r = hub_link_new(&hub->link, hs->loop, hs->state->interface, &hub->signer, &listener, e);
    if (r < 0) {
        free(hub);
        return r;
    }
    hub_link_set_standby(hub->link, true, clock_now());
    hub_transport_io_init(&hub->transport, hs->loop, hs->state, &hub->hub_api);
    *ret = hub;
    return 0;
}

void hub_set_on_key(struct hub_set *hs)
{
    for (unsigned i = 0; i < hs->n; i++) {
        struct member_proof_signer *signer = &hs->items[i]->signer;
        struct member_proof_signer next;

        /* Which stamps that hub takes is the same. */
        if (hs->items[i]->name[0] == '\0' ||
            !member_proof_signer_init(&next, &hs->state->secret, &hs->items[i]->key))
            continue;
        signer->key = next.key;
        secret_wipe(&next, sizeof(next));
    }
}

struct agent_hub *hub_set_find(const struct hub_set *hs, const char *name)
{
    for (unsigned i = 0; i < hs->n; i++)
        if (strcmp(hs->items[i]->name, name) == 0)
            return hs->items[i];
    return NULL;
}

static bool is_in(struct agent_hub *const items[], unsigned n, const struct agent_hub *hub)
{
    for (unsigned i = 0; i < n; i++)
        if (items[i] == hub)
            return true;
    return false;
}

/* How the public API of that hub is reached. What the join token said is about one hub: the one
 * with that TLS key, or the first one where no hub says its key. */
static void set_hub_api(const struct hub_set *hs, struct agent_hub *hub, const struct node *node)
{
    const struct state_hub_api *joined = &hs->state->hub_api;
    const struct node_hub *at = node->hub;
    struct endpoint api = {.addr = at->endpoints[0].addr, .port = at->api_port};
    char text[ENDPOINT_TEXT_MAX];

    if (hs->n == 1 ||
        (at->has_tls_pin ? memcmp(&at->tls_pin, &joined->pin, sizeof(at->tls_pin)) == 0
                         : hub == hs->items[0])) {
        hub->hub_api = *joined;
        return;
    }
    hub->hub_api = (struct state_hub_api){.n_api = at->has_tls_pin ? 1 : 0, .pin = at->tls_pin};
    memcpy(hub->hub_api.proxy, joined->proxy, sizeof(hub->hub_api.proxy));
    (void)snprintf(
        hub->hub_api.api[0], sizeof(hub->hub_api.api[0]), "%s", endpoint_format(&api, text));
}

static void see(struct hub_set *hs, const struct hub_set_facts *facts)
{
    for (unsigned i = 0; i < hs->n; i++) {
        struct agent_hub *hub = hs->items[i];
        const struct observation *ob = observe_find(facts->seen, &hub->key);

        hub->is_seen = ob != NULL;
        if (ob)
            hub->seen = *ob;
    }
}

/* The hubs of @s, those that stay and new ones. Return: 0, or negative errno with words; then those
 * before the one that failed. */
static int gather(struct hub_set *hs, const struct snapshot *s,
    struct agent_hub *items[static HUB_CHOICE_MAX], unsigned *ret_n, struct err *e)
{
    unsigned n = 0;
    int r = 0;

    for (size_t i = 0; i < s->nodes.n && n < HUB_CHOICE_MAX && r == 0; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        if (!node->hub)
            continue;
        items[n] = hub_set_find(hs, node->meta.name);
        if (!items[n] || !x25519_public_equal(&items[n]->key, &node->key))
            r = new_hub(&items[n], hs, node, e);
        n += r == 0 ? 1 : 0;
    }
    if (r == 0 && n == 0 && hs->n == 0) {
        r = new_hub(&items[0], hs, NULL, e);
        n += r == 0 ? 1 : 0;
    }
    *ret_n = n;
    return r;
}

static void replace(struct hub_set *hs, struct agent_hub *items[static HUB_CHOICE_MAX], unsigned n)
{
    const char *names[HUB_CHOICE_MAX];

    if (!is_in(items, n, hs->serving))
        hs->serving = NULL;
    for (unsigned i = 0; i < hs->n; i++)
        if (!is_in(items, n, hs->items[i]))
            hs->gone[hs->n_gone++] = hs->items[i];
    memcpy(hs->items, items, n * sizeof(struct agent_hub *));
    hs->n = n;
    for (unsigned i = 0; i < n; i++)
        names[i] = items[i]->name;
    hub_choice_set(&hs->choice, hs->state->snapshot.self, names, n);
}

void hub_set_release_gone(struct hub_set *hs)
{
    while (hs->n_gone > 0)
        (void)free_hub(hs->gone[--hs->n_gone]);
}

/* ---- the serving hub ------------------------------------------------------------------------ */

static void choose(struct hub_set *hs, struct hub_set_actions *actions, nsec_t now)
{
    struct hub_choice_fact facts[HUB_CHOICE_MAX] = {{.handshake_at = 0}};
    struct hub_choice_actions chosen;

    for (unsigned i = 0; i < hs->n; i++) {
        const struct agent_hub *hub = hs->items[i];

        facts[i] =
            (struct hub_choice_fact){.handshake_at = hub->is_seen ? hub->seen.handshake_at : 0,
                .has_session = observation_has_session(seen_of(hub), now),
                .is_cut = is_by_stream(hub) && !hub->transport.now.status.is_open};
    }
    chosen = hub_choice_poll(&hs->choice, facts, now);
    hs->choose_at = chosen.due_at;
    if (chosen.has_changed || !hs->serving) {
        struct agent_hub *from = hs->serving;
        struct agent_hub *to = hs->items[hub_choice_find(&hs->choice, hs->choice.serving)];

        if (from)
            hub_link_set_standby(from->link, true, now);
        hs->serving = to;
        hub_link_set_standby(to->link, false, now);
        if (hs->n > 1 || (from && chosen.why[0] != '\0'))
            log_info("the hub %s serves this node now%s%s%s%s", to->name, from ? ": " : "",
                from ? from->name : "", from ? ", " : "", from ? chosen.why : "");
        actions->serving_changed = true;
        actions->pass_soon = true;
    }
    if (chosen.ping && hs->serving->health.path.path.node[0] != '\0')
        udp_probe_ask(&hs->probe, &hs->serving->health.path.path.endpoint, now);
}

static void on_ping_answer(void *ctx, const struct endpoint *to, nsec_t rtt)
{
    struct hub_set *hs = ctx;

    if (endpoint_equal(to, &hs->serving->health.path.path.endpoint))
        hub_choice_on_answer(&hs->choice, clock_now());
}

void hub_set_on_heard(struct hub_set *hs, const struct agent_hub *hub, nsec_t now)
{
    if (hub == hs->serving)
        hub_choice_on_heard(&hs->choice, now);
}

void hub_set_on_lost(struct hub_set *hs, const struct agent_hub *hub)
{
    if (hub != hs->serving)
        return;
    hub_choice_on_lost(&hs->choice);
    if (hs->n > 1)
        hs->choose_at = 0;
}

int hub_set_take(struct hub_set *hs, const struct hub_set_facts *facts,
    struct hub_set_actions *actions, struct err *e)
{
    struct agent_hub *items[HUB_CHOICE_MAX];
    unsigned n;
    int r = gather(hs, facts->snapshot, items, &n, e);

    /* Without a hub, those of before are kept: the snapshot is between two states. */
    if (n > 0 && (n != hs->n || memcmp(items, hs->items, n * sizeof(*items)) != 0))
        replace(hs, items, n);
    if (hs->n == 0)
        return r;
    for (unsigned i = 0; i < hs->n; i++) {
        const struct node *node = snapshot_find_node(facts->snapshot, hs->items[i]->name);

        if (node && node->hub)
            set_hub_api(hs, hs->items[i], node);
    }
    see(hs, facts);
    choose(hs, actions, facts->now);
    return r;
}

/* ---- where each is -------------------------------------------------------------------------- */

static void act_on_health(struct hub_set *hs, struct agent_hub *hub,
    const struct hub_health_actions *health, struct hub_set_actions *actions, nsec_t now)
{
    char text[ENDPOINT_TEXT_MAX];

    switch (health->link) {
    case HUB_HEALTH_LINK_KEEP:
        break;
    case HUB_HEALTH_LINK_POKE:
        hub_link_poke(hub->link, now);
        break;
    case HUB_HEALTH_LINK_RESTART:
        hub_link_restart(hub->link, now);
        break;
    }
    if (health->moved_because)
        log_info("%s%s%s, trying it at %s", health->moved_because, hs->n > 1 ? " " : "",
            hs->n > 1 ? hub->name : "", endpoint_format(&hub->health.path.path.endpoint, text));
    actions->pass_soon |= health->reconcile;
}

static void on_asked_heard(void *ctx, const struct endpoint *from)
{
    struct agent_hub *hub = ctx;

    hub_transport_io_on_heard(&hub->transport, from);
}

static void act_on_transport(struct hub_set *hs, struct agent_hub *hub,
    const struct hub_transport_io_result *result, struct hub_set_actions *actions, nsec_t now)
{
    for (unsigned i = 0; i < result->n_answered; i++) {
        struct hub_health_actions health =
            hub_health_on_answer(&hub->health, &result->answered[i], is_by_stream(hub), now);

        act_on_health(hs, hub, &health, actions, now);
    }
    if (result->ask_heard && hub_link_ask_heard(hub->link, &result->request, on_asked_heard, hub))
        hub->transport.transport.asymmetry.asked_at = now;
    if (!result->has_changed)
        return;
    /* The hub's endpoint is another one: the engine is told at once. */
    hub->has_moved = true;
    actions->pass_at_once = true;
}

static void poll_hub(struct hub_set *hs, struct agent_hub *hub, const struct hub_set_facts *facts,
    struct hub_set_actions *actions)
{
    const struct node *node = snapshot_find_node(facts->snapshot, hub->name);
    struct hub_health_facts seen = {.now = facts->now,
        .has_engine = facts->has_engine,
        .hub = node && node->hub ? node : NULL,
        .network = &facts->snapshot->network,
        .seen = seen_of(hub),
        .is_by_stream = is_by_stream(hub),
        .is_standby = hub != hs->serving,
        .has_route = facts->has_route,
        .has_route_ctx = facts->has_route_ctx};
    struct hub_health_actions health = hub_health_poll(&hub->health, &seen);
    struct hub_transport_view view = {.silent_since = hub->health.silent_since,
        .lockout = facts->lockout,
        .endpoints = &hub->health.endpoints};
    struct hub_transport_io_result result;

    act_on_health(hs, hub, &health, actions, facts->now);
    if (hub->is_seen) {
        view.heard_at = hub->seen.endpoint;
        view.rx_bytes = hub->seen.facts.rx_bytes;
        view.handshake_at = hub->seen.handshake_at;
    }
    /* What arrives from the hub does not prove that the hub hears this node. */
    if (view.silent_since == 0 && facts->has_engine && hub == hs->serving) {
        view.silent_since = hub_link_unheard(hub->link, &view.is_late, facts->now);
        view.is_suspect = view.silent_since != 0;
    }
    result =
        hub_transport_io_poll(&hub->transport, &view, seen.hub, facts->listen_port, facts->now);
    act_on_transport(hs, hub, &result, actions, facts->now);
}

void hub_set_poll(
    struct hub_set *hs, const struct hub_set_facts *facts, struct hub_set_actions *actions)
{
    see(hs, facts);
    for (unsigned i = 0; i < hs->n; i++)
        poll_hub(hs, hs->items[i], facts, actions);
    choose(hs, actions, facts->now);
}

void hub_set_run(
    struct hub_set *hs, const struct hub_set_facts *facts, struct hub_set_actions *actions)
{
    for (unsigned i = 0; i < hs->n; i++) {
        struct agent_hub *hub = hs->items[i];

        if (facts->now >= hub->transport.due_at) {
            struct hub_transport_io_result result =
                hub_transport_io_run(&hub->transport, facts->now);

            act_on_transport(hs, hub, &result, actions, facts->now);
        }
    }
    if (facts->now >= hs->choose_at)
        choose(hs, actions, facts->now);
}

nsec_t hub_set_due(const struct hub_set *hs)
{
    nsec_t due = hs->choose_at;

    for (unsigned i = 0; i < hs->n; i++)
        due = nsec_min(due, hs->items[i]->transport.due_at);
    return due;
}

void hub_set_on_applied(struct hub_set *hs, const struct snapshot *s, nsec_t now)
{
    for (unsigned i = 0; i < hs->n; i++) {
        const struct node *node = snapshot_find_node(s, hs->items[i]->name);
        struct endpoint api;

        if (!node || !node->hub)
            continue;
        api = (struct endpoint){.addr = node->address4, .port = node->hub->api_port};
        hub_link_set_target(hs->items[i]->link, &api, now);
    }
}

void hub_set_on_moved(struct hub_set *hs, nsec_t now)
{
    for (unsigned i = 0; i < hs->n; i++) {
        struct agent_hub *hub = hs->items[i];

        if (!hub->has_moved)
            continue;
        hub->has_moved = false;
        hub_transport_io_speak(&hub->transport, now);
        hub_link_poke(hub->link, now);
    }
}

bool hub_set_is_settled(struct hub_set *hs, nsec_t now)
{
    if (!hub_link_is_heard(hs->serving->link) ||
        hub_link_unheard(hs->serving->link, NULL, now) != 0)
        return false;
    for (unsigned i = 0; i < hs->n; i++)
        if (!hub_transport_io_is_settled(&hs->items[i]->transport))
            return false;
    return true;
}

struct agent_hub *hub_set_next_handshake(struct hub_set *hs)
{
    for (unsigned i = 0; i < hs->n; i++)
        if (hub_health_take_handshake(&hs->items[i]->health))
            return hs->items[i];
    return NULL;
}

size_t hub_set_paths(const struct hub_set *hs, struct render_path *ret)
{
    size_t n = 0;

    for (unsigned i = 0; i < hs->n; i++) {
        const struct agent_hub *hub = hs->items[i];
        struct endpoint stream = hub_transport_io_endpoint(&hub->transport);

        if (hub->health.path.path.node[0] == '\0')
            continue;
        ret[n] = hub->health.path.path;
        if (!endpoint_is_none(&stream))
            ret[n].endpoint = stream;
        n++;
    }
    return n;
}

/* ---- reports -------------------------------------------------------------------------------- */

void hub_set_on_self(struct hub_set *hs)
{
    for (unsigned i = 0; i < hs->n; i++)
        hs->items[i]->report.self_changed = true;
}

void hub_set_on_edges(struct hub_set *hs)
{
    for (unsigned i = 0; i < hs->n; i++)
        hs->items[i]->report.edges_changed = true;
}

bool hub_set_takes_report(const struct hub_set *hs, const struct agent_hub *hub, nsec_t now)
{
    if (hub == hs->serving)
        return hub_link_is_heard(hub->link);
    return observation_has_session(seen_of(hub), now) &&
           (hub->report_lost_at == 0 || hub->seen.handshake_at > hub->report_lost_at ||
               now - hub->report_lost_at >= REPORT_PAUSE);
}

nsec_t hub_set_report_within(const struct hub_set *hs, nsec_t now)
{
    nsec_t within = node_report_within(&hs->serving->report);

    for (unsigned i = 0; i < hs->n; i++)
        if (hub_set_takes_report(hs, hs->items[i], now))
            within = nsec_min(within, node_report_within(&hs->items[i]->report));
    return within;
}

bool hub_set_has_changes(const struct hub_set *hs, nsec_t now)
{
    bool has_changes = node_report_has_changes(&hs->serving->report);

    for (unsigned i = 0; i < hs->n && !has_changes; i++)
        has_changes = hub_set_takes_report(hs, hs->items[i], now) &&
                      node_report_has_changes(&hs->items[i]->report);
    return has_changes;
}

/* ---- life ----------------------------------------------------------------------------------- */

void hub_set_init(struct hub_set *hs, struct uv_loop_s *loop, const struct state *state,
    const struct hub_link_listener *listener)
{
    *hs = (struct hub_set){
        .loop = loop, .state = state, .listener = *listener, .choose_at = NSEC_NEVER};
    udp_probe_init(&hs->probe, loop, on_ping_answer, hs);
}

void hub_set_stop(struct hub_set *hs)
{
    udp_probe_stop(&hs->probe);
    for (unsigned i = 0; i < hs->n; i++)
        hs->items[i] = free_hub(hs->items[i]);
    hub_set_release_gone(hs);
    hs->n = 0;
    hs->serving = NULL;
    hs->choose_at = NSEC_NEVER;
}
