/* loss.c - see loss.h. */
#include "path/loss.h"

#define MINUTE (60 * NSEC_PER_SEC)

const uint32_t loss_limits_ppm[LOSS_LEVEL_N] = {
    [LOSS_LEVEL_SOME] = 1000, [LOSS_LEVEL_CRITICAL] = 10000};

/* Half of the least limit: what is below lasts no level. */
#define LITTLE_PPM 500

/* So many datagrams lose LOSS_LOST_MIN then: a minute that has seen them, and has lost fewer, is
 * clean. */
#define ENOUGH (LOSS_LOST_MIN * 1000000u / LITTLE_PPM)

bool loss_rate_is_known(const struct loss_rate *r)
{
    return r->packets >= LOSS_PACKETS_MIN;
}

uint32_t loss_rate_ppm(const struct loss_rate *r)
{
    double ppm = r->packets > 0 ? 1e6 * (double)r->lost / (double)r->packets : 0;

    return ppm < 1e6 ? (uint32_t)(ppm + 0.5) : 1000000;
}

enum loss_level loss_level(const struct loss_rate *r, enum loss_level before)
{
    bool is_sure = r->lost >= LOSS_LOST_MIN && r->periods >= LOSS_PERIODS_MIN;
    uint32_t ppm = loss_rate_ppm(r);

    if (!loss_rate_is_known(r))
        return LOSS_LEVEL_NONE;
    for (enum loss_level level = LOSS_LEVEL_CRITICAL; level > LOSS_LEVEL_NONE; level--) {
        uint32_t limit = loss_limits_ppm[level];

        if (before >= level ? ppm > limit / 2 : is_sure && ppm >= limit)
            return level;
    }
    return LOSS_LEVEL_NONE;
}

/* ---- over time ------------------------------------------------------------------------------ */

static void count(uint32_t *sum, uint64_t n)
{
    *sum = n > UINT32_MAX - *sum ? UINT32_MAX : *sum + (uint32_t)n;
}

/* The @i-th period before the present one. */
static const struct loss_period *period_before(const struct loss_track *t, unsigned i)
{
    return &t->periods[(t->at + LOSS_PERIODS - i) % LOSS_PERIODS];
}

/* Of the periods that began at @since or after that. What was dropped at the end of a period may be
 * missed only in the next one. */
static struct loss_rate sum_up(const struct loss_track *t, nsec_t since, nsec_t now)
{
    struct loss_rate r = {.packets = 0};
    uint64_t here = t->n > 0 ? period_before(t, 0)->here : 0;

    for (unsigned i = 0; i < t->n && period_before(t, i)->since >= since; i++) {
        const struct loss_period *p = period_before(t, i);
        uint64_t here_before = i + 1 < t->n ? period_before(t, i + 1)->here : 0;

        r.packets += (uint64_t)p->received + p->lost;
        r.lost += p->lost;
        r.periods += p->lost > p->here + here_before;
        r.seconds = (uint32_t)((now - p->since) / NSEC_PER_SEC);
        here += here_before;
    }
    r.lost -= here < r.lost ? here : r.lost;
    return r;
}

/* What counts of a track: the last minute, and all of ten that is not over. */
struct views {
    struct loss_rate minute;
    struct loss_rate all;
    bool is_sure; /* the last minute has lost enough to tell a rate */
    bool is_over; /* or it is clean, and the rest was not */
};

static struct views look(const struct loss_track *t, nsec_t now)
{
    struct views v = {.minute = sum_up(t, now - MINUTE, now),
        .all = sum_up(t, nsec_max(now - LOSS_PERIODS * LOSS_PERIOD, t->over_at), now)};

    v.is_sure = v.minute.lost >= LOSS_LOST_MIN && loss_rate_is_known(&v.minute);
    v.is_over = !v.is_sure && v.minute.packets >= ENOUGH && loss_rate_ppm(&v.all) > LITTLE_PPM;
    return v;
}

struct loss_rate loss_track_rate(const struct loss_track *t, nsec_t now)
{
    struct views v = look(t, now);

    return v.is_sure || v.is_over ? v.minute : v.all;
}

void loss_track_add(
    struct loss_track *t, uint64_t received, uint64_t lost, uint64_t here, nsec_t now)
{
    struct loss_period *p = &t->periods[t->at];
    bool is_first = t->n == 0;
    struct loss_rate rate;

    /* What is added was between the last call and this one. */
    if (is_first || t->added_at - p->since >= LOSS_PERIOD) {
        t->at = is_first ? 0 : (t->at + 1) % LOSS_PERIODS;
        t->n += t->n < LOSS_PERIODS;
        p = &t->periods[t->at];
        *p = (struct loss_period){.since = is_first ? now : t->added_at};
    }
    t->added_at = now;
    if (!is_first) {
        count(&p->received, received);
        count(&p->lost, lost);
        count(&p->here, here);
    }
    if (look(t, now).is_over)
        t->over_at = now - MINUTE;
    rate = loss_track_rate(t, now);
    t->is_known = rate.packets >= (t->is_known ? LOSS_PACKETS_MIN : 2 * LOSS_PACKETS_MIN);
    t->level = t->is_known ? loss_level(&rate, t->level) : LOSS_LEVEL_NONE;
}
