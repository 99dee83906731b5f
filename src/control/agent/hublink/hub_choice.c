/* hub_choice.c - see hub_choice.h. */
#include "agent/hublink/hub_choice.h"

#include <stdio.h>
#include <string.h>

#include "crypto/hash.h"

/* Its stream of events has to begin within this time: with a session, and without one, because a
 * handshake that is lost is repeated after 5 s (whitepaper 6.4). */
#define BEGIN_WITH_SESSION (2 * NSEC_PER_SEC)
#define BEGIN_WITHOUT      (6 * NSEC_PER_SEC)

/* Time between two pings: after an answer, and without one. */
#define PING_QUIET (1 * NSEC_PER_SEC)
#define PING_AGAIN (200 * NSEC_PER_MSEC)

/* It does not answer any more after so many pings and this time since the first of them. */
#define SILENT_PINGS 6
#define SILENT_FOR   (1200 * NSEC_PER_MSEC)

/* How long a hub that has failed is avoided at first, and at most. */
#define AVOID_FIRST (10 * NSEC_PER_SEC)
#define AVOID_MAX   (300 * NSEC_PER_SEC)

/* The preferred hub is taken back after this time with the present one, and up to the second time
 * later. */
#define SETTLE     (30 * NSEC_PER_SEC)
#define SETTLE_TOO (30 * NSEC_PER_SEC)

uint64_t hub_choice_weight(const char *node, const char *hub)
{
    struct blake2s_digest digest;
    uint64_t weight = 0;

    /* The zero separates the two names. */
    blake2s_hash(node, strlen(node) + 1, hub, strlen(hub), &digest);
    for (unsigned i = 0; i < sizeof(weight); i++)
        weight = weight << 8 | digest.b[i];
    return weight;
}

unsigned hub_choice_find(const struct hub_choice *hh, const char *name)
{
    unsigned i = 0;

    while (i < hh->n && strcmp(hh->items[i].name, name) != 0)
        i++;
    return i;
}

void hub_choice_set(struct hub_choice *hh, const char *node, const char *const names[], unsigned n)
{
    struct hub_choice_item items[HUB_CHOICE_MAX];

    for (unsigned i = 0; i < n; i++) {
        unsigned before = hub_choice_find(hh, names[i]);

        if (before < hh->n) {
            items[i] = hh->items[before];
            continue;
        }
        items[i] = (struct hub_choice_item){.weight = hub_choice_weight(node, names[i])};
        (void)snprintf(items[i].name, sizeof(items[i].name), "%.*s", NAME_MAX_LEN, names[i]);
    }
    memcpy(hh->items, items, n * sizeof(*items));
    hh->n = n;
}

/* ---- the present one ------------------------------------------------------------------------- */

static void forget_pings(struct hub_choice *hh, nsec_t now)
{
    hh->n_unanswered = 0;
    hh->next_ping_at = now + PING_QUIET;
}

void hub_choice_on_heard(struct hub_choice *hh, nsec_t now)
{
    unsigned i = hub_choice_find(hh, hh->serving);

    if (i < hh->n)
        hh->items[i].avoid_until = 0;
    hh->is_heard = true;
    hh->is_lost = false;
    forget_pings(hh, now);
}

void hub_choice_on_lost(struct hub_choice *hh)
{
    hh->is_heard = false;
    hh->is_lost = true;
}

void hub_choice_on_answer(struct hub_choice *hh, nsec_t now)
{
    hh->has_answered = true;
    forget_pings(hh, now);
}

/* Pings the serving hub, if that is due. Return: true if it does not answer any more. Where it has
 * never answered, something on the way may drop pings, so that their loss says nothing. */
static bool is_silent(struct hub_choice *hh, bool *ret_ping, nsec_t now)
{
    if (!hh->is_heard || now < hh->next_ping_at)
        return false;
    if (hh->has_answered && hh->n_unanswered >= SILENT_PINGS &&
        now - hh->unanswered_since >= SILENT_FOR)
        return true;
    if (hh->n_unanswered == 0)
        hh->unanswered_since = now;
    hh->n_unanswered++;
    hh->next_ping_at = now + (hh->has_answered ? PING_AGAIN : PING_QUIET);
    *ret_ping = true;
    return false;
}

static nsec_t begin_until(const struct hub_choice *hh, const struct hub_choice_fact *fact)
{
    return hh->taken_at + (fact->has_session ? BEGIN_WITH_SESSION : BEGIN_WITHOUT);
}

/* Why the serving hub has failed; NULL: it has not. */
static const char *find_failure(
    struct hub_choice *hh, const struct hub_choice_fact *fact, bool *ret_ping, nsec_t now)
{
    if (hh->is_lost)
        return "it has ended the connection";
    if (hh->is_heard && fact->is_cut)
        return "its connection in TLS is broken";
    if (!hh->is_heard && now >= begin_until(hh, fact))
        return "it does not answer";
    return is_silent(hh, ret_ping, now) ? "it does not answer any more" : NULL;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* Of two hubs: those that are not avoided first, then those with a session, then by weight. */
static bool is_better(const struct hub_choice *hh, const struct hub_choice_fact *facts, unsigned a,
    unsigned b, nsec_t now)
{
    bool avoids_a = hh->items[a].avoid_until > now;
    bool avoids_b = hh->items[b].avoid_until > now;

    if (avoids_a != avoids_b)
        return avoids_b;
    if (facts[a].has_session != facts[b].has_session)
        return facts[a].has_session;
    if (hh->items[a].weight != hh->items[b].weight)
        return hh->items[a].weight > hh->items[b].weight;
    return strcmp(hh->items[a].name, hh->items[b].name) < 0;
}

static unsigned find_best(
    const struct hub_choice *hh, const struct hub_choice_fact *facts, nsec_t now)
{
    unsigned best = 0;

    for (unsigned i = 1; i < hh->n; i++)
        if (is_better(hh, facts, i, best, now))
            best = i;
    return best;
}

static void take(struct hub_choice *hh, unsigned i, nsec_t now)
{
    memcpy(hh->serving, hh->items[i].name, sizeof(hh->serving));
    hh->taken_at = now;
    hh->is_heard = false;
    hh->is_lost = false;
    hh->has_answered = false;
    forget_pings(hh, now);
}

/* @served_for: how long it was the serving hub. One that has served well begins with a short time.
 */
static void avoid(struct hub_choice_item *item, nsec_t served_for, nsec_t now)
{
    if (served_for >= SETTLE && item->avoid_until == 0)
        item->avoid_for = 0;
    item->failed_at = now;
    item->avoid_for = item->avoid_for == 0 ? AVOID_FIRST : nsec_min(item->avoid_for * 2, AVOID_MAX);
    item->avoid_until = now + item->avoid_for;
}

/* How long the present hub serves before a preferred one is taken back. */
static nsec_t settle_for(const struct hub_choice_item *preferred)
{
    return SETTLE + (nsec_t)(preferred->weight % (uint64_t)SETTLE_TOO);
}

/* Has that hub shown, since it has failed, that it is there? */
static bool is_proven(const struct hub_choice_item *item, const struct hub_choice_fact *fact)
{
    return fact->has_session && fact->handshake_at > item->failed_at;
}

/* The preferred hub, if it is to be taken back now; else @serving. */
static unsigned find_preferred(
    const struct hub_choice *hh, const struct hub_choice_fact *facts, unsigned serving, nsec_t now)
{
    unsigned best = find_best(hh, facts, now);

    if (hh->items[best].weight <= hh->items[serving].weight || hh->items[best].avoid_until > now ||
        !is_proven(&hh->items[best], &facts[best]) ||
        now - hh->taken_at < settle_for(&hh->items[best]))
        return serving;
    return best;
}

/* A hub to go to from @serving, which has failed; @serving itself when all others are avoided, too.
 */
static unsigned find_refuge(
    struct hub_choice *hh, const struct hub_choice_fact *facts, unsigned serving, nsec_t now)
{
    unsigned best;

    if (hh->items[serving].avoid_until <= now)
        avoid(&hh->items[serving], now - hh->taken_at, now);
    best = find_best(hh, facts, now);
    return hh->items[best].avoid_until > now ? serving : best;
}

static nsec_t next_due(
    const struct hub_choice *hh, const struct hub_choice_fact *fact, unsigned serving, nsec_t now)
{
    nsec_t due = hh->is_heard ? hh->next_ping_at : begin_until(hh, fact);

    /* While no hub answers, each is tried again when its time has come. */
    if (hh->items[serving].avoid_until > now)
        for (unsigned i = 0; i < hh->n; i++)
            due = i == 0 ? hh->items[0].avoid_until : nsec_min(due, hh->items[i].avoid_until);
    return nsec_max(due, now);
}

struct hub_choice_actions hub_choice_poll(
    struct hub_choice *hh, const struct hub_choice_fact *facts, nsec_t now)
{
    struct hub_choice_actions actions = {.why = "", .due_at = NSEC_NEVER};
    unsigned serving = hub_choice_find(hh, hh->serving);
    unsigned next = serving;

    if (hh->n == 0)
        return actions;
    if (serving == hh->n) {
        next = find_best(hh, facts, now);
        actions.why = hh->serving[0] != '\0' ? "it is no hub any more" : "";
    } else if (hh->n > 1) {
        const char *failure = find_failure(hh, &facts[serving], &actions.ping, now);

        next = failure ? find_refuge(hh, facts, serving, now)
                       : find_preferred(hh, facts, serving, now);
        actions.why = failure ? failure : "a hub is back that comes before it for this node";
    }
    if (next != serving) {
        take(hh, next, now);
        actions.has_changed = true;
        actions.ping = false;
    }
    if (hh->n > 1)
        actions.due_at = next_due(hh, &facts[next], next, now);
    return actions;
}
