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

unsigned hub_choice_find(const struct hub_choice *hc, const char *name)
{
    unsigned i = 0;

    while (i < hc->n && strcmp(hc->items[i].name, name) != 0)
        i++;
    return i;
}

void hub_choice_set(struct hub_choice *hc, const char *node, const char *const names[], unsigned n)
{
    struct hub_choice_item items[HUB_CHOICE_MAX];

    for (unsigned i = 0; i < n; i++) {
        unsigned before = hub_choice_find(hc, names[i]);

        if (before < hc->n) {
            items[i] = hc->items[before];
            continue;
        }
        items[i] = (struct hub_choice_item){.weight = hub_choice_weight(node, names[i])};
        (void)snprintf(items[i].name, sizeof(items[i].name), "%.*s", NAME_MAX_LEN, names[i]);
    }
    memcpy(hc->items, items, n * sizeof(*items));
    hc->n = n;
}

/* ---- the present one ------------------------------------------------------------------------- */

static void forget_pings(struct hub_choice *hc, nsec_t now)
{
    hc->n_unanswered = 0;
    hc->next_ping_at = now + PING_QUIET;
}

void hub_choice_on_heard(struct hub_choice *hc, nsec_t now)
{
    unsigned i = hub_choice_find(hc, hc->serving);

    if (i < hc->n)
        hc->items[i].avoid_until = 0;
    hc->is_heard = true;
    hc->is_lost = false;
    forget_pings(hc, now);
}

void hub_choice_on_lost(struct hub_choice *hc)
{
    hc->is_heard = false;
    hc->is_lost = true;
}

void hub_choice_on_answer(struct hub_choice *hc, nsec_t now)
{
    hc->has_answered = true;
    forget_pings(hc, now);
}

/* Pings the serving hub, if that is due. Return: true if it does not answer any more. Where it has
 * never answered, something on the way may drop pings, so that their loss says nothing. */
static bool is_silent(struct hub_choice *hc, bool *ret_ping, nsec_t now)
{
    if (!hc->is_heard || now < hc->next_ping_at)
        return false;
    if (hc->has_answered && hc->n_unanswered >= SILENT_PINGS &&
        now - hc->unanswered_since >= SILENT_FOR)
        return true;
    if (hc->n_unanswered == 0)
        hc->unanswered_since = now;
    hc->n_unanswered++;
    hc->next_ping_at = now + (hc->has_answered ? PING_AGAIN : PING_QUIET);
    *ret_ping = true;
    return false;
}

static nsec_t begin_until(const struct hub_choice *hc, const struct hub_choice_fact *fact)
{
    return hc->taken_at + (fact->has_session ? BEGIN_WITH_SESSION : BEGIN_WITHOUT);
}

/* Why the serving hub has failed; NULL: it has not. */
static const char *find_failure(
    struct hub_choice *hc, const struct hub_choice_fact *fact, bool *ret_ping, nsec_t now)
{
    if (hc->is_lost)
        return "it has ended the connection";
    if (hc->is_heard && fact->is_cut)
        return "its connection in TLS is broken";
    if (!hc->is_heard && now >= begin_until(hc, fact))
        return "it does not answer";
    return is_silent(hc, ret_ping, now) ? "it does not answer any more" : NULL;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* Of two hubs: those that are not avoided first, then those with a session, then by weight. */
static bool is_better(const struct hub_choice *hc, const struct hub_choice_fact *facts, unsigned a,
    unsigned b, nsec_t now)
{
    bool avoids_a = hc->items[a].avoid_until > now;
    bool avoids_b = hc->items[b].avoid_until > now;

    if (avoids_a != avoids_b)
        return avoids_b;
    if (facts[a].has_session != facts[b].has_session)
        return facts[a].has_session;
    if (hc->items[a].weight != hc->items[b].weight)
        return hc->items[a].weight > hc->items[b].weight;
    return strcmp(hc->items[a].name, hc->items[b].name) < 0;
}

static unsigned find_best(
    const struct hub_choice *hc, const struct hub_choice_fact *facts, nsec_t now)
{
    unsigned best = 0;

    for (unsigned i = 1; i < hc->n; i++)
        if (is_better(hc, facts, i, best, now))
            best = i;
    return best;
}

/* The preferred hub, if it is to be taken back now; else @serving. It has shown, since it has
 * failed, that it is there, and the present hub has served for some time. */
static unsigned find_preferred(
    const struct hub_choice *hc, const struct hub_choice_fact *facts, unsigned serving, nsec_t now)
{
    unsigned best = find_best(hc, facts, now);
    const struct hub_choice_item *preferred = &hc->items[best];
    nsec_t settle_for = SETTLE + (nsec_t)(preferred->weight % (uint64_t)SETTLE_TOO);
    bool is_proven = facts[best].has_session && facts[best].handshake_at > preferred->failed_at;

    if (preferred->weight <= hc->items[serving].weight || preferred->avoid_until > now ||
        !is_proven || now - hc->taken_at < settle_for)
        return serving;
    return best;
}

/* A hub to go to from @serving, which has failed; @serving itself when all others are avoided, too.
 */
static unsigned find_refuge(
    struct hub_choice *hc, const struct hub_choice_fact *facts, unsigned serving, nsec_t now)
{
    struct hub_choice_item *failed = &hc->items[serving];
    unsigned best;

    if (failed->avoid_until <= now) {
        /* One that has served well begins with a short time. */
        if (now - hc->taken_at >= SETTLE && failed->avoid_until == 0)
            failed->avoid_for = 0;
        failed->failed_at = now;
        failed->avoid_for =
            failed->avoid_for == 0 ? AVOID_FIRST : nsec_min(failed->avoid_for * 2, AVOID_MAX);
        failed->avoid_until = now + failed->avoid_for;
    }
    best = find_best(hc, facts, now);
    return hc->items[best].avoid_until > now ? serving : best;
}

struct hub_choice_actions hub_choice_poll(
    struct hub_choice *hc, const struct hub_choice_fact *facts, nsec_t now)
{
    struct hub_choice_actions actions = {.why = "", .due_at = NSEC_NEVER};
    unsigned serving = hub_choice_find(hc, hc->serving);
    unsigned next = serving;

    if (hc->n == 0)
        return actions;
    if (serving == hc->n) {
        next = find_best(hc, facts, now);
        actions.why = hc->serving[0] != '\0' ? "it is no hub any more" : "";
    } else if (hc->n > 1) {
        const char *failure = find_failure(hc, &facts[serving], &actions.ping, now);

        next = failure ? find_refuge(hc, facts, serving, now)
                       : find_preferred(hc, facts, serving, now);
        actions.why = failure ? failure : "a hub is back that comes before it for this node";
    }
    if (next != serving) {
        memcpy(hc->serving, hc->items[next].name, sizeof(hc->serving));
        hc->taken_at = now;
        hc->is_heard = false;
        hc->is_lost = false;
        hc->has_answered = false;
        forget_pings(hc, now);
        actions.has_changed = true;
        actions.ping = false;
    }
    if (hc->n > 1) {
        nsec_t due = hc->is_heard ? hc->next_ping_at : begin_until(hc, &facts[next]);

        /* While no hub answers, each is tried again when its time has come. */
        if (hc->items[next].avoid_until > now)
            for (unsigned i = 0; i < hc->n; i++)
                due = i == 0 ? hc->items[0].avoid_until : nsec_min(due, hc->items[i].avoid_until);
        actions.due_at = nsec_max(due, now);
    }
    return actions;
}
