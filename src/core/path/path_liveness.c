/* path_liveness.c - see path_internal.h. */
#include "path/path_internal.h"
#include "path/paths_internal.h"

/* Time between two pings while data flows, and before an unanswered one is repeated. */
#define PING_ACTIVE (500 * NSEC_PER_MSEC)
#define PING_AGAIN  (200 * NSEC_PER_MSEC)
/* The same while no data flows, unless the NATs need another interval. */
#define IDLE_DEFAULT (10 * NSEC_PER_SEC)
#define IDLE_MIN     (2 * NSEC_PER_SEC)
#define IDLE_MAX     (60 * NSEC_PER_SEC)
/* The same towards a relay, which carries others' data: it is to be left within 2 s by both ends of
 * each. It does not know of the data, so we do not wait for its pings. */
#define PING_RELAY       (300 * NSEC_PER_MSEC)
#define DEAD_AFTER_RELAY (700 * NSEC_PER_MSEC)
/* The side that does not ping first waits so much longer, for the other's ping. */
#define SLACK_ACTIVE (200 * NSEC_PER_MSEC)
#define SLACK_IDLE   (1000 * NSEC_PER_MSEC)
/* For this time after data has flowed, the path is watched closely. */
#define ACTIVE_FOR (5 * NSEC_PER_SEC)
/* A path is dead this long after the first ping without an answer, and after at least so many. */
#define DEAD_AFTER (1300 * NSEC_PER_MSEC)
#define DEAD_PINGS 4
/* What the engine has received keeps an unanswered path for so long, and all of it together for no
 * longer than that. It is asked after so many pings. */
#define RECEIVED_FOR  (1500 * NSEC_PER_MSEC)
#define RECEIVED_MAX  (60 * NSEC_PER_SEC)
#define RECEIVED_ASKS 2
/* A tick that comes so much too late says that this machine is busy: answers may be waiting to be
 * read. Such ticks find a path dead only after so many pings. */
#define LATE       (50 * NSEC_PER_MSEC)
#define LATE_PINGS (2 * DEAD_PINGS)
/* After a switch the two ends may use different pairs for this time, and then for so many
 * answers. */
#define AGREE_AFTER   (1 * NSEC_PER_SEC)
#define DISAGREED_MAX 2

/* ---- traffic -------------------------------------------------------------------------------- */

bool path_traffic_is_active(const struct path_traffic *t, nsec_t now)
{
    return t->moved_at != 0 && now - t->moved_at < ACTIVE_FOR;
}

bool path_traffic_count(struct path_traffic *t, uint64_t rx, uint64_t tx, nsec_t now)
{
    bool is_first = !t->has_counts;
    bool was_active = path_traffic_is_active(t, now);
    bool moved = rx != t->rx || tx != t->tx;

    t->has_counts = true;
    t->rx = rx;
    t->tx = tx;
    /* The first counters are only what later ones are compared with. */
    if (!moved || is_first)
        return false;
    t->moved_at = now;
    return !was_active;
}

/* A line that is worth a job is not filled by this, bytes/s; and so long after more was moved its
 * queues are empty. */
#define CALM_RATE  65536
#define CALM_AFTER (10 * NSEC_PER_SEC)

void paths_load_count(
    struct paths_load *l, const struct path_traffic *before, uint64_t rx, uint64_t tx, nsec_t now)
{
    nsec_t ms = (now - l->since) / NSEC_PER_MSEC;

    if (before->has_counts && rx >= before->rx && tx >= before->tx)
        l->bytes += rx - before->rx + tx - before->tx;
    if (ms < 1000)
        return;
    if (l->since != 0 && l->bytes / (uint64_t)ms > CALM_RATE / 1000)
        l->busy_at = now;
    l->bytes = 0;
    l->since = now;
}

bool paths_load_is_calm(const struct paths_load *l, nsec_t now)
{
    return l->busy_at == 0 || now - l->busy_at >= CALM_AFTER;
}

/* ---- liveness ------------------------------------------------------------------------------- */

/* For how long nothing is heard before this side pings: on an idle path the shorter of the two
 * intervals that the NATs need. */
static nsec_t quiet_time(const struct path_liveness_facts *facts)
{
    nsec_t here = facts->keepalive_here ? facts->keepalive_here : IDLE_DEFAULT;
    nsec_t there = facts->keepalive_there ? facts->keepalive_there : IDLE_DEFAULT;
    nsec_t idle = nsec_min(nsec_max(nsec_min(here, there), IDLE_MIN), IDLE_MAX);

    if (facts->is_active && facts->is_relay)
        return PING_RELAY;
    if (facts->is_active)
        return facts->begins ? PING_ACTIVE : PING_ACTIVE + SLACK_ACTIVE;
    return facts->begins ? idle : idle + SLACK_IDLE;
}

void path_liveness_start(
    struct path_liveness *l, const struct path_liveness_facts *facts, nsec_t now)
{
    *l = (struct path_liveness){.next_at = now + quiet_time(facts), .agree_at = now + AGREE_AFTER};
}

void path_liveness_on_nominate(struct path_liveness *l, nsec_t now)
{
    l->agree_at = now + AGREE_AFTER;
    l->n_disagreed = 0;
}

void path_liveness_on_alive(
    struct path_liveness *l, const struct path_liveness_facts *facts, nsec_t now)
{
    l->unanswered_since = 0;
    l->n_unanswered = 0;
    l->next_at = now + quiet_time(facts);
}

static bool may_hasten(const struct path_liveness *l)
{
    return l->next_at != NSEC_NEVER && l->n_unanswered == 0;
}

void path_liveness_suspect(struct path_liveness *l, nsec_t now)
{
    if (may_hasten(l))
        l->next_at = now;
}

void path_liveness_on_data(
    struct path_liveness *l, const struct path_liveness_facts *facts, nsec_t now)
{
    if (may_hasten(l))
        l->next_at = nsec_min(l->next_at, facts->begins ? now : now + SLACK_ACTIVE);
}

void path_liveness_on_received(struct path_liveness *l, nsec_t since, nsec_t now)
{
    if (l->n_unanswered > 0 && since >= l->unanswered_since)
        l->received_at = now;
}

bool path_liveness_wants_look(
    const struct path_liveness *l, const struct path_liveness_facts *facts)
{
    return facts->is_active && l->n_unanswered >= RECEIVED_ASKS;
}

static bool is_received(const struct path_liveness *l, nsec_t now)
{
    return l->received_at > l->unanswered_since && now - l->received_at < RECEIVED_FOR &&
           now - l->unanswered_since < RECEIVED_MAX;
}

enum path_liveness_step path_liveness_tick(
    struct path_liveness *l, const struct path_liveness_facts *facts, nsec_t now)
{
    nsec_t patience = (facts->is_relay ? DEAD_AFTER_RELAY : DEAD_AFTER) + 3 * facts->rtt;
    nsec_t late = now - l->next_at;

    if (late < 0)
        return PATH_LIVENESS_WAIT;
    if (late >= LATE && l->n_unanswered > 0)
        l->unanswered_since += late;
    if (l->n_unanswered >= (late >= LATE ? LATE_PINGS : DEAD_PINGS) &&
        now - l->unanswered_since >= patience && !is_received(l, now))
        return PATH_LIVENESS_DEAD;
    if (l->n_unanswered++ == 0)
        l->unanswered_since = now;
    l->next_at = now + nsec_max(PING_AGAIN, nsec_min(facts->rtt + facts->rtt / 2, PING_ACTIVE));
    return PATH_LIVENESS_PING;
}

/* If the frame that told the peer was lost, the two ends would use different pairs for ever. */
bool path_liveness_on_agreement(
    struct path_liveness *l, bool agrees, bool is_nominating, nsec_t now)
{
    if (agrees || now < l->agree_at) {
        l->n_disagreed = 0;
        return false;
    }
    if (++l->n_disagreed < DISAGREED_MAX || is_nominating)
        return false;
    l->n_disagreed = 0;
    return true;
}
