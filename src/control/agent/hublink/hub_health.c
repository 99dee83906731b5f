/* hub_health.c - see hub_health.h. */
#include "agent/hublink/hub_health.h"

#include "agent/reconcile/observe.h"
#include "mesh/object/object.h"

/*
 * Data that the hub has not answered for this time: its kernel answers at once the TCP keepalives
 * of the stream of events, which are sent each 5 s.
 */
#define SILENCE (6 * NSEC_PER_SEC)

/* A silent hub is looked for at the same endpoint for this time, unless it answers elsewhere. */
#define PATIENCE (30 * NSEC_PER_SEC)

/* WireGuard renews a session after 120 s (whitepaper 6.1); one that is renewed before was lost. */
#define SESSION_YOUNG (100 * NSEC_PER_SEC)

void hub_health_deinit(struct hub_health *hh)
{
    hub_ways_deinit(&hh->ways);
}

static enum hub_health_link take_handshake_time(struct hub_health *hh, nsec_t at)
{
    nsec_t before = hh->handshake_at;

    hh->handshake_at = at;
    if (at <= before)
        return HUB_HEALTH_LINK_KEEP;
    if (hh->has_moved || (before != 0 && at - before < SESSION_YOUNG)) {
        hh->has_moved = false;
        return HUB_HEALTH_LINK_RESTART;
    }
    return HUB_HEALTH_LINK_POKE;
}

static void judge_silence(struct hub_health *hh, const struct hub_health_facts *facts)
{
    const struct observation *ob = facts->seen;
    bool is_unanswered;

    /* Without an engine nothing was sent. */
    if (!facts->has_engine) {
        hh->no_session_since = 0;
        hh->silent_since = 0;
        return;
    }
    if (!observation_has_session(ob, facts->now)) {
        hh->no_session_since = hh->no_session_since ? hh->no_session_since : facts->now;
        hh->silent_since = hh->no_session_since;
        return;
    }
    is_unanswered = !facts->is_standby && ob->unanswered_since != 0 &&
                    facts->now - ob->unanswered_since >= SILENCE;
    hh->no_session_since = 0;
    hh->silent_since = is_unanswered ? ob->unanswered_since : 0;
}

/* The endpoint is another one. The stream is not affected, so without it alone a handshake is due.
 */
static void on_moved(struct hub_health *hh, bool is_by_stream)
{
    hh->has_moved = !is_by_stream;
    hh->wants_handshake = !is_by_stream;
}

static void choose_path(
    struct hub_health *hh, const struct hub_health_facts *facts, struct hub_health_wish *wish)
{
    nsec_t silent_for = hh->silent_since == 0 ? 0 : facts->now - hh->silent_since;
    bool works = observation_has_session(facts->seen, facts->now) && silent_for < PATIENCE;
    bool is_first = hh->path.path.node[0] == '\0';

    hub_ways_poll(&hh->ways, facts->hub->hub, facts->network, hh->silent_since != 0, facts->now);
    if (!hub_path_take(&hh->path, facts->hub->meta.name, hh->ways.all, hh->ways.n, works,
            facts->now, facts->has_route, facts->has_route_ctx))
        return;
    wish->reconcile = true;
    if (is_first)
        return;
    wish->moved_because = "no answer from the hub";
    on_moved(hh, facts->is_by_stream);
}

struct hub_health_wish hub_health_poll(struct hub_health *hh, const struct hub_health_facts *facts)
{
    struct hub_health_wish wish = {
        .link = take_handshake_time(hh, facts->seen ? facts->seen->handshake_at : 0)};

    judge_silence(hh, facts);
    if (facts->hub)
        choose_path(hh, facts, &wish);
    return wish;
}

struct hub_health_wish hub_health_on_answer(
    struct hub_health *hh, const struct endpoint *from, bool is_by_stream, nsec_t now)
{
    struct hub_health_wish wish = {.link = HUB_HEALTH_LINK_KEEP};

    if (!hub_path_on_answer(&hh->path, from, now))
        return wish;
    wish.reconcile = true;
    wish.moved_because = "the hub answers elsewhere";
    on_moved(hh, is_by_stream);
    return wish;
}

bool hub_health_take_handshake(struct hub_health *hh)
{
    bool wanted = hh->wants_handshake;

    hh->wants_handshake = false;
    return wanted;
}
