/* train.c - see train.h. */
#include "uplink/train.h"

#include <assert.h>
#include <stddef.h>

/* ---- marks ----------------------------------------------------------------------------------- */

void train_marks_add(struct train_marks *m, const struct train_mark *mark)
{
    if (m->step == 0)
        m->step = 1;
    if (m->n > 0 && mark->sent < m->items[m->n - 1].sent + m->step)
        return;
    if (m->n == TRAIN_MARKS_MAX) {
        for (unsigned i = 0; i < TRAIN_MARKS_MAX / 2; i++)
            m->items[i] = m->items[2 * i];
        m->n = TRAIN_MARKS_MAX / 2;
        m->step *= 2;
    }
    m->items[m->n++] = *mark;
}

/* ---- one train ------------------------------------------------------------------------------- */

/* Fewer marks, or datagrams in their last half, say nothing. */
#define MARKS_MIN     8
#define DATAGRAMS_MIN 12

/* How much faster it is sent than it comes, in hundredths: from there on it is the line that is
 * measured; and below that it has carried all. */
#define LINE_FROM 115
#define ALL_BELOW 105

/* The two quarters of a train that are measured differ by less than that, in hundredths. */
#define EVEN_BELOW 130

const char *const train_verdict_names[] = {"nothing", "all", "close", "line"};
_Static_assert(
    sizeof(train_verdict_names) / sizeof(*train_verdict_names) == TRAIN_VERDICT_N, "a name each");

/* bit/s of @n datagrams of @size bytes in @took. */
static double rate_of(uint32_t n, uint32_t size, nsec_t took)
{
    return (double)n * size * 8 * (double)NSEC_PER_SEC / (double)took;
}

static bool are_in_order(const struct train_marks *m)
{
    if (m->n > TRAIN_MARKS_MAX)
        return false;
    for (unsigned i = 1; i < m->n; i++)
        if (m->items[i].sent <= m->items[i - 1].sent || m->items[i].heard < m->items[i - 1].heard ||
            m->items[i].at < m->items[i - 1].at || m->items[i].waited < m->items[i - 1].waited)
            return false;
    return true;
}

/* The time that the sender had spent with sending, when it had sent @n. */
static double sending_until(const struct train_marks *sent, uint32_t n)
{
    unsigned i = 1;
    const struct train_mark *a;
    const struct train_mark *b;
    double from;
    double to;

    while (i + 1 < sent->n && sent->items[i].sent < n)
        i++;
    a = &sent->items[i - 1];
    b = &sent->items[i];
    from = (double)(a->at - a->waited);
    to = (double)(b->at - b->waited);
    /* What was sent after the last mark took as long as what was sent before it. */
    return from + (to - from) * ((double)n - a->sent) / ((double)b->sent - a->sent);
}

struct train_result train_evaluate(const struct train_marks *sent, const struct train_marks *heard,
    uint32_t size, uint32_t n_missed)
{
    struct train_result ret = {.verdict = TRAIN_NOTHING};
    unsigned n = heard->n;
    const struct train_mark *from;
    const struct train_mark *half;
    const struct train_mark *to;
    double came;
    double went;
    double sending;
    double parts[2];

    if (n < MARKS_MIN || sent->n < 2 || !are_in_order(heard) || !are_in_order(sent))
        return ret;
    from = &heard->items[n / 2];
    half = &heard->items[n / 2 + (n - n / 2) / 2];
    to = &heard->items[n - 1];
    if (to->heard - from->heard < DATAGRAMS_MIN || half->at <= from->at || to->at <= half->at ||
        n_missed > to->heard / 100)
        return ret;
    parts[0] = rate_of(half->heard - from->heard, size, half->at - from->at);
    parts[1] = rate_of(to->heard - half->heard, size, to->at - half->at);
    if (parts[0] * 100 > parts[1] * EVEN_BELOW || parts[1] * 100 > parts[0] * EVEN_BELOW)
        return ret;
    came = rate_of(to->heard - from->heard, size, to->at - from->at);
    sending = sending_until(sent, to->sent) - sending_until(sent, from->sent);
    /* Of what was waited for alone there is no time; then it was sent as fast as one likes. */
    went = rate_of(to->sent - from->sent, size, (nsec_t)sending > 0 ? (nsec_t)sending : 1);
    ret.bits_per_s = (uint64_t)came;
    ret.sent_bits_per_s = (uint64_t)went;
    if (went * 100 >= came * LINE_FROM)
        ret.verdict = TRAIN_LINE;
    else if (went * 100 < came * ALL_BELOW)
        ret.verdict = TRAIN_ALL;
    else
        ret.verdict = TRAIN_CLOSE;
    return ret;
}

/* ---- one after the other --------------------------------------------------------------------- */

/* The first train to a peer of whose line nothing is known, bit/s, and how much more each next one
 * has while the line carries all. */
#define FIRST UINT64_C(10000000)
#define GROWS 4
/* The fastest: enough to see that a line carries TRAIN_FAST. */
#define FASTEST (TRAIN_FAST + TRAIN_FAST / 4)
#define SLOWEST UINT64_C(200000)

/* A train that is measured has so much more than the line carries, and one that had more than the
 * second is not yet taken: most of it was lost, and on some lines not evenly. In tenths. */
#define OVER       15
#define GENTLE_MAX 20

#define MS_MIN        250
#define MS_MAX        1000
#define DATAGRAM_BITS (1450 * 8)
#define DATAGRAMS     128
/* What is sent together: no longer than this, and a small part of the train, since it comes at once
 * and so makes one mark. */
#define AT_ONCE_US   250
#define AT_ONCE_MAX  32
#define AT_ONCE_PART (2 * TRAIN_MARKS_MAX)

static uint64_t clamp_offer(uint64_t rate)
{
    return rate < SLOWEST ? SLOWEST : rate > FASTEST ? FASTEST : rate;
}

void train_plan_begin(struct train_plan *p, uint64_t known)
{
    *p = (struct train_plan){.offered = known == 0 ? FIRST : clamp_offer(known * OVER / 10)};
}

bool train_plan_next(const struct train_plan *p, struct train_step *ret)
{
    uint64_t ms;
    uint64_t bytes;
    uint64_t at_once;

    if (p->offered == 0)
        return false;
    ms = (uint64_t)DATAGRAMS * DATAGRAM_BITS * 1000 / p->offered;
    ms = ms < MS_MIN ? MS_MIN : ms > MS_MAX ? MS_MAX : ms;
    bytes = p->offered / 8 * ms / 1000;
    bytes = bytes < TRAIN_BYTES_MAX ? bytes : TRAIN_BYTES_MAX;
    at_once = p->offered * AT_ONCE_US / 1000000;
    at_once = at_once < bytes * 8 / AT_ONCE_PART ? at_once : bytes * 8 / AT_ONCE_PART;
    at_once /= DATAGRAM_BITS;
    *ret = (struct train_step){.bits_per_s = p->offered,
        .ms = (uint32_t)ms,
        .bytes = (uint32_t)bytes,
        .at_once = at_once < 1             ? 1
                   : at_once > AT_ONCE_MAX ? AT_ONCE_MAX
                                           : (uint32_t)at_once};
    return true;
}

/* What the next train is after one at @p->offered, of which came what @r says; 0: none is. */
static uint64_t offer_after(struct train_plan *p, const struct train_result *r)
{
    switch (r->verdict) {
    case TRAIN_NOTHING:
        return ++p->n_nothing < 2 ? p->offered : 0;
    case TRAIN_ALL:
        p->bits_per_s = r->bits_per_s > p->bits_per_s ? r->bits_per_s : p->bits_per_s;
        return p->bits_per_s >= TRAIN_FAST || p->offered >= FASTEST
                   ? 0
                   : clamp_offer(p->offered * GROWS);
    case TRAIN_CLOSE:
        p->bits_per_s = r->bits_per_s > p->bits_per_s ? r->bits_per_s : p->bits_per_s;
        return p->bits_per_s >= TRAIN_FAST || p->offered >= FASTEST
                   ? 0
                   : clamp_offer(p->offered * OVER / 10);
    case TRAIN_LINE:
        if (p->offered > r->bits_per_s * GENTLE_MAX / 10 && p->offered > SLOWEST)
            return clamp_offer(r->bits_per_s * OVER / 10);
        p->bits_per_s = r->bits_per_s;
        p->is_line = true;
        return 0;
    case TRAIN_VERDICT_N:
        break;
    }
    return 0;
}

void train_plan_take(struct train_plan *p, const struct train_result *r)
{
    assert(p->offered != 0);
    p->n++;
    if (r->verdict != TRAIN_NOTHING)
        p->n_nothing = 0;
    p->offered = offer_after(p, r);
    if (p->n >= TRAIN_PLAN_MAX)
        p->offered = 0;
}
