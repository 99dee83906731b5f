/* hub_transport.c - see hub_transport.h. */
#include "agent/hublink/hub_transport.h"

#include <stdio.h>
#include <string.h>

#define WAY_MAX 384

/* Where packets go in TLS, and what of a proxy. */
static const char *describe_way(const struct hub_stream_status *status, char buf[static WAY_MAX])
{
    if (status->passed_over[0] != '\0')
        (void)snprintf(buf, WAY_MAX, "%.80s without the proxy, which fails (%.240s)", status->to,
            status->passed_over);
    else
        (void)snprintf(buf, WAY_MAX, "%.120s%s%.120s", status->to,
            status->through[0] ? " through the proxy " : "", status->through);
    return buf;
}

/*
 * Why it is a stream; which direction of UDP fails; and the one change that would mend it. The
 * texts of the stream are cut where they are longer than any that the hub gives.
 */
static void explain(struct hub_transport *ht, const struct hub_stream_status *status)
{
    const struct endpoint *hub = &ht->ways[0];
    char way[WAY_MAX];
    char from[ENDPOINT_TEXT_MAX];
    char at[ENDPOINT_TEXT_MAX];

    ht->explained = udp_asymmetry_of(&ht->asymmetry);
    (void)endpoint_format(hub, at);
    (void)describe_way(status, way);
    switch (ht->explained) {
    case UDP_ASYMMETRY_IN:
        (void)snprintf(ht->why, sizeof(ht->why),
            "the hub hears this node at %s, but nothing that the hub sends by UDP arrives: a "
            "firewall or NAT here drops UDP in, or one at the hub drops it out; packets go in TLS "
            "to %s; let UDP from %s in",
            endpoint_format(&ht->asymmetry.from, from), way, at);
        return;
    case UDP_ASYMMETRY_OUT:
        (void)snprintf(ht->why, sizeof(ht->why),
            "the hub's datagrams arrive, but it does not hear this node: a firewall here or at the "
            "hub drops UDP to %s; packets go in TLS to %s; let UDP port %u out here, and "
            "in there",
            at, way, hub->port);
        return;
    case UDP_ASYMMETRY_UNKNOWN:
    case UDP_ASYMMETRY_N:
        break;
    }
    if (ht->lockout[0] != '\0') {
        (void)snprintf(
            ht->why, sizeof(ht->why), "%s; packets go in TLS to %s until then", ht->lockout, way);
        return;
    }
    (void)snprintf(ht->why, sizeof(ht->why),
        "UDP to the hub at %s is blocked, packets go in TLS to %s; let UDP port %u "
        "out here, and in at the hub",
        at, way, hub->port);
}

/* ---- facts ---------------------------------------------------------------------------------- */

void hub_transport_poll(struct hub_transport *ht, const struct hub_transport_view *view,
    const struct hub_transport_stream *stream, nsec_t now)
{
    bool is_at_stream = stream->exists && endpoint_equal(&view->heard_at, &stream->endpoint);

    /* Heard through the stream is not heard by UDP. */
    if (view->silent_since == 0 && is_at_stream)
        ht->silent_since = ht->silent_since ? ht->silent_since : now;
    else
        ht->silent_since = view->silent_since;
    ht->is_doubt = view->is_doubt;
    (void)snprintf(ht->lockout, sizeof(ht->lockout), "%s", view->lockout ? view->lockout : "");
    ht->n_ways = view->ways->n;
    memcpy(ht->ways, view->ways->all, ht->n_ways * sizeof(*ht->ways));
    /* What came before a line was due says nothing about the time since then. */
    udp_asymmetry_look(&ht->asymmetry,
        ht->silent_since != 0 && view->is_late ? now : ht->silent_since, view->rx_bytes,
        !hub_transport_is_by_stream(ht), now);
}

bool hub_transport_on_answer(struct hub_transport *ht, const struct endpoint *from, nsec_t now)
{
    unsigned i = 0;

    while (i < ht->n_ways && !endpoint_equal(from, &ht->ways[i]))
        i++;
    if (i == ht->n_ways)
        return false;
    transport_choice_on_answer(&ht->choice, now);
    udp_asymmetry_on_answer(&ht->asymmetry, now);
    return true;
}

/* ---- which direction fails ------------------------------------------------------------------ */

/* Is anything known, and wanted to be known, of what the hub hears by UDP? */
static bool is_in_question(const struct hub_transport *ht)
{
    return hub_transport_is_by_stream(ht) && ht->asymmetry.silent_since != 0;
}

/* A request that should have been answered: was it lost on the way there, or its answer? */
static void want_heard(struct hub_transport *ht, const struct hub_transport_stream *stream,
    struct hub_transport_wish *wish, nsec_t now)
{
    if (!stream->status.is_open || ht->n_ways == 0 ||
        !udp_asymmetry_wants_to_ask(&ht->asymmetry, now))
        return;
    /* Each of the hub's endpoints in turn: perhaps there is no way at all to some. */
    ht->next_heard = (ht->next_heard + 1) % ht->n_ways;
    wish->ask_heard = true;
    wish->heard_way = ht->ways[ht->next_heard];
}

void hub_transport_on_asked(struct hub_transport *ht, nsec_t now)
{
    udp_asymmetry_on_asked(&ht->asymmetry, now);
}

bool hub_transport_on_heard(struct hub_transport *ht, const struct endpoint *from,
    const struct hub_transport_stream *stream)
{
    if (!is_in_question(ht))
        return false;
    udp_asymmetry_on_heard(&ht->asymmetry, from);
    /* Told once for each verdict: an answer by UDP clears it, and that is not worth a line. */
    if (udp_asymmetry_of(&ht->asymmetry) == ht->explained)
        return false;
    explain(ht, &stream->status);
    return true;
}

/* ---- what is to be done --------------------------------------------------------------------- */

/* Whoever reads the log should know why a stream that is wanted does not come about. */
static bool take_failure(struct hub_transport *ht, const struct hub_stream_status *status)
{
    if (status->is_open || status->why[0] == '\0' || strcmp(status->why, ht->failed) == 0)
        return false;
    (void)snprintf(ht->failed, sizeof(ht->failed), "%s", status->why);
    return true;
}

struct hub_transport_wish hub_transport_run(
    struct hub_transport *ht, const struct hub_transport_stream *stream, nsec_t now)
{
    struct transport_choice_facts facts = {.now = now,
        .silent_since = ht->silent_since,
        .is_doubt = ht->is_doubt,
        .n_ways = ht->n_ways,
        .is_stream_open = stream->status.is_open};
    struct transport_choice_wish chosen = transport_choice_poll(&ht->choice, &facts);
    bool by_stream = hub_transport_is_by_stream(ht);
    struct hub_transport_wish wish = {.ask = chosen.ask,
        .open_stream = chosen.want_stream && !stream->exists,
        .close_stream = !chosen.want_stream && !by_stream && stream->exists,
        /* Earlier, WireGuard would follow the hub to a stream that is only held ready. */
        .join_stream = by_stream,
        .has_changed = chosen.has_changed,
        .has_failure = take_failure(ht, &stream->status)};

    if (chosen.has_changed && by_stream)
        explain(ht, &stream->status);
    if (by_stream)
        want_heard(ht, stream, &wish, now);
    return wish;
}

bool hub_transport_is_by_stream(const struct hub_transport *ht)
{
    return ht->choice.kind == TRANSPORT_STREAM;
}

const char *hub_transport_why(const struct hub_transport *ht)
{
    return hub_transport_is_by_stream(ht) ? ht->why : NULL;
}
