/* line.c - see line.h. */
#include "relay/line.h"

#include <stddef.h>
#include <string.h>

/* Shares of what the line can carry, in thousandths: a level begins, is held, and ends below. */
#define NEAR_FROM  750
#define NEAR_HELD  700
#define NEAR_UNTIL 650
#define FULL_FROM  900
#define FULL_HELD  850
#define FULL_UNTIL 800
#define CALM_BELOW 600
/* What pairs are moved for. */
#define AIM 750

/* How long a level has to last before it counts, and how long it has to be over. */
#define BEGINS_AFTER (30 * NSEC_PER_SEC)
#define ENDS_AFTER   (10 * NSEC_PER_SEC)
/* How long it has to be calm before the first pair is let back, and then the next one. */
#define CALM_FOR  (180 * NSEC_PER_SEC)
#define BACK_EACH (60 * NSEC_PER_SEC)

/* A pair that has been asked to go needs so long until it is gone. */
#define ASK_EACH (30 * NSEC_PER_SEC)
/* Most pairs that are asked at once, and the least share of the line that makes it worth it. */
#define ASK_MAX   4
#define ASK_LEAST 20

/* How long a pair is away that may fit, the first time and at most. */
#define HOLD_MIN (600 * NSEC_PER_SEC)
#define HOLD_MAX (86400 * NSEC_PER_SEC)
/* Who has stayed for so many times that is asked as if for the first time. */
#define HOLD_FORGOTTEN 4

/* Rates are smoothed over this time. */
#define SMOOTH (4 * NSEC_PER_SEC)
/* Samples that are further apart say nothing of what lasts. */
#define GAP_MAX (10 * NSEC_PER_SEC)

const char *const relay_line_level_names[] = {"open", "near", "full"};
_Static_assert(
    sizeof(relay_line_level_names) / sizeof(*relay_line_level_names) == RELAY_LINE_LEVEL_N,
    "a name each");

/* ---- what is known --------------------------------------------------------------------------- */

/* How much of the line @rate takes, in thousandths; 0: nobody knows. */
static uint64_t share(const struct relay_line *l, uint64_t rate)
{
    return l->capacity ? (uint64_t)((double)rate * 1000 / (double)l->capacity) : 0;
}

static bool has_lasted(nsec_t since, nsec_t for_time, nsec_t now)
{
    return since != 0 && now - since >= for_time;
}

static void take_rate(struct relay_line *l, const struct relay_sample *s, nsec_t passed)
{
    double seconds = (double)passed / (double)NSEC_PER_SEC;
    double now = (double)(s->bytes - l->bytes) * 8 / seconds;
    double weight = (double)passed / (double)(passed + SMOOTH);
    double rate = (double)l->rate + (now - (double)l->rate) * weight;

    l->rate = rate > 0 ? (uint64_t)rate : 0;
}

/* ---- how busy it is -------------------------------------------------------------------------- */

/* Since when the line is as busy as @from says; it may fall to @held for a moment. */
static void follow(nsec_t *since, uint64_t now_share, uint64_t from, uint64_t held, nsec_t now)
{
    if (now_share < held)
        *since = 0;
    else if (now_share >= from && *since == 0)
        *since = now;
}

static void take_level(struct relay_line *l, nsec_t now)
{
    uint64_t now_share = share(l, l->rate);
    uint64_t until = l->level == RELAY_LINE_FULL ? FULL_UNTIL : NEAR_UNTIL;
    enum relay_line_level level = RELAY_LINE_OPEN;

    follow(&l->near_since, now_share, NEAR_FROM, NEAR_HELD, now);
    follow(&l->full_since, now_share, FULL_FROM, FULL_HELD, now);
    if (has_lasted(l->full_since, BEGINS_AFTER, now))
        level = RELAY_LINE_FULL;
    else if (has_lasted(l->near_since, BEGINS_AFTER, now))
        level = RELAY_LINE_NEAR;
    if (now_share >= until)
        l->eased_since = 0;
    else if (l->eased_since == 0)
        l->eased_since = now;
    if (level > l->level || (level < l->level && has_lasted(l->eased_since, ENDS_AFTER, now))) {
        l->level = level;
        l->eased_since = 0;
    }
}

static void take_calm(struct relay_line *l, nsec_t now)
{
    if (l->level == RELAY_LINE_FULL)
        l->is_closed = true;
    if (share(l, l->rate) >= CALM_BELOW)
        l->calm_since = 0;
    else if (l->calm_since == 0)
        l->calm_since = now;
    if (has_lasted(l->calm_since, CALM_FOR, now))
        l->is_closed = false;
}

/* ---- who is to go another way ---------------------------------------------------------------- */

static bool is_same(const struct x25519_public a[static 2], const struct x25519_public b[static 2])
{
    return x25519_public_equal(&a[0], &b[0]) && x25519_public_equal(&a[1], &b[1]);
}

bool relay_line_is_away(const struct relay_line *l, const struct x25519_public keys[static 2])
{
    for (unsigned i = 0; i < l->n_away; i++)
        if (is_same(l->away[i].keys, keys))
            return l->away[i].back_at == 0;
    return false;
}

static struct relay_away *find_away(struct relay_line *l, const struct x25519_public keys[static 2])
{
    for (unsigned i = 0; i < l->n_away; i++)
        if (is_same(l->away[i].keys, keys))
            return &l->away[i];
    return NULL;
}

static nsec_t hold_of(const struct relay_away *away)
{
    nsec_t hold = HOLD_MIN;

    for (unsigned i = 1; i < away->n_times && hold < HOLD_MAX; i++)
        hold *= 2;
    return nsec_min(hold, HOLD_MAX);
}

/* A place for one more; that of who was let back longest ago, if there is no other. NULL: none. */
static struct relay_away *open_away(struct relay_line *l, const struct x25519_public keys[static 2])
{
    struct relay_away *oldest = NULL;

    if (l->n_away < RELAY_LINE_AWAY_MAX) {
        oldest = &l->away[l->n_away++];
    } else {
        for (unsigned i = 0; i < l->n_away; i++)
            if (l->away[i].back_at != 0 && (!oldest || l->away[i].back_at < oldest->back_at))
                oldest = &l->away[i];
    }
    if (oldest)
        *oldest = (struct relay_away){.keys = {keys[0], keys[1]}};
    return oldest;
}

/* False: it is away already, or there is no place for it. */
static bool ask(struct relay_line *l, const struct relay_pair *pair, nsec_t now)
{
    struct relay_away *away = find_away(l, pair->keys);

    if (!away)
        away = open_away(l, pair->keys);
    else if (away->back_at == 0)
        return false;
    if (!away)
        return false;
    if (away->back_at != 0 && now - away->back_at > HOLD_FORGOTTEN * hold_of(away))
        away->n_times = 0;
    away->rate = pair->rate;
    away->asked_at = now;
    away->back_at = 0;
    away->n_times++;
    return true;
}

static void ask_heaviest(struct relay_line *l, const struct relay_sample *s)
{
    uint64_t left = l->rate;
    unsigned n = 0;

    if (l->level != RELAY_LINE_FULL || s->now < l->ask_at || share(l, l->rate) < FULL_FROM)
        return;
    for (unsigned i = 0; i < s->n_pairs && n < ASK_MAX && share(l, left) > AIM; i++) {
        const struct relay_pair *pair = &s->pairs[i];

        if (share(l, pair->rate) < ASK_LEAST || !ask(l, pair, s->now))
            continue;
        left -= pair->rate < left ? pair->rate : left;
        n++;
    }
    if (n > 0)
        l->ask_at = s->now + ASK_EACH;
}

/* Does what it sent then fit, or may it fit, since it was away for long? */
static bool may_be_back(const struct relay_line *l, const struct relay_away *away, nsec_t now)
{
    uint64_t rate = now - away->asked_at >= hold_of(away) ? away->rate / 2 : away->rate;

    return share(l, l->rate + rate) <= AIM;
}

static void let_back(struct relay_line *l, nsec_t now)
{
    struct relay_away *least = NULL;

    if (!has_lasted(l->calm_since, CALM_FOR, now))
        return;
    for (unsigned i = 0; i < l->n_away; i++) {
        struct relay_away *away = &l->away[i];

        if (away->back_at == 0 && may_be_back(l, away, now) && (!least || away->rate < least->rate))
            least = away;
    }
    if (!least)
        return;
    least->back_at = now;
    l->calm_since = now - CALM_FOR + BACK_EACH;
}

void relay_line_take(struct relay_line *l, const struct relay_sample *s)
{
    nsec_t passed = s->now - l->sampled_at;
    bool is_first = l->sampled_at == 0;

    if (!is_first && passed <= 0)
        return;
    if (!is_first) {
        if (passed > GAP_MAX)
            l->near_since = l->full_since = l->eased_since = l->calm_since = 0;
        take_rate(l, s, passed);
        take_level(l, s->now);
        take_calm(l, s->now);
        ask_heaviest(l, s);
        let_back(l, s->now);
    }
    l->bytes = s->bytes;
    l->n_pairs = s->n_pairs;
    memcpy(l->pairs, s->pairs, sizeof(l->pairs));
    l->sampled_at = s->now;
}

static void tell_away(const struct relay_away *away, struct relay_line_report *ret)
{
    struct path_relay_notice *notice = &ret->notice;

    notice->away[notice->n_away++] = path_pair_tag(&away->keys[0], &away->keys[1]);
    for (unsigned i = 0; i < ret->n_pairs; i++)
        if (is_same(ret->pairs[i].pair.keys, away->keys))
            return;
    ret->pairs[ret->n_pairs++] =
        (struct relay_reported_pair){.pair.keys = {away->keys[0], away->keys[1]}, .is_away = true};
}

void relay_line_tell(const struct relay_line *l, struct relay_line_report *ret)
{
    *ret = (struct relay_line_report){.level = l->level,
        .rate = l->rate,
        .capacity = l->capacity,
        .is_measured = l->is_measured,
        .notice.is_closed = l->is_closed};
    while (ret->n_pairs < l->n_pairs && ret->n_pairs < RELAY_LINE_HEAVIEST) {
        const struct relay_pair *pair = &l->pairs[ret->n_pairs];

        ret->pairs[ret->n_pairs++] = (struct relay_reported_pair){
            .pair = *pair, .is_away = relay_line_is_away(l, pair->keys)};
    }
    for (unsigned i = 0; i < l->n_away; i++)
        if (l->away[i].back_at == 0)
            tell_away(&l->away[i], ret);
}
