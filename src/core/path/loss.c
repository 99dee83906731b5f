/* loss.c - see loss.h. */
#include "path/loss.h"

#define MINUTE (60 * NSEC_PER_SEC)

/* So much has to be known of what is usual: datagrams, and a time. */
#define USUAL_PACKETS 20000
#define USUAL_FOR     (30 * NSEC_PER_SEC)

/* What it takes for a rate to be much more than usual: datagrams that were lost, and periods that
 * are bad. */
#define WORSE_LOST_MIN    30
#define WORSE_PERIODS_MIN 4

/* What was lost before counts no more, and what has been worse for so long is usual. */
#define USUAL_MAX (3600 * NSEC_PER_SEC)

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

/* What of the @i-th period before the present one this machine did not drop itself. What was
 * dropped at the end of a period may be missed only in the next one. */
static uint64_t lost_in(const struct loss_track *t, unsigned i)
{
    const struct loss_period *p = period_before(t, i);
    uint64_t here = p->here + (uint64_t)(i + 1 < t->n ? period_before(t, i + 1)->here : 0);

    return p->lost > here ? p->lost - here : 0;
}

/* Of the periods that began at @since or after that. */
static struct loss_rate sum_up(const struct loss_track *t, nsec_t since, nsec_t now)
{
    struct loss_rate r = {.packets = 0};
    uint64_t here = t->n > 0 ? period_before(t, 0)->here : 0;

    for (unsigned i = 0; i < t->n && period_before(t, i)->since >= since; i++) {
        const struct loss_period *p = period_before(t, i);
        uint64_t here_before = i + 1 < t->n ? period_before(t, i + 1)->here : 0;

        r.packets += (uint64_t)p->received + p->lost;
        r.lost += p->lost;
        r.periods += lost_in(t, i) > 0;
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

/* ---- what is usual -------------------------------------------------------------------------- */

/* Adds what was lost in a period. */
static void remember(struct loss_usual *u, nsec_t since, uint64_t packets, uint64_t lost)
{
    struct loss_usual_part *part = &u->parts[u->at];

    if (part->since == 0 || since - part->since >= LOSS_USUAL_PART) {
        u->at = part->since == 0 ? u->at : (u->at + 1) % LOSS_USUAL_PARTS;
        part = &u->parts[u->at];
        *part = (struct loss_usual_part){.since = since};
    }
    part->packets += packets;
    part->lost += lost;
}

/* Adds the periods that are over for a minute, and were not looked at yet, but for those in which
 * much more was lost than usual. */
static void age(struct loss_track *t, nsec_t now)
{
    struct loss_usual *u = &t->usual;

    for (unsigned i = t->n; i-- > 1;) {
        const struct loss_period *p = period_before(t, i);
        nsec_t end = period_before(t, i - 1)->since;

        if (p->since < u->until || end > now - MINUTE)
            continue;
        if (!t->is_worse)
            remember(u, p->since, (uint64_t)p->received + p->lost, lost_in(t, i));
        u->until = end;
    }
}

static void set_usual(struct loss_rate *r, const struct loss_usual *u, nsec_t now)
{
    struct loss_rate sum = {.packets = 0};
    nsec_t first = u->until;

    for (unsigned i = 0; i < LOSS_USUAL_PARTS; i++) {
        const struct loss_usual_part *part = &u->parts[i];

        if (part->since == 0 || part->since < now - USUAL_MAX - LOSS_USUAL_PART)
            continue;
        sum.packets += part->packets;
        sum.lost += part->lost;
        first = nsec_min(first, part->since);
    }
    r->has_usual = sum.packets >= USUAL_PACKETS && u->until - first >= USUAL_FOR;
    r->usual_ppm = r->has_usual ? loss_rate_ppm(&sum) : 0;
}

/* Are most periods since then bad, beside what is usual? */
static bool are_most_bad(const struct loss_track *t, nsec_t since, uint32_t usual_ppm)
{
    unsigned n_bad = 0;
    unsigned n = 0;

    for (unsigned i = 0; i < t->n && period_before(t, i)->since >= since; i++) {
        const struct loss_period *p = period_before(t, i);
        const struct loss_rate r = {
            .packets = (uint64_t)p->received + p->lost, .lost = lost_in(t, i)};

        n += r.packets > 0;
        n_bad += loss_rate_ppm(&r) > (LITTLE_PPM > 2 * usual_ppm ? LITTLE_PPM : 2 * usual_ppm);
    }
    return n_bad >= WORSE_PERIODS_MIN && 3 * n_bad >= 2 * n;
}

static bool is_worse(const struct loss_track *t, const struct loss_rate *r, nsec_t now)
{
    uint32_t ppm = loss_rate_ppm(r);

    if (!t->is_known || !r->has_usual)
        return false;
    if (t->is_worse)
        return ppm > LITTLE_PPM && ppm / 3 > r->usual_ppm / 2;
    return r->lost >= WORSE_LOST_MIN && ppm >= loss_limits_ppm[LOSS_LEVEL_SOME] &&
           ppm / 3 >= r->usual_ppm &&
           are_most_bad(t, now - (nsec_t)r->seconds * NSEC_PER_SEC - NSEC_PER_SEC, r->usual_ppm);
}

static void look_worse(struct loss_track *t, const struct loss_rate *rate, nsec_t now)
{
    struct loss_usual *u = &t->usual;

    t->is_worse = is_worse(t, rate, now);
    if (!t->is_worse) {
        u->worse_since = 0;
    } else if (u->worse_since == 0) {
        u->worse_since = now;
    } else if (now - u->worse_since >= USUAL_MAX) {
        *u = (struct loss_usual){.until = u->until};
        t->is_worse = false;
    }
}

/* ---- a track -------------------------------------------------------------------------------- */

struct loss_rate loss_track_rate(const struct loss_track *t, nsec_t now)
{
    struct views v = look(t, now);
    struct loss_rate r = v.is_sure || v.is_over ? v.minute : v.all;

    set_usual(&r, &t->usual, now);
    r.is_worse = t->is_worse && r.has_usual;
    return r;
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
        age(t, now);
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
    look_worse(t, &rate, now);
}
