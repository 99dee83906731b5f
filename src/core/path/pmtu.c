/* pmtu.c - see pmtu.h. Section numbers are those of RFC 8899. */
#include "path/pmtu.h"

#include <assert.h>
#include <stddef.h>

#define TRIES        3                     /* 5.1.2, MAX_PROBES: of one size */
#define STEP         8                     /* bisection ends when its bounds are this close */
#define NEXT_PROBES  3                     /* of a sweep's second and third round */
#define WAIT_FIRST   (1 * NSEC_PER_SEC)    /* 5.1.1, PROBE_TIMER, while the RTT is unknown */
#define WAIT_MIN     (250 * NSEC_PER_MSEC) /* the least time to wait, once the RTT is known */
#define WAIT_MAX     (3 * NSEC_PER_SEC)
#define WAIT_EXTRA   (100 * NSEC_PER_MSEC) /* for the other answers of a round, after its first */
#define ACTIVE       (5 * NSEC_PER_SEC)    /* data moves if some did in this time */
#define CONFIRM      (4 * NSEC_PER_SEC)    /* 5.1.1, CONFIRMATION_TIMER */
#define CONFIRM_SOON (2 * NSEC_PER_SEC)    /* the same, when nothing comes back */
#define SUSPICIOUS   (1 * NSEC_PER_SEC)    /* nothing came back for so long: confirm early */
#define RAISE        (90 * NSEC_PER_SEC)   /* 5.1.1, PMTU_RAISE_TIMER: a line that was mended */
#define RAISE_SOON   (60 * NSEC_PER_SEC)   /* after a black hole, which may have been loss */
#define BACKOFF_MAX  (60 * NSEC_PER_SEC)

/*
 * Sizes that links have: IPv6's least, tunnels and mobile networks, Azure, WireGuard, VXLAN, Google
 * Cloud, PPPoE, Ethernet; jumbo frames of transit gateways, Google Cloud, switches and AWS.
 */
static const uint16_t steps[] = {
    1280, 1380, 1400, 1420, 1440, 1450, 1460, 1480, 1492, 1500, 8500, 8896, 9000, 9001};

/* The smallest size of the table above @size and up to @top; 0: there is none. */
static uint16_t next_step(const struct pmtu *p, uint16_t size, uint16_t top)
{
    if (size >= top)
        return 0;
    if (size < p->bounds.minimum)
        return p->bounds.minimum;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        if (steps[i] > size && steps[i] < top)
            return steps[i];
    return top;
}

/* ---- the phases ----------------------------------------------------------------------------- */

static void begin_round(struct pmtu *p, uint16_t first, nsec_t now)
{
    nsec_t wait = nsec_min(nsec_max(2 * p->rtt + WAIT_EXTRA, WAIT_MIN), WAIT_MAX);

    p->next = first;
    p->round_low = p->low;
    p->n_sent = 0;
    p->round_ends_at = now + (p->rtt == 0 ? WAIT_FIRST : wait);
}

/* Looks for the largest size above @low, which is known to pass (0: nothing is), up to @high. */
static void begin_sweep(struct pmtu *p, uint16_t low, uint16_t high, nsec_t now)
{
    p->state = PMTU_STATE_SWEEP;
    p->epoch++;
    p->low = low;
    p->high = high;
    p->n_tries = 0;
    begin_round(p, next_step(p, low, high), now);
}

static void settle(struct pmtu *p, uint16_t size, nsec_t now)
{
    p->raise_at = now + (size < p->doubted ? RAISE_SOON : RAISE);
    if (size >= p->bounds.ceiling)
        p->raise_at = NSEC_NEVER;
    p->state = PMTU_STATE_SETTLED;
    p->next = 0;
    p->size = size;
    p->is_measured = true;
    p->doubted = 0;
    p->quiet_for = 0;
}

static uint16_t middle(const struct pmtu *p)
{
    return (uint16_t)((p->low + p->high) / 2 & ~3);
}

/* Search between low and high by halving, unless they are within STEP of each other already. */
static void bisect(struct pmtu *p, nsec_t now)
{
    if (p->high - p->low <= STEP) {
        settle(p, p->low, now);
        return;
    }
    p->state = PMTU_STATE_BISECT;
    p->size = p->low;
    p->is_measured = true;
    p->n_tries = 0;
    begin_round(p, middle(p), now);
}

/* The last round of a sweep is over. */
static void end_sweep(struct pmtu *p, nsec_t now)
{
    /* No probe of any size was answered, which says nothing about sizes: wait, then sweep again. */
    if (p->low == 0) {
        p->state = PMTU_STATE_SILENT;
        p->quiet_for = p->quiet_for ? nsec_min(2 * p->quiet_for, BACKOFF_MAX) : NSEC_PER_SEC;
        p->round_ends_at = now + p->quiet_for;
        return;
    }
    p->high = next_step(p, p->low, p->high);
    bisect(p, now);
}

/*
 * A size is given up after TRIES rounds that brought nothing new. Probes are lost together, in a
 * queue on their way or before the other end listens: when a later round proves a size, those
 * above it have been tried once at most, and after rounds without any answer not at all.
 */
static void end_sweep_round(struct pmtu *p, nsec_t now)
{
    if (p->low == p->round_low)
        p->n_tries++;
    else
        p->n_tries = p->round_low == 0 && p->n_tries > 0 ? 0 : 1;
    if (p->n_tries == TRIES) {
        end_sweep(p, now);
        return;
    }
    /* One lost round may be chance. After the second one the smaller size is used while the
     * search goes on. */
    if (p->n_tries == TRIES - 1 && p->low != 0 && p->low < p->size)
        p->size = p->low;
    begin_round(p, next_step(p, p->low, p->high), now);
}

/* ---- events --------------------------------------------------------------------------------- */

void pmtu_init(struct pmtu *p, const struct pmtu_bounds *bounds)
{
    assert(bounds->minimum >= 576 && bounds->minimum <= bounds->assumed &&
           bounds->assumed <= bounds->ceiling);
    *p = (struct pmtu){.bounds = *bounds,
        .size = bounds->assumed,
        .data_sent_at = -1,
        .unheard_since = NSEC_NEVER,
        .raise_at = NSEC_NEVER};
}

void pmtu_on_path(struct pmtu *p, const struct pmtu_bounds *bounds, nsec_t now)
{
    uint16_t reported = p->reported;
    uint16_t epoch = p->epoch;

    pmtu_init(p, bounds);
    p->reported = reported;
    p->epoch = epoch;
    begin_sweep(p, 0, bounds->ceiling, now);
}

void pmtu_set_ceiling(struct pmtu *p, uint16_t ceiling, nsec_t now)
{
    if (p->bounds.ceiling == ceiling)
        return;
    p->bounds.ceiling = ceiling;
    if (p->size > ceiling)
        p->size = ceiling;
    if (p->state == PMTU_STATE_SETTLED && p->size < ceiling)
        begin_sweep(p, p->size, ceiling, now);
    else if (p->state != PMTU_STATE_NONE && p->state != PMTU_STATE_SILENT)
        begin_sweep(p, 0, ceiling, now);
}

void pmtu_on_path_lost(struct pmtu *p)
{
    p->state = PMTU_STATE_NONE;
    p->next = 0;
    p->epoch++;
}

static void on_sweep_answer(struct pmtu *p, uint16_t size, nsec_t now)
{
    if (size <= p->low || size > p->high)
        return;
    p->low = size;
    p->confirmed_at = now;
    if (size == p->high) {
        settle(p, size, now);
        return;
    }
    if (p->next != 0 && p->next <= size)
        p->next = next_step(p, size, p->high);
}

static void on_bisect_answer(struct pmtu *p, uint16_t size, nsec_t now)
{
    if (size <= p->low)
        return;
    p->low = size;
    p->confirmed_at = now;
    /* A late answer to a probe of the sweep: the size that seemed to fail passes after all. */
    if (size >= p->high)
        p->high = next_step(p, size, p->bounds.ceiling);
    if (p->high == 0)
        settle(p, size, now);
    else
        bisect(p, now);
}

void pmtu_on_answer(struct pmtu *p, const struct pmtu_probe *probe, nsec_t now)
{
    if (probe->epoch != p->epoch || probe->size < p->bounds.minimum ||
        probe->size > p->bounds.ceiling)
        return;
    /* An answer also tells how long it is worth waiting for those to the other probes. */
    p->rtt = nsec_max(now - probe->sent_at, 1);
    p->round_ends_at = nsec_min(p->round_ends_at, now + 2 * p->rtt + WAIT_EXTRA);
    switch (p->state) {
    case PMTU_STATE_NONE:
        break;
    case PMTU_STATE_SILENT: /* A late answer: the other end is there after all. */
        p->quiet_for = 0;
        p->round_ends_at = now;
        break;
    case PMTU_STATE_SWEEP:
        on_sweep_answer(p, probe->size, now);
        break;
    case PMTU_STATE_BISECT:
        on_bisect_answer(p, probe->size, now);
        break;
    case PMTU_STATE_CONFIRM:
    case PMTU_STATE_SETTLED:
        if (probe->size < p->size)
            break;
        p->confirmed_at = now;
        p->state = PMTU_STATE_SETTLED;
        p->next = 0;
        if (probe->size > p->size)
            settle(p, probe->size, now);
        break;
    }
}

void pmtu_on_data(struct pmtu *p, bool sent, bool heard, nsec_t now)
{
    if (heard)
        p->unheard_since = NSEC_NEVER;
    else if (sent && p->unheard_since == NSEC_NEVER)
        p->unheard_since = now;
    if (sent)
        p->data_sent_at = now;
}

/* ---- time ----------------------------------------------------------------------------------- */

/* When the size in use is to be confirmed; only on a path whose data moves. */
static nsec_t confirm_at(const struct pmtu *p)
{
    nsec_t at;

    if (p->data_sent_at < 0)
        return NSEC_NEVER;
    at = p->confirmed_at + CONFIRM;
    if (p->unheard_since != NSEC_NEVER)
        at = nsec_min(at, nsec_max(p->unheard_since + SUSPICIOUS, p->confirmed_at + CONFIRM_SOON));
    return at - p->data_sent_at < ACTIVE ? at : NSEC_NEVER;
}

static nsec_t raise_at(const struct pmtu *p)
{
    return p->raise_at != NSEC_NEVER && p->data_sent_at >= 0 &&
                   p->raise_at - p->data_sent_at < ACTIVE
               ? p->raise_at
               : NSEC_NEVER;
}

/* Handles every deadline that has passed by @now. */
static void advance(struct pmtu *p, nsec_t now)
{
    switch (p->state) {
    case PMTU_STATE_NONE:
        break;
    case PMTU_STATE_SETTLED:
        if (now >= confirm_at(p)) {
            p->state = PMTU_STATE_CONFIRM;
            begin_round(p, p->size, now);
        } else if (now >= raise_at(p)) {
            begin_sweep(p, p->size, p->bounds.ceiling, now);
        }
        break;
    case PMTU_STATE_SILENT:
        if (now >= p->round_ends_at)
            begin_sweep(p, 0, p->is_measured ? p->size : p->bounds.ceiling, now);
        break;
    case PMTU_STATE_SWEEP:
        if (now >= p->round_ends_at && p->next == 0)
            end_sweep_round(p, now);
        break;
    case PMTU_STATE_BISECT:
        if (now < p->round_ends_at || p->next != 0)
            break;
        p->n_tries++;
        if (p->n_tries < TRIES) {
            begin_round(p, middle(p), now);
        } else {
            p->high = middle(p);
            bisect(p, now);
        }
        break;
    case PMTU_STATE_CONFIRM:
        if (now >= p->round_ends_at && p->next == 0) {
            p->doubted = p->size;
            begin_sweep(p, 0, p->size, now);
        }
        break;
    }
}

enum pmtu_action pmtu_next(struct pmtu *p, nsec_t now, struct pmtu_probe *ret)
{
    advance(p, now);
    if (p->state != PMTU_STATE_NONE && p->size != p->reported) {
        p->reported = p->size;
        *ret = (struct pmtu_probe){p->size, p->epoch, now};
        return PMTU_ACTION_SET;
    }
    if (p->next == 0)
        return PMTU_ACTION_NONE;
    *ret = (struct pmtu_probe){p->next, p->epoch, now};
    p->n_sent++;
    /* A later round does not try all sizes, but always the largest: a size in doubt is given up
     * only after it was probed in every round. */
    if (p->state != PMTU_STATE_SWEEP || p->next == p->high)
        p->next = 0;
    else if (p->n_tries > 0 && p->n_sent >= NEXT_PROBES - 1)
        p->next = p->high;
    else
        p->next = next_step(p, p->next, p->high);
    return PMTU_ACTION_PROBE;
}

nsec_t pmtu_due(const struct pmtu *p)
{
    switch (p->state) {
    case PMTU_STATE_NONE:
        break;
    case PMTU_STATE_SETTLED:
        return nsec_min(confirm_at(p), raise_at(p));
    case PMTU_STATE_SWEEP:
    case PMTU_STATE_BISECT:
    case PMTU_STATE_CONFIRM:
    case PMTU_STATE_SILENT:
        return p->round_ends_at;
    }
    return NSEC_NEVER;
}
