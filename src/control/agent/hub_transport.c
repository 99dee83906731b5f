/* hub_transport.c - see hub_transport.h. */
#include "agent/hub_transport.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "mesh/snapshot.h"
#include "os/clock.h"

/* So late an answer is none. */
#define OVERDUE (1500 * NSEC_PER_MSEC)

/* The hub remembers requests for longer (filter/stun_heard.h). */
#define REMEMBERED (15 * NSEC_PER_SEC)

static void act(struct hub_transport *l, nsec_t now);

static void take_answer(struct hub_transport *l)
{
    transport_choice_on_answer(&l->choice, clock_now());
    one_way_clear(&l->one_way);
}

static void on_answer(void *ctx, const struct endpoint *to, nsec_t rtt)
{
    struct hub_transport *l = ctx;

    for (unsigned i = 0; i < l->n_ways; i++)
        if (endpoint_equal(to, &l->ways[i])) {
            take_answer(l);
            l->listener.on_answer(l->listener.ctx, to);
        }
}

static void on_timer(uv_timer_t *timer)
{
    act(timer->data, clock_now());
}

void hub_transport_init(struct hub_transport *l, uv_loop_t *loop, const struct state *state,
    const struct hub_transport_listener *listener)
{
    *l = (struct hub_transport){.state = state, .listener = *listener};
    udp_probe_init(&l->probe, loop, on_answer, l);
    (void)uv_timer_init(loop, &l->timer);
    l->timer.data = l;
    l->has_timer = true;
}

void hub_transport_stop(struct hub_transport *l)
{
    if (!l->has_timer)
        return;
    l->has_timer = false;
    uv_close((uv_handle_t *)&l->timer, NULL);
    udp_probe_stop(&l->probe);
    l->stream = hub_stream_close(l->stream);
}

/* ---- the stream ----------------------------------------------------------------------------- */

static void open_stream(struct hub_transport *l, nsec_t now)
{
    const struct node *self = snapshot_self(&l->state->snapshot);
    struct hub_stream_config config = {.ways = &l->state->ways,
        .api = &l->api,
        .network = self->meta.network,
        .secret = &l->state->secret,
        .node = &self->key,
        .hub = &l->hub_key};
    struct err e = ERR_NULL;

    if (l->listen_port == 0)
        return;
    if (l->state->ways.n_api == 0) {
        log_limited(&l->limit, now, LOG_LEVEL_WARNING,
            "UDP to the hub fails, and this node does not know the hub's TLS key: it joined with "
            "an older version; weft leave and weft join with a new token mend that");
        return;
    }
    if (hub_stream_open(&l->stream, &config, &e) < 0)
        log_limited(&l->limit, now, LOG_LEVEL_WARNING, "%s", err_text(&e));
}

/* What the person at the log should know of a stream that is wanted and does not come about. */
static void tell_failure(struct hub_transport *l, nsec_t now)
{
    if (l->status.is_open || l->status.why[0] == '\0' || strcmp(l->status.why, l->failed) == 0)
        return;
    (void)snprintf(l->failed, sizeof(l->failed), "%s", l->status.why);
    log_limited(&l->limit, now, LOG_LEVEL_WARNING, "UDP to the hub fails, and so does TLS%s%s: %s",
        l->status.through[0] ? " through " : "", l->status.through, l->status.why);
}

/* Why it is a stream; which way UDP is broken; and the one change that would mend it. */
static void compose_why(struct hub_transport *l)
{
    const char *proxy = l->status.through[0] ? " through the proxy " : "";
    const struct endpoint *hub = &l->ways[0];
    char from[ENDPOINT_TEXT_MAX];
    char at[ENDPOINT_TEXT_MAX];

    (void)endpoint_format(hub, at);
    switch (l->told) {
    case ONE_WAY_IN:
        (void)snprintf(l->why, sizeof(l->why),
            "the hub hears this node at %s, but nothing that the hub sends by UDP arrives: a "
            "firewall or NAT here drops UDP in, or one at the hub drops it out; packets go in TLS "
            "to %.80s%s%.80s; let UDP from %s in",
            endpoint_format(&l->one_way.from, from), l->status.to, proxy, l->status.through, at);
        return;
    case ONE_WAY_OUT:
        (void)snprintf(l->why, sizeof(l->why),
            "the hub's datagrams arrive, but it does not hear this node: a firewall here or at the "
            "hub drops UDP to %s; packets go in TLS to %.80s%s%.80s; let UDP port %u out here, and "
            "in there",
            at, l->status.to, proxy, l->status.through, hub->port);
        return;
    case ONE_WAY_UNKNOWN:
    case ONE_WAY_N:
        break;
    }
    (void)snprintf(l->why, sizeof(l->why),
        "UDP to the hub at %s is blocked, packets go in TLS to %.120s%s%.120s; let UDP port %u out",
        at, l->status.to, proxy, l->status.through, hub->port);
}

static void tell_change(struct hub_transport *l)
{
    if (l->choice.kind == TRANSPORT_UDP) {
        log_info("UDP to the hub passes again, the stream is left");
        return;
    }
    l->told = one_way_of(&l->one_way);
    compose_why(l);
    log_warning("%s", l->why);
}

/* ---- which way is broken -------------------------------------------------------------------- */

/* A request that should have been answered: was it lost on the way there, or its answer? */
static void ask_heard(struct hub_transport *l, nsec_t now)
{
    const struct udp_probe_request *rq;

    if (!l->status.is_open || l->n_ways == 0 || !one_way_wants_to_ask(&l->one_way, now))
        return;
    /* Each of the hub's endpoints in turn: perhaps there is no way at all to some. */
    l->next_asked = (l->next_asked + 1) % l->n_ways;
    rq = udp_probe_unanswered(&l->probe, &l->ways[l->next_asked], OVERDUE, now);
    if (rq && now - rq->sent <= REMEMBERED && l->listener.ask_heard(l->listener.ctx, &rq->id))
        one_way_on_asked(&l->one_way, now);
}

/* Once for each verdict: an answer by UDP clears it, and then this is silent again. */
static void tell_one_way(struct hub_transport *l)
{
    enum one_way_kind kind = one_way_of(&l->one_way);

    if (kind == l->told || l->choice.kind != TRANSPORT_STREAM || l->one_way.silent == 0)
        return;
    l->told = kind;
    compose_why(l);
    log_warning("%s", l->why);
}

void hub_transport_on_heard(struct hub_transport *l, const struct endpoint *from)
{
    if (l->choice.kind != TRANSPORT_STREAM || l->one_way.silent == 0)
        return;
    one_way_on_heard(&l->one_way, from);
    tell_one_way(l);
}

enum one_way_kind hub_transport_one_way(const struct hub_transport *l)
{
    return one_way_of(&l->one_way);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void look_at_stream(struct hub_transport *l)
{
    l->status = (struct hub_stream_status){.is_open = false};
    if (!l->stream)
        return;
    hub_stream_look(l->stream, &l->status);
}

static void act(struct hub_transport *l, nsec_t now)
{
    struct transport_choice_facts facts = {
        .now = now, .silent_since = l->silent, .is_doubt = l->is_doubt, .n_ways = l->n_ways};
    struct transport_choice_wish wish;

    look_at_stream(l);
    facts.is_stream_open = l->status.is_open;
    wish = transport_choice_poll(&l->choice, &facts);
    for (unsigned i = 0; wish.ask && i < l->n_ways; i++)
        udp_probe_ask(&l->probe, &l->ways[i], now);
    if (wish.want_stream && !l->stream)
        open_stream(l, now);
    tell_failure(l, now);
    if (wish.has_changed)
        tell_change(l);
    if (!wish.want_stream && l->choice.kind == TRANSPORT_UDP)
        l->stream = hub_stream_close(l->stream);
    /* Before that WireGuard would follow the hub to a stream that is only held ready. */
    if (l->stream && l->choice.kind == TRANSPORT_STREAM)
        hub_stream_join(l->stream, l->listen_port);
    if (wish.ask || l->stream)
        (void)uv_timer_start(&l->timer, on_timer, TRANSPORT_CHOICE_TICK / NSEC_PER_MSEC, 0);
    if (l->choice.kind == TRANSPORT_STREAM)
        ask_heard(l, now);
    if (wish.has_changed)
        l->listener.on_change(l->listener.ctx);
}

static bool is_at_stream(const struct hub_transport *l, const struct endpoint *at)
{
    struct endpoint near = hub_stream_endpoint(l->stream);

    return endpoint_equal(at, &near);
}

/*
 * A question inside the tunnel, whose answer does not matter: the hub follows a node to where its
 * packets come from, and until one comes it sends to where the node was.
 */
void hub_transport_speak(struct hub_transport *l)
{
    struct endpoint inside = {.addr = l->hub_address, .port = l->ways[0].port};

    udp_probe_ask(&l->probe, &inside, clock_now());
}

void hub_transport_look(struct hub_transport *l, const struct hub_transport_view *view)
{
    if (!view->hub || !l->has_timer)
        return;
    /* Heard through the stream is not heard by UDP. */
    if (view->silent == 0 && l->stream && is_at_stream(l, &view->heard_at))
        l->silent = l->silent ? l->silent : clock_now();
    else
        l->silent = view->silent;
    l->n_ways = view->ways->n;
    memcpy(l->ways, view->ways->all, l->n_ways * sizeof(*l->ways));
    hub_ways_list_api(&l->api, &l->state->ways, view->hub->hub);
    if (l->stream)
        hub_stream_set_api(l->stream, &l->api);
    l->hub_address = view->hub->address4;
    l->hub_key = view->hub->key;
    l->listen_port = view->listen_port;
    l->is_doubt = view->is_doubt;
    one_way_look(
        &l->one_way, l->silent, view->rx_bytes, l->choice.kind == TRANSPORT_UDP, clock_now());
    act(l, clock_now());
}

bool hub_transport_is_calm(const struct hub_transport *l)
{
    return l->silent == 0 && l->choice.kind == TRANSPORT_UDP && !l->stream;
}

struct endpoint hub_transport_endpoint(const struct hub_transport *l)
{
    if (l->choice.kind == TRANSPORT_UDP || !l->stream)
        return (struct endpoint){.port = 0};
    return hub_stream_endpoint(l->stream);
}

const char *hub_transport_why(const struct hub_transport *l)
{
    return l->choice.kind == TRANSPORT_STREAM ? l->why : NULL;
}
