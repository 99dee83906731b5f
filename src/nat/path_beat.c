/*
 * path_beat.c - is the chosen pair alive?
 *
 * One side pings, and the other knows from the flag of the next ping that its pong
 * arrived; so an idle path costs one ping and one pong for both. The other side
 * pings when that stays away. While data flows the pings come twice a second,
 * otherwise as often as the NATs need. One that is not answered is repeated
 * quickly, and when all are silent for DEAD_AFTER the path is dead: at most 2 s
 * after it broke, if data flows.
 *
 * Received data is no proof: it may have come through the relay already.
 */
#include "nat/path_internal.h"
#include "nat/path_pair_internal.h"
#include "nat/paths_internal.h"

#define BEAT_ACTIVE  (500 * NSEC_PER_MSEC)
#define BEAT_AGAIN   (200 * NSEC_PER_MSEC)
#define IDLE_DEFAULT (10 * NSEC_PER_SEC)
#define IDLE_MIN     (2 * NSEC_PER_SEC)
#define IDLE_MAX     (60 * NSEC_PER_SEC)
/* The same towards a relay, which carries others' data: it is to be left within 2 s by both ends of
 * each. It does not know of the data, so we do not wait for its pings. */
#define BEAT_RELAY       (300 * NSEC_PER_MSEC)
#define DEAD_AFTER_RELAY (700 * NSEC_PER_MSEC)
/* How much longer the side that waits for the other's ping waits. */
#define SLACK_ACTIVE (200 * NSEC_PER_MSEC)
#define SLACK_IDLE   (1000 * NSEC_PER_MSEC)
/* Data in the last so many seconds: the path is watched closely. */
#define ACTIVE_FOR (5 * NSEC_PER_SEC)
/* Since the first ping without an answer; and at least so many of them. */
#define DEAD_AFTER (1300 * NSEC_PER_MSEC)
#define DEAD_PINGS 4
/* After a switch the two ends may differ for so long, and then for so many answers. */
#define AGREE_AFTER   (1 * NSEC_PER_SEC)
#define DISAGREED_MAX 2

static bool is_active(const struct path *e, nsec_t now)
{
    return e->traffic_at != 0 && now - e->traffic_at < ACTIVE_FOR;
}

/* The shorter of what the two NATs need. */
static nsec_t idle_interval(const struct path *e)
{
    nsec_t mine = e->owner->self.keepalive ? e->owner->self.keepalive : IDLE_DEFAULT;
    nsec_t theirs = e->side.keepalive ? e->side.keepalive : IDLE_DEFAULT;

    return nsec_min(nsec_max(nsec_min(mine, theirs), IDLE_MIN), IDLE_MAX);
}

static nsec_t quiet_time(const struct path *e, nsec_t now)
{
    bool active = is_active(e, now);
    nsec_t time = active ? BEAT_ACTIVE : idle_interval(e);

    if (active && e->peer.is_relay)
        return BEAT_RELAY;
    if (!e->nominates)
        time += active ? SLACK_ACTIVE : SLACK_IDLE;
    return time;
}

void path__beat_start(struct path *e, nsec_t now)
{
    e->beat = (struct path_beat){
        .next = now + quiet_time(e, now), .alive_at = now, .agree_by = now + AGREE_AFTER};
}

void path__beat_on_nominate(struct path *e, nsec_t now)
{
    e->beat.agree_by = now + AGREE_AFTER;
    e->beat.n_disagreed = 0;
}

void path__beat_stop(struct path *e)
{
    e->beat = (struct path_beat){.next = NSEC_NEVER};
}

void path__beat_on_alive(struct path *e, nsec_t now)
{
    e->beat.alive_at = now;
    e->beat.first_unanswered = 0;
    e->beat.n_unanswered = 0;
    e->beat.next = now + quiet_time(e, now);
}

void path__beat_now(struct path *e, nsec_t now)
{
    if (e->chosen != 0 && e->beat.n_unanswered == 0)
        e->beat.next = now;
}

bool path__beat_tick(struct path *e, nsec_t now)
{
    struct path_pair *pair = path__pair_of(e, e->chosen);
    struct path_beat *b = &e->beat;
    nsec_t patience;

    if (!pair || now < b->next)
        return false;
    patience = (e->peer.is_relay ? DEAD_AFTER_RELAY : DEAD_AFTER) + 3 * pair->rtt;
    if (b->n_unanswered >= DEAD_PINGS && now - b->first_unanswered >= patience)
        return true;
    (void)paths__reserve(e->owner, 1, now);
    path__ping(e, pair, now);
    if (b->n_unanswered++ == 0)
        b->first_unanswered = now;
    b->next = now + nsec_max(BEAT_AGAIN, nsec_min(pair->rtt + pair->rtt / 2, BEAT_ACTIVE));
    return false;
}

/*
 * The other side tells with each answer whether it uses this pair too. When a
 * frame that should have told it was lost, the two would differ for ever.
 */
bool path__beat_on_agreement(struct path *e, bool agrees, nsec_t now)
{
    struct path_beat *b = &e->beat;

    if (agrees || now < b->agree_by) {
        b->n_disagreed = 0;
        return false;
    }
    if (++b->n_disagreed < DISAGREED_MAX || e->nomination.pair != 0)
        return false;
    b->n_disagreed = 0;
    return true;
}

bool path__beat_on_traffic(struct path *e, uint64_t rx, uint64_t tx, nsec_t now)
{
    bool is_first = !e->has_counts;
    bool was_active = is_active(e, now);
    bool moved = rx != e->rx || tx != e->tx;

    e->has_counts = true;
    e->rx = rx;
    e->tx = tx;
    /* The first counts only tell where counting begins. */
    if (!moved || is_first)
        return false;
    e->traffic_at = now;
    if (was_active)
        return false;
    if (e->chosen != 0 && e->beat.n_unanswered == 0)
        e->beat.next = nsec_min(e->beat.next, e->nominates ? now : now + SLACK_ACTIVE);
    return true;
}
