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
    hub_health_deinit(&hub->health);
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
    hub_transport_io_init(&hub->transport, hs->loop, hs->state, &hub->ways);
    *ret = hub;
    return 0;
}

static struct agent_hub *find_hub(const struct hub_set *hs, const struct node *node)
{
    for (unsigned i = 0; i < hs->n; i++)
        if (strcmp(hs->items[i]->name, node->meta.name) == 0 &&
            x25519_public_equal(&hs->items[i]->key, &node->key))
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
static void set_ways(const struct hub_set *hs, struct agent_hub *hub, const struct node *node)
{
    const struct state_ways *joined = &hs->state->ways;
    const struct node_hub *at = node->hub;
    struct endpoint api = {.addr = at->endpoints[0].addr, .port = at->api_port};
    char text[ENDPOINT_TEXT_MAX];

    if (hs->n == 1 ||
        (at->has_tls_pin ? memcmp(&at->tls_pin, &joined->pin, sizeof(at->tls_pin)) == 0
                         : hub == hs->items[0])) {
        hub->ways = *joined;
        return;
    }
    hub->ways = (struct state_ways){.n_api = at->has_tls_pin ? 1 : 0, .pin = at->tls_pin};
    memcpy(hub->ways.proxy, joined->proxy, sizeof(hub->ways.proxy));
    (void)snprintf(hub->ways.api[0], sizeof(hub->ways.api[0]), "%s", endpoint_format(&api, text));
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

/* The hubs of @s, those that stay and new ones. Return: how many, or negative errno with words;
 * new ones are the caller's then, too. */
static int gather(struct hub_set *hs, const struct snapshot *s,
    struct agent_hub *items[static HOME_HUB_MAX], struct err *e)
{
    int n = 0;
    int r = 0;

    for (size_t i = 0; i < s->nodes.n && n < HOME_HUB_MAX && r == 0; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        if (!node->hub)
            continue;
        items[n] = find_hub(hs, node);
        if (!items[n])
            r = new_hub(&items[n], hs, node, e);
        n += r == 0 ? 1 : 0;
    }
    if (r == 0 && n == 0 && hs->n == 0) {
        r = new_hub(&items[0], hs, NULL, e);
        n += r == 0 ? 1 : 0;
    }
    return r < 0 && n == 0 ? r : n;
}

static void replace(struct hub_set *hs, struct agent_hub *items[static HOME_HUB_MAX], unsigned n)
{
    const char *names[HOME_HUB_MAX];

    if (hs->home && !is_in(items, n, hs->home))
        hs->home = NULL;
    for (unsigned i = 0; i < hs->n; i++)
        if (!is_in(items, n, hs->items[i]))
            hs->gone[hs->n_gone++] = hs->items[i];
    memcpy(hs->items, items, n * sizeof(struct agent_hub *));
    hs->n = n;
    for (unsigned i = 0; i < n; i++)
        names[i] = items[i]->name;
    home_hub_set(&hs->choice, hs->state->snapshot.self, names, n);
}

void hub_set_release_gone(struct hub_set *hs)
{
    while (hs->n_gone > 0)
        (void)free_hub(hs->gone[--hs->n_gone]);
}

struct agent_hub *hub_set_find(const struct hub_set *hs, const char *name)
{
    for (unsigned i = 0; i < hs->n; i++)
        if (strcmp(hs->items[i]->name, name) == 0)
            return hs->items[i];
    return NULL;
}

static bool has_changed(const struct hub_set *hs, struct agent_hub *const items[], unsigned n)
{
    return n != hs->n || memcmp(items, hs->items, n * sizeof(struct agent_hub *)) != 0;
}

/* ---- the home hub --------------------------------------------------------------------------- */

static void change_home(struct hub_set *hs, struct agent_hub *to, const char *why, nsec_t now)
{
    struct agent_hub *from = hs->home;

    if (from)
        hub_link_set_standby(from->link, true, now);
    hs->home = to;
    hub_link_set_standby(to->link, false, now);
    if (hs->n > 1 || (from && why[0] != '\0'))
        log_info("the hub %s serves this node now%s%s%s%s", to->name, from ? ": " : "",
            from ? from->name : "", from ? ", " : "", from ? why : "");
}

static void choose(struct hub_set *hs, struct hub_set_wish *wish, nsec_t now)
{
    struct home_hub_fact facts[HOME_HUB_MAX] = {{.handshake_at = 0}};
    struct home_hub_wish chosen;

    for (unsigned i = 0; i < hs->n; i++) {
        const struct agent_hub *hub = hs->items[i];

        facts[i] = (struct home_hub_fact){.handshake_at = hub->is_seen ? hub->seen.handshake_at : 0,
            .has_session = observation_has_session(seen_of(hub), now),
            .is_cut = is_by_stream(hub) && !hub->transport.now.status.is_open};
    }
    chosen = home_hub_poll(&hs->choice, facts, now);
    hs->choose_at = chosen.due_at;
    if (hs->n > 0 && (chosen.has_changed || !hs->home)) {
        change_home(hs, hs->items[home_hub_find(&hs->choice, hs->choice.home)], chosen.why, now);
        wish->home_changed = true;
        wish->pass_soon = true;
    }
    if (chosen.ping && hs->home->health.path.path.node[0] != '\0')
        udp_probe_ask(&hs->probe, &hs->home->health.path.path.endpoint, now);
}

static void on_ping_answer(void *ctx, const struct endpoint *to, nsec_t rtt)
{
    struct hub_set *hs = ctx;

    if (hs->home && endpoint_equal(to, &hs->home->health.path.path.endpoint))
        home_hub_on_answer(&hs->choice, clock_now());
}

void hub_set_on_heard(struct hub_set *hs, const struct agent_hub *hub, nsec_t now)
{
    if (hub == hs->home)
        home_hub_on_heard(&hs->choice, now);
}

void hub_set_on_lost(struct hub_set *hs, const struct agent_hub *hub)
{
    if (hub != hs->home)
        return;
    home_hub_on_lost(&hs->choice);
    if (hs->n > 1)
        hs->choose_at = 0;
}

int hub_set_take(
    struct hub_set *hs, const struct hub_set_facts *facts, struct hub_set_wish *wish, struct err *e)
{
    struct agent_hub *items[HOME_HUB_MAX];
    int n = gather(hs, facts->snapshot, items, e);

    /* Without a hub, those of before are kept: the snapshot is between two states. */
    if (n < 0)
        return n;
    if (n > 0 && has_changed(hs, items, (unsigned)n))
        replace(hs, items, (unsigned)n);
    for (unsigned i = 0; i < hs->n; i++) {
        const struct node *node = snapshot_find_node(facts->snapshot, hs->items[i]->name);

        if (node && node->hub)
            set_ways(hs, hs->items[i], node);
    }
    see(hs, facts);
    choose(hs, wish, facts->now);
    return 0;
}

/* ---- where each is -------------------------------------------------------------------------- */

static void act_on_health(struct hub_set *hs, struct agent_hub *hub,
    const struct hub_health_wish *health, struct hub_set_wish *wish, nsec_t now)
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
    wish->pass_soon |= health->reconcile;
}

static void on_asked_heard(void *ctx, const struct endpoint *from)
{
    struct agent_hub *hub = ctx;

    hub_transport_io_on_heard(&hub->transport, from);
}

static void act_on_transport(struct hub_set *hs, struct agent_hub *hub,
    const struct hub_transport_io_news *news, struct hub_set_wish *wish, nsec_t now)
{
    for (unsigned i = 0; i < news->n_answered; i++) {
        struct hub_health_wish health =
            hub_health_on_answer(&hub->health, &news->answered[i], is_by_stream(hub), now);

        act_on_health(hs, hub, &health, wish, now);
    }
    if (news->ask_heard && hub_link_ask_heard(hub->link, &news->request, on_asked_heard, hub))
        hub_transport_io_on_asked(&hub->transport, now);
    if (!news->has_changed)
        return;
    /* The hub's endpoint is another one: the engine is told at once. */
    hub->has_moved = true;
    wish->pass_at_once = true;
}

static void poll_hub(struct hub_set *hs, struct agent_hub *hub, const struct hub_set_facts *facts,
    struct hub_set_wish *wish)
{
    const struct node *node = snapshot_find_node(facts->snapshot, hub->name);
    struct hub_health_facts seen = {.now = facts->now,
        .has_engine = facts->has_engine,
        .hub = node && node->hub ? node : NULL,
        .network = &facts->snapshot->network,
        .seen = seen_of(hub),
        .is_by_stream = is_by_stream(hub),
        .is_standby = hub != hs->home,
        .has_route = facts->has_route,
        .has_route_ctx = facts->has_route_ctx};
    struct hub_health_wish health = hub_health_poll(&hub->health, &seen);
    struct hub_transport_io_view view = {.hub = {.silent_since = hub->health.silent_since,
                                             .lockout = facts->lockout,
                                             .ways = &hub->health.ways},
        .node = seen.hub,
        .listen_port = facts->listen_port};
    struct hub_transport_io_news news;

    act_on_health(hs, hub, &health, wish, facts->now);
    if (hub->is_seen) {
        view.hub.heard_at = hub->seen.endpoint;
        view.hub.rx_bytes = hub->seen.facts.rx_bytes;
    }
    /* What arrives from the hub does not prove that the hub hears this node. */
    if (view.hub.silent_since == 0 && facts->has_engine && hub == hs->home) {
        view.hub.silent_since = hub_link_unheard(hub->link, &view.hub.is_late, facts->now);
        view.hub.is_doubt = view.hub.silent_since != 0;
    }
    news = hub_transport_io_poll(&hub->transport, &view, facts->now);
    act_on_transport(hs, hub, &news, wish, facts->now);
}

void hub_set_poll(struct hub_set *hs, const struct hub_set_facts *facts, struct hub_set_wish *wish)
{
    see(hs, facts);
    for (unsigned i = 0; i < hs->n; i++)
        poll_hub(hs, hs->items[i], facts, wish);
    choose(hs, wish, facts->now);
}

void hub_set_run(struct hub_set *hs, const struct hub_set_facts *facts, struct hub_set_wish *wish)
{
    for (unsigned i = 0; i < hs->n; i++) {
        struct agent_hub *hub = hs->items[i];

        if (facts->now >= hub->transport.due_at) {
            struct hub_transport_io_news news = hub_transport_io_run(&hub->transport, facts->now);

            act_on_transport(hs, hub, &news, wish, facts->now);
        }
    }
    if (facts->now >= hs->choose_at)
        choose(hs, wish, facts->now);
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
    if (!hub_link_is_heard(hs->home->link) || hub_link_unheard(hs->home->link, NULL, now) != 0)
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
        node_report_on_self(&hs->items[i]->report);
}

void hub_set_on_edges(struct hub_set *hs)
{
    for (unsigned i = 0; i < hs->n; i++)
        node_report_on_edges(&hs->items[i]->report);
}

bool hub_set_takes_report(const struct hub_set *hs, const struct agent_hub *hub, nsec_t now)
{
    if (hub == hs->home)
        return hub_link_is_heard(hub->link);
    return observation_has_session(seen_of(hub), now) &&
           (hub->report_lost_at == 0 || hub->seen.handshake_at > hub->report_lost_at ||
               now - hub->report_lost_at >= REPORT_PAUSE);
}

nsec_t hub_set_report_within(const struct hub_set *hs, nsec_t now)
{
    nsec_t within = node_report_within(&hs->home->report);

    for (unsigned i = 0; i < hs->n; i++)
        if (hub_set_takes_report(hs, hs->items[i], now))
            within = nsec_min(within, node_report_within(&hs->items[i]->report));
    return within;
}

bool hub_set_has_news(const struct hub_set *hs, nsec_t now)
{
    bool has_news = node_report_has_news(&hs->home->report);

    for (unsigned i = 0; i < hs->n && !has_news; i++)
        has_news = hub_set_takes_report(hs, hs->items[i], now) &&
                   node_report_has_news(&hs->items[i]->report);
    return has_news;
}

/* ---- life ----------------------------------------------------------------------------------- */

void hub_set_init(struct hub_set *hs, struct uv_loop_s *loop, const struct state *state,
    const struct hub_link_listener *listener)
{
    *hs = (struct hub_set){.loop = loop,
        .state = state,
        .listener = *listener,
        .choose_at = NSEC_NEVER,
        .is_running = true};
    udp_probe_init(&hs->probe, loop, on_ping_answer, hs);
}

void hub_set_stop(struct hub_set *hs)
{
    if (!hs->is_running)
        return;
    hs->is_running = false;
    udp_probe_stop(&hs->probe);
    for (unsigned i = 0; i < hs->n; i++)
        hs->items[i] = free_hub(hs->items[i]);
    hub_set_release_gone(hs);
    hs->n = 0;
    hs->home = NULL;
    hs->choose_at = NSEC_NEVER;
}
