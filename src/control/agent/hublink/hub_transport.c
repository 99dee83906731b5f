/* hub_transport.c - see hub_transport.h. */
#include "agent/hublink/hub_transport.h"

#include <stdio.h>
#include <string.h>

/* ---- UDP or a stream ------------------------------------------------------------------------- */

/* Time between two requests. */
#define ASK_SUSPECT (400 * NSEC_PER_MSEC) /* while the hub is silent */
#define ASK_SLOW    (2 * NSEC_PER_SEC)    /* when it has been silent for REFUSED_AFTER */
#define ASK_RETURN  (300 * NSEC_PER_MSEC) /* while UDP may be taken again, or left */
#define ASK_STREAM  (5 * NSEC_PER_SEC)    /* on a stream that works */

/* Longest time that an answer may take. */
#define ANSWER_TIME (2 * NSEC_PER_SEC)

/* UDP has failed after so many requests without an answer, and this time. */
#define DEAD_ASKED 5
#define DEAD_AFTER (2 * NSEC_PER_SEC)

/* So many of these requests have to be sent while a stream is open: then the hub is there. */
#define BESIDE_ASKED 4

/*
 * UDP is answered, but no session comes about for this time at each of the hub's endpoints: two
 * handshakes, 5 s apart, were lost. Where there was a session, hub_health_on_answer() begins the
 * first of them.
 */
#define REFUSED_AFTER (12 * NSEC_PER_SEC)

/* UDP is taken again after so many answers in a row. */
#define ANSWERS_ENOUGH 3

/* A return to UDP that lasted less was a mistake: the stream is kept for longer after it. */
#define RETURN_GOOD  (60 * NSEC_PER_SEC)
#define SETTLE_FIRST (30 * NSEC_PER_SEC)
#define SETTLE_MAX   (1800 * NSEC_PER_SEC)

static void choice_take(struct transport_choice *tc, bool by_stream, nsec_t now)
{
    tc->by_stream = by_stream;
    tc->taken_at = now;
    tc->suspected_since = 0;
    tc->passes_since = 0;
    tc->has_begun_anew = false;
    tc->n_answered = 0;
    tc->n_asked = 0;
}

static bool choice_ask(struct transport_choice *tc, nsec_t now, nsec_t each)
{
    if (tc->asked_at != 0 && now - tc->asked_at < each)
        return false;
    tc->asked_at = now;
    tc->n_asked++;
    return true;
}

static nsec_t suspect_interval(const struct hub_transport *ht, bool is_stream_open, nsec_t now)
{
    if (is_stream_open)
        return ASK_RETURN;
    return now - ht->silent_since < REFUSED_AFTER ? ASK_SUSPECT : ASK_SLOW;
}

/*
 * UDP is answered, and no session comes about. The first one that does so in a silence begins that
 * time anew, a second one does not: it may be that only handshakes pass.
 */
static bool find_refused(struct hub_transport *ht, nsec_t now)
{
    struct transport_choice *tc = &ht->choice;

    tc->is_suspect = ht->is_suspect;
    if (tc->passes_since != 0 && ht->handshake_at > tc->passes_since && !tc->has_begun_anew) {
        tc->has_begun_anew = true;
        tc->passes_since = 0;
    }
    return tc->passes_since != 0 && now - tc->passes_since >= REFUSED_AFTER * ht->n_endpoints &&
           !ht->is_suspect;
}

/* What to do while the hub is reached by UDP. Return: keep a stream, or open one. */
static bool run_udp(struct hub_transport *ht, bool is_stream_open,
    struct hub_transport_actions *actions, nsec_t now)
{
    struct transport_choice *tc = &ht->choice;
    nsec_t unanswered;
    bool is_dead;
    bool is_refused;
    bool was_mistake;

    if (ht->silent_since == 0) {
        tc->suspected_since = 0;
        tc->passes_since = 0;
        tc->is_suspect = false;
        tc->has_begun_anew = false;
        tc->n_asked = 0;
        return false;
    }
    if (tc->suspected_since == 0)
        tc->suspected_since = now;
    actions->ask = choice_ask(tc, now, suspect_interval(ht, is_stream_open, now));
    tc->n_beside = is_stream_open ? tc->n_beside + actions->ask : 0;
    unanswered = now - nsec_max(tc->suspected_since, tc->answered_at);
    is_dead = tc->n_asked >= DEAD_ASKED && unanswered >= DEAD_AFTER;
    /* What was answered before does not say that UDP passes now: the hub may be away. */
    if (is_dead)
        tc->passes_since = 0;
    is_refused = find_refused(ht, now);
    if (is_stream_open && (is_refused || (is_dead && tc->n_beside >= BESIDE_ASKED))) {
        was_mistake = tc->returned_at != 0 && now - tc->returned_at < RETURN_GOOD;
        if (!was_mistake)
            tc->settle_for = 0;
        else if (tc->settle_for == 0)
            tc->settle_for = SETTLE_FIRST;
        else
            tc->settle_for = nsec_min(tc->settle_for * 2, SETTLE_MAX);
        choice_take(tc, true, now);
        tc->was_refused = is_refused;
        actions->has_changed = true;
    }
    return is_refused || is_dead;
}

/* What to do while the stream is used. Return: true, it is wanted in any case. */
static bool run_stream(struct hub_transport *ht, bool is_stream_open,
    struct hub_transport_actions *actions, nsec_t now)
{
    struct transport_choice *tc = &ht->choice;
    bool is_returning = tc->n_answered > 0 || !is_stream_open;

    if (tc->n_answered > 0 && now - tc->answered_at > ANSWER_TIME)
        tc->n_answered = 0;
    actions->ask = choice_ask(tc, now, is_returning ? ASK_RETURN : ASK_STREAM);
    if (tc->n_answered < ANSWERS_ENOUGH || now - tc->taken_at < tc->settle_for)
        return true;
    choice_take(tc, false, now);
    tc->returned_at = now;
    actions->has_changed = true;
    return true;
}

/* ---- which direction fails ------------------------------------------------------------------- */

/* Packets that were on their way when the hub stopped answering have been counted after this time.
 * What is counted later was sent later. */
#define IN_FLIGHT (2 * NSEC_PER_SEC)

/* Between two questions to the hub: while nothing is known, and once something is. */
#define ASK_FIRST          (2 * NSEC_PER_SEC)
#define ASYMMETRY_ASK_SLOW (60 * NSEC_PER_SEC)

/* So many requests in a row must be unheard, since one may be lost by chance. */
#define UNHEARD_ENOUGH 3

/* What was counted stays: that the hub is silent is noticed later than the silence begins. */
static void asymmetry_clear(struct udp_asymmetry *ua)
{
    *ua = (struct udp_asymmetry){
        .answered_at = ua->answered_at, .rx_bytes = ua->rx_bytes, .grew_at = ua->grew_at};
}

void udp_asymmetry_on_answer(struct udp_asymmetry *ua, nsec_t now)
{
    asymmetry_clear(ua);
    ua->answered_at = now;
}

void udp_asymmetry_look(
    struct udp_asymmetry *ua, nsec_t silent_since, uint64_t rx_bytes, bool is_udp, nsec_t now)
{
    /* A count that fell is that of a new engine. */
    bool grew = rx_bytes > ua->rx_bytes;

    ua->rx_bytes = rx_bytes;
    if (grew && is_udp)
        ua->grew_at = now;
    if (silent_since == 0)
        asymmetry_clear(ua);
    else if (ua->silent_since == 0)
        ua->silent_since = nsec_max(silent_since, ua->answered_at);
}

bool udp_asymmetry_wants_to_ask(const struct udp_asymmetry *ua, nsec_t now)
{
    bool is_settled =
        endpoint_is_none(&ua->from) ? ua->n_unheard >= UNHEARD_ENOUGH : ua->n_unheard == 0;

    return ua->asked_at == 0 || now - ua->asked_at >= (is_settled ? ASYMMETRY_ASK_SLOW : ASK_FIRST);
}

void udp_asymmetry_on_heard(struct udp_asymmetry *ua, const struct endpoint *from)
{
    if (from) {
        ua->from = *from;
        ua->n_unheard = 0;
        return;
    }
    ua->n_unheard++;
    if (ua->n_unheard >= UNHEARD_ENOUGH)
        ua->from = (struct endpoint){.port = 0};
}

enum udp_asymmetry_kind udp_asymmetry_of(const struct udp_asymmetry *ua)
{
    if (ua->silent_since == 0)
        return UDP_ASYMMETRY_UNKNOWN;
    if (!endpoint_is_none(&ua->from))
        return UDP_ASYMMETRY_IN;
    return ua->grew_at - ua->silent_since >= IN_FLIGHT ? UDP_ASYMMETRY_OUT : UDP_ASYMMETRY_UNKNOWN;
}

const char *const udp_asymmetry_names[] = {"", "in", "out"};
_Static_assert(
    sizeof(udp_asymmetry_names) / sizeof(*udp_asymmetry_names) == UDP_ASYMMETRY_N, "a name each");

/* ---- both, and in words ---------------------------------------------------------------------- */

#define WAY_MAX 384

/*
 * Why it is a stream; which direction of UDP fails; and the one change that would mend it. The
 * texts of the stream are cut where they are longer than any that the hub gives.
 */
static void transport_explain(struct hub_transport *ht, const struct hub_stream_status *status)
{
    const struct endpoint *hub = &ht->endpoints[0];
    char way[WAY_MAX];
    char from[ENDPOINT_TEXT_MAX];
    char at[ENDPOINT_TEXT_MAX];

    ht->explained = udp_asymmetry_of(&ht->asymmetry);
    (void)endpoint_format(hub, at);
    /* Where packets go in TLS, and what of a proxy. */
    if (status->passed_over[0] != '\0')
        (void)snprintf(way, WAY_MAX, "%.80s without the proxy, which fails (%.240s)", status->to,
            status->passed_over);
    else
        (void)snprintf(way, WAY_MAX, "%.120s%s%.120s", status->to,
            status->through[0] ? " through the proxy " : "", status->through);
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
    if (ht->choice.was_refused) {
        (void)snprintf(ht->why, sizeof(ht->why),
            "the hub at %s answers by UDP, but WireGuard does not get through: something on the "
            "way "
            "seems to drop it; packets go in TLS to %s; let UDP port %u out here, and in at the "
            "hub, whatever it carries",
            at, way, hub->port);
        return;
    }
    (void)snprintf(ht->why, sizeof(ht->why),
        "UDP to the hub at %s is blocked, packets go in TLS to %s; let UDP port %u "
        "out here, and in at the hub",
        at, way, hub->port);
}

/* ---- facts ----------------------------------------------------------------------------------- */

void hub_transport_poll(struct hub_transport *ht, const struct hub_transport_view *view,
    const struct hub_transport_stream *stream, nsec_t now)
{
    bool is_at_stream = stream->exists && endpoint_equal(&view->heard_at, &stream->endpoint);

    /* Heard through the stream is not heard by UDP. */
    if (view->silent_since == 0 && is_at_stream)
        ht->silent_since = ht->silent_since ? ht->silent_since : now;
    else
        ht->silent_since = view->silent_since;
    ht->is_suspect = view->is_suspect;
    ht->handshake_at = view->handshake_at;
    (void)snprintf(ht->lockout, sizeof(ht->lockout), "%s", view->lockout ? view->lockout : "");
    ht->n_endpoints = view->endpoints->n;
    memcpy(ht->endpoints, view->endpoints->all, ht->n_endpoints * sizeof(*ht->endpoints));
    /* What came before a line was due says nothing about the time since then. */
    udp_asymmetry_look(&ht->asymmetry,
        ht->silent_since != 0 && view->is_late ? now : ht->silent_since, view->rx_bytes,
        !ht->choice.by_stream, now);
}

bool hub_transport_on_answer(struct hub_transport *ht, const struct endpoint *from, nsec_t now)
{
    struct transport_choice *tc = &ht->choice;
    unsigned i = 0;

    while (i < ht->n_endpoints && !endpoint_equal(from, &ht->endpoints[i]))
        i++;
    if (i == ht->n_endpoints)
        return false;
    tc->answered_at = now;
    tc->n_asked = 0;
    tc->n_beside = 0;
    if (tc->passes_since == 0 && !tc->is_suspect)
        tc->passes_since = now;
    if (tc->by_stream)
        tc->n_answered++;
    udp_asymmetry_on_answer(&ht->asymmetry, now);
    return true;
}

/* ---- what the hub hears ---------------------------------------------------------------------- */

bool hub_transport_on_heard(struct hub_transport *ht, const struct endpoint *from,
    const struct hub_transport_stream *stream)
{
    if (!ht->choice.by_stream || ht->asymmetry.silent_since == 0)
        return false;
    udp_asymmetry_on_heard(&ht->asymmetry, from);
    /* Told once for each verdict: an answer by UDP clears it, and that is not worth a line. */
    if (udp_asymmetry_of(&ht->asymmetry) == ht->explained)
        return false;
    transport_explain(ht, &stream->status);
    return true;
}

/* ---- what is to be done ---------------------------------------------------------------------- */

struct hub_transport_actions hub_transport_run(
    struct hub_transport *ht, const struct hub_transport_stream *stream, nsec_t now)
{
    const struct hub_stream_status *status = &stream->status;
    struct hub_transport_actions actions = {
        /* Whoever reads the log should know why a stream that is wanted does not come about. */
        .has_failure =
            !status->is_open && status->why[0] != '\0' && strcmp(status->why, ht->failed) != 0};
    bool wants_stream = ht->choice.by_stream ? run_stream(ht, status->is_open, &actions, now)
                                             : run_udp(ht, status->is_open, &actions, now);
    bool by_stream = ht->choice.by_stream;

    actions.open_stream = wants_stream && !stream->exists;
    actions.close_stream = !wants_stream && !by_stream && stream->exists;
    /* Earlier, WireGuard would follow the hub to a stream that is only held ready. */
    actions.join_stream = by_stream;
    if (actions.has_failure)
        (void)snprintf(ht->failed, sizeof(ht->failed), "%s", status->why);
    if (actions.has_changed && by_stream)
        transport_explain(ht, status);
    if (by_stream && status->is_open && ht->n_endpoints != 0 &&
        udp_asymmetry_wants_to_ask(&ht->asymmetry, now)) {
        /* A request that should have been answered: was it lost on the way there, or its answer?
         * Each of the hub's endpoints in turn: perhaps there is no way at all to some. */
        ht->next_heard = (ht->next_heard + 1) % ht->n_endpoints;
        actions.ask_heard = true;
        actions.heard_way = ht->endpoints[ht->next_heard];
    }
    return actions;
}

bool hub_transport_is_settled(const struct hub_transport *ht, nsec_t now)
{
    /* It passes again, and is taken again once it has for a while. */
    if (ht->choice.n_answered > 0 && !ht->choice.was_refused)
        return false;
    return udp_asymmetry_of(&ht->asymmetry) != UDP_ASYMMETRY_UNKNOWN ||
           ht->asymmetry.n_unheard >= UNHEARD_ENOUGH ||
           now - ht->choice.taken_at >= UNHEARD_ENOUGH * ASK_FIRST + IN_FLIGHT;
}

const char *hub_transport_why(const struct hub_transport *ht)
{
    return ht->choice.by_stream ? ht->why : NULL;
}
