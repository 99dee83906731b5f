/*
 * path_liveness.c - is the chosen pair alive?
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
#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"

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

static bool is_active(const struct path *pp, nsec_t now)
{
    return pp->traffic_at != 0 && now - pp->traffic_at < ACTIVE_FOR;
}

/* The shorter of what the two NATs need. */
static nsec_t idle_interval(const struct path *pp)
{
    nsec_t mine = pp->owner->self.keepalive ? pp->owner->self.keepalive : IDLE_DEFAULT;
    nsec_t theirs = pp->side.keepalive ? pp->side.keepalive : IDLE_DEFAULT;

    return nsec_min(nsec_max(nsec_min(mine, theirs), IDLE_MIN), IDLE_MAX);
}

static nsec_t quiet_time(const struct path *pp, nsec_t now)
{
    bool active = is_active(pp, now);
    nsec_t time = active ? BEAT_ACTIVE : idle_interval(pp);

    if (active && pp->peer.is_relay)
        return BEAT_RELAY;
    if (!pp->nominates)
        time += active ? SLACK_ACTIVE : SLACK_IDLE;
    return time;
}

void path__liveness_start(struct path *pp, nsec_t now)
{
    pp->liveness = (struct path_liveness){
        .next = now + quiet_time(pp, now), .alive_at = now, .agree_by = now + AGREE_AFTER};
}

void path__liveness_on_nominate(struct path *pp, nsec_t now)
{
    pp->liveness.agree_by = now + AGREE_AFTER;
    pp->liveness.n_disagreed = 0;
}

void path__liveness_stop(struct path *pp)
{
    pp->liveness = (struct path_liveness){.next = NSEC_NEVER};
}

void path__liveness_on_alive(struct path *pp, nsec_t now)
{
    pp->liveness.alive_at = now;
    pp->liveness.first_unanswered = 0;
    pp->liveness.n_unanswered = 0;
    pp->liveness.next = now + quiet_time(pp, now);
}

void path__liveness_now(struct path *pp, nsec_t now)
{
    if (pp->chosen != 0 && pp->liveness.n_unanswered == 0)
        pp->liveness.next = now;
}

bool path__liveness_tick(struct path *pp, nsec_t now)
{
    struct path_pair *pair = path__pair_of(pp, pp->chosen);
    struct path_liveness *b = &pp->liveness;
    nsec_t patience;

    if (!pair || now < b->next)
        return false;
    patience = (pp->peer.is_relay ? DEAD_AFTER_RELAY : DEAD_AFTER) + 3 * pair->rtt;
    if (b->n_unanswered >= DEAD_PINGS && now - b->first_unanswered >= patience)
        return true;
    (void)paths__reserve(pp->owner, 1, now);
    path__ping(pp, pair, now);
    if (b->n_unanswered++ == 0)
        b->first_unanswered = now;
    b->next = now + nsec_max(BEAT_AGAIN, nsec_min(pair->rtt + pair->rtt / 2, BEAT_ACTIVE));
    return false;
}

/*
 * The other side tells with each answer whether it uses this pair too. When a
 * frame that should have told it was lost, the two would differ for ever.
 */
bool path__liveness_on_agreement(struct path *pp, bool agrees, nsec_t now)
{
    struct path_liveness *b = &pp->liveness;

    if (agrees || now < b->agree_by) {
        b->n_disagreed = 0;
        return false;
    }
    if (++b->n_disagreed < DISAGREED_MAX || pp->nomination.pair != 0)
        return false;
    b->n_disagreed = 0;
    return true;
}

bool path__liveness_on_traffic(struct path *pp, uint64_t rx, uint64_t tx, nsec_t now)
{
    bool is_first = !pp->has_counts;
    bool was_active = is_active(pp, now);
    bool moved = rx != pp->rx || tx != pp->tx;

    pp->has_counts = true;
    pp->rx = rx;
    pp->tx = tx;
    /* The first counts only tell where counting begins. */
    if (!moved || is_first)
        return false;
    pp->traffic_at = now;
    if (was_active)
        return false;
    if (pp->chosen != 0 && pp->liveness.n_unanswered == 0)
        pp->liveness.next = nsec_min(pp->liveness.next, pp->nominates ? now : now + SLACK_ACTIVE);
    return true;
}
