/* uplink_follow.c - see uplink_follow.h. */
#include "uplink/uplink_follow.h"

#include "base/traffic.h"
#include "uplink/train.h"
#include "uplink/uplink.h"

/* It is used up to its rate from this share on, in thousandths: what is sent has shorter headers
 * than what is counted, and a look falls anywhere. */
#define BUSY_FROM 850

/* Looks that are further apart say nothing of what lasts. */
#define GAP_MAX (5 * NSEC_PER_SEC)

/* Round trips are longer if they are so by this, and by a part of the least one. A part is lost
 * from this share on. */
#define RISE_MIN      (10 * NSEC_PER_MSEC)
#define RISE_SHARE    4
#define LOST_PERMILLE 100

/* A rate that was raised for a moment is set back for less. */
#define RAISED_RISE       (5 * NSEC_PER_MSEC)
#define RAISED_RISE_SHARE 8
#define RAISED_LOST       40

/* How long something has to last before it counts. A ping comes twice a second. */
#define LASTS (2 * NSEC_PER_SEC)

#define RAISE_PERMILLE 1120
#define RAISE_FOR      (6 * NSEC_PER_SEC)
#define RAISE_SOON     (5 * NSEC_PER_SEC)
#define RAISE_FIRST    (60 * NSEC_PER_SEC)
#define RAISE_EACH_MAX (3600 * NSEC_PER_SEC)

#define LOWER_PERMILLE 880
/* The queue in front of the line is to be empty by then; or those pings gone by of which a part was
 * lost. */
#define LOWER_FOR      (4 * NSEC_PER_SEC)
#define LOWER_LOST_FOR (10 * NSEC_PER_SEC)
/* So often where it does not seem to help: a queue that is full stays so until less is sent than
 * the line carries. */
#define LOWERED_MAX 5
/* A queue that was filled until now is drained by then. */
#define SETTLES (12 * NSEC_PER_SEC)
/* What could not be helped is left alone for so long, and for twice as long each further time. */
#define LOWER_PAUSE     (600 * NSEC_PER_SEC)
#define LOWER_PAUSE_MAX (3600 * NSEC_PER_SEC)
/* It is not lowered below a part of what was found, in thousandths; nor, by what one peer alone
 * shows, below the second one. */
#define LOWEST        250
#define LOWEST_OF_ONE 700

static uint64_t scale(uint64_t rate, unsigned permille)
{
    uint64_t ret = uplink_round(rate / 1000 * permille);

    return ret < TRAFFIC_RATE_MIN ? TRAFFIC_RATE_MIN : ret > TRAIN_FAST ? TRAIN_FAST : ret;
}

/* What was found is another line, and not the same one measured again. */
static bool is_another(uint64_t before, uint64_t found)
{
    return before == 0 || found == 0 || found > before / 100 * 115 || found < before / 100 * 85;
}

static void begin(struct uplink_follow *f, const struct uplink_follow_facts *facts)
{
    *f = (struct uplink_follow){.found = facts->found,
        .rate = facts->found == 0 ? 0 : scale(facts->found, UPLINK_FOLLOW_SHARE),
        .raise_each = RAISE_FIRST,
        .raise_at = facts->now + RAISE_FIRST,
        .lower_at = facts->now + SETTLES,
        .lower_pause = LOWER_PAUSE};
}

static void set_phase(
    struct uplink_follow *f, enum uplink_follow_phase phase, uint64_t rate, nsec_t now)
{
    f->phase = phase;
    f->rate = rate;
    f->since = now;
    f->bad_since = 0;
}

static void keep_since(nsec_t *since, bool is_so, nsec_t now)
{
    if (!is_so)
        *since = 0;
    else if (*since == 0)
        *since = now;
}

static bool is_bad(const struct uplink_follow_facts *facts)
{
    return facts->has_rtt && (facts->rise >= RISE_MIN + facts->least_rtt / RISE_SHARE ||
                                 facts->lost_permille >= LOST_PERMILLE);
}

/* Is it used up to its rate, and is that bad? */
static void see(struct uplink_follow *f, const struct uplink_follow_facts *facts)
{
    nsec_t passed = facts->now - f->looked_at;
    bool is_busy = false;

    if (f->looked_at != 0 && passed > 0 && passed <= GAP_MAX && facts->sent >= f->sent) {
        double bits = (double)(facts->sent - f->sent) * 8 * NSEC_PER_SEC / (double)passed;

        is_busy = bits * 1000 >= (double)f->rate * BUSY_FROM;
        keep_since(&f->busy_since, is_busy, f->looked_at);
    } else {
        f->busy_since = 0;
    }
    keep_since(&f->bad_since, is_busy && is_bad(facts), facts->now);
    f->sent = facts->sent;
    f->looked_at = facts->now;
}

static bool has_lasted(nsec_t since, nsec_t now)
{
    return since != 0 && now - since >= LASTS;
}

/* How it was before the rate is another one for a moment. */
static void remember(struct uplink_follow *f, const struct uplink_follow_facts *facts)
{
    f->before = f->rate;
    f->rise_before = facts->rise;
    f->lost_before = facts->lost_permille;
}

static void look_steady(struct uplink_follow *f, const struct uplink_follow_facts *facts)
{
    nsec_t now = facts->now;

    if (has_lasted(f->bad_since, now) && now >= f->lower_at) {
        remember(f, facts);
        f->n_lowered = 1;
        set_phase(f, UPLINK_FOLLOW_LOWERED, scale(f->rate, LOWER_PERMILLE), now);
        return;
    }
    if (!has_lasted(f->busy_since, now) || f->bad_since != 0 || now < f->raise_at ||
        !facts->has_rtt || f->rate >= TRAIN_FAST)
        return;
    remember(f, facts);
    set_phase(f, UPLINK_FOLLOW_RAISED, scale(f->rate, RAISE_PERMILLE), now);
}

static void rest_longer(struct uplink_follow *f)
{
    f->raise_each = nsec_min(2 * f->raise_each, RAISE_EACH_MAX);
}

/* Since it was raised round trips are longer, or more is lost. */
static bool is_worse(const struct uplink_follow *f, const struct uplink_follow_facts *facts)
{
    return !facts->has_rtt ||
           facts->rise >= f->rise_before + RAISED_RISE + facts->least_rtt / RAISED_RISE_SHARE ||
           facts->lost_permille >= f->lost_before + RAISED_LOST;
}

static void look_raised(struct uplink_follow *f, const struct uplink_follow_facts *facts)
{
    nsec_t now = facts->now;

    if (is_worse(f, facts)) {
        set_phase(f, UPLINK_FOLLOW_STEADY, f->before, now);
        f->lower_at = nsec_max(f->lower_at, now + SETTLES);
        f->raise_at = now + f->raise_each;
        rest_longer(f);
    } else if (f->busy_since == 0) {
        /* Nobody needs it now, so nothing is learned. */
        set_phase(f, UPLINK_FOLLOW_STEADY, f->before, now);
    } else if (now - f->since >= RAISE_FOR) {
        set_phase(f, UPLINK_FOLLOW_STEADY, f->rate, now);
        f->raise_each = nsec_max(f->raise_each / 2, RAISE_FIRST);
        f->raise_at = now + RAISE_SOON;
    }
}

static void look_lowered(struct uplink_follow *f, const struct uplink_follow_facts *facts)
{
    nsec_t now = facts->now;
    uint64_t next = scale(f->rate, LOWER_PERMILLE);
    uint64_t lowest = scale(f->found, facts->is_of_one ? LOWEST_OF_ONE : LOWEST);
    bool has_helped;

    if (f->busy_since == 0) {
        /* What is not sent cannot be too much: this is as good as any rate until it is sent. */
        set_phase(f, UPLINK_FOLLOW_STEADY, f->rate, now);
        return;
    }
    if (now - f->since < (facts->lost_permille >= LOST_PERMILLE ? LOWER_LOST_FOR : LOWER_FOR))
        return;
    if (!is_bad(facts)) {
        set_phase(f, UPLINK_FOLLOW_STEADY, f->rate, now);
        f->raise_at = nsec_max(f->raise_at, now + f->raise_each);
        rest_longer(f);
        return;
    }
    has_helped =
        facts->rise < f->rise_before / 10 * 7 || facts->lost_permille < f->lost_before / 10 * 7;
    if ((has_helped || f->n_lowered < LOWERED_MAX) && next >= lowest) {
        f->n_lowered++;
        set_phase(f, UPLINK_FOLLOW_LOWERED, next, now);
        return;
    }
    set_phase(f, UPLINK_FOLLOW_STEADY, f->before, now);
    f->lower_at = now + f->lower_pause;
    f->lower_pause = nsec_min(2 * f->lower_pause, LOWER_PAUSE_MAX);
    f->raise_at = nsec_max(f->raise_at, f->lower_at);
}

bool uplink_follow_look(struct uplink_follow *f, const struct uplink_follow_facts *facts)
{
    uint64_t before = f->rate;

    if (is_another(f->found, facts->found) && f->found != facts->found)
        begin(f, facts);
    if (f->rate == 0)
        return before != 0;
    see(f, facts);
    switch (f->phase) {
    case UPLINK_FOLLOW_STEADY:
        look_steady(f, facts);
        break;
    case UPLINK_FOLLOW_RAISED:
        look_raised(f, facts);
        break;
    case UPLINK_FOLLOW_LOWERED:
        look_lowered(f, facts);
        break;
    case UPLINK_FOLLOW_PHASE_N:
        break;
    }
    return f->rate != before;
}
